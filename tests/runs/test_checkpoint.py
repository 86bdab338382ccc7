"""Checkpoints: what comes back, what a crash leaves behind, what a damaged file says."""

import copy
import json
import os
import shutil
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file

from temporalzoom.errors import InputError
from temporalzoom.runs import checkpoint as checkpoint_module
from temporalzoom.runs.checkpoint import (
    checkpoint_folder,
    find_checkpoint,
    list_checkpoints,
    load_network,
    load_optimizer,
    load_weights,
    read_info,
    remove_drafts,
    save_checkpoint,
)
from temporalzoom.runs.description import describe
from temporalzoom.runs.network import model_from_config
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train
from temporalzoom.training.optimizer import build_optimizer

FILES = ("checkpoint.json", "weights.safetensors", "average.safetensors", "optimizer.safetensors")


@pytest.fixture
def state(tiny_config):
    """A model with its average and an optimizer that has worked, and a description."""
    config = tiny_config()
    torch.manual_seed(0)
    model = model_from_config(config, 8, 2, TimeGrid(4, 8, 30))
    average = copy.deepcopy(model)
    optimizer = build_optimizer(model, config.training)
    for _ in range(3):
        sum(p.square().sum() for p in model.parameters()).backward()
        optimizer.step()
    return describe(config, ("jump", "run"), 8, TimeGrid(4, 8, 25), step=3), model, average, optimizer


def save(run, state, step=3, keep=2):
    info, *rest = state
    return save_checkpoint(run, replace(info, step=step), *rest, keep)


def fresh(state):
    torch.manual_seed(1)
    model = model_from_config(state[0].config, 8, 2, TimeGrid(4, 8, 30))
    return model, build_optimizer(model, state[0].config.training)


def assert_same_weights(first, second):
    for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_round_trip(tmp_path, state):
    info, model, average, optimizer = state
    folder = save(tmp_path, state)
    assert folder == checkpoint_folder(tmp_path, 3) and sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert read_info(folder) == info
    restored, new_optimizer = fresh(state)
    load_weights(folder, restored, "weights")
    assert_same_weights(restored, model)
    load_optimizer(folder, restored, new_optimizer)
    for old, new in zip(model.parameters(), restored.parameters(), strict=True):
        before, after = optimizer.state[old], new_optimizer.state[new]
        assert before.keys() == after.keys() and all(torch.equal(before[k], after[k]) for k in before)
    load_weights(folder, restored)
    assert_same_weights(restored, average)


def test_a_restored_optimizer_goes_on_as_the_old_one_would(tmp_path, state):
    _, model, _, optimizer = state
    folder = save(tmp_path, state)
    restored, new_optimizer = fresh(state)
    load_weights(folder, restored, "weights")
    load_optimizer(folder, restored, new_optimizer)
    for network, steps in ((model, optimizer), (restored, new_optimizer)):
        for _ in range(3):
            steps.zero_grad()
            sum((p - 1).square().sum() for p in network.parameters()).backward()
            steps.step()
    assert_same_weights(model, restored)


def test_an_optimizer_that_has_not_worked_yet(tmp_path, state):
    info, model, average, _ = state
    folder = save_checkpoint(tmp_path, info, model, average, build_optimizer(model, info.config.training), 1)
    restored, optimizer = fresh(state)
    load_optimizer(folder, restored, optimizer)
    assert not optimizer.state


def test_old_checkpoints_go_and_the_newest_stay(tmp_path, state):
    for step in (1, 2, 3, 10, 11):
        save(tmp_path, state, step, keep=2)
    assert [read_info(folder).step for folder in list_checkpoints(tmp_path)] == [10, 11]
    assert read_info(find_checkpoint(tmp_path)).step == 11


