"""Operators that reduce all of the spatial axes."""

from typing import Any

from ..base import made, registered
from ..execution import Array
from .reducing import Norm, Reducing


@registered
class GlobalAveragePool(Reducing):
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
    op = made(GlobalAveragePool, opset, channels_last)
    y: Array = op(x, out=out, num_threads=num_threads)
    return y


@registered
class GlobalMaxPool(Reducing):
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
    op = made(GlobalMaxPool, opset, channels_last)
    y: Array = op(x, out=out, num_threads=num_threads)
    return y


@registered
class GlobalLpPool(Norm):
    """The ONNX operator GlobalLpPool with its attributes: see `global_lp_pool`, whose arguments it takes."""

    __slots__ = ()
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
    op = made(GlobalLpPool, p, opset, channels_last)
    y: Array = op(x, out=out, num_threads=num_threads)
    return y
