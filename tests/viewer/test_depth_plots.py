"""What the plots of adaptive depth show, read back from their artists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.patches import StepPatch
from matplotlib.text import Annotation

from temporalzoom.segments import Segments
from temporalzoom.viewer.depth_plots import plot_budget_curve, plot_depth, plot_tau_histogram, position_edges
from temporalzoom.viewer.embed import figure_html
from temporalzoom.viewer.plots import plot_distance_fields
from temporalzoom.viewer.style import colours

TRUTH = Segments([4, 12.0], [12, 15.0], ["jump", "run"])
TIMES = np.arange(0.5, 20, 1.0)
TAU = np.abs(np.sin(TIMES))
SIGMA = 2.0 + np.cos(TIMES)
KEPT = TAU > 0.2
ACTIVE = TAU > 0.6


def depth(**changes):
    arguments = {"times": TIMES, "tau": TAU, "sigma": SIGMA, "kept": KEPT, "active": ACTIVE, "truth": TRUTH}
    return plot_depth(**{**arguments, **changes})


def steps(axes):
    return [patch for patch in axes.patches if isinstance(patch, StepPatch)]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().texts]


def fates(figure, times):
    """Which of the three bars of the strip covers each position."""
    covered = [[] for _ in times]
    for fate, bars in enumerate(figure.axes[2].collections):
        for path in bars.get_paths():
            left, right = path.vertices[:, 0].min(), path.vertices[:, 0].max()
            for i in np.flatnonzero((times > left) & (times < right)):
                covered[i].append(fate)
    return covered


def test_depth_and_uncertainty_are_drawn_as_they_are():
    upper, middle, _ = depth().axes
    for axes, values in ((upper, TAU), (middle, SIGMA)):
        area, line = steps(axes)
        assert area.get_fill() and not line.get_fill()
        for patch in (area, line):
            np.testing.assert_array_equal(patch.get_data().values, values)
            np.testing.assert_allclose(patch.get_data().edges, np.arange(21.0))
        assert axes.get_ylim()[0] == 0.0 and axes.get_ylim()[1] > values.max()


def test_depth_marks_each_true_boundary_once():
    upper, middle, _ = depth().axes
    for axes in (upper, middle):
        assert [line[0, 0] for line in axes.collections[0].get_segments()] == [4.0, 12.0, 15.0]
    assert "true boundary" in legend(upper)
    assert "true boundary" not in legend(depth(truth=Segments.empty()).axes[0])


def test_depth_threshold_is_a_line_only_if_there_is_one():
    assert list(depth().axes[0].lines) == []
    upper = depth(threshold=0.35).axes[0]
    (line,) = upper.lines
    assert set(line.get_ydata()) == {0.35}
    assert "threshold 0.35" in legend(upper)


def test_depth_strip_says_what_became_of_each_position():
    figure = depth()
    assert fates(figure, TIMES) == [[int(k) + int(a)] for k, a in zip(KEPT, ACTIVE, strict=True)]
    shares = [np.mean(~KEPT), np.mean(KEPT & ~ACTIVE), np.mean(ACTIVE)]
    names = ("pruned", "kept", "in the deep path")
    assert legend(figure.axes[2]) == [f"{name} ({share:.0%})" for name, share in zip(names, shares, strict=True)]
    tones = {tuple(bars.get_facecolor()[0]) for bars in figure.axes[2].collections}
    assert len(tones) == 3


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
@settings(deadline=None, max_examples=12)
def test_depth_strip_has_one_bar_per_run(levels):
    levels, times = np.array(levels), 0.25 * np.arange(len(levels))
    zeros = np.zeros(len(levels))
    figure = plot_depth(times, zeros, zeros, levels > 0, levels > 1, Segments.empty())
    assert fates(figure, times) == [[level] for level in levels]
    assert sum(len(bars.get_paths()) for bars in figure.axes[2].collections) == 1 + np.count_nonzero(np.diff(levels))


def test_depth_lines_up_with_the_distance_fields():
    figure, fields = depth(), plot_distance_fields(TIMES, TIMES - 4, TIMES - 12, [4], [12], TRUTH)
    for drawn in (figure, fields):
        drawn.draw_without_rendering()
    assert figure.get_figwidth() == fields.get_figwidth()
    assert {axes.get_xlim() for axes in figure.axes} == {fields.axes[0].get_xlim()}
    here, there = (drawn.axes[-1].get_position() for drawn in (figure, fields))
    assert here.x1 == pytest.approx(there.x1)
    assert here.x0 == pytest.approx(there.x0, abs=0.02)  # the numbers on the y-axis are not equally wide
    assert figure.axes[-1].get_xlabel() == fields.axes[-1].get_xlabel() == "time (s)"
    np.testing.assert_array_equal(figure.axes[-1].get_xticks(), fields.axes[-1].get_xticks())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_depth_of_very_few_and_constant_positions(length, value):
    values, chosen = np.full(length, value), np.full(length, value > 0)
    figure = plot_depth(3.0 + np.arange(length), values, values, chosen, chosen, Segments.empty(), 0.5)
    figure.draw_without_rendering()
    assert fates(figure, 3.0 + np.arange(length)) == [[2 if value else 0]] * length
    for axes in figure.axes[:2]:
        assert all(list(patch.get_data().values) == [value] * length for patch in steps(axes))
        assert len(steps(axes)) == (2 if length else 0)
        assert axes.get_ylim()[0] == 0.0 and axes.get_ylim()[1] > (value if length else 0.5)
    if length:
        assert figure.axes[0].get_xlim() == ((2.5, 3.5) if length == 1 else (3.0, 4.0))


@pytest.mark.parametrize(
    "changes",
    [
        {"tau": TAU[1:]},
        {"sigma": SIGMA[:, None]},
        {"kept": np.zeros(len(TIMES), bool)},  # pruned, and yet in the deep path
        {"times": TIMES[::-1]},
        {"times": np.zeros(len(TIMES))},
    ],
)
def test_depth_that_contradicts_itself(changes):
    with pytest.raises(ValueError):
        depth(**changes)


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=20))
def test_edges_lie_between_the_positions(gaps):
    times = np.cumsum(gaps)
    edges = position_edges(times)
    assert len(edges) == len(times) + 1
    assert (edges[:-1] < times).all() and (times < edges[1:]).all()
    np.testing.assert_allclose(edges[1:-1], (times[1:] + times[:-1]) / 2)


def test_histogram_shares_equal_the_count():
    values = np.random.default_rng(0).beta(2, 3, 500)
    figure = plot_tau_histogram({"boundary": values, "elsewhere": values**2})
    drawn = steps(figure.axes[0])
    assert len(drawn) == 4
    for area, line, group, name in zip(
        drawn[::2], drawn[1::2], (values, values**2), ("boundary", "elsewhere"), strict=True
    ):
        shares, edges, _ = area.get_data()
        np.testing.assert_allclose(edges, 0.05 * np.arange(21))
        expected = [sum(k * 0.05 <= value < (k + 1) * 0.05 for value in group) / 500 for k in range(20)]
        np.testing.assert_allclose(shares, expected)
        np.testing.assert_array_equal(np.nan_to_num(line.get_data().values), shares)
        assert line.get_edgecolor() == to_rgba(colours(["boundary", "elsewhere"])[name])
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [values.mean(), (values**2).mean()]
    assert [text.get_text() for text in figure.legends[0].texts] == [
        f"boundary (mean {values.mean():.2f})",
        f"elsewhere (mean {(values**2).mean():.2f})",
    ]


@pytest.mark.parametrize(("value", "bin"), [(0.0, 0), (0.15, 3), (0.35, 7), (0.999, 19), (1.0, 19)])
def test_histogram_of_a_constant_is_one_bin(value, bin):
    shares = steps(plot_tau_histogram({"all": [value] * 7}).axes[0])[0].get_data().values
    assert shares[bin] == shares.sum() == 1.0


@pytest.mark.filterwarnings("error")
def test_histogram_of_nothing():
    figure = plot_tau_histogram({"boundary": [], "elsewhere": [0.4]})
    figure.draw_without_rendering()
    assert [text.get_text() for text in figure.legends[0].texts] == ["boundary (no positions)", "elsewhere (mean 0.40)"]
    assert len(figure.axes[0].lines) == 1
    plot_tau_histogram({"boundary": []}).draw_without_rendering()
    plot_tau_histogram({}).draw_without_rendering()


@pytest.mark.parametrize("value", [-0.01, 1.01, np.nan])
def test_histogram_refuses_what_is_no_tau(value):
    with pytest.raises(ValueError, match="boundary"):
        plot_tau_histogram({"boundary": [0.5, value]})


CURVES = {"tzn": [(1.0, 63.5), (0.55, 60.1), (0.8, 62.9)], "uniform-6": [(1.0, 61.0)], "uniform-9": [(1.5, 62.0)]}


def names(figure):
    return [text for text in figure.axes[0].texts if isinstance(text, Annotation)]


def test_budget_curve_points_in_order_of_cost():
    axes = plot_budget_curve(CURVES).axes[0]
    first, second, third = axes.lines
    np.testing.assert_array_equal(first.get_xydata(), sorted(CURVES["tzn"]))
    np.testing.assert_array_equal(second.get_xydata(), CURVES["uniform-6"])
    assert [line.get_linestyle() for line in (first, second, third)] == ["-", "None", "None"]
    assert len({line.get_marker() for line in axes.lines}) == 3
    assert [line.get_color() for line in axes.lines] == list(colours(CURVES).values())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("executed FLOPs relative to uniform-6", "average mAP (%)")


def test_budget_curve_has_honest_axes():
    axes = plot_budget_curve({"a": [(0.3, 96.4), (0.7, 97.4)], "b": [(1.0, 96.6)]}).axes[0]
    assert axes.get_ylim() == (90.0, 100.0) and axes.get_xlim()[0] == 0.0


def test_budget_curve_names_stand_next_to_their_points_and_cover_nothing():
    figure = plot_budget_curve(CURVES)
    figure.draw_without_rendering()
    assert figure.legends == [] and [text.get_text() for text in names(figure)] == list(CURVES)
    boxes = [text.get_window_extent() for text in names(figure)]
    places = [line.get_transform().transform(line.get_xydata()) for line in figure.axes[0].lines]
    frame = figure.axes[0].get_window_extent()
    for i, box in enumerate(boxes):
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1
        assert not any(box.contains(x, y) for points in places for x, y in points)
        assert not any(box.overlaps(other) for other in boxes[:i])
        apart = [min(np.hypot(*(np.clip(p, box.min, box.max) - p)) for p in points) for points in places]
        assert np.argmin(apart) == i and apart[i] < 12


def test_budget_curve_falls_back_to_a_legend():
    crowd = {f"system {i}": [(1.0 + 0.001 * i, 60.0)] for i in range(12)} | {"far": [(3.0, 70.0)]}
    figure = plot_budget_curve(crowd)
    assert names(figure) == []
    assert [text.get_text() for text in figure.legends[0].texts] == list(crowd)
    long = plot_budget_curve({"a name " * 40: [(1.0, 60.0)]})
    assert names(long) == [] and len(long.legends) == 1


@pytest.mark.filterwarnings("error")
def test_budget_curve_of_little():
    for points in ({}, {"a": []}, {"a": [(1.0, float("nan"))]}):
        figure = plot_budget_curve(points)
        figure.draw_without_rendering()
        assert list(figure.axes[0].lines) == names(figure) == figure.legends == []
    figure = plot_budget_curve({"a": [(1.0, 60.0)], "b": [(0.5, 60.0), (1.0, 60.0)]}, "cost", "score")
    figure.draw_without_rendering()
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("cost", "score")


@pytest.mark.parametrize(
    "draw",
    [
        lambda: depth(threshold=0.5),
        lambda: plot_tau_histogram({"boundary": TAU, "elsewhere": TAU**2}),
        lambda: plot_budget_curve(CURVES),
    ],
)
def test_same_input_gives_the_same_bytes(draw):
    first = figure_html(draw(), "alt", "a")
    assert first == figure_html(draw(), "alt", "a")
    assert first.startswith("<svg")
