"""Norms with small p. The first versions of LpPool and GlobalLpPool allow any p above 0."""

import math

import numpy as np
import pytest

import onnxpool


@pytest.mark.parametrize("p", [1e-30, 1e-19, 5e-4, 1 / 1074, 1 / 1023, 1 / 600, 1 / 100, 0.3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_single_elements_are_magnitudes(p: float, dtype: str) -> None:
    """The norm is the magnitude, up to the digits that a power with this p loses."""
    x = np.array([[[1, -1, 3, -0.01, 1e30, 1e-30, 0, np.inf, np.nan]]], dtype)
    y = onnxpool.lp_pool(x, 1, p=p, opset=1)
    lost = 2.0**-50 / p
    if lost < 1:
        np.testing.assert_allclose(y, np.abs(x), rtol=lost + np.finfo(dtype).eps)
    exact = [0, 1, 6, 7, 8] if p < 1 / 512 else [6, 7, 8]  # 1, 0, infinity and NaN
    np.testing.assert_array_equal(y[0, 0, exact], np.abs(x[0, 0, exact]))


@pytest.mark.parametrize("p", [1e-30, 5e-4, 1 / 1000, 1 / 500, 1 / 64])
@pytest.mark.parametrize("count", [2, 3, 100])
def test_norms_of_ones_are_powers_of_their_number(p: float, count: int) -> None:
    """A norm of n ones is a power of n, which soon exceeds the range."""
    (y,) = onnxpool.global_lp_pool(np.ones((1, 1, count)), p=p, opset=1).ravel()
    digits = math.log2(count) / p
    if digits >= 1024:
        assert y == np.inf
    else:
        assert y == pytest.approx(2**digits, rel=2.0**-50 / p)
