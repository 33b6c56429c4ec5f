"""Maxima and minima of every dtype along named axes, by every route, compared with NumPy's."""

import itertools
from collections import Counter

import cases_axes
import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import onnxpool
from onnxpool import base, kernels
from onnxpool.planning.ways import Forced

pytestmark = pytest.mark.smoke

FENCE = 4096  # bytes beyond scratch memory that are watched
ROUTES = [None, *(row["name"] for row in kernels.routes())]
CASES = 500


@pytest.fixture(autouse=True)
def fences():
    """No loop writes beyond its scratch memory, and no plan of another route is kept."""
    kernels.pools.watch_scratch(FENCE)
    yield
    Forced.solver = Forced.lanes = None
    base._plan.cache_clear()
    assert kernels.pools.watch_scratch(0) == 0


def test_every_route_gives_the_extrema():
    """Random calls, with and without indices, return what ONNX defines for the ranks of the elements."""
    ran = Counter()
    for seed in range(CASES):
        case = cases_axes.random_case(seed)
        if case.operator not in cases_axes.EXTREMA:
            continue
        try:
            truth, places = cases_axes.expected(case)
        except onnxpool.PoolError:
            continue
        first = None
        for Forced.solver, Forced.lanes in itertools.product(ROUTES, (None, False, True)):
            plan = case.make()._make_plan(case.x.shape, case.x.dtype)
            result = plan(case.x)
            y, indices = result if case.indexed else (result, None)
            assert cases_axes.difference(case, y, indices, truth, places) is None, (seed, Forced.solver, Forced.lanes)
            bits = y.tobytes()
            if case.operator in cases_axes.WINDOWED:
                assert first is None or bits == first, (seed, Forced.solver, Forced.lanes)
                first = bits
            ran.update((case.x.dtype.kind, pool.setup.solver) for pool in plan._pools.values())
    for kind, route in itertools.product("biufmM", ("whole", "ordered", "direct", "passes")):
        assert ran[kind, route] > 2, (kind, route)


def extreme(name, x, axis=None):
    """NumPy's extremum. 16-bit floats are compared as float64."""
    wide = x.astype(np.float64) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    with np.errstate(invalid="ignore"):  # from NaNs that are not quiet
        return getattr(np, name)(wide, axis=axis).astype(x.dtype)


