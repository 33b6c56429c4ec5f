"""Compiled code plans calls on arrays of new shapes and strides like an operator's plans."""

import random

import ml_dtypes
import native
import numpy as np
import pytest
from random_plans import drawn
from support import same_bits

import onnxpool
from onnxpool import base
from onnxpool.planning import layout
from onnxpool.planning.kinds import ConvertedPlan, CopyPlan, IntegerMeanPlan, LoopPlan, WholeMeanPlan
from onnxpool.planning.ways import Forced

MOST = 200_000  # elements of arrays that are pooled


@pytest.fixture(autouse=True)
def _nothing_learned(monkeypatch):
    """Forgets what other tests may have learned by tuning plans in this process."""
    monkeypatch.setattr(layout, "learned", {})


def values(rng, shape, dtype):
    """Random elements, some of which are NaN or so large that sums of a few overflow."""
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if rng.random() < 0.5:
        x[rng.random(shape) < 0.2] = np.nan
    if rng.random() < 0.2:
        x[rng.random(shape) < 0.2] = 0.7 * float(ml_dtypes.finfo(dtype).max)
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def further(rng, plan):
    """The scales and zero points of a quantised operator."""
    scales = rng.uniform(0.01, 0.1, 2).astype(np.float32)
    zeros = rng.integers(0, 100, 2).astype(plan.dtype)
    return (scales[0], zeros[0], scales[1], zeros[1]) if plan.scaled else ()


def other_shapes(rng, plan, count):
    """Shapes with as many axes as a plan's shape, for which the operator has results."""
    for _ in range(count):
        shape = tuple(max(1, size + rng.randint(-2, 3)) for size in plan.shape)
        try:
            other = plan.operator._make_plan(shape, plan.dtype)
        except onnxpool.PoolError:
            continue
        if np.prod(shape) <= MOST and np.prod(other.output_shape) <= MOST:
            yield other


def laid_out(rng, x):
    """An equal array that is C-contiguous, or cut out of a larger array, perhaps with every second element of an
    axis."""
    if rng.random() < 0.5 or not x.ndim:
        return x
    gaps = [rng.choice((0, 0, 1, 5)) for _ in x.shape]
    steps = [rng.choice((1, 1, 1, 2)) for _ in x.shape]
    whole = np.ones([size * step + gap for size, step, gap in zip(x.shape, steps, gaps, strict=True)], x.dtype)
    y = whole[tuple(slice(gap, None, step) for gap, step in zip(gaps, steps, strict=True))]
    y[...] = x
    return y


def same_order(y, expected):
    """Whether arrays have the same strides, but for axes of one element."""
    steps = zip(y.shape, y.strides, expected.strides, strict=True)
    return all(size == 1 or step == other for size, step, other in steps)


def pool_of_plan(plan, x):
    """The pool with which a plan reduces an array."""
    if isinstance(plan, ConvertedPlan):
        return plan.wide._row_major_pool()
    y = np.empty(plan.output_shape, plan.result_dtype)
    return plan._pool(x, y, np.empty(y.shape, np.int64) if plan.reduction.indexed else None)


def loops_dtype(plan):
    """The dtype of the elements that loops read."""
    return plan.wide.dtype if isinstance(plan, ConvertedPlan) else plan.dtype


def rare(plan, first):
    """Whether Python, rather than compiled code, plans a call. Python does for huge attributes, for windows that skip
    NaNs and may have no tap, for a quantised window over the whole array, for means that need more than a quotient of
    floats, and for elements that are cast to another dtype than in the first plan."""
    if loops_dtype(plan) != loops_dtype(first):
        return True
    if isinstance(plan, (IntegerMeanPlan, WholeMeanPlan)) or (
            isinstance(plan, ConvertedPlan) and (plan.reduction.indexed or plan.dtype.kind not in "biu")):
        return True
    names = ("kernel_shape", "dilations", "pads")
    largest = max((max(np.atleast_1d(getattr(plan.operator, name)))
                   for name in names if name in plan.operator.attributes), default=0)
    may_lack = any(axis.dilation > axis.size or axis.empty for axis in plan.axes)
    if plan.scaled and plan.reduction.whole and plan.operator.windowed:
        return True
    return largest >= 1 << 30 or (plan.reduction.skips and (may_lack or plan.reduction.indexed))


