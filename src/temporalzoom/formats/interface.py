"""What a format is: a row of the table of formats, what its reader returns, and what all readers check alike."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments


class Instance(NamedTuple):
    """One action: seconds and a label."""

    start: float
    end: float
    label: str


@dataclass
class Imported:
    """One recording as a file describes it. where: the place in the file, which opens messages about it. extra: what
    the annotation file keeps beside, such as the subject."""

    name: str
    where: str
    instances: list[Instance]
    subset: str | None = None
    duration: float | None = None
    fps: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportOptions:
    """What a user may choose about reading. `flag` is the option's name on the command line.

    An option with a flag needs a format that lists it (`Format.options`) among the files.
    """

    fps: float | None = None
    tiers: tuple[str, ...] = field(default=(), metadata={"flag": "--tier"})
    label_from: str = field(default="value", metadata={"flag": "--label-from"})
    subset_column: str | None = field(default=None, metadata={"flag": "--subset-column"})
    predictions: bool = field(default=False, metadata={"flag": "--predictions"})
    point_events: float | None = field(default=None, metadata={"flag": "--point-events"})
    behaviours: tuple[str, ...] = field(default=(), metadata={"flag": "--behaviours"})
    columns: tuple[tuple[str, str], ...] = field(default=(), metadata={"flag": "--columns"})
    time_unit: str | None = field(default=None, metadata={"flag": "--time-unit"})
    decimal: str | None = field(default=None, metadata={"flag": "--decimal"})
    date_order: str | None = field(default=None, metadata={"flag": "--date-order"})
    starts_at: tuple[str, ...] = field(default=(), metadata={"flag": "--starts-at"})
    sheet: str | None = field(default=None, metadata={"flag": "--sheet"})
    durations: tuple[str, ...] = ()  # `seconds` or `name=seconds`; what the files say comes first


@dataclass(frozen=True)
class ExportOptions:
    """fps: frames per second, for formats that count frames. media: where the video or signal of a recording is.
    durations: seconds of whole recordings, for formats that hold them. labels: of all recordings, for formats that list
    them in the file of each one."""

    fps: float | None = None
    media: Mapping[str, str | Path] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


# From all files of one format to their recordings; what a user should know is appended to the list of notes.
Reader = Callable[[Sequence[Path], ImportOptions, list[str]], list[Imported]]
# One file from the recordings that belong into it.
Writer = Callable[[Path, Mapping[str, Segments], ExportOptions], None]


@dataclass(frozen=True)
class Format:
    """One row of the table of formats.

    suffixes: of the files that are written and read. also_reads: suffixes that other programs give to such files.
    one_file: it holds all recordings; else each one has a file of its own, and `write` gets one recording at a time.
    options: the fields of ImportOptions that its reader uses. recognizes: distinguishes its files by their content
    from those of other formats with the same suffix; a row without it takes the files that no other row recognizes.
    frames: it counts frames, so that whoever writes it should know their rate.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Reader | None = None
    write: Writer | None = None
    one_file: bool = True
    also_reads: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    recognizes: Callable[[Path], bool] | None = None
    frames: bool = False

    @property
    def readable(self) -> tuple[str, ...]:
        return () if self.read is None else (*self.suffixes, *self.also_reads)

    @property
    def writable(self) -> tuple[str, ...]:
        return () if self.write is None else self.suffixes


# For readers

MEDIA = (
    *(
        ".mp4",
        ".mkv",
        ".avi",
        ".mov",
        ".webm",
        ".mpg",
        ".mpeg",
        ".m4v",
        ".wmv",
        ".wav",
        ".mp3",
        ".flac",
        ".ogg",
        ".m4a",
    ),
    *(".csv", ".npy", ".npz", ".pt", ".h5"),
)
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_HIDDEN_FORMULA = re.compile(r"'+[=+\-@\t\r]")
_TOOLS = re.compile(r"\.(boris|simba|deepethogram|audacity|via|labelstudio)\Z", re.IGNORECASE)


def name_of_file(path: Path) -> str:
    """The recording of a file that holds one: its name without the suffix, be it `.csv` or `.simba.csv`."""
    return _TOOLS.sub("", path.stem) or path.stem


def name_of_media(address: str) -> str:
    """The recording of a media file: `C:\\videos\\match7.mp4` is `match7`."""
    last = re.split(r"[/\\]", address.strip())[-1]
    return last[: last.rindex(".")] if "." in last[1:] else last


def has_media_suffix(name: str) -> bool:
    """Whether a name ends as files of videos, sounds and features do; recordings may have dots in their names."""
    return name.lower().endswith(MEDIA) and not name.startswith(".")


def durations_by_name(durations: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """Of `seconds` and `name=seconds`: the one for all recordings, and those by name."""
    general, by_name = None, {}
    for text in durations:
        name, separator, seconds = text.rpartition("=")
        try:
            value = float(seconds)
        except ValueError:
            raise InputError(f"--duration must be seconds or name=seconds, got {text!r}") from None
        positive(value, f"--duration {text}: it")
        if separator:
            by_name[name] = value
        else:
            general = value
    return general, by_name


def point_event(time: float, label: str, length: float, where: str) -> Instance:
    """An event without a length gets one: centred, not before the start of the recording."""
    return checked_instance(max(0.0, time - length / 2), time + length / 2, label, where)


def note_point_events(where: str | Path, left_out: Counter[str], notes: list[str]) -> None:
    if left_out:
        kinds = ", ".join(f"{count} {label!r}" for label, count in left_out.most_common())
        notes.append(
            f"{where}: left out {left_out.total()} point events, which have no length: {kinds} "
            "(--point-events SECONDS gives them one)"
        )


def checked_instance(start: float, end: float, label: str, where: str) -> Instance:
    """The label without spaces at its ends: nobody sees them, and they would make a second class."""
    label = label.strip()
    if not label:
        raise InputError(f"{where}: the label is empty")
    if end <= start:
        raise InputError(f"{where}: end {end:g} is not after start {start:g} ({label!r})")
    return Instance(start, end, label)


def positive(value: float, what: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{what} must be a positive number, got {value!r}")
    return value


def read_bytes(path: Path, *, may_be_empty: bool = False) -> bytes:
    """The content of a file, which must have some."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not may_be_empty and not content.strip():
        raise InputError(f"{path}: the file is empty")
    return content


def read_text(path: Path, what: str, *, may_be_empty: bool = False) -> str:
    """UTF-8 text, with or without a byte order mark, line ends as they are. what: the kind of file, for messages."""
    try:
        return read_bytes(path, may_be_empty=may_be_empty).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not {what} in UTF-8: {error}") from error


def short(value: Any) -> str:
    """`repr` on one line of at most 80 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def as_meant(cell: str) -> str:
    """The inverse of `no_formula`."""
    return cell[1:] if _HIDDEN_FORMULA.match(cell) else cell


# For writers


def no_formula(text: str) -> str:
    """The text of a cell of a CSV file that opens in a spreadsheet as text: an apostrophe comes before what would be
    taken for a formula, which can start programs and read other files. `as_meant` takes it away."""
    return f"'{text}" if _FORMULA.match(text) else text


def milliseconds(segments: Segments) -> Iterator[tuple[int, int, str, float]]:
    """Rows `(start, end, label, score)` in order of the starts, for formats of whole milliseconds in which no time is
    negative and an entry ends after it starts."""
    for start, end, label, score in segments.sort("start"):
        first = max(0, round(start * 1000))
        yield first, max(first + 1, round(end * 1000)), label, score
