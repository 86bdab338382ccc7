"""Videos of every awkward kind, rendered here, and what is read from them."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.signals import decoding
from temporalzoom.signals.decoding import _TimeStamps, clock_frames, probe, read_frames, target_size

av = pytest.importorskip("av")
MILLISECONDS = [0, 40, 80, 500, 520, 540, 1000, 1040, 1900, 2000]
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def which(images: np.ndarray, count: int) -> list[int]:
    """The positions in `clips.ramp(count)` that decoded pictures (n, H, W, 3) came from."""
    return [round(float(image.mean()) * count / 250) for image in images]


# Times


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_times_of_a_variable_rate_come_from_time_stamps(tmp_path, suffix, clips):
    path = clips.render(tmp_path / f"vfr{suffix}", clips.ramp(len(MILLISECONDS)), MILLISECONDS)
    found = list(read_frames(path))
    assert [frame.seconds for frame in found] == pytest.approx([ms / 1000 for ms in MILLISECONDS], abs=1e-6)
    assert which([frame.image for frame in found], len(MILLISECONDS)) == list(range(len(MILLISECONDS)))


def test_times_count_from_the_first_frame(tmp_path, clips):
    path = clips.render(tmp_path / "late.mkv", clips.ramp(10), [5000 + 100 * index for index in range(10)])
    assert [frame.seconds for frame in read_frames(path)] == pytest.approx(np.arange(10) / 10)


def test_a_stream_without_time_stamps_runs_at_its_rate(tmp_path, clips):
    path = clips.render(tmp_path / "bare.h264", clips.ramp(20), fps=25)
    with av.open(str(path)) as container:
        assert any(packet.pts is None for packet in container.demux(video=0) if packet.size)
    assert [frame.seconds for frame in read_frames(path)] == pytest.approx(np.arange(20) / 25)
    info = probe(path)
    assert info.fps == 25 and info.frames is None and info.duration == pytest.approx(20 / 25)


def test_missing_and_restarted_time_stamps():
    def seconds(stamps: list[int | None]) -> list[float]:
        clock = _TimeStamps(step=0.1)
        return [clock.seconds(SimpleNamespace(pts=stamp, time_base=0.01)) for stamp in stamps]

    assert seconds([None, None, None]) == pytest.approx([0, 0.1, 0.2])
    assert seconds([700, None, 730, 731]) == pytest.approx([0, 0.1, 0.3, 0.31])
    assert seconds([None, 700, 710]) == pytest.approx([0, 0.1, 0.2])
    assert seconds([500, 520, 100, 130]) == pytest.approx([0, 0.2, 0.3, 0.6])  # spliced: starts anew
    assert seconds([500, None, 503, 540]) == pytest.approx([0, 0.1, 0.1, 0.4])  # never backward, and no drift


# The constant clock


@pytest.mark.parametrize(("suffix", "fps"), [(".mkv", 30), (".mp4", 30), (".avi", 24), (".ts", 50), (".mkv", 60)])
def test_a_constant_rate_gives_every_frame_once(tmp_path, suffix, fps, clips):
    """Also where the container rounds times to milliseconds."""
    path = clips.render(tmp_path / f"cfr{suffix}", clips.ramp(50), fps=fps)
    assert probe(path).fps == pytest.approx(fps)
    batches = list(clock_frames(path, probe(path).fps, batch=16))
    assert [batch.first for batch in batches] == [0, 16, 32, 48] and max(len(b.images) for b in batches) == 16
    assert which(np.concatenate([batch.images for batch in batches]), 50) == list(range(50))
    assert [batch.end is None for batch in batches] == [True, True, True, False]
    assert batches[-1].end == pytest.approx(50 / fps, abs=2e-3)


@pytest.mark.parametrize("fps", [3.0, 10.0, 25.0, 33.3, 120.0])
def test_the_clock_shows_what_a_player_would_show(tmp_path, fps, clips):
    """Against a search through all frames for every tick. The tick between 540 and 1000 ms repeats the one of 540."""
    path = clips.render(tmp_path / "vfr.mkv", clips.ramp(len(MILLISECONDS)), MILLISECONDS)
    batches = list(clock_frames(path, fps, batch=7))
    shown = which(np.concatenate([batch.images for batch in batches]), len(MILLISECONDS))
    end = batches[-1].end
    assert end == pytest.approx(2.04)
    ticks = [tick for tick in range(1000) if tick / fps < end - 0.00101]
    seconds = np.array(MILLISECONDS) / 1000
    assert shown == [int(np.flatnonzero(seconds <= tick / fps + 0.00101)[-1]) for tick in ticks]


def test_a_video_of_one_frame(tmp_path, clips):
    (batch,) = clock_frames(clips.render(tmp_path / "one.mp4", clips.ramp(1)), 25.0)
    assert batch.images.shape == (1, 64, 96, 3) and batch.end == pytest.approx(1 / 25)


# Sizes and rotation


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 512))
def test_a_short_side_keeps_the_shape(height, width, side):
    new = target_size((height, width), side)
    assert min(new) == side and (new[0] >= new[1]) == (height >= width or new[0] == new[1])
    assert abs(max(new) - side * max(height, width) / min(height, width)) <= 0.5
    assert target_size((height, width), (12, 34)) == (12, 34) and target_size((height, width), None) == (height, width)


@pytest.mark.parametrize(("size", "shape"), [(None, (64, 96)), (32, (32, 48)), ((40, 24), (40, 24)), (128, (128, 192))])
def test_frames_come_in_the_size_asked_for(tmp_path, size, shape, clips):
    path = clips.render(tmp_path / "some.mp4", [clips.textured(1)] * 3)
    frames = list(read_frames(path, size))
    assert len(frames) == 3 and all(frame.image.shape == (*shape, 3) for frame in frames)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_rotated_recordings_stand_upright(tmp_path, degrees, clips):
    """As phones write them: the pixels lie, the header says how to turn them."""
    photo = clips.textured(3)
    path = clips.turn(clips.render(tmp_path / "phone.mp4", [photo] * 5), degrees)
    info, upright = probe(path), np.rot90(photo, degrees // 90)
    assert info.rotation == degrees and (info.height, info.width) == upright.shape[:2]
    image = next(read_frames(path)).image
    assert image.shape == upright.shape
    errors = [np.abs(np.rot90(upright, turns).astype(int) - image).mean() for turns in (0, 2)]
    assert errors[0] < 20 < errors[1]
    assert next(read_frames(path, (20, 30))).image.shape == (20, 30, 3)
    short = next(read_frames(path, 32)).image.shape
    assert short == ((48, 32, 3) if degrees != 180 else (32, 48, 3))


# What is no video, or not a whole one


def cut(path: Path, share: float = 0.6) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def picture(path: Path, clips) -> Path:
    from PIL import Image

    Image.fromarray(clips.textured(1)).save(path)
    return path


def written(data: bytes) -> Callable[..., Path]:
    def write(path: Path, clips) -> Path:
        path.write_bytes(data)
        return path

    return write


def folder(path: Path, clips) -> Path:
    path.mkdir()
    return path


BAD = {
    "missing.mp4": (lambda path, clips: path, "no such file"),
    "folder.mp4": (folder, "is a folder"),
    "empty.mp4": (written(b""), "0 bytes"),
    "words.txt": (written(b"serve, rally, serve\n" * 50), "not a video"),
    "words.mp4": (written(b"serve, rally, serve\n" * 50), "not a video"),
    "picture.png": (picture, "not a video"),
    "sound.m4a": (lambda path, clips: clips.sound(path), "only audio"),
    "noise.mkv": (written(np.random.default_rng(0).bytes(20000)), "not a video"),
    "cut.mp4": (lambda path, clips: cut(clips.render(path, clips.ramp(75))), "promises 3.00 s, only"),
    "cut.mkv": (lambda path, clips: cut(clips.render(path, clips.ramp(75))), "promises 3.00 s, only"),
    "cut.avi": (lambda path, clips: cut(clips.render(path, clips.ramp(75))), "promises 3.00 s, only"),
    "cut.mov": (lambda path, clips: cut(clips.render(path, clips.ramp(75))), "cut off"),  # its header is at its end
    "header.mp4": (lambda path, clips: cut(clips.render(path, clips.ramp(75)), 0.01), "cut off"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_one_line_that_names_the_file(tmp_path, name, clips):
    make, words = BAD[name]
    path = make(tmp_path / name, clips)
    with pytest.raises(InputError) as error:
        for _ in clock_frames(path, 25.0):
            pass
    message = str(error.value)
    assert message.startswith(str(path)) and words in message and "\n" not in message
    if not name.startswith("cut."):  # a cut file may have a whole header
        with pytest.raises(InputError, match=r"mp4|txt|png|m4a|mkv"):
            probe(path)


def test_a_cut_file_says_how_far_it_got(tmp_path, clips):
    path = cut(clips.render(tmp_path / "cut.mkv", clips.ramp(75)))
    seconds = []
    with pytest.raises(InputError) as error:
        for frame in read_frames(path):
            seconds.append(frame.seconds)
    assert 0.5 < seconds[-1] < 2.5 and f"only {seconds[-1] + 0.04:.2f} s" in str(error.value)


def test_a_time_stamp_far_outside_is_damage_and_not_a_long_pause(tmp_path, monkeypatch, clips):
    path = clips.render(tmp_path / "leap.mkv", clips.ramp(4), [0, 40, 80, 200_000])
    assert next(reversed(list(read_frames(path)))).seconds == 200
    monkeypatch.setattr(decoding, "_promised_seconds", lambda container, stream: 1.0)
    with pytest.raises(InputError, match=r"leap.mkv: damaged: .* 1.00 s, but after 0.12 s its time stamps leap to 200"):
        list(read_frames(path))


def test_without_pyav_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InputError, match=r'pip install "temporalzoom\[video\]"'):
        probe(tmp_path / "any.mp4")


# Real recordings


def test_real_recordings(shared_data):
    paths = sorted((shared_data / "video").glob("*.mp4"), key=lambda path: path.stat().st_size)[:2]
    if not paths:
        pytest.skip("no videos in ../shared/data/video")
    for path in paths:
        info = probe(path)
        with av.open(str(path)) as container:
            frames = [(frame.time, frame.height, frame.width) for frame in container.decode(video=0)]
        seconds = [frame.seconds for frame in read_frames(path, (8, 8))]
        assert seconds == pytest.approx([time - frames[0][0] for time, _, _ in frames], abs=1e-9)
        assert (info.height, info.width) == frames[0][1:]
        batches = list(clock_frames(path, info.fps, (8, 8)))
        assert batches[-1].end == pytest.approx(info.duration, abs=2 / info.fps)
        assert batches[-1].first + len(batches[-1].images) == len(frames)


def test_the_benchmark_of_decoding(monkeypatch, tmp_path, capsys, clips):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    benchmark = importlib.import_module("decoding_speed")
    out = tmp_path / "speed.json"
    monkeypatch.setattr(sys, "argv", ["decoding_speed.py", "--frames", "20", "--repeats", "2", "--out", str(out)])
    benchmark.main()
    measured = json.loads(out.read_text())["videos"]["rendered.mp4"]
    assert list(measured) == ["bare loop", "nothing", "motion"] and measured["bare loop"]["ratio"] == [1, 1, 1]
    printed = capsys.readouterr().out
    assert all(row["seconds"] > 0 and name in printed for name, row in measured.items())
    path = clips.render(tmp_path / "twenty.mp4", clips.ramp(20))
    assert benchmark.bare_loop(path, (8, 8)) == len(list(read_frames(path))) == 20
