"""The documented order of sums over whole axes: a tree over rows of places, whose neighbours come last."""

import math

import numpy as np
import pytest

import onnxpool
from onnxpool import base, kernels, threads
from onnxpool.arrays import dtype_of
from onnxpool.planning import costs, layout, planner
from onnxpool.planning.ways import Forced

ROW = 64  # bytes of accumulators
LONG = 2048  # maximum number of values of a row


@pytest.fixture(autouse=True)
def _by_rows():
    """Forbids transposing channels, so that their number decides how many neighbours in memory form a row."""
    base._plan.cache_clear()
    Forced.lanes = False
    yield
    Forced.lanes = None
    base._plan.cache_clear()


@pytest.fixture
def _any_processor():
    """Lets costs choose as on the processor that a test requests."""
    Forced.lanes = None
    yield
    planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, layout.REGISTER)


def tree(rows):
    """The sum of rows: the largest full tree that is smaller than all rows, plus the tree of the remaining rows."""
    if len(rows) == 1:
        return rows[0]
    first = 1 << (len(rows) - 1).bit_length() - 1
    return tree(rows[:first]) + tree(rows[first:])


def folded(row):
    """The sum of places: the first half is added to the second half, until one place is left."""
    while len(row) > 1:
        half = (len(row) + 1) // 2
        row = np.concatenate([row[:len(row) - half] + row[half:], row[len(row) - half:half]])
    return row[0]


def ordered_sum(x, alone, full):
    """The sum of x[place, place of the last axis, lane], whose last axis is merged with the others unless `alone`."""
    lanes = x.shape[2]
    if not alone:
        x = x.reshape(1, -1, lanes)
    n = x.shape[1]
    group = 1 if lanes >= full else math.ceil(n / math.ceil(n * lanes / LONG)) if alone else math.ceil(full / lanes)
    rows = []
    for line in x:
        line = np.concatenate([line, np.zeros((-n % group, lanes), x.dtype)])
        rows += list(line.reshape(-1, group, lanes))
    return folded(tree(rows))


def random_case(rng):
    """An array, its pooled axes, and whether a batch axis, perhaps of one element, lies before the last of them."""
    batch, between = (int(n) for n in rng.integers(1, 6, 2))
    early = int(rng.choice([2, 3, 7, 16, 33, 100]))
    last = int(rng.choice([2, 5, 16, 49, 200, 1000, 5000]))
    lanes = int(rng.choice([1, 1, 1, 2, 3, 5, 7, 8, 15, 16, 20]))
    alone = bool(rng.integers(2))
    shape = (batch, early, between, last, lanes) if alone else (batch * between, early, last, lanes)
    return shape, (1, 3) if alone else (1, 2), alone


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_of_whole_axes_have_the_documented_order(dtype):
    """Means have the documented order in contiguous, viewed and byte-swapped arrays, with and without axes between
    pooled axes."""
    rng, full, seen = np.random.default_rng(45), ROW // np.dtype(dtype).itemsize, 0
    for _ in range(150):
        shape, axes, alone = random_case(rng)
        if math.prod(shape) > 300_000:
            continue
        x = rng.standard_normal(shape).astype(dtype)
        moved = np.moveaxis(x, axes, (-3, -2)).reshape(-1, shape[axes[0]], shape[axes[1]], shape[-1])
        total = np.array([ordered_sum(own, alone, full) for own in moved])
        expected = total / dtype(shape[axes[0]] * shape[axes[1]])
        wide = np.empty((*shape[:-2], shape[-2] + 3, shape[-1]), dtype)[..., 1:-2, :]
        wide[...] = x
        for given in (x, x.byteswap().view(x.dtype.newbyteorder()), wide, wide[::-1]):
            y = onnxpool.global_average_pool(given, axes=axes, keepdims=False)
            y = y[::-1] if given.strides[0] < 0 else y
            assert np.array_equal(y.reshape(expected.shape), expected), (shape, axes, given.strides)
        seen += alone
    assert seen > 30


