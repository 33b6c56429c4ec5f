"""Axes: arrays of any axes, of which some are pooled, are seen as images and channels, and results as well.

Only axes of size 1 are put in. So an array and the one that is seen in its place share their memory, whatever its
strides.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, dtype_name
from ..dtypes import MAXIMA
from ..errors import PoolError
from ..execution import Plan
from ..limits import MOST_AXES
from ..parts import Limit
from ..places import renumber, row_major
from ..windows import Axis
from .plan import Remembering, WindowPlan
from .request import Reduction, Request, merged

# What an index is made of that puts axes in or leaves them out.
Index = tuple[slice | None, ...]
ALL = slice(None)
CONVERTED = 1 << 20  # bytes of integers and their maxima that become floats at a time, unless one window has more
LANES = 64  # values side by side that fill the accumulators of a row, whatever the dtype


def checked_axes(label: str, axes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of axes in an array of that shape, from 0 on."""
    places: list[int] = []
    for i, axis in enumerate(axes):
        if not -len(shape) <= axis < len(shape):
            room = f"give {-len(shape)} to {len(shape) - 1}" if shape else "give an array with axes"
            raise PoolError(f"{label}: axes[{i}]={axis}, but X has {len(shape)} axes, shape {shape}; {room}", label,
                            "axes", axis=axis, value=axis)
        if axis % len(shape) in places:
            raise PoolError(f"{label}: axes={axes} names axis {axis % len(shape)} twice; name each axis once", label,
                            "axes", axis=axis % len(shape), value=axis)
        places.append(axis % len(shape))
    return tuple(places)


class Frame(NamedTuple):
    """How an array is seen as images and channels, these second or last, and axes along which windows lie."""

    pooled: tuple[int, ...]  # axes of the array, in ascending order
    reduced: tuple[int, ...]  # those of them that can have windows of several elements
    order: tuple[int | None, ...]  # the axes of the array that it is seen with; None is one of size 1
    channels_last: bool
    given: Index  # makes the array one of these axes,
    result: Index  # and a result

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape that an array of this shape is seen with."""
        return tuple(1 if axis is None else shape[axis] for axis in self.order)

    @property
    def spatial(self) -> tuple[int, ...]:
        """The axes of the array that are neither images nor channels."""
        between = self.order[1:-1] if self.channels_last else self.order[2:]
        return tuple(axis for axis in between if axis is not None)  # which none of them is

    def result_shape(self, seen: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a result that is seen with this one."""
        sizes = dict(zip(self.order, seen, strict=True))
        kept = sorted(axis for axis, index in zip(self.order, self.result, strict=True) if axis is not None and index)
        return tuple(sizes[axis] for axis in kept)

    def request(self, shape: tuple[int, ...], dtype: np.dtype[Any], windows: Mapping[int, Axis],
                reduction: Reduction) -> Request:
        """What is asked for such an array: axes between pooled ones have windows of one element."""
        axes = (windows.get(axis) or Axis(shape[axis], shape[axis], kernel=1) for axis in self.spatial)
        return Request(self.sizes(shape), dtype, tuple(axes), self.channels_last, reduction)


def framed(label: str, shape: tuple[int, ...], pooled: tuple[int, ...], keepdims: bool, whole: bool) -> Frame:
    """
    How an array of that shape is seen if these axes are pooled, given in ascending order.

    Channels are the last axis, or else the second one, if it is not pooled. Images are the first one.
    """
    rank = len(shape)
    reduced = tuple(axis for axis in pooled if shape[axis] > 1) if whole else pooled
    kept = [axis for axis in range(rank) if axis not in reduced]
    last = bool(reduced and kept and kept[-1] > reduced[-1])
    channel = rank - 1 if last else None
    image = 0 if 0 in kept else None
    if image == 0 and not last:
        if 1 in kept:
            channel = 1
        elif not whole:  # a lone axis: its elements are channels, unless all of each is read at once
            image, channel = None, 0
    others = tuple(axis for axis in range(rank) if axis not in (image, channel))
    order = (image, *others, channel) if last else (image, channel, *others)
    if len(order) > MOST_AXES:
        raise PoolError(f"{label}: X has {rank} axes, and {len(order)} with images and channels, more than "
                        f"{MOST_AXES}; join axes that are not pooled", label, "X", value=shape)
    given = tuple(None if axis is None else ALL for axis in order)
    dropped = () if keepdims else pooled
    result = tuple(None if axis is None or axis in dropped else ALL for axis in order)
    return Frame(pooled, reduced, order, last, given, result)


def is_view(x: Array, shape: tuple[int, ...]) -> bool:
    """Whether x can take a shape without a copy, each axis of which is one of x or some neighbouring ones."""
    axes = ((size, stride) for size, stride in zip(x.shape, x.strides, strict=True) if size != 1)
    for joined in shape:
        size, step = 1, None
        while size < joined:
            own, stride = next(axes)
            if step not in (None, own * stride):
                return False
            size, step = size * own, stride
    return True


