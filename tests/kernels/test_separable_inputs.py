"""Large random windows over inputs that are sums of one number per axis, whose pools follow without looking at taps.

The maximum over a window is then the sum of the maxima along each axis, and the sum consists of sums along each axis.
Results are large enough for many tiles and several threads, in memory that contains noise beforehand.
"""

import math

import numpy as np
import pytest
from calls import THREADS, SeededChoices, draw_axis
from onnxpool_conformance.oracle import DTYPES, axis_windows
from support import to_first, to_last

import onnxpool

PROBLEMS = 60
MOST_CELLS = 150_000  # maximum elements of the input, and of the result
LONGEST = {1: 20_000, 2: 300, 3: 60, 4: 24, 5: 12}
NOISE = 7e37
BLOCKS = (10, 40, 100, 300, 1000, 3000, 10_000, 100_000)


class Problem:
    """An input, its windows, and the maxima, first positions, sums and counts along each of its axes."""

    def __init__(self, seed):
        choices = SeededChoices(seed)
        self.rank = choices.pick((2, 3, 4, 1, 5))
        rows = []
        room = MOST_CELLS
        self.planes = (choices.pick((1, 2, 3)), choices.pick((1, 2, 5, 17)))
        room //= math.prod(self.planes)
        for _ in range(self.rank):
            size = choices.integer(1, max(1, min(LONGEST[self.rank], room)))
            row = draw_axis(choices, size, dilated=choices.chance(30))
            kernel, stride, dilation, begin, end = row
            short = (kernel - 1) * dilation + 1 - size - begin - end
            rows.append((size, kernel, stride, dilation, begin, end + max(0, short)))
            room //= max(size, 1)
        self.sizes, self.kernel, self.strides, self.dilations, begin, end = zip(*rows, strict=True)
        self.pads = begin + end
        self.ceil_mode = choices.integer(0, 1)
        self.values = [np.random.default_rng((seed, axis)).integers(0, 9, size) for axis, size in enumerate(self.sizes)]
        self.axes = self.windows(begin, end)
        if math.prod(len(axis.taps) for axis in self.axes) * math.prod(self.planes) > MOST_CELLS:
            self.strides = self.sizes
            self.axes = self.windows(begin, end)

    def windows(self, begin, end):
        """The windows along each axis."""
        rows = zip(self.sizes, self.kernel, self.strides, self.dilations, zip(begin, end, strict=True), strict=True)
        return [axis_windows(*row, "NOTSET", self.ceil_mode) for row in rows]

    def attributes(self):
        """The window as attributes."""
        given = {"kernel_shape": self.kernel, "strides": self.strides, "pads": self.pads}
        return given | {"dilations": self.dilations, "ceil_mode": self.ceil_mode}

    def x(self, dtype, channels_last):
        """The input: the same plane in every image and channel."""
        plane = self.spread(self.values, np.add)
        x = np.broadcast_to(plane, (*self.planes, *self.sizes)).astype(DTYPES[dtype])
        return to_last(x, channels_last)

    @staticmethod
    def spread(rows, combine):
        """One row of numbers per axis, combined into a plane."""
        plane = np.zeros(()) if combine is np.add else np.ones(())
        for row in rows:
            plane = combine.outer(plane, np.asarray(row, np.float64))
        return plane

    def along(self, function, nothing=0):
        """A number per axis and window: a function of the values in it."""
        pairs = zip(self.values, self.axes, strict=True)
        return [[function(values[list(t)]) if t else nothing for t in axis.taps] for values, axis in pairs]

    def counts(self):
        """The number of taps of each window."""
        return self.spread(self.along(len), np.multiply)

    def sums(self):
        """The sum of each window: the values along one axis, times the counts along the others."""
        counts, sums = self.along(len), self.along(np.sum)
        terms = [[*counts[:axis], sums[axis], *counts[axis + 1 :]] for axis in range(self.rank)]
        return sum(self.spread(term, np.multiply) for term in terms)

    def places(self):
        """The first maximum of each window, in its plane."""
        rows = []
        for axis, (values, windows) in enumerate(zip(self.values, self.axes, strict=True)):
            step = math.prod(self.sizes[axis + 1 :])
            rows.append([t[int(values[list(t)].argmax())] * step if t else 0 for t in windows.taps])
        return self.spread(rows, np.add).astype(np.int64)

    def whole(self, plane):
        """The same plane in every image and channel."""
        return np.broadcast_to(plane, (*self.planes, *plane.shape))


def pooled(problem, function, dtype, channels_last, threads, **options):
    """A pool, channels first, computed while freed memory is full of noise."""
    x = problem.x(dtype, channels_last)
    noise = [np.full(size, NOISE) for size in BLOCKS]
    del noise
    results = function(x, **problem.attributes(), channels_last=channels_last, num_threads=threads, **options)
    results = results if isinstance(results, tuple) else (results,)
    return [to_first(y, channels_last) for y in results]


@pytest.mark.parametrize("channels_last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_separable(seed, channels_last):
    """Maxima, their positions, means and norms of large inputs follow from those along each axis."""
    problem = Problem(seed)
    dtype, byte = ("float32", "float64", "float16")[seed % 3], ("int8", "uint8")[seed % 2]
    threads = THREADS[seed % len(THREADS)]
    counts = problem.counts()
    empty = problem.whole(counts == 0)
    arguments = channels_last, threads
    highest = problem.whole(problem.spread(problem.along(np.max), np.add))
    starts = np.arange(math.prod(problem.planes)).reshape(*problem.planes, *(1,) * problem.rank)
    places = np.where(empty, -1, problem.whole(problem.places()) + starts * math.prod(problem.sizes))
    for kind, nothing in ((dtype, -math.inf), (byte, np.iinfo(byte).min)):
        wanted = np.where(empty, nothing, highest)
        np.testing.assert_array_equal(pooled(problem, onnxpool.max_pool, kind, *arguments)[0], wanted)
        y, indices = pooled(problem, onnxpool.max_pool, kind, *arguments, return_indices=True)
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(indices, places)
    sums = problem.whole(problem.sums())
    wide = "float64" if dtype == "float64" else "float32"
    norm = pooled(problem, onnxpool.lp_pool, wide, *arguments, p=1)[0]
    np.testing.assert_allclose(norm, sums, rtol=1e-6)
    counted = problem.whole(problem.spread([axis.counted for axis in problem.axes], np.multiply))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / problem.whole(counts)
        with_pads = np.where(counted == 0, math.nan, sums / counted)
    np.testing.assert_allclose(pooled(problem, onnxpool.average_pool, wide, *arguments)[0], means, rtol=1e-6)
    y = pooled(problem, onnxpool.average_pool, wide, *arguments, count_include_pad=1)[0]
    np.testing.assert_allclose(y, with_pads, rtol=1e-6)


@pytest.mark.parametrize("repeat", range(3))
def test_rows_that_hold_nothing(repeat):
    """A plane whose rows are mostly padding is computed from its input alone, whatever memory contained before."""
    shape = (1, 11, 22, 1, 1, 2)
    window = {"strides": (1, 11, 1, 1), "pads": (0, 1, 4, 3, 2, 0, 0, 3), "count_include_pad": 1, "channels_last": True}
    noise = [np.full(size, NOISE) for size in BLOCKS]
    del noise
    y = onnxpool.average_pool(np.zeros(shape), 1, **window)
    assert not y.any()
