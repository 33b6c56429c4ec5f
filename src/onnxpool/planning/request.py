"""Requests: the task of a plan, independent of the memory layout of arrays."""

from typing import Any, NamedTuple

import numpy as np

from ..places import row_major
from ..windows import Axis, pooled_shape

FLOAT64 = np.dtype(np.float64)
# NumPy's functions that merge two results into one, and the functions that skip NaNs.
MERGES = {"max": ("maximum", "fmax"), "min": ("minimum", "fmin")}


class Reduction(NamedTuple):
    """The function that turns a window into a result, with its parameters."""

    name: str  # max, min, norm, or a row of the table of reductions
    p: float = 0.0  # order of a norm
    indexed: bool = False  # whether an extremum comes with its index
    whole: bool = False  # whether the operator has a single window, which covers the pooled axes
    column_major: bool = False  # whether indices count the first axis fastest
    skips: bool = False  # whether NaNs are skipped


class Request(NamedTuple):
    """
    A reduction of windows along some axes of an array.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    windows : tuple of (int, Axis)
        The pooled axes, in ascending order, and the windows along each.
    reduction : Reduction
    channel : int, optional
        The channel axis of ONNX's layouts. Indices count channels before the pooled axes.
    keepdims : bool
        Whether the result has the pooled axes.
    result : numpy.dtype, optional
        The dtype of means.
    joins : bool
        Whether X is made contiguous first, because its strides would change the order of sums.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    windows: tuple[tuple[int, Axis], ...]
    reduction: Reduction
    channel: int | None = None
    keepdims: bool = True
    result: np.dtype[Any] | None = None
    joins: bool = False

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The dtype of the result: by default float64 for means of integers, and otherwise the dtype of X."""
        if self.result is not None:
            return self.result
        return FLOAT64 if self.reduction.name == "mean" and self.dtype.kind in "biu" else self.dtype

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The windows along each pooled axis."""
        return tuple([windows for _, windows in self.windows])

    @property
    def pooled(self) -> tuple[int, ...]:
        """The pooled axes."""
        return tuple([axis for axis, _ in self.windows])

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes that the result has."""
        pooled = () if self.keepdims else self.pooled
        return tuple([axis for axis in range(len(self.shape)) if axis not in pooled])

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return pooled_shape(self.shape, self.windows, self.keepdims)

    @property
    def order(self) -> tuple[int, ...]:
        """The axes as indices count them, slowest first."""
        axes = list(range(len(self.shape)))
        if self.channel is None:
            return tuple(reversed(axes) if self.reduction.column_major else axes)
        spatial = [axis for axis in axes[1:] if axis != self.channel]
        return (0, self.channel, *(reversed(spatial) if self.reduction.column_major else spatial))

    @property
    def places(self) -> tuple[int, ...]:
        """The index stride of each axis; 0 if there are no indices."""
        if not self.reduction.indexed:
            return (0,) * len(self.shape)
        order = self.order
        steps = dict(zip(order, row_major([self.shape[axis] for axis in order]), strict=True))
        return tuple([steps[axis] for axis in range(len(self.shape))])


def picked(request: Request) -> tuple[slice | int, ...] | None:
    """The index of the results in X, if every window has a single element that the reduction does not change.

    Means of floats are computed, because they give NaNs the same bits."""
    exact = request.reduction.name in MERGES or (request.reduction.name == "mean" and request.dtype.kind in "biu")
    if not exact or request.reduction.indexed or not request.windows:
        return None
    index: list[slice | int] = [slice(None)] * len(request.shape)
    for axis, windows in request.windows:
        elements = windows.picked
        if elements is None:
            return None
        index[axis] = elements if request.keepdims else 0
    return tuple(index)
