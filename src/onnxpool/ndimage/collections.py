"""Filters of dask arrays and of labelled arrays of xarray."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..arrays import native
from ..base import Operator
from ..dask.graphs import check_known, pooled
from ..errors import PoolTypeError
from . import arguments


def chunked(label: str, kind: str, x: Any, size: Any, output: Any, *given: Any) -> Any:
    """The result for a dask array: a dask array with the same chunks, whose tasks read the elements that they need."""
    if isinstance(output, np.ndarray):
        raise PoolTypeError(f"{label}: output is an array, but dask arrays are computed later; pass a dtype", label,
                            "output")
    check_known(label, x)
    dtype = native(x.dtype) if output is None else arguments.result_of(label, output, x)[0]
    *placed, threads, truncate, dilates = given
    found = arguments.prepared(label, kind, x.shape, x.dtype, dtype, size, *placed, truncate, dilates)
    if not x.size:
        return x.astype(dtype)

    def run(op: Operator, part: Any) -> Any:
        return pooled(part, op, x.chunks if op.output_shape(part.shape) == x.shape else None,
                      1 if threads is None else threads)

    step = found.whole()
    step = step.exact or step  # tasks do not look at elements before they choose pools
    read = x
    for axis, places in enumerate(step.places):
        parts = [read[(*(slice(None),) * axis, part)] for part in places]
        read = parts[0] if len(parts) == 1 else np.concatenate(parts, axis)
    return found.clamped(found.pooled(step, found.filled(step, read), run).astype(dtype))


def labelled(label: str, kind: str, x: Any, size: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any,
             *others: Any) -> Any:
    """The result for a DataArray: a DataArray with the same labels. Axes can be names of dimensions."""
    if isinstance(axes, (tuple, list)):
        axes = tuple([x.get_axis_num(axis) if axis in x.dims else axis for axis in axes])
    elif isinstance(axes, Hashable) and axes in x.dims:
        axes = x.get_axis_num(axes)
    return x.copy(data=arguments.filtered(label, kind, x.data, size, output, mode, cval, origin, axes, *others))
