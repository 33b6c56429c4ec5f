"""Time the calls of onnxpool and other packages in docs/reference/array_peers.md, with one thread, for its tables.

    taskset -c 0 python -m benchmarks.compare.arrays [SECTION ...]

Each section of the page that `SECTIONS` names has a table of tasks: the code of another package, and onnxpool's.
Codes that mention the size k are timed, on each array of `COLUMNS` that they accept. Results are compared with
onnxpool's.
"""

import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import bottleneck
import cv2
import dask.array
import numba
import numpy as np
import pandas
import scipy.ndimage
import skimage.measure
import skimage.morphology
import skimage.transform
import xarray
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image, ImageFilter

import onnxpool.dask

from . import head, introduce, shortest, shown

Array = NDArray[Any]
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "array_peers.md"
IMAGES, SERIES, SIGNALS = ("(H, W)", "(H, W, 3)"), ("(T, Z, Y, X)",), ("(N,)",)
SECTIONS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {  # shapes of rows that name none; values of k
    "Downsample": (IMAGES, (2, 4)), "Block reduce": (IMAGES, (4,)), "Coarsen": (SERIES, (8,)),
    "Dilation and erosion": (IMAGES, (3, 15)), "Box filter": (IMAGES, (3, 15)),
    "Moving maximum": (SIGNALS, (10, 100, 1000)), "Sliding windows": (IMAGES, (3, 5)), "Whole axes": (SERIES, (0,)),
    "Masks": (IMAGES, (8,))}
SHAPES = {"(H, W)": (2160, 3840), "(H, W, 3)": (2160, 3840, 3), "(D, H, W)": (128, 512, 512),
          "(T, Z, Y, X)": (64, 30, 200, 200), "(N,)": (4_000_000,)}
COLUMNS = [*itertools.product(("uint8", "uint16", "float32"), ("(H, W)", "(H, W, 3)")), ("uint16", "(D, H, W)"),
           ("float32", "(T, Z, Y, X)"), ("float32", "(N,)"), ("float64", "(N,)")]


class Package(NamedTuple):
    """Another package: how its code begins, and the dtypes that it accepts and returns, if not all."""

    name: str
    code: str
    dtypes: frozenset[str] | None = None

    def accepts(self, dtype: str) -> bool:
        """Whether the package's results have this dtype."""
        return self.dtypes is None or dtype in self.dtypes


DOUBLES = frozenset({"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"})
NUMPY = Package("NumPy", "")
PACKAGES = (
    Package("OpenCV", r"cv2\.", frozenset({"uint8", "int16", "uint16", "float32", "float64"})),
    Package("Pillow", r"np.asarray\(Image", frozenset({"uint8"})),
    Package("SciPy", r"ndimage.binary", frozenset({"bool"})),
    Package("SciPy", r"ndimage\.", DOUBLES),  # it computes in float64
    Package("scikit-image", "skimage.morphology", DOUBLES),  # it calls SciPy
    Package("scikit-image", "block_reduce|skimage"),
    Package("bottleneck", r"bn\.", frozenset({"float32", "float64"})),
    Package("pandas", r"s\.", frozenset({"float64"})),
    Package("xarray", r"a\.rolling", DOUBLES),  # it computes in float64, too
    Package("xarray", r"a\.", DOUBLES | {"float16", "int64", "uint64"}),
    Package("dask", r"da\."),
    Package("Numba", "block_means", frozenset({"uint16"})),
    NUMPY,
)


class Row(NamedTuple):
    """A row of the page: a task, and codes of another package and of onnxpool."""

    task: str
    shapes: tuple[str, ...]
    theirs: str
    ours: str

    @property
    def package(self) -> Package:
        """The package whose code the row compares with onnxpool's."""
        return next(package for package in PACKAGES if re.match(package.code, self.theirs))

    @property
    def averages(self) -> bool:
        """Whether results are means, rather than elements."""
        return "average" in self.ours

    @property
    def skips(self) -> bool:
        """Whether the codes skip NaNs."""
        return "skipna" in self.ours

    def accepts(self, dtype: str) -> bool:
        """Whether the row is about this dtype."""
        return self.package.accepts(dtype) and not ("dtype=x.dtype" in self.ours and dtype == "bool") and not (
            self.skips and "float" not in dtype)


