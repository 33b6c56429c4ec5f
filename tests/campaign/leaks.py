"""Many calls, valid and refused ones: the heap, descriptors and threads of the process do not grow."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from .builds import command
from .figures import Figure, none

QUICK, FULL = 40_000, 1_000_000
DISTINCT = 300  # calls that are repeated
SECONDS = 3e-4  # calls that take longer are left out
PLAIN_HEAP = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


class Mallinfo2(ctypes.Structure):
    """What glibc's mallinfo2() returns."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def heap() -> int:
    """The bytes that the process has allocated and not freed, in arenas and in mappings of their own."""
    gc.collect()
    info = ctypes.CDLL(None).mallinfo2
    info.restype = Mallinfo2
    found = info()
    return int(found.uordblks + found.hblkhd)


def state() -> dict[str, int]:
    """The amounts that must not grow."""
    listed = {"descriptors": "/proc/self/fd", "threads": "/proc/self/task"}
    return {"heap": heap(), **{name: len(os.listdir(folder)) for name, folder in listed.items()}}


def measure(seed: int, calls: int) -> None:
    """Repeat random calls, and print the state before and after as JSON. Runs in a process of its own."""
    from calls import SeededChoices
    from calls_family import WEIGHTED
    from corruption import draw_corrupted

    import onnxpool

    drawn = [draw_corrupted(SeededChoices(seed * 10**7 + i), WEIGHTED)[0] for i in range(DISTINCT)]
    counts = {"results": 0, "errors": 0}

    def repeat(several: list[Any], times: int) -> None:
        for _ in range(-(-times // len(several))):
            for call in several:
                try:
                    call.run(onnxpool)
                    counts["results"] += 1
                except (onnxpool.PoolError, onnxpool.PoolTypeError, MemoryError):
                    counts["errors"] += 1

    def seconds(call: Any) -> float:
        repeat([call], 3)
        start = time.perf_counter()
        repeat([call], 1)
        return time.perf_counter() - start

    fast = [call for call in drawn if seconds(call) < SECONDS]
    repeat(fast, calls // 2)  # fill the caches of Python and NumPy
    counts.update(results=0, errors=0)
    before = state()
    repeat(fast, calls)
    print(json.dumps({"before": before, "after": state(), **counts}))


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Measure a process in which Python's own objects are on the same heap, and freed memory is not kept by threads."""
    program = f"from tests.campaign.leaks import measure; measure({seed}, {QUICK if quick else FULL})"
    found = json.loads(command(sys.executable, "-c", program, **PLAIN_HEAP).splitlines()[-1])
    calls = found["results"] + found["errors"]
    grown = {name: found["after"][name] - found["before"][name] for name in found["before"]}
    yield Figure("growth of the heap", grown["heap"] / 1024, calls, "calls", "KiB", most=64,
                 note=f"{found['results']:,} results, {found['errors']:,} errors")
    yield none("new descriptors", grown["descriptors"], calls, "calls")
    yield none("new threads", grown["threads"], calls, "calls")
