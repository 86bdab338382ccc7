"""`tzoom clips`: the frames of a clip are those of the video, as many and the same ones; names stay in their folder."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments
from temporalzoom.segments import Segments
from temporalzoom.signals.decoding import read_frames
from temporalzoom.workflows.clip_writing import copy_clip, open_source, write_clip
from temporalzoom.workflows.clips import clip_names

av = pytest.importorskip("av")
REPOSITORY = Path(__file__).resolve().parents[2]
CLIPS = SimpleNamespace(**runpy.run_path(str(REPOSITORY / "tests" / "signals" / "conftest.py")))


def frames(path: Path, size: int | None = None) -> list[tuple[float, np.ndarray]]:
    return [(frame.seconds, frame.image) for frame in read_frames(path, size)]


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Mean difference of two pictures, of 255."""
    return float(np.abs(a.astype(np.int16) - b).mean())


def assert_shows(clip: Path, source: list[tuple[float, np.ndarray]], most: float, size: int | None = None) -> None:
    """As many frames as in `source`, each at its time and with its own picture."""
    shown = frames(clip, size)
    assert len(shown) == len(source)
    for index, ((seconds, image), (expected, picture)) in enumerate(zip(shown, source, strict=True)):
        assert seconds == pytest.approx(expected - source[0][0], abs=2e-3)
        assert apart(image, picture) < most, index


def sound_of(path: Path) -> np.ndarray:
    """All samples as mono, with what the container says to leave out left out."""
    with av.open(str(path)) as container:
        resampler = av.AudioResampler(format="fltp", layout="mono", rate=16000)
        parts = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
        return np.concatenate([part.to_ndarray()[0] for part in [*parts, *resampler.resample(None)]])


SMALL = 90  # pixels, for the pictures of real videos

# Frames


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
def test_the_very_frames(tmp_path, suffix):
    """Every picture is another one, so that an error of one frame is seen."""
    fps, images = 20, [CLIPS.textured(index) for index in range(70)]
    path = CLIPS.render(tmp_path / f"all{suffix}", images, fps=fps)
    source, whole = open_source(path), frames(path)
    for start, end in ((0.0, 0.5), (0.95, 2.0), (1.0, 1.05), (2.025, 3.111), (3.2, 99.0)):
        write_clip(source, start, end, tmp_path / "clip.mp4")
        expected = [(s, image) for s, image in whole if start - 1e-3 <= s < end - 1e-3]
        assert_shows(tmp_path / "clip.mp4", expected, most=14)
        others = [apart(a, b) for (_, a), (_, b) in pairwise(whole)]
        assert min(others) > 30


def test_between_two_frames_it_is_the_one_that_is_shown(tmp_path):
    path = CLIPS.render(tmp_path / "all.mp4", [CLIPS.textured(index) for index in range(20)], fps=10)
    whole = frames(path)
    write_clip(open_source(path), 0.53, 0.55, tmp_path / "clip.mp4")
    assert_shows(tmp_path / "clip.mp4", [whole[5]], most=14)
    write_clip(open_source(path), 1.95, 1.99, tmp_path / "clip.mp4")
    assert_shows(tmp_path / "clip.mp4", [whole[19]], most=14)


def test_frames_of_a_variable_rate_keep_their_distances(tmp_path):
    times = [0, 40, 80, 300, 310, 700, 1000, 1040, 1500]
    path = CLIPS.render(tmp_path / "all.mp4", [CLIPS.textured(index) for index in range(9)], times)
    write_clip(open_source(path), 0.08, 1.04, tmp_path / "clip.mp4")
    assert_shows(tmp_path / "clip.mp4", frames(path)[2:7], most=14)


