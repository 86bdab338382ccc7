"""How results read: corrected over what is shown, whole words at 80 columns, the same rows on a page."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from temporalzoom.experiments.reading import command, compared_systems, differences_grid, map_notes
from temporalzoom.experiments.rendering import Grid, Interval, markdown, terminal

SYSTEM = {
    "mAP": {t: [97.1, 93.4, 99.4] for t in ("0.3", "0.5", "0.7", "0.8", "0.9")},
    "average": [95.7, 91.8, 98.4],
    "flops_ratio": [0.46, 0.45, 0.47],
    "latency_ratio": [0.69, 0.6, 0.7],
    "parameters": 1_380_000,
}
REACH = {
    "durations": 64,
    "longer": 0.12,
    "trained": {"crops": 4, "length": 128, "width": 64},
    "uniform-6": {"crops": 8, "length": 192, "width": 128},
}


def cell(p: float) -> dict[str, float]:
    return {"value": 3.2, "low": -10.4, "high": 17.1, "p": p}


def results(**other) -> dict:
    columns = ("0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "average")
    return {
        "data_set": "sbhar",
        "table": "retrofit",
        "baseline": "uniform-6",
        "seeds": [0, 1],
        "test_recordings": 19,
        "test_instances": 365,
        "systems": {"uniform-6": SYSTEM, "temporalmaxer+bdr": SYSTEM},
        "differences": {"temporalmaxer+bdr - temporalmaxer": {key: cell(0.001) for key in columns}},
        **other,
    }


def shown(grids: list[Grid], width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    for grid in grids:
        console.print(terminal(grid, width))
    return console.file.getvalue()


def test_holm_corrects_over_what_is_shown():
    """Five columns are shown: the smallest p is multiplied by five, whatever the columns that are not shown hold."""
    differences = {key: cell(1.0) for key in ("0.5", "0.7", "0.8", "average")} | {"0.9": cell(0.009)}
    hidden = {key: cell(1.0) for key in ("0.3", "0.4", "0.6")}
    for extra in ({}, hidden):
        grid = differences_grid({"differences": {"tzn - uniform-6": differences | extra}})
        assert [c.p for c in grid.rows[0][1:]] == pytest.approx([1.0, 1.0, 1.0, 0.045, 1.0])
        assert "Holm over these 5, 5 %" in grid.title and str(grid.rows[0][4]).endswith("*")
    twice = differences_grid({"differences": {"a - b": differences, "c - b": differences}})
    assert twice.rows[0][4].p == pytest.approx(0.09)


def test_tables_keep_their_words_at_80_columns():
    grids = compared_systems(results(), "A note that is longer than eighty columns " * 3)
    text = shown(grids)
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    for whole in (
        "temporalmaxer+bdr",
        "[93.4, 99.4]",
        "[-10.4, +17.1]",
        "+3.2 *",
        "0.46x",
        "0.69x",
        "1.4 M",
        "avg .3:.7",
    ):
        assert whole in text
    assert text.count("[93.4, 99.4]") == 8 and text.count("[91.8, 98.4]") == 2


@given(
    st.integers(1, 14),
    st.lists(st.text("abcdefgh", min_size=1, max_size=24), min_size=1, max_size=4),
    st.integers(60, 160),
)
def test_every_cell_is_on_the_terminal_once(columns, names, width):
    """However many columns there are and however wide the terminal: a table continues below and loses nothing."""
    cells = [[f"{row}.{column}x" for column in range(columns)] for row in range(len(names))]
    grid = Grid(
        "title", ("name", *(f"c{i}" for i in range(columns))), [[n, *r] for n, r in zip(names, cells, strict=True)]
    )
    text = shown([grid], width)
    assert sorted(w for w in text.split() if w.endswith("x") and "." in w) == sorted(
        cell for row in cells for cell in row
    )
    assert "…" not in text and max(map(len, text.splitlines())) <= width and all(name in text for name in names)


def test_a_page_has_the_same_rows():
    page = markdown(compared_systems(results()))
    assert "| temporalmaxer+bdr - temporalmaxer | +3.2 [-10.4, +17.1] \\* |" in page
    assert "| uniform-6 | 97.1 [93.4, 99.4] |" in page and "| 0.46x | 0.69x | 1.4 M |" in page
    assert markdown([Grid("a|b", ("x*", "y"), [["p|q", Interval(1, 0, 2)]])]).splitlines() == [
        "a\\|b:", "", "| x\\* | y |", "|---|---:|", "| p\\|q | 1.0 [0.0, 2.0] |",
    ]  # fmt: skip


def test_without_comparisons_there_is_one_table():
    assert len(compared_systems(results(differences={}))) == 1


def test_bmn_is_noted_where_it_appears():
    assert map_notes(results()) == []
    (note,) = map_notes(results(systems={"bmn": SYSTEM | {"map": REACH}, "bmn+bdr": SYSTEM | {"map": REACH}}))
    assert (
        note.startswith("bmn and bmn+bdr:") and "4 crops of 128 positions" in note and "(uniform-6: 8 of 192)" in note
    )
    assert "width 64 (uniform-6: 128)" in note and "12 % of the test instances are longer than the 64 positions" in note
    (alone,) = map_notes(results(systems={"bmn": SYSTEM | {"map": REACH | {"longer": 0.0, "uniform-6": None}}}))
    assert "no test instance is longer" in alone and "uniform-6" not in alone


def test_the_command_that_measures_it():
    systems = ["uniform-6", "temporalmaxer+bdr"]
    assert command(results(), systems) == "tzoom bench sbhar --table retrofit --seeds 0,1"
    assert command(results(table="ours", seeds=[0, 1, 2], folds=6), [*systems, "tzn"]) == (
        "tzoom bench sbhar --systems uniform-6,temporalmaxer+bdr --folds 6"
    )
    given_settings = ["model.stem=[5, 5]", "training.steps=2"]
    assert command(results(overrides=given_settings), systems).endswith(
        "--seeds 0,1 --set 'model.stem=[5, 5]' --set training.steps=2"
    )
