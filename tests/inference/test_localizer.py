"""The Localizer: from a trained run to segments, and what it says about input that does not fit."""

import json
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from temporalzoom.config import InferenceConfig
from temporalzoom.datasets.samples import Split
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.selection import Selection, select
from temporalzoom.models import Outputs
from temporalzoom.runs.checkpoint import find_checkpoint
from temporalzoom.runs.description import ModelDescription
from temporalzoom.segments import Segments
from temporalzoom.signals.preparation import Framing, Preparation, resize_features
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train


@pytest.fixture(scope="module")
def split(tiny_split):
    return Split(tiny_split.samples[:3], tiny_split.classes)


@pytest.fixture(scope="module")
def run(tmp_path_factory, split, tiny_config):
    folder = tmp_path_factory.mktemp("run")
    settings = ("model.name=uniform-2", "model.window=4", "inference.threshold=0.009", "training.steps=3")
    train(tiny_config(*settings), split, folder, console=Console(quiet=True))
    return folder


@pytest.fixture(scope="module")
def localizer(run):
    return Localizer.load(run)


@pytest.fixture
def features(split):
    return split.samples[0].features


def test_segments_are_sorted_named_and_inside_the_recording(localizer, split, features):
    segments = localizer(features)
    assert isinstance(segments, Segments) and len(segments) > 3
    assert (np.diff(segments.scores) <= 0).all()
    assert set(segments.labels) <= set(split.classes)
    assert (segments.starts >= 0).all() and (segments.ends <= split.samples[0].duration).all()
    assert (segments.starts < segments.ends).all()


def test_a_run_and_its_checkpoint_are_the_same(run, localizer, features):
    for path in (str(run), find_checkpoint(run), str(find_checkpoint(run))):
        assert Localizer.load(path)(features) == localizer(features)


def test_what_is_loaded_is_the_average_with_dropout_off(run, localizer):
    stored = load_file(find_checkpoint(run) / "average.safetensors")
    assert all(torch.equal(stored[name], tensor) for name, tensor in localizer.model.state_dict().items())
    assert not localizer.model.training


def test_a_call_selects_what_a_user_sees(localizer, features):
    """By the model's settings, and by what a call says; the ranking itself is not touched."""
    everything = localizer(features, threshold=0.0)
    prepared = localizer.prepare(features)
    assert localizer.segments(localizer.outputs(prepared.features), prepared.grid, prepared.duration) == everything
    wanted = {"threshold": 0.008, "merge_gap": 0.1, "min_length": 0.3, "no_overlap": True}
    shown = localizer(features, **wanted)
    assert 0 < len(shown) < len(everything)
    assert shown == select(everything, Selection(**wanted))
    ordered = shown.sort("start")
    assert (ordered.starts[1:] >= ordered.ends[:-1]).all()

    before = localizer.options
    try:
        localizer.options = before.model_copy(update=wanted)
        assert localizer(features) == shown and localizer(features, top=1) == shown[:1]
        assert localizer(features, threshold=0.0, merge_gap=0.0, min_length=0.0, no_overlap=False) == everything
        assert localizer.find(features, localizer.reader()).segments == everything
    finally:
        localizer.options = before


def test_thresholds_of_classes(localizer, features, split):
    first, second = split.classes
    everything = localizer(features, threshold=0.0)
    low, high = localizer(features, threshold={first: 0.0}), localizer(features, threshold={first: 1.0})
    assert low.filter(labels=first) == everything.filter(labels=first) and not len(high.filter(labels=first))
    both = everything.filter(labels=second, min_score=0.009)  # the model's own threshold
    assert low.filter(labels=second) == both == high.filter(labels=second) and len(both)


