"""Detection metrics against slow references written from the protocols' descriptions, and their invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.metrics import evaluate_detections, precision_recall
from temporalzoom.segments import Segments

THRESHOLDS = (0.3, 0.5, 0.75)
PROTOCOLS = ("anet", "th14")
LABELS = ("a", "b", "long name")

# Small integers: overlaps, ties of tIoU and of score, and segments without length are then common.
spans = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda pair: (float(pair[0]), float(sum(pair))))
instances = st.lists(st.tuples(spans, st.sampled_from(LABELS)), max_size=5)
detections = st.lists(st.tuples(spans, st.sampled_from((*LABELS, "never annotated")), st.integers(0, 4)), max_size=8)
truths = st.dictionaries(st.sampled_from("uvw"), instances, min_size=1).filter(lambda truth: any(truth.values()))
predictions = st.dictionaries(st.sampled_from("wxvu"), detections)
ambiguities = st.dictionaries(st.sampled_from("uvw"), st.lists(spans, max_size=2))


def as_truth(truth):
    return {
        video: Segments([s for (s, _), _ in rows], [e for (_, e), _ in rows], [label for _, label in rows])
        for video, rows in truth.items()
    }


def as_predictions(found):
    return {
        video: Segments(
            [s for (s, _), _, _ in rows], [e for (_, e), _, _ in rows], [c for _, c, _ in rows], [p for *_, p in rows]
        )
        for video, rows in found.items()
    }


def as_spans(ambiguous):
    return {v: Segments([s for s, _ in rows], [e for _, e in rows], ["?"] * len(rows)) for v, rows in ambiguous.items()}


def overlap_of(one, other):
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared / (max(one[1], other[1]) - min(one[0], other[0])) if shared > 0 else 0.0


def slow_anet(truth, found, threshold, label):
    positives = [[span, video, False] for video, rows in truth.items() for span, name in rows if name == label]
    queue = [(score, span, video) for video, rows in found.items() for span, name, score in rows if name == label]
    queue.sort(key=lambda item: item[0], reverse=True)  # Python's sort is stable in reverse, too
    outcomes = []
    for _, span, video in queue:
        best = None
        for positive in positives:
            if positive[1] == video and not positive[2] and overlap_of(span, positive[0]) >= threshold:
                if best is None or overlap_of(span, positive[0]) > overlap_of(span, best[0]):
                    best = positive
        if best is not None:
            best[2] = True
        outcomes.append(best is not None)
    curve = [(0.0, 0.0)]
    for count in range(1, len(outcomes) + 1):
        curve.append((sum(outcomes[:count]) / len(positives), sum(outcomes[:count]) / count))
    area = 0.0
    for index in range(1, len(curve)):
        area += (curve[index][0] - curve[index - 1][0]) * max(precision for _, precision in curve[index:])
    return area


def slow_th14(truth, found, ambiguous, threshold, label):
    pooled, positives = [], 0
    for video in sorted({*truth, *found}):
        wanted = [span for span, name in truth.get(video, []) if name == label]
        positives += len(wanted)
        here = [(score, span) for span, name, score in found.get(video, []) if name == label]
        here.sort(key=lambda item: -item[0])
        taken = [False] * len(here)
        for span in wanted:
            free = [i for i in range(len(here)) if not taken[i]]
            if free:
                best = max(free, key=lambda i: overlap_of(span, here[i][1]))
                if overlap_of(span, here[best][1]) > threshold:
                    taken[best] = True
        for hit, (score, span) in zip(taken, here, strict=True):
            if hit or not any(overlap_of(span, other) > 0 for other in ambiguous.get(video, [])):
                pooled.append((score, hit))
    pooled.sort(key=lambda item: -item[0])
    area, true = 0.0, 0
    for seen, (_, hit) in enumerate(pooled, start=1):
        true += hit
        area += hit * true / seen
    return area / positives


@settings(deadline=None, max_examples=400)
@given(truths, predictions)
def test_anet_equals_the_slow_reference(truth, found):
    result = evaluate_detections(as_truth(truth), as_predictions(found), THRESHOLDS)
    assert set(result.classes) == {label for rows in truth.values() for _, label in rows}
    expected = [[slow_anet(truth, found, t, label) for label in result.classes] for t in THRESHOLDS]
    np.testing.assert_allclose(result.ap, expected, atol=1e-12)


@settings(deadline=None, max_examples=400)
@given(truths, predictions, ambiguities)
def test_th14_equals_the_slow_reference(truth, found, ambiguous):
    result = evaluate_detections(as_truth(truth), as_predictions(found), THRESHOLDS, "th14", as_spans(ambiguous))
    expected = [[slow_th14(truth, found, ambiguous, t, label) for label in result.classes] for t in THRESHOLDS]
    np.testing.assert_allclose(result.ap, expected, atol=1e-12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None, max_examples=100)
@given(truths, predictions, ambiguities)
def test_each_threshold_alone_is_a_row_of_all(protocol, truth, found, ambiguous):
    arguments = as_truth(truth), as_predictions(found)
    together = evaluate_detections(*arguments, THRESHOLDS, protocol, as_spans(ambiguous))
    for row, threshold in zip(together.ap, THRESHOLDS, strict=True):
        alone = evaluate_detections(*arguments, [threshold], protocol, as_spans(ambiguous))
        np.testing.assert_allclose(alone.ap[0], row, rtol=0, atol=1e-12)  # sums may be taken in another order
        assert alone.mAP[threshold] == alone.average == pytest.approx(together.mAP[threshold], abs=1e-12)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None, max_examples=100)
@given(truths)
def test_the_truth_itself_scores_one(protocol, truth):
    truth = {v: [((s, e + 1), label) for (s, e), label in rows] for v, rows in truth.items()}  # no zero lengths
    result = evaluate_detections(as_truth(truth), as_truth(truth), [0.5, 0.95], protocol)
    assert (result.ap == 1).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None, max_examples=150)
@given(truths, predictions, st.sampled_from("uvwz"), st.sampled_from(LABELS), st.integers(-1, 5))
def test_false_positives_never_help_and_at_the_lowest_score_never_matter(protocol, truth, found, video, label, score):
    more = {**found, video: [*found.get(video, []), ((1000.0, 1001.0), label, score)]}
    before, after = (
        evaluate_detections(as_truth(truth), as_predictions(p), THRESHOLDS, protocol).ap for p in (found, more)
    )
    assert (after <= before + 1e-12).all()
    if score < 0:
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None, max_examples=100)
@given(truths, predictions, ambiguities, st.integers(-50, 50))
def test_shifted_time_and_rescaled_scores_change_nothing(protocol, truth, found, ambiguous, shift):
    plain = [as_truth(truth), as_predictions(found), as_spans(ambiguous)]
    moved = [{v: s.shift(shift) for v, s in part.items()} for part in plain]
    moved[1] = {v: Segments(s.starts, s.ends, s.labels, 7 * s.scores - 3) for v, s in moved[1].items()}
    before, after = (evaluate_detections(t, p, THRESHOLDS, protocol, a).ap for t, p, a in (plain, moved))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(deadline=None, max_examples=100)
@given(truths, predictions, st.randoms(use_true_random=False))
def test_order_of_videos_changes_nothing(protocol, truth, found, random):
    if protocol == "anet":  # equal scores go in input order there, so make them distinct
        count = sum(map(len, found.values()))
        ranks = iter(random.sample(range(count), count))
        found = {v: [(span, label, next(ranks)) for span, label, _ in rows] for v, rows in found.items()}
    shuffled = [dict(random.sample(list(part.items()), len(part))) for part in (truth, found)]
    before = evaluate_detections(as_truth(truth), as_predictions(found), THRESHOLDS, protocol)
    after = evaluate_detections(as_truth(shuffled[0]), as_predictions(shuffled[1]), THRESHOLDS, protocol)
    np.testing.assert_array_equal(before.ap, after.ap)


@settings(deadline=None, max_examples=100)
@given(truths, predictions)
def test_interpolated_area_under_precision_recall_is_ap(truth, found):
    result = evaluate_detections(as_truth(truth), as_predictions(found), [0.5])
    for label, expected in zip(result.classes, result.ap[0], strict=True):
        recall, precision, scores = precision_recall(as_truth(truth), as_predictions(found), 0.5, label)
        assert (np.diff(scores) <= 0).all() and (np.diff(recall) >= 0).all()
        steps = np.diff(recall, prepend=0.0)
        area = sum(step * precision[i:].max() for i, step in enumerate(steps))
        assert area == pytest.approx(expected, abs=1e-12)
