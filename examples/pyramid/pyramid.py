"""Levels of a pyramid: their shapes, the plans that compute them, and the metadata that OME-Zarr stores about them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

import numpy as np

import onnxpool

Ints = tuple[int, ...]
Region = tuple[slice, ...]

TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}  # in the order of OME-Zarr
POOLS = {"mean": "average_pool", "max": "max_pool", "min": "min_pool"}
METHODS: dict[str, Any] = {"mean": onnxpool.AveragePool, "max": onnxpool.MaxPool, "min": onnxpool.MinPool}


class PyramidError(ValueError):
    """A pyramid that cannot be made as asked, with the reason and a way out."""


def check_axes(axes: str) -> None:
    """Raise an error if OME-Zarr has no such axes."""
    if axes != "".join(name for name in TYPES if name in axes) or sum(TYPES[name] == "space" for name in axes) < 2:
        raise PyramidError(f"axes={axes!r} are not those of OME-Zarr: some of t, c, z, y and x in this order, with at "
                           "least two of z, y and x, such as 'yx', 'zyx' or 'tczyx'; transpose the array if need be, "
                           "as np.moveaxis(image, -1, 0) brings H, W, C into the order c, y, x")


@dataclass(frozen=True)
class Level:
    """A level, computed from level 0 by a plan. Level 0 itself has none."""

    factors: Ints
    shape: Ints
    plan: onnxpool.Plan | None

    def part(self, box: Region, x: np.ndarray) -> np.ndarray:
        """The part of this level that the elements `x` of a box of level 0 make up; the box has whole windows."""
        return x if self.plan is None else self.plan.tile(self.within(box))(x)

    def within(self, box: Region) -> Region:
        """The region of this level that a box of level 0 covers."""
        return tuple(slice(s.start // f, -(-s.stop // f)) for s, f in zip(box, self.factors, strict=True))


@dataclass(frozen=True)
class Pyramid:
    """A description of all levels of an array.

    Parameters
    ----------
    shape : sequence of int
        Shape of level 0.
    dtype : dtype_like
        Dtype of all levels. It is stored in native byte order.
    axes : str
        Names of the axes, such as "zyx" or "tcyx".
    factors : sequence of sequence of int
        Elements of level 0 per element, along each axis, for each level after level 0.
    method : {"mean", "max", "min"}
        How a window becomes one element.
    chunks : sequence of int
        Shape of the chunks of all levels.
    shards : sequence of int, optional
        Shape of the files that chunks are collected in. By default, each chunk has a file.
    scale : sequence of float
        Distance between neighbouring elements of level 0 along each axis.
    units : sequence of str or None
        Unit of each scale, such as "micrometer" or "second".
    """

    shape: Ints
    dtype: Any
    axes: str
    factors: tuple[Ints, ...]
    method: str
    chunks: Ints
    shards: Ints | None = None
    scale: tuple[float, ...] = ()
    units: tuple[str | None, ...] = ()
    levels: tuple[Level, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        def fix(**values: Any) -> None:
            for name, value in values.items():
                object.__setattr__(self, name, value)

        rank = len(self.shape)
        fix(shape=tuple(map(int, self.shape)), dtype=np.dtype(self.dtype).newbyteorder("="),
            factors=tuple(tuple(map(int, given)) for given in self.factors), chunks=tuple(map(int, self.chunks)),
            shards=self.shards and tuple(map(int, self.shards)),
            scale=tuple(map(float, self.scale or (1,) * rank)), units=tuple(self.units or (None,) * rank))
        self._check()
        fix(levels=tuple(map(self._level, ((1,) * rank, *self.factors))))

    def _check(self) -> None:
        """Raise an error if these values do not describe a pyramid."""
        check_axes(self.axes)
        for name in ("shape", "chunks", "shards", "scale", "units"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.axes):
                raise PyramidError(f"{name}={values} must have one value for each of the axes {self.axes!r}")
        for number, factors in enumerate(self.factors, 1):
            if len(factors) != len(self.axes):
                raise PyramidError(f"level {number}: factors {factors} must be one for each of the axes {self.axes!r}")
        if self.method not in METHODS:
            raise PyramidError(f"method={self.method!r} is none of {', '.join(METHODS)}")
        if self.method == "mean" and self.dtype == bool:
            raise PyramidError("a mean of bool is not bool; choose the method max or min, or cast the array first")
        self._check_values()

    def _check_values(self) -> None:
        """Raise an error if a size, a factor or a scale has a value that it cannot have."""
        for index, name in enumerate(self.axes):
            if self.shape[index] < 1:
                raise PyramidError(f"axis {name} is empty (size 0), and an empty array has no levels")
            if min(self.chunks[index], *(self.shards or self.chunks)) < 1:
                raise PyramidError(f"axis {name}: chunks and shards must be at least 1 long")
            if self.shards and self.shards[index] % self.chunks[index]:
                raise PyramidError(f"axis {name}: shards of {self.shards[index]} are not whole chunks of "
                                   f"{self.chunks[index]}")
            if not 0 < self.scale[index] < float("inf"):
                raise PyramidError(f"axis {name}: scale {self.scale[index]} is not a positive number")
        finer: Ints = (1,) * len(self.axes)
        for number, factors in enumerate(self.factors, 1):
            if min(factors) < 1 or factors == finer or any(f < g for f, g in zip(factors, finer, strict=True)):
                raise PyramidError(f"level {number}: factors {factors} after {finer}: factors never decrease, and at "
                                   "least one grows per level; all are relative to level 0")
            finer = factors

    def _level(self, factors: Ints) -> Level:
        shape = tuple(-(-n // f) for n, f in zip(self.shape, factors, strict=True))
        if max(factors) == 1:
            return Level(factors, shape, None)
        return Level(factors, shape, METHODS[self.method](**self.arguments(factors)).plan(self.shape, self.dtype))

    def arguments(self, factors: Ints) -> dict[str, Any]:
        """The arguments of a pool that computes a level from level 0. Windows at the ends hold what elements remain."""
        axes = [axis for axis, f in enumerate(factors) if f > 1]
        kernel = [factors[axis] for axis in axes]
        dtype = {"dtype": self.dtype} if self.method == "mean" else {}
        return {"kernel_shape": kernel, "strides": kernel, "axes": axes, "ceil_mode": 1, **dtype}

    @property
    def unit(self) -> Ints:
        """The shape of what one file holds, which only one write may touch."""
        return self.shards or self.chunks

    def settings(self) -> dict[str, Any]:
        """All that determines the stored bytes, apart from the source."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        return values | {"dtype": self.dtype.str, "onnxpool": onnxpool.__version__}

    def metadata(self, name: str) -> dict[str, Any]:
        """The attribute "ome" of the group, after version 0.5 of OME-Zarr.

        A window of f elements has its centre at their middle, which is (f - 1) / 2 elements after the first.
        """
        axes = [{"name": axis, "type": TYPES[axis]} | ({"unit": unit} if unit else {})
                for axis, unit in zip(self.axes, self.units, strict=True)]
        datasets = []
        for number, level in enumerate(self.levels):
            pairs = list(zip(self.scale, level.factors, strict=True))
            datasets.append({"path": str(number), "coordinateTransformations": [
                {"type": "scale", "scale": [s * f for s, f in pairs]},
                {"type": "translation", "translation": [s * (f - 1) / 2 for s, f in pairs]}]})
        how = {"method": f"onnxpool.{POOLS[self.method]}", "version": onnxpool.__version__,
               "kwargs": {"ceil_mode": 1}}
        return {"version": "0.5", "multiscales": [
            {"name": name, "axes": axes, "datasets": datasets, "type": self.method, "metadata": how}]}


def split(box: Region, size: Ints) -> Iterator[Region]:
    """The boxes of this size within a box, in row-major order; those at the ends may be smaller."""
    for starts in product(*(range(s.start, s.stop, n) for s, n in zip(box, size, strict=True))):
        yield tuple(slice(i, min(i + n, s.stop)) for i, n, s in zip(starts, size, box, strict=True))


def place(part: Region, box: Region) -> Region:
    """Where a part of a box lies in an array that holds the box."""
    return tuple(slice(p.start - b.start, p.stop - b.start) for p, b in zip(part, box, strict=True))


def halvings(shape: Sequence[int], axes: str, chunks: Sequence[int]) -> tuple[Ints, ...]:
    """Factors 2, 4, 8, ... of the spatial axes, until a level has one chunk along each of them.

    An axis is halved only while it is longer than a chunk.
    """
    factors: list[Ints] = []
    while True:
        before = factors[-1] if factors else (1,) * len(shape)
        after = tuple(f * 2 if TYPES[name] == "space" and -(-n // f) > max(c, 1) else f
                      for f, n, c, name in zip(before, shape, chunks, axes, strict=True))
        if after == before:
            return tuple(factors)
        factors.append(after)
