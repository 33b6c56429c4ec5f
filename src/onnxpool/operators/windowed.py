"""Operators that reduce windows of the spatial axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, T
from ..base import Ints, made, registered
from ..docstrings import WINDOWS, documented
from ..errors import PoolError
from ..planning.request import Reduction
from ..windows import Axis
from .reducing import Norm, Reducing, Windowed
from .typed import Named

if TYPE_CHECKING:
    from ..options import AutoPad, AveragePoolOptions, LpPoolOptions, MaxPoolOptions, NhwcMaxPoolOptions, Sizes


@registered
class AveragePool(Windowed, Reducing):
    """
    The ONNX operator AveragePool with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> op = onnxpool.AveragePool(kernel_shape=(3, 3), strides=2, pads=1)
    >>> op.output_shape((1, 64, 112, 112))
    (1, 64, 56, 56)
    >>> op.count_include_pad
    0
    """

    __slots__ = ()
    reduces = "mean"

    dilations: Named[Sizes] = Named()
    count_include_pad: Named[int] = Named()

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
                 count_include_pad: int | None = None, opset: int | None = None, channels_last: bool = False,
                 axes: Ints | None = None) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad, axes=axes)


@overload
def average_pool(x: NDArray[T], kernel_shape: Ints, *, out: None = None,
                 **options: Unpack[AveragePoolOptions]) -> NDArray[T]: ...


@overload
def average_pool(x: ArrayLike, kernel_shape: Ints, *, out: NDArray[T],
                 **options: Unpack[AveragePoolOptions]) -> NDArray[T]: ...


@overload
def average_pool(x: ArrayLike, kernel_shape: Ints, *, out: None = None,
                 **options: Unpack[AveragePoolOptions]) -> Array: ...


@documented(AveragePool, "any_windows", (*WINDOWS, "axes", "divisor", "empty_mean", "nan", "sums"),
            ("max_pool", "lp_pool", "global_average_pool", "qlinear_average_pool"))
def average_pool(x: ArrayLike, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
                 count_include_pad: int | None = None, opset: int | None = None, channels_last: bool = False,
                 axes: Ints | None = None, out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Average each window of the spatial axes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], np.float32)
    >>> onnxpool.average_pool(x, (2, 2)).tolist()
    [[[[3.0, 4.0], [6.0, 7.0]]]]

    Padding does not count, unless it is asked to:

    >>> onnxpool.average_pool(x, 2, strides=2, pads=(1, 1, 0, 0)).tolist()
    [[[[1.0, 2.5], [5.5, 7.0]]]]
    >>> onnxpool.average_pool(x, 2, strides=2, pads=(1, 1, 0, 0), count_include_pad=1).tolist()
    [[[[0.25, 1.25], [2.75, 7.0]]]]
    """
    op = made(AveragePool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, count_include_pad, opset,
              channels_last, axes)
    return op(x, out=out, num_threads=num_threads)


@registered
class MaxPool(Windowed, Reducing):
    """
    The ONNX operator MaxPool with its attributes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> op = onnxpool.MaxPool(kernel_shape=2, return_indices=True)
    >>> y, indices = op(np.array([[[1, 5, 2]]], np.float32))
    >>> y.tolist(), indices.tolist()
    ([[[5.0, 5.0]]], [[[1, 1]]])
    >>> op.strides
    1
    """

    __slots__ = ()

    dilations: Named[Sizes] = Named()
    storage_order: Named[int] = Named()

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
                 storage_order: int | None = None, return_indices: bool = False, opset: int | None = None,
                 channels_last: bool = False, axes: Ints | None = None) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode, storage_order=storage_order, return_indices=return_indices,
                  axes=axes)

    if TYPE_CHECKING:
        def __call__(self, x: ArrayLike, *inputs: ArrayLike | None, out: Any = None,
                     num_threads: int | None = None) -> Array | Any: ...  # a tuple with Indices

    def _reduction(self, axes: tuple[Axis, ...]) -> Reduction:
        """A maximum, with its index if Indices are asked for."""
        return Reduction("indexed_max" if self.return_indices else "max",
                         column_major=bool(self.attributes.get("storage_order")))


