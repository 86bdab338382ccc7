"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from temporalzoom.errors import InputError


@contextmanager
def replacing(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write (`"w"`: UTF-8 text, `"wb"`: bytes) that takes the place of `path` once the block ends well.

    A reader sees the old content or the new, never half of it; after an exception the old file stays. Missing
    parent folders are made. A path that cannot be written raises InputError.
    """
    target = Path(path).resolve()  # a symbolic link stays one: its target is replaced
    # Not tempfile: its files are readable by their owner only, and the result should follow the umask.
    part = target.with_name(f".{uuid.uuid4().hex}.part")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
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
