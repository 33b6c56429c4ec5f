"""Arrays that are read in boxes: .npy files, which are mapped into memory, and zarr arrays."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from pyramid import Ints, PyramidError, Region


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

    @property
    def array(self) -> Any:
        """The array, opened anew."""
        return np.load(self.path, mmap_mode="r") if self.mapped else zarr.open(self.path, mode="r")

    @property
    def mapped(self) -> bool:
        """Whether boxes are views of the file, rather than copies in memory."""
        return self.path.is_file()

    @property
    def shape(self) -> Ints:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of boxes, in native byte order."""
        return self.array.dtype.newbyteorder("=")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def grain(self) -> Ints:
        """The shape of what is read at once: a chunk, or the axis that is contiguous in the file."""
        array = self.array
        if self.mapped:
            axis = int(np.argmin(array.strides))
            return tuple(n if i == axis else 1 for i, n in enumerate(array.shape))
        return tuple(min(sizes) for sizes in zip(array.chunks, array.shape, strict=True))

    def __getitem__(self, box: Region) -> np.ndarray:
        """The elements of a box, without a copy if the file is mapped."""
        return np.asarray(self.array[box], self.dtype)

    def facts(self) -> dict[str, Any]:
        """What changes if the source does: its path, and the number, size and newest time of its files."""
        stats = [os.stat(self.path)] if self.mapped else [
            os.stat(os.path.join(folder, name)) for folder, _, names in os.walk(self.path) for name in names]
        return {"source": str(self.path.resolve()), "source files": len(stats),
                "source bytes": sum(stat.st_size for stat in stats),
                "source modified": max(stat.st_mtime_ns for stat in stats)}
