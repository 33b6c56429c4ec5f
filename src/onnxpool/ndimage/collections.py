"""Filters of dask arrays and of labelled arrays of xarray."""

from typing import Any

import numpy as np

from ..arrays import native
from ..base import Operator
from ..dask.graphs import check_known, pooled
from ..errors import PoolTypeError
from . import arguments


def chunked(label: str, kind: str, x: Any, size: Any, output: Any, *given: Any) -> Any:
    """The result for a dask array: an array in the same chunks, whose tasks read the elements that they need."""
    if isinstance(output, np.ndarray):
        raise PoolTypeError(f"{label}: output is an array, but dask arrays are computed later; give a dtype", label,
                            "output")
    check_known(label, x)
    dtype, _ = arguments.result_of(label, output, x)
    *placed, skipna, num_threads, truncate, dilates = given
    found = arguments.prepared(label, kind, x.shape, native(x.dtype), dtype, arguments.plain(size),
                               *map(arguments.plain, placed), bool(skipna), truncate, dilates)

    def run(op: Operator, part: Any) -> Any:
        return pooled(part, op, x.chunks if op.output_shape(part.shape) == x.shape else None, num_threads)

    return found.part(found.whole(), x, run).astype(dtype) if x.size else x.astype(dtype)


def labelled(label: str, kind: str, x: Any, size: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any,
             *others: Any) -> Any:
    """The result for a DataArray: one with the same labels. Axes can be names of dimensions."""
    axes = arguments.plain(axes)
    if axes is not None:
        axes = tuple([x.get_axis_num(axis) if axis in x.dims else axis
                      for axis in (axes if isinstance(axes, tuple) else (axes,))])
    return x.copy(data=arguments.filtered(label, kind, x.data, size, output, mode, cval, origin, axes, *others))
