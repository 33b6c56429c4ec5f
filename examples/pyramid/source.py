"""Arrays that are read in boxes: .npy files, which are mapped into memory, and zarr arrays."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from pyramid import Ints, PyramidError, Region

PAGE = 4096


@dataclass(frozen=True)
class Source:
    """An array in a file. Copies in other processes open the file anew."""

    path: Path

    def __post_init__(self) -> None:
        if not self.path.exists():
            raise PyramidError(f"{self.path} does not exist")
        try:
            array = self.array
        except (ValueError, OSError) as error:
            raise PyramidError(f"{self.path} is neither a .npy file nor the folder of a zarr array: {error}") from None
        if isinstance(array, zarr.Group):
            raise PyramidError(f"{self.path} is a zarr group; choose one of its arrays: "
                               f"{', '.join(sorted(array.array_keys())) or 'it has none'}")
        if array.dtype.kind == "V":
            raise PyramidError(f"{self.path} holds {array.dtype}, which is no number; a .npy file does not tell "
                               "that its elements are bfloat16, so store them as float32")

    @property
    def array(self) -> Any:
        """The array, opened anew."""
        return np.lib.format.open_memmap(self.path, mode="r") if self.mapped else zarr.open(self.path, mode="r")

    @property
    def mapped(self) -> bool:
        """Whether boxes are views of the file, rather than copies in memory."""
        return self.path.is_file()

    @cached_property
    def shape(self) -> Ints:
        return tuple(self.array.shape)

    @cached_property
    def dtype(self) -> Any:
        """The dtype of boxes, in native byte order."""
        return self.array.dtype.newbyteorder("=")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def unit(self) -> Ints:
        """The shape of what a file of a zarr array holds."""
        array = self.array
        return self.grain if self.mapped else tuple(map(min, array.shards or array.chunks, array.shape))

    @cached_property
    def grain(self) -> Ints:
        """The shape of what is read at once: a chunk, or a page of the file along its contiguous axis."""
        array = self.array
        if self.mapped:
            axis = int(np.argmin(array.strides))
            return tuple(min(n, PAGE // array.itemsize) if i == axis else 1 for i, n in enumerate(array.shape))
        return tuple(map(min, array.chunks, array.shape))

    def __getitem__(self, box: Region) -> np.ndarray:
        """The elements of a box, without a copy if the file is mapped."""
        array = self.array
        return np.asarray(array[box], array.dtype.newbyteorder("="))

    def facts(self) -> dict[str, Any]:
        """What changes if the source does: its path, and the number, size and newest time of its files."""
        stats = [os.stat(self.path)] if self.mapped else [
            os.stat(os.path.join(folder, name)) for folder, _, names in os.walk(self.path) for name in names]
        return {"source": str(self.path.resolve()), "source files": len(stats),
                "source bytes": sum(stat.st_size for stat in stats),
                "source modified": max(stat.st_mtime_ns for stat in stats)}
