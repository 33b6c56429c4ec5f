"""Windows far out in the padding: they cost no more than their results, and change nothing about the others."""

import math

import ml_dtypes
import numpy as np
import pytest
from guarded import Slot
from support import largest, same_bits, taps, to_last

import onnxpool

DTYPES = [np.dtype(t) for t in (np.int8, np.uint8, np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
KINDS = {"max": (onnxpool.MaxPool, {}), "mean": (onnxpool.AveragePool, {}),
         "mean with pads": (onnxpool.AveragePool, {"count_include_pad": 1}), "norm": (onnxpool.LpPool, {"p": 2})}
CASES = [(kind, dtype) for kind in KINDS for dtype in DTYPES if dtype.kind not in "iu" or kind == "max"]
FAR = 2**50  # the stride of windows of which only one can touch the input


def drawn(rng, dtype):
    """Elements, windows that all touch them, and the windows that longer padding adds along each axis."""
    rank = int(rng.integers(1, 4))
    kernel, dilations, strides = ([int(rng.integers(1, most)) for _ in range(rank)] for most in (7, 3, 5))
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    sizes = [int(rng.integers(span, span + 12)) for span in spans]
    windows = [int(rng.integers(1, (size - span) // stride + 2))
               for size, span, stride in zip(sizes, spans, strides, strict=True)]
    sizes = [(count - 1) * stride + span for count, stride, span in zip(windows, strides, spans, strict=True)]
    shape = (int(rng.integers(1, 3)), int(rng.choice([1, 3, 17, 40])), *sizes)
    x = (rng.integers(-9, 9, shape) if dtype.kind in "iu" else rng.standard_normal(shape)).astype(dtype)
    far = int(rng.integers(rank))
    added = [(*rng.integers(0, 200 if a == far else 4, 2).tolist(),) for a in range(rank)]
    if rng.random() < 0.2:  # one axis has a single window that touches the input, and a few that are far away
        a = int(rng.integers(rank))
        strides[a], added[a] = FAR, (int(rng.integers(3)), int(rng.integers(3)))
        x = x[tuple(slice(spans[a]) if axis == a + 2 else slice(None) for axis in range(x.ndim))]
    return x, {"kernel_shape": kernel, "dilations": dilations, "strides": strides}, added


def nothing(kind, dtype):
    """The result of a window in the padding."""
    if kind == "max":
        return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
    return np.nan if kind == "mean" else 0


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(("kind", "dtype"), CASES, ids=str)
def test_long_padding_adds_results_of_nothing(kind, dtype, last):
    """Such pools once took the route of windows that span many times their axis, whose time grows with the taps."""
    rng = np.random.default_rng(CASES.index((kind, dtype)))
    pool, options = KINDS[kind]
    for _ in range(15):
        x, attributes, added = drawn(rng, dtype)
        strides = attributes["strides"]
        reach = [-(-(size - 1) * dilation // stride)
                 for size, dilation, stride in zip(*attributes.values(), strict=True)]
        short = [count * stride for count, stride in zip(reach, strides, strict=True)] * 2  # all windows that touch
        pads = [pad + each[end] * stride for end in (0, 1)
                for pad, each, stride in zip(short, added, strides, strict=False)]
        near = pool(**attributes, **options, pads=short)(x)
        y = pool(**attributes, **options, pads=pads, channels_last=last)(to_last(x, last))
        y = np.moveaxis(y, -1, 1) if last else y
        expected = np.pad(near, [(0, 0), (0, 0), *added], constant_values=dtype.type(nothing(kind, dtype)))
        assert same_bits(y, expected)


def test_windows_of_many_taps_take_the_same_route_with_any_padding():
    for pad in (0, 50, 400, 10_000):
        pool = onnxpool.MaxPool(kernel_shape=[20, 20], strides=[1, 2], pads=[0, pad] * 2)
        assert pool.plan((1, 1, 40, 40), np.float32).explain().to_dict()["route"] == ["passes"]


def quantised(x, **attributes):
    """A plan for quantised means, and its inputs after x: scales of 1 and zero points of 0."""
    scale, zero = np.float32(1), x.dtype.type(0)
    return onnxpool.QLinearAveragePool(**attributes).plan(x.shape, x.dtype), (scale, zero, scale, zero)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lines_in_the_padding(dtype, last):
    """No line of a tile that lies in the padding is read, not even from uninitialised memory. X lies between
    inaccessible pages."""
    rng, slot = np.random.default_rng(11), Slot(8)
    least = nothing("max", dtype)
    for _ in range(60):
        rank = int(rng.integers(1, 3))
        sizes, kernel, strides = ([int(rng.integers(1, most)) for _ in range(rank)] for most in (20, 26, 6))
        pads = [int(rng.choice([0, 10, 60])) + 25 for _ in range(2 * rank)]
        shape = (1, int(rng.choice([1, 3, 16])), *sizes)
        values = rng.integers(1, 50, shape).astype(dtype)
        x = slot.copy(to_last(values, last), bool(rng.integers(2)))
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        results = []
        plan = onnxpool.MaxPool(**attributes, channels_last=last, return_indices=True).plan(x.shape, dtype)
        y, indices = plan(x)
        results.append((plan, (), (y, indices)))
        maxima = largest(taps(values, **attributes, value=least))
        assert same_bits(np.moveaxis(y, -1, 1) if last else y, maxima), attributes
        read = sum(taps(np.ones(shape), **attributes))
        assert ((np.moveaxis(indices, -1, 1) if last else indices) >= 0).tolist() == (read > 0).tolist()
        if dtype.itemsize == 1:
            counted = bool(rng.integers(2))
            plan, rest = quantised(x, **attributes, channels_last=int(last), count_include_pad=int(counted))
            y = plan(x, *rest)
            results.append((plan, rest, (y,)))
            count = math.prod(kernel) if counted else np.maximum(read, 1)
            means = np.rint(sum(taps(values.astype(float), **attributes)) / count)
            assert ((np.moveaxis(y, -1, 1) if last else y) == means).all(), attributes
        for made, rest, whole in results:
            for part in made.tiles(int(rng.choice([2, 7, 30]))):
                got = part(x[part.inputs], *rest)
                for one, all_of in zip(got if isinstance(got, tuple) else (got,), whole, strict=True):
                    assert np.array_equal(one, all_of[part.outputs]), (attributes, part)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5])
def test_tiles_of_windows_in_the_padding(stride):
    """Those of a long axis, of which a tile holds no element, after tiles with elements."""
    size, kernel, windows = 70_000, 9, 65_536
    pads = max(0, (windows - 1) * stride + kernel - size), 0
    x = np.full((1, 3, size), 200, np.uint8)
    given = {"kernel_shape": kernel, "strides": stride, "pads": pads}
    read = sum(taps(np.ones((1, 3, size)), [kernel], [stride], pads=pads))
    y = onnxpool.qlinear_average_pool(x, 1.0, 0, 1.0, 0, **given, count_include_pad=1, num_threads=1)
    assert (y == np.rint(200 * read / kernel)).all()
    y, indices = onnxpool.max_pool(x.astype(float), **given, return_indices=True, num_threads=1)
    assert (y == np.where(read > 0, 200, -np.inf)).all()
    assert ((indices >= 0) == (read > 0)).all()
