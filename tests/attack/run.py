"""`make attack`: the fuzzers for a long time, and the table of what they met in docs/reliability.md.

python tests/attack/run.py --inputs 200000 --minutes 60
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import COMMANDS  # noqa: E402
from fuzzing import LEAST, attack, todays_seed  # noqa: E402
from targets import TARGETS  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- attack -->", "<!-- /attack -->"
SHARE_OF_COMMANDS = 0.05  # a command takes as long as a hundred readings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=todays_seed())
    given = parser.parse_args()
    torch.set_num_threads(1)
    shares = {target: target.weight for target in TARGETS}
    factor = SHARE_OF_COMMANDS * sum(shares.values()) / sum(target.weight for target in COMMANDS)
    shares |= {target: factor * target.weight for target in COMMANDS}
    whole = sum(shares.values())
    rows, failures, total = [], [], 0
    for target, share in shares.items():
        count, seconds = max(LEAST, round(given.inputs * share / whole)), 60 * given.minutes * share / whole
        limit = max(seconds, 60 * given.minutes / 20) if given.minutes else float("inf")
        with tempfile.TemporaryDirectory() as folder:
            tally = attack(target, Path(folder), given.seed, count, seconds=limit)
        right = tally.inputs - tally.refused - len(tally.failures)
        rows.append(f"| {target.name} | {tally.inputs:,} | {tally.refused:,} | {right:,} | {len(tally.failures)} |")
        failures += tally.failures
        total += tally.inputs
        print(rows[-1], flush=True)
    table = ["| input | inputs | refused in one line | right result | failures |", "|---|---|---|---|---|", *rows]
    words = f"{total:,} inputs, seed {given.seed}, {len(failures)} failures."
    before, after = PAGE.read_text().split(BEGIN)[0], PAGE.read_text().split(END)[1]
    PAGE.write_text("\n".join([before + BEGIN, "", words, "", *table, "", END + after]))
    print("\n\n".join(failures) or words)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
