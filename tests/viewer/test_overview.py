"""The overview: bars at their times, fields and crossings below, and only what lies in the span."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from temporalzoom.segments import Segments
from temporalzoom.viewer.demo_report import SequenceView
from temporalzoom.viewer.overview import plot_overview
from temporalzoom.viewer.style import class_colours

TIMES = np.linspace(0, 50, 101)
TRUTH = Segments([10, 15, 40.0], [20, 30, 45.0], ["jump", "run", "jump"])
FOUND = Segments([11, 12, 41.0], [21, 29, 44.0], ["jump", "run", "jump"], [0.9, 0.8, 0.3])


def view(found: Segments = FOUND) -> SequenceView:
    zeros = np.zeros(len(TIMES))
    return SequenceView(
        "test_0000", 50.0, ("jump", "run", "walk"), TRUTH, {"tzn": found}, 0.2, TIMES, TIMES - 10, TIMES - 20,
        np.array([10.0]), np.array([20.0, 44.0]), zeros, zeros, zeros == 0, zeros > 0,
    )  # fmt: skip


def bars(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def test_bars_fields_and_crossings():
    figure = plot_overview(view(), "tzn")
    top, upper, lower = figure.axes
    expected = [(start, end - start) for row in (TRUTH, FOUND) for start, end, _, _ in row]
    np.testing.assert_allclose([(bar.get_x(), bar.get_width()) for bar in bars(figure)], expected)
    colours = class_colours(view().classes)
    assert to_rgb(bars(figure)[1].get_facecolor()) == to_rgb(bars(figure)[4].get_facecolor()) == to_rgb(colours["run"])
    assert [tick.get_text() for tick in top.get_yticklabels()] == ["truth", "found"]
    for axes, field, crossings in ((upper, TIMES - 10, [10.0]), (lower, TIMES - 20, [20.0, 44.0])):
        _, curve, dots = axes.lines
        np.testing.assert_array_equal(curve.get_ydata(), field)
        np.testing.assert_array_equal(dots.get_xdata(), crossings)
    assert lower.get_xlim() == (0.0, 50.0)
    assert [text.get_text() for text in figure.legends[0].texts] == ["jump", "run"]


def test_a_span_shows_what_lies_in_it():
    figure = plot_overview(view(), "tzn", (32.0, 50.0))
    assert [bar.get_x() for bar in bars(figure)] == [40.0, 41.0]
    assert figure.axes[2].get_xlim() == (32.0, 50.0)
    assert [text.get_text() for text in figure.legends[0].texts] == ["jump"]


@pytest.mark.filterwarnings("error")
def test_nothing_found():
    figure = plot_overview(view(Segments.empty()), "tzn", (46.0, 50.0))
    figure.draw_without_rendering()
    assert bars(figure) == []
