"""The plans of operators that reduce windows, by how they compute results. `plan_of` chooses the kind.

| kind | results |
|---|---|
| `CopyPlan` | elements of X, because each window has only one |
| `LoopPlan` | results of a compiled loop |
| `QuantisedPlan` | results of a compiled loop, with scales and zero points |
| `CorrectedPlan` | results of a compiled loop that skips NaNs; some results are set afterwards |
| `ConvertedPlan` | results of a plan for a wider dtype, to which elements are converted a part at a time |
| `IntegerMeanPlan` | means of windows of integers, from a plan for a wider dtype, rounded once |
| `WholeMeanPlan` | means of whole axes of integers, which NumPy adds |
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import budget, kernels, threads
from ..arrays import Array, can_be, check_out, delivered, machine_memory
from ..constants import FULL_ROW
from ..dtypes import MOMENTS
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..parts import Limit, Part, grid
from ..places import row_major
from ..windows import Axis, ceil_div
from . import integers, layout, quantisation, ways
from . import solvers as table
from .plan import QUANTISED, ReducingPlan
from .request import MERGES, Reduction, Request, picked

INDEX = np.dtype(np.int64)
OVERLAP_WORK: Any = 1000  # maximum work of searching for elements that two results share; harder cases are refused
MOST_POOLS = 16  # maximum number of pools that a plan keeps for arrays of different strides
MOST_AT_ONCE = 1 << 14  # maximum windows along an axis whose taps Python looks at together
Strides = tuple[int, ...]
Memory = tuple[Strides, tuple[Strides, ...], bool]  # strides of X and the results; whether X is contiguous and native
Scales = quantisation.Scales | None


def is_plain(x: Array) -> bool:
    """Whether type number, shape and address fully describe an array. Times also have units, so they are not plain."""
    return x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative and x.dtype.kind not in MOMENTS


def missing(dtype: np.dtype[Any]) -> Any:
    """The NaN of a dtype."""
    return np.array("NaT" if dtype.kind in MOMENTS else np.nan).astype(dtype)


def borders(axis: Axis) -> Iterator[slice]:
    """The ranges of windows along an axis that may have taps in the padding, a few windows at a time."""
    for begin, end in ((0, axis.begin), (axis.end, axis.out)):
        for low in range(begin, end, MOST_AT_ONCE):
            yield slice(low, min(end, low + MOST_AT_ONCE))


def steps(x: Array) -> Strides:
    """The strides of an array, with 0 for axes of one element, whose stride is arbitrary."""
    return tuple([stride if size > 1 else 0 for size, stride in zip(x.shape, x.strides, strict=True)])


@kernels.locate_pools
class WindowPlan(kernels.PlainCall, ReducingPlan):
    """
    The plan of an operator that reduces windows along some axes of an array.

    Attributes
    ----------
    request : Request
        The task, which includes the next two attributes.
    axes : tuple of Axis
        The windows of each pooled axis, in the order of the array.
    reduction : Reduction
        The function that turns a window into a result.
    """

    __slots__ = ("_bytes", "_cuts", "_need", "_pools", "_tiles", "axes", "output_shape", "reduction", "request")

    scaled = False  # whether further inputs are scales and zero points
    request: Request
    axes: tuple[Axis, ...]
    reduction: Reduction
    output_shape: tuple[int, ...]
    _bytes: int  # size of X
    _need: budget.Need | None  # what a call needs, once a limit has asked for it
    _pools: kernels.Pools  # by `Memory`. Only `_renew` replaces it, because calls read it without counting a reference

    def __init__(self, operator: Any, request: Request, **more: Any) -> None:
        super().__init__(operator, request.shape, request.dtype, result_dtype=request.result_dtype, request=request,
                         axes=request.axes, reduction=request.reduction, output_shape=request.output_shape,
                         _pools=kernels.Pools(), _bytes=math.prod(request.shape) * request.dtype.itemsize,
                         _need=None, _cuts={}, _tiles={}, **more)

    # Descriptions

    def _runs(self) -> bool:
        """Whether arrays of these shapes can exist and have elements."""
        return 0 not in self.shape and can_be(self.shape, self.dtype) and can_be(self.output_shape, self.result_dtype)

    def _geometry(self) -> list[str]:
        from ..explain import looks_coloured

        lines = super()._geometry()
        if self.request.channel == 1 and looks_coloured(self.shape):
            lines.append("  if this axis holds colours, name the pooled ones: axes=(0, 1)")
        if self.reduction.skips:
            lines.append("NaNs are left out" + (", and not counted by divisors" if self._divided else ""))
        return lines

    # Cutting

    def _places(self) -> tuple[int, ...]:
        return self.request.pooled

    def _numbering(self) -> tuple[int, ...]:
        return self.request.order

    def _result_axes(self) -> list[int]:
        return list(self.request.kept)

    def _least(self, axis: int) -> int:
        """All lanes of a whole channel, if the number of lanes decides the order of sums."""
        batch = [own for own in range(len(self.shape)) if own not in self.request.pooled and self.shape[own] > 1]
        reduced = [own for own, windows in self.request.windows if windows.size > 1]
        if not self.reduction.whole or not reduced or axis not in batch or axis == 0:
            return 1
        if batch[-1] < reduced[-1]:
            return self.shape[axis] if axis == batch[-1] else 1
        behind = math.prod(self.shape[axis + 1:])
        lanes = ceil_div(FULL_ROW, max(1, behind))  # lanes that fill a row even if accumulators have one byte
        return min(self.shape[axis], lanes) if axis > reduced[-1] else 1

    def _like(self, shape: tuple[int, ...], windows: dict[int, Axis], dtype: np.dtype[Any],
              result: np.dtype[Any] | None = None) -> Plan:
        joins = self.reduction.whole and self.request.channel is None
        return plan_of(self.operator, self.request._replace(
            shape=shape, windows=tuple(sorted(windows.items())), dtype=dtype, result=result, joins=joins))

    # Running

    def _tuned(self, x: Any, seconds: float, num_threads: int | None) -> Plan:
        """This plan itself, once its arguments are checked, because there is nothing to measure."""
        self._tunable(x, num_threads)
        return self

    def _tunable(self, x: Any, num_threads: int | None) -> tuple[Array | None, int]:
        """The checked arguments of `tuned`."""
        given = None if x is None else self._checked(x)
        self._check_limits()
        return given, self._team(num_threads)

    def _check_limits(self) -> None:
        """Refuse calls that would exceed the limits in force. Compiled calls run this check as well."""
        limits = budget.in_force()
        if limits is budget.NO_LIMITS:
            return
        need = self._need
        if need is None:
            each = self.result_dtype.itemsize + INDEX.itemsize * self.reduction.indexed
            results = math.prod(self.output_shape)
            batch = math.prod(size for axis, size in enumerate(self.shape) if axis not in self.request.pooled)
            taps = math.prod(axis.taps for axis in self.axes)
            need = budget.Need(results * each, batch * taps + results)
            self._freeze(_need=need)
        budget.check(self.label, "X", self.shape, need, limits)

    def _call(self, x: Any, inputs: tuple[Any, ...], out: Any, num_threads: int | None) -> Any:
        """Run on arrays of any strides and byte order."""
        x = self._checked(x)
        self._check_limits()
        rule, team = self._rule(inputs), self._team(num_threads)
        indexed = self.reduction.indexed
        y_out, indices_out = self._out_pair(out) if indexed else (out, None)
        y = self._result(x, y_out, self.result_dtype)
        indices = self._result(x, indices_out, INDEX) if indexed else None
        if x.size:
            self._reduce(x, y, indices, rule, team)
        y = delivered(y, y_out)
        return y if indices is None else (y, delivered(indices, indices_out))

    def _out_pair(self, out: Any) -> tuple[Array | None, Array | None]:
        """The arrays passed for maxima and for indices, each None by default."""
        if out is None:
            return None, None
        if not isinstance(out, tuple) or len(out) != 2:
            raise PoolTypeError(f"{self.label}: out with Indices must be a tuple of two arrays, got "
                                f"{type(out).__name__}; pass (y, indices)", self.label, "out", value=type(out).__name__)
        for array, dtype in zip(out, (self.dtype, INDEX), strict=True):
            if array is not None:
                check_out(self.label, array, self.output_shape, dtype)
        if out[0] is not None and out[1] is not None and np.may_share_memory(*out, max_work=OVERLAP_WORK):
            raise PoolError(f"{self.label}: out[0] and out[1] share memory; pass two arrays", self.label, "out")
        return out

    def _team(self, num_threads: int | None) -> int:
        return threads.team(num_threads, self._bytes)

    def _order(self, x: Array) -> tuple[int, ...] | None:
        return None if self.request.channel is None else layout.memory_order(x, self.request.channel)

    def _takes(self, out: Array) -> bool:
        """Whether results can be stored in an array. Its strides can change the order of sums over whole axes."""
        whole = self.reduction.whole and self.request.channel is None and self.reduction.name not in MERGES
        return not whole or bool(out.flags.c_contiguous)

    def _rule(self, inputs: tuple[Any, ...]) -> Scales:
        """The kernel parameters that the inputs after X set."""
        self._no_inputs(inputs)
        return None

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Scales, team: int) -> None:
        """Reduce a non-empty array into arrays that do not overlap it."""
        raise NotImplementedError(f"{self.label} has no loops")

    # Pools: loops can reduce all windows whose indices fit

    def _settle(self, pools: kernels.Pools, pool: kernels.Pool | None, held: np.dtype[Any], x: Array, y: Array,
                indices: Array | None = None, picked: Sequence[tuple[int, int]] = ()) -> None:
        """If these arrays are plain, let later calls on plain arrays go straight to a pool, or to elements of X."""
        if pools.plain is None and is_plain(x) and is_plain(y) and (indices is None or is_plain(indices)):
            pools.settle(kernels.plain_pool(
                pool, self.shape, self.output_shape, self.dtype, held, self.result_dtype, quantised=self.scaled,
                indexed=indices is not None, serial=self._bytes < threads.SERIAL_BYTES, picked=picked))

    def _memory(self, x: Array, y: Array, indices: Array | None) -> Memory:
        """The strides of these arrays, and whether X is contiguous in row-major order and in native byte order."""
        results = (y,) if indices is None else (y, indices)
        return steps(x), tuple(map(steps, results)), x.flags.c_contiguous and x.dtype.isnative

    def _pool(self, x: Array, y: Array, indices: Array | None, pools: kernels.Pools | None = None) -> kernels.Pool:
        """The pool for arrays of these strides. It is kept in `pools`, by default the plan's pools."""
        return self._pool_for(*self._memory(x, y, indices), self._pools if pools is None else pools)

    def _row_major(self) -> Memory:
        """The strides of row-major arrays, as a `Memory`."""
        itemsize = self.request.dtype.itemsize
        x, y, indices = (tuple(step * size * (n > 1) for step, n in zip(row_major(shape), shape, strict=True))
                         for shape, size in ((self.shape, itemsize), (self.output_shape, itemsize),
                                             (self.output_shape, INDEX.itemsize)))
        return x, (y, indices) if self.reduction.indexed else (y,), True

    def _row_major_pool(self) -> kernels.Pool:
        """The pool for row-major arrays."""
        return self._pool_for(*self._row_major(), self._pools)

    def _pool_for(self, x: Strides, results: tuple[Strides, ...], contiguous: bool,
                  pools: kernels.Pools) -> kernels.Pool:
        key = x, results, contiguous
        pool = pools.get(key)
        if pool is None:
            if len(pools) >= MOST_POOLS:
                pools.clear()
            with kernels.cpu.DefaultFloats():
                pool = layout.pool_of(self.request, x, results, contiguous)
            pools[key] = pool
        return pool


