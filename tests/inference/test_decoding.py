"""Known outputs become known segments."""

import math

import numpy as np
import pytest
import torch

from temporalzoom.bdr import distance_targets
from temporalzoom.config import InferenceConfig
from temporalzoom.inference.candidates import Fields, find_candidates
from temporalzoom.inference.decoding import decode, expected_tiou, refine
from temporalzoom.models import Outputs, Points
from temporalzoom.timegrid import TimeGrid

CLASSES = ("dive", "jump", "run")
GRID = TimeGrid(stride=4, window=16, fps=25)
LENGTH, DURATION = 50, 8.48
PLAIN = InferenceConfig(refine="none", suppression="none", min_score=0.01, certainty=0)


def options(**changes):
    return PLAIN.model_copy(update=changes)


def make_outputs(detections, length=LENGTH, boundaries=None, joint=False):
    """Outputs with nothing but `detections`: (position, class, score, start, end) in grid units.

    boundaries: (starts, ends), the zeros of exact distance fields.
    """
    outputs = Outputs(torch.full((length, len(CLASSES)), -30.0), torch.ones(length, 2), torch.zeros(length, 2))
    for position, label, score, start, end in detections:
        outputs.logits[position, label] = math.log(score / (1 - score))
        outputs.offsets[position] = torch.tensor([position - start, end - position])
    if boundaries is not None:
        channels = "joint" if joint else "start_end"
        outputs.distances = distance_targets(*boundaries, length, channels=channels)
        outputs.distance_log_variance = torch.zeros_like(outputs.distances)
    return outputs


def fields_of(outputs):
    return Fields(outputs.distances.numpy(), outputs.distance_log_variance.numpy())


def seconds(position):
    return (4 * position + 8) / 25


def rows(segments):
    return [(pytest.approx(s, abs=1e-5), pytest.approx(e, abs=1e-5), label, pytest.approx(p, abs=1e-5))
            for s, e, label, p in segments]  # fmt: skip


def test_boxes_become_segments_in_seconds_highest_score_first():
    outputs = make_outputs([(10, 1, 0.6, 4.5, 12.25), (30, 2, 0.9, 29.0, 40.0), (30, 0, 0.3, 29.0, 40.0)])
    expected = [
        (seconds(29.0), seconds(40.0), "run", 0.9),
        (seconds(4.5), seconds(12.25), "jump", 0.6),
        (seconds(29.0), seconds(40.0), "dive", 0.3),
    ]
    assert expected == rows(decode(outputs, CLASSES, GRID, DURATION, PLAIN))


def test_equal_scores_keep_the_order_of_positions():
    outputs = make_outputs([(t, 0, 0.5, t - 1, t + 1) for t in (40, 7, 23)])
    assert find_candidates(outputs, PLAIN).starts.tolist() == [6, 22, 39]


def test_candidates_are_the_highest_scores():
    outputs = make_outputs([(t, t % 3, 0.1 + t / 100, t - 1.0, t + 2.0) for t in range(40)])
    found = find_candidates(outputs, options(candidates=5))
    assert found.starts.tolist() == [38, 37, 36, 35, 34] and found.ends.tolist() == [41, 40, 39, 38, 37]
    assert found.labels.tolist() == [t % 3 for t in (39, 38, 37, 36, 35)]
    assert found.scores == pytest.approx([0.49, 0.48, 0.47, 0.46, 0.45])
    assert found.variances.shape == (5, 2)
    everything = find_candidates(outputs, options(candidates=10_000, min_score=0.0))
    assert len(everything.scores) == LENGTH * len(CLASSES)


def test_min_score_is_the_lowest_score_there_is():
    outputs = make_outputs([(10, 1, 0.6, 4.0, 12.0), (30, 2, 0.05, 29.0, 40.0)])
    assert len(decode(outputs, CLASSES, GRID, DURATION, options(min_score=0.04))) == 2
    assert len(decode(outputs, CLASSES, GRID, DURATION, options(min_score=0.06))) == 1


@pytest.mark.parametrize("suppression", ["none", "soft", "hard"])
def test_nothing_found(suppression):
    empty = decode(make_outputs([]), CLASSES, GRID, DURATION, options(suppression=suppression, refine="newton"))
    assert len(empty) == 0 and empty.starts.dtype == np.float64 and empty.labels.dtype == object


def test_segments_are_clipped_to_the_recording_and_vanish_outside():
    outputs = make_outputs([(49, 2, 0.9, 48.5, 60.0), (2, 0, 0.8, -20.0, 5.0), (48, 1, 0.7, 45.0, 90.0)])
    whole = decode(outputs, CLASSES, GRID, DURATION, PLAIN)
    assert whole.starts.tolist() == pytest.approx([seconds(48.5), 0.0, seconds(45.0)])
    assert whole.ends.tolist() == pytest.approx([DURATION, seconds(5.0), DURATION])
    shorter = decode(outputs, CLASSES, GRID, seconds(46.0), PLAIN)  # the first box now begins after the end
    expected = [(0.0, seconds(5.0), "dive", 0.8), (seconds(45.0), seconds(46.0), "jump", 0.7)]
    assert expected == rows(shorter)


