"""The plan of operators that reduce windows, for arrays of one shape and dtype."""

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import budget, kernels, threads
from ..arrays import Array, allocate, can_be, check_out, delivered, machine_memory
from ..constants import FULL_ROW
from ..dtypes import MOMENTS
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..parts import Limit, Partial, grid
from ..places import row_major
from ..windows import Axis, ceil_div
from . import integers, layout, quantisation, ways
from . import solvers as table
from .combining import Total, counted
from .cutting import Cuttable
from .request import MERGES, Reduction, Request, picked

if TYPE_CHECKING:
    from ..explain import Explanation

INDEX = np.dtype(np.int64)
OVERLAP_WORK: Any = 1000  # of the search for elements that two results share; harder cases are refused
MOST_POOLS = 16  # maximum number of pools that a plan keeps for arrays of different strides
MOST_AT_ONCE = 1 << 14  # windows along an axis of which Python looks at the taps
Strides = tuple[int, ...]
Memory = tuple[Strides, tuple[Strides, ...], bool]  # strides of X and the results; whether X is contiguous and native
QUANTISED = ("quantised_mean", "mean_in_order")  # reductions with scales and zero points


def is_plain(x: Array) -> bool:
    """Whether the number of its dtype, a shape and an address say all about an array. Times have units as well."""
    return x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative and x.dtype.kind not in MOMENTS


def missing(dtype: np.dtype[Any]) -> Any:
    """The NaN of a dtype."""
    return np.array("NaT" if dtype.kind in MOMENTS else np.nan).astype(dtype)


def borders(axis: Axis) -> Iterator[slice]:
    """The windows along an axis that may have taps in the padding, a few at a time."""
    for begin, end in ((0, axis.begin), (axis.end, axis.out)):
        for low in range(begin, end, MOST_AT_ONCE):
            yield slice(low, min(end, low + MOST_AT_ONCE))


def steps(x: Array) -> Strides:
    """The strides of an array, with 0 for axes of one element, whose stride is arbitrary."""
    return tuple([stride if size > 1 else 0 for size, stride in zip(x.shape, x.strides, strict=True)])


class ReducingPlan(Cuttable):
    """The base of plans for whole arrays and for parts."""

    __slots__ = ()

    def explain(self, *inputs: Any) -> "Explanation":
        """As `Plan.explain` describes, with form and route."""
        from ..explain import explain

        dtypes = self.dtype.name, self.result_dtype.name
        return explain(self.label, dtypes, self.shape, self.output_shape, self._geometry(),
                       axes=list(zip(self._places(), self.axes, strict=True)), divided=self._divided,
                       route=self._route(), form=self._form())

    @property
    def _divided(self) -> bool:
        return self.reduction.name in ("mean", *QUANTISED)

    def _geometry(self) -> list[str]:
        """The windows in words."""
        from ..explain import axis_lines

        lines = [] if self.axes else ["no spatial axis: every element is a window"]
        for axis, place in zip(self.axes, self._places(), strict=True):
            lines += axis_lines(axis, place, divided=self._divided)
        if 0 in self.output_shape:
            lines.append("the result is empty")
        return lines

    def _route(self) -> list[str]:
        """The names of the solvers that reduce arrays in row-major order."""
        raise NotImplementedError(f"{self.label} has no route")

    def _form(self) -> dict[str, Any] | None:
        """The normal form of arrays in row-major order, if a solver reduces them."""
        return None

    def _cropped(self, plan: Plan, crop: tuple[slice, ...]) -> Plan:
        return Cropped(self, plan, crop)

    def _combined(self, partials: Iterable[Partial]) -> Array:
        total = self.total_of(math.prod(axis.size for axis in self.axes))
        counts = self.reduction.skips and self.reduction.name == "mean"
        for value, taps in partials:
            if (value.dtype.names is not None) != counts:
                raise PoolError(f"{self.label}: a partial result {'lacks' if counts else 'has'} counts of elements "
                                f"that are not NaN; give those of this plan's shares", self.label, "partials")
            if value.shape != self.output_shape:
                raise PoolError(f"{self.label}: a partial result has shape {value.shape}, but the result has "
                                f"{self.output_shape}; give those of this plan's shares", self.label, "partials",
                                value=value.shape)
            total.add(value, taps)
        result = total.result(self.result_dtype)
        if result is None or total.seen != total.taps:
            raise PoolError(f"{self.label}: partial results of {total.seen} elements, but there are {total.taps}; give "
                            f"that of each share once", self.label, "partials", value=total.seen)
        return np.asarray(result)

    def _partial(self, x: Array, y: Array) -> Array:
        """The partial result of a share with these elements and this result."""
        if not self.reduction.skips or self.reduction.name != "mean":
            return y
        axes, keeps = tuple(self._places()), y.ndim == x.ndim
        return counted(y, np.asarray(np.sum(~np.isnan(x), axes, np.int64, keepdims=keeps)))

    def total_of(self, taps: int) -> Total:
        """The combination of partial results of so many elements."""
        return Total(self.reduction, taps, self.dtype)

    def _order(self, x: Array) -> tuple[int, ...] | None:
        """The axes of a result in memory order, slowest first. None stands for row-major order."""
        return None

    def _takes(self, out: Array) -> bool:
        """Whether results can be stored in an array of these strides."""
        return True

    def _result(self, x: Array, out: Array | None, dtype: np.dtype[Any]) -> Array:
        """The array in which a kernel stores a result: the given one, unless it overlaps x or its strides matter."""
        if out is not None:
            check_out(self.label, out, self.output_shape, dtype)
            if not np.may_share_memory(x, out) and self._takes(out):
                return out
        return allocate(self.label, self.output_shape, dtype, self._order(x))


