"""On a device everything is where it belongs, and comes out as on the processor: see `pretend_device`."""

import math
import signal

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from pretend_device import DEVICE, OnDevice, WrongDevice, pretend_device
from temporalzoom.errors import InputError
from temporalzoom.inference.decoding import decode
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.windows import run_network
from temporalzoom.models import runtime
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.runs.network import model_from_config, oracle_reach
from temporalzoom.training import TrainingInterrupted, assignment, loop, objective, train
from temporalzoom.training.batches import near_boundaries
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.training.progress import TrainingProgress

# torch takes the name of the pretended device for one without memory.
pytestmark = pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
QUIET = Console(quiet=True)
TZN = "model.name=tzn model.shallow_layers=1 model.deep_layers=2 "
PYRAMID = " model.levels=3"
NETWORKS = {
    "uniform": "model.name=uniform-1 model.standardize=true",
    "uniform, both assignments": "model.name=uniform-1 training.assignment=both training.positives=20",
    "uniform, one to one": "model.name=uniform-1 training.assignment=hungarian training.box_loss=diou",
    "uniform, global attention": "model.name=uniform-1 model.window=null",
    "uniform, levels": "model.name=uniform-1 model.levels=3",
    "uniform, levels of convolutions": "model.name=uniform-1 model.levels=3 model.head=convolution bdr.scales=sqrt",
    "tzn": TZN,
    "tzn, sees active ones": TZN + "model.zoom=0",
    "tzn, layers": TZN + "model.paper.combine=layers",
    "tzn, layers without zoom": TZN + "model.paper.combine=layers model.zoom=0",
    "tzn, features": TZN + "model.paper.combine=features",
    "tzn, logits": TZN + "model.paper.combine=logits",
    "tzn, attention around": TZN + "model.paper.context=attention model.paper.hysteresis=deadzone",
    "tzn, penalty": TZN + "model.paper.supervision=penalty model.paper.tau_min=0.4",
    "tzn, budget": TZN + "model.budget=0.3",
    "tzn, oracle": TZN + "model.pruning=true model.paper.protection=oracle",
    "tzn, plain": TZN + "model.depth=false model.uncertainty=false model.pruning=false",
    "tzn, recomputed": TZN + "model.checkpoint_deep=true",
    "tzn, levels": TZN + "model.levels=3 model.head=convolution",
    "actionformer": "model.name=actionformer model.drop_path=0.2" + PYRAMID,
    "actionformer, global attention": "model.name=actionformer model.window=null bdr.scales=sqrt" + PYRAMID,
    "tridet": "model.name=tridet training.quality_power=1" + PYRAMID,
    "temporalmaxer": "model.name=temporalmaxer training.box_loss=diou" + PYRAMID,
    "bmn": "model.name=bmn model.durations=8 model.samples=4",
}


@pytest.fixture
def device(monkeypatch):
    """There is a device, and `auto` takes it."""
    monkeypatch.setattr("temporalzoom.device.available_devices", lambda: (DEVICE.type, "cpu"))
    with pretend_device() as device:
        yield device


def learned(model, batch, config):
    """Loss terms and gradients of one training step."""
    torch.manual_seed(1)
    outputs = model.train()(batch.features, batch.mask, **truth_of(batch))
    terms = objective.objective(outputs, batch, config, 0.2, getattr(model, "positives", None))
    torch.stack(list(terms.values())).sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    buffers = dict(model.named_buffers())
    return {name: value.detach() for name, value in (terms | gradients | buffers).items()}


def truth_of(batch):
    return {} if batch.boundaries is None else {"boundaries": batch.boundaries}


def network(config, split):
    torch.manual_seed(0)
    model = model_from_config(config, split.input_width, len(split.classes), split.samples[0].grid)
    if config.model.standardize:
        loop.standardize_inputs(model, split)
    return model


