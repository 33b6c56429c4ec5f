"""Results on dask arrays equal results on whole arrays, bit by bit, whatever the chunks. Graphs have what they need."""

import math
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import cases_axes
import numpy as np
import pytest
from calls import FUNCTIONS, SeededChoices, draw_pool
from dask_costs import Line, count, count_global
from numpy.typing import NDArray

import onnxpool
from onnxpool.planning.cutting import MOST_CUTS, MOST_TILES
from onnxpool.planning.kinds import WindowPlan

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
import onnxpool.dask as pools  # noqa: E402

Array = NDArray[Any]
WINDOWED, WHOLE = cases_axes.WINDOWED, cases_axes.WHOLE
NAMES = {operator: re.sub("(?<=[a-z])(?=[A-Z])", "_", operator).lower() for operator in (*WINDOWED, *WHOLE)}
POOLS = {operator: getattr(pools, name) for operator, name in NAMES.items()}
OF_ONNX = [operator for operator in WINDOWED if operator in FUNCTIONS]


def computed(y: Any) -> Any:
    """The values, on this thread."""
    return da.compute(y, scheduler="sync")[0]


def random_chunks(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Chunks of random sizes, occasionally empty ones."""
    chunks = []
    for size in shape:
        cuts = sorted(rng.integers(0, size + 1, int(rng.choice([0, 0, 1, 2, 3]))).tolist())
        chunks.append(tuple(np.diff([0, *cuts, size]).tolist()))
    return tuple(chunks)


def differs(y: Any, truth: Any) -> bool:
    """Whether results have different bits, where all NaNs count as equal."""
    got = y if isinstance(y, tuple) else (y,)
    return any(a.dtype != b.dtype or not np.array_equal(cases_axes.bits(a), cases_axes.bits(b))
               for a, b in zip(got, truth if isinstance(truth, tuple) else (truth,), strict=True))


def check_windows(seed: int) -> None:
    """A random windowed call, in random chunks, with or without chunks for the result."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        call = draw_pool(SeededChoices(seed), OF_ONNX[seed % 3])
        x, operator, given = call.x, call.operator, {**call.attributes, "channels_last": call.channels_last}
        given |= {} if call.opset is None else {"opset": call.opset}
    else:
        case = cases_axes.varied_case(seed, WINDOWED)
        x, operator, given = case.x, case.operator, case.given
    function = getattr(onnxpool, NAMES[operator])
    try:
        truth = function(x, **given)
    except onnxpool.PoolError:
        return
    first = truth[0] if isinstance(truth, tuple) else truth
    chunks = random_chunks(rng, first.shape) if rng.random() < 0.4 else None
    d = da.from_array(x, chunks=random_chunks(rng, x.shape))
    y = POOLS[operator](d, chunks=chunks, **given)
    assert not differs(computed(y), truth), (seed, operator, given, d.chunks, chunks)
    for one in y if isinstance(y, tuple) else (y,):
        assert one.shape == first.shape


def check_whole(seed: int) -> None:
    """A random call of a global operator, in random chunks: maxima are exact, sums within the bound."""
    rng = np.random.default_rng(seed)
    case = cases_axes.varied_case(seed, WHOLE)
    x = np.ascontiguousarray(case.x).reshape(case.x.shape)
    truth = case.make()(x)
    d = da.from_array(x, chunks=random_chunks(rng, x.shape))
    y = computed(POOLS[case.operator](d, **case.given))
    if case.operator in cases_axes.EXTREMA or all(len(sizes) == 1 for sizes in d.chunks):
        assert np.array_equal(y, truth, equal_nan=y.dtype.kind == "f") or not differs(y, truth), (seed, d.chunks)
    assert cases_axes.difference(case, y, None, truth, None) is None, (seed, d.chunks)


@pytest.mark.smoke
@pytest.mark.parametrize("check", [check_windows, check_whole])
def test_chunks_do_not_change_results(check: Any) -> None:
    """100 random chunkings give the same results."""
    for seed in range(1, 51):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_windows, check_whole])
def test_many_chunks_do_not_change_results(check: Any) -> None:
    """1,000 random chunkings of windowed calls and 500 of global calls do not change results. Some calls are
    refused."""
    for seed in range(1000, 2100 if check is check_windows else 1500):
        check(seed)


