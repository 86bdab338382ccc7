"""The two pictures of the README, from the folder of a demo (`tzoom demo --out runs/demo`).

    python benchmarks/pictures.py runs/demo

Writes docs/images/timeline.png: truth, prediction and distance fields of a ZoomBench test sequence; and
docs/images/preview.webp: a few seconds of a rendered video with what was found in it. Of the clips that were not used
for training it takes the one with the best result: a picture of what the program does, not of how good it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.zoombench_render import render_blocks
from temporalzoom.datasets.zoombench_scenes import ACTIONS, VideoBench, draw_clip
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics import tiou
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.segments import Segments
from temporalzoom.viewer.overview import plot_overview
from temporalzoom.viewer.preview import preview_pages
from temporalzoom.viewer.style import house_style
from temporalzoom.workflows.demo import ADAPTIVE
from temporalzoom.workflows.demo_measures import System, sequence_view
from temporalzoom.workflows.evaluate import evaluate_split

WIDTH = 1800  # pixels: sharp where 900 are shown
LARGEST = 600_000  # bytes of a file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a demo")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "docs" / "images")
    parser.add_argument("--seconds", type=float, nargs=2, default=(34.0, 61.5), help="of the sequence, from and to")
    parser.add_argument("--clip-seconds", type=float, nargs=2, default=(5.0, 16.0), help="of the video, from and to")
    parser.add_argument("--threshold", type=float, default=0.4, help="lowest score that the video shows")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    timeline = write_timeline(options.run, options.out / "timeline.png", tuple(options.seconds))
    preview = write_animation(
        options.run, options.out / "preview.webp", tuple(options.clip_seconds), threshold=options.threshold
    )
    for path in (timeline, preview):
        size = path.stat().st_size
        print(f"{path}: {size / 1000:.0f} kB")
        if size > LARGEST:
            raise SystemExit(f"{path}: larger than {LARGEST / 1000:.0f} kB; show fewer seconds")


def write_timeline(run: Path, out: Path, span: tuple[float, float]) -> Path:
    """The test sequence of the demo's report: that with the most instances."""
    info = read_info(find_checkpoint(run / ADAPTIVE))
    test = load_data(info.config.data, info.config.seed).test
    assert test is not None
    sample = max(test.samples, key=lambda sample: len(sample.segments))
    alone = replace(test, samples=(sample,))
    localizer = Localizer.load(run / ADAPTIVE)
    system = System(localizer, evaluate_split(localizer, alone), run / ADAPTIVE, 0.0)
    figure = plot_overview(sequence_view({ADAPTIVE: system}, ADAPTIVE, sample), ADAPTIVE, span)
    with house_style():
        figure.savefig(out, dpi=WIDTH / figure.get_figwidth(), facecolor="white", metadata={"Software": None})
    Image.open(out).convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=255).save(out, optimize=True)
    return out


def write_animation(
    run: Path, out: Path, span: tuple[float, float], *, threshold: float, size: int = 270, fps: float = 10.0
) -> Path:
    """A clip drawn again with `size` pixels per side, and the segments found in it."""
    clips = run / "video" / "clips"
    if not clips.is_dir():
        raise SystemExit(f"{clips}: not there; the demo ran without its video act")
    config = read_info(find_checkpoint(run / "video" / "model")).config
    test = load_data(config.data, config.seed).test
    assert test is not None
    localizer = Localizer.load(run / "video" / "model")
    found = {s.name: localizer(s.features, grid=s.grid, duration=s.duration, threshold=threshold) for s in test.samples}
    sample = max(test.samples, key=lambda sample: agreement(sample.segments, found[sample.name]))

    settings = json.loads((clips / "settings.json").read_text())["settings"]
    bench = VideoBench(**{key: settings[key] for key in VideoBench.__dataclass_fields__ if key in settings})
    frames = _frames(replace(bench, size=size), int(sample.name.rpartition("_")[2]), span, fps)
    pages = preview_pages(frames, found[sample.name], bench.seconds, ACTIONS)
    first, *others = [Image.fromarray(page.copy()) for _, page in pages]
    first.save(out, save_all=True, append_images=others, duration=round(1000 / fps), loop=0, quality=55, method=6)
    return out


def agreement(truth: Segments, found: Segments) -> float:
    """F1: of found segments that have the label of a true one and overlap it with a tIoU of at least 0.5."""
    overlap = tiou(truth.starts, truth.ends, found.starts, found.ends)
    overlap[truth.labels[:, None] != found.labels] = 0.0
    right = np.count_nonzero(overlap.max(1, initial=0.0) >= 0.5)
    return 2 * right / max(len(truth) + len(found), 1)


def _frames(
    bench: VideoBench, index: int, span: tuple[float, float], fps: float
) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """(seconds, image) of a clip within `span`, about `fps` of them per second."""
    rate = float(bench.rate)
    clip = draw_clip(bench, index)
    for seconds in np.arange(span[0], min(span[1], bench.seconds), 1 / fps):
        frame = min(round(seconds * rate), bench.frames - 1)
        (block,) = render_blocks(clip, frame, frame + 1)
        yield frame / rate, block[0]


if __name__ == "__main__":
    main()
