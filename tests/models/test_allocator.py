"""Freed memory stays with the process: in a process of its own, because the setting cannot be taken back."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from temporalzoom.models.runtime import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        torch.ones(2_000_000).add(1).mul(2)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
kept = keep_freed_memory()
faults()
print(kept, faults())
"""


def run(**environment: str) -> tuple[bool, int]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=inherited | environment, capture_output=True, text=True, check=True
    )
    kept, faults = result.stdout.split()
    return kept == "True", int(faults)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_the_same_pages_are_used_again():
    kept, faults = run()
    if not kept:
        pytest.skip("this C library has no mallopt")
    pages = 50 * 3 * 8_000_000 // 4096  # what would be fetched anew if all tensors were given back
    assert faults < 0.05 * pages


def test_a_limit_of_the_user_s_own_is_respected():
    kept, _ = run(MALLOC_TRIM_THRESHOLD_="131072")
    assert not kept
