"""ZoomBench, variant context: the grammar decides, nothing local does, and the shares are those asked for."""

from collections import Counter
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_zoombench import digest

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
    MARKS,
    OTHERS,
    PHASES,
    SENTENCES,
    STEPS,
    Match,
    read_runs,
    read_sentences,
)
from temporalzoom.datasets.zoombench_signal import draw_appearance, sharpness_kind
from temporalzoom.errors import InputError

SMALL = {"sequences": 3, "test_sequences": 2, "length": 400, "dimension": 4}
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


def test_sentences_share_beginnings_and_ends():
    assert len(set(SENTENCES)) == 8 and {len(sentence) for sentence in SENTENCES} == {6}
    for sentence in SENTENCES:  # both marks and the order of the steps are needed
        for same in (slice(0, 5), slice(1, 6)):
            assert sum(other[same] == sentence[same] for other in SENTENCES) == 2
        assert (sentence[0], *sentence[4:0:-1], sentence[5]) in SENTENCES
    assert {*MARKS, *STEPS, *OTHERS} == set(range(len(PHASES)))


def slow_reading(phases: list[int]) -> list[Match]:
    """Every stretch that becomes the steps when at most one phase without a meaning is taken out at each place,
    with the marks before and after it, all of them looked at one by one."""
    found = []
    for first in range(len(phases)):
        for end in range(first + 1, len(phases) + 1):
            stretch = phases[first:end]
            own = [k for k, phase in enumerate(stretch) if phase not in OTHERS]
            tight = bool(own) and own[0] == 0 and own[-1] == len(stretch) - 1 and max([0, *np.diff(own)]) <= 2
            order = tuple(stretch[k] for k in own)
            before, after = ([p for p in part if p in MARKS] for part in (phases[:first], phases[end:]))
            if tight and order in (STEPS, STEPS[::-1]) and before and after:
                sentence = (before[-1], *order, after[0])
                if sentence in SENTENCES:
                    cut = own[1 if before[-1] == B else 0], own[-2 if after[0] == B else -1]
                    found.append(Match(first + cut[0], first + cut[1], SENTENCES.index(sentence)))
    return found


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_reading_agrees_with_a_slow_reader(data):
    pieces = data.draw(st.lists(st.sampled_from(SENTENCES), max_size=3))
    phases = [phase for sentence in pieces for phase in sentence]
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(phases)))
        phases.insert(at, data.draw(st.integers(0, len(PHASES) - 1)))
    assert read_sentences(phases) == slow_reading(phases)


def test_what_is_an_action_and_what_is_not():
    def read(*phases: int) -> list[tuple[int, int, int]]:
        return [tuple(match) for match in read_sentences(phases)]

    there, back = (3, 4, 5, 6), (6, 5, 4, 3)
    assert read(A, *there, A) == [(1, 4, 0)] and read(A, *back, A) == [(1, 4, 4)]
    assert read(A, *there, B) == [(1, 3, 1)] and read(B, *there, A) == [(2, 4, 2)]  # marks move boundaries
    assert read(B, *there, B) == [(2, 3, 3)]
    assert read(A, *there, C) == read(C, *there, A) == read(A, *there) == read(*there, A) == []  # not completed
    assert read(A, 3, 4, 5, B) == read(A, 3, 5, 4, 6, A) == []  # broken off; wrong order
    assert read(A, 7, 5, 8, *there, 8, 4, 7, A) == [(4, 7, 0)]  # marks decide from afar
    assert read(C, A, *there, A, C) == [(2, 5, 0)] and read(A, C, *there, A) == []  # the nearest ones
    assert read(A, 3, 8, 4, 5, 6, A) == [(1, 5, 0)] and read(A, 3, 8, 7, 4, 5, 6, A) == []  # one foreign phase, not two


# What is drawn


@pytest.mark.parametrize("between", [0, 4, 8])
def test_a_reader_of_the_true_phases_finds_every_instance_and_nothing_else(between):
    bench = ContextBench(between=between, sequences=30, dimension=2)
    split = make_zoombench_context(bench, 3)
    for index, sample in enumerate(split.samples):
        timeline = draw_timeline(bench, sequence_random(3, "train", index))
        found = read_sentences(kinds(timeline))
        assert found == list(timeline.matches)
        assert len(found) == sum(what == "action" for what, _ in timeline.units)  # all that was meant, and no more
        phases = timeline.phases
        assert [phases[m.first].start / 30 for m in found] == sample.segments.starts.tolist()
        assert [phases[m.last].end / 30 for m in found] == sample.segments.ends.tolist()
        assert [split.classes[m.label] for m in found] == sample.segments.labels.tolist()
        assert all(a.end <= b.start for a, b in pairwise(phases))
        assert phases[-1].end / 30 <= sample.duration


def test_marks_are_as_far_as_asked_for():
    for between in (0, 6):
        distances = []
        for timeline in timelines(ContextBench(between=between, interrupted=0), 60):
            phases = kinds(timeline)
            for run in read_runs(phases):
                before = [k for k in range(run.steps[0]) if phases[k] in MARKS]
                after = [k for k in range(run.steps[-1] + 1, len(phases)) if phases[k] in MARKS]
                distances += [run.steps[0] - before[-1] - 1, after[0] - run.steps[-1] - 1]
        assert min(distances) == 0 and max(distances) == between
        assert np.mean(distances) == pytest.approx(between / 2, abs=0.4)


