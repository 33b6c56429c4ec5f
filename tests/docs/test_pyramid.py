"""The example that makes pyramids: three ways to the same bits, OME-Zarr that others read, and resumption."""

import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxpool

if sys.platform == "win32":
    pytest.skip("the example is for POSIX", allow_module_level=True)
pytest.importorskip("dask.array")
pytest.importorskip("zarr", "3.0")

import dask
import make
import target as targets
import zarr
from pyramid import Pyramid, PyramidError, halvings
from source import Source
from ways import Pass, in_memory, in_stream, passes, with_dask

PROGRAM = Path(make.__file__)
MIB = 1 << 20
DTYPES = ("uint8", "int16", "uint16", ">u2", "int64", "uint64", "float16", "float32", "float64", ">f4")
EXACT = {"max": np.max, "min": np.min}
WAYS = {"memory": in_memory, "stream": in_stream, "dask": with_dask}
linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array over the whole range of integers, or of floats of several magnitudes."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 6, shape)).astype(dtype)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, kind.newbyteorder("="), endpoint=True).astype(dtype)


def saved(x: np.ndarray, path: Path, chunks: tuple[int, ...] | None = None, version: int = 3) -> Source:
    """The array in a file: .npy without chunks, zarr with chunks."""
    if chunks is None:
        np.save(path.with_suffix(".npy"), x)
        return Source(path.with_suffix(".npy"))
    array = zarr.create_array(path.with_suffix(".zarr"), shape=x.shape, dtype=x.dtype, chunks=chunks, zarr_format=version)
    array[...] = x
    return Source(path.with_suffix(".zarr"))


def made(way: Any, pyramid: Pyramid, source: Source, path: Path, **options: Any) -> list[np.ndarray]:
    """All levels, as zarr reads them back."""
    with targets.opened(path, pyramid, source.facts, quiet=True) as target:
        way(pyramid, source, target, **options)
    group = zarr.open_group(path, mode="r")
    return [group[str(number)][...] for number in range(len(pyramid.levels))]


def windows(x: np.ndarray, factors: tuple[int, ...]) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The number of blocks along each axis, and the elements of each block; blocks at the ends may be smaller."""
    counts = tuple(math.ceil(n / f) for n, f in zip(x.shape, factors, strict=True))
    return counts, [x[tuple(slice(i * f, (i + 1) * f) for i, f in zip(index, factors, strict=True))]
                    for index in np.ndindex(counts)]


def expected(x: np.ndarray, factors: tuple[int, ...], method: str) -> np.ndarray:
    """A level of integers, or of maxima or minima, block by block, by exact arithmetic."""
    counts, blocks = windows(x, factors)
    if method == "mean":
        values: list[Any] = [round(Fraction(sum(block.ravel().tolist()), block.size)) for block in blocks]
    else:
        values = [EXACT[method](block) for block in blocks]
    return np.array(values, x.dtype.newbyteorder("=")).reshape(counts)


def assert_mean(y: np.ndarray, x: np.ndarray, factors: tuple[int, ...]) -> None:
    """The means of blocks of floats are close to the exact ones."""
    counts, blocks = windows(x, factors)
    assert y.shape == counts
    assert y.dtype == x.dtype.newbyteorder("=")
    for value, block in zip(y.ravel().tolist(), blocks, strict=True):
        elements = block.ravel().tolist()
        scale = math.fsum(map(abs, elements)) / block.size
        assert abs(value - math.fsum(elements) / block.size) <= (block.size + 1) * np.finfo(x.dtype).eps * scale


def random_case(rng: random.Random) -> dict[str, Any]:
    """The description of a small pyramid, and how its source is stored."""
    axes = rng.choice(["yx", "zyx", "tyx", "czyx", "tcyx", "tczyx"])
    shape = tuple(rng.randint(1, 3 if name in "tc" else 21) for name in axes)
    factors = [tuple(1 for _ in axes)]
    for _ in range(rng.randint(1, 3)):
        grow = [1 if name in "tc" else rng.choice([1, 2, 2, 3]) for name in axes]
        grow[-1] += max(grow) == 1
        steps = [rng.choice([f * g, f + g - 1]) for f, g in zip(factors[-1], grow, strict=True)]
        factors.append(tuple(steps))
    chunks = tuple(1 if name in "tc" else rng.randint(2, 7) for name in axes)
    return {"shape": shape, "dtype": rng.choice(DTYPES), "axes": axes, "factors": factors[1:],
            "method": rng.choice(["mean", "mean", "max", "min"]), "chunks": chunks,
            "shards": rng.choice([None, tuple(2 * n for n in chunks)])}


@pytest.mark.parametrize("seed", range(24))
def test_three_ways_to_the_same_bits(seed: int, tmp_path: Path) -> None:
    """All ways agree with an independent computation, for .npy files and zarr arrays of both versions."""
    rng = random.Random(seed)
    given = random_case(rng)
    x = random_array(np.random.default_rng(seed), given["shape"], given["dtype"])
    if seed % 4 == 3:
        x = np.asfortranarray(x)
    pyramid = Pyramid(**given)
    stored = [saved(x, tmp_path / "x"), saved(x, tmp_path / "x", tuple(rng.randint(1, n) for n in x.shape), 2 + seed % 2)]
    least = next(n for n in range(0, MIB, 256) if not_refused(pyramid, stored[1], n))
    results = [made(in_memory, pyramid, stored[0], tmp_path / "memory.zarr"),
               *(made(in_stream, pyramid, source, tmp_path / f"stream{i}{n}.zarr", max_bytes=n)
                 for i, source in enumerate(stored) for n in (least, MIB)),
               made(with_dask, pyramid, stored[seed % 2], tmp_path / "dask.zarr")]
    for number, level in enumerate(pyramid.levels):
        first = results[0][number]
        assert all(y[number].dtype == first.dtype and y[number].tobytes() == first.tobytes() for y in results)
        if pyramid.method == "mean" and x.dtype.kind == "f":
            assert_mean(first, x, level.factors)
        else:
            y = expected(x, level.factors, pyramid.method)
            assert (y.dtype, y.shape, y.tobytes()) == (first.dtype, first.shape, first.tobytes())
    assert results[0][0].tobytes() == x.astype(pyramid.dtype).tobytes()


def not_refused(pyramid: Pyramid, source: Source, max_bytes: int) -> bool:
    """Whether a stream can work with so little memory."""
    try:
        return bool(list(passes(pyramid, source.grain, max_bytes)))
    except PyramidError:
        return False
