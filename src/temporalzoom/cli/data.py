"""`tzoom data`: look at data, make data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import Overrides, Settings, changed_settings, data_app, notes, say, screen


@data_app.command("check", epilog="Example: tzoom data check mine.yaml")
def data_check(
    config: Annotated[str, typer.Argument(help="Configuration file (YAML) or recipe whose data section to check")],
    overrides: Overrides = None,
    changes: Settings = None,
) -> None:
    """Say what the data holds, and list everything that is wrong with it."""
    from temporalzoom.config import load_config
    from temporalzoom.datasets.report import report_data

    settings = load_config(config, changed_settings(overrides, changes))
    tables, problems = report_data(settings.data, settings.seed, notes)
    for table in tables:
        screen.print(table)
    if problems:
        raise typer.Exit(2)
    screen.print("no problem found")


@data_app.command(
    "make-zoombench", epilog="Example: tzoom data make-zoombench --out data/zoombench sequences=20 noise=1.5"
)
def make_zoombench(
    out: Annotated[Path, typer.Option(help="Folder for annotations.json, features/ and config.yaml")],
    knobs: Annotated[list[str] | None, typer.Argument(help="Knobs of the generator: key=value")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write the embedded benchmark as files, in the form that own data has."""
    from temporalzoom.datasets.zoombench import ZoomBench
    from temporalzoom.datasets.zoombench_files import write_zoombench

    config = write_zoombench(out, ZoomBench.parse(knobs or ()), seed, notes)
    say(f"wrote {out}; train on it with: tzoom train {config}")


@data_app.command(
    "make-zoombench-context",
    epilog="Example: tzoom data make-zoombench-context --out data/context sequences=20 between=8 aborted=0.7",
)
def make_zoombench_context(
    out: Annotated[Path, typer.Option(help="Folder for annotations.json, features/ and config.yaml")],
    knobs: Annotated[list[str] | None, typer.Argument(help="Knobs of the generator: key=value")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write the variant whose boundaries depend on what is far from them, in the form that own data has."""
    from temporalzoom.datasets.zoombench_context import ContextBench
    from temporalzoom.datasets.zoombench_files import write_zoombench

    config = write_zoombench(out, ContextBench.parse(knobs or ()), seed, notes)
    say(f"wrote {out}; train on it with: tzoom train {config}")


@data_app.command("make-zoombench-video", epilog="Example: tzoom data make-zoombench-video --out videos/ --clips 48")
def make_zoombench_video(
    out: Annotated[Path, typer.Option(help="Folder for clip_*.mp4, annotations.json and config.yaml")],
    clips: Annotated[int, typer.Option(help="How many; the last quarter is the test subset")] = 48,
    seconds: Annotated[float, typer.Option(help="Length of a clip")] = 20.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    size: Annotated[int, typer.Option(help="Pixels per side")] = 96,
    fps: Annotated[float, typer.Option(help="Frames per second")] = 25.0,
) -> None:
    """Render the embedded video benchmark: short clips whose annotations are exact to the frame."""
    from temporalzoom.datasets.zoombench_scenes import VideoBench
    from temporalzoom.datasets.zoombench_video import extract_command, write_zoombench_video

    bench = VideoBench(clips=clips, seconds=seconds, seed=seed, size=size, fps=fps)
    config = write_zoombench_video(out, bench, notes)
    for line in (f"wrote {out}; train on it with:", f"  {extract_command(out)}", f"  tzoom train {config}"):
        say(line)
