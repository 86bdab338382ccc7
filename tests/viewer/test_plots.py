"""What the plots show, read back from their artists."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from temporalzoom.segments import Segments
from temporalzoom.viewer.plots import (
    moving_average,
    plot_distance_fields,
    plot_map_by_threshold,
    plot_precision_recall,
    plot_timeline,
    plot_training,
)
from temporalzoom.viewer.style import INK, class_colours, colours, score_limits, text_colour
from temporalzoom.viewer.timeline import assign_lanes

TRUTH = Segments([10, 40, 70.0], [20, 60, 70.0], ["jump", "run", "jump"])
FOUND = Segments([11, 41, 9, 12.0], [19, 62, 21, 30.0], ["jump", "run", "jump", "run"], [0.8, 0.4, 0.2, 0.1])


def bars(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_timeline_has_a_bar_for_each_segment_at_its_time():
    figure = plot_timeline(TRUTH, {"ours": FOUND}, 100.0)
    times = [(bar.get_x(), bar.get_width()) for bar in bars(figure)]
    expected = [(s, e - s) for segments in (TRUTH, FOUND) for s, e, _, _ in segments]
    np.testing.assert_allclose(times, expected)
    assert figure.axes[0].get_xlim() == (0.0, 100.0)
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["truth", "ours"]


def test_timeline_colour_is_the_class_and_opacity_the_score():
    drawn = bars(plot_timeline(TRUTH, {"ours": FOUND}, 100.0))
    labels = [*TRUTH.labels, *FOUND.labels]
    by_label = {label: {to_rgb(bar.get_facecolor()) for bar, of in zip(drawn, labels, strict=True) if of == label}
                for label in ("jump", "run")}  # fmt: skip
    assert len(by_label["jump"]) == len(by_label["run"]) == 1
    assert by_label["jump"] != by_label["run"]
    opacity = [bar.get_facecolor()[3] for bar in drawn]
    assert opacity[:4] == [1.0] * 4  # the truth, and the system's best
    assert opacity[3] > opacity[4] > opacity[5] > opacity[6] > 0.2


def test_timeline_colour_is_the_same_whatever_was_found():
    """By the class's place in the sorted list of all classes."""
    classes = ["walk", "run", "jump"]
    alone = bars(plot_timeline(Segments.empty(), {"ours": Segments([1], [2], ["run"])}, 100.0, classes=classes))
    both = bars(plot_timeline(TRUTH, {"ours": FOUND}, 100.0, classes=classes))
    assert (
        to_rgb(alone[0].get_facecolor()) == to_rgb(both[1].get_facecolor()) == to_rgb(colours(sorted(classes))["run"])
    )
    figure = plot_timeline(TRUTH, {"ours": FOUND}, 100.0, classes=classes)
    assert [text.get_text() for text in figure.legends[0].texts] == ["jump", "run"]  # only what is shown


def test_class_colours_come_from_the_sorted_list():
    assert class_colours("cab") == class_colours("abc") == colours("abc")
    assert class_colours("ab", found="za")["a"] == class_colours("ab")["a"]
    assert list(class_colours("ba", found=["z", "y"])) == ["a", "b", "y", "z"]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_an_axis_of_scores_does_not_magnify_one_point(values):
    low, high = score_limits(values)
    assert high - low >= 10 and low % 5 == high % 5 == 0
    assert 0 <= low <= min(values) and max(values) <= high <= 100
    assert low >= min(values) - 20 and high <= max(values) + 20


def test_an_axis_of_scores_by_example():
    assert score_limits([96.4, 97.4]) == (90.0, 100.0)
    assert score_limits([41.1, 50.2]) == (40.0, 55.0)
    assert score_limits([]) == (0.0, 100.0)
    assert score_limits([-3.0, 2.0])[0] <= -3  # differences may be negative


def test_timeline_truth_is_above_and_overlaps_do_not_touch():
    drawn = bars(plot_timeline(TRUTH, {"ours": FOUND}, 100.0))
    spans = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y(), bar.get_y() + bar.get_height()) for bar in drawn]
    assert max(bottom for *_, bottom in spans[:3]) < min(top for *_, top, _ in spans[3:])  # the y-axis points down
    for i, a in enumerate(spans):
        for b in spans[:i]:
            assert min(a[1], b[1]) <= max(a[0], b[0]) or min(a[3], b[3]) <= max(a[2], b[2])


def test_timeline_label_only_where_it_fits():
    assert words(plot_timeline(TRUTH, {}, 100.0)) == ["jump", "run"]  # the third is a point in time
    assert words(plot_timeline(TRUTH, {}, 10_000.0)) == []


def test_timeline_counts_what_it_leaves_out():
    crowd = Segments(np.zeros(9), np.full(9, 50.0), ["run"] * 9, np.linspace(0.1, 0.9, 9))
    figure = plot_timeline(TRUTH, {"ours": crowd}, 100.0, max_lanes=4)
    assert len(bars(figure)) == 3 + 4
    assert "+ 5 more" in words(figure)
    assert min(bar.get_facecolor()[3] for bar in bars(figure)) > 0.7  # the best four stay