def shared_case(rng):
    """The extents of items, a channel and its lanes, which fill up to several registers."""
    lanes = rng.choice([1, 1, 2, 3, 5, 16, 23, 48, 72, 130, 200])
    return int(rng.choice([1, 1, 2])), int(rng.integers(1, 6000)), int(lanes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_that_share_a_channel_keep_the_order(dtype, monkeypatch):
    """Means of few channels keep the order on two to five threads, at addresses of every alignment."""
    monkeypatch.setattr(threads, "SERIAL_BYTES", 0)
    rng, full = np.random.default_rng(46), ROW // np.dtype(dtype).itemsize
    for _ in range(80):
        items, places, lanes = shared_case(rng)
        shift = int(rng.integers(8))
        x = np.empty(items * places * lanes + shift, dtype)[shift:].reshape(items, places, lanes)
        x[...] = rng.standard_normal(x.shape)
        total = np.array([ordered_sum(own[None], False, full) for own in x])
        plan = onnxpool.GlobalAveragePool(axes=(1,), keepdims=False).plan(x.shape, x.dtype)
        for num_threads in (1, 2, int(rng.integers(3, 6))):
            y = plan(x, num_threads=num_threads)
            assert np.array_equal(y, total / dtype(places)), (x.shape, shift, num_threads)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_quantised_means_of_shared_channels_are_exact(dtype, monkeypatch):
    """Means are exact for any number of lanes and threads, with zero points. Extreme bytes fill the registers."""
    monkeypatch.setattr(threads, "SERIAL_BYTES", 0)
    rng, low, high = np.random.default_rng(47), np.iinfo(dtype).min, np.iinfo(dtype).max
    for k in range(150):
        items, places, lanes = shared_case(rng)
        shift = int(rng.integers(64))
        x = rng.integers(low, high + 1, items * places * lanes + shift, dtype=dtype)
        x = x[shift:].reshape(items, places, lanes)
        if k % 3:
            x[...] = (low, high)[k % 3 - 1]
        x_zero, y_zero = (dtype(z) for z in rng.integers(low, high + 1, 2))
        scales = np.float32(0.25), np.float32(rng.choice([0.25, 0.1, 0.003]))
        given = (scales[0], x_zero, scales[1], y_zero)
        sums = x.sum(axis=1, dtype=np.int64) - places * np.int64(x_zero)
        ratio = scales[0] / (scales[1] * np.float32(places))
        expected = np.clip(np.rint(sums.astype(np.float32) * ratio) + np.float32(y_zero), low, high).astype(dtype)
        lanes_first = np.ascontiguousarray(np.moveaxis(x, 2, 1))
        for num_threads in (1, 2, 5):
            y = onnxpool.qlinear_global_average_pool(lanes_first, *given, num_threads=num_threads)
            last = onnxpool.qlinear_global_average_pool(x, *given, channels_last=True, num_threads=num_threads)
            assert np.array_equal(y[:, :, 0], expected), (x.shape, num_threads)
            assert np.array_equal(last[:, 0], expected), (x.shape, num_threads)


@pytest.mark.parametrize("name", ["GlobalAveragePool", "GlobalLpPool"])
def test_the_strides_of_results_do_not_change_the_order(name):
    """The strides of results do not change the order of sums. Axes of arrays were once merged only if axes of results
    were."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.standard_normal(tuple(rng.integers(1, 6, 5)))
        axes = tuple(map(int, rng.permutation(5)[:2]))
        op = getattr(onnxpool, name)(axes=axes)
        y = op(x)
        for out in (np.empty(y.shape[::-1]).T, np.empty([2 * size for size in y.shape])[(slice(None, None, 2),) * 5]):
            assert op(x, out=out) is out
            assert out.tobytes() == y.tobytes()


@pytest.mark.usefixtures("_any_processor")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint8"])
def test_costs_of_no_processor_change_the_form_of_whole_channels(dtype):
    """Whole channels have the same form on every processor, because sums of rows and of transposed channels differ in
    bits."""
    rng, forms = np.random.default_rng(6), []
    for _ in range(60):
        shape = (1, int(2 ** rng.uniform(1, 11)), *map(int, rng.integers(2, 30, 2)))
        operator = onnxpool.GlobalMaxPool() if dtype == "uint8" else onnxpool.GlobalAveragePool()
        plan = operator._make_plan(shape, dtype_of("test", dtype))
        chosen = set()
        for register in (16, 32, 64):
            planner.prepare(kernels.units, register, kernels.PICKS, costs.nearest(register))
            forms_of = layout.planner_of(plan.request, *plan._row_major())
            chosen.add(forms_of.is_apart(forms_of.usual[1]))
        assert len(chosen) == 1, shape
        forms += chosen
    assert len(set(forms)) == 2
