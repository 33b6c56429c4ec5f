"""Routes: which one is chosen, that all return the same bits, and that sums have the documented order.

`Forced.solver` forces a route, and `Forced.lanes` whether strided channels are transposed to be adjacent.
"""

import functools
import itertools
import math
import operator as operators
from collections import Counter
from contextlib import contextmanager

import ml_dtypes
import native
import numpy as np
import pytest
from guarded import Slot
from hypothesis import given as drawing
from hypothesis import strategies as st
from onnxpool_conformance.oracle import axis_windows, expect
from problems import adjacent_problem, random_problem, short_problem, sliding_problem, values
from slow_planner import choice, solvers
from slow_planner import layout as planned
from support import built_solvers, same_bits

import onnxpool
from onnxpool import base, cython_api, kernels, windows
from onnxpool.constants import FEW
from onnxpool.onnxruntime import nodes
from onnxpool.planning import costs, layout, planner
from onnxpool.planning.ways import Forced

pytestmark = pytest.mark.smoke

FLOATS = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
DTYPES = [np.dtype(t) for t in (np.int8, np.uint8)] + FLOATS
KINDS = {"max": {}, "mean": {}, "mean with pads": {"count_include_pad": 1}, "norm 1": {"p": 1}, "norm 2": {"p": 2},
         "norm 3": {"p": 3}, "magnitude": {"p": 2**60}}
PROBLEMS = 60  # problems of each reduction
WAYS = (None, "apart", None, "rows backwards", "backwards")  # memory layouts of arrays
FENCE = 4096  # bytes beyond scratch memory that are watched


@contextmanager
def forced(route=None, lanes=None):
    """Makes plans in the block take this route if the route applies, without caching them."""
    base._plan.cache_clear()
    Forced.solver, Forced.lanes = route, lanes
    try:
        yield
    finally:
        Forced.solver = Forced.lanes = None
        base._plan.cache_clear()


@pytest.fixture(autouse=True)
def fences():
    """No loop writes beyond its scratch memory."""
    kernels.pools.watch_scratch(FENCE)
    yield
    assert kernels.pools.watch_scratch(0) == 0


def made(kind, attributes, last=False):
    """The operator of a reduction."""
    pool = {"max": onnxpool.MaxPool, "mean": onnxpool.AveragePool}.get(kind.split()[0], onnxpool.LpPool)
    return pool(**attributes, **KINDS[kind], channels_last=last)


def unit_kind(kind):
    """The reduction of the units for a kind."""
    return "extremum" if kind == "magnitude" else kind.split()[0]


def to_last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


# Scratch memory, which `fences` watches

TAILS = (17, 33, 34, 65, 66, 129, 257)  # channels that leave few for the last tile
EXAMPLE = (2, 4, 4, 1), {"kernel_shape": (3, 5, 5, 1), "strides": (9, 9, 2, 9), "pads": (0, 0, 0, 0, 1, 5, 1, 0),
                         "ceil_mode": 1}  # this once wrote beyond it for 33 channels of float64


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_indices_of_a_last_tile_of_few_channels(dtype, last):
    """Scratch memory suffices for a last tile of few channels, which may need more than the tiles before."""
    rng = np.random.default_rng(31)
    problems = [random_problem(rng) for _ in range(20)]
    for extents, attributes in (EXAMPLE, *(((*shape[2:],), given) for shape, given in problems)):
        for images, channels in itertools.product((1, 3), TAILS):
            x = np.zeros((images, *extents, channels) if last else (images, channels, *extents), dtype)
            onnxpool.MaxPool(**attributes, return_indices=True, channels_last=last)(x, num_threads=1)


# Which route is chosen

