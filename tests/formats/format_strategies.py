"""Segments with awkward labels, and what a round trip through a file makes of them."""

import re
from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from temporalzoom.segments import Segments

# Not the NUL character, which NumPy drops at the end of a string, nor halves of surrogate pairs, which are not UTF-8.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
AWKWARD = [
    "a --> b", "[walk]", "[/walk]", "<b>x</b>", "<i>", "a&b", "&lt;", "&amp;lt;", "two\n\nlines", "a\n \n\u200b\nb",
    'say "hi", twice', "it's", "a\rb", "a\r\nb", "跳高", "a;b", "a\tb", "=1+2",
    "run (0.50)", "WEBVTT", "NOTE x", "{}", "%s", "\x01x", "a\u2028b",
]  # fmt: skip
# SubRip has no escapes: some readers take the second line for the times of another subtitle.
CUE = "2\n00:00:01,000 --> 00:00:02,000\nx"
# Spaces at the ends of a label do not survive an import, and ambiguous spans are none of the actions.
LABELS = (
    (TEXT | st.sampled_from([*AWKWARD, CUE]))
    .map(str.strip)
    .filter(lambda label: label and label.lower() != "ambiguous")
)
NAMES = st.text("abcXYZ019-_./ ü&<,\"'", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def any_segments(draw: st.DrawFn, min_size: int = 0) -> Segments:
    """Labels that may be blank, ends that may lie before starts."""
    times, labels = st.floats(0, 400_000), TEXT | st.sampled_from([*AWKWARD, "\r"])
    rows = draw(st.lists(st.tuples(times, times, labels, st.floats(0, 1)), min_size=min_size, max_size=6))
    return Segments.unchecked(*zip(*rows, strict=True)) if rows else Segments.empty()


@st.composite
def importable_segments(draw: st.DrawFn) -> Segments:
    """At least one, each at least 40 ms long."""
    row = st.tuples(st.floats(0, 40_000), st.floats(0.04, 100), LABELS, st.floats(0, 1))
    rows = draw(st.lists(row, min_size=1, max_size=5))
    starts, lengths, labels, scores = zip(*rows, strict=True)
    return Segments(starts, [s + length for s, length in zip(starts, lengths, strict=True)], labels, scores)


def rows(found: Segments) -> list[tuple[str, float, float]]:
    return sorted((label, start, end) for start, end, label, _ in found)


def in_xml(label: str) -> str:
    """What XML keeps of a label, character by character."""
    kept = re.sub("\r\n?", "\n", label)
    return "".join(c if c in "\t\n" or (" " <= c and c not in "\ufffe\uffff") else "\ufffd" for c in kept)


def with_line_feeds(label: str) -> str:
    return "\n".join(label.splitlines())


def assert_same(
    results: dict[str, Segments], back: dict[str, Segments], seconds: float, label: Callable[[str], str] = str
) -> None:
    """The same recordings, labels and times, these to `seconds`. label: what the format keeps of a label."""
    assert back.keys() == results.keys()
    for name, found in results.items():
        assert len(back[name]) == len(found)
        for word in {label(one) for one in found.labels.tolist()}:
            for times in ("starts", "ends"):  # one by one: rounding may swap equal labels
                mine = sorted(t for t, w in zip(getattr(found, times), found.labels, strict=True) if label(w) == word)
                theirs = sorted(getattr(back[name].filter(labels=word), times))
                assert mine == pytest.approx(theirs, abs=seconds, rel=0)
