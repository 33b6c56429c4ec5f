"""Small windows along two axes over rows of every length, channels first."""

import numpy as np
import pytest
from support import FAR, FARTHEST, FLOATS, bits, taps, to_last

import onnxpool

DTYPES = [np.dtype(np.uint8), *FLOATS]
LENGTHS = [*range(7, 70), 95, 96, 97, 112, 127, 128, 129]
HEIGHT = 6


def random_attributes(rng: np.random.Generator, length: int) -> dict:
    """Random windows, each with a tap on an element; half of them yield one result per element if the stride is 1."""
    kernel, strides = rng.integers(2, 4, 2), rng.integers(1, 3, 2)
    dilations = np.array([1, 1 if strides[1] == 2 else rng.integers(1, 4)])
    spans = (kernel - 1) * dilations
    before = rng.integers(0, spans + 1)
    after = spans - before if rng.integers(2) else rng.integers(0, spans + 1)
    return {"kernel_shape": kernel.tolist(), "strides": strides.tolist(), "dilations": dilations.tolist(),
            "pads": [*before.tolist(), *after.tolist()]}


def of_every_length() -> list[tuple[int, dict]]:
    rng = np.random.default_rng(0)
    return [(length, random_attributes(rng, length)) for length in LENGTHS for _ in range(6)]


def both_layouts(operator: type, x: np.ndarray, attributes: dict) -> np.ndarray:
    """The result with channels first, whose bits are those with channels last."""
    y = operator(**attributes)(x)
    last = operator(**attributes, channels_last=True)(to_last(x))
    assert np.array_equal(bits(y), bits(np.ascontiguousarray(np.moveaxis(last, -1, 1)))), (x.shape, attributes)
    return y


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_maxima_are_those_of_numpy(dtype: np.dtype) -> None:
    """For every length of a row."""
    for length, attributes in of_every_length():
        x = np.random.default_rng(length).integers(0, 99, (1, 3, HEIGHT, length)).astype(dtype)
        expected = np.max(list(taps(x, **attributes)), axis=0)  # no element is smaller
        assert np.array_equal(onnxpool.MaxPool(**attributes)(x), expected), (length, attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_means_of_whole_numbers_are_exact(dtype: type, count_include_pad: int) -> None:
    """For every length of a row, with and without pads in the divisor."""
    for length, attributes in of_every_length():
        x = np.random.default_rng(length).integers(-99, 99, (1, 3, HEIGHT, length)).astype(np.float64)
        counts = np.sum(list(taps(np.ones_like(x), **attributes, value=count_include_pad)), axis=0)
        expected = (np.sum(list(taps(x, **attributes)), axis=0) / counts).astype(dtype)
        pool = onnxpool.AveragePool(**attributes, count_include_pad=count_include_pad)
        assert np.array_equal(pool(x.astype(dtype)), expected), (length, attributes)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_odd_elements_of_rows(dtype: np.dtype) -> None:
    """Zeros of both signs, infinities and NaNs, one by one and many."""
    odd = np.array([-0.0, 0.0, -np.inf, np.inf, np.nan]).astype(dtype)
    for length, attributes in of_every_length():
        rng = np.random.default_rng(length)
        x = rng.standard_normal((1, 9, HEIGHT, length)).astype(dtype)
        x[0, :3] = np.maximum(x[0, :3], 0) * rng.choice([1, -1], x[0, :3].shape).astype(dtype)
        x[0, 3:6, rng.integers(HEIGHT), rng.integers(length)] = rng.choice(odd)
        x[0, 6:] = np.where(rng.random(x[0, 6:].shape) < 0.1, rng.choice(odd, x[0, 6:].shape), x[0, 6:])
        y = both_layouts(onnxpool.MaxPool, x, attributes)
        nans = np.any([np.isnan(tap.astype(np.float32)) for tap in taps(x, **attributes)], axis=0)
        assert np.array_equal(np.isnan(y.astype(np.float32)), nans), (length, attributes)
        for operator in onnxpool.AveragePool, onnxpool.LpPool:
            both_layouts(operator, x, attributes)


@pytest.mark.parametrize("size", [FAR, FARTHEST])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (2, 3), (3, 1)])
def test_long_rows_from_afar(size: int, kernel: int, stride: int) -> None:
    """Rows that are prefetched in the order of memory."""
    x = np.random.default_rng(0).standard_normal((1, size // (30 * 301 * 4) + 1, 30, 301)).astype(np.float32)
    for operator in onnxpool.MaxPool, onnxpool.AveragePool:
        pool = operator(kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2, 1] * 2)
        near = np.concatenate([pool(x[:, [channel]]) for channel in range(x.shape[1])], axis=1)
        assert np.array_equal(bits(pool(x)), bits(near))
