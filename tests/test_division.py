"""A mean is its sum divided with one rounding, whatever instructions divide."""

import numpy as np
import pytest

import onnxpool

DIVISORS = [*range(1, 50), 99, 121, 127, 255, 961, 1000, 4097]
EDGES = {"float32": np.uint32, "float64": np.uint64}


def values(dtype: str, count: int) -> np.ndarray:
    """Finite values of every exponent, zeros of both signs, the smallest and the largest."""
    bits = EDGES[dtype]
    x = np.random.default_rng(count).integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype)
    info = np.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    return np.concatenate([x[np.isfinite(x)], np.array(edges, dtype)])


@pytest.mark.parametrize("tiny", [False, True], ids=["without tiny sums", "with tiny sums"])
@pytest.mark.parametrize("dtype", sorted(EDGES))
def test_one_rounding(dtype: str, tiny: bool) -> None:
    """Windows hold one value and negative zeros, which add nothing: the mean is the value over the taps."""
    for taps in DIVISORS:
        x = values(dtype, 700)
        x = x if tiny else x[(x == 0) | (abs(x) > 1e-15)]
        windows = np.full((1, len(x), taps), -0.0, dtype)
        windows[0, :, taps // 2] = x
        y = onnxpool.average_pool(windows, taps)[0, :, 0]
        expected = x / np.dtype(dtype).type(taps)
        assert np.array_equal(y.view(EDGES[dtype]), expected.view(EDGES[dtype])), taps