def test_a_turned_video_and_one_of_odd_size(tmp_path):
    path = CLIPS.turn(CLIPS.render(tmp_path / "turned.mp4", [CLIPS.textured(i) for i in range(10)]), 90)
    write_clip(open_source(path), 0.08, 0.2, tmp_path / "clip.mp4")
    assert frames(tmp_path / "clip.mp4")[0][1].shape == (96, 64, 3)
    assert_shows(tmp_path / "clip.mp4", frames(path)[2:5], most=14)
    with av.open(str(tmp_path / "odd.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 33, 21, "yuv444p"
        for index in range(5):
            picture = np.full((21, 33, 3), 40 * index, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    write_clip(open_source(tmp_path / "odd.mkv"), 0.04, 0.16, tmp_path / "clip.mp4")
    shown = frames(tmp_path / "clip.mp4")
    assert [round(image.mean() / 40) for _, image in shown] == [1, 2, 3] and shown[0][1].shape == (20, 32, 3)


@pytest.mark.parametrize("name", ["bikes", "bigbuckbunny", "highjump", "tennis26"])
def test_real_videos(name, shared_data, tmp_path):
    path = shared_data / "video" / f"{name}.mp4"
    source, whole = open_source(path), frames(path, SMALL)
    for start, end in ((0.0, 0.3), (2.37, 3.21)):
        write_clip(source, start, end, tmp_path / "clip.mp4")
        expected = [(s, image) for s, image in whole if start - 1e-4 <= s < end - 1e-4]
        assert_shows(tmp_path / "clip.mp4", expected, 4, SMALL)


@pytest.mark.parametrize("name", ["bigbuckbunny", "highjump", "tennis26"])
def test_sound_is_in_time(name, shared_data, tmp_path):
    """Where the clip's sound fits the video's best is where it was cut from, to 5 ms."""
    path = shared_data / "video" / f"{name}.mp4"
    source = open_source(path)
    write_clip(source, 2.0, 4.0, tmp_path / "clip.mp4")
    whole, clip = sound_of(path), sound_of(tmp_path / "clip.mp4")
    assert len(clip) / 16000 == pytest.approx(2.0, abs=0.07)
    middle = clip[8000:24000]  # from 0.5 s on
    began = next(s for s, _ in frames(path, 8) if s >= 2.0 - 1e-4)
    fits = np.correlate(whole, middle, mode="valid")
    norms = np.sqrt(np.convolve(whole**2, np.ones(len(middle)), mode="valid"))
    assert np.argmax(fits / (norms + 1e-9)) / 16000 == pytest.approx(began + 0.5, abs=0.005)
    write_clip(source, 2.0, 4.0, tmp_path / "silent.mp4", audio=False)
    with av.open(str(tmp_path / "silent.mp4")) as container:
        assert [stream.type for stream in container.streams] == ["video"]


@pytest.mark.parametrize("name", ["bikes", "bigbuckbunny", "tennis26"])
def test_copies_begin_at_a_key_frame_and_are_bit_for_bit(name, shared_data, tmp_path):
    path = shared_data / "video" / f"{name}.mp4"
    source, whole = open_source(path), frames(path, SMALL)
    copy_clip(source, 3.0, 4.0, tmp_path / "clip.mp4")
    shown = frames(tmp_path / "clip.mp4", SMALL)
    distances = [apart(image, shown[0][1]) for _, image in whole]
    first = int(np.argmin(distances))
    assert distances[first] == 0 and whole[first][0] <= 3.0 + 1e-3
    last = whole[first + len(shown) - 1][0]
    assert last >= 3.9 and last < 4.3
    for (seconds, image), (expected, picture) in zip(shown, whole[first:], strict=False):
        if expected < 3.9:  # the last ones may lack what they were predicted from
            assert seconds == pytest.approx(expected - whole[first][0], abs=2e-3) and (image == picture).all()


def test_a_codec_without_a_place_in_mp4_is_not_copied(tmp_path):
    with av.open(str(tmp_path / "a.avi"), "w") as container:
        stream = container.add_stream("huffyuv", rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv422p"
        for index in range(5):
            picture = np.full((32, 32, 3), 40 * index, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    with pytest.raises(InputError, match="leave out --copy"):
        copy_clip(open_source(tmp_path / "a.avi"), 0, 0.1, tmp_path / "clip.mp4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.avi"]


# Names


@given(st.text(max_size=300), st.lists(st.text(max_size=300), min_size=1, max_size=5))
def test_names_stay_in_their_folder(stem, labels):
    count = len(labels)
    names = clip_names(stem, Segments([0.0] * count, [1.0] * count, [label.replace("\0", "") for label in labels]))
    assert len({name.casefold() for name in names}) == count
    for name in names:
        assert "/" not in name and "\\" not in name and Path(name).name == name
        assert len(name.encode("utf-8", "replace")) < 255 and name.endswith(".mp4")


def test_names_say_what_is_in_them():
    segments = Segments([12.3, 12.3, 12.3], [14.1] * 3, ["serve, 2nd", "../../etc/passwd", "Serve 2nd"])
    assert clip_names("match7", segments) == [
        "match7_12.300-14.100_serve_2nd.mp4",
        "match7_12.300-14.100_etc_passwd.mp4",
        "match7_12.300-14.100_Serve_2nd_2.mp4",
    ]
    assert clip_names("m", Segments([0], [1], ["!"])) == ["m_0.000-1.000_segment.mp4"]


# The command


@pytest.fixture
def match(tmp_path) -> Path:
    return CLIPS.render(tmp_path / "match.mp4", [CLIPS.textured(index) for index in range(60)], fps=20)


FOUND = Segments([0.2, 1.0, 2.0], [0.8, 1.5, 2.5], ["serve", "rally", "serve"], [0.5, 0.9, 0.7])


def test_a_file_for_each_segment(match, tmp_path, tzoom):
    [path] = write_segments(tmp_path / "found.json", {"other": Segments.empty(), "match": FOUND})
    code, out, err = tzoom("clips", match, path, "--out", tmp_path / "clips")
    assert code == 0, err
    made = sorted((tmp_path / "clips").iterdir())
    assert [file.name for file in made] == [
        "match_0.200-0.800_serve.mp4", "match_1.000-1.500_rally.mp4", "match_2.000-2.500_serve.mp4",
    ]  # fmt: skip
    assert all(str(file) in out for file in made) and [len(frames(file)) for file in made] == [12, 10, 10]
    common = ("clips", match, path, "--label", "serve", "--top", 1, "--padding", 0.25, "--out", tmp_path / "one")
    assert tzoom(*common)[0] == 0
    [one] = (tmp_path / "one").iterdir()
    assert one.name == "match_2.000-2.500_serve.mp4" and len(frames(one)) == 20
    assert_shows(one, frames(match)[35:55], most=14)
    code, out, _ = tzoom("clips", match, path, "--threshold", 0.95, "--out", tmp_path / "none")
    assert code == 0 and "no segment to cut" in out and not (tmp_path / "none").exists()
    assert tzoom("clips", match, path, "--copy", "--out", tmp_path / "copies")[0] == 0
    assert len(list((tmp_path / "copies").iterdir())) == 3


def test_the_only_recording_of_a_file(match, tmp_path, tzoom):
    [path] = write_segments(tmp_path / "corrected.vtt", {"corrected": FOUND})
    code, _, err = tzoom("clips", match, path, "--out", tmp_path / "clips")
    assert code == 0 and "'corrected', is taken for match.mp4" in err
    assert len(list((tmp_path / "clips").iterdir())) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "srve"], ["--label", "did you mean 'serve'"]),
        (["--top", "2"], ["--top", "no scores"]),
        (["--model", "runs/x"], ["either"]),
        (["--device", "cpu"], ["--device", "--model"]),
    ],
)
def test_what_is_refused(match, tmp_path, tzoom, options, words):
    [path] = write_segments(tmp_path / "found.csv", {"match": FOUND})
    code, _, err = tzoom("clips", match, path, "--out", tmp_path / "clips", *options)
    assert code == 2 and "Traceback" not in err and all(word in err for word in words), err
    assert not (tmp_path / "clips").exists()


def test_files_that_do_not_go_together(match, tmp_path, tzoom):
    [path] = write_segments(tmp_path / "found.json", {"a": FOUND, "b": FOUND})
    assert "no recording 'match'; it has a, b" in tzoom("clips", match, path)[2]
    assert "either" in tzoom("clips", match)[2]
    assert "not a video" in tzoom("clips", path, path)[2]
    [late] = write_segments(tmp_path / "late.json", {"match": Segments([2, 700], [3, 701], ["a", "b"])})
    assert "1 segments start after the end" in tzoom("clips", match, late)[2]
    (tmp_path / "file").write_text("")
    code, _, err = tzoom("clips", match, path.rename(tmp_path / "x.json"), "--out", tmp_path / "file")
    assert code == 2 and "Traceback" not in err


def test_ctrl_c_leaves_whole_files_only(shared_data, tmp_path):
    """A process of its own, interrupted while it cuts the second clip."""
    video, out = shared_data / "video" / "bigbuckbunny.mp4", tmp_path / "clips"
    many = Segments(np.arange(9) / 2, np.arange(9) / 2 + 0.5, ["hop"] * 9)
    [path] = write_segments(tmp_path / "found.json", {"bigbuckbunny": many})
    command = [sys.executable, "-m", "temporalzoom", "clips", video, path, "--out", out]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not list(out.glob("*.mp4")) and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    left = list(out.iterdir())
    assert 0 < len(left) < 9 and all(file.suffix == ".mp4" for file in left)
    assert all(len(frames(file)) in (12, 13) for file in left)


def test_a_model_finds_them_first(tmp_path, tzoom):
    from temporalzoom.datasets.zoombench_scenes import VideoBench
    from temporalzoom.datasets.zoombench_video import write_zoombench_video
    from temporalzoom.signals.extraction_processes import extract_features

    write_zoombench_video(tmp_path / "clips", VideoBench(clips=3, seconds=6, size=64, fps=10))
    extract_features([tmp_path / "clips"], tmp_path / "features")
    database = {
        f"clip_{index:04d}": {
            "subset": "train",
            "duration": 6.0,
            "fps": 10,
            "annotations": [{"label": "a", "segment": [1, 2]}],
        }
        for index in range(3)
    }
    (tmp_path / "annotations.json").write_text(json.dumps({"database": database}))
    (tmp_path / "c.yaml").write_text("data: {annotations: annotations.json, features: features}")
    tiny = ("training.steps=2", "model.width=16", "training.batch_size=2", "training.length=48")
    code, _, err = tzoom("train", tmp_path / "c.yaml", "--out", tmp_path / "run", *tiny, "inference.min_score=1e-6")
    assert code == 0, err
    common = ("clips", tmp_path / "clips" / "clip_0000.mp4", "--model", tmp_path / "run")
    code, _, err = tzoom(*common, "--threshold", 0, "--top", 2, "--out", tmp_path / "found")
    assert code == 0 and len(list((tmp_path / "found").glob("clip_0000_*_a.mp4"))) == 2, err
