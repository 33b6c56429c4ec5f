"""Windows with a tap before all elements and the next one beyond them are as empty as those at the ends."""

import numpy as np
import pytest

import onnxpool

# For an axis of one element, a kernel of 2 taps 2 apart, and padding of 3: whether each window reads the element.
READS = np.array([False, True, False, True, False])
SHAPES = [(1, 1, 1), (2, 3, 1), (1, 40, 1), (1, 3, 2, 1), (1, 40, 70, 1), (2, 1, 3, 2, 1)]


def windows(shape):
    """Those of the last axis; others have one tap."""
    inner = len(shape) - 3
    return {"kernel_shape": [1] * inner + [2], "dilations": [1] * inner + [2], "pads": [*[0] * inner, 3] * 2}


def pooled(function, shape, dtype, last, **attributes):
    """Results for ones, channels first."""
    x = np.ones(shape, dtype)
    result = function(np.moveaxis(x, 1, -1) if last else x, **windows(shape), **attributes, channels_last=last)
    results = result if isinstance(result, tuple) else (result,)
    return [np.moveaxis(y, -1, 1) if last else y for y in results]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32", "float64"])
def test_maxima_have_no_index(dtype, shape, last):
    """The smallest value, and the index -1."""
    dtype = np.dtype(dtype)
    least = np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
    for storage_order in (0, 1):
        y, indices = pooled(onnxpool.max_pool, shape, dtype, last, return_indices=True, storage_order=storage_order)
        assert np.array_equal(y, np.broadcast_to(np.where(READS, 1, least), y.shape).astype(dtype))
        assert np.array_equal(indices == -1, np.broadcast_to(~READS, y.shape))
    plain, = pooled(onnxpool.max_pool, shape, dtype, last)
    assert np.array_equal(plain, y)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_are_a_zero_without_a_sign(dtype, shape, last):
    """For means that count the padding, and for norms."""
    mean, = pooled(onnxpool.average_pool, shape, dtype, last, count_include_pad=1)
    norm, = pooled(onnxpool.lp_pool, shape, dtype, last, p=2)
    for y, value in ((mean, 0.5), (norm, 1)):
        assert np.array_equal(y, np.broadcast_to(np.where(READS, value, 0), y.shape).astype(dtype))
        assert not np.signbit(y).any()
