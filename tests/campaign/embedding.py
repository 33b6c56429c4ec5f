"""Handles of the C API and nodes of onnxruntime: corrupted and valid calls end as in Python."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .builds import command
from .figures import Figure, none
from .leaks import PLAIN_HEAP
from .malformed import calls_of

TESTS = Path(__file__).parents[1]

# Each program, its calls in a quick and in a full run, and what they are called.
PROGRAMS = {
    "capi/corrupted_handles.py": (1500, 100_000, "handles"),
    "onnxruntime/corrupted_sessions.py": (200, 20_000, "sessions, each run three times"),
}
REPEATED = 60  # geometries that are prepared, run and released again and again
LEAKS = """
import json, sys
from corrupted_handles import attempt
import onnxpool
from tests.campaign.leaks import state
seeds = range({seed}, {seed} + {repeated})
def repeat(times):
    for _ in range(times):
        onnxpool.clear_caches()  # otherwise, plans are found again, and their pools live on
        for seed in seeds:
            attempt(seed)
repeat({times} // 2 + 1)
before = state()
repeat({times})
print(json.dumps([before, state()]))
"""


def leaked(seed: int, times: int) -> dict[str, int]:
    """What has grown in the process after some handles were made, run and released."""
    program = LEAKS.format(seed=seed * 10**7, repeated=REPEATED, times=times)
    paths = [str(TESTS.parent), str(TESTS / "capi"), *filter(None, [os.environ.get("PYTHONPATH")])]
    before, after = json.loads(command(sys.executable, "-c", program, PYTHONPATH=os.pathsep.join(paths), **PLAIN_HEAP))
    return {name: after[name] - before[name] for name in before}


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Run each program, and repeat handles to see what leaks."""
    for program, (few, many, name) in PROGRAMS.items():
        yield from calls_of(TESTS / program, seed, few if quick else many, name)
    times = 20 if quick else 1000
    grown = leaked(seed, times)
    yield Figure("growth of the heap", grown["heap"] / 1024, times * REPEATED, "handles", "KiB", most=64)
    yield none("new descriptors and threads", grown["descriptors"] + grown["threads"], times * REPEATED, "handles")
