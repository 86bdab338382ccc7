"""ZoomBench, variant context: the grammar decides, nothing local does, and the shares are those asked for."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.config import load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.zoombench import ZoomSample
from temporalzoom.datasets.zoombench_context import (
    MAY_BE_ZERO,
    SHARES,
    ContextBench,
    Phase,
    Timeline,
    context_classes,
    draw_timeline,
    make_zoombench_context,
    record_timeline,
    sequence_random,
)
from temporalzoom.datasets.zoombench_grammar import (
    Match,
    alphabet_size,
    foreign_phases,
    read_sentences,
    sentences,
)
from temporalzoom.datasets.zoombench_signal import draw_appearance, sharpness_kind
from temporalzoom.errors import InputError
from test_zoombench import digest

SMALL = {"sequences": 3, "test_sequences": 2, "length": 160, "dimension": 4}
A, B, C = 0, 1, 2


def knob(**changes: object) -> ContextBench:
    return ContextBench(**{**SMALL, **changes})


def timelines(bench: ContextBench, count: int, seed: int = 0) -> list[Timeline]:
    return [draw_timeline(bench, sequence_random(seed, "train", index)) for index in range(count)]


def kinds(timeline: Timeline) -> list[int]:
    return [phase.kind for phase in timeline.phases]


@pytest.fixture(scope="module")
def many() -> list[Timeline]:
    return timelines(ContextBench(), 300)


# The grammar


@pytest.mark.parametrize("shared", [2, 3, 4])
def test_sentences_have_three_to_six_phases_and_share_beginnings_and_ends(shared):
    found = sentences(shared)
    assert len(set(found)) == 6 and {len(sentence) for sentence in found} == {shared + 1, shared + 2}
    assert found[0][:-1] == found[1][:-1] and found[4][:-1] == found[5][:-1]  # the last phase decides
    assert found[0][1:-1] == found[2][:-1] and found[3][1:] == found[4][1:-1]  # the boundary is at one of two phases
    assert found[0][1:-1] == found[4][1:-1][::-1]  # the order decides
    assert all(foreign_phases(sentence, shared) for sentence in found)
    phases = {phase for sentence in found for phase in sentence}
    assert phases == set(range(alphabet_size(shared)))


def slow_reading(phases: list[int], shared: int) -> list[Match]:
    """Every stretch of phases that becomes a sentence when at most one foreign phase is taken out at each place."""
    found = []
    for first in range(len(phases)):
        for label, sentence in enumerate(sentences(shared)):
            for end in range(first + 1, len(phases) + 1):
                stretch = phases[first:end]
                own = [k for k, phase in enumerate(stretch) if phase in sentence]
                tight = all(b - a <= 2 for a, b in zip(own, own[1:], strict=False))
                whole = bool(own) and own[0] == 0 and own[-1] == len(stretch) - 1
                if whole and tight and [stretch[k] for k in own] == list(sentence):
                    found.append(Match(first, end - 1, label))
    return found


@given(st.integers(2, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_reading_agrees_with_a_slow_reader(shared, data):
    pieces = data.draw(st.lists(st.sampled_from(sentences(shared)), max_size=3))
    phases = [phase for sentence in pieces for phase in sentence]
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(phases)))
        phases.insert(at, data.draw(st.integers(0, alphabet_size(shared) - 1)))
    assert read_sentences(phases, shared) == slow_reading(phases, shared)


def test_what_is_an_action_and_what_is_not():
    trunk, back = [3, 4, 5], [5, 4, 3]

    def read(*phases: int) -> list[tuple[int, int, int]]:
        return [tuple(match) for match in read_sentences(phases, 3)]

    assert read(A, *trunk, B) == [(0, 4, 1)] and read(A, *trunk, A) == [(0, 4, 0)]
    assert read(A, *trunk, C) == [(1, 4, 2)]  # now the first phase is none of it
    assert read(B, *back, A) == [(0, 4, 4)] and read(C, *back, A) == [(0, 3, 3)]
    assert read(A, *trunk) == read(B, *trunk, B) == read(A, *back, B) == []  # broken off; no such pair of ends
    assert read(A, 3, 5, 4, B) == []  # wrong order
    assert read(A, 3, C, 4, 5, B) == [(0, 5, 1)] and read(A, 3, C, C, 4, 5, B) == []  # one foreign phase, not two
    assert read(A, A, *trunk, B) == [(1, 5, 1)]  # begun again: the second beginning counts
    assert read(C, A, *trunk, B, 3) == [(1, 5, 1)]


# What is drawn


@pytest.mark.parametrize("shared", [2, 3, 4])
def test_a_reader_of_the_true_phases_finds_every_instance_and_nothing_else(shared):
    bench = ContextBench(shared=shared, sequences=30, dimension=2)
    split = make_zoombench_context(bench, 3)
    for index, sample in enumerate(split.samples):
        timeline = draw_timeline(bench, sequence_random(3, "train", index))
        found = read_sentences(kinds(timeline), shared)
        assert found == list(timeline.matches)
        phases = timeline.phases
        assert [phases[m.first].start / 30 for m in found] == sample.segments.starts.tolist()
        assert [phases[m.last].end / 30 for m in found] == sample.segments.ends.tolist()
        assert [split.classes[m.label] for m in found] == sample.segments.labels.tolist()
        assert all(a.end <= b.start for a, b in zip(phases, phases[1:], strict=False))
        assert phases[-1].end / 30 <= sample.duration


def share(counts: Counter, part: str, *whole: str) -> float:
    return counts[part] / sum(counts[name] for name in whole)


@pytest.mark.parametrize(
    "knobs", [{}, {"aborted": 0.2}, {"stray": 0.6}, {"interrupted": 0.8, "shared": 2}, {"aborted": 0.7, "stray": 0.1}]
)
def test_shares_are_those_asked_for(knobs, many):
    bench = ContextBench(**knobs)
    drawn = timelines(bench, 300) if knobs else many
    units, phases = Counter(), Counter()
    for timeline in drawn:
        for what, count in timeline.units:
            units[what] += 1
            phases[what] += count
    assert share(units, "aborted", "aborted", "action") == pytest.approx(bench.aborted, abs=0.04)
    assert share(phases, "stray", *phases) == pytest.approx(bench.stray, abs=0.04)
    interrupted = [flag for timeline in drawn for flag in timeline.interrupted]
    assert np.mean(interrupted) == pytest.approx(bench.interrupted, abs=0.05)
    assert len(interrupted) == units["action"]


def test_shares_of_nothing():
    units = Counter(what for t in timelines(ContextBench(aborted=0, stray=0, interrupted=0), 20) for what, _ in t.units)
    assert set(units) == {"action"}
    assert not any(timeline.matches for timeline in timelines(ContextBench(aborted=1), 20))


def test_every_phase_occurs_inside_and_outside_of_actions(many):
    inside, outside = Counter(), Counter()
    for timeline in many:
        taken = {k for match in timeline.matches for k in range(match.first, match.last + 1)}
        for k, phase in enumerate(timeline.phases):
            (inside if k in taken else outside)[phase.kind] += 1
    assert set(inside) == set(outside) == set(range(6))
    for phase in range(6):
        assert 0.2 < inside[phase] / (inside[phase] + outside[phase]) < 0.8


def test_rests_and_lengths_tell_nothing(many):
    """The rest before an action is as long as the rests inside, and so are the phases."""
    before, within, lengths = [], [], {True: [], False: []}
    for timeline in many:
        firsts = {match.first for match in timeline.matches}
        taken = {k for match in timeline.matches for k in range(match.first, match.last + 1)}
        for k in range(1, len(timeline.phases)):
            rest = timeline.phases[k].start - timeline.phases[k - 1].end
            if k in firsts:
                before.append(rest)
            elif k in taken:
                within.append(rest)
        for k, phase in enumerate(timeline.phases):
            lengths[k in taken].append(phase.end - phase.start)
    assert np.median(before) == pytest.approx(np.median(within), rel=0.25)
    assert np.median(lengths[True]) == pytest.approx(np.median(lengths[False]), rel=0.05)


def test_widths_of_boundaries_are_those_of_zoombench(many):
    widths = np.array([phase.widths for timeline in many for phase in timeline.phases])
    shares = np.bincount(sharpness_kind(widths.ravel()), minlength=3) / widths.size
    np.testing.assert_allclose(shares, (0.32, 0.40, 0.28), atol=0.03)


def test_classes_are_named_by_their_sentences():
    classes = context_classes(ContextBench(shared=2))
    assert classes[:3] == ("reach-push-swing-reach", "reach-push-swing-lift", "push-swing-turn")


# No window decides


def recorded(bench: ContextBench, phases: list[int], length: float = 40.0, rest: float = 10.0) -> ZoomSample:
    """A sequence of these phases, all equally long, in frames; the same background and noise every time."""
    timed = tuple(
        Phase(60 + k * (length + rest), 60 + k * (length + rest) + length, phase, (1.0, 1.0))
        for k, phase in enumerate(phases)
    )
    timeline = Timeline(timed, tuple(read_sentences(phases, bench.shared)))
    looks, scenes = draw_appearance(bench, alphabet_size(bench.shared), 0)
    return record_timeline(bench, timeline, looks, scenes, np.random.default_rng(5), "one")


def boundaries(sample: ZoomSample) -> set[float]:
    return {*sample.segments.starts.tolist(), *sample.segments.ends.tolist()}


@pytest.mark.parametrize("shared", [2, 3, 4])
@pytest.mark.parametrize("side", ["start", "end"])
def test_no_window_around_a_boundary_decides_whether_it_is_one(shared, side):
    """Two sequences that are the same within `reach` of a point: in one of them it is a boundary, in the other not."""
    bench = ContextBench(shared=shared, dimension=8, length=256)
    trunk = list(range(3, 3 + shared))
    if side == "start":  # of the opening, where the closing is that of another sentence, or none
        first, others, near = [A, *trunk, B], [[A, *trunk, C], [A, *trunk, 3]], 0
    else:  # of the closing
        first, others, near = [B, *trunk[::-1], A], [[C, *trunk[::-1], A], [A, *trunk[::-1], A]], shared + 1
    one = recorded(bench, first)
    start = 60 + near * 50
    point = (start if side == "start" else start + 40) / bench.fps
    assert point in boundaries(one)
    for phases in others:
        other = recorded(bench, phases)
        assert point not in boundaries(other)
        reach = (shared + 1) * 50 - 20  # frames up to the phase that differs, without its ramp
        at = one.grid.to_seconds(np.arange(256))
        within = np.abs(at - point) * bench.fps < reach
        assert within.sum() > 2 * reach / bench.stride * 0.5
        smeared = within.copy()  # a blurred stretch reaches a little farther
        smeared[np.flatnonzero(within)[[*range(8), *range(-8, 0)]]] = False
        np.testing.assert_allclose(one.features[smeared], other.features[smeared], atol=1e-3)
        assert np.abs(one.features - other.features).max() > 1


# Seeds, knobs, files


def test_the_same_seed_gives_the_same_bytes_and_others_do_not():
    splits = [
        make_zoombench_context(knob(test_sequences=3), seed, subset)
        for seed in (0, 1)
        for subset in ("train", "test", "validation")
    ]
    assert digest(make_zoombench_context(knob(test_sequences=3))) == digest(splits[0])
    arrays = [sample.features.tobytes() for split in splits for sample in split.samples]
    assert len(set(arrays)) == len(arrays) == 18
    few, more = (make_zoombench_context(knob(sequences=count)) for count in (2, 4))
    assert digest(few) == digest(Split(more.samples[:2], more.classes))


def test_every_knob_has_an_effect():
    changes: dict[str, float] = {
        "sequences": 4, "length": 161, "shared": 2, "aborted": 0.9, "interrupted": 1, "stray": 0.8, "dimension": 5,
        "stride": 5, "window": 9, "fps": 25, "noise": 0.5, "signal": 5, "shortest": 0.2, "longest": 2,
        "mean_rest": 0.1, "flashes_per_minute": 60, "blurs_per_minute": 60,
    }  # fmt: skip
    assert set(changes) == {field.name for field in fields(ContextBench)} - {"test_sequences"}
    plain = digest(make_zoombench_context(knob()))
    for name, value in changes.items():
        assert digest(make_zoombench_context(knob(**{name: value}))) != plain, name


def test_knobs_that_cannot_be_are_refused_by_name():
    for field in fields(ContextBench):
        for value in (-1, float("nan"), float("inf"), *(() if field.name in MAY_BE_ZERO else (0,))):
            with pytest.raises(InputError, match=rf"zoombench_context: {field.name} must"):
                knob(**{field.name: value})
    for name in SHARES:
        with pytest.raises(InputError, match=rf"{name} is a share, at most 1, got 1.5"):
            knob(**{name: 1.5})
    for shared in (1, 5):
        with pytest.raises(InputError, match=rf"shared must be from 2 to 4 phases, got {shared}"):
            knob(shared=shared)
    with pytest.raises(InputError, match="stray must be below 1"):
        knob(stray=1.0)
    with pytest.raises(InputError, match=r"shortest must be at most longest \(2.5\), got 4"):
        knob(shortest=4.0)
    assert ContextBench.parse(["shared=2", "stray=0.1"]) == ContextBench(shared=2, stray=0.1)
    with pytest.raises(InputError, match="shared must be a whole number"):
        ContextBench.parse(["shared=2.5"])


@pytest.mark.parametrize("length", [1, 20])
def test_a_short_sequence_may_hold_nothing(length):
    split = make_zoombench_context(knob(length=length))
    assert [sample.features.shape for sample in split.samples] == [(length, 4)] * 3
    assert all(sample.boundary_widths.shape == (len(sample.segments), 2) for sample in split.samples)


def test_settings_are_those_of_the_generator():
    config = load_config("zoombench-context", ["data.sequences=2", "data.shared=2", "data.length=80"])
    assert config.data.source == "zoombench_context"
    assert ContextBench.of(config.data) == ContextBench(sequences=2, shared=2, length=80)
    assert ContextBench.of(load_config("zoombench-context").data) == ContextBench()
    loaded = load_data(config.data, 4)
    assert loaded.train is not None and digest(loaded.train) == digest(
        make_zoombench_context(ContextBench(sequences=2, shared=2, length=80), 4)
    )


@pytest.mark.parametrize("recipe", ["zoombench", "zoombench-context"])
def test_validation_sequences_are_neither_trained_on_nor_tested(recipe):
    few = ["data.sequences=3", "data.test_sequences=3", "data.length=64"]
    test, validation = (
        load_data(load_config(recipe, [*few, f"data.validation={flag}"]).data, 2) for flag in ("false", "true")
    )
    assert digest(test.train) == digest(validation.train)
    names = [{s.name for s in split.samples} for split in (test.train, test.test, validation.test)]
    arrays = [s.features.tobytes() for split in (test.train, test.test, validation.test) for s in split.samples]
    assert len(set.union(*names)) == 9 and len(set(arrays)) == 9
    assert test.test.classes == validation.test.classes


def test_a_timeline_is_a_value():
    timeline = timelines(knob(), 1)[0]
    assert replace(timeline) == timeline
