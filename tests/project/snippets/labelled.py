"""Functions on labelled arrays: arrays give arrays, datasets give datasets, and `return_indices` gives pairs."""

from typing import assert_type

import numpy as np
import xarray as xr

import onnxpool.xarray as pools

x = xr.DataArray(np.zeros((4, 6)), dims=("y", "x"))
many = xr.Dataset({"a": x})

assert_type(pools.average_pool(x, {"y": 2, "x": 2}, strides=2, pads={"x": (0, 1), "y": 1}), xr.DataArray)
assert_type(pools.lp_pool(many, {"y": 2}, strides={"y": 2}, coord_func={"y": "min", "x": np.max}), xr.Dataset)
assert_type(pools.max_pool(x, {"y": 2}), xr.DataArray)
assert_type(pools.max_pool(x, {"y": 2}, return_indices=True), tuple[xr.DataArray, xr.DataArray])
assert_type(pools.min_pool(many, {"y": 2}, return_indices=True), tuple[xr.Dataset, xr.Dataset])
assert_type(pools.global_max_pool(x), xr.DataArray)
assert_type(pools.global_average_pool(many, ["y", "x"], keepdims=True), xr.Dataset)
assert_type(pools.global_lp_pool(x, ..., p=1), xr.DataArray)


def either(flag: bool) -> None:
    """A type that is not known until the call is a union."""
    y = pools.max_pool(x, {"y": 2}, return_indices=flag)
    assert_type(y, xr.DataArray | tuple[xr.DataArray, xr.DataArray])


pools.average_pool(np.zeros((4, 6)), {"y": 2})  # type: ignore[type-var]
pools.average_pool(x, 2)  # type: ignore[arg-type]
pools.average_pool(x, {"y": 2}, strides=(2, 2))  # type: ignore[arg-type]