@pytest.mark.parametrize("seed", range(6))
def test_new_shapes_have_the_pools_and_results_of_their_plans(seed):
    rng, random_values, planned, kinds = random.Random(seed), np.random.default_rng(seed), 0, set()
    while planned < 150:
        case = drawn(rng)
        if case is None or np.prod(case[0].shape) > MOST or np.prod(case[0].output_shape) > MOST:
            continue
        plan, _ = case
        operator, others = plan.operator, [*other_shapes(rng, plan, 6)]
        for one in others[:2]:
            operator(values(random_values, one.shape, one.dtype), *further(random_values, one))
        shapes = operator._shapes
        if shapes is None:
            continue
        for other in others:
            x, inputs = values(random_values, other.shape, other.dtype), further(random_values, other)
            x = laid_out(rng, x)
            pool = shapes.pool(x)
            y, expected = operator(x, *inputs), other(x, *inputs)
            if isinstance(other, CopyPlan):
                assert pool is None, other
                assert same_bits(y, expected), (other, x.strides)
                continue
            if pool is None:
                assert rare(other, others[0]), other
                continue
            assert pool.setup == pool_of_plan(other, x).setup, (other, x.strides)
            kinds.add((other.reduction.name, other.reduction.skips, other.dtype.kind in "biu",
                       isinstance(other, LoopPlan), x.flags.c_contiguous))
            pairs = [*zip(y, expected, strict=True)] if isinstance(y, tuple) else [(y, expected)]
            assert all(same_bits(*pair) and same_order(*pair) for pair in pairs), (other, x.strides)
            planned += 1
    assert len(kinds) >= 13, kinds


def test_arrays_in_another_order_are_planned_by_python():
    operator = onnxpool.MaxPool(kernel_shape=(2, 2))
    x = np.random.default_rng(1).standard_normal((4, 6, 8, 10)).astype(np.float32)
    for shape in ((1, 3, 4, 5), (2, 3, 4, 6)):
        operator(np.zeros(shape, np.float32))
    for view in (x.transpose(0, 1, 3, 2), x[::-1], x[..., ::-1], np.broadcast_to(x[:1], x.shape), x.astype(">f4"),
                 np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)):
        same_order = view.flags.c_contiguous and view.flags.aligned and view.dtype.isnative
        assert (operator._shapes.pool(view) is None) == (not same_order)
        assert same_bits(operator(view), operator.plan(view.shape, view.dtype)(np.ascontiguousarray(view)))


def test_results_in_memory_of_an_array_that_is_cut_out():
    """A result is right in the memory of an array that is cut out of a larger one."""
    operator, rng = onnxpool.MaxPool(kernel_shape=(2, 2)), np.random.default_rng(2)
    for side in (5, 6, 7, 8):
        whole = rng.standard_normal((2, 3, side, 10)).astype(np.float32)
        x = whole[..., :4]
        expected = operator(x.copy())
        memory = whole.reshape(-1)
        for begin in (0, 3, memory.size - expected.size):
            again = whole.copy()
            out = again.reshape(-1)[begin:begin + expected.size].reshape(expected.shape)
            assert operator(again[..., :4], out=out) is out
            assert same_bits(out, expected)


def test_errors_of_new_shapes_are_those_of_plans():
    operator = onnxpool.MaxPool(kernel_shape=(3, 3))
    operator(np.zeros((1, 2, 9, 9), np.float32))
    assert operator._shapes is None  # a single shape needs only its plan
    operator(np.zeros((1, 2, 8, 8), np.float32))
    assert operator._shapes is not None
    for shape in ((1, 2, 2, 8), (1, 2, 0, 8)):
        with pytest.raises(onnxpool.PoolError) as raised:
            operator(np.zeros(shape, np.float32))
        with pytest.raises(onnxpool.PoolError) as expected:
            operator.plan(shape, np.float32)
        assert str(raised.value) == str(expected.value)
    assert operator(np.zeros((0, 2, 8, 8), np.float32)).shape == (0, 2, 6, 6)


@pytest.mark.parametrize("indexed", [False, True])
def test_geometries_of_new_shapes_need_no_plans(indexed):
    given = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
    pool, rng = onnxpool.MaxPool(**given, return_indices=indexed), np.random.default_rng(1)
    for turn, side in enumerate((*range(3, 12), 4)):
        x = rng.standard_normal((2, 3, side, side + 1)).astype(np.float32)
        plans = base._plan.cache_info().misses
        geometry = native.geometry("MaxPool", x.shape, "float32", **given, return_indices=indexed)
        handle = native.prepare_geometry(geometry)
        known = base._plan.cache_info().misses == plans  # the first two shapes need plans
        expected = pool.plan(x.shape, x.dtype)(x)
        y, indices = expected if indexed else (expected, None)
        found, places = np.empty_like(y), np.empty(y.shape, np.int64)
        assert native.shape_of(handle) == y.shape
        address = places.ctypes.data if indexed else None
        assert native.run(handle, x.ctypes.data, found.ctypes.data, address, 1) == native.OK
        native.release(handle)
        assert same_bits(found, y)
        assert indices is None or np.array_equal(places, indices)
        assert known or turn < 2


