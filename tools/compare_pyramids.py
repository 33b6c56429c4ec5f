"""Time pyramids beside the methods of ngff-zarr and ome-zarr, and measure memory and differences.

    python tools/compare_pyramids.py /dev/shm/pyramids        # the tables of examples/pyramid/README.md

Each way runs in a process of its own, on one core, and writes chunks of 64x64x64 elements to the given folder.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "pyramid"))

FACTORS = [2, 4, 8]
CHUNK = 64
LARGE, ODD = (256, 1024, 1024), (101, 203, 307)
WAYS = (("onnxpool", "memory"), ("onnxpool", "stream"), ("onnxpool", "dask"), ("ngff-zarr", "DASK_BIN_SHRINK"),
        ("ngff-zarr", "ITKWASM_BIN_SHRINK"), ("ngff-zarr", "ITKWASM_GAUSSIAN"), ("ome-zarr", "LOCAL_MEAN"),
        ("ome-zarr", "RESIZE"))


def volume(path: Path, shape: tuple[int, int, int]) -> None:
    """Store a smooth volume with noise, in chunks."""
    rng = np.random.default_rng(0)
    array = zarr.create_array(path, shape=shape, chunks=(CHUNK,) * 3, dtype=np.uint16)
    y, x = np.meshgrid(*(np.linspace(0, 9, n) for n in shape[1:]), indexing="ij")
    for z in range(0, shape[0], CHUNK):
        planes = np.arange(z, min(z + CHUNK, shape[0]))[:, None, None] / 20
        smooth = 20_000 + 9000 * np.sin(planes + x) * np.cos(y)
        array[z:z + CHUNK] = smooth + rng.normal(0, 300, smooth.shape)


def onnxpool(way: str, source: Path, target: Path) -> Callable[[], None]:
    """The call of the example."""
    import make

    words = [str(source), str(target), "--axes", "zyx", "--factors", ",".join(map(str, FACTORS)), "--way", way]
    return lambda: make.main([*words, "--chunks", str(CHUNK), "--quiet"])


def ngff_zarr(way: str, source: Path, target: Path) -> Callable[[], None]:
    """The calls of ngff-zarr."""
    import ngff_zarr

    def call() -> None:
        image = ngff_zarr.to_ngff_image(da.from_zarr(source), dims=list("zyx"))
        levels = ngff_zarr.to_multiscales(image, FACTORS, ngff_zarr.Methods[way], chunks=CHUNK, cache=False)
        ngff_zarr.to_ngff_zarr(target, levels, version="0.5")
    return call


def ome_zarr(way: str, source: Path, target: Path) -> Callable[[], None]:
    """The call of ome-zarr."""
    from ome_zarr import scale, writer

    factors = [dict.fromkeys("zyx", factor) for factor in FACTORS]
    return lambda: writer.write_image(da.from_zarr(source), zarr.open_group(target, mode="w"), factors, axes="zyx",
                                      method=scale.Methods[way], storage_options={"chunks": (CHUNK,) * 3})


def run(package: str, way: str, source: Path, target: Path) -> None:
    """Make one pyramid, and print its time in seconds and the memory that it added, in MiB."""
    warnings.simplefilter("ignore")
    dask.config.set(scheduler="sync")
    call = {"onnxpool": onnxpool, "ngff-zarr": ngff_zarr, "ome-zarr": ome_zarr}[package](way, source, target)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    call()
    spent = time.perf_counter() - begin
    print(json.dumps([spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))


def measured(way: tuple[str, str], source: Path, target: Path, repeats: int) -> tuple[float, float]:
    """The shortest time, and the least memory, of some runs."""
    results = []
    for _ in range(repeats):
        shutil.rmtree(target, ignore_errors=True)
        words = [sys.executable, __file__, str(target), "--way", *way, "--source", str(source)]
        done = subprocess.run(words, capture_output=True, text=True, check=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return min(spent for spent, _ in results), min(memory for _, memory in results)


def levels(target: Path) -> list[np.ndarray]:
    """The levels of a pyramid after level 0."""
    group = zarr.open_group(target, mode="r")
    paths: list[Any] = [dataset["path"] for dataset in group.attrs["ome"]["multiscales"][0]["datasets"]]
    return [group[path][...] for path in paths[1:]]


def exact(x: np.ndarray, factor: int) -> np.ndarray:
    """Means of whole and incomplete blocks, rounded to the nearest integer, with ties to even."""
    sums, counts = x.astype(np.int64), np.ones(x.shape, np.int64)
    for axis, n in enumerate(x.shape):
        sums, counts = (np.add.reduceat(a, range(0, n, factor), axis) for a in (sums, counts))
    return np.rint(sums / counts).astype(x.dtype)


def told(y: np.ndarray, truth: np.ndarray) -> str:
    """How a level differs from the exact means."""
    common = tuple(slice(0, min(sizes)) for sizes in zip(y.shape, truth.shape, strict=True))
    away = np.abs(y[common].astype(np.int64) - truth[common].astype(np.int64))
    shape = "" if y.shape == truth.shape else f"{'x'.join(map(str, y.shape))}: "
    return shape + (f"{(away > 0).mean():.0%} differ, by up to {away.max()}" if away.any() else "equal")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--way", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.way:
        run(*given.way, given.source, given.folder)
        return
    names = ("numpy", "zarr", "dask", "ngff-zarr", "ome-zarr")
    print(f"Python {platform.python_version()}, " + ", ".join(f"{n} {importlib.metadata.version(n)}" for n in names))
    for shape in (LARGE, ODD):
        source = given.folder / f"{shape[0]}.zarr"
        if not source.exists():
            volume(source, shape)
    x = zarr.open_array(given.folder / f"{ODD[0]}.zarr", mode="r")[...]
    truths = [exact(x, factor) for factor in FACTORS]
    print("\n| method | s | MiB | level 1 | level 2 | level 3 |\n|---|---|---|---|---|---|")
    for way in WAYS:
        spent, memory = measured(way, given.folder / f"{LARGE[0]}.zarr", given.folder / "large.ome.zarr", given.repeats)
        odd = given.folder / "odd.ome.zarr"
        measured(way, given.folder / f"{ODD[0]}.zarr", odd, 1)
        cells = " | ".join(told(y, truth) for y, truth in zip(levels(odd), truths, strict=True))
        print(f"| {', '.join(way)} | {spent:.1f} | {memory:.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
