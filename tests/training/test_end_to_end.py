"""A backbone that is trained with its detector: from the pieces of a video to segments."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from torch import nn

from pretend_device import pretend_device
from temporalzoom.config import Config, FrameAugmentConfig, load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data, takes_videos
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models.runtime import gradient_scaler
from temporalzoom.models.video import VideoDetector
from temporalzoom.runs.checkpoint import find_checkpoint, load_weights
from temporalzoom.runs.network import backbone_from_config, video_model_from_config
from temporalzoom.signals import pieces
from temporalzoom.signals.decoding import clock_frames
from temporalzoom.signals.extraction import video_features
from temporalzoom.signals.pieces import open_video
from temporalzoom.training import train
from temporalzoom.training.frame_augmentation import decoded_side, draw_variation, vary_frames
from temporalzoom.training.loop import _optimizer, _step
from temporalzoom.training.objective import objective
from temporalzoom.training.video_batches import clip_of, video_batch
from temporalzoom.workflows.evaluate import localize_split
from temporalzoom.workflows.localize import localize_files

pytest.importorskip("av")
REPOSITORY = Path(__file__).resolve().parents[2]
SIGNALS = runpy.run_path(str(REPOSITORY / "tests" / "signals" / "conftest.py"))
CLIPS, torchvision = SimpleNamespace(**SIGNALS), SIGNALS["torchvision"]
QUIET = Console(quiet=True)
TINY = """
data.stride=4 data.window=4 backbone.name=efficientnet_lite0 backbone.size=32
model.name=uniform-1 model.width=16 model.heads=2 model.window=4 model.dropout=0.1 model.head=mlp model.levels=1
model.drop_path=0 model.layer_scale=null training.positives=null training.box_loss=l1+giou inference.certainty=0
bdr.weight=1 bdr.radius=16
training.steps=3 training.batch_size=2 training.length=4 training.warmup_steps=1 training.learning_rate=0.003
""".split()
SWIN = ["backbone.name=swin3d_t", "backbone.weights=random", "training.batch_size=1", "training.length=2"]


def moving(seconds: float, start: float, end: float, fps: int = 20) -> list[np.ndarray]:
    """A still picture whose patches flicker from `start` to `end`."""
    still = CLIPS.textured(7, 32, 48)
    frames = range(round(seconds * fps))
    return [CLIPS.textured(frame, 32, 48) if start <= frame / fps < end else still for frame in frames]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """videos/ of two seconds each, annotations.json beside it, config.yaml."""
    home = tmp_path_factory.mktemp("home")
    (home / "videos").mkdir()
    database = {}
    spans = {"one": (0.4, 1.2), "two": (1.0, 1.8), "three": (0.6, 1.4)}
    for name, (start, end) in spans.items():
        subset = "test" if name == "three" else "train"
        CLIPS.render(home / "videos" / f"{name}.mp4", moving(2.0, start, end), fps=20)
        instances = [{"label": "flicker", "segment": [start, end]}]
        database[name] = {"subset": subset, "duration": 2.0, "fps": 25, "annotations": instances}
    (home / "annotations.json").write_text(json.dumps({"database": database}))
    data = {"source": "folder", "annotations": "annotations.json", "videos": "videos"}
    (home / "config.yaml").write_text(yaml.safe_dump({"data": data}))
    return home


def settings(home: Path, *overrides: str) -> Config:
    return load_config(home / "config.yaml", [*TINY, *overrides])


def training_split(config: Config) -> Split:
    split = load_data(config.data).train
    assert split is not None
    return split


def network(config: Config, split: Split) -> VideoDetector:
    torch.manual_seed(0)
    return video_model_from_config(config, backbone_from_config(config), len(split.classes), split.samples[0].grid)


def batch_of(config: Config, split: Split, step: int = 0):
    options = config.training
    size, augment = config.backbone.size, config.backbone.augment
    return video_batch(split, config.seed, step, options.batch_size, options.length, config.bdr, size, augment)


def gradients(model: VideoDetector, config: Config, split: Split) -> tuple[float, dict[str, torch.Tensor]]:
    batch = batch_of(config, split)
    torch.manual_seed(1)
    terms = objective(model(batch.features, batch.mask), batch, config, 0.0, None)
    loss = torch.stack(list(terms.values())).sum()
    loss.backward()
    return float(loss.detach()), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


# Pieces of videos


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
@pytest.mark.parametrize("fps", [None, 13.0])
def test_a_piece_is_what_the_whole_video_shows_there(tmp_path, suffix, fps):
    """Key frames every 10 frames, B-frames, and a rate that changes: always as if decoded from the start."""
    path = stuttering(tmp_path / f"clip{suffix}")
    video = open_video(path, fps)
    whole = np.concatenate([batch.images for batch in clock_frames(path, video.fps, 32)])
    assert abs(video.frames - len(whole)) <= 1
    for first in (0, 1, 9, 11, 19, 29, len(whole) - 5):
        np.testing.assert_array_equal(video.read(first, 5, 32), whole[first : first + 5])
    after = video.read(len(whole) - 1, 9, 32)
    assert after.shape == (9, *whole.shape[1:]) and (after[3:] == after[-1]).all()


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_only_what_is_needed_is_decoded(tmp_path, monkeypatch, suffix):
    """From the key frame before (one in ten frames is one) to the last frame that is asked for, and one beyond."""
    seen = []

    def counted(*arguments):
        for frame in decoded(*arguments):
            seen.append(frame.pts)
            yield frame

    decoded = pieces.decoded_frames
    video = open_video(stuttering(tmp_path / f"clip{suffix}"))
    assert video.read(0, 1, 32).shape == (1, 32, 48, 3)
    monkeypatch.setattr(pieces, "decoded_frames", counted)
    video.read(44, 5, 32)
    assert 5 <= len(seen) <= 10 + 10 + 5 + 1  # two key frames back where the index is one of decoding times


def stuttering(path: Path) -> Path:
    """A ramp of 60 frames; but in .avi, which knows no such thing, the picture stands still for a while."""
    import av

    images = CLIPS.ramp(60)
    options = {"g": "10", "bf": "2"} if path.suffix != ".avi" else {"g": "10"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4" if path.suffix == ".avi" else "libx264", rate=20, options=options)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for index, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = index if path.suffix == ".avi" else index + 2 * (index > 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def test_videos_of_recordings(home):
    data = settings(home).data
    loaded = load_data(data)
    assert loaded.train is not None and loaded.test is not None
    assert [sample.name for sample in loaded.train.samples] == ["one", "two"]
    sample = loaded.train.samples[0]
    assert len(sample) == 10 and (sample.grid.stride, sample.grid.window, sample.grid.fps) == (4, 4, 20)  # not 25
    assert takes_videos(data) and not takes_videos(load_config(home / "config.yaml", [f"data.features={home}"]).data)
    assert load_data(settings(home, "data.fps=10").data).train.samples[0].video.frames == 20
    with pytest.raises(InputError, match=r"one\.mp4: is a video .*needs features"):
        _ = sample.features
    with pytest.raises(InputError, match=r"needs features"):
        _ = loaded.train.input_width


def test_mistakes_have_names(home, tmp_path):
    def said(*overrides: str) -> str:
        with pytest.raises(InputError) as caught:
            config = settings(home, *overrides)
            train(config, training_split(config), tmp_path / "run", console=QUIET)
        return str(caught.value)

    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "one.mp4").write_bytes((home / "videos" / "one.mp4").read_bytes())
    missing = said(f"data.videos={tmp_path / 'some'}")
    assert f"two: missing features: no video two.* in {tmp_path / 'some'}" in missing
    data = settings(home, f"data.videos={tmp_path / 'some'}").data
    assert load_data(data, allow_missing=True).skipped == ("three", "two")
    assert said("data.videos=nowhere") == f"data.videos: {Path('nowhere').absolute()}: no such file or folder"
    assert "one.mp4 has 40 frames at 20 per second, one window 41" in said("data.window=41")
    assert said("data.stride=2.5") == "data.stride: must be a whole number of frames, got 2.5"
    assert said("backbone.name=swine").startswith("backbone.name: unknown backbone 'swine'; valid: motion")
    assert said("backbone.name=motion", "backbone.size=null").startswith("backbone.name: motion cannot be trained")
    assert "unknown option 'weights'" in said("backbone.weights=random")
    assert said("backbone.trainable=17").startswith("backbone.trainable: efficientnet_lite0 has 16 blocks, got 17")
    for value in ("some", "-1", "true", "1.5"):
        assert "backbone.trainable: must be all, none, or a whole number" in said(f"backbone.trainable={value}")
    assert said("model.standardize=true").startswith("model.standardize: needs features")
    assert "augment.warp: has no effect here: it is for features and signals" in said("augment.warp=0.1")
    assert said("data.raw=true").startswith("data.raw: is for features")
    assert not (tmp_path / "run").exists()


# Variations


@given(
    st.integers(1, 30),
    st.integers(0, 9),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.5]),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.integers(0, 2**32 - 1),
)
def test_frames_of_a_crop_are_varied_alike_and_never_reversed(count, jitter, crop, colour, more, seed):
    options = FrameAugmentConfig(crop=crop, colour=colour, jitter=jitter)
    side = decoded_side(options, 8)
    assert side * (1 - crop) >= 8 - 1e-9
    random = np.random.default_rng(seed)
    height, width = (side + more[0], side) if more[0] < more[1] else (side, side + more[1])
    frames = random.integers(0, 256, (count, height, width, 3), dtype=np.uint8)
    variation = draw_variation(options, count, (height, width), 8, random)
    assert (np.diff(variation.order) >= 0).all() and np.abs(variation.order - np.arange(count)).max() <= jitter
    assert variation.side >= 8 and variation.top + variation.side <= height and variation.left + variation.side <= width
    varied = vary_frames(frames, variation, 8)
    assert varied.shape == (count, 8, 8, 3) and varied.dtype == np.uint8
    still = vary_frames(frames[:1].repeat(count, 0), variation, 8)
    assert (still == still[0]).all()
    if not (crop or colour or jitter):  # as at inference
        top, left = (height - 8) // 2, (width - 8) // 2
        np.testing.assert_array_equal(varied, frames[:, top : top + 8, left : left + 8])


def test_a_flash_stays_one_when_colours_change():
    """Brightness is changed by one number for all frames, not brought to that of each."""
    frames = np.full((6, 8, 8, 3), 60, np.uint8)
    frames[3] = 120
    options = FrameAugmentConfig(colour=0.4)
    for seed in range(5):
        varied = vary_frames(frames, draw_variation(options, 6, (8, 8), 8, np.random.default_rng(seed)), 8)
        levels = varied.reshape(6, -1).astype(int)
        assert (levels[[0, 1, 2, 4, 5]] == levels[0]).all() and (levels[3] > levels[0] + 15).all()


def test_batches_depend_on_seed_and_step_only(home):
    config = settings(home, "backbone.augment.crop=0.2", "backbone.augment.colour=0.3", "backbone.augment.jitter=1")
    split = training_split(config)
    first, again, later = batch_of(config, split, 1), batch_of(config, split, 1), batch_of(config, split, 2)
    assert first.features.shape == (2, 16, 32, 32, 3) and first.features.dtype == torch.uint8
    assert torch.equal(first.features, again.features) and not torch.equal(first.features, later.features)


# The network


def test_training_sees_the_features_that_inference_computes(home):
    """In evaluation mode, a crop of a video goes through the trunk as the whole video through the backbone."""
    config = settings(home, "data.stride=2", "data.window=5")
    split = training_split(config)
    model, built = network(config, split).eval(), backbone_from_config(config)
    sample = split.samples[0]
    expected, _, _ = video_features(sample.video.path, built, 2, 5)
    assert len(expected) == len(sample)
    frames = clip_of(sample, 3, 4, 32, FrameAugmentConfig(), np.random.default_rng(0))
    with torch.no_grad():
        found = model.features(torch.from_numpy(frames))
    np.testing.assert_allclose(found.numpy(), expected[3:7], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [[], ["backbone.checkpointing=true"], pytest.param(SWIN, marks=pytest.mark.slow)])
def test_frames_and_trunk_on_a_device(home, torchvision, options):
    """Wherever they are, the same loss and the same gradients; and the backbone takes frames as before."""
    config = settings(home, *options, "model.dropout=0")
    split = training_split(config)
    expected, wanted = gradients(network(config, split), config, split)
    clips = np.random.default_rng(0).integers(0, 255, (1, 4, 32, 32, 3), np.uint8)
    with pretend_device() as device:
        model, batch = network(config, split).to(device), batch_of(config, split).to(device)
        torch.manual_seed(1)
        terms = objective(model(batch.features, batch.mask), batch, config, 0.0, None)
        loss = torch.stack(list(terms.values())).sum()
        loss.backward()
        built = backbone_from_config(config)
        here = built(clips)
        built.module.to(device)
        np.testing.assert_array_equal(built(clips), here)
    assert float(loss.detach().cpu()) == expected
    found = {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_padding_changes_nothing(home):
    config = settings(home)
    split = training_split(config)
    model, batch = network(config, split).eval(), batch_of(config, split)
    batch.mask[1, 2:] = False
    with torch.no_grad():
        outputs = model(batch.features, batch.mask).logits[1, :2]
        batch.features[1, 8:] = 255
        assert torch.equal(model(batch.features, batch.mask).logits[1, :2], outputs)


@pytest.mark.parametrize("trainable", ["all", "2", "none"])
def test_what_is_frozen_stays_as_it_is(home, trainable, tmp_path):
    """Weights and the statistics of BatchNorm: before the last two blocks nothing moves, in them all weights do."""
    config = settings(home, f"backbone.trainable={trainable}", "backbone.learning_rate_factor=1", "training.steps=1")
    split = training_split(config)
    before = backbone_from_config(config).module.state_dict()
    checkpoint = train(config, split, tmp_path / "run", console=QUIET)
    model = network(config, split)
    load_weights(checkpoint, model, "weights")
    moved = {name for name, tensor in model.trunk.state_dict().items() if not torch.equal(tensor, before[name])}
    names = [name for name, _ in model.trunk.named_parameters()]
    last = ("network._blocks.14.", "network._blocks.15.", "network._conv_head.", "network._bn1.")
    expected = {"all": names, "2": [name for name in names if name.startswith(last)], "none": []}[trainable]
    assert moved == set(expected)
    assert {p for p in names if model.trunk.get_parameter(p).requires_grad} == set(expected)
    modes = [block[0].training for block in model.train().trunk.blocks()]
    assert sum(modes[:-2]) == (14 if trainable == "all" else 0) and modes[-2] == (trainable != "none")
    assert not any(m.training for m in model.trunk.modules() if isinstance(m, nn.BatchNorm2d))


def test_the_backbone_learns_more_slowly(home):
    config = settings(home, "backbone.trainable=2", "backbone.learning_rate_factor=0.25")
    split = training_split(config)
    model = network(config, split)
    optimizer = _optimizer(model, config)
    _step(model, optimizer, gradient_scaler("float32"), split, config, 0, None)
    rates = {parameter: group["lr"] for group in optimizer.param_groups for parameter in group["params"]}
    trunk = {parameter for parameter in model.trunk.parameters() if parameter.requires_grad}
    assert set(rates) == trunk | set(model.detector.parameters())
    assert {rates[p] for p in trunk} == {0.25 * 0.003} and {rates[p] for p in rates.keys() - trunk} == {0.003}


def test_recomputing_gives_the_same_gradients(home):
    """With dropout in the trunk: the backward pass drops what the forward pass dropped."""
    found, calls = [], []
    for value in ("false", "true"):
        config = settings(home, f"backbone.checkpointing={value}", "backbone.trainable=3")
        split = training_split(config)
        built = backbone_from_config(config)
        built.module.network._conv_head = nn.Sequential(built.module.network._conv_head, nn.Dropout(0.3))
        torch.manual_seed(0)
        model = video_model_from_config(config, built, len(split.classes), split.samples[0].grid)
        model.trunk.register_forward_pre_hook(lambda *_, value=value: calls.append(value))
        found.append(gradients(model, config, split))
    assert calls.count("true") == 2 * calls.count("false") > 0
    assert found[0][0] == found[1][0] and found[0][1].keys() == found[1][1].keys()
    assert any(name.startswith("trunk") for name in found[0][1])
    for name, gradient in found[0][1].items():
        largest = float(gradient.abs().max())
        torch.testing.assert_close(found[1][1][name], gradient, rtol=1e-3, atol=1e-4 * largest, msg=name)


def test_a_repeated_batch_is_learned(home):
    config = settings(home, "backbone.trainable=2", "training.steps=1000", "training.learning_rate=0.01")
    split = training_split(config)
    model = network(config, split).train()
    optimizer = _optimizer(model, config)
    batch = batch_of(config, split)
    losses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("temporalzoom.training.loop._batch", lambda *_: batch)
        for step in range(8):
            losses.append(_step(model, optimizer, gradient_scaler("float32"), split, config, step, None)[0]["loss"])
    assert losses[-1] < 0.8 * losses[0]


# Runs


@pytest.fixture(scope="module")
def run(home, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("run")
    config = settings(home, "backbone.trainable=2", "backbone.augment.crop=0.2")
    train(config, training_split(config), run / "one", console=QUIET)
    return run / "one"


def test_resumed_is_the_same(home, run, tmp_path):
    config = settings(home, "backbone.trainable=2", "backbone.augment.crop=0.2", "training.checkpoint_every=1")
    split = training_split(config)
    with pytest.MonkeyPatch.context() as patch:

        def fails(*arguments):
            if arguments[5] == 2:
                raise KeyboardInterrupt
            return _step(*arguments)

        patch.setattr("temporalzoom.training.loop._step", fails)
        with pytest.raises(KeyboardInterrupt):
            train(config, split, tmp_path / "run", console=QUIET)
    checkpoint = train(config, split, tmp_path / "run", resume=True, console=QUIET)
    for file in ("weights", "average", "optimizer"):
        same = [(folder / f"{file}.safetensors").read_bytes() for folder in (checkpoint, find_checkpoint(run))]
        assert same[0] == same[1], file


def test_a_run_localizes_in_videos_with_its_own_backbone(home, run, tzoom):
    """The stored trunk: what the network gives when all of it is loaded and called at once, and no other features."""
    video = home / "videos" / "three.mp4"
    found = localize_files([video], run, threshold=0.0, console=QUIET).segments["three"]
    localizer = Localizer.load(run)
    assert localizer.backbone is not None and localizer.description.origin is None
    config = settings(home, "backbone.trainable=2")
    split = load_data(config.data).test
    assert split is not None
    model = network(config, split)
    load_weights(find_checkpoint(run), model)
    frames = clip_of(split.samples[0], 0, 10, 32, FrameAugmentConfig(), np.random.default_rng(0))
    with torch.no_grad():
        features = model.eval().features(torch.from_numpy(frames)).numpy()
    np.testing.assert_allclose(video_features(video, localizer.backbone, 4, 4)[0], features, rtol=1e-4, atol=1e-4)
    expected = localizer(features, duration=2.0, threshold=0.0)
    np.testing.assert_allclose(np.sort(found.scores), np.sort(expected.scores), atol=1e-4)
    evaluated = localize_split(localizer, split)["three"]
    np.testing.assert_allclose(np.sort(evaluated.scores), np.sort(found.scores), atol=1e-6)

    code, out, error = tzoom("eval", "--model", run, "--json", "--out", home / "found.json")
    assert code == 0 and "mAP" in json.loads(out), error
    stored = json.loads((home / "found.json").read_text())["results"]
    assert len(stored["three"]) == len(evaluated)
    np.save(home / "some.npy", features)
    with pytest.raises(InputError, match="trained together with its backbone, so it takes videos only"):
        localize_files([home / "some.npy"], run, console=QUIET)
    with pytest.raises(InputError, match=r"backbone motion: .* its own, efficientnet_lite0"):
        localize_files([video], run, backbone="motion", console=QUIET)


@pytest.mark.slow
def test_swin_is_trained_from_its_last_blocks(home, torchvision, tmp_path):
    config = settings(home, *SWIN, "backbone.trainable=1", "backbone.checkpointing=true", "training.steps=2")
    split = training_split(config)
    before = backbone_from_config(config).module.state_dict()
    checkpoint = train(config, split, tmp_path / "run", console=QUIET)
    localizer = Localizer.load(checkpoint)
    assert localizer.backbone is not None and localizer.backbone.name == "swin3d_t"
    after = localizer.backbone.module.state_dict()
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert moved and all(name.startswith(("network.features.6.1.", "network.norm.")) for name in moved)
    video = home / "videos" / "three.mp4"
    found = localize_files([video], checkpoint, threshold=0.0, console=QUIET).segments["three"]
    again = localize_split(localizer, load_data(config.data).test)["three"]
    np.testing.assert_allclose(np.sort(found.scores), np.sort(again.scores), atol=1e-6)
    assert len(localizer.backbone.module.blocks()) == 12
