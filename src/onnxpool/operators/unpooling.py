"""The operator that undoes a maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, T
from ..base import Ints, made, registered
from ..docstrings import documented
from ..execution import Plan
from ..planning.unpooling import UnpoolPlan, inferred_sizes
from ..windows import with_spatial
from .typed import Named, OneResult

if TYPE_CHECKING:
    from ..options import MaxUnpoolOptions, Sizes


@registered
class MaxUnpool(OneResult):
    """
    The ONNX operator MaxUnpool with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.MaxUnpool(kernel_shape=2, strides=2).output_shape((1, 3, 4, 4))
    (1, 3, 8, 8)
    """

    __slots__ = ()

    kernel_shape: Named[Sizes] = Named()
    strides: Named[Sizes] = Named()
    pads: Named[Sizes] = Named()

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads)

    def _addressed(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The spatial shape that indices address."""
        return inferred_sizes(self.label, self.attributes, *self._spatial(shape))

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return with_spatial(shape, self._addressed(shape), self.channels_last)

    def _make_plan(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Plan:
        return UnpoolPlan(self, shape, dtype, addressed=self._addressed(shape))


@overload
def max_unpool(x: NDArray[T], indices: ArrayLike, kernel_shape: Ints, output_shape: ArrayLike | None = None, *,
               out: None = None, **options: Unpack[MaxUnpoolOptions]) -> NDArray[T]: ...


@overload
def max_unpool(x: ArrayLike, indices: ArrayLike, kernel_shape: Ints, output_shape: ArrayLike | None = None, *,
               out: NDArray[T], **options: Unpack[MaxUnpoolOptions]) -> NDArray[T]: ...


@overload
def max_unpool(x: ArrayLike, indices: ArrayLike, kernel_shape: Ints, output_shape: ArrayLike | None = None, *,
               out: None = None, **options: Unpack[MaxUnpoolOptions]) -> Array: ...


@documented(MaxUnpool, "unpooled", (), ("max_pool",))
def max_unpool(x: ArrayLike, indices: Any, kernel_shape: Ints, output_shape: Any = None, *, strides: Ints | None = None,
               pads: Ints | None = None, opset: int | None = None, channels_last: bool = False,
               out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Put values back to the places that Indices of a maximum name.

    Notes
    -----
    All other places are 0. `kernel_shape`, `strides` and `pads` are those of the maximum that is undone. An axis of
    ``size`` elements of `x` becomes one of ``(size - 1) * stride + kernel - begin - end``.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[1, 5, 2, 4]]], np.float32)
    >>> y, indices = onnxpool.max_pool(x, 2, strides=2, return_indices=True)
    >>> onnxpool.max_unpool(y, indices, 2, strides=2).tolist()
    [[[0.0, 5.0, 0.0, 4.0]]]
    """
    op = made(MaxUnpool, kernel_shape, strides, pads, opset, channels_last)
    inputs = (indices,) if output_shape is None else (indices, output_shape)
    return op(x, *inputs, out=out, num_threads=num_threads)
