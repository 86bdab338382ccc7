"""One suite over all backbones, and what is particular to each."""

import functools
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pretend_device import DEVICE, pretend_device
from temporalzoom.errors import InputError
from temporalzoom.signals.backbones import Backbone, backbone, backbone_names, sliding_windows
from temporalzoom.signals.backbones.interface import centre_crop
from temporalzoom.signals.backbones.motion import APPEARANCE, BLOCKS, ENERGY, FLOW, FLOWS, block_means
from temporalzoom.signals.backbones.swin3d import load_checkpoint
from temporalzoom.signals.extraction import video_features
from temporalzoom.signals.extraction_processes import extract_features
from temporalzoom.signals.preparation import Framing

pytest.importorskip("av")
VIDEOMAE = "huggingface:videomae"  # in the tests: a tiny one, from a folder
# Small enough for a test. The base model has 88 million weights.
SMALL: dict[str, dict[str, object]] = {
    "motion": {},
    "efficientnet_lite0": {"size": 64},
    "swin3d_t": {"weights": "random", "seed": 1, "size": 32},
    "swin3d_s": {"weights": "random", "seed": 1, "size": 32},
    "swin3d_b": {"weights": "random", "seed": 1, "size": 32},
    VIDEOMAE: {},
}
WIDTHS = {"motion": 316, "efficientnet_lite0": 2560, "swin3d_t": 768, "swin3d_s": 768, "swin3d_b": 1024, VIDEOMAE: 24}
TINY = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
SLOW = {"swin3d_s", "swin3d_b", VIDEOMAE}
every = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SMALL]
)


@pytest.fixture(scope="module")
def built(torchvision, tmp_path_factory) -> Callable[[str], Backbone]:
    """Backbones, each built once."""

    def build(name: str) -> Backbone:
        if name != VIDEOMAE:
            return backbone(name, **SMALL[name])
        folder = tmp_path_factory.mktemp("huggingface") / "videomae"
        tiny_videomae().save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text('{"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}')
        return backbone(f"huggingface:{folder}")

    return functools.cache(build)


@every
def test_features_are_the_same_on_a_device(built, name, monkeypatch):
    made = built(name)
    clips = np.random.default_rng(0).integers(0, 255, (1, 8, 64, 64, 3), np.uint8)
    expected = made(clips)
    monkeypatch.setattr("temporalzoom.device.available_devices", lambda: (DEVICE.type, "cpu"))
    with pretend_device():
        assert made.to("auto") is made
        found = made(clips)
        made.to("cpu")
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_device_that_is_not_there_is_named(torchvision, monkeypatch, tmp_path):
    monkeypatch.setattr("temporalzoom.device.available_devices", lambda: ("cpu",))
    with pytest.raises(InputError, match="device: cuda is not available here; available: cpu"):
        backbone("swin3d_t", device="cuda", **SMALL["swin3d_t"])
    with pytest.raises(InputError, match="option device: where a backbone runs is no option of it"):
        extract_features([], tmp_path, "swin3d_t", options={"device": "cuda"})


