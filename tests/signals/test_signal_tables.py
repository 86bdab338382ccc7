"""Tables as people write them: separators, headers, time columns, labels per row, what is left out and what refused."""

import csv
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.signals.row_labels import label_runs
from temporalzoom.signals.signal_files import SIGNAL_SUFFIXES, read_signal


@pytest.fixture
def write(tmp_path):
    def to_file(text: str, name: str = "walk.csv", encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return to_file


def table(*columns, header: str = "", mark: str = ",") -> str:
    rows = [mark.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([*([header] if header else []), *rows]) + "\n"


N = 60
T = [f"{k / 50:.2f}" for k in range(N)]
A = [f"{np.sin(k):.4f}" for k in range(N)]
B = [f"{np.cos(k):.4f}" for k in range(N)]
CLOCK = [f"12:00:0{k // 50}.{k % 50 * 20:03d}" for k in range(N)]
VALUES = np.array([A, B], np.float32).T


def same(signal, fps=50.0, channels=("a", "b")):
    np.testing.assert_array_equal(signal.values, VALUES)
    assert signal.fps == fps and signal.channels == channels and signal.values.dtype == np.float32


def test_separators_quotes_comments_and_encodings(write):
    same(read_signal(write(table(T, A, B, header="time,a,b"))))
    same(read_signal(write(table(T, A, B, header="time;a;b", mark=";"))))
    same(read_signal(write(table(T, A, B, header="time\ta\tb", mark="\t"), "walk.tsv")))
    same(read_signal(write(table(T, A, B, header="time, a, b", mark=", "))))
    same(read_signal(write("# a phone\n\n" + table(T, A, B, header='"time","a","b"').replace("\n", "\r\n"))))
    same(read_signal(write(table(T, A, B, header="time,a,b"), encoding="utf-16")))
    same(read_signal(write(table(T, A, B, header="\ufefftime,a,b"))))
    same(read_signal(write("\n".join(line + "," for line in table(T, A, B, header="time,a,b").splitlines()))))
    commas = table(*([cell.replace(".", ",") for cell in column] for column in (T, A, B)), header="time;a;b", mark=";")
    same(read_signal(write(commas)))
    latin = read_signal(
        write(table(T, A, ["Préparation"] * 30 + ["Geste"] * 30, header="time,a,phase"), encoding="cp1252")
    )
    assert (
        latin.labels.labels.tolist() == ["Préparation", "Geste"]
        and latin.notes[0] == "Not UTF-8: read as Windows-1252."
    )


def test_without_a_header(write):
    same(read_signal(write(table(T, A, B))), channels=())
    same(read_signal(write(table(A, B))), fps=None, channels=())
    numbered = read_signal(write(table(range(N), A, B, header=",0,1")))  # as pandas writes arrays
    same(numbered, fps=None, channels=("0", "1"))
    assert "Left out: '' (counts rows)." in numbered.notes
    same(read_signal(write("# time,a,b\n" + table(T, A, B))))  # as numpy.savetxt writes a header
    labelled = read_signal(write(table(T, A, B, ["walk"] * 30 + ["sit"] * 30)))
    same(labelled, channels=())
    assert list(labelled.labels) == [(0.0, 0.6, "walk", 1.0), (0.6, 1.2, "sit", 1.0)]


@pytest.mark.parametrize(
    ("name", "stamps", "note", "start"),
    [
        ("time_ms", [20 * k for k in range(N)], "in ms: as the name 'time_ms' says", 0.0),
        ("timestamp", [1_700_000_000_000 + 20 * k for k in range(N)], "Unix time, from 2023-11-14 22:13:20 UTC", 1.7e9),
        ("Time (us)", [500 + 20_000 * k for k in range(N)], "in us", 5e-4),
        ("ts", [1_700_000_000_000_000_000 + 20_000_000 * k for k in range(N)], "in ns: Unix time", 1.7e9),
        ("date", [f"2024-05-01T{clock}Z" for clock in CLOCK], "ISO 8601 such as 2024-05-01T12:00:00.000Z", 1714564800),
        ("clock", CLOCK, "hours:minutes:seconds such as", 43200.0),
        ("something", T, "Column 'something' is the time, in s", 0.0),
    ],
)  # fmt: skip
def test_time_columns(write, name, stamps, note, start):
    signal = read_signal(write(table(stamps, A, B, header=f"{name},a,b")))
    same(signal)
    assert signal.start == pytest.approx(start, abs=1e-3) and any(note in said for said in signal.notes), signal.notes


def test_of_two_clocks_the_one_with_a_unit(write):
    """As phones log: Unix time without a unit, and seconds since the start."""
    unix = [1_700_000_000_000_000_000 + 20_000_000 * k for k in range(N)]
    signal = read_signal(write(table(unix, T, A, B, header="time,seconds_elapsed,a,b")))
    same(signal)
    assert signal.start == 0 and "Left out: 'time' (another clock)." in signal.notes


def test_without_a_clock_the_user_says_it(write):
    path = write(table(A, B, header="a,b"))
    bare = read_signal(path)
    same(bare, fps=None)
    assert "No time column" in bare.notes[0]
    same(read_signal(path, fps=50.0))


def test_frames_that_are_missing_are_unknown(write):
    frames = [k + (k >= 20) * 3 for k in range(N)]
    phase = ["a"] * 20 + ["b"] * 40
    signal = read_signal(write(table(frames, A, B, phase, header="frame,a,b,phase")), fps=25.0)
    assert signal.values.shape == (63, 2) and np.isnan(signal.values[20:23]).all()
    np.testing.assert_array_equal(signal.values[23:], VALUES[20:])
    assert list(signal.labels) == [(0.0, 0.8, "a", 1.0), (pytest.approx(0.92), pytest.approx(2.52), "b", 1.0)]
    assert "3 frames that column 'frame' skips are unknown rows." in signal.notes


def test_cells_that_are_missing(write):
    a = ["", "NaN", "null", "NA", *A[4:]]
    signal = read_signal(write(table(T, a, B, header="time,a,b")))
    assert np.isnan(signal.values[:4, 0]).all() and not np.isnan(signal.values[4:]).any()
    bools = read_signal(write(table(T, ["True", "false"] * 30, header="time,on")))
    assert bools.values[:3, 0].tolist() == [1, 0, 1]


def test_columns_that_are_no_channels_are_said(write):
    text = table(range(N), T, A, B, ["s01"] * N, [""] * N, header="index,time,a,b,subject,nothing")
    signal = read_signal(write(text))
    same(signal)
    assert "Left out: 'index' (counts rows), 'subject' (text), 'nothing' (empty)." in signal.notes
    assert signal.labels is None


def test_columns_asked_for(write):
    path = write(table(T, A, B, ["x"] * 30 + ["y"] * 30, header="time,a,b,phase"))
    np.testing.assert_array_equal(read_signal(path, columns=["b", "a"]).values, VALUES[:, ::-1])
    assert read_signal(path, columns=["B"]).channels == ("b",)
    np.testing.assert_array_equal(read_signal(path, columns=[1]).values, VALUES[:, 1:])
    for columns, message in (
        (["c"], "no channel 'c'; it has 'a', 'b'"),
        (["phase"], "column 'phase' does not hold numbers"),
        ([2], "no channel 2"),
        ([], "none is named"),
        (["a", "A"], "named twice"),
    ):
        with pytest.raises(InputError, match=message):
            read_signal(path, columns=columns)


# Labels per row


def test_a_label_per_row(write):
    phase = ["", "", *["walk"] * 28, *["None"] * 10, *["sit down"] * 20]
    signal = read_signal(write(table(T, A, B, phase, header="time,a,b,what")))
    assert list(signal.labels) == [(0.04, 0.6, "walk", 1.0), (0.8, 1.2, "sit down", 1.0)]
    [note] = [note for note in signal.notes if "label" in note]
    assert note == (
        "Column 'what' is a label per row: 2 segments of walk, sit down; "
        "12 rows are background (empty, none, null or background)."
    )
    rest = read_signal(write(table(T, A, B, ["rest"] * 30 + ["idle"] * 30, header="time,a,b,what")))
    assert rest.labels.labels.tolist() == ["rest", "idle"]  # what is background beyond that is for the caller


def test_whole_numbers_are_labels_if_the_name_says_so(write):
    codes = [0] * 20 + [3] * 40
    signal = read_signal(write(table(T, A, B, codes, header="time,a,b,activity_id")))
    assert signal.labels.labels.tolist() == ["0", "3"] and signal.channels == ("a", "b")
    plain = read_signal(write(table(T, A, B, codes, header="time,a,b,temperature")))
    assert plain.labels is None and plain.channels == ("a", "b", "temperature")
    asked = read_signal(write(table(T, A, B, codes, header="time,a,b,temperature")), label_column="temperature")
    assert asked.labels.labels.tolist() == ["0", "3"] and asked.channels == ("a", "b")


def test_two_columns_that_may_be_labels(write):
    one, two = ["x"] * 30 + ["y"] * 30, ["u"] * 15 + ["v"] * 45
    path = write(table(T, A, one, two, header="time,a,hand,room"))
    with pytest.raises(
        InputError, match=r"walk\.csv: 'hand' and 'room' may both be labels; say which one: label_column"
    ):
        read_signal(path)
    assert read_signal(path, label_column="room").labels.labels.tolist() == ["u", "v"]
    assert read_signal(path, label_column="").labels is None
    with pytest.raises(InputError, match="no column 'phase' of labels; it has a, hand, room"):
        read_signal(path, label_column="phase")
    named = read_signal(write(table(T, A, one, two, header="time,a,phase,room")))
    assert named.labels.labels.tolist() == ["x", "y"] and "Left out: 'room' (text)." in named.notes


def test_text_that_is_no_label(write):
    notes = [f"remark {k}" for k in range(N)]
    assert read_signal(write(table(T, A, notes, header="time,a,remark"))).labels is None
    alternating = ["left", "right"] * 30
    assert read_signal(write(table(T, A, alternating, header="time,a,foot"))).labels is None


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(1, 5)), min_size=1, max_size=12))
def test_runs_cover_their_rows_and_nothing_else(runs: list[tuple[str, int]]):
    labels = np.array([label for label, count in runs for _ in range(count)], np.str_)
    segments = label_runs(labels, np.arange(len(labels)) * 0.5, 0.5)
    for row, label in enumerate(labels):
        assert segments.at(row * 0.5 + 0.25).labels.tolist() == ([label] if label else [])
    merged = [label for k, label in enumerate(labels) if label and (k == 0 or labels[k - 1] != label)]
    assert segments.labels.tolist() == merged


