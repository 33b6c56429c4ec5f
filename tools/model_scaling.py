"""Model the cost of pooling a dask array: tasks, bytes read, halos, and time on N workers.

    python tools/model_scaling.py --shape 10000 50000 50000 --chunk 100 500 500 --kernel 3 --stride 2 --workers 100

`count` is exact: tests compare it with the graphs that onnxpool.dask builds. `predict` computes times from its counts
and from rates that are measured or assumed. The model shares no code with onnxpool.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod

import numpy as np


@dataclass(frozen=True)
class Line:
    """One axis: its chunks, and its windows if it is pooled."""

    chunks: Sequence[int]
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pads: tuple[int, int] = (0, 0)

    def counts(self) -> dict[str, int]:
        """The reads of the result's chunks along this axis."""
        sizes = np.array([size for size in self.chunks if size])
        ends = np.cumsum(sizes)
        begins, length = ends - sizes, int(ends[-1])
        span = (self.kernel - 1) * self.dilation + 1
        out = (length + sum(self.pads) - span) // self.stride + 1
        cuts = np.unique(np.minimum(-(-np.append(0, ends[:-1]) // self.stride), out))
        cuts = np.append(cuts[cuts < out], out)
        low = np.clip(cuts[:-1] * self.stride - self.pads[0], 0, length - 1)
        high = np.clip((cuts[1:] - 1) * self.stride - self.pads[0] + span, low + 1, length)
        first, last = np.searchsorted(ends, low, "right"), np.searchsorted(begins, high, "left")
        # Of the chunks that a result reads, only the first and the last one may be read in part.
        parts = last - first
        cut_first, cut_last = low > begins[first], high < ends[last - 1]
        cut = np.where(parts == 1, cut_first | cut_last, cut_first.astype(int) + cut_last)
        home = np.searchsorted(ends, np.minimum(cuts[:-1] * self.stride, length - 1), "right")
        own = np.minimum(high, ends[home]) - np.maximum(low, begins[home])
        return {"results": len(low), "pieces": int(parts.sum()), "whole": int((parts - cut).sum()),
                "read": int((high - low).sum()), "own": int(np.maximum(own, 0).sum()), "size": length, "out": out,
                "largest": int((high - low).max())}


@dataclass(frozen=True)
class Cost:
    """The contents of a graph."""

    tasks: int  # added by onnxpool: pools, and cuts of halos
    pools: int
    input_bytes: int
    read_bytes: int  # bytes that pools read from chunks
    halo_bytes: int  # part of these that lies in chunks other than the result's own
    output_bytes: int
    task_bytes: int  # maximum that a pool reads


def count(lines: Sequence[Line], itemsize: int) -> Cost:
    """The cost of pooling an array with these axes."""
    axes = [line.counts() for line in lines]

    def all_axes(name: str) -> int:
        return prod(axis[name] for axis in axes)

    return Cost(tasks=all_axes("results") + all_axes("pieces") - all_axes("whole"), pools=all_axes("results"),
                input_bytes=all_axes("size") * itemsize, read_bytes=all_axes("read") * itemsize,
                halo_bytes=(all_axes("read") - all_axes("own")) * itemsize, output_bytes=all_axes("out") * itemsize,
                task_bytes=all_axes("largest") * itemsize)


def count_global(chunks: Sequence[Sequence[int]], pooled: Sequence[int], merged: int = 16) -> int:
    """The tasks of a global operator whose pooled axes are cut: partial results, merges and one result each."""
    shares = prod(len(sizes) for axis, sizes in enumerate(chunks) if axis in pooled)
    tasks, left = shares + 1, shares
    while left > merged:
        left = -(-left // merged)
        tasks += left
    return tasks * prod(len(sizes) for axis, sizes in enumerate(chunks) if axis not in pooled)


@dataclass(frozen=True)
class Rates:
    """The rates of the machines: seconds per byte or per task."""

    load: float  # time to create a byte of input, for instance from storage
    join: float  # time to copy a byte that is read into one array
    pool: float  # time to pool a byte that is read
    move: float  # time to move a byte of a halo from another worker
    task: float  # time that a worker spends on any task
    schedule: float  # time that the single scheduler spends on any task


def predict(cost: Cost, rates: Rates, workers: int, loads: int) -> dict[str, float]:
    """Seconds on this many workers with one thread each, with `loads` tasks that create the input."""
    tasks = cost.tasks + loads
    away = (workers - 1) / workers  # the fraction of neighbours on other workers, with random placement
    spent = {"load": cost.input_bytes * rates.load, "join": cost.read_bytes * rates.join,
             "pool": cost.read_bytes * rates.pool, "move": cost.halo_bytes * rates.move * away,
             "tasks": tasks * rates.task}
    each = {name: value / workers for name, value in spent.items()} | {"scheduler": tasks * rates.schedule}
    return each | {"whole": max(sum(each.values()) - each["scheduler"], each["scheduler"])}


def even(size: int, chunk: int) -> tuple[int, ...]:
    """An axis in chunks of one size, and a remainder."""
    return (chunk,) * (size // chunk) + ((size % chunk,) if size % chunk else ())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the counts, and the times that follow from the given rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs="+", required=True, help="sizes of the pooled axes")
    parser.add_argument("--chunk", type=int, nargs="+", required=True)
    parser.add_argument("--kernel", type=int, default=3)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--pad", type=int, default=0)
    parser.add_argument("--itemsize", type=int, default=4)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--load", type=float, default=200, help="MB/s that a worker reads from storage")
    parser.add_argument("--join", type=float, default=3000, help="MB/s that a thread copies")
    parser.add_argument("--pool", type=float, default=2000, help="MB/s that a thread pools")
    parser.add_argument("--move", type=float, default=500, help="MB/s between workers")
    parser.add_argument("--task", type=float, default=1.0, help="ms of a worker for a task")
    parser.add_argument("--schedule", type=float, default=0.3, help="ms of the scheduler for a task")
    given = parser.parse_args(arguments)

    lines = [Line(even(size, chunk), given.kernel, given.stride, 1, (given.pad, given.pad))
             for size, chunk in zip(given.shape, given.chunk, strict=True)]
    cost = count(lines, given.itemsize)
    for name, value in asdict(cost).items():
        print(f"{name:14} {value:,}")
    rates = Rates(1e-6 / given.load, 1e-6 / given.join, 1e-6 / given.pool, 1e-6 / given.move, given.task / 1e3,
                  given.schedule / 1e3)
    for workers in given.workers:
        spent = predict(cost, rates, workers, prod(len(line.chunks) for line in lines))
        print(f"{workers} workers: " + ", ".join(f"{name} {value:,.1f} s" for name, value in spent.items()))


if __name__ == "__main__":
    main()
