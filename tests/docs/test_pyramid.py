"""The example that makes pyramids: three ways to the same bits, OME-Zarr that others read, and resumption."""

import dataclasses
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
import ways
import zarr
from pyramid import Pyramid, PyramidError, halvings
from source import Source
from ways import in_memory, in_stream, passes, with_dask

PROGRAM = Path(make.__file__)
MIB = 1 << 20
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each of its threads allocates memory, and none is used
DTYPES = ("uint8", "int16", "uint16", ">u2", "int64", "uint64", "float16", "float32", "float64", ">f4")
EXACT = {"max": np.max, "min": np.min}
WAYS = {"memory": in_memory, "stream": in_stream, "dask": with_dask}
linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


@pytest.fixture(autouse=True)
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of tests are small, so that boxes need to be small for there to be several."""
    monkeypatch.setattr(ways, "ENOUGH", 256)


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
    path = path.with_suffix(".zarr")
    zarr.create_array(path, shape=x.shape, dtype=x.dtype, chunks=chunks, zarr_format=version)[...] = x
    return Source(path)


def made(way: Any, pyramid: Pyramid, source: Source, path: Path, sync: bool = False, **options: Any
         ) -> list[np.ndarray]:
    """All levels, as zarr reads them back."""
    with targets.opened(path, pyramid, source.facts, sync=sync, quiet=True) as target:
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
    shape = tuple(rng.randint(1, 3 if name in "tc" else 17) for name in axes)
    factors = [tuple(1 for _ in axes)]
    for _ in range(rng.randint(1, 3)):
        grow = [1 if name in "tc" else rng.choice([1, 2, 2, 3]) for name in axes]
        grow[-1] += max(grow) == 1
        steps = [rng.choice([f * g, f + g - 1]) for f, g in zip(factors[-1], grow, strict=True)]
        factors.append(tuple(steps))
    chunks = tuple(1 if name in "tc" else rng.randint(3, 7) for name in axes)
    return {"shape": shape, "dtype": rng.choice(DTYPES), "axes": axes, "factors": factors[1:],
            "method": rng.choice(["mean", "mean", "max", "min"]), "chunks": chunks,
            "shards": rng.choice([None, tuple(2 * n for n in chunks)])}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))])
def test_three_ways_to_the_same_bits(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways agree with an independent computation, for .npy files and zarr arrays of both versions."""
    rng = random.Random(seed)
    given = random_case(rng)
    x = random_array(np.random.default_rng(seed), given["shape"], given["dtype"])
    monkeypatch.setattr(ways, "ENOUGH", 2 ** rng.randint(4, 10))
    if seed % 4 == 3:
        x = np.asfortranarray(x)
    pyramid = Pyramid(**given)
    chunks = tuple(rng.randint(1, n) for n in x.shape)
    stored = [saved(x, tmp_path / "x"), saved(x, tmp_path / "x", chunks, 2 + seed % 2)]
    least = next(n for n in range(256, MIB, 256) if all(not_refused(pyramid, source, n) for source in stored))
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
        return bool(passes(pyramid, source, max_bytes))
    except PyramidError:
        return False


VOLUME = Pyramid((37, 41, 45), "uint16", "zyx", ((1, 2, 2), (2, 4, 4), (4, 8, 8)), "mean", (8, 8, 8),
                 scale=(2, 0.5, 0.5), units=("micrometer",) * 3)


@pytest.fixture
def volume(tmp_path: Path) -> Source:
    """The source of `VOLUME`."""
    return saved(random_array(np.random.default_rng(1), VOLUME.shape, "uint16"), tmp_path / "volume")


class Counted(Source):
    """A source that counts the elements read."""

    def __getitem__(self, box: Any) -> np.ndarray:
        x = super().__getitem__(box)
        COUNTS.append(x.size)
        return x


COUNTS: list[int] = []


def test_a_stream_reads_each_element_once(volume: Source, tmp_path: Path) -> None:
    """If files of all levels fit, all levels are computed in one pass; otherwise, each pass reads everything."""
    for max_bytes, reads in ((MIB, 1), (20000, 1), (12000, 2)):
        COUNTS.clear()
        made(in_stream, VOLUME, Counted(volume.path), tmp_path / f"{max_bytes}.zarr", max_bytes=max_bytes)
        assert sum(COUNTS) == reads * math.prod(VOLUME.shape)