def test_timeline_of_nothing():
    figure = plot_timeline(Segments.empty(), {"ours": Segments.empty()}, 0.0)
    assert bars(figure) == []
    figure.canvas.draw()


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(0, 3)), max_size=25))
@settings(deadline=None)
def test_lanes_never_overlap_and_are_as_low_as_possible(rows):
    starts, lengths, scores = (np.array(column, float) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    segments = Segments(starts, np.add(starts, lengths), ["a"] * len(rows), scores)
    lanes = assign_lanes(segments)

    def collide(i, j):
        return min(segments.ends[i], segments.ends[j]) > max(segments.starts[i], segments.starts[j])

    for i in range(len(rows)):
        mates = [j for j in range(len(rows)) if j != i and lanes[j] == lanes[i]]
        assert not any(collide(i, j) for j in mates)
        for lower in range(lanes[i]):  # only a segment at least as good pushed it down
            assert any(
                segments.scores[j] >= segments.scores[i] and not (segments.ends[i] <= segments.starts[j] or
                segments.starts[i] >= segments.ends[j]) for j in np.flatnonzero(lanes == lower)
            )  # fmt: skip


def test_distance_fields_show_crossings_and_true_boundaries():
    times = np.linspace(0, 50, 201)
    figure = plot_distance_fields(times, times - 10, times - 20, [10.1], [19.7, 33.0], TRUTH[:2], units="positions")
    upper, lower = figure.axes
    for axes, field, crossings, boundaries in (
        (upper, times - 10, [10.1], [10, 40]),
        (lower, times - 20, [19.7, 33.0], [20, 60]),
    ):
        zero, curve, dots = axes.lines
        assert set(zero.get_ydata()) == {0.0}
        np.testing.assert_array_equal(curve.get_xdata(), times)
        np.testing.assert_array_equal(curve.get_ydata(), field)
        assert dots.get_marker() == "o"
        np.testing.assert_array_equal(dots.get_xdata(), crossings)
        np.testing.assert_array_equal(dots.get_ydata(), np.zeros(len(crossings)))
        np.testing.assert_array_equal([line[0, 0] for line in axes.collections[0].get_segments()], boundaries)
        assert axes.get_ylabel() == "positions"
    assert upper.get_xlim() == lower.get_xlim() == (0.0, 50.0)


def test_precision_recall_one_panel_per_threshold():
    curve = (np.array([0.0, 0.5]), np.array([1.0, 0.25]))
    figure = plot_precision_recall({"a": {0.5: curve}, "b": {0.5: curve, 0.3: curve}})
    assert [axes.get_title("left") for axes in figure.axes] == ["tIoU 0.3", "tIoU 0.5"]
    assert [len(axes.lines) for axes in figure.axes] == [1, 2]
    np.testing.assert_array_equal(figure.axes[1].lines[0].get_ydata(), [1.0, 0.25])
    assert figure.axes[0].lines[0].get_color() == figure.axes[1].lines[1].get_color() == colours("ab")["b"]
    assert [text.get_text() for text in figure.legends[0].texts] == ["a", "b"]


@pytest.mark.parametrize("count", [1, 4, 5, 7, 10])
def test_precision_recall_panels_fit_any_number_of_thresholds(count):
    curves = {"a": {round(0.05 * (k + 1), 2): ([0, 1], [1, 0]) for k in range(count)}}
    assert sum(axes.get_visible() for axes in plot_precision_recall(curves).axes) == count


def test_map_by_threshold():
    figure = plot_map_by_threshold({"a": {0.7: 0.4, 0.5: 0.6}, "b": {0.5: 0.3}})
    first, second = figure.axes[0].lines
    assert list(first.get_xdata()) == [0.5, 0.7] and list(first.get_ydata()) == [0.6, 0.4]
    assert list(second.get_ydata()) == [0.3]
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["0.5", "0.7"]
    assert figure.axes[0].get_ylim()[0] == 0.0


def test_training_smooths_without_changing_a_straight_line():
    steps = np.arange(1000)
    raw, smooth = plot_training({"a": (steps, 5.0 - steps / 1000)}).axes[0].lines
    assert len(smooth.get_xdata()) <= 400 and smooth.get_xdata()[-1] == 999
    inner = slice(20, -20)
    np.testing.assert_allclose(smooth.get_ydata()[inner], raw.get_ydata()[inner], atol=1e-9)


def test_training_leaves_out_what_is_not_a_number_and_uses_a_log_scale_for_large_ranges():
    axes = plot_training({"a": ([1, 2, 3, 4], [100.0, np.nan, 10.0, 0.1])}).axes[0]
    assert list(axes.lines[0].get_xdata()) == [1, 3, 4]
    figure = plot_training({"a": (np.arange(200), 0.95 ** np.arange(200))})
    assert figure.axes[0].get_yscale() == "log"
    figure.canvas.draw()
    assert {"0.001", "0.1"} <= {tick.get_text() for tick in figure.axes[0].get_yticklabels()}
    assert plot_training({"a": ([1, 2], [1.0, 0.5])}).axes[0].get_yscale() == "linear"
    assert plot_training({"a": ([], [])}).axes[0].get_yscale() == "linear"


@given(st.lists(st.floats(-100, 100), max_size=40), st.integers(0, 50))
def test_moving_average_equals_the_loop(values, radius):
    expected = [np.mean(values[max(i - radius, 0) : i + radius + 1]) for i in range(len(values))]
    np.testing.assert_allclose(moving_average(values, radius), expected, atol=1e-9)


def test_colours_are_stable_and_distinct():
    names = [f"class {i}" for i in range(30)]
    assert len(set(colours(names).values())) == 30
    assert colours([*names, "class 3"]) == colours(names)


def test_text_on_a_pale_bar_is_dark():
    assert text_colour("#2b5c8a") == "white"
    assert text_colour("#2b5c8a", opacity=0.3) == INK


def test_plots_ignore_and_keep_the_settings_of_the_caller():
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        before = dict(matplotlib.rcParams)
        figure = plot_map_by_threshold({"a": {0.5: 0.3}})
        assert dict(matplotlib.rcParams) == before
    assert to_rgb(figure.axes[0].get_facecolor()) == (1.0, 1.0, 1.0)
