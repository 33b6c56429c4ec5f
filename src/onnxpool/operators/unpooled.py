"""The operator that undoes a maximum."""

from typing import Any

import numpy as np

from ..base import Ints, Operator, made, registered
from ..execution import Array, Plan
from ..unpooling import UnpoolPlan, inferred_sizes
from ..windows import with_spatial


@registered
class MaxUnpool(Operator):
    """The ONNX operator MaxUnpool with its attributes: see `max_unpool`, whose arguments it takes."""

    __slots__ = ()

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


def max_unpool(x: Any, indices: Any, kernel_shape: Ints, output_shape: Any = None, *, strides: Ints | None = None,
               pads: Ints | None = None, opset: int | None = None, channels_last: bool = False,
               out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Put values back to the places that Indices of a maximum name; all other places are 0.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    indices : int64 array_like of the shape of `x`
        Flat places in the result, in the order of N, C and the spatial axes. Of equal ones the last counts.
    kernel_shape, strides, pads : int or sequence of int
        Of the maximum that is undone: an axis of the result has ``(size - 1) * stride + kernel`` elements less pads.
    output_shape : int64 array_like, optional
        The whole shape of a result that may be larger; what `indices` address is its corner.
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
    out : ndarray, optional
        Where the result is stored; it is returned. It may overlap the inputs.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Raises
    ------
    PoolError
        For an attribute, shape or index that is not allowed; `out` is untouched.
    PoolTypeError
        For a dtype or kind of argument that is not allowed.

    Notes
    -----
    ONNX MaxUnpool, versions 9, 11 and 22.

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
    y: Array = op(x, *inputs, out=out, num_threads=num_threads)
    return y
