"""Skipped NaNs: results depend on the remaining elements only, as plain loops and exact arithmetic show."""

import itertools
import pickle
from collections import Counter
from typing import Any

import cases_axes
import dask.array as da
import ml_dtypes
import numpy as np
import pytest
import tolerance
from cases_axes import Case
from numpy.lib.stride_tricks import sliding_window_view
from oracle_axes import expect_along_axes

import onnxpool
import onnxpool.dask
from onnxpool import base, kernels
from onnxpool.planning.ways import Forced

pytestmark = pytest.mark.smoke

Array = np.ndarray[Any, Any]
FENCE = 4096  # bytes beyond scratch memory that are watched
ROUTES = [None, *(row["name"] for row in kernels.routes())]
CASES = 250
FUNCTIONS = ("average_pool", "max_pool", "min_pool", "lp_pool")
WHOLE = tuple(f"global_{name}" for name in FUNCTIONS)


@pytest.fixture(autouse=True)
def fences():
    """No loop writes beyond its scratch memory, and no plan of another route is kept."""
    kernels.pools.watch_scratch(FENCE)
    yield
    Forced.solver = Forced.lanes = None
    base._plan.cache_clear()
    assert kernels.pools.watch_scratch(0) == 0


def with_nans(rng: np.random.Generator, x: Array) -> Array:
    """The array with a block of NaNs, scattered NaNs, only NaNs, or none."""
    x = x.copy() if rng.random() < 0.5 else np.asfortranarray(x)
    if rng.random() < 0.4:
        x[tuple(slice(0, rng.integers(0, size + 1)) for size in x.shape)] = np.nan
    if rng.random() < 0.6:
        x[rng.random(x.shape) < rng.choice([0.05, 0.3, 0.9])] = np.nan
    if rng.random() < 0.1:
        x[:] = np.nan
    return x


def random_case(seed: int) -> Case:
    """A random call on floats with NaNs."""
    case = cases_axes.random_case(seed)
    rng = np.random.default_rng(seed)
    dtype = rng.choice(np.array(cases_axes.FLOATS, object))
    x = case.x if case.x.dtype in cases_axes.FLOATS else cases_axes.elements(rng, case.x.shape, dtype)
    if rng.random() < 0.1:
        with np.errstate(over="ignore", invalid="ignore"):
            x = x * (ml_dtypes.finfo(x.dtype).max.astype(x.dtype) / x.dtype.type(4))
    return case._replace(x=with_nans(rng, x))


def make(case: Case) -> Any:
    more = {"return_indices": True} if case.indexed else {} if case.keepdims else {"keepdims": False}
    return getattr(onnxpool, case.operator)(**case.attributes, axes=case.axes, skipna=True, **more)


def problem(case: Case, y: Array, indices: Array | None) -> str | None:
    """What is wrong with a result, or None."""
    truths = expect_along_axes(case.operator, case.x, case.attributes, case.axes, keepdims=case.keepdims, skipna=True,
                               indexed=case.indexed)
    found = (y,) if indices is None else (y, indices)
    return next(filter(None, (tolerance.judge(*pair).problem for pair in zip(truths, found, strict=True))), None)


def test_every_route_leaves_nans_out():
    """Random calls by every route skip NaNs. Windows have the same bits on all routes."""
    ran = Counter()
    for seed in range(CASES):
        case = random_case(seed)
        first = None
        for Forced.solver, Forced.lanes in itertools.product(ROUTES, (None, False, True)):
            try:
                plan = make(case)._make_plan(case.x.shape, case.x.dtype)
            except onnxpool.PoolError:
                break
            result = plan(case.x)
            y, indices = result if case.indexed else (result, None)
            bits = y.tobytes()
            if first != bits:
                assert problem(case, y, indices) is None, (seed, Forced.solver, Forced.lanes)
            assert first in (None, bits) or case.operator in cases_axes.WHOLE, (seed, Forced.solver, Forced.lanes)
            first = bits
            ran.update(pool.setup.solver for pool in plan._pools.values())
    assert min(ran[route] for route in ("whole", "ordered", "direct", "passes")) > 5, ran


@pytest.mark.slow
def test_more_random_calls():
    """Many more random calls have the expected results by the usual route."""
    for seed in range(CASES, 20 * CASES):
        case = random_case(seed)
        try:
            result = make(case)(case.x)
        except onnxpool.PoolError:
            continue
        y, indices = result if case.indexed else (result, None)
        assert problem(case, y, indices) is None, seed


