"""Which column of a table means what: names that people give them, their units, and a question where two would do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ImportOptions, short

# What a column may mean, and the names by which it is known; those of the second group count where none of the first
# is there. Case, spaces, hyphens and units do not count.
NAMES: dict[str, tuple[str, str]] = {
    "recording": (
        "video recording file filename media video_id recording_id file_id media_file media_file_name media_file_path "
        "video_file video_name video_path recording_name file_path audio",
        "name path observation_id observation session clip clip_id trial",
    ),
    "start": (
        "start begin onset t1 start_time begin_time onset_time time_start start_timestamp from t_start t_begin",
        "time timestamp",
    ),
    "end": ("end stop offset finish t2 end_time stop_time finish_time offset_time time_end end_timestamp to t_end", ""),
    "length": ("", "duration length"),
    "label": (
        "label class behavior behaviour event activity annotation action class_name label_name behavior_code",
        "category code tag state type",
    ),
    "subject": ("subject subject_id participant participant_id person user user_id animal animal_id individual", "id"),
    "subset": ("subset split", ""),
    "duration": (
        "video_duration recording_duration total_length media_duration file_duration total_duration video_length "
        "recording_length",
        "duration",
    ),
}
ALIASES = {"video": "recording", "stop": "end", "behaviour": "label", "behavior": "label", "duration": "length"}
ALIASES |= {"recording_duration": "duration"}
ROLES = ("recording", "start", "end", "duration", "label", "subject", "subset", "recording_duration")  # of --columns
TIMES = ("start", "end", "length")
UNITS = {
    "seconds": "s sec secs second seconds",
    "milliseconds": "ms msec msecs millis millisecond milliseconds",
    "minutes": "min mins minute minutes",
    "frames": "frame frames frame_number frame_no frame_index",
}
_UNIT = {word: unit for unit, words in UNITS.items() for word in words.split()}
PREFERRED = ("seconds", "", "milliseconds", "minutes", "frames")  # where a table has the same time in several units


@dataclass(frozen=True)
class Column:
    """index: its place in the header. unit: a key of UNITS, or empty where the name has none."""

    index: int
    name: str
    unit: str


@dataclass(frozen=True)
class Table:
    """Cells as text. where: the file, or the sheet of one; it opens messages. rows: the place of each, such as
    `line 3`, and its cells, at least as many as the header has."""

    where: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, list[str]], ...]


def find_columns(table: Table, options: ImportOptions) -> dict[str, Column]:
    """`{role: column}` of those that are there; at least `start`, `label`, and `end` or `length`."""
    given = _given_columns(table, options)
    known = [_known(index, name) for index, name in enumerate(table.header)]
    columns = dict(given)
    taken = {column.index for column in given.values()}
    for role in NAMES:
        if role not in columns:
            found = _candidates(role, [entry for entry in known if entry[1].index not in taken])
            if len(found) == 1 or (found and _same_cells(table, found)):
                columns[role] = found[0]
            elif found and role in ("recording", *TIMES, "label"):
                raise _question(table, role, found, columns)
    if "length" in given:
        if "end" in given:
            raise InputError("--columns: end and duration (of an action) say the same; name one of them")
        columns.pop("end", None)
    elif "end" in columns:
        columns.pop("length", None)
    elif "duration" in columns and columns.get("length", columns["duration"]).index == columns["duration"].index:
        columns.pop("duration")  # without a column of ends it holds the lengths of actions
    for role in ("start", "label"):
        if role not in columns:
            raise _missing(table, role)
    if "end" not in columns and "length" not in columns:
        raise _missing(table, "end")
    return columns


def _missing(table: Table, role: str) -> InputError:
    names = ", ".join(name.replace("_", " ") for name in " ".join(NAMES[role]).split()[1:5])
    header = short(", ".join(table.header))
    return InputError(f"{table.where}: no column {role!r} (or {names}, ...); name it with --columns {role}=NAME; "
                      f"the header is {header}")  # fmt: skip


def has_times(header: Sequence[str]) -> bool:
    """Whether a header looks like that of a table of actions: it has a column of starts."""
    known = [_known(index, name) for index, name in enumerate(header)]
    return any(key in _keys("start", 0) for key, _ in known)


def _given_columns(table: Table, options: ImportOptions) -> dict[str, Column]:
    """What --columns and --subset-column say."""
    pairs = [(role, name, f"--columns {role}={name}") for role, name in options.columns]
    if options.subset_column is not None:
        pairs.append(("subset", options.subset_column, "--subset-column"))
    columns = {}
    for role, name, flag in pairs:
        if role not in ROLES and role not in ALIASES:
            raise InputError(f"{flag}: {role!r} is not what a column can mean; valid are {', '.join(ROLES)}")
        exact = [i for i, other in enumerate(table.header) if other.strip() == name.strip()]
        alike = [i for i, other in enumerate(table.header) if other.strip().casefold() == name.strip().casefold()]
        if not exact and len(alike) != 1:
            raise InputError(
                f"{table.where}: no column {name!r} ({flag}); the header is {short(', '.join(table.header))}"
            )
        index = (exact or alike)[0]
        columns[ALIASES.get(role, role)] = Column(
            index, table.header[index], _known(index, table.header[index])[1].unit
        )
    return columns


def _known(index: int, name: str) -> tuple[str, Column]:
    """The name without unit, brackets, case and spaces; and the column with its unit, which may also be a word of the
    name: `start_ms`, `frame start`."""
    bracket = re.search(r"[(\[]([^)\]]*)[)\]]", name)
    unit = "" if bracket is None else bracket[1].strip().casefold()
    plain = re.sub(r"[(\[][^)\]]*[)\]]?", " ", name)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain).casefold()
    parts = [part for part in re.split(r"[\W_]+", words) if part]
    if bracket is None and len(parts) > 1 and parts[-1] in _UNIT:
        unit = parts.pop()
    elif bracket is None and len(parts) > 1 and parts[0] in ("frame", "frames"):
        unit = parts.pop(0)
    return "".join(parts), Column(index, name, _UNIT.get(unit, unit))


def _keys(role: str, group: int) -> set[str]:
    return {name.replace("_", "") for name in NAMES[role][group].split()}


def _candidates(role: str, known: Sequence[tuple[str, Column]]) -> list[Column]:
    """Columns that may have the role; of a time in several units those of the unit that is easiest to read."""
    for group in (0, 1):
        found = [column for key, column in known if key in _keys(role, group)]
        if role in (*TIMES, "duration"):
            units = [column.unit for column in found]
            best = next((unit for unit in PREFERRED if unit in units), None)
            found = [column for column in found if best is None or column.unit == best]
        if found:
            return found
    return []


def _same_cells(table: Table, columns: Sequence[Column]) -> bool:
    return all(len({cells[column.index].strip() for column in columns}) == 1 for _, cells in table.rows)


def _question(table: Table, role: str, found: Sequence[Column], columns: Mapping[str, Column]) -> InputError:
    """Each reading with the first row in which the two differ."""
    one, other, *_ = found
    place, cells = next(row for row in table.rows if row[1][one.index].strip() != row[1][other.index].strip())
    shown = [
        ", ".join(
            f"{key} {short(cells[column.index].strip())}"
            for key, column in {**{k: c for k, c in columns.items() if k in NAMES}, role: choice}.items()
        )
        for choice in (one, other)
    ]
    return InputError(
        f"{table.where}: which column is the {role}, {one.name!r} or {other.name!r}? {place} is {shown[0]}; or "
        f'{shown[1]}: choose with --columns {role}="{one.name}" or --columns {role}="{other.name}"'
    )
