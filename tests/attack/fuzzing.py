"""Many wrong inputs, one rule: an InputError of one line, or a right result; soon, and in bounded memory."""

from __future__ import annotations

import datetime
import os
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from temporalzoom.errors import InputError

DEADLINE = 10  # seconds of the processor for one input; a usual one takes milliseconds
PATIENCE = 120  # seconds on the clock: of a busy machine a process gets a part, and who waits takes no processor
LEAST = 20  # inputs of each target, whatever time they take
MEMORY = 3 * 2**30  # bytes beyond what the process has when a run begins


def todays_seed() -> int:
    """Another one every day, so that all days together look at more than one; TZOOM_ATTACK_SEED repeats one."""
    return int(os.environ.get("TZOOM_ATTACK_SEED", datetime.date.today().toordinal()))


class Hangs(BaseException):
    """Not an Exception: code that catches all of these must not catch the deadline."""


@dataclass(frozen=True)
class Target:
    """make: writes one wrong input into a folder and returns what `read` takes. read: returns when the result is right,
    raises InputError for bad input; anything else is a failure. weight: share of the inputs of a whole run."""

    name: str
    make: Callable[[random.Random, Path], object]
    read: Callable[[object], object]
    weight: float = 1.0


@dataclass
class Tally:
    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def attack(target: Target, folder: Path, seed: int, count: int, *, seconds: float = float("inf")) -> Tally:
    """`count` inputs of one target, or as many as the time allows, but not fewer than LEAST of them. Input number n
    depends on seed and n alone."""
    target.make(random.Random(0), folder)  # what inputs are made from is made once, and costs no time of theirs
    tally, begin = Tally(), time.monotonic()
    with _bounded_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            if (number >= LEAST and time.monotonic() - begin > seconds) or len(tally.failures) >= 20:
                break
            draw = random.Random(f"{target.name} {seed} {number}")
            given = target.make(draw, folder)
            outcome = _outcome(target, given)
            tally.inputs += 1
            tally.refused += outcome == "refused"
            if outcome not in ("refused", "right"):
                tally.failures.append(_reproducer(target, given, seed, number, outcome))
    tally.seconds = time.monotonic() - begin
    return tally


def _outcome(target: Target, given: object) -> str:
    def late(number: int, frame: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late), signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE, 1)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, 1)
    try:
        target.read(given)
        return "right"
    except InputError as error:
        return "refused" if "\n" not in str(error) and str(error).strip() else f"not one line: {str(error)!r}"
    except Hangs:
        return f"not finished after {DEADLINE} s of the processor, or {PATIENCE} s:\n{traceback.format_exc(limit=-12)}"
    except BaseException:
        return traceback.format_exc(limit=-12)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGPROF, before[1])


def _reproducer(target: Target, given: object, seed: int, number: int, outcome: str) -> str:
    kept = given
    if isinstance(given, Path) and given.is_file():
        folder = Path(tempfile.gettempdir()) / "tzoom-attack"
        folder.mkdir(exist_ok=True)
        kept = folder / f"{target.name}-{seed}-{number}{''.join(given.suffixes)}".replace("/", "_")
        kept.write_bytes(given.read_bytes())
    return f"{target.name}, TZOOM_ATTACK_SEED={seed}, input {number}: {str(kept)[:2000]}\n{outcome}"


class _bounded_memory:
    """The address space of the process may grow by MEMORY."""

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
        if pages:
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, self.before)