def share(counts: Counter, part: str, *whole: str) -> float:
    return counts[part] / sum(counts[name] for name in whole)


@pytest.mark.parametrize(
    "knobs", [{}, {"aborted": 0.2}, {"stray": 0.6}, {"interrupted": 0.8, "between": 2}, {"aborted": 0.7, "stray": 0.1}]
)
def test_shares_are_those_asked_for(knobs):
    bench = ContextBench(length=2048, **knobs)  # at the end of a sequence there is no room for an attempt
    drawn = timelines(bench, 80)
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
    assert set(inside) == {*STEPS, *OTHERS} and set(outside) == set(range(len(PHASES)))  # marks are not part of it
    for phase in STEPS:
        assert 0.1 < inside[phase] / (inside[phase] + outside[phase]) < 0.8


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
    assert context_classes()[1] == "reach-push-swing-drop-step-lift" and len(set(context_classes())) == 8


# No window decides


SPACING, LENGTH = 50.0, 40.0  # frames


def recorded(bench: ContextBench, phases: list[int]) -> ZoomSample:
    """A sequence of these phases, all equally long; the same background and noise every time."""
    timed = tuple(
        Phase(60 + k * SPACING, 60 + k * SPACING + LENGTH, phase, (1.0, 1.0)) for k, phase in enumerate(phases)
    )
    timeline = Timeline(timed, tuple(read_sentences(phases)))
    looks, scenes = draw_appearance(bench, len(PHASES), 0)
    return record_timeline(bench, timeline, looks, scenes, np.random.default_rng(5), "one")


def boundaries(sample: ZoomSample) -> set[float]:
    return {*sample.segments.starts.tolist(), *sample.segments.ends.tolist()}


@pytest.mark.parametrize("between", [0, 3, 8])
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("deciding", ["opening", "closing"])
def test_no_window_around_a_boundary_decides_whether_it_is_one(between, side, deciding):
    """Two sequences that are the same within a window around a point: in one of them it is a boundary, in the other
    not. The window reaches to the mark that differs, `between` phases from the steps on either side."""
    bench = ContextBench(dimension=8, length=760)
    filler = [7, 8, 4, 7, 8, 7, 4, 8][:between]
    phases = [A, *filler, *STEPS, *filler, A]
    given_up = [*phases]
    changed = 0 if deciding == "opening" else len(phases) - 1
    given_up[changed] = C
    one, other = recorded(bench, phases), recorded(bench, given_up)
    near = 1 + between if side == "start" else between + len(STEPS)
    point = (60 + near * SPACING + (0 if side == "start" else LENGTH)) / bench.fps
    assert point in boundaries(one) and point not in boundaries(other)
    first, last = 60 + changed * SPACING, 60 + changed * SPACING + LENGTH
    reach = min(abs(point * bench.fps - first), abs(point * bench.fps - last)) - 60  # ramps and blur reach a little
    within = np.abs(one.grid.to_seconds(np.arange(760)) - point) * bench.fps < reach
    np.testing.assert_allclose(one.features[within], other.features[within], atol=1e-3)
    assert between == 0 or within.sum() > 2 * (between * SPACING - 60) / bench.stride - 2
    assert np.abs(one.features - other.features).max() > 1


def test_marks_move_boundaries_from_afar():
    bench = ContextBench(dimension=8, length=256)
    filler = [7, 4, 8]
    keeps, shifts = (recorded(bench, [mark, *filler, *STEPS, A]).segments.starts for mark in (A, B))
    assert shifts[0] - keeps[0] == pytest.approx(SPACING / bench.fps)


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
        "sequences": 4, "length": 401, "between": 2, "aborted": 0.9, "interrupted": 1, "stray": 0.8, "dimension": 5,
        "stride": 5, "window": 9, "fps": 25, "noise": 0.5, "signal": 5, "shortest": 0.2, "longest": 1,
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
    with pytest.raises(InputError, match="between must be at most 100 phases, got 101"):
        knob(between=101)
    with pytest.raises(InputError, match="stray must be below 1"):
        knob(stray=1.0)
    with pytest.raises(InputError, match=r"shortest must be at most longest \(1.4\), got 4"):
        knob(shortest=4.0)
    assert ContextBench.parse(["between=2", "stray=0.1"]) == ContextBench(between=2, stray=0.1)
    with pytest.raises(InputError, match="between must be a whole number"):
        ContextBench.parse(["between=2.5"])


@pytest.mark.parametrize("length", [1, 20])
def test_a_short_sequence_may_hold_nothing(length):
    split = make_zoombench_context(knob(length=length))
    assert [sample.features.shape for sample in split.samples] == [(length, 4)] * 3
    assert all(sample.boundary_widths.shape == (len(sample.segments), 2) for sample in split.samples)


def test_settings_are_those_of_the_generator():
    config = load_config("zoombench-context", ["data.sequences=2", "data.between=2", "data.length=80"])
    assert config.data.source == "zoombench_context"
    assert ContextBench.of(config.data) == ContextBench(sequences=2, between=2, length=80)
    assert ContextBench.of(load_config("zoombench-context").data) == ContextBench()
    loaded = load_data(config.data, 4)
    assert loaded.train is not None and digest(loaded.train) == digest(
        make_zoombench_context(ContextBench(sequences=2, between=2, length=80), 4)
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
