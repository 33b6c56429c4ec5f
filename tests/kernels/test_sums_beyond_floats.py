"""Means of float32 and bfloat16 whose sums are beyond the range of a float, beside others in the same rows."""

import ml_dtypes
import numpy as np
import pytest
from support import same_bits, taps, to_last

import onnxpool
from onnxpool import kernels

DTYPES = [np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32)]
CHANNELS = (1, 2, 3, 5, 17, 34)  # rows that fill registers, and rows that leave a few lanes


def elements(rng, shape, dtype):
    """Large elements, everywhere or only in a few places. All sums are exact, and counts are to be powers of two."""
    large, small = np.where(rng.random(shape) < 0.8, 1.5, -1.25) * 2.0**127, rng.integers(-8, 9, shape) * 2.0**113
    return np.where(rng.random(shape) < rng.choice([1.0, 0.3, 0.01]), large, small).astype(dtype)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_beyond_the_range_are_computed_again(dtype, last):
    """Tiles hold results that are right as well, and rows whose last register is not full. None may be lost."""
    rng = np.random.default_rng(2)
    before, beyond = kernels.pools.tiles_computed_again(), 0
    for kernel, stride, pad in [(2, 1, 0), (2, 2, 1), (4, 3, 1), (4, 1, 3), (8, 1, 4), (16, 16, 0)]:
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        for channels in CHANNELS:
            x = elements(rng, (2, channels, *rng.integers(20, 44, 2)), dtype)
            y = onnxpool.average_pool(to_last(x, last), **window, count_include_pad=1, channels_last=last)
            total = sum(taps(x.astype(np.float64), **window))
            assert same_bits(np.moveaxis(y, -1, 1) if last else y, (total / kernel**2).astype(dtype))
            beyond += int((np.abs(total) > 2.0**128).sum())
    assert beyond > 1000
    assert kernels.pools.tiles_computed_again() > before


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_of_whole_channels(dtype, last):
    rng = np.random.default_rng(3)
    for channels in CHANNELS:
        for sizes in [(8, 8), (16, 8, 2), (256,), (32, 64)]:
            x = elements(rng, (3, channels, *sizes), dtype)
            y = onnxpool.global_average_pool(to_last(x, last), channels_last=last).reshape(3, channels)
            assert same_bits(y, x.astype(np.float64).reshape(3, channels, -1).mean(axis=2).astype(dtype))