def found(model, config, split):
    """Raw outputs of a recording in windows, and its segments."""
    sample = split.samples[0]
    reach, protected = oracle_reach(config, sample.grid.stride), None
    if reach is not None:
        spans = (sample.grid.to_grid(times) for times in (sample.segments.starts, sample.segments.ends))
        protected = near_boundaries(*spans, len(sample), reach)
    outputs = run_network(model.eval(), sample.features, 50, protected)
    return outputs, decode(outputs, split.classes, sample.grid, sample.duration, config.inference)


@pytest.mark.parametrize("bdr", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_learns_and_localizes_on_a_device(device, tiny_config, tiny_split, name, bdr):
    settings = [setting for setting in NETWORKS[name].split() if bdr or not setting.startswith("bdr.")]
    config = tiny_config(*settings, f"bdr.enabled={bdr}")
    here, there = network(config, tiny_split), network(config, tiny_split).to(device)
    batch = loop._batch(here, tiny_split, config, 0, None, slice(None))
    expected, result = learned(here, batch, config), learned(there, batch.to(device), config)
    assert expected.keys() == result.keys() and len(result) > 10
    for key, value in result.items():
        assert isinstance(value, OnDevice), key
        torch.testing.assert_close(value.cpu(), expected[key], rtol=0, atol=0, msg=lambda m, key=key: f"{key}: {m}")
    (outputs, segments), (raw, others) = found(there, config, tiny_split), found(here, config, tiny_split)

    def on_the_processor(tensor):
        assert type(tensor) is torch.Tensor and tensor.dtype != torch.float64
        return tensor

    outputs.map(on_the_processor)
    assert torch.equal(outputs.logits, raw.logits) and torch.equal(outputs.offsets, raw.offsets)
    assert segments.starts.tolist() == others.starts.tolist() and segments.scores.tolist() == others.scores.tolist()


@pytest.mark.parametrize("place", ["forward", "assignment", "loss"])
def test_a_tensor_in_the_wrong_place_is_noticed(device, monkeypatch, tiny_config, tiny_split, place):
    """What the test above is worth: the same with `torch.arange(n)` planted where a device should have been given."""
    config = tiny_config("model.name=uniform-1")
    model = network(config, tiny_split).to(device)
    batch = loop._batch(model, tiny_split, config, 0, None, slice(None)).to(device)
    if place == "forward":
        original = model.projection.forward
        model.projection.forward = lambda x, mask: original(x, mask) + 0 * torch.arange(x.shape[1])[:, None]
    elif place == "assignment":
        monkeypatch.setattr(objective, "assign", lambda x, *_: 0 * torch.arange(x.logits.shape[1]).repeat(2, 1))
    else:
        original = objective.focal_loss
        monkeypatch.setattr(objective, "focal_loss", lambda x, *a: original(x, *a) * torch.arange(x.shape[2]))
    with pytest.raises(WrongDevice, match="mixed"):
        learned(model, batch, config)


def test_a_batch_moves_as_a_whole(device, tiny_config, tiny_split):
    config = tiny_config("model.levels=2", "bdr.scales=sqrt")
    batch = loop._batch(network(config, tiny_split), tiny_split, config, 0, None, slice(None))
    batch.boundaries = batch.mask.clone()
    moved = batch.to(device)
    assert moved.to(torch.device("cpu")).levels[1].scale == batch.levels[1].scale == 2
    tensors = [moved.features, moved.mask, *moved.starts, *moved.ends, *moved.labels, moved.distances]
    tensors += [moved.distance_weights, moved.boundaries]
    tensors += [part for level in moved.levels for part in (level.distances, level.weights, level.mask)]
    assert len(moved.levels) == 2 and all(isinstance(tensor, OnDevice) for tensor in tensors)


def test_an_empty_recording_on_a_device(device):
    """No instance at all takes other paths through the assignments."""
    none, mask = torch.zeros(0, device=device), torch.ones(6, dtype=torch.bool, device=device)
    matches = assignment.assign_center(none, none, 6)
    logits, offsets = torch.zeros(6, 2, device=device), torch.ones(6, 2, device=device)
    one_to_one = assignment.assign_hungarian(logits, offsets, mask, none, none, none.long())
    assert matches.tolist() == one_to_one.tolist() == [-1] * 6
    assert isinstance(matches, OnDevice) and isinstance(one_to_one, OnDevice)


# Whole trainings


def stopped_at(monkeypatch, step):
    original = TrainingProgress.update

    def update(self, current, terms):
        original(self, current, terms)
        if current == step:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TrainingProgress, "update", update)


