"""Time pools of labelled arrays against methods of xarray, with one thread: the table of docs/xarray.md.

    taskset -c 0 python tools/compare_xarray.py

The ways to compute a result take turns, and the shortest time of each counts. Memory is the amount that NumPy allocates
besides the input, including the result.
"""

import importlib.metadata
import platform
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import dask
import numpy as np
import xarray as xr

import onnxpool
import onnxpool.xarray as pools

PACKAGES = ("numpy", "xarray", "dask", "bottleneck")
TURNS = 5
SIZES = {"time": 24, "lat": 720, "lon": 1440}


class Task(NamedTuple):
    """The same computation by several calls, the first of which is onnxpool's."""

    name: str
    ways: dict[str, Callable[[], Any]]


def field(dtype: str = "float32") -> Any:
    """A field on a grid of a quarter of a degree, with coordinates."""
    values = np.random.default_rng(0).random(tuple(SIZES.values()), np.float32)
    return xr.DataArray((values * 255).astype(dtype) if dtype == "uint8" else values, dims=tuple(SIZES), name="t2m",
                        coords={"time": np.datetime64("2000-01-01", "ns") + np.arange(24) * np.timedelta64(1, "h"),
                                "lat": np.linspace(89.875, -89.875, 720), "lon": np.arange(0, 360, 0.25)})


def tasks() -> Iterator[Task]:
    """All tasks."""
    x, small = field(), field("uint8")
    lazy = x.chunk(time=4, lat=360, lon=720).persist()
    block = {"lat": 4, "lon": 4}
    yield Task("means of 4x4 blocks", {
        "onnxpool": lambda: pools.average_pool(x, block, strides=4),
        "`coarsen(...).mean()`": lambda: x.coarsen(block).mean(),
        "`coarsen(...).reduce(np.mean)`": lambda: x.coarsen(block).reduce(np.mean)})
    yield Task("maxima of 4x4 blocks", {
        "onnxpool": lambda: pools.max_pool(x, block, strides=4),
        "`coarsen(...).max()`": lambda: x.coarsen(block).max()})
    yield Task("maxima of 4x4 blocks, uint8", {
        "onnxpool": lambda: pools.max_pool(small, block, strides=4),
        "`coarsen(...).max()`": lambda: small.coarsen(block).max()})
    yield Task("means of 4x4 blocks of a dask array", {
        "onnxpool": lambda: pools.average_pool(lazy, block, strides=4).compute(),
        "`coarsen(...).mean()`": lambda: lazy.coarsen(block).mean().compute()})
    window = {"lat": 5, "lon": 5}
    yield Task("means of 5x5 windows, stride 3", {
        "onnxpool": lambda: pools.average_pool(x, window, strides=3, pads=2),
        "`rolling(...).construct(..., stride=3).mean(...)`": lambda: x.rolling(window, center=True).construct(
            {"lat": "i", "lon": "j"}, stride=3).mean(["i", "j"])})
    yield Task("maxima of 3x3 windows", {
        "onnxpool": lambda: pools.max_pool(x, {"lat": 3, "lon": 3}, pads=1),
        "`rolling(...).max()`": lambda: x.rolling({"lat": 3, "lon": 3}, center=True, min_periods=1).max()})
    yield Task("means of windows of 6 along time", {
        "onnxpool": lambda: pools.average_pool(x, {"time": 6}, pads={"time": (5, 0)}),
        "`rolling(...).mean()`, with bottleneck": lambda: x.rolling({"time": 6}, min_periods=1).mean()})
    yield Task("means over lat and lon", {
        "onnxpool": lambda: pools.global_average_pool(x, ["lat", "lon"]),
        "`mean(...)`": lambda: x.mean(["lat", "lon"]),
        "`mean(..., skipna=False)`": lambda: x.mean(["lat", "lon"], skipna=False)})


def memory(call: Callable[[], object]) -> float:
    """The peak allocation of a call, in MiB."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def difference(y: Any, ours: Any) -> str:
    """How a result differs from that of onnxpool."""
    assert y.dims == ours.dims
    assert y.shape == ours.shape
    if np.array_equal(y.values, ours.values):
        return "equal"
    off = float(np.abs(y.values.astype(np.float64) - ours.values.astype(np.float64)).max())
    assert off < 1e-5
    return f"within {off:.0e}"


def main() -> None:
    """Print the table."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {versions}\n")
    print("| task | method | ms | ratio | MiB | result |\n|---|---|--:|--:|--:|---|")
    onnxpool.set_num_threads(1)
    dask.config.set(scheduler="synchronous")
    for task in tasks():
        results = {name: call() for name, call in task.ways.items()}
        shortest = dict.fromkeys(task.ways, np.inf)
        for _ in range(TURNS):
            for name, call in task.ways.items():
                begin = time.perf_counter()
                call()
                shortest[name] = min(shortest[name], time.perf_counter() - begin)
        for name, call in task.ways.items():
            first = name == "onnxpool"
            shown, result = (task.name, "") if first else ("", difference(results[name], results["onnxpool"]))
            print(f"| {shown} | {name} | {shortest[name] * 1e3:.1f} | {shortest[name] / shortest['onnxpool']:.1f} | "
                  f"{memory(call):.0f} | {result} |", flush=True)


if __name__ == "__main__":
    main()
