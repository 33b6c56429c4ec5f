"""Operators on quantised arrays, as onnxruntime defines them."""

from typing import Any

from ..base import Ints, made, registered
from ..execution import Array
from ..planning.request import Reduction
from ..windows import Axis
from .reducing import Reducing


@registered
class QLinearGlobalAveragePool(Reducing):
    """The operator QLinearGlobalAveragePool: see `qlinear_global_average_pool`, whose attributes it takes."""

    __slots__ = ()
    reduces = "quantised_mean"
    windowed = False
    quantised = True

    def __init__(self, *, opset: int | None = None, channels_last: int = 0) -> None:
        self._set(opset, channels_last)


def qlinear_global_average_pool(x: Any, x_scale: Any, x_zero_point: Any, y_scale: Any, y_zero_point: Any, *,
                                opset: int | None = None, channels_last: int = 0, out: Array | None = None,
                                num_threads: int | None = None) -> Array:
    """
    Average all spatial elements of each channel of a quantised array.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        int8 or uint8.
    x_scale, y_scale : float32 scalar
        Real value of one unit of `x` and of the result; finite and above 0.
    x_zero_point, y_zero_point : scalar of the dtype of `x`
        The units that stand for real 0.
    opset : int, optional
        Of the domain com.microsoft.
    channels_last : {0, 1}, optional
        1 if `x` and the result are (N, *spatial, C).
    out : ndarray, optional
        Where the result is stored; it is returned. It may overlap `x`.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    ndarray of shape (N, C, *ones), or (N, *ones, C) if `channels_last`
        Of the dtype of `x`.

    Raises
    ------
    PoolError
        For a shape, scale or zero point that the operator does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    com.microsoft QLinearGlobalAveragePool, version 1: bit-exact with onnxruntime wherever its 32-bit sum does not
    overflow; the sum here is exact.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[10, 20], [30, 40]]]], np.uint8)
    >>> onnxpool.qlinear_global_average_pool(x, 0.5, 0, 0.25, 0).tolist()
    [[[[50]]]]
    """
    op = made(QLinearGlobalAveragePool, opset, channels_last)
    y: Array = op(x, x_scale, x_zero_point, y_scale, y_zero_point, out=out, num_threads=num_threads)
    return y


@registered
class QLinearAveragePool(Reducing):
    """The operator QLinearAveragePool of com.microsoft: see `qlinear_average_pool`, whose attributes it takes."""

    __slots__ = ()
    quantised = True
    zero_points_optional = True

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 auto_pad: str | None = None, ceil_mode: int | None = None, count_include_pad: int | None = None,
                 opset: int | None = None, channels_last: int = 0) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad,
                  ceil_mode=ceil_mode, count_include_pad=count_include_pad)

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """As onnxruntime: a sum of integers if one window is the whole input, else of real values in order."""
        whole = all(axis.kernel == axis.size and axis.pads == (0, 0) for axis in axes)
        return Reduction("quantised_mean" if whole else "mean_in_order", whole=whole)


def qlinear_average_pool(x: Any, x_scale: Any, x_zero_point: Any, y_scale: Any, y_zero_point: Any, kernel_shape: Ints,
                         *, strides: Ints | None = None, pads: Ints | None = None, auto_pad: str | None = None,
                         ceil_mode: int | None = None, count_include_pad: int | None = None, opset: int | None = None,
                         channels_last: int = 0, out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average each window of the spatial axes of a quantised array.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        int8 or uint8.
    x_scale, y_scale : float32 scalar
        Real value of one unit of `x` and of the result; finite and above 0.
    x_zero_point, y_zero_point : scalar of the dtype of `x`, or None
        The units that stand for real 0; None is 0.
    kernel_shape, strides, pads, auto_pad, ceil_mode, count_include_pad
        As `average_pool`.
    opset : int, optional
        Of the domain com.microsoft.
    channels_last : {0, 1}, optional
        1 if `x` and the result are (N, *spatial, C).
    out : ndarray, optional
        Where the result is stored; it is returned. It may overlap `x`.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    ndarray of shape (N, C, *out), or (N, *out, C) if `channels_last`
        Of the dtype of `x`.

    Raises
    ------
    PoolError
        For an attribute, shape, scale or zero point that the operator does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    com.microsoft QLinearAveragePool, version 1: bit-exact with onnxruntime, except that a window beyond the padding at
    the end is divided as AveragePool divides it.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[10, 20, 40]]], np.uint8)
    >>> onnxpool.qlinear_average_pool(x, 0.5, 0, 0.25, 0, 2).tolist()
    [[[30, 60]]]
    """
    op = made(QLinearAveragePool, kernel_shape, strides, pads, auto_pad, ceil_mode, count_include_pad, opset,
              channels_last)
    y: Array = op(x, x_scale, x_zero_point, y_scale, y_zero_point, out=out, num_threads=num_threads)
    return y