class CopyPlan(WindowPlan):
    """The plan of windows with one element each, which the reduction does not change."""

    __slots__ = ("_picked",)

    _picked: tuple[slice | int, ...]  # the index of the results in X

    def _route(self) -> list[str]:
        return [table.VIEW] if self._runs() else []

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Scales, team: int) -> None:
        elements = x[self._picked]
        np.copyto(y, elements if x.dtype.kind != "b" else elements != 0)  # True is the byte 1, whatever byte X has
        if x.dtype.kind != "b":
            steps_of = [(axis, cut.step or 1) for axis in self.request.kept
                        if isinstance(cut := self._picked[axis], slice)]
            self._settle(self._pools, None, self.dtype, x, y, picked=steps_of)


class LoopPlan(WindowPlan):
    """The plan of windows that compiled loops reduce as they are."""

    __slots__ = ()

    def _route(self) -> list[str]:
        return [self._row_major_pool().setup.solver] if self._runs() else []

    def _form(self) -> dict[str, Any] | None:
        return self._row_major_pool().setup.form.to_dict() if self._runs() else None

    def _tuned(self, x: Any, seconds: float, num_threads: int | None) -> Plan:
        given, team = self._tunable(x, num_threads)
        if not self._runs():
            return self
        if given is None and self._bytes > machine_memory():
            raise PoolError(f"{self.label}: X of shape {self.shape} does not fit in the memory of this machine; tune a "
                            f"plan of a smaller one, or pass x=", self.label, "x", value=self.shape)
        x = np.empty(self.shape, self.dtype) if given is None else given
        y = self._result(x, None, self.dtype)
        indices = self._result(x, None, INDEX) if self.reduction.indexed else None
        x = np.ascontiguousarray(x) if self.request.joins else x
        memory = self._memory(x, y, indices)
        key = layout.key_of(self.request, *memory)
        if key not in ways.learned or ways.learned[key].threads != team:
            if given is None:
                x.fill(1)
            rule = self._rule((1.0, 0, 1.0, 0)) if self.scaled else None
            with kernels.cpu.DefaultFloats():
                pools = layout.pools_of(self.request, *memory)
            calls = [partial(pool.run, x, y, team, rule, indices) for pool in pools.values()]
            ways.learned[key] = [*pools][ways.fastest(calls, seconds)]._replace(threads=team)
            kernels.renew_shapes()
        with kernels.cpu.DefaultFloats():
            stale = any(pool.setup != layout.setup_of(self.request, *memory)
                        for memory, pool in self._pools.copy().items())
        if stale:
            self._renew()
        return self

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Scales, team: int) -> None:
        pools = self._pools
        pool, _ = self._run(pools, x, y, indices, rule, team)
        self._settle(pools, pool, self.dtype, x, y, indices)

    def _run(self, pools: kernels.Pools, x: Array, y: Array, indices: Array | None, rule: Scales,
             team: int) -> tuple[kernels.Pool, bool]:
        """Run the pool for these arrays. Return the pool, and whether a sum that skips NaNs overflowed."""
        x = np.ascontiguousarray(x) if self.request.joins else x
        pool = self._pool(x, y, indices, pools)
        return pool, pool.run(x, y, team, rule, indices)


