"""One function and one class for each ONNX operator: signature, docstring, one call."""

from collections.abc import Sequence
from typing import Any

from .base import Operator
from .execution import Array

Ints = int | Sequence[int]


class AveragePool(Operator):
    """The ONNX operator AveragePool with its attributes: see `average_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "mean"

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
                 count_include_pad: int | None = None, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


def average_pool(x: Any, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
                 count_include_pad: int | None = None, opset: int | None = None, channels_last: bool = False,
                 out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average each window of the spatial axes.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    kernel_shape : int or sequence of int
        Taps of a window along each spatial axis; an int stands for every axis.
    strides : int or sequence of int, optional
        Elements from one window to the next, by default 1.
    pads : int or sequence of int, optional
        Elements of padding at the beginning of each spatial axis, then at the end of each, by default 0.
    dilations : int or sequence of int, optional
        Elements from one tap to the next, by default 1 (since version 19).
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, optional
        A rule for the padding instead of `pads`.
    ceil_mode : {0, 1}, optional
        1 keeps a last window that is only partly inside, by default 0 (since version 10).
    count_include_pad : {0, 1}, optional
        1 counts padding in the divisor, by default 0 (since version 7).
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
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
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    ONNX AveragePool, versions 1, 7, 10, 11, 19 and 22. Padding is no part of a window unless `count_include_pad` is 1.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], np.float32)
    >>> onnxpool.average_pool(x, (2, 2)).tolist()
    [[[[3.0, 4.0], [6.0, 7.0]]]]
    """
    op = AveragePool(kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad,
                     ceil_mode=ceil_mode, count_include_pad=count_include_pad, opset=opset, channels_last=channels_last)
    return op(x, out=out, num_threads=num_threads)


class MaxPool(Operator):
    """The ONNX operator MaxPool with its attributes: see `max_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "max"

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
                 storage_order: int | None = None, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode, storage_order=storage_order)


def max_pool(x: Any, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
             dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
             storage_order: int | None = None, opset: int | None = None, channels_last: bool = False,
             out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the maximum of each window of the spatial axes.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; int8 or uint8 since version 12; bfloat16 since version 22.
    kernel_shape : int or sequence of int
        Taps of a window along each spatial axis; an int stands for every axis.
    strides : int or sequence of int, optional
        Elements from one window to the next, by default 1.
    pads : int or sequence of int, optional
        Elements of padding at the beginning of each spatial axis, then at the end of each, by default 0.
    dilations : int or sequence of int, optional
        Elements from one tap to the next, by default 1 (since version 10).
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, optional
        A rule for the padding instead of `pads`.
    ceil_mode : {0, 1}, optional
        1 keeps a last window that is only partly inside, by default 0 (since version 10).
    storage_order : {0, 1}, optional
        Of Indices, which are not returned, so it changes nothing (since version 8).
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
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
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    ONNX MaxPool, versions 1, 8, 10, 11, 12 and 22. A NaN in a window is its maximum; of equal maxima the first is kept.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], np.float32)
    >>> onnxpool.max_pool(x, 2).tolist()
    [[[[5.0, 6.0], [8.0, 9.0]]]]
    """
    op = MaxPool(kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad,
                 ceil_mode=ceil_mode, storage_order=storage_order, opset=opset, channels_last=channels_last)
    return op(x, out=out, num_threads=num_threads)


