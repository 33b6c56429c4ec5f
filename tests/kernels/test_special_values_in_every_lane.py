"""NaN, infinities and zeros in every lane of a vector, and at every length of the remainder after the last one.

The expected values are computed tap by tap with NumPy, by the rule that a NaN stays the maximum. Zeros of both signs
are equal.
"""

import itertools

import ml_dtypes
import numpy as np
import pytest
from support import FLOATS, assert_same_bits, assert_same_values, largest, taps, to_last

import onnxpool

LENGTHS = (*range(1, 36), 47, 48, 49, 63, 64, 65, 95, 127, 128, 129, 130)
SPECIAL = {"nan": (np.nan, 5.0), "inf": (np.inf, 5.0), "-inf": (-np.inf, 5.0), "zeros": (-0.0, 0.0)}


def planted(n, dtype, special):
    """Row i of n rows: a special value at i, one before it, one below it after it, and negative numbers elsewhere."""
    value, other = SPECIAL[special]
    x = np.full((n, n), -1, dtype)
    x[np.arange(n), np.arange(n)] = value
    x[np.arange(n - 1), np.arange(1, n)] = min(other, 0.0) if other else other
    return x


@pytest.mark.parametrize(("dtype", "special"), list(itertools.product(FLOATS, SPECIAL)), ids=str)
def test_global_maximum_of_neighbours(dtype, special):
    """Channels first, along one axis and two, with an image for each position."""
    for n in LENGTHS:
        x = planted(n, dtype, special)
        expected = largest(list(x.T))
        assert_same_values(onnxpool.global_max_pool(x[:, None])[:, 0, 0], expected)
        assert_same_values(onnxpool.global_max_pool(np.repeat(x[:, None, None], 3, axis=2))[:, 0, 0, 0], expected)
        strided = np.repeat(x, 2, axis=1)[:, None, ::2]
        assert_same_values(onnxpool.global_max_pool(strided)[:, 0, 0], expected)


@pytest.mark.parametrize(("dtype", "special"), list(itertools.product(FLOATS, SPECIAL)), ids=str)
@pytest.mark.parametrize("channels", [2, 3, 5, 8, 15, 16, 17, 20, 31, 32, 33, 48, 63, 64, 65, 70, 130, 1100])
def test_global_maximum_of_channels(dtype, special, channels):
    """Channels last: in every image and channel, another position is special."""
    for n in (1, 2, 5, 16, 17, 49, 65, 130) if channels < 40 else (1, 5, 17, 65) if channels < 1000 else (7,):
        x = np.stack([np.roll(planted(n, dtype, special), c, axis=0) for c in range(channels)], axis=-1)
        expected = largest(np.moveaxis(x, 1, 0))
        assert_same_values(onnxpool.global_max_pool(x, channels_last=True)[:, 0], expected)
        for strided in np.repeat(x, 2, axis=1)[:, ::2], np.repeat(x, 2, axis=2)[..., ::2]:
            assert_same_values(onnxpool.global_max_pool(strided, channels_last=True)[:, 0], expected)


@pytest.mark.parametrize(("dtype", "special"), list(itertools.product(FLOATS, SPECIAL)), ids=str)
@pytest.mark.parametrize(("kernel", "stride"), [((3, 3), 1), ((3, 3), 2), ((2, 2), 2), ((1, 5), 1), ((1, 9), 3),
                                                 ((5, 1), 1), ((5, 5), 1), ((4, 2), 2), ((4, 4), 4), ((5, 5), 5)])
