"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import platform
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from temporalzoom.errors import InputError
from temporalzoom.locks import is_alive

HERE = re.sub(r"\W", "_", platform.node())[:40]
PART = re.compile(rf"\.{HERE}-(\d+)-[0-9a-f]{{32}}\.part")


@cache
def _sweep(folder: str) -> None:
    """Delete what processes of this machine left half written there when they were killed. Once per folder."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if (found := PART.fullmatch(name)) and not is_alive(int(found[1])):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


@contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write (`"w"`: UTF-8 text, `"wb"`: bytes) that takes the place of `path` once the block ends well.

    A reader sees the old content or the new, never half of it; after an exception the old file stays. Missing
    parent folders are made. A path that cannot be written raises InputError.
    """
    target = Path(path).resolve()  # a symbolic link stays one: its target is replaced
    # Not tempfile: its files are readable by their owner only, and the result should follow the umask.
    part = target.with_name(f".{HERE}-{os.getpid()}-{uuid.uuid4().hex}.part")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(str(target.parent))
        with part.open(mode.replace("w", "x"), **text) as file:  # type: ignore[call-overload]
            yield file
        os.replace(part, target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    except UnicodeEncodeError as error:  # names of files may hold bytes that are no text
        raise InputError(f"{path}: cannot be written: {error.object[:80]!r} is no Unicode text") from error
    finally:
        with suppress(OSError):
            part.unlink()
