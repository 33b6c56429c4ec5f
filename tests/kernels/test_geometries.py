"""One table of geometries, by every reduction and dtype, in both layouts and any memory, against the oracle.

The oracle computes a few planes with each kind of elements. A call that is given many of them, in any order, has the
same bits for each plane as a call with it alone: in both layouts, for strided, reversed, unaligned and byte-swapped
arrays, beside inaccessible pages, into results with gaps, in parts, and on several threads. Nothing is written beyond
scratch memory.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from calls import largest, tiled
from guarded import PAGE, Slot
from onnxpool_conformance import cases
from onnxpool_conformance.oracle import FORMATS
from oracle_axes import expect_along_axes
from support import BYTES, DTYPES, FAR, FARTHEST, FLOATS, same_bits, to_first, to_last
from tolerance import judge

import onnxpool
from onnxpool import kernels, threads

FENCE = 4096  # bytes beyond scratch memory that are watched
HUGE = 2**60
PLAIN, ODD = [0, 1, 2], [0, 3, 1, 4, 5]  # ordinary planes, and ordinary planes between planes with special elements
PLANES = 6


class Row(NamedTuple):
    """
    A geometry.

    Attributes
    ----------
    channels : int
    sizes : tuple of int
        Sizes of spatial axes.
    windows : dict
        Attributes.
    distinct : int
        How many planes differ. Geometries of many taps have few, for the sake of the oracle.
    images : int
    """

    channels: int
    sizes: tuple[int, ...]
    windows: dict
    distinct: int = PLANES
    images: int = 2


def geometry(channels, sizes, kernel, strides=1, pads=0, dilations=1, ceil_mode=0, **more):
    """A row of the table."""
    windows = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}
    rank = len(sizes)
    windows = {name: (value,) * (2 * rank if name == "pads" else rank) if isinstance(value, int) else value
               for name, value in windows.items()}
    return Row(channels, sizes, windows | {"ceil_mode": ceil_mode}, **more)


GEOMETRIES = {
    # Windows along two axes, over planes of short rows and of many rows
    "3x3 in place": geometry(5, (20, 20), 3, pads=1),
    "3x3 by 2": geometry(67, (15, 17), 3, 2, 1),
    "2x2 by 2": geometry(40, (12, 14), 2, 2),
    "3x3 in place, in long rows": geometry(300, (5, 30), 3, pads=1),
    "3x3 by 2, in long rows": geometry(290, (7, 31), 3, 2, 1),
    "2x2 by 2, in long rows": geometry(420, (6, 36), 2, 2),
    "2x2 in place": geometry(33, (7, 9), 2, pads=(1, 0, 0, 1)),
    "5x5 in place": geometry(3, (20, 21), 5, pads=2, distinct=4),
    "2x3, uneven strides": geometry(130, (10, 11), (2, 3), (1, 3), (1, 0, 0, 2)),
    "4x2 by 2": geometry(17, (9, 12), (4, 2), 2, (3, 0, 1, 1), ceil_mode=1),
    "dilated by 3 and 2": geometry(16, (12, 31), (3, 4), 1, (3, 5, 3, 5), (3, 2)),
    "taps farther apart than windows": geometry(9, (11, 24), (3, 2), (2, 1), (9, 11, 5, 17), (7, 14), 1),
    "one tap": geometry(70, (25, 26), 1, 2),
    "one tap of each column": geometry(6, (7, 9), (1, 1), (1, 3), ceil_mode=1),
    "a column of one tap beside another": geometry(8, (9, 37), (3, 1), (2, 1), (1, 0, 1, 0)),
    "a row of few columns": geometry(29, (40, 3), (3, 2), (1, 1), (1, 1, 1, 0)),
    "rows of a register": geometry(5, (6, 64), (3, 3), (2, 2), 1),
    "rows that repeat phases": geometry(4, (6, 97), (2, 3), (1, 2)),
    "windows of the whole plane": geometry(131, (7, 7), 7),
    "windows that cover one axis": geometry(3, (9, 5), (9, 3)),
    "rows too far apart for a strip": geometry(1, (700, 9), 2, 2, 0, (400, 1), distinct=2),
    # One axis, and three or more
    "a line": geometry(7, (301,), 3, 2, 1),
    "a line of four taps by three": geometry(2, (600,), 4, 3, (1, 2)),
    "a line in place": geometry(19, (45,), 7, pads=3),
    "a line with gaps": geometry(3, (16,), 2, pads=(0, 4), dilations=4),
    "a volume": geometry(37, (6, 7, 12), 3, (2, 1, 2), 1, distinct=4),
    "a volume by pairs": geometry(5, (9, 11, 13), 2, 2, ceil_mode=1),
    "a volume with axes of one tap": geometry(21, (5, 6, 9), (4, 1, 2), 1, (2, 0, 1, 1, 0, 0)),
    "four axes": geometry(3, (2, 3, 2, 10), 2, 1, (0, 1, 0, 1, 0, 0, 0, 0)),
    "five axes, few of them reduced": geometry(33, (2, 3, 1, 4, 5), (1, 2, 1, 1, 3), (1, 1, 1, 2, 1)),
    "axes that merge": geometry(40, (3, 1, 7, 12), (1, 1, 2, 1), (1, 1, 1, 2), (0, 0, 1, 0, 0, 0, 0, 0)),
    # Windows that share no place, and whole blocks
    "blocks of 2x2": geometry(3, (24, 48), 2, 2),
    "blocks of 2x2 in windows of three rows": geometry(3, (9, 48), (3, 2), 2, (1, 0, 0, 0)),
    "blocks of 3 columns": geometry(2, (4, 200), (1, 3), (1, 3), (0, 1, 0, 2)),
    "blocks with gaps": geometry(4, (3, 160), (2, 2), (3, 4)),
    "blocks of many rows": geometry(3, (36, 40), (12, 2), (12, 2), distinct=3),
    "blocks of many columns": geometry(2, (2, 330), (1, 64), (1, 64), (0, 5, 0, 9), distinct=3),
    "blocks of a long column": geometry(70, (41, 3), (20, 1), (20, 1), (19, 0, 18, 0)),
    # Many taps, most of which windows share
    "16 columns in place": geometry(3, (5, 40), (1, 16), 1, (0, 15, 0, 0)),
    "31 rows in place": geometry(16, (35, 4), (31, 1), 1, (15, 0, 15, 0), distinct=4),
    "21 columns, dilated": geometry(5, (3, 64), (1, 21), 1, (0, 20, 0, 20), (1, 2), distinct=4),
    "9x9 in place": geometry(17, (13, 14), 9, pads=4, distinct=3),
    "13x13 in a plane as large": geometry(20, (13, 13), 13, pads=6, distinct=3),
    "11x5 by 5": geometry(4, (31, 26), (11, 5), 5, (3, 1, 2, 0), ceil_mode=1, distinct=4),
    "9x10x11": geometry(16, (9, 10, 11), (9, 8, 7), 1, (4, 3, 2, 4, 3, 2), distinct=2),
    "25 taps by 5": geometry(64, (70,), 25, 5, 4),
    "14 dilated taps by 7": geometry(16, (30,), 14, 7, 9, 2),
    "40 taps by 7 of a long line": geometry(3, (501,), 40, 7, (3, 20), distinct=4),
    "a line shorter than the kernel": geometry(5, (9,), 17, 1, 12),
    # Windows in the padding
    "many windows before the first element": geometry(16, (20,), 9, 1, (2000, 3), distinct=4),
    "rows of nothing before rows of many taps": geometry(
        2, (12, 2, 10, 3), (10, 1, 6, 2), (1, 1, 2, 1), (5, 0, 3, 0, 4, 0, 6, 1), distinct=2),
    "rows of the second axis in the padding": geometry(
        3, (7, 8, 2), (9, 9, 1), (1, 9, 3), (4, 0, 0, 4, 1, 0), distinct=4),
    "long padding along one axis": geometry(33, (4, 9), (3, 2), (1, 2), (0, 80, 3, 150)),
    "a tap before all elements and the next beyond": geometry(40, (3, 1), (1, 2), 1, (0, 3, 0, 3), (1, 2)),
    "the only element is before the window": geometry(4, (3, 1, 2), (2, 1, 1), 2, (1, 0, 0, 0, 4, 0)),
    "strides and pads of 2^60": geometry(40, (4, 6), 3, HUGE, HUGE),
    "strides and pads of 2^60 along three axes": geometry(2, (3, 3, 9), 3, HUGE, HUGE),
    "dilations of 2^60": geometry(17, (5, 7), 3, 1, HUGE, HUGE),
    "taps 100 apart": geometry(4, (6, 6), 2, 7, 99, 100),
    # Former bugs
    "an axis of one window that does not reach all of it": geometry(
        40, (2, 12, 5), (1, 3, 1), (2, 1, 1), (0, 2, 0, 0, 0, 0)),
    "a last tile of few channels": geometry(
        33, (2, 4, 4, 1), (3, 5, 5, 1), (9, 9, 2, 9), (0, 0, 0, 0, 1, 5, 1, 0), ceil_mode=1),
    "rows that are mostly padding": geometry(2, (11, 22, 1, 1), 1, (1, 11, 1, 1), (0, 1, 4, 3, 2, 0, 0, 3)),
    "vectors that pass the end of their rows": geometry(2, (30, 24), (9, 5), 1, 0, distinct=2),
    "a window of one tap beside those of many": geometry(
        16, (24, 5, 13), (13, 2, 5), 1, (6, 0, 4, 6, 1, 4), (1, 1, 2), distinct=2),
}

KINDS = {  # operator, attributes, dtypes
    "max": ("MaxPool", {}, DTYPES),
    "max with indices": ("MaxPool", {"return_indices": True}, DTYPES),
    "min": ("MinPool", {}, [*DTYPES, *map(np.dtype, ("int16", "uint16", "uint32", "int64"))]),
    "mean": ("AveragePool", {}, FLOATS),
    "mean with pads": ("AveragePool", {"count_include_pad": 1}, FLOATS),
    "mean without NaNs": ("AveragePool", {"skipna": True}, FLOATS),
    "mean of integers": ("AveragePool", {"dtype": "own"}, list(map(np.dtype, ("uint8", "int16", "uint16", "int8")))),
    "norm": ("LpPool", {"p": 2}, FLOATS),
    "quantised mean": ("QLinearAveragePool", {}, BYTES),
}
ALONG_AXES = ("min", "mean without NaNs", "mean of integers")
SCALES = np.float32(0.037), 3, np.float32(0.021), 100


def planes_of(sizes, dtype, distinct):
    """Planes of ordinary elements, of zeros of both signs among elements that are not finite, of huge elements, and of
    tiny elements."""
    rng = np.random.default_rng(len(sizes))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, (PLANES, *sizes), dtype, endpoint=True)
        x[3:5] = np.where(rng.random(x[3:5].shape) < 0.9, limits.max, x[3:5])
        return x[:distinct]
    form = FORMATS[dtype.name]
    x = rng.standard_normal((PLANES, *sizes)) * 2.0 ** rng.integers(-4, 5, (PLANES, *sizes))
    x[1][rng.random(sizes) < 0.4] = -0.0
    few = rng.random(sizes) < 0.05
    x[3][rng.random(sizes) < 0.5] = 0.0
    x[3][few] = rng.choice([np.nan, np.inf, -np.inf, -0.0], int(few.sum()))
    x[4] = np.where(rng.random(sizes) < 0.5, rng.choice([-1.0, 1.0, 1.0], sizes) * largest(form), x[4])
    x[5] = rng.integers(-9, 10, sizes) * math.ldexp(1.0, -form.unit)
    order = list(range(PLANES)) if distinct == PLANES else [0, 4, 3, 1][:distinct]
    return x[order].astype(dtype)


def views(x, names=None):
    """The views with these names, or all of them."""
    for name, make in VIEWS.items():
        swaps = name == "byte-swapped"
        if (names is None or name in names) and not (swaps and (x.dtype.itemsize == 1 or x.dtype.name == "bfloat16")):
            yield name, make(x)


def unaligned(x):
    """A copy at an odd address."""
    copy = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


def beside(x, *, at_end):
    """A copy next to an inaccessible page."""
    return Slot(x.nbytes // PAGE + 1).copy(x, at_end)


VIEWS = {
    "contiguous": lambda x: x,
    "every second element": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "every second row": lambda x: np.repeat(x, 2, axis=-2)[..., ::2, :],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "rows backwards": lambda x: np.flip(np.flip(x, -2).copy(), -2),
    "a part of every axis": lambda x: np.pad(x, 1)[(slice(1, -1),) * x.ndim],
    "the other layout": lambda x: np.ascontiguousarray(x.swapaxes(1, -1)).swapaxes(1, -1),
    "a part of the other layout": lambda x: np.pad(x.swapaxes(1, -1), 2)[(slice(2, -2),) * x.ndim].swapaxes(1, -1),
    "unaligned": unaligned,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "at the end of memory": lambda x: beside(x, at_end=True),
    "at the beginning of memory": lambda x: beside(x, at_end=False),
}


class Call:
    """A reduction of windows, or of whole channels, for one dtype."""

    def __init__(self, kind, windows, dtype, **others):
        self.kind, self.dtype, self.windows = kind, dtype, dict(windows)
        self.operator, more, _ = (WHOLE if kind in WHOLE else KINDS)[kind]
        self.more = more | others | ({"dtype": dtype} if "dtype" in more else {})
        self.further = ()
        if self.operator.startswith("QLinear"):
            self.windows.pop("dilations", None)  # all are 1
            self.further = SCALES[0], dtype.type(SCALES[1]), SCALES[2], dtype.type(SCALES[3])
        self.made = {}

    def operator_for(self, ndim, last):
        """The operator for a layout."""
        if (ndim, last) not in self.made:
            axes = tuple(range(1, ndim - 1) if last else range(2, ndim))
            layout = {"axes": axes} if self.kind in ALONG_AXES else {"channels_last": last}
            self.made[ndim, last] = getattr(onnxpool, self.operator)(**self.windows, **self.more, **layout)
        return self.made[ndim, last]

    def __call__(self, x, last=False, **options):
        """The results with channels first, of an array in a layout."""
        y = self.operator_for(x.ndim, last)(x, *self.further, **options)
        return [to_first(one, last) for one in (y if isinstance(y, tuple) else (y,))]

    def in_parts(self, x, last):
        """The results of parts, as plans divide them."""
        y = tiled(self.operator_for(x.ndim, last).plan(x.shape, x.dtype), x, *self.further)
        return [to_first(one, last) for one in (y if isinstance(y, tuple) else (y,))]

    def truths(self, x):
        """What the oracle says about each result, channels first."""
        if self.kind in ALONG_AXES:
            return expect_along_axes(self.operator, x, self.windows, tuple(range(2, x.ndim)),
                                     dtype=self.more.get("dtype"), skipna="skipna" in self.more)
        attributes = self.windows | {name: value for name, value in self.more.items() if name != "return_indices"}
        return cases.truths(self.operator, (x, *self.further), attributes, None, "return_indices" in self.more,
                            channels_last=False)


def moved(indices, shape, size):
    """Indices within planes, as indices in an array of planes with this shape."""
    offsets = np.arange(math.prod(shape)).reshape(*shape, *[1] * (indices.ndim - 2)) * size
    return np.where(indices < 0, -1, indices + offsets)


def alone(call, planes):
    """The results of one call per plane, compared with the oracle. Indices count within the plane."""
    columns = zip(*[call(plane[None, None]) for plane in planes], strict=True)
    y, *indices = [np.concatenate(column, axis=1) for column in columns]
    found = y, *(moved(one, one.shape[:2], planes[0].size) for one in indices)
    for one, truth in zip(found, call.truths(planes[None]), strict=True):
        assert judge(truth, one).problem is None, (call.kind, call.dtype, judge(truth, one).problem)
    return [one[0] for one in (y, *indices)]


def together(call, planes, single, images, channels, memory=None):
    """Compare the results of planes in one array, in any memory, with the results of each plane alone."""
    for turn, chosen in enumerate((PLAIN, ODD)):
        order = np.resize([plane % len(planes) for plane in chosen], (images, channels))
        x, (expected, *rest) = planes[order], [y[order] for y in single]
        wanted = expected, *(moved(one, order.shape, planes[0].size) for one in rest)
        for last in (False, True):
            given = to_last(x, last)
            ways = [*views(given, memory)]
            ways = ways if memory else ways[turn::2]
            results = [(name, call(view, last, num_threads=1 + number % 3))
                       for number, (name, view) in enumerate(ways)]
            if memory is None:
                results.append(("in parts", call.in_parts(given, last)))
                outs = [gaps(to_last(one, last).shape, one.dtype) for one in wanted]
                call(given, last, out=tuple(outs) if rest else outs[0])
                results.append(("into a result with gaps", [to_first(out, last) for out in outs]))
            for name, found in results:
                for y, own in zip(found, wanted, strict=True):
                    assert same_bits(y, own), (call.kind, call.dtype, name, "last" if last else "first", chosen)


def gaps(shape, dtype):
    """An array whose elements are not adjacent, with noise in them and between them."""
    return np.full((*shape, 2), 99, dtype)[..., 0]


@pytest.fixture(autouse=True)
def small_calls_are_shared(monkeypatch):
    """Several threads take part in small calls too, and no loop writes beyond its scratch memory."""
    monkeypatch.setattr(threads, "SERIAL_BYTES", 0)
    kernels.pools.watch_scratch(FENCE)
    noise = [np.full(size, 7e37) for size in (10, 100, 1000, 10_000, 100_000)]  # in memory that calls reuse
    del noise
    yield
    assert kernels.pools.watch_scratch(0) == 0


DILATED = {name for name, row in GEOMETRIES.items() if max(row.windows["dilations"]) > 1}
CASES = [(name, kind) for name in GEOMETRIES for kind in KINDS if kind != "quantised mean" or name not in DILATED]


def compare(name, kind, dtypes):
    """Compare a geometry. Norms have orders 1 to 3, and indices have either storage order."""
    row, number = GEOMETRIES[name], [*GEOMETRIES].index(name)
    turn = {"norm": {"p": number % 3 + 1}, "max with indices": {"storage_order": number % 2}}.get(kind, {})
    for dtype in dtypes:
        call = Call(kind, row.windows, dtype, **turn)
        planes = planes_of(row.sizes, dtype, row.distinct)
        together(call, planes, alone(call, planes), row.images, row.channels)


@pytest.mark.parametrize(("name", "kind"), [
    pytest.param(*case, marks=[pytest.mark.smoke] * (number % 6 == 0)) for number, case in enumerate(CASES)])
def test_geometry(name, kind):
    """Each geometry is right for each dtype. Dtypes take turns in pairs."""
    dtypes, turn = KINDS[kind][2], [*GEOMETRIES].index(name) + [*KINDS].index(kind)
    compare(name, kind, [dtypes[turn % len(dtypes)], dtypes[(turn + 1 + len(dtypes) // 2) % len(dtypes)]])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_geometry_of_every_dtype(name, kind):
    compare(name, kind, KINDS[kind][2])


NEAR = "contiguous", "at the end of memory"
LENGTHS = (*range(1, 70), 95, 96, 97, 127, 128, 129, 255, 257)
LINES = [  # kernel, strides and pads of windows over rows
    ((3, 3), (1, 1), (1, 1, 1, 1)), ((2, 2), (2, 2), (0, 0, 0, 1)), ((3, 3), (2, 2), (1, 1, 1, 1)),
    ((1, 3), (1, 1), (0, 1, 0, 2)), ((2, 3), (1, 3), (0, 2, 0, 0)), ((3, 1), (1, 1), (1, 0, 0, 0)),
    ((1, 9), (1, 1), (0, 4, 0, 4)),
]
EACH = [(kind, dtype) for kind in ("max", "max with indices", "mean", "mean without NaNs", "norm", "mean of integers",
                                           "quantised mean")
        for dtype in KINDS[kind][2]]


@pytest.mark.parametrize(("kind", "dtype"), EACH, ids=str)
def test_rows_of_every_length(kind, dtype):
    """Rows of every length are right, with special elements in every lane, also after the last full vector."""
    for number, length in enumerate(LENGTHS):
        kernel, strides, pads = LINES[number % len(LINES)]
        row = geometry(5, (3, length), kernel, strides, pads if length > 2 else (2, 9) * 2)
        call, planes = Call(kind, row.windows, dtype), planes_of(row.sizes, dtype, PLANES)
        together(call, planes, alone(call, planes), 1, 5, NEAR)


@pytest.mark.parametrize(("kind", "dtype"), EACH, ids=str)
def test_every_number_of_channels(kind, dtype):
    """Any number of channels is right, with special elements of each channel in one of the images."""
    for number, (kernel, strides, pads) in enumerate((*LINES, ((4, 4), (4, 4), 0), ((5, 5), (1, 1), 2))):
        row = geometry(0, (5, 8), kernel, strides, pads)
        call, planes = Call(kind, row.windows, dtype), planes_of(row.sizes, dtype, PLANES)
        single = alone(call, planes)
        for channels in (*range(1 + number, 70, len(LINES)), *(127, 128, 129, 200, 257, 1100)[number % 6:][:2]):
            together(call, planes, single, 5, channels, NEAR)


FAR_WINDOWS = [  # sizes, kernel, strides, pads: of about 600 elements
    ((600,), 2, 2, 0), ((600,), 6, 6, 3), ((600,), 4, 3, (1, 2)), ((600,), 7, 2, 3), ((24, 25), 2, 2, 0),
    ((24, 25), 3, 2, 1), ((24, 25), (3, 2), 1, (1, 0, 1, 1)), ((24, 25), (4, 5), (4, 5), (0, 0, 3, 0)),
    ((4, 6, 25), 2, 2, (0, 1, 0, 0, 0, 1)), ((4, 6, 25), (4, 3, 1), (2, 1, 1), (1, 1, 0, 1, 1, 0)), ((9, 64), 2, 2, 0),
    ((24, 25), (9, 11), 1, 4), ((24, 25), (10, 3), 2, (3, 1, 2, 1)),
]


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.name in ("uint8", "bfloat16", "float32")],
                         ids=str)
@pytest.mark.parametrize("number", range(len(FAR_WINDOWS)))
def test_arrays_larger_than_caches(number, dtype):
    """Arrays larger than caches, for which loops prefetch, are right up to an inaccessible page. Few and many channels
    take turns."""
    sizes, *windows = FAR_WINDOWS[number]
    row = geometry(0, sizes, *windows)
    for kind in ("max",) if dtype == np.uint8 else ("max", "mean"):
        call, planes = Call(kind, row.windows, dtype), planes_of(sizes, dtype, 4)
        size, channels = ((FAR, 320), (FARTHEST, 16), (FARTHEST, 72))[(number + len(kind)) % 3]
        images = size // (planes[0].nbytes * channels) + 1
        together(call, planes, alone(call, planes), images, channels, NEAR[1:])


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize(("kernel", "stride"), [(4, 4), (25, 5), (3, 1), (7, 2), (2, 3)])
def test_long_rows(kernel, stride, dtype):
    """Long rows are right, although they are processed in pieces and by several threads."""
    row = geometry(3, (40_001 if stride > 1 else 20_001,), kernel, stride, stride if stride < kernel else 0)
    for kind in ("max",) if dtype == np.uint8 else ("max", "mean"):
        call, planes = Call(kind, row.windows, dtype), planes_of(row.sizes, dtype, 2)
        together(call, planes, alone(call, planes), 1, 3, (*NEAR, "every second element"))


@pytest.mark.parametrize("kernel", [9, 12, 17, 41])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16"])
def test_exact_sums_of_wide_images(dtype, kernel):
    """Sums from which old rows are subtracted are exact, although rows are processed in pieces and by several
    threads."""
    limits = np.iinfo(dtype)
    x = np.random.default_rng(kernel).integers(limits.min, limits.max, (70, 5003), dtype, endpoint=True)
    for stride, pad in ((1, 0), (1, kernel // 2), (3, 2)):
        places = np.pad(x.astype(np.int64), ((pad + 1, pad), (pad + 1, pad))).cumsum(0).cumsum(1)
        sums = (places[kernel:] - places[:-kernel])[::stride]
        sums = (sums[:, kernel:] - sums[:, :-kernel])[:, ::stride]
        for num_threads in (1, 2):
            y = onnxpool.average_pool(x, kernel, strides=stride, pads=(pad,) * 4, axes=(0, 1), dtype=dtype,
                                      count_include_pad=1, num_threads=num_threads)
            assert np.array_equal(y, np.rint(sums / kernel**2))


WHOLE = {
    "whole max": ("GlobalMaxPool", {}, FLOATS),
    "whole mean": ("GlobalAveragePool", {}, FLOATS),
    "whole norm": ("GlobalLpPool", {"p": 2}, FLOATS),
    "whole quantised mean": ("QLinearGlobalAveragePool", {}, BYTES),
}
CHANNELS = {  # images, channels and sizes
    "few places": (3, 70, (2, 3)),
    "axes of one element": (2, 40, (5, 1, 1)),
    "a line": (2, 5, (301,)),
    "small planes": (3, 130, (7, 7)),
    "planes of many rows": (2, 3, (65, 33)),
    "more channels than are processed at a time": (1, 2048, (9, 9)),
    "a last tile of few channels": (1, 13443, (25,)),
    "sums beyond 16 bits": (2, 67, (600,)),
    "segments that threads share": (1, 300, (2200,)),
    "one plane that threads share": (1, 2, (50_000,)),
    "rows beyond scratch memory": (1, 20, (50_000,)),
    "a volume": (2, 33, (17, 3, 5)),
}


def reduced(call, planes, images, channels, memory=None):
    """Compare whole channels with the oracle, in any memory. Equal planes of an array have equal bits. Layouts need
    not, as sums follow the order of memory."""
    (truth,) = call.truths(planes[None])
    for chosen in (PLAIN, ODD):
        order = np.resize([plane % len(planes) for plane in chosen], (images, channels))
        x, right = planes[order], []  # results that the oracle has seen
        met, places, which = np.unique(order, return_index=True, return_inverse=True)
        own = replace(truth, shape=(1, len(met), *truth.shape[2:]), cells=[truth.cells[plane] for plane in met])
        for last in (False, True):
            for number, (name, view) in enumerate(views(to_last(x, last), memory)):
                (y,) = call(view, last, num_threads=1 + number % 3)
                first = y.reshape(order.size, *y.shape[2:])[places]
                if not any(same_bits(first, other) for other in right):
                    verdict = judge(own, first[None])
                    assert verdict.problem is None, (call.kind, call.dtype, name, last, verdict.problem)
                    right.append(first)
                assert same_bits(y, first[which].reshape(y.shape)), (call.kind, call.dtype, name, last)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("name", CHANNELS)
def test_whole_channels(name, kind):
    """Whole channels of every dtype are right, within the error of the documented order of sums."""
    images, channels, sizes = CHANNELS[name]
    for dtype in WHOLE[kind][2]:
        planes = planes_of(sizes, dtype, PLANES if math.prod(sizes) < 3000 else 2)
        reduced(Call(kind, {}, dtype), planes, images, channels)


@pytest.mark.parametrize("kind", WHOLE)
def test_every_number_of_places_and_channels(kind):
    """Any number of places and channels is right, whether they fill registers or leave a few lanes."""
    for dtype in WHOLE[kind][2]:
        call = Call(kind, {}, dtype)
        for number, places in enumerate((*range(1, 36), 47, 48, 49, 63, 64, 65, 127, 128, 129, 257)):
            planes = planes_of((places,), dtype, PLANES)
            for channels in (1 + number, (64, 65, 80, 95, 257, 528, 1100)[number % 7]):
                reduced(call, planes, 2, channels, ("contiguous", "unaligned", "every second element"))