@pytest.mark.parametrize("dtype", cases_axes.FLOATS, ids=str)
def test_windows_without_nans_have_the_usual_bits(dtype):
    """Windows without NaNs keep their bits, whether skipna is set and whether NaNs are elsewhere."""
    rng = np.random.default_rng(1)
    for kernel, stride, pads in (((3, 3), 1, 1), ((4, 4), 4, 0), ((2, 5), 2, 0), ((12, 1), 1, 0), ((20, 9), 3, 2)):
        x = rng.standard_normal((70, 90)).astype(dtype)
        broken = x.copy()
        broken[:, 40:45] = np.nan
        for name in FUNCTIONS:
            given = {"strides": stride, "pads": pads, "axes": (0, 1)}
            usual = getattr(onnxpool, name)(x, kernel, **given)
            untouched = ~np.isnan(getattr(onnxpool, name)(broken, kernel, **given))
            assert getattr(onnxpool, name)(x, kernel, **given, skipna=True).tobytes() == usual.tobytes(), name
            y = getattr(onnxpool, name)(broken, kernel, **given, skipna=True)
            assert y[untouched].tobytes() == usual[untouched].tobytes(), name


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_sums_that_overflow(dtype):
    """Means of large numbers are finite, and infinities stay."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    most = ml_dtypes.finfo(kind).max
    x = np.full((20, 120), most, kind)
    x[:, ::3] = np.nan
    x[7, 1:50] = np.inf
    x[9, 100:] = 1
    x[11, 1:] = -most
    for kernel in ((1, 4), (1, 120), (5, 20)):
        y = onnxpool.average_pool(x, kernel, axes=(0, 1), skipna=True).astype(np.float64)
        wide = np.ldexp(x.astype(np.float64), -100)
        windows = sliding_window_view(wide, kernel)
        truth = np.ldexp(np.nanmean(windows, (-2, -1)), 100)
        np.testing.assert_allclose(y, truth, 8 * float(ml_dtypes.finfo(kind).eps))
    for keepdims in (True, False):
        y = onnxpool.global_average_pool(x[:7], axes=(0, 1), skipna=True, keepdims=keepdims)
        np.testing.assert_allclose(y.astype(np.float64), float(most), 2 * float(ml_dtypes.finfo(kind).eps))


def test_counts_beyond_those_that_float32_represents():
    """Counts of NaNs and numbers are exact beyond 2^24, the limit of float32."""
    x = np.full((6000, 6000), np.nan, np.float32)
    x[::3] = 2
    x[1::3, ::1000] = 5
    mean = float(onnxpool.global_average_pool(x, axes=(0, 1), skipna=True).item())
    assert mean == pytest.approx(np.nanmean(x, dtype=np.float64), rel=1e-6)
    assert float(onnxpool.global_lp_pool(x, axes=(0, 1), skipna=True, p=1).item()) == np.nansum(x, dtype=np.float64)


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[ns]"])
def test_not_a_time_is_left_out(dtype):
    """Extrema skip NaT, with and without indices."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        shape = tuple(rng.integers(1, 12, 2))
        ticks = rng.choice([np.iinfo(np.int64).min, np.iinfo(np.int64).max, -3, 0, 7], shape)
        x = ticks.view(dtype)
        kernel = tuple(int(rng.integers(1, size + 1)) for size in shape)
        pads = [int(rng.integers(0, 2 * k)) for k in kernel] * 2
        for name, best in (("max", np.fmax), ("min", np.fmin)):
            y, indices = getattr(onnxpool, f"{name}_pool")(x, kernel, axes=(0, 1), pads=pads, skipna=True,
                                                           return_indices=True)
            padded = np.pad(x, list(zip(pads[:2], pads[2:], strict=True)), constant_values=np.array("NaT", dtype))
            truth = best.reduce(sliding_window_view(padded, kernel).reshape(*y.shape, -1), -1)
            np.testing.assert_array_equal(y, truth)
            assert ((indices < 0) == np.isnat(y)).all()
            assert (x.ravel()[indices[indices >= 0]] == y[indices >= 0]).all()
            np.testing.assert_array_equal(
                getattr(onnxpool, f"{name}_pool")(x, kernel, axes=(0, 1), pads=pads, skipna=True), truth)
            whole = getattr(onnxpool, f"global_{name}_pool")(x, axes=0, skipna=True, keepdims=False)
            np.testing.assert_array_equal(whole, best.reduce(x, 0))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "bool", "float32"])
def test_windows_entirely_in_padding(dtype):
    """A window entirely in padding has the result NaN in floats, and its usual result in other dtypes."""
    x = np.ones((3, 4), dtype)
    for name in FUNCTIONS:
        if name == "lp_pool" and dtype != "float32":
            continue
        y = getattr(onnxpool, name)(x, 2, pads=3, strides=2, axes=(0, 1), skipna=True)
        if y.dtype.kind == "f":
            assert np.isnan(y[0]).all()
            assert np.isnan(y[:, 0]).all()
        else:
            assert (y == getattr(onnxpool, name)(x, 2, pads=3, strides=2, axes=(0, 1))).all()