@overload
def max_pool(x: NDArray[T], kernel_shape: Ints, *, return_indices: Literal[False] = False, out: None = None,
             **options: Unpack[MaxPoolOptions]) -> NDArray[T]: ...


@overload
def max_pool(x: ArrayLike, kernel_shape: Ints, *, return_indices: Literal[False] = False, out: NDArray[T],
             **options: Unpack[MaxPoolOptions]) -> NDArray[T]: ...


@overload
def max_pool(x: ArrayLike, kernel_shape: Ints, *, return_indices: Literal[False] = False, out: None = None,
             **options: Unpack[MaxPoolOptions]) -> Array: ...


@overload
def max_pool(x: NDArray[T], kernel_shape: Ints, *, return_indices: Literal[True], out: tuple[NDArray[T] | None,
             NDArray[np.int64] | None] | None = None, **options: Unpack[MaxPoolOptions]) -> tuple[NDArray[T],
             NDArray[np.int64]]: ...


@overload
def max_pool(x: ArrayLike, kernel_shape: Ints, *, return_indices: Literal[True], out: tuple[Array | None,
             NDArray[np.int64] | None] | None = None, **options: Unpack[MaxPoolOptions]) -> tuple[Array,
             NDArray[np.int64]]: ...


@overload
def max_pool(x: ArrayLike, kernel_shape: Ints, *, return_indices: bool, out: Any = None,
             **options: Unpack[MaxPoolOptions]) -> Array | tuple[Array, NDArray[np.int64]]: ...


@documented(MaxPool, "any_windows", (*WINDOWS, "axes", "integers", "maxima", "empty_maximum"),
            ("max_unpool", "average_pool", "global_max_pool", "nhwc_max_pool"))
def max_pool(x: ArrayLike, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
             dilations: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
             storage_order: int | None = None, return_indices: bool = False, opset: int | None = None,
             channels_last: bool = False, axes: Ints | None = None,
             out: Array | tuple[Array | None, Array | None] | None = None, num_threads: int | None = None) -> Any:
    """
    Take the maximum of each window of the spatial axes.

    Returns
    -------
    y : ndarray of the shape of `x`, but for the number of windows along pooled axes
        The maxima, of the dtype of `x` in native byte order.
    indices : int64 ndarray of the shape of `y`
        Where each maximum is in `x`. Only with `return_indices`.

    Notes
    -----
    Indices count all elements of `x` in the order of N, C and the spatial axes, also if `channels_last`. With `axes`
    they count in the order of the axes of `x`: ``x.ravel()[indices]`` are the maxima, or with ``storage_order=1``
    ``x.ravel(order="F")[indices]``. The index of a window wholly in padding is -1.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], np.float32)
    >>> onnxpool.max_pool(x, 2).tolist()
    [[[[5.0, 6.0], [8.0, 9.0]]]]
    >>> onnxpool.max_pool(x, 2, return_indices=True)[1].tolist()
    [[[[4, 5], [7, 8]]]]

    With ``ceil_mode=1`` a window at the end may be only partly inside:

    >>> onnxpool.max_pool(x, 2, strides=2, ceil_mode=1).tolist()
    [[[[5.0, 6.0], [8.0, 9.0]]]]

    The axes of an image can be named:

    >>> onnxpool.max_pool(x[0, 0], 2, axes=(0, 1)).tolist()
    [[5.0, 6.0], [8.0, 9.0]]
    """
    op = made(MaxPool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, storage_order, return_indices,
              opset, channels_last, axes)
    return op(x, out=out, num_threads=num_threads)


@registered
class LpPool(Windowed, Norm):
    """
    The ONNX operator LpPool with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> op = onnxpool.LpPool(kernel_shape=2, opset=11)
    >>> op.p, op.version
    (2, 11)
    """

    __slots__ = ()

    dilations: Named[Sizes] = Named()
    p: Named[float] = Named()

    def __init__(self, *, kernel_shape: Ints | None = None, p: float | None = None, strides: Ints | None = None,
                 pads: Ints | None = None, dilations: Ints | None = None, auto_pad: AutoPad | None = None,
                 ceil_mode: int | None = None, opset: int | None = None, channels_last: bool = False,
                 axes: Ints | None = None) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, p=p, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode, axes=axes)


