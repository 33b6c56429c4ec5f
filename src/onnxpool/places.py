"""Conversion of flat indices into one array to flat indices into another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1 << 14  # indices that are converted at a time, which keeps temporary arrays small


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major array, in elements."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


def renumber(indices: NDArray[np.int64], sizes: Sequence[int], steps: Sequence[int], base: int = 0) -> None:
    """
    Convert flat indices in place. An index of -1, which marks a window without elements, stays as it is.

    Parameters
    ----------
    indices : ndarray of int64
        Flat indices into a row-major array.
    sizes : sequence of int
        Shape of that array.
    steps : sequence of int
        Strides of the new index along each axis, in elements.
    base : int, optional
        New index of the first element.
    """
    axes: list[tuple[int, int]] = []
    for size, step in zip(sizes, steps, strict=True):
        if axes and axes[-1][1] == size * step:
            axes[-1] = axes[-1][0] * size, step
        elif size != 1:
            axes.append((size, step))
    if base == 0 and all(step == 1 for _, step in axes[-1:]) and len(axes) < 2:
        return
    with np.nditer((indices,), flags=["external_loop", "buffered", "zerosize_ok"], op_flags=[["readwrite"]],
                   buffersize=BLOCK) as blocks:
        block: Any
        for block in blocks:
            rest, total = block, np.full_like(block, base)
            for size, step in reversed(axes[1:]):
                rest, own = np.divmod(rest, size)
                total += own * step
            total += rest * axes[0][1] if axes else 0
            np.copyto(block, total, where=block >= 0)
