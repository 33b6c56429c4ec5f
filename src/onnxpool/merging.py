"""Merging: axes that no window reduces become part of what lies beside them, images or channels.

A window of 3x1 over an array of channels first pools rows as if these were channels; an axis of size 1 is none. Where
every window holds one element, maxima and means are a copy.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from .windows import Axis, axis_windows


class Problem(NamedTuple):
    """An array of images and channels, these second or last, and the windows along its other axes."""

    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    channels_last: bool

    @property
    def output_shape(self) -> tuple[int, ...]:
        spatial = tuple(axis.out for axis in self.axes)
        return (self.shape[0], *spatial, self.shape[-1]) if self.channels_last else (*self.shape[:2], *spatial)


def is_kept(axis: Axis) -> bool:
    """Whether each element is a window of its own."""
    return axis.kernel == 1 and axis.out == axis.size and axis.pads == (0, 0)


def volume(axes: Sequence[Axis]) -> int:
    return math.prod(axis.size for axis in axes)


def picked(problem: Problem) -> tuple[slice, ...] | None:
    """Which elements the results of a maximum or mean are, if every window has one and there is no padding."""
    if not problem.axes or any(axis.kernel > 1 or axis.end - axis.begin < axis.out for axis in problem.axes):
        return None
    spatial = (slice(None, (axis.out - 1) * axis.stride + 1, axis.stride) for axis in problem.axes)
    return (slice(None), *spatial) if problem.channels_last else (slice(None), slice(None), *spatial)


def merged(problem: Problem) -> Problem | None:
    """
    The same problem with fewer axes, for arrays whose elements lie in row-major order.

    None if there is none.
    """
    axes = problem.axes
    reduced = [i for i, axis in enumerate(axes) if not is_kept(axis)]
    if not reduced:
        count = math.prod(problem.shape)
        row = axis_windows(count, count, 1, 1, 1, (0, 0), False)
        return Problem((1, 1, count), (row,), False) if axes else None
    before, after = axes[: reduced[0]], axes[reduced[-1] + 1 :]
    between = tuple(axis for axis in axes[reduced[0] : reduced[-1] + 1] if axis.size > 1 or not is_kept(axis))
    if len(between) == len(axes):
        return None
    sizes = tuple(axis.size for axis in between)
    if problem.channels_last:
        images, channels = problem.shape[0] * volume(before), volume(after) * problem.shape[-1]
        return Problem((images, *sizes, channels), between, True)
    images, channels = problem.shape[:2]
    if volume(after) > 1:
        return Problem((images * channels * volume(before), *sizes, volume(after)), between, True)
    return Problem((images, channels * volume(before), *sizes), between, False)
