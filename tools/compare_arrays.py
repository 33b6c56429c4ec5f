"""Time pools of plain arrays against other packages, with one thread: the tables of docs/arrays.md.

    taskset -c 0 python tools/compare_arrays.py [WORD ...]

Only tasks that contain all of the words are timed. Each result is compared with that of onnxpool. Memory is the amount
that NumPy allocates besides the input, including the result; other packages' own allocations do not count.
"""

import importlib.metadata
import itertools
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import bottleneck
import cv2
import numba
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from skimage.measure import block_reduce

import onnxpool

Array = NDArray[Any]
Ways = dict[str, Callable[[Array], Array]]
PACKAGES = ("numpy", "scipy", "scikit-image", "opencv-python-headless", "pillow", "bottleneck", "numba")
HEIGHT, WIDTH = 2160, 3840
SECONDS = 0.5
rng = np.random.default_rng(0)


class Task(NamedTuple):
    """The same computation by several packages, the first of which is onnxpool."""

    name: str
    x: Array
    ways: Ways


def random(shape: tuple[int, ...], dtype: str) -> Array:
    """Random elements."""
    if dtype.startswith("float"):
        return rng.random(shape, np.dtype(dtype).type)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def of_images(dtype: str, channels: int) -> Iterator[Task]:
    """Windows and blocks of an image."""
    x = random((HEIGHT, WIDTH) if channels == 1 else (HEIGHT, WIDTH, channels), dtype)
    what = f"{dtype}, {channels} channel{'s' * (channels > 1)}"
    own = None if dtype.startswith("float") else dtype
    for k in (3, 15):
        ones = np.ones((k, k), np.uint8)
        yield Task(f"maxima of {k}x{k} windows, {what}", x, {
            "onnxpool": lambda x, k=k: onnxpool.max_pool(x, k, pads=k // 2, axes=(0, 1)),
            "cv2.dilate": lambda x, ones=ones: cv2.dilate(x, ones)})
        yield Task(f"minima of {k}x{k} windows, {what}", x, {
            "onnxpool": lambda x, k=k: onnxpool.min_pool(x, k, pads=k // 2, axes=(0, 1)),
            "cv2.erode": lambda x, ones=ones: cv2.erode(x, ones)})
        yield Task(f"means of {k}x{k} windows, {what}", x, {
            "onnxpool": lambda x, k=k: onnxpool.average_pool(x, k, pads=k // 2, count_include_pad=1, axes=(0, 1),
                                                             dtype=own),
            "cv2.boxFilter": lambda x, k=k: cv2.boxFilter(x, -1, (k, k), borderType=cv2.BORDER_CONSTANT)})
    for k in (2, 4):
        ways: Ways = {
            "onnxpool": lambda x, k=k: onnxpool.average_pool(x, k, strides=k, axes=(0, 1), dtype=own),
            "cv2.resize, INTER_AREA": lambda x, k=k: cv2.resize(x, (WIDTH // k, HEIGHT // k),
                                                                interpolation=cv2.INTER_AREA)}
        if dtype == "uint8":
            ways["Pillow's reduce"] = lambda x, k=k: np.asarray(Image.fromarray(x).reduce(k))
        yield Task(f"means of {k}x{k} blocks, {what}", x, ways)


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


def of_volumes() -> Iterator[Task]:
    """Blocks of a volume and of a series, and windows of a signal."""
    volume = random((128, 512, 512), "uint16")
    yield Task("means of 2x2x2 blocks, uint16 volume", volume, {
        "onnxpool": lambda x: onnxpool.average_pool(x, 2, strides=2, axes=(0, 1, 2), dtype="uint16"),
        "numba": lambda x: block_means(x, 2),
        "scikit-image": lambda x: np.rint(block_reduce(x, (2, 2, 2), np.mean)).astype(np.uint16)})
    yield Task("maxima of 2x2x2 blocks, uint16 volume", volume, {
        "onnxpool": lambda x: onnxpool.max_pool(x, 2, strides=2, axes=(0, 1, 2)),
        "scikit-image": lambda x: block_reduce(x, (2, 2, 2), np.max)})
    yield Task("maxima of 3x3x3 windows, uint16 volume", volume, {
        "onnxpool": lambda x: onnxpool.max_pool(x, 3, pads=1, axes=(0, 1, 2)),
        "scipy": lambda x: ndimage.maximum_filter(x, 3)})
    signal = random((4_000_000,), "float64")
    yield Task("maxima of windows of 100, float64 signal", signal, {
        "onnxpool": lambda x: onnxpool.max_pool(x, 100, axes=0),
        "bottleneck": lambda x: bottleneck.move_max(x, 100)[99:]})
    yield Task("means of windows of 100, float64 signal", signal, {
        "onnxpool": lambda x: onnxpool.average_pool(x, 100, axes=0),
        "bottleneck": lambda x: bottleneck.move_mean(x, 100)[99:]})


def of_arrays() -> Iterator[Task]:
    """Images, and cubes (T, Z, Y, X), by packages that take arrays."""
    grey, rgb = random((HEIGHT, WIDTH), "float32"), random((HEIGHT, WIDTH, 3), "uint8")
    cube = random((64, 30, 200, 200), "float32")
    yield Task("means of 4x4 blocks, float32", grey, {
        "onnxpool": lambda x: onnxpool.average_pool(x, 4, strides=4, axes=(0, 1)),
        "scikit-image": lambda x: block_reduce(x, (4, 4), np.mean),
        "reshape": lambda x: x.reshape(540, 4, 960, 4).mean((1, 3))})
    yield Task("maxima of 4x4 blocks, uint8 (H, W, 3)", rgb, {
        "onnxpool": lambda x: onnxpool.max_pool(x, 4, strides=4, axes=(0, 1)),
        "scikit-image": lambda x: block_reduce(x, (4, 4, 1), np.max),
        "reshape": lambda x: x.reshape(540, 4, 960, 4, 3).max((1, 3))})
    yield Task("maxima of 7x7 blocks, the last ones incomplete, float32", grey, {
        "onnxpool": lambda x: onnxpool.max_pool(x, 7, strides=7, ceil_mode=1, axes=(0, 1)),
        "scikit-image": lambda x: block_reduce(x, (7, 7), np.max)})
    yield Task("means of 5x5 windows, stride 3, float32", grey, {
        "onnxpool": lambda x: onnxpool.average_pool(x, 5, strides=3, axes=(0, 1)),
        "scipy, then sliced": lambda x: ndimage.uniform_filter(x, 5)[2:-2:3, 2:-2:3],
        "sliding_window_view": lambda x: sliding_window_view(x, (5, 5))[::3, ::3].mean((2, 3))})
    yield Task("maxima of 3x3 windows, stride 2, float32", grey, {
        "onnxpool": lambda x: onnxpool.max_pool(x, 3, strides=2, axes=(0, 1)),
        "scipy, then sliced": lambda x: ndimage.maximum_filter(x, 3)[1:-1:2, 1:-1:2],
        "sliding_window_view": lambda x: sliding_window_view(x, (3, 3))[::2, ::2].max((2, 3))})
    yield Task("means over 8 time steps, float32 (T, Z, Y, X)", cube, {
        "onnxpool": lambda x: onnxpool.average_pool(x, 8, strides=8, axes=0),
        "reshape": lambda x: x.reshape(8, 8, 30, 200, 200).mean(1)})
    yield Task("means over images, float32 (T, Z, Y, X)", cube, {
        "onnxpool": lambda x: onnxpool.global_average_pool(x, axes=(2, 3), keepdims=False),
        "mean": lambda x: x.mean((2, 3))})
    yield Task("means over T and X, float32 (T, Z, Y, X)", cube, {
        "onnxpool": lambda x: onnxpool.global_average_pool(x, axes=(0, 3), keepdims=False),
        "mean": lambda x: x.mean((0, 3))})


def tasks() -> Iterator[Task]:
    """All tasks."""
    for dtype, channels in itertools.product(("uint8", "uint16", "float32"), (1, 3)):
        yield from of_images(dtype, channels)
    yield from of_volumes()
    yield from of_arrays()


def best(call: Callable[[], object]) -> float:
    """The shortest time of a call, in milliseconds."""
    call()
    shortest, until = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        begin = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest * 1e3


def memory(call: Callable[[], object]) -> float:
    """The peak allocation of a call, in MiB."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def difference(y: Array, ours: Array) -> str:
    """How a result differs from that of onnxpool."""
    assert y.shape == ours.shape
    if np.array_equal(y, ours):
        return "equal"
    off = float(np.max(np.abs(y.astype(np.float64) - ours.astype(np.float64))))
    if ours.dtype.kind in "iu":
        share = float(np.mean(y != ours))
        assert off <= 1
        return f"{share:.0%} are off by 1"
    unit = float(np.finfo(ours.dtype).eps) / 2 * float(np.max(np.abs(ours)))
    assert off < 1e4 * unit
    return f"{off / unit:.0f} u"


def main(words: list[str]) -> None:
    """Print the table."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {versions}\n")
    print("| task | method | ms | ratio | MiB | result |\n|---|---|--:|--:|--:|---|")
    onnxpool.set_num_threads(1)
    cv2.setNumThreads(1)
    for task in tasks():
        if not all(word in task.name for word in words):
            continue
        ours, first = task.ways["onnxpool"](task.x), 0.0
        for name, call in task.ways.items():
            spent = best(lambda call=call, task=task: call(task.x))  # type: ignore[misc]
            first = first or spent
            held = memory(lambda call=call, task=task: call(task.x))  # type: ignore[misc]
            shown = task.name if name == "onnxpool" else ""
            result = "" if name == "onnxpool" else difference(call(task.x), ours)
            print(f"| {shown} | {name} | {spent:.2f} | {spent / first:.2f} | {held:.1f} | {result} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