def tiny_videomae():
    """A VideoMAE of one layer for 8 frames of 32 x 32, always the same."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.VideoMAEConfig(image_size=32, num_frames=8, **TINY)
    return transformers.VideoMAEModel(config).eval()


def video(frames: int, size, seed: int = 0) -> np.ndarray:
    """Frames (n, H, W, 3) in the size a backbone wants, a texture that wanders and flickers."""
    height, width = size if isinstance(size, tuple) else (size, size + 8)
    random = np.random.default_rng(seed)
    ground = random.integers(0, 256, (16, 20, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1)
    images = [np.roll(ground, (index, 2 * index), (0, 1))[:height, :width] for index in range(frames)]
    return np.stack([np.clip(image + random.integers(-20, 20), 0, 255).astype(np.uint8) for image in images])


def streamed(found: Backbone, frames: np.ndarray, window: int, stride: int, batch: int) -> np.ndarray:
    batches = [frames[first : first + batch] for first in range(0, len(frames), batch)]
    return np.concatenate(list(found.stream(batches, window, stride)))


# Every backbone


@every
def test_shape_and_determinism(built, name, clips):
    found = built(name)
    clips = np.stack([video(8, found.frame_size, seed) for seed in (0, 1)])
    kept = clips.copy()
    features = found(clips)
    assert found.name.split("/")[-1] == name.split(":")[-1] and features.shape == (2, found.width) == (2, WIDTHS[name])
    assert features.dtype == np.float32 and np.isfinite(features).all()
    assert np.array_equal(clips, kept)
    assert np.array_equal(features, found(clips))
    assert np.abs(features[0] - features[1]).max() > 1e-3
    assert found.window >= found.stride >= 1 and set(found.options) == set(SMALL[name])


@every
def test_a_stream_gives_the_features_of_its_windows(built, name):
    """However it is split into batches: the same as cutting every window out and looking at it alone."""
    found = built(name)
    frames = video(19, found.frame_size)
    alone = np.concatenate([found(frames[None, first : first + 8]) for first in (0, 3, 6, 9)])
    for batch in (4, 19):
        np.testing.assert_allclose(streamed(found, frames, 8, 3, batch), alone, rtol=1e-3, atol=1e-4)
    short = streamed(found, frames[:5], 8, 3, 2)
    padded = np.concatenate([frames[:5], frames[4:5], frames[4:5], frames[4:5]])
    np.testing.assert_allclose(short, found(padded[None]), rtol=1e-3, atol=1e-4)


@every
@pytest.mark.parametrize("seconds", [1.5, 1.8])
def test_features_change_when_the_video_does(built, switching, name, seconds):
    """Half of the way from what the features are before to what they are after is reached at the switch."""
    found = built(name)
    size = 64 if found.frame_size == (64, 64) else int(found.frame_size)
    path = switching(seconds, total=3.2, fps=20, height=size, width=size + 32)
    features, grid, duration = video_features(path, found, stride=4, window=8)
    assert duration == pytest.approx(3.2) and grid.fps == 20
    direction = features[-1] - features[0]
    way = (features - features[0]) @ direction / (direction @ direction)
    after = int(np.argmax(way > 0.5))
    crossing = after - 1 + (0.5 - way[after - 1]) / (way[after] - way[after - 1])
    assert abs(float(grid.to_seconds(crossing)) - seconds) <= 0.5 * grid.step_seconds


# Names and options


def test_names(monkeypatch):
    assert backbone_names() == (*(name for name in SMALL if name != VIDEOMAE), "huggingface:NAME")
    with pytest.raises(InputError, match=r"'mtion'.*motion, efficientnet_lite0, swin3d_t"):
        backbone("mtion")
    for name in ("huggingface", "motion:fast", "i3d:rgb"):
        with pytest.raises(InputError, match=f"unknown backbone '{name}'"):
            backbone(name)
    with pytest.raises(InputError, match="motion: unknown option 'size'; it has none"):
        backbone("motion", size=3)
    with pytest.raises(InputError, match="'wieghts'; valid: weights, seed, size"):
        backbone("swin3d_t", wieghts="random")
    with pytest.raises(InputError, match="size must be a whole number, got 'big'"):
        backbone("swin3d_t", size="big")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(InputError, match=r"temporalzoom\[video\]"):
        backbone("efficientnet_lite0")
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    with pytest.raises(InputError, match=r"torchvision .*temporalzoom\[video\]"):
        backbone("swin3d_t", weights="random")


# Windows


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 12), st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_windows_of_batches_are_those_of_the_whole_signal(rows, window, stride, sizes):
    signal = np.random.default_rng(rows).normal(size=(rows, 2)).astype(np.float32)
    batches, first = [], 0
    while first < rows:
        size = sizes[len(batches) % len(sizes)]
        batches.append(signal[first : first + size])
        first += size
    found = list(sliding_windows(batches, window, stride))
    expected = Framing(window, stride).cut(signal)
    np.testing.assert_array_equal(np.concatenate([part.reshape(len(part), -1) for part in found]), expected)


def test_no_rows_give_no_windows():
    assert list(sliding_windows([], 4, 2)) == []


def test_the_crop_is_the_middle():
    frames = np.arange(2 * 5 * 8 * 3, dtype=np.uint8).reshape(2, 5, 8, 3)
    np.testing.assert_array_equal(centre_crop(frames, 4), frames[:, 0:4, 2:6])


# motion


def motion_parts(clip: np.ndarray) -> list[np.ndarray]:
    """appearance, change, mean energy, largest energy, flow across and down, speed of one clip."""
    lengths = [APPEARANCE, BLOCKS**2, ENERGY, ENERGY, FLOW // 2, FLOW // 2, FLOWS**2]
    return np.split(backbone("motion")(clip[None])[0], np.cumsum(lengths)[:-1])


def test_a_still_picture_has_appearance_only(clips):
    still = np.broadcast_to(clips.textured(5, 64, 64), (8, 64, 64, 3))
    appearance, *moving = motion_parts(still)
    grey = still[0] @ np.array([0.299, 0.587, 0.114]) / 255
    np.testing.assert_allclose(appearance[: BLOCKS**2], grey.reshape(8, 8, 8, 8).mean((1, 3)).ravel(), atol=1e-5)
    assert all(np.abs(part).max() < 1e-6 for part in moving)


def test_brightening_is_change_and_energy():
    clip = np.stack([np.full((64, 64, 3), 100 + 10 * index, np.uint8) for index in range(8)])
    _, change, energy, largest, across, down, _ = motion_parts(clip)
    np.testing.assert_allclose(change, 40 / 255, atol=1e-5)
    np.testing.assert_allclose(energy, np.sqrt(10 / 255), rtol=1e-4)
    np.testing.assert_allclose(largest, np.sqrt(10 / 255), rtol=1e-4)
    assert np.abs(np.stack([across, down])).max() < 1e-4  # nothing moves where there is no texture


@pytest.mark.parametrize(("right", "below"), [(1, 0), (-1, 0), (0, 1), (0, -2), (1, 1)])
def test_flow_has_direction_and_speed(right, below):
    """A smooth texture shifted by whole pixels per frame; flow is in pixels of half the resolution."""
    grid = 2 * np.pi * np.arange(64) / 64
    pattern = sum(
        np.cos(k * grid[None, :] + m * grid[:, None] + phase)
        for k, m, phase in [(2, 1, 0.3), (-1, 3, 1.0), (3, -2, 2.0), (1, 1, 4.0), (4, 3, 5.0)]
    )
    image = (127 + 25 * pattern).astype(np.uint8)[..., None].repeat(3, -1)
    clip = np.stack([np.roll(image, (below * index, right * index), (0, 1)) for index in range(8)])
    *_, across, down, speed = motion_parts(clip)
    assert np.median(across) == pytest.approx(right / 2, rel=0.15, abs=0.03)
    assert np.median(down) == pytest.approx(below / 2, rel=0.15, abs=0.03)
    assert np.median(speed) == pytest.approx(np.hypot(right, below) / 2, rel=0.15)


def test_block_means():
    images = np.random.default_rng(0).normal(size=(3, 12, 8)).astype(np.float32)
    slow = [[images[:, 3 * i : 3 * i + 3, 2 * j : 2 * j + 2].mean((1, 2)) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(block_means(images, 4), np.moveaxis(np.array(slow), -1, 0), atol=1e-6)


def test_a_window_of_one_frame(built):
    for name in ("motion", "efficientnet_lite0"):
        found = built(name)
        assert np.isfinite(found(video(1, found.frame_size)[None])).all()


# efficientnet_lite0


def test_efficientnet_has_its_weights_and_pools_as_said(built):
    found = built("efficientnet_lite0")
    frames = video(8, 64)
    single = np.concatenate([found(frame[None, None])[:, :1280] for frame in frames])
    features = found(frames[None])[0]
    np.testing.assert_allclose(features[:1280], single.mean(0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(features[1280:], single[4:].mean(0) - single[:4].mean(0), rtol=1e-3, atol=1e-4)
    again = backbone("efficientnet_lite0", size=64)
    np.testing.assert_array_equal(again(frames[None])[0], features)  # no weight is left to chance
    with pytest.raises(InputError, match="at least 64 x 64"):
        found(frames[None, :, :32])


# swin3d


def official_layout(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """torchvision's names -> those of the Video Swin repository, written down stage by stage."""
    stages = {"0": "layers.0.blocks", "1": "layers.0.downsample", "2": "layers.1.blocks", "3": "layers.1.downsample"}
    stages |= {"4": "layers.2.blocks", "5": "layers.2.downsample", "6": "layers.3.blocks"}
    names = {}
    for key, value in state.items():
        parts = key.split(".")
        if parts[0] == "features":
            parts = [stages[parts[1]], *parts[2:]]
        words = ".".join(parts).replace("mlp.0.", "mlp.fc1.").replace("mlp.3.", "mlp.fc2.")
        names["cls_head.fc_cls." + parts[-1] if parts[0] == "head" else f"backbone.{words}"] = value
    return names


