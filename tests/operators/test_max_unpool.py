"""MaxUnpool: where values go, what is refused, and the round trip with MaxPool."""

import math
import re
import threading
from pathlib import Path
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from calls import THREADS, UNPOOL, SeededChoices
from calls_family import draw_call
from hypothesis import assume, given
from onnxpool_conformance.oracle import DTYPES, GeometryError
from onnxpool_conformance.oracle_unpool import expect_unpool
from peer import ask, explicit
from strategies import plain_window, pools
from support import FLOAT_NAMES, LAYOUTS, assert_same_bits, assert_same_values, to_first, to_last
from truths import truths

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

MOST = 2**63 - 1
CANARY = 77
PEER_SEEDS = 1200
PLACES = [[0, 2], [8, 10]]
HALVES = {"kernel_shape": 2, "strides": 2}


class Case(NamedTuple):
    """One image of one channel, its indices, possibly the whole output shape, and the result."""

    name: str
    x: list
    indices: list
    attributes: dict
    expected: list
    output_shape: tuple | None = None


SQUARE = [[1, 2], [3, 4]]
CORNERS = [[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 0]]
CASES = [
    Case("corners", SQUARE, PLACES, HALVES, CORNERS),
    Case("duplicates", SQUARE, [[0, 0], [0, 0]], HALVES, [[4, 0, 0, 0], *[[0] * 4] * 3]),
    Case("some duplicates", SQUARE, [[5, 3], [5, 3]], HALVES, [[0, 0, 0, 4], [0, 3, 0, 0], *[[0] * 4] * 2]),
    Case("backwards", SQUARE, [[15, 14], [13, 12]], HALVES, [*[[0] * 4] * 3, [4, 3, 2, 1]]),
    Case("node test without output_shape", SQUARE, [[5, 7], [13, 15]], HALVES,
         [[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]),
    Case("node test with output_shape", [[5, 6], [7, 8]], [[5, 7], [13, 15]], HALVES,
         [[0] * 5, [0, 5, 0, 6, 0], [0] * 5, [0, 7, 0, 8, 0], [0] * 5], (1, 1, 5, 5)),
    Case("output_shape as inferred", SQUARE, PLACES, HALVES, CORNERS, (1, 1, 4, 4)),
    Case("wider output_shape D17", SQUARE, PLACES, HALVES, [[*row, 0, 0] for row in CORNERS], (1, 1, 4, 6)),
    Case("kernel 1", [1, 2, 3], [2, 0, 1], {"kernel_shape": 1}, [2, 3, 1]),
    Case("kernel over stride", [1, 2, 3], [0, 2, 4], {"kernel_shape": 3}, [1, 0, 2, 0, 3]),
    Case("stride over kernel", [1, 2], [3, 0], {"kernel_shape": 1, "strides": 3}, [2, 0, 0, 1]),
    Case("pads shrink the plane", SQUARE, [[0, 1], [2, 3]], {**HALVES, "pads": (1,) * 4}, [[1, 2], [3, 4]]),
    Case("uneven pads", [1, 2], [0, 2], {"kernel_shape": 3, "strides": 2, "pads": (0, 2)}, [1, 0, 2]),
    Case("pads with output_shape", [1, 2], [0, 2], {"kernel_shape": 3, "strides": 2, "pads": (1, 1)}, [1, 0, 2, 0, 0],
         (1, 1, 5)),
    Case("three axes", [[[5]]], [[[7]]], {"kernel_shape": 2}, [[[0, 0], [0, 0]], [[0, 0], [0, 5]]]),
    Case("four axes", [[[[5]]]], [[[[9]]]], {"kernel_shape": (2, 1, 2, 3)},
         [[[[0, 0, 0], [0, 0, 0]]], [[[0, 0, 0], [5, 0, 0]]]]),
]  # fmt: skip


def unpooled(x, indices, attributes, output_shape=None, **options):
    """A call with attributes by name."""
    given_shape = () if output_shape is None else (np.array(output_shape, np.int64),)
    others = {name: value for name, value in attributes.items() if name != "kernel_shape"}
    return onnxpool.max_unpool(x, indices, attributes["kernel_shape"], *given_shape, **others, **options)


def square(dtype=np.float32):
    """The input of the tables of errors: one plane of 2x2."""
    return np.array(SQUARE, dtype)[None, None]


def places(values=PLACES):
    """The indices of that input."""
    return np.array(values, np.int64)[None, None]


def last(shape):
    """A channels-first shape as channels last."""
    return shape and (shape[0], *shape[2:], shape[1])


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_value(case, channels_last):
    """Each value is stored where its index points, in every version, dtype and both layouts."""
    for dtype in FLOAT_NAMES:
        x, indices = np.array(case.x, float).astype(DTYPES[dtype]), np.array(case.indices, np.int64)
        x, indices = (a[None, ..., None] if channels_last else a[None, None] for a in (x, indices))
        shape = last(case.output_shape) if channels_last else case.output_shape
        for opset in (9, 11, 22, None) if dtype != "bfloat16" else (22, None):
            y = unpooled(x, indices, case.attributes, shape, opset=opset, channels_last=channels_last)
            assert y.dtype == x.dtype
            assert (y[0, ..., 0] if channels_last else y[0, 0]).astype(float).tolist() == case.expected
        inputs = (x, indices) if shape is None else (x, indices, np.array(shape))
        truth = expect_unpool(inputs, case.attributes, channels_last=channels_last)
        assert truth.cells == np.ravel(case.expected).tolist()


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("threads", THREADS)
def test_another_plane(threads, channels_last):
    """Indices count over all images and channels, so a value may go to another plane, with any number of threads."""
    generator = np.random.default_rng(11)
    x = generator.standard_normal((4, 6, 128, 128)).astype(np.float32)
    indices = generator.permutation(4 * 6 * 256 * 256)[: x.size].reshape(x.shape)
    wanted = np.zeros((4, 6, 256, 256), np.float32)
    wanted.reshape(-1)[indices] = x
    moved = [np.moveaxis(a, 1, -1) if channels_last else a for a in (x, indices)]
    y = unpooled(*moved, HALVES, num_threads=threads, channels_last=channels_last)
    assert_same_bits(to_first(y, channels_last), wanted)


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("threads", THREADS)
def test_duplicates_at_every_thread_count(threads, channels_last):
    """If values have the same index, the last in N, C, spatial order wins, in any layout and with any threads."""
    x = np.arange(4 * 6 * 128 * 128, dtype=np.float32).reshape(4, 6, 128, 128)
    indices = np.random.default_rng(3).integers(0, 50, x.shape)
    lasting = dict(zip(indices.ravel().tolist(), x.ravel().tolist(), strict=True))
    moved = [np.moveaxis(a, 1, -1) if channels_last else a for a in (x, indices)]
    y = unpooled(*moved, {"kernel_shape": 1}, num_threads=threads, channels_last=channels_last)
    flat = to_first(y, channels_last).ravel()
    assert dict(zip(range(50), flat[:50].tolist(), strict=True)) == lasting
    assert not flat[50:].any()


@pytest.mark.parametrize("bad", [-1, 16, 2**31, 2**40, MOST, -MOST - 1])
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
def test_bad_index_is_refused(dtype, channels_last, threads, bad):
    """An index outside the result is refused in words that name its position and value, and nothing is written."""
    for spot in np.ndindex(2, 2):
        indices = places()
        indices[0, 0, *spot] = bad
        x, indices, out = (to_last(a, channels_last) for a in (
            square(DTYPES[dtype]), indices, np.full((1, 1, 4, 4), CANARY, DTYPES[dtype])))
        with pytest.raises(PoolError) as caught:
            unpooled(x, indices, HALVES, out=out, num_threads=threads, channels_last=channels_last)
        assert (out == CANARY).all()
        text = str(caught.value)
        assert str(bad) in text
        assert all(str(position) in text for position in spot)
        assert text.startswith("MaxUnpool-")


def test_bad_index_in_a_large_input():
    """One bad index among many, at any position, is found before anything is written."""
    x = np.ones((2, 3, 256, 256), np.float32)
    for spot in (0, 1, 140_000, x.size - 1):
        indices = np.arange(x.size).reshape(x.shape)
        indices.reshape(-1)[spot] = x.size
        out = np.full(x.shape, CANARY, np.float32)
        with pytest.raises(PoolError, match=str(x.size)):
            unpooled(x, indices, {"kernel_shape": 1}, out=out)
        assert (out == CANARY).all()


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
def test_errors_name_the_place_of_a_bad_index(channels_last):
    """The error names the first bad index, in the order of N, C and places, as an index of the array that was
    passed."""
    x = np.ones((2, 3, 4, 5), np.float32)
    good = np.arange(x.size).reshape(x.shape)
    for bad in [(0, 0, 0, 0), (0, 1, 2, 3), (1, 0, 3, 1), (1, 2, 0, 4), (1, 2, 3, 4)]:
        indices = good.copy()
        indices[bad] = indices[1, 2, 3, 4] = x.size
        place = [bad[0], *bad[2:], bad[1]] if channels_last else [*bad]
        given = [to_last(a, channels_last) for a in (x, indices)]
        with pytest.raises(PoolError, match=rf"I\[{', '.join(map(str, place))}\]=120 is out of range \[0, 120\)"):
            unpooled(*given, {"kernel_shape": 1}, channels_last=channels_last)


def test_index_of_an_empty_window_is_refused():
    """The index -1 that MaxPool returns for an empty window is refused, because it is not a position."""
    x = np.ones((1, 1, 1, 1), np.float32)
    y, indices = onnxpool.max_pool(x, 2, dilations=2, pads=(1,) * 4, return_indices=True)
    with pytest.raises(PoolError, match="-1"):
        unpooled(y, indices, HALVES)


BAD = {
    "indices of another shape": (PoolError, (square(), places([[0, 2]]), HALVES)),
    "indices of another rank": (PoolError, (square(), places()[0], HALVES)),
    **{f"indices {name}": (PoolTypeError, (square(), places().astype(name), HALVES))
       for name in ("int32", "uint64", "float64", "bool", "complex64")},
    **{f"output_shape {shape}": (PoolError, (square(), places(), HALVES, shape)) for shape in (
        (1, 1, 1, 1), (1, 1, 4, 3), (1, 1, -4, 4), (4, 4), (2, 1, 4, 4), (1, 2, 4, 4), (1, 1, 4, 4, 1), (),
        (0, 1, 4, 4), (1, 1, 2**40, 2**40), (1, 1, MOST, MOST), (1, 1, 2**62, 4), (1, 1, 4, -MOST - 1))},
    "pads": (PoolError, (square(), places(), {**HALVES, "pads": (1,) * 4})),
    "pads swallow the plane": (PoolError, (square(), places([[0, 0], [0, 0]]), {**HALVES, "pads": (2,) * 4})),
    "pads beyond 64 bits": (PoolError, (square(), places(), {**HALVES, "pads": (0, 0, MOST, MOST)})),
    **{f"strides {stride}": (PoolError, (square(), places(), {"kernel_shape": 2, "strides": stride}))
       for stride in (0, -1, 2**62, MOST)},
    **{f"kernel {kernel}": (PoolError, (square(), places(), {"kernel_shape": kernel}))
       for kernel in (0, -1, 2**62, MOST, (2,), (2, 2, 2))},
    "no spatial axis": (PoolError, (np.ones((1, 1), np.float32), np.zeros((1, 1), np.int64), {"kernel_shape": 2})),
    "empty spatial axis": (PoolError, (np.ones((1, 1, 0), np.float32), np.zeros((1, 1, 0), np.int64),
                                       {"kernel_shape": 2})),
    "int8": (PoolTypeError, (square(np.int8), places(), HALVES)),
}  # fmt: skip


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("error", "arguments"), BAD.values(), ids=BAD)
def test_refused(error, arguments, channels_last):
    """Inputs that cannot be unpooled are refused, by function and object alike, and `out` is unchanged."""
    x, indices, attributes, *rest = arguments
    if channels_last:
        x, indices = (np.moveaxis(a, min(1, a.ndim - 1), -1) for a in (x, indices))
        rest = [last(shape) if len(shape) > 2 else shape for shape in rest]
    for dtype in FLOAT_NAMES if x.dtype.kind == "f" else (x.dtype.name,):
        given = x.astype(DTYPES[dtype])
        out = to_last(np.full((1, 1, 4, 4), CANARY, given.dtype), channels_last)
        with pytest.raises(error):
            unpooled(given, indices, attributes, *rest, out=out, channels_last=channels_last)
        with pytest.raises(error):
            onnxpool.MaxUnpool(**attributes, channels_last=channels_last)(
                given, indices, *(np.array(shape, np.int64) for shape in rest))
        assert (out == CANARY).all()


