"""Which recordings train and which are scored: by pattern, by subject, for tuning."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.config import FolderData
from temporalzoom.datasets.splits import FOLDS, subject, with_subsets
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, Recording


def make_annotations(people: dict[str, str | None]) -> Annotations:
    """people: the subset of each; two recordings of everybody."""
    recordings = [
        Recording(f"{who}_{i}", subset, extra={"subject": who}) for who, subset in people.items() for i in (1, 2)
    ]
    return Annotations({r.name: r for r in recordings}, ("walk",))


def subsets(annotations: Annotations, **settings: Any) -> dict[str, str | None]:
    found = with_subsets(annotations, FolderData.model_validate(settings))
    return {name: recording.subset for name, recording in found.recordings.items()}


def complaint(annotations: Annotations, **settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        subsets(annotations, **settings)
    return str(caught.value)


TRIO = make_annotations({"ann": "train", "bob": "test", "cid": None})


def test_without_a_wish_nothing_changes():
    assert with_subsets(TRIO, FolderData()) == TRIO


def test_patterns_name_the_test_recordings():
    found = subsets(TRIO, test_recordings=["ann*", "c*_2"])
    assert [name for name, subset in found.items() if subset == "test"] == ["ann_1", "ann_2", "cid_2"]
    assert Counter(found.values()) == {"test": 3, "train": 3}
    other = subsets(TRIO, test_recordings=["bob_1"], train_subset="learn", test_subset="score")
    assert other["bob_1"] == "score" and set(other.values()) == {"learn", "score"}


def test_patterns_are_case_sensitive_and_each_must_match():
    assert complaint(TRIO, test_recordings=["ann*", "ANN*"]) == "data.test_recordings: no recording is called 'ANN*'"


def test_one_subject_is_left_out():
    found = subsets(TRIO, leave_out="bob")
    assert [name for name, subset in found.items() if subset == "test"] == ["bob_1", "bob_2"]
    assert complaint(TRIO, leave_out="dan") == "data.leave_out: no subject 'dan'; there are ann, bob, cid"


def test_a_recording_without_a_subject_stands_for_itself():
    alone = Annotations({name: Recording(name) for name in ("x", "y")}, ("walk",))
    assert subsets(alone, leave_out="y") == {"x": "train", "y": "test"}
    assert subject(Recording("x", extra={"subject": 7})) == "7"


@given(st.integers(4, 20), st.integers(0, 5))
def test_folds_share_out_the_training_subjects_and_never_touch_the_test(train: int, test: int):
    people = {f"s{i:02d}": "train" if i < train else "test" for i in range(train + test)}
    annotations = make_annotations(people)
    held_out: list[set[str]] = []
    for fold in range(FOLDS):
        found = with_subsets(annotations, FolderData(validation_fold=fold)).recordings.values()
        assert {subject(r) for r in found} == {who for who, subset in people.items() if subset == "train"}
        held_out.append({subject(r) for r in found if r.subset == "test"})
        assert not held_out[-1] & {subject(r) for r in found if r.subset == "train"}
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == train  # everybody is held out once
    assert max(map(len, held_out)) - min(map(len, held_out)) <= 1


def test_a_fold_without_the_one_left_out():
    annotations = make_annotations({name: None for name in "abcdef"})
    found = subsets(annotations, leave_out="b", validation_fold=1)
    assert not any(name.startswith("b") for name in found)
    assert {name[0] for name, subset in found.items() if subset == "test"} == {"c"}  # of a, c, d, e, f


@given(st.integers(2, 12), st.integers(0, 8))
def test_cross_validation_scores_everybody_once(folds: int, more: int):
    people = {f"s{i:02d}": "train" if i % 3 else "test" for i in range(folds + more)}  # whatever the file says
    tested: Counter[str] = Counter()
    for fold in range(folds):
        found = with_subsets(make_annotations(people), FolderData(folds=folds, fold=fold)).recordings.values()
        assert {subject(r) for r in found} == set(people)
        assert not {subject(r) for r in found if r.subset == "test"} & {
            subject(r) for r in found if r.subset == "train"
        }
        tested.update(r.name for r in found if r.subset == "test")
    assert set(tested.values()) == {1} and len(tested) == 2 * len(people)


def test_folds_are_tuned_without_their_test():
    annotations = make_annotations({name: "train" for name in "abcdefgh"})
    found = subsets(annotations, folds=4, fold=1, validation_fold=0)
    assert not any(name[0] in "bf" for name in found)  # of a, c, d, e, g, h, every fourth is held out
    assert {name[0] for name, subset in found.items() if subset == "test"} == {"a", "g"}


def test_folds_that_do_not_fit():
    assert complaint(TRIO, folds=4) == "data.folds: needs at least 4 subjects, there are 3"
    with pytest.raises(ValueError, match="3 folds are numbered from 0 to 2, got 3"):
        FolderData(folds=3, fold=3)
    with pytest.raises(ValueError, match="number 2 of how many"):
        FolderData(fold=2)
    with pytest.raises(ValueError, match="so does leave_out"):
        FolderData(folds=3, leave_out="ann")


def test_too_few_subjects_for_folds():
    said = "data.validation_fold: needs at least 4 subjects, there are 3"
    people = {"a": "train", "b": "train", "c": "train", "d": "test"}
    assert complaint(make_annotations(people), validation_fold=0) == said


@pytest.mark.parametrize("fold", [-1, 4])
def test_there_are_four_folds(fold: int):
    with pytest.raises(ValueError, match="validation_fold"):
        FolderData(validation_fold=fold)