def test_leftovers_of_a_crash_are_ignored_and_overwritten(tmp_path, state):
    save(tmp_path, state, 3)
    for step in (4, 5):
        draft = checkpoint_folder(tmp_path, step).with_suffix(".tmp")
        draft.mkdir()
        (draft / "weights.safetensors").write_bytes(b"half a fi")
        (draft / "left_over").write_text("x")
    assert read_info(find_checkpoint(tmp_path)).step == 3
    folder = save(tmp_path, state, 4)
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert not folder.with_suffix(".tmp").exists()
    assert [read_info(f).step for f in list_checkpoints(tmp_path)] == [3, 4]


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_failure_while_writing_leaves_the_old_checkpoints_whole(tmp_path, state, monkeypatch, writes):
    save(tmp_path, state, 3, keep=1)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    count = 0
    real = checkpoint_module.save_file

    def full_disk(tensors, path):
        nonlocal count
        if count == writes:
            raise OSError(28, "No space left on device")
        count += 1
        real(tensors, path)

    monkeypatch.setattr(checkpoint_module, "save_file", full_disk)
    with pytest.raises(InputError, match="No space left"):
        save(tmp_path, state, 4, keep=1)
    assert find_checkpoint(tmp_path) == checkpoint_folder(tmp_path, 3)
    assert all(file.read_bytes() == content for file, content in before.items())
    monkeypatch.undo()
    assert read_info(save(tmp_path, state, 4, keep=1)).step == 4
    assert [read_info(f).step for f in list_checkpoints(tmp_path)] == [4]


def test_saving_a_step_again_replaces_it(tmp_path, state):
    save(tmp_path, state)
    with torch.no_grad():
        state[1].heads.norm.bias.fill_(7.0)
    folder = save(tmp_path, state)
    restored, _ = fresh(state)
    load_weights(folder, restored, "weights")
    assert (restored.heads.norm.bias == 7).all()
    assert list_checkpoints(tmp_path) == [folder]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "noise"])
def test_damaged_files_are_named(tmp_path, state, file, damage):
    folder = save(tmp_path, state)
    path, restored = folder / file, fresh(state)
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "noise": b"\xff\x00" * 500}[damage])
    with pytest.raises(InputError) as error:
        read_info(folder)
        load_weights(folder, restored[0], "weights")
        load_weights(folder, restored[0], "average")
        load_optimizer(folder, *restored)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("format", 99, "format 99"),
        ("training", {"model": {"widht": 3}}, "did you mean 'model.width'"),
        ("grid", {"stride": 0, "window": 1, "fps": 1}, "stride"),
        ("grid", [1, 2], "not a description of a model"),
        ("classes", None, "not a description of a model"),
    ],
)
def test_a_description_that_makes_no_sense(tmp_path, state, key, value, words):
    file = save(tmp_path, state) / "checkpoint.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(InputError, match=words) as error:
        read_info(file.parent)
    assert str(file) in str(error.value)


def test_a_checkpoint_of_an_earlier_version_says_so(tmp_path, state):
    file = save(tmp_path, state) / "checkpoint.json"
    file.write_text(json.dumps({"format": 1, "step": 3, "classes": ["jump"], "config": {}}))
    with pytest.raises(InputError) as error:
        read_info(file.parent)
    assert str(error.value) == f"{file}: was written by an earlier version of temporalzoom; train again"


def test_what_else_training_needs_comes_back(tmp_path, state):
    folder = save_checkpoint(tmp_path, *state, 1, {"positives": torch.tensor(12.5)})
    assert load_optimizer(folder, *fresh(state)) == {"positives": torch.tensor(12.5)}
    assert load_optimizer(save(tmp_path, state), *fresh(state)) == {}


def test_a_resumed_training_goes_on_with_its_running_mean_of_positives(tmp_path, tiny_config, tiny_split):
    config = tiny_config("training.positives=40", "training.steps=6", "training.checkpoint_every=3")
    last = train(config, tiny_split, tmp_path / "whole", console=Console(quiet=True))
    assert load_file(last / "optimizer.safetensors")["positives"] not in (40.0, 0.0)
    assert not any("positives" in name for name in load_file(last / "weights.safetensors"))
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    shutil.rmtree(checkpoint_folder(tmp_path / "resumed", 6))
    again = train(config, tiny_split, tmp_path / "resumed", resume=True, console=Console(quiet=True))
    for file in FILES:
        assert (again / file).read_bytes() == (last / file).read_bytes(), file


def test_a_network_is_built_from_its_checkpoint(tmp_path, state):
    folder = save(tmp_path, state)
    network, backbone = load_network(folder, read_info(folder))
    assert_same_weights(network, state[2])
    assert not network.training and backbone is None
    with pytest.raises(InputError, match=r"budget: uniform-1 has no adaptive depth"):
        load_network(folder, read_info(folder), budget=0.5)


