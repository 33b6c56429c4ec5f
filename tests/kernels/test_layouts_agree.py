"""Random pools, small ones and large ones that are cut into tiles: the same bits in both layouts and for one channel.

Nothing is written beyond scratch memory.
"""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from support import bits

import onnxpool
from onnxpool import kernels
from onnxpool.arrays import allocate
from onnxpool.planning.layout import memory_order

DTYPES = [np.dtype(t) for t in (np.int8, np.uint8, np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
CHANNELS = (1, 3, 7, 9, 15, 17, 31, 33, 40, 63, 65, 72, 96, 129, 130, 200, 257)  # leave tiles of few channels
SMALL, LARGE = (1, 200_000), (300_000, 2_000_000)  # elements
CALLS = 40  # calls of each size and dtype
FENCE = 1 << 16  # bytes beyond scratch memory that are watched


@pytest.mark.parametrize("shape", [
    (2, 3, 4, 5), (1, 3, 1, 5), (2, 3, 5, 1), (2, 1, 4, 5), (2, 3, 1), (2, 3, 4), (2, 3), (3, 2, 3, 4, 2)])
def test_results_lie_in_memory_as_x_does(shape):
    """Channels are adjacent if those of x are. They are in row-major order if x has a single channel or a single place
    along its last axis, whatever strides these have."""
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


def random_problem(rng, least, most):
    """A shape, channels first, and attributes."""
    while True:
        rank = int(rng.choice([1, 2, 2, 2, 3, 3, 4]))
        kernel = [int(rng.choice([1, 2, 2, 3, 3, 4, 5, 8, 9, 11, 16, 25])) for _ in range(rank)]
        dilations = [int(rng.choice([1, 1, 1, 2, 3])) for _ in kernel]
        strides = [int(rng.choice([1, 1, 2, 3, 4, k])) for k in kernel]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads = [int(rng.integers(0, span)) if rng.random() < 0.5 else 0 for _ in "be" for span in spans]
        more = 30 // rank if most == SMALL[1] else int(10 * 400 ** (1 / rank))
        sizes = [int(rng.integers(1, 2 * span + more)) for span in spans]
        shape = (int(rng.integers(1, 3)), int(rng.choice(CHANNELS)), *sizes)
        fits = all(size + pads[a] + pads[a + rank] >= spans[a] for a, size in enumerate(sizes))
        if fits and least <= math.prod(shape) <= most and math.prod(kernel) <= 200:
            return shape, {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations,
                           "ceil_mode": int(rng.integers(2))}


def made(rng, dtype, attributes, *, last):
    """The operator of a random reduction that accepts the dtype; for channels last if `last`."""
    kind = int(rng.integers(2 if dtype.kind in "iu" else 4))
    if kind == 1:
        return onnxpool.MaxPool(**attributes, return_indices=True, channels_last=last)
    pool = (onnxpool.MaxPool, None, onnxpool.AveragePool, onnxpool.LpPool)[kind]
    return pool(**attributes, channels_last=last)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("elements", [SMALL, LARGE], ids=["small", "large"])
def test_layouts_and_single_channels_have_the_same_bits(dtype, elements):
    """Tiles, routes and registers differ, but results do not."""
    rng = np.random.default_rng(20)
    kernels.pools.watch_scratch(FENCE)
    for _ in range(CALLS):
        shape, attributes = random_problem(rng, *elements)
        x = (rng.integers(-50, 50, shape) if dtype.kind in "iu" else rng.standard_normal(shape)).astype(dtype)
        seed, channel = int(rng.integers(1 << 30)), int(rng.integers(shape[1]))
        first, last = (made(np.random.default_rng(seed), dtype, attributes, last=last) for last in (False, True))
        y, alone = first(x), first(np.ascontiguousarray(x[:, channel : channel + 1]))
        other = last(np.ascontiguousarray(np.moveaxis(x, 1, -1)))
        if isinstance(y, tuple):
            y, alone, other = y[0], alone[0], other[0]
        assert np.array_equal(bits(y), bits(np.moveaxis(other, -1, 1))), (first, shape)
        assert np.array_equal(bits(y[:, channel : channel + 1]), bits(alone)), (first, shape)
    assert kernels.pools.watch_scratch(0) == 0