def test_padding_that_counts_is_zeros():
    """With count_include_pad, the result is the mean of the padded array without NaNs."""
    x = np.array([np.nan, 4, np.nan, np.nan, 8], np.float32)
    y = onnxpool.average_pool(x, 3, pads=1, axes=0, skipna=True, count_include_pad=1)
    np.testing.assert_array_equal(y, [2, 4, 4, 8, 4])
    assert np.isnan(onnxpool.average_pool(x, 2, axes=0, skipna=True, count_include_pad=1)[2])


def test_masks_without_axes_are_refused():
    """`skipna` without axes is refused with an error that names the way out."""
    for name in FUNCTIONS[:2]:
        with pytest.raises(onnxpool.PoolError, match=r"skipna=True given without axes.*axes="):
            getattr(onnxpool, name)(np.ones((1, 1, 4)), 2, skipna=True)
    with pytest.raises(onnxpool.PoolTypeError, match="skipna"):
        onnxpool.max_pool(np.ones(4), 2, axes=0, skipna="yes")
    op = onnxpool.MinPool(kernel_shape=2, axes=0, skipna=True)
    assert "skipna=True" in repr(op)
    assert pickle.loads(pickle.dumps(op)) == op != onnxpool.MinPool(kernel_shape=2, axes=0)


@pytest.mark.parametrize("name", [*FUNCTIONS, *WHOLE])
def test_parts_and_shares(name):
    """Parts have the bits of the whole, and shares are combined to the result."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        dtype = rng.choice(np.array(cases_axes.FLOATS, object))
        x = with_nans(rng, rng.standard_normal(tuple(rng.integers(1, 30, 3))).astype(dtype))
        axes = tuple(map(int, rng.permutation(3)[:rng.integers(1, 4)]))
        given = {} if name in WHOLE else {"kernel_shape": 1 + int(rng.integers(min(x.shape)))}
        op = getattr(onnxpool, "".join(word.capitalize() for word in name.split("_")))(**given, axes=axes, skipna=True)
        plan = op.plan(x.shape, x.dtype)
        whole = plan(np.ascontiguousarray(x))
        y = np.empty_like(whole)
        for part in plan.tiles(n=int(rng.integers(1, 9))):
            y[part.outputs] = part(x[part.inputs])
        assert y.tobytes() == whole.tobytes()
        if name in WHOLE:
            y = plan.combine(share(x[share.inputs]) for share in plan.partials(n=int(rng.integers(1, 9))))
            assert y.dtype == whole.dtype
            np.testing.assert_array_equal(np.isnan(y), np.isnan(whole))
            np.testing.assert_allclose(y.astype(float), whole.astype(float), 64 * float(ml_dtypes.finfo(dtype).eps),
                                       16 * float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize("name", [*FUNCTIONS, *WHOLE])
def test_dask(name):
    """Chunks have the bits of the whole, and partial results of chunks are combined."""
    rng = np.random.default_rng(5)
    for _ in range(12):
        dtype = rng.choice(np.array(cases_axes.FLOATS, object))
        x = np.ascontiguousarray(with_nans(rng, rng.standard_normal(tuple(rng.integers(2, 30, 2))).astype(dtype)))
        chunked = da.from_array(x, chunks=tuple(int(rng.integers(1, size + 1)) for size in x.shape))
        given = {"axes": (0, 1), "skipna": True} | ({} if name in WHOLE else {"kernel_shape": 2})
        y = getattr(onnxpool.dask, name)(chunked, **given).compute(scheduler="synchronous")
        whole = getattr(onnxpool, name)(x, **given)
        if name in WHOLE:
            np.testing.assert_allclose(y.astype(float), whole.astype(float), 64 * float(ml_dtypes.finfo(dtype).eps))
        else:
            assert y.tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_threads_share_whole_channels(dtype):
    """Threads can share whole channels although totals are pairs, which once needed twice the available memory."""
    rng = np.random.default_rng(6)
    for shape, axes in (((1000, 100), 0), ((20_000, 150), 0), ((3, 100_000), 1), ((700, 900), (0, 1)),
                        ((900, 7, 60), 0)):
        x = with_nans(rng, rng.standard_normal(shape).astype(dtype))
        op = onnxpool.GlobalAveragePool(axes=axes, skipna=True)
        assert op(x, num_threads=2).tobytes() == op(x, num_threads=1).tobytes()


@pytest.mark.parametrize("dtype", cases_axes.FLOATS, ids=str)
def test_norms_of_infinite_order(dtype):
    """Norms of infinite order are the largest magnitudes."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        x = with_nans(rng, rng.choice([-3, -0.0, 0, 2, np.inf], tuple(rng.integers(1, 9, 2))).astype(dtype))
        y = onnxpool.lp_pool(x, 2, pads=1, axes=(0, 1), p=2**53, skipna=True).astype(np.float64)
        padded = np.pad(np.abs(x.astype(np.float64)), 1, constant_values=np.nan)
        np.testing.assert_array_equal(y, np.fmax.reduce(sliding_window_view(padded, (2, 2)), (-2, -1)))
        whole = onnxpool.global_lp_pool(x, axes=1, p=2**53, skipna=True, keepdims=False).astype(np.float64)
        np.testing.assert_array_equal(whole, np.fmax.reduce(np.abs(x.astype(np.float64)), 1))


