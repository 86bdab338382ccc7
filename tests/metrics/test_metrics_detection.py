"""Detection metrics on cases small enough to compute by hand."""

import numpy as np
import pytest

from temporalzoom.errors import InputError
from temporalzoom.metrics import average_precision, evaluate_detections, match_detections, precision_recall, tiou
from temporalzoom.segments import Segments


def segments(*rows):
    """Rows (start, end, label, score)."""
    return Segments(*zip(*rows, strict=True)) if rows else Segments.empty()


def truth_of(*rows):
    return segments(*((start, end, label, 1.0) for start, end, label in rows))


def ap(truth, predictions, threshold=0.5, **settings):
    return evaluate_detections(truth, predictions, [threshold], **settings).ap[0].tolist()


def test_tiou_by_hand():
    overlaps = tiou([0, 10], [10, 20], [5, 0, 30], [15, 10, 31])
    np.testing.assert_allclose(overlaps, [[1 / 3, 1, 0], [1 / 3, 0, 0]])


def test_tiou_of_segments_without_length_is_zero():
    with np.errstate(all="raise"):
        assert not tiou([1, 1, 3], [1, 2, 2], [1, 1], [1, 1]).any()
        assert tiou([], [], [1], [2]).shape == (0, 1)


def test_ap_by_hand_in_both_protocols():
    # false, true, true of 3 instances: precisions 0, 1/2, 2/3 at the three detections.
    truth = {"v": truth_of((0, 10, "a"), (20, 30, "a"), (40, 50, "a"))}
    found = {"v": segments((60, 70, "a", 0.9), (0, 10, "a", 0.8), (20, 30, "a", 0.7))}
    assert ap(truth, found) == pytest.approx([(2 / 3 + 2 / 3) / 3])
    assert ap(truth, found, protocol="th14") == pytest.approx([(1 / 2 + 2 / 3) / 3])


def test_threshold_is_reached_in_anet_and_exceeded_in_th14():
    truth, found = {"v": truth_of((0, 10, "a"))}, {"v": segments((0, 5, "a", 1.0))}
    assert ap(truth, found, 0.5) == [1.0]
    assert ap(truth, found, 0.5, protocol="th14") == [0.0]


def test_anet_detection_falls_back_to_the_next_best_free_instance():
    truth = {"v": truth_of((0, 10, "a"), (2, 12, "a"))}
    found = {"v": segments((0, 10, "a", 0.9), (0, 10, "a", 0.8))}
    assert match_detections(truth, found, [0.5]).found.tolist() == [[0, 1]]
    assert ap(truth, found) == [1.0]


def test_second_detection_of_one_instance_is_false():
    truth = {"v": truth_of((0, 10, "a"), (50, 60, "a"))}
    found = {"v": segments((0, 10, "a", 0.9), (0, 9, "a", 0.8), (50, 60, "a", 0.7))}
    assert ap(truth, found) == pytest.approx([(1 + 2 / 3) / 2])


def test_th14_instance_takes_the_best_overlap_not_the_best_score():
    truth = {"v": truth_of((0, 10, "a"))}
    found = {"v": segments((0, 8, "a", 0.9), (0, 10, "a", 0.1))}
    assert ap(truth, found) == [1.0]
    assert ap(truth, found, protocol="th14") == [0.5]


def test_th14_annotation_order_decides():
    # The first instance takes the detection that would fit the second one better; a detection-first rule would not.
    truth = {"v": truth_of((0, 10, "a"), (2, 12, "a"))}
    found = {"v": segments((2, 12, "a", 0.9))}
    assert match_detections(truth, found, [0.5], "th14").found.tolist() == [[0]]
    assert match_detections(truth, found, [0.5], "anet").found.tolist() == [[1]]


def test_th14_drops_unmatched_detections_that_touch_ambiguous_segments():
    truth = {"v": truth_of((0, 10, "a")), "w": truth_of((0, 10, "b"))}
    found = {
        "v": segments((19, 30, "a", 0.9), (0, 10, "a", 0.5)),
        "w": segments((19, 30, "a", 0.8)),
    }
    ambiguous = {"v": truth_of((10, 20, "Ambiguous"))}
    assert ap(truth, found, protocol="th14")[0] == pytest.approx(1 / 3)
    assert ap(truth, found, protocol="th14", ambiguous=ambiguous)[0] == pytest.approx(1 / 2)
    assert ap(truth, found, protocol="anet", ambiguous=ambiguous)[0] == pytest.approx(1 / 3)
    # Touching at a point is no overlap; a matched detection stays true even where it overlaps.
    assert ap(truth, found, protocol="th14", ambiguous={"v": truth_of((30, 40, "x"))})[0] == pytest.approx(1 / 3)
    assert ap(truth, found, protocol="th14", ambiguous={"v": truth_of((5, 20, "x"))})[0] == pytest.approx(1 / 2)


