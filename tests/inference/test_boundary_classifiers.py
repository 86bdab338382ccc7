"""Networks that classify boundaries: their peaks take the place of zero crossings."""

import numpy as np
import pytest
import torch
from rich.console import Console

from temporalzoom.config import InferenceConfig, load_config
from temporalzoom.errors import InputError
from temporalzoom.inference.decoding import decode, decode_parts
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import Outputs
from temporalzoom.runs.network import model_from_config
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train
from temporalzoom.workflows.export import export_onnx

GRID = TimeGrid(4, 8, 30)
LENGTH = 400
START, END = 200.3, 240.8


def outputs(**fields) -> Outputs:
    """One instance of two, and a box that misses it by two positions on either side."""
    logits = torch.full((LENGTH, 2), -12.0)
    logits[220, 1] = 3.0
    offsets = torch.ones(LENGTH, 2)
    offsets[220] = torch.tensor([220 - START + 2, END - 220 + 2])
    return Outputs(logits, offsets, torch.full((LENGTH, 2), 6.0), **fields)


def peaks() -> torch.Tensor:
    positions = torch.arange(LENGTH, dtype=torch.float64)
    labels = torch.stack([torch.exp(-0.5 * (positions - at).square()) for at in (START, END)], 1)
    return torch.logit(labels, 1e-9).float()


@pytest.mark.parametrize("mode", ["snap", "newton", "fuse"])
def test_ends_move_to_the_peaks(mode):
    options = InferenceConfig(refine=mode)
    found = decode(outputs(boundary_logits=peaks()), ["a", "b"], GRID, 99.0, options)
    close = 0.02 if mode == "fuse" else 1e-5  # fused with a box of large variance
    assert found.starts == pytest.approx([GRID.to_seconds(START)], abs=close)
    assert found.ends == pytest.approx([GRID.to_seconds(END)], abs=close)
    still = decode(outputs(boundary_logits=peaks()), ["a", "b"], GRID, 99.0, InferenceConfig(refine="none"))
    assert still.starts == pytest.approx([GRID.to_seconds(START - 2)])


def test_without_peaks_ends_stay():
    flat = torch.full((LENGTH, 2), -9.0)
    moved, still = (
        decode(outputs(boundary_logits=flat), ["a", "b"], GRID, 99.0, InferenceConfig(refine=mode))
        for mode in ("fuse", "none")
    )
    assert moved.starts.tolist() == still.starts.tolist() and moved.ends.tolist() == still.ends.tolist()


def test_of_a_hybrid_peaks_help_where_the_distances_cross_nowhere():
    distances, spread = torch.full((LENGTH, 2), -8.0), torch.full((LENGTH, 2), -4.0)
    distances[:, 0] = (torch.arange(LENGTH) - START).clamp(-8, 8)  # the end was not noticed
    both = outputs(distances=distances, distance_log_variance=spread, boundary_logits=peaks())
    found = decode(both, ["a", "b"], GRID, 99.0, InferenceConfig(refine="newton"))
    assert found.starts == pytest.approx([GRID.to_seconds(START)], abs=1e-4)
    assert found.ends == pytest.approx([GRID.to_seconds(round(END))], abs=1e-4)  # a peak in whole positions


def test_in_parts_as_at_once():
    whole = outputs(boundary_logits=peaks())
    parts = [whole.map(lambda x, low=low: x[low : low + 50]) for low in range(0, LENGTH, 50)]
    options = InferenceConfig(refine="fuse", limit_span=60)
    a = decode(whole, ["a", "b"], GRID, 99.0, options)
    b = decode_parts(parts, ["a", "b"], GRID, 99.0, options, horizon=10).segments
    assert len(a) == 1 and a.starts.tolist() == b.starts.tolist() and a.ends.tolist() == b.ends.tolist()


@pytest.mark.parametrize(("model", "loss"), [("uniform-1", "bce"), ("uniform-1", "hybrid"), ("tzn", "focal")])
def test_trained_and_loaded(tmp_path, tiny_split, tiny_config, model, loss):
    config = tiny_config(f"model.name={model}", f"bdr.loss={loss}", "training.steps=2")
    train(config, tiny_split, tmp_path, console=Console(quiet=True))
    localizer = Localizer.load(tmp_path)
    found = localizer.outputs(tiny_split.samples[0].features)
    assert found.boundary_logits.shape == (len(tiny_split.samples[0]), 2)
    assert (found.distances is not None) == (loss == "hybrid")
    assert np.isfinite(localizer(tiny_split.samples[0].features).starts).all()
    with pytest.raises(InputError, match=r"bdr\.loss: only a network that predicts distances alone"):
        export_onnx(tmp_path, tmp_path / "x.onnx")


@pytest.mark.parametrize(
    "words",
    [
        "model.name=actionformer bdr.loss=bce",
        "bdr.enabled=false bdr.loss=bce",
        "bdr.loss=bce bdr.scales=sqrt",
        "bdr.loss=hybrid inference.refine=snap inference.min_slope=0.3",
    ],
)
def test_what_has_no_effect_is_refused(words):
    with pytest.raises(InputError, match="has no effect"):
        load_config("zoombench", words.split())


def test_routed_networks_do_not_classify_boundaries(tiny_config):
    config = tiny_config("model.name=tzn", "model.paper.allocation=gumbel", "bdr.loss=focal")
    with pytest.raises(InputError, match=r"bdr\.loss: with model\.paper\.allocation=gumbel"):
        model_from_config(config, 8, 2, GRID)
