"""Which recordings and stretches are the worst."""

from analysis_strategies import as_segments, predictions, truths
from hypothesis import given

from temporalzoom.metrics.errors import analyse
from temporalzoom.metrics.worst_cases import worst_stretches
from temporalzoom.segments import Segments


def test_most_errors_first_and_none_without():
    truth = {name: Segments([0, 20, 40], [10, 30, 50], ["a"] * 3) for name in "uvw"}
    found = {"u": truth["u"], "v": truth["v"][:1], "w": truth["w"][:2]}
    worst = worst_stretches(analyse(truth, found, 0.5))
    assert [(s.recording, s.errors, s.whole) for s in worst] == [("v", 2, True), ("w", 1, True)]
    assert (worst[0].start, worst[0].end) == (0, 50)
    assert worst[0].instances == {"found": 1, "wrong label": 0, "misplaced": 0, "missed": 2}


def test_a_long_recording_is_cut():
    starts = [100.0 * i for i in range(40)]
    truth = {"v": Segments(starts, [s + 10 for s in starts], ["a"] * 40)}
    lost = {0, 1, 2, 39}
    found = {"v": truth["v"][[i for i in range(40) if i not in lost]]}
    worst = worst_stretches(analyse(truth, found, 0.5), length=1000.0)
    assert [s.errors for s in worst] == [3, 1] and not worst[0].whole
    assert worst[0].start == 0 and worst[1].end == 3910 and worst[0].end <= 1250
    by_default = worst_stretches(analyse(truth, found, 0.5))
    assert by_default[0].errors == 3 and 10 <= sum(by_default[0].instances.values()) <= 25


def test_one_recording_does_not_fill_the_list():
    bad = Segments([0, 100, 200, 300], [10, 110, 210, 310], ["a"] * 4)
    truth = {
        "bad": Segments.concatenate([bad, bad.shift(20)]),
        **{f"v{i}": Segments([0], [10], ["a"]) for i in range(9)},
    }
    worst = worst_stretches(analyse(truth, {}, 0.5), count=4, length=100.0)
    assert [(s.recording, s.errors) for s in worst] == [("bad", 2), ("bad", 2), ("v0", 1), ("v1", 1)]
    alone = worst_stretches(analyse({"bad": truth["bad"]}, {}, 0.5), length=100.0)
    assert [s.errors for s in alone] == [2, 2, 2, 2]


@given(truths, predictions)
def test_all_stretches_together_hold_all_errors(truth, found):
    analysis = analyse(as_segments(truth), as_segments(found))
    stretches = worst_stretches(analysis, count=10_000, length=4.0)
    detections, instances = analysis.kinds()
    wrong = sum(detections.values()) - detections["correct"]
    assert sum(s.errors for s in stretches) == wrong + sum(instances.values()) - instances["found"]
    assert all(s.errors > 0 for s in stretches)
    assert [s.errors for s in stretches] == sorted((s.errors for s in stretches), reverse=True)
