"""One process at work in a folder: two that write the same run would leave a mixture of both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from temporalzoom.errors import InputError

FILE = "lock"  # in the folder; holds the number of the process
WAITING = 0.1  # seconds between two tries


def _module(name: str) -> Any:
    """None where the system does not have it: `fcntl` is not there on Windows, `msvcrt` nowhere else."""
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, msvcrt = _module("fcntl"), _module("msvcrt")


@contextmanager
def alone_in(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """No other process is inside of such a block for the same folder, which is made if it is not there.

    The lock is the system's, on an open file: it ends with the process, however that ends. A system without such locks
    has a file that must not exist before, and is taken over from a process that is gone.

    wait: until the other one is done; else that is an InputError. The file stays where one may wait for it.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder / FILE, wait)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None
    try:
        yield
    finally:
        if not wait or (fcntl is None and msvcrt is None):
            with suppress(OSError):  # Windows keeps a file that is open: it goes with the next one
                (folder / FILE).unlink()
        lock.close()
        with suppress(OSError):
            folder.rmdir()  # nothing was written after all


def in_use(folder: Path) -> str | None:
    """Words for the process that is alone in the folder now; None: there is none."""
    file = Path(folder) / FILE
    with suppress(OSError, ValueError):
        if not file.is_file():
            return None
        if fcntl is None and msvcrt is None:
            return f"another process{_who(file)}" if is_alive(int(file.read_text(encoding="utf-8"))) else None
        lock = _taken(file)
        if lock is None:
            return f"another process{_who(file)}"
        lock.close()
    return None


def is_alive(process: int) -> bool:
    """Whether a process of this number runs here. On Windows, where asking would end it: taken to be so."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    return True


def _locked(file: Path, wait: bool) -> IO[str]:
    while True:
        lock = _taken(file)
        if lock is not None:
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            return lock
        if not wait:
            raise InputError(f"{file.parent}: another process{_who(file)} writes there: wait, or choose another --out")
        time.sleep(WAITING)


def _taken(file: Path) -> IO[str] | None:
    """The open file if it is ours now."""
    if fcntl is None and msvcrt is None:
        with suppress(OSError, ValueError):
            if not is_alive(int(file.read_text(encoding="utf-8"))):
                file.unlink()
        try:
            return open(file, "x", encoding="utf-8")
        except FileExistsError:
            return None
    lock = open(file, "a+", encoding="utf-8")
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            lock.seek(10**6)  # far behind the text, which stays readable
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
            lock.seek(0)
        if os.path.samestat(os.fstat(lock.fileno()), file.stat()):
            return lock
    except OSError:  # another one has it, or has just deleted it
        pass
    lock.close()
    return None


def _who(file: Path) -> str:
    with suppress(OSError, ValueError):
        return f" ({int(file.read_text(encoding='utf-8'))})"
    return ""
