"""Windows of stride 1 over planes of short rows, channels first, along one to three axes.

Maxima are expected tap by tap, and every result bit by bit as with channels last, where other loops run.
"""

import numpy as np
import pytest
from support import DTYPES, FLOATS, assert_same_values, bits, elements, largest, least, taps, to_first, to_last

import onnxpool

GEOMETRIES = [  # spatial shape, kernel, dilations, pads
    ((20, 20), (5, 5), (1, 1), (2, 2, 2, 2)),
    ((13, 13), (13, 13), (1, 1), (6, 6, 6, 6)),
    ((20, 20), (9, 9), (1, 1), (4, 4, 4, 4)),
    ((35, 35), (3, 3), (1, 1), (1, 1, 1, 1)),
    ((28, 27), (3, 3), (1, 1), (0, 0, 0, 0)),
    ((10, 11), (2, 3), (1, 1), (1, 0, 0, 2)),
    ((9, 40), (1, 16), (1, 1), (0, 15, 0, 0)),
    ((9, 45), (2, 17), (1, 1), (0, 8, 1, 8)),
    ((30, 12), (8, 1), (2, 1), (7, 0, 3, 0)),
    ((12, 31), (3, 6), (3, 2), (3, 5, 3, 5)),
    ((3, 45), (1, 40), (1, 1), (0, 3, 0, 20)),
    ((45,), (7,), (1,), (3, 3)),
    ((16,), (2,), (4,), (0, 4)),
    ((6, 7, 12), (3, 3, 3), (1, 1, 1), (1, 1, 1, 1, 1, 1)),
    ((5, 1, 14), (4, 1, 2), (1, 1, 1), (2, 0, 1, 1, 0, 0)),
    ((2, 3, 2, 10), (2, 2, 2, 2), (1, 1, 1, 1), (0, 1, 0, 1, 0, 0, 0, 0)),
]


def layouts(x):
    """The same elements contiguous, strided, reversed, and not aligned to cache lines."""
    yield x
    for step in 2, -1:
        apart = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::step][..., :x.shape[-1]]
        apart[...] = x
        yield apart
    room = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.uint8)
    aside = room[:x.nbytes].view(x.dtype).reshape(x.shape)
    aside[...] = x
    yield aside


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_maxima_are_those_of_numpy(dtype, geometry, odd):
    """Whatever the memory layout, and into an `out` with gaps."""
    spatial, kernel, dilations, pads = geometry
    for images, channels in ((1, 1), (3, 5), (1, 40), (2, 300)):
        if channels > 40 and (odd or np.prod(spatial) > 400):
            continue
        x = elements((images, channels, *spatial), dtype, odd)
        expected = largest(taps(x, kernel, None, dilations, pads, value=least(dtype)))
        attributes = {"kernel_shape": kernel, "dilations": dilations, "pads": pads}
        for source in layouts(x):
            y = onnxpool.MaxPool(**attributes)(source)
            assert_same_values(y, expected)
        out = np.zeros((*expected.shape[:-1], expected.shape[-1] + 3), dtype)[..., 1:-2]
        assert np.array_equal(bits(onnxpool.MaxPool(**attributes)(x, out=out)), bits(y))


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("operator", [onnxpool.AveragePool, onnxpool.LpPool])
def test_sums_have_the_bits_of_channels_last(operator, dtype, geometry, odd):
    """This includes sums that overflow, so that planes are computed again."""
    spatial, kernel, dilations, pads = geometry
    options = [{"count_include_pad": 0}, {"count_include_pad": 1}] if operator is onnxpool.AveragePool else [{}]
    for images, channels in ((1, 1), (3, 5), (1, 130)):
        x = elements((images, channels, *spatial), dtype, odd)
        for option in options:
            attributes = {"kernel_shape": kernel, "dilations": dilations, "pads": pads, **option}
            last = operator(**attributes, channels_last=True)(to_last(x))
            expected = bits(to_first(last))
            for number, source in enumerate(layouts(x)):
                y = bits(operator(**attributes)(source, num_threads=1 + number % 2))
                assert all(map(np.array_equal, y, expected))


def test_planes_of_every_width():
    """Rows of every width, from shorter than a vector to many vectors."""
    for width in (*range(1, 40), *range(60, 68), *range(124, 132)):
        for dtype in np.dtype(np.float32), np.dtype(np.uint8):
            x = elements((2, 17, 6, width), dtype, False)
            y = onnxpool.max_pool(x, (3, 3), pads=[1] * 4)
            assert_same_values(y, largest(taps(x, (3, 3), pads=[1] * 4, value=least(dtype))))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("spatial", "kernel", "strides", "pads"), [
    ((2, 12, 20), (1, 3, 1), (2, 1, 1), (0, 2, 0, 0, 0, 0)),
    ((2, 12), (1, 3), (2, 1), (0, 1, 0, 1)),
    ((5, 12), (3, 3), (4, 1), (0, 1, 0, 1)),
    ((12, 20), (3, 3), (1, 18), (1, 0, 1, 0)),
    ((3, 20, 12), (1, 1, 2), (3, 20, 1), (0, 0, 0, 0, 0, 0)),
], ids=str)
def test_an_axis_of_one_window_that_does_not_reach_all_of_it(dtype, spatial, kernel, strides, pads):
    """A window of one tap was once treated as one of eight."""
    for images, channels in ((2, 1), (1, 40)):
        x = elements((images, channels, *spatial), dtype, False)
        expected = largest(taps(x, kernel, strides, pads=pads, value=least(dtype)))
        for source in layouts(x):
            assert_same_values(onnxpool.MaxPool(kernel_shape=kernel, strides=strides, pads=pads)(source), expected)
