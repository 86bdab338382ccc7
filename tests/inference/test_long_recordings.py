"""A day is as good as its hours: limits hold per stretch of time, and nothing depends on the cut into files."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from temporalzoom.config import InferenceConfig
from temporalzoom.inference import nms
from temporalzoom.inference.candidates import collect_rows
from temporalzoom.inference.decoding import decode, decode_parts
from temporalzoom.inference.limits import within_limit
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.nms import suppress, vote
from temporalzoom.models import Outputs, Points
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train

# The sigmoid of a number differs in its last bit with the place of the number in its tensor.
ULP = {"rtol": 1e-6, "atol": 1e-9}
GRID, CLASSES = TimeGrid(1, 0, 1), ("a", "b")


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(0, 6), st.sampled_from([None, 0, 1, 5, 100]))
def test_the_best_of_a_neighbourhood_by_definition(positions, limit, span):
    kept = within_limit(np.array(positions, float), limit, span)
    for row, place in enumerate(positions):
        better = sum(span is None or abs(place - other) <= span for other in positions[:row])
        assert kept[row] == (better < limit)


def random_outputs(seed, length, busy=0.5):
    """Boxes of up to 6 positions inside of the recording, at multiples of 1/8; scores that hold no ties."""
    draw = np.random.default_rng(seed)
    logits = draw.normal(0, 2, (length, len(CLASSES)))
    logits[draw.random((length, len(CLASSES))) > busy] = -30
    positions = np.arange(length)
    room = np.stack([positions, length - 1 - positions], 1)
    offsets = np.minimum(draw.integers(1, 25, (length, 2)) / 8, room)
    return Outputs(torch.tensor(logits, dtype=torch.float32), torch.tensor(offsets, dtype=torch.float32))


def silence(length):
    return Outputs(torch.full((length, len(CLASSES)), -30.0), torch.ones(length, 2))


def rows(segments):
    """In an order that the last bits do not change."""
    return sorted(segments, key=lambda row: (row[2], *(round(number, 6) for number in (row[0], row[1], row[3]))))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 40)), min_size=1, max_size=5),
    st.sampled_from(["soft", "hard", "none"]),
    st.sampled_from([None, 0.5]),
)
def test_decoding_recordings_together_is_decoding_each(recordings, suppression, voting):
    options = InferenceConfig(
        refine="none", certainty=0, suppression=suppression, voting=voting, candidates=12, max_segments=4, limit_span=8
    )
    parts, expected, offset = [], [], 0
    for seed, length in recordings:
        outputs = random_outputs(seed, length)
        alone = decode(outputs, CLASSES, GRID, float(length), options)
        expected += list(alone.shift(float(offset)))
        parts += [outputs, silence(9)]
        offset += length + 9
    together = decode(Outputs.concatenate(parts), CLASSES, GRID, float(offset), options)
    got = rows(together)
    assert [row[2] for row in got] == [row[2] for row in rows(expected)]
    numbers = [np.array([(s, e, p) for s, e, _, p in part]).reshape(-1, 3) for part in (got, rows(expected))]
    np.testing.assert_allclose(*numbers, **ULP)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.sampled_from([None, 3, 8, 500]))
def test_parts_give_what_the_whole_gives(seed, lengths, span):
    options = InferenceConfig(refine="none", certainty=0, candidates=10, max_segments=5, limit_span=span)
    whole = random_outputs(seed, sum(lengths))
    edges = np.cumsum([0, *lengths])
    parts = [whole.map(lambda x, a=a, b=b: x[a:b]) for a, b in pairwise(edges)]
    once, streamed = collect_rows([whole], options), collect_rows(iter(parts), options)
    for a, b in zip(once[0], streamed[0], strict=True):
        np.testing.assert_allclose(a, b, **ULP)
    assert once[2] == pytest.approx(streamed[2])
    ends = [decode_parts(p, CLASSES, GRID, float(sum(lengths)), options) for p in ([whole], parts)]
    assert ends[0].segments.labels.tolist() == ends[1].segments.labels.tolist()
    for name in ("starts", "ends", "scores"):
        np.testing.assert_allclose(*(getattr(end.segments, name) for end in ends), **ULP)


def test_short_recordings_have_the_limits_of_the_whole():
    outputs = random_outputs(3, 60, busy=1.0)
    limits = {"refine": "none", "certainty": 0, "candidates": 30, "max_segments": 7}
    near, everywhere = (
        decode(outputs, CLASSES, GRID, 60.0, InferenceConfig(**limits, limit_span=s)) for s in (60, None)
    )
    assert near == everywhere and len(near) == 7


def test_what_a_limit_leaves_out_is_known():
    outputs = random_outputs(3, 60, busy=1.0)
    options = InferenceConfig(refine="none", certainty=0, suppression="none", max_segments=7)
    everything = decode(outputs, CLASSES, GRID, 60.0, options.model_copy(update={"max_segments": 1000}))
    found = decode_parts([outputs], CLASSES, GRID, 60.0, options)
    assert found.cut == pytest.approx(everything.scores[7]) and len(found.segments) == 7
    fewer = options.model_copy(update={"max_segments": 1000, "candidates": 9})
    assert decode_parts([outputs], CLASSES, GRID, 60.0, fewer).cut == pytest.approx(everything.scores[9])
    ample = options.model_copy(update={"max_segments": 1000})
    assert decode_parts([outputs], CLASSES, GRID, 60.0, ample).cut == -np.inf


@given(st.integers(0, 10**6), st.sampled_from(["soft", "hard", "bmn", "none"]))
def test_blocks_change_nothing(seed, method):
    draw = np.random.default_rng(seed)
    starts = draw.integers(0, 80, 60).astype(float)
    columns = starts, starts + draw.integers(0, 12, 60), draw.integers(0, 20, 60) / 20, draw.integers(0, 3, 60)
    usual = suppress(*columns, method=method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nms, "BLOCK", 4)
        small = suppress(*columns, method=method)
    np.testing.assert_array_equal(usual[0], small[0])
    np.testing.assert_array_equal(usual[1], small[1])


@given(st.integers(0, 10**6))
def test_votes_are_counted_among_neighbours(seed):
    draw = np.random.default_rng(seed)
    starts = draw.uniform(0, 80, 60)
    columns = starts, starts + draw.uniform(0, 12, 60), draw.random(60), draw.integers(0, 3, 60)
    kept = draw.permutation(60)[:25]
    whole = vote(*columns, kept, 0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nms, "WHOLE", 0)
        patch.setattr(nms, "GROUP", 3)
        np.testing.assert_allclose(vote(*columns, kept, 0.3), whole, rtol=1e-12)


@pytest.fixture(scope="module")
def localizer(tmp_path_factory, tiny_split, tiny_config):
    folder = tmp_path_factory.mktemp("run")
    train(tiny_config("training.steps=40", "model.window=4"), tiny_split, folder, console=Console(quiet=True))
    return Localizer.load(folder)


def test_a_day_gives_what_its_recordings_give(localizer, tiny_split):
    """Cut far away from actions: farther than the network sees."""
    field = localizer.model.receptive_field
    quiet = np.zeros((2 * field + 40, tiny_split.samples[0].features.shape[1]), np.float32)
    padded = [np.concatenate([quiet, sample.features, quiet]) for sample in tiny_split.samples * 3]
    floor = float(torch.sigmoid(localizer.outputs(np.concatenate([quiet, quiet])).logits).max()) + 1e-4
    before = localizer.options
    try:
        localizer.options = before.model_copy(update={"min_score": floor, "max_segments": 30, "limit_span": 100})
        expected, offset = [], 0.0
        for features in padded:
            expected += list(localizer(features, threshold=0).shift(offset))
            offset += len(features) * localizer.grid.step_seconds
        found = rows(localizer(np.concatenate(padded), threshold=0))
    finally:
        localizer.options = before
    assert len(found) == len(expected) > 30
    for mine, theirs in zip(found, rows(expected), strict=True):
        assert mine[2] == theirs[2] and mine[:2] + mine[3:] == pytest.approx(theirs[:2] + theirs[3:], abs=1e-4)


def test_a_cut_is_said(localizer, tiny_split):
    features, said = tiny_split.samples[0].features, []
    before = localizer.options
    try:
        localizer.options = before.model_copy(update={"max_segments": 1})
        assert len(localizer(features, threshold=0, note=said.append)) == 1
        assert len(said) == 1 and "inference.max_segments" in said[0]
        localizer(features, threshold=0.999, note=said.append)  # nothing of that kind was left out
        assert len(said) == 1
    finally:
        localizer.options = before


def levels(length, seed):
    """Outputs as a network with two levels and BDR has them, in which one position of twenty has something."""
    draw = np.random.default_rng(seed)
    places = np.concatenate([np.arange(length), np.arange(0, length, 2)])
    logits = np.where(draw.random((len(places), 20)) < 0.0025, draw.normal(0, 1, (len(places), 20)), -12.0)
    columns = [torch.tensor(x, dtype=torch.float32) for x in (places, 1 + (np.arange(len(places)) >= length))]
    points = Points(*columns, *columns, torch.ones(len(places), dtype=torch.bool))
    field = torch.zeros(length, 2)
    small = torch.full((len(places), 2), 3.0)
    return Outputs(
        torch.tensor(logits, dtype=torch.float32), small, torch.zeros_like(small), field, field, points=points
    )


def test_memory_hardly_grows_with_the_length():
    """Raw outputs of a window are 250 bytes per position here, and not kept: the fields and the candidates are."""
    window = 2000

    def parts(count):
        for number in range(count):
            outputs = levels(window, number)
            outputs.points.positions += number * window
            yield outputs

    def peak(count):
        tracemalloc.start()
        found = decode_parts(parts(count), [f"c{i}" for i in range(20)], GRID, float(count * window), InferenceConfig())
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest, len(found.segments)

    peak(2)
    (short, few), (long, many) = peak(20), peak(80)
    assert many > 3 * few > 0
    assert (long - short) / (60 * window) < 100  # bytes per position


def test_selection_takes_steps_that_do_not_grow(monkeypatch):
    """Segments far apart do not meet: ten times the recording is ten times the pairs."""
    sizes = []
    for count in (400, 4000):
        starts = np.arange(count) * 1.0
        lows, highs = nms._overlap_slices(starts, starts + 3, np.zeros(count, np.intp))
        sizes.append(int((highs - lows).sum()))
    assert sizes[1] < 11 * sizes[0]
    found = suppress(np.arange(9000.0), np.arange(9000.0) + 3, np.linspace(0.2, 1, 9000), np.zeros(9000, int))
    assert len(found[0]) == 200
