"""The one place where consoles are made: names and labels are text, and never markup.

A class may be called `[walk]` or `[/red]`, a folder `r[/b]`, a recording `:smile:`. A console of rich would swallow the
first, fail on the second and draw the last; one that is made here prints what it is given, in tables and titles too.
What shall be bold or red says so with a style: `Text("error:", style="bold red")`.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console


def plain_console(**options: Any) -> Console:
    """A console of rich without markup and emoji. options: those of rich, such as `stderr=True`."""
    return Console(**options, markup=False, emoji=False)