SHAPE = (2, 24, 24, 64)
ONE, NONE = np.float32(1), np.uint8(0)
CHOSEN = {  # problems for each row of the table: operator, dtype, further inputs
    "whole": [(onnxpool.GlobalMaxPool(channels_last=True), np.float32, ())],
    "ordered": [
        (onnxpool.MaxPool(kernel_shape=(3, 3), channels_last=True, return_indices=True), np.float32, ()),
        (onnxpool.QLinearAveragePool(kernel_shape=(3, 3), channels_last=1), np.uint8, (ONE, NONE, ONE, NONE)),
    ],
    "slide": [(onnxpool.MaxPool(kernel_shape=(2, 2), strides=(2, 2), channels_last=True), np.float32, ())],
    "direct": [(onnxpool.MaxPool(kernel_shape=(4, 4), strides=(4, 4), channels_last=True), np.float32, ())],
    "short": [(onnxpool.MaxPool(kernel_shape=(3, 2)), np.float16, ())],
    "disjoint": [(onnxpool.MaxPool(kernel_shape=(2, 2), strides=(2, 2)), np.float32, ())],
    "folded": [(onnxpool.MaxPool(kernel_shape=(2, 64), strides=(2, 64)), np.float64, ())],
    "stack": [(onnxpool.AveragePool(kernel_shape=(24, 2), strides=(24, 2), channels_last=True), np.float32, ())],
    "passes": [(onnxpool.AveragePool(kernel_shape=(9, 9), pads=[4] * 4, channels_last=True), np.float32, ())],
}


ROUTES = [row["name"] for row in kernels.routes()]


@pytest.mark.parametrize("route", ROUTES)
def test_every_row_of_the_table_is_chosen_for_a_problem(route):
    if route not in built_solvers():
        pytest.skip(f"{route} is not compiled for {kernels.isa}")
    for operator, dtype, further in CHOSEN[route]:
        with forced():
            plan = operator.plan(SHAPE, dtype)
            plan(np.ones(SHAPE, dtype), *further)
            assert [pool.setup.solver for pool in plan._pools.values()] == [route]
            assert plan.explain().to_dict()["route"] == [route]
            assert plan.explain().endswith(f"\nroute: {route}")


def test_a_solver_without_costs_is_chosen_only_if_it_is_forced(monkeypatch):
    plan = onnxpool.MaxPool(kernel_shape=2, strides=2, channels_last=True).plan((1, 24, 24, 64), np.float32)
    without = {name: own for name, own in costs.COSTS[layout.REGISTER].items() if name not in ("slide", "direct")}
    monkeypatch.setitem(costs.COSTS, layout.REGISTER, without)
    try:
        planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, layout.REGISTER)
        assert plan._row_major_pool().setup.solver == "passes"
        with forced("direct"):
            assert plan.operator.plan(plan.shape, plan.dtype)._row_major_pool().setup.solver == "direct"
    finally:
        monkeypatch.undo()
        planner.prepare(kernels.units, kernels.REGISTER, kernels.PICKS, layout.REGISTER)


COVERED = [((7, 7), (7, 7)), ((8, 8), (8, 8)), ((13, 13), (13, 13)), ((1, 49), (1, 49)), ((4, 7, 7), (2, 7, 7)),
           ((96,), (96,)), ((7, 7), (6, 7)), ((9, 5), (9, 3))]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize(("sizes", "kernel"), COVERED)
def test_channels_of_windows_that_cover_an_axis_are_brought_side_by_side(sizes, kernel, dtype):
    """Transposing many channels costs less than any other way if few windows cover a plane, which is then read once.
    The exception is a row that fits into a register, whose taps are picked at once."""
    operator = onnxpool.MaxPool if dtype == "int8" else onnxpool.AveragePool
    shape = (1, 512, *sizes)
    plan = operator(kernel_shape=kernel).plan(shape, dtype)
    x = np.ones(shape, dtype)
    y = plan(x)
    rows = planned.problems_of(plan.request, x.strides, [y.strides], True)[1][0]
    lanes = [pool.setup.form.lane.size for pool in plan._pools.values()]
    assert lanes == [512] or (lanes == [1] and solvers.is_short(rows) and layout.REGISTER >= 64)


