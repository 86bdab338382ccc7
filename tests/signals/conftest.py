"""Small videos, rendered with PyAV where a test needs them."""

import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

Image = np.ndarray


def grey(value: int, height: int = 64, width: int = 96) -> Image:
    return np.full((height, width, 3), value, np.uint8)


def ramp(count: int) -> list[Image]:
    """Pictures that can be told apart by their brightness."""
    return [grey(round(250 * index / count)) for index in range(count)]


def textured(seed: int, height: int = 64, width: int = 96) -> Image:
    """Coarse random patches, which compression leaves recognizable."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return coarse.repeat(8, 0).repeat(8, 1)


def render(path: Path, images: Iterable[Image], milliseconds: Iterable[int] | None = None, fps: int = 25) -> Path:
    """Write images as H.264 (MPEG-4 in .avi): one every 1/fps seconds, or at the given times."""
    import av

    images = list(images)
    ticks = list(range(len(images))) if milliseconds is None else list(milliseconds)
    base = Fraction(1, fps if milliseconds is None else 1000)
    options = {"movflags": "faststart"} if path.suffix == ".mp4" else {}
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream("mpeg4" if path.suffix == ".avi" else "libx264", rate=fps)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = base
        if path.suffix == ".avi":
            stream.bit_rate = 8_000_000
        else:
            stream.options = {"crf": "12", "preset": "ultrafast", "bf": "2"}
        for image, tick in zip(images, ticks, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = tick, base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def turn(path: Path, degrees: int) -> Path:
    """Write a turn, counter-clockwise, into the header of an .mp4: the 3 x 3 matrix of its track."""
    cosine, sine = {90: (0, -1), 180: (-1, 0), 270: (0, 1)}[degrees]
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40  # past version, times, track, duration, layer, volume
    values = [cosine, sine, 0, -sine, cosine, 0, 0, 0]
    for index, value in enumerate(values):
        data[at + 4 * index : at + 4 * index + 4] = (value * 65536).to_bytes(4, "big", signed=True)
    path.write_bytes(data)
    return path


def sound(path: Path) -> Path:
    """One second of silence, and no picture."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 16000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.fixture(scope="session")
def clips() -> SimpleNamespace:
    """The functions above, for tests."""
    return SimpleNamespace(grey=grey, textured=textured, ramp=ramp, render=render, turn=turn, sound=sound)


@pytest.fixture
def switching(tmp_path) -> Callable[..., Path]:
    """A video that shows one picture until `seconds`, then another."""

    def make(seconds: float = 2.0, total: float = 4.0, fps: int = 20, height: int = 64, width: int = 96) -> Path:
        before, after = textured(1, height, width), textured(2, height, width)
        images = [before if frame / fps < seconds else after for frame in range(round(total * fps))]
        return render(tmp_path / "switch.mp4", images, fps=fps)

    return make


@pytest.fixture(scope="session")
def torchvision():
    """torchvision, made importable where its compiled part was built for another torch than this one."""
    try:
        import torchvision
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        # Only the operators' existence is asked for at import; the models here never call them.
        torchvision_operators = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            torchvision_operators.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

        torchvision.operators_of_the_tests = torchvision_operators  # they vanish with the library
    return torchvision