def test_a_class_that_the_model_does_not_have_is_refused(localizer, features, run, split, tmp_path):
    name = f"{split.classes[0]}x"
    complaint = f"no class '{name}'; did you mean '{split.classes[0]}'"
    with pytest.raises(InputError, match=f"^min_length: {complaint}"):
        localizer(features, min_length={name: 1.0})
    wrong = localizer.options.model_copy(update={"threshold": {"default": 0.2, name: 0.5}})
    with pytest.raises(InputError, match=f"^inference.threshold: {complaint}"):
        localizer.options = wrong
    copy = shutil.copytree(run, tmp_path / "run")
    [file] = copy.rglob("checkpoint.json")
    told = json.loads(file.read_text())
    told["inference"]["merge_gap"] = {"default": 0.0, name: 0.5}
    file.write_text(json.dumps(told))
    with pytest.raises(InputError, match=f"inference.merge_gap: {complaint}"):
        Localizer.load(copy)


def test_threshold_and_top(localizer, features):
    everything = localizer(features, threshold=0.0)
    assert len(everything) > len(localizer(features)) > 0
    assert localizer(features) == everything.filter(min_score=0.009)
    middle = float(everything.scores[len(everything) // 2])
    assert localizer(features, threshold=middle) == everything.filter(min_score=middle)
    assert localizer(features, threshold=0.0, top=3) == everything[:3]
    assert localizer(features, threshold=0.0, top=10**6) == everything
    assert len(localizer(features, threshold=1.0)) == 0


def test_the_same_twice_and_the_input_untouched(localizer, features):
    before = features.copy()
    assert localizer(features) == localizer(features)
    np.testing.assert_array_equal(features, before)


def test_arrays_of_other_kinds(localizer, features):
    expected = localizer(features)
    for same in (
        features.astype(np.float64),
        np.asfortranarray(features),
        features.tolist(),
        torch.from_numpy(features),
    ):
        assert localizer(same) == expected
    read_only = features.copy()
    read_only.setflags(write=False)  # as of a memory-mapped file
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert localizer(read_only) == expected


@pytest.mark.parametrize("length", [1, 2, 3, 5000])
def test_any_length(localizer, length):
    features = np.random.default_rng(0).normal(size=(length, 8)).astype(np.float32)
    segments = localizer(features, threshold=0.0)
    assert len(segments) > 0
    assert segments.ends.max() <= localizer.grid.duration(length)
    assert localizer.outputs(features).logits.shape == (length, 2)


def test_windows_make_no_difference(run, split):
    features = np.concatenate([sample.features for sample in split.samples])
    results = []
    for length in (10_000, 60):
        localizer = Localizer.load(run)
        localizer.options = localizer.options.model_copy(update={"max_length": length})
        results.append(localizer(features))
    assert results[0].labels.tolist() == results[1].labels.tolist()
    for column in ("starts", "ends", "scores"):
        np.testing.assert_allclose(getattr(results[0], column), getattr(results[1], column), atol=1e-4)


def test_another_grid(localizer, features):
    grid = localizer.grid
    slower = localizer(features, grid=TimeGrid(grid.stride, grid.window, grid.fps / 2))
    expected = localizer(features)
    np.testing.assert_allclose(slower.starts, 2 * expected.starts, atol=1e-9)
    np.testing.assert_allclose(slower.ends, 2 * expected.ends, atol=1e-9)


def test_a_duration_limits_the_segments(localizer, features):
    segments = localizer(features, duration=2.0)
    assert len(segments) and segments.ends.max() == 2.0 and segments.starts.max() < 2.0


def test_the_clock_as_a_whole_or_one_by_one(localizer, features):
    grid = TimeGrid(2, 3, 10)
    expected = localizer(features, grid=grid)
    assert localizer(features, stride=2, window=3, fps=10) == expected != localizer(features)
    assert localizer(features, fps=60) == localizer(features, grid=replace(localizer.grid, fps=60))
    with pytest.raises(InputError, match="grid: is stride, window and fps at once"):
        localizer(features, grid=grid, fps=10)
    with pytest.raises(InputError, match="fps must be a positive number"):
        localizer(features, fps=-1)


@pytest.mark.parametrize("suffix", ["npy", "npz", "pt", "h5"])
def test_a_file_gives_what_its_array_gives(localizer, features, tmp_path, suffix):
    file = tmp_path / f"match 7.{suffix}"
    if suffix == "npy":
        np.save(file, features)
    elif suffix == "npz":
        np.savez(file, features=features)
    elif suffix == "pt":
        torch.save(torch.from_numpy(features), file)
    else:
        with pytest.importorskip("h5py").File(file, "w") as stored:
            stored["features"] = features
    assert localizer(file) == localizer(str(file)) == localizer(features)
    assert localizer(file, top=2, threshold=0.0, fps=60) == localizer(features, top=2, threshold=0.0, fps=60)


def test_files_that_do_not_fit_are_named(localizer, features, tmp_path):
    for name, array, words in (
        ("narrow.npy", features[:, :5], "features have 5 channels, the model was trained with 8"),
        ("gaps.npy", np.where(features > 1, np.nan, features), "NaN or infinite"),
    ):
        np.save(tmp_path / name, array)
        with pytest.raises(InputError, match=words) as error:
            localizer(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}: ")
    (tmp_path / "notes.txt").write_text("no recording")
    cases = ((tmp_path / "none.npy", "no such file"), (tmp_path, "a folder"), (tmp_path / "notes.txt", "nor is it a"))
    for path, words in cases:
        with pytest.raises(InputError, match=words) as error:
            localizer(path)
        assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


class Rows(torch.nn.Module):
    """Scores are the first channel, one class; every position answers for a position to either side."""

    def forward(self, features, mask):
        offsets = torch.ones(*features.shape[:2], 2)
        return Outputs(logits=features[..., :1], offsets=offsets, offset_log_variance=torch.zeros_like(offsets))


def small(**more) -> Localizer:
    options = InferenceConfig(suppression="none", refine="none", min_score=0.0, threshold=0.5)
    described = ModelDescription("rows", ("a",), TimeGrid(4, 8, 25), options, **({"input_width": 2} | more))
    return Localizer(Rows(), described)


def test_features_of_a_model_that_resizes_are_resized_here():
    """The same seconds as the command: one position of 20 in the middle lies at the middle of what the features cover,
    however many features there were."""
    localizer = small(preparation=Preparation(resize=20))
    random = np.random.default_rng(0)
    for length in (7, 20, 133):
        features = random.normal(size=(length, 2)).astype(np.float32)
        resized, grid = resize_features(features, TimeGrid(4, 8, 10), 20)
        expected = small()(resized, grid=grid, duration=TimeGrid(4, 8, 10).duration(length), threshold=0.0)
        found = localizer(features, stride=4, window=8, fps=10, threshold=0.0)
        assert found == expected and len(found) == 20
        assert found == localizer(features, grid=TimeGrid(4, 8, 10), threshold=0.0)
        assert found.ends.max() == pytest.approx(TimeGrid(4, 8, 10).duration(length))
    with pytest.raises(InputError, match="the model resizes features, so their own stride"):
        localizer(features)
    assert localizer(features, stride=3) == localizer(features, stride=3, window=3)


def test_a_model_of_raw_signals_takes_rows(tmp_path):
    localizer = small(preparation=Preparation(Framing(8, 4), fills_gaps=True), input_width=32)
    signal = np.random.default_rng(0).normal(size=(51, 2)).astype(np.float32)
    signal[10:20, 1] = np.nan
    np.save(tmp_path / "walk.npy", signal)
    found = localizer(signal, threshold=0.0)
    assert localizer(tmp_path / "walk.npy", threshold=0.0) == found
    assert len(found) == (51 - 8) // 4 + 1
    assert found.ends.max() <= 51 / 25 and localizer(signal, threshold=0.0, fps=50).ends.max() <= 51 / 50
    prepared = localizer.prepare(signal)
    assert prepared.features.shape == (11, 32) and prepared.duration == 51 / 25
    assert localizer.segments(localizer.outputs(prepared.features), prepared.grid, prepared.duration) == found
    assert localizer(signal, stride=4, window=8, threshold=0.0) == found  # what it does anyhow
    with pytest.raises(InputError, match=r"stride: the model cuts its own windows from raw signals \(8 rows every 4\)"):
        localizer(signal, stride=2)
    with pytest.raises(InputError, match="the raw signal has 32 channels, the model was trained with 2"):
        localizer(prepared.features)
    plain = small(preparation=Preparation(Framing(8, 4)), input_width=16)
    with pytest.raises(InputError, match="the raw signal holds 10 values that are NaN"):
        plain(signal)


def test_labels_of_a_classifier(tmp_path):
    features = np.random.default_rng(0).normal(size=(9, 2)).astype(np.float32)
    np.save(tmp_path / "two.npy", features)
    localizer = small()
    localizer.description = replace(localizer.description, classes=("action",))
    plain = localizer(features, threshold=0.0)
    scores = tmp_path / "scores.json"
    localizer.options = localizer.options.model_copy(update={"video_scores": scores})
    with pytest.raises(InputError, match=rf"two.npy: inference.video_scores: {scores}"):
        localizer(tmp_path / "two.npy")
    scores.write_text(json.dumps({"two": {"run": 0.81, "jump": 0.0}}))
    found = localizer(tmp_path / "two.npy", threshold=0.0)
    assert found == localizer(features, name="two", threshold=0.0) and len(found) == 2 * len(plain)
    np.testing.assert_allclose(found.filter(labels="run").scores, 0.9 * np.sqrt(plain.scores))
    assert localizer(features, name="two") == found.filter(min_score=0.5)
    with pytest.raises(InputError, match=rf"{scores} has no scores for 1 of 1 recordings: three"):
        localizer(features, name="three")
    with pytest.raises(InputError, match=r"name=\.\.\. is needed"):
        localizer(features)
    localizer.description = replace(localizer.description, classes=("walk",))
    with pytest.raises(InputError, match=r"data\.class_agnostic"):
        localizer(features, name="two")


def test_loading_and_calling_needs_no_training(run, features, tmp_path):
    np.save(tmp_path / "x.npy", features)
    code = (
        "import sys\nfrom temporalzoom import Localizer\n"
        f"assert len(Localizer.load({str(run)!r})({str(tmp_path / 'x.npy')!r}))\n"
        "print(*[m for m in sys.modules if m.startswith(('temporalzoom.datasets', 'temporalzoom.training'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_where_the_network_runs(run, features, localizer):
    assert Localizer.load(run, device="cpu")(features) == localizer(features)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((10, 7)), "7 channels.*trained with 8"),
        (np.zeros(8), r"\(T, F\).*\(8,\)"),
        (np.zeros((2, 10, 8)), r"\(2, 10, 8\)"),
        (np.zeros((0, 8)), r"at least one position.*\(0, 8\)"),
        ([], r"at least one position"),
        (np.full((4, 8), np.nan), "32 values that are NaN"),
        (np.array([[np.inf] + [0.0] * 7]), "1 values that are NaN or infinite"),
    ],
)
def test_features_that_do_not_fit(localizer, features, words):
    with pytest.raises(InputError, match=words):
        localizer(features)
    with pytest.raises(InputError, match=words):
        localizer.outputs(features)


def test_extreme_but_finite_features_do_not_crash(localizer):
    for scale in (0.0, 1e-30, 1e10):
        assert isinstance(localizer(np.full((30, 8), scale, np.float32)), Segments)
    with pytest.raises(InputError, match="the scores of the network are NaN"):  # not: nothing was found
        localizer(np.full((30, 8), 1e30, np.float32))


def test_nothing_to_load(tmp_path, run):
    with pytest.raises(InputError, match="no such run or checkpoint folder"):
        Localizer.load(tmp_path / "missing")
    with pytest.raises(InputError, match="holds no checkpoint"):
        Localizer.load(tmp_path)
    with pytest.raises(InputError, match="no such run or checkpoint folder"):
        Localizer.load(run / "config.yaml")
