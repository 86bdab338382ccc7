"""ELAN (.eaf, format 3.0): segments as tiers on the time line of an annotator."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from temporalzoom.formats.cues import milliseconds, one_line
from temporalzoom.segments import Segments

RECORDING = "recording"  # the header's property with the recording's name, which the file's name need not be
SCHEMA_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
# Required by the format. A fixed one, so that the same results make the same file.
DATE = "1970-01-01T00:00:00+00:00"
# Everything that XML 1.0 has no way to write.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Span = tuple[int, int, float]  # start and end in milliseconds, score


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
            yield _free_name(one_line(_writable(label)) or "(blank)", taken), label, lane


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
