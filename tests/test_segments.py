"""Segments: construction, selection, order, sets of time, and the way to records, tables and pictures."""

import builtins
import doctest
import io
import re
from collections import defaultdict
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from temporalzoom.segments import Segments, container
from temporalzoom.segments.display import clock
from temporalzoom.segments.intervals import lanes

TIMES = st.floats(-1e6, 1e6)
# NumPy's fixed-width text drops trailing NULs, and half of a surrogate pair is no text.
LABELS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
ROWS = st.lists(
    st.tuples(TIMES, TIMES, LABELS, st.floats(0, 1)).map(lambda row: (min(row[:2]), max(row[:2]), *row[2:])),
    max_size=12,
)
# Of whole seconds: a segment is a set of cells, cell `i` from `i` to `i + 1`.
CELLS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 6), st.sampled_from("ab"), st.integers(1, 9)).map(
        lambda row: (row[0], row[0] + row[1], row[2], row[3] / 10)
    ),
    max_size=8,
)


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


def test_columns_of_different_lengths_are_refused():
    for short, name in enumerate(("starts", "ends", "labels", "scores")):
        columns: list = [[0, 1], [1, 2], ["a", "b"], [0.1, 0.2]]
        columns[short] = columns[short][:1]
        with pytest.raises(ValueError, match=f"different lengths.*'{name}': 1"):
            Segments(*columns)


def test_an_end_before_its_start_is_refused_and_zero_length_is_not():
    with pytest.raises(ValueError, match=r"^segment 1, 'run', ends before it starts: 5 to 2 s$"):
        Segments([0, 5], [1, 2], ["sit", "run"])
    assert Segments([2], [2], ["run"]).durations.tolist() == [0]


def test_a_reader_may_keep_what_a_check_will_name():
    backward = Segments.unchecked([0, 5], [1, 2], ["sit", "run"])
    assert backward.durations.tolist() == [1, -3]
    kept = (
        backward[[1]],
        backward.filter(labels="run"),
        Segments.concatenate([backward])[1:],
        backward.sort("start")[1:],
    )
    assert all(list(part) == [(5, 2, "run", 1)] for part in kept)


def test_a_label_outside_the_classes_is_refused():
    with pytest.raises(ValueError, match=r"no class 'jum', did you mean 'jump'\? The classes are 'run', 'jump'$"):
        Segments([0], [1], ["jum"], classes=["run", "jump"])


def test_times_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError):
        Segments(["soon"], [2], ["run"])


def test_empty():
    assert len(Segments.empty()) == 0 and Segments.empty() == Segments([], [], [])
    assert Segments.empty().labels.dtype == object
    for same in (Segments.empty().sort(), Segments.empty().shift(3), Segments.empty().clip(1), Segments.empty().top(5)):
        assert same == Segments.empty()


# Immutability


def test_nothing_can_be_changed(four: Segments):
    for column in ("starts", "ends", "labels", "scores"):
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


def test_rows_by_every_kind_of_index(four: Segments):
    for index, rows in [
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
    ]:
        assert list(four[index]) == [list(four)[row] for row in rows], index  # type: ignore[index]
    for wrong in (4, -5, [0, 4], [True, False], 0.5):
        with pytest.raises(IndexError):
            four[wrong]  # type: ignore[index]


def test_filter_by_score_includes_the_limit(four: Segments):
    assert four.filter(min_score=0.5).labels.tolist() == ["run", "jump", "run"]
    assert len(four.filter(min_score=0.0)) == 4 and len(four.filter(min_score=0.91)) == 0


def test_filter_by_label(four: Segments):
    assert four.filter(labels="run").starts.tolist() == [0, 2]
    assert four.filter(labels={"jump", "sit"}).starts.tolist() == [4, 9]
    assert len(four.filter(labels=[])) == 0 and len(four.filter(labels="ru")) == 0


def test_a_mistyped_label_is_refused_where_the_classes_are_known(four: Segments):
    known = Segments(
        *(getattr(four, c) for c in ("starts", "ends", "labels", "scores")), classes=["jump", "run", "sit", "lie"]
    )
    assert len(known.filter(labels="lie")) == 0  # a class that was not found here
    for part in (known, known[:0], known.top(1), known.shift(1).clip(5), known.union(), known.crop(0, 1)):
        assert part.classes == ("jump", "run", "sit", "lie")
        with pytest.raises(ValueError, match=r"^no class 'jmp', did you mean 'jump'\? .* 'jump', 'run', 'sit', 'lie'$"):
            part.filter(labels=["run", "jmp"])
    with pytest.raises(ValueError, match=r"^no class 'swim'\. The classes are"):
        known.filter(labels="swim")
    assert known == four and len(four.filter(labels="swim")) == 0  # without classes, nobody can tell
    assert Segments.concatenate([known, four]).classes is None
    more = Segments.concatenate([known, Segments([], [], [], classes=["run", "fly"])])
    assert more.classes == ("jump", "run", "sit", "lie", "fly")
    many = Segments([], [], [], classes=[f"class {i}" for i in range(200)])
    with pytest.raises(ValueError, match=r"'class 19' and 180 more$"):
        many.filter(labels="x")


