"""Results have the memory layout of their inputs."""

import itertools

import numpy as np
import pytest

from onnxpool.arrays import allocate
from onnxpool.planning.layout import memory_order


@pytest.mark.parametrize("shape", [
    (2, 3, 4, 5), (1, 3, 1, 5), (2, 3, 5, 1), (2, 1, 4, 5), (2, 3, 1), (2, 3, 4), (2, 3), (3, 2, 3, 4, 2)])
def test_results_lie_in_memory_as_x_does(shape):
    """Results have adjacent channels if x has adjacent channels. Results are in row-major order if x has a single
    channel or a single place along its last axis, whatever strides these have."""
    for last, order in itertools.product((False, True), itertools.permutations(range(1, len(shape)))):
        memory = np.zeros([2 * shape[axis] for axis in (0, *order)], np.float32)
        x = memory.transpose(np.argsort([0, *order]))[tuple(slice(size) for size in shape)]  # channels first
        adjacent = order.index(1) > order.index(len(shape) - 1)
        if min(shape[1], shape[-1]) == 1 or len(shape) == 2:
            adjacent = last and shape[1] > 1
        place = len(shape) - 1 if last else 1
        x = np.moveaxis(x, 1, -1) if last else x
        y = allocate("", x.shape, x.dtype, memory_order(x, place))
        assert np.moveaxis(y, place, -1 if adjacent else 1).flags.c_contiguous, (x.shape, x.strides, y.strides)
