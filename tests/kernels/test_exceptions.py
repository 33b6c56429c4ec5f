"""Floating-point exceptions decide which tiles are computed again, and none of them reaches the caller."""

import ctypes
import ctypes.util
import math

import numpy as np
import pytest
from support import FLOATS, taps

import onnxpool
from onnxpool.kernels import pool as pools

SHAPE = (1, 24, 24, 64)
WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": True}
POWERS = [0, 1, 2, 3]  # 0 stands for a mean
ALL = 0xFF  # bits of exceptions: more than any processor has
INVALID = 0x81  # one of these bits on s390x, the other elsewhere


def ordinary(dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(SHAPE).astype(dtype)


def pool(x, p=0):
    return onnxpool.lp_pool(x, p=p, **WINDOW) if p else onnxpool.average_pool(x, **WINDOW)


def expected_mean(x):
    wide = x.astype(np.longdouble)
    return sum(wide[:, i::2, j::2] for i in (0, 1) for j in (0, 1)) / 4


def again(call):
    """How many tiles a call computes again, and its result."""
    before = pools.tiles_computed_again()
    y = call()
    return pools.tiles_computed_again() - before, y


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", POWERS)
def test_nothing_is_computed_again_for_numbers_and_nans(p, dtype):
    x = ordinary(dtype)
    clean = pool(x, p)
    assert again(lambda: pool(x, p))[0] == 0
    x[:, 3::8, 3::8, ::5] = np.nan
    x[:, 4::8, :, 7] = 0
    times, y = again(lambda: pool(x, p))
    assert times == 0
    hit = np.isnan(expected_mean(x).astype(float))
    assert np.isnan(y[hit].astype(float)).all()
    same = ~hit & (np.arange(SHAPE[-1]) != 7)
    assert (y[same] == clean[same]).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_means_of_infinities_are_computed_at_most_twice(dtype):
    """Means of infinities are computed at most twice. Without fused multiplications, quotients are divisions, and once
    is enough."""
    x = ordinary(dtype)
    x[:, ::8, ::8, ::5] = math.inf
    x[:, 1::8, 1::8, ::10] = -math.inf
    times, y = again(lambda: pool(x))
    assert times <= 1
    with np.errstate(invalid="ignore"):
        expected = expected_mean(x).astype(float)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(y[special].astype(float), expected[special])
    assert np.isfinite(y[~special].astype(float)).all()


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOATS if dtype != np.float16], ids=str)
def test_sums_that_overflow_are_computed_again(dtype):
    x = ordinary(dtype)
    most = np.finfo(dtype).max if dtype in (np.float32, np.float64) else np.array(3e38, dtype)
    x[:, 2:4, 2:4, 5] = most
    x[:, 6:8, 6:8, 9] = -most
    times, y = again(lambda: pool(x))
    assert times == 2  # with divisions, and by a retry
    assert (y[:, 1, 1, 5] == most).all()
    assert (y[:, 3, 3, 9] == -most).all()
    assert np.isfinite(y.astype(float)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_that_underflow_are_computed_again(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = ordinary(dtype)
    x[:, 2:4, 2:4, 5] = tiny * np.array([[1, 2], [3, 9]], dtype)
    times, y = again(lambda: pool(x))
    assert times == 1
    assert (y[:, 1, 1, 5] == tiny * 4).all()  # 15 / 4, rounded


def test_small_means_of_float16_are_computed_once():
    x = (ordinary(np.float32) * 1e-6).astype(np.float16)
    assert again(lambda: pool(x))[0] == 0


@pytest.mark.parametrize("p", [2, 3])
def test_norms_out_of_range_are_computed_again(p):
    x = ordinary(np.float64)
    x[:, 2:4, 2:4, 5] = 1e-200
    x[:, 4:6, 4:6, 5] = 1e200
    times, y = again(lambda: pool(x, p))
    assert times == 1
    np.testing.assert_allclose(y[0, 1, 1, 5], 1e-200 * 4 ** (1 / p), rtol=1e-15)
    np.testing.assert_allclose(y[0, 2, 2, 5], 1e200 * 4 ** (1 / p), rtol=1e-15)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("places", [[0, 16], [0, 1], [-1, -17], [0, -16]], ids=str)
def test_an_overflow_in_any_share_of_a_channel(channels, places):
    """A mean is right if the sum overflows in any thread's share of a channel, which the thread that finishes the
    channel does not see."""
    x = np.zeros((1, channels, 1 << 21), np.float32)
    x[0, :, places] = np.finfo(np.float32).max
    y = onnxpool.global_average_pool(x, num_threads=2)
    assert (y == np.float32(np.finfo(np.float32).max / 2.0**20)).all()


FAR_TAPS = {  # shape and windows
    "rows": ((1, 2, 40_000), {"kernel_shape": [2], "dilations": [20_000], "strides": [5000], "pads": [1000, 1000]}),
    "the first axis": ((1, 2, 60, 3000), {"kernel_shape": [2, 2], "dilations": [50, 1], "strides": [5, 500]}),
    "both axes": ((1, 2, 60, 9000), {"kernel_shape": [2, 2], "dilations": [50, 8000], "strides": [5, 500],
                                     "pads": [0, 100, 5, 0]}),
}


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", FAR_TAPS)
def test_overflows_of_far_taps(kind, dtype, channels_last):
    """The search for the cause of an exception looks at all taps, and finds the cause at each of them."""
    shape, attributes = FAR_TAPS[kind]
    numbers = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    places = np.unique(np.concatenate([part.ravel() for part in taps(numbers, **attributes, value=-1)]))
    places = places[places >= 0].astype(int)
    large, zeros = np.finfo(dtype).max, np.zeros(math.prod(shape), dtype)
    rng = np.random.default_rng(0)
    counts = sum(taps(np.ones(shape), **attributes))
    for chosen in rng.choice(places, 10):
        x = zeros.copy()
        x[places] = 1
        window = next(part for part in zip(*(p.ravel() for p in taps(numbers, **attributes, value=-1)), strict=True)
                      if chosen in part)  # all taps of one window
        x[[int(place) for place in window if place >= 0]] = large
        x = x.reshape(shape)
        expected = sum(part.astype(np.longdouble) / counts for part in taps(x, **attributes))
        given = np.moveaxis(x, 1, -1).copy() if channels_last else x
        times, y = again(lambda given=given: onnxpool.average_pool(given, **attributes, channels_last=channels_last))
        assert times > 0
        np.testing.assert_allclose(np.moveaxis(y, -1, 1) if channels_last else y, expected.astype(dtype), rtol=1e-6)
    x = np.full(math.prod(shape), large)
    x[places] = 1
    y = onnxpool.average_pool(x.reshape(shape), **attributes)
    assert (y == 1).all()


def test_the_search_for_a_cause_reads_taps_only():
    """The search reads only taps, because searching all elements between them would take hours."""
    for large, dtype in ((3e38, np.float32), (1.7e308, np.float64)):
        x = np.lib.stride_tricks.as_strided(np.array([large], dtype), (1, 1, 2**44 + 1), (0, 0, 0))
        times, y = again(lambda x=x: onnxpool.average_pool(x, 2, dilations=2**44))
        assert times > 0
        assert y.ravel().tolist() == [x[0, 0, 0]]


def test_exceptions_of_the_caller_are_kept():
    """Exceptions that the caller raised stay recorded, and exceptions of the kernels are not added."""
    library = ctypes.util.find_library("m")
    if not library:
        pytest.skip("there is no library of mathematical functions")
    math_library = ctypes.CDLL(library)
    x = ordinary(np.float32)
    x[0, 0, 0] = math.inf
    x[0, 2, 2] = np.finfo(np.float32).max
    math_library.feclearexcept(ALL)
    pool(x)
    assert math_library.fetestexcept(ALL) == 0
    math_library.feraiseexcept(INVALID)
    raised = math_library.fetestexcept(ALL)
    pool(x)
    kept = math_library.fetestexcept(ALL)
    math_library.feclearexcept(ALL)
    assert raised
    assert kept == raised
