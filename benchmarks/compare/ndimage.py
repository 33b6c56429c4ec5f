"""Time the filters of onnxpool.ndimage against SciPy, OpenCV, scikit-image and bottleneck.

The tables of docs/reference/filter_times.md show them.

    python -m benchmarks.compare.ndimage [--threads N] [--seconds S] [--modes MODE ...]

Packages alternate, and the minimum time of each counts. All get the same border; scikit-image and OpenCV lack some.
Bottleneck has no borders: its windows end at each element, and are shorter or missing at the beginning. The table has
the times of the first mode, and the last lines summarise the times of all modes.
"""

import argparse
import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import bottleneck
import cv2
import numpy as np
import scipy.ndimage
import skimage.morphology
from numpy.typing import NDArray

import onnxpool
from onnxpool import ndimage

from . import shortest
from .arrays import COLUMNS, SIGNALS, random

BORDERS = {"reflect": cv2.BORDER_REFLECT, "mirror": cv2.BORDER_REFLECT_101, "nearest": cv2.BORDER_REPLICATE,
           "constant": cv2.BORDER_CONSTANT}
MODES = [*BORDERS, "wrap"]
SMALL = {"(64, 64)": (64, 64), "(16, 16, 16)": (16, 16, 16)}
OF_OPENCV = frozenset({"uint8", "int16", "uint16", "float32", "float64"})
IMAGES = [column for column in COLUMNS if column[1] not in ("(N,)", "(T, Z, Y, X)")]
WIDE = [("int32", "(H, W)"), ("int64", "(H, W)")]
LINES = [column for column in COLUMNS if column[1] in SIGNALS]
FILTERS = ("maximum_filter", "minimum_filter", "uniform_filter")
TRUNCATED = "uniform_filter, truncated"


def calls_of(task: str, x: NDArray[Any], k: int, mode: str) -> dict[str, Callable[[], Any]]:
    """The calls of each package."""
    name, _, truncated = task.partition(", ")
    axes = (0, 1) if x.shape[-1] == 3 else tuple(range(x.ndim))
    given: Any = {"size": k, "mode": mode} | ({} if x.ndim == 1 else {"axes": axes})
    own = {"truncate": True} if truncated else {}
    calls = {"onnxpool": lambda: getattr(ndimage, name)(x, **given, **own),
             "SciPy": lambda: getattr(scipy.ndimage, name)(x, **given)}
    if x.ndim == 1:
        moving = {"ma": bottleneck.move_max, "mi": bottleneck.move_min, "un": bottleneck.move_mean}[name[:2]]
        calls["bottleneck"] = lambda: moving(x, k, min_count=1)
    if mode in BORDERS and len(axes) == 2 and x.dtype.name in OF_OPENCV and not truncated:
        ones, border = np.ones((k, k), np.uint8), BORDERS[mode]
        calls["OpenCV"] = {
            "maximum_filter": lambda: cv2.dilate(x, ones, borderType=border, borderValue=0),
            "minimum_filter": lambda: cv2.erode(x, ones, borderType=border, borderValue=0),
            "uniform_filter": lambda: cv2.blur(x, (k, k), borderType=border)}[name]
    if mode == "reflect" and axes == (0, 1) and x.ndim == 2 and name == "maximum_filter":
        calls["scikit-image"] = lambda: skimage.morphology.dilation(x, np.ones((k, k), np.uint8), mode="reflect")
    return calls


def drawn(dtype: str, shape: str) -> NDArray[Any]:
    """A random array. int64 arrays have values in the range of int32, so that float64 represents their sums."""
    if shape in SMALL:
        return (np.random.default_rng(0).random(SMALL[shape]) * 200).astype(dtype)
    return random("int32" if dtype == "int64" else dtype, shape).astype(dtype, copy=False)


def main() -> None:
    """Print the table and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="limit on the turns of a case")
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    given = parser.parse_args()
    onnxpool.set_num_threads(given.threads)
    cv2.setNumThreads(given.threads)
    ratios: dict[str, list[tuple[float, str]]] = defaultdict(list)
    lines: dict[tuple[str, str], dict[tuple[str, str], str]] = defaultdict(dict)
    whole = [column for column in IMAGES + WIDE if "float" not in column[0]]
    few = [*itertools.product(("uint8", "int64", "float32", "float64"), SMALL)]
    cases = [*itertools.product(FILTERS, (3, 15), IMAGES + WIDE, given.modes),
             *itertools.product([TRUNCATED], (3, 15), whole, given.modes),
             *itertools.product([f"{name}1d" for name in FILTERS], (10, 100, 1000), LINES, given.modes),
             *itertools.product(("maximum_filter", "uniform_filter"), (3,), few, given.modes)]
    for name, k, column, mode in cases:
        x = drawn(*column)
        calls = calls_of(name, x, k, mode)
        for call in calls.values():
            call()  # memory and plans
        times = dict(zip(calls, shortest([*calls.values()], given.seconds), strict=True))
        for package, seconds in times.items():
            ratio = seconds / times["onnxpool"]
            size = "small" if column[1] in SMALL else "large"
            if package != "onnxpool":
                ratios[f"{package}, {size}"].append((ratio, f"{name} k={k} {' '.join(column)} {mode}"))
            if mode == given.modes[0]:
                own = f"{seconds * 1e3:.2f} ms" if size == "large" else f"{seconds * 1e6:.1f} us"
                lines[f"`{name}`, k = {k}", package][column] = own if package == "onnxpool" else f"{ratio:.2f}"
    shown = [*IMAGES, *WIDE, *LINES, *few]
    print(f"| filter | package | {' | '.join(' '.join(column) for column in shown)} |")
    print("|---|---|" + "--:|" * len(shown))
    for (task, package), cells in lines.items():
        print(f"| {task} | {package} | {' | '.join(cells.get(column, '') for column in shown)} |")
    for package, found in ratios.items():
        low = sorted(found)
        print(f"{package}: {len(low)} calls, median {statistics.median(ratio for ratio, _ in low):.2f}, below 0.95: "
              f"{sum(ratio < 0.95 for ratio, _ in low)}; least: "
              + "; ".join(f"{ratio:.2f} {what}" for ratio, what in low[:12]))


if __name__ == "__main__":
    main()
