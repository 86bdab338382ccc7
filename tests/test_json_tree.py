"""JSON without the words that it does not have."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from members_here import run_members_here
from temporalzoom.json_tree import nan_to_null, null_to_nan
from temporalzoom.workflows.sweep import Member, run_sweep

NUMBERS = st.floats(allow_infinity=False) | st.integers() | st.text() | st.booleans()
TREES = st.recursive(NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def same(one: object, other: object) -> bool:
    """Equal, NaN to NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and one == other


@given(TREES)
def test_numbers_come_back_and_no_reader_stumbles(tree):
    text = json.dumps(nan_to_null(tree), allow_nan=False)
    assert same(tree, null_to_nan(json.loads(text)))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_has_no_word_for_is_null(value):
    assert nan_to_null({"a": [value, (1, value)], "b": 2.5}) == {"a": [None, [1, None]], "b": 2.5}


def test_a_member_that_found_nothing(tiny_config, tmp_path, monkeypatch):
    """Its boundary error is of no segment."""
    run_members_here(monkeypatch)
    config = tiny_config("training.steps=1", "inference.min_score=1.0")
    for _ in range(2):  # trained, and read
        done = run_sweep([Member("one", config)], tmp_path).done["one"]
        assert math.isnan(done["boundary_error_frames"]) and done["average"] == 0
    stored = json.loads((tmp_path / "one/result.json").read_text(), parse_constant=pytest.fail)
    assert stored["boundary_error_frames"] is None


def test_scores_of_nothing_as_json(tmp_path, tzoom):
    truth = {"database": {"a": {"duration": 9, "fps": 10, "annotations": [{"label": "run", "segment": [1, 2]}]}}}
    (tmp_path / "T.json").write_text(json.dumps(truth))
    (tmp_path / "P.json").write_text(json.dumps({"results": {"a": []}}))
    code, out, err = tzoom("eval", "--predictions", tmp_path / "P.json", "--truth", tmp_path / "T.json", "--json")
    assert code == 0, err
    assert json.loads(out, parse_constant=pytest.fail)["boundary_error_frames"] is None
