"""The second output of MaxPool: which elements the maxima are, in every layout, order and dtype."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import onnxruntime
import pytest
from calls import INDICES, SeededChoices
from calls_family import draw_call
from hypothesis import given
from onnxpool_conformance.oracle import DTYPES, GeometryError
from onnxpool_conformance.oracle_indices import expect_indices
from peer import agreed_window, ask, explicit
from strategies import legal_call, plain_window, pools
from support import FLOAT_NAMES, LAYOUTS, assert_same_bits, assert_same_values, to_first, to_last
from truths import truths

import onnxpool

NAN, INF = math.nan, math.inf
SIGNED = (*FLOAT_NAMES, "int8")
ALL = (*SIGNED, "uint8")
PEER_SEEDS = [3000, pytest.param(12_000, marks=pytest.mark.slow)]
NEWEST_PEER_OPSET = 22
OLD_PEER = tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 29)
WIDTHS = range(1, 71)


class Case(NamedTuple):
    """Some channels of one image, and the expected indices of their pool."""

    name: str
    x: list
    attributes: dict
    indices: list
    dtypes: tuple = ALL


def peaks(shape, *places):
    """Zeros, with ones at some flat positions."""
    x = np.zeros(shape)
    x.reshape(-1)[list(places)] = 1
    return x.tolist()


ROW = [[3, 1, 4, 1, 5]]
COLUMN_MAJOR = {"storage_order": 1}
WITH_INDEX = peaks((3, 8, 8), 57, 67, 136)  # from onnxruntime's MaxPool_8_With_Index
PADDED = [[5]]

CASES = [
    Case("row", ROW, {"kernel_shape": 2}, [[0, 2, 2, 4]]),
    Case("channels count on", ROW * 3, {"kernel_shape": 5}, [[4], [9], [14]]),
    Case("with index", WITH_INDEX, {"kernel_shape": 8}, [[[57]], [[67]], [[136]]]),
    Case("with index column major", WITH_INDEX, {"kernel_shape": 8, **COLUMN_MAJOR}, [[[15]], [[88]], [[129]]]),
    Case("one axis column major", ROW * 2, {"kernel_shape": 5, **COLUMN_MAJOR}, [[4], [9]]),
    Case("unequal sides", peaks((2, 2, 3), 5, 7), {"kernel_shape": (2, 3)}, [[[5]], [[7]]]),
    Case("unequal sides column major", peaks((2, 2, 3), 4, 6 + 1), {"kernel_shape": (2, 3), **COLUMN_MAJOR},
         [[[3]], [[6 + 2]]]),
    Case("three axes column major", peaks((2, 2, 3, 4), 12, 24 + 17), {"kernel_shape": (2, 3, 4), **COLUMN_MAJOR},
         [[[[1]]], [[[24 + 9]]]]),
    Case("four axes column major", peaks((1, 2, 2, 3, 2), 12 + 2),
         {"kernel_shape": (2, 2, 3, 2), **COLUMN_MAJOR}, [[[[[1 + 4]]]]]),
    Case("ties", [[7] * 6], {"kernel_shape": 3}, [[0, 1, 2, 3]]),
    Case("ties in a plane", [[[7] * 3] * 3], {"kernel_shape": 2}, [[[0, 1], [3, 4]]]),
    Case("ties column major", [[[7] * 3] * 3], {"kernel_shape": 2, **COLUMN_MAJOR}, [[[0, 3], [1, 4]]]),
    Case("tie across rows column major", [[[1, 2], [2, 1]]], {"kernel_shape": 2, **COLUMN_MAJOR}, [[[2]]]),
    Case("ties behind pads", [[7] * 3], {"kernel_shape": 3, "pads": (2, 2)}, [[0, 0, 0, 1, 2]]),
    Case("NaN first", [[1, NAN, 3, NAN, 2]], {"kernel_shape": 3}, [[1, 1, 3]], FLOAT_NAMES),
    Case("NaN before inf", [[INF, NAN, INF]], {"kernel_shape": 2}, [[1, 1]], FLOAT_NAMES),
    Case("NaN in a plane", [[[1, 2, NAN], [NAN, 3, 4]]], {"kernel_shape": (2, 3)}, [[[2]]], FLOAT_NAMES),
    Case("all NaN", [[NAN] * 4], {"kernel_shape": 2}, [[0, 1, 2]], FLOAT_NAMES),
    Case("all -inf", [[-INF] * 4], {"kernel_shape": 2, "strides": 2}, [[0, 2]], FLOAT_NAMES),
    Case("type minimum", [[-128] * 3], {"kernel_shape": 3, "pads": (1, 1)}, [[0, 0, 1]], ("int8",)),
    Case("type minimum uint8", [[0] * 3], {"kernel_shape": 3, "pads": (1, 1)}, [[0, 0, 1]], ("uint8",)),
    Case("signed zeros", [[-0.0, 0.0, -0.0]], {"kernel_shape": 2}, [[0, 1]], FLOAT_NAMES),
    Case("dilated", [[5, 1, 2, 9, 4, 3]], {"kernel_shape": 2, "dilations": 3}, [[3, 4, 5]]),
    Case("dilated plane", [np.arange(16).reshape(4, 4).tolist()], {"kernel_shape": 2, "dilations": (3, 2)},
         [[[14, 15]]]),
    Case("ceil", ROW, {"kernel_shape": 2, "strides": 2, "ceil_mode": 1}, [[0, 2, 4]]),
    Case("ceil drops", [[1, 2]], {"kernel_shape": 1, "strides": 2, "ceil_mode": 1}, [[0]]),
    Case("ceil larger than the input", ROW, {"kernel_shape": 9, "strides": 7, "ceil_mode": 1}, [[4]]),
    Case("same upper", ROW, {"kernel_shape": 2, "auto_pad": "SAME_UPPER"}, [[0, 2, 2, 4, 4]]),
    Case("same lower", ROW, {"kernel_shape": 2, "auto_pad": "SAME_LOWER"}, [[0, 0, 2, 2, 4]]),
    Case("empty windows", ROW, {"kernel_shape": 2, "strides": 2, "pads": (2, 3)}, [[-1, 0, 2, 4, -1]]),
    Case("empty window between taps", [PADDED] * 2, {"kernel_shape": 2, "dilations": 2, "pads": (1,) * 4},
         [[[-1]], [[-1]]]),
    Case("empty window column major", [PADDED] * 2,
         {"kernel_shape": 2, "dilations": 2, "pads": (1,) * 4, **COLUMN_MAJOR}, [[[-1]], [[-1]]]),
]  # fmt: skip


def pooled(x, channels_last=False, **attributes):
    """Values and indices."""
    return onnxpool.max_pool(x, **attributes, channels_last=channels_last, return_indices=True)


@pytest.mark.smoke
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_value(case, channels_last):
    """The indices are as decided in every dtype and both layouts, and the oracle agrees."""
    for dtype in case.dtypes:
        x = to_last(np.array(case.x)[None].astype(DTYPES[dtype]), channels_last)

        y, indices = pooled(x, channels_last, **case.attributes)

        assert (y.dtype, indices.dtype, y.shape) == (x.dtype, np.int64, indices.shape)
        assert to_first(indices, channels_last)[0].tolist() == case.indices
        truth = expect_indices(x, case.attributes, channels_last=channels_last)
        assert truth.cells == np.ravel(case.indices).tolist()


@pytest.mark.parametrize("dtype", ALL)
def test_images_count_on(dtype):
    """The second image's indices continue where the first image's end."""
    x = np.arange(64).reshape(2, 2, 4, 4).astype(DTYPES[dtype])
    _, indices = pooled(x, kernel_shape=4)
    assert indices.ravel().tolist() == [15, 31, 47, 63]


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
def test_empty_window_value(dtype, channels_last):
    """A window without elements has the value -inf and the index -1."""
    x = to_last(np.ones((2, 3, 4)).astype(DTYPES[dtype]), channels_last)
    y, indices = (to_first(a, channels_last) for a in pooled(x, channels_last, kernel_shape=1, pads=(2, 1)))
    outside = np.array([True, True, False, False, False, False, True])
    assert (y[..., outside].astype(float) == -INF).all()
    assert (indices[..., outside] == -1).all()
    assert indices[..., ~outside].ravel().tolist() == list(range(24))


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
def test_signed_zero_is_the_first(dtype, channels_last):
    """Among zeros of both signs, the first zero is returned, with its sign, for every number of channels and
    position."""
    for width in (2, 3, 8, 17, 33, 70):
        generator = np.random.default_rng(width)
        x = generator.choice([0.0, -0.0, -1.0], (2, 5, width)).astype(DTYPES[dtype])
        given = to_last(x, channels_last)
        y, indices = (to_first(a, channels_last) for a in pooled(given, channels_last, kernel_shape=2))
        assert_same_bits(x.reshape(-1)[indices], np.ascontiguousarray(y))
        pair = np.stack([x[..., :-1], x[..., 1:]])
        wanted = np.arange(x.size).reshape(x.shape)[..., :-1] + (pair[1] > pair[0])
        np.testing.assert_array_equal(indices, wanted)


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
def test_nan_and_peak_at_every_lane(dtype, channels_last):
    """A NaN, or else a maximum, is found at every position of rows of every width, along whichever axis lanes run."""
    for width in WIDTHS:
        for marker in (NAN, 99.0):
            x = np.tile(np.arange(width) % 97 - 40.0, (width, 2, 1))
            x[np.arange(width), :, np.arange(width)] = marker
            x = x.astype(DTYPES[dtype])
            y, indices = pooled(to_last(x, channels_last), channels_last, kernel_shape=width)
            wanted = np.arange(2 * width) * width + np.repeat(np.arange(width), 2)
            assert to_first(indices, channels_last).ravel().tolist() == wanted.tolist()
            np.testing.assert_array_equal(y.astype(float), np.full(y.shape, marker))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
def test_ties_at_every_width(dtype, channels_last):
    """Among equal elements, the index of the first is returned, for every width and number of channels."""
    for width in WIDTHS:
        x = to_last(np.full((1, width, 3, 3), 5).astype(DTYPES[dtype]), channels_last)
        _, indices = pooled(x, channels_last, kernel_shape=(2, 3))
        wanted = 9 * np.arange(width)[:, None] + [0, 3]
        np.testing.assert_array_equal(to_first(indices, channels_last)[0, ..., 0], wanted)


@pools
@given(legal_call(operators=(INDICES,)))
def test_indices_change_no_value(call):
    """The values are the same as without indices, except for the sign of a zero."""
    options = {"channels_last": call.channels_last} | ({} if call.opset is None else {"opset": call.opset})
    assert_same_values(call.run(onnxpool)[0], onnxpool.max_pool(call.x, **call.attributes, **options))


@pools
@given(plain_window(ranks=(1, 2, 3, 4)))
def test_storage_order_reverses_the_axes(window):
    """Column-major indices refer to the same elements, with the first spatial axis varying fastest."""
    x, kernel = window
    rows, columns = (pooled(x, kernel_shape=kernel, storage_order=order)[1] for order in (0, 1))
    image, channel, *position = np.unravel_index(rows, x.shape)
    plane = np.ravel_multi_index(position, x.shape[2:], order="F")
    np.testing.assert_array_equal((image * x.shape[1] + channel) * math.prod(x.shape[2:]) + plane, columns)


@pytest.mark.parametrize("order", [0, 1])
def test_beyond_32_bits(order):
    """Indices beyond 2^32 are right, for an input that takes no memory."""
    height, width = 32769, 65536
    x = np.broadcast_to(np.uint8(3), (1, 3, height, width))
    _, indices = pooled(x, kernel_shape=2, strides=(32767, 65534), storage_order=order)
    place = np.array([0, 32767])[:, None] * (1 if order else width) + np.array([0, 65534]) * (height if order else 1)
    wanted = np.arange(3)[:, None, None] * height * width + place
    np.testing.assert_array_equal(indices[0], wanted)
    assert indices.max() > 2**32


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("sizes", [(2**20, 2**12), (2**12, 2**20), (70_000, 70_000), (2**20, 2**20), (3, 2**32)])
def test_places_of_a_plane_beyond_32_bits(sizes, dtype, channels_last):
    """Places within one plane are counted in 64 bits too, although a window has few places."""
    strides = [max(1, size // 3) for size in sizes]
    x = np.broadcast_to(np.array(3).astype(DTYPES[dtype]), (1, *sizes, 1) if channels_last else (1, 1, *sizes))
    first = [np.arange((size - 2) // stride + 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    for order, paces in enumerate(((sizes[1], 1), (1, sizes[0]))):
        _, indices = pooled(x, channels_last, kernel_shape=2, strides=strides, storage_order=order)
        wanted = first[0][:, None] * paces[0] + first[1] * paces[1]
        np.testing.assert_array_equal(to_first(indices, channels_last)[0, 0], wanted)


@pytest.mark.parametrize("make", [lambda: onnxpool.MaxPool(kernel_shape=2, opset=1, return_indices=True),
                                  lambda: pooled(np.ones((1, 1, 4), np.float32), kernel_shape=2, opset=7)])  # fmt: skip
def test_version_1_has_no_indices(make):
    """Requesting indices of MaxPool-1, which has one output, is an error that names the version with two outputs."""
    with pytest.raises(onnxpool.PoolError, match="MaxPool-8"):
        make()


def test_pair_of_outputs():
    """Both outputs can be passed, including as views and in the memory of x. Anything but a pair is refused."""
    x = np.random.default_rng(5).standard_normal((2, 3, 8, 8))
    y, indices = pooled(x, kernel_shape=2)
    memory = x.copy()
    outs = (memory[..., :7, :7], np.empty((2, 3, 7, 14), np.int64)[..., ::2])
    results = onnxpool.max_pool(memory, 2, return_indices=True, out=outs)
    assert isinstance(results, tuple)
    assert all(result is out for result, out in zip(results, outs, strict=True))
    assert_same_bits(results[0], y)
    np.testing.assert_array_equal(results[1], indices)
    for bad in (y, [y, indices], (y,), (y, indices, indices), (y, indices.astype(np.int32)), (indices, y)):
        with pytest.raises(onnxpool.PoolTypeError):
            onnxpool.max_pool(x, 2, return_indices=True, out=bad)
    for bad in ((y, indices[..., :-1]), (y[:1], indices)):
        with pytest.raises(onnxpool.PoolError):
            onnxpool.max_pool(x, 2, return_indices=True, out=bad)


def peer_call(seed):
    """A random call that onnxruntime computes as ONNX says; None if this seed has none."""
    call = draw_call(SeededChoices(seed), (INDICES,))
    plain = call.x.dtype.name in ("float32", "float64", "int8", "uint8")
    if not plain or not agreed_window(call) or not np.isfinite(call.x).all():
        return None
    try:
        empty = -1 in truths(call)[1].cells
    except GeometryError:
        return None
    return None if empty else call


@pytest.mark.parametrize("seeds", PEER_SEEDS)
def test_onnxruntime_agrees(seeds):
    """Values and indices equal onnxruntime's on random input, in row-major and in column-major order.

    Before onnxruntime 1.29, a maximum that is the lowest number of its dtype has no index.
    """
    ran = {(order, axes): 0 for order in (0, 1) for axes in (1, 2, 3)}
    for seed in range(seeds):
        call = peer_call(seed)
        if call is None:
            continue
        x = np.ascontiguousarray(to_first(call.x, call.channels_last)).astype(call.x.dtype.newbyteorder("="))
        opset = min(call.opset or NEWEST_PEER_OPSET, NEWEST_PEER_OPSET)
        y, indices = ask("MaxPool", [x], [x.dtype.name, "int64"], explicit(call), opset=opset)
        ours = [np.ascontiguousarray(to_first(a, call.channels_last)) for a in call.run(onnxpool)]
        assert_same_values(ours[0], y)
        lowest = (np.iinfo(y.dtype) if y.dtype.kind in "iu" else np.finfo(y.dtype)).min
        indexed = (y > lowest) | (not OLD_PEER)
        np.testing.assert_array_equal(ours[1][indexed], indices[indexed], call.describe())
        ran[call.attributes.get("storage_order", 0), x.ndim - 2] += 1
    assert min(ran.values()) > 10


BIG = [  # at the limit of places, and beyond it
    (False, (2**15, 2**15), {"kernel_shape": 2}),
    (True, (2**15, 2**15 + 1), {"kernel_shape": 2}),
    (False, (2**40,), {"kernel_shape": 2**30}),
    (True, (2**40,), {"kernel_shape": 2**30 + 1}),
    (False, (2**29,), {"kernel_shape": 2, "dilations": 2**40, "pads": (2**40, 0), "strides": 2**40}),
    (True, (2**29 + 1,), {"kernel_shape": 2, "dilations": 2**40, "pads": (2**40, 0), "strides": 2**40}),
    (False, (2**10, 2**19), {"kernel_shape": (2**10, 1)}),
    (True, (2**10, 2**19), {"kernel_shape": (2, 1), "dilations": (2**10, 1), "pads": (1, 0, 0, 0)}),
    (False, (2**19, 2**10), {"kernel_shape": (1, 2**10)}),
    (True, (2**19, 2**10), {"kernel_shape": (1, 2), "dilations": (1, 2**10), "pads": (0, 1, 0, 0), "storage_order": 1}),
    (False, (2**10, 1, 2**18), {"kernel_shape": (2**10, 1, 1)}),
    (True, (2**10, 4, 2**18), {"kernel_shape": (2**9, 1, 1)}),
]


@pytest.mark.parametrize(("beyond", "sizes", "attributes"), BIG)
def test_indices_of_32_bits_count_up_to_2_to_30_places(beyond, sizes, attributes):
    """The limit of 32-bit indices applies to the places of several axes, and to the taps of a window. No array is
    needed to test it."""
    from onnxpool.planning import layout

    shape = (1, 1, *sizes)
    for dtype, indices in itertools.product(("uint8", "float32", "float64"), (True, False)):
        plan = onnxpool.MaxPool(**attributes, return_indices=indices).plan(shape, dtype)
        assert layout.counts_beyond(plan.request) == (beyond and indices and dtype != "float64")


def test_indices_of_named_axes_count_those_behind():
    """Indices are right for two taps that are 2^31 places apart, in an array whose elements repeat."""
    x = np.broadcast_to(np.arange(1000, dtype=np.float32)[:, None], (1000, 2_200_000))
    plan = onnxpool.MaxPool(kernel_shape=2, dilations=999, axes=0, return_indices=True).plan(x.shape, x.dtype)
    y, indices = plan.tile((slice(None), slice(7, 12)))(x[:, 7:12])
    assert y.ravel().tolist() == [999] * 5
    assert indices.ravel().tolist() == [999 * 2_200_000 + place for place in range(7, 12)]
    _, indices = onnxpool.max_pool(x[:, :3], 2, dilations=999, axes=0, return_indices=True)
    assert indices.ravel().tolist() == [2997, 2998, 2999]


def test_loops_with_indices_of_32_bits_refuse_more_places():
    """Loops with 32-bit indices refuse inputs with more places, even if a plan fails to choose float64."""
    shape = (1, 1, 2**15 + 1, 2**15)
    plan = onnxpool.MaxPool(kernel_shape=2, return_indices=True).plan(shape, "float32")
    with pytest.raises(onnxpool.PoolError, match="need a 64-bit dtype, but X has float32; cast X"):
        plan._row_major_pool()
    onnxpool.MaxPool(kernel_shape=2, return_indices=True).plan((1, 1, 2**15, 2**15), "float32")._row_major_pool()
    onnxpool.MaxPool(kernel_shape=2, return_indices=True).plan(shape, "float64")._row_major_pool()


@pytest.mark.parametrize("dtype", ALL)
def test_windows_across_more_places_than_32_bits_count(monkeypatch, dtype):
    """Inputs with more places than 32 bits count are pooled as float64, with 64-bit positions. The test lowers the
    limit."""
    from onnxpool import base
    from onnxpool.planning import layout

    x = np.random.default_rng(0).integers(0, 100, (2, 3, 9, 8)).astype(DTYPES[dtype])
    expected = onnxpool.max_pool(x, (3, 2), strides=(2, 1), return_indices=True)
    monkeypatch.setattr(layout, "MOST_PLACES", 10)
    base._plan.cache_clear()
    plan = onnxpool.MaxPool(kernel_shape=(3, 2), strides=(2, 1), return_indices=True).plan(x.shape, x.dtype)
    for result, wanted in zip(plan(x), expected, strict=True):
        assert result.dtype == wanted.dtype
        assert np.array_equal(result, wanted)


@pytest.mark.parametrize("dtype", ALL)
def test_dilations_as_long_as_an_axis(dtype):
    """Indices are right if windows begin in the padding, with one tap inside along one axis and several along
    another."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        sizes = rng.integers(1, 6, 2).tolist()
        kernel, dilations = rng.integers(1, 4, 2).tolist(), rng.integers(1, 8, 2).tolist()
        pads = [dilation * (taps - 1) for taps, dilation in zip(kernel, dilations, strict=True)] * 2
        x = rng.permutation(math.prod(sizes)).reshape(1, 1, *sizes).astype(DTYPES[dtype])
        y, indices = onnxpool.max_pool(x, kernel, dilations=dilations, pads=pads, return_indices=True)
        found = indices >= 0
        assert np.array_equal(x.ravel()[indices[found]], y[found])
        last = onnxpool.max_pool(np.moveaxis(x, 1, -1), kernel, dilations=dilations, pads=pads, return_indices=True,
                                 channels_last=True)[1]
        assert np.array_equal(np.moveaxis(last, -1, 1), indices)
