"""`tzoom extract`: from videos to features; `tzoom cuts`: where they cut from one shot to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from temporalzoom.cli.app import DeviceOption, app, notes, screen
from temporalzoom.errors import InputError


@app.command(
    epilog="Example: tzoom extract videos/ --out features/ --backbone motion --stride 4 --window 8 --workers 2"
)
def extract(
    videos: Annotated[list[Path], typer.Argument(help="Video files, or folders of them")],
    out: Annotated[Path, typer.Option(help="Folder for one .npy and one .json per video")] = Path("features"),
    backbone: Annotated[
        str,
        typer.Option(help="Frames to features: motion, efficientnet_lite0, swin3d_t|s|b, huggingface:NAME"),
    ] = "motion",
    stride: Annotated[
        int | None, typer.Option(min=1, help="Frames from one feature to the next; default: the backbone's")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Frames that a feature sees; default: the backbone's")
    ] = None,
    fps: Annotated[
        float | None, typer.Option(min=0, help="Frames per second to resample to; default: each video's average rate")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Videos at a time, each in a process of its own")] = 1,
    option: Annotated[list[str] | None, typer.Option(help="Option of the backbone, key=value; may be repeated")] = None,
    device: DeviceOption = None,
    cuts: Annotated[
        bool,
        typer.Option("--cuts", help="One channel more: does the window hold a cut? The same as --backbone NAME+cuts"),
    ] = False,
) -> None:
    """Turn videos into feature files. What is finished is skipped, so that a stopped run goes on where it was."""
    from temporalzoom.signals.backbones.registry import CUTS
    from temporalzoom.signals.extraction_processes import extract_features

    options = {}
    for text in option or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option: key=value is expected, got {text!r}")
        options[key] = value
    if cuts and not backbone.endswith(CUTS):
        backbone += CUTS
    summary = extract_features(videos, out, backbone, stride, window, fps, workers, notes, options, device or "auto")
    for reason in summary.failed.values():
        notes.print(f"failed: {reason}", markup=False, highlight=False, soft_wrap=True)
    done, skipped, failed = len(summary.extracted), len(summary.skipped), len(summary.failed)
    parts = [f"{done} extracted", f"{skipped} already there"] + ([f"{failed} failed"] if failed else [])
    screen.print(f"{out}: {', '.join(parts)}", markup=False, highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(2)


@app.command(epilog="Example: tzoom cuts videos/match7.mp4 --threshold 0.5")
def cuts(
    videos: Annotated[list[Path], typer.Argument(help="Video files, or folders of them")],
    threshold: Annotated[float, typer.Option(help="Lowest probability of a cut, between 0 and 1")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print seconds by video as JSON")] = False,
) -> None:
    """Find where videos cut from one shot to the next (TransNetV2)."""
    from temporalzoom.workflows.cuts import cuts_of_videos

    found, failed = cuts_of_videos(videos, threshold, notes)
    if as_json:
        print(
            json.dumps({video: [round(float(at), 6) for at in seconds] for video, seconds in found.items()}, indent=1)
        )
    else:
        for video, seconds in found.items():
            table = Table("cut", "seconds", title=Text(f"{video}: {len(seconds)} cuts"), title_justify="left")
            for number, at in enumerate(seconds, 1):
                table.add_row(str(number), f"{at:.3f}")
            screen.print(table)
    for reason in failed.values():
        notes.print(f"failed: {reason}", markup=False, highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(2)
