"""Strides, pads and kernels that are far larger than any array, separately and combined."""

import numpy as np
import pytest

import onnxpool

HUGE = 2**60
# Windows of 3 taps: the first is far before all elements, the second on elements 0 to 2, the last far beyond all.
FAR = {"strides": HUGE, "pads": HUGE}
FLOATS = {"float16": 65504, "float32": 3e38, "float64": 2.0**1023}
SHAPES = [(1, 1, 8), (2, 3, 5), (1, 40, 5), (1, 3, 4, 70), (1, 40, 4, 6), (1, 2, 3, 3, 9)]


def pooled(function, x, last, apart, kernel, **attributes):
    """Results with channels first. Strided elements are copied together by the call."""
    if last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    if apart:
        x = x.astype(x.dtype.newbyteorder())
    result = function(x, (kernel,) * (x.ndim - 2), channels_last=last, **attributes)
    return [np.moveaxis(y, -1, 1) if last else y for y in (result if isinstance(result, tuple) else (result,))]


def at_the_middle(value, others, y):
    """The value where a window lies on elements along each axis."""
    expected = np.full_like(y, others)
    expected[(slice(None), slice(None), *[1] * (y.ndim - 2))] = value
    return expected


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums(dtype, shape, last, apart):
    """This includes numbers whose sum overflows and is computed again, which once wrote beyond scratch memory."""
    for value in (FLOATS[dtype], 1):
        x = np.full(shape, value, dtype)
        mean, = pooled(onnxpool.average_pool, x, last, apart, 3, **FAR)
        assert np.array_equal(mean, at_the_middle(value, np.nan, mean), equal_nan=True)
        norm, = pooled(onnxpool.lp_pool, x / 9, last, apart, 3, p=2, **FAR)
        expected = at_the_middle((x / 9).flat[0] * np.sqrt(3.0 ** (len(shape) - 2)), 0, norm)
        np.testing.assert_allclose(norm.astype(float), expected.astype(float), 1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "int8", *FLOATS])
def test_maxima(dtype, shape, last, apart):
    """The smallest value and the index -1 where there is no element."""
    x = np.full(shape, 7, dtype)
    y, indices = pooled(onnxpool.max_pool, x, last, apart, 3, return_indices=True, **FAR)
    least = np.iinfo(dtype).min if np.dtype(dtype).kind in "iu" else -np.inf
    assert np.array_equal(y, at_the_middle(7, least, y))
    assert np.array_equal(indices == -1, at_the_middle(0, 1, indices).astype(bool))
    assert np.array_equal(pooled(onnxpool.max_pool, x, last, apart, 3, **FAR)[0], y)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quantised_means(dtype, last):
    """A window without elements has the mean zero."""
    x = np.full((1, 40, 4, 6), 9, dtype)
    zero = np.zeros((), dtype)

    def quantised(x, kernel, **attributes):
        return onnxpool.qlinear_average_pool(x, np.float32(1), zero, np.float32(1), zero, kernel, **attributes)

    y, = pooled(quantised, x, last, False, 3, **FAR)
    assert np.array_equal(y, at_the_middle(9, 0, y))


@pytest.mark.parametrize("channels", [1, 3, 64])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kernel", [(2, HUGE), (HUGE, 2), (HUGE, HUGE)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_of_kernels_that_reach_far_into_padding(dtype, kernel, last, channels):
    """The position of an element in the tree of a sum counts taps in the padding."""
    x = np.ones((1, channels, 2, 5), dtype)
    y = onnxpool.lp_pool(np.moveaxis(x, 1, -1) if last else x, kernel, auto_pad="SAME_UPPER", channels_last=last)
    y = np.moveaxis(y, -1, 1) if last else y
    # A kernel of 2 reads one element beyond its window, if there is one.
    along = [np.full(n, n) if taps == HUGE else np.append(np.full(n - 1, 2), 1)
             for n, taps in zip((2, 5), kernel, strict=True)]
    expected = np.broadcast_to(np.sqrt(np.outer(*along)), y.shape)
    np.testing.assert_allclose(y.astype(float), expected, 1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", *FLOATS])
def test_dilations(dtype, shape, last):
    """Only the middle tap is inside. Others are so far that their distance in memory exceeds 64 bits."""
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    far = {"dilations": HUGE, "pads": HUGE}
    y, indices = pooled(onnxpool.max_pool, x, last, False, 3, return_indices=True, **far)
    assert np.array_equal(y, x)
    assert np.array_equal(np.sort(indices, axis=None), np.arange(x.size))
    assert np.array_equal(pooled(onnxpool.max_pool, x, last, False, 3, **far)[0], x)
    if dtype != "uint8":
        assert np.array_equal(pooled(onnxpool.average_pool, x, last, False, 3, **far)[0], x)
        assert np.array_equal(pooled(onnxpool.lp_pool, x, last, False, 3, p=1, **far)[0], x)
