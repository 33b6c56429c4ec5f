"""What all plans that reduce windows have in common, for whole arrays and for parts."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array, allocate, check_out, delivered
from ..errors import PoolError
from ..execution import Plan
from ..parts import Partial
from .combining import Total, counted
from .cutting import Cuttable

if TYPE_CHECKING:
    from ..explain import Explanation

QUANTISED = ("quantised_mean", "mean_in_order")  # reductions with scales and zero points


class ReducingPlan(Cuttable):
    """The base class of plans for whole arrays and for parts."""

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
                                f"that are not NaN; pass this plan's partial results", self.label, "partials")
            if value.shape != self.output_shape:
                raise PoolError(f"{self.label}: a partial result has shape {value.shape}, but the result has "
                                f"{self.output_shape}; pass this plan's partial results", self.label, "partials",
                                value=value.shape)
            total.add(value, taps)
        result = total.result(self.result_dtype)
        if result is None or total.seen != total.taps:
            raise PoolError(f"{self.label}: partial results of {total.seen} elements, but there are {total.taps}; pass "
                            f"that of each share once", self.label, "partials", value=total.seen)
        return np.asarray(result)

    def _partial(self, x: Array, y: Array) -> Array:
        """The partial result of a share with these elements and this result."""
        if not self.reduction.skips or self.reduction.name != "mean":
            return y
        axes, keeps = tuple(self._places()), y.ndim == x.ndim
        return counted(y, np.asarray(np.sum(~np.isnan(x), axes, np.int64, keepdims=keeps)))

    def total_of(self, taps: int) -> Total:
        """An object that combines the partial results of this many elements."""
        return Total(self.reduction, taps, self.dtype)

    def _order(self, x: Array) -> tuple[int, ...] | None:
        """The axes of a result in memory order, slowest first. None stands for row-major order."""
        return None

    def _takes(self, out: Array) -> bool:
        """Whether results can be stored in an array of these strides."""
        return True

    def _result(self, x: Array, out: Array | None, dtype: np.dtype[Any]) -> Array:
        """The array in which a kernel stores a result: `out`, unless it overlaps x or its strides matter."""
        if out is not None:
            check_out(self.label, out, self.output_shape, dtype)
            if not np.may_share_memory(x, out) and self._takes(out):
                return out
        return allocate(self.label, self.output_shape, dtype, self._order(x))


class Cropped(ReducingPlan):
    """A plan for some of another plan's results. It exists where a part must read more elements than its results
    need."""

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