@pytest.mark.parametrize("result", ["float64", "int64"])
def test_means_of_small_integers_do_not_depend_on_chunks(result: str) -> None:
    """Means of small integers, whose sums float64 represents exactly, do not depend on chunks, even for int64, the
    default dtype."""
    x = np.random.default_rng(1).integers(-50, 100, (60, 7, 26))
    truth = onnxpool.global_average_pool(x, axes=(1, 2), dtype=result)
    for chunks in ((60, 7, 3), (20, 2, 1), (60, 4, 13)):
        y = POOLS["GlobalAveragePool"](da.from_array(x, chunks=chunks), axes=(1, 2), dtype=result)
        assert not differs(computed(y), truth)


def graph_of(y: Any) -> dict[Any, Any]:
    """The tasks that onnxpool adds for an array, by key."""
    return dict(y.dask.layers[y.name])


def sources(graph: dict[Any, Any], key: Any) -> set[Any]:
    """The chunks of the input that a task needs, directly or indirectly."""
    if key not in graph:
        return {key}
    needed = graph[key][1]
    return {source for one in (needed if isinstance(needed, list) else [needed]) for source in sources(graph, one)}


GEOMETRIES: list[tuple[dict[str, Any], tuple[tuple[int, ...], ...]]] = [
    ({"kernel_shape": 3, "pads": 1}, ((10, 10, 10), (7, 7, 7))),
    ({"kernel_shape": 3, "strides": 2}, ((10, 11, 9), (8, 8, 8))),
    ({"kernel_shape": 4, "strides": 4}, ((8, 8, 8), (4, 12, 8))),
    ({"kernel_shape": 4, "strides": 4}, ((10, 10, 10), (5, 3, 12))),
    ({"kernel_shape": 5, "dilations": 3, "pads": 2}, ((6,) * 5, (30,))),
    ({"kernel_shape": 2, "strides": 5}, ((1,) * 30, (3,) * 10)),
    ({"kernel_shape": 20}, ((4,) * 10, (30,))),
]


@pytest.mark.smoke
@pytest.mark.parametrize(("given", "chunks"), GEOMETRIES)
def test_tasks_take_the_chunks_that_they_need_and_no_others(given: dict[str, Any], chunks: Any) -> None:
    """A task takes exactly the chunks that the slices of its part touch."""
    x = da.zeros(tuple(map(sum, chunks)), dtype=np.float32, chunks=chunks)
    y = pools.max_pool(x, **given, axes=(0, 1))
    plan = onnxpool.MaxPool(**given, axes=(0, 1)).plan(x.shape, x.dtype)
    graph = graph_of(y)
    ends = [np.cumsum(sizes) for sizes in chunks]
    for place in np.ndindex(*y.numblocks):
        slices = tuple(slice(sum(sizes[:i]), sum(sizes[:i + 1])) for sizes, i in zip(y.chunks, place, strict=True))
        touched = (np.flatnonzero((own > cut.start) & (own - sizes < cut.stop))
                   for own, sizes, cut in zip(ends, map(np.array, chunks), plan.tile(slices).inputs, strict=True))
        assert sources(graph, (y.name, *place)) == {(x.name, *map(int, each)) for each in product(*touched)}


@pytest.mark.parametrize(("given", "chunks"), GEOMETRIES)
def test_the_model_counts_what_graphs_hold(given: dict[str, Any], chunks: Any) -> None:
    """The model counts tasks, pools, the bytes that they read, and halos."""
    x = da.zeros((*map(sum, chunks), 5), dtype=np.float32, chunks=(*chunks, (2, 3)))
    y = pools.average_pool(x, **{name: value for name, value in given.items() if name != "dilations"},
                           dilations=given.get("dilations"), axes=(0, 1))
    lines = [Line(sizes, given["kernel_shape"], given.get("strides", 1), given.get("dilations", 1),
                  (given.get("pads", 0),) * 2) for sizes in chunks]
    cost = count([*lines, Line((2, 3))], 4)
    graph = graph_of(y)
    taken = [task.args[2] for key, (task, _) in graph.items() if key[0] == y.name]
    assert (cost.tasks, cost.pools) == (len(graph), len(taken))
    assert cost.read_bytes == 4 * sum(math.prod(map(sum, sizes)) for sizes in taken)
    assert cost.task_bytes == 4 * max(math.prod(map(sum, sizes)) for sizes in taken)
    assert (cost.input_bytes, cost.output_bytes) == (x.nbytes, y.nbytes)
    starts = [np.cumsum((0, *sizes)).tolist() for sizes in y.chunks]
    own = 0
    for key, (_, blocks) in graph.items():
        if key[0] == y.name:
            places = [starts[axis][i] * (given.get("strides", 1) if axis < 2 else 1) for axis, i in enumerate(key[1:])]
            home = (x.name, *(int(np.searchsorted(np.cumsum(sizes), min(place, sum(sizes) - 1), "right"))
                              for place, sizes in zip(places, x.chunks, strict=True)))
            for block in blocks:
                pieces = graph[block][0].args[2] if block in graph else None
                if sources(graph, block) == {home}:
                    own += (math.prod(piece.end - piece.begin for piece in pieces) if pieces
                            else math.prod(sizes[i] for sizes, i in zip(x.chunks, home[1:], strict=True)))
    assert cost.halo_bytes == cost.read_bytes - 4 * own