class Cropped(ReducingPlan):
    """A plan for some results of another plan, where a part must read more elements than its own results need."""

    __slots__ = ("_crop", "_inner", "axes", "output_shape", "reduction")

    _inner: Plan
    _crop: tuple[slice, ...]

    def __init__(self, whole: ReducingPlan, inner: Plan, crop: tuple[slice, ...]) -> None:
        super().__init__(whole.operator, inner.shape, inner.dtype, result_dtype=inner.result_dtype, axes=inner.axes,
                         reduction=whole.reduction,
                         output_shape=tuple(cut.stop - cut.start for cut in crop), _inner=inner, _crop=crop)

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """Run the inner plan and select the results."""
        x = self._checked(x)
        y = self._result(x, out, self.result_dtype)
        np.copyto(y, self._inner(x, *inputs, num_threads=num_threads)[self._crop])
        return delivered(y, out)


@kernels.locate_pools
class WindowPlan(kernels.PlainCall, ReducingPlan):
    """
    The plan of an operator that reduces windows along some axes of an array.

    Attributes
    ----------
    request : Request
        The task of the loops. It includes the next two values.
    axes : tuple of Axis
        The windows of each pooled axis, in the order of the array.
    reduction : Reduction
        The function that turns a window into a result.
    """

    __slots__ = ("_bytes", "_cuts", "_joins", "_mends", "_need", "_optional_zeros", "_picked", "_pools", "_quantised",
                 "_tiles", "_wide", "axes", "output_shape", "reduction", "request")

    request: Request
    axes: tuple[Axis, ...]
    reduction: Reduction
    output_shape: tuple[int, ...]
    _bytes: int  # size of X
    _joins: bool  # whether X is made contiguous first, because its strides would change the order of sums
    _need: budget.Need | None  # what a call needs, once that has been asked
    _mends: bool  # whether some results for arrays with NaNs have to be set after the loops
    _picked: tuple[slice | int, ...] | None  # the index of the results in X, if they are elements
    _wide: "WindowPlan | None"  # plan for the dtype to which elements are converted, if any
    _pools: kernels.Pools  # by `Memory`; replaced only by `_renew`, since calls read it without counting a reference
    _quantised: bool
    _optional_zeros: bool  # whether zero points may be left out

    def __init__(self, operator: Any, request: Request, optional_zeros: bool = False, joins: bool = False) -> None:
        dtype, wide = request.dtype, None
        result = dtype if request.result is None and dtype.kind not in "biu" else request.result_dtype
        reduction = request.reduction
        skips = reduction.skips
        if layout.counts_beyond(request):
            longer = np.dtype(np.int64 if dtype.kind in "biu" else np.float64)
            wide = WindowPlan(operator, request._replace(dtype=longer))
        elif reduction.name == "mean" and (held := integers.held_in(request)) != dtype:
            windows = request.windows
            if dtype.kind in "biu" and integers.has_huge_divisors(request.axes):
                windows = tuple([(place, axis.uncounted()) for place, axis in windows])
            wide = WindowPlan(operator, request._replace(dtype=held, result=held, windows=windows))
        mends = skips and wide is None and (reduction.indexed or reduction.name == "mean"
                                            or any(axis.empty for axis in request.axes))
        super().__init__(operator, request.shape, dtype, result_dtype=result, request=request, axes=request.axes,
                         reduction=reduction, _mends=mends, output_shape=request.output_shape, _picked=picked(request),
                         _wide=wide, _pools=kernels.Pools(), _bytes=math.prod(request.shape) * dtype.itemsize,
                         _quantised=request.reduction.name in QUANTISED, _optional_zeros=optional_zeros, _joins=joins,
                         _need=None, _cuts={}, _tiles={})

    @property
    def _by_numpy(self) -> bool:
        """Whether NumPy adds whole axes, of integers."""
        return self._wide is not None and self.reduction.whole and not self.reduction.indexed and (
            self.dtype.kind in "biu")

    # Descriptions

    def _runs(self) -> bool:
        """Whether arrays of these shapes can exist and have elements."""
        return 0 not in self.shape and can_be(self.shape, self.dtype) and can_be(self.output_shape, self.result_dtype)

    def _route(self) -> list[str]:
        """The names of the solvers that reduce row-major arrays."""
        if not self._runs():
            return []
        if self._picked is not None:
            return [table.VIEW]
        if self._by_numpy:
            return ["numpy"]
        return [(self._wide or self)._row_major_pool().setup.solver]

    def _form(self) -> dict[str, Any] | None:
        """The normal form of arrays in row-major order, if a solver reduces them."""
        if not self._runs() or self._picked is not None or self._by_numpy:
            return None
        return (self._wide or self)._row_major_pool().setup.form.to_dict()

    def _geometry(self) -> list[str]:
        from ..explain import looks_coloured

        lines = super()._geometry()
        if self.request.channel == 1 and looks_coloured(self.shape):
            lines.append("  if this axis holds colours, name the pooled ones: axes=(0, 1)")
        if self._wide is not None and not self._by_numpy:
            lines.append(f"{self.dtype.name} becomes {self._wide.dtype.name}, a part at a time")
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
        """All lanes of a whole channel, where their number decides the order of sums."""
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
        request = self.request._replace(shape=shape, windows=tuple(sorted(windows.items())), dtype=dtype, result=result)
        joins = self.reduction.whole and request.channel is None
        return WindowPlan(self.operator, request, self._optional_zeros, joins)

    # Tuning

    def _tuned(self, x: Any, seconds: float, num_threads: int | None) -> Plan:
        given = None if x is None else self._checked(x)
        self._check_limits()
        team = self._team(num_threads)
        if not self._runs() or self._picked is not None or self._wide is not None:
            return self
        if given is None and self._bytes > machine_memory():
            raise PoolError(f"{self.label}: X of shape {self.shape} does not fit in the memory of this machine; tune a "
                            f"plan of a smaller one, or give x=", self.label, "x", value=self.shape)
        x = np.empty(self.shape, self.dtype) if given is None else given
        y = self._result(x, None, self.dtype)
        indices = self._result(x, None, INDEX) if self.reduction.indexed else None
        x = np.ascontiguousarray(x) if self._joins else x
        memory = self._memory(x, y, indices)
        key = layout.key_of(self.request, *memory)
        if key not in ways.learned or ways.learned[key].threads != team:
            if given is None:
                x.fill(1)
            rule = self._rule((1.0, 0, 1.0, 0)) if self._quantised else None
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

    # Running

    def _check_limits(self) -> None:
        """Refuse to run if that would exceed the limits in force. Compiled calls come here as well."""
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
        """The arrays given for maxima and for indices, each None by default."""
        if out is None:
            return None, None
        if not isinstance(out, tuple) or len(out) != 2:
            raise PoolTypeError(f"{self.label}: out with Indices must be a tuple of two arrays, got "
                                f"{type(out).__name__}; give (y, indices)", self.label, "out", value=type(out).__name__)
        for array, dtype in zip(out, (self.dtype, INDEX), strict=True):
            if array is not None:
                check_out(self.label, array, self.output_shape, dtype)
        if out[0] is not None and out[1] is not None and np.may_share_memory(*out, max_work=OVERLAP_WORK):
            raise PoolError(f"{self.label}: out[0] and out[1] share memory; give two arrays", self.label, "out")
        return out

    def _team(self, num_threads: int | None) -> int:
        return threads.team(num_threads, self._bytes)

    def _order(self, x: Array) -> tuple[int, ...] | None:
        return None if self.request.channel is None else layout.memory_order(x, self.request.channel)

    def _takes(self, out: Array) -> bool:
        """Sums over whole axes would have another order if the strides of the result were others."""
        whole = self.reduction.whole and self.request.channel is None and self.reduction.name not in MERGES
        return not whole or bool(out.flags.c_contiguous)

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: quantisation.Scales | None, team: int) -> None:
        """Reduce an array, which is not empty, into arrays that do not overlap it."""
        if self._picked is not None:
            elements = x[self._picked]
            np.copyto(y, elements if x.dtype.kind != "b" else elements != 0)  # the byte 1 for any but 0
            if x.dtype.kind != "b":
                self._settle(self._pools, None, x, y)
        elif self._wide is not None:
            with budget.lifted(), np.errstate(all="ignore"):  # elements may be signalling NaNs
                self._convert(self._wide, x, y, indices, team)
            if (self.reduction.name == "mean" and not self._by_numpy and x.dtype.kind in "biu"
                    and max(x.size, y.size) * self._wide.dtype.itemsize <= layout.CONVERTED
                    and integers.are_casts(self._wide.request, self.request)):
                self._settle(self._pools, self._wide._row_major_pool(), x, y)
        else:
            x = np.ascontiguousarray(x) if self._joins else x
            pools = self._pools
            pool = self._pool(x, y, indices, pools)
            overflowed = pool.run(x, y, team, rule, indices)
            if self._mends:
                with np.errstate(all="ignore"):
                    self._mend(x, y, indices, overflowed, team)
            else:
                self._settle(pools, pool, x, y, indices)

    def _settle(self, pools: kernels.Pools, pool: kernels.Pool | None, x: Array, y: Array,
                indices: Array | None = None) -> None:
        """Let later calls on plain arrays go straight to a pool, or to elements, if these arrays are plain."""
        index: Any = self._picked
        picked = () if index is None else [(axis, index[axis].step or 1) for axis in self.request.kept]
        if pools.plain is None and is_plain(x) and is_plain(y) and (indices is None or is_plain(indices)):
            pools.settle(kernels.plain_pool(
                pool, self.shape, self.output_shape, self.dtype, (self._wide or self).dtype, self.result_dtype,
                quantised=self._quantised, indexed=indices is not None, serial=self._bytes < threads.SERIAL_BYTES,
                picked=picked))

    def _mend(self, x: Array, y: Array, indices: Array | None, overflowed: bool, team: int) -> None:
        """Set the results of windows without a number, and those of means whose sums overflowed."""
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
            self._mend_indexed(x, y, indices)

    def _mend_indexed(self, x: Array, y: Array, indices: Array) -> None:
        """Set the results of windows without a number, and those that are zeros, whose signs the loops ignore."""
        order: Any = "F" if self.reduction.column_major else "C"
        each = 2 * (y.itemsize + INDEX.itemsize * (1 + y.ndim))  # what the selection of an element holds
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
        """Compute means again that are not finite: without NaNs as usual, and others from elements that are scaled
        down."""
        request = self.request._replace(reduction=self.reduction._replace(skips=False))
        usual = WindowPlan(self.operator, request, joins=self._joins)
        scale = x.dtype.type(2.0**64)
        for part, other in zip(*[plan._parts(Limit(None, layout.CONVERTED, strict=False)) for plan in (usual, self)],
                               strict=True):
            means, elements = y[(*part.outputs, ...)], x[part.inputs]  # an array even if y has no axes
            again = part(elements, num_threads=team)
            again = np.where(np.isnan(again), other(elements / scale, num_threads=team) * scale, again)
            np.copyto(means, again, where=~np.isfinite(means))

    def _convert(self, wide: "WindowPlan", x: Array, y: Array, indices: Array | None, team: int) -> None:
        """Reduce elements that are converted to a wider dtype, part by part."""
        if not self.reduction.indexed:
            self._average(wide, x, y, team)
            return
        for part in wide._parts(Limit(None, layout.CONVERTED, strict=False)):
            result, found = part(x[part.inputs].astype(wide.dtype), num_threads=team)
            if x.dtype.kind in "biu":  # windows entirely in padding have a number that the dtype may lack
                low, high = (0, 1) if x.dtype.kind == "b" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
                result = result.clip(low, high)
            y[part.outputs] = result
            if indices is not None:
                indices[part.outputs] = found

    def _average(self, wide: "WindowPlan", x: Array, y: Array, team: int) -> None:
        """Take means of elements that are converted to a wider dtype."""
        if self._by_numpy:
            y[...] = integers.whole_means(x, self.request.pooled, self.request.keepdims, self.result_dtype)
            return
        casts = integers.are_casts(wide.request, self.request)
        few = not casts and integers.adds_pieces(wide.request, self.request)
        for part in wide._parts(Limit(None, layout.CONVERTED >> 2 if few else layout.CONVERTED, strict=False)):
            index: Any = (*part.outputs, ...)  # of an array, even if y has no axes
            mean, elements, results = partial(part, num_threads=team), x[part.inputs], y[index]
            if not casts:
                results[...] = integers.window_means(elements, mean, wide.request, self.request, part.outputs)
            elif wide.dtype == self.result_dtype:
                mean(elements.astype(wide.dtype), out=results)
            else:
                results[...] = mean(elements.astype(wide.dtype))

    def _rule(self, inputs: tuple[Any, ...]) -> quantisation.Scales | None:
        """The parameters that the inputs after X set for a kernel."""
        if not self._quantised:
            self._no_inputs(inputs)
            return None
        with kernels.cpu.DefaultFloats():
            make = quantisation.maker(self.label, self.dtype, self._optional_zeros,
                                      self.reduction.name == "mean_in_order", inputs)
            return make(math.prod(axis.kernel for axis in self.axes))

    def _memory(self, x: Array, y: Array, indices: Array | None) -> Memory:
        """The strides of these arrays, and whether X is in row-major order and in the byte order of the machine."""
        results = (y,) if indices is None else (y, indices)
        return steps(x), tuple(map(steps, results)), x.flags.c_contiguous and x.dtype.isnative

    def _pool(self, x: Array, y: Array, indices: Array | None, pools: kernels.Pools | None = None) -> kernels.Pool:
        """The pool for arrays of these strides, among the given ones or those of the plan."""
        return self._pool_for(*self._memory(x, y, indices), self._pools if pools is None else pools)

    def _row_major(self) -> Memory:
        """The memory of row-major arrays."""
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
