"""Calls with something wrong, on arrays between guard pages: each ends in a typed error, or a result of its shape."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .figures import Figure, none

QUICK, FULL = 4000, 100_000
SHARE = 500  # calls per process
PROGRAM = Path(__file__).parents[1] / "oracle" / "corruption.py"


def attempt(program: Path, seed: int, calls: int) -> tuple[dict[str, Any] | None, str]:
    """The counts that a process printed, or None if there are none, and the other output of the process."""
    command = [sys.executable, str(program), "--calls", str(calls), "--seed", str(seed), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *findings, last = done.stdout.splitlines() or [""]
    try:
        return json.loads(last), "\n".join(findings)
    except ValueError:
        return None, f"{' '.join(command)} exited with {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"


def calls_of(program: Path, seed: int, calls: int, name: str = "calls") -> Iterator[Figure]:
    """Figures of a program that makes calls, with one process per processor at a time."""
    share = min(SHARE, calls // 2)
    shares = calls // share
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(lambda one: attempt(program, one, share), range(seed * shares, (seed + 1) * shares)))
    counts = [found for found, _ in results if found is not None]
    for _, text in results:
        if text:
            print(text)
    made = sum(count["calls"] for count in counts)
    endings = sum((Counter(count["endings"]) for count in counts), Counter())
    shown = ", ".join(f"{number:,} {ending}" for ending, number in sorted(endings.items()) if ending)
    yield none("crashes and hangs", len(results) - len(counts), len(results), f"processes of {share} {name}")
    yield none("other endings than a typed error or a right result", sum(count["findings"] for count in counts), made,
               name, shown)
    yield Figure("longest call", max((count["slowest"] for count in counts), default=0.0), made, name,
                 "s of processor time", most=1)


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Make corrupted calls from Python."""
    yield from calls_of(PROGRAM, seed, QUICK if quick else FULL)