@pytest.mark.parametrize("n", [1, 16, 17, 300])
def test_the_model_counts_the_tasks_of_global_operators(n: int) -> None:
    """The model counts partial results, merges and results."""
    x = da.zeros((3, 2 * n, 4), chunks=(1, 2, 4))
    y = pools.global_max_pool(x, axes=(1, 2))
    wanted = count_global(x.chunks, (1, 2)) if n > 1 else 3
    assert len(graph_of(y)) == wanted


def test_graphs_are_made_of_what_plans_make_known() -> None:
    """Building graphs uses no private name of plans."""
    assert re.findall(r"plan\._\w+", Path(str(pools.graphs.__file__)).read_text()) == []


@pytest.mark.smoke
def test_graphs_grow_with_chunks() -> None:
    """Twice as many chunks along an axis lead to about twice as many tasks, whatever the operator."""
    calls = [lambda x: pools.max_pool(x, 3, pads=1, axes=(0, 1)), lambda x: pools.lp_pool(x, 4, strides=3, axes=(0, 1)),
             lambda x: pools.global_average_pool(x, axes=(0, 1))]
    for call in calls:
        few, many = (len(graph_of(call(da.zeros((8 * n, 64), dtype=np.float32, chunks=8)))) for n in (40, 80))
        assert 1.95 < many / few < 2.05