def test_the_budget_of_a_loaded_network(tmp_path, tiny_config):
    config = tiny_config("model.name=tzn", "model.deep_layers=1")
    model = model_from_config(config, 8, 2, TimeGrid(4, 8, 30))
    described = describe(config, ("jump", "run"), 8, TimeGrid(4, 8, 30))
    folder = save_checkpoint(tmp_path, described, model, model, build_optimizer(model, config.training), 1)
    assert load_network(folder, described)[0].budget is None
    assert load_network(folder, described, 0.3)[0].budget == 0.3
    for share in (-0.1, 1.5):
        with pytest.raises(InputError, match="from 0 to 1"):
            load_network(folder, described, share)


@pytest.mark.parametrize("text", ["[]", "3", "null", "{}", '"words"'])
def test_a_description_of_another_kind(tmp_path, state, text):
    file = save(tmp_path, state) / "checkpoint.json"
    file.write_text(text)
    with pytest.raises(InputError, match="not a description of a model"):
        read_info(file.parent)


@pytest.mark.parametrize("override", ["model.width=32", "model.name=uniform-2", "model.window=5", "bdr.enabled=false"])
def test_weights_of_another_model_do_not_load(tmp_path, state, tiny_config, override):
    folder = save(tmp_path, state)
    other = model_from_config(tiny_config(override), 8, 2, TimeGrid(4, 8, 30))
    before = copy.deepcopy(other)
    with pytest.raises(InputError, match="do not fit the model") as error:
        load_weights(folder, other)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
    assert before.state_dict().keys() == other.state_dict().keys()


def test_no_pickle_anywhere(tmp_path, state, monkeypatch):
    def forbidden(*arguments, **options):
        raise AssertionError("pickle was used")

    for name in ("torch.save", "torch.load", "pickle.dump", "pickle.dumps", "pickle.load", "pickle.loads"):
        monkeypatch.setattr(name, forbidden)
    folder = save(tmp_path, state)
    restored, optimizer = fresh(state)
    load_weights(folder, restored)
    load_optimizer(folder, restored, optimizer)
    for file in folder.iterdir():  # JSON, or a length and a JSON header before raw numbers
        content = file.read_bytes()
        size = int.from_bytes(content[:8], "little")
        assert json.loads(content[8 : 8 + size] if file.suffix == ".safetensors" else content)


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_no_run_there(tmp_path, what):
    path = tmp_path / "run"
    if what == "file":
        path.write_text("x")
    elif what == "empty":
        (path / "checkpoints").mkdir(parents=True)
    with pytest.raises(InputError, match=str(path)):
        find_checkpoint(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused(tmp_path, state, value):
    """A network with them finds nothing, and says so of any recording."""
    folder = save(tmp_path, state)
    for which, load in (("average", load_network), ("weights", None), ("optimizer", None)):
        file = folder / f"{which}.safetensors"
        good = load_file(file)
        name = next(key for key, tensor in good.items() if tensor.is_floating_point() and tensor.ndim)
        bad = {key: tensor.clone() for key, tensor in good.items()}
        bad[name].view(-1)[0] = value
        save_file(bad, file)
        model, optimizer = fresh(state)
        with pytest.raises(InputError, match=r"holds 1 values that are NaN or infinite") as error:
            if load is not None:
                load(folder, read_info(folder))
            elif which == "weights":
                load_weights(folder, model, which)
            else:
                load_optimizer(folder, model, optimizer)
        assert str(error.value).startswith(f"{file}: {name!r}") and "\n" not in str(error.value)
        save_file(good, file)


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_all_files_have_the_mode_of_the_umask(tmp_path, state, mask):
    before = os.umask(mask)
    try:
        folder = save(tmp_path, state)
    finally:
        os.umask(before)
    assert {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()} == dict.fromkeys(FILES, 0o666 & ~mask)


def test_what_a_killed_process_left_is_swept(tmp_path, state):
    folder = save(tmp_path, state)
    for draft in (folder.with_name("step-0000009.tmp"), tmp_path / "best.tmp"):
        draft.mkdir()
        (draft / "average.safetensors").write_text("half")
    (tmp_path / "mine.tmp").mkdir()
    remove_drafts(tmp_path)
    assert sorted(p.name for p in tmp_path.rglob("*.tmp")) == ["mine.tmp"] and list_checkpoints(tmp_path) == [folder]
