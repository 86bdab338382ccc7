"""What reaches the terminal: consoles are made here. Names and labels are text of others: shown, never obeyed.

A class may be called `[walk]` or `[/red]`, a folder `r[/b]`, a recording `:smile:`. A console of rich would swallow the
first, fail on the second and draw the last; one that is made here prints what it is given, in tables and titles too,
with control characters as Python writes them. What shall be bold or red says so with a style:
`Text("error:", style="bold red")`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# Control characters but tab and line feed, what turns the direction of text round, and halves of surrogate pairs, which
# no encoding has.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with control characters as Python writes them: a name with the byte ESC shows `\x1b`, and could
    otherwise move the cursor, change the window's title or hide what was printed.

    >>> printable("walk\x1b[2J")
    'walk\\x1b[2J'
    """
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def one_line(text: str) -> str:
    """`printable`, and no line break."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


class Screen(Console):
    """The terminal, or standard error: what is printed there is `printable`, be it text, a table or a progress bar."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            # A control segment is rich's own: it moves the cursor of progress bars.
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def plain_console(**options: Any) -> Console:
    """A console of rich without markup and emoji. options: those of rich, such as `stderr=True`."""
    return Screen(**options, markup=False, emoji=False)