def test_signalling_nans_in_shares():
    """Combining shares returns no signalling NaNs, which NumPy's fmax and fmin would return."""
    for dtype, bits in (("float32", 0x7F800001), ("float64", 0xFFF0000000000001)):
        none = np.array([bits], f"u{np.dtype(dtype).itemsize}").view(dtype)
        for numbers in ([9.0, 1.0], [1.0]):
            x = np.insert(np.array(numbers, dtype), len(numbers) - 1, none)
            for name, best in (("GlobalMaxPool", max), ("GlobalMinPool", min)):
                plan = getattr(onnxpool, name)(axes=0, skipna=True).plan(x.shape, x.dtype)
                assert plan.combine(share(x[share.inputs]) for share in plan.partials(n=len(x))) == best(numbers)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_windows_without_nans_whose_sums_overflow_have_the_usual_bits(dtype):
    """Windows without NaNs whose sums overflow keep their bits, whatever NaNs are elsewhere."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng, most = np.random.default_rng(8), float(ml_dtypes.finfo(kind).max)
    for _ in range(100):
        x = (rng.standard_normal(40) * rng.choice([1e-20, 1, most / 4], 40)).astype(kind)
        x[20] = np.nan
        usual = onnxpool.average_pool(x, 5, axes=0)
        y = onnxpool.average_pool(x, 5, axes=0, skipna=True)
        untouched = ~np.isnan(usual)
        assert y[untouched].tobytes() == usual[untouched].tobytes()


def test_callers_see_no_floating_point_exceptions():
    """Callers see no floating-point exceptions, even with NumPy's strictest settings."""
    none = np.array([0x7F800001], np.uint32).view(np.float32)
    with np.errstate(all="raise"):
        onnxpool.average_pool(np.array([3e38, 3e38, 1e-40], np.float32), 2, axes=0, skipna=True)
        onnxpool.average_pool(np.concatenate([none, np.full(3, 3e38, np.float32)]), 2, axes=0, skipna=True)
        onnxpool.average_pool(np.concatenate([none, none]), 2, axes=0, dtype="float64")
        onnxpool.average_pool(np.array([-1, 1, 0], np.int32), 2, axes=0, dtype="float32")
        onnxpool.max_pool(none, 1, axes=0, skipna=True, return_indices=True)


def test_combined_means_near_the_limits():
    """Combined means do not exceed the largest number, and wider results have their precision."""
    x = np.full(60, np.finfo(np.float64).max)
    x[5] = np.nan
    for size, sign, skipna in itertools.product(range(6, 60), (1, -1), (True, False)):
        given = sign * (x[:size] if skipna else np.full(size, x[0]))
        plan = onnxpool.GlobalAveragePool(axes=0, keepdims=False, skipna=skipna).plan((size,), x.dtype)
        y = plan.combine(share(given[share.inputs]) for share in plan.partials(n=6))
        assert float(y) == pytest.approx(sign * x[0], rel=1e-15)
    x = np.array([0.1, 0.2, 0.3], np.float32)
    plan = onnxpool.GlobalAveragePool(axes=0, keepdims=False, dtype="float64").plan(x.shape, x.dtype)
    y = plan.combine(share(x[share.inputs]) for share in plan.partials(n=2))
    assert float(y) == pytest.approx(x.mean(dtype=np.float64), rel=1e-15)


def test_partial_results_of_other_plans_are_refused():
    """Partial results of means that skip NaNs include counts, so partial results of other plans are refused."""
    x = np.array([1.0, np.nan, 3.0])
    plans = [onnxpool.GlobalAveragePool(axes=0, skipna=skipna).plan(x.shape, x.dtype) for skipna in (False, True)]
    for plan, other in (plans, plans[::-1]):
        with pytest.raises(onnxpool.PoolError, match="counts of elements"):
            plan.combine(share(x[share.inputs]) for share in other.partials(n=2))
    assert "NaNs are left out, and not counted by divisors" in plans[1].explain()
