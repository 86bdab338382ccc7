"""Exported models: the same numbers as PyTorch at every length, the same segments, errors that say what is wrong."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from rich.console import Console

from temporalzoom.config import InferenceConfig
from temporalzoom.errors import InputError
from temporalzoom.inference import onnx_forms
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.onnx_network import OnnxNetwork, compare_networks
from temporalzoom.models import build_model
from temporalzoom.models import depth as models_depth
from temporalzoom.runs.description import ModelDescription
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.preparation import Framing, Preparation
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train
from temporalzoom.workflows.export import save_onnx

WIDTH = 6
LENGTHS = (1, 2, 3, 4, 31, 32, 33, 63, 64, 65, 100)  # attention works in blocks of 32
SYSTEMS = {
    "uniform": dict(name="uniform-2", layer_scale=0.3),
    "uniform, no BDR": dict(name="uniform-1", distance_channels=None, standardize=True),
    "uniform, global, raw": dict(name="uniform-1", window=None, stem=(2, 3)),
    "uniform, levels": dict(name="uniform-1", levels=3, distance_channels=None, stem=(2,), stem_window=3),
    "residual, levels": dict(name="tzn", combine="residual", levels=4, budget=0.3),
    "uniform, convolutions": dict(name="uniform-1", head="convolution", levels=3),
    "residual, convolutions": dict(name="tzn", head="convolution", shallow_layers=0, levels=4, budget=0.3),
    "residual, coarse layers": dict(
        name="tzn", head="convolution", shallow_layers=0, coarse_layers=1, levels=4, budget=0.3
    ),
    "uniform, coarse layers": dict(name="uniform-1", levels=3, coarse_layers=2),
    "residual, nothing shallow": dict(name="tzn", shallow_layers=0, stem=(2,), stem_window=3, levels=3, budget=0.3),
    "residual, local attention": dict(name="tzn", context="attention", budget=0.3),
    "layers, convolutions": dict(name="tzn", head="convolution", combine="layers", hysteresis="none"),
    "residual, packed, budget": dict(name="tzn", combine="residual", zoom=0, deep_window=5, budget=0.3),
    "logits, no BDR": dict(name="tzn", combine="logits", distance_channels=None, hysteresis="deadzone"),
    "logits, levels, held": dict(name="tzn", combine="logits", levels=3, hysteresis="hold", pruning=True),
    "residual, packed, global": dict(name="tzn", window=None, zoom=0, budget=0.3),
    "layers, packed, global, one head": dict(name="tzn", heads=1, window=None, zoom=0, combine="layers", budget=0.3),
    "features, no gates": dict(name="tzn", combine="features", depth=False, uncertainty=False, pruning=False),
    "layers": dict(name="tzn", layer_scale=0.3, combine="layers", zoom=3, tau_min=0.4, hysteresis="none"),
    "layers, packed": dict(name="tzn", combine="layers", zoom=0, hysteresis="none"),
}


@pytest.fixture(autouse=True)
def short_sequences(monkeypatch):
    """A hysteresis for 128 positions: a smaller graph, exported sooner."""
    monkeypatch.setattr(models_depth, "DOUBLINGS", 7)


def described(name: str = "tzn") -> ModelDescription:
    return ModelDescription(name, ("a", "b", "c"), TimeGrid(4, 8, 25), InferenceConfig(), WIDTH)


def tiny_model(name: str, **options: object) -> torch.nn.Module:
    """Random weights, all of them large enough to matter; about half the positions go deep."""
    torch.manual_seed(0)
    small = dict(width=16, heads=2, window=4, distance_channels=2)
    if name == "tzn":
        small |= dict(shallow_layers=1, deep_layers=2)
    model = build_model(name, WIDTH, 3, **(small | options)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        if getattr(model, "depth", None) is not None:
            model.depth.gate[-1].weight.mul_(4)
            logits = model(torch.randn(1, 200, WIDTH), torch.ones(1, 200, dtype=torch.bool)).depth.logits
            model.depth.gate[-1].bias.sub_(logits.median())
    return model


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_exported_model_says_the_same_at_every_length(system, tmp_path):
    _, compared = save_onnx(tiny_model(**SYSTEMS[system]), described(), tmp_path / "m.onnx", LENGTHS, repeats=1)
    assert compared.difference <= 1e-4
    if compared.active is not None and "no gates" not in system:
        assert 0.05 < compared.active < 0.95  # there was something to decide


def test_positions_that_are_not_active_cost_nothing(tmp_path):
    """The deep layers see as many rows as there are active positions: the product of their first layer tells."""
    _, compared = save_onnx(tiny_model("tzn"), described(), tmp_path / "m.onnx", LENGTHS, repeats=1)
    assert compared.difference <= 1e-4
    graph = onnx.load(tmp_path / "m.onnx")
    deep = next(n for n in graph.graph.node if n.name.endswith("deep.0/look/query/MatMul"))
    graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(deep.output[0]))
    onnx.save(graph, tmp_path / "watched.onnx")
    network = OnnxNetwork(tmp_path / "watched.onnx")
    features = np.random.default_rng(0).normal(size=(1, 100, WIDTH)).astype(np.float32)
    active, rows = network.session.run(["active", deep.output[0]], {"features": features})
    assert 5 < active.sum() < 95 and rows.shape == (1, active.sum(), 16)


def test_only_a_held_tau_limits_the_length(tmp_path):
    for hysteresis, longest in (("none", None), ("hold", 128)):
        file = tmp_path / f"{hysteresis}.onnx"
        written, _ = save_onnx(tiny_model("tzn", hysteresis=hysteresis), described(), file, lengths=(9,), repeats=1)
        assert written.graph.longest == longest
    with pytest.raises(InputError, match="right for up to 128 positions"):
        OnnxNetwork(file)(torch.zeros(1, 129, WIDTH), torch.ones(1, 129, dtype=torch.bool))


def test_a_file_tells_what_it_needs(tmp_path):
    description = ModelDescription(
        "uniform-2", ("a", "b, c", "ü"), TimeGrid(4, 8.5, 29.97), InferenceConfig(sigma=0.3, voting=0.7), WIDTH,
        preparation=Preparation(Framing(8, 4), fills_gaps=True, resize=100),
        origin=ExtractionSettings("motion", 4, 8, 25.0, {"grid": "2"}),
    )  # fmt: skip
    model = tiny_model("uniform-2")
    written, _ = save_onnx(model, description, tmp_path / "m.onnx", lengths=(9,), repeats=1)
    network = OnnxNetwork(tmp_path / "m.onnx")
    assert network.description == written
    assert replace(written, graph=None, version="") == description
    assert network.receptive_field == model.receptive_field and written.version
    localizer = Localizer.load(tmp_path / "m.onnx")
    assert localizer.description == written and localizer.options == description.inference


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_config, tiny_split):
    folder = tmp_path_factory.mktemp("run")
    settings = ("model.name=tzn", "model.deep_layers=1", "inference.threshold=0.009", "training.steps=2")
    train(tiny_config(*settings), tiny_split, folder, console=Console(quiet=True))
    return folder


def test_the_command_writes_a_file_that_localizes_like_the_run(run, tiny_split, tmp_path, tzoom, monkeypatch):
    monkeypatch.setattr(models_depth, "DOUBLINGS", 10)  # enough for the 700 positions of the comparison
    code, printed, error = tzoom("export", "--model", run, "--out", tmp_path / "new" / "m.onnx", "--budget", 0.4)
    assert code == 0, error
    assert "tzn, features (1, T, 8)" in printed and "gating kept" in printed and "largest difference" in printed
    ours, theirs = Localizer.load(run, budget=0.4), Localizer.load(tmp_path / "new" / "m.onnx")
    for options in (ours.options, ours.options.model_copy(update={"max_length": 50})):  # whole, and in windows
        ours.options = theirs.options = options
        for sample in tiny_split.samples:
            wanted, found = ours(sample.features), theirs(sample.features)
            assert len(found) > 3 and list(found.labels) == list(wanted.labels)
            for column in ("starts", "ends", "scores"):
                np.testing.assert_allclose(getattr(found, column), getattr(wanted, column), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match=r"export it again with --budget 0\.1"):
        Localizer.load(tmp_path / "new" / "m.onnx", budget=0.1)


def test_two_networks_are_compared_output_by_output():
    model = tiny_model("tzn", hysteresis="none")

    def compare(change) -> float:
        def other(features, mask):
            outputs = model(features, mask)
            change(outputs)
            return outputs

        return compare_networks(model, other, lambda length: torch.ones(1, length, WIDTH), (3, 8), 1).difference

    assert compare(lambda outputs: None) == 0
    assert compare(lambda outputs: outputs.logits[0, -1].mul_(1.25)) == pytest.approx(0.25)
    assert compare(lambda outputs: outputs.offsets.mul_(1.5)) == pytest.approx(0.5)
    assert compare(lambda outputs: outputs.distances.fill_(float("nan"))) > 1e6
    assert compare(lambda outputs: outputs.depth.tau[0, 0].add_(0.5)) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="logits"):
        compare(lambda outputs: setattr(outputs, "logits", outputs.logits[:, :2]))


def test_what_differs_is_not_written(tmp_path, monkeypatch):
    named = onnx_forms.named_tensors
    monkeypatch.setattr(onnx_forms, "named_tensors", lambda outputs: {k: 1.01 * v for k, v in named(outputs).items()})
    (tmp_path / "m.onnx").write_text("before")
    with pytest.raises(
        InputError, match=r"m\.onnx: not written: it would differ from uniform-1 by .* more than 0\.0001"
    ):
        save_onnx(tiny_model("uniform-1"), described("uniform-1"), tmp_path / "m.onnx", lengths=(40,), repeats=1)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"] and (tmp_path / "m.onnx").read_text() == "before"


@pytest.mark.parametrize("name", ["actionformer", "tridet", "temporalmaxer", "bmn"])
def test_models_that_cannot_be_exported_are_named(name, tmp_path):
    model = build_model(name, WIDTH, 3, width=16)
    with pytest.raises(InputError, match=f"{name} cannot be exported; uniform-N and tzn"):
        save_onnx(model, described(name), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_errors_are_one_line(run, tmp_path, tzoom, monkeypatch):
    def fails(*arguments: object) -> str:
        code, _, error = tzoom("export", *arguments)
        assert code == 2 and error.count("\n") == 1
        return error

    out = tmp_path / "m.onnx"
    assert "holds no checkpoint" in fails("--model", tmp_path, "--out", out)
    assert "no such run" in fails("--model", tmp_path / "nowhere", "--out", out)
    assert "--format: onnx is the only one, got 'tflite'" in fails("--model", run, "--out", out, "--format", "tflite")
    assert "m.bin: the name must end in .onnx" in fails("--model", run, "--out", tmp_path / "m.bin")
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert 'pip install "temporalzoom[onnx]"' in fails("--model", run, "--out", out)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("small") / "m.onnx"
    save_onnx(tiny_model("uniform-1"), described("uniform-1"), file, lengths=(9,), repeats=1)
    return file


def test_files_that_cannot_be_loaded(small_file, tmp_path, monkeypatch):
    file = tmp_path / "m.onnx"
    with pytest.raises(InputError, match=r"m\.onnx: no such file"):
        Localizer.load(file)
    whole = small_file.read_bytes()
    for damaged in (b"", b"not a graph", whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"m\.onnx: "):
            Localizer.load(file)
    graph = onnx.load_model_from_string(whole)
    for properties, message in (
        ({}, "not written by 'tzoom export'"),
        ({"temporalzoom.format": "1"}, "was written by an earlier version of temporalzoom; export again"),
        ({"temporalzoom.format": "99"}, "format 99 is not supported"),
        ({"temporalzoom.format": "2", "temporalzoom.classes": "["}, "not a description of a model"),
        ({"temporalzoom.format": "2", "temporalzoom.classes": "[]"}, "not a description of a model"),
    ):
        del graph.metadata_props[:]
        onnx.helper.set_model_props(graph, properties)
        onnx.save(graph, file)
        with pytest.raises(InputError, match=message):
            Localizer.load(file)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r'm\.onnx: running it needs onnxruntime: pip install "temporalzoom\[onnx\]"'):
        Localizer.load(file)


def test_padding_is_refused(small_file):
    network, mask = OnnxNetwork(small_file), torch.ones(1, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match="one sequence without padding"):
        network(torch.zeros(1, 5, WIDTH), mask & (torch.arange(5) < 3))
    with pytest.raises(ValueError, match="one sequence without padding"):
        network(torch.zeros(2, 5, WIDTH), mask.expand(2, 5))


@pytest.mark.slow
def test_the_benchmark_prints_what_it_writes(tmp_path):
    repository = Path(__file__).resolve().parents[2]
    options = "--length 40 --width 16 --input-width 8 --repeats 2 --out speed.json".split()
    done = subprocess.run(
        [sys.executable, str(repository / "benchmarks" / "onnx_speed.py"), *options],
        capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(repository / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "speed.json").read_text())
    assert list(result["systems"]) == ["uniform-6", "tzn"] and result["systems"]["tzn"]["active"] == pytest.approx(0.1)
    for name, row in result["systems"].items():
        assert name in done.stdout and f"{row['ratio'][0]:.3f}" in done.stdout
        assert row["difference"] <= 1e-4 and 0 < row["ratio"][1] <= row["ratio"][2]


def test_nobody_is_told_that_a_model_runs(tmp_path: Path):
    """As its packages come, onnxruntime keeps a mark of the machine and a queue of reports in the user's home."""
    code = (
        "from pathlib import Path\nfrom temporalzoom.inference import onnx_network\n"
        "try:\n    onnx_network._open(Path('wrong.onnx'), 1)\n"
        "except onnx_network.InputError as error:\n    print(error)"
    )
    (tmp_path / "wrong.onnx").write_bytes(b"no graph")
    home = tmp_path / "home"
    home.mkdir()
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("ORT_", "XDG_", "CI"))}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**variables, "HOME": str(home)}, capture_output=True, text=True
    )
    assert ran.returncode == 0 and "wrong.onnx" in ran.stdout, ran.stderr
    assert not [path for path in home.rglob("*") if "onnxruntime" in path.name.lower()]