class LpPool(Operator):
    """The ONNX operator LpPool with its attributes: see `lp_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "norm"

    def __init__(self, *, kernel_shape: Ints | None = None, p: float | None = None, strides: Ints | None = None,
                 pads: Ints | None = None, dilations: Ints | None = None, auto_pad: str | None = None,
                 ceil_mode: int | None = None, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, p=p, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode)


def lp_pool(x: Any, kernel_shape: Ints, *, p: float | None = None, strides: Ints | None = None,
            pads: Ints | None = None, dilations: Ints | None = None, auto_pad: str | None = None,
            ceil_mode: int | None = None, opset: int | None = None, channels_last: bool = False,
            out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the Lp norm of each window of the spatial axes.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    kernel_shape : int or sequence of int
        Taps of a window along each spatial axis; an int stands for every axis.
    p : int or float, optional
        Order of the norm, by default 2: a float above 0 at version 1, an int of at least 1 since version 2.
    strides : int or sequence of int, optional
        Elements from one window to the next, by default 1.
    pads : int or sequence of int, optional
        Elements of padding at the beginning of each spatial axis, then at the end of each, by default 0.
    dilations : int or sequence of int, optional
        Elements from one tap to the next, by default 1 (since version 18).
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, optional
        A rule for the padding instead of `pads`.
    ceil_mode : {0, 1}, optional
        1 keeps a last window that is only partly inside, by default 0 (since version 18).
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
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
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    ONNX LpPool, versions 1, 2, 11, 18 and 22. Padding adds nothing to a norm.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[3, -4, 0]]], np.float32)
    >>> onnxpool.lp_pool(x, 2).tolist()
    [[[5.0, 4.0]]]
    """
    op = LpPool(kernel_shape=kernel_shape, p=p, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad,
                ceil_mode=ceil_mode, opset=opset, channels_last=channels_last)
    return op(x, out=out, num_threads=num_threads)


class GlobalAveragePool(Operator):
    """The ONNX operator GlobalAveragePool with its attributes: see `global_average_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "mean"
    windowed = False

    def __init__(self, *, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last)


def global_average_pool(x: Any, *, opset: int | None = None, channels_last: bool = False, out: Array | None = None,
                        num_threads: int | None = None) -> Array:
    """
    Average all spatial elements of each channel.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
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
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    ONNX GlobalAveragePool, versions 1 and 22.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
    >>> onnxpool.global_average_pool(x).tolist()
    [[[[3.0]]]]
    """
    op = GlobalAveragePool(opset=opset, channels_last=channels_last)
    return op(x, out=out, num_threads=num_threads)


class GlobalMaxPool(Operator):
    """The ONNX operator GlobalMaxPool with its attributes: see `global_max_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "max"
    windowed = False

    def __init__(self, *, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last)


def global_max_pool(x: Any, *, opset: int | None = None, channels_last: bool = False, out: Array | None = None,
                    num_threads: int | None = None) -> Array:
    """
    Take the maximum of all spatial elements of each channel.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
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
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    ONNX GlobalMaxPool, versions 1 and 22.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
    >>> onnxpool.global_max_pool(x).tolist()
    [[[[6.0]]]]
    """
    op = GlobalMaxPool(opset=opset, channels_last=channels_last)
    return op(x, out=out, num_threads=num_threads)


class GlobalLpPool(Operator):
    """The ONNX operator GlobalLpPool with its attributes: see `global_lp_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "norm"
    windowed = False

    def __init__(self, *, p: float | None = None, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, p=p)


def global_lp_pool(x: Any, *, p: float | None = None, opset: int | None = None, channels_last: bool = False,
                   out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the Lp norm of all spatial elements of each channel.

    Parameters
    ----------
    x : array_like of shape (N, C, *spatial), or (N, *spatial, C) if `channels_last`
        float16, float32 or float64; bfloat16 since version 22.
    p : int or float, optional
        Order of the norm, by default 2: a float above 0 at version 1, an int of at least 1 since version 2.
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
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
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    ONNX GlobalLpPool, versions 1, 2 and 22.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[3, 0], [0, -4]]]], np.float32)
    >>> onnxpool.global_lp_pool(x).tolist()
    [[[[5.0]]]]
    """
    op = GlobalLpPool(p=p, opset=opset, channels_last=channels_last)
    return op(x, out=out, num_threads=num_threads)


class QLinearGlobalAveragePool(Operator):
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
    op = QLinearGlobalAveragePool(opset=opset, channels_last=channels_last)
    return op(x, x_scale, x_zero_point, y_scale, y_zero_point, out=out, num_threads=num_threads)
