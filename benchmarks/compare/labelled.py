"""Time pools of labelled arrays against methods of xarray, with one thread.

The table is in docs/reference/filter_times.md.

    taskset -c 0 python -m benchmarks.compare.labelled
"""

from collections.abc import Iterator
from typing import Any

import dask
import numpy as np
import xarray as xr

import onnxpool
import onnxpool.xarray as pools

from . import Ways, compare, introduce

SIZES = {"time": 24, "lat": 720, "lon": 1440}


def field(dtype: str = "float32") -> Any:
    """A field on a grid of a quarter of a degree, with coordinates."""
    values = np.random.default_rng(0).random(tuple(SIZES.values()), np.float32)
    return xr.DataArray((values * 255).astype(dtype) if dtype == "uint8" else values, dims=tuple(SIZES), name="t2m",
                        coords={"time": np.datetime64("2000-01-01", "ns") + np.arange(24) * np.timedelta64(1, "h"),
                                "lat": np.linspace(89.875, -89.875, 720), "lon": np.arange(0, 360, 0.25)})


def tasks() -> Iterator[tuple[str, Ways]]:
    """All tasks."""
    x, small = field(), field("uint8")
    lazy = x.chunk(time=4, lat=360, lon=720).persist()
    block = {"lat": 4, "lon": 4}
    yield ("means of 4x4 blocks", {
        "onnxpool": lambda: pools.average_pool(x, block, strides=4),
        "`coarsen(...).mean()`": lambda: x.coarsen(block).mean(),
        "`coarsen(...).reduce(np.mean)`": lambda: x.coarsen(block).reduce(np.mean)})
    yield ("maxima of 4x4 blocks", {
        "onnxpool": lambda: pools.max_pool(x, block, strides=4),
        "`coarsen(...).max()`": lambda: x.coarsen(block).max()})
    yield ("maxima of 4x4 blocks, uint8", {
        "onnxpool": lambda: pools.max_pool(small, block, strides=4),
        "`coarsen(...).max()`": lambda: small.coarsen(block).max()})
    yield ("means of 4x4 blocks of a dask array", {
        "onnxpool": lambda: pools.average_pool(lazy, block, strides=4).compute(),
        "`coarsen(...).mean()`": lambda: lazy.coarsen(block).mean().compute()})
    window = {"lat": 5, "lon": 5}
    yield ("means of 5x5 windows, stride 3", {
        "onnxpool": lambda: pools.average_pool(x, window, strides=3, pads=2),
        "`rolling(...).construct(..., stride=3).mean(...)`": lambda: x.rolling(window, center=True).construct(
            {"lat": "i", "lon": "j"}, stride=3).mean(["i", "j"])})
    yield ("maxima of 3x3 windows", {
        "onnxpool": lambda: pools.max_pool(x, {"lat": 3, "lon": 3}, pads=1),
        "`rolling(...).max()`": lambda: x.rolling({"lat": 3, "lon": 3}, center=True, min_periods=1).max()})
    yield ("means of windows of 6 along time", {
        "onnxpool": lambda: pools.average_pool(x, {"time": 6}, pads={"time": (5, 0)}),
        "`rolling(...).mean()`, with bottleneck": lambda: x.rolling({"time": 6}, min_periods=1).mean()})
    yield ("means over lat and lon", {
        "onnxpool": lambda: pools.global_average_pool(x, ["lat", "lon"]),
        "`mean(...)`": lambda: x.mean(["lat", "lon"]),
        "`mean(..., skipna=False)`": lambda: x.mean(["lat", "lon"], skipna=False)})


if __name__ == "__main__":
    introduce("numpy", "xarray", "dask", "bottleneck")
    onnxpool.set_num_threads(1)
    dask.config.set(scheduler="synchronous")
    compare(tasks())
