"""Pooling: the plan of an operator that reduces windows."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import kernels, quantisation, threads
from .errors import PoolError, PoolTypeError
from .execution import Array, Plan, allocate, check_out, delivered
from .explain import explain
from .merging import Problem, merged, picked
from .planning import layout
from .windows import Axis, axis_windows

if TYPE_CHECKING:
    from .base import Operator

INDEX = np.dtype(np.int64)
POINT = axis_windows(1, 1, 1, 1, 1, (0, 0), False)

# Powers of two between which the magnitudes of each dtype lie.
EXPONENTS = {"float16": (-24, 16), "bfloat16": (-133, 128), "float32": (-149, 128), "float64": (-1074, 1024)}
SAFE = 960  # a double holds sums of powers of two from -SAFE to SAFE without loss, up to 2^63 of them


def safe_range(dtype: str, p: float) -> tuple[float, float]:
    """The sums of p-th powers that are sure to have neither overflowed nor lost digits to an underflow."""
    low, high = EXPONENTS.get(dtype, (0, 0))
    if p * max(-low, high) <= SAFE:
        return 0.0, math.inf
    return 2.0**-SAFE, 2.0**SAFE


def memory_order(x: Array, channels_last: bool) -> tuple[int, ...]:
    """The axes of a result, slowest in memory first: channels where x has them, the others as they are."""
    channel = x.ndim - 1 if channels_last else 1
    others = [axis for axis in range(x.ndim) if axis != channel]
    return (*others, channel) if interleaved(x, channels_last) else (0, channel, *others[1:])


def interleaved(x: Array, channels_last: bool) -> bool:
    """Whether the channels of x lie closer together than its pixels."""
    if x.ndim <= 2:
        return False
    channel, pixel = (-1, -2) if channels_last else (1, -1)
    if x.shape[channel] == 1:
        return False
    if x.shape[pixel] == 1 or x.flags.c_contiguous:
        return channels_last
    return abs(x.strides[channel]) < abs(x.strides[pixel])


def retries(reduction: str, dtype: str, p: float) -> bool:
    """Whether results may have to be computed again, as a sum may have left its range."""
    if reduction == "mean":
        return dtype != "float16"
    return reduction == "norm" and p < math.inf and safe_range(dtype, p)[1] < math.inf


class Way(NamedTuple):
    """How a problem is solved."""

    problem: Problem
    whole: bool  # one window is all of a channel
    transposes: bool  # channels are brought side by side


def way_of(problem: Problem, reduction: str, dtype: np.dtype[Any], windowed: bool) -> Way:
    """The way that is fastest."""
    axes = problem.axes
    whole = (not windowed or reduction == "quantised_mean") and all(axis.out == 1 for axis in axes)
    narrow = (not problem.channels_last and bool(axes)
              and layout.prefers_lanes(reduction, axes, problem.shape[1], dtype.itemsize, whole))
    return Way(problem, whole, narrow)


class WindowPlan(kernels.PlainCall, Plan):
    """The plan of an operator that reduces windows; `axes` are the windows of each spatial axis."""

    __slots__ = ("_bytes", "_given", "_merged", "_picked", "_plain", "_pools", "_quantised", "axes", "output_shape",
                 "reduction")

    axes: tuple[Axis, ...]
    output_shape: tuple[int, ...]
    reduction: tuple[str, float]
    _given: Way  # of the problem as it is, and
    _merged: Way | None  # with fewer axes
    _picked: tuple[slice, ...] | None  # the elements that are the results
    _pools: dict[tuple[bool, bool], kernels.Pool]  # by whether it is merged, and channels are the innermost loop
    _plain: list[kernels.PlainPool]  # what runs plain arrays without a further look, once it is made
    _bytes: int  # of X
    _quantised: bool  # whether further inputs say what elements stand for

    def __init__(self, operator: "Operator", shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[Axis, ...],
                 reduction: tuple[str, float]) -> None:
        name = reduction[0]
        problem = Problem(shape, axes, operator.channels_last and len(shape) > 2)
        picks = picked(problem) if name in ("max", "mean") else None
        fewer = None if picks is not None or name in ("indexed_max", "quantised_mean") else merged(problem)
        with kernels.cpu.DefaultFloats():
            given = way_of(problem, name, dtype, operator.windowed)
            fewer_way = None if fewer is None else way_of(fewer, name, dtype, operator.windowed)
        super().__init__(operator, shape, dtype, axes=axes, reduction=reduction, _pools={}, _plain=[],
                         _given=given, _merged=fewer_way,
                         _bytes=math.prod(shape) * dtype.itemsize, _quantised=operator.quantised,
                         _picked=picks, output_shape=problem.output_shape)

    def explain(self) -> str:
        return explain(self)

    def _team(self, num_threads: int | None) -> int:
        """How many threads a call on plain arrays gets."""
        return threads.team(num_threads, self._bytes)

    def _call(self, x: Any, inputs: tuple[Any, ...], out: Any, num_threads: int | None) -> Any:
        """A call on any arrays."""
        x = self._checked(x)
        rule = self._rule(inputs) if inputs or self._quantised else None
        team = threads.team(num_threads, x.nbytes)
        indexed = self.reduction[0] == "indexed_max"
        y_out, indices_out = self._out_pair(out) if indexed else (out, None)
        y = self._result(x, y_out, self.dtype)
        indices = self._result(x, indices_out, INDEX) if indexed else None
        if x.size and self._picked is not None:
            np.copyto(y, x[self._picked])
        elif x.size and indices is not None and layout.counts_beyond(self.reduction[0], self.dtype.name, self.axes):
            y[...], indices[...] = self.operator.plan(self.shape, np.float64)(x.astype(np.float64), num_threads=team)
        elif x.size:
            pool, given, result = self._pool_of(x, y)
            pool.run(given, result, team, rule, indices)
            plain = x.flags.c_contiguous and x.flags.aligned and y.flags.c_contiguous
            if plain and not self._plain and not indexed:
                self._plain.append(kernels.PlainPool(pool, self.shape, self.output_shape, given.shape,
                                                 result.shape, self.dtype, self._quantised,
                                                 self._bytes < threads.SERIAL_BYTES))
        y = delivered(y, y_out)
        return y if indices is None else (y, delivered(indices, indices_out))

    def _rule(self, inputs: tuple[Any, ...]) -> quantisation.Rule | None:
        """What the further inputs ask of a kernel."""
        if not self._quantised:
            self._no_inputs(inputs)
            return None
        with kernels.cpu.DefaultFloats():
            given = quantisation.read(self.label, self.dtype, inputs, self.operator.zero_points_optional)
            if self.reduction[0] == "mean_in_order":
                return given.in_order()
            return given.whole(self.label, math.prod(axis.kernel for axis in self.axes))

    def _out_pair(self, out: Any) -> tuple[Array | None, Array | None]:
        """The arrays that were given for a maximum and its indices, each None if it was not."""
        if out is None:
            return None, None
        if not isinstance(out, tuple) or len(out) != 2:
            raise PoolTypeError(f"{self.label}: out with Indices must be a tuple of two arrays, got "
                                f"{type(out).__name__}; give (y, indices)")
        for array, dtype in zip(out, (self.dtype, INDEX), strict=True):
            if array is not None:
                check_out(self.label, array, self.output_shape, dtype)
        if out[0] is not None and out[1] is not None and np.may_share_memory(*out):
            raise PoolError(f"{self.label}: out[0] and out[1] share memory; give two arrays")
        return out

    def _result(self, x: Array, out: Array | None, dtype: np.dtype[Any]) -> Array:
        """Where a kernel stores a result: in the array that was given, unless it overlaps x."""
        if out is not None:
            check_out(self.label, out, self.output_shape, dtype)
            if not np.may_share_memory(x, out):
                return out
        return allocate(self.label, self.output_shape, dtype, memory_order(x, self._given.problem.channels_last))

    @staticmethod
    def _inside(x: Array, way: Way) -> bool:
        """Whether channels are the innermost loop."""
        return interleaved(x, way.problem.channels_last) or (way.transposes and (way.whole or x.flags.c_contiguous))

    def _pool_of(self, x: Array, y: Array) -> tuple[kernels.Pool, Array, Array]:
        """The pool for arrays that lie like these, and these as it takes them: for the plan and the C API."""
        way = self._given
        if self._merged is not None and x.flags.c_contiguous and y.flags.c_contiguous:
            way = self._merged
            x, y = x.reshape(way.problem.shape), y.reshape(way.problem.output_shape)
        return self._pool(self._inside(x, way), way), x, y

    def _pool(self, inside: bool, way: Way | None = None) -> kernels.Pool:
        way = way or self._given
        key = way is self._merged, inside
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = self._make_pool(inside, way)
        return pool

    def _make_pool(self, inside: bool, way: Way) -> kernels.Pool:
        shape, last = way.problem.shape, way.problem.channels_last
        name, p = self.reduction
        with kernels.cpu.DefaultFloats():
            low, high = safe_range(self.dtype.name, p)
            asked = layout.Asked(name, self.dtype.name, self.dtype.itemsize, p, low, high,
                                 retries(name, self.dtype.name, p),
                                 bool(self.operator.attributes.get("storage_order")))
            return kernels.Pool(layout.setup_of(asked, way.problem.axes or (POINT,), shape[0],
                                                shape[-1] if last else shape[1], last, inside, way.whole))
