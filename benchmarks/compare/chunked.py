"""Time pools of dask arrays against dask's coarsen, dask-image and map_overlap, and measure the memory of workers.

    python -m benchmarks.compare.chunked ways        # the table of docs/dask.md; needs dask-image
    python -m benchmarks.compare.chunked memory      # the memory of two workers with a limit

Everything runs on the cores that the process may use: `taskset` selects them.
"""

import argparse
import resource
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
from scipy import ndimage

import onnxpool.dask as pools

from . import Ways, compare, head, introduce, shown


def summed(y: Any) -> Any:
    """A number for each chunk, so that results need not be kept."""
    return y.map_blocks(lambda block: block[(slice(1),) * block.ndim].copy(), chunks=[(1,) * n for n in y.numblocks])


def by_hand(x: Any, size: int, stride: int) -> Any:
    """Means of windows by hand: add a halo, take the means of windows at every place, and select some of them."""
    depth = size // 2
    means = da.map_overlap(ndimage.uniform_filter, x, depth=depth, boundary="none", size=size, dtype=x.dtype)
    return means[depth:-depth:stride, depth:-depth:stride]


def ways() -> None:
    """Print the table of the ways to pool."""
    from dask_image import ndfilters  # from the package dask-image, which nothing else needs

    x = da.from_array(np.random.default_rng(0).random((6000, 6000), np.float32), chunks=(1000, 1000), name="x")
    ragged = x.rechunk((1010, 1010)).persist(scheduler="sync")
    both = (0, 1)
    cases: dict[str, Ways] = {
        "means of 4x4 blocks": {
            "onnxpool": lambda: pools.average_pool(x, 4, strides=4, axes=both),
            "coarsen": lambda: da.coarsen(np.mean, x, {0: 4, 1: 4}),
        },
        "maxima of 4x4 blocks": {
            "onnxpool": lambda: pools.max_pool(x, 4, strides=4, axes=both),
            "coarsen": lambda: da.coarsen(np.max, x, {0: 4, 1: 4}),
        },
        "means of 4x4 blocks, chunks of 1010": {
            "onnxpool": lambda: pools.average_pool(ragged, 4, strides=4, axes=both),
            "coarsen": lambda: da.coarsen(np.mean, ragged, {0: 4, 1: 4}, trim_excess=True),
        },
        "means of 5x5 windows, stride 3": {
            "onnxpool": lambda: pools.average_pool(x, 5, strides=3, axes=both),
            "dask-image": lambda: ndfilters.uniform_filter(x, 5)[2:-2:3, 2:-2:3],
            "map_overlap": lambda: by_hand(x, 5, 3),
        },
        "maxima of 5x5 windows": {
            "onnxpool": lambda: pools.max_pool(x, 5, axes=both),
            "dask-image": lambda: ndfilters.maximum_filter(x, 5)[2:-2, 2:-2],
        },
    }
    introduce("dask", "dask-image", "scipy", "numpy")
    dask.config.set(scheduler="sync")
    compare(cases.items(), run=lambda make: summed(make()).compute(), whole=lambda make: make().compute(),
            facts={"tasks": lambda make: len(dict(make().__dask_graph__())) - x.npartitions})


def source(shape: tuple[int, ...], chunk: int) -> Any:
    """An array whose chunks are generated when they are needed."""
    return da.full(shape, 1.5, dtype=np.float32, chunks=chunk)


def cluster(workers: int, limit: str = "2GiB") -> Any:
    """A cluster of this many processes with one thread each."""
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
                               memory_limit=limit, silence_logs=50))


def memory() -> None:
    """Print the memory of two workers that pool arrays of several sizes."""
    head("array", "GiB", "chunks", "peak memory per worker, MiB", "s", left=1)
    for size in (8000, 16_000, 32_000):
        with cluster(2, "600MiB") as client:
            y = summed(pools.average_pool(source((size, size), 2000), 5, strides=2, pads=2, axes=(0, 1)))
            begin = time.perf_counter()
            client.compute(y).result()
            spent = time.perf_counter() - begin
            used = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            shown(f"{size}x{size}", f"{size * size * 4 / 2**30:.1f}", (size // 2000) ** 2,
                  f"{max(used.values()) / 1024:.0f}", f"{spent:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ways", "memory"))
    dask.config.set({"distributed.worker.multiprocessing-method": "spawn"})
    {"ways": ways, "memory": memory}[parser.parse_args().what]()
