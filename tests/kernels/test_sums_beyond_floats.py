"""Means of float32 and bfloat16 whose sums are beyond the range of a float, beside others in the same rows."""

import ml_dtypes
import numpy as np
import pytest
from support import same_bits, taps, to_last

import onnxpool
from onnxpool import base, kernels
from onnxpool.planning.ways import Forced

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


STRIDED = {
    "every second column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
}
SOLVERS = (None, *sorted({row["name"] for row in kernels.routes()}))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("memory", STRIDED)
@pytest.mark.parametrize(("operator", "dtype", "exponent"), [
    (onnxpool.AveragePool, np.float32, 126), (onnxpool.AveragePool, ml_dtypes.bfloat16, 126),
    (onnxpool.AveragePool, np.float64, 1022), (onnxpool.LpPool, np.float64, 1000)])
def test_strided_rows_are_computed_again(monkeypatch, operator, dtype, exponent, memory, solver):
    """By another solver than the first time, which may need contiguous rows where the first one does not. Sums over
    windows of more than 8 places and several axes were once wrong by any amount."""
    rng = np.random.default_rng(4)
    before = kernels.pools.tiles_computed_again()
    for rank in (1, 2, 3):
        for _ in range(12):
            kernel = rng.choice([1, 2, 3, 9, 12], rank)
            pads = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
            pool = operator(kernel_shape=kernel.tolist(), strides=rng.integers(1, 4, rank).tolist(), pads=pads,
                            ceil_mode=1)
            sizes = [max(1, k - pads[a] - pads[rank + a]) + int(rng.integers(0, 9)) for a, k in enumerate(kernel)]
            x = (rng.standard_normal((1, 7, *sizes)).clip(-3, 3) * 2.0**exponent).astype(dtype)
            expected = pool(x)
            monkeypatch.setattr(Forced, "solver", solver)
            base._plan.cache_clear()
            strided = STRIDED[memory](x)
            assert same_bits(strided, x)
            out = np.full((*expected.shape, 2), 7, dtype)[..., 0]
            for y in (pool(strided), pool(strided, out=out), pool(x, out=out)):
                assert same_bits(y, expected), (pool, x.shape)
            monkeypatch.setattr(Forced, "solver", None)
            base._plan.cache_clear()
    assert kernels.pools.tiles_computed_again() > before


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_norms_of_tiny_and_huge_elements(dtype):
    """Their powers leave the range of doubles for some exponents, which depend on the dtype."""
    limits = ml_dtypes.finfo(dtype)
    tiny, huge = float(limits.smallest_subnormal), float(limits.max) / 2
    for p in (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 20, 32, 40, 41, 43, 50, 60, 61, 70, 100, 500):
        for element in (tiny, 1000 * tiny, huge):
            x = np.full((1, 1, 2), element, dtype)
            (y,) = onnxpool.lp_pool(x, 2, p=p).ravel().astype(np.float64)
            wanted = float(x[0, 0, 0]) * 2 ** (1 / p)
            unit = max(tiny, wanted * float(limits.eps))
            assert abs(y - wanted) <= 0.51 * unit or (dtype is np.float64 and abs(y - wanted) <= 4 * unit), (p, element)
