"""By length: as the metrics say it, with intervals; depth inside instances with a known answer."""

import numpy as np
import pytest
import torch

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.tables import hysteresis, lengths
from temporalzoom.metrics import evaluate_by_length
from temporalzoom.metrics.bootstrap import bootstrap_map, bootstrap_map_by_length, draw_recordings
from temporalzoom.models import Outputs
from temporalzoom.models.outputs import Depth
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid


def some(seed: int, count: int = 6) -> tuple[dict, dict]:
    """Truth, and detections that find a part of it and more."""
    rng = np.random.default_rng(seed)
    truth, found = {}, {}
    for index in range(count):
        starts = np.sort(rng.uniform(0, 200, 9))
        ends = starts + rng.choice([1.0, 3.0, 7.0, 20.0], 9)
        labels = rng.choice(["a", "b"], 9)
        truth[f"r{index}"] = Segments(starts, ends, labels)
        shift = rng.normal(0, 0.3, (2, 9))
        more = rng.uniform(0, 200, 5)
        found[f"r{index}"] = Segments(
            np.concatenate([starts + shift[0], more]),
            np.concatenate([np.maximum(ends + shift[1], starts + shift[0] + 0.1), more + 4]),
            [*labels, *"ababa"],
            rng.uniform(0, 1, 14),
        )
    return truth, found


@pytest.mark.parametrize("seed", range(4))
def test_bins_are_those_of_the_metric_and_one_bin_is_all(seed):
    truth, found = some(seed)
    draws = draw_recordings(len(truth), 40)
    bins = bootstrap_map_by_length(truth, found, 0.7, lengths.EDGES, draws)
    expected = evaluate_by_length(truth, found, [0.7], lengths.EDGES).mAP[:, 0]
    assert [one.point[0] for one in bins] == pytest.approx(expected)
    (whole,) = bootstrap_map_by_length(truth, found, 0.7, (0.0, np.inf), draws)
    plain = bootstrap_map(truth, found, [0.7], draws=draws)
    assert whole.point == pytest.approx(plain.point) and whole.samples == pytest.approx(plain.samples)


def test_depth_is_read_inside_the_instances_of_a_bin():
    grid = TimeGrid(10, 0, 10)  # a position per second
    sample = Sample(
        "x", np.zeros((60, 1), np.float32), grid, 60.0, Segments([10, 20, 40], [11, 23, 42], ["a", "a", "b"])
    )
    tau = torch.zeros(60)
    tau[10:12], tau[20:24] = 0.8, 0.4
    nothing = torch.zeros(60)
    depth = Depth(nothing, tau, nothing, nothing, nothing.bool(), tau >= 0.5, nothing.bool())
    found = lengths.depth_by_length(None, sample, Outputs(torch.zeros(60, 2), torch.zeros(60, 2), depth=depth))
    assert found["tau 0"] == pytest.approx(0.8) and found["depth 0"] == 100
    assert found["tau 1"] == pytest.approx(0.2) and found["depth 1"] == 0  # two instances: 0.4 and 0
    assert np.isnan(found["tau 3"])
    assert lengths.depth_by_length(None, sample, Outputs(torch.zeros(60, 2), torch.zeros(60, 2))) == {}


def test_flips_and_entropy_by_hand():
    tau = np.array([0.1, 0.2, 0.9, 0.9, 0.4])
    assert hysteresis.flip_rate(tau) == 0.5 and hysteresis.flip_rate(tau[:1]) == 0.0
    assert hysteresis.flip_rate(np.array([0.4, 0.5, 0.6])) == 1.0  # the dead zone's one half is a third side
    assert hysteresis.entropy(np.full(7, 0.5)) == pytest.approx(1.0)
    assert hysteresis.entropy(np.array([0.0, 1.0])) == pytest.approx(0.0, abs=1e-9)
    assert hysteresis.entropy(np.array([0.25])) == pytest.approx(2 - 0.75 * np.log2(3))
