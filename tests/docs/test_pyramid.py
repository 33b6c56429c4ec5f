"""examples/pyramid.py: levels are exact, others read them, memory is bounded, and a killed run continues."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxpool import average_pool as pooled

zarr = pytest.importorskip("zarr", "3.0")
with warnings.catch_warnings(action="ignore"):  # ome-zarr makes an object of a class that it deprecates
    pytest.importorskip("ome_zarr.writer")
import pyramid as example  # noqa: E402

OPTIONS = ["--axes", "zyx", "--factors", "2", "8", "--chunks", "128"]
LIMIT, LARGE = 384, (256, 1024, 1024)  # MiB for a process, of which libraries take 252; a volume of 512 MiB
EXACT: dict[str, Any] = {"mean": lambda block: round(Fraction(sum(block.ravel().tolist()), block.size)),
                         "max": np.max, "min": np.min}


def saved(x: np.ndarray, path: Path, chunks: tuple[int, ...] | None = None, version: int = 3) -> Path:
    """The array in a file: .npy without chunks, zarr with chunks."""
    if chunks is None:
        np.save(path.with_suffix(".npy"), x)
        return path.with_suffix(".npy")
    zarr.create_array(path, shape=x.shape, dtype=x.dtype, chunks=chunks, zarr_format=version)[...] = x
    return path


def level(path: Path, number: int) -> np.ndarray:
    """A level, as zarr reads it."""
    return zarr.open_array(path / str(number), mode="r")[...]


def exact(x: np.ndarray, factors: tuple[int, ...], method: str) -> np.ndarray:
    """A level, block by block, by exact arithmetic; blocks at the ends may be smaller."""
    y = np.empty([-(-n // f) for n, f in zip(x.shape, factors, strict=True)], x.dtype.newbyteorder("="))
    for index in np.ndindex(y.shape):
        y[index] = EXACT[method](x[tuple(slice(i * f, (i + 1) * f) for i, f in zip(index, factors, strict=True))])
    return y


@pytest.mark.parametrize(("shape", "axes", "factors", "dtype", "method", "chunks", "shards"), [
    ((37, 41), "yx", ((2, 2), (4, 4), (7, 11)), "uint8", "mean", (8, 8), None),
    ((9, 17, 14), "zyx", ((1, 2, 2), (2, 4, 3)), ">u2", "mean", (3, 4, 5), (6, 8, 5)),
    ((2, 3, 12, 9), "tcyx", ((1, 1, 3, 2),), "int64", "max", (1, 1, 4, 4), None),
    ((11, 13, 17), "cyx", ((1, 5, 1), (2, 5, 32)), "float32", "min", (2, 7, 7), (4, 7, 14)),
    ((23, 31), "yx", ((3, 2),), "int8", "mean", (64, 64), None),
])
@pytest.mark.parametrize("version", [None, 2, 3])
def test_levels_are_exact(shape: Any, axes: str, factors: Any, dtype: str, method: str, chunks: Any, shards: Any,
                          version: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels equal an independent computation, whatever file holds the source."""
    monkeypatch.setattr(example, "BOX", 2048)
    x = (np.random.default_rng(1).standard_normal(shape) * 2000).astype(dtype)
    source = saved(x, tmp_path / "x", version and tuple(-(-n // 2) for n in shape), version or 3)
    example.pyramid(source, tmp_path / "y", axes, factors, method=method, chunks=chunks, shards=shards)
    for number, given in enumerate([(1,) * x.ndim, *factors]):
        y, right = level(tmp_path / "y", number), exact(x, given, method)
        assert (y.dtype, y.shape, y.tobytes()) == (right.dtype, right.shape, right.tobytes())


def test_others_read_it(tmp_path: Path) -> None:
    """ngff-zarr, ome-zarr and the specification's models find levels, units and the centres of blocks."""
    ngff_zarr, models = pytest.importorskip("ngff_zarr"), pytest.importorskip("ome_zarr_models.v05")
    from ome_zarr import io, reader

    source, path = saved(np.arange(9 * 20 * 30).reshape(9, 20, 30), tmp_path / "x"), tmp_path / "v.ome.zarr"
    example.main([str(source), str(path), "--axes", "zyx", "--factors", "1,2,2", "4", "--scale", "2,0.5,0.5",
                  "--unit", "micrometer", "--chunks", "8"])
    position = np.arange(30) * 0.5
    for number, (image, factor) in enumerate(zip(ngff_zarr.from_ngff_zarr(path).images, (1, 2, 4), strict=True)):
        assert np.array_equal(image.data.compute(), level(path, number))
        assert image.scale == {"z": (2.0, 2.0, 8.0)[number], "y": 0.5 * factor, "x": 0.5 * factor}
        assert image.translation["x"] == position[:factor].mean()
        assert set(image.axes_units.values()) == {"micrometer"}
    (node,) = reader.Reader(io.parse_url(path))()
    assert [data.shape for data in node.data] == [(9, 20, 30), (9, 10, 15), (3, 5, 8)]
    (multiscale,) = models.Image.from_zarr(zarr.open_group(path, mode="r")).ome_attributes.multiscales
    assert (multiscale.name, {(axis.type, axis.unit) for axis in multiscale.axes}) == ("v", {("space", "micrometer")})


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
@pytest.mark.parametrize("chunks", [pytest.param(None, marks=pytest.mark.slow), (4, 512, 512)])
def test_memory_is_bounded_and_a_killed_run_continues(chunks: tuple[int, ...] | None, tmp_path: Path) -> None:
    """The volume exceeds what the process may allocate. Files that a killed run left are whole, and not made again."""
    import resource

    source, target, partial = tmp_path / "x.npy", tmp_path / "y.zarr", tmp_path / "y.zarr.partial"
    x: Any = np.lib.format.open_memmap(source, "w+", np.uint16, LARGE)  # sparse, with numbers here and there
    if chunks:
        source = tmp_path / "x.zarr"
        x = zarr.create_array(source, shape=LARGE, dtype=np.uint16, chunks=chunks)
    for z in range(0, LARGE[0], 64):
        x[z] = np.random.default_rng(z).integers(0, 65536, LARGE[1:], np.uint16)
    words = [sys.executable, str(example.__file__), str(source), str(target), *OPTIONS]
    limited: Any = {"env": os.environ | {"OPENBLAS_NUM_THREADS": "1"}, "stderr": subprocess.PIPE,
                    "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_DATA, (LIMIT << 20,) * 2)}

    def made() -> dict[Path, int]:
        return {path.relative_to(partial): path.stat().st_mtime_ns for path in partial.glob("?/c/*/*/*[!l]")}

    for count in (20, 70):  # files until the kill
        with subprocess.Popen(words, **limited) as process:
            while len(made()) < count:
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.01)
            time.sleep(random.Random(count).random() / 20)
            process.send_signal(signal.SIGKILL)
    before = made()
    (partial / "0" / "c" / "torn.partial").write_bytes(b"torn")
    subprocess.run(words, check=True, **limited)
    after = {path.relative_to(target): path.stat().st_mtime_ns for path in target.glob("?/c/*/*/*")}
    assert 70 <= len(before) < len(after)
    assert before.items() <= after.items()
    assert not [*tmp_path.rglob("*.partial")]
    whole = x[...]
    assert whole.nbytes > LIMIT << 20
    for number, f in enumerate((1, 2, 8)):
        assert np.array_equal(level(target, number), pooled(whole, f, strides=f, axes=(0, 1, 2), dtype=x.dtype))


def test_refusals(tmp_path: Path) -> None:
    """Names in use, other arguments, a changed source and values that fit no axes are refused, and nothing is lost."""
    source, target = saved(np.arange(30, dtype=np.uint8).reshape(5, 6), tmp_path / "x", (2, 3)), tmp_path / "y"
    for axes, factors, options in (("zyx", [(2, 2)], {}), ("yx", [(2, 2, 2)], {}), ("yx", [(2, 2)], {"scale": [1.0]})):
        with pytest.raises(ValueError, match="must have one value for each of the axes"):
            example.pyramid(source, target, axes, factors, **options)
    with pytest.raises(ValueError, match="lies inside the source"):
        example.pyramid(source, source / "y", "yx", [(2, 2)])
    assert sorted(tmp_path.iterdir()) == [source]
    with pytest.raises(ValueError, match="kernel_shape"):
        example.pyramid(source, target, "yx", [(2, 2), (2, 0)])
    with pytest.raises(ValueError, match=r"was begun as .*; remove it to start again"):
        example.pyramid(source, target, "yx", [(2, 2)])
    saved(np.zeros((2, 2), np.uint8), source / "more")
    with pytest.raises(ValueError, match=r"was begun as .*; remove it to start again"):
        example.pyramid(source, target, "yx", [(2, 2), (2, 0)])
    example.pyramid(source, tmp_path / "z", "yx", [(2, 2)])
    with pytest.raises(FileExistsError, match="choose another name"):
        example.pyramid(source, tmp_path / "z", "yx", [(2, 2)])