def test_a_forced_solver_counts_for_shapes_that_are_known():
    operator = onnxpool.MaxPool(kernel_shape=(3, 3), channels_last=True)
    x = np.zeros((1, 20, 20, 64), np.float32)
    operator(x[:, :9].copy())
    operator(x)
    found = set()
    try:
        for Forced.solver in ("direct", "passes"):
            found.add(operator._shapes.pool(x).setup.solver)
    finally:
        Forced.solver = None
        base._plan.cache_clear()
    assert found == {"direct", "passes"}


def test_limits_count_for_new_shapes_while_they_are_in_force():
    operator = onnxpool.MaxPool(kernel_shape=(2, 2))
    for side in (8, 9, 10):
        operator(np.zeros((1, 1, side, side), np.float32))
    with onnxpool.limits(max_output_bytes=100):
        for side in (10, 11):  # a known shape, and a new one
            with pytest.raises(onnxpool.PoolError, match="limit"):
                operator(np.zeros((1, 1, side, side), np.float32))
    plans = base._plan.cache_info().misses
    operator(np.zeros((1, 1, 12, 12), np.float32))
    assert base._plan.cache_info().misses == plans


def test_pools_are_bounded():
    """A hundred times as many shapes as an operator keeps take no more memory than those that the operator keeps."""
    import tracemalloc

    operator = onnxpool.AveragePool(kernel_shape=(2, 2))
    for side in (299, 300):
        operator(np.zeros((1, 1, side, side), np.float32))
    x = np.zeros(90_000, np.float32)

    def call(first, last):
        for side in range(first, last):
            for width in range(2, 102):
                operator(x[:side * width].reshape(1, 1, side, width))

    call(2, 4)
    tracemalloc.start()
    try:
        call(4, 8)
        before, _ = tracemalloc.get_traced_memory()
        call(8, 72)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "int64", "bool"])
def test_single_elements_are_copied(dtype):
    dtype, rng = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype), np.random.default_rng(3)
    for operator in (onnxpool.MaxPool(kernel_shape=1, strides=(2, 3), axes=(2, 3)),
                     onnxpool.MinPool(axes=(1, 3), kernel_shape=1),
                     onnxpool.MaxPool(axes=(0, 2), kernel_shape=(1, 1), strides=(2, 2))):
        for side in (5, 6, 7, 8):
            x = values(rng, (2, 3, side, 9), dtype)
            for one in (x, x[:, :2, 1:, ::2]):
                y, plan = operator(one), operator.plan(one.shape, one.dtype)
                assert isinstance(plan, CopyPlan)
                assert same_bits(y, plan(one))
                out = np.empty_like(y)
                assert operator(one, out=out) is out
                assert same_bits(out, y)
        assert (operator._shapes.shape_of(x) is None) == (dtype.kind == "b")


def test_what_was_learned_is_used_for_known_shapes(monkeypatch):
    from onnxpool.planning import ways

    operator = onnxpool.MaxPool(kernel_shape=(3, 3), channels_last=True)
    x = np.zeros((1, 20, 20, 64), np.float32)
    operator(x[:, :9].copy())
    operator(x)
    assert operator._shapes.pool(x) is not None
    plan = operator.plan(x.shape, x.dtype)
    request, memory, way = plan.request, plan._row_major(), ways.Way("passes", False, 0.5, 1)
    del plan  # its pools were made before
    monkeypatch.setattr(layout, "learned", {layout.key_of(request, *memory): way})
    onnxpool.clear_caches()
    try:
        assert operator._shapes.pool(x) is None
        assert operator._shapes.pool(x[:, 1:].copy()) is not None
        assert operator._shapes.pool(x[:, 1:]) is not None
        operator(x)
        pools = operator._recent()._pools
        assert [pool.setup for pool in pools.values()] == [layout.setup_of(request, *memory, way)]
    finally:
        monkeypatch.undo()
        onnxpool.clear_caches()