class AxesPlan(Remembering):
    """
    The plan of an operator that reduces windows along axes that were named.

    Attributes
    ----------
    frame : Frame
        How arrays are seen.
    axes : tuple of Axis
        The windows of each pooled axis, in the order of the array.
    reduction : Reduction
        What a window becomes.
    """

    __slots__ = ("_folded", "_joins", "_plain", "_seen", "_wide", "axes", "frame", "output_shape", "reduction")

    frame: Frame
    _seen: WindowPlan  # for arrays as they are seen
    _folded: WindowPlan | None  # for those whose neighbouring axes can be joined
    _joins: bool  # whether arrays are copied if they cannot, as part of one whose axes can
    _wide: "AxesPlan | None"  # for floats that hold the integers

    def __init__(self, operator: Any, shape: tuple[int, ...], dtype: np.dtype[Any], frame: Frame,
                 windows: Mapping[int, Axis], reduction: Reduction, joins: bool = False) -> None:
        held = np.dtype(MAXIMA.get(dtype_name(dtype), dtype))
        request = frame.request(shape, held, windows, reduction)
        fewer = merged(request)
        # What is between pooled axes makes windows of what would be whole channels, however the array lies.
        reduction = reduction._replace(whole=(fewer or request).whole)
        seen, folded = (one and WindowPlan(operator, one._replace(reduction=reduction)) for one in (request, fewer))
        wide = None
        if held.kind == "f" and dtype.kind in "iu":
            wide = AxesPlan(operator, shape, held, frame, windows, reduction)
        super().__init__(operator, shape, dtype, axes=tuple(windows.values()), frame=frame, reduction=reduction,
                         output_shape=frame.result_shape(request.output_shape), _seen=seen, _folded=folded, _wide=wide,
                         _joins=joins, _plain=[])

    def _row_major(self) -> WindowPlan | None:
        kept = len(self.output_shape) == len(self.shape)  # which shorter ways ask for
        return (self._folded or self._seen)._row_major() if kept and self._wide is None else None

    def _reduce(self, x: Array, y: Array, indices: Array | None, rule: Any, team: int) -> None:
        if self._wide is not None:
            self._convert(self._wide, x, y, indices, team)
            return
        if x.dtype == bool:
            x, y = x.view(np.uint8), y.view(np.uint8)
        x, y = x[self.frame.given], y[self.frame.result]
        if indices is not None:
            indices = indices[self.frame.result]
            self._seen(x, out=(y, indices), num_threads=team)
            self._renumber(indices, x.shape)
        elif self._folded is None:
            self._seen(x, out=y, num_threads=team)
        elif self._joins or (is_view(x, self._folded.shape) and is_view(y, self._folded.output_shape)):
            x = x.reshape(self._folded.shape)
            if is_view(y, self._folded.output_shape):
                self._folded(x, out=y.reshape(self._folded.output_shape), num_threads=team)
            else:
                np.copyto(y, self._folded(x, num_threads=team).reshape(y.shape))
        else:
            self._seen(x, out=y, num_threads=team)

    def _convert(self, wide: "AxesPlan", x: Array, y: Array, indices: Array | None, team: int) -> None:
        """Maxima of integers, which become floats that hold them, a part at a time."""
        if self.reduction.name == "max" and not self.operator.windowed:
            np.max(x, axis=self.frame.pooled, keepdims=self.operator.keepdims, out=y)
            return
        least = np.iinfo(x.dtype).min  # of windows wholly in padding
        for part in wide._parts(Limit(None, CONVERTED, strict=False)):
            result = part(x[part.inputs].astype(wide.dtype), num_threads=team)
            if indices is not None:
                result, indices[part.outputs] = result
            y[part.outputs] = np.maximum(result, least)

    def _renumber(self, indices: Array, seen: tuple[int, ...]) -> None:
        """Indices into the array that is seen become those into the array."""
        steps = dict(zip(self._numbering(), row_major([self.shape[axis] for axis in self._numbering()]), strict=True))
        own = [0 if axis is None else steps[axis] for axis in self.frame.order]
        order = self._seen._numbering()
        renumber(indices, [seen[axis] for axis in order], [own[axis] for axis in order])

    def _numbering(self) -> tuple[int, ...]:
        rank = len(self.shape)
        return tuple(range(rank))[::-1] if self.reduction.column_major else tuple(range(rank))

    def _least(self, axis: int) -> int:
        if not self.reduction.whole or not self.frame.reduced:
            return 1
        if not self.frame.channels_last:  # images are free, and channels if there is no image
            return self.shape[axis] if self.frame.order[1] is not None and axis > 0 else 1
        behind = math.prod(self.shape[axis + 1:])
        return min(self.shape[axis], -(-LANES // max(1, behind))) if axis > self.frame.reduced[-1] else 1

    def _result_axes(self) -> list[int]:
        return sorted(axis for axis, cut in zip(self.frame.order, self.frame.result, strict=True)
                      if axis is not None and cut)

    def _like(self, shape: tuple[int, ...], windows: dict[int, Axis], dtype: np.dtype[Any]) -> Plan:
        return AxesPlan(self.operator, shape, dtype, self.frame, windows, self.reduction, self.reduction.whole)

    def _places(self) -> tuple[int, ...]:
        return self.frame.pooled

    def _geometry(self) -> list[str]:
        lines = super()._geometry()
        if self._wide is not None and self.operator.windowed:
            lines.append(f"{self.dtype.name} becomes {self._wide.dtype.name}, a part at a time")
        return lines

    def _route(self) -> list[str]:
        if self._wide is not None and not self.operator.windowed:
            return ["numpy"]
        return (self._folded or self._seen)._route()