def test_a_single_position():
    outputs = make_outputs([(0, 1, 0.9, -0.5, 0.5)], length=1, boundaries=([-0.25], [0.25]))
    expected = [(seconds(-0.25), seconds(0.25), "jump", 0.9)]
    assert expected == rows(decode(outputs, CLASSES, GRID, 1.0, options(refine="newton", max_move=1.0)))


INSTANCES = [(4.3, 12.6), (20.0, 33.7)]
BOUNDARIES = ([4.3, 20.0], [12.6, 33.7])
OFF = [(8, 0, 0.9, 5.2, 11.8), (27, 2, 0.8, 21.5, 32.0)]


@pytest.mark.parametrize("mode", ["newton", "snap"])
@pytest.mark.parametrize("joint", [False, True])
def test_exact_fields_give_exact_boundaries(mode, joint):
    segments = decode(
        make_outputs(OFF, boundaries=BOUNDARIES, joint=joint), CLASSES, GRID, DURATION, options(refine=mode)
    )
    expected = [
        (seconds(s), seconds(e), c, p) for (s, e), c, p in zip(INSTANCES, ("dive", "run"), (0.9, 0.8), strict=True)
    ]
    assert expected == rows(segments)


def test_without_refinement_or_without_fields_boxes_stay():
    expected = [(seconds(5.2), seconds(11.8), "dive", 0.9), (seconds(21.5), seconds(32.0), "run", 0.8)]
    fields = make_outputs(OFF, boundaries=BOUNDARIES)
    assert expected == rows(decode(fields, CLASSES, GRID, DURATION, options(refine="none")))
    assert expected == rows(decode(make_outputs(OFF), CLASSES, GRID, DURATION, options(refine="newton")))


def test_starts_follow_the_start_field_and_ends_the_end_field():
    """A start of another instance near this one's end does not pull it."""
    outputs = make_outputs([(10, 0, 0.9, 5.0, 15.0)], boundaries=([4.0, 15.5], [14.0, 25.0]))
    assert [(seconds(4.0), seconds(14.0), "dive", 0.9)] == rows(
        decode(outputs, CLASSES, GRID, DURATION, options(refine="newton"))
    )


def test_no_move_beyond_the_limit():
    outputs = make_outputs([(10, 0, 0.9, 5.0, 15.0)], boundaries=([1.5], [17.5]))
    moved = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine="newton", max_move=0.3))
    assert (moved.starts[0], moved.ends[0]) == (5.0, pytest.approx(17.5, abs=1e-5))


@pytest.mark.parametrize(
    ("box", "field", "share"), [(0.0, 0.0, 0.5), (2.0, -2.0, 1 / (1 + math.exp(-4))), (-8, 8, 0.0)]
)
def test_fusion_weighs_box_and_field_by_their_variances(box, field, share):
    outputs = make_outputs([(10, 0, 0.9, 5.0, 15.0)], boundaries=([4.0], [14.0]))
    outputs.offset_log_variance.fill_(box)
    outputs.distance_log_variance.fill_(field)
    fused = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine="fuse"))
    assert fused.starts[0] == pytest.approx(5 - share, abs=1e-4) and fused.ends[0] == pytest.approx(
        15 - share, abs=1e-4
    )


def test_duplicates_are_suppressed_class_by_class():
    same = [(t, 0, 0.9 - t / 100, 5.0, 15.0) for t in (8, 9, 10)] + [(11, 1, 0.5, 5.0, 15.0)]
    outputs = make_outputs(same)
    soft = decode(outputs, CLASSES, GRID, DURATION, options(suppression="soft", sigma=0.5))
    decay = math.exp(-1 / 0.5)
    assert soft.scores.tolist() == pytest.approx([0.82, 0.5, 0.81 * decay, 0.80 * decay**2], abs=1e-5)
    assert soft.labels.tolist() == ["dive", "jump", "dive", "dive"]
    hard = decode(outputs, CLASSES, GRID, DURATION, options(suppression="hard", tiou_threshold=0.5))
    assert hard.scores.tolist() == pytest.approx([0.82, 0.5])
    assert len(decode(outputs, CLASSES, GRID, DURATION, options(suppression="soft", max_segments=2))) == 2


def test_refinement_comes_before_suppression():
    """Boxes that differ become one segment once both are moved to the same boundaries."""
    outputs = make_outputs([(9, 0, 0.9, 5.0, 15.0), (12, 0, 0.8, 6.9, 16.4)], boundaries=([6.0], [16.0]))
    hard = options(suppression="hard", tiou_threshold=0.9)
    assert len(decode(outputs, CLASSES, GRID, DURATION, hard)) == 2
    assert len(decode(outputs, CLASSES, GRID, DURATION, hard.model_copy(update={"refine": "newton"}))) == 1


