"""Labels of a classifier for class-agnostic segments."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.inference.fusion import check_scores, fuse, read_video_scores
from temporalzoom.segments import Segments

FOUND = Segments([0, 5], [4, 9], ["action", "action"], [0.81, 0.25])
SHARES = st.floats(0, 1, allow_subnormal=False)


def test_each_segment_gets_the_two_best_classes():
    fused = fuse(FOUND, {"swim": 0.04, "run": 0.64, "jump": 0.16})
    assert list(fused) == [
        (0.0, 4.0, "run", pytest.approx(0.72)),
        (5.0, 9.0, "run", pytest.approx(0.4)),
        (0.0, 4.0, "jump", pytest.approx(0.36)),
        (5.0, 9.0, "jump", pytest.approx(0.2)),
    ]


@given(
    st.lists(SHARES, max_size=6),
    st.dictionaries(st.sampled_from("abcdef"), SHARES, min_size=1),
    st.integers(1, 7),
)
def test_fusion_against_one_segment_at_a_time(scores: list[float], classes: dict[str, float], top: int):
    count = len(scores)
    segments = Segments(range(count), range(1, count + 1), ["action"] * count, scores)
    best = sorted(classes, key=lambda label: -classes[label])[:top]
    expected = {(float(i), label): math.sqrt(s * classes[label]) for i, s in enumerate(scores) for label in best}
    fused = fuse(segments, classes, top)
    assert {(start, label): score for start, _, label, score in fused} == pytest.approx(expected)
    assert len(fused) == count * min(top, len(classes))
    assert list(fused.scores) == sorted(fused.scores, reverse=True)


def test_nothing_found_stays_nothing():
    assert len(fuse(Segments.empty(), {"run": 1.0})) == 0


def write(folder: Path, document: object) -> Path:
    (folder / "scores.json").write_text(json.dumps(document))
    return folder / "scores.json"


def test_both_forms_say_the_same(tmp_path: Path):
    expected = {"a": {"run": 0.5, "jump": 0.25}, "b": {"run": 0.0, "jump": 1.0}}
    shared = {"results": {"a": [0.5, 0.25], "b": [0, 1]}, "class": ["run", "jump"]}
    assert read_video_scores(write(tmp_path, shared)) == expected
    assert read_video_scores(write(tmp_path, expected)) == expected


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"results": {"a": [1]}}, ["'class'", "None"]),
        ({"results": {"a": [1]}, "class": ["run", "jump"]}, ["'a'", "1 scores for 2 classes"]),
        ({"results": {"a": [1, 2]}, "class": ["run", "run"]}, ["twice"]),
        ({"results": {"a": [1, "x"]}, "class": ["run", "jump"]}, ["'a'", "number"]),
        ({"results": {"a": [1, -1]}, "class": ["run", "jump"]}, ["'a'", "negative"]),
        ({"results": {"a": {"run": 1}}, "class": ["run"]}, ["'a'", "list"]),
        ({"a": [1, 2]}, ["'a'", "object"]),
        ({"a": {"run": None}}, ["'a'", "'run'", "None"]),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, document: dict, words: list[str]):
    path = write(tmp_path, document)
    with pytest.raises(InputError) as caught:
        read_video_scores(path)
    message = str(caught.value)
    assert "\n" not in message and all(word in message for word in [str(path), *words]), message


def test_a_recording_without_scores_is_an_error():
    check_scores(["a"], {"a": {"run": 1.0}}, "s.json")
    check_scores([], {}, "s.json")
    with pytest.raises(InputError) as caught:
        check_scores("abcde", {"a": {"run": 1.0}, "b": {}}, "s.json")
    assert str(caught.value) == "inference.video_scores: s.json has no scores for 4 of 5 recordings: b, c, d, ..."
