"""`tzoom export`: a trained model leaves PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import Budget, app, screen
from temporalzoom.errors import InputError


@app.command(epilog="Example: tzoom export --model runs/first --out first.onnx")
def export(
    model: Annotated[Path, typer.Option(help="Folder of a run, or one of its checkpoints")],
    out: Annotated[Path, typer.Option(help="The file to write; its name ends in .onnx")],
    form: Annotated[str, typer.Option("--format", help="Form of the file: onnx")] = "onnx",
    budget: Budget = None,
) -> None:
    """Write a trained uniform-N or tzn as an ONNX file, compared with the model before it is kept.

    The file carries classes, time grid and inference options: `tzoom localize --model FILE` and
    `Localizer.load(FILE)` need no more.
    """
    if form != "onnx":
        raise InputError(f"--format: onnx is the only one, got {form!r}")
    from temporalzoom.workflows.export import export_onnx

    described, agreement = export_onnx(model, out, budget)
    lengths = ", ".join(map(str, agreement.lengths))
    lines = [
        f"{out}: {described.model}, features (1, T, {described.input_width}), {out.stat().st_size / 1e6:.1f} MB",
        f"largest difference from PyTorch: {agreement.difference:.1e} (random features, T = {lengths})",
        f"time of onnxruntime over PyTorch, one thread, T = {agreement.lengths[-1]}: {agreement.time.median:.2f} "
        f"[{agreement.time.low:.2f}, {agreement.time.high:.2f}]",
    ]
    if agreement.active is not None and described.graph is not None:
        lines.append(f"gating {described.graph.gating} ({agreement.active:.0%} of the random features)")
    screen.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
