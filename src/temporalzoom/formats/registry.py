"""The table of formats. A new format is one file with its reader and its writer, and one row here."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from temporalzoom.errors import InputError
from temporalzoom.formats.audacity import read_audacity, write_audacity
from temporalzoom.formats.boris import is_boris, read_boris, write_boris
from temporalzoom.formats.csv_table import read_tables, write_table
from temporalzoom.formats.deepethogram import is_deepethogram, read_deepethogram, write_deepethogram
from temporalzoom.formats.elan import read_elan, write_elan
from temporalzoom.formats.interface import Format
from temporalzoom.formats.json_file import write_predictions
from temporalzoom.formats.label_studio import read_label_studio, write_label_studio
from temporalzoom.formats.rttm import read_rttm, write_rttm
from temporalzoom.formats.simba import is_simba, read_simba, write_simba
from temporalzoom.formats.spreadsheet import read_spreadsheets, write_spreadsheet
from temporalzoom.formats.subtitles import read_srt, read_vtt, write_srt, write_vtt
from temporalzoom.formats.via import is_via, read_via, write_via

TABLE_OPTIONS = ("subset_column", "columns", "time_unit", "decimal", "date_order", "starts_at")
FORMATS = (
    # Annotations in this form need no import: trainings read them as they are.
    Format("JSON", (".json",), write=lambda path, results, options: write_predictions(path, results)),
    Format("CSV", (".csv", ".tsv"), read_tables, write_table, options=TABLE_OPTIONS),
    Format("Excel", (".xlsx",), read_spreadsheets, write_spreadsheet, options=(*TABLE_OPTIONS, "sheet")),
    Format("WebVTT", (".vtt",), read_vtt, write_vtt, one_file=False),
    Format("SubRip", (".srt",), read_srt, write_srt, one_file=False),
    Format("ELAN", (".eaf",), read_elan, write_elan, one_file=False, options=("tiers", "label_from")),
    Format(
        "Label Studio", (".labelstudio.json",), read_label_studio, write_label_studio,
        also_reads=(".json",), options=("predictions",), frames=True,
    ),
    Format(
        "BORIS", (".boris.tsv", ".boris.csv"), read_boris, write_boris,
        also_reads=(".tsv", ".csv", ".xlsx"), options=("point_events", "sheet"), recognizes=is_boris,
    ),
    Format(
        "DeepEthogram", (".deepethogram.csv",), read_deepethogram, write_deepethogram, one_file=False,
        also_reads=(".csv",), options=("behaviours",), recognizes=is_deepethogram, frames=True,
    ),
    Format(
        "SimBA", (".simba.csv",), read_simba, write_simba, one_file=False,
        also_reads=(".csv",), options=("behaviours",), recognizes=is_simba, frames=True,
    ),
    Format("RTTM", (".rttm",), read_rttm, write_rttm),
    Format(
        "Audacity", (".audacity.txt",), read_audacity, write_audacity, one_file=False,
        also_reads=(".txt",), options=("point_events",),
    ),
    Format(
        "VIA", (".via.json",), read_via, write_via,
        also_reads=(".json",), options=("columns", "point_events"), recognizes=is_via,
    ),
)  # fmt: skip


def writing_format(path: str | Path) -> Format:
    """The format that the name of a file to write chooses, by its longest known suffix."""
    path = Path(path)
    found = _longest(path, {format: format.writable for format in FORMATS})
    if not found:
        raise _unknown(path, writable_suffixes())
    return found[0]


def reading_format(path: str | Path, given: Collection[str] = ()) -> Format:
    """The format of a file to import: by its name, and where several formats share the suffix, by its content.

    given: options that the user set, fields of ImportOptions. One that only the general format of the suffix has, such
    as the columns of a table, says that it is meant.
    """
    path = Path(path)
    found = _readers(path)
    if not found:
        raise _unknown(path, readable_suffixes())
    if len(found) == 1:
        return found[0]
    general = next((format for format in found if format.recognizes is None), found[0])
    special = next((format for format in found if format.recognizes is not None and format.recognizes(path)), None)
    if special is None or set(given) & (set(general.options) - set(special.options)):
        return general
    return special


def written_suffix(path: Path) -> str:
    """The longest suffix of a file's name by which it is written, as it stands there: `.BORIS.tsv`."""
    known = [suffix for suffix in writable_suffixes() if _has_suffix(path, suffix)]
    return path.name[-max(map(len, known)) :] if known else path.suffix


def is_readable(path: Path) -> bool:
    """By its name."""
    return bool(_readers(path))


def writable_suffixes() -> tuple[str, ...]:
    return tuple(dict.fromkeys(suffix for format in FORMATS for suffix in format.writable))


def readable_suffixes() -> tuple[str, ...]:
    return tuple(dict.fromkeys(suffix for format in FORMATS for suffix in format.readable))


def describe_readable(option: str | None = None) -> str:
    """The formats that are read, or those that use an option: `CSV (.csv, .tsv), ELAN (.eaf)`."""
    chosen = [f for f in FORMATS if f.read is not None and (option is None or option in f.options)]
    return ", ".join(f"{format.name} ({', '.join(format.readable)})" for format in chosen)


def _readers(path: Path) -> list[Format]:
    return _longest(path, {format: format.readable for format in FORMATS})


def _longest(path: Path, suffixes: dict[Format, tuple[str, ...]]) -> list[Format]:
    """The formats with the longest suffix that the name of the file has."""
    lengths = {
        format: max((len(suffix) for suffix in known if _has_suffix(path, suffix)), default=0)
        for format, known in suffixes.items()
    }
    longest = max(lengths.values())
    return [format for format, length in lengths.items() if length == longest > 0]


def _has_suffix(path: Path, suffix: str) -> bool:
    """Upper and lower case alike. A file called `labelstudio.json` has the suffix `.labelstudio.json`, but one called
    `csv` has none."""
    return path.suffix.lower() == Path(f"x{suffix}").suffix and f".{path.name.lower()}".endswith(suffix)


def _unknown(path: Path, valid: tuple[str, ...]) -> InputError:
    return InputError(f"{path}: unknown format {path.suffix!r}; valid are {', '.join(valid)}")