@overload
def lp_pool(x: NDArray[T], kernel_shape: Ints, *, out: None = None, **options: Unpack[LpPoolOptions]) -> NDArray[T]: ...


@overload
def lp_pool(x: ArrayLike, kernel_shape: Ints, *, out: NDArray[T], **options: Unpack[LpPoolOptions]) -> NDArray[T]: ...


@overload
def lp_pool(x: ArrayLike, kernel_shape: Ints, *, out: None = None, **options: Unpack[LpPoolOptions]) -> Array: ...


@documented(LpPool, "any_windows", ("powers", *WINDOWS, "axes", "empty_norm", "nan"),
            ("average_pool", "max_pool", "global_lp_pool"))
def lp_pool(x: ArrayLike, kernel_shape: Ints, *, p: float | None = None, strides: Ints | None = None,
            pads: Ints | None = None, dilations: Ints | None = None, auto_pad: AutoPad | None = None,
            ceil_mode: int | None = None, opset: int | None = None, channels_last: bool = False,
            axes: Ints | None = None, out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the Lp norm of each window of the spatial axes.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.array([[[3, -4, 0]]], np.float32)
    >>> onnxpool.lp_pool(x, 2).tolist()
    [[[5.0, 4.0]]]
    """
    op = made(LpPool, kernel_shape, p, strides, pads, dilations, auto_pad, ceil_mode, opset, channels_last, axes)
    return op(x, out=out, num_threads=num_threads)


@registered
class NhwcMaxPool(Windowed, Reducing):
    """
    The operator NhwcMaxPool of com.microsoft with its attributes.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.NhwcMaxPool(kernel_shape=2, strides=2).output_shape((1, 8, 8, 3))
    (1, 4, 4, 3)
    """

    __slots__ = ()
    reduces = "max"
    takes_axes = False

    dilations: Named[Sizes] = Named()

    def __init__(self, *, kernel_shape: Ints | None = None, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
                 opset: int | None = None, channels_last: bool = True) -> None:
        self._set(opset, channels_last, kernel_shape=kernel_shape, strides=strides, pads=pads, dilations=dilations,
                  auto_pad=auto_pad, ceil_mode=ceil_mode)
        if not self.channels_last:
            raise PoolError(f"{self.label}: channels_last=False, but its arrays are (N, *spatial, C); use MaxPool",
                            self.label, "channels_last", value=False)


@overload
def nhwc_max_pool(x: NDArray[T], kernel_shape: Ints, *, out: None = None,
                  **options: Unpack[NhwcMaxPoolOptions]) -> NDArray[T]: ...


@overload
def nhwc_max_pool(x: ArrayLike, kernel_shape: Ints, *, out: NDArray[T],
                  **options: Unpack[NhwcMaxPoolOptions]) -> NDArray[T]: ...


@overload
def nhwc_max_pool(x: ArrayLike, kernel_shape: Ints, *, out: None = None,
                  **options: Unpack[NhwcMaxPoolOptions]) -> Array: ...


@documented(NhwcMaxPool, "nhwc", (*WINDOWS, "maxima", "empty_maximum"), ("max_pool",))
def nhwc_max_pool(x: ArrayLike, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
                  dilations: Ints | None = None, auto_pad: AutoPad | None = None, ceil_mode: int | None = None,
                  opset: int | None = None, out: Array | None = None, num_threads: int | None = None) -> Array:
    """
    Take the maximum of each window of the spatial axes of an 8-bit array with its channels last.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> onnxpool.nhwc_max_pool(np.array([[[1], [3], [2]]], np.uint8), 2).tolist()
    [[[3], [3]]]
    """
    op = made(NhwcMaxPool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, opset, True)
    return op(x, out=out, num_threads=num_threads)