@pytest.mark.slow
def test_swin_checkpoints_of_both_layouts(built, torchvision, tmp_path, clips):
    found = built("swin3d_t")
    clips = video(8, 32)[None]
    state = dict(found.trunk.state_dict())
    torch.save(state, tmp_path / "own.pth")
    torch.save({"meta": {"epoch": 30}, "state_dict": official_layout(state)}, tmp_path / "official.pth")
    loaded = backbone("swin3d_t", weights=str(tmp_path / "official.pth"), size="32")
    np.testing.assert_array_equal(loaded(clips), found(clips))
    other = backbone("swin3d_t", weights="random", seed=2, size=32)
    assert np.abs(other(clips) - found(clips)).max() > 1e-3
    load_checkpoint(other.trunk, tmp_path / "own.pth", "swin3d_t")
    np.testing.assert_array_equal(other(clips), found(clips))

    del state["norm.weight"]
    torch.save(state, tmp_path / "less.pth")
    with pytest.raises(InputError, match=r"less.pth: no weights of swin3d_t: norm.weight is missing"):
        load_checkpoint(other.trunk, tmp_path / "less.pth", "swin3d_t")
    table = "features.0.0.attn.relative_position_bias_table"
    torch.save(state | {"norm.weight": torch.ones(768), table: torch.zeros(5239, 3)}, tmp_path / "ssv2.pth")
    with pytest.raises(InputError, match=r"ssv2.pth.*bias_table has the shape \(5239, 3\), not \(2535, 3\)"):
        load_checkpoint(other.trunk, tmp_path / "ssv2.pth", "swin3d_t")
    (tmp_path / "bad.pth").write_bytes(b"no checkpoint")
    for file, words in (("bad.pth", "bad.pth: damaged"), ("kinetics", "kinetics400, random or a file")):
        with pytest.raises(InputError, match=words):
            load_checkpoint(other.trunk, tmp_path / file, "swin3d_t")


