"""Operators that reduce all of the spatial axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, overload

from numpy.typing import ArrayLike, NDArray

from ..base import made, registered
from ..docstrings import documented
from ..execution import Array, T
from .reducing import Norm, Reducing
from .typed import Named

if TYPE_CHECKING:
    from ..options import GlobalLpPoolOptions, LayoutOptions


@registered
class GlobalAveragePool(Reducing):
    """
    The ONNX operator GlobalAveragePool with its attributes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> op = onnxpool.GlobalAveragePool(channels_last=True)
    >>> op(np.full((1, 2, 2, 3), 0.5, np.float32)).tolist()
    [[[[0.5, 0.5, 0.5]]]]
    """

    __slots__ = ()
    reduces = "mean"
    windowed = False

    def __init__(self, *, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last)


@overload
def global_average_pool(x: NDArray[T], *, out: None = None, **options: Unpack[LayoutOptions]) -> NDArray[T]: ...


@overload
def global_average_pool(x: ArrayLike, *, out: NDArray[T], **options: Unpack[LayoutOptions]) -> NDArray[T]: ...


@overload
def global_average_pool(x: ArrayLike, *, out: None = None, **options: Unpack[LayoutOptions]) -> Array: ...


@documented(GlobalAveragePool, "whole", ("nan", "sums"),
            ("average_pool", "global_max_pool", "global_lp_pool", "qlinear_global_average_pool"))
def global_average_pool(x: ArrayLike, *, opset: int | None = None, channels_last: bool = False,
                        out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average all spatial elements of each channel.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
    >>> onnxpool.global_average_pool(x).tolist()
    [[[[3.0]]]]
    """
    op = made(GlobalAveragePool, opset, channels_last)
    return op(x, out=out, num_threads=num_threads)


@registered
class GlobalMaxPool(Reducing):
    """
    The ONNX operator GlobalMaxPool with its attributes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> op = onnxpool.GlobalMaxPool(channels_last=True)
    >>> op(np.full((1, 2, 2, 3), 0.5, np.float32)).tolist()
    [[[[0.5, 0.5, 0.5]]]]
    """

    __slots__ = ()
    reduces = "max"
    windowed = False

    def __init__(self, *, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last)


@overload
def global_max_pool(x: NDArray[T], *, out: None = None, **options: Unpack[LayoutOptions]) -> NDArray[T]: ...


@overload
def global_max_pool(x: ArrayLike, *, out: NDArray[T], **options: Unpack[LayoutOptions]) -> NDArray[T]: ...


@overload
def global_max_pool(x: ArrayLike, *, out: None = None, **options: Unpack[LayoutOptions]) -> Array: ...


@documented(GlobalMaxPool, "whole", ("maxima",), ("max_pool", "global_average_pool", "global_lp_pool"))
def global_max_pool(x: ArrayLike, *, opset: int | None = None, channels_last: bool = False, out: Array | None = None,
                    num_threads: int | None = None) -> Array:
    """
    Take the maximum of all spatial elements of each channel.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
    >>> onnxpool.global_max_pool(x).tolist()
    [[[[6.0]]]]
    """
    op = made(GlobalMaxPool, opset, channels_last)
    return op(x, out=out, num_threads=num_threads)


@registered
class GlobalLpPool(Norm):
    """
    The ONNX operator GlobalLpPool with its attributes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> op = onnxpool.GlobalLpPool(channels_last=True)
    >>> op(np.full((1, 2, 2, 3), 0.5, np.float32)).tolist()
    [[[[1.0, 1.0, 1.0]]]]
    """

    __slots__ = ()
    windowed = False

    p: Named[float] = Named()

    def __init__(self, *, p: float | None = None, opset: int | None = None, channels_last: bool = False) -> None:
        self._set(opset, channels_last, p=p)


@overload
def global_lp_pool(x: NDArray[T], *, out: None = None, **options: Unpack[GlobalLpPoolOptions]) -> NDArray[T]: ...


@overload
def global_lp_pool(x: ArrayLike, *, out: NDArray[T], **options: Unpack[GlobalLpPoolOptions]) -> NDArray[T]: ...


@overload
def global_lp_pool(x: ArrayLike, *, out: None = None, **options: Unpack[GlobalLpPoolOptions]) -> Array: ...


@documented(GlobalLpPool, "whole", ("powers", "nan"), ("lp_pool", "global_average_pool", "global_max_pool"))
def global_lp_pool(x: ArrayLike, *, p: float | None = None, opset: int | None = None, channels_last: bool = False,
                   out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the Lp norm of all spatial elements of each channel.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[3, 0], [0, -4]]]], np.float32)
    >>> onnxpool.global_lp_pool(x).tolist()
    [[[[5.0]]]]
    """
    op = made(GlobalLpPool, p, opset, channels_last)
    return op(x, out=out, num_threads=num_threads)
