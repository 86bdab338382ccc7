"""The oracle ablation of boundary protection, from the setting to the label on its scores."""

import json
import signal

import numpy as np
import pytest
import torch
from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import TemporalZoom
from temporalzoom.runs.checkpoint import find_checkpoint
from temporalzoom.training import TrainingInterrupted, loop, train
from temporalzoom.workflows.evaluate import evaluate_run, localize_split, sample_outputs

# Pruning keeps next to nothing, and protects two positions (8 frames) to either side.
TINY = """
data.source=zoombench data.sequences=3 data.test_sequences=2 data.length=80
model.name=tzn model.width=16 model.heads=2 model.head=mlp model.levels=1 model.deep_layers=1 model.pruning=true
model.paper.keep=0.02 model.paper.protect_frames=8 inference.certainty=0
training.steps=2 training.batch_size=2 training.length=50 training.warmup_steps=0 training.accumulate=2
""".split()
QUIET = Console(quiet=True)


def config_of(protection, *overrides):
    return load_config(None, [*TINY, f"model.paper.protection={protection}", *overrides])


@pytest.fixture(scope="module")
def data():
    return load_data(config_of("oracle").data)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, data):
    """One run of either protection."""
    folder = tmp_path_factory.mktemp("runs")
    for protection in ("predicted", "oracle"):
        train(config_of(protection), data.train, folder / protection, console=QUIET)
    return folder


@pytest.fixture
def passes(monkeypatch):
    """Of every pass of a network: the true boundaries it was given, and what came out."""
    seen = []
    original = TemporalZoom.forward

    def forward(self, features, mask, *truth, **named_truth):
        outputs = original(self, features, mask, *truth, **named_truth)
        seen.append((mask, [*truth, *named_truth.values()], outputs))
        return outputs

    monkeypatch.setattr(TemporalZoom, "forward", forward)
    return seen


def slow_near(sample, reach=2):
    """Positions within `reach` of a true boundary, one by one."""
    boundaries = sample.grid.to_grid([*sample.segments.starts, *sample.segments.ends])
    return torch.tensor([bool((np.abs(boundaries - i) <= reach + 1e-6).any()) for i in range(len(sample))])


def assert_protected(mask, boundaries, outputs):
    kept = outputs.depth.kept
    assert (kept | ~boundaries)[mask].all()
    assert ((kept & ~boundaries).sum(1) <= 1).all()  # 2 % of up to 80 positions
    assert not (kept & ~mask).any()


def test_training_protects_the_true_boundaries(data, passes, tmp_path):
    train(config_of("oracle"), data.train, tmp_path, console=QUIET)
    assert len(passes) == 4  # two steps of two batches
    known = [slow_near(sample).tolist() for sample in data.train.samples]
    for mask, (boundaries,), outputs in passes:
        assert boundaries.any() and not boundaries.all()
        for row in boundaries.tolist():  # each is a crop of a recording
            assert any(row == whole[i : i + 50] for whole in known for i in range(31))
        assert_protected(mask, boundaries, outputs)


@pytest.mark.parametrize("max_length", [2304, 60])
def test_evaluation_protects_the_true_boundaries_of_the_test_set(runs, data, passes, max_length):
    localizer = Localizer.load(runs / "oracle")
    localizer.options = localizer.options.model_copy(update={"max_length": max_length})
    localize_split(localizer, data.test, QUIET)
    told = torch.cat([truth[0][0] for _, truth, _ in passes])
    if max_length > 80:
        assert told.tolist() == torch.cat([slow_near(sample) for sample in data.test.samples]).tolist()
    else:
        assert len(passes) == 2 * len(data.test.samples)
    for mask, (boundaries,), outputs in passes:
        assert_protected(mask, boundaries, outputs)
    sample = data.test.samples[0]
    depth = sample_outputs(localizer, sample).depth
    assert depth.kept[slow_near(sample)].all() and depth.kept.sum() <= slow_near(sample).sum() + 2