@pytest.mark.parametrize(("pool", "most"), [
    (lambda x: pools.max_pool(x, 3, pads=1, axes=(0, 1)), 9),
    (lambda x: pools.max_pool(x, 3, pads=1, axes=(0, 1), return_indices=True)[1], 9),
    (lambda x: pools.average_pool(x, 2, strides=2, axes=(0, 1)), 1),
    (lambda x: pools.average_pool(x.astype("int32"), 5, strides=5, axes=0), 2),
    (lambda x: pools.global_average_pool(x, axes=(0, 1)), 1),
    (lambda x: pools.global_lp_pool(x, axes=0), 1),
])
def test_chunks_of_equal_geometry_share_a_plan(pool: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made for each situation at a border, not for each chunk, and do not make graphs larger."""
    made = []
    like = WindowPlan._like

    def counted(plan: Any, shape: Any, *rest: Any) -> Any:
        made.append(shape)
        return like(plan, shape, *rest)

    monkeypatch.setattr(WindowPlan, "_like", counted)
    x = np.random.default_rng(1).standard_normal((120, 120)).astype(np.float32)
    y = pool(da.from_array(x, chunks=10))
    size = len(pickle.dumps(graph_of(y)))
    assert computed(y).shape
    assert 1 <= len(made) <= most
    assert len(pickle.dumps(graph_of(y))) == size


def sent(graph: dict[Any, Any]) -> dict[Any, Any]:
    """A graph as other processes get it, in which each task arrives on its own."""
    return {key: pickle.loads(pickle.dumps(task)) for key, task in graph.items()}


@pytest.mark.parametrize("way", ["sync", "threads", "pickled"])
@pytest.mark.parametrize(("pool", "most"), [
    (lambda x: pools.max_pool(x, 3, pads=1, axes=(0, 1)), 9),
    (lambda x: pools.average_pool(x, 2, strides=2, axes=(0, 1)), 1),
    (lambda x: pools.min_pool(x, 3, axes=1), 2),
    (lambda x: pools.lp_pool(x, 4, strides=3, axes=(0, 1), p=1), 36),
    (lambda x: pools.global_max_pool(x[:, :10], axes=1), 1),
])
def test_chunks_of_equal_geometry_are_cut_once(pool: Any, most: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of chunks with equal geometry share a function, and only the first task resolves the geometry."""
    resolved = []
    cut = WindowPlan._cut

    def counted(plan: Any, ranges: Any) -> Any:
        resolved.append(tuple(ranges))
        return cut(plan, ranges)

    monkeypatch.setattr(WindowPlan, "_cut", counted)
    onnxpool.clear_caches()
    x = np.random.default_rng(1).standard_normal((120, 120)).astype(np.float32)
    y = pool(da.from_array(x, chunks=10))
    assert resolved == []
    tasks = {key: task for key, task in graph_of(y).items() if key[0] == y.name}
    assert len(tasks) == y.npartitions
    assert len({id(task[0]) for task in tasks.values()}) <= most
    if way == "pickled":
        got = dask.get(sent(dict(y.__dask_graph__())), list(tasks))
        assert not differs(np.block([[got[i * y.numblocks[1] + j] for j in range(y.numblocks[1])]
                                     for i in range(y.numblocks[0])]), computed(y))
    else:
        y.compute(scheduler=way)
    assert 1 <= len(set(resolved)) <= most
    assert len(resolved) <= most * (4 if way == "threads" else 1)  # threads may resolve the same one at the same time


@pytest.mark.parametrize(("chunks", "most"), [(10, 1), (((30, 40, 50), (60, 60)), 3), (((7, 113), (40,) * 3), 2)])
def test_chunks_of_equal_sizes_share_the_function_that_reduces_them(chunks: Any, most: int) -> None:
    """Partial results do not depend on the place of a chunk."""
    x = np.random.default_rng(1).standard_normal((120, 120)).astype(np.float32)
    y = pools.global_max_pool(da.from_array(x, chunks=chunks), axes=(0, 1))
    tasks = [task for key, task in graph_of(y).items() if "partial" in key[0] and key[3] == 0]
    assert len(tasks) == math.prod(da.from_array(x, chunks=chunks).numblocks)
    assert len({id(task[0]) for task in tasks}) == most
    assert computed(y) == x.max()


def test_plans_of_parts_are_bounded() -> None:
    """A plan keeps a bounded number of plans for different parts."""
    plan = onnxpool.MaxPool(kernel_shape=2, axes=0).plan((2000,), np.float32)
    for size in range(1, 1000):
        plan.tile(slice(0, size))
    assert len(plan._tiles) <= MOST_TILES
    assert len(plan._cuts) <= MOST_CUTS
    assert plan.tile(slice(3, 9))._plan is plan.tile(slice(4, 10))._plan
    assert plan.tile(slice(3, 9))._plan is not plan.tile(slice(3, 10))._plan


def test_nothing_is_computed_before_the_result_is() -> None:
    """Building a graph computes no chunk."""
    made = []

    def remembered(block: Array) -> Array:
        made.append(block.shape)
        return block

    x = da.zeros((40, 40), chunks=7).map_blocks(remembered, meta=np.empty((0, 0)))
    y = pools.average_pool(x, 3, axes=(0, 1))[:5, :5]
    g = pools.global_average_pool(x, axes=(0, 1))
    assert made == []
    computed(y)
    assert len(made) == 4  # the chunks under the first windows
    computed(g)
    assert len(made) == 4 + 36


def test_equal_calls_have_equal_names() -> None:
    """Equal calls have equal names, so dask computes them once. Other attributes, chunks and inputs give other
    names."""
    x = da.zeros((40, 40), chunks=7)
    calls = [lambda: pools.max_pool(x, 3, axes=(0, 1)), lambda: pools.max_pool(x, 3, axes=(0, 1), strides=2),
             lambda: pools.max_pool(x, 3, axes=(0, 1), chunks=9), lambda: pools.max_pool(x + 1, 3, axes=(0, 1)),
             lambda: pools.max_pool(x, 3, axes=(0, 1), pads=1), lambda: pools.max_pool(x, 5, axes=(0, 1), pads=2),
             lambda: pools.global_max_pool(x, axes=(0, 1)), lambda: pools.global_max_pool(x, axes=0)]
    assert [call().name for call in calls] == [call().name for call in calls]
    assert len({call().name for call in calls}) == len(calls)


def test_chunks_of_the_result_follow_those_of_the_input() -> None:
    """Window w is in the chunk of element w * stride. Windows that begin beyond the input are in the last chunk."""
    x = da.zeros((30,), chunks=((10, 7, 13),))
    for given, wanted in [({"kernel_shape": 3, "pads": 1}, (10, 7, 13)), ({"kernel_shape": 3}, (10, 7, 11)),
                          ({"kernel_shape": 2, "strides": 2}, (5, 4, 6)), ({"kernel_shape": 15}, (10, 6)),
                          ({"kernel_shape": 1, "pads": 4}, (10, 7, 21)), ({"kernel_shape": 5, "strides": 25}, (1, 1))]:
        assert pools.max_pool(x, **given, axes=0).chunks == (wanted,)
    assert pools.max_pool(x, 3, axes=0, chunks=9).chunks == ((9, 9, 9, 1),)


@pytest.mark.parametrize("kind", ["mean", "norm", "small norm", "max"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_of_chunks_are_within_the_bound(kind: str, dtype: str) -> None:
    """Sums differ by at most the bound of `Plan.combine`, for 16 more shares."""
    x = np.random.default_rng(0).standard_normal((3, 90, 80)).astype(dtype)
    d = da.from_array(x, chunks=(2, 7, 9))
    given: dict[str, Any] = {"axes": (1, 2), "keepdims": False}
    n, wide = 13 * 9 + 16, x.astype(np.float64)
    unit, taps = 2.0**-53 if dtype == "float64" else 2.0**-24, 2 * np.log2(7200)
    if kind == "max":
        assert np.array_equal(computed(pools.global_max_pool(d, **given)), x.max((1, 2)))
        return
    if kind == "mean":
        y, truth = pools.global_average_pool(d, **given), wide.mean((1, 2))
        bound = ((taps + 5) * unit + n * 2.0**-53) * np.abs(wide).mean((1, 2))
    else:
        p = 2 if kind == "norm" else 0.5
        y = pools.global_lp_pool(d, p=p, opset=1 if p < 1 else None, **given)
        with np.errstate(over="ignore"):
            truth = (np.abs(wide) ** p).sum((1, 2)) ** (1 / p)
        bound = truth * ((taps + 4 + n) * 2.0**-53 * max(1, 1 / p) + unit)
    got = computed(y)
    assert got.dtype == dtype
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.where(got == truth.astype(dtype), 0, np.abs(got.astype(np.float64) - truth))
    assert (error <= bound + np.finfo(dtype).eps / 2 * np.abs(truth)).all()


ZEROS = da.zeros((8, 8), chunks=4)
REFUSED: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "numpy": (lambda: pools.max_pool(np.zeros((8, 8)), 2, axes=0), "not a dask array; pass dask.array.from_array",
              ("X", None, "ndarray")),
    "unknown": (lambda: pools.max_pool(ZEROS[ZEROS[:, 0] > 0], 2, axes=1), "compute_chunk_sizes", ("X", 0)),
    "objects": (lambda: pools.max_pool(ZEROS.astype(object), 2, axes=0), "object", ("X", None, "object")),
    "integers": (lambda: pools.lp_pool(ZEROS.astype(np.int32), 2, axes=0), "int32", ("X", None, "int32")),
    "masked": (lambda: pools.max_pool(da.ma.masked_equal(ZEROS, 1), 2, axes=0), "MaskedArray",
               ("X", None, "MaskedArray")),
    "no chunks": (lambda: pools.max_pool(ZEROS, 2, axes=0, chunks=0), "do not fit a result of shape",
                  ("chunks", None, 0)),
    "negative chunks": (lambda: pools.max_pool(ZEROS, 2, axes=0, chunks=((9, -2), 8)), "a chunk has a negative size",
                        ("chunks", None, ((9, -2), 8))),
    "chunks": (lambda: pools.max_pool(ZEROS, 2, axes=0, chunks=(3, (1, 2))), "do not fit a result of shape",
               ("chunks", None, (3, (1, 2)))),
    "kernel": (lambda: pools.max_pool(ZEROS, 9, axes=0), "spans 9", ("kernel_shape", 0, 9)),
    "rank": (lambda: pools.max_pool(ZEROS, 2), "2 axes", ("X", None, (8, 8))),
    "empty": (lambda: pools.global_max_pool(da.zeros((3, 0), chunks=1), axes=1), "empty", ("X", 1, 0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Wrong arguments are refused when the graph is built, with an error that says what is wrong and what to do."""
    call, text, fields = REFUSED[name]
    with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError), match=text) as caught:
        call()
    error: Any = caught.value
    assert (error.attribute, error.axis, error.value)[:len(fields)] == fields


@pytest.mark.parametrize("pool", [lambda x: pools.max_pool(x, 3, axes=(0, 1)),
                                  lambda x: pools.max_pool(x, 3, axes=(0, 1), chunks=3),
                                  lambda x: pools.global_average_pool(x, axes=(0, 1)),
                                  lambda x: pools.global_average_pool(x.rechunk((8, 8)), axes=(0, 1))])
def test_chunks_that_are_not_what_dask_was_told(pool: Any) -> None:
    """Another shape or dtype, or a mask, causes an error rather than a wrong result."""
    meta = np.empty((0, 0))
    lies = [(lambda b: b[:1], "shape"), (lambda b: np.pad(b, 1), "shape"), (lambda b: b.astype(np.float32), "dtype"),
            (lambda b: b.astype(object), "object"), (lambda b: np.ma.masked_equal(b, 0), "MaskedArray")]
    for lie, text in lies:
        x = ZEROS.rechunk((8, 8)) if "rechunk" in pool.__code__.co_names else ZEROS
        y = pool(x.map_blocks(lie, meta=meta, chunks=x.chunks))
        with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError), match=text):
            computed(y)


def test_empty_batches() -> None:
    """Empty batches have empty results."""
    x = da.zeros((0, 5, 6), chunks=3)
    assert computed(pools.max_pool(x, 2, axes=(1, 2))).shape == (0, 4, 5)
    assert computed(pools.global_average_pool(x, axes=(1, 2))).shape == (0, 1, 1)


def test_sums_of_whole_chunks_do_not_depend_on_their_memory() -> None:
    """Sums of whole chunks equal the sums for the whole array in row-major order."""
    x = np.random.default_rng(0).standard_normal((4, 5, 37, 41)).astype(np.float32)

    def channels_last(block: Array) -> Array:
        return np.ascontiguousarray(block.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)

    d = da.from_array(x, chunks=x.shape).map_blocks(channels_last, meta=np.empty((0,) * 4, np.float32))
    assert not differs(computed(pools.global_average_pool(d)), onnxpool.global_average_pool(x))


def test_byte_order() -> None:
    """Chunks in foreign byte order yield results in native order."""
    x = np.arange(40, dtype=">f4")
    y = computed(pools.max_pool(da.from_array(x, chunks=7), 3, axes=0))
    assert y.dtype == np.float32
    assert np.array_equal(y, x[2:])


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                                  silence_logs=50) as cluster, distributed.Client(cluster) as client:
        yield client


def test_several_processes(client: Any) -> None:
    """Worker processes receive tasks from this process, and return the results."""
    x = np.random.default_rng(0).standard_normal((60, 70, 3))
    d = da.from_array(x, chunks=(13, 17, 2))
    y, indices = pools.max_pool(d, 4, strides=3, axes=(0, 1), return_indices=True)
    mean = pools.global_average_pool(d, axes=(0, 1), keepdims=False)
    got = [future.result(timeout=300) for future in client.compute([y, indices, mean])]
    whole = onnxpool.max_pool(x, 4, strides=3, axes=(0, 1), return_indices=True)
    assert not differs(tuple(got[:2]), whole)
    assert np.allclose(got[2], x.mean((0, 1)), rtol=0, atol=1e-14)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="workers are killed with a signal of POSIX")
def test_a_killed_worker(client: Any, tmp_path: Path) -> None:
    """A killed worker's tasks run again elsewhere, and the result is right."""

    def slowly(block: Array, folder: str, block_info: Any = None) -> Array:
        import os
        import time
        import uuid

        time.sleep(0.05)
        open(os.path.join(folder, uuid.uuid4().hex), "w").close()
        return block

    x = np.random.default_rng(0).standard_normal((400, 300)).astype(np.float32)
    d = da.from_array(x, chunks=40).map_blocks(slowly, str(tmp_path), meta=np.empty((0, 0), np.float32))
    future = client.compute(pools.average_pool(d, 5, strides=2, pads=2, axes=(0, 1)))
    until = time.monotonic() + 300
    while len(list(tmp_path.iterdir())) < 30 and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    y = future.result(timeout=300)
    assert not differs(y, onnxpool.average_pool(x, 5, strides=2, pads=2, axes=(0, 1)))
    assert len(list(tmp_path.iterdir())) > d.npartitions  # some chunks were computed again


def test_importing_onnxpool_does_not_import_dask() -> None:
    """Importing onnxpool imports neither dask nor onnxpool's module for dask arrays."""
    program = "import sys, onnxpool; assert not [name for name in sys.modules if 'dask' in name]"
    assert subprocess.run([sys.executable, "-c", program], timeout=300).returncode == 0