def test_too_large_for_the_machine():
    """A result that does not fit into memory is refused at once."""
    with pytest.raises((PoolError, MemoryError)):
        unpooled(square(), places(), HALVES, (1, 1, 2**20, 2**20))


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 4, 4), (0, 0, 4, 4)])
def test_empty_input(shape):
    """No images or no channels give an empty result."""
    x, indices = np.ones(shape, np.float32), np.zeros(shape, np.int64)
    assert unpooled(x, indices, HALVES).shape == (*shape[:2], 8, 8)
    assert unpooled(x, indices, HALVES, (*shape[:2], 9, 11)).shape == (*shape[:2], 9, 11)


@pools
@given(plain_window(), st.data())
def test_way_back_from_any_pool(window, data):
    """After a dilated, strided or overlapping pool, output_shape puts every maximum back in its place."""
    x, kernel = window
    dilations = tuple(data.draw(st.integers(1, 3)) for _ in kernel)
    strides = tuple(data.draw(st.integers(1, 3)) for _ in kernel)
    sizes = zip(x.shape[2:], kernel, dilations, strict=True)
    assume(all((length - 1) * dilation < size for size, length, dilation in sizes))
    y, indices = onnxpool.max_pool(x, kernel, dilations=dilations, strides=strides, return_indices=True)
    # With this kernel, the inferred shape, to which indices refer, is the shape of x.
    rows = zip(x.shape[2:], y.shape[2:], strides, strict=True)
    reach = [size - (count - 1) * stride for size, count, stride in rows]
    back = onnxpool.max_unpool(y, indices, reach, strides=strides)
    wanted = np.zeros_like(x)
    wanted.reshape(-1)[indices] = y
    assert_same_values(back, wanted)
    flat = back.reshape(-1)[indices]
    assert_same_values(flat, y)


