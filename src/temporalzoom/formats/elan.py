"""ELAN files (.eaf): the annotations of tiers."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from xml.etree import ElementTree

from temporalzoom.errors import InputError
from temporalzoom.formats.json_records import short
from temporalzoom.formats.recordings import Imported, checked_instance, read_bytes


class ElanFile:
    """A parsed document: its tiers by name, its times, and which annotation is where."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.root = ElementTree.fromstring(read_bytes(path))
        except (ElementTree.ParseError, ValueError, LookupError) as error:  # the latter: an encoding nobody knows
            raise InputError(f"{path}: not an ELAN file: {error}") from error
        if self.root.tag != "ANNOTATION_DOCUMENT":
            raise InputError(f"{path}: not an ELAN file: it is a document {self.root.tag!r}")
        header = self.root.find("HEADER")
        unit = "milliseconds" if header is None else header.get("TIME_UNITS", "milliseconds")
        if unit != "milliseconds":
            raise InputError(f"{path}: TIME_UNITS is {unit!r}; only milliseconds are read")
        self.tiers: dict[str, ElementTree.Element] = {}
        for tier in self.root.findall("TIER"):
            name = tier.get("TIER_ID", "")
            if name in self.tiers:
                raise InputError(f"{path}: two tiers are called {name!r}")
            self.tiers[name] = tier
        self.slots = {slot.get("TIME_SLOT_ID"): slot for slot in self.root.iter("TIME_SLOT")}
        self.annotations = {
            annotation.get("ANNOTATION_ID"): annotation
            for kind in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")
            for annotation in self.root.iter(kind)
        }

    @property
    def recording(self) -> str:
        """What the file says that it is about (this package's own files do), else its name."""
        for found in self.root.iterfind("HEADER/PROPERTY[@NAME='recording']"):
            if found.text and found.text.strip():
                return found.text
        return self.path.stem

    @property
    def independent(self) -> list[str]:
        """Tiers with times of their own. The others say more about the annotations of a parent."""
        return [name for name, tier in self.tiers.items() if tier.get("PARENT_REF") is None]

    @property
    def media_offset(self) -> int:
        """Milliseconds by which the first medium was shifted against the time line."""
        media = self.root.find("HEADER/MEDIA_DESCRIPTOR")
        text = "0" if media is None else media.get("TIME_ORIGIN", "0")
        return self._whole(text, f"{self.path}: TIME_ORIGIN")

    def read(self, tiers: Collection[str], label_from: str) -> Imported:
        """The annotations of the named tiers, of which the file need not have all; without names, of all that have
        times of their own. label_from: `value`, where an empty one stands for the tier's name, or `tier`."""
        instances = []
        for name in [tier for tier in self.tiers if tier in tiers] if tiers else self.independent:
            for annotation in self.tiers[name].iterfind("ANNOTATION/*"):
                where = f"{self.path}: tier {name!r}, annotation {annotation.get('ANNOTATION_ID')}"
                value = (annotation.findtext("ANNOTATION_VALUE") or "").strip()
                start, end = self._span(annotation, where)
                instances.append(checked_instance(start, end, name if label_from == "tier" else value or name, where))
        return Imported(self.recording, str(self.path), instances)

    def _span(self, annotation: ElementTree.Element, where: str) -> tuple[float, float]:
        """Seconds; those of the parent for an annotation that refers to one."""
        seen = set()
        while annotation.tag == "REF_ANNOTATION":
            reference = annotation.get("ANNOTATION_REF")
            if annotation.get("PREVIOUS_ANNOTATION") is not None:
                raise InputError(f"{where}: it is a part of annotation {reference}, without a time of its own")
            if reference in seen or reference not in self.annotations:
                raise InputError(f"{where}: it refers to annotation {reference}, which is not there")
            seen.add(reference)
            annotation = self.annotations[reference]
        start, end = (self._time(annotation.get(key), where) for key in ("TIME_SLOT_REF1", "TIME_SLOT_REF2"))
        return start, end

    def _time(self, slot: str | None, where: str) -> float:
        if slot not in self.slots:
            raise InputError(f"{where}: no time slot {slot!r}")
        value = self.slots[slot].get("TIME_VALUE")
        if value is None:
            raise InputError(
                f"{where}: time slot {slot} has no time; align the annotation in ELAN, or leave its tier out"
            )
        return self._whole(value, f"{where}: time slot {slot}") / 1000

    def _whole(self, text: str, where: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise InputError(f"{where} must be a whole number of milliseconds, got {short(text)}") from None


def read_elan(paths: Collection[Path], tiers: Collection[str], label_from: str, notes: list[str]) -> list[Imported]:
    """One recording per file. A tier that no file has is an error; `notes` hears of tiers that were left out."""
    files = [ElanFile(path) for path in paths]
    present = dict.fromkeys(name for file in files for name in file.tiers)
    for tier in tiers:
        if tier not in present:
            where = files[0].path if len(files) == 1 else f"{len(files)} ELAN files"
            raise InputError(f"{where}: no tier {tier!r}; present are {', '.join(present) or 'none'}")
    if not tiers:
        own = {name for file in files for name in file.independent}
        dependent = [name for name in present if name not in own]
        if dependent:
            notes.append(f"left out tiers below others (--tier takes them): {', '.join(dependent)}")
    for file in files:
        if file.media_offset:
            notes.append(
                f"{file.path}: its medium is shifted by {file.media_offset} ms; times are those of the time line"
            )
    return [file.read(tiers, label_from) for file in files]
