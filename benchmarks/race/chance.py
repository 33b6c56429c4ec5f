"""Races on random pools, the worst for onnxpool first: python -m benchmarks.race.chance."""

import argparse
import itertools
import math
import time
from collections.abc import Iterator

import numpy as np

from ..workloads import BYTES, FLOATS, LAYOUTS, STARTS, WORKLOADS, Workload
from ..zoo import LAYERS, MOST, Layer, draw
from .__main__ import Races
from .peers import PEERS, missing
from .report import Row, line
from .rounds import Pace

PACE = Pace(0.004, 2, 4, 0.1)
BATCHES = (1, 1, 8)
NAME = "chance"


def layers(dtype: str) -> list[Layer]:
    """The layers of the zoo that have this dtype. For bytes, the quantised operators compute means."""
    quantised = {name: f"QLinear{name}" for name in ("AveragePool", "GlobalAveragePool")} if dtype in BYTES else {}
    named = [layer._replace(operator=quantised.get(layer.operator, layer.operator)) for layer in LAYERS.values()]
    return [layer for layer in named if dtype in Workload(*layer).dtypes]


def pool(rng: np.random.Generator, dtype: str) -> Workload:
    """A random layer, similar to layers of the zoo."""
    layer = draw(rng, layers(dtype))
    batch = int(rng.choice(BATCHES)) if 8 * math.prod(layer.shape) <= MOST else 1
    return Workload(layer.operator, (batch, *layer.shape), layer.attributes)


def races(rng: np.random.Generator, dtype: str, layouts: list[str], threads: int,
          seconds: float) -> Iterator[tuple[Workload, Row]]:
    """Races on random pools, until the time is over."""
    field, until = Races([peer for peer in PEERS if not missing(peer)], PACE), time.perf_counter() + seconds
    while time.perf_counter() < until:
        WORKLOADS[NAME] = work = pool(rng, dtype)
        yield work, field.run(NAME, dtype, str(rng.choice(layouts)), str(rng.choice(STARTS)), threads)
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
