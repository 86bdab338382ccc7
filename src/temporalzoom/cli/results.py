"""`tzoom clips` and `tzoom budget`: what people do with segments once they have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import (
    DeviceOption,
    MergeGap,
    MinLength,
    NoOverlap,
    Settings,
    Threshold,
    app,
    note,
    notes,
    say,
    screen,
)
from temporalzoom.errors import InputError
from temporalzoom.formats.registry import describe_readable


@app.command(
    epilog="Examples: tzoom clips match9.mp4 found.json --out clips/ --label serve --padding 0.5   |   "
    "tzoom clips match9.mp4 --model runs/first --out clips/ --top 10"
)
def clips(
    video: Annotated[Path, typer.Argument(help="Video to cut")],
    segments: Annotated[
        Path | None,
        typer.Argument(
            help=f"File with its segments: predictions or annotations (.json), {describe_readable()}; or use --model",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the clips, VIDEO_START-END_LABEL.mp4")] = Path("clips"),
    model: Annotated[
        Path | None, typer.Option(help="Run, checkpoint or exported file: find the segments first")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only segments of this class; may be repeated")] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="At most this many segments, those with the highest scores")
    ] = None,
    padding: Annotated[float, typer.Option(min=0, help="Seconds more before and after each segment")] = 0.0,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Fast, without encoding again: a clip begins at the key frame before its segment"),
    ] = False,
    audio: Annotated[
        bool, typer.Option("--audio/--no-audio", help="With sound, if the video has any, as mono or stereo")
    ] = True,
    fps: Annotated[float | None, typer.Option(help="Frames per second, for files that count frames")] = None,
    threshold: Threshold = None,
    merge_gap: MergeGap = None,
    min_length: MinLength = None,
    no_overlap: NoOverlap = None,
    settings: Settings = None,
    device: DeviceOption = None,
) -> None:
    """Cut segments out of a video, one file each, exact to the frame. Ctrl-C leaves whole files only."""
    from temporalzoom.workflows.clips import cut_found

    result = cut_found(
        video,
        segments,
        out,
        model=model,
        labels=label or (),
        top=top,
        padding=padding,
        audio=audio,
        copy=copy,
        fps=fps,
        settings=settings or (),
        device=device,
        console=notes,
        threshold=threshold,
        merge_gap=merge_gap,
        min_length=min_length,
        no_overlap=no_overlap,
    )
    for line in result.notes:
        note(line)
    for path in result.written:
        say(f"wrote {path}")
    if not result.written and not result.failed:
        say(f"{video}: no segment to cut")
    for reason in result.failed.values():
        note(f"failed: {reason}")
    if result.failed:
        raise typer.Exit(2)


@app.command(
    epilog="Examples: tzoom budget found.json --bin 60 --out budget.csv   |   "
    "tzoom budget videos/ --model runs/first --no-overlap"
)
def budget(
    files: Annotated[
        list[Path],
        typer.Argument(
            help=f"Files with segments, or folders of them: predictions or annotations (.json), {describe_readable()}; "
            "with --model, recordings"
        ),
    ],
    model: Annotated[
        Path | None, typer.Option(help="Run, checkpoint or exported file: localize the recordings first")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write here (.csv .tsv): a row per recording, behaviour and bin")
    ] = None,
    width: Annotated[
        float | None, typer.Option("--bin", min=0, help="Seconds; also over time, in bins of this width")
    ] = None,
    duration: Annotated[
        list[str] | None,
        typer.Option(help="SECONDS of all recordings whose file does not say it, or NAME=SECONDS; may be repeated"),
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second, for files that count frames")] = None,
    threshold: Threshold = None,
    merge_gap: MergeGap = None,
    min_length: MinLength = None,
    no_overlap: NoOverlap = None,
    settings: Settings = None,
    device: DeviceOption = None,
) -> None:
    """Report bouts, durations, shares of time, intervals and latencies of each behaviour in each recording."""
    from temporalzoom.workflows import budget as workflow
    from temporalzoom.workflows.segment_files import found_segments

    if out is not None:
        workflow.check_target(out)
    if model is not None and duration:
        raise InputError("--duration: with --model the recordings themselves say it")
    found = found_segments(
        files,
        model,
        fps=fps,
        settings=settings or (),
        device=device,
        console=notes,
        threshold=threshold,
        merge_gap=merge_gap,
        min_length=min_length,
        no_overlap=no_overlap,
    )
    durations = workflow.with_durations(list(found.segments), found.durations, duration or ())
    budgets = workflow.budget_recordings(found.segments, durations, found.classes, width)
    for line in (*found.notes, *workflow.budget_notes(budgets, found.segments)):
        note(line)
    if out is None:
        for table in workflow.budget_tables(budgets):
            screen.print(table)
    else:
        workflow.write_budget(out, budgets)
        say(f"wrote {out}")
    for reason in found.failed.values():
        note(f"failed: {reason}")
    if found.failed:
        raise typer.Exit(2)
