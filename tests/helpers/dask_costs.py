"""The tasks and bytes of a pool of a dask array, by the formulas of docs/scaling.md, without any code of onnxpool."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np


class Line(NamedTuple):
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


class Cost(NamedTuple):
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

    return Cost(all_axes("results") + all_axes("pieces") - all_axes("whole"), all_axes("results"),
                all_axes("size") * itemsize, all_axes("read") * itemsize,
                (all_axes("read") - all_axes("own")) * itemsize, all_axes("out") * itemsize,
                all_axes("largest") * itemsize)


def count_global(chunks: Sequence[Sequence[int]], pooled: Sequence[int], merged: int = 16) -> int:
    """The tasks of a global operator whose pooled axes are cut: partial results, merges and one result each."""
    shares = prod(len(sizes) for axis, sizes in enumerate(chunks) if axis in pooled)
    tasks, left = shares + 1, shares
    while left > merged:
        left = -(-left // merged)
        tasks += left
    return tasks * prod(len(sizes) for axis, sizes in enumerate(chunks) if axis not in pooled)