def test_filter_by_time_keeps_what_has_time_in_the_span(four: Segments):
    for between, starts in [
        ((3, 4), [2]),  # [0, 3) ends and [4, 6) begins at its edges
        ((2.9, 4.1), [0, 4, 2]),
        ((8.5, 8.6), []),
        ((-5, 0), []),
        ((-5, 0.1), [0]),
        ((12, 99), []),
        ((0, 12), [0, 4, 2, 9]),
    ]:
        assert four.filter(between=between).starts.tolist() == starts, between


def test_an_instant_lies_in_the_span_that_holds_it():
    instant = Segments([3], [3], ["mark"])
    for span, count in [((3, 4), 1), ((2, 3), 0), ((0, 9), 1), ((3, 3), 0)]:
        assert len(instant.filter(between=span)) == len(instant.crop(*span)) == count, span


@given(ROWS, TIMES)
def test_at_a_moment(rows: list, moment: float):
    assert list(from_rows(rows).at(moment)) == [tuple(row) for row in rows if row[0] <= moment < row[1]]


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


@given(ROWS, TIMES, TIMES)
def test_crop_cuts_and_drops(rows: list, start: float, end: float):
    segments = from_rows([row for row in rows if row[0] < row[1]])
    expected = [(max(s, start), min(e, end), label, score) for s, e, label, score in segments]
    assert list(segments.crop(start, end)) == [row for row in expected if row[0] < row[1]]


# Sets of time, against sets of cells


def cells(segments: Segments) -> dict[str, set[int]]:
    """Label -> the whole seconds that its segments hold, one by one."""
    held: dict[str, set[int]] = defaultdict(set)
    for start, end, label, _ in segments:
        held[label] |= {i for i in range(40) if start <= i < end}
    return held


def of_cells(held: dict[str, set[int]]) -> list[tuple[float, float, str]]:
    """The longest runs of cells of each label, by start and end."""
    runs = []
    for label, there in held.items():
        for first in (i for i in there if i - 1 not in there):
            runs.append((first, next(i for i in range(first, 99) if i not in there), label))
    return sorted(runs)


def spans(segments: Segments) -> list[tuple[float, float, str]]:
    return sorted(row[:3] for row in segments)


@given(CELLS, CELLS)
def test_sets_of_time_are_sets_of_cells(rows_a: list, rows_b: list):
    a, b = from_rows(rows_a), from_rows(rows_b)
    in_a, in_b = cells(a), cells(b)
    assert spans(a.union()) == of_cells(in_a)
    assert spans(a.union(b)) == of_cells({label: in_a[label] | in_b[label] for label in "ab"})
    assert spans(a.intersection(b)) == of_cells({label: in_a[label] & in_b[label] for label in "ab"})
    assert spans(a.difference(b)) == of_cells({label: in_a[label] - in_b[label] for label in "ab"})
    free = set(range(18)) - in_a["a"] - in_a["b"]
    assert spans(a.gaps(18)) == of_cells({"background": free})
    for result in (a.union(b), a.intersection(b), a.difference(b), a.gaps(18)):
        assert list(result) == list(result.sort("start"))


def covered(segments: Segments) -> dict[str, float]:
    merged = segments.union()
    return {label: float(merged.durations[merged.labels == label].sum()) for label in ("", *"abcdefgh")}


LETTERS = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 30), st.sampled_from("abcdefgh"), st.floats(0, 1)).map(
        lambda row: (row[0], row[0] + row[1], *row[2:])
    ),
    max_size=30,
)


@given(LETTERS, LETTERS)
def test_identities_of_sets(rows_a: list, rows_b: list):
    a, b = from_rows(rows_a), from_rows(rows_b)
    both, either, only = covered(a.intersection(b)), covered(a.union(b)), covered(a.difference(b))
    for label, length in covered(a).items():
        assert either[label] + both[label] == pytest.approx(length + covered(b)[label], abs=1e-9)
        assert only[label] + both[label] == pytest.approx(length, abs=1e-9)
    assert spans(a.union(b)) == spans(b.union(a)) and spans(a.intersection(b)) == spans(b.intersection(a))
    assert a.union().union() == a.union() == a.union(a) == a.intersection(a) == a.difference(Segments.empty())
    assert len(a.difference(a)) == len(a.intersection(Segments.empty())) == 0
    assert a.difference(b).union(a.intersection(b)) == a.union() or covered(a) == pytest.approx(
        covered(a.difference(b).union(a.intersection(b)))
    )
    assert float(a.gaps(200).durations.sum()) == pytest.approx(200 - sum_of_all(a), abs=1e-9)


