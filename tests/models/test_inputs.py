"""From inputs to tokens: what a token can see, padding that never leaks in, and standardization."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from safetensors.torch import load_file

from temporalzoom.config import load_config
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models.inputs import Projection, Standardize, Stem
from temporalzoom.runs.checkpoint import find_checkpoint
from temporalzoom.runs.network import model_from_config
from temporalzoom.segments import Segments
from temporalzoom.signals.preparation import Framing
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train
from temporalzoom.training.loop import standardize_inputs

CHANNELS, WIDTH = 3, 8
TINY = """
model.name=uniform-1 model.width=16 model.heads=2 model.levels=1 model.drop_path=0
training.steps=2 training.batch_size=2 training.length=12 training.warmup_steps=0
""".split()
strides = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def everything(length: int) -> torch.Tensor:
    return torch.ones(1, length, dtype=torch.bool)


def make_split(framing: Framing | None = Framing(4, 2), rows: int = 60) -> Split:
    """Channels of very different size."""
    random = np.random.default_rng(0)

    def sample(name: str) -> Sample:
        signal = (random.normal(size=(rows, CHANNELS)) * [0.01, 1, 500] + [3, 0, -4000]).astype(np.float32)
        grid = TimeGrid(1, 1, 10) if framing is None else TimeGrid(framing.stride, framing.window, 10)
        return Sample(name, signal, grid, rows / 10, Segments([1.0], [3.0], ["walk"]), framing)

    return Split((sample("a"), sample("b")), ("walk", "run"))


# The stem


@settings(max_examples=25)
@given(strides, st.integers(1, 7))
def test_one_token_per_position(chosen: list[int], length: int):
    stem = Stem(math.prod(chosen) * CHANNELS, WIDTH, chosen)
    assert stem(torch.randn(2, length, math.prod(chosen) * CHANNELS), everything(length).expand(2, -1)).shape == (
        2, length, WIDTH,
    )  # fmt: skip


@settings(max_examples=25)
@given(strides)
def test_a_token_sees_its_own_rows_and_as_much_to_both_sides(chosen: list[int]):
    """By gradients: the rows that matter for a token are contiguous, and their middle is that of its position."""
    torch.manual_seed(0)
    rows, length, place = math.prod(chosen), 9, 4
    projection = Projection(rows * CHANNELS, WIDTH, layers=0, stem=chosen)
    features = torch.randn(1, length, rows * CHANNELS, requires_grad=True)
    projection(features, everything(length))[0, place].square().sum().backward()
    assert features.grad is not None
    touched = features.grad.reshape(length * rows, CHANNELS).abs().sum(dim=1) > 0
    where = touched.nonzero().ravel()
    assert touched[where[0] : where[-1] + 1].all()
    assert (where[0] + where[-1] + 1) / 2 == (place + 0.5) * rows
    # Each convolution adds its stride, in units of those before it, to either side.
    reach = sum(math.prod(chosen[: i + 1]) for i in range(len(chosen)))
    assert place * rows - where[0] == reach
    assert math.ceil(reach / rows) <= projection.reach


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("stem", [(), (2, 2)])
def test_reach_bounds_what_a_token_sees(stem: tuple[int, ...], layers: int):
    torch.manual_seed(0)
    projection = Projection(12, WIDTH, layers, stem=stem)
    features = torch.randn(1, 15, 12, requires_grad=True)
    projection(features, everything(15))[0, 7].square().sum().backward()
    assert features.grad is not None
    seen = (features.grad[0].abs().sum(dim=1) > 0).nonzero().ravel() - 7
    assert projection.reach == layers + len(stem) == seen.max() == -seen.min()


@settings(max_examples=25)
@given(strides, st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_padding_never_leaks_in(chosen: list[int], length: int, padding: int, standardize: bool):
    torch.manual_seed(0)
    width = math.prod(chosen) * CHANNELS
    projection = Projection(width, WIDTH, standardize=standardize, stem=chosen)
    if projection.standard is not None:
        projection.standard.set(torch.full((width,), 100.0), torch.full((width,), 0.5))
    features = torch.randn(1, length + padding, width)
    features[:, length:] = 1e3
    mask = everything(length + padding).clone()
    mask[:, length:] = False
    padded = projection(features, mask)
    alone = projection(features[:, :length], everything(length))
    torch.testing.assert_close(padded[:, :length], alone, atol=1e-5, rtol=1e-5)
    assert (padded[:, length:] == 0).all()


def test_the_rows_of_a_position_come_in_their_order():
    """With one convolution of known weights the stem is a weighted sum over rows, written out here."""
    stem = Stem(4 * CHANNELS, WIDTH, [4])
    signal = torch.randn(20, CHANNELS)
    rows = torch.nn.functional.pad(signal, (0, 0, 4, 4))
    convolution, norm = stem.convolutions[0], stem.norms[0]
    for position in range(5):
        window = rows[4 * position : 4 * position + 12]
        expected = torch.einsum("dcn,nc->d", convolution.weight, window) + convolution.bias
        expected = torch.nn.functional.gelu(norm(expected))
        found = stem(signal.reshape(1, 5, 4 * CHANNELS), everything(5))[0, position]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@settings(max_examples=25)
@given(strides, st.integers(0, 7), st.integers(1, 9))
def test_of_windows_that_overlap_the_stem_sees_the_signal(chosen: list[int], more: int, length: int):
    """As from the rows in the middle of the windows alone, which are the signal without its first and last few."""
    rows = math.prod(chosen)
    framing = Framing(rows + more, rows)
    signal = np.random.default_rng(0).standard_normal((framing.rows(length), CHANNELS)).astype(np.float32)
    overlapping = Stem(framing.window * CHANNELS, WIDTH, chosen, framing.window)
    alone = Stem(rows * CHANNELS, WIDTH, chosen)
    alone.load_state_dict(overlapping.state_dict())
    found = overlapping(torch.from_numpy(framing.cut(signal))[None], everything(length))
    middle = signal[more // 2 : more // 2 + length * rows]
    expected = alone(torch.from_numpy(middle).reshape(1, length, -1), everything(length))
    torch.testing.assert_close(found, expected)


def test_a_stem_that_does_not_divide():
    message = "model.stem: the 4 rows of a window do not divide the 18 input channels"
    with pytest.raises(ValueError, match=message):
        Stem(18, WIDTH, [2, 2])
    with pytest.raises(InputError, match=message):
        model_from_config(load_config(None, [*TINY, "data.raw=true", "model.stem=[2,2]"]), 18, 2, TimeGrid(4, 4, 10))


@pytest.mark.parametrize(
    ("framing", "stem", "message"),
    [
        (Framing(6, 6), "[2,2]", "make 4 rows per position; .* it is 6"),
        (Framing(8, 8), "[2,2]", "make 4 rows per position; .* it is 8"),
        (Framing(3, 4), "[4]", "make 4 rows per position, more than the 3 of a window"),
    ],
)
def test_a_stem_of_other_strides_than_the_data_is_refused(framing, stem: str, message: str, tmp_path: Path):
    """Where the numbers divide by chance, rows would be taken for channels."""
    with pytest.raises(InputError, match=f"model.stem: .*{message}"):
        train(load_config(None, [*TINY, "data.raw=true", f"model.stem={stem}"]), make_split(framing), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_of_a_stem():
    assert load_config(None, ["data.raw=true", "model.stem=[5,5]"]).model.stem == (5, 5)
    with pytest.raises(InputError, match=r"model.stem: has no effect here: it reads raw signals"):
        load_config(None, ["model.stem=[5,5]"])
    with pytest.raises(InputError, match=r"model.stem: must be a list, got 5"):
        load_config(None, ["model.stem=5"])
    with pytest.raises(InputError, match=r"model.stem.1: must be at least 1, got 0"):
        load_config(None, ["model.stem=[5,0]"])


# Standardization


def test_standardize_is_the_identity_until_set():
    features = torch.randn(2, 5, CHANNELS)
    assert torch.equal(Standardize(CHANNELS)(features), features)
    assert not list(Standardize(CHANNELS).parameters())


@pytest.mark.parametrize("framing", [None, Framing(1, 1), Framing(4, 4)])
@pytest.mark.parametrize("name", ["uniform-1", "tzn"])
def test_training_data_becomes_zero_mean_and_unit_variance(framing: Framing | None, name: str):
    split = make_split(framing)
    config = load_config(None, [*TINY, f"model.name={name}"])
    model = model_from_config(config, split.input_width, 2, split.samples[0].grid)
    standardize_inputs(model, split)
    (standard,) = [module for module in model.modules() if isinstance(module, Standardize)]
    values = torch.cat([standard(torch.from_numpy(sample.features)) for sample in split.samples])
    values = values.reshape(-1, CHANNELS).double()  # rows: every window holds whole rows
    torch.testing.assert_close(values.mean(dim=0), torch.zeros(CHANNELS).double(), atol=1e-3, rtol=0)
    torch.testing.assert_close(values.std(dim=0, unbiased=False), torch.ones(CHANNELS).double(), atol=1e-3, rtol=0)


def test_overlapping_windows_are_standardized_by_channel():
    split = make_split(Framing(4, 2))
    model = model_from_config(load_config(None, TINY), split.input_width, 2, split.samples[0].grid)
    standardize_inputs(model, split)
    rows = np.concatenate([sample.signal for sample in split.samples]).astype(np.float64)
    features = split.samples[1].features
    expected = (features.reshape(-1, 4, CHANNELS) - rows.mean(axis=0)) / rows.std(axis=0)
    found = model.projection.standardized(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(found.reshape(-1, 4, CHANNELS), expected, atol=2e-2)


@pytest.mark.parametrize("stem", ["[]", "[2,2]"])
def test_the_statistics_are_stored_with_the_weights(stem: str, tmp_path: Path):
    split = make_split(Framing(4, 4))
    settings = [*TINY, "data.raw=true", "data.stride=4", f"model.stem={stem}", "training.ema_decay=0"]
    train(load_config(None, settings), split, tmp_path, console=Console(quiet=True))
    localizer = Localizer.load(tmp_path)
    rows = np.concatenate([sample.signal for sample in split.samples])
    for which in ("weights", "average"):
        stored = load_file(find_checkpoint(tmp_path) / f"{which}.safetensors")
        np.testing.assert_allclose(stored["projection.standard.mean"], np.tile(rows.mean(axis=0), 4), rtol=1e-4)
        np.testing.assert_allclose(1 / stored["projection.standard.factor"], np.tile(rows.std(axis=0), 4), rtol=1e-2)
    # The same network, given what the loaded one makes of its input, without any standardization of its own.
    features = torch.from_numpy(split.samples[0].features)[None]
    plain = model_from_config(
        load_config(None, [*settings, "model.standardize=false"]), split.input_width, 2, split.samples[0].grid
    ).eval()
    weights = {name: value for name, value in stored.items() if "standard" not in name}
    plain.load_state_dict(weights)
    expected = plain(localizer.model.projection.standardized(features), everything(15))
    found = localizer.outputs(split.samples[0].features)
    torch.testing.assert_close(found.logits, expected.logits[0])
    other = plain(features, everything(15))
    assert not torch.allclose(found.logits, other.logits[0])