class QuantisedPlan(LoopPlan):
    """The plan of means of quantised elements."""

    __slots__ = ()

    scaled = True

    def _rule(self, inputs: tuple[Any, ...]) -> Scales:
        with kernels.cpu.DefaultFloats():
            return self._maker(inputs)(math.prod(axis.kernel for axis in self.axes))

    @property
    def _maker(self) -> Callable[[tuple[Any, ...]], Callable[[int], quantisation.Scales]]:
        """A function that makes parameters from the inputs after X, and then from the number of taps."""
        return partial(quantisation.maker, self.label, self.dtype, "x_zero_point" in self.operator._schema.optional,
                       self.reduction.name == "mean_in_order")


class CorrectedPlan(LoopPlan):
    """The plan of windows whose NaNs are skipped. Some results are set after the loops."""

    __slots__ = ()

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Scales, team: int) -> None:
        _, overflowed = self._run(self._pools, x, y, indices, rule, team)
        with np.errstate(all="ignore"):
            self._correct(x, y, indices, overflowed, team)

    def _correct(self, x: Array, y: Array, indices: Array | None, overflowed: bool, team: int) -> None:
        """Set the results of windows without a number, and means whose sums overflowed."""
        if overflowed:
            with budget.lifted():
                self._rescale(x, y, team)
        if self.reduction.name != "mean":
            for axis, windows in self.request.windows:
                if windows.empty:
                    for place in borders(windows):
                        results = y[(slice(None),) * axis + (place,)]
                        _, taps, _ = kernels.windows_of(windows, place.start, place.stop)
                        results[(slice(None),) * axis + (taps == 0,)] = missing(y.dtype)
        if indices is not None:
            self._correct_indexed(x, y, indices)

    def _correct_indexed(self, x: Array, y: Array, indices: Array) -> None:
        """Set the results of windows without a number, and results that are zeros, because loops ignore their signs."""
        order: Any = "F" if self.reduction.column_major else "C"
        each = 2 * (y.itemsize + INDEX.itemsize * (1 + y.ndim))  # bytes that selecting one element takes
        blocks = Limit(None, layout.CONVERTED, strict=False).blocks(
            self.label, y.shape, lambda axis, places: places, lambda blocks: each * math.prod(blocks))
        for ranges in grid(y.shape, blocks):
            block = tuple([slice(*one) for one in ranges])
            values, found = y[block], indices[block]
            none = np.isnan(values)
            if none.any():
                values[none], found[none] = missing(y.dtype), -1
            if y.dtype.kind not in MOMENTS and (zeros := values == 0).any():
                values[zeros] = x[np.unravel_index(found[zeros], self.shape, order)]

    def _rescale(self, x: Array, y: Array, team: int) -> None:
        """Recompute means that are not finite, from scaled-down elements. NaNs are skipped as before."""
        request = self.request._replace(reduction=self.reduction._replace(skips=False))
        usual = plan_of(self.operator, request)
        scale = x.dtype.type(2.0**64)
        for part, other in zip(*[plan._parts(Limit(None, layout.CONVERTED, strict=False)) for plan in (usual, self)],
                               strict=True):
            means, elements = y[(*part.outputs, ...)], x[part.inputs]  # `means` is an array even if y has no axes
            again = part(elements, num_threads=team)
            again = np.where(np.isnan(again), other(elements / scale, num_threads=team) * scale, again)
            np.copyto(means, again, where=~np.isfinite(means))


