"""Inputs large enough for several threads, compared with the same arithmetic in NumPy on whole arrays."""

from itertools import product

import numpy as np
import pytest
from calls import THREADS
from numpy.lib.stride_tricks import sliding_window_view
from onnxpool_conformance.oracle import DTYPES
from support import LAYOUTS, assert_same_bits, assert_same_values, to_first, to_last

import onnxpool

MANY = 2**20  # minimum bytes of a call that may use several threads
SHAPES = {"many planes": (2, 70, 96, 97), "one plane": (1, 1, 1100, 1303), "few planes": (3, 2, 500, 481)}
WINDOWS = {
    "pairs": ((2, 2), (2, 2)),
    "overlapping": ((3, 3), (1, 2)),
    "wide": ((5, 9), (4, 3)),
}


def data(shape, dtype):
    """Small integers, so that maxima are tied; floats with some NaN and zeros of both signs."""
    generator = np.random.default_rng(len(shape))
    x = generator.integers(-5 if dtype != "uint8" else 0, 6, shape).astype(DTYPES[dtype])
    if dtype not in ("int8", "uint8"):
        spots = generator.integers(0, x.size, x.size // 50)
        x.reshape(-1)[spots] = np.resize([np.nan, -0.0, 0.0, -0.0, 0.0, -np.inf], spots.size).astype(x.dtype)
    return x


def windows(x, kernel, strides):
    """A view of all windows, each of which is the last two axes."""
    return sliding_window_view(x, kernel, (2, 3))[:, :, :: strides[0], :: strides[1]]


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("dtype", "window"), [
    *(("float32", window) for window in WINDOWS), *(("int8", window) for window in WINDOWS),
    *((dtype, "overlapping") for dtype in ("float64", "float16", "uint8"))])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_indices(dtype, shape, window, channels_last):
    """Values and indices are NumPy's first maxima, with every number of threads."""
    kernel, strides = WINDOWS[window]
    x = data(shape, dtype)
    view = windows(x, kernel, strides)
    inside = view.reshape(*view.shape[:4], -1).argmax(-1)  # argmax returns the first NaN if there is one
    row, column = np.divmod(inside, kernel[1])
    row += np.arange(view.shape[2])[:, None] * strides[0]
    column += np.arange(view.shape[3]) * strides[1]
    planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1, 1)
    wanted = (planes * shape[2] + row) * shape[3] + column
    turned = planes * shape[2] * shape[3] + column * shape[2] + row
    values = x.reshape(-1)[wanted]
    given = to_last(x, channels_last)
    options = {"strides": strides, "channels_last": channels_last, "return_indices": True}
    for threads, order in zip(THREADS, (0, 1, 0, 1, 0), strict=True):
        y, indices = onnxpool.max_pool(given, kernel, **options, storage_order=order, num_threads=threads)
        assert_same_values(to_first(y, channels_last), values)
        np.testing.assert_array_equal(to_first(indices, channels_last), turned if order else wanted)
    assert x.nbytes >= MANY


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantised_average(dtype, shape, window, channels_last):
    """Quantised means are those of NumPy's float32 steps in order, with every number of threads."""
    kernel, strides = window
    limits = np.iinfo(dtype)
    x = np.random.default_rng(6).integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x_scale, x_zero, y_scale, y_zero = np.float32(0.037), 3, np.float32(0.021), limits.max // 2
    real = x_scale * (x.astype(np.float32) - x_zero)
    view = windows(real, kernel, strides)
    total = np.zeros(view.shape[:4], np.float32)
    for tap in product(*map(range, kernel)):
        total += view[(..., *tap)]
    mean = total / np.float32(kernel[0] * kernel[1])
    wanted = np.clip(np.rint(mean / y_scale + np.float32(y_zero)), limits.min, limits.max).astype(dtype)
    zeros = [np.array(zero, dtype) for zero in (x_zero, y_zero)]
    given = to_last(x, channels_last)
    for threads in THREADS:
        y = onnxpool.qlinear_average_pool(given, x_scale, zeros[0], y_scale, zeros[1], kernel, strides=strides,
                                          channels_last=channels_last, num_threads=threads)  # fmt: skip
        assert_same_bits(to_first(y, channels_last), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_nhwc_max_pool(dtype):
    """Maxima of bytes are NumPy's with every number of threads."""
    x = data((2, 70, 96, 97), dtype)
    wanted = windows(x, (3, 2), (2, 1)).max((-2, -1))
    for threads in THREADS:
        y = onnxpool.nhwc_max_pool(to_last(x, True), (3, 2), strides=(2, 1), num_threads=threads)
        assert_same_bits(to_first(y, True), wanted)
