"""Pool a .npy file that is larger than memory, part by part:

    python pool_npy.py x.npy y.npy --operator average --kernel 4 4 --axes 0 1 --part 16 --limit 256

The arrays are mapped, not read: the system loads the pages that a part needs. `--limit` is the number of MiB that the
process may allocate, which the system is asked to enforce. Without `--kernel`, the axes are reduced as a whole.
"""

import argparse
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import onnxpool

MIB = 1 << 20
OPERATORS = {"average": (onnxpool.AveragePool, onnxpool.GlobalAveragePool),
             "max": (onnxpool.MaxPool, onnxpool.GlobalMaxPool), "lp": (onnxpool.LpPool, onnxpool.GlobalLpPool)}


def shown(parts: Sequence[Any]) -> Iterator[Any]:
    """The parts, with a progress bar on the terminal."""
    begin = time.monotonic()
    for done, part in enumerate(parts):
        yield part
        share = (done + 1) / len(parts)
        bar = "#" * round(40 * share)
        print(f"\r[{bar:<40}] {done + 1}/{len(parts)} parts, {time.monotonic() - begin:.1f} s", end="", file=sys.stderr)
    print(file=sys.stderr)


def windows(plan: onnxpool.Plan, x: np.ndarray, target: str, max_bytes: int) -> None:
    """Write each part of the result straight to its file."""
    y = np.lib.format.open_memmap(target, "w+", plan.result_dtype, plan.output_shape)
    for part in shown(list(plan.tiles(max_bytes=max_bytes))):
        y[part.outputs] = part(x[part.inputs])
    y.flush()


def whole(plan: onnxpool.Plan, x: np.ndarray, target: str, max_bytes: int) -> None:
    """Combine the partial results of shares of the input."""
    shares = shown(list(plan.partials(max_bytes=max_bytes)))
    np.save(target, plan.combine(share(x[share.inputs]) for share in shares))


def main(arguments: Sequence[str] | None = None) -> None:
    """Pool one file into another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--operator", choices=OPERATORS, default="average")
    parser.add_argument("--axes", type=int, nargs="+", required=True)
    parser.add_argument("--kernel", type=int, nargs="+", help="the windows are adjacent unless --strides is given")
    parser.add_argument("--strides", type=int, nargs="+")
    parser.add_argument("--part", type=float, default=16, help="MiB that a part reads and writes")
    parser.add_argument("--limit", type=int, default=256, help="MiB that the process may allocate")
    given = parser.parse_args(arguments)

    resource.setrlimit(resource.RLIMIT_DATA, (given.limit * MIB,) * 2)
    x = np.load(given.source, mmap_mode="r")
    windowed, reducing = OPERATORS[given.operator]
    part = round(given.part * MIB)
    if given.kernel is None:
        op: Any = reducing(axes=given.axes, keepdims=False)
        whole(op.plan(x.shape, x.dtype), x, given.target, part)
    else:
        op = windowed(kernel_shape=given.kernel, strides=given.strides or given.kernel, axes=given.axes)
        windows(op.plan(x.shape, x.dtype), x, given.target, part)


if __name__ == "__main__":
    main()