class ConvertedPlan(WindowPlan):
    """The plan of windows whose elements are converted to a wider dtype, a part at a time."""

    __slots__ = ("wide",)

    wide: WindowPlan  # the plan for the wider dtype

    def _route(self) -> list[str]:
        return self.wide._route() if self._runs() else []

    def _form(self) -> dict[str, Any] | None:
        return self.wide._form() if self._runs() else None

    def _geometry(self) -> list[str]:
        return [*super()._geometry(), f"{self.dtype.name} becomes {self.wide.dtype.name}, a part at a time"]

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Scales, team: int) -> None:
        with budget.lifted(), np.errstate(all="ignore"):  # elements may be signalling NaNs
            for part in self._parts_of_wide():
                self._reduce_part(part, x[part.inputs], y, indices, team)
        if self._casts and max(x.size, y.size) * self.wide.dtype.itemsize <= layout.CONVERTED:
            self._settle(self._pools, self.wide._row_major_pool(), self.wide.dtype, x, y)

    @property
    def _casts(self) -> bool:
        """Whether C can cast elements and results as NumPy does. For floats, NumPy's casts depend on its flags."""
        return self.dtype.kind in "biu" and not self.reduction.indexed

    def _parts_of_wide(self) -> Iterator[Part]:
        return self.wide._parts(Limit(None, layout.CONVERTED, strict=False))

    def _reduce_part(self, part: Part, elements: Array, y: Array, indices: Array | None, team: int) -> None:
        """Reduce the elements of a part into its results among all results."""
        held = elements.astype(part.dtype)
        if indices is None:
            index: Any = (*part.outputs, ...)  # selects an array, even if y has no axes
            if self.wide.result_dtype == self.result_dtype:
                part(held, out=y[index], num_threads=team)
            else:
                y[index] = part(held, num_threads=team)
            return
        values, indices[part.outputs] = part(held, num_threads=team)
        if self.dtype.kind in "biu":  # windows entirely in padding result in a number that the dtype may lack
            low, high = (0, 1) if self.dtype.kind == "b" else (np.iinfo(self.dtype).min, np.iinfo(self.dtype).max)
            values = values.clip(low, high)
        y[part.outputs] = values


