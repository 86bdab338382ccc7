"""A run of several networks on disk: which they are, and how what they find is put together."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.json_tree import parse_json

FILE = "members.json"
FORMAT = 1


@dataclass(frozen=True)
class Members:
    """folders: of the networks, below that of the run; thresholds: of the fused scores, by class; tiou: from which
    overlap on two segments are the same instance; validated: folders of networks that say how good the run is, each on
    recordings that it has not seen; the same ones, unless those for use were trained on everything."""

    folders: tuple[str, ...]
    thresholds: dict[str, float]
    tiou: float
    validated: tuple[str, ...] = ()

    def paths(self, run: Path) -> list[Path]:
        return [run / folder for folder in self.folders]


def write_members(run: Path, members: Members) -> None:
    with replacing(run / FILE) as file:
        json.dump({"format": FORMAT, **asdict(members)}, file, indent=1)


def read_members(run: Path) -> Members | None:
    """None where the folder is not a run of several networks."""
    file = run / FILE
    if not file.is_file():
        return None
    try:
        values = parse_json(file.read_text(encoding="utf-8"))
        if values.pop("format") != FORMAT:
            raise ValueError(f"this version reads format {FORMAT}")
        folders = tuple(str(folder) for folder in values["folders"])
        thresholds = {str(label): float(score) for label, score in values["thresholds"].items()}
        validated = tuple(str(folder) for folder in values["validated"])
        members = Members(folders, thresholds, float(values["tiou"]), validated)
        for folder in map(PurePosixPath, (*folders, *validated)):
            if folder.is_absolute() or ".." in folder.parts:
                raise ValueError(f"{folder} is not below the run")
        if not folders or not 0 < members.tiou <= 1:
            raise ValueError("needs at least one folder, and a tiou above 0 and up to 1")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: not a description of members ({type(error).__name__}: {error})") from None
    return members


def single(run: Path) -> Path:
    """The folder itself, if it is that of one network; one of several is refused with the names of its networks."""
    members = read_members(run)
    if members is None:
        return run
    if len(members.folders) == 1:
        return members.paths(run)[0]
    listed = ", ".join(str(path) for path in members.paths(run))
    raise InputError(f"{run}: holds {len(members.folders)} networks; this takes one of them: {listed}")
