"""The latency of calls beside busy processes: on two threads, which is the default, on one, and in onnxruntime.

Run it on an otherwise idle machine. Each contestant has a process of its own and makes its calls half a millisecond
apart, next to 0, 1 and 2 processes that each keep a core busy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .figures import Figure

QUICK, FULL = 200, 10_000  # calls of each contestant
PAUSE = 0.0005  # seconds between calls
WARM = 20  # calls before those that count
POOLS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "stem of ResNet": ((1, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "first pool of VGG": ((2, 64, 224, 224), {"kernel_shape": [2, 2], "strides": [2, 2]}),
}
CONTESTANTS = ("default", "one thread", "onnxruntime")
ROOT = Path(__file__).parents[2]


def by_onnxpool(x: Any, attributes: dict[str, Any], threads: int | None) -> Callable[[], Any]:
    """A function that runs a max-pool through its plan, into the same array each time."""
    import onnxpool

    plan = onnxpool.MaxPool(**attributes).plan(x.shape, x.dtype)
    y = plan(x)
    return lambda: plan(x, out=y, num_threads=threads)


def by_onnxruntime(x: Any, attributes: dict[str, Any]) -> Callable[[], Any]:
    """A function that runs the same max-pool in a session with onnxruntime's default settings."""
    import onnxruntime
    from sessions import node_model

    model = node_model("MaxPool", [x], attributes, opset=12, shape=x.shape)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x0": x})


def measure(pool: str, contestant: str, calls: int) -> None:
    """Print the sorted microseconds of calls as JSON. Runs in a process of its own."""
    import numpy as np

    shape, attributes = POOLS[pool]
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    call = by_onnxruntime(x, attributes) if contestant == "onnxruntime" else by_onnxpool(
        x, attributes, 1 if contestant == "one thread" else None)
    times = []
    for _ in range(WARM + calls):
        time.sleep(PAUSE)
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e6)
    print(json.dumps(sorted(times[WARM:])))


def percentiles(pool: str, contestant: str, calls: int, busy: int) -> tuple[float, float, float]:
    """The 50th, 99th and 99.9th percentile of a contestant beside busy processes, in microseconds."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        program = f"from tests.campaign.tails import measure; measure({pool!r}, {contestant!r}, {calls})"
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    finally:
        for other in others:
            other.kill()
            other.wait()
    times = json.loads(done.stdout)
    return times[calls // 2], times[calls * 99 // 100], times[calls * 999 // 1000]


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Measure contestants one after another. Only a full run compares tails, because few calls show no tails."""
    cpus, calls = len(os.sched_getaffinity(0)), QUICK if quick else FULL
    for pool in list(POOLS)[:1 if quick else None]:
        for busy in range(1 if quick else 0, 3):
            found = {contestant: percentiles(pool, contestant, calls, busy) for contestant in CONTESTANTS}
            rows = "; ".join(f"{contestant} " + " / ".join(f"{value:.0f}" for value in found[contestant])
                             for contestant in CONTESTANTS)
            target = {} if quick or not busy else {"most": found["onnxruntime"][1]}
            yield Figure(f"{pool}, {busy} busy: 99th percentile", found["default"][1], calls, "calls", "µs", **target,
                         note=f"50th / 99th / 99.9th on {cpus} processors: {rows}")
