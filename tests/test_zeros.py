"""Maxima among zeros of both signs: the first of equals in row-major order, also where columns are combined first."""

import functools
import itertools

import ml_dtypes
import numpy as np
import pytest
from test_taps import laid, taps

import onnxpool

DTYPES = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
CHANNELS = [8, 16, 40, 64, 100, 130, 256]
SHAPES = [(9, 12), (6, 37), (5, 6, 18)]


def later(result: np.ndarray, tap: np.ndarray) -> np.ndarray:
    """The greater of two; the first if they are equal, and any NaN."""
    return np.where((tap > result) | np.isnan(tap), tap, result)


def drawn(rng: np.random.Generator, axes: int) -> dict:
    kernel = rng.integers(2, 4, axes)
    pads = np.concatenate([rng.integers(0, kernel), rng.integers(0, kernel)])
    return {"kernel_shape": kernel.tolist(), "strides": rng.integers(1, 4, axes).tolist(),
            "dilations": rng.integers(1, 3, axes).tolist(), "pads": pads.tolist()}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("nans", [0, 0.002])
def test_first_of_equals(dtype: np.dtype, last: bool, nans: float) -> None:
    rng = np.random.default_rng(int(last))
    for channels, shape, negative in itertools.product(CHANNELS, SHAPES, [0, 0.01, 0.5]):
        attributes = drawn(rng, len(shape))
        x = np.maximum(rng.standard_normal((1, channels, *shape)) - 1, 0)
        x = np.where(rng.random(x.shape) < negative, -x, x)
        x[rng.random(x.shape) < nans] = np.nan
        expected = functools.reduce(later, taps(x.astype(dtype).astype(np.float64), attributes, -np.inf)).astype(dtype)
        pool = onnxpool.MaxPool(**attributes, channels_last=last)
        y, expected = pool(laid(x.astype(dtype), last)).astype(np.float64), laid(expected, last).astype(np.float64)
        assert np.array_equal(y, expected, equal_nan=True), (channels, shape, attributes)
        odd = (np.signbit(y) != np.signbit(expected)) & ~np.isnan(y)
        assert not odd.any(), (channels, shape, attributes)