def sum_of_all(segments: Segments) -> float:
    """Seconds in which anything runs."""
    one = Segments(segments.starts, segments.ends, ["any"] * len(segments))
    return float(one.union().durations.sum())


@given(CELLS, CELLS)
def test_scores_of_sets_are_those_of_what_they_are_made_of(rows_a: list, rows_b: list):
    def highest(start: float, end: float, label: str, rows: list) -> float:
        return max(p for s, e, name, p in rows if name == label and max(s, start) < min(e, end))

    a, b = from_rows(rows_a), from_rows(rows_b)
    for start, end, label, score in a.union(b):
        assert score == highest(start, end, label, rows_a + rows_b)
    merged = list(a.union())
    for start, end, label, score in [*a.intersection(b), *a.difference(b)]:
        assert score == highest(start, end, label, merged)


def test_sets_of_nothing_and_touching_segments():
    nothing = Segments.empty()
    assert nothing.union() == nothing.union(nothing) == nothing.intersection(nothing) == nothing.difference(nothing)
    assert (
        len(nothing.union()) == 0 and list(nothing.gaps(5)) == [(0, 5, "background", 1)] and len(nothing.gaps(0)) == 0
    )
    touching = Segments([0, 2, 2], [2, 4, 3], ["run", "run", "sit"])
    assert spans(touching.union()) == [(0, 4, "run"), (2, 3, "sit")]
    assert len(touching[:1].intersection(touching[1:2])) == 0
    assert touching.gaps(9, label="none").labels.tolist() == ["none"]
    assert touching.gaps(1) == Segments.empty() and spans(touching.gaps(4.5)) == [(4, 4.5, "background")]


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


def test_repr_has_a_line_for_each_of_the_first_rows(four: Segments):
    assert repr(four).splitlines() == [
        "Segments(4)",
        "  0.00 -  3.00 s  0.50  'run'",
        "  4.00 -  6.00 s  0.90  'jump'",
        "  2.00 -  8.00 s  0.50  'run'",
        "  9.00 - 12.00 s  0.10  'sit'",
    ]
    many = repr(Segments.concatenate([four] * 5)).splitlines()
    assert len(many) == 12 and many[-1] == "  ... 10 more"
    assert repr(Segments.empty()) == "Segments(0)"
    assert len(repr(Segments([0], [1], ["two\nlines \x1b[31m"])).splitlines()) == 2


