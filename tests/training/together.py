"""Trainings that one process and several must do alike. As a program, one of several processes that does them all:
`python together.py OUT`, started with the environment that torchrun makes."""

import os
import random
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from temporalzoom import processes
from temporalzoom.config import changed, load_config
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.training import train

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny import TINY

# Noise of every kind included: dropout, drop_path, Gumbel noise, pruning. Only with `layers`, where positions leave the
# packed rows in training, does each process draw its own.
ZOOM = "model.name=tzn model.zoom=4 model.head=convolution model.levels=2 model.standardize=true"
DEEP = f"{ZOOM} model.deep_layers=2"
CASES = {
    "uniform": "model.dropout=0.2 model.drop_path=0.2 training.accumulate=2 training.assignment=both",
    "zoom": f"{DEEP} model.drop_path=0.1 model.dropout=0.1 augment.drop=0.1 training.batch_size=3",
    "recomputed": f"{DEEP} model.drop_path=0.2 model.checkpoint_deep=true training.positives=20 bdr.enabled=false",
    "penalty": f"{DEEP} model.pruning=true model.paper.supervision=penalty model.paper.tau_min=0.3",
    "layers": f"{DEEP} model.zoom=0 model.drop_path=0 model.paper.combine=layers",
    "discrete": f"{ZOOM} model.paper.allocation=discrete model.paper.depths=[0,1,2]",
    "gumbel": f"{ZOOM} model.paper.allocation=gumbel model.paper.depths=[0,1,2]",
    "reinforce": f"{ZOOM} model.paper.allocation=reinforce model.paper.depths=[0,1,2]",
    "exit": f"{ZOOM} model.paper.allocation=calibrated-exit model.paper.depths=[1,2]",
    "mixture": f"{DEEP} model.paper.allocation=mixture",
    "random": f"{DEEP} model.paper.allocation=random",
    "all scales": f"{DEEP} bdr.scales=one training.quality_power=0.2",
    "actionformer": "model.name=actionformer model.width=16 model.heads=2 model.levels=2 model.drop_path=0.2",
    "bmn": "model.name=bmn model.width=16 model.durations=16 model.samples=4 training.accumulate=2",
    "half": f"{DEEP} training.precision=bfloat16 training.steps=2",
}


def run_case(name: str, out: Path) -> None:
    given = [part for part in TINY if not (part.startswith("model.") and "name=" in CASES[name])]
    kept = ["model.width=16"] if "tzn" in CASES[name] else []
    given += [*kept, "training.steps=3", "training.batch_size=4", "device=cpu"]
    config = changed(load_config(None, given), CASES[name].split())
    split = make_zoombench(ZoomBench(sequences=5, length=80, dimension=8, classes=2, longest=3.0, mean_gap=0.5))
    train(config, split, out / name, console=Console(quiet=True))


def free_port() -> int:
    """Below those that the system deals out: nobody else is given it before the processes meet there."""
    for port in random.sample(range(20000, 32000), 100):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")


def start(*arguments: list[str]) -> list[subprocess.Popen[str]]:
    """`python ARGUMENTS`, for each a process, which find each other; without torchrun and the time of its import."""
    port = free_port()
    common = {**os.environ, "WORLD_SIZE": str(len(arguments)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        subprocess.Popen(
            [sys.executable, *own],
            env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank, own in enumerate(arguments)
    ]  # fmt: skip


if __name__ == "__main__":
    with processes.connected("cpu"):
        for case in CASES:
            run_case(case, Path(sys.argv[1]))
