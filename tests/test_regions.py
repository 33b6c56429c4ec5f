"""MaxRoiPool and RoiAlign: values, what is refused, and onnxruntime's answers."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from calls import REGIONS, THREADS, SeededChoices
from calls_family import draw_call
from oracle import DTYPES, GeometryError
from oracle_regions import expect_max_roi_pool, expect_roi_align
from peer import ask
from test_oracle_agreement import same_bits
from tolerance import judge
from truths import truths

import onnxpool
from onnxpool import PoolError, PoolTypeError

NAN, INF = math.nan, math.inf
FLOATS = ("float32", "float64", "float16", "bfloat16")
LAYOUTS = {"channels first": False, "channels last": True}
CANARY = 77
PEER_SEEDS = 2000
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
    dtypes: tuple = FLOATS


COUNT4 = np.arange(1, 17).reshape(4, 4).tolist()
COUNT8 = np.arange(64).reshape(8, 8).tolist()
SPOT = np.eye(1, 9, 4).reshape(3, 3).tolist()  # a one in the middle
TWO = {"pooled_shape": (2, 2)}

MAXIMA = [
    Case("quarters R01", COUNT4, (0, 0, 3, 3), TWO, [[6, 8], [14, 16]]),
    Case("one bin", COUNT4, (1, 1, 2, 2), {"pooled_shape": (1, 1)}, [[11]]),
    Case("bins overlap", COUNT4, (0, 0, 2, 2), TWO, [[6, 7], [10, 11]]),
    Case("more bins than pixels", COUNT4, (1, 2, 1, 2), {"pooled_shape": (2, 3)}, [[10] * 3] * 2),
    Case("scale", COUNT8, (0, 0, 14, 14), {**TWO, "spatial_scale": 0.5}, [[27, 31], [59, 63]]),
    Case("halves go away from zero", COUNT8, (2.5, 0.5, 2.5, 0.5), {"pooled_shape": (1, 1)}, [[8 + 3]]),
    Case("below a half", COUNT8, (2.25, 0.25, 2.25, 0.25), {"pooled_shape": (1, 1)}, [[2]]),
    Case("negative halves go away from zero", COUNT8, (-1.5, -1.5, 0, 0), {"pooled_shape": (3, 3)},
         [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
    Case("inverted is one pixel R04", COUNT8, (5, 3, 2, 1), {"pooled_shape": (1, 1)}, [[3 * 8 + 5]]),
    Case("outside is 0 R05", COUNT8, (20, 20, 25, 25), TWO, [[0, 0], [0, 0]]),
    Case("outside is 0 before the begin", COUNT4, (-9, -9, -7, -7), TWO, [[0, 0], [0, 0]]),
    Case("over the edge", COUNT4, (2, 2, 5, 5), TWO, [[16, 0], [0, 0]]),
    Case("negative values", [[-5, -6], [-7, -8]], (0, 0, 1, 1), {"pooled_shape": (1, 1)}, [[-5]]),
    Case("-inf stays", [[-INF] * 2] * 2, (0, 0, 1, 1), {"pooled_shape": (1, 1)}, [[-INF]]),
    Case("NaN wins", [[1, 2], [NAN, 3]], (0, 0, 1, 1), {"pooled_shape": (1, 2)}, [[NAN, 3]]),
    *(Case(f"NaN first {k}", [[NAN if i == k else 9 - i for i in range(5)]], (0, 0, 4, 0), {"pooled_shape": (1, 1)},
           [[NAN]]) for k in range(5)),
    Case("-0 first", [[-0.0, 0.0, 0.0, -0.0]], (0, 0, 3, 0), {"pooled_shape": (1, 1)}, [[-0.0]]),
    Case("+0 first", [[-1.0, 0.0, -0.0, -0.0]], (0, 0, 3, 0), {"pooled_shape": (1, 1)}, [[0.0]]),
]  # fmt: skip

PAIR = {"output_height": 2, "output_width": 2}
OUTPUT_HALF = {"coordinate_transformation_mode": "output_half_pixel"}
HALF = {"coordinate_transformation_mode": "half_pixel"}
ONE = {"sampling_ratio": 1}
ALIGNED = [
    Case("opset 10 is output_half_pixel", COUNT4, (0, 0, 3, 3), PAIR, [[4.75, 6.25], [10.75, 12.25]], 10, FLOATS[:3]),
    Case("opset 15 is output_half_pixel", COUNT4, (0, 0, 3, 3), PAIR, [[4.75, 6.25], [10.75, 12.25]], 15, FLOATS[:3]),
    Case("output_half_pixel", COUNT4, (0, 0, 3, 3), {**PAIR, **OUTPUT_HALF}, [[4.75, 6.25], [10.75, 12.25]]),
    Case("half_pixel", COUNT4, (0, 0, 3, 3), {**PAIR, **HALF}, [[2.5625, 4], [8.3125, 9.75]], 16, FLOATS[:3]),
    Case("half_pixel is the default", COUNT4, (0, 0, 3, 3), PAIR, [[2.5625, 4], [8.3125, 9.75]]),
    Case("defaults are one bin", COUNT4, (0.5, 0.5, 1.5, 1.5), {}, [[3.5]]),
    Case("scale", COUNT4, (1, 1, 3, 3), {"spatial_scale": 0.5}, [[3.5]]),
    Case("on an element", COUNT4, (1, 1, 2, 2), ONE, [[6]]),
    Case("between elements", COUNT4, (1, 1, 3, 2), ONE, [[6.5]]),
    Case("clamped before the begin", COUNT4, (-0.5, -0.5, 0.5, 0.5), ONE, [[1]]),
    Case("at -1 still counts", COUNT4, (-1, -1, 0, 0), ONE, [[1]]),
    Case("below -1 is 0", COUNT4, (-1.25, 1, -0.25, 2), ONE, [[0]]),
    Case("clamped after the end", COUNT4, (3.75, 3.75, 4.75, 4.75), ONE, [[16]]),
    Case("at the size still counts", COUNT4, (4, 4, 5, 5), ONE, [[16]]),
    Case("above the size is 0", COUNT4, (4.25, 1, 5.25, 2), ONE, [[0]]),
    Case("samples outside count in the mean", COUNT4, (-3, 0.5, 1, 1.5), {"sampling_ratio": 2},
         [[sum((0, 0.5 * (1 + 0) + 0.5 * (1 + 0), 0, 5)) and (0 + 0 + 3 + 3) / 4]]),
    Case("maximum of weighted elements D16", COUNT4, (1, 1, 3, 3), {**ONE, "mode": "max"}, [[11 * 0.25]]),
    Case("maximum on an element", COUNT4, (1, 1, 2, 2), {**ONE, "mode": "max"}, [[6]]),
    Case("maximum outside is 0", [[-5] * 2] * 2, (-4, -4, -3, -3), {**ONE, "mode": "max"}, [[0]]),
    Case("empty region", COUNT4, (1, 1, 1, 1), {}, [[0]]),
    Case("empty region, maximum", COUNT4, (1, 1, 1, 1), {"mode": "max"}, [[0]]),
    Case("empty region with samples", COUNT4, (1.5, 1.5, 1.5, 1.5), {"sampling_ratio": 2}, [[6]]),
    Case("small region grows to 1", COUNT4, (1, 1, 1, 1), OUTPUT_HALF, [[(6 + 7 + 10 + 11) / 4]]),
    Case("inverted region", COUNT4, (3, 3, 1, 1), {}, [[0]]),
    Case("inverted region with samples", COUNT4, (3, 3, 1, 1), ONE, [[(6 + 7 + 10 + 11) / 4]]),
    Case("far away L03", COUNT4, (1e4, 1e4, 2e4, 2e4), {**PAIR, "sampling_ratio": 2}, [[0, 0], [0, 0]]),
    Case("far apart L03", COUNT4, (-3e4, -3e4, 3e4, 3e4), {**PAIR, "sampling_ratio": 2}, [[0, 0], [0, 0]]),
    Case("inf", [[INF, INF], [INF, INF]], (0.75, 0.75, 1.25, 1.25), ONE, [[INF]]),
    Case("zero weight times inf", [[1, INF], [1, 1]], (0.5, 0.5, 0.5, 0.5), ONE, [[NAN]]),
    Case("zero weight times inf at the end", [[INF]], (0.5, 0.5, 1.5, 1.5), ONE, [[NAN]]),
    Case("NaN", [[1, NAN], [1, 1]], (0.75, 0.75, 1.25, 1.25), ONE, [[NAN]]),
    *(Case(f"NaN in a maximum {k}", np.insert(np.ones(3), k, NAN).reshape(2, 2).tolist(), (0.75, 0.75, 1.25, 1.25),
           {**ONE, "mode": "max"}, [[NAN]]) for k in range(4)),
    Case("a spot", SPOT, (0.5, 0.5, 2.5, 2.5), {**PAIR, **ONE}, [[0.25] * 2] * 2),
]  # fmt: skip


def placed(case, dtype, channels_last, channels=1):
    """The image of a case as a batch in a layout."""
    x = np.tile(np.array(case.x, np.float64), (1, channels, 1, 1)).astype(DTYPES[dtype])
    return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if channels_last else x


def first(y, channels_last):
    """A result as channels first, in float64."""
    return (np.moveaxis(y, -1, 1) if channels_last else y).astype(np.float64)


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", MAXIMA, ids=lambda case: case.name)
def test_max_roi_pool_value(case, channels_last):
    """The maxima of bins are the decided ones, bit for bit, for one and many channels, and the oracle agrees."""
    for dtype in case.dtypes:
        for channels in (1, 3, 19):
            x = placed(case, dtype, channels_last, channels)
            rois = np.array([[0, *case.roi]]).astype(x.dtype)
            for opset in (1, 22, None) if dtype != "bfloat16" else (22, None):
                y = onnxpool.max_roi_pool(x, rois, **case.attributes, opset=opset, channels_last=channels_last)
                assert y.dtype == x.dtype
                wanted = np.tile(np.array(case.expected, np.float64), (1, channels, 1, 1))
                np.testing.assert_array_equal(first(y, channels_last), wanted, strict=True)
                np.testing.assert_array_equal(np.signbit(first(y, channels_last)), np.signbit(wanted))
        truth = expect_max_roi_pool((x, rois), case.attributes, channels_last=channels_last)
        assert judge(truth, y).problem is None


@pytest.mark.parametrize("channels_last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", ALIGNED, ids=lambda case: case.name)
def test_roi_align_value(case, channels_last):
    """The interpolated values are the decided ones, for one and many channels, and the oracle agrees."""
    for dtype in case.dtypes:
        for channels in (1, 3, 19):
            x = placed(case, dtype, channels_last, channels)
            offset = 0 if case.opset or case.name in WITHOUT_OFFSET else 0.5
            rois = (np.array([case.roi]) + offset).astype(x.dtype)
            arguments = x, rois, np.zeros(1, np.int64)
            y = onnxpool.roi_align(*arguments, **case.attributes, opset=case.opset, channels_last=channels_last)
            assert y.dtype == x.dtype
            wanted = np.tile(np.array(case.expected, np.float64), (1, channels, 1, 1))
            np.testing.assert_allclose(first(y, channels_last), wanted, rtol=TOLERANCES[dtype], strict=True)
        truth = expect_roi_align(arguments, case.attributes, case.opset, channels_last=channels_last)
        assert judge(truth, y).problem is None