def test_factors_that_do_not_divide_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels with factors 3 and 7 share a pass if there is memory, and have their own otherwise."""
    monkeypatch.setattr(ways, "ENOUGH", 16)
    pyramid = Pyramid((64, 64), "uint8", "yx", ((3, 1), (7, 5)), "max", (8, 8))
    source = saved(np.zeros((64, 64), np.uint8), tmp_path / "x")
    assert [len(passes(pyramid, source, n)) for n in (20000, 3000, 700)] == [1, 2, 3]


@pytest.mark.parametrize(("shape", "axes", "chunks", "shards", "limit"), [
    ((301, 513, 517), "zyx", (64,) * 3, (256,) * 3, None), ((301, 513, 517), "zyx", (256,) * 3, None, None),
    ((301, 513, 517), "zyx", (256,) * 3, None, 900), ((301, 513, 517), "zyx", (256,) * 3, None, 300),
    ((301, 513, 517), "zyx", (64,) * 3, (512,) * 3, 1300), ((8192, 8192), "yx", (512,) * 2, (4096,) * 2, None)])
@pytest.mark.parametrize("grain", [None, (50, 100, 517)])
def test_boxes_of_a_useful_size(shape: tuple[int, ...], axes: str, chunks: tuple[int, ...], grain: Any,
                                shards: tuple[int, ...] | None, limit: int | None, tmp_path: Path,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Large chunks and shards do not shrink the boxes that are read, and boxes keep within the limit."""
    monkeypatch.setattr(ways, "ENOUGH", MIB)
    pyramid = Pyramid(shape, "uint16", axes, halvings(shape, axes, (64,) * len(shape)), "mean", chunks, shards)
    if grain:
        source = stored(shape, grain[-len(shape):], tmp_path)
    else:
        np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint16, shape)  # sparse
        source = Source(tmp_path / "x.npy")
    planned = passes(pyramid, source, limit and limit * MIB)
    assert [number for each in planned for number in each.numbers] == list(range(len(pyramid.levels)))
    for each in planned:
        assert 2 * math.prod(map(min, each.sizes[0], shape)) >= MIB // 2
        assert 2 * math.prod(map(min, each.sizes[0], shape)) <= ways.PART
        if limit:
            assert ways.needed(pyramid, source, each.numbers, each.sizes) <= limit * MIB


def test_boxes_grow_within_a_large_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A box that cannot become a whole shard becomes a part of one that is large enough."""
    monkeypatch.setattr(ways, "ENOUGH", MIB)
    source = stored((8192, 8192), (64, 64), tmp_path)
    (only,) = passes(Pyramid(source.shape, "uint16", "yx", ((2, 2),), "mean", (512, 512), (4096, 4096)), source)
    assert MIB <= 2 * math.prod(only.sizes[0]) <= ways.PART
    assert all(4096 % n == 0 for n in only.sizes[0])


def stored(shape: tuple[int, ...], chunks: tuple[int, ...], folder: Path) -> Source:
    """The source of a zarr array without elements."""
    zarr.create_array(folder / "x.zarr", shape=shape, chunks=chunks, dtype="uint16")
    return Source(folder / "x.zarr")


@pytest.mark.parametrize(("grain", "factors", "chunks", "shards", "way_out"), [
    ((32, 32), 2, 64, 512, r"smaller shards than \(512, 512\)"), ((32, 32), 2, 512, None, "smaller chunks than"),
    ((1024, 1024), 2, 64, None, r"a source with smaller chunks than \(1024, 1024\)"),
    ((32, 32), 1024, 16, None, "smaller factors")])
def test_refusals_tell_what_would_suffice(grain: tuple[int, int], factors: int, chunks: int, shards: int | None,
                                          way_out: str, tmp_path: Path) -> None:
    """The error tells what is too large, and a limit that is higher by what it says is accepted."""
    pyramid = Pyramid((1024, 1024), "uint16", "yx", ((factors,) * 2,), "mean", (chunks,) * 2, shards and (shards,) * 2)
    source = stored(pyramid.shape, grain, tmp_path)
    limit = MIB // 3
    with pytest.raises(PyramidError, match=r"level \d needs \S+ MiB at once, and only 0\.3 MiB are left for it; raise "
                                           rf"the limit by \d+ MiB, or choose {way_out}") as caught:
        passes(pyramid, source, limit)
    limit += int(re.findall(r"by (\d+) MiB", str(caught.value))[0]) * MIB
    assert not_refused(pyramid, source, limit)
    assert not not_refused(pyramid, source, limit - MIB)


@linux
@pytest.mark.parametrize("option", ["--chunks", "--shards"])
def test_limits_that_are_accepted_suffice(option: str, tmp_path: Path) -> None:
    """The command refuses a limit before it creates anything, or memory suffices for what zarr compresses."""
    x = random_array(np.random.default_rng(3), (120, 300, 300), "uint16")
    source = saved(x, tmp_path / "x", (50, 100, 300))
    words = [*command(source.path, tmp_path / "y.zarr", "--quiet", option, "128"), "--limit"]
    limit = 120
    refused = finished([*words, str(limit)])
    assert refused.returncode == 1, refused.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.zarr"]
    while more := re.findall(r"raise the limit by (\d+) MiB", refused.stderr):
        limit += int(more[0]) + 1  # the libraries do not always take the same
        refused = finished([*words, str(limit)])
    assert refused.returncode == 0, refused.stderr
    assert np.array_equal(zarr.open_array(tmp_path / "y.zarr" / "0", mode="r")[...], x)


def test_memory_that_does_not_suffice(volume: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of memory keeps what is finished, and says how to continue."""
    words = [str(volume.path), str(tmp_path / "y.zarr"), "--axes", "zyx", "--chunks", "8", "--quiet"]
    write, count = targets.Target.write, iter(range(3))

    def limited(*given: Any) -> None:
        if next(count, None) is None:
            raise MemoryError
        write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(targets.Target, "write", limited)
        with pytest.raises(SystemExit, match="the memory did not suffice; the same command with --way stream and a"):
            make.main(words)
    assert lines(tmp_path / "y.zarr.partial" / "journal") > 1
    make.main(words)
    assert (tmp_path / "y.zarr").exists()


