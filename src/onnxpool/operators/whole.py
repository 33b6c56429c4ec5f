"""Operators that reduce all of the spatial axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, overload

from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, T
from ..base import Ints, made, registered
from ..docstrings import documented
from .reducing import Norm, Reducing
from .typed import Named

if TYPE_CHECKING:
    from ..options import GlobalLpPoolOptions, GlobalOptions


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

    def __init__(self, *, opset: int | None = None, channels_last: bool = False, axes: Ints | None = None,
                 keepdims: bool = True) -> None:
        self._set(opset, channels_last, axes=axes, keepdims=keepdims)


@overload
def global_average_pool(x: NDArray[T], *, out: None = None, **options: Unpack[GlobalOptions]) -> NDArray[T]: ...


@overload
def global_average_pool(x: ArrayLike, *, out: NDArray[T], **options: Unpack[GlobalOptions]) -> NDArray[T]: ...


@overload
def global_average_pool(x: ArrayLike, *, out: None = None, **options: Unpack[GlobalOptions]) -> Array: ...


@documented(GlobalAveragePool, "any_whole", ("axes", "nan", "sums"),
            ("average_pool", "global_max_pool", "global_lp_pool", "qlinear_global_average_pool"))
def global_average_pool(x: ArrayLike, *, opset: int | None = None, channels_last: bool = False,
                        axes: Ints | None = None, keepdims: bool = True, out: Array | None = None,
                        num_threads: int | None = None) -> Array:
    """
    Average all spatial elements of each channel.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2], [3, 6]]]], np.float32)
    >>> onnxpool.global_average_pool(x).tolist()
    [[[[3.0]]]]

    The axes of an array can be named, and dropped:

    >>> onnxpool.global_average_pool(x[0, 0], axes=1, keepdims=False).tolist()
    [1.5, 4.5]
    """
    op = made(GlobalAveragePool, opset, channels_last, axes, keepdims)
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

    def __init__(self, *, opset: int | None = None, channels_last: bool = False, axes: Ints | None = None,
                 keepdims: bool = True) -> None:
        self._set(opset, channels_last, axes=axes, keepdims=keepdims)


@overload
def global_max_pool(x: NDArray[T], *, out: None = None, **options: Unpack[GlobalOptions]) -> NDArray[T]: ...


@overload
def global_max_pool(x: ArrayLike, *, out: NDArray[T], **options: Unpack[GlobalOptions]) -> NDArray[T]: ...


@overload
def global_max_pool(x: ArrayLike, *, out: None = None, **options: Unpack[GlobalOptions]) -> Array: ...


@documented(GlobalMaxPool, "any_whole", ("axes", "integers", "maxima"),
            ("max_pool", "global_average_pool", "global_lp_pool"))
def global_max_pool(x: ArrayLike, *, opset: int | None = None, channels_last: bool = False,
                    axes: Ints | None = None, keepdims: bool = True, out: Array | None = None,
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
    op = made(GlobalMaxPool, opset, channels_last, axes, keepdims)
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

    def __init__(self, *, p: float | None = None, opset: int | None = None, channels_last: bool = False,
                 axes: Ints | None = None, keepdims: bool = True) -> None:
        self._set(opset, channels_last, axes=axes, keepdims=keepdims, p=p)


@overload
def global_lp_pool(x: NDArray[T], *, out: None = None, **options: Unpack[GlobalLpPoolOptions]) -> NDArray[T]: ...


@overload
def global_lp_pool(x: ArrayLike, *, out: NDArray[T], **options: Unpack[GlobalLpPoolOptions]) -> NDArray[T]: ...


@overload
def global_lp_pool(x: ArrayLike, *, out: None = None, **options: Unpack[GlobalLpPoolOptions]) -> Array: ...


@documented(GlobalLpPool, "any_whole", ("axes", "powers", "nan"),
            ("lp_pool", "global_average_pool", "global_max_pool"))
def global_lp_pool(x: ArrayLike, *, p: float | None = None, opset: int | None = None, channels_last: bool = False,
                   axes: Ints | None = None, keepdims: bool = True, out: Array | None = None,
                   num_threads: int | None = None) -> Array:
    """
    Take the Lp norm of all spatial elements of each channel.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[3, 0], [0, -4]]]], np.float32)
    >>> onnxpool.global_lp_pool(x).tolist()
    [[[[5.0]]]]
    """
    op = made(GlobalLpPool, p, opset, channels_last, axes, keepdims)
    return op(x, out=out, num_threads=num_threads)
