"""Soft labels: closed forms, and what holds for any annotations and any teacher."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.segments import Segments
from temporalzoom.workflows.teaching import FREE, LEAST, soften


def one(*rows: tuple[float, float, str, float]) -> dict[str, Segments]:
    return {"a": Segments(*zip(*rows, strict=True)) if rows else Segments.empty()}


def rows_of(segments: Segments) -> list[tuple[float, float, str, float]]:
    return [(round(s, 9), round(e, 9), label, round(score, 9)) for s, e, label, score in segments]


def test_scores_and_ends_by_hand():
    """Usual is 0.6, the median of 0.8, 0.6 and 0.3; nothing is found in vain, so that precision is 1."""
    truth = one((0, 10, "x", 1), (20, 30, "x", 1), (40, 50, "x", 1), (60, 70, "x", 1))
    judged = one((0, 12, "x", 0.8), (20, 30, "x", 0.6), (42, 50, "x", 0.3))
    assert rows_of(soften(truth, judged, 0.5)["a"]) == [
        (0, 11, "x", 1.0),  # surer than usual: half way
        (20, 30, "x", 1.0),
        (40.5, 50, "x", 0.75),  # half as sure as usual: a quarter of the way
        (60, 70, "x", 0.5),  # not found: the annotation's share
    ]


def test_what_nobody_annotated_is_an_instance_as_likely_as_it_is_believed():
    truth = one((0, 10, "x", 1), (20, 30, "x", 1))
    judged = one((0, 10, "x", 0.8), (20, 30, "x", 0.8), (40, 45, "x", 0.4))
    assert rows_of(soften(truth, judged, 0.5)["a"])[2:] == [(40, 45, "x", round(0.5 * 0.5 * 2 / 3, 9))]


def test_guesses_at_annotated_instances_are_none_of_their_own():
    truth = one((0, 10, "x", 1), (20, 30, "y", 1))
    judged = one(
        (0, 10, "x", 0.8), (2, 5, "x", 0.8),  # a duplicate inside
        (21, 29, "x", 0.8),  # another label
        (9.8, 18, "x", 0.8), (10, 17, "x", 0.7),  # hardly overlaps; lies in the one before
    )  # fmt: skip
    assert [row[:3] for row in rows_of(soften(truth, judged)["a"])[2:]] == [(9.8, 18, "x")]


def test_one_place_with_two_labels_stays_one():
    truth = one((0, 10, "dive", 1), (0, 10, "cliff", 1))
    soft = soften(truth, one((0, 11, "dive", 0.9), (1, 10, "cliff", 0.9)))["a"]
    assert soft.starts.tolist() == [0, 0] and soft.ends.tolist() == [10, 10]


def test_a_teacher_that_knows_nothing_teaches_little():
    """Its scores are alike and its detections are everywhere: none becomes an instance, ends hardly move."""
    truth = one((0, 10, "x", 1), (200, 210, "x", 1))
    judged = one(*((20.0 * place, 20.0 * place + 12, "x", 0.01) for place in range(20)))
    soft = soften(truth, judged)["a"]
    assert len(soft) == 2 and soft.scores.tolist() == [1, 1] and np.abs(soft.ends - [10, 210]).max() <= 1.0


def test_recordings_without_a_judgement_or_an_instance():
    truth = {**one((0, 10, "x", 1)), "b": Segments.empty()}
    soft = soften(truth, {"c": Segments([0], [1], ["x"])})
    assert list(soft) == ["a", "b"] and rows_of(soft["a"]) == [(0, 10, "x", 0.5)] and not len(soft["b"])


times = st.integers(0, 60)
segments = st.lists(st.tuples(times, st.integers(0, 20), st.sampled_from("xy"), st.floats(0, 1)), max_size=8)


def made(rows) -> Segments:
    return Segments([r[0] for r in rows], [r[0] + r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows])


@settings(deadline=None, max_examples=200)
@given(segments.filter(len), segments, segments, st.floats(0, 1))
def test_what_holds_for_all(annotated, found, elsewhere, share):
    truth = {"a": Segments(*(getattr(made(annotated), c) for c in ("starts", "ends", "labels"))), "b": Segments.empty()}
    judged = {"a": made(found), "b": made(elsewhere)}
    soft = soften(truth, judged, share)
    assert list(soft) == ["a", "b"]
    own, more = soft["a"][: len(annotated)], soft["a"][len(annotated) :]
    # Annotated instances are all there, in their order, with at least the annotation's share ...
    assert own.labels.tolist() == truth["a"].labels.tolist()
    assert (own.scores >= 1 - share).all() and (own.scores <= 1).all()
    # ... and ends between what was annotated and what was found.
    for column in ("starts", "ends"):
        before, after = getattr(truth["a"], column), getattr(own, column)
        all_of_it = np.append(getattr(judged["a"], column), before)
        assert (after >= all_of_it.min() - 1e-9).all() and (after <= all_of_it.max() + 1e-9).all()
    for part, taken in ((more, truth["a"]), (soft["b"], truth["b"])):
        assert (part.scores <= share).all() and (part.scores >= LEAST * share - 1e-12).all()
        for start, end, _, _ in part:
            shared = np.minimum(taken.ends, end) - np.maximum(taken.starts, start)
            assert np.maximum(shared, 0).sum() <= FREE * (end - start) + 1e-9
    if share == 0:
        assert soft["a"] == truth["a"] and not len(soft["b"])
    # A teacher that is as sure of everything that is annotated, and of nothing else, changes nothing.
    agreed = soften(truth, truth, share)["a"]
    real = truth["a"].durations > 0
    assert agreed.starts.tolist() == truth["a"].starts.tolist() and agreed.ends.tolist() == truth["a"].ends.tolist()
    assert agreed.scores[real] == pytest.approx(1.0)
