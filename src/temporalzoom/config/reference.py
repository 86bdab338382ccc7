"""All settings with their defaults and meanings: `tzoom settings`, and the page docs/configuration.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from temporalzoom.config import data, networks
from temporalzoom.config.base import Section, sections_of
from temporalzoom.config.loading import load_config
from temporalzoom.config.sections import Config, config_fields
from temporalzoom.config.unread import unread_keys


@dataclass(frozen=True)
class Row:
    """A setting as a reader sees it."""

    key: str
    default: str
    meaning: str


def setting_rows(overrides: Iterable[str] = ()) -> list[Row]:
    """The settings that are read with these overrides, and their values."""
    config = load_config(None, overrides)
    unread = unread_keys(config)
    return [
        Row(key, _text(_value(config, key)), meaning(key))
        for key, field in config_fields(config.model_dump()).items()
        if not sections_of(field) and key not in unread
    ]


def meaning(key: str) -> str:
    """The description of a setting; a published detector's is that of the same word elsewhere."""
    fields = config_fields()
    own = fields[key].description if key in fields else None
    if own:
        return own
    section, _, word = key.rpartition(".")
    for other in (*networks.SECTIONS.values(), *data.SECTIONS.values()):
        field = other.model_fields.get(word)
        if field is not None and field.description:
            return field.description
    raise KeyError(f"{section}.{word} has no description")


def markdown_page() -> str:
    """docs/configuration.md."""
    lines = [
        "# Configuration",
        "",
        "<!-- written by `tzoom settings --markdown`; the texts are in src/temporalzoom/config -->",
        "",
        "A YAML file with these sections; what it leaves out has the default.",
        "`base: NAME` builds on a recipe (`tzoom recipes`) or on another file, and a part after a line `---` on the",
        "part before it: recipes of data sets are what the [rules of fit](fit.md) choose, and what they change of it.",
        "On the command line,",
        "`--set section.key=value` changes single settings. A setting that the chosen model, data or loss does not",
        "read is refused. `tzoom settings model --set model.name=tridet` lists what is read with that choice.",
        "Lengths called positions count feature vectors.",
        "",
        *_table([Row(name, _text(getattr(Config(), name)), meaning(name)) for name in ("seed", "device")]),
    ]
    for title, sections in (("data", data.SECTIONS), ("model", networks.SECTIONS)):
        key = "source" if title == "data" else "name"
        lines += ["", f"## {title}", "", f"A choice by `{title}.{key}`; each has its own settings.", ""]
        shown: set[type[Section]] = set()
        for section in sections.values():
            if section not in shown:
                shown.add(section)
                lines += _section_lines(title, section, [n for n, s in sections.items() if s is section])
    for name in ("bdr", "training", "augment", "backbone", "inference", "evaluation"):
        lines += ["", f"## {name}", "", *_table(_rows(name, type(getattr(Config(), name))))]
    return "\n".join(lines) + "\n"


def _section_lines(title: str, section: type[Section], names: list[str]) -> list[str]:
    chosen = ", ".join(f"`{'uniform-N' if name == 'uniform' else name}`" for name in names)
    key = "source" if title == "data" else "name"
    rows = [row for row in _rows(title, section) if row.key != f"{title}.{key}"]
    return [f"### {chosen}", "", (section.__doc__ or "").split("\n")[0], "", *_table(rows), ""]


def _rows(prefix: str, section: type[Section]) -> list[Row]:
    rows: list[Row] = []
    for name, field in section.model_fields.items():
        inner = sections_of(field)
        if inner:
            rows += _rows(f"{prefix}.{name}", inner[0])
        else:
            default = "" if field.is_required() else _text(field.default)
            rows.append(Row(f"{prefix}.{name}", default, field.description or meaning(f"{prefix}.{name}")))
    return rows


def _table(rows: list[Row]) -> list[str]:
    cells = [f"| `{row.key}` | {f'`{row.default}`' if row.default else ''} | {row.meaning} |" for row in rows]
    return ["| setting | default | meaning |", "|---|---|---|", *(cell.replace("\\|", "|") for cell in cells)]


def _value(config: Config, key: str) -> Any:
    node: Any = config
    for part in key.split("."):
        node = getattr(node, part)
    return node


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, float) and value == int(value):
        return str(value)
    return yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("...").strip()