def test_windows_over_channels(dtype, special, kernel, stride):
    """Channels last: every channel is special in turn, at a position of its own in a plane of 6x9."""
    for n in (1, 3, 15, 16, 17, 31, 32, 33, 64, 65):
        x = np.full((n, 6, 9, n), -1, dtype)
        value, other = SPECIAL[special]
        for i in range(n):
            x[i, i % 6, i % 7, i] = value
            x[i, i % 6, i % 7 + 1, i] = min(other, 0.0) if other else other
        rows, columns = ((size - k) // stride + 1 for size, k in zip((6, 9), kernel, strict=True))
        taps = [x[:, r:r + (rows - 1) * stride + 1:stride, c:c + (columns - 1) * stride + 1:stride]
                for r in range(kernel[0]) for c in range(kernel[1])]
        y = onnxpool.max_pool(x, kernel, strides=(stride, stride), channels_last=True)
        assert_same_values(y, largest(taps))
        first = onnxpool.max_pool(np.ascontiguousarray(np.moveaxis(x, -1, 1)), kernel, strides=(stride, stride))
        assert_same_values(np.moveaxis(first, 1, -1), largest(taps))


ROW_WINDOWS = [((3, 3), (2, 2)), ((3, 3), (1, 1)), ((2, 2), (2, 2)), ((2, 3), (1, 3)), ((3, 1), (2, 1)),
               ((1, 3), (1, 2))]


@pytest.mark.parametrize(("dtype", "special"), list(itertools.product(FLOATS, SPECIAL)), ids=str)
@pytest.mark.parametrize(("kernel", "strides"), ROW_WINDOWS)
def test_windows_over_rows(dtype, special, kernel, strides):
    """Channels first: every column is special in turn, in rows too long to be transposed."""
    value, other = SPECIAL[special]
    for n in (49, 50, 56, 63, 64, 65, 70, 97, 129):
        x = np.full((n, 1, 7, n), -1, dtype)
        for i in range(n):
            x[i, 0, i % 6, i] = value
            x[i, 0, i % 6 + 1, i - 1] = min(other, 0.0) if other else other
        assert_same_values(onnxpool.max_pool(x, kernel, strides=strides), largest(taps(x, kernel, strides)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("kernel", "strides"), ROW_WINDOWS)
def test_zeros_and_nans_of_rows(dtype, kernel, strides):
    """Rows with many zeros of both signs, and some NaNs."""
    rng = np.random.default_rng(0)
    for n in (16, 33, 61, 130):
        for values in ((-0.0, 0.0), (-1.0, -0.0, 0.0), (-1.0, -0.0, 0.0, 0.5, np.nan), (0.0,)):
            x = rng.choice(np.array(values, dtype), (2, 3, 40, n))
            assert_same_values(onnxpool.max_pool(x, kernel, strides=strides), largest(taps(x, kernel, strides)))
            pads = (kernel[0] - 1, kernel[1] - 1) * 2
            padded = np.pad(x, ((0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2), constant_values=-np.inf)
            assert_same_values(onnxpool.max_pool(x, kernel, strides=strides, pads=pads),
                 largest(taps(padded, kernel, strides)))
            deep = np.stack([x, x[..., ::-1]], axis=2)
            expected = largest([*taps(deep[:, :, 0], kernel, strides), *taps(deep[:, :, 1], kernel, strides)])
            assert_same_values(onnxpool.max_pool(deep, (2, *kernel), strides=(1, *strides))[:, :, 0], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("size", "stride", "pad"), [(3, 1, 1), (3, 2, 0), (2, 2, 0), (2, 1, 1)])
def test_tiny_and_huge_means_of_rows_are_correctly_rounded(dtype, size, stride, pad):
    """Rows whose quotients differ from those of fused steps, next to rows whose quotients do not."""
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    scales = np.array([float(info.tiny) * 4, float(info.max) / 2, 1.0, 0.0, np.inf])
    x = (rng.uniform(1, 2, (1, 3, 70, 61)) * rng.choice(scales, (1, 3, 70, 1))).astype(dtype)
    y = onnxpool.average_pool(x, size, strides=stride, pads=pad).astype(np.longdouble)
    padded = np.pad(x.astype(np.longdouble), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    counts = np.pad(np.ones_like(x), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    exact = sum(taps(padded, (size, size), (stride, stride)))
    exact /= sum(taps(counts, (size, size), (stride, stride)))
    finite = np.isfinite(exact)
    assert np.array_equal(np.isfinite(y), finite)
    allowed = 5 * np.maximum(np.spacing(exact[finite].astype(dtype)), info.smallest_subnormal)
    assert np.all(np.abs(y[finite] - exact[finite]) <= allowed)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("kernel", "strides"), ROW_WINDOWS)
def test_rows_of_every_width(dtype, kernel, strides):
    """Channels first: few channels and many rows, in strips, give the same bits as channels last, close to the mean."""
    rng = np.random.default_rng(0)
    for n in (*range(3, 20, 2), 16, 31, 33, 48, 49, 56, 57, 64, 333):
        x = rng.standard_normal((2, 3, 150, n)).astype(dtype)
        wide = np.repeat(np.moveaxis(x, 1, -1), 11, axis=-1)
        for pads in ((0, 0, 0, 0), (kernel[0] - 1, 0, 0, kernel[1] - 1)):
            padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
            for pool in (onnxpool.average_pool, onnxpool.lp_pool, onnxpool.max_pool):
                y = pool(x, kernel, strides=strides, pads=pads)
                last = pool(wide, kernel, strides=strides, pads=pads, channels_last=True)[..., ::11]
                assert to_last(y).tobytes() == last.tobytes(), (n, pads, pool)
            y = onnxpool.average_pool(x, kernel, strides=strides, pads=pads, count_include_pad=1)
            expected = sum(taps(padded, kernel, strides)) / np.prod(kernel)
            assert np.abs(y.astype(np.float64) - expected).max() < 8 * float(ml_dtypes.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_small_planes_are_taken_together(dtype, channels):
    """Several planes at a time give the same bits as each alone, up to the last, beyond which nothing can be read."""
    rng = np.random.default_rng(0)
    for size in (*((n, n) for n in (*range(3, 20), 33, 50)), (40, 3), (150, 5), (7, 2), (3, 60)):
        x = rng.standard_normal((29, channels, *size)).astype(dtype)
        for kernel, stride, pads in ((3, 1, 1), (3, 2, 1), (2, 2, 0), (2, 1, 1)):
            for pool in (onnxpool.average_pool, onnxpool.lp_pool, onnxpool.max_pool):
                y = pool(x, kernel, strides=stride, pads=pads)
                alone = [pool(plane[None].copy(), kernel, strides=stride, pads=pads) for plane in x]
                assert y.tobytes() == np.concatenate(alone).tobytes(), (size, kernel, stride, pool)


@pytest.mark.parametrize("dtype", ["int8", "uint8", *FLOATS], ids=str)
def test_windows_whose_rows_lie_far_apart(dtype):
    """Dilated windows of more rows than fit into a strip."""
    x = np.random.default_rng(0).integers(-90, 90, (2, 1, 900, 130)).astype(dtype)
    for dilations in ((400, 1), (30, 7), (2, 60)):
        y = onnxpool.max_pool(x, 3, dilations=dilations)
        assert np.array_equal(y, np.max(list(taps(x, (3, 3), (1, 1), dilations)), axis=0))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_means_of_what_is_not_finite(dtype, value):
    """A mean is not finite exactly where a tap is not finite; all others are those of finite data."""
    for n in (1, 7, 8, 15, 16, 17, 32, 33, 49, 64, 65, 96, 129):
        x = np.ones((n, n), dtype)
        x[np.arange(n), np.arange(n)] = value
        y = onnxpool.global_average_pool(x[:, None])[:, 0, 0]
        assert np.array_equal(y, np.full(n, value, dtype), equal_nan=True)
        last = np.ones((n, 4, 4, n), dtype)
        last[np.arange(n), 1, 2, np.arange(n)] = value
        y = onnxpool.average_pool(last, (2, 2), channels_last=True)
        expected = np.ones((n, 3, 3, n), dtype)
        for r, c in itertools.product((0, 1), (1, 2)):
            expected[np.arange(n), r, c, np.arange(n)] = value
        assert np.array_equal(y, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("channels", [64, 80, 95, 130, 255, 256, 257, 300, 511, 528, 1100, 2050])
def test_means_of_channels_wherever_they_lie(dtype, channels):
    """Channels last, at every kind of address: sums are of small integers, and therefore exact."""
    rng = np.random.default_rng(channels)
    narrow = dtype if dtype.itemsize == 8 else np.dtype(np.float32)
    for places in (1, 7, 8, 9, 16, 31, 49, 65):
        sums = rng.integers(-3, 4, (2, places, channels))
        expected = (sums.sum(1, dtype=narrow) / narrow.type(places)).astype(dtype)
        for offset in (0, dtype.itemsize, 16, 24, 48):
            memory = np.empty(sums.size * dtype.itemsize + 128, np.uint8)
            begin = -memory.ctypes.data % 64 + offset
            x = memory[begin:begin + sums.size * dtype.itemsize].view(dtype).reshape(sums.shape)
            x[...] = sums
            y = onnxpool.global_average_pool(x, channels_last=True)[:, 0]
            assert y.tobytes() == expected.tobytes(), (places, offset)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("places", "channels"), [(9000, 64), (2200, 256), (2300, 257), (2200, 300), (1200, 1000)])
def test_means_of_channels_of_large_planes(dtype, places, channels):
    """Too large to be read in pieces, and cut into segments that threads share; sums are exact."""
    narrow = dtype if dtype.itemsize == 8 else np.dtype(np.float32)
    sums = np.random.default_rng(places).integers(-3, 4, (1, places, channels))
    expected = (sums.sum(1, dtype=narrow) / narrow.type(places)).astype(dtype)
    for threads in (1, 2):
        y = onnxpool.global_average_pool(sums.astype(dtype), channels_last=True, num_threads=threads)[:, 0]
        assert y.tobytes() == expected.tobytes(), threads


@pytest.mark.parametrize("shape", [(1, 9, 9, 2048), (1, 7, 7, 4096), (1, 25, 13441), (1, 25, 13443), (16, 272, 1100)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_global_pools_of_very_many_channels(dtype, shape):
    """Results of more channels than are processed at a time, and a last tile of few channels, once overran memory."""
    x = np.random.default_rng(0).integers(0, 9, shape).astype(dtype)
    axes = tuple(range(1, x.ndim - 1))
    if dtype == np.uint8:
        y = onnxpool.qlinear_global_average_pool(x, np.float32(1), dtype(0), np.float32(1 / 16), dtype(0),
                                                 channels_last=1)
        mean = x.sum(axes, dtype=np.int64) / np.prod(shape[1:-1])
        assert np.abs(y.reshape(mean.shape) - mean * 16).max() <= 1
        return
    assert np.array_equal(onnxpool.global_max_pool(x, channels_last=True).reshape(-1, shape[-1]), x.max(axes))
    y = onnxpool.global_average_pool(x, channels_last=True).reshape(-1, shape[-1])
    assert np.array_equal(y, x.sum(axes) / dtype(np.prod(shape[1:-1])))
    y = onnxpool.global_lp_pool(x, p=2, channels_last=True).reshape(-1, shape[-1])
    np.testing.assert_allclose(y, np.sqrt(np.square(x, dtype=np.float64).sum(axes)), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
@pytest.mark.parametrize("shape", [(1, 400000, 1), (1, 100000, 64), (2, 3, 50000, 20)])
def test_zeros_and_nans_of_long_rows(dtype, shape):
    """Rows beyond the scratch memory were once read into it as a whole."""
    x = np.full(shape, -1, dtype)
    x[:, shape[1] // 2] = -0.0
    assert not onnxpool.global_max_pool(x, channels_last=True).any()
    assert np.isnan(onnxpool.global_max_pool(x * dtype.type(np.nan), channels_last=True)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [(2, 2), (3, 3), (3, 1, 2), (17, 3)])
@pytest.mark.parametrize("channels", [70, 64, 353])
def test_what_is_not_finite_changes_no_other_mean(dtype, size, channels):
    """Small planes were once summed in another order if a result was not finite."""
    x = np.random.default_rng(0).standard_normal((3, *size, channels)).astype(dtype)
    expected = onnxpool.global_average_pool(x, channels_last=True)
    x[0, ..., 5] = np.inf
    y = onnxpool.global_average_pool(x, channels_last=True)
    assert np.isinf(y[0, ..., 5]).all()
    y[0, ..., 5] = expected[0, ..., 5]
    assert y.tobytes() == expected.tobytes()


@pytest.mark.parametrize("channels", [1, 3, 20])
@pytest.mark.parametrize("last", [0, 1])
def test_the_error_of_a_long_mean_is_that_of_few_roundings(channels, last):
    """The sum of a little more than 2^20 values, added one by one, would be off by hundreds of roundings."""
    x = np.random.default_rng(0).uniform(0, 1, (1, channels, 1033, 1021)).astype(np.float32)
    expected = x.mean(axis=(2, 3), dtype=np.float64)
    if last:
        x = to_last(x)
    y = onnxpool.global_average_pool(x, channels_last=last).reshape(1, channels)
    np.testing.assert_allclose(y, expected, rtol=8 * np.finfo(np.float32).eps)


def test_the_largest_magnitude_of_negative_zeros_is_zero():
    """GlobalLpPool-1 with p = inf: the zero that a channel begins with is not its norm."""
    x = np.full((1, 2, 5, 7), -0.0, np.float32)
    y = onnxpool.global_lp_pool(x, p=np.inf, opset=1)
    assert not np.signbit(y).any()
    assert not y.any()


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
def test_tiny_and_huge_means_are_correctly_rounded(dtype):
    """Where the remainder of a division would underflow, and where the sum overflows."""
    info = np.finfo(dtype)
    rng = np.random.default_rng(0)
    for scale in (float(info.tiny) * 4, float(info.max) / 2, 1.0):
        x = (rng.uniform(1, 2, (1, 3, 3, 40)) * scale).astype(dtype)
        y = onnxpool.average_pool(x, (3, 3), channels_last=True)[0, 0, 0].astype(np.longdouble)
        exact = x.astype(np.longdouble).sum((1, 2))[0] / 9
        assert np.all(np.abs(y - exact) <= 12 * np.maximum(np.spacing(exact.astype(dtype)), info.smallest_subnormal))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantised_sums_of_every_length(dtype):
    """QLinearGlobalAveragePool for every number of elements and channels around that of a vector."""
    info, zero = np.iinfo(dtype), np.zeros((), dtype)
    rng = np.random.default_rng(1)
    for n in LENGTHS:
        x = rng.integers(info.min, info.max + 1, (2, 17, n), dtype=dtype)
        expected = np.clip(np.rint((x.sum(-1, dtype=np.int64) * np.float32(1 / n)).astype(np.float32)),
                           info.min, info.max)
        one = np.float32(1)
        y = onnxpool.qlinear_global_average_pool(x, one, zero, one, zero)[..., 0]
        assert np.abs(y.astype(int) - expected).max() <= (0 if n & (n - 1) == 0 else 1)
        last = onnxpool.qlinear_global_average_pool(to_last(x), one, zero, one, zero,
                                                    channels_last=1)[:, 0]
        assert np.array_equal(last, y)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("channels", [31, 32, 63, 64, 65, 127, 130, 1100])
def test_quantised_sums_below_each_other(dtype, channels):
    """Channels last: 16 bits cannot hold the sum of more than 257 bytes."""
    info, one, zero = np.iinfo(dtype), np.float32(1), np.zeros((), dtype)
    rng = np.random.default_rng(channels)
    for n in (1, 2, 3, 7, 8, 9, 17, 255, 256, 257, 258, 600, 5000):
        x = rng.integers(info.min, info.max + 1, (2, n, channels + 3), dtype=dtype)
        x[0, :, ::2], x[1, :, 1::3] = info.max, info.min
        for view in (x[..., 3:], x[:, ::-1, 1:-2], np.ascontiguousarray(x[..., 2:-1])):
            means = view.sum(1, dtype=np.int64).astype(np.float32) * (one / np.float32(n))
            y = onnxpool.qlinear_global_average_pool(view, one, zero, one, zero, channels_last=1)
            assert np.array_equal(y[:, 0], np.rint(means).astype(dtype)), (n, view.strides)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_whole_maxima_of_16_bits_that_are_taken_again(dtype):
    """Planes with a NaN or a negative zero were once read as if they were float32."""
    x = -np.abs(np.random.default_rng(3).standard_normal((3, 5, 9, 5), np.float32)).astype(dtype)
    x[0, :, 4, 2] = np.nan
    x[1, :, 3, 1], x[1, :, 7, 4] = -0.0, 0.0
    y = onnxpool.global_max_pool(x)[:, :, 0, 0].astype(np.float32)
    assert np.isnan(y[0]).all()
    assert (y[1] == 0).all()
    assert np.array_equal(y[2], x[2].astype(np.float32).max(axis=(1, 2)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kernel", [(5, 1), (1, 7), (5, 5), (3, 3, 3), (4, 1, 1), (1, 3, 3), (5, 2, 4)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_both_layouts_give_the_same_means_of_special_values(dtype, kernel, stride, padded):
    """Reducing the last axis yields elements, unless some are not finite or tiny."""
    rng = np.random.default_rng(0)
    for channels in (16, 17, 64, 70):
        x = rng.standard_normal((2, channels, *(size + 3 for size in kernel))).astype(dtype)
        x[1, 2:4] *= dtype.type(1e-4 if dtype == np.float16 else 1e-30)
        x[1, 5].flat[::7] = np.inf
        x[1, 6].flat[::5] = np.nan
        for image in (x[:1], x):
            pads = [size // 2 for size in kernel] * 2 if padded else 0
            expected = onnxpool.average_pool(image, kernel, strides=stride, pads=pads)
            last = to_last(image)
            y = onnxpool.average_pool(last, kernel, strides=stride, pads=pads, channels_last=True)
            assert_same_bits(np.moveaxis(y, -1, 1), expected)
