"""Races on random pools, the worst for onnxpool first: python -m benchmarks.race.chance."""

import argparse
import itertools
import math
import time
from collections.abc import Iterator

import numpy as np

from ..workloads import BYTES, FLOATS, LAYOUTS, WORKLOADS, Workload
from .__main__ import Races
from .peers import PEERS, missing
from .report import Row, line
from .rounds import Pace

PACE = Pace(0.004, 2, 4, 0.1)
SIZES = {
    1: (16, 50, 100, 400, 1000, 4000),
    2: (4, 5, 7, 8, 10, 13, 14, 20, 27, 28, 35, 40, 52, 56, 64, 80, 112, 150, 224),
    3: (4, 7, 8, 14, 16, 28, 32),
}
CHANNELS = (1, 3, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 512)
TAPS = (2, 2, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7, 9)
LEAST, MOST = 3000, 4_000_000  # elements
NAME = "chance"


def pool(rng: np.random.Generator, dtype: str) -> Workload | None:
    """A pool of sizes found in networks; None if it is too small or too large, or has no room for a window."""
    def one(*values: int) -> int:
        return int(rng.choice(values))

    axes = one(1, 2, 2, 2, 2, 3)
    sizes = [one(*SIZES[axes])] * axes
    if axes == 3:
        sizes[0] = one(4, 8, 16)
    shape = (one(1, 1, 2, 4, 8, 16), one(*CHANNELS), *sizes)
    means = "QLinear" if dtype in BYTES else ""
    if rng.random() < 0.2:
        largest = "MaxPool" if means else "GlobalMaxPool"
        operator = str(rng.choice([f"{means}GlobalAveragePool", largest]))
    else:
        operator = str(rng.choice([f"{means}AveragePool", "MaxPool"]))
    taps = one(*TAPS)
    if not LEAST <= math.prod(shape) <= MOST or taps > min(sizes):
        return None
    kernel = [1 if rng.random() < 0.05 else taps] * axes
    pads = [min(one(0, taps // 2), count // 2) for count in kernel]
    given = {"kernel_shape": kernel, "strides": [one(1, 2, 2, taps)] * axes, "pads": [*pads, *pads]}
    return Workload(operator, shape, {} if "Global" in operator else given)


def races(rng: np.random.Generator, dtype: str, layouts: list[str], threads: int,
          seconds: float) -> Iterator[tuple[Workload, Row]]:
    """Races until the time is over."""
    field, until = Races([peer for peer in PEERS if not missing(peer)], PACE), time.perf_counter() + seconds
    while time.perf_counter() < until:
        work = pool(rng, dtype)
        if work is not None:
            WORKLOADS[NAME] = work
            yield work, field.run(NAME, dtype, str(rng.choice(layouts)), threads)
            del WORKLOADS[NAME]
            field.too_slow.clear()


def main(arguments: list[str] | None = None) -> list[tuple[float, str]]:
    """Race and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race.chance", description=__doc__)
    parser.add_argument("--dtype", choices=FLOATS + BYTES, default="float32")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--pools", type=int, help="race this many, however long it takes")
    parser.add_argument("--worst", type=int, default=40, help="rows to show")
    asked = parser.parse_args(arguments)
    found = []
    seconds = asked.seconds if asked.pools is None else math.inf
    field = races(np.random.default_rng(asked.seed), asked.dtype, asked.layouts, asked.threads, seconds)
    for work, row in itertools.islice(field, asked.pools):
        if row.speedup is not None:
            found.append((row.speedup, f"{line(row)}   {work.operator} {work.shape} {work.attributes}"))
    found.sort()
    print(*(text for _, text in found[:asked.worst]), sep="\n")
    if found:
        print(f"{len(found)} pools, median {np.median([speedup for speedup, _ in found]):.2f}x")
    return found


if __name__ == "__main__":
    main()
