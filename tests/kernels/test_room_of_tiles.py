"""Scratch memory suffices for every tile of a pool. A pool that needs more than any machine has is refused."""

from collections.abc import Iterator

import numpy as np
import pytest

import onnxpool
from onnxpool.kernels import pool


@pytest.fixture
def watched() -> Iterator[None]:
    """Scratch memory is followed by bytes that are checked after each call."""
    pool.watch_scratch(4096)
    yield
    pool.watch_scratch(0)


def overwritten() -> int:
    """The number of bytes after scratch memory that have been overwritten since the last look."""
    count: int = pool.watch_scratch(0)
    pool.watch_scratch(4096)
    return count


@pytest.mark.usefixtures("watched")
def test_a_last_tile_of_few_windows() -> None:
    """Scratch memory suffices for a last tile of few windows, which may pool them all at once, unlike larger tiles."""
    x = np.zeros((1, 1, 2_000_000), np.float32)
    given = {"kernel_shape": 2, "strides": 3_000_000, "pads": (27_000_000, 28_000_002)}
    _, indices = onnxpool.max_pool(x, **given, return_indices=True, num_threads=1)
    assert overwritten() == 0
    assert indices.ravel().tolist() == [-1] * 9 + [0] + [-1] * 10
    onnxpool.qlinear_average_pool(x.astype(np.uint8), 1.0, 0, 1.0, 0, **given)
    assert overwritten() == 0


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_windows_that_lie_mostly_in_padding(dtype: str) -> None:
    """Scratch memory suffices for random strides and pads, in tiles of every number of windows."""
    rng = np.random.default_rng(3)
    for _ in range(150):
        size, channels = int(rng.choice([100, 5_000, 300_000])), int(rng.choice([1, 3, 16]))
        kernel, stride = int(rng.integers(1, 5)), int(size * rng.uniform(0.2, 4)) + 1
        windows = int(rng.integers(2, 40))
        begin = int(rng.integers(0, windows * stride))
        pads = begin, max(0, windows * stride + kernel - size - begin)
        x = np.zeros((1, channels, size), dtype)
        x[..., ::7] = 1
        y, indices = onnxpool.max_pool(x, kernel, strides=stride, pads=pads, return_indices=True)
        assert overwritten() == 0, (size, channels, kernel, stride, pads)
        first = np.arange(y.shape[2]) * stride - begin
        inside = (first + kernel > 0) & (first < size)
        assert ((indices[0, 0] >= 0) == inside).all()


@pytest.mark.parametrize("distance", [329406144173384850, 209622091746699450, 2**58])
def test_rows_that_no_memory_holds(distance: int) -> None:
    """A pool raises MemoryError if the number of rows times their size exceeds 64 bits."""
    x = np.broadcast_to(np.float64(1), (1, 1, distance + 1, 2))
    with pytest.raises(MemoryError):
        onnxpool.max_pool(x, 2, dilations=(distance, 1), return_indices=True)


def test_regions_of_huge_images() -> None:
    """Memory for as many taps as a huge image has elements is refused, and memory for the taps of regions suffices."""
    huge = np.broadcast_to(np.float32(1), (1, 1, 2**58, 1))
    with pytest.raises(MemoryError):
        onnxpool.max_roi_pool(huge, np.array([[0, 0, 0, 0, 99_999]], np.float32), (1, 1))
    with pytest.raises(MemoryError):
        onnxpool.roi_align(huge.transpose(0, 1, 3, 2), np.array([[0, 0, 9, 0]], np.float32), np.zeros(1, np.int64))
    tall = np.arange(200_000, dtype=np.float32).reshape(1, 1, -1, 1)
    y = onnxpool.max_roi_pool(tall, np.array([[0, 0, 0, 0, 199_999]], np.float32), (200_000, 1))
    assert np.array_equal(y, tall)
    flat = np.array([[0, 5, 1e7, 5]], np.float32)
    y = onnxpool.roi_align(np.ones((1, 1, 8, 8), np.float32), flat, np.zeros(1, np.int64), mode="max",
                           output_height=1000)
    assert not y.any()
