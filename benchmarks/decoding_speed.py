"""What `video_features` adds to decoding: its time over that of a bare loop that decodes and resizes every frame.

    python benchmarks/decoding_speed.py [VIDEO ...]

Writes runs/benchmarks/decoding_speed.json. `nothing` is a backbone that returns zeros, so that its ratio is the price
of the clock and the windows; `motion` is the default backbone. Without VIDEO a clip is rendered for it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from temporalzoom.atomic import replacing
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.signals.backbones import FrameBackbone, backbone
from temporalzoom.signals.extraction import video_features


class Nothing(FrameBackbone):
    """Costs nothing: a zero for every frame."""

    name, width, window, stride = "nothing", 1, 8, 4

    def __init__(self, size: tuple[int, int]) -> None:
        self.frame_size, self.options = size, {}

    def frame_features(self, frames: np.ndarray, before: np.ndarray | None) -> np.ndarray:
        return np.zeros((len(frames), 1), np.float32)

    def pool(self, windows: np.ndarray) -> np.ndarray:
        return windows[:, 0]


def bare_loop(path: Path, size: tuple[int, int]) -> int:
    """The least that anyone must do: decode, resize, hand over an array."""
    import av
    from av.video.reformatter import VideoReformatter

    reformatter, count = VideoReformatter(), 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            reformatter.reformat(frame, size[1], size[0], "rgb24", interpolation="BILINEAR", threads=1).to_ndarray()
            count += 1
    return count


def render(path: Path, frames: int) -> Path:
    """Moving noise, 320 x 180 at 25 frames per second."""
    import av

    ground = np.random.default_rng(0).integers(0, 256, (23, 80, 3), dtype=np.uint8).repeat(8, 0).repeat(8, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        for index in range(frames):
            image = np.ascontiguousarray(np.roll(ground, 2 * index, axis=1)[:180, :320])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return path


def systems_for(path: Path, side: int) -> dict[str, Callable[[], object]]:
    size, motion = (side, side), backbone("motion")
    nothing = Nothing(size)
    return {
        "bare loop": lambda: bare_loop(path, size),
        "nothing": lambda: video_features(path, nothing),
        "motion": lambda: video_features(path, motion),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", type=Path, nargs="*", metavar="VIDEO")
    parser.add_argument("--frames", type=int, default=500, help="length of the rendered clip")
    parser.add_argument("--side", type=int, default=64, help="frames are resized to SIDE x SIDE")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/decoding_speed.json"))
    options = parser.parse_args()

    results: dict[str, dict[str, object]] = {}
    print(f"{'':24} {'':10} {'seconds':>8} {'ratio to the bare loop':>28}")
    with tempfile.TemporaryDirectory() as folder, threads(1):
        for path in options.videos or [render(Path(folder) / "rendered.mp4", options.frames)]:
            latency = measure_latency(systems_for(path, options.side), options.repeats, warmup=1)
            results[path.name] = {}
            for name, measured in latency.items():
                ratio = latency_ratio(measured, latency["bare loop"])
                interval = f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
                print(f"{path.name:24} {name:10} {measured.median:8.3f} {interval:>28}")
                results[path.name][name] = {
                    "seconds": measured.median,
                    "ratio": [ratio.median, ratio.low, ratio.high],
                }
    with replacing(options.out) as file:
        json.dump({"side": options.side, "repeats": options.repeats, "videos": results}, file, indent=1)


if __name__ == "__main__":
    main()
