"""MaxRoiPool and RoiAlign: values, what is refused, and comparison with onnxruntime."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from calls import REGIONS, THREADS, SeededChoices
from calls_family import draw_call
from onnxpool_conformance.oracle import DTYPES, GeometryError
from onnxpool_conformance.oracle_regions import expect_max_roi_pool, expect_roi_align
from peer import REFUSALS, ask
from support import FLOAT_NAMES, LAYOUTS, assert_same_bits, to_first, to_last
from tolerance import judge
from truths import truths

import onnxpool
from onnxpool import PoolError, PoolTypeError

OLDER = tuple(name for name in FLOAT_NAMES if name != "bfloat16")
NAN, INF = math.nan, math.inf
CANARY = 77
PEER_SEEDS = [1000, pytest.param(4000, marks=pytest.mark.slow)]
NEWEST_PEER_OPSET = 21
TOLERANCES = {"float32": 1e-6, "float64": 1e-12, "float16": 2e-3, "bfloat16": 1e-2}
MOST = 2**31


class Case(NamedTuple):
    """One image of one channel, one region x1, y1, x2, y2, and its bins at some opset."""

    name: str
    x: list
    roi: tuple
    attributes: dict
    expected: list
    opset: int | None = None
    dtypes: tuple = FLOAT_NAMES


COUNT4 = np.arange(1, 17).reshape(4, 4).tolist()
COUNT8 = np.arange(64).reshape(8, 8).tolist()
SPOT = np.eye(1, 9, 4).reshape(3, 3).tolist()  # a one in the middle
TWO = {"pooled_shape": (2, 2)}
WIDE = ("float32", "float64", "bfloat16")

MAXIMA = [
    Case("quarters", COUNT4, (0, 0, 3, 3), TWO, [[6, 8], [14, 16]]),
    Case("one bin", COUNT4, (1, 1, 2, 2), {"pooled_shape": (1, 1)}, [[11]]),
    Case("bins overlap", COUNT4, (0, 0, 2, 2), TWO, [[6, 7], [10, 11]]),
    Case("more bins than pixels", COUNT4, (1, 2, 1, 2), {"pooled_shape": (2, 3)}, [[10] * 3] * 2),
    Case("scale", COUNT8, (0, 0, 14, 14), {**TWO, "spatial_scale": 0.5}, [[27, 31], [59, 63]]),
    Case("halves go away from zero", COUNT8, (2.5, 0.5, 2.5, 0.5), {"pooled_shape": (1, 1)}, [[8 + 3]]),
    Case("below a half", COUNT8, (2.25, 0.25, 2.25, 0.25), {"pooled_shape": (1, 1)}, [[2]]),
    Case("negative halves go away from zero", COUNT4, (-1.5, -1.5, 0, 0), {"pooled_shape": (3, 3)},
         [[0, 0, 0], [0, 0, 0], [0, 0, 1]]),
    Case("far", COUNT8, (-1e9, -1e9, 1e9, 1e9), {"pooled_shape": (1, 1)}, [[63]], None, WIDE),
    Case("far, more on one side", COUNT8, (-6e8, 0, 13e8, 0), {"pooled_shape": (1, 2)}, [[7, 0]], None, WIDE),
    Case("far and outside", COUNT8, (1e9, 1e9, 1e9, 1e9), TWO, [[0, 0], [0, 0]], None, WIDE),
    Case("inverted is one pixel", COUNT8, (5, 3, 2, 1), {"pooled_shape": (1, 1)}, [[3 * 8 + 5]]),
    Case("outside is 0", COUNT8, (20, 20, 25, 25), TWO, [[0, 0], [0, 0]]),
    Case("outside is 0 before the begin", COUNT4, (-9, -9, -7, -7), TWO, [[0, 0], [0, 0]]),
    Case("over the edge", COUNT4, (2, 2, 5, 5), TWO, [[16, 0], [0, 0]]),
    Case("negative values", [[-5, -6], [-7, -8]], (0, 0, 1, 1), {"pooled_shape": (1, 1)}, [[-5]]),
    Case("-inf stays", [[-INF] * 2] * 2, (0, 0, 1, 1), {"pooled_shape": (1, 1)}, [[-INF]]),
    Case("NaN wins", [[1, 2], [NAN, 3]], (0, 0, 1, 1), {"pooled_shape": (1, 2)}, [[NAN, 3]]),
    *(Case(f"NaN first {k}", [[NAN if i == k else 9 - i for i in range(5)]], (0, 0, 4, 0), {"pooled_shape": (1, 1)},
           [[NAN]]) for k in range(5)),
    Case("zeros of both signs", [[-1.0, -0.0, 0.0, -0.0]], (0, 0, 3, 0), {"pooled_shape": (1, 1)}, [[0.0]]),
]  # fmt: skip

PAIR = {"output_height": 2, "output_width": 2}
OUTPUT_HALF = {"coordinate_transformation_mode": "output_half_pixel"}
HALF = {"coordinate_transformation_mode": "half_pixel"}
ONE = {"sampling_ratio": 1}


def point(x, y):
    """A region whose only sample, in half_pixel mode, is at these coordinates."""
    return (x, y, x + 1, y + 1)


ALIGNED = [
    Case("opset 10 is output_half_pixel", COUNT4, (0, 0, 3, 3), PAIR, [[4.75, 6.25], [10.75, 12.25]], 10, OLDER),
    Case("opset 15 is output_half_pixel", COUNT4, (0, 0, 3, 3), PAIR, [[4.75, 6.25], [10.75, 12.25]], 15, OLDER),
    Case("output_half_pixel", COUNT4, (0, 0, 3, 3), {**PAIR, **OUTPUT_HALF}, [[4.75, 6.25], [10.75, 12.25]]),
    Case("half_pixel", COUNT4, (0, 0, 3, 3), {**PAIR, **HALF}, [[2.5625, 4], [8.3125, 9.75]], 16, OLDER),
    Case("half_pixel is the default", COUNT4, (0, 0, 3, 3), PAIR, [[2.5625, 4], [8.3125, 9.75]]),
    Case("defaults are one bin", COUNT4, (1, 1, 2, 2), {}, [[6]]),
    Case("scale", COUNT4, (2, 2, 4, 4), {"spatial_scale": 0.5}, [[6]]),
    Case("on an element", COUNT4, point(1, 1), ONE, [[6]]),
    Case("between elements", COUNT4, point(1.5, 1), ONE, [[6.5]]),
    Case("clamped before the begin", COUNT4, point(-0.5, -0.5), ONE, [[1]]),
    Case("at -1 still counts", COUNT4, point(-1, -1), ONE, [[1]]),
    Case("below -1 is 0", COUNT4, point(-1.25, 1), ONE, [[0]]),
    Case("clamped after the end", COUNT4, point(3.75, 3.75), ONE, [[16]]),
    Case("at the size still counts", COUNT4, point(4, 4), ONE, [[16]]),
    Case("above the size is 0", COUNT4, point(4.25, 1), ONE, [[0]]),
    Case("samples outside count in the mean", COUNT4, (-3.5, 1, 2.5, 2), {"sampling_ratio": 2}, [[(4.5 + 6.5) / 4]]),
    Case("maximum of weighted elements D16", COUNT4, point(1.5, 1.5), {**ONE, "mode": "max"}, [[11 * 0.25]]),
    Case("maximum on an element", COUNT4, point(1, 1), {**ONE, "mode": "max"}, [[6]]),
    Case("maximum outside is 0", [[-5] * 2] * 2, point(-4, -4), {**ONE, "mode": "max"}, [[0]]),
    Case("maximum of negative values", [[-5] * 2] * 2, point(0.5, 0.5), {**ONE, "mode": "max"}, [[-1.25]]),
    Case("empty region", COUNT4, (1, 1, 1, 1), {}, [[0]]),
    Case("empty region, maximum", COUNT4, (1, 1, 1, 1), {"mode": "max"}, [[0]]),
    Case("empty region with samples", COUNT4, (2, 2, 2, 2), {"sampling_ratio": 2}, [[8.5]]),
    Case("small region grows to 1", COUNT4, (1, 1, 1, 1), OUTPUT_HALF, [[8.5]]),
    Case("inverted region", COUNT4, (3, 3, 1, 1), {}, [[0]]),
    Case("inverted region with samples", COUNT4, (3, 3, 1, 1), ONE, [[8.5]]),
    Case("far away", COUNT4, (1e4, 1e4, 2e4, 2e4), {**PAIR, "sampling_ratio": 2}, [[0, 0], [0, 0]]),
    Case("far apart", COUNT4, (-3e4, -3e4, 3e4, 3e4), {**PAIR, "sampling_ratio": 2}, [[0, 0], [0, 0]]),
    *(Case(f"huge {sign}", COUNT4, (sign * 1e30, -1e30, 1e30, 1e30), {**PAIR, "sampling_ratio": 2},
           [[0, 0], [0, 0]], None, WIDE) for sign in (1, -1)),
    *(Case(f"far around the middle, {n} samples", COUNT4, (-big, -big, big, big),
           {"sampling_ratio": n, **OUTPUT_HALF}, [[1 / n**2]], None, (dtype,))
      for dtype, big in (("float32", 1.5e38), ("bfloat16", 1.5e38), ("float64", 8e307)) for n in (1, 3, 5)),
    Case("inf", [[INF, INF], [INF, INF]], point(0.25, 0.25), ONE, [[INF]]),
    Case("zero weight times inf", [[1, INF], [1, 1]], point(0, 0), ONE, [[NAN]]),
    Case("zero weight times inf at the end", [[INF]], point(0, 0), ONE, [[NAN]]),
    Case("inf outside", [[INF]], point(-3, 0), ONE, [[0]]),
    Case("NaN", [[1, NAN], [1, 1]], point(0.25, 0.25), ONE, [[NAN]]),
    *(Case(f"NaN in a maximum {k}", np.insert(np.ones(3), k, NAN).reshape(2, 2).tolist(), point(0.25, 0.25),
           {**ONE, "mode": "max"}, [[NAN]]) for k in range(4)),
    Case("a spot", SPOT, (0.5, 0.5, 2.5, 2.5), {**PAIR, **ONE}, [[0.25] * 2] * 2),
    Case("large values", [[3e38] * 2] * 2, (0.5, 0.5, 1.5, 1.5), {"sampling_ratio": 3}, [[3e38]], None,
         ("float32", "float64", "bfloat16")),
]  # fmt: skip


def placed(case, dtype, channels_last, channels=1):
    """The image of a case, as a batch in a layout."""
    x = np.tile(np.array(case.x, np.float64), (1, channels, 1, 1)).astype(DTYPES[dtype])
    return to_last(x, channels_last)


def first(y, channels_last):
    """A result with channels first, in float64."""
    return to_first(y, channels_last).astype(np.float64)


@pytest.mark.smoke
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", MAXIMA, ids=lambda case: case.name)
def test_max_roi_pool_value(case, channels_last):
    """The maxima of bins are as decided, for one and many channels, and the oracle agrees."""
    for dtype in case.dtypes:
        for channels in (1, 3, 19):
            x = placed(case, dtype, channels_last, channels)
            rois = np.array([[0, *case.roi]]).astype(x.dtype)
            for opset in (1, 22, None) if dtype != "bfloat16" else (22, None):
                y = onnxpool.max_roi_pool(x, rois, **case.attributes, opset=opset, channels_last=channels_last)
                assert y.dtype == x.dtype
                wanted = np.tile(np.array(case.expected, np.float64), (1, channels, 1, 1))
                np.testing.assert_array_equal(first(y, channels_last), wanted, strict=True)
        truth = expect_max_roi_pool((x, rois), case.attributes, channels_last=channels_last)
        assert judge(truth, y).problem is None


@pytest.mark.smoke
@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", ALIGNED, ids=lambda case: case.name)
def test_roi_align_value(case, channels_last):
    """The interpolated values are as decided, for one and many channels, and the oracle agrees."""
    for dtype in case.dtypes:
        for channels in (1, 3, 19):
            x = placed(case, dtype, channels_last, channels)
            arguments = x, np.array([case.roi]).astype(x.dtype), np.zeros(1, np.int64)
            y = onnxpool.roi_align(*arguments, **case.attributes, opset=case.opset, channels_last=channels_last)
            assert y.dtype == x.dtype
            wanted = np.tile(np.array(case.expected, np.float64), (1, channels, 1, 1))
            np.testing.assert_allclose(first(y, channels_last), wanted, rtol=TOLERANCES[dtype], strict=True)
        truth = expect_roi_align(arguments, case.attributes, case.opset, channels_last=channels_last)
        assert judge(truth, y).problem is None


def board(dtype=np.float32, shape=(1, 1, 8, 8)):
    """Counts below 97."""
    return (np.arange(math.prod(shape)) % 97).reshape(shape).astype(dtype)


def region(*row, dtype=np.float32):
    """One region, as an array."""
    return np.array([row], dtype)


R_ROI = region(0, 0, 0, 3, 3)
L_ROI, L_PLACE = region(0, 0, 3, 3), np.zeros(1, np.int64)
EMPTY = np.ones((1, 1, 0, 8), np.float32)
BAD_MAX = {
    **{f"batch {value}": (PoolError, board(), region(value, 0, 0, 3, 3), {})
       for value in (1, -1, NAN, 2.0**31, -0.5, 0.9, INF, 1e30)},
    **{f"coordinate {place} {value}": (PoolError, board(), region(*np.insert([0.0] * 4, place, value)), {})
       for place in (1, 4) for value in (NAN, INF, -INF)},
    **{f"pooled_shape {value}": (PoolError, board(), R_ROI, {"pooled_shape": value})
       for value in (0, -1, (MOST, MOST), (2**62, 1), (2,), (2, 2, 2), (), 2**70)},
    **{f"pooled_shape {value!r}": (PoolTypeError, board(), R_ROI, {"pooled_shape": value})
       for value in (2.0, "2", True, [2, None], [[2, 2]])},
    **{f"spatial_scale {value}": (PoolError, board(), R_ROI, {"spatial_scale": value})
       for value in (0.0, -1.0, NAN, INF, -INF, 1e39)},
    **{f"beyond 2^31 {roi}": (PoolError, board(), region(0, *roi), {})
       for roi in ((-2e9, 0, 2e9, 3), (0, 3e9, 3, 3e9), (-1e30, 0, 3e30, 3), (0, 0, 3, 3e38))},
    "beyond 2^31 by the scale": (PoolError, board(), region(0, 0, 0, 300, 3), {"spatial_scale": 1e7}),
    "rois of 4": (PoolError, board(), region(0, 0, 3, 3), {}),
    "rois of rank 1": (PoolError, board(), R_ROI[0], {}),
    "rois of rank 3": (PoolError, board(), R_ROI[None], {}),
    "rois float64": (PoolTypeError, board(), R_ROI.astype(np.float64), {}),
    "rois int64": (PoolTypeError, board(), R_ROI.astype(np.int64), {}),
    "one spatial axis": (PoolError, board(shape=(1, 1, 8)), R_ROI, {}),
    "three spatial axes": (PoolError, board(shape=(1, 1, 8, 8, 8)), R_ROI, {}),
    "empty spatial axis": (PoolError, EMPTY, R_ROI, {}),
    "no image": (PoolError, board(shape=(0, 1, 8, 8)), R_ROI, {}),
    "int8": (PoolTypeError, board(np.int8), R_ROI, {}),
}  # fmt: skip
BAD_ALIGN = {
    **{f"batch {value}": (PoolError, board(), L_ROI, np.array([value]), {}) for value in (1, -1, MOST, -(2**63))},
    "two batch indices": (PoolError, board(), L_ROI, np.zeros(2, np.int64), {}),
    "no batch indices": (PoolError, board(), L_ROI, np.zeros(0, np.int64), {}),
    "batch indices of rank 2": (PoolError, board(), L_ROI, np.zeros((1, 1), np.int64), {}),
    **{f"batch indices {name}": (PoolTypeError, board(), L_ROI, np.zeros(1, name), {})
       for name in ("int32", "uint64", "float32", "bool")},
    **{f"coordinate {place} {value}": (PoolError, board(), region(*np.insert([0.0] * 3, place, value)), L_PLACE, {})
       for place in (0, 3) for value in (NAN, INF, -INF)},
    **{f"{size} with {ratio} samples": (PoolError, board(), region(0, 0, size, size), L_PLACE,
                                            {"sampling_ratio": ratio})
       for size, ratio in ((1e5, 0), (1e9, 0), (1e30, 0), (3, 100_000), (3, MOST - 1), (3, 2**62), (3, 2**63 - 1))},
    **{f"beyond {dtype} {roi} {attributes}": (
        PoolError, board(DTYPES[dtype]), region(*roi, dtype=DTYPES[dtype]), L_PLACE,
        {"sampling_ratio": 2, **attributes})
       for dtype, roi, attributes in (
           ("float32", (-3e38, 0, 3e38, 1), {}), ("float32", (0, 3e38, 1, -3e38), {"mode": "max"}),
           ("float32", (0, 0, 3e38, 3e38), {"spatial_scale": 10.0}), ("bfloat16", (-3e38, -3e38, 3e38, 3e38), {}),
           ("float32", (3e38, 0, 3e38, 1), {"spatial_scale": 2.0, **OUTPUT_HALF}),
           ("float16", (0, 0, 6e4, 1), {"spatial_scale": 1e35}), ("float64", (-1e308, 0, 1e308, 1), {}),
           ("float64", (0, 0, 1e308, 1), {"spatial_scale": 10.0}))},
    "sampling_ratio -1": (PoolError, board(), L_ROI, L_PLACE, {"sampling_ratio": -1}),
    **{f"{name} {value}": (PoolError, board(), L_ROI, L_PLACE, {name: value, "sampling_ratio": 1})
       for name in ("output_height", "output_width") for value in (0, -1, MOST, 2**62, 2**70)},
    **{f"{name} {value!r}": (PoolTypeError, board(), L_ROI, L_PLACE, {name: value})
       for name in ("output_height", "output_width", "sampling_ratio") for value in (2.0, "2", True, [2])},
    **{f"mode {value}": (PoolError, board(), L_ROI, L_PLACE, {"mode": value}) for value in ("bogus", "AVG", "")},
    "unknown coordinates": (PoolError, board(), L_ROI, L_PLACE, {"coordinate_transformation_mode": "bogus"}),
    "coordinates at opset 10": (PoolError, board(), L_ROI, L_PLACE, {**HALF, "opset": 10}),
    **{f"spatial_scale {value}": (PoolError, board(), L_ROI, L_PLACE, {"spatial_scale": value})
       for value in (NAN, INF, -INF)},
    "empty spatial axis": (PoolError, EMPTY, L_ROI, L_PLACE, {}),
    "rois of 5": (PoolError, board(), R_ROI, L_PLACE, {}),
    "rois of rank 1": (PoolError, board(), L_ROI[0], L_PLACE, {}),
    "rois float64": (PoolTypeError, board(), L_ROI.astype(np.float64), L_PLACE, {}),
    "two spatial axes are needed": (PoolError, board(shape=(1, 1, 8)), L_ROI, L_PLACE, {}),
    "uint8": (PoolTypeError, board(np.uint8), L_ROI, L_PLACE, {}),
    "opset 9": (PoolError, board(), L_ROI, L_PLACE, {"opset": 9}),
    "bfloat16 at opset 16": (PoolTypeError, board(DTYPES["bfloat16"]), L_ROI.astype(DTYPES["bfloat16"]), L_PLACE,
                             {"opset": 16}),
}  # fmt: skip


def forms(x, rois, channels_last):
    """Images and regions in a layout, and in every dtype that represents a case of float32, unless the case is about
    dtypes.

    A number beyond the range of a dtype becomes inf, which is refused as well.
    """
    x = np.moveaxis(x, 1, -1) if channels_last else x
    with np.errstate(over="ignore"):
        return [(x.astype(DTYPES[name]), rois.astype(DTYPES[name]))
                for name in FLOAT_NAMES] if x.dtype == rois.dtype == np.float32 else [(x, rois)]


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("error", "x", "rois", "attributes"), BAD_MAX.values(), ids=BAD_MAX)
def test_max_roi_pool_refused(error, x, rois, attributes, channels_last):
    """Calls that MaxRoiPool cannot compute are refused, and `out` is unchanged."""
    given = {"pooled_shape": (2, 2), **attributes, "channels_last": channels_last}
    for images, regions in forms(x, rois, channels_last):
        out = to_last(np.full((1, 1, 2, 2), CANARY, images.dtype), channels_last)
        with pytest.raises(error):
            onnxpool.max_roi_pool(images, regions, **given, out=out)
        with pytest.raises(error):
            onnxpool.MaxRoiPool(**given)(images, regions)
        assert (out == CANARY).all()


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", BAD_ALIGN)
def test_roi_align_refused(name, channels_last):
    """Calls that RoiAlign cannot compute are refused, and `out` is unchanged."""
    error, x, rois, places, attributes = BAD_ALIGN[name]
    given = {**attributes, "channels_last": channels_last}
    own = name.startswith("beyond float32") or attributes.get("opset") == 9  # the case is about one dtype's bounds
    for images, regions in forms(x, rois, channels_last):
        if own and images.dtype != np.float32 and x.dtype == np.float32:
            continue
        out = np.full((1, 1, 1, 1), CANARY, images.dtype)
        with pytest.raises(error):
            onnxpool.roi_align(images, regions, places, **given, out=out)
        with pytest.raises(error):
            onnxpool.RoiAlign(**given)(images, regions, places)
        assert (out == CANARY).all()


def test_one_bad_region_among_many():
    """A bad region after many good ones is found before anything is written, and the error names the region."""
    rois = np.tile(R_ROI, (5000, 1))
    rois[4321, 0] = 7
    out = np.full((5000, 1, 2, 2), CANARY, np.float32)
    with pytest.raises(PoolError, match="4321"):
        onnxpool.max_roi_pool(board(), rois, (2, 2), out=out)
    places = np.zeros(5000, np.int64)
    places[4321] = 7
    with pytest.raises(PoolError, match="4321"):
        onnxpool.roi_align(board(), rois[:, 1:], places, output_height=2, output_width=2, out=out)
    assert (out == CANARY).all()


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
def test_no_regions(channels_last):
    """No regions, or no channels, give an empty result."""
    x = np.ones((2, 7, 9, 3) if channels_last else (2, 3, 7, 9), np.float32)
    tail = (2, 5, 3) if channels_last else (3, 2, 5)
    options = {"channels_last": channels_last}
    assert onnxpool.max_roi_pool(x, np.ones((0, 5), np.float32), (2, 5), **options).shape == (0, *tail)
    rois, places = np.ones((0, 4), np.float32), np.ones(0, np.int64)
    align = {"output_height": 2, "output_width": 5, **options}
    assert onnxpool.roi_align(x, rois, places, **align).shape == (0, *tail)
    x = x[..., :0] if channels_last else x[:, :0]
    empty = (1, 2, 5, 0) if channels_last else (1, 0, 2, 5)
    assert onnxpool.max_roi_pool(x, R_ROI, (2, 5), **options).shape == empty
    assert onnxpool.roi_align(x, L_ROI, L_PLACE, **align).shape == empty


@pytest.mark.parametrize("operator", REGIONS)
def test_regions_are_independent(operator):
    """Every region gives the same bits on its own, with every number of threads and in both layouts."""
    generator = np.random.default_rng(8)
    x = generator.standard_normal((3, 19, 40, 50)).astype(np.float32)
    count = 400  # enough for several threads
    corners = generator.uniform(-5, 55, (count, 4)).astype(np.float32)
    places = generator.integers(0, 3, count)

    def run(which, images=x, **options):
        if operator == "MaxRoiPool":
            rois = np.concatenate([places[which, None].astype(np.float32), corners[which]], 1)
            return onnxpool.max_roi_pool(images, rois, (7, 5), **options)
        return onnxpool.roi_align(images, corners[which], places[which], output_height=7, output_width=5, **options)

    everything = run(slice(None))
    for threads in THREADS:
        assert_same_bits(run(slice(None), num_threads=threads), everything)
    assert everything.nbytes > 2**20
    for k in range(0, count, 9):
        assert_same_bits(run(slice(k, k + 1)), everything[k : k + 1])
    last = run(slice(None), to_last(x), channels_last=True)
    assert_same_bits(np.ascontiguousarray(np.moveaxis(last, -1, 1)), everything)


def test_overlapping_output():
    """A result in the memory of an input is right."""
    x = np.random.default_rng(9).standard_normal((2, 4, 3, 5)).astype(np.float32)
    rois = np.array([[0, 0, 0, 2, 2], [1, 1, 1, 4, 3]], np.float32)
    wanted = onnxpool.max_roi_pool(x, rois, (3, 5))
    memory = x.copy()
    assert_same_bits(onnxpool.max_roi_pool(memory, rois, (3, 5), out=memory), wanted)
    places = np.array([0, 1])
    wanted = onnxpool.roi_align(x, rois[:, 1:], places, output_height=3, output_width=5)
    memory = x.copy()
    pooled = onnxpool.roi_align(memory, rois[:, 1:], places, output_height=3, output_width=5, out=memory)
    assert_same_bits(pooled, wanted)


@pytest.mark.parametrize("seeds", PEER_SEEDS)
@pytest.mark.parametrize("operator", REGIONS)
def test_onnxruntime_agrees(operator, seeds):
    """Values agree with onnxruntime's on random regions, at every opset that it supports. Maxima are exactly equal."""
    opsets, ran = set(), 0
    for seed in range(seeds):
        call = draw_call(SeededChoices(seed), (operator,))
        opset = min(call.opset or NEWEST_PEER_OPSET, NEWEST_PEER_OPSET)
        known = ("float32",) if operator == "MaxRoiPool" else ("float32", "float64")
        if call.x.dtype.name not in known or call.values not in ("whole", "normal", "spread") or call.x.size == 0:
            continue
        if call.opset != opset and call.opset is not None:
            continue  # generated for an opset whose version onnxruntime lacks
        try:
            truth = truths(call)[0]
        except GeometryError:
            continue
        inputs = [a.astype(a.dtype.newbyteorder("=")) for a in call.inputs]
        inputs[0] = np.ascontiguousarray(np.moveaxis(inputs[0], -1, 1) if call.channels_last else inputs[0])
        try:
            wanted = ask(operator, inputs, [call.x.dtype.name], call.attributes, opset=opset)[0]
        except REFUSALS:  # an inverted region has a negative number of samples along one axis
            continue
        y = call.run(onnxpool)
        for result in (y, np.moveaxis(wanted, 1, -1) if call.channels_last else wanted):
            verdict = judge(truth, np.ascontiguousarray(result))
            assert verdict.problem is None, f"{call.describe()}: {verdict.problem}"
        opsets.add(opset)
        ran += 1
    assert ran > seeds // 15
    assert {10, 16, 21} <= opsets if operator == "RoiAlign" else {1, 21} <= opsets


def test_plans_know_the_shape_of_results():
    """A result has one row for each region."""
    x = np.ones((2, 3, 8, 8), np.float32)
    rois = np.array([[0, 0, 4, 4]] * 5, np.float32)
    plan = onnxpool.RoiAlign(output_height=2, output_width=4).plan(x.shape, x.dtype)
    images = np.zeros(5, np.int64)
    assert plan.result_shape(rois, images) == plan(x, rois, images).shape == (5, 3, 2, 4)


def test_the_largest_scale_is_that_of_float32():
    """A scale of ONNX is a float32; a larger double is refused instead of becoming infinite."""
    most = float(np.finfo(np.float32).max)
    assert onnxpool.RoiAlign(spatial_scale=most).spatial_scale == most
    with pytest.raises(onnxpool.PoolError, match="at most"):
        onnxpool.RoiAlign(spatial_scale=np.nextafter(most, np.inf).item())
