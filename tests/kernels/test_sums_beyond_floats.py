"""Sums beyond the range of a float, or below its precision, which are computed again."""

import ml_dtypes
import numpy as np
import pytest
from support import same_bits, to_first, to_last

import onnxpool
from onnxpool import base, kernels
from onnxpool.planning.ways import Forced

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
    """Strided rows are right if a retry uses another solver, which may need contiguous rows. Sums over windows of more
    than 8 places and several axes were once wrong by any amount."""
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
    """Norms are right even if powers of tiny or huge elements leave the range of doubles. The exponents that do this
    depend on the dtype."""
    limits = ml_dtypes.finfo(dtype)
    tiny, huge = float(limits.smallest_subnormal), float(limits.max) / 2
    for p in (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 20, 32, 40, 41, 43, 50, 60, 61, 70, 100, 500):
        for element in (tiny, 1000 * tiny, huge):
            x = np.full((1, 1, 2), element, dtype)
            (y,) = onnxpool.lp_pool(x, 2, p=p).ravel().astype(np.float64)
            wanted = float(x[0, 0, 0]) * 2 ** (1 / p)
            unit = max(tiny, wanted * float(limits.eps))
            assert abs(y - wanted) <= 0.51 * unit or (dtype is np.float64 and abs(y - wanted) <= 4 * unit), (p, element)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pads", [(0, 1, 0, 0), (0, 0, 0, 1), (2, 1, 0, 0)])
def test_a_sum_that_overflows_and_cancels_has_one_sign_of_zero(dtype, pads):
    """Padding does not change the sign, so that parts of a result have the same bits as the whole result."""
    top = np.finfo(dtype).max
    x = np.array([top, top, -top, -top], dtype).reshape(1, 1, 4, 1)
    y = onnxpool.AveragePool(kernel_shape=(4, 2), pads=pads)(x)
    assert y.flat[-1] == 0
    assert not np.signbit(y.flat[-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("last", [0, 1])
def test_a_norm_of_what_underflows_is_not_zero(dtype, last):
    """A norm whose powers underflow is not zero, even beside a window of zeros, whose powers have the same sum."""
    tiny = float(np.finfo(dtype).smallest_subnormal)
    x = np.zeros((1, 64, 6, 6), dtype)
    x[0, 5, 2, 2] = tiny
    if last:
        x = to_last(x)
    y = onnxpool.lp_pool(x, (2, 2), p=8, strides=(2, 2), channels_last=last)
    y = to_first(y, last)
    assert y[0, 5, 1, 1] == tiny
    assert np.count_nonzero(y) == 1


@pytest.mark.parametrize(("dtype", "p"), [(np.float64, 2), (np.float64, 3), (np.float64, 0.5), (np.float32, 8)])
def test_a_norm_of_a_nan_does_not_depend_on_what_is_beside_it(dtype, p):
    """A norm of NaN has the same bits if a huge element in the batch causes a second computation, which once kept the
    payload of the input's NaN."""
    x = np.ones((2, 1, 8), dtype)
    x.view(f"u{x.itemsize}")[0, 0, 0] = np.array(-np.nan, dtype).view(f"u{x.itemsize}") + 0x1234
    x[1, 0, 0] = np.finfo(dtype).max
    pool = onnxpool.LpPool(kernel_shape=2, strides=2, p=p, **({"opset": 1} if p == 0.5 else {}))
    assert pool(x)[0].tobytes() == pool(x[:1])[0].tobytes()


def test_the_largest_magnitude_of_negative_zeros_is_zero():
    """In GlobalLpPool-1 with p = inf, the norm of a channel that begins with -0 is not -0."""
    x = np.full((1, 2, 5, 7), -0.0, np.float32)
    y = onnxpool.global_lp_pool(x, p=np.inf, opset=1)
    assert not np.signbit(y).any()
    assert not y.any()