def test_runs_over_missing_rows():
    labels = np.array(["a", "a", "a", "b", "b", "b"], np.str_)
    short = label_runs(labels, np.array([0, 0.1, 0.7, 0.8, 1.5, 1.6]), 0.1)
    np.testing.assert_allclose([*short.starts, *short.ends], [0, 0.8, 0.8, 1.7])  # less than a second, the same label
    long = label_runs(labels, np.array([0, 0.1, 5.0, 5.1, 5.2, 5.3]), 0.1)
    np.testing.assert_allclose(long.ends, [0.2, 5.1, 5.4])
    change = label_runs(labels, np.array([0, 0.1, 0.2, 0.9, 1.0, 1.1]), 0.1)
    np.testing.assert_allclose([*change.starts, *change.ends], [0, 0.9, 0.3, 1.2])  # when it changed nobody knows


# What is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty table"),
        ("# nothing\n\n", "an empty table"),
        (table(T, A, header="time,a") + "1.3,0.1,5\n", "row 61 has 3 cells, the first one 2"),
        (table(T, [*A[:-1], "broken"], header="time,a"), "column 'a', row 60: 'broken' is not a number"),
        (table([*T[:-1], "yesterday"], A, header="time,a"), "column 'time', row 60: 'yesterday' is not a number"),
        (table([*T[:30], *T[:30]], A, header="time,a"), r"times of column 'time', row 31: time runs backwards"),
        (table(T, ["x"] * N, header="time,who"), "no column of numbers besides the time; it has 'time', 'who'"),
        (table(T, A, B, header="time,a,a"), "two columns are called 'a'"),
        (table(["2024-01-01T00:00:00"] * 5 + ["soon"] * 5, A[:10], header="time,a"), "row 6: 'soon' is not a time"),
        (table([3] * N, A, header="time,a"), "all rows have the same time"),
        (table(range(0, 40_000, 2), np.arange(20_000) % 7, header="time,a"), "0.5 Hz in s or 500 Hz in ms"),
    ],
)  # fmt: skip
def test_bad_tables_say_what_is_wrong(write, text, message):
    path = write(text)
    with pytest.raises(InputError, match=message) as caught:
        read_signal(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(InputError, match="not a table of text"):
        read_signal(path)


# Real recordings


@pytest.mark.parametrize("name", ["a1", "a2", "a3", "b1", "b3", "c1", "c3"])
def test_gesture_phase(shared_data, name):
    """Published CSV: whole milliseconds, irregular, gaps of up to 40 s, a label per row."""
    path = shared_data / "gesture_phase" / f"{name}_raw.csv"
    if not path.is_file():
        pytest.skip("gesture_phase is not beside this checkout")
    signal = read_signal(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    times = np.array([float(row["timestamp"]) for row in rows]) / 1000
    assert 29 < signal.fps < 33 and signal.start == times[0] and signal.keypoints == "xyz"
    assert signal.channels == tuple(rows[0])[:18]
    assert "in ms" in signal.notes[0] and abs(signal.duration - (times[-1] - times[0])) < 2 / signal.fps

    # Every row has its label, and labels are nowhere but at rows.
    labels = [row["phase"] for row in rows]
    for when, label in zip(times - times[0], labels, strict=True):
        if when < signal.duration:
            assert signal.labels.at(when + 1e-6).labels.tolist() == [label]
    gaps = np.flatnonzero(np.diff(times) > 1)
    runs = 1 + sum(a != b or k in gaps for k, (a, b) in enumerate(pairwise(labels)))
    assert len(signal.labels) == runs
    for gap in gaps:
        assert not len(signal.labels.at((times[gap] + times[gap + 1]) / 2 - times[0]))

    # Known rows are near the row of the file that is nearest in time; the longest gap is unknown.
    grid = times[0] + np.arange(len(signal.values)) / signal.fps
    column = np.array([float(row["rhx"]) for row in rows])
    expected = np.interp(grid, times, column)
    known = ~np.isnan(signal.values[:, 3])
    nearest = np.abs(grid[:, None] - times).min(axis=1)
    assert (nearest[~known] > 0.4 / signal.fps).all() and (nearest[known] < 2 / signal.fps).all()
    assert np.abs(signal.values[known, 3] - expected[known]).mean() < 0.01


# Against pandas, and against anything


@given(
    st.lists(st.tuples(*[st.floats(width=32, allow_infinity=False)] * 3), min_size=4, max_size=30),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_what_pandas_writes_is_what_is_read(tmp_path_factory, rows, mark, index):
    pandas = pytest.importorskip("pandas")
    path = tmp_path_factory.mktemp("pandas") / "walk.csv"
    array = np.array(rows, np.float32)
    array[:, 0] = np.arange(len(rows)) % 2  # no column rises, none is empty
    array[0] = [0.5, 1.5, -2.5]
    array[1:3] = [[0, -1, -3], [1, 4, 2]]
    frame = pandas.DataFrame(array, columns=["a", "b", "c"])
    frame.to_csv(path, sep=mark, index=index, decimal="," if mark == ";" else ".")
    signal = read_signal(path)
    assert signal.channels == ("a", "b", "c") and signal.fps is None
    np.testing.assert_array_equal(signal.values, array)


CELLS = [
    "",
    "1",
    "2.5",
    "-3e2",
    "nan",
    "walk",
    "sit",
    "a,b",
    '"',
    "2024-01-01T00:00:00",
    "12:00",
    "1,5",
    "#",
    "inf",
    "é",
]
HEADS = ["time", "t", "frame", "label", "phase", "x", "nose_x", "timestamp", "", "time_ms", "scorer", "bodyparts"]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(HEADS), min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4), max_size=14),
    st.sampled_from([",", ";", "\t"]),
    st.none() | st.floats(0.1, 1000),
)
def test_anything_is_read_or_refused_in_one_line(tmp_path_factory, heads, rows, mark, fps):
    path = tmp_path_factory.mktemp("any") / "walk.csv"
    path.write_text("\n".join(mark.join(cells) for cells in [heads, *rows]), encoding="utf-8")
    try:
        signal = read_signal(path, fps=fps)
    except InputError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
    else:
        assert signal.values.ndim == 2 and signal.values.shape[1] > 0 and len(signal.values) > 0


@given(st.binary(max_size=300), st.sampled_from(SIGNAL_SUFFIXES))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("bytes") / f"walk{suffix}"
    path.write_bytes(content)
    try:
        read_signal(path)
    except InputError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
