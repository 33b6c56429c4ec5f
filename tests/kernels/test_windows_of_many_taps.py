"""Windows of many taps, most of which they share with their neighbours.

The expected bits are those of a single row or column, which is too narrow to be transposed or cut into slices, and for
maxima those of NumPy. Kernels have all bits set, one, or some; pads leave windows of every number of taps.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
from support import FLOATS, to_first, to_last

import onnxpool

DTYPES = [np.dtype(np.uint8), *FLOATS]
# channels, height, width
SHAPES = [(1, 70, 45), (3, 66, 40), (5, 17, 64), (40, 33, 70), (2, 3, 1100), (2, 1100, 3)]
WINDOWS = [(31, 1, 1), (16, 1, 1), (21, 1, 2), (9, 2, 1), (12, 5, 1)]  # taps, stride, dilation
# Windows along one axis that extend over at most twice its length.
LINES = [(shape, window, axis) for shape, window, axis in itertools.product(SHAPES, WINDOWS, (0, 1))
         if window[0] * window[2] <= 2 * shape[1 + axis]]


def numbers(shape, dtype):
    rng = np.random.default_rng(5)
    if dtype == np.uint8:
        return rng.integers(0, 256, shape, dtype)
    x = rng.standard_normal(shape, np.float32).astype(dtype)
    x[rng.random(shape) < 0.01] = -0.0
    return x


def along(axis, taps, stride, dilation):
    """Attributes of windows along one of two axes, padded by all taps but one."""
    pad = (taps - 1) * dilation // 2
    one, other = {"kernel_shape": taps, "strides": stride, "dilations": dilation}, 1
    attributes = {name: [value, other] if axis == 0 else [other, value] for name, value in one.items()}
    return {**attributes, "pads": [pad, 0, pad, 0] if axis == 0 else [0, pad, 0, pad]}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("shape", "window", "axis"), LINES)
def test_lines_give_the_same_bits_alone(dtype, shape, window, axis):
    x = numbers((1, *shape), dtype)
    names = [onnxpool.MaxPool] if dtype == np.uint8 else [onnxpool.MaxPool, onnxpool.AveragePool, onnxpool.LpPool]
    for operator in names:
        attributes = along(axis, *window)
        together = operator(**attributes)(x)
        last = operator(**attributes, channels_last=True)(to_last(x))
        assert to_first(last).tobytes() == together.tobytes()
        op, across = operator(**attributes), 3 - axis
        for i in range(0, x.shape[across], 7):
            line = np.s_[:, :1, i:i + 1] if across == 2 else np.s_[:, :1, :, i:i + 1]
            assert op(np.ascontiguousarray(x[line])).tobytes() == together[line].tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("side", [31, 64, 127])
def test_maxima_of_large_windows(dtype, channels_last, side):
    """This includes tiles that are cut to use little memory."""
    x = numbers((2, 33, 70, 81), dtype)
    pad = side // 2
    least = 0 if dtype == np.uint8 else -np.inf
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=least)
    expected = padded
    for axis in 2, 3:
        expected = np.lib.stride_tricks.sliding_window_view(expected, side, axis=axis).max(axis=-1)
    source = to_last(x, channels_last)
    y = onnxpool.max_pool(source, (side, side), pads=[pad] * 4, channels_last=channels_last)
    assert np.array_equal(to_first(y, channels_last).astype(np.float64), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, -1])
def test_the_last_nan_of_a_long_window(dtype, order):
    """The same NaN is returned as from short windows, whose taps overlap nowhere."""
    bits = np.uint32 if dtype == np.float32 else np.uint64
    x = numbers((1, 1, 20, 60), np.dtype(dtype))
    payload = np.arange(1, 41, dtype=bits)[::order]
    x[0, 0, :, 10:50] = (np.array(np.nan, dtype).view(bits) + payload).view(dtype)
    y = onnxpool.max_pool(x, (1, 31))
    taps = x[0, 0, 0]
    expected = [taps[max(j for j in range(i, i + 31) if np.isnan(taps[j]))] for i in range(30)]
    assert y[0, 0, 7].tobytes() == np.array(expected).tobytes()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("side", [31, 44, 64])
def test_means_of_large_windows(dtype, channels_last, side):
    x = numbers((2, 20, 70, 81), dtype)
    pad = side // 2
    total, taps = x.astype(np.float64), np.ones(x.shape)
    for axis in 2, 3:
        widths = [(pad, pad) if a == axis else (0, 0) for a in range(4)]
        total, taps = (np.lib.stride_tricks.sliding_window_view(np.pad(a, widths), side, axis=axis).sum(axis=-1)
                       for a in (total, taps))
    source = to_last(x, channels_last)
    y = onnxpool.average_pool(source, (side, side), pads=[pad] * 4, channels_last=channels_last)
    error = {2: 1e-3 if dtype == np.float16 else 5e-3, 4: 1e-6, 8: 1e-14}[dtype.itemsize]
    assert np.allclose(to_first(y, channels_last).astype(np.float64), total / taps, error, error)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("taps", "stride"), [(10, 5), (9, 3), (16, 2), (25, 5), (24, 8), (49, 7), (64, 8), (66, 6)])
@pytest.mark.parametrize("pad", [0, 4])
def test_means_of_whole_steps(dtype, taps, stride, pad):
    """Windows along one axis whose stride divides the taps give the same bits over adjacent channels as over rows."""
    for channels, windows in ((16, 1), (17, 40), (32, 9), (40, 3), (64, 70), (100, 21)):
        x = numbers((2, channels, taps + stride * (windows - 1) + 1), dtype)
        x[0, 1, 3] = np.inf
        x[1, :, :taps] *= dtype.type(1e-4 if dtype == np.float16 else 1e-30)
        op = onnxpool.AveragePool(kernel_shape=[taps], strides=[stride], pads=[pad, pad])
        expected = op(x)
        last = onnxpool.AveragePool(kernel_shape=[taps], strides=[stride], pads=[pad, pad], channels_last=True)
        dense = to_last(x)
        assert to_first(last(dense)).tobytes() == expected.tobytes()
        sliced = np.zeros((2, dense.shape[1] + 3, channels + 5), dtype)[:, 1:-2, 2:-3]
        sliced[...] = dense
        out = np.zeros((2, windows + 9 + pad, channels + 2), dtype)[:, :expected.shape[2], 1:-1]
        assert to_first(last(sliced, out=out)).tobytes() == expected.tobytes()


LONG = [  # spatial shape, kernel, strides, dilations, pads, ceil_mode
    ((70,), [33], [1], [1], [16, 16], 0),
    ((90,), [11], [4], [3], [9, 7], 1),
    ((60, 9), [31, 3], [1, 1], [1, 1], [15, 1, 15, 1], 0),
    ((9, 60), [2, 17], [1, 2], [1, 3], [1, 16, 0, 16], 0),
    ((40, 33), [21, 32], [1, 1], [1, 1], [20, 31, 20, 31], 0),
    ((33, 41), [1, 21], [1, 1], [1, 1], [0, 10, 0, 10], 0),
    ((41, 33), [21, 1], [1, 1], [1, 1], [10, 0, 10, 0], 0),
    ((5, 30, 6), [1, 15, 1], [1, 1, 1], [1, 1, 1], [0, 7, 0, 0, 7, 0], 0),
    ((5, 30, 6), [1, 15, 3], [1, 1, 1], [1, 1, 1], [0, 7, 1, 0, 7, 1], 0),
    ((20, 40), [1, 31], [4, 1], [1, 1], [0, 15, 0, 15], 0),
    ((20, 40), [3, 31], [1, 1], [5, 1], [5, 15, 5, 15], 0),
    ((24, 5, 25), [13, 2, 9], [1, 1, 1], [1, 1, 2], [6, 0, 8, 6, 1, 8], 0),
    ((12, 11, 13), [9, 10, 11], [1, 1, 1], [1, 1, 1], [8, 9, 10, 8, 9, 10], 0),
]


@pytest.mark.parametrize("dtype", [np.dtype(np.int8), *DTYPES], ids=str)
@pytest.mark.parametrize("geometry", LONG, ids=str)
@pytest.mark.parametrize("odd", [None, "elements", "sums"])
def test_channels_of_long_windows_give_the_same_bits_alone(dtype, geometry, odd):
    """Several vectors of channels at a time, of one row or of neighbouring rows, to and from strided elements."""
    spatial, *given, ceil_mode = geometry
    attributes = dict(zip(("kernel_shape", "strides", "dilations", "pads"), given, strict=True), ceil_mode=ceil_mode)
    names = [onnxpool.MaxPool] if dtype.kind in "iu" else [onnxpool.MaxPool, onnxpool.AveragePool, onnxpool.LpPool]
    rng = np.random.default_rng(7)
    for channels in (16, 70) if odd else (16, 32, 40, 64, 70, 129):
        x = (rng.integers(-100, 100, (2, channels, *spatial)) if dtype.kind in "iu" else
             rng.standard_normal((2, channels, *spatial))).astype(dtype)
        if odd == "sums" and dtype.kind not in "iu":
            x[:, ::2] = ml_dtypes.finfo(dtype).max
        if odd == "elements" and dtype.kind not in "iu":
            x.flat[rng.integers(0, x.size, 3)] = [np.inf, -np.inf, np.nan]
            x[0, 3] *= dtype.type(1e-4 if dtype == np.float16 else 1e-37)
        sliced = np.zeros((2, *spatial, channels + 5), dtype)[..., 2:-3]
        sliced[...] = np.moveaxis(x, 1, -1)
        for operator in names:
            last = np.moveaxis(operator(**attributes, channels_last=True)(sliced), -1, 1)
            for c in (0, 3, channels - 1):
                alone = operator(**attributes)(np.ascontiguousarray(x[:, c:c + 1]))
                assert last[:, c:c + 1].tobytes() == alone.tobytes()


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("operator", [onnxpool.MaxPool, onnxpool.AveragePool, onnxpool.LpPool])
def test_many_long_windows_without_a_tap(operator, channels_last):
    """This includes tiles of nothing else, which, channels last, were once not written."""
    x = np.ones((1, 20000, 16) if channels_last else (1, 16, 20000), np.float32)
    out = np.full((1, 21992, 16) if channels_last else (1, 16, 21992), 5, np.float32)
    operator(kernel_shape=[9], pads=[2000, 0], channels_last=channels_last)(x, out=out)
    empty = {onnxpool.MaxPool: -np.inf, onnxpool.AveragePool: np.nan, onnxpool.LpPool: 0}[operator]
    assert np.array_equal(np.unique(out[:, :1992] if channels_last else out[..., :1992]), [empty], equal_nan=True)


@pytest.mark.parametrize("pool", ["average_pool", "max_pool"])
@pytest.mark.parametrize(("extents", "kernel", "strides", "pads"), [
    ((7, 8, 2), (9, 9, 1), (1, 9, 3), (4, 0, 0, 4, 1, 0)),
    ((66, 8, 1), (21, 9, 1), (33, 4, 2), (6, 0, 0, 0, 1, 0)),
    ((9, 4, 7), (11, 9, 2), (4, 2, 3), (2, 0, 1, 6, 5, 0)),
    ((12, 2, 10, 3), (10, 1, 11, 2), (1, 1, 2, 1), (5, 0, 3, 0, 4, 0, 6, 1)),
])
def test_many_taps_along_two_axes_before_short_rows(pool, extents, kernel, strides, pads):
    """Rows in the padding of the second axis once overwrote the first rows of the next window of the first axis."""
    x = np.random.default_rng(9).integers(-9, 9, (2, 3, *extents)).astype(np.float32)
    y = getattr(onnxpool, pool)(x, kernel_shape=kernel, strides=strides, pads=pads, num_threads=1)
    reduce = np.mean if pool == "average_pool" else np.max
    for place in np.ndindex(y.shape):
        window = tuple(slice(max(0, at * stride - pad), at * stride - pad + taps) for at, stride, pad, taps
                       in zip(place[2:], strides, pads, kernel, strict=False))
        np.testing.assert_allclose(y[place], reduce(x[place[:2]][window]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize(("size", "kernel", "strides"), [
    ((100, 100), (9, 9), (1, 1)), ((146, 108), (16, 11), (1, 2)), ((200, 31), (9, 9), (2, 1)),
    ((90, 64), (25, 2), (1, 2)), ((90, 40), (13, 3), (1, 3)),
])
def test_many_rows_of_many_taps_along_two_axes(dtype, size, kernel, strides):
    """Some rows at a time are reduced in place. What a vector wrote beyond them once ended up in the next ones."""
    x = np.random.default_rng(0).integers(0, 100, (1, 2, *size)).astype(dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))[:, :, :: strides[0], :: strides[1]]
    y = onnxpool.max_pool(x, kernel_shape=kernel, strides=strides, num_threads=1)
    assert np.array_equal(y, windows.max((-1, -2)))
    if dtype != "uint8":
        means = onnxpool.average_pool(x, kernel_shape=kernel, strides=strides, num_threads=1).astype(np.float64)
        np.testing.assert_allclose(means, windows.astype(np.float64).mean((-1, -2)), rtol=1e-3)
