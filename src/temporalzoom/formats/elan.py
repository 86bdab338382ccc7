"""ELAN (.eaf, format 3.0): actions as tiers on the time line of an annotator. One recording per file.

Times are whole milliseconds. Labels come back as they were, except for what XML cannot hold: such characters become
U+FFFD, and every kind of line end becomes a line feed.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    checked_instance,
    milliseconds,
    read_bytes,
    short,
)
from temporalzoom.segments import Segments

RECORDING = "recording"  # the header's property with the recording's name, which the file's name need not be
SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
# Required by the format. A fixed one, so that the same results make the same file.
DATE = "1970-01-01T00:00:00+00:00"
# Everything that XML 1.0 has no way to write.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Span = tuple[int, int, float]  # start and end in milliseconds, score


# Writing


def write_elan(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """One recording, see `eaf_text`; with the link to its medium if the options name one."""
    [(recording, segments)] = results.items()
    text = eaf_text(segments, recording, options.media.get(recording), path.parent)
    with replacing(path) as file:
        file.write(text)


def eaf_text(
    segments: Segments, recording: str, media: str | Path | None = None, folder: str | Path | None = None
) -> str:
    """An ELAN document: one tier per label, each annotation's value the label.

    Annotations of one tier must not overlap, so a label that overlaps itself has further tiers `label (2)`, ... Scores
    are in a tier `score of ...` below each one, unless all are 1, as those of annotations are.
    media: the video or audio that ELAN opens with it; folder: where the document will be, for a relative link.
    Characters that XML cannot hold become U+FFFD, and every kind of line end becomes a line feed.
    """
    tiers = list(_tiers(segments))
    document = Element(
        "ANNOTATION_DOCUMENT",
        {
            "AUTHOR": "temporalzoom",
            "DATE": DATE,
            "FORMAT": "3.0",
            "VERSION": "3.0",
            "xmlns:xsi": SCHEMA_INSTANCE,
            "xsi:noNamespaceSchemaLocation": SCHEMA,
        },
    )
    header = SubElement(document, "HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"})
    if media is not None:
        SubElement(header, "MEDIA_DESCRIPTOR", _media_attributes(media, folder))
    SubElement(header, "PROPERTY", {"NAME": RECORDING}).text = _writable(recording)

    scored = bool((segments.scores != 1).any())
    last_id = len(segments) * (2 if scored else 1)
    SubElement(header, "PROPERTY", {"NAME": "lastUsedAnnotationId"}).text = str(last_id)

    slots = _time_order(SubElement(document, "TIME_ORDER"), tiers)
    identifiers = (f"a{number}" for number in count(1))
    for name, label, spans in tiers:
        tier = SubElement(document, "TIER", {"LINGUISTIC_TYPE_REF": "action", "TIER_ID": name})
        scores = None
        if scored:
            attributes = {"LINGUISTIC_TYPE_REF": "score", "PARENT_REF": name, "TIER_ID": f"score of {name}"}
            scores = SubElement(document, "TIER", attributes)
        for span in spans:
            identifier = next(identifiers)
            first, last = next(slots)
            attributes = {"ANNOTATION_ID": identifier, "TIME_SLOT_REF1": first, "TIME_SLOT_REF2": last}
            annotation = SubElement(SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", attributes)
            SubElement(annotation, "ANNOTATION_VALUE").text = _writable(label)
            if scores is not None:
                attributes = {"ANNOTATION_ID": next(identifiers), "ANNOTATION_REF": identifier}
                annotation = SubElement(SubElement(scores, "ANNOTATION"), "REF_ANNOTATION", attributes)
                SubElement(annotation, "ANNOTATION_VALUE").text = f"{span[2]:.4g}"
    _types(document, scored)
    indent(document)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(document, encoding="unicode") + "\n"


def _tiers(segments: Segments) -> Iterator[tuple[str, str, list[Span]]]:
    """`(name, label, spans)`: labels in the order of the alphabet, the spans of a tier in order and without overlap."""
    by_label: dict[str, list[Span]] = {}
    for start, end, label, score in milliseconds(segments):
        by_label.setdefault(label, []).append((start, end, score))
    taken: set[str] = set()
    for label in sorted(by_label):
        lanes: list[list[Span]] = []
        for span in by_label[label]:
            free = next((lane for lane in lanes if lane[-1][1] <= span[0]), None)
            if free is None:
                lanes.append([span])
            else:
                free.append(span)
        for lane in lanes:
            yield _free_name(" ".join(_writable(label).split()) or "(blank)", taken), label, lane


def _free_name(name: str, taken: set[str]) -> str:
    """A name that neither a tier nor a tier of scores has; ELAN knows tiers by their names."""
    candidates = (name if number == 1 else f"{name} ({number})" for number in count(1))
    free = next(c for c in candidates if c not in taken and f"score of {c}" not in taken)
    taken.update((free, f"score of {free}"))
    return free


def _time_order(element: Element, tiers: list[tuple[str, str, list[Span]]]) -> Iterator[tuple[str, str]]:
    """Fills `element` with two time slots per annotation, earliest first as the format asks; then yields the
    identifiers `(start, end)` of each annotation, tier by tier."""
    spans = [span for _, _, found in tiers for span in found]
    times = [time for start, end, _ in spans for time in (start, end)]
    identifiers = [""] * len(times)
    for number, index in enumerate(sorted(range(len(times)), key=times.__getitem__), 1):
        identifiers[index] = f"ts{number}"
        SubElement(element, "TIME_SLOT", {"TIME_SLOT_ID": f"ts{number}", "TIME_VALUE": str(times[index])})
    return zip(identifiers[::2], identifiers[1::2], strict=True)


def _types(document: Element, scored: bool) -> None:
    plain = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": "action", "TIME_ALIGNABLE": "true"}
    SubElement(document, "LINGUISTIC_TYPE", plain)
    if scored:
        below = {"CONSTRAINTS": "Symbolic_Association", "LINGUISTIC_TYPE_ID": "score", "TIME_ALIGNABLE": "false"}
        SubElement(document, "LINGUISTIC_TYPE", plain | below)
        words = "1-1 association with a parent annotation"
        SubElement(document, "CONSTRAINT", {"DESCRIPTION": words, "STEREOTYPE": "Symbolic_Association"})


def _media_attributes(media: str | Path, folder: str | Path | None) -> dict[str, str]:
    kind = mimetypes.guess_type(str(media))[0] or "unknown"
    if "://" in str(media):
        return {"MEDIA_URL": str(media), "MIME_TYPE": kind}
    file = Path(media).resolve()
    attributes = {"MEDIA_URL": file.as_uri(), "MIME_TYPE": kind}
    if folder is not None and file.drive == Path(folder).resolve().drive:
        relative = os.path.relpath(file, Path(folder).resolve()).replace(os.sep, "/")
        attributes["RELATIVE_MEDIA_URL"] = quote(relative if relative.startswith("../") else f"./{relative}")
    return attributes


def _writable(text: str) -> str:
    # A reader of XML makes a line feed of a carriage return anyway; here it is done where one can see it.
    return _UNWRITABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


# Reading


def read_elan(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """One recording per file. A tier that no file has is an error; `notes` names tiers that were left out."""
    tiers = options.tiers
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
    return [file.read(tiers, options.label_from) for file in files]


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses a DOCTYPE. ELAN writes none, and its entities could grow a small file to gigabytes."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise InputError("not an ELAN file: it has a DOCTYPE")


class ElanFile:
    """A parsed document: its tiers by name, its times, and which annotation is where."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = read_bytes(path)
        parser = ElementTree.XMLParser(target=_NoDoctype())
        try:
            parser.feed(content)
            self.root: Element = parser.close()
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
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
        for found in self.root.iterfind(f"HEADER/PROPERTY[@NAME='{RECORDING}']"):
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
            if len(text) > 18:  # more milliseconds than there were since the beginning of the world
                raise ValueError
            return int(text)
        except ValueError:
            raise InputError(f"{where} must be a whole number of milliseconds, got {short(text)}") from None