def test_a_box_opens_the_source_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a zarr array takes longer than reading a small box."""
    source = saved(np.arange(12).reshape(3, 4), tmp_path / "x", (3, 4))
    calls, opened = [], zarr.open
    monkeypatch.setattr(zarr, "open", lambda *given, **options: calls.append(given) or opened(*given, **options))
    assert np.array_equal(source[1:2, 1:3], [[5, 6]])
    assert len(calls) == 1


def test_ngff_zarr_reads_it(volume: Source, tmp_path: Path) -> None:
    """Another reader finds the levels, and where their elements are: the centre of a window is that of its elements."""
    ngff_zarr = pytest.importorskip("ngff_zarr")
    levels = made(in_memory, VOLUME, volume, tmp_path / "volume.ome.zarr")
    read = ngff_zarr.from_ngff_zarr(tmp_path / "volume.ome.zarr")
    assert zarr.open_group(tmp_path / "volume.ome.zarr", mode="r").attrs["ome"]["version"] == "0.5"
    position = np.arange(45) * 0.5
    for image, level, own in zip(read.images, levels, VOLUME.levels, strict=True):
        assert np.array_equal(image.data.compute(), level)
        assert tuple(image.dims) == ("z", "y", "x")
        assert image.scale == {"z": 2.0 * own.factors[0], "y": 0.5 * own.factors[1], "x": 0.5 * own.factors[2]}
        assert image.translation["x"] == position[:own.factors[2]].mean()
        assert image.translation["x"] + image.scale["x"] == position[own.factors[2]:2 * own.factors[2]].mean()
        assert set(image.axes_units.values()) == {"micrometer"}


def test_ome_zarr_reads_it(volume: Source, tmp_path: Path) -> None:
    """The reader of the reference implementation finds the levels, and the models of the specification accept them."""
    io, reader = pytest.importorskip("ome_zarr.io"), pytest.importorskip("ome_zarr.reader")
    models = pytest.importorskip("ome_zarr_models.v05")
    path = tmp_path / "volume.ome.zarr"
    levels = made(in_memory, VOLUME, volume, path)
    (node,) = reader.Reader(io.parse_url(path))()
    assert [np.array_equal(data.compute(), level) for data, level in zip(node.data, levels, strict=True)] == [True] * 4
    assert [axis["name"] for axis in node.metadata["axes"]] == list("zyx")
    (multiscale,) = models.Image.from_zarr(zarr.open_group(path, mode="r")).ome_attributes.multiscales
    assert multiscale.name == "volume"
    assert {(axis.type, axis.unit) for axis in multiscale.axes} == {("space", "micrometer")}


def files(path: Path) -> dict[str, bytes]:
    """All files in a folder."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def spoil(partial: Path) -> int:
    """Put garbage where the journal lists no finished file, as if writes had been cut off; return their number."""
    if lines(partial / "journal") < 2:  # the arrays may be incomplete
        return 0
    groups, spoiled = zarr.open_group(partial / "arrays", mode="r"), 0
    levels = [groups[str(number)] for number in range(len(groups))]
    unlisted = [np.ones([-(-n // unit) for n, unit in zip(level.shape, level.shards or level.chunks, strict=True)],
                        bool) for level in levels]
    for line in (partial / "journal").read_bytes().split(b"\n")[1:-1]:
        entry = json.loads(line)
        unlisted[entry["level"]][tuple(slice(*ends) for ends in entry["files"])] = False
    for number, level in enumerate(unlisted):
        for index in np.argwhere(level):
            path = partial / "arrays" / str(number) / "c" / "/".join(map(str, index))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"half a chunk")
            path.with_name("7.0123.partial").write_bytes(b"half a chunk")
            spoiled += 1
    return spoiled


def command(source: Path, target: Path, *options: str) -> list[str]:
    return [sys.executable, str(PROGRAM), str(source), str(target), "--axes", "zyx", *options]


def finished(words: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=ENVIRONMENT)


def lines(journal: Path) -> int:
    """The number of lines of a journal, if it exists."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def killed(words: list[str], journal: Path, more: int, rng: random.Random) -> bool:
    """Kill a command at a random moment, after it has added some lines to the journal; whether it was still running."""
    enough = max(1, lines(journal)) + more
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    while process.poll() is None and lines(journal) < enough:
        time.sleep(0.001)
    time.sleep(rng.random() / 50)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@linux
@pytest.mark.parametrize(("way", "more", "kills"), [
    ("stream", 9, 3), ("dask", 2, 2), ("memory", 1, 1),
    *(pytest.param(*given, 25, marks=pytest.mark.slow) for given in (("stream", 3), ("dask", 1), ("memory", 0)))])
def test_killed_and_resumed(way: str, more: int, kills: int, tmp_path: Path) -> None:
    """After kills at random moments, every file is that of an undisturbed run, whatever unfinished chunks held."""
    rng = random.Random(f"{way} {kills}")
    x = random_array(np.random.default_rng(2), (72, 300, 422), "uint16")
    source, target = tmp_path / "x.npy", tmp_path / "x.ome.zarr"
    np.save(source, x)
    partial = tmp_path / "x.ome.zarr.partial"
    options = ["--factors", "2,4", "--chunks", "z=12", "y=100", "x=60", "--quiet"]
    words = [*command(source, target, *options), "--way", way, *(["--limit", "125"] if way == "stream" else [])]
    count = spoiled = 0
    while count < kills:
        if killed(words, partial / "journal", rng.randint(0, more), rng):
            count += 1
            spoiled += spoil(partial)
        else:  # it was faster, so a new one begins
            shutil.rmtree(target)
    assert spoiled
    done = finished(command(source, target, *options))
    assert done.returncode == 0, done.stderr
    assert not partial.exists()
    pyramid = Pyramid(x.shape, x.dtype, "zyx", ((2,) * 3, (4,) * 3), "mean", (12, 100, 60))
    made(in_memory, pyramid, Source(source), tmp_path / "whole" / "x.ome.zarr")
    assert files(target) == files(tmp_path / "whole" / "x.ome.zarr")


class StoppedError(Exception):
    """What stops a run."""


def interrupted(source: Source, path: Path, writes: int, pyramid: Pyramid = VOLUME, max_bytes: int | None = 12000,
                **options: Any) -> None:
    """Stop a stream after some writes."""
    def way(pyramid: Pyramid, source: Source, target: targets.Target) -> None:
        write, count = target.write, iter(range(writes))

        def limited(*given: Any) -> None:
            if next(count, None) is None:
                raise StoppedError
            write(*given)

        target.write = limited  # type: ignore[method-assign]
        in_stream(pyramid, source, target, max_bytes)

    with pytest.raises(StoppedError):
        made(way, pyramid, source, path, **options)


def writes_left(source: Source, path: Path) -> int:
    """The number of unfinished files that a resumed run finds."""
    left = []

    def way(pyramid: Pyramid, source: Source, target: targets.Target) -> None:
        left.append(sum(int((~level).sum()) for level in target.finished))
        raise StoppedError

    with pytest.raises(StoppedError):
        made(way, VOLUME, source, path)
    return left[0]


def test_finished_files_are_not_written_again(volume: Source, tmp_path: Path) -> None:
    """A resumed run computes the others only, and leaves nothing but the pyramid."""
    path, whole = tmp_path / "x.zarr", tmp_path / "whole" / "x.zarr"
    interrupted(volume, path, 20)
    begun = files(path.with_name("x.zarr.partial") / "arrays")
    stamps = {name: (path.with_name("x.zarr.partial") / "arrays" / name).stat().st_mtime_ns for name in begun}
    made(in_stream, VOLUME, volume, path)
    assert {name: (path / name).stat().st_mtime_ns for name in begun} == stamps
    made(in_memory, VOLUME, volume, whole)
    assert files(path) == files(whole)
    assert [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name] == []


@pytest.mark.parametrize("sync", [False, True])
def test_a_restart_of_the_machine(sync: bool, volume: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may not have reached the disk is computed again; with sync, nothing is."""
    path = tmp_path / "x.zarr"
    total = sum(math.prod(-(-n // 8) for n in level.shape) for level in VOLUME.levels)
    interrupted(volume, path, 9, sync=sync)
    left = writes_left(volume, path)
    assert left < total
    monkeypatch.setattr(targets, "BOOT", "another boot")
    assert writes_left(volume, path) == (left if sync else total)


def test_torn_shards_are_replaced(tmp_path: Path) -> None:
    """A crash may leave shards that the journal does not list and zarr cannot decode."""
    sharded = dataclasses.replace(VOLUME, shards=tuple(2 * n for n in VOLUME.chunks))
    source = saved(random_array(np.random.default_rng(4), sharded.shape, sharded.dtype.str), tmp_path / "x.npy")
    path, whole = tmp_path / "x.zarr", tmp_path / "whole" / "x.zarr"
    interrupted(source, path, 3, sharded, max_bytes=None)
    assert spoil(tmp_path / "x.zarr.partial") > 0
    made(in_stream, sharded, source, path)
    made(in_memory, sharded, source, whole)
    assert files(path) == files(whole)


@pytest.mark.parametrize(("cut", "garbage"), [
    (1, b""), (30, b"\0" * 9), (30, b"[1]\n"), (0, b'{"level": 9, "files": [[0, 1]], "boot": null}\n')])
def test_a_journal_that_a_crash_cut_off(cut: int, garbage: bytes, volume: Source, tmp_path: Path) -> None:
    """Incomplete lines and lines of garbage count for nothing."""
    path, journal = tmp_path / "x.zarr", tmp_path / "x.zarr.partial" / "journal"
    interrupted(volume, path, 9)
    journal.write_bytes(journal.read_bytes()[:-cut or None] + garbage)
    left = writes_left(volume, path)
    levels = made(in_stream, VOLUME, volume, path)
    assert 0 < left < sum(math.prod(-(-n // 8) for n in level.shape) for level in VOLUME.levels)
    assert all(np.array_equal(level, y) for level, y in
               zip(levels, made(in_memory, VOLUME, volume, tmp_path / "y.zarr"), strict=True))


@pytest.mark.parametrize("first", [b'{"axes": "zy', b"[1]\n", b"{}\n", b"\0" * 30])
def test_a_journal_without_its_first_line(first: bytes, volume: Source, tmp_path: Path) -> None:
    """It does not tell whose the arrays are, so nothing is deleted."""
    path, partial = tmp_path / "x.zarr", tmp_path / "x.zarr.partial"
    interrupted(volume, path, 9)
    (partial / "journal").write_bytes(first)
    before = files(partial)
    with pytest.raises(PyramidError, match=r"journal does not tell what is unfinished, because its first line is not "
                                           r"whole; remove \S*x\.zarr\.partial to start anew"):
        made(in_stream, VOLUME, volume, path)
    assert files(partial) == before


@pytest.mark.parametrize("when", ["created", "claimed", "named"])
def test_runs_that_stop_early(when: str, volume: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a journal, with a journal alone, and one whose arrays are gone are begun anew."""
    path, partial = tmp_path / "x.zarr", tmp_path / "x.zarr.partial"
    if when == "created":
        partial.mkdir()
    elif when == "claimed":
        with monkeypatch.context() as patch:
            patch.setattr(targets, "created", lambda *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                made(in_memory, VOLUME, volume, path)
    else:
        stopped_at_the_end(volume, path, monkeypatch)
        shutil.rmtree(path)
    levels = made(in_stream, VOLUME, volume, path)
    assert np.array_equal(levels[0], np.load(volume.path))
    assert not partial.exists()


def stopped_at_the_end(source: Source, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop a run just after the arrays get their final name."""
    synced = targets.synced

    def stop(*paths: Path) -> None:
        if path.exists():
            raise StoppedError
        synced(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(targets, "synced", stop)
        with pytest.raises(StoppedError):
            made(in_memory, VOLUME, source, path)
    assert path.exists()
    assert [entry.name for entry in path.with_name(path.name + ".partial").iterdir()] == ["journal"]


def test_the_same_command_after_the_last_step(volume: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    """A pyramid that got its name before a kill is complete, unless the command asks for another one."""
    path = tmp_path / "x.zarr"
    words = [str(volume.path), str(path), "--axes", "zyx", "--factors", "z=1,2,4", "y=2,4,8", "x=2,4,8", "--chunks",
             "8", "--scale", "z=2", "y=0.5", "x=0.5", "--units", "micrometer", "--quiet"]
    stopped_at_the_end(volume, path, monkeypatch)
    make.main(words)
    assert capsys.readouterr().err == f"make.py: {path} is complete\n"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["volume.npy", "x.zarr"]
    shutil.rmtree(path)
    stopped_at_the_end(volume, path, monkeypatch)
    with pytest.raises(SystemExit, match=r"x\.zarr exists; choose another name"):
        make.main([*words, "--method", "max"])


@pytest.mark.parametrize("entries", [["mine"], ["arrays/mine"], ["journal", "arrays/mine"], ["journal", "mine"]])
@pytest.mark.parametrize("taken", [False, True])
def test_files_of_others_stay(taken: bool, entries: list[str], volume: Source, tmp_path: Path) -> None:
    """Nothing is deleted that no journal of the program claims."""
    path, partial = tmp_path / "x.zarr", tmp_path / "x.zarr.partial"
    for entry in entries:
        (partial / entry).parent.mkdir(parents=True, exist_ok=True)
        (partial / entry).write_text("" if entry == "journal" else "of others")
    if taken:
        path.mkdir()
    before = files(tmp_path)
    with pytest.raises(PyramidError, match=r"x\.zarr\.partial holds .*, which this program did not create; move it"):
        made(in_memory, VOLUME, volume, path)
    assert files(tmp_path) == before


def test_targets_that_make_no_sense(volume: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are none, links to nothing, files in the way, and folders inside the source."""
    source = saved(np.load(volume.path), tmp_path / "s", (10, 41, 45))
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "y.partial").write_text("a file")
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path)
    for name, error in ((".", r"\. is no name for a new folder"), ("..", r"\.\. is no name"), ("link", "link exists"),
                        ("y", r"y\.partial, where this program would work, is no folder"),
                        ("s.zarr/0", r"s\.zarr/0 lies inside the source"), ("s.zarr", "lies inside the source")):
        with pytest.raises(SystemExit, match=f"^make.py: .*{error}"):
            make.main([str(source.path), name, "--axes", "zyx", "--quiet"])
        assert files(tmp_path) == before


def test_other_pyramids_are_refused(volume: Source, tmp_path: Path) -> None:
    """An unfinished pyramid of another source, of a changed source or with other parameters is not continued."""
    path = tmp_path / "x.zarr"
    interrupted(volume, path, 3)
    other = dataclasses.replace(VOLUME, method="max")
    with pytest.raises(PyramidError, match=r"x\.zarr\.partial holds another unfinished pyramid: method was 'mean' and "
                                           r"is 'max'; finish it with what it was begun with, or remove the folder"):
        made(in_stream, other, volume, path)
    copy = saved(np.load(volume.path), tmp_path / "copy")
    with pytest.raises(PyramidError, match=r"source was '\S*volume\.npy' and is '\S*copy\.npy'"):
        made(in_stream, VOLUME, copy, path)
    os.utime(volume.path, ns=(1, 1))
    with pytest.raises(PyramidError, match=r"the source changed since .* was begun: source modified was"):
        made(in_stream, VOLUME, volume, path)


def test_a_source_that_changes_meanwhile(tmp_path: Path) -> None:
    """A pyramid of two states of its source gets no name."""
    x = random_array(np.random.default_rng(1), VOLUME.shape, "uint16")
    source, path = saved(x, tmp_path / "x", (10, 41, 45)), tmp_path / "y.zarr"

    def way(pyramid: Pyramid, source: Source, target: targets.Target) -> None:
        in_memory(pyramid, source, target)
        zarr.open_array(source.path)[3, 4, 5] = 7

    with pytest.raises(PyramidError, match=r"the source changed since .* was begun: .*source modified was"):
        made(way, VOLUME, source, path)
    assert not path.exists()


def test_names_that_are_taken(volume: Source, tmp_path: Path) -> None:
    """A finished pyramid is not overwritten, and two processes do not write the same one."""
    path = tmp_path / "x.zarr"

    def way(pyramid: Pyramid, source: Source, target: targets.Target) -> None:
        with pytest.raises(PyramidError, match=r"another process writes \S*x\.zarr\.partial"):
            made(in_stream, pyramid, source, path)
        in_memory(pyramid, source, target)

    assert len(made(way, VOLUME, volume, path)) == 4
    (tmp_path / "x.zarr.partial").mkdir()  # as after a kill between the last two steps
    with pytest.raises(PyramidError, match=r"x\.zarr exists; choose another name, or remove it to make it anew"):
        made(in_memory, VOLUME, volume, path)
    assert not (tmp_path / "x.zarr.partial").exists()


def test_incomplete_pyramids_get_no_name(volume: Source, tmp_path: Path) -> None:
    """Without all files, there is an error."""
    with pytest.raises(PyramidError, match=r"\d+ files of \S*x\.zarr\.partial are missing; run the same command again"):
        made(lambda *given: None, VOLUME, volume, tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()


def test_dask_in_other_processes(volume: Source, tmp_path: Path) -> None:
    """Tasks may run in other processes, which open the files anew."""
    with dask.config.set(scheduler="processes", num_workers=2):
        levels = made(with_dask, VOLUME, volume, tmp_path / "x.zarr")
    assert all(np.array_equal(level, y) for level, y in
               zip(levels, made(in_memory, VOLUME, volume, tmp_path / "y.zarr"), strict=True))


LIMIT, SIZE = 170, 200  # MiB that the process may allocate, and MiB of the volume


@linux
@pytest.mark.parametrize("chunks", [None, (4, 512, 512)])
def test_larger_than_the_limit(chunks: tuple[int, ...] | None, tmp_path: Path) -> None:
    """The pyramid of a volume larger than what the process may allocate is killed, and resumed."""
    shape = (SIZE, 512, 1024)
    source, target = tmp_path / "x.npy", tmp_path / "y.ome.zarr"
    x: Any = np.lib.format.open_memmap(source, "w+", np.uint16, shape)  # sparse, with numbers here and there
    if chunks:
        source = tmp_path / "x.zarr"
        x = zarr.create_array(source, shape=shape, dtype=np.uint16, chunks=chunks)
    for i in range(0, SIZE, 40):
        x[i] = random_array(np.random.default_rng(i), shape[1:], "uint16")
    words = command(source, target, "--factors", "2,4,8", "--chunks", "128", "--limit", str(LIMIT))
    assert killed(words, tmp_path / "y.ome.zarr.partial" / "journal", 9, random.Random(str(chunks)))
    assert spoil(tmp_path / "y.ome.zarr.partial")
    done = finished(words)
    assert done.returncode == 0, done.stderr
    first = int(re.findall(r"(\d+)/\d+ \[", done.stderr)[0])
    assert first > 0
    whole = x[...]
    assert whole.nbytes > LIMIT * MIB
    for number, factor in enumerate((1, 2, 4, 8)):
        y = zarr.open_array(target / str(number), mode="r")[...]
        assert np.array_equal(y, onnxpool.average_pool(whole, factor, strides=factor, axes=(0, 1, 2), dtype=np.uint16))


@linux
def test_the_limit_is_enforced(tmp_path: Path) -> None:
    """With this limit, the whole array does not fit in memory; and there are limits that even libraries exceed."""
    source = tmp_path / "x.npy"
    np.lib.format.open_memmap(source, "w+", np.uint16, (SIZE, 512, 1024))
    program = (f"import sys, numpy; sys.path.insert(0, {str(PROGRAM.parent)!r}); import make; make.limited({LIMIT}); "
               f"numpy.load({str(source)!r})")
    done = finished([sys.executable, "-c", program])
    assert done.returncode != 0
    assert "MemoryError" in done.stderr
    words = command(source, tmp_path / "y.zarr", "--limit", "60")
    done = finished(words)
    assert (done.returncode, "the libraries and their threads alone take" in done.stderr) == (1, True)
    assert not (tmp_path / "y.zarr.partial").exists()


def test_options_describe_a_pyramid(volume: Source, tmp_path: Path) -> None:
    """Values for all axes of space, and values with names; by default, axes longer than a chunk are halved."""
    words = [str(volume.path), str(tmp_path / "a.zarr"), "--axes", "zyx", "--quiet", "--factors", "z=1,2,4", "y=2,4,8",
             "x=2,4,8", "--chunks", "8", "--scale", "z=2", "y=0.5", "x=0.5", "--units", "micrometer"]
    make.main(words)
    made(in_memory, VOLUME, volume, tmp_path / "b" / "a.zarr")
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b" / "a.zarr")
    assert halvings((37, 100, 60, 129), "tzyx", (1, 64, 64, 64)) == ((1, 2, 1, 2), (1, 2, 1, 4))


@pytest.mark.parametrize(("options", "error"), [
    (["--axes", "yx"], r"--axes yx names 2 axes, but \S*volume\.npy has the shape \(37, 41, 45\)"),
    (["--axes", "xyz"], "axes='xyz' are not those of OME-Zarr"),
    (["--axes", "tcx"], "axes='tcx' are not those of OME-Zarr"),
    (["--factors", "2,x"], r"--factors 2,x: 2,x is neither the only value, .* nor one for an axis of 'zyx', such"),
    (["--factors", "2", "x=4"], "--factors 2 x=4: 2 is neither the only value"),
    (["--factors", "w=2"], "--factors w=2: w=2 is neither"),
    (["--factors", "y=2,4", "x=2"], "all axes need the same number of levels"),
    (["--factors", "2,2"], r"level 2: factors \(2, 2, 2\) after \(2, 2, 2\): factors never decrease"),
    (["--factors", "4,2"], r"level 2: factors \(2, 2, 2\) after \(4, 4, 4\): factors never decrease"),
    (["--factors", "0,2"], r"level 1: factors \(0, 0, 0\) after \(1, 1, 1\): factors never"),
    (["--chunks", "0"], "axis z: chunks and shards must be at least 1 long"),
    (["--chunks", "8", "--shards", "12"], "axis z: shards of 12 are not whole chunks of 8"),
    (["--scale", "-1"], r"axis z: scale -1\.0 is not a positive number"),
    (["--scale", "y=nan"], "axis y: scale nan is not a positive number"),
    (["--axes", "CYX"], "axes='CYX' are not those of OME-Zarr"),
    (["--factors", "z=2", "z=4"], "--factors z=2 z=4: axis z has two values"),
    (["--chunks", "8", "16"], "--chunks 8 16: 8 is neither the only value"),
    (["--limit", "-5"], "--limit -5: the libraries and their threads alone take"),
    (["--limit", "300", "--way", "dask"], "--limit is for --way stream, not for --way dask"),
])
def test_options_that_make_no_sense(options: list[str], error: str, volume: Source, tmp_path: Path) -> None:
    """Each gets an error that names the option, the axis and the value, and leaves no files."""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit, match=f"^make.py: .*{error}"):
        make.main([str(volume.path), str(tmp_path / "y.zarr"), "--axes", "zyx", *options])
    assert sorted(tmp_path.iterdir()) == before


def test_sources_that_make_no_sense(tmp_path: Path) -> None:
    """Files that are not there or not arrays, groups, empty arrays, and dtypes that do not suit the method."""
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "folder").mkdir()
    np.savez(tmp_path / "many.npz", np.zeros(3))
    np.save(tmp_path / "bfloat16.npy", np.zeros(3, "V2"))
    zarr.create_group(tmp_path / "group.zarr").create_array("7", shape=(2, 2), dtype="u1")
    for name, error in (("none.npy", "does not exist"), ("text.npy", "is neither a .npy file nor the folder of a zarr"),
                        ("folder", "is neither a .npy"), ("many.npz", "is neither a .npy file nor"),
                        ("bfloat16.npy", "holds |V2, which is no number; .* bfloat16, so store them as float32"),
                        ("group.zarr", "is a zarr group; choose one of .*: 7")):
        with pytest.raises(PyramidError, match=error):
            Source(tmp_path / name)
    for shape, dtype, method, error in (((0, 3), "u1", "max", r"axis y is empty \(size 0\)"),
                                        ((3, 3), "?", "mean", "a mean of bool is not bool; choose the method max or"),
                                        ((3, 3), "u1", "median", "method='median' is none of mean, max, min")):
        with pytest.raises(PyramidError, match=error):
            Pyramid(shape, dtype, "yx", ((2, 2),), method, (2, 2))
    with pytest.raises(onnxpool.PoolTypeError, match="complex128 is not accepted"):
        Pyramid((3, 3), complex, "yx", ((2, 2),), "max", (2, 2))
    with pytest.raises(PyramidError, match=r"chunks=\(2,\) must have one value for each of the axes 'yx'"):
        Pyramid((3, 3), "u1", "yx", ((2, 2),), "max", (2,))
    with pytest.raises(PyramidError, match=r"level 1: factors \(2,\) must be one for each of the axes 'yx'"):
        Pyramid((3, 3), "u1", "yx", ((2,),), "max", (2, 2))
