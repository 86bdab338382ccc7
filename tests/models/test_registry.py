"""Models by name, and what their outputs look like."""

from itertools import pairwise

import pytest
import torch

from temporalzoom.errors import InputError
from temporalzoom.models import Outputs, Uniform, build_model, model_families, register, registry

SMALL = {"width": 16, "heads": 2}


@pytest.fixture
def own_registry(monkeypatch):
    """Registrations of a test end with it."""
    monkeypatch.setattr(registry, "_builders", dict(registry._builders))


def parameters(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(("name", "depth"), [("uniform-0", 0), ("uniform-1", 1), ("uniform-12", 12), ("uniform", 6)])
def test_the_number_is_the_depth(name, depth):
    model = build_model(name, 8, 3, **SMALL)
    assert isinstance(model, Uniform)
    assert len(model.encoder.layers) == depth


@pytest.mark.parametrize(
    "name", ["uniform-00", "uniform-", "uniform--1", "uniform-2.5", "Uniform-6", "uniform-6 ", "x-6", ""]
)
def test_an_unknown_model_is_named_with_the_valid_ones(name):
    with pytest.raises(InputError) as error:
        build_model(name, 8, 3, **SMALL)
    assert repr(name) in str(error.value) and "model.name" in str(error.value)
    assert all(family in str(error.value) for family in model_families())
    assert "\n" not in str(error.value)


def test_a_registered_builder_gets_depth_and_options(own_registry):
    @register("probe")
    def build(depth, input_width, classes, **options):
        return depth, input_width, classes, options

    assert "probe" in model_families()
    assert build_model("probe-4", 7, 5, width=3) == (4, 7, 5, {"width": 3})
    assert build_model("probe", 7, 5) == (None, 7, 5, {})
    with pytest.raises(InputError, match=r"probe, .*tridet, tzn, uniform;"):
        build_model("prob-4", 7, 5)


def test_parameters_grow_linearly_with_depth():
    sizes = [parameters(build_model(f"uniform-{depth}", 8, 3, **SMALL)) for depth in (1, 2, 3, 4)]
    matrices, biases, taps, norms, distances = 16 * 16 * (3 + 1 + 4 + 4), 16 * (3 + 1 + 4 + 1), 3 * 16, 4 * 16, 2 * 19
    per_layer = matrices + biases + taps + norms + distances
    assert [after - before for before, after in pairwise(sizes)] == [per_layer] * 3


@pytest.mark.parametrize("length", [1, 2, 33, 100])
@pytest.mark.parametrize("channels", [None, 1, 2])
@pytest.mark.parametrize("window", [None, 9])
def test_shapes(length, channels, window):
    model = build_model("uniform-2", 8, 3, window=window, distance_channels=channels, **SMALL)
    outputs = model(torch.randn(2, length, 8), torch.ones(2, length, dtype=torch.bool))
    assert outputs.logits.shape == (2, length, 3)
    assert outputs.offsets.shape == outputs.offset_log_variance.shape == (2, length, 2)
    assert (outputs.offsets >= 0).all()
    for tensor in (outputs.distances, outputs.distance_log_variance):
        assert (tensor is None) if channels is None else tensor.shape == (2, length, channels)
    assert all(tensor is None or tensor.isfinite().all() for tensor in vars(outputs).values())


def test_untrained_scores_are_near_the_prior():
    """Instances are rare: focal loss wants an untrained model to believe in none of them."""
    torch.manual_seed(0)
    outputs = build_model("uniform-2", 8, 3, **SMALL).eval()(torch.randn(2, 50, 8), torch.ones(2, 50, dtype=torch.bool))
    assert float(outputs.logits.detach().sigmoid().mean()) == pytest.approx(0.01, rel=0.2)


def test_huge_features_give_no_infinite_boxes():
    model = build_model("uniform-1", 4, 2, **SMALL).eval()
    outputs = model(1e6 * torch.randn(1, 20, 4), torch.ones(1, 20, dtype=torch.bool))
    assert outputs.offsets.isfinite().all()


def test_outputs_map_and_concatenate():
    pieces = [Outputs(*(torch.full((2, width), float(value)) for width in (3, 2, 2))) for value in (1, 2)]
    together = Outputs.concatenate(pieces)
    assert together.logits.shape == (4, 3) and together.logits[:, 0].tolist() == [1, 1, 2, 2]
    assert together.distances is None
    assert together.map(lambda x: x[1:3]).offsets.tolist() == [[1, 1], [2, 2]]
