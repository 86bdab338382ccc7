"""Memory that was freed is about to be used again: do not give it back to the system in between."""

from __future__ import annotations

import ctypes
import os
from functools import cache

# Names and values of glibc's malloc.h. A larger value than this is refused for the first.
_MMAP_THRESHOLD, _LARGEST = -3, 32 * 2**20
_TRIM_THRESHOLD, _KEPT = -1, 512 * 2**20


@cache
def keep_freed_memory() -> bool:
    """Have the C library keep up to 512 MB of freed memory; whether it could be told. Once per process.

    A network allocates and frees tensors of the same few megabytes over and over. By default glibc returns such pages
    and fetches them anew, zeroed, each time: a third of the time of a forward pass on CPU. Other C libraries are left
    alone, and so is a user who has set these limits in the environment.
    """
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))
