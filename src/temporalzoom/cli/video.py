"""`tzoom extract`: from videos to features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import app, notes, screen
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
) -> None:
    """Turn videos into feature files. What is finished is skipped, so that a stopped run goes on where it was."""
    from temporalzoom.signals.extraction import extract_features

    options = {}
    for text in option or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--option: key=value is expected, got {text!r}")
        options[key] = value
    summary = extract_features(videos, out, backbone, stride, window, fps, workers, notes, options)
    for reason in summary.failed.values():
        notes.print(f"failed: {reason}", markup=False, highlight=False, soft_wrap=True)
    done, skipped, failed = len(summary.extracted), len(summary.skipped), len(summary.failed)
    parts = [f"{done} extracted", f"{skipped} already there"] + ([f"{failed} failed"] if failed else [])
    screen.print(f"{out}: {', '.join(parts)}", markup=False, highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(2)
