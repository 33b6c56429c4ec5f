"""Plans: what an operator that reduces windows does with arrays of one shape and dtype."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import kernels, threads
from ..arrays import Array, allocate, can_be, check_out, delivered
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..explain import Explanation, axis_lines, explain, looks_coloured
from ..parts import Partial
from ..windows import Axis
from . import layout, quantisation
from .combining import Total
from .cutting import Cuttable
from .request import Reduction, Request, merged, picked

INDEX = np.dtype(np.int64)
QUANTISED = ("quantised_mean", "mean_in_order")  # reductions whose further inputs say what elements stand for


def is_plain(x: Array) -> bool:
    """Whether an array lies as kernels take it without a further look."""
    return x.flags.c_contiguous and x.flags.aligned


class Reducing(Cuttable):
    """A plan that reduces windows: what such plans do with arrays, whatever these are seen as."""

    __slots__ = ()

    _quantised = False

    def explain(self) -> Explanation:
        """Tell what the plan does, as `Plan.explain`."""
        return explain(self.label, self.dtype.name, self.shape, self.output_shape, self._geometry(),
                       axes=list(zip(self._places(), self.axes, strict=True)), divided=self._divided,
                       route=self._route())

    @property
    def _divided(self) -> bool:
        return self.reduction.name.startswith("mean")

    def _geometry(self) -> list[str]:
        """The windows in words."""
        lines = [] if self.axes else ["no spatial axis: every element is a window"]
        for axis, place in zip(self.axes, self._places(), strict=True):
            lines += axis_lines(axis, place, divided=self._divided)
        if 0 in self.output_shape:
            lines.append("the result is empty")
        return lines

    def _route(self) -> list[str]:
        """The names of the steps that reduce arrays in row-major order."""
        raise NotImplementedError(f"{self.label} has no route")

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: quantisation.Rule | None, team: int) -> None:
        """Reduces an array, which is not empty, into results that it does not overlap."""
        raise NotImplementedError(f"{self.label} does not run")

    def _call(self, x: Any, inputs: tuple[Any, ...], out: Any, num_threads: int | None) -> Any:
        """A call on any arrays."""
        x = self._checked(x)
        rule = self._rule(inputs) if inputs or self._quantised else None
        team = threads.team(num_threads, x.nbytes)
        indexed = self.reduction.name == "indexed_max"
        y_out, indices_out = self._out_pair(out) if indexed else (out, None)
        y = self._result(x, y_out, self.dtype)
        indices = self._result(x, indices_out, INDEX) if indexed else None
        if x.size:
            self._reduce(x, y, indices, rule, team)
            if indices is None and is_plain(x) and is_plain(y):
                self._remember()
        y = delivered(y, y_out)
        return y if indices is None else (y, delivered(indices, indices_out))

    def _remember(self) -> None:
        """Keeps what runs further calls on plain arrays, if the plan has such."""

    def _rule(self, inputs: tuple[Any, ...]) -> quantisation.Rule | None:
        """What the further inputs ask of a kernel."""
        self._no_inputs(inputs)
        return None

    def _cropped(self, plan: Plan, crop: tuple[slice, ...]) -> Plan:
        return Cropped(self, plan, crop)

    def _combined(self, partials: Iterable[Partial]) -> Array:
        total = Total(self.reduction, math.prod(axis.size for axis in self.axes))
        for value, taps in partials:
            if value.shape != self.output_shape:
                raise PoolError(f"{self.label}: a partial result has shape {value.shape}, the result has "
                                f"{self.output_shape}; give those of this plan's shares", self.label, "partials",
                                value=value.shape)
            total.add(value, taps)
        result = total.result(self.dtype)
        if result is None or total.seen != total.taps:
            raise PoolError(f"{self.label}: partial results of {total.seen} elements, but there are {total.taps}; give "
                            f"that of each share once", self.label, "partials", value=total.seen)
        return result

    def _order(self, x: Array) -> tuple[int, ...] | None:
        """The axes of a result, slowest in memory first; None is row-major order."""
        return None

    def _out_pair(self, out: Any) -> tuple[Array | None, Array | None]:
        """The arrays that were given for a maximum and its indices, each None if it was not."""
        if out is None:
            return None, None
        if not isinstance(out, tuple) or len(out) != 2:
            raise PoolTypeError(f"{self.label}: out with Indices must be a tuple of two arrays, got "
                                f"{type(out).__name__}; give (y, indices)", self.label, "out", value=type(out).__name__)
        for array, dtype in zip(out, (self.dtype, INDEX), strict=True):
            if array is not None:
                check_out(self.label, array, self.output_shape, dtype)
        if out[0] is not None and out[1] is not None and np.may_share_memory(*out):
            raise PoolError(f"{self.label}: out[0] and out[1] share memory; give two arrays", self.label, "out")
        return out

    def _result(self, x: Array, out: Array | None, dtype: np.dtype[Any]) -> Array:
        """Where a kernel stores a result: in the array that was given, unless it overlaps x."""
        if out is not None:
            check_out(self.label, out, self.output_shape, dtype)
            if not np.may_share_memory(x, out):
                return out
        return allocate(self.label, self.output_shape, dtype, self._order(x))


class Cropped(Reducing):
    """A plan for some of another plan's results, of a part that must be read with more than it gives."""

    __slots__ = ("_crop", "_inner", "axes", "output_shape", "reduction")

    _inner: Plan
    _crop: tuple[slice, ...]

    def __init__(self, whole: Reducing, inner: Plan, crop: tuple[slice, ...]) -> None:
        super().__init__(whole.operator, inner.shape, inner.dtype, axes=inner.axes, reduction=whole.reduction,
                         output_shape=tuple(cut.stop - cut.start for cut in crop), _inner=inner, _crop=crop)

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """Run the plan and take the results."""
        return self._call(x, inputs, out, num_threads)

    def _call(self, x: Any, inputs: tuple[Any, ...], out: Any, num_threads: int | None) -> Any:
        x = self._checked(x)
        y = self._result(x, out, self.dtype)
        np.copyto(y, self._inner(x, *inputs, num_threads=num_threads)[self._crop])
        return delivered(y, out)


