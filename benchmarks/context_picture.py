"""The picture of docs/datasets.md: what happens in a sequence of ZoomBench's variant `context`, and what of it counts.

    python benchmarks/context_picture.py

Writes docs/images/context.png: the phases in time, what they were drawn as (action, aborted attempt, stray), the
instances, and the strength of the recorded features along each phase's look.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from temporalzoom.datasets.zoombench_context import ContextBench, draw_timeline, record_timeline, sequence_random
from temporalzoom.datasets.zoombench_grammar import PHASES
from temporalzoom.datasets.zoombench_signal import draw_appearance
from temporalzoom.viewer.style import INK, MUTED, PALETTE, RULE, house_style, new_figure, styled, text_colour, time_axis

COLOURS = {"action": "#cfe0d8", "aborted": "#f3d9cf", "stray": RULE}
WIDTH = 1800  # pixels: sharp where 900 are shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[1] / "docs" / "images" / "context.png"
    parser.add_argument("--out", type=Path, default=default)
    parser.add_argument("--index", type=int, default=4, help="which training sequence of seed 0")
    parser.add_argument("--seconds", type=float, nargs=2, default=(0.0, 30.0), help="from and to")
    options = parser.parse_args()
    figure = draw(options.index, tuple(options.seconds))
    with house_style():
        figure.savefig(options.out, dpi=WIDTH / figure.get_figwidth(), facecolor="white", metadata={"Software": None})
    picture = Image.open(options.out).convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=255)
    picture.save(options.out, optimize=True)
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


@styled
def draw(index: int, span: tuple[float, float]) -> Figure:
    bench = ContextBench()
    random = sequence_random(0, "train", index)
    timeline = draw_timeline(bench, random)
    looks, scenes = draw_appearance(bench, len(PHASES), 0)
    sample = record_timeline(bench, timeline, looks, scenes, random, "one")
    figure = new_figure(3.4)
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, 1.1))
    units = [what for what, count in timeline.units for _ in range(count)]
    for phase, what in zip(timeline.phases, units, strict=True):
        start, end = phase.start / bench.fps, phase.end / bench.fps
        _bar(top, start, end, 2, PHASES[phase.kind], PALETTE[phase.kind], span, 1.0 if what == "action" else 0.45)
    first = 0
    for what, count in timeline.units:
        run = timeline.phases[first : first + count]
        first += count
        start, end = run[0].start / bench.fps, run[-1].end / bench.fps
        _bar(top, start, end, 1, what, COLOURS[what], span, 1.0)
    for start, end, _, _ in sample.segments:
        _bar(top, start, end, 0, "instance", INK, span, 1.0)
        for axes in (top, below):
            axes.axvline(start, color=INK, linewidth=0.6)
            axes.axvline(end, color=INK, linewidth=0.6)
    top.set_yticks([0.4, 1.4, 2.4], ["truth", "drawn as", "phases"])
    top.set_ylim(-0.1, 2.9)
    seconds = sample.grid.to_seconds(np.arange(len(sample)))
    for kind, look in enumerate(looks):
        below.plot(seconds, sample.features @ look / (look @ look), color=PALETTE[kind], linewidth=0.8)
    below.set_ylabel("along each phase")
    time_axis(below, *span)
    below.set_xlim(*span)
    return figure


def _bar(
    axes: Axes, start: float, end: float, row: int, text: str, colour: str, span: tuple[float, float], opacity: float
) -> None:
    if end <= span[0] or start >= span[1]:
        return
    axes.add_patch(Rectangle((start, row), end - start, 0.8, facecolor=colour, alpha=opacity, edgecolor="white"))
    room = (min(end, span[1]) - start) / (span[1] - span[0]) * 118  # letters
    if room >= len(text) and start >= span[0]:
        shade = text_colour(colour, opacity) if colour != RULE else MUTED
        axes.text((start + min(end, span[1])) / 2, row + 0.4, text, ha="center", va="center", fontsize=6, color=shade)


if __name__ == "__main__":
    main()