def test_detections_outside_the_truth():
    for protocol in ["anet", "th14"]:
        truth = {"v": truth_of((0, 10, "a")), "background": Segments.empty()}
        hit = (0, 10, "a", 0.5)
        other_labels = {"v": segments(hit, (0, 10, "b", 0.9), (0, 10, "zz", 0.9), (0, 10, "A", 0.9))}
        assert ap(truth, other_labels, protocol=protocol) == [1.0]
        elsewhere = {"v": segments(hit), "other": segments((0, 10, "a", 0.9))}
        assert ap(truth, elsewhere, protocol=protocol) == [0.5]
        assert ap(truth, elsewhere, protocol=protocol, unknown_videos="ignore") == [1.0]
        background = {"v": segments(hit), "background": segments((0, 10, "a", 0.9))}
        assert ap(truth, background, protocol=protocol, unknown_videos="ignore") == [0.5]


def test_equal_scores_keep_input_order_in_anet_and_go_by_video_name_in_th14():
    truth = {"b": truth_of((0, 10, "a")), "a": truth_of((0, 10, "c"))}
    right, wrong = segments((0, 10, "a", 0.5)), segments((0, 10, "a", 0.5))
    assert ap(truth, {"b": right, "a": wrong})[0] == 1.0
    assert ap(truth, {"a": wrong, "b": right})[0] == 0.5
    for order in ({"b": right, "a": wrong}, {"a": wrong, "b": right}):
        assert ap(truth, order, protocol="th14")[0] == 0.5


def test_classes_without_predictions_count_as_zero():
    for protocol in ["anet", "th14"]:
        truth = {"v": truth_of((0, 10, "a"), (0, 10, "b"))}
        result = evaluate_detections(truth, {"v": segments((0, 10, "b", 0.5))}, np.arange(0.3, 0.8, 0.1), protocol)
        assert result.classes == ("a", "b")
        np.testing.assert_array_equal(result.ap, [[0, 1]] * 5)
        assert result.mAP == {0.3: 0.5, 0.4: 0.5, 0.5: 0.5, 0.6: 0.5, 0.7: 0.5}
        assert result.average == 0.5
        for nothing in ({}, {"v": Segments.empty()}):
            assert evaluate_detections(truth, nothing, [0.5], protocol).average == 0.0


def test_bad_input_is_named():
    for arguments, words in [
        (({}, {}, [0.5]), "no instance"),
        (({"v": Segments.empty()}, {}, [0.5]), "no instance"),
        (({"v": truth_of((0, 1, "a"))}, {}, []), "threshold"),
        (({"v": truth_of((0, 1, "a"))}, {}, [0.5, 1.5]), "1.5"),
        (({"v": truth_of((0, 1, "a"))}, {}, [0.0]), "0.0"),
        (({"v": truth_of((0, 1, "a"))}, {}, [0.5], "voc"), "voc"),
        (({"v": truth_of((0, 1, "a"))}, {}, [0.5], "anet", None, "drop"), "drop"),
        (({"v": truth_of((0, 1, "a"))}, {"w": segments((0, 1, "a", float("nan")))}, [0.5]), "'w'"),
        (({"v": truth_of((0, float("inf"), "a"))}, {}, [0.5]), "'v'"),
    ]:
        with pytest.raises(InputError, match=words):
            evaluate_detections(*arguments)


def test_precision_recall_of_one_class_and_of_all():
    truth = {"v": truth_of((0, 10, "a"), (20, 30, "a"), (0, 10, "b"))}
    found = {"v": segments((60, 70, "a", 0.9), (0, 10, "a", 0.7), (0, 10, "b", 0.8))}
    recall, precision, scores = precision_recall(truth, found, 0.5, "a")
    np.testing.assert_allclose(recall, [0, 1 / 2])
    np.testing.assert_allclose(precision, [0, 1 / 2])
    np.testing.assert_allclose(scores, [0.9, 0.7])
    recall, precision, scores = precision_recall(truth, found, 0.5)
    np.testing.assert_allclose(recall, [0, 1 / 3, 2 / 3])
    np.testing.assert_allclose(precision, [0, 1 / 2, 2 / 3])
    np.testing.assert_allclose(scores, [0.9, 0.8, 0.7])
    assert [len(column) for column in precision_recall(truth, {}, 0.5)] == [0, 0, 0]
    with pytest.raises(InputError, match="zz"):
        precision_recall(truth, found, 0.5, "zz")


def test_average_precision_leaves_uncounted_detections_out():
    hit, counted = np.array([[True, True, False, True]]), np.array([[True, False, True, True]])
    assert average_precision(hit, counted, 4, interpolated=False) == pytest.approx([(1 + 2 / 3) / 4])
    assert np.isnan(average_precision(hit, counted, 0, interpolated=True)).all()
