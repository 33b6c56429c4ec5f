"""Axes that no window reduces are merged: the results are those of arrays whose axes cannot be merged, bit by bit."""

import numpy as np
import pytest
from support import BYTES, DTYPES, FLOATS, assert_same_values, bits, elements, largest, least, taps, to_first, to_last

import onnxpool

SEEDS = 20
SCALES = (np.float32(0.037), None, np.float32(0.02), None)


def random_problem(seed):
    """Spatial sizes and window attributes, where most axes have windows of one element."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    sizes = [int(rng.choice([1, 1, 2, 3, 7, 12, 20])) for _ in range(rank)]
    kernel = [int(rng.choice([1, 1, 1, 2, 3, 9])) for _ in sizes]
    pads = [int(rng.integers(0, k)) for _ in range(2) for k in kernel]
    strides = [int(rng.choice([1, 1, 1, 2])) for _ in sizes]
    room = [size + pads[i] + pads[i + rank] >= k for i, (size, k) in enumerate(zip(sizes, kernel, strict=True))]
    return sizes, {"kernel_shape": kernel, "strides": strides, "pads": pads}, all(room)


def apart(x):
    """The same elements, no two of which are adjacent."""
    return np.repeat(x, 2, axis=-1)[..., ::2]


@pytest.mark.parametrize(("operator", "dtype"), [
    *(("MaxPool", dtype) for dtype in DTYPES), *(("QLinearAveragePool", dtype) for dtype in BYTES),
    *((name, dtype) for name in ("AveragePool", "LpPool") for dtype in FLOATS)], ids=str)
def test_results_are_those_of_arrays_that_cannot_be_merged(operator, dtype):
    quantised = operator.startswith("QLinear")
    ran = 0
    for seed in range(SEEDS):
        sizes, attributes, valid = random_problem(seed)
        if not valid:
            continue
        for last, channels in ((0, 3), (0, 40), (1, 1), (1, 33)):
            shape = (2, *sizes, channels) if last else (2, channels, *sizes)
            x = elements(shape, dtype, not quantised and dtype.kind not in "iu")
            pool = getattr(onnxpool, operator)(**attributes, channels_last=last)
            inputs = SCALES if quantised else ()
            y = pool(x, *inputs)
            for a, b in zip(bits(y), bits(pool(apart(x), *inputs)), strict=True):
                assert np.array_equal(a, b)
            assert np.array_equal(bits(pool(x, *inputs, num_threads=2))[0], bits(y)[0])
            if operator == "MaxPool":
                expected = largest(taps(to_first(x, last), **attributes, value=least(dtype)))
                assert_same_values(to_first(y, last), expected)
            ran += 1
    assert ran > SEEDS


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("shape", [
    (3, 64, 2, 3), (2, 40, 5, 1), (2, 3, 1, 7, 1, 6), (1, 64, 1, 1), (2, 1, 9, 1, 1),
], ids=str)
def test_global_pools_of_axes_of_one_element(operator, shape):
    """The same as without these axes."""
    x = elements(shape, np.dtype(np.float32), False)
    flat = x.reshape(*shape[:2], *(size for size in shape[2:] if size > 1)) if max(shape[2:]) > 1 else x
    for last in 0, 1:
        pool = getattr(onnxpool, operator)(channels_last=last)
        a, b = (to_last(v, last) for v in (x, flat))
        assert pool(a).tobytes() == pool(b).tobytes() == pool(apart(a)).tobytes()


@pytest.mark.parametrize(("operator", "dtype"), [
    *(("MaxPool", dtype) for dtype in DTYPES), *(("AveragePool", dtype) for dtype in FLOATS)], ids=str)
@pytest.mark.parametrize("ceil", [0, 1])
def test_windows_of_one_element_pick_elements(operator, dtype, ceil):
    """In both layouts, whatever their memory layout."""
    cases = ((2, 2), (2, 70, 25, 26)), ((1, 3), (3, 5, 7, 7)), ((1, 1), (2, 3, 4, 5)), ((4, 1), (1, 1, 6, 9))
    for strides, shape in cases:
        x = elements(shape, dtype, dtype.kind not in "iu")
        expected = x[:, :, :: strides[0], :: strides[1]]
        for last in 0, 1:
            pool = getattr(onnxpool, operator)(kernel_shape=(1, 1), strides=strides, ceil_mode=ceil, channels_last=last)
            a = to_last(x, last)
            for source in (a, apart(a)):
                y = pool(source, num_threads=2)
                assert y.flags.c_contiguous
                for u, v in zip(bits(to_first(y, last)), bits(expected), strict=True):
                    assert np.array_equal(u, v)
            assert np.array_equal(bits(pool(a, out=y))[0], bits(y)[0])
