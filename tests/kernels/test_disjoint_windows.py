"""Windows that share no place along the last axis, such as blocks, with few channels last.

Expected results are those of NumPy, which adds taps in the promised order. Arrays end where memory does.
"""

import math

import numpy as np
import pytest
from guarded import PAGE, Slot
from support import FLOATS

import onnxpool
from onnxpool import base
from onnxpool.planning.ways import Forced

INTEGERS = [np.dtype(name) for name in ("uint8", "int8", "int16", "uint16", "int32", "uint64")]
OWN_MEANS = [np.dtype(name) for name in ("uint8", "int16", "uint16")]


@pytest.fixture(autouse=True)
def passes():
    """Force the step that has loops for such windows."""
    base._plan.cache_clear()
    Forced.solver = "disjoint"
    yield
    Forced.solver = None
    base._plan.cache_clear()


def folded(x, axis, kernel, stride, join):
    """Join the taps of all windows along an axis in sequence."""
    windows = (x.shape[axis] - kernel) // stride + 1
    taps = [np.moveaxis(x, axis, 0)[t:][::stride][:windows] for t in range(kernel)]
    total = taps[0]
    for tap in taps[1:]:
        total = join(total, tap)
    return np.moveaxis(total, 0, axis)


def pooled(x, kernel, strides, join):
    for axis in range(len(kernel)):
        x = folded(x, axis, kernel[axis], strides[axis], join)
    return x


def padded(x, pads, value):
    """`pads` lists those before each axis, then those after it."""
    n = len(pads) // 2
    return np.pad(x, [*zip(pads[:n], pads[n:], strict=True), *[(0, 0)] * (x.ndim - n)], constant_values=value)


def mean(x, kernel, strides, pads, dtype):
    count = pooled(padded(np.ones(x.shape, np.int64), pads, 0), kernel, strides, np.add)
    if dtype.kind in "iu":
        total = pooled(padded(x.astype(np.int64), pads, 0), kernel, strides, np.add)
        rounded, rest = np.divmod(2 * total + count, 2 * count)
        return (rounded - ((rest == 0) & (rounded & 1))).astype(dtype)
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    total = pooled(padded(x.astype(wide), pads, wide.type(-0.0)), kernel, strides, np.add)
    return (total / count.astype(wide)).astype(dtype)


def extremum(x, kernel, strides, pads, largest):
    bounds = (-math.inf, math.inf) if x.dtype.kind not in "iu" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    return pooled(padded(x, pads, bounds[0 if largest else 1]), kernel, strides, np.maximum if largest else np.minimum)


def geometries(rng, itemsize, count):
    """Shapes whose last of one to three axes has windows that share no place, and whose channels are few."""
    for _ in range(count):
        axes = int(rng.integers(1, 4))
        stride = int(rng.integers(2, 5))
        strides = [*map(int, rng.integers(1, 4, axes - 1)), stride]
        kernel = [*map(int, rng.integers(1, 5, axes - 1)), int(rng.integers(1, stride + 1))]
        pads = [int(rng.integers(0, k)) if rng.random() < 0.3 else 0 for k in kernel * 2]
        channels = int(rng.choice([1, 2, 3, 4, *range(1, 64 // itemsize + 2)]))
        sizes = [*map(int, rng.integers(4, 12, axes - 1)), int(rng.integers(kernel[-1], 400))]
        yield [*sizes, channels], kernel, strides, pads


def elements(rng, shape, dtype):
    if dtype.kind in "iu":
        few = rng.random() < 0.5
        top = np.iinfo(dtype).max
        return rng.integers(top - 9 if few else np.iinfo(dtype).min, top, shape, dtype, endpoint=True)
    return np.round(rng.standard_normal(shape) * 8, int(rng.choice([0, 9]))).astype(dtype)


def check(operator, expected, x, axes, **attributes):
    """The same for arrays that are contiguous, end where memory does, or whose rows are apart, reversed or repeated."""
    slot = Slot(x.nbytes // PAGE + 1)
    held = slot.hold(x.shape, x.dtype, at_end=True)
    held[...] = x
    apart = np.zeros((2 * x.shape[0], *x.shape[1:]), x.dtype)[::-2]
    apart[...] = x
    for source in held, apart:
        y = operator(source, axes=axes, **attributes)
        assert y.dtype == expected.dtype
        assert y.tobytes() == expected.tobytes()
    room = slot.hold(expected.shape, expected.dtype, at_end=True) if expected.nbytes <= x.nbytes else None
    if room is not None:
        operator(x, axes=axes, out=room, **attributes)
        assert room.tobytes() == expected.tobytes()
        assert slot.untouched(array_too=False)


@pytest.mark.parametrize("dtype", [*FLOATS, *OWN_MEANS], ids=str)
def test_means(dtype):
    rng = np.random.default_rng(1)
    for shape, kernel, strides, pads in geometries(rng, dtype.itemsize, 60):
        x = elements(rng, shape, dtype)
        expected = mean(x, kernel, strides, pads, dtype)
        check(onnxpool.average_pool, expected, x, tuple(range(len(kernel))), kernel_shape=kernel, strides=strides,
              pads=pads, dtype=dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_extrema(dtype):
    rng = np.random.default_rng(2)
    for number, (shape, kernel, strides, pads) in enumerate(geometries(rng, dtype.itemsize, 60)):
        x = elements(rng, shape, dtype) + dtype.type(0)  # no -0, whose order is another test's
        operator = onnxpool.max_pool if number % 2 else onnxpool.min_pool
        expected = extremum(x, kernel, strides, pads, bool(number % 2))
        check(operator, expected, x, tuple(range(len(kernel))), kernel_shape=kernel, strides=strides, pads=pads)


@pytest.mark.parametrize("taps", range(1, 18))
def test_every_mean_of_bytes_by_few_taps(taps):
    """Every sum of up to 17 bytes: those of up to 16 are divided in fewer steps."""
    sums = np.arange(255 * taps + 1)
    x = (sums[:, None] + np.arange(taps)) // taps  # each row has one of the sums
    assert np.array_equal(x.sum(1), sums)
    rounded, rest = np.divmod(2 * sums + taps, 2 * taps)
    expected = rounded - ((rest == 0) & (rounded & 1))
    y = onnxpool.average_pool(np.ascontiguousarray(x.astype(np.uint8).T), taps, axes=0, dtype=np.uint8)
    assert np.array_equal(y[0], expected)
    y = onnxpool.average_pool(x.astype(np.uint8).ravel(), taps, strides=taps, axes=0, dtype=np.uint8)
    assert np.array_equal(y, expected)
