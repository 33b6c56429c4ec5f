"""Make the OME-Zarr pyramid of a .npy file or a zarr array larger than memory:

    python pyramid.py volume.npy volume.ome.zarr --axes zyx --factors 2 4 8
    python pyramid.py volume.zarr volume.ome.zarr --axes zyx --factors 1,2,2 2,4,4 --scale 2,0.5,0.5 --unit micrometer

Each element of a level is the mean, the maximum or the minimum of a block of level 0, so means are rounded only once.
After an interruption, the same command resumes.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from ome_zarr.writer import write_multiscales_metadata

import onnxpool

METHODS: dict[str, Any] = {"mean": onnxpool.AveragePool, "max": onnxpool.MaxPool, "min": onnxpool.MinPool}
BOX = 16 << 20  # bytes read at once, plus the part of a level computed from them


def pyramid(source: Path, target: Path, axes: str, factors: Sequence[Sequence[int]], *, method: str = "mean",
            chunks: Sequence[int] | None = None, shards: Sequence[int] | None = None,
            scale: Sequence[float] | None = None, unit: str | None = None) -> None:
    """
    Write all levels to TARGET.partial, which is renamed to TARGET when it is complete.

    Parameters
    ----------
    source : Path
        A .npy file, or the folder of a zarr array.
    target : Path
        The folder to create.
    axes : str
        The names of the axes, in the order of OME-Zarr: some of t, c, z, y and x.
    factors : sequence of sequence of int
        For each level after level 0, the elements of level 0 per element, along each axis. No element is dropped: the
        last block of an axis has the elements that remain.
    method : {"mean", "max", "min"}
        How a block becomes one element.
    chunks, shards : sequence of int, optional
        The chunk shape of all levels, and the shape of the shards, which are files of several chunks.
    scale : sequence of float, optional
        The distance between neighbouring elements of level 0 along each axis.
    unit : str, optional
        The unit of the distances in space.
    """
    x = np.load(source, mmap_mode="r") if source.is_file() else zarr.open_array(source, mode="r")
    spatial = [name for name in axes if name in "zyx"]
    files = {"chunks": chunks or [(64 if len(spatial) > 2 else 512) if name in spatial else 1 for name in axes],
             "shards": shards}
    scale = scale or [1.0] * len(axes)
    factors = [[1] * len(axes), *factors]
    for values in (x.shape, *files.values(), scale, *factors):
        if values is not None and len(values) != len(axes):
            raise ValueError(f"{values} must have one value for each of the axes {axes!r}")
    if target.exists():
        raise FileExistsError(f"{target} exists; choose another name, or remove it")
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{target} lies inside the source; choose another folder")

    partial = target.with_name(f"{target.name}.partial")
    begun = json.loads(json.dumps({"source": state(source), "factors": factors, "method": method, "scale": scale,
                                   "axes": axes, "unit": unit, **files, "onnxpool": onnxpool.__version__}))
    group = zarr.open_group(partial, mode="a")
    if group.attrs.setdefault("made", begun) != begun:
        raise ValueError(f"{partial} was begun as {group.attrs['made']}, not {begun}; remove it to start again")
    for number, given in enumerate(factors):
        pool = METHODS[method](kernel_shape=given, strides=given, axes=range(len(axes)), ceil_mode=1,
                               **({"dtype": x.dtype.newbyteorder("=")} if method == "mean" else {}))
        shape = [-(-n // f) for n, f in zip(x.shape, given, strict=True)]
        if str(number) not in group:  # chunks of zeros are written too, because existing files show what is done
            group.create_array(str(number), shape=shape, dtype=x.dtype.newbyteorder("="), **files,
                               dimension_names=list(axes), config={"write_empty_chunks": True})
        fill(group[str(number)], partial / str(number), x, given, pool)
    if json.loads(json.dumps(state(source))) != begun["source"]:
        raise ValueError(f"{source} has changed meanwhile; remove {partial} to start again")
    datasets = [{"path": str(number), "coordinateTransformations": [
        {"type": "scale", "scale": [s * f for s, f in zip(scale, given, strict=True)]},
        {"type": "translation", "translation": [s * (f - 1) / 2 for s, f in zip(scale, given, strict=True)]}]}
        for number, given in enumerate(factors)]  # an element is at the centre of its block
    write_multiscales_metadata(group, datasets, name=target.name.removesuffix(".zarr").removesuffix(".ome"),
                               axes=list(axes), axes_units=dict.fromkeys(spatial, unit) if unit else None)
    for left in partial.rglob("*.partial"):  # a write was interrupted
        left.unlink()
    partial.rename(target)


def fill(level: Any, folder: Path, x: Any, factors: Sequence[int], pool: Any) -> None:
    """Write the missing files of a level. zarr writes each file under another name first, and then renames it."""
    unit = level.shards or level.chunks
    for index in product(*(range(-(-n // u)) for n, u in zip(level.shape, unit, strict=True))):
        if (folder / level.metadata.encode_chunk_key(index)).exists():
            continue
        region = tuple(slice(i * u, min((i + 1) * u, n)) for i, u, n in zip(index, unit, level.shape, strict=True))
        starts = [s.start * f for s, f in zip(region, factors, strict=True)]
        shape = [min(s.stop * f, n) - start for s, f, n, start in zip(region, factors, x.shape, starts, strict=True)]
        block = np.empty([s.stop - s.start for s in region], level.dtype)
        boxes = pool.plan(shape, level.dtype).tiles(max_bytes=BOX) if max(factors) > 1 else ()
        for box in boxes:
            read = tuple(slice(start + s.start, start + s.stop) for start, s in zip(starts, box.inputs, strict=True))
            block[box.outputs] = box(np.asarray(x[read], level.dtype))
        level[region] = block if boxes else x[region]


def state(source: Path) -> list[Any]:
    """A value that changes with the source: its path, and the number of its files, their size and latest change."""
    files = [path.stat() for path in (source, *source.rglob("*"))]
    return [str(source.resolve()), len(files), sum(f.st_size for f in files), max(f.st_mtime_ns for f in files)]


def per_axis(read: Callable[[str], Any], text: str, axes: str) -> list[Any]:
    """The values of a word such as 1,2,2: one for each axis, or one for all spatial axes."""
    values = [read(word) for word in text.split(",")]
    return values if len(values) > 1 else [values[0] if name in "zyx" else read("1") for name in axes]


def main(words: Sequence[str] | None = None) -> None:
    """Make the pyramid that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a .npy file, or the folder of a zarr array")
    parser.add_argument("target", type=Path, help="the folder to create")
    parser.add_argument("--axes", required=True, help="a letter for each axis, in the order of OME-Zarr: t, c, z, y, x")
    parser.add_argument("--factors", nargs="+", required=True, help="for each level, a number or one for each axis")
    parser.add_argument("--method", choices=METHODS, default="mean")
    for name, text in {"--chunks": "default: 64 in volumes, 512 in images", "--shards": "files that collect chunks",
                       "--scale": "distance between elements of level 0"}.items():
        parser.add_argument(name, help=text)
    parser.add_argument("--unit", help="of the scale, such as micrometer")
    given = vars(parser.parse_args(words))
    axes = given["axes"]
    given["factors"] = [per_axis(int, word, axes) for word in given["factors"]]
    given |= {name: given[name] and per_axis(read, given[name], axes)
              for name, read in (("chunks", int), ("shards", int), ("scale", float))}
    pyramid(**given)


if __name__ == "__main__":
    main()
