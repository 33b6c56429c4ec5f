"""Elements of every magnitude: non-finite elements affect only their own windows, and no sum overflows or underflows.

The expected values are computed with NumPy in a type whose range covers every power and sum of these elements.
"""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from support import FLOATS, assert_same_bits, taps, to_first, to_last

import onnxpool

SHAPES = [(1, 17, 35, 35), (2, 37, 9, 12), (1, 3, 20, 70)]
KERNELS = [(3, 1, 1), (2, 2, 0), (3, 2, 0), (13, 1, 6)]
POWERS = [0, 2, 3, 8]  # 0 stands for a mean
WIDE = np.finfo(np.longdouble).maxexp > np.finfo(np.float64).maxexp
HUGE, TINY, LIMIT, ZERO = "huge", "tiny", "limit", 0.0
MIXTURES = {"infinities": [math.inf], "infinities of both signs": [math.inf, -math.inf], "NaNs": [math.nan],
            "huge": [HUGE, HUGE, -1], "huge beside infinities": [HUGE, math.inf], "limits": [LIMIT, -1],
            "tiny": [TINY], "zeros": [ZERO], "tiny beside infinities": [TINY, math.inf]}


def magnitude(name, dtype, taps):
    info = ml_dtypes.finfo(dtype)
    if name == LIMIT:  # this many of which do not overflow
        return float(info.max) / (2 * taps)
    return {HUGE: float(info.max), TINY: float(info.smallest_subnormal)}.get(name, name)


def mixed(shape, dtype, names, taps, rng):
    """Ordinary elements, patches of zeros, and in some channels special values alone or among zeros."""
    x = rng.standard_normal(shape)
    x[:, :, 3:8] = 0
    values = [magnitude(name, dtype, taps) for name in names]
    for channel in range(0, shape[1], 3):
        plane = x[:, channel]
        places = rng.random(plane.shape) < 0.02
        plane[places] = rng.choice(values, int(places.sum()))
    plane = x[:, -1]
    plane[...] = rng.choice([*values, 0.0], plane.shape)
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def exact(x, p, kernel, stride, pad):
    """The mean or norm of every window."""
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    kind = np.longdouble if x.dtype.itemsize == 8 or p > 3 else np.float64
    if kind is np.longdouble and not WIDE:
        pytest.skip("a long double has the range of a double here")
    wide = x.astype(kind)
    with np.errstate(invalid="ignore"):
        total = sum(taps(np.abs(wide) ** p if p else wide, **window))
        return total ** (kind(1) / p) if p else total / sum(taps(np.ones(x.shape), **window))


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", POWERS)
def test_elements_of_every_magnitude(p, dtype, mixture):
    rng = np.random.default_rng(p)
    for shape, (kernel, stride, pad) in itertools.product(SHAPES, KERNELS):
        if kernel > min(shape[2:]) + pad or (kernel == 13 and p not in (0, 2)):
            continue
        x = mixed(shape, dtype, MIXTURES[mixture], kernel * kernel, rng)
        expected = exact(x, p, kernel, stride, pad)
        pool = onnxpool.LpPool if p else onnxpool.AveragePool
        options = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, **({"p": p} if p else {})}
        inside = to_last(x)
        for y in (pool(**options)(x), np.moveaxis(pool(**options, channels_last=1)(inside), -1, 1),
                  pool(**options)(np.repeat(x, 2, axis=3)[..., ::2])):
            assert_close(y, expected, x, kernel)


def assert_close(y, expected, x, kernel):
    """Within the error of a sum, whose terms may exceed it, and infinite or NaN equally often."""
    info = ml_dtypes.finfo(x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = expected.astype(np.float64).astype(x.dtype)
        assert np.array_equal(np.isnan(y), np.isnan(narrow))
        assert np.array_equal(np.isinf(y), np.isinf(narrow))
        finite = np.isfinite(narrow)
    largest = np.max(np.abs(x.astype(np.longdouble)), initial=0, where=np.isfinite(x), axis=(2, 3), keepdims=True)
    largest, expected = np.broadcast_to(largest, y.shape)[finite], expected[finite]
    error = np.abs(y[finite].astype(np.longdouble) - expected)
    allowed = (float(info.eps) * np.abs(expected) + float(info.smallest_subnormal)
               + kernel * kernel * min(float(info.eps), 2.0**-23) * largest)
    assert (error <= allowed).all()


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
    """Nor does it differ next to a window of zeros, although the powers of both sum to zero."""
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
    """A NaN that is computed again, because of a huge element in the batch, was once the input's, with its payload."""
    x = np.ones((2, 1, 8), dtype)
    x.view(f"u{x.itemsize}")[0, 0, 0] = np.array(-np.nan, dtype).view(f"u{x.itemsize}") + 0x1234
    x[1, 0, 0] = np.finfo(dtype).max
    pool = onnxpool.LpPool(kernel_shape=2, strides=2, p=p, **({"opset": 1} if p == 0.5 else {}))
    assert pool(x)[0].tobytes() == pool(x[:1])[0].tobytes()


def unaligned(x):
    """A copy at an odd address."""
    room = np.empty(x.nbytes + 1, np.uint8)[1:]
    copy = room.view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", POWERS)
def test_results_that_are_computed_again_need_no_alignment(p, dtype):
    """Results have the same bits if neither `x` nor `out` is aligned. Sanitizers see whether accesses allow that."""
    x = mixed((1, 3, 20, 20), dtype, [HUGE, HUGE, TINY], 9, np.random.default_rng(8))
    pool = onnxpool.LpPool(kernel_shape=3, p=p) if p else onnxpool.AveragePool(kernel_shape=3)
    expected = pool(x)
    out = unaligned(np.zeros_like(expected))
    pool(unaligned(x), out=out)
    assert_same_bits(out, expected)