def test_rows_of_a_pyramid_stand_where_their_points_say():
    positions = torch.tensor([0.0, 1.0, 2.0, 0.0, 8.0])  # two levels
    ones = torch.ones(5)
    offsets = torch.rand(5, len(CLASSES), 2)  # by class
    logits = torch.full((5, len(CLASSES)), -30.0)
    logits[4, 1] = 2.0
    outputs = Outputs(logits, offsets, points=Points(positions, ones, ones, ones, ones.bool()))
    found = find_candidates(outputs, PLAIN)
    assert found.labels.tolist() == [1] and found.variances is None
    assert found.starts[0] == pytest.approx(8 - float(offsets[4, 1, 0]))
    assert found.ends[0] == pytest.approx(8 + float(offsets[4, 1, 1]))


def test_without_a_box_variance_segments_are_still_refined():
    outputs = make_outputs([(20, 0, 0.9, 10.6, 30.4)], boundaries=([10.0], [31.0]))
    outputs.offset_log_variance = None
    found = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine="newton"))
    assert (found.starts[0], found.ends[0]) == (pytest.approx(10.0), pytest.approx(31.0))
    fused = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine="fuse"))
    assert 10.0 < fused.starts[0] < 10.6 and 30.4 < fused.ends[0] < 31.0


@pytest.mark.parametrize("mode", ["snap", "newton", "fuse"])
def test_an_end_without_a_zero_keeps_the_variance_of_its_box(mode):
    """Start: the field has its zero at 5.5. End: the nearest zero is too far away."""
    outputs = make_outputs([(10, 0, 0.9, 5.0, 15.0)], boundaries=([5.5], [30.0]))
    outputs.offset_log_variance.fill_(math.log(25.0))
    outputs.distance_log_variance.fill_(math.log(0.25))
    found = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine=mode))
    sure = 1 / (1 / 0.25 + 1 / 25.0) if mode == "fuse" else 0.25
    assert found.variances[0] == pytest.approx([sure, 25.0], rel=1e-5)


def test_a_segment_that_would_be_turned_around_keeps_its_variances():
    outputs = make_outputs([(10, 0, 0.9, 9.0, 11.0)], boundaries=([10.0], [10.0]))
    outputs.offset_log_variance.fill_(math.log(25.0))
    found = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine="newton", max_move=1.0))
    assert (found.starts[0], found.ends[0]) == (9.0, 11.0)
    assert found.variances[0] == pytest.approx([25.0, 25.0], rel=1e-5)


def test_without_a_box_variance_an_end_without_a_zero_has_the_assumed_one():
    outputs = make_outputs([(10, 0, 0.9, 5.0, 15.0)], boundaries=([5.5], [30.0]))
    outputs.offset_log_variance = None
    found = refine(find_candidates(outputs, PLAIN), fields_of(outputs), options(refine="fuse", max_move=0.3))
    assert found.variances[0] == pytest.approx([1 / (1 + 1), 1.0])  # a third of 0.3 * 10, squared


def test_expected_tiou_is_what_sampled_errors_leave_of_it():
    random, length, deviations = np.random.default_rng(0), 20.0, np.array([0.4, 0.9])
    errors = random.normal(0, deviations, (200_000, 2))
    starts, ends = errors[:, 0], length + errors[:, 1]
    overlap = np.minimum(ends, length) - np.maximum(starts, 0)
    sampled = overlap / (np.maximum(ends, length) - np.minimum(starts, 0))
    assert expected_tiou(np.array([length]), deviations[None])[0] == pytest.approx(sampled.mean(), abs=0.005)


def test_of_two_equal_scores_the_surer_one_comes_first():
    outputs = make_outputs([(10, 0, 0.6, 5, 15), (30, 0, 0.6, 25, 35)])
    outputs.offset_log_variance[10], outputs.offset_log_variance[30] = 2.0, -2.0
    plain = decode(outputs, CLASSES, GRID, DURATION, options())
    weighed = decode(outputs, CLASSES, GRID, DURATION, options(certainty=2.0))
    assert plain.scores[0] == plain.scores[1] and plain.starts[0] < plain.starts[1]
    assert weighed.starts[0] == plain.starts[1] and weighed.scores[0] > weighed.scores[1]
    assert sorted(weighed.ends) == sorted(plain.ends)
    lost = math.sqrt(2 / math.pi) * 2 * math.exp(-1.0) / 10
    assert weighed.scores[0] == pytest.approx(0.6 * (1 - lost) ** 2, rel=1e-5)


def test_a_zero_that_the_field_is_sure_of_makes_a_segment_surer():
    outputs = make_outputs([(10, 0, 0.6, 5, 15)], boundaries=([5.0], [15.0]))
    boxes = decode(outputs, CLASSES, GRID, DURATION, options(certainty=1.0))
    fused = decode(outputs, CLASSES, GRID, DURATION, options(certainty=1.0, refine="fuse"))
    outputs.distance_log_variance -= 4.0
    surer = decode(outputs, CLASSES, GRID, DURATION, options(certainty=1.0, refine="fuse"))
    assert boxes.scores[0] < fused.scores[0] < surer.scores[0] < 0.6