class IntegerMeanPlan(ConvertedPlan):
    """The plan of means over windows of integers: exact sums, perhaps of pieces, that are divided and rounded once."""

    __slots__ = ()

    _casts = False

    def _parts_of_wide(self) -> Iterator[Part]:
        adds_pieces = integers.adds_pieces(self.wide.request, self.request)
        return self.wide._parts(Limit(None, layout.CONVERTED >> 2 if adds_pieces else layout.CONVERTED, strict=False))

    def _reduce_part(self, part: Part, elements: Array, y: Array, indices: Array | None, team: int) -> None:
        mean = partial(part, num_threads=team)
        y[part.outputs] = integers.window_means(elements, mean, self.wide.request, self.request, part.outputs)


class WholeMeanPlan(WindowPlan):
    """The plan of means over whole axes of integers, which NumPy adds."""

    __slots__ = ()

    def _route(self) -> list[str]:
        return ["numpy"] if self._runs() else []

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Scales, team: int) -> None:
        with np.errstate(all="ignore"):
            y[...] = integers.whole_means(x, self.request.pooled, self.request.keepdims, self.result_dtype)


def plan_of(operator: Any, request: Request) -> WindowPlan:
    """The plan of an operator for a request."""
    reduction, dtype, index = request.reduction, request.dtype, picked(request)
    if index is not None:
        return CopyPlan(operator, request, _picked=index)
    counts = dtype.kind in "biu"
    if layout.counts_beyond(request):
        longer = np.dtype(np.int64 if counts else np.float64)
        return ConvertedPlan(operator, request, wide=plan_of(operator, request._replace(dtype=longer)))
    if reduction.name == "mean" and (own := integers.held_in(request)) != dtype:
        if counts and reduction.whole:
            return WholeMeanPlan(operator, request)
        held = request._replace(dtype=own, result=own)
        if counts and integers.has_huge_divisors(request.axes):
            held = held._replace(windows=tuple([(place, axis.uncounted()) for place, axis in request.windows]))
        kind = ConvertedPlan if integers.are_casts(held, request) else IntegerMeanPlan
        return kind(operator, request, wide=plan_of(operator, held))
    if reduction.name in QUANTISED:
        return QuantisedPlan(operator, request)
    if reduction.skips and (reduction.indexed or reduction.name == "mean" or any(axis.empty for axis in request.axes)):
        return CorrectedPlan(operator, request)
    return LoopPlan(operator, request)
