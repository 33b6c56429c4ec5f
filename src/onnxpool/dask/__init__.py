"""
onnxpool's functions on dask arrays. Importing onnxpool does not import it.

Each function takes the parameters of the one of the same name in `onnxpool`, but for `out`. Nothing is computed before
the result is.
"""

from typing import TYPE_CHECKING, Any

from ..base import Ints, made
from ..docstrings import documented_for_dask
from ..operators import AveragePool, GlobalAveragePool, GlobalLpPool, GlobalMaxPool, LpPool, MaxPool
from .graphs import pooled

if TYPE_CHECKING:
    from ..options import AutoPad

__all__ = ["average_pool", "global_average_pool", "global_lp_pool", "global_max_pool", "lp_pool", "max_pool"]


@documented_for_dask(AveragePool, "any_windows", "parts")
def average_pool(x: Any, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
                 dilations: Ints | None = None, auto_pad: "AutoPad | None" = None, ceil_mode: int | None = None,
                 count_include_pad: int | None = None, opset: int | None = None, channels_last: bool = False,
                 axes: Ints | None = None, chunks: Any = None, num_threads: int | None = 1) -> Any:
    """
    Average each window of the spatial axes of a dask array.

    Examples
    --------
    >>> import dask.array as da, onnxpool.dask
    >>> x = da.arange(12, chunks=5, dtype="float32")
    >>> y = onnxpool.dask.average_pool(x, 4, strides=2, axes=0)
    >>> y.chunks
    ((3, 2),)
    >>> y.compute().tolist()
    [1.5, 3.5, 5.5, 7.5, 9.5]
    """
    op = made(AveragePool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, count_include_pad, opset,
              channels_last, axes)
    return pooled(x, op, chunks, num_threads)


@documented_for_dask(MaxPool, "any_windows", "parts")
def max_pool(x: Any, kernel_shape: Ints, *, strides: Ints | None = None, pads: Ints | None = None,
             dilations: Ints | None = None, auto_pad: "AutoPad | None" = None, ceil_mode: int | None = None,
             storage_order: int | None = None, return_indices: bool = False, opset: int | None = None,
             channels_last: bool = False, axes: Ints | None = None, chunks: Any = None,
             num_threads: int | None = 1) -> Any:
    """
    Take the maximum of each window of the spatial axes of a dask array.

    Returns
    -------
    y : dask.array.Array of the shape of `x`, but for the number of windows along pooled axes
        The maxima, of the dtype of `x` in native byte order.
    indices : dask.array.Array of int64, of the shape of `y`
        Where each maximum is in all of `x`. Only with `return_indices`.

    Examples
    --------
    >>> import dask.array as da, onnxpool.dask
    >>> x = da.arange(12, chunks=5, dtype="float32")
    >>> y, indices = onnxpool.dask.max_pool(x, 4, strides=4, axes=0, return_indices=True)
    >>> y.compute().tolist(), indices.compute().tolist()
    ([3.0, 7.0, 11.0], [3, 7, 11])
    """
    op = made(MaxPool, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode, storage_order, return_indices,
              opset, channels_last, axes)
    return pooled(x, op, chunks, num_threads)


@documented_for_dask(LpPool, "any_windows", "parts")
def lp_pool(x: Any, kernel_shape: Ints, *, p: float | None = None, strides: Ints | None = None,
            pads: Ints | None = None, dilations: Ints | None = None, auto_pad: "AutoPad | None" = None,
            ceil_mode: int | None = None, opset: int | None = None, channels_last: bool = False,
            axes: Ints | None = None, chunks: Any = None, num_threads: int | None = 1) -> Any:
    """
    Take the Lp norm of each window of the spatial axes of a dask array.

    Examples
    --------
    >>> import dask.array as da, numpy as np, onnxpool.dask
    >>> x = da.from_array(np.array([3, -4, 0], np.float32), chunks=1)
    >>> onnxpool.dask.lp_pool(x, 2, axes=0).compute().tolist()
    [5.0, 4.0]
    """
    op = made(LpPool, kernel_shape, p, strides, pads, dilations, auto_pad, ceil_mode, opset, channels_last, axes)
    return pooled(x, op, chunks, num_threads)


@documented_for_dask(GlobalAveragePool, "any_whole", "shares")
def global_average_pool(x: Any, *, opset: int | None = None, channels_last: bool = False, axes: Ints | None = None,
                        keepdims: bool = True, num_threads: int | None = 1) -> Any:
    """
    Average all spatial elements of each channel of a dask array.

    Examples
    --------
    >>> import dask.array as da, onnxpool.dask
    >>> x = da.arange(12, chunks=5, dtype="float32")
    >>> float(onnxpool.dask.global_average_pool(x, axes=0, keepdims=False).compute())
    5.5
    """
    return pooled(x, made(GlobalAveragePool, opset, channels_last, axes, keepdims), None, num_threads)


@documented_for_dask(GlobalMaxPool, "any_whole", "shares")
def global_max_pool(x: Any, *, opset: int | None = None, channels_last: bool = False, axes: Ints | None = None,
                    keepdims: bool = True, num_threads: int | None = 1) -> Any:
    """
    Take the maximum of all spatial elements of each channel of a dask array.

    Examples
    --------
    >>> import dask.array as da, onnxpool.dask
    >>> x = da.arange(12, chunks=5, dtype="float32")
    >>> float(onnxpool.dask.global_max_pool(x, axes=0, keepdims=False).compute())
    11.0
    """
    return pooled(x, made(GlobalMaxPool, opset, channels_last, axes, keepdims), None, num_threads)


@documented_for_dask(GlobalLpPool, "any_whole", "shares")
def global_lp_pool(x: Any, *, p: float | None = None, opset: int | None = None, channels_last: bool = False,
                   axes: Ints | None = None, keepdims: bool = True, num_threads: int | None = 1) -> Any:
    """
    Take the Lp norm of all spatial elements of each channel of a dask array.

    Examples
    --------
    >>> import dask.array as da, numpy as np, onnxpool.dask
    >>> x = da.from_array(np.array([3, 0, -4], np.float32), chunks=1)
    >>> float(onnxpool.dask.global_lp_pool(x, axes=0, keepdims=False).compute())
    5.0
    """
    return pooled(x, made(GlobalLpPool, p, opset, channels_last, axes, keepdims), None, num_threads)
