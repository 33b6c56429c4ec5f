"""Arrays beyond a core's caches run through other code: results are those of one image at a time."""

import math

import ml_dtypes
import numpy as np
import pytest
from guarded import PAGE, Slot
from support import FAR, FARTHEST, bits

import onnxpool

DTYPES = [np.dtype(t) for t in (np.uint8, ml_dtypes.bfloat16, np.float32)]
WINDOWS = [
    ((600,), {"kernel_shape": [2], "strides": [2]}),
    ((600,), {"kernel_shape": [6], "strides": [6], "pads": [3, 3]}),
    ((600,), {"kernel_shape": [4], "strides": [3], "pads": [1, 2]}),
    ((600,), {"kernel_shape": [7], "strides": [2], "pads": [3, 3]}),
    ((24, 25), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((24, 25), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((24, 25), {"kernel_shape": [3, 2], "strides": [1, 1], "pads": [1, 0, 1, 1]}),
    ((24, 25), {"kernel_shape": [4, 5], "strides": [4, 5], "pads": [0, 0, 3, 0]}),
    ((24, 25), {"kernel_shape": [3, 3], "strides": [2, 2], "dilations": [2, 1]}),
    ((4, 6, 25), {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2], "pads": [0, 1, 0, 0, 0, 1]}),
    ((4, 6, 25), {"kernel_shape": [4, 3, 1], "strides": [2, 1, 1], "pads": [1, 1, 0, 1, 1, 0]}),
]


def images_of(size: int, channels: int, dtype: np.dtype) -> np.ndarray:
    """Images of 600 elements that take at least this many bytes."""
    images = size // (600 * channels * dtype.itemsize) + 1
    return (np.random.default_rng(channels).integers(0, 9900, (images, 600, channels)) / 100).astype(dtype)


def compare(far: np.ndarray, channels_last: bool, attributes: dict) -> None:
    """All images compared with one at a time."""
    for operator in (onnxpool.MaxPool,) if far.dtype == np.uint8 else (onnxpool.MaxPool, onnxpool.AveragePool):
        pool = operator(**attributes, channels_last=channels_last)
        near = np.concatenate([pool(image[None]) for image in far])
        assert np.array_equal(bits(pool(far)), bits(near)), (operator, far.shape, attributes)


@pytest.mark.parametrize(("size", "channels"), [(FAR, 320), (FARTHEST, 16), (FARTHEST, 320)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_far_arrays_give_the_bits_of_single_images(dtype, channels, size):
    """Channels last, with windows of one, two and three axes."""
    x = images_of(size, channels, dtype)
    for sizes, attributes in WINDOWS:
        compare(x.reshape(len(x), *sizes, channels), True, attributes)


@pytest.mark.parametrize("size", [FAR, FARTHEST])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_far_planes_give_the_bits_of_single_images(dtype, size):
    """Channels first, with rows that do and do not fill vectors."""
    x = images_of(size, 72, dtype).reshape(-1, 9, 60, 80)
    windows = [attributes for sizes, attributes in WINDOWS if len(sizes) == 2]
    for attributes in (*windows, {"kernel_shape": [3, 2], "strides": [3, 2], "pads": [1, 0, 1, 0]}):
        for part in (x, x[..., :65], x[..., 3:40]):
            compare(part, False, attributes)


@pytest.mark.parametrize("dtype", [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)], ids=str)
def test_far_views_give_the_bits_of_copies(dtype):
    """Strided and reversed elements."""
    x = images_of(2 * FARTHEST, 144, dtype)
    for sizes, attributes in WINDOWS:
        far = x.reshape(len(x), *sizes, 144)
        for view in (far[..., 40:112], far[..., ::-1, :], far[..., ::2, 1:]):
            pool = onnxpool.AveragePool(**attributes, channels_last=True)
            assert np.array_equal(bits(pool(view)), bits(pool(np.ascontiguousarray(view)))), (sizes, attributes)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nothing_is_read_behind_far_planes(dtype):
    """Rows that fill vectors, and rows that do not, up to an inaccessible page."""
    for width in (128, 131):
        shape = (FARTHEST // (50 * width * dtype.itemsize) + 1, 1, 50, width)
        slot = Slot(math.prod(shape) * dtype.itemsize // PAGE + 1)
        x = slot.hold(shape, dtype, at_end=True, fill=0)
        assert not onnxpool.max_pool(x, 2, strides=2).any()
        if dtype != np.uint8:
            assert not onnxpool.average_pool(x, (3, 2), strides=(3, 2)).any()