class Cells(HTMLParser):
    """The cells of a table, and every tag there is."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)
        self.cells += [""] if tag == "td" else []

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_a_notebook_shows_a_table_and_takes_no_label_for_html(four: Segments):
    evil = Segments([0, 2.5], [2.5, 10], ["<script>alert('x')</script>&amp;", "run"], [0.5, 1])
    page = evil._repr_html_()
    shown = Cells(page)
    assert shown.tags == {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert shown.cells == [
        "0.00",
        "2.50",
        "<script>alert('x')</script>&amp;",
        "0.500",
        "",
        "2.50",
        "10.00",
        "run",
        "1.000",
        "",
    ]
    assert re.findall(r"margin-left:([\d.]+)%;width:([\d.]+)%", page) == [("0.0", "25.0"), ("25.0", "75.0")]
    assert "15 more" in Segments.concatenate([four] * 10)._repr_html_()
    for odd in (Segments.empty(), Segments([1], [1], ["a"]), Segments([np.nan], [np.inf], ["a"], [np.nan])):
        assert "margin" not in odd._repr_html_()


def test_frames_and_back(four: Segments):
    pandas = pytest.importorskip("pandas")
    frame = four.to_frame()
    assert list(frame.columns) == ["start", "end", "label", "score"] and len(frame) == 4
    assert frame.label.tolist() == ["run", "jump", "run", "sit"] and frame.groupby("label").size()["run"] == 2
    assert Segments.from_frame(frame) == four and Segments.from_frame(Segments.empty().to_frame()) == Segments.empty()
    other = pandas.DataFrame({"label": [7], "who": ["me"], "end": [2], "start": [1]})
    assert Segments.from_frame(other) == Segments([1], [2], ["7"])
    with pytest.raises(ValueError, match="no column 'end'; the columns are 'start', 'label', 'score'"):
        Segments.from_frame(frame.drop(columns="end"))


def test_a_frame_without_pandas_says_what_to_install(four: Segments, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install pandas"):
        four.to_frame()


# Pictures


@pytest.fixture
def axes():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def bars(axes) -> list[tuple[float, float, float]]:
    """(start, end, top) of every bar, as it was drawn."""
    boxes = [path.get_extents() for collection in axes.collections for path in collection.get_paths()]
    return sorted((round(box.x0, 6), round(box.x1, 6), round(box.y0, 6)) for box in boxes)


def test_plot_has_a_lane_per_class_and_more_where_they_overlap(axes):
    segments = Segments([0, 2, 5, 1], [3, 4, 6, 6], ["run", "run", "run", "sit"], [0.9, 0.3, 1, 2])
    assert segments.plot(axes, duration=10) is axes
    axes.figure.canvas.draw()
    assert bars(axes) == [(0, 3, 0.1), (1, 6, 2.1), (2, 4, 1.1), (5, 6, 0.1)]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["run", "sit"]
    assert axes.get_yticks().tolist() == [1, 2.5] and axes.get_xlim() == (0, 10) and axes.get_legend() is None


def test_plot_with_truth_outlines_it_above_the_detections(axes):
    Segments([1, 7], [3, 8], ["run", "fly"]).plot(axes, truth=Segments([2, 5], [4, 6], ["run", "sit"]))
    assert bars(axes) == [(1, 3, 1.1), (2, 4, 0.1), (5, 6, 2.1), (7, 8, 3.1)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["truth", "found"]
    hollow = [len(collection.get_facecolor()) == 0 for collection in axes.collections]
    assert hollow == [True, False, True, False]


def test_plot_takes_no_label_for_a_formula_and_names_long_times(axes):
    segments = Segments([0, 5000], [200, 7300], ["pay $5 or $x_", "a\\$b$"])
    segments.plot(axes)
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == "time (h:mm:ss)" and "1:00:00" in [t.get_text() for t in axes.get_xticklabels()]
    assert [clock(x) for x in (0, 75, 3675, -5, 59.7)] == ["0:00", "1:15", "1:01:15", "-0:05", "1:00"]
    shown = [tick._preprocess_math(tick.get_text()) for tick in axes.get_yticklabels()]
    assert shown == [("pay $5 or $x_", False), ("a\\$b$", False)]


def test_plot_of_nothing_and_of_times_that_are_no_numbers(axes):
    Segments.empty().plot(axes)
    Segments([np.nan, 1], [2, 1], ["run", "sit"], [np.nan, 1]).plot(axes, truth=Segments.empty())
    axes.figure.canvas.draw()


@given(LETTERS)
def test_no_two_segments_of_a_lane_overlap_and_no_lane_is_wasted(rows: list):
    segments = from_rows(rows)
    chosen = lanes(segments.starts, segments.ends)
    for lane in set(chosen.tolist()):
        inside = segments[chosen == lane].sort("start")
        assert (inside.starts[1:] >= inside.ends[:-1]).all()
    at_once = max((len(segments.at(start)) for start in segments.starts), default=0)
    assert chosen.max(initial=-1) + 1 <= max(at_once, min(len(segments), 1)) + 1


def test_examples_in_the_docstrings():
    results = doctest.testmod(container)
    assert results.failed == 0 and results.attempted > 20


def test_labels_are_kept_to_the_last_character():
    """Fixed-width strings of numpy drop a NUL at the end."""
    names = ["walk", "walk\0", "walk\0\0", ""]
    segments = Segments([0, 1, 2, 3], [1, 2, 3, 4], names)
    assert segments.labels.tolist() == names and [row[2] for row in segments] == names
    assert segments.filter(labels="walk\0").starts.tolist() == [1]
    assert segments.union().labels.tolist() == names
    assert Segments.from_records(segments.to_records()) == segments
    assert segments != Segments([0, 1, 2, 3], [1, 2, 3, 4], ["walk"] * 4)


def test_one_long_label_does_not_lengthen_the_others():
    segments = Segments(np.zeros(20_000), np.ones(20_000), ["x" * 2_000_000, *["y"] * 19_999])
    assert segments.labels.nbytes < 1e6
    assert len(segments.sort("start").filter(labels="y").shift(1)) == 19_999
    assert len(Segments.concatenate([segments, segments])) == 40_000


def test_labels_that_are_no_strings_become_some():
    assert Segments([0, 1], [1, 2], [3, np.str_("a")]).labels.tolist() == ["3", "a"]
    assert Segments([0, 1], [1, 2], np.array(["b", "a"])).labels.tolist() == ["b", "a"]
    assert all(type(label) is str for label in Segments([0], [1], np.array(["b"], object)).labels)
