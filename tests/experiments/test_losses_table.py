"""Curves and distances of boundaries with a known answer, and means over recordings and seeds."""

import numpy as np
import pytest
import torch

from temporalzoom.bdr import distance_targets
from temporalzoom.experiments.boundary_measures import boundary_curves, chamfer
from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.per_recording import measure_differences_grid, measures_grid, summarized
from temporalzoom.experiments.rereading import Read
from temporalzoom.experiments.tables import losses
from temporalzoom.metrics import peak_sharpness
from temporalzoom.metrics.bootstrap import bootstrap_mean
from temporalzoom.models import Outputs
from temporalzoom.models.outputs import Points
from temporalzoom.segments import Segments

LENGTH = 60


def outputs(**fields) -> Outputs:
    """A network that has found nothing."""
    return Outputs(**{"logits": torch.full((LENGTH, 2), -9.0), "offsets": torch.ones(LENGTH, 2), **fields})


def test_perfect_distances_vote_for_their_boundaries():
    distances = distance_targets([10.0, 40.25], [25.0], LENGTH, radius=8.0)
    curves = boundary_curves(outputs(distances=distances), LENGTH)
    assert curves.shape == (LENGTH, 2) and curves[10, 0] == pytest.approx(9)  # from 6 to 14
    assert curves[40, 0] == pytest.approx(3 * curves[41, 0], rel=1e-5)  # a quarter of the way to the next
    assert peak_sharpness(curves[:, 0], [10.0]) > 0.98 and peak_sharpness(curves[:, 1], [25.0]) > 0.98


def test_probabilities_are_their_own_curve_and_a_joint_one_counts_for_both():
    logits = torch.randn(LENGTH, 1)
    curves = boundary_curves(outputs(boundary_logits=logits), LENGTH)
    assert curves == pytest.approx(np.repeat(torch.sigmoid(logits.double()).numpy(), 2, 1))


def test_boxes_vote_with_their_scores():
    logits, offsets = torch.full((LENGTH, 2), -30.0), torch.ones(LENGTH, 2)
    logits[20, 1] = logits[22, 0] = 0.0
    offsets[20], offsets[22] = torch.tensor([5.0, 9.5]), torch.tensor([7.0, 100.0])  # the last ends outside
    curves = boundary_curves(outputs(logits=logits, offsets=offsets), LENGTH)
    assert curves[15] == pytest.approx([1.0, 0.0]) and curves[29:31, 1] == pytest.approx([0.25, 0.25])
    assert curves.sum() == pytest.approx(1.5)
    points = Points(torch.tensor([4.0]), *(torch.ones(1) for _ in range(3)), torch.ones(1, dtype=torch.bool))
    one = Outputs(torch.zeros(1, 1), torch.tensor([[2.0, 3.0]]), points=points)
    assert boundary_curves(one, LENGTH).nonzero()[0].tolist() == [2, 7]


def test_chamfer_distances_are_in_the_frames_of_each_recording():
    truth = {"a": Segments([1.0], [2.0], ["x"]), "b": Segments([1.0], [2.0], ["x"])}
    found = {name: Segments([1.1], [2.1], ["x"], [0.5]) for name in truth}
    read = Read(observed={"fps": np.array([[10.0, 50.0]])})
    assert chamfer(truth, [found, {}], read) == pytest.approx(np.array([[1.0, 5.0], [60.0, 60.0]]))


def test_means_have_intervals_over_recordings_and_seeds():
    rng = np.random.default_rng(0)
    values = rng.normal(5, 1, (1, 100))
    point, samples = bootstrap_mean(values, 4000)
    assert point == pytest.approx(values.mean()) and samples.std() == pytest.approx(values.std() / 10, rel=0.05)
    holed = np.where(rng.random((2, 100)) < 0.3, np.nan, values)
    assert bootstrap_mean(holed, 50)[0] == pytest.approx(np.nanmean(holed, axis=1).mean())
    seeds = np.array([[1.0] * 9, [3.0] * 9])
    assert set(bootstrap_mean(seeds, 200)[1]) == {1.0, 3.0}  # one of two is drawn


def test_differences_are_paired_and_corrected_together():
    rng = np.random.default_rng(1)
    hard = rng.normal(0, 10, (1, 40))
    values = {"a": hard + 1, "b": hard + 0.01 * rng.normal(size=(1, 40)), "c": np.full((1, 40), np.nan)}
    found = summarized({"m": values}, [("a", "b"), ("a", "c"), ("a", "z")], 500, {"a": "x", "b": "x", "c": "y"})
    gain = found["m"]["differences"]["a - b"]
    assert gain["value"] == pytest.approx(1, abs=0.01) and gain["low"] > 0.9 and gain["p"] < 0.01
    assert found["m"]["differences"]["a - c"] is None and found["m"]["levels"]["c"] is None
    assert set(found["m"]["differences"]) == {"a - b", "a - c"}
    grid = measure_differences_grid(found, {"m": ("metres", 2)})
    assert str(grid.rows[0][1]).startswith("+1.00 [") and str(grid.rows[0][1]).endswith("*") and grid.rows[1][1] == "-"
    assert "Holm over these 1" in grid.title
    assert measures_grid("x", found, {"m": ("metres", 2)}).rows[2] == ["c", "-"]


def test_the_four_losses_differ_in_nothing_else():
    found = {name: training_config("tug", None, 0, words) for name, words in losses.trainings("tug").items()}
    assert [config.bdr.loss for config in found.values() if config.bdr.enabled] == ["bce", "focal", "distance"]
    assert not found["uniform-6"].bdr.enabled and len({c.model.model_dump_json() for c in found.values()}) == 1
    assert len({c.training.model_dump_json() for c in found.values()}) == 1