def test_predicted_protection_passes_nothing(data, passes, tmp_path):
    train(config_of("predicted"), data.train, tmp_path, console=QUIET)
    evaluation = evaluate_run(tmp_path, data.test, console=QUIET)
    assert len(passes) == 4 + len(data.test.samples)
    assert all(truth == [] for _, truth, _ in passes)
    assert "oracle" not in evaluation.summary()


def test_an_oracle_needs_the_truth(runs, data):
    localizer = Localizer.load(runs / "oracle")
    for call in (localizer, localizer.outputs):
        with pytest.raises(InputError, match=r"model\.paper\.protection=oracle"):
            call(data.test.samples[0].features)


def test_scores_of_an_oracle_are_labelled(runs, data, tzoom):
    note = "oracle: the network was told the true boundaries of the test set; an ablation, not a result"
    assert evaluate_run(runs / "oracle", data.test, console=QUIET).summary()["oracle"] is True
    code, out, _ = tzoom("eval", "--model", runs / "oracle", "--json")
    assert code == 0 and json.loads(out)["oracle"] is True
    code, out, _ = tzoom("eval", "--model", runs / "oracle")
    assert code == 0 and note in out.splitlines()
    code, out, _ = tzoom("eval", "--model", runs / "predicted", "--json")
    assert code == 0 and "oracle" not in json.loads(out)
    code, out, _ = tzoom("eval", "--model", runs / "predicted")
    assert code == 0 and "oracle" not in out


def test_localize_refuses_an_oracle(runs, data, tmp_path, tzoom):
    np.save(tmp_path / "match7.npy", data.test.samples[0].features)
    code, out, err = tzoom(
        "localize", tmp_path / "match7.npy", "--model", runs / "oracle", "--out", tmp_path / "f.json"
    )
    assert code == 2 and out == "" and not (tmp_path / "f.json").exists()
    (line,) = err.strip().splitlines()
    assert line.startswith("error:") and "match7.npy" in line and "model.paper.protection=oracle" in line
    assert tzoom("localize", tmp_path / "match7.npy", "--model", runs / "predicted")[0] == 0


def test_an_oracle_resumes_as_if_nothing_had_happened(runs, data, tmp_path, monkeypatch):
    real_step = loop._step
    with monkeypatch.context() as patch:  # a termination signal during the first step

        def stopped(*arguments):
            signal.raise_signal(signal.SIGTERM)
            return real_step(*arguments)

        patch.setattr(loop, "_step", stopped)
        with pytest.raises(TrainingInterrupted):
            train(config_of("oracle"), data.train, tmp_path / "run", console=QUIET)
    with pytest.raises(InputError, match=r"model\.paper\.protection was 'oracle', now 'predicted'"):
        train(config_of("predicted"), data.train, tmp_path / "run", resume=True, console=QUIET)
    train(config_of("oracle"), data.train, tmp_path / "run", resume=True, console=QUIET)
    weights = [
        (find_checkpoint(run) / "weights.safetensors").read_bytes() for run in (runs / "oracle", tmp_path / "run")
    ]
    assert weights[0] == weights[1]


def test_depth_at_the_true_boundaries_from_training_to_its_label(data, tmp_path, tzoom):
    wanted = [word for word in TINY if "pruning" not in word and "paper" not in word]
    config = load_config(None, [*wanted, "model.paper.allocation=oracle", "model.share=0.2"])
    train(config, data.train, tmp_path / "run", console=QUIET)
    localizer = Localizer.load(tmp_path / "run")
    sample = data.test.samples[0]
    active, beside = sample_outputs(localizer, sample).depth.active, slow_near(sample, 1)
    assert int(active.sum()) == 16 and (active[beside].all() if beside.sum() <= 16 else beside[active].all())
    assert evaluate_run(tmp_path / "run", data.test, console=QUIET).summary()["oracle"] is True
    with pytest.raises(InputError, match=r"model\.paper\.allocation=oracle"):
        localizer(sample.features)
    code, _, err = tzoom("export", "--model", tmp_path / "run", "--out", tmp_path / "model.onnx")
    assert code == 2 and "oracle" in err
