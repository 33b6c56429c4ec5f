"""The plan of MaxUnpool, which scatters maxima back to the positions that indices give."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import budget, threads
from ..arrays import Array, allocate, as_array, check_out, delivered
from ..errors import PoolError, PoolTypeError
from ..execution import Plan
from ..kernels.other.unpool import unpool
from ..windows import Axis, check_sizes, per_axis, with_spatial

if TYPE_CHECKING:
    from ..explain import Explanation

MOST_WINDOWS = 2**40  # elements of a result; no machine has the memory for more


def inferred_windows(label: str, attributes: dict[str, Any], sizes: tuple[int, ...], first: int) -> tuple[Axis, ...]:
    """
    The windows of the max-pool that is undone, over the spatial shape that indices address.

    Sizes of that shape are (size - 1) * stride + kernel, minus the pads.
    """
    rank = len(sizes)
    kernel = per_axis(label, attributes, "kernel_shape", rank)
    strides = per_axis(label, attributes, "strides", rank)
    pads = per_axis(label, attributes, "pads", rank)
    check_sizes(label, sizes, range(first, first + rank))
    out = tuple((size - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank] for i, size in enumerate(sizes))
    for i, size in enumerate(out):
        if size < 1:
            raise PoolError(f"{label}: pads[{i}]={pads[i]} and pads[{i + rank}]={pads[i + rank]} leave {size} of axis "
                            f"{first + i}, which needs at least 1 element; lower pads", label, "pads", axis=first + i,
                            value=(pads[i], pads[i + rank]))
    if math.prod(out) > MOST_WINDOWS:
        raise PoolError(f"{label}: strides={strides} and kernel_shape={kernel} make a result of spatial shape {out}, "
                        f"more than {MOST_WINDOWS} elements; lower strides or kernel_shape",
                        label, "strides", value=strides)
    return tuple([Axis(out[i], size, kernel[i], strides[i], 1, (pads[i], pads[i + rank]))
                  for i, size in enumerate(sizes)])


class UnpoolPlan(Plan):
    """The plan of MaxUnpool; `addressed` is the spatial shape that indices address."""

    __slots__ = ("addressed", "output_shape", "undone")

    addressed: tuple[int, ...]
    undone: tuple[Axis, ...]  # windows over the addressed shape

    def __init__(self, operator: Any, shape: tuple[int, ...], dtype: np.dtype[Any], undone: tuple[Axis, ...]) -> None:
        addressed = tuple([axis.size for axis in undone])
        super().__init__(operator, shape, dtype, addressed=addressed, undone=undone,
                         output_shape=with_spatial(shape, addressed, operator.channels_last))

    def _geometry(self) -> list[str]:
        return [f"indices address {self.addressed}"]

    def explain(self, *inputs: Any) -> "Explanation":
        """As `Plan.explain` describes. With indices, the picture shows where the elements of the first plane go."""
        from ..explain import Explanation, explain
        from ..pictures_of_unpooling import UnpoolPicture

        shape = self.result_shape(*inputs) if inputs else self.output_shape
        made = explain(self.label, (self.dtype.name, self.result_dtype.name), self.shape, shape, self._geometry())
        facts = made.to_dict()
        first = 1 if self.channels_last else 2
        places = None
        if inputs:
            places = self._places(inputs[0])
            inner = (self.output_shape[0], self.output_shape[-1 if self.channels_last else 1], *self.addressed)
            facts["places"] = np.stack(np.unravel_index(places, inner), axis=-1).tolist()
        sizes = shape[first:first + len(self.undone)]
        planes = self.output_shape[0] * self.output_shape[-1 if self.channels_last else 1]
        picture = UnpoolPicture(made.picture.lines, tuple(enumerate(self.undone, first)), sizes, planes, places)
        return Explanation(made, facts, made.geometry, picture)

    def _places(self, given: Any) -> Array:
        """The checked indices, flat, in the order of N, C and the spatial axes."""
        indices = self._indices(given)
        flat = np.moveaxis(indices, -1, 1).ravel() if self.channels_last else indices.ravel()
        bad = np.flatnonzero((flat < 0) | (flat >= math.prod(self.output_shape)))
        if len(bad):
            raise self._bad_index(indices, int(bad[0]))
        return flat

    def result_shape(self, *inputs: Any) -> tuple[int, ...]:
        """The shape in `output_shape`, or by default the shape that indices address."""
        if len(inputs) not in (1, 2):
            raise PoolError(f"{self.label}: takes X, I and output_shape, got {1 + len(inputs)} inputs; "
                            f"pass two or three", self.label, value=1 + len(inputs))
        return self._stored_shape(inputs[1] if len(inputs) == 2 else None)

    def __call__(self, x: Any, *inputs: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """As `Plan` says; the inputs are X, I and, optionally, output_shape."""
        label = self.label
        shape = self.result_shape(*inputs)
        x = self._checked(x)
        limits = budget.in_force()
        if limits is not budget.NO_LIMITS:
            results = math.prod(shape)
            need = budget.Need(results * self.dtype.itemsize, x.size + results)
            budget.check(label, "a result", shape, need, limits)
        x = np.require(x, self.dtype, ["C", "A"])
        indices = self._indices(inputs[0])
        team = threads.team(num_threads, x.nbytes + indices.nbytes)
        y = out
        if out is not None:
            check_out(label, out, shape, self.dtype)
        if out is None or not out.flags.carray or out.dtype != self.dtype or any(
                np.may_share_memory(out, array) for array in (x, indices)):
            y = allocate(label, shape, self.dtype)
        bad = unpool(x, indices, y, self.addressed, self.channels_last, team)
        if bad >= 0:
            raise self._bad_index(indices, bad)
        return delivered(y, out)

    def _indices(self, given: Any) -> Array:
        label = self.label
        indices = as_array(label, given, "I")
        if indices.dtype.newbyteorder("=") != np.int64:
            raise PoolTypeError(f"{label}: I has dtype {indices.dtype}, but must be int64; cast it", label, "I",
                                value=indices.dtype.name)
        if indices.shape != self.shape:
            raise PoolError(f"{label}: I has shape {indices.shape}, but X has {self.shape}; pass an index for each "
                            f"element",
                            label, "I", value=indices.shape)
        return np.require(indices, np.int64, ["C", "A"])

    def _stored_shape(self, given: Any) -> tuple[int, ...]:
        """The shape of the result, as given. It must not be smaller than the shape that indices address."""
        label = self.label
        if given is None:
            return self.output_shape
        array = as_array(label, given, "output_shape")
        if not np.issubdtype(array.dtype, np.integer) or array.dtype == np.uint64:
            raise PoolTypeError(f"{label}: output_shape has dtype {array.dtype}, but must be int64; cast it", label,
                                "output_shape", value=array.dtype.name)
        if array.shape != (len(self.shape),):
            raise PoolError(f"{label}: output_shape has shape {array.shape}, but X has {len(self.shape)} axes; "
                            f"pass one size for each", label, "output_shape", value=array.shape)
        shape = tuple(int(size) for size in array)
        for axis, (size, least) in enumerate(zip(shape, self.output_shape, strict=True)):
            fixed = axis in (0, len(shape) - 1 if self.channels_last else 1)
            if size < least or (fixed and size != least):
                needed, way = (f"{least}", f"{least}") if fixed else (f"at least {least}", f"{least} or more")
                raise PoolError(f"{label}: output_shape[{axis}]={size}, but axis {axis} needs {needed}; pass {way}",
                                label, "output_shape", axis=axis, value=size)
        if math.prod(shape) > MOST_WINDOWS:
            raise PoolError(f"{label}: output_shape={shape} has more than {MOST_WINDOWS} elements; pass a smaller one",
                            label, "output_shape", value=shape)
        return shape

    def _bad_index(self, indices: Array, position: int) -> PoolError:
        last = self.channels_last
        logical = np.moveaxis(indices, -1, 1) if last else indices
        place = [int(i) for i in np.unravel_index(position, logical.shape)]
        value = logical[tuple(place)]
        if last:
            place = [place[0], *place[2:], place[1]]
        limit = math.prod(self.output_shape)
        return PoolError(f"{self.label}: I{place}={value} is out of range [0, {limit}); pass indices that are "
                         f"flat in the order of N, C and the spatial axes of {self.output_shape}", self.label, "I",
                         value=int(value))