def tensors_of(run):
    return {file.name: file.read_bytes() for file in find_checkpoint(run).glob("*.safetensors")}


@pytest.fixture(scope="module")
def on_the_processor(tmp_path_factory, tiny_config, tiny_split):
    run = tmp_path_factory.mktemp("processor")
    train(tiny_config("device=cpu", "training.accumulate=2", "training.steps=4"), tiny_split, run, console=QUIET)
    return run


def test_a_run_goes_on_on_another_device(device, monkeypatch, tmp_path, tiny_config, tiny_split, on_the_processor):
    """Two steps there, one here, one there: with the same arithmetic on both, the weights of a run that never moved."""
    config = tiny_config("training.accumulate=2", "training.steps=4")
    for step, name in ((2, "auto"), (3, "cpu")):
        with monkeypatch.context() as patch:
            stopped_at(patch, step)
            with pytest.raises(TrainingInterrupted):
                now = config.model_copy(update={"device": name})
                train(now, tiny_split, tmp_path, resume=step > 2, console=QUIET)
        assert read_info(find_checkpoint(tmp_path)).config.device == name
        stored = load_file(find_checkpoint(tmp_path) / "optimizer.safetensors")
        assert {tensor.device.type for tensor in stored.values()} == {"cpu"}
    train(config, tiny_split, tmp_path, resume=True, console=QUIET)
    assert tensors_of(tmp_path) == tensors_of(on_the_processor)


def test_a_localizer_on_a_device(device, on_the_processor, tiny_split):
    here, there = Localizer.load(on_the_processor, device="cpu"), Localizer.load(on_the_processor)
    assert runtime.device_of(there.model) == DEVICE and runtime.device_of(here.model) == torch.device("cpu")
    features = tiny_split.samples[0].features
    assert there(features, threshold=0.0).scores.tolist() == here(features, threshold=0.0).scores.tolist()
    there.to("cpu")
    assert runtime.device_of(there.model) == torch.device("cpu") and there.device == "cpu"


def test_a_device_that_is_not_there(tmp_path, tiny_config, tiny_split, on_the_processor, monkeypatch):
    monkeypatch.setattr("temporalzoom.device.available_devices", lambda: ("cpu",))
    with pytest.raises(InputError, match="device: cuda is not available here; available: cpu"):
        train(tiny_config("device=cuda"), tiny_split, tmp_path / "run", console=QUIET)
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="device: mps is not available here; available: cpu"):
        Localizer.load(on_the_processor, device="mps")


# float16


def test_float16_is_refused_on_the_processor(tmp_path, tiny_config, tiny_split, on_the_processor):
    config = tiny_config("device=cpu", "training.precision=float16")
    with pytest.raises(InputError, match=r"^training\.precision: float16 needs the device cuda, this one is cpu"):
        train(config, tiny_split, tmp_path / "run", console=QUIET)
    assert not (tmp_path / "run").exists()
    localizer = Localizer.load(on_the_processor, device="cpu")
    localizer.options = localizer.options.model_copy(update={"precision": "float16"})
    with pytest.raises(InputError, match=r"^inference\.precision: float16 needs the device cuda"):
        localizer(tiny_split.samples[0].features)


