"""The Localizer: from a trained run to segments, and what it says about input that does not fit."""

import warnings

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from temporalzoom.config import load_config
from temporalzoom.datasets.zoombench import make_zoombench
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.runs.checkpoint import find_checkpoint
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train

TINY = """
data.zoombench.sequences=3 data.zoombench.length=80 data.zoombench.dimension=8 data.zoombench.classes=2
data.zoombench.longest=3 model.name=uniform-2 model.width=16 model.heads=2 model.window=4 inference.threshold=0.009
training.steps=3 training.batch_size=2 training.length=50 training.warmup_steps=0 training.learning_rate=0.003
""".split()


@pytest.fixture(scope="module")
def split():
    return make_zoombench(load_config(None, TINY).data.zoombench)


@pytest.fixture(scope="module")
def run(tmp_path_factory, split):
    folder = tmp_path_factory.mktemp("run")
    train(load_config(None, TINY), split, folder, console=Console(quiet=True))
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


def test_samples_keep_even_the_lowest_scores(localizer, split):
    found = localizer.localize_samples(split.samples)
    assert list(found) == [sample.name for sample in split.samples]
    for sample in split.samples:
        assert found[sample.name] == localizer(sample.features, threshold=0.0, duration=sample.duration)


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
    for scale in (0.0, 1e-30, 1e10, 1e30):
        assert isinstance(localizer(np.full((30, 8), scale, np.float32)), Segments)


def test_nothing_to_load(tmp_path, run):
    with pytest.raises(InputError, match="no such run or checkpoint folder"):
        Localizer.load(tmp_path / "missing")
    with pytest.raises(InputError, match="holds no checkpoint"):
        Localizer.load(tmp_path)
    with pytest.raises(InputError, match="no such run or checkpoint folder"):
        Localizer.load(run / "config.yaml")