@pytest.mark.parametrize("dtype", cases_axes.ANY, ids=str)
def test_rows_of_every_length(dtype):
    """Extrema of rows of any length up to four registers are right, in windows of some sizes and as a whole."""
    rng = np.random.default_rng(dtype.itemsize)
    for size in range(1, 4 * 64 // dtype.itemsize + 3):
        x = cases_axes.elements(rng, (3, size), dtype)
        for name in ("max", "min"):
            pool, whole = (getattr(onnxpool, f"{prefix}{name}_pool") for prefix in ("", "global_"))
            for kernel, stride in ((1, 1), (2, 1), (3, 2), (size, 1)):
                if kernel <= size:
                    windows = sliding_window_view(x, kernel, axis=1)[:, ::stride]
                    truth = extreme(name, windows, -1)
                    y = pool(x, kernel, strides=stride, axes=1)
                    assert y.dtype == dtype
                    assert ((y == truth) | ((y != y) & (truth != truth))).all(), (name, size, kernel, stride)
            truth = extreme(name, x, 0)
            y = whole(x, axes=0, keepdims=False)
            assert ((y == truth) | ((y != y) & (truth != truth))).all(), (name, size)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", cases_axes.FLOATS, ids=str)
def test_any_nan_counts(dtype, name):
    """NaNs of either sign, quiet or not, count at every place of a window. The result has the bits of one of the
    NaNs."""
    bits = np.dtype(f"u{dtype.itemsize}")
    infinity = int(np.array(np.inf, dtype).view(bits))
    sign = 1 << 8 * dtype.itemsize - 1
    quiet = infinity | infinity >> 1 & ~infinity
    for pattern in (infinity | 1, quiet, infinity | 1 | sign, quiet | sign, sign - 1, 2 * sign - 1):
        for place, others in itertools.product(range(5), (np.inf, -np.inf, 0.0, -1.0)):
            x = np.full(5, others, dtype)
            x.view(bits)[place] = pattern
            for function, more in ((f"{name}_pool", {"kernel_shape": 5}), (f"global_{name}_pool", {})):
                y = getattr(onnxpool, function)(x, **more, axes=0)
                assert y.view(bits).tolist() == [pattern]
            y, index = getattr(onnxpool, f"{name}_pool")(x, 5, axes=0, return_indices=True)
            assert (y.view(bits).tolist(), index.tolist()) == ([pattern], [place])


@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[ms]"])
def test_not_a_time_counts_as_nan(dtype):
    """NaT counts as NaN, as in NumPy. Units are kept, and arrays with another unit have another dtype."""
    x = np.array([3, "NaT", 1, 5], dtype)
    for name in ("max", "min"):
        function = getattr(onnxpool, f"{name}_pool")
        truth = getattr(np, name)(sliding_window_view(x, 2), axis=-1)
        for _ in range(2):  # a second call takes the short way, if there is one
            y, indices = function(x, 2, axes=0, return_indices=True)
            assert y.dtype == x.dtype
            assert np.array_equal(y, truth, equal_nan=True)
            assert np.array_equal(x[indices], truth, equal_nan=True)
            assert np.array_equal(function(x, 2, axes=0), truth, equal_nan=True)
    other = np.empty(3, f"{dtype.partition('[')[0]}[s]")
    with pytest.raises(onnxpool.PoolTypeError, match="out has dtype"):
        onnxpool.min_pool(x, 2, axes=0, out=other)


def test_windows_in_the_padding_have_the_identity():
    """The result of no elements is the identity: the least number for maxima, and the largest number for minima."""
    for dtype in cases_axes.ANY:
        if dtype.kind in "mM":
            continue
        if dtype.kind in "iu":
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        else:
            low, high = (False, True) if dtype.kind == "b" else (-np.inf, np.inf)
        x = np.ones((2, 3), dtype)
        for name, value in (("max", low), ("min", high)):
            y, indices = getattr(onnxpool, f"{name}_pool")(x, 2, pads=(0, 2, 0, 2), axes=(0, 1), return_indices=True)
            assert y[0].tolist() == [value, 1, 1, 1, 1, value]
            assert indices[0].tolist() == [-1, 0, 0, 1, 2, -1]
            assert np.array_equal(getattr(onnxpool, f"{name}_pool")(x, 2, pads=(0, 2, 0, 2), axes=(0, 1)), y)


def test_minima_are_no_operators_of_onnx():
    """Minima pool named axes only, and no ONNX node becomes a minimum."""
    assert not any("Min" in row["operator"] for row in onnxpool.supported())
    op = onnxpool.MinPool(kernel_shape=2, axes=-1)
    assert repr(op) == "MinPool(kernel_shape=2, axes=(-1,))"
    with pytest.raises(onnxpool.PoolTypeError, match="missing 1 required keyword-only argument: 'axes'"):
        onnxpool.min_pool(np.ones(3), 2)
    with pytest.raises(onnxpool.PoolTypeError, match="no argument opset"):
        onnxpool.min_pool(np.ones(3), 2, axes=0, opset=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16",
                                   "int32", "uint32", "int64", "uint64"])
def test_neighbouring_values_differ(dtype):
    """Extrema compare all bits, with and without indices, whether or not NaNs are skipped."""
    given = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    step = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[given.itemsize]
    values = np.array([3, 100, 0.5 if given.kind not in "iu" else 77], given)
    for low in values:
        high = (low.reshape(1).view(step) + step(1)).view(given)[0]
        for order, (name, skipna) in itertools.product((1, -1), itertools.product(("max", "min"), (False, True))):
            x = np.array([low, high], given)[::order].copy()
            pool = getattr(onnxpool, f"{name}_pool")
            wanted, place = (high, order == 1) if name == "max" else (low, order == -1)
            for more in ({}, {"skipna": True}) if skipna else ({},):
                y, indices = pool(x, 2, axes=0, return_indices=True, **more)
                assert (y[0], indices[0]) == (wanted, int(place)), (x, name, more)
                assert pool(x, 2, axes=0, **more)[0] == wanted, (x, name, more)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, -1])
def test_the_last_nan_of_a_long_window(dtype, order):
    """A long window returns the same NaN as short windows, in which no parts overlap."""
    bits = np.uint32 if dtype == np.float32 else np.uint64
    x = np.random.default_rng(5).standard_normal((1, 1, 20, 60)).astype(dtype)
    payload = np.arange(1, 41, dtype=bits)[::order]
    x[0, 0, :, 10:50] = (np.array(np.nan, dtype).view(bits) + payload).view(dtype)
    y = onnxpool.max_pool(x, (1, 31))
    taps = x[0, 0, 0]
    expected = [taps[max(j for j in range(i, i + 31) if np.isnan(taps[j]))] for i in range(30)]
    assert y[0, 0, 7].tobytes() == np.array(expected).tobytes()
