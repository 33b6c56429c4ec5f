"""Random valid calls on arrays between inaccessible pages, with each instruction set: no call accesses other memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .figures import Figure, none

QUICK, FULL = 800, 20_000  # calls with each instruction set
SHARE = 400  # calls per process
SHOWN = 20  # maximum calls that are shown
PROGRAM = Path(__file__).parents[1] / "oracle" / "campaign.py"


def attempt(task: tuple[str, int]) -> tuple[int, bool, list[str]]:
    """The number of calls that a process made, whether it was killed, and the text that it printed about calls."""
    level, seed = task
    done = subprocess.run([sys.executable, str(PROGRAM), "--guarded", "--calls", str(SHARE), "--seed", str(seed)],
                          env=os.environ | {"ONNXPOOL_ISA": level}, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    seeds = [line for line in lines if line.isdigit()]
    found = [line.removeprefix("MISMATCH ") for line in lines if line.startswith("MISMATCH ")]
    killed = done.returncode not in (0, 1) or not lines or not lines[-1].startswith(f"{SHARE} calls, ")
    if killed:
        found.append(f"--only {seeds[-1] if seeds else None} exited with {done.returncode}\n{done.stderr[-2000:]}")
    return len(seeds), killed, [f"ONNXPOOL_ISA={level} python tests/oracle/campaign.py --guarded {text}"
                                for text in found]


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Run one process per processor at a time."""
    from onnxpool.kernels import available

    shares = (QUICK if quick else FULL) // SHARE
    levels = available()
    tasks = [(level, seed * shares + share) for share in range(shares) for level in levels]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(attempt, tasks))
    for text in [text for *_, found in results for text in found][:SHOWN]:
        print(f"  {text}")
    calls = sum(made for made, *_ in results)
    killed = sum(killed for _, killed, _ in results)
    note = f"instruction sets {', '.join(levels)}"
    yield none("accesses of other memory", killed, calls, "calls", note)
    yield none("wrong results", sum(len(found) for *_, found in results) - killed, calls, "calls")
