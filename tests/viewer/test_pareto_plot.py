"""What the figure of accuracy over cost shows, read back from its artists."""

import numpy as np
from matplotlib.colors import to_hex

from temporalzoom.viewer.embed import figure_svg
from temporalzoom.viewer.pareto_plot import plot_pareto
from temporalzoom.viewer.style import INK

PANELS = {
    "mAP@0.7": {"tzn": [(2.0, 80.0), (1.0, 70.0)], "none": [(0.5, 60.0)], "<b>": [(1.0, np.nan), (1.5, 66.0)]},
    "mAP@0.9": {"tzn": [(2.0, 50.0), (1.0, 45.0)], "none": [(0.5, 40.0)], "<b>": []},
}


def test_each_panel_has_each_system_in_the_order_of_cost():
    figure = plot_pareto(PANELS, "GFLOPs", "tzn")
    first, second = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(PANELS)
    assert [line.get_xydata().tolist() for line in first.lines] == [
        [[1.0, 70.0], [2.0, 80.0]], [[0.5, 60.0]], [[1.5, 66.0]],
    ]  # fmt: skip
    assert len(second.lines) == 2 and first.lines[1].get_linestyle() == "None"
    assert to_hex(first.lines[0].get_color()) == INK and first.lines[0].get_zorder() > first.lines[1].get_zorder()
    low, high = first.get_ylim()
    assert low < 60 and high > 80


def test_a_file_of_its_own_is_the_same_bytes_and_names_are_text():
    files = [figure_svg(plot_pareto(PANELS, "GFLOPs", "tzn")) for _ in range(2)]
    assert files[0] == files[1] and files[0].startswith("<?xml") and "&lt;b&gt;" in files[0]
    assert plot_pareto({"mAP@0.7": {}}, "GFLOPs") is not None
