"""Windows far out in the padding cost no more than their results, and do not affect other windows."""

import numpy as np
import pytest
from support import taps

import onnxpool


def test_windows_of_many_taps_take_the_same_route_with_any_padding():
    for pad in (0, 50, 400, 10_000):
        pool = onnxpool.MaxPool(kernel_shape=[20, 20], strides=[1, 2], pads=[0, pad] * 2)
        assert pool.plan((1, 1, 40, 40), np.float32).explain().to_dict()["route"] == ["passes"]


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5])
def test_tiles_of_windows_in_the_padding(stride):
    """Tiles without any element, which follow tiles with elements on a long axis, have the right results."""
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
