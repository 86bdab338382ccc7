"""The verdict in words: numbers, singular and plural, and what is said when there is little to say."""

import numpy as np
import pytest
from analysis_strategies import as_segments, predictions, truths
from hypothesis import given

from temporalzoom.metrics.errors import BoundarySeconds, analyse
from temporalzoom.metrics.rates import RateIntervals
from temporalzoom.metrics.verdict import bias_words, counted, listed, seconds, trust, verdict
from temporalzoom.segments import Segments


def case(*rows, early=0.0):
    """Analysis of rows (true label or None, found label or None, how many), each in a place of its own.

    early: by how much each detection starts before the instance.
    """
    truth, found, time = [], [], 0.0
    for true, label, count in rows:
        for _ in range(count):
            time += 100
            if true is not None:
                truth.append((time, time + 10, true))
            if label is not None:
                found.append((time - early, time + 10, label))
    return analyse({"v": segments(truth)}, {"v": segments(found)}, 0.5)


def segments(rows):
    return Segments([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def test_the_usual_case():
    analysis = case(
        ("serve", "serve", 54), ("serve", None, 6),
        ("rally", "rally", 60), ("rally", "warm-up", 12), ("rally", None, 8),
        ("warm-up", "warm-up", 40), ("let", "let", 2), ("let", None, 5), (None, "serve", 3),
        early=0.2,
    )  # fmt: skip
    assert verdict(analysis) == [
        "Finds 156 of 187 instances; 15 of its 171 detections are wrong.",
        "Starts are good to 0.2 s (median), ends to less than 0.01 s.",
        "Starts are found 0.2 s too early on average.",
        "Class by class: 40 of 40 `warm-up`, 54 of 60 `serve`, 60 of 80 `rally` and 2 of 7 `let`.",
        "`rally` is confused with `warm-up` (12 of 80).",
        "Of the 31 instances not found, 19 are missed altogether and 12 are found under another label.",
        "Of the 15 detections that are wrong, 12 have the wrong label and 3 lie where nothing is annotated.",
        "`let` has 7 examples here: more of them to learn from would probably help most.",
    ]


def test_one_class_is_called_by_its_name():
    assert verdict(case(("serve", "serve", 9), ("serve", None, 1))) == [
        "Finds 9 of 10 `serve`, and nothing that is not there.",
        "Starts are good to less than 0.01 s (median), ends to less than 0.01 s.",
        "The one instance not found is missed altogether.",
    ]


def test_singular():
    words = verdict(case(("a", "a", 1), (None, "a", 1)))
    assert words[0] == "Finds the only `a`; 1 of its 2 detections is wrong."
    assert words[-1] == "The one detection that is wrong lies where nothing is annotated."
    assert verdict(case(("a", None, 1)))[0] == "Does not find the only `a`: nothing has a score that counts."
    assert (
        verdict(case(("a", None, 1), (None, "a", 1)))[0] == "Does not find the only `a`: its only detection is wrong."
    )
    rare = verdict(case(("a", "a", 30), ("b", None, 1)))[-1]
    assert rare == "`b` has 1 example here: more of its kind to learn from would probably help most."


def test_perfect():
    perfect = case(("a", "a", 20), ("b", "b", 20))
    assert verdict(perfect)[0] == "Finds all 40 instances, and nothing that is not there."
    assert len(verdict(perfect)) == 2  # and how precise the boundaries are


def test_nothing_found():
    assert verdict(case(("a", None, 20), ("b", None, 3))) == [
        "Finds none of the 23 instances: nothing has a score that counts.",
        "The 23 instances not found are missed altogether.",
    ]
    words = verdict(case(("a", None, 20), (None, "a", 7)))
    assert words[0] == "Finds none of the 20 `a`: all 7 detections are wrong."
    assert words[-1] == "The 7 detections that are wrong lie where nothing is annotated."


def test_of_many_classes_the_best_and_the_worst_are_named():
    rows = [(f"c{i}", f"c{i}", 20 - i) for i in range(9)] + [(f"c{i}", None, i) for i in range(9)]
    assert (
        "Found best: 20 of 20 `c0`, 19 of 20 `c1` and 18 of 20 `c2`. "
        "Found worst: 12 of 20 `c8`, 13 of 20 `c7` and 14 of 20 `c6`."
    ) in verdict(case(*rows))


def test_rare_confusions_are_chance():
    assert not any("confused" in s for s in verdict(case(("a", "a", 50), ("a", "b", 1), ("b", "b", 50))))
    assert not any("confused" in s for s in verdict(case(("a", "a", 98), ("a", "b", 2), ("b", "b", 50))))


def test_where_the_numbers_come_from():
    analysis = case(("a", "a", 20), ("b", "b", 3))
    words = trust(analysis, {"v": "Kim"})
    assert words[0] == "These numbers come from 1 recording of 1 subject with 23 instances."
    assert words[1] == "One recording does not tell how the detector would do on another one."
    assert words[2] == "`b` (3) has fewer than 10 instances here: its numbers say little."
    assert len(words) == 3  # the threshold was given


def test_intervals_and_thresholds_in_words():
    part = Segments([0], [10], ["a"])
    truth = {str(i): part for i in range(12)}
    found = RateIntervals((0.8, 0.912), (0.7, 0.7), None)
    words = trust(analyse(truth, truth), {str(i): f"subject {i % 5}" for i in range(12)}, found, (0.5, 0.614))
    assert words[0] == "These numbers come from 12 recordings of 5 subjects with 12 instances."
    assert words[1] == (
        "On other recordings like these, 70 % of the instances would be found, 80 to 91 % of the detections would be "
        "right and average mAP would be 50.0 to 61.4 (95 % bootstrap intervals over recordings)."
    )
    assert words[2].startswith("The score thresholds are those of the best F1 on these same recordings")
    few = {name: truth[name] for name in ("0", "1")}
    assert trust(analyse(few, few), None, found)[1].endswith("the truth may well lie outside.")
    assert trust(analyse(few, {**few, "x": part}), None)[1].startswith("Predictions name 1 recording that")


def test_thresholds_of_some_classes_are_told_apart():
    both = {"v": Segments([0, 20], [10, 30], ["a", "b"])}
    assert any("thresholds of `b` are" in sentence for sentence in trust(analyse(both, both, {"a": 0.5})))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "less than 0.01 s"), (-0.034, "0.034 s"), (0.2, "0.2 s"), (1.26, "1.3 s"), (9.96, "10 s"), (123.4, "123 s")],
)
def test_seconds(value, text):
    assert seconds(value) == text


def test_lists():
    assert [listed(["a", "b", "c"][:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert listed([str(i) for i in range(10)]) == "0, 1, 2, 3, 4, 5 and 4 more"
    assert (counted(1, "recording"), counted(0, "recording")) == ("1 recording", "0 recordings")


def test_a_bias_is_named_if_it_is_more_than_chance():
    def words(bias, deviation, count=50, median=0.2):
        return bias_words(BoundarySeconds(median, 1.0, bias, deviation, count), "ends")

    assert words(0.2, 0.1) == "ends are found 0.2 s too late on average"
    assert words(-0.2, 0.1) == "ends are found 0.2 s too early on average"
    assert words(0.2, 1.0) is None and words(0.2, 0.1, count=9) is None  # chance, few
    assert words(0.02, 0.001) is None  # does not matter beside the usual error


@given(truths, predictions)
def test_there_is_always_something_to_say(truth, found):
    analysis = analyse(as_segments(truth), as_segments(found))
    words = verdict(analysis) + trust(analysis)
    assert all(sentence[0].isupper() or sentence[0] == "`" for sentence in words)
    assert all(sentence.endswith(".") and "nan" not in sentence for sentence in words)
    assert f" {np.sum([len(rows) for rows in truth.values()])} " in " ".join(words)
