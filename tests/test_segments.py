"""Segments: construction, selection, order, and the way to records and back."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from temporalzoom.segments import Segments

TIMES = st.floats(-1e6, 1e6)
# NumPy's fixed-width text drops trailing NULs, and half of a surrogate pair is no text.
LABELS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
ROWS = st.lists(st.tuples(TIMES, TIMES, LABELS, st.floats(0, 1)), max_size=12)


def from_rows(rows: list) -> Segments:
    return Segments(*zip(*rows, strict=True)) if rows else Segments.empty()


def text(segments: Segments, **options: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(segments.table(**options))  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def four() -> Segments:
    return Segments([0, 4, 2, 9], [3, 6, 8, 12], ["run", "jump", "run", "sit"], [0.5, 0.9, 0.5, 0.1])


# Construction


def test_columns_are_float64_and_scores_of_annotations_are_one():
    segments = Segments([1], [2], ["run"])
    assert (segments.starts.dtype, segments.ends.dtype, segments.scores.dtype) == (np.float64,) * 3
    assert segments.scores.tolist() == [1.0] and segments.durations.tolist() == [1.0]


@pytest.mark.parametrize("short", range(4))
def test_columns_of_different_lengths_are_refused(short: int):
    columns: list = [[0, 1], [1, 2], ["a", "b"], [0.1, 0.2]]
    columns[short] = columns[short][:1]
    with pytest.raises(ValueError, match="different lengths") as caught:
        Segments(*columns)
    assert f"'{('starts', 'ends', 'labels', 'scores')[short]}': 1" in str(caught.value)


def test_times_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError):
        Segments(["soon"], [2], ["run"])


def test_empty():
    assert len(Segments.empty()) == 0 and Segments.empty() == Segments([], [], [])
    assert Segments.empty().labels.dtype.kind == "U"
    for same in (Segments.empty().sort(), Segments.empty().shift(3), Segments.empty().clip(1), Segments.empty().top(5)):
        assert same == Segments.empty()


# Immutability


@pytest.mark.parametrize("column", ["starts", "ends", "labels", "scores"])
def test_nothing_can_be_changed(four: Segments, column: str):
    with pytest.raises(AttributeError):
        setattr(four, column, getattr(four, column))
    with pytest.raises(ValueError, match="read-only"):
        getattr(four, column)[0] = getattr(four, column)[1]


def test_the_arrays_given_stay_with_their_owner():
    starts = np.array([1.0, 2.0])
    segments = Segments(starts, [3, 4], ["a", "b"])
    starts[0] = 99
    assert segments.starts.tolist() == [1, 2]
    assert starts.flags.writeable


# Selection


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (0, [0]),
        (-1, [3]),
        (np.int64(2), [2]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        ([3, 0, 0], [3, 0, 0]),
        (np.array([1, -1]), [1, 3]),
        ([True, False, True, False], [0, 2]),
        (np.zeros(4, bool), []),
        ([], []),
        ((), []),
        (np.array([]), []),
    ],
)
def test_rows_by_every_kind_of_index(four: Segments, index: object, rows: list[int]):
    assert list(four[index]) == [list(four)[row] for row in rows]  # type: ignore[index]


@pytest.mark.parametrize("index", [4, -5, [0, 4], [True, False], 0.5])
def test_an_index_that_does_not_fit_is_refused(four: Segments, index: object):
    with pytest.raises(IndexError):
        four[index]  # type: ignore[index]


def test_filter_by_score_includes_the_limit(four: Segments):
    assert four.filter(min_score=0.5).labels.tolist() == ["run", "jump", "run"]
    assert len(four.filter(min_score=0.0)) == 4 and len(four.filter(min_score=0.91)) == 0


def test_filter_by_label(four: Segments):
    assert four.filter(labels="run").starts.tolist() == [0, 2]
    assert four.filter(labels={"jump", "sit"}).starts.tolist() == [4, 9]
    assert len(four.filter(labels=[])) == 0 and len(four.filter(labels="ru")) == 0


@pytest.mark.parametrize(
    ("between", "starts"),
    [
        ((3, 4), [0, 4, 2]),
        ((3.1, 3.9), [2]),
        ((8.5, 8.6), []),
        ((-5, 0), [0]),
        ((12, 99), [9]),
        ((0, 12), [0, 4, 2, 9]),
    ],
)
def test_filter_by_time_keeps_what_touches_the_span(four: Segments, between: tuple, starts: list):
    assert four.filter(between=between).starts.tolist() == starts


def test_filters_add_up(four: Segments):
    assert list(four.filter(min_score=0.5, labels="run", between=(7, 8))) == [(2.0, 8.0, "run", 0.5)]
    assert four.filter() == four


# Order


@given(ROWS)
def test_sort_agrees_with_pythons_stable_sort(rows: list):
    segments = from_rows(rows)
    assert list(segments.sort()) == sorted(segments, key=lambda row: -row[3])
    assert list(segments.sort("start")) == sorted(segments, key=lambda row: row[:2])
    assert list(segments.top(3)) == sorted(segments, key=lambda row: -row[3])[:3]


def test_ties_keep_their_order():
    labels = [f"l{i}" for i in range(40)]  # more than the 16 that an unstable sort leaves to insertion sort
    assert Segments([1.0] * 40, [2.0] * 40, labels).sort().labels.tolist() == labels
    assert Segments([1.0] * 40, [2.0] * 40, labels).sort("start").labels.tolist() == labels


def test_sort_by_something_else_is_refused(four: Segments):
    with pytest.raises(ValueError, match="'label'"):
        four.sort("label")


# Time


def test_shift_moves_times_only(four: Segments):
    moved = four.shift(-2.5)
    assert moved.starts.tolist() == [-2.5, 1.5, -0.5, 6.5] and moved.ends.tolist() == [0.5, 3.5, 5.5, 9.5]
    assert np.array_equal(moved.labels, four.labels) and np.array_equal(moved.scores, four.scores)


@given(ROWS, st.floats(0, 1e6))
def test_clip_limits_every_time_and_nothing_else(rows: list, duration: float):
    segments = from_rows(rows)
    expected = [(min(max(s, 0), duration), min(max(e, 0), duration), label, score) for s, e, label, score in segments]
    assert list(segments.clip(duration)) == expected


# Together and apart


def test_concatenate_keeps_the_order_and_long_labels(four: Segments):
    other = Segments([7], [8], ["a much longer label"], [0.3])
    both = Segments.concatenate([other, Segments.empty(), four])
    assert list(both) == [*other, *four]
    assert Segments.concatenate([]) == Segments.empty() == Segments.concatenate([Segments.empty()])
    assert list(Segments.concatenate(part for part in (four, other))) == [*four, *other]


@given(ROWS)
def test_records_and_back_is_the_same(rows: list):
    segments = from_rows(rows)
    assert Segments.from_records(segments.to_records()) == segments
    assert [tuple(row) for row in rows] == list(segments)


def test_records_have_the_form_of_the_fields_files():
    records = Segments([1 / 3], [2], ["run"], [0.123456]).to_records(digits=3)
    assert records == [{"label": "run", "segment": [0.333, 2.0], "score": 0.123}]
    assert [type(value) for value in (*records[0]["segment"], records[0]["score"], records[0]["label"])] == [
        float, float, float, str,
    ]  # fmt: skip
    assert Segments.from_records([{"label": 7, "segment": [0, 1]}]) == Segments([0], [1], ["7"], [1.0])


def test_equality_sees_every_column(four: Segments):
    assert four == Segments(four.starts, four.ends, four.labels, four.scores)
    assert four != four.shift(1e-9) and four != four[:3] and four != "segments"
    assert four != Segments(four.starts, four.ends, four.labels)
    assert four != Segments(four.starts, four.ends, ["x", *four.labels[1:]], four.scores)


# For the eye


def test_table_shows_every_column_and_says_what_it_leaves_out(four: Segments):
    shown = text(four, title="clip7", limit=2)
    assert "clip7" in shown and "2 more" in shown
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if "│" in line]
    assert cells == [["0.00", "3.00", "3.00", "run", "0.500"], ["4.00", "6.00", "2.00", "jump", "0.900"]]
    assert "more" not in text(four) and "sit" in text(four)


def test_table_takes_no_label_or_title_for_markup():
    shown = text(Segments([0], [1], ["open [red]door"]), title="take [1/bold] [red]2")
    assert "open [red]door" in shown and "take [1/bold] [red]2" in shown


def test_repr_is_short(four: Segments):
    assert repr(four) == "Segments(4: 0.00-3.00 run 0.50; 4.00-6.00 jump 0.90; 2.00-8.00 run 0.50; 9.00-12.00 sit 0.10)"
    assert repr(Segments.concatenate([four, four])).endswith("; ...)")
