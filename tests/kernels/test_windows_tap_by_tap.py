"""Random windows over arrays of thousands of elements, compared with NumPy tap by tap. These run loops that the few
elements of calls with the oracle do not reach.
"""

import ml_dtypes
import numpy as np
import pytest
from support import DTYPES, FLOATS, bits, least, taps, to_last

import onnxpool

SEEDS = 130
MOST = 60_000  # elements


def random_problem(rng):
    """A channels-first shape, and window attributes with which every window has a tap."""
    while True:
        rank = int(rng.choice([1, 2, 2, 2, 3, 4]))
        sizes = [int(rng.choice([1, 2, 3, 5, 8, 13, 20, 35, 56])) for _ in range(rank)]
        kernel = [int(rng.choice([1, 2, 2, 3, 3, 4, 5, 7, 9, 17])) for _ in sizes]
        dilations = [int(rng.choice([1, 1, 1, 2, 3])) for _ in sizes]
        strides = [int(rng.choice([1, 1, 2, 3, k])) for k in kernel]
        pads = [int(rng.integers(0, k)) for _ in range(2) for k in kernel]
        shape = (int(rng.choice([1, 2, 5])), int(rng.choice([1, 3, 16, 40, 64, 100, 130])), *sizes)
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        padded = np.add(sizes, np.add(pads[:rank], pads[rank:]))
        if (padded >= spans).all() and np.prod(shape) <= MOST and np.prod(kernel) <= 300:
            return shape, {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}


def seen(x, rng):
    """The elements in some memory layout: contiguous, strided, or in another order."""
    way = rng.integers(4)
    if way == 0:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if way == 1:
        return np.ascontiguousarray(x.swapaxes(1, -1)).swapaxes(1, -1)
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_maxima_are_those_of_numpy(dtype):
    """In both layouts, whatever the memory layout."""
    rng = np.random.default_rng(DTYPES.index(dtype))
    for _ in range(SEEDS):
        shape, attributes = random_problem(rng)
        x = (rng.integers(-100 if dtype != "uint8" else 0, 100, shape) / (1 if dtype.kind in "iu" else 7)).astype(dtype)
        expected = np.max(list(taps(x, **attributes, value=least(dtype))), axis=0)
        for last in 0, 1:
            y = onnxpool.MaxPool(**attributes, channels_last=last)(seen(to_last(x, last), rng))
            assert np.array_equal(y, to_last(expected, last)), (shape, attributes, last)


@pytest.mark.parametrize("p", [0, 1, 2])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_means_and_norms_are_those_of_numpy(dtype, p):
    """Within the rounding of a sum, and bit by bit the same in both layouts."""
    rng = np.random.default_rng(10 + p)
    info = ml_dtypes.finfo(dtype)
    for _ in range(SEEDS):
        shape, attributes = random_problem(rng)
        x = rng.standard_normal(shape).astype(dtype)
        include = int(rng.integers(2))
        parts = [part.astype(np.float64) for part in taps(x, **attributes)]
        sums, most = sum(np.abs(part) ** p if p else part for part in parts), sum(map(np.abs, parts))
        counts = len(parts) if include else sum(taps(np.ones(shape), **attributes))
        with np.errstate(invalid="ignore"):
            expected = sums ** (1 / p) if p else sums / counts
            rounding = float(info.eps) * np.abs(expected) + float(info.smallest_subnormal)
            allowed = rounding + (1e-6 if p else 2.0**-20 * most / counts)
        pool = onnxpool.LpPool if p else onnxpool.AveragePool
        options = {**attributes, **({"p": p} if p else {"count_include_pad": include})}
        y = pool(**options)(seen(x, rng))
        assert np.array_equal(np.isnan(y), np.isnan(expected))
        assert np.all((np.abs(y.astype(np.float64) - expected) <= allowed) | np.isnan(expected)), (shape, attributes)
        other = pool(**options, channels_last=1)(seen(to_last(x, 1), rng))
        for a, b in zip(bits(to_last(y, 1)), bits(other), strict=True):
            assert np.array_equal(a, b), (shape, attributes)
