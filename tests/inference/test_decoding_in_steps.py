"""Decoding in steps, what is finished forgotten, is decoding at once: bit for bit, and in memory that stays flat."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_decoding import decode_whole

from temporalzoom.config import InferenceConfig
from temporalzoom.inference.decoding import decode_parts
from temporalzoom.models import Outputs, Points
from temporalzoom.timegrid import TimeGrid

GRID, CLASSES = TimeGrid(4, 16, 25), ("a", "b", "c")


def outputs_of(draw, length, first, *, busy, longest, ties, has_levels, has_variances, far):
    """One part: boxes of up to `longest` positions; `far`: some fields and boxes reach anywhere."""
    places = np.arange(length, dtype=float)
    if has_levels:
        places = np.concatenate([places, np.arange(0, length, 2)])
    count = len(places)
    logits = draw.normal(-1, 2, (count, len(CLASSES)))
    if ties:
        logits = np.round(logits)
    logits[draw.random(logits.shape) > busy] = -30
    offsets = draw.uniform(0.2, longest / 2, (count, 2))
    field = draw.normal(0, 2, (length, 2))
    if far:
        offsets[draw.random(count) < 0.003] = draw.uniform(0, 600)
        field[draw.random(length) < 0.01] = draw.choice([200.0, -200.0, 1e5, np.nan])
    points = None
    if has_levels:
        strides = torch.tensor(1.0 + (np.arange(count) >= length))
        points = Points(torch.tensor(places + first), strides, strides, strides, torch.ones(count, dtype=torch.bool))
    single = [torch.tensor(x, dtype=torch.float32) for x in (logits, offsets, field, draw.normal(0, 1, field.shape))]
    spread = torch.tensor(draw.normal(0, 1, (count, 2)), dtype=torch.float32) if has_variances else None
    return Outputs(single[0], single[1], spread, single[2], single[3], points=points)


def same(one, other):
    assert one.segments.labels.tolist() == other.segments.labels.tolist()
    for name in ("starts", "ends", "scores"):
        np.testing.assert_array_equal(getattr(one.segments, name), getattr(other.segments, name))
    assert one.cut == other.cut


@settings(max_examples=200)
@given(st.data(), st.integers(0, 10**6))
def test_in_steps_as_at_once(data, seed):
    draw = np.random.default_rng(seed)
    pick = lambda name, *values: data.draw(st.sampled_from(values), name)  # noqa: E731
    options = InferenceConfig(
        suppression=pick("suppression", "soft", "hard", "none", "bmn"),
        refine=pick("refine", "fuse", "newton", "none", "snap"),
        certainty=pick("certainty", 0, 4), candidates=pick("candidates", 5, 40, 2000),
        voting=pick("voting", None, None, 0.1, 0.5), boundary_window=pick("window", 1, 5, 9),
        max_segments=pick("max_segments", 2, 10, 200), limit_span=pick("span", 3, 20, None),
        min_score=pick("min_score", 0.001, 0.2),
    )  # fmt: skip
    shape = {
        "busy": pick("busy", 0.02, 0.1, 0.6), "longest": pick("longest", 2, 6, 25), "ties": pick("ties", False, True),
        "has_levels": pick("levels", False, True), "has_variances": pick("variances", False, True),
        "far": pick("far", False, True),
    }  # fmt: skip
    parts, length = [], 0
    for size in draw.integers(5, 60, 14):
        parts.append(outputs_of(draw, int(size), length, **shape))
        length += int(size)
    arguments = CLASSES, GRID, GRID.duration(length), options
    same(decode_parts(parts, *arguments, horizon=pick("horizon", 3, 8, 20)), decode_whole(parts, *arguments))


def test_what_is_forgotten_is_asked_for_again():
    """A segment that spans everything weakens all of it a little."""
    options = InferenceConfig(certainty=0, refine="none", limit_span=20, candidates=50)
    draw = np.random.default_rng(0)
    shape = {"busy": 0.1, "longest": 4, "ties": False, "has_levels": False, "has_variances": False, "far": False}
    parts = [outputs_of(draw, 50, 0, **shape) for _ in range(20)]
    parts[-1].offsets[25] = 900.0
    parts[-1].logits[25] = 9.0
    asked = []

    class Parts:
        def __iter__(self):
            asked.append(1)
            return iter(parts)

    arguments = CLASSES, GRID, GRID.duration(1000), options
    same(decode_parts(Parts(), *arguments, horizon=8), decode_whole(parts, *arguments))
    assert 2 < len(asked) < 8  # the first is a look at whether they can be asked for twice


@pytest.mark.parametrize("span", [512, None])
@pytest.mark.parametrize("busy", [0.0, 0.02])
@pytest.mark.parametrize("more", [{}, {"voting": 0.3}, {"refine": "snap"}], ids=["plain", "voting", "snap"])
def test_memory_is_flat_beyond_the_result(span, busy, more):
    options = InferenceConfig(limit_span=span, min_score=0.3, **more)
    shape = {"busy": busy, "longest": 30, "ties": False, "has_levels": True, "has_variances": True, "far": False}

    class Parts:
        def __init__(self, count):
            self.count = count

        def __iter__(self):
            for number in range(self.count):
                yield outputs_of(np.random.default_rng(number), 2000, 2000 * number, **shape)

    def peak(count):
        tracemalloc.start()
        found = decode_parts(Parts(count), CLASSES, GRID, GRID.duration(2000 * count), options)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest, len(found.segments)

    peak(2)
    (short, few), (long, many) = peak(30), peak(160)
    assert not busy or span is None or many > 4 * few
    beyond = long - short - 250 * (many - few)
    assert beyond / (130 * 2000) < 1, (short, long, few, many)  # bytes per position
