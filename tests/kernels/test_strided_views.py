"""Arrays that repeat elements, with strides of 0, have the same results as copies, bit by bit."""

import numpy as np
import pytest
from support import DTYPES

import onnxpool

VIEWS = {
    "the first row again and again": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "the first element again and again": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "the first plane again and again": lambda x: np.broadcast_to(x[:, :, :1], x.shape),
}


def pools(x, last):
    """Pools of every family that accept the dtype, with windows that share taps and that skip elements.

    Sums of channels-last global pools follow memory order. A copy has the same order if channels have the least stride.
    """
    ndim = x.ndim - 2
    for kernel, stride, dilation in ((3, 2, 1), (2, 2, 1), (3, 1, 1), (1, 1, 1), (2, 3, 1), (2, 1, 2)):
        shape = {"kernel_shape": (kernel,) * ndim, "strides": (stride,) * ndim, "channels_last": last}
        if x.dtype.kind != "i" or dilation == 1:
            yield onnxpool.MaxPool(**shape, dilations=(dilation,) * ndim)
        if x.dtype.kind not in "iu":
            yield onnxpool.AveragePool(**shape, dilations=(dilation,) * ndim)
            yield onnxpool.LpPool(**shape)
    yield onnxpool.MaxPool(kernel_shape=(2, *[1] * (ndim - 1)), channels_last=last)
    if x.dtype.kind not in "iu" and (not last or abs(x.strides[-1]) < abs(x.strides[-2])):
        for pool in (onnxpool.GlobalAveragePool, onnxpool.GlobalMaxPool, onnxpool.GlobalLpPool):
            yield pool(channels_last=last)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 5, 9, 11), (3, 5, 5, 6, 7), (3, 18, 7, 70)])
@pytest.mark.parametrize("last", [0, 1])
def test_a_view_gives_the_bits_of_its_copy(view, dtype, shape, last):
    rng = np.random.default_rng(5)
    values = rng.integers(0, 100, shape) if dtype.kind in "iu" else rng.standard_normal(shape)
    x = VIEWS[view](values.astype(dtype))
    copy = np.ascontiguousarray(x).astype(dtype)
    for pool in pools(x, last):
        y, expected = pool(x), pool(copy)
        assert y.tobytes() == expected.tobytes(), pool


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("operator", [onnxpool.GlobalAveragePool, onnxpool.GlobalLpPool])
def test_repeated_elements_are_added_in_the_order_of_a_copy(operator, channels_last):
    """Repeated elements are added in the order of a copy: axes with stride 0 are lanes wherever a copy's axes are
    lanes."""
    rng = np.random.default_rng(0)
    pool = operator(channels_last=channels_last)
    for shape in ((2, 5, 6, 40), (1, 3, 7, 17), (3, 4, 4, 64), (2, 9, 1, 33)):
        for axis in range(4):
            one = rng.standard_normal([1 if own == axis else size for own, size in enumerate(shape)], np.float32)
            x = np.broadcast_to(one, shape)
            assert pool(x).tobytes() == pool(x.copy()).tobytes(), (shape, axis)
