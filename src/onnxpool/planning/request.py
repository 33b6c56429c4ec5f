"""Requests: what is asked of a plan, in the form with the fewest axes.

An axis that no window reduces becomes part of its neighbours, images or channels. A window of 3x1 over channels first
thus pools rows as if they were channels. An axis of size 1 is none. Where every window holds one element, maxima and
means are a copy.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..windows import Axis, with_spatial


class Reduction(NamedTuple):
    """What a window becomes."""

    name: str  # max, indexed_max, mean, norm, quantised_mean, mean_in_order
    p: float = 0.0  # of a norm
    whole: bool = False  # whether the operator has one window, that is all of a channel
    column_major: bool = False  # whether indices count the first axis fastest


class Request(NamedTuple):
    """An array of images and channels, these second or last, the windows along its other axes, and their reduction."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axes: tuple[Axis, ...]
    channels_last: bool
    reduction: Reduction

    @property
    def channels(self) -> int:
        return self.shape[-1 if self.channels_last else 1]

    @property
    def output_shape(self) -> tuple[int, ...]:
        return with_spatial(self.shape, tuple(axis.out for axis in self.axes), self.channels_last)

    @property
    def nbytes(self) -> int:
        """The bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def whole(self) -> bool:
        """Whether one window is all of a channel, and is reduced as such."""
        return self.reduction.whole and all(axis.out == 1 for axis in self.axes)


def is_kept(axis: Axis) -> bool:
    """Whether each element is a window of its own."""
    return axis.kernel == 1 and axis.out == axis.size and axis.pads == (0, 0)


def volume(axes: Sequence[Axis]) -> int:
    return math.prod(axis.size for axis in axes)


def picked(request: Request) -> tuple[slice, ...] | None:
    """Which elements the results are, if every window has one and the reduction leaves it as it is."""
    axes = request.axes
    if request.reduction.name not in ("max", "mean") or not axes:
        return None
    if any(axis.kernel > 1 or axis.end - axis.begin < axis.out for axis in axes):
        return None
    spatial = (slice(None, (axis.out - 1) * axis.stride + 1, axis.stride) for axis in axes)
    return (slice(None), *spatial) if request.channels_last else (slice(None), slice(None), *spatial)


def merged(request: Request) -> Request | None:
    """
    The same request with fewer axes, for arrays whose elements lie in row-major order.

    None if there is none.
    """
    axes = request.axes
    if request.reduction.name in ("indexed_max", "quantised_mean"):  # places and sums of all axes count
        return None
    reduced = [i for i, axis in enumerate(axes) if not is_kept(axis)]
    if len(reduced) == len(axes) > 0:
        return None
    if not reduced:
        count = math.prod(request.shape)
        row = Axis(count, out=count, kernel=1)
        return request._replace(shape=(1, 1, count), axes=(row,), channels_last=False) if axes else None
    before, after = axes[: reduced[0]], axes[reduced[-1] + 1 :]
    between = tuple(axis for axis in axes[reduced[0] : reduced[-1] + 1] if axis.size > 1 or not is_kept(axis))
    if len(between) == len(axes):
        return None
    sizes = tuple(axis.size for axis in between)
    images, channels, last = request.shape[0], request.channels, True
    if request.channels_last:
        images, channels = images * volume(before), volume(after) * channels
    elif volume(after) > 1:
        images, channels = images * channels * volume(before), volume(after)
    else:
        channels, last = channels * volume(before), False
    return request._replace(shape=with_spatial((images, channels), sizes, last), axes=between, channels_last=last)
