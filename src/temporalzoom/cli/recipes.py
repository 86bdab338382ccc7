"""`tzoom recipes` and `tzoom settings`: what can be trained by name, and what can be set."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from temporalzoom.cli.app import Overrides, Settings, app, changed_settings, say, screen


@app.command(epilog="Examples: tzoom recipes   |   tzoom recipes sbhar   |   tzoom recipes zoombench --rules")
def recipes(
    name: Annotated[str | None, typer.Argument(help="Print this recipe")] = None,
    overrides: Overrides = None,
    rules: Annotated[bool, typer.Option("--rules", help="What tzoom fit would choose on the recipe's data")] = False,
) -> None:
    """List the recipes that `tzoom train NAME` runs, or print one."""
    from temporalzoom.config import load_config, recipe_names, recipe_summary, recipe_text
    from temporalzoom.errors import InputError
    from temporalzoom.workflows.recipe_rules import rules_part

    if name is not None:
        if name not in recipe_names():
            raise InputError(f"{name}: no such recipe; there are {', '.join(recipe_names())}")
        if not rules and overrides:
            raise InputError(f"{overrides[0]}: a recipe is printed as it is; settings are for --rules and tzoom train")
        say(rules_part(load_config(name, overrides or ())).rstrip() if rules else recipe_text(name).rstrip())
        return
    if rules:
        raise InputError("--rules: of which recipe? tzoom recipes NAME --rules")
    table = Table("recipe", "what it trains", box=box.SIMPLE_HEAD, pad_edge=False)
    for each in recipe_names():
        table.add_row(Text(each, no_wrap=True), Text(recipe_summary(each)))
    screen.print(table)
    say("print one with: tzoom recipes NAME; train it with: tzoom train NAME --out runs/NAME")


@app.command(epilog="Examples: tzoom settings training   |   tzoom settings model --set model.name=tridet")
def settings(
    section: Annotated[str | None, typer.Argument(help="Only this section, such as training")] = None,
    overrides: Overrides = None,
    changes: Settings = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="All settings as docs/configuration.md")] = False,
) -> None:
    """List the settings, their defaults and what they mean, for the chosen model and data."""
    from temporalzoom.config.reference import markdown_page, setting_rows
    from temporalzoom.errors import InputError

    if markdown:
        print(markdown_page(), end="")
        return
    if section is not None and "=" in section:
        overrides, section = [section, *(overrides or ())], None
    rows = setting_rows(changed_settings(overrides, changes))
    wanted = [row for row in rows if section is None or row.key == section or row.key.startswith(f"{section}.")]
    if not wanted:
        sections = dict.fromkeys(row.key.partition(".")[0] for row in rows)
        raise InputError(f"{section}: no such section or setting; there are {', '.join(sections)}")
    table = Table("setting", "default", "meaning", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in wanted:
        table.add_row(Text(row.key), Text(row.default), Text(row.meaning))
    screen.print(table)
