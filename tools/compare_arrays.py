"""Time pools of plain arrays against scikit-image, SciPy and NumPy, with one thread: the table of docs/arrays.md.

    taskset -c 0 python tools/compare_arrays.py

Memory is the amount that NumPy allocates besides the input, including the result. Means are compared with those of
float64.
"""

import importlib.metadata
import platform
import time
import tracemalloc

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage
from skimage.measure import block_reduce

import onnxpool

rng = np.random.default_rng(0)
grey = rng.random((2160, 3840), np.float32)
rgb = rng.integers(0, 256, (2160, 3840, 3), np.uint8)
grey16 = rng.integers(0, 65536, (2160, 3840), np.uint16)
cube = rng.random((64, 30, 200, 200), np.float32)

# The computation of each case: the names of the methods, their code, and whether each must equal the first one.
CASES = {
    "means of 4x4 blocks, float32": (grey, [
        ("onnxpool", lambda x: onnxpool.average_pool(x, 4, strides=4, axes=(0, 1))),
        ("scikit-image", lambda x: block_reduce(x, (4, 4), np.mean)),
        ("reshape", lambda x: x.reshape(540, 4, 960, 4).mean((1, 3))),
    ]),
    "maxima of 4x4 blocks, uint8 (H, W, 3)": (rgb, [
        ("onnxpool", lambda x: onnxpool.max_pool(x, 4, strides=4, axes=(0, 1))),
        ("scikit-image", lambda x: block_reduce(x, (4, 4, 1), np.max)),
        ("reshape", lambda x: x.reshape(540, 4, 960, 4, 3).max((1, 3))),
    ]),
    "maxima of 7x7 blocks, the last ones incomplete, float32": (grey, [
        ("onnxpool", lambda x: onnxpool.max_pool(x, 7, strides=7, ceil_mode=1, axes=(0, 1))),
        ("scikit-image", lambda x: block_reduce(x, (7, 7), np.max)),
    ]),
    "means of 5x5 windows, stride 3, float32": (grey, [
        ("onnxpool", lambda x: onnxpool.average_pool(x, 5, strides=3, axes=(0, 1))),
        ("scipy, then sliced", lambda x: ndimage.uniform_filter(x, 5)[2:-2:3, 2:-2:3]),
        ("sliding_window_view", lambda x: sliding_window_view(x, (5, 5))[::3, ::3].mean((2, 3))),
    ]),
    "maxima of 15x15 windows, float32": (grey, [
        ("onnxpool", lambda x: onnxpool.max_pool(x, 15, axes=(0, 1))),
        ("scipy, then sliced", lambda x: ndimage.maximum_filter(x, 15)[7:-7, 7:-7]),
    ]),
    "maxima of 3x3 windows, stride 2, uint16": (grey16, [
        ("onnxpool", lambda x: onnxpool.max_pool(x, 3, strides=2, axes=(0, 1))),
        ("scipy, then sliced", lambda x: ndimage.maximum_filter(x, 3)[1:-1:2, 1:-1:2]),
        ("sliding_window_view", lambda x: sliding_window_view(x, (3, 3))[::2, ::2].max((2, 3))),
    ]),
    "means over 8 time steps, float32 (T, Z, Y, X)": (cube, [
        ("onnxpool", lambda x: onnxpool.average_pool(x, 8, strides=8, axes=0)),
        ("reshape", lambda x: x.reshape(8, 8, 30, 200, 200).mean(1)),
    ]),
    "means over images, float32 (T, Z, Y, X)": (cube, [
        ("onnxpool", lambda x: onnxpool.global_average_pool(x, axes=(2, 3), keepdims=False)),
        ("mean", lambda x: x.mean((2, 3))),
    ]),
    "means over T and X, float32 (T, Z, Y, X)": (cube, [
        ("onnxpool", lambda x: onnxpool.global_average_pool(x, axes=(0, 3), keepdims=False)),
        ("mean", lambda x: x.mean((0, 3))),
    ]),
}


def best(call, seconds=1.0):
    """The shortest time of a call, in milliseconds."""
    shortest, until = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest * 1e3


def memory(call):
    """The peak allocation of a call, in MiB."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def off(y, truth):
    """The error of a result, in words."""
    if y.dtype.kind in "iu" or np.array_equal(y, truth):
        return "exact" if np.array_equal(y, truth) else "other values"
    return f"{np.max(np.abs(y - truth) / truth) * 2**24:.1f} u"


def main():
    """Print the table."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "scikit-image"))
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {versions}\n")
    print("| task | method | ms | ratio | MiB | error |\n|---|---|---|---|---|---|")
    onnxpool.set_num_threads(1)
    for what, (x, ways) in CASES.items():
        first = None
        for name, call in ways:
            truth = ways[-1][1](x.astype(np.float64)) if "means" in what else ways[0][1](x)
            spent = best(lambda call=call, x=x: call(x))
            first = first or spent
            held = memory(lambda call=call, x=x: call(x))
            print(f"| {what if call is ways[0][1] else ''} | {name} | {spent:.2f} | {spent / first:.1f} | {held:.1f} | "
                  f"{off(call(x), truth)} |", flush=True)


if __name__ == "__main__":
    main()
