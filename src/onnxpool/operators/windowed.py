"""Operators that reduce windows of the spatial axes."""

from typing import Any

from ..base import Ints, made, registered
from ..errors import PoolError
from ..execution import Array
from ..planning.request import Reduction
from ..windows import Axis
from .reducing import Norm, Reducing


@registered
class AveragePool(Reducing):
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
    op = made(AveragePool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, count_include_pad, opset,
              channels_last)
    y: Array = op(x, out=out, num_threads=num_threads)
    return y


@registered
class MaxPool(Reducing):
    """The ONNX operator MaxPool with its attributes: see `max_pool`, whose arguments it takes."""

    __slots__ = ()

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
                 storage_order: int | None = None, return_indices: bool = False, opset: int | None = None,
                 channels_last: bool = False) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode, storage_order=storage_order, return_indices=return_indices)

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """A maximum, with its index if Indices are asked for."""
        return Reduction("indexed_max" if self.return_indices else "max",
                         column_major=bool(self.attributes.get("storage_order")))


def max_pool(x: Any, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
             dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
             storage_order: int | None = None, return_indices: bool = False, opset: int | None = None,
             channels_last: bool = False, out: Array | tuple[Array | None, Array | None] | None = None,
             num_threads: int | None = None) -> Any:
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
        1 counts Indices column by column within the last two axes, by default 0 (since version 8).
    return_indices : bool, optional
        Whether to return Indices too (since version 8).
    opset : int, optional
        Of the model, by default the newest known.
    channels_last : bool, optional
        Whether `x` and the result are (N, *spatial, C).
    out : ndarray, or tuple of two with Indices, optional
        Where the results are stored; they are returned. They may overlap `x`, but not each other.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    y : ndarray of shape (N, C, *out), or (N, *out, C) if `channels_last`
        Of the dtype of `x`.
    indices : int64 ndarray of the shape of `y`
        Only with `return_indices`: where each maximum is in `x`, flat in the order of N, C and the spatial axes, also
        if `channels_last`; -1 for a window wholly in padding.

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
    >>> onnxpool.max_pool(x, 2, return_indices=True)[1].tolist()
    [[[[4, 5], [7, 8]]]]
    """
    op = made(MaxPool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, storage_order, return_indices,
              opset, channels_last)
    return op(x, out=out, num_threads=num_threads)


@registered
class LpPool(Norm):
    """The ONNX operator LpPool with its attributes: see `lp_pool`, whose arguments it takes."""

    __slots__ = ()

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
    op = made(LpPool, kernel_shape, p, strides, pads, dilations, auto_pad, ceil_mode, opset, channels_last)
    y: Array = op(x, out=out, num_threads=num_threads)
    return y


@registered
class NhwcMaxPool(Reducing):
    """The operator NhwcMaxPool of com.microsoft with its attributes: see `nhwc_max_pool`, whose arguments it takes."""

    __slots__ = ()
    reduces = "max"

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
                 opset: int | None = None, channels_last: bool = True) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode)
        if not self.channels_last:
            raise PoolError(f"{self.label}: channels_last=False, but its arrays are (N, *spatial, C); use MaxPool",
                            self.label, "channels_last", value=False)


def nhwc_max_pool(x: Any, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
                  dilations: Ints | None = None, auto_pad: str | None = None, ceil_mode: int | None = None,
                  opset: int | None = None, out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the maximum of each window of the spatial axes of an 8-bit array with its channels last.

    Parameters
    ----------
    x : array_like of shape (N, *spatial, C)
        int8 or uint8.
    kernel_shape, strides, pads, dilations, auto_pad, ceil_mode
        As `max_pool`.
    opset : int, optional
        Of the domain com.microsoft.
    out : ndarray, optional
        Where the result is stored; it is returned. It may overlap `x`.
    num_threads : int, optional
        By default `get_num_threads()`.

    Returns
    -------
    ndarray of shape (N, *out, C)
        Of the dtype of `x`.

    Raises
    ------
    PoolError
        For an attribute, shape or value that the version does not allow.
    PoolTypeError
        For a dtype or kind of argument that it does not allow.

    Notes
    -----
    com.microsoft NhwcMaxPool, version 1.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> onnxpool.nhwc_max_pool(np.array([[[1], [3], [2]]], np.uint8), 2).tolist()
    [[[3], [3]]]
    """
    op = made(NhwcMaxPool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, opset, True)
    y: Array = op(x, out=out, num_threads=num_threads)
    return y
