"""Make the pyramid of an image or a volume, and store it as OME-Zarr:

    python make.py volume.npy volume.ome.zarr --axes zyx --factors 2,4,8 --limit 256
    python make.py volume.zarr volume.ome.zarr --axes tczyx --factors z=1,2 y=2,4 x=2,4 --scale z=2 y=0.5 x=0.5

If it is interrupted, the same command continues it.
"""

import argparse
import ctypes
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import zarr
from pyramid import METHODS, TYPES, Ints, Pyramid, PyramidError, check_axes, halvings
from source import Source
from target import FinishedError, opened
from ways import MIB, in_memory, in_stream, passes, with_dask

import onnxpool

WAYS: dict[str, Callable[..., None]] = {"memory": in_memory, "stream": in_stream, "dask": with_dask}
STATUS = Path("/proc/self/status")
THREADS = 4  # zarr's event loop and two workers, and the monitor of the progress bar
MMAP_THRESHOLD = -3  # a parameter of mallopt
STACK, SMALL = 8 * MIB, 16 * MIB  # what each thread takes, and all that is small together


def per_axis(words: Sequence[str], axes: str, option: str, read: Callable[[str], Any], other: Any) -> tuple[Any, ...]:
    """The values of an option for each axis: one for all axes of space, or some with the names of their axes."""
    named: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        if name in named:
            raise PyramidError(f"{option} {' '.join(words)}: axis {name} has two values" if equals else
                               f"{option} {' '.join(words)}: there are two values for all axes of space")
        known = name in list(axes) if equals else len(words) == 1
        try:
            named[name] = read(value)
        except ValueError:
            known = False
        if not known:
            raise PyramidError(f"{option} {' '.join(words)}: {word} is neither the only value, for all axes of space, "
                               f"nor one for an axis of {axes!r}, such as {axes[-1]}={words[0].rpartition('=')[2]}")
    return tuple(named.get(name, named.get("", other) if TYPES[name] == "space" else other) for name in axes)


def numbers(text: str) -> Ints:
    """The integers of a list with commas."""
    return tuple(map(int, text.split(",")))


def described(given: argparse.Namespace, source: Source) -> Pyramid:
    """The pyramid that the options describe."""
    axes: str = given.axes
    check_axes(axes)
    if len(axes) != source.ndim:
        raise PyramidError(f"--axes {axes} names {len(axes)} axes, but {source.path} has the shape {source.shape}")
    spatial = sum(TYPES.get(name) == "space" for name in axes)
    whole = per_axis(given.chunks or [str(64 if spatial > 2 else 512)], axes, "--chunks", int, 1)
    if given.factors:
        columns = per_axis(given.factors, axes, "--factors", numbers, None)
        (count, *others) = {len(column) for column in columns if column} or {0}
        if others:
            raise PyramidError(f"--factors {' '.join(given.factors)}: all axes need the same number of levels")
        factors = tuple(zip(*(column or (1,) * count for column in columns), strict=True))
    else:
        factors = halvings(source.shape, axes, whole)
    return Pyramid(source.shape, source.dtype, axes, factors, given.method, whole,
                   per_axis(given.shards, axes, "--shards", int, 1) if given.shards else None,
                   per_axis(given.scale or ["1"], axes, "--scale", float, 1.0),
                   per_axis(given.units or [], axes, "--units", str, None))


def limited(mib: int) -> int:
    """Ask the system to enforce the limit, and return how many bytes of it boxes may take.

    They take what the libraries, their threads and their small objects leave.
    """
    if not STATUS.exists():
        raise PyramidError("--limit needs Linux, which counts and limits what a process allocates")
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):
        allocator.mallopt(MMAP_THRESHOLD, MIB)  # so that no large array is on a heap, where freed ones leave gaps
    zarr.config.set({"threading.max_workers": 2, "async.concurrency": 2})
    onnxpool.set_num_threads(1)
    used = int(STATUS.read_text().partition("VmData:")[2].split()[0]) << 10
    taken = used + THREADS * STACK + SMALL
    if mib * MIB <= taken:
        raise PyramidError(f"--limit {mib}: the libraries and their threads alone take {-(-taken // MIB)} MiB")
    resource.setrlimit(resource.RLIMIT_DATA, (mib * MIB,) * 2)
    return mib * MIB - taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Make one pyramid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a .npy file, or the folder of a zarr array")
    parser.add_argument("target", type=Path, help="the folder to create")
    parser.add_argument("--axes", required=True, help="a letter for each axis: t, c, z, y, x")
    parser.add_argument("--factors", nargs="+", metavar="[AXIS=]F,F,...", help="factors of each level after level 0, "
                        "relative to level 0 (default: 2,4,8,... until a level has one chunk)")
    parser.add_argument("--method", choices=METHODS, default="mean", help="how a window becomes one element")
    parser.add_argument("--chunks", nargs="+", metavar="[AXIS=]N", help="default: 64 in volumes, 512 in images")
    parser.add_argument("--shards", nargs="+", metavar="[AXIS=]N", help="chunks are collected in files of this shape")
    parser.add_argument("--scale", nargs="+", metavar="[AXIS=]S", help="distance between elements of level 0")
    parser.add_argument("--units", nargs="+", metavar="[AXIS=]NAME", help="units of the scale, such as micrometer")
    parser.add_argument("--way", choices=WAYS, default="stream")
    parser.add_argument("--limit", type=int, metavar="MIB", help="MiB that the process may allocate, for a stream")
    parser.add_argument("--sync", action="store_true", help="wait for the disk after each write, so that even a crash "
                        "of the machine loses little")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    given = parser.parse_args(arguments)
    try:
        options = {}
        if given.limit is not None:
            if given.way != "stream":
                raise PyramidError(f"--limit is for --way stream, not for --way {given.way}")
            options["max_bytes"] = limited(given.limit)
        source = Source(given.source)
        pyramid = described(given, source)
        if given.way == "stream":
            passes(pyramid, source, **options)  # which refuses what cannot be done before anything is created
        if given.target.resolve().is_relative_to(source.path.resolve()):
            raise PyramidError(f"{given.target} lies inside the source; choose a folder outside {source.path}")
        with opened(given.target, pyramid, source.facts, sync=given.sync, quiet=given.quiet) as target:
            WAYS[given.way](pyramid, source, target, **options)
    except FinishedError as error:
        print(f"make.py: {error}", file=sys.stderr)
    except (PyramidError, onnxpool.PoolError, onnxpool.PoolTypeError, OSError) as error:
        sys.exit(f"make.py: {error}")
    except MemoryError:
        other = "a larger --limit" if given.limit else "--way stream and a --limit"
        sys.exit(f"make.py: the memory did not suffice; the same command with {other} continues with what is finished")


if __name__ == "__main__":
    main()
