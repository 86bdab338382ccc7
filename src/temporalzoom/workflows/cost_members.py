"""What a run of several networks (`tzoom fit`) costs: each of them, and all together, on the same recordings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from temporalzoom.datasets.samples import Sample
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_parameters, count_run
from temporalzoom.metrics.latency import measure_latency, threads
from temporalzoom.progress import track
from temporalzoom.runs.members import Members
from temporalzoom.workflows.cost import RECORDINGS
from temporalzoom.workflows.evaluate import sample_outputs


@dataclass(frozen=True)
class MemberCost:
    """Of one network, or of all. flops and seconds: for `recorded` seconds of recordings; seconds: the median."""

    name: str
    model: str
    parameters: int
    flops: int
    seconds: float
    recorded: float


def members_cost(
    run: Path, members: Members, repeats: int = 20, threads_used: int = 1, console: Console | None = None
) -> list[MemberCost]:
    """One row for each network; the last is their sum."""
    localizer = Localizer.load(run, device="cpu")
    costs = []
    for folder, member in zip(members.folders, localizer.members, strict=True):
        config = member.description.config
        subset = config.data.model_copy(update={"test_subset": config.data.train_subset})
        split = load_data(subset, config.seed, train=False).test
        if split is None:
            raise InputError(f"{run / folder}: no recording to measure on")
        # The same recordings for all: their folds differ, their names do not.
        samples = sorted(split.samples, key=lambda sample: (-sample.duration, sample.name))[:RECORDINGS]

        def once(member: Localizer = member, samples: list[Sample] = samples) -> object:
            return [sample_outputs(member, sample) for sample in samples]

        with threads(threads_used):
            timed = measure_latency(
                {"all": once}, repeats, watch=lambda turns: track(turns, "timing", console, "rounds")
            )
        recorded = sum(sample.duration for sample in samples)
        flops = count_run(member.model, once).total
        seconds = timed["all"].median
        costs.append(MemberCost(folder, config.model.name, count_parameters(member.model), flops, seconds, recorded))
    return [*costs, _sum(costs)]


def _sum(costs: list[MemberCost]) -> MemberCost:
    """Per recorded second, because folds differ in what they hold; stated for the first one's recordings."""
    recorded = costs[0].recorded
    flops = sum(cost.flops / cost.recorded for cost in costs) * recorded
    seconds = sum(cost.seconds / cost.recorded for cost in costs) * recorded
    return MemberCost("all", f"{len(costs)} fused", sum(c.parameters for c in costs), int(flops), seconds, recorded)


def members_table(costs: list[MemberCost]) -> Table:
    table = Table(title="Cost of a minute of recording, one after the other", title_justify="left")
    table.add_column("member")
    table.add_column("network")
    for column in ("weights", "MFLOPs", "ms"):
        table.add_column(column, justify="right")
    for cost in costs:
        minute = 60 / cost.recorded
        values = (
            f"{cost.parameters / 1e6:.2f} M",
            f"{cost.flops * minute / 1e6:.3g}",
            f"{cost.seconds * minute * 1e3:.3g}",
        )
        table.add_row(Text(cost.name), Text(cost.model), *values)
    return table