def rows(section: str) -> list[Row]:
    """The rows of a section. A task may end with a shape, to which its row applies."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.+?)(?: (\([A-Z],[^)]*\)))? \| `(.+?)` \| `(.+?)` \|$", text, re.MULTILINE)
    return [Row(task, (shape,) if shape else SECTIONS[section][0], theirs, ours)
            for task, shape, theirs, ours in found]


@numba.njit
def block_means(x: Array, k: int) -> Array:
    """Means of blocks of a volume, as one writes them for Numba."""
    depth, height, width = x.shape[0] // k, x.shape[1] // k, x.shape[2] // k
    y = np.empty((depth, height, width), x.dtype)
    for i in range(depth):
        for j in range(height):
            for m in range(width):
                total = 0
                for a in range(k):
                    for b in range(k):
                        for c in range(k):
                            total += x[i * k + a, j * k + b, m * k + c]
                y[i, j, m] = np.rint(total / k**3)
    return y


def names(x: Array, k: int) -> dict[str, Any]:
    """The names in the codes of rows."""
    known = {**vars(onnxpool), "onnxpool": onnxpool, "np": np, "cv2": cv2, "Image": Image, "ImageFilter": ImageFilter,
             "ndimage": scipy.ndimage, "skimage": skimage, "block_reduce": skimage.measure.block_reduce,
             "bn": bottleneck, "da": dask.array, "block_means": block_means,
             "sliding_window_view": sliding_window_view, "x": x, "k": k}
    if x.ndim == 1:
        known["s"] = pandas.Series(x)
    else:
        known["h"], known["w"] = x.shape[:2]
    if x.ndim == 4:
        known["a"] = xarray.DataArray(x, dims=("t", "z", "y", "x"))
        known["d"] = dask.array.from_array(x, chunks=(8, *x.shape[1:]))
    return known


@cache
def random(dtype: str, shape: str) -> Array:
    """Random elements."""
    rng = np.random.default_rng(0)
    if dtype.startswith("float"):
        return rng.random(SHAPES[shape], np.dtype(dtype).type)
    return rng.integers(0, np.iinfo(dtype).max, SHAPES[shape], dtype, endpoint=True)


def masked(x: Array) -> Array:
    """The array with a fifth of its elements missing."""
    y = x.copy()
    y[np.random.default_rng(1).random(x.shape, np.float32) < 0.2] = np.nan
    return y


class Cell(NamedTuple):
    """Measurements of one code on one array: its time, and how its result differs from onnxpool's."""

    ms: float
    ratio: float
    unequal: float  # the share of integers that differ
    off: float  # the largest difference of integers
    error: float  # the largest difference of floats, in half ulps of the largest result


def compared(theirs: Array, ours: Array) -> tuple[float, float, float]:
    """The last fields of a cell."""
    assert theirs.shape == ours.shape
    assert (np.isnan(theirs) == np.isnan(ours)).all()
    off = float(np.nanmax(np.abs(theirs.astype(np.float64) - ours)))
    if ours.dtype.kind in "iu":
        assert off <= ours.ndim  # SciPy truncates along each axis
        return float(np.mean(theirs != ours)), off, 0.0
    error = off / (float(np.finfo(ours.dtype).eps) / 2 * float(np.nanmax(np.abs(ours))))
    assert error < 1e4
    return 0.0, 0.0, error


def measured(codes: list[str], x: Array, k: int) -> list[Cell]:
    """Measurements of codes, the first of which is onnxpool's."""
    known = names(x, k)

    def call(code: CodeType) -> Callable[[], Any]:
        return lambda: eval(code, known)

    calls = [call(compile(code, "page", "eval")) for code in codes]
    results = [compared(np.asarray(run()), calls[0]()) for run in calls]
    times = shortest(calls)
    return [Cell(spent * 1e3, spent / times[0], *result) for spent, result in zip(times, results, strict=True)]


def table(section: str) -> None:
    """Print the table of a section: a line for each package, task and size."""
    lines: dict[tuple[str, str], dict[tuple[str, str], Cell]] = defaultdict(dict)
    sizes = SECTIONS[section][1]
    given = [row for row in rows(section) if sizes == (0,) or re.search(r"\bk\b", row.theirs)]
    for task, k in itertools.product(dict.fromkeys(row.task for row in given), sizes):
        for dtype, shape in COLUMNS:
            own = [row for row in given if row.task == task and shape in row.shapes and row.accepts(dtype)]
            if own:
                (ours,) = {row.ours for row in own}
                x = random(dtype, shape)
                cells = measured([ours, *(row.theirs for row in own)], masked(x) if own[0].skips else x, k)
                for name, cell in zip(["onnxpool", *(row.package.name for row in own)], cells, strict=True):
                    lines[f"{task}, k = {k}" if k else task, name][dtype, shape] = cell
    columns = [column for column in COLUMNS if any(column in cells for cells in lines.values())]
    print(f"\n{section}\n")
    head("task", "package", *map(" ".join, columns), "result", right=1)
    for (task, name), cells in lines.items():
        own = name == "onnxpool"
        values = [(f"{cells[c].ms:.2f} ms" if own else f"{cells[c].ratio:.2f}") if c in cells else "" for c in columns]
        unequal, off, error = (max(cell[i] for cell in cells.values()) for i in (2, 3, 4))
        integers, floats = f"{unequal:.1%} of integers off by {'up to ' * (off > 1)}{off:.0f}", f"{error:.0f} u"
        differs = ", ".join([integers] * bool(unequal) + [floats] * bool(error)) or "equal"
        shown(task if own else "", name, *values, "" if own else differs)


if __name__ == "__main__":
    introduce("numpy", "scipy", "scikit-image", "opencv-python-headless", "pillow", "bottleneck", "numba", "pandas",
              "xarray")
    onnxpool.set_num_threads(1)
    cv2.setNumThreads(1)
    for section in sys.argv[1:] or SECTIONS:
        table(section)