def test_overlapping_output():
    """A result in the memory of x, or of the indices, is right."""
    x = np.random.default_rng(2).standard_normal((2, 3, 8, 8))
    indices = np.random.default_rng(3).permutation(x.size).reshape(x.shape)
    wanted = unpooled(x, indices, {"kernel_shape": 1})
    for view in (slice(None), slice(None, None, -1)):
        memory = x.copy()
        y = unpooled(memory, indices, {"kernel_shape": 1}, out=memory[..., view])
        assert_same_bits(np.ascontiguousarray(y), wanted)
    shared = indices.copy()
    assert_same_bits(unpooled(x, shared, {"kernel_shape": 1}, out=shared.view(np.float64)), wanted)


def test_onnxruntime_agrees():
    """Without output_shape, random calls return what onnxruntime returns."""
    ran = 0
    for seed in range(PEER_SEEDS):
        call = draw_call(SeededChoices(seed), (UNPOOL,))
        rank = call.x.ndim - 2
        if call.x.dtype.name != "float32" or rank > 3 or call.x.size == 0 or len(call.inputs) > 2:
            continue
        try:
            truths(call)
        except GeometryError:
            continue
        attributes = explicit(call)
        if sum(attributes.get("pads", ())) and min(attributes["kernel_shape"]) <= max(attributes["pads"]):
            continue  # onnxruntime refuses pads as large as the kernel
        native = [a.astype(a.dtype.newbyteorder("=")) for a in call.inputs]
        native = [np.ascontiguousarray(to_first(a, call.channels_last)) for a in native]
        wanted = ask(UNPOOL, native, ["float32"], attributes, opset=min(call.opset or 22, 22))[0]
        y = call.run(onnxpool)
        assert_same_bits(np.ascontiguousarray(to_first(y, call.channels_last)), wanted)
        ran += 1
    assert ran > PEER_SEEDS // 20