@pytest.mark.parametrize(("size", "dilation", "pads", "stride"), [(6, 1, 200, 400), (16, 300, 300, 3)])
def test_channels_are_made_adjacent_where_one_solver_fits(size, dilation, pads, stride):
    """Costs decide whether channels are made adjacent even if only one solver fits. Here, pads are too long for
    passes."""
    operator = onnxpool.MaxPool(kernel_shape=2, dilations=dilation, pads=pads, strides=stride)
    plan = operator.plan((1, 64, size, size), np.float32)
    plan(np.ones(plan.shape, np.float32))
    assert [(pool.setup.solver, pool.setup.form.lane.size) for pool in plan._pools.values()] == [("direct", 64)]


def read_by_tiles(axis, side):
    """The number of elements that tiles of this many windows read, counted one by one."""
    def places(windows):
        return {place for i in windows for place in range(i * axis.stride - axis.pads[0], i * axis.stride
                - axis.pads[0] + axis.span) if 0 <= place < axis.size}

    tiles = [range(begin, min(axis.out, begin + side)) for begin in range(0, axis.out, side)]
    return sum(len(places(tile)) for tile in tiles) / len(places(range(axis.out)))


@drawing(st.integers(1, 60), st.integers(1, 60), st.integers(1, 9))
def test_a_halo_is_what_tiles_read_again(size, kernel, stride):
    """The estimate of a halo is exact up to a window at each end of a tile, and 1 if one tile contains all windows."""
    kernel = min(size, kernel)
    axis = windows.Axis(size, (size - kernel) // stride + 1, kernel, stride)
    problem = solvers.Problem("mean", "float32", (axis, axis), 1, 1, 64, True, 4, 4, layout.REGISTER, False)
    side = round(choice.TILE ** 0.5)
    estimate = choice.halo(problem) ** 0.5
    assert estimate == pytest.approx(read_by_tiles(axis, side), abs=axis.span / size + 1e-9)
    if axis.out <= side:
        assert estimate == 1


@drawing(st.integers(1, 40), st.integers(1, 20), st.integers(1, 9), st.data())
def test_the_mean_number_of_taps_leaves_out_padding(size, kernel, stride, data):
    """The estimated mean number of taps is exact if no window lies wholly in the padding, and overhang counts as
    padding."""
    pads = data.draw(st.integers(0, kernel - 1)), data.draw(st.integers(0, kernel - 1))
    room = size + sum(pads) - kernel
    if room < 0:
        return
    out = min(room // stride + 1, (size + pads[0] - 1) // stride + 1)
    overhang = data.draw(st.booleans()) and (size + pads[0] - 1) // stride + 1 > out
    axis = windows.Axis(size, out + overhang, kernel, stride, pads=pads)
    counted = [axis.window(index).taps for index in range(axis.out)]
    assert solvers.taps_inside(axis) == pytest.approx(sum(counted) / axis.out)


@pytest.mark.parametrize(("dtype", "size", "adjacent"), [
    ("float32", 4, True), ("bfloat16", 8, True), ("float64", 14, False), ("float32", 30, False)])
def test_small_planes_are_transposed_and_large_ones_are_not(dtype, size, adjacent):
    """Only small planes are transposed: reducing their few elements in place would leave a register whose elements must
    be joined."""
    plan = onnxpool.GlobalMaxPool().plan((1, 512, size, size), dtype)
    plan(np.ones(plan.shape, plan.dtype))
    assert [pool.setup.form.apart for pool in plan._pools.values()] == [adjacent]


@pytest.mark.parametrize("stride", [1, 5])
def test_lines_in_order_are_long_and_without_gaps(stride):
    """Long lines are loaded in place, but elements far apart are not, because they would be picked one by one."""
    operator = onnxpool.QLinearAveragePool(kernel_shape=5, strides=stride)
    plan = operator.plan((8, 64, 400), np.uint8)
    plan(np.ones(plan.shape, np.uint8), ONE, NONE, ONE, NONE)
    assert [pool.setup.form.apart for pool in plan._pools.values()] == [stride == 5]


def test_the_table_can_be_read():
    """Every row has a file of loops, and says in words when it applies."""
    assert {row["loops"] for row in kernels.routes() if row["name"] in built_solvers()} <= built_solvers()
    assert all(row["when"] for row in kernels.routes())
    assert len(set(ROUTES)) == len(ROUTES)


def test_explanations_say_what_is_copied_empty_or_widened(monkeypatch):
    """A view of one element for each window is copied; nothing runs for an empty array; float64 counts all elements."""
    def route(operator, shape, dtype=np.uint8):
        return operator.plan(shape, dtype).explain().to_dict()["route"]

    assert route(onnxpool.MaxPool(kernel_shape=1, strides=2), (2, 3, 9, 9)) == ["copy"]
    assert route(onnxpool.MaxPool(kernel_shape=2), (0, 3, 9, 9)) == []
    with forced():
        monkeypatch.setattr(layout, "MOST_PLACES", 10)
        assert route(onnxpool.MaxPool(kernel_shape=2, return_indices=True), (2, 3, 9, 9)) == ["ordered"]


# All routes give the same bits


WINDOWED = [solver.name for solver in solvers.SOLVERS if not solver.whole and "max" in solver.reductions
            and solver.name in built_solvers()]


def laid(x, way):
    """The same array: unchanged, strided so that tiles are copied, or with all axes reversed."""
    if way == "apart":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if way == "backwards":
        return np.flip(np.flip(x).copy())
    if way == "rows backwards":
        return np.flip(np.flip(x, (0, 1, 2)).copy(), (0, 1, 2))
    return x


def all_ways(kind, attributes, x, way=None):
    """The result of every route that applies, with its name: by rows, by lanes, and with channels last."""
    for route, (last, lanes) in itertools.product(WINDOWED, [(True, None), (False, True), (False, False)]):
        with forced(route, lanes):
            source = to_last(x) if last else x
            plan = made(kind, attributes, last).plan(source.shape, source.dtype)
            y = plan(laid(source, way), out=laid(np.empty(plan.output_shape, x.dtype), way))
            if all(pool.setup.solver == route for pool in plan._pools.values()):
                yield route, last, lanes, np.moveaxis(y, -1, 1) if last else y


def planner_of(plan, x):
    """The planner for C-contiguous arrays of a plan."""
    return layout.planner_of(plan.request, x.strides, [plan(x).strides], True)


@pytest.mark.parametrize("kind", KINDS)
def test_all_routes_give_the_same_bits(kind):
    rng, ran = np.random.default_rng(len(kind)), Counter()
    for problem in range(PROBLEMS):
        shape, attributes = random_problem(rng)
        dtypes = DTYPES if kind == "max" else FLOATS
        dtype = dtypes[problem % len(dtypes)]
        x = values(rng, shape, dtype, odd=problem % 3 == 0)
        (*first, expected), *others = all_ways(kind, attributes, x, WAYS[problem % len(WAYS)])
        for *way, y in others:
            assert same_bits(y, expected), (shape, attributes, dtype, first, way)
            ran[way[0]] += 1
    assert min(ran["direct"], ran["passes"]) > PROBLEMS


@pytest.mark.one_in(4)
@pytest.mark.parametrize("route", WINDOWED)
@pytest.mark.parametrize("channels", [16, 33])
@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_taps_along_any_axes(rank, channels, route):
    """Axes with a single tap may be anywhere. A loop once took the first two axes for its columns' axes."""
    x = np.random.default_rng(rank).standard_normal((1, *[5] * rank, channels)).astype(np.float32)
    for kernel in itertools.product([1, 2, 3], repeat=rank):
        for stride in (1, 2):
            with forced(route):
                y = onnxpool.max_pool(x, kernel_shape=kernel, strides=[stride] * rank, channels_last=True)
            expected = x
            for axis, size in enumerate(kernel, 1):
                windows_of = np.lib.stride_tricks.sliding_window_view(expected, size, axis)
                expected = windows_of.max(-1)[(*[slice(None)] * axis, slice(None, None, stride))]
            assert (y == expected).all(), (kernel, stride)


# The order of sums


def added(parts):
    """The sum over kernel positions, where padding is None: one after another, or as a binary tree."""
    if len(parts) <= FEW:
        present = [part for part in parts if part is not None]
        return functools.reduce(operators.add, present) if present else None
    half = 1
    while 2 * half < len(parts):
        half *= 2

    def tree(begin, count):
        if count == 1:
            return parts[begin] if begin < len(parts) else None
        earlier, later = tree(begin, count // 2), tree(begin + count // 2, count // 2)
        return later if earlier is None else earlier if later is None else earlier + later

    return tree(0, 2 * half)


def total(x, window):
    """The sum of a window whose taps are given along each axis. Taps of the first axis are added first."""
    if not window:
        return x
    return added([None if tap is None else total(x[..., tap], window[:-1]) for tap in window[-1]])


def windows_along(size, kernel, stride, dilation, begin, end, ceil_mode):
    """The windows of an axis: a position for each tap, None in the padding, and the counts without and with padding."""
    known = axis_windows(size, kernel, stride, dilation, (begin, end), "NOTSET", ceil_mode)
    for out, (inside, counted) in enumerate(zip(*known, strict=True)):
        places = range(out * stride - begin, out * stride - begin + kernel * dilation, dilation)
        yield [place if 0 <= place < size else None for place in places], len(inside), counted


def expected_results(x, kind, attributes):
    """Means and norms of sums in order, with each sum, quotient and root rounded once."""
    rank, pads = x.ndim - 2, attributes["pads"]
    given = [attributes[name] for name in ("kernel_shape", "strides", "dilations")]
    rows = zip(x.shape[2:], *given, pads[:rank], pads[rank:], [attributes["ceil_mode"]] * rank, strict=True)
    axes = [list(windows_along(*row)) for row in rows]
    powers = {"norm 1": np.abs, "norm 2": np.square}
    wide = powers.get(kind, np.asarray)(x.astype(np.float64 if x.dtype == np.float64 or kind in powers else np.float32))
    y = []
    for window in itertools.product(*axes):
        places, *counts = zip(*window, strict=True)
        value = total(wide, places) if math.prod(counts[0]) else np.zeros(x.shape[:2], wide.dtype)
        if kind.startswith("mean"):
            with np.errstate(invalid="ignore"):
                value = value / wide.dtype.type(math.prod(counts[kind == "mean with pads"]))
        y.append(np.sqrt(value) if kind == "norm 2" else value)
    return np.stack(y, axis=-1).reshape(*x.shape[:2], *map(len, axes)).astype(x.dtype)


@pytest.mark.parametrize("kind", ["mean", "mean with pads", "norm 1", "norm 2"])
def test_sums_have_the_order_of_the_oracle(kind):
    """Taps of the first axis are added first. Few taps along an axis are added one after another, and many as a binary
    tree."""
    rng, long = np.random.default_rng(len(kind)), 0
    for problem in range(40):
        shape, attributes = random_problem(rng)
        if math.prod(shape[2:]) > 2500:  # the oracle would take too long
            continue
        dtypes = FLOATS if kind.startswith("mean") else FLOATS[2:]  # roots of 16 bits are rounded differently
        x = values(rng, shape, dtypes[problem % len(dtypes)], odd=False)
        expected = expected_results(x, kind, attributes)
        for *way, y in all_ways(kind, attributes, x):
            assert np.array_equal(y, expected, equal_nan=True), (kind, shape, attributes, x.dtype, way)
        long += max(attributes["kernel_shape"]) > FEW
    assert long > 5


def compared(kind, x, attributes, way=None, every=0):
    """Compare all routes with each other, and one in `every` channels with sums in order. Return the routes that apply
    to an array with channels first or last."""
    (*first, expected), *others = all_ways(kind, attributes, x, way)
    for *route, y in others:
        assert same_bits(y, expected), (kind, x.shape, attributes, x.dtype, first, route)
    if every:
        few = np.s_[:, ::every]
        assert np.array_equal(expected[few], expected_results(x[few], kind, attributes), equal_nan=True), (
            kind, x.shape, attributes)
    plans = [(given, made(kind, attributes, last).plan(given.shape, x.dtype))
             for last, given in enumerate((x, to_last(x)))]
    return {route for given, plan in plans for fitting in planner_of(plan, given).fitting for route in fitting}


@pytest.mark.parametrize("kind", ["max", "mean", "mean with pads", "norm 1"])
def test_windows_at_borders_that_read_the_same_taps(kind):
    """All routes agree at borders where many windows read the same taps, which lie further apart than windows."""
    rng, several = np.random.default_rng(len(kind)), 0
    for problem in range(40):
        rank = int(rng.integers(1, 3))
        sizes, kernel, strides = rng.integers(3, 40, rank), rng.integers(2, 6, rank), rng.integers(1, 4, rank)
        dilations = rng.integers(1, sizes)
        spans = (kernel - 1) * dilations + 1
        least = np.maximum(0, spans - sizes)
        pads = np.concatenate([rng.integers(least, least + spans) for _ in range(2)])
        attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads,
                      "ceil_mode": problem % 2}
        attributes = {name: value if name == "ceil_mode" else value.tolist() for name, value in attributes.items()}
        dtypes = DTYPES if kind == "max" else FLOATS[2:] if kind == "norm 1" else FLOATS
        x = values(rng, (1, 3, *sizes), dtypes[problem % len(dtypes)], odd=False)
        truth = expect("MaxPool", [x], attributes)
        expected = truth.result() if kind == "max" else expected_results(x, kind, attributes)
        for *way, y in all_ways(kind, attributes, x, WAYS[problem % len(WAYS)]):
            assert np.array_equal(y, expected, equal_nan=True), (kind, x.shape, attributes, x.dtype, way)
        several += dilations[-1] > strides[-1]
    assert several > 20


SPECIAL = {  # random windows for a loop, how many are drawn, and how many the loop must take at least
    "slide": (lambda rng, kind, dtype: sliding_problem(rng), 14, 5),
    # With AVX-512, `short` keeps rows in registers, and picks the taps of all windows at once.
    "short": (lambda rng, kind, dtype: short_problem(rng, dtype), 16, 2),
    # `folded` reduces each window in registers: of zeros the first one's sign, of NaNs the last one's payload.
    "folded": (lambda rng, kind, dtype: adjacent_problem(
        rng, layout.REGISTER // (dtype.itemsize if kind == "max" else max(4, dtype.itemsize)), kind), 20, 12),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", ["max", "mean", "mean with pads"])
@pytest.mark.parametrize("route", SPECIAL)
def test_windows_of_special_loops(route, kind, dtype):
    """Windows of special loops have the bits of all other routes, and sums in the oracle's order."""
    if kind != "max" and dtype not in FLOATS:
        return
    draw, count, least = SPECIAL[route]
    rng, taken = np.random.default_rng(len(kind) + dtype.num), 0
    for problem in range(count):
        shape, attributes = draw(rng, kind, dtype)
        x = values(rng, shape, dtype, odd=problem % 3 == 0)
        if kind == "max" and problem % 3 == 1 and dtype in FLOATS:
            x = np.where(rng.random(shape) < 0.01, 0.0, -0.0).astype(dtype)
        exact = kind != "max" and problem % 3 > 0
        taken += route in compared(kind, x, attributes, WAYS[problem % len(WAYS)], every=int(exact))
    kept = route != "short" or (layout.REGISTER >= 64 and (kind != "max" or dtype.itemsize > 1))
    assert (taken > least) if kept else (taken == 0)


# Windows of many taps that share few places, which `stack` reduces one by one if rows are long.
APART = [  # channels, sizes, kernel, strides, dilations, pads
    (70, (41, 6), (9, 2), (9, 2), (1, 1), (0, 0, 0, 0)),
    (131, (23, 3), (20, 1), (3, 1), (1, 1), (19, 0, 18, 0)),
    (16, (30,), (14,), (7,), (2,), (9,)),
    (147, (40,), (25,), (5,), (1,), (4,)),
    (67, (5, 33), (2, 12), (1, 6), (1, 1), (1, 11, 0, 10)),
    (33, (3, 26, 9), (2, 13, 9), (1, 13, 9), (1, 2, 1), (0, 12, 0, 1, 3, 0)),
    (129, (12, 11), (12, 11), (1, 1), (1, 1), (0, 0, 0, 0)),
    (5, (29, 50), (10, 3), (10, 2), (1, 1), (3, 1, 2, 0)),  # rows of a plane are long enough
    (2100, (17,), (17,), (1,), (1,), (0,)),  # several pieces of a row
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("windows", APART, ids=lambda w: f"{w[0]}-{w[2]}")
def test_windows_that_are_reduced_one_by_one(windows, dtype):
    """Windows that are reduced one by one have the bits of all other routes, and sums in the oracle's order."""
    channels, sizes, kernel, strides, dilations, pads = windows
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "ceil_mode": 1,
                  "pads": pads if len(pads) == 2 * len(sizes) else pads * 2}
    rng = np.random.default_rng(channels)
    for kind in KINDS if dtype in FLOATS else ["max"]:
        x = values(rng, (1, channels, *sizes), dtype, odd=kind == "max")
        summed = kind.startswith("mean") or (kind in ("norm 1", "norm 2") and dtype in FLOATS[2:])
        assert len(compared(kind, x, attributes, every=max(1, channels // 20) if summed else 0)) > 1


# One pool for all callers


def handles():
    """Random problems, each with a handle of a plan that has not made a pool yet."""
    rng = np.random.default_rng(4)
    for kind, last, _ in itertools.product(("max", "mean", "norm 2"), (False, True), range(25)):
        shape, attributes = random_problem(rng)
        x = values(rng, shape, np.dtype(np.float32), odd=True)
        x = to_last(x) if last else x
        with forced():
            plan = made(kind, attributes, last).plan(x.shape, x.dtype)
            yield x, plan, cython_api.Prepared(plan)


def test_a_handle_gives_the_bits_of_its_plan():
    for x, plan, handle in handles():
        y = np.empty(plan.output_shape, x.dtype)
        assert native.run(handle.address, x.ctypes.data, y.ctypes.data, None, 1) == native.OK
        assert same_bits(y, plan(x)), plan


def test_a_handle_has_the_pool_of_its_plan():
    """A handle has the pool of its plan. The C API once had its own pools, which were up to 29 times as slow."""
    for x, plan, handle in handles():
        pools = dict(plan._pools)
        if plan.explain().to_dict()["route"] != ["copy"]:
            assert handle.route == plan.explain().to_dict()["route"], plan
        plan(x)
        assert plan._pools in ({}, pools), plan


def test_an_empty_handle_has_no_route():
    plan = onnxpool.MaxPool(kernel_shape=2).plan((0, 3, 9, 9), np.float32)
    assert cython_api.Prepared(plan).route == plan.explain().to_dict()["route"] == []


def by_plan(plan, x):
    plan(x)
    return [pool.setup.solver for pool in plan._pools.values()]


def by_plain_call(plan, x):
    plan(x)
    assert plan._pools.plain is not None
    plan(x)
    return [pool.setup.solver for pool in plan._pools.values()]


def by_handle(plan, x):
    return cython_api.Prepared(plan).route


def by_bridge(plan, x):
    """Split a call as an onnxruntime session with two threads does."""
    with onnxpool.num_threads(2):
        parts = nodes.pieces(plan, (x,), np.empty(plan.output_shape, x.dtype))
    assert len(parts) == 2
    for part, (given,), y in parts:
        part(given, out=y)
    return list({pool.setup.solver for part, _, _ in parts for pool in part._pools.values()})


@pytest.mark.parametrize("caller", [by_plan, by_plain_call, by_handle, by_bridge])
def test_all_callers_get_their_pool_from_one_function(caller, monkeypatch):
    """The pool that `pool_of` returns is the pool that runs, for every caller."""
    pool_of, asked = layout.pool_of, []

    def watched(*arguments):
        asked.append(pool_of(*arguments))
        return asked[-1]

    x = np.ones((4, 64, 64, 32), np.float32)
    monkeypatch.setattr(layout, "pool_of", watched)
    for route in ("direct", "passes"):
        asked.clear()
        with forced(route):
            plan = onnxpool.MaxPool(kernel_shape=3, channels_last=True).plan(x.shape, x.dtype)
            assert caller(plan, x) == [route]
            assert plan.explain().to_dict()["route"] == [route]
        assert {pool.setup.solver for pool in asked} == {route}


@pytest.mark.parametrize("channels_last", [False, True])
def test_strips_of_smaller_tiles_are_wider_and_fit(channels_last):
    """Tiles with fewer windows have wider strips, for which scratch memory suffices."""
    x = np.arange(1100 * 1100, dtype=np.float32).reshape(1, 1, 1100, 1100)
    y = onnxpool.max_pool(x.reshape(1, 1100, 1100, 1) if channels_last else x, (9, 9), channels_last=channels_last)
    np.testing.assert_array_equal(y.reshape(1092, 1092), x[0, 0, 8:, 8:])


def test_rows_that_are_wholly_in_the_padding_are_not_read():
    """Nothing before the array is read if the only window along an axis of one element lies before that element."""
    x = Slot(5).hold((2, 5, 7, 5, 3, 1, 2), np.dtype(np.float64), at_end=False, fill=0)
    y = onnxpool.average_pool(x, (3, 3, 2, 1, 1), strides=(3, 2, 2, 2, 2), pads=(4, 0, 2, 1, 0, 0, 4, 0, 0, 0))
    assert np.isnan(y).all()


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.bfloat16, np.float32], ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize(("size", "kernel", "stride", "pad"), [
    ((6, 8), 2, 2, 0),     # rows of all items are equally far apart
    ((5, 7), 2, 2, 0),     # the last row of each item is not read
    ((6, 8), 3, 1, 1),     # identities between rows
    ((6, 41), 3, 2, 1),    # rows of one group of phases, or of several
    ((4, 5, 6), 2, 1, 0),  # a pass along the second axis
    ((13, 3), 9, 1, 4),    # a tree along the first axis
    ((11,), 3, 1, 0),      # one long row
    ((11,), 4, 3, 2),
])
def test_items_that_share_a_block_have_the_bits_of_each_alone(size, kernel, stride, pad, dtype):
    rng = np.random.default_rng(8)
    x = rng.integers(0, 100, (3, 50, *size)).astype(dtype)
    attributes = {"kernel_shape": [kernel] * len(size), "strides": [stride] * len(size), "pads": [pad] * 2 * len(size)}
    if size == (13, 3):
        attributes = {"kernel_shape": [kernel, 2], "strides": [stride, 1], "pads": [pad, 0, pad, 0]}
    with forced("passes", lanes=False):
        for kind in ("max",) if dtype == np.uint8 else ("max", "mean", "norm 2"):
            pool = made(kind, attributes)
            for items in (x, x[:, ::-1], x[..., 1:], x[:, :, :-1]):
                alone = [[pool(items[n:n + 1, c:c + 1])[0, 0] for c in range(50)] for n in range(3)]
                assert same_bits(pool(items), np.array(alone))