# huggingface


def test_without_transformers_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"huggingface:some/model needs .*temporalzoom\[huggingface\]"):
        backbone("huggingface:some/model")


@pytest.mark.slow
def test_a_videomae_gives_the_mean_of_its_tokens(built, tmp_path, switching):
    found, network = built(VIDEOMAE), tiny_videomae()
    frames = video(8, 32)
    with torch.inference_mode():
        pixels = torch.from_numpy(frames[:, :, 4:36].copy()).permute(0, 3, 1, 2)[None] / 255
        expected = network(pixel_values=pixels).last_hidden_state.mean(1)
    np.testing.assert_allclose(found(frames[None]), expected, atol=1e-5)
    features, grid, _ = video_features(switching(1.0, 2.0, 20, 32, 64), found)
    assert features.shape == (17, 24) and (grid.window, grid.stride) == (8, 2)
    with pytest.raises(InputError, match="window must be 8, got 6"):
        found(frames[None, :6])


@pytest.mark.slow
def test_what_is_no_video_model_is_refused(torchvision, tmp_path):
    transformers = pytest.importorskip("transformers")
    with pytest.raises(InputError, match=r"nowhere: no model could be loaded"):
        backbone(f"huggingface:{tmp_path / 'nowhere'}")
    transformers.BertModel(transformers.BertConfig(vocab_size=9, **TINY)).save_pretrained(tmp_path / "words")
    with pytest.raises(InputError, match=r"words: not a network for videos"):
        backbone(f"huggingface:{tmp_path / 'words'}")
