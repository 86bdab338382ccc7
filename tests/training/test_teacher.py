"""What a student learns from a teacher: where to leave, and what to say there."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.config import changed
from temporalzoom.errors import InputError
from temporalzoom.models import Outputs, build_model
from temporalzoom.training import train
from temporalzoom.training.teacher import load_teacher, nearest_depths, prediction_loss


def outputs(seed: int, rows: int = 2, length: int = 7) -> Outputs:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, length, 3, generator=generator)
    offsets = torch.rand(rows, length, 2, generator=generator) * 5 + 0.1
    return Outputs(logits, offsets, distances=torch.randn(rows, length, 2, generator=generator))


def test_the_exit_nearest_to_the_teacher_s_depth():
    tau = torch.tensor([0.0, 0.3, 0.49, 0.51, 0.8, 0.84, 1.0])
    assert nearest_depths(tau, (2, 4, 6)).tolist() == [0, 0, 0, 1, 1, 2, 2]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5, unique=True), st.floats(0, 1))
def test_no_other_exit_is_nearer(depths, tau):
    depths = sorted(depths)
    chosen = depths[int(nearest_depths(torch.tensor(tau, dtype=torch.float64), depths))] / depths[-1]
    assert abs(chosen - tau) == pytest.approx(min(abs(depth / depths[-1] - tau) for depth in depths), abs=1e-12)


def test_nothing_is_lost_where_the_student_says_what_the_teacher_says():
    taught, mask = outputs(1), torch.ones(2, 7, dtype=torch.bool)
    assert float(prediction_loss(taught, taught, mask, 3.0)) == pytest.approx(0, abs=1e-6)
    student = outputs(2)
    for tensor in (student.logits, student.offsets, student.distances):
        tensor.requires_grad_()
    mask[1, 4:] = False
    loss = prediction_loss(student, taught, mask, 3.0)
    loss.backward()
    assert float(loss) > 0.1
    for tensor in (student.logits, student.offsets, student.distances):
        assert bool((tensor.grad[mask] != 0).any()) and not bool(tensor.grad[~mask].any())


def test_a_position_leaves_where_the_classifier_says_and_runs_sparse_as_dense():
    torch.manual_seed(0)
    options = {"width": 16, "heads": 2, "zoom": 4, "head": "convolution", "distance_channels": 2, "share": 0.5}
    model = build_model("tzn", 5, 3, allocation="taught-exit", depths=(1, 2, 3), dropout=0.0, **options)
    features, mask = torch.randn(2, 30, 5), torch.ones(2, 30, dtype=torch.bool)
    mask[1, 20:] = False
    for _ in range(20):  # the price of a layer settles
        model.train()(features, mask)
    for exit_head in model.exits:  # as they begin they correct nothing, and would not be told apart
        for parameter in exit_head.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    every = model.train()(features, mask)
    with torch.no_grad():
        sparse = model.eval()(features, mask)
        model.execution = "dense"
        dense = model(features, mask)
    assert sparse.depth is not None and dense.depth is not None
    depths = (3 * sparse.depth.tau[mask]).round().unique().tolist()
    assert len(depths) > 1 and set(depths) <= {1.0, 2.0, 3.0}
    assert torch.allclose(sparse.logits[mask], dense.logits[mask], atol=1e-5)
    assert torch.equal(sparse.depth.tau, dense.depth.tau)
    same = (every.depth.tau == sparse.depth.tau) & mask  # the price has moved on by one batch
    assert bool(same.any()) and torch.allclose(every.logits[same], sparse.logits[same], atol=1e-5)


def test_who_can_teach(tiny_config, tiny_split, tmp_path):
    train(tiny_config("training.steps=1"), tiny_split, tmp_path / "uniform")
    zoom = tiny_config("training.steps=1", "model.name=tzn", "model.zoom=4", "model.levels=1")
    train(zoom, tiny_split, tmp_path / "tzn")
    student = changed(zoom, ["model.paper.allocation=taught-exit", "model.paper.depths=[1,2]"])
    assert load_teacher(None, zoom, tiny_split) is None
    teacher = load_teacher(tmp_path / "tzn", student, tiny_split)
    assert teacher is not None and not teacher.training
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    for run, config, message in (
        (None, student, "taught-exit learns from a trained network: use tzoom distill"),
        ("uniform", student, "a teacher must be a tzn that predicts where depth pays, this is uniform-1"),
        ("tzn", zoom, "must have taught-exit"),
        ("tzn", changed(student, ["model.levels=2"]), "model.levels: must be 1"),
    ):
        with pytest.raises(InputError, match=message):
            load_teacher(None if run is None else tmp_path / run, config, tiny_split)
