"""A cost comparison as tables for the terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from temporalzoom.workflows.cost import AT_ONCE, CostComparison, SystemCost

# The network's parts in the order of the signal, where their names alone do not say enough.
PARTS = {
    "projection": "projection",
    "encoder": "encoder",
    "shallow": "shallow path",
    "levels": "coarser levels",
    "trunk": "detector",
    "uncertainty": "local context",
    "depth": "depth predictor",
    "importance": "importance",
    "zoom": "zoom",
    "deep": "deep path",
    "heads": "heads",
}


def cost_tables(result: CostComparison) -> list[Table]:
    tables = [_side_by_side(result)]
    for cost in (result.system, result.baseline):
        if cost.depth is not None:
            tables += [_depth_table(cost), _stability_table(cost)]
    return tables


def cost_notes(result: CostComparison) -> list[str]:
    """What a reader must know to read the tables."""
    costs = (result.system, result.baseline)
    return [f"{cost.name}: {cost.weights}" + (f"; {cost.note}" if cost.note else "") for cost in costs]


def _side_by_side(result: CostComparison) -> Table:
    system, baseline = result.system, result.baseline
    ending = "s" if result.threads > 1 else ""
    title = f"{result.recordings} recordings, {result.positions} positions, {result.threads} thread{ending}"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in (system.name, baseline.name, "ratio"):
        table.add_column(Text(heading), justify="right")

    def row(label: str, ours: float | None, theirs: float | None, unit: float, ratio: str | None = None) -> None:
        shown = ["-" if value is None else _number(value / unit) for value in (ours, theirs)]
        if ratio is None:
            ratio = f"{ours / theirs:.3f}" if ours is not None and theirs else ""
        table.add_row(label, *shown, ratio)

    row("MFLOPs executed", system.flops.total, baseline.flops.total, 1e6)
    for part in dict.fromkeys((*PARTS, *system.flops.parts, *baseline.flops.parts)):
        if part in system.flops.parts or part in baseline.flops.parts:
            row(f"  {PARTS.get(part, part)}", system.flops.parts.get(part), baseline.flops.parts.get(part), 1e6)
    ours, theirs = (None if cost.depth is None else cost.depth.formula for cost in (system, baseline))
    if ours is not None or theirs is not None:
        table.add_section()
        against = "" if ours is None else f"{ours / (theirs or baseline.flops.total):.3f}"
        row("MFLOPs by the paper's formula", ours, theirs, 1e6, against)
    table.add_section()
    ratio = result.latency_ratio
    shown = rf"{ratio.median:.3f} \[{ratio.low:.3f}, {ratio.high:.3f}]"
    row("milliseconds, median", system.latency.median, baseline.latency.median, 1e-3, shown)
    row("peak megabytes", system.memory, baseline.memory, 1e6)
    row("thousand parameters", system.parameters, baseline.parameters, 1e3)
    return table


def _depth_table(cost: SystemCost) -> Table:
    assert cost.depth is not None
    depth = cost.depth
    table = Table(title=Text(f"Adaptive depth of {cost.name}"), title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("positions kept by pruning", f"{100 * depth.kept:.1f} %")
    table.add_row("positions that enter the deep path", f"{100 * depth.active:.1f} %")
    table.add_row("deciding where to zoom, FLOPs / one layer", f"{depth.overhead.flops:.3f}")
    table.add_row("deciding and gathering, time / one layer", f"{depth.overhead.time:.3f}")
    table.add_row(f"the same, {AT_ONCE} sequences at once", f"{depth.overhead.time_at_once:.3f}")
    return table


def _stability_table(cost: SystemCost) -> Table:
    assert cost.depth is not None
    table = Table(title=Text(f"tau of {cost.name} (entropy in bits)"), title_justify="left")
    table.add_column("hysteresis")
    for heading in ("E(tau)", "flip rate", "entropy", "MFLOPs", "% in each tenth"):
        table.add_column(heading, justify="right")
    for hysteresis, tau in cost.depth.stability.items():
        bins = " ".join(f"{100 * share:.0f}" for share in tau.histogram)
        flops = _number(cost.depth.stability_flops[hysteresis] / 1e6)
        table.add_row(hysteresis, f"{tau.mean:.3f}", f"{tau.flip_rate:.3f}", f"{tau.entropy:.2f}", flops, bins)
    return table


def _number(value: float) -> str:
    return f"{value:,.1f}" if value >= 10 else f"{value:.3g}"
