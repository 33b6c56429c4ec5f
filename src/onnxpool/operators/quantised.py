"""Operators on quantised arrays, as onnxruntime defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, overload

from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, T
from ..base import Ints, made, registered
from ..docstrings import WINDOWS, documented
from ..planning.request import Reduction
from ..windows import Axis
from .reducing import Reducing, Windowed
from .typed import Named

if TYPE_CHECKING:
    from ..options import AutoPad, QLinearAveragePoolOptions, QLinearOptions


@registered
class QLinearGlobalAveragePool(Reducing):
    """
    The operator QLinearGlobalAveragePool of com.microsoft with its attributes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> op = onnxpool.QLinearGlobalAveragePool(channels_last=1)
    >>> op(np.full((1, 2, 2, 3), 7, np.uint8), 1.0, 0, 0.5, 1).tolist()
    [[[[15, 15, 15]]]]
    """

    __slots__ = ()
    reduces = "quantised_mean"
    windowed = False
    quantised = True
    takes_axes = False

    def __init__(self, *, opset: int | None = None, channels_last: int = 0) -> None:
        self._set(opset, channels_last)


@overload
def qlinear_global_average_pool(x: NDArray[T], x_scale: ArrayLike, x_zero_point: ArrayLike, y_scale: ArrayLike,
                                y_zero_point: ArrayLike, *, out: None = None,
                                **options: Unpack[QLinearOptions]) -> NDArray[T]: ...


@overload
def qlinear_global_average_pool(x: ArrayLike, x_scale: ArrayLike, x_zero_point: ArrayLike, y_scale: ArrayLike,
                                y_zero_point: ArrayLike, *, out: NDArray[T],
                                **options: Unpack[QLinearOptions]) -> NDArray[T]: ...


@overload
def qlinear_global_average_pool(x: ArrayLike, x_scale: ArrayLike, x_zero_point: ArrayLike, y_scale: ArrayLike,
                                y_zero_point: ArrayLike, *, out: None = None,
                                **options: Unpack[QLinearOptions]) -> Array: ...


@documented(QLinearGlobalAveragePool, "whole", ("quantised",), ("qlinear_average_pool", "global_average_pool"))
def qlinear_global_average_pool(x: ArrayLike, x_scale: ArrayLike, x_zero_point: ArrayLike, y_scale: ArrayLike,
                                y_zero_point: ArrayLike, *, opset: int | None = None, channels_last: int = 0,
                                out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average all spatial elements of each channel of a quantised array.

    Notes
    -----
    Results are bit-exact with onnxruntime wherever its 32-bit sum does not overflow. The sum here is exact.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[10, 20], [30, 40]]]], np.uint8)
    >>> onnxpool.qlinear_global_average_pool(x, 0.5, 0, 0.25, 0).tolist()
    [[[[50]]]]
    """
    op = made(QLinearGlobalAveragePool, opset, channels_last)
    return op(x, x_scale, x_zero_point, y_scale, y_zero_point, out=out, num_threads=num_threads)


@registered
class QLinearAveragePool(Windowed, Reducing):
    """
    The operator QLinearAveragePool of com.microsoft with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.QLinearAveragePool(kernel_shape=3, auto_pad="SAME_UPPER").output_shape((1, 8, 7, 7))
    (1, 8, 7, 7)
    """

    __slots__ = ()
    quantised = True
    takes_axes = False
    zero_points_optional = True

    count_include_pad: Named[int] = Named()

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 auto_pad: AutoPad | None = None, ceil_mode: int | None = None, count_include_pad: int | None = None,
                 opset: int | None = None, channels_last: int = 0) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad,
                  ceil_mode=ceil_mode, count_include_pad=count_include_pad)

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """As onnxruntime: a sum of integers if one window is the whole input, else of real values in order."""
        whole = all(axis.kernel == axis.size and axis.pads == (0, 0) for axis in axes)
        return Reduction("quantised_mean" if whole else "mean_in_order", whole=whole)


@overload
def qlinear_average_pool(x: NDArray[T], x_scale: ArrayLike, x_zero_point: ArrayLike | None, y_scale: ArrayLike,
                         y_zero_point: ArrayLike | None, kernel_shape: Ints, *, out: None = None,
                         **options: Unpack[QLinearAveragePoolOptions]) -> NDArray[T]: ...


@overload
def qlinear_average_pool(x: ArrayLike, x_scale: ArrayLike, x_zero_point: ArrayLike | None, y_scale: ArrayLike,
                         y_zero_point: ArrayLike | None, kernel_shape: Ints, *, out: NDArray[T],
                         **options: Unpack[QLinearAveragePoolOptions]) -> NDArray[T]: ...


@overload
def qlinear_average_pool(x: ArrayLike, x_scale: ArrayLike, x_zero_point: ArrayLike | None, y_scale: ArrayLike,
                         y_zero_point: ArrayLike | None, kernel_shape: Ints, *, out: None = None,
                         **options: Unpack[QLinearAveragePoolOptions]) -> Array: ...


@documented(QLinearAveragePool, "windows", (*WINDOWS, "divisor", "quantised"),
            ("average_pool", "qlinear_global_average_pool"))
def qlinear_average_pool(x: ArrayLike, x_scale: ArrayLike, x_zero_point: ArrayLike | None, y_scale: ArrayLike,
                         y_zero_point: ArrayLike | None, kernel_shape: Ints, *, strides: Ints | None = None,
                         pads: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
                         count_include_pad: int | None = None, opset: int | None = None, channels_last: int = 0,
                         out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average each window of the spatial axes of a quantised array.

    Notes
    -----
    Results are bit-exact with onnxruntime, except for windows beyond the padding at the end: these are divided as by
    AveragePool. Real values are added in float32, in the order of the taps. A window wholly in padding gives the zero
    point of the result.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[10, 20, 40]]], np.uint8)
    >>> onnxpool.qlinear_average_pool(x, 0.5, 0, 0.25, 0, 2).tolist()
    [[[30, 60]]]
    """
    op = made(QLinearAveragePool, kernel_shape, strides, pads, auto_pad, ceil_mode, count_include_pad, opset,
              channels_last)
    return op(x, x_scale, x_zero_point, y_scale, y_zero_point, out=out, num_threads=num_threads)
