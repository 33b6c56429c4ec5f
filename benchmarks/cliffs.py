"""Cliffs, where a small change to one number changes a call's time a lot: python -m benchmarks.cliffs.

In a random pool, one number is swept, such as the kernel or the channels, while the others stay. From one value to
the next, the time may grow or shrink as much as the elements that are read and written, the results or the taps do,
whichever changes most. A cliff is a pair of neighbours whose times differ by more than a factor beyond that, in two
measurements. No other library is needed. Calls run on one thread, and their processor time counts, because other
processes disturb it less.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import onnxpool

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
OPERATORS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {  # operator, dtypes and attributes
    "MaxPool": ("MaxPool", (*FLOATS, *INTEGERS), {}),
    "MaxPool with Indices": ("MaxPool", (*FLOATS, *INTEGERS), {"return_indices": True}),
    "MaxPool without NaNs": ("MaxPool", FLOATS, {"skipna": True}),
    "MinPool": ("MinPool", (*FLOATS, *INTEGERS), {}),
    "AveragePool": ("AveragePool", FLOATS, {}),
    "AveragePool of integers": ("AveragePool", INTEGERS, {"dtype": None}),  # rounded to the dtype of the elements
    "AveragePool to float32": ("AveragePool", INTEGERS, {"dtype": "float32"}),
    "AveragePool to float64": ("AveragePool", INTEGERS, {"dtype": "float64"}),
    "AveragePool without NaNs": ("AveragePool", FLOATS, {"skipna": True}),
    "LpPool": ("LpPool", FLOATS, {}),
    "QLinearAveragePool": ("QLinearAveragePool", ("uint8", "int8"), {}),
}
SWEEPS = {"kernel": range(1, 34), "stride": range(1, 9), "dilation": range(1, 6), "pad": range(4),
          "size": range(5, 70, 3), "channels": (*range(1, 70, 3), 127, 128, 129)}
OVERHEAD, LEAST = 1.5e-6, 4e-6  # seconds of any call, and minimum seconds of a call in a cliff
TURN, TURNS = 1e-3, 7  # seconds of a round, and rounds; the fastest counts
SCALES = np.float32(0.05), np.float32(0.04)


class Case(NamedTuple):
    """A pool of one image."""

    operator: str  # a key of OPERATORS
    dtype: str
    layout: str
    channels: int
    height: int
    width: int
    kernel: int
    stride: int
    dilation: int
    pad: int
    square: bool  # whether windows lie along both axes, instead of rows only

    def __str__(self) -> str:
        return f"{self.operator} {self.dtype} " + " ".join(f"{name}={getattr(self, name)}" for name in self._fields[2:])

    def moved(self, name: str, value: int) -> "Case":
        """The case with another value of the number that is swept."""
        return self._replace(height=value, width=value + 1) if name == "size" else self._replace(**{name: value})


class Timed(NamedTuple):
    """The seconds of a call, and its amounts of work: elements that are read and written, results and taps."""

    case: Case
    seconds: float
    work: tuple[int, int, int]


def drawn(rng: random.Random, operators: list[str], dtypes: list[str]) -> tuple[Case, str]:
    """A random pool, and the number to sweep."""
    operator = rng.choice([name for name in operators if {*OPERATORS[name][1]} & {*dtypes}])
    dtype = rng.choice([name for name in dtypes if name in OPERATORS[operator][1]])
    heights, widths = rng.choice((((20, 56, 120, 300), (21, 57, 123, 301)), ((20, 40), (17, 33))))
    case = Case(operator, dtype, rng.choice(("first", "last")), rng.choice((1, 3, 16, 24, 64)), rng.choice(heights),
                rng.choice(widths), rng.choice((2, 3, 5, 7)), rng.choice((1, 1, 2, 3)), 1, 0, rng.random() < 0.7)
    return case, rng.choice([*SWEEPS])


def prepared(case: Case) -> tuple[Callable[[], object], tuple[int, int, int]] | None:
    """A call and its work, or None if the windows do not fit."""
    span = (case.kernel - 1) * case.dilation + 1
    if span > min(case.height if case.square else case.width, case.width) + 2 * case.pad or case.pad >= span:
        return None
    name, _, more = OPERATORS[case.operator]
    last = case.layout == "last"
    shape = (1, case.height, case.width, case.channels) if last else (1, case.channels, case.height, case.width)
    along = (1, 1) if case.square else (0, 1)  # rows have windows of one element along the other axis
    attributes = {key: [value if there else least for there in along * times] for key, value, least, times in (
        ("kernel_shape", case.kernel, 1, 1), ("strides", case.stride, 1, 1), ("dilations", case.dilation, 1, 1),
        ("pads", case.pad, 0, 2))} | more
    quantised = name.startswith("QLinear")
    if quantised:
        if case.dilation > 1:
            return None
        attributes["channels_last"] = last
        del attributes["dilations"]
    else:
        attributes["axes"] = (1, 2) if last else (2, 3)
    if more.get("dtype", "") is None:
        attributes["dtype"] = case.dtype
    dtype = np.dtype(ml_dtypes.bfloat16 if case.dtype == "bfloat16" else case.dtype)
    x = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    inputs = (SCALES[0], dtype.type(0), SCALES[1], dtype.type(0)) if quantised else ()
    plan = getattr(onnxpool, name)(**attributes).plan(x.shape, x.dtype)
    out = plan(x, *inputs, num_threads=1)
    y = out[0] if isinstance(out, tuple) else out
    taps = case.kernel ** (2 if case.square else 1)
    return lambda: plan(x, *inputs, out=out, num_threads=1), (x.size + 2 * y.size, y.size, y.size * taps)


def timed(case: Case, turns: int) -> Timed | None:
    """The time of a case, or None if the windows do not fit."""
    call = prepared(case)
    if call is None:
        return None
    count, best = 1, float("inf")
    for turn in range(turns + 1):
        start = time.process_time()
        for _ in range(count):
            call[0]()
        each = (time.process_time() - start) / count
        best = min(best, each) if turn else best
        count = max(1, int(TURN / max(each, 1e-6)))
    return Timed(case, max(best - OVERHEAD, 1e-7), call[1])


def jump(before: Timed, after: Timed) -> float:
    """The factor by which the time changes beyond the work, in either direction."""
    grown = after.seconds / before.seconds
    work = [1.0, *(later / earlier for earlier, later in zip(before.work, after.work, strict=True))]
    return max(grown / max(work), min(work) / grown, 1.0)


def cliffs(case: Case, name: str, factor: float) -> Iterator[tuple[float, Timed, Timed] | None]:
    """The cliffs along one number, and None for each other pair of neighbours."""
    before = None
    for value in SWEEPS[name]:
        after = timed(case.moved(name, value), TURNS)
        if before is not None and after is not None:
            found = None
            if jump(before, after) > factor and max(before.seconds, after.seconds) > LEAST:
                again = timed(before.case, 2 * TURNS), timed(after.case, 2 * TURNS)
                if again[0] and again[1] and jump(again[0], again[1]) > factor:
                    found = jump(again[0], again[1]), again[0], again[1]
            yield found
        before = after


def main(arguments: list[str] | None = None) -> int:
    """Search and print. Return the number of cliffs."""
    everything = [*FLOATS, *INTEGERS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cliffs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", choices=OPERATORS, default=[*OPERATORS], metavar="NAME",
                        help=", ".join(OPERATORS))
    parser.add_argument("--dtypes", nargs="+", choices=everything, default=everything, metavar="DTYPE",
                        help=", ".join(everything))
    parser.add_argument("--factor", type=float, default=1.5, help="that makes a cliff (default 1.5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=30, help="number of pools (default 30)")
    parser.add_argument("--seconds", type=float, default=120.0, help="draw no further pool after this time")
    asked = parser.parse_args(arguments)
    if not any({*OPERATORS[name][1]} & {*asked.dtypes} for name in asked.operators):
        parser.error("none of these operators has any of these dtypes")
    rng, end, pairs = random.Random(asked.seed), time.monotonic() + asked.seconds, 0
    found: list[tuple[float, str, Timed, Timed]] = []
    for _ in range(asked.draws):
        if time.monotonic() > end:
            break
        case, name = drawn(rng, asked.operators, asked.dtypes)
        for pair in cliffs(case, name, asked.factor):
            pairs += 1
            if pair is not None:
                found.append((pair[0], name, *pair[1:]))
    for factor, name, before, after in sorted(found, key=lambda row: -row[0]):
        key = "height" if name == "size" else name
        print(f"{factor:5.2f}  {key} {getattr(before.case, key)} -> {getattr(after.case, key)}: "
              f"{before.seconds * 1e6:.1f} -> {after.seconds * 1e6:.1f} us  {after.case}")
    print(f"{len(found)} cliffs above {asked.factor:g} in {pairs} pairs of neighbours, seed {asked.seed}")
    return len(found)


if __name__ == "__main__":
    main()
