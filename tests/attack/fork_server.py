"""Runs `tzoom` commands, each in a child of this process, which has everything imported: a start takes milliseconds.

Reads one JSON object per line from standard input, {"arguments": [...], "folder": ..., "kill": seconds or null,
"size": bytes or null, "disk": folder, "writes": number or null, "times": 1}, and answers with one, {"code": exit code,
negative for a signal, "seconds": ..., "err": ..., "writes": [tried, refused] or null}. kill: after so many seconds the
child gets SIGKILL. size: no file may grow beyond it, as on a disk that is full. writes: after so many the disk, which
is all below a folder, is full, see full_disk.c, which must be loaded. times: so many of the same run at once, and the
answer is a list.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def run(order: dict[str, Any]) -> Any:
    if order["times"] == 1:
        return _run(order)
    with ThreadPoolExecutor(order["times"]) as threads:
        return list(threads.map(_run, [order] * order["times"]))


def _run(order: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()  # not a file: those cannot be written where the disk is full
    counted, counting = os.pipe()
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _command(order, writing, counting)
    os.close(writing)
    os.close(counting)
    end = None if order["kill"] is None else begin + order["kill"]
    printed, status = b"", None
    while status is None or select.select([reading], [], [], 0)[0]:
        if select.select([reading], [], [], 0.001)[0]:
            part = os.read(reading, 65536)
            printed += part
            if not part and status is not None:
                break
        if status is None:
            found, code = os.waitpid(child, os.WNOHANG)
            status = code if found else None
        if status is None and end is not None and time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
            end = None
    os.close(reading)
    seconds, counts = time.monotonic() - begin, os.read(counted, 100)
    os.close(counted)
    found = {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "err": printed.decode(errors="replace")}
    return found | {"writes": json.loads(counts or b"null")}


def _command(order: dict[str, Any], out: int, counting: int) -> None:
    """In the child; never returns."""
    code, disk = 70, ctypes.CDLL(None)
    watched = hasattr(disk, "disk_full_after")
    try:
        if watched:
            writes = -1 if order["writes"] is None else order["writes"]
            disk.disk_full_after(order["disk"].encode(), ctypes.c_long(writes))
        os.chdir(order["folder"])
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.argv = ["tzoom", *order["arguments"]]
        if order["size"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["size"], order["size"]))
        from temporalzoom.cli import main

        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        if watched:
            os.write(counting, json.dumps([disk.disk_writes_tried(), disk.disk_writes_refused()]).encode())
        os._exit(code)


def serve() -> None:
    import torch

    torch.set_num_threads(1)
    torch.cuda.is_available = lambda: False
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import pytest

    import temporalzoom.cli
    import temporalzoom.signals.extraction_processes
    import temporalzoom.workflows.evaluate
    import temporalzoom.workflows.fit
    import temporalzoom.workflows.localize
    import temporalzoom.workflows.train  # noqa: F401
    from members_here import run_members_here

    run_members_here(pytest.MonkeyPatch())
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