def test_shape_functions():
    """The object computes the shape of the result, and calling it equals calling the function."""
    op = onnxpool.MaxUnpool(kernel_shape=3, strides=2, pads=1)
    assert op.output_shape((1, 2, 4, 5)) == (1, 2, *(math.prod((size - 1, 2)) + 1 for size in (4, 5)))
    x, indices = square(), places([[0, 1], [2, 3]])
    assert_same_bits(op(x, indices), unpooled(x, indices, {"kernel_shape": 3, "strides": 2, "pads": (1,) * 4}))


def test_indices_are_loaded_once_before_they_are_used():
    """Another thread may change an index between its check and its use, so the code that stores loads it just once."""
    source = (Path(__file__).parents[2] / "src/onnxpool/kernels/other/unpool.pyx").read_text()
    stores = re.search(r"cdef void store_run\(.*?\n\n\n", source, re.DOTALL).group()
    assert stores.count("load_once(indices + i)") == 2
    assert "indices[" not in stores


def test_indices_that_change_meanwhile_stay_inside():
    """A thread that writes wrong indices during calls changes nothing but values, or causes a clean error."""
    x = np.ones((4, 8, 64, 64), np.float32)
    indices = np.arange(x.size).reshape(x.shape) * 4
    stop = threading.Event()

    def disturb():
        while not stop.is_set():
            indices[...] = 2**62
            indices[...] = -5
            indices[...] = np.arange(x.size).reshape(x.shape) * 4

    writer = threading.Thread(target=disturb)
    writer.start()
    try:
        for _ in range(200):
            try:
                y = onnxpool.max_unpool(x, indices, 2, strides=2)
            except onnxpool.PoolError:
                continue
            assert set(np.unique(y)) <= {0, 1}
    finally:
        stop.set()
        writer.join()
