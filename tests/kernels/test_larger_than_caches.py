"""Arrays larger than the caches of a core, whose cache lines are prefetched, and rows that are processed in pieces.

The expected bits are those of each image alone, which is small, or of the same windows in another layout or in NumPy.
"""

import numpy as np
import pytest
from support import FLOATS, to_last

import onnxpool

DTYPES = [np.dtype(np.uint8), *FLOATS]
POOLS = {
    "max 3x3 s2": (onnxpool.MaxPool, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
    "max 2x3": (onnxpool.MaxPool, {"kernel_shape": [2, 3]}),
    "mean 3x3": (onnxpool.AveragePool, {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "mean 2x2 s2": (onnxpool.AveragePool, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "norm 3x3": (onnxpool.LpPool, {"kernel_shape": [3, 3], "strides": [2, 2], "p": 2}),
    "whole mean": (onnxpool.GlobalAveragePool, {}),
    "whole maximum": (onnxpool.GlobalMaxPool, {}),
    "whole norm": (onnxpool.GlobalLpPool, {"p": 3}),
}
ROWS = [(4, 4), (25, 5), (3, 1), (31, 1), (7, 2), (2, 3)]


def numbers(shape, dtype):
    rng = np.random.default_rng(11)
    if dtype == np.uint8:
        return rng.integers(0, 256, shape, dtype)
    return rng.standard_normal(shape, np.float32).astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name in POOLS for dtype in DTYPES if dtype != np.uint8 or name.startswith("max")], ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_images_give_the_same_bits_alone(dtype, name, channels_last):
    operator, attributes = POOLS[name]
    x = numbers((64 // dtype.itemsize, 64, 40, 61), dtype)
    if channels_last:
        x = to_last(x)
    op = operator(**attributes, channels_last=channels_last)
    assert x.nbytes > 8 << 20
    assert x[:1].nbytes < 2 << 20
    alone = np.concatenate([op(x[i:i + 1]) for i in range(len(x))])
    assert op(x).tobytes() == alone.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("kernel", "stride"), ROWS)
def test_maxima_of_long_rows(dtype, kernel, stride):
    x = numbers((2, 3, 70001), dtype)
    y = onnxpool.max_pool(x, (kernel,), strides=(stride,))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), kernel, axis=2)[:, :, ::stride]
    assert np.array_equal(y.astype(np.float64), windows.max(axis=-1))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("kernel", "stride"), ROWS)
def test_means_of_long_rows(dtype, kernel, stride):
    """The other layout is cut into other pieces."""
    x = numbers((2, 3, 70001), dtype)
    pads = (stride, stride) if stride < kernel else (0, 0)
    y = onnxpool.average_pool(x, (kernel,), strides=(stride,), pads=pads)
    last = to_last(x)
    z = onnxpool.average_pool(last, (kernel,), strides=(stride,), pads=pads, channels_last=True)
    assert np.moveaxis(z, -1, 1).tobytes() == y.tobytes()
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), kernel, axis=2)[:, :, ::stride]
    interior = y[:, :, pads[0] // stride:][:, :, :windows.shape[2]]
    error = {2: 2e-3 if dtype == np.float16 else 2e-2, 4: 1e-6, 8: 1e-15}[dtype.itemsize]
    assert np.allclose(interior.astype(np.float64), windows.mean(axis=-1), rtol=error, atol=error)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("channels", [1, 3, 20, 64, 130])
@pytest.mark.parametrize("channels_last", [False, True])
def test_threads_share_a_plane_to_the_same_bits(dtype, channels, channels_last):
    """One image, whose planes are cut into segments that threads can share."""
    x = numbers((1, channels, 5, (3 << 20) // (5 * channels * min(channels, 5)) + 1, min(channels, 5)), dtype)
    if channels_last:
        x = to_last(x)
    for operator in onnxpool.GlobalAveragePool, onnxpool.GlobalMaxPool, onnxpool.GlobalLpPool:
        op = operator(channels_last=channels_last)
        expected = op(x, num_threads=1)
        for threads in 2, 3, 5:
            assert op(x, num_threads=threads).tobytes() == expected.tobytes()
        apart = np.repeat(x, 2, axis=-3)[..., ::2, :, :]
        assert op(apart, num_threads=2).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_threads_share_a_plane_of_bytes(dtype):
    x = np.random.default_rng(0).integers(-128, 128, (2, 1, 1033, 2021)).astype(dtype)
    further = np.float32(1), dtype(0), np.float32(1), dtype(0)
    for threads in 1, 2, 3:
        y = onnxpool.qlinear_global_average_pool(x, *further, num_threads=threads)
        assert y.tobytes() == np.rint(x.mean(axis=(2, 3))).astype(dtype).tobytes()
