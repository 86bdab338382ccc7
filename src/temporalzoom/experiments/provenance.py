"""Where numbers come from: the commit, the version and the date, and whether the program has changed since."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import temporalzoom
from temporalzoom.atomic import replacing
from temporalzoom.config import Config, dump_tree
from temporalzoom.json_tree import parse_json

PACKAGE = Path(temporalzoom.__file__).resolve().parent
# A change here can change numbers.
DECISIVE = ("models", "training", "inference", "bdr", "runs")
RECORD = "provenance.json"
_PATH_KEYS = ("root", "annotations", "features", "videos", "video_scores")


def provenance(package: Path = PACKAGE) -> dict[str, Any]:
    """commit, dirty: of the repository that the package is part of, None where it is part of none."""
    commit = head(package)
    return {
        "commit": commit,
        "dirty": None if commit is None else bool(_git("status", "--porcelain", "--", str(package), folder=package)),
        "version": metadata.version("temporalzoom"),
        "date": datetime.now(UTC).date().isoformat(),
    }


def head(package: Path = PACKAGE) -> str | None:
    """The commit of the repository that a package is a tracked part of."""
    # A virtual environment may lie in somebody's repository: that one says nothing about what is installed in it.
    tracked = _git("ls-files", "--", str(package / "__init__.py"), folder=package)
    return _git("rev-parse", "HEAD", folder=package) if tracked else None


def last_change(package: Path = PACKAGE, rooms: Sequence[str] = DECISIVE) -> str | None:
    """The last commit that touched what decides about numbers."""
    return _git("log", "-1", "--format=%H", "--", *(str(package / room) for room in rooms), folder=package) or None


def contains(commit: str, other: str, folder: Path = PACKAGE) -> bool:
    """Whether the history of a commit includes another; not, where the commit is not known."""
    return _git("merge-base", "--is-ancestor", other, commit, folder=folder) is not None


def outdated(results: Mapping[str, Any], package: Path = PACKAGE) -> str | None:
    """What measured these results, where that is not the program as it is; None: it is, or nothing has changed since.

    Trainings of an earlier call are not repeated: the commits that trained count as much as the one that measured.
    """
    stored = results.get("provenance") or {}
    commits = [stored.get("commit"), *stored.get("trained_by", ())]
    if None in commits:
        return "unknown"
    last = last_change(package)
    for commit in dict.fromkeys(commits):
        if last is not None and not contains(commit, last, package):
            return commit[:10]
    return f"{commits[0][:10]} with changes that were not committed" if stored.get("dirty") else None


def record(folder: Path) -> None:
    """Beside a training that begins now: what trains it."""
    with replacing(folder / RECORD) as file:
        json.dump(provenance(), file, indent=1)


def trained_by(folders: Sequence[Path]) -> list[str | None]:
    """The commits that trained, each once; None for a training without a record, or with uncommitted changes."""
    found: dict[str | None, None] = {}
    for folder in folders:
        try:
            stored = parse_json((folder / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            stored = {}
        found[None if stored.get("dirty") else stored.get("commit")] = None
    return list(found)


def stored_tree(config: Config) -> dict[str, Any]:
    """All settings, with the names of files in the place of their paths: where they lie differs by machine."""
    tree = dump_tree(config)
    for section in ("data", "inference"):
        for key in _PATH_KEYS:
            if isinstance(tree.get(section, {}).get(key), str):
                tree[section][key] = Path(tree[section][key]).name
    return tree


def _git(*words: str, folder: Path) -> str | None:
    """What git prints; None where there is no git, no repository, or git says no."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
