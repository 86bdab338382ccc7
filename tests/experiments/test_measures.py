"""Statistics of predictions with a known answer, costs, and what `bmn` cannot hold."""

import numpy as np
import pytest

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.measures import Bench, costs, differences, levels, map_reach, pooled
from temporalzoom.experiments.systems import SYSTEMS
from temporalzoom.experiments.tables.ours import COMPARISONS
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

TRUTH = {f"r{i}": Segments([1.0, 5.0], [3.0, 9.0], ["run", "jump"]) for i in range(8)}
EXACT = {name: Segments(s.starts, s.ends, s.labels, [0.9, 0.8]) for name, s in TRUTH.items()}
LATE = {name: Segments(s.starts + 0.5, s.ends + 0.5, s.labels, [0.9, 0.8]) for name, s in TRUTH.items()}  # tIoU .6, .78


def test_levels_of_predictions_with_a_known_answer():
    exact, late = levels(TRUTH, [EXACT, EXACT], 200), levels(TRUTH, [LATE, LATE], 200)
    assert exact["average"] == [100.0, 100.0, 100.0]
    assert late["mAP"]["0.6"] == [100.0] * 3 and late["mAP"]["0.7"] == [50.0] * 3 and late["mAP"]["0.9"] == [0.0] * 3
    assert late["average"] == pytest.approx([90.0] * 3)
    mixed = levels(TRUTH, [EXACT, LATE], 2000)["mAP"]["0.9"]
    assert mixed == [50.0, 0.0, 100.0]  # seeds differ: the interval shows it


def test_differences_are_paired():
    found = differences(TRUTH, {"uniform-6": [LATE], "uniform-6+bdr": [EXACT], "tzn": [EXACT]}, COMPARISONS, 500)
    assert set(found) == {"uniform-6+bdr - uniform-6", "tzn - uniform-6", "tzn - uniform-6+bdr"}
    gain = found["tzn - uniform-6"]["0.9"]
    assert (gain["value"], gain["low"], gain["high"]) == (100.0, 100.0, 100.0) and gain["p"] < 0.01
    assert found["tzn - uniform-6+bdr"]["0.9"]["p"] == 1.0
    assert set(differences(TRUTH, {"tzn": [EXACT], "uniform-6": [LATE]}, COMPARISONS, 50)) == {"tzn - uniform-6"}


def test_costs_are_ratios_seed_by_seed():
    runs = [{"flops": f, "parameters": 7, "training_seconds": 3.0, "localization_seconds": 1.0} for f in (2e9, 4e9)]
    base = [{"flops": 4e9}, {"flops": 5e9}]
    assert costs(runs, base)["flops_ratio"] == pytest.approx([0.65, 0.5, 0.8])
    assert costs(runs, None)["flops_ratio"] is None and costs(runs, base)["gflops"] == 3.0
    assert pooled(runs)["flops"] == 6e9 and pooled(runs)["training_seconds"] == 3.0


def test_instances_longer_than_the_map_are_counted_in_positions():
    """Stride 10 at 20 frames a second: 64 positions are 32 s, on the dot not longer."""
    config = training_config("zoombench", None, 0, SYSTEMS["bmn"])
    segments = Segments([0.0, 0.0, 0.0, 1.0], [32.0, 32.1, 5.0, 40.0], ["a"] * 4)
    sample = Sample("one", np.zeros((100, 1), np.float32), TimeGrid(10, 10, 20), 50.0, segments)
    bench = Bench("zoombench", {}, {"bmn": config}, {}, {}, {}, 1, {config.data.model_dump_json(): (sample,)})
    reach = map_reach(bench, "bmn", "uniform-6")
    assert reach["longer"] == 0.5 and reach["durations"] == 64 and reach["uniform-6"] is None
    assert reach["trained"] == {"crops": 4, "length": 128, "width": 64}