@pytest.fixture
def scaler_from(monkeypatch):
    """The processor can do float16 too, if slowly: enough to see that the scaling of gradients is right.

    `scaler_from(scale)`: what training scales gradients by, twice as much every two steps.
    """
    monkeypatch.setattr(runtime, "FLOAT16_DEVICES", ("cpu",))

    def begins(scale):
        def made(*arguments):
            scaler = runtime.gradient_scaler(*arguments)
            if scaler.is_enabled():
                scaler.load_state_dict(scaler.state_dict() | {"scale": scale, "growth_interval": 2})
            return scaler

        monkeypatch.setattr(loop, "gradient_scaler", made)
        return made

    return begins


HALF = ("device=cpu", "training.precision=float16", "training.steps=6", "model.dropout=0")


def test_gradients_of_float16_are_clipped_as_they_are(tiny_config, tiny_split, scaler_from, monkeypatch):
    """Whatever they are scaled by, one step is nearly that of float32."""
    monkeypatch.setattr(loop, "CLIP_NORM", 0.1)
    norms, gradients = {}, {}
    for scale in (None, 1.0, 64.0):
        exact = ["training.precision=float32"] if scale is None else []
        config = tiny_config(*HALF, *exact)
        model = network(config, tiny_split).train()
        scaler = scaler_from(scale)(config.training.precision, "cpu")
        _, norms[scale] = loop._step(model, loop._optimizer(model, config), scaler, tiny_split, config, 0, None)
        gradients[scale] = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert norms[1.0] != norms[None]
    for scale in (1.0, 64.0):
        assert norms[scale] == pytest.approx(norms[None], rel=0.02)
        assert float(gradients[scale].norm()) == pytest.approx(0.1, rel=1e-3)
        torch.testing.assert_close(gradients[scale], gradients[None], rtol=0.1, atol=1e-3)


def test_float16_resumes_with_its_scale(tmp_path, monkeypatch, tiny_config, tiny_split, scaler_from):
    config = tiny_config(*HALF)
    scaler_from(64.0)

    def stored(run="parts"):
        tensors = load_file(find_checkpoint(tmp_path / run) / "optimizer.safetensors")
        return {key: value.item() for key, value in tensors.items() if "scaler" in key}

    train(config, tiny_split, tmp_path / "whole", console=QUIET)
    with monkeypatch.context() as patch:
        stopped_at(patch, 3)
        with pytest.raises(TrainingInterrupted):
            train(config, tiny_split, tmp_path / "parts", console=QUIET)
    assert stored() == {"gradient scaler/scale": 128.0, "gradient scaler/_growth_tracker": 1}
    train(config, tiny_split, tmp_path / "parts", resume=True, console=QUIET)
    assert stored() == stored("whole") == {"gradient scaler/scale": 512.0, "gradient scaler/_growth_tracker": 0}
    assert tensors_of(tmp_path / "parts") == tensors_of(tmp_path / "whole")


def test_gradients_beyond_float16_lower_the_scale_and_teach_nothing(tmp_path, tiny_config, tiny_split, scaler_from):
    config = tiny_config(*HALF, "training.steps=1")
    model, scaler = network(config, tiny_split).train(), scaler_from(2.0**60)("float16", "cpu")
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    terms, norm = loop._step(model, loop._optimizer(model, config), scaler, tiny_split, config, 0, None)
    assert not math.isfinite(norm) and math.isfinite(terms["loss"]) and scaler.get_scale() == 2.0**59
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    train(config, tiny_split, tmp_path, console=QUIET)
    assert "gradient_norm" not in read_metrics(tmp_path / "metrics.jsonl")[0]


def test_a_scale_that_cannot_be_lowered_is_a_divergence(monkeypatch, tiny_config, tiny_split, scaler_from):
    config = tiny_config(*HALF)
    model, scaler = network(config, tiny_split).train(), scaler_from(1.0)("float16", "cpu")
    monkeypatch.setattr(loop.nn.utils, "clip_grad_norm_", lambda *_: torch.tensor(float("inf")))
    with pytest.raises(InputError, match=r"training diverged at step 1 "):
        loop._step(model, loop._optimizer(model, config), scaler, tiny_split, config, 0, None)