class Remembering(kernels.PlainCall, Reducing):
    """A plan whose further calls on plain arrays take a shorter way."""

    __slots__ = ()

    _plain: list[kernels.PlainPool]  # what runs plain arrays without a further look, once it is made

    def _row_major(self) -> "WindowPlan | None":
        """The plan whose pool reduces plain arrays, if one does."""
        raise NotImplementedError(f"{self.label} does not run")

    def _team(self, num_threads: int | None) -> int:
        """How many threads a call on plain arrays gets."""
        return threads.team(num_threads, math.prod(self.shape) * self.dtype.itemsize)

    def _remember(self) -> None:
        plan = None if self._plain else self._row_major()
        if plan is not None:
            self._plain.append(plan.plain_pool(self))


class WindowPlan(Remembering):
    """
    The plan of an operator that reduces windows.

    Attributes
    ----------
    request : Request
        What is asked, with the two values that follow.
    axes : tuple of Axis
        The windows of each spatial axis.
    reduction : Reduction
        What a window becomes.
    """

    __slots__ = ("_bytes", "_merged", "_optional_zeros", "_picked", "_plain", "_pools", "_quantised", "_wider", "axes",
                 "output_shape", "reduction", "request")

    request: Request
    axes: tuple[Axis, ...]
    reduction: Reduction
    output_shape: tuple[int, ...]
    _bytes: int  # of X
    _merged: Request | None  # the same with fewer axes
    _picked: tuple[slice, ...] | None  # the elements that are the results
    _wider: "WindowPlan | None"  # for float64, if only that has room for indices
    _pools: dict[tuple[bool, layout.Layout], kernels.Pool]  # by whether the request is merged, and the layout
    _quantised: bool
    _optional_zeros: bool  # whether zero points may be left out

    def __init__(self, operator: Any, request: Request, optional_zeros: bool = False) -> None:
        picks = picked(request)
        wider = None
        if layout.counts_beyond(request):
            wider = WindowPlan(operator, request._replace(dtype=np.dtype(np.float64)))
        super().__init__(operator, request.shape, request.dtype, request=request, axes=request.axes,
                         channels_last=request.channels_last, reduction=request.reduction,
                         output_shape=request.output_shape, _picked=picks,
                         _merged=None if picks else merged(request), _wider=wider, _pools={}, _plain=[],
                         _bytes=request.nbytes, _quantised=request.reduction.name in QUANTISED,
                         _optional_zeros=optional_zeros)

    def _places(self) -> Sequence[int]:
        first = 1 if self.channels_last else 2
        return range(first, first + len(self.axes))

    def _route(self) -> list[str]:
        """The names of the steps that reduce arrays in row-major order."""
        if 0 in self.shape or not (can_be(self.shape, self.dtype) and can_be(self.output_shape, self.dtype)):
            return []
        if self._picked is not None:
            return ["copy"]
        if self._wider is not None:
            return self._wider._route()
        return [self._row_major_pool().setup.route]

    def _team(self, num_threads: int | None) -> int:
        return threads.team(num_threads, self._bytes)

    def _row_major(self) -> "WindowPlan | None":
        return self if self._picked is None else None

    def plain_pool(self, plan: Reducing) -> kernels.PlainPool:
        """What runs plain arrays of a plan whose elements, in row-major order, are those of this one."""
        request = self._merged or self.request
        return kernels.PlainPool(
            self._row_major_pool(), x_shape=plan.shape, y_shape=plan.output_shape, x_problem=request.shape,
            y_problem=request.output_shape, dtype=plan.dtype, quantised=self._quantised,
            serial=self._bytes < threads.SERIAL_BYTES)

    def _geometry(self) -> list[str]:
        lines = super()._geometry()
        if looks_coloured(self.shape) and not self.channels_last:
            lines.append("  if this axis holds colours, name the pooled ones: axes=(0, 1)")
        return lines

    def _least(self, axis: int) -> int:
        channel = len(self.shape) - 1 if self.channels_last else 1
        return self.shape[axis] if self.reduction.whole and axis == channel else 1

    def _like(self, shape: tuple[int, ...], windows: dict[int, Axis], dtype: np.dtype[Any]) -> Plan:
        request = self.request._replace(shape=shape, axes=tuple(windows.values()), dtype=dtype)
        return WindowPlan(self.operator, request, self._optional_zeros)

    def _order(self, x: Array) -> tuple[int, ...] | None:
        return layout.memory_order(x, self.channels_last)

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: quantisation.Rule | None, team: int) -> None:
        if self._picked is not None:
            np.copyto(y, x[self._picked])
        elif self._wider is not None and indices is not None:
            y[...], indices[...] = self._wider(x.astype(np.float64), num_threads=team)
        else:
            pool, given, result = self._pool_of(x, y)
            pool.run(given, result, team, rule, indices)

    def _rule(self, inputs: tuple[Any, ...]) -> quantisation.Rule | None:
        if not self._quantised:
            return super()._rule(inputs)
        with kernels.cpu.DefaultFloats():
            given = quantisation.read(self.label, self.dtype, inputs, self._optional_zeros)
            if self.reduction.name == "mean_in_order":
                return given.in_order()
            return given.whole(self.label, math.prod(axis.kernel for axis in self.axes))

    def _numbering(self) -> tuple[int, ...]:
        spatial = tuple(self._places())
        channel = len(self.shape) - 1 if self.channels_last else 1
        return (0, channel, *(reversed(spatial) if self.reduction.column_major else spatial))

    def _pool_of(self, x: Array, y: Array) -> tuple[kernels.Pool, Array, Array]:
        """The pool for arrays that lie like these, and these as it takes them: all callers ask it."""
        request = self.request
        if self._merged is not None and x.flags.c_contiguous and y.flags.c_contiguous:
            request = self._merged
            x, y = x.reshape(request.shape), y.reshape(request.output_shape)
        return self._pool(request, layout.layout_of(x, request.channels_last)), x, y

    def _row_major_pool(self) -> kernels.Pool:
        """The pool for arrays in row-major order."""
        request = self._merged or self.request
        return self._pool(request, layout.row_major(request))

    def _pool(self, request: Request, lies: layout.Layout) -> kernels.Pool:
        key = request is self._merged, lies
        pool = self._pools.get(key)
        if pool is None:
            with kernels.cpu.DefaultFloats():
                pool = self._pools[key] = kernels.Pool(layout.setup_of(request, lies))
        return pool
