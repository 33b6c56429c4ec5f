"""The table of disagreements, tested against onnxruntime, OpenVINO and onnx."""

import random

import ml_dtypes
import numpy as np
import pytest
from peers import PACKAGES, PEERS, TORCH, Example, agrees, installed

import onnxpool
from onnxpool.onnx import disagreements as disagreements_module
from onnxpool.onnx.cases import ORT
from onnxpool.onnx.disagreements import DISAGREEMENTS, Filter, disagreements, ort_blocked
from tools.sweep_disagreements import sweep

SEED = 44


def rows_of(example, who=None):
    """The rows that apply to an example, for one runtime or for all."""
    return [row.name for row in disagreements(example.case, Filter(values=True)) if who in (None, row.who)]


def same(runtime, example):
    """Whether a runtime returns the library's result. A refusal is a disagreement."""
    try:
        run = PEERS[runtime](example)
    except Exception:
        return False
    return agrees(example, run, example.inputs)


def runs_here(name, monkeypatch):
    """Whether a row's runtime behaves on this processor as the row says. Tests assume a processor that the row
    names."""
    if name != "openvino-bfloat16-crash":
        return True
    there, here = ["x86_v3", "baseline"], disagreements_module.available()
    monkeypatch.setattr(disagreements_module, "available", lambda: there)
    return here[0] == there[0]


def ramp(*shape, dtype="float32"):
    """An array of 1, 2, 3, ..."""
    return np.arange(1, 1 + np.prod(shape), dtype=dtype).reshape(shape)


def made(operator, opset, x, outputs=1, **attributes):
    """An example of an operator with one input."""
    return Example(operator, opset, (x,), attributes, outputs)


def quantised(operator, x, **attributes):
    """An example of a quantised operator, with scales of 1 and zero points of 0."""
    zero = np.array(0, x.dtype)
    return Example(operator, 1, (x, np.float32(1), zero, np.float32(1), zero), attributes)


def unpool(*shape):
    """A MaxUnpool, with an output_shape if a shape is given."""
    places = np.array([[[[0, 3], [12, 15]]]], np.int64)
    further = (np.array(shape, np.int64),) if shape else ()
    return Example("MaxUnpool", 11, (ramp(1, 1, 2, 2), places, *further), {"kernel_shape": [2, 2], "strides": [2, 2]})


def align(opset, **attributes):
    """A RoiAlign of one region."""
    inputs = (ramp(1, 1, 4, 4), np.float32([[0, 0, 3, 3]]), np.array([0], np.int64))
    return Example("RoiAlign", opset, inputs, {"output_height": 2, "output_width": 2, **attributes})


def align_inverted(**attributes):
    """A region that ends before it begins along its width."""
    rois, batch = np.float32([[6, 0, 1, 3]]), np.zeros(1, np.int64)
    return Example("RoiAlign", 16, (ramp(1, 1, 8, 8), rois, batch), attributes)


def align_empty(**attributes):
    """A RoiAlign of a region of size 0 in an image of one element."""
    rois, batch = np.zeros((1, 4), np.float32), np.zeros(1, np.int64)
    return Example("RoiAlign", 16, (ramp(1, 1, 1, 1), rois, batch), attributes)


def align_beyond(value):
    """A RoiAlign of a region beyond an image whose first element is unusual."""
    x = ramp(1, 1, 4, 4)
    x[0, 0, 0, 0] = value
    return Example("RoiAlign", 16, (x, np.float32([[6, 6, 8, 8]]), np.array([0])), {"sampling_ratio": 2})


def align_huge(samples):
    """A RoiAlign of an image of large numbers."""
    x = np.full((1, 1, 4, 4), 3e38, np.float32)
    return Example("RoiAlign", 16, (x, np.float32([[0, 0, 3, 3]]), np.array([0])), {"sampling_ratio": samples})


def pool_region(dtype):
    """A MaxRoiPool of one region."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    inputs = (ramp(1, 1, 4, 4).astype(dtype), np.array([[0, 0, 0, 3, 3]], dtype))
    return Example("MaxRoiPool", 22, inputs, {"pooled_shape": [2, 2]})


FIVE, SIX, SEVEN, TWO, FOUR = (ramp(1, 1, size) for size in (5, 6, 7, 2, 4))
PLANE, SMALL = ramp(1, 1, 4, 4), ramp(1, 1, 2, 2)
DROPS = {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1]}
OVERHANGS = {"kernel_shape": [4], "strides": [4]}
HOLE = {"kernel_shape": [2], "dilations": [3], "pads": [1, 1]}  # one window in the padding only
GAP = {"kernel_shape": [2], "dilations": [2], "pads": [1, 1]}
NAN = np.float32([[[np.nan, 1, 2, 3]]])
HUGE = np.full((1, 1, 4), 3e38, np.float32)
LOWEST = np.full((1, 1, 4), np.inf, np.float32)
ZEROS = np.zeros((1, 1, 4), np.uint8)
LONG = np.full((1, 1, 512, 512), 0.1, np.float32)
BYTE_ROW, ONE = ramp(1, 1, 5, dtype="uint8"), np.float32(1)
BYTES = made("MaxPool", 12, PLANE.astype(np.int8), kernel_shape=[2, 2], strides=[2, 2])

# For every row of the table, a node to which it applies, and a similar one to which it does not.
LARGE_HALVES = 8000 * ramp(1, 1, 4, dtype="float16")
EXAMPLES = {
    "ort-kernel": (made("AveragePool", 22, FIVE.astype(float), kernel_shape=[2]),
                   made("AveragePool", 22, FIVE, kernel_shape=[2])),
    "ort-rank": (made("MaxPool", 22, ramp(1, 1, 2, 2, 2, 2), kernel_shape=[1] * 4),
                 made("MaxPool", 22, ramp(1, 1, 2, 2, 2), kernel_shape=[1] * 3)),
    "ort-pads": (made("MaxPool", 22, FIVE, kernel_shape=[2], pads=[2, 0]),
                 made("MaxPool", 22, FIVE, kernel_shape=[2], strides=[2], pads=[1, 0])),
    "ort-empty-average": (made("AveragePool", 19, TWO, **HOLE), made("AveragePool", 19, TWO, **GAP)),
    "ort-empty-maximum": (made("MaxPool", 12, TWO, **HOLE), made("MaxPool", 12, TWO, **GAP)),
    "ort-empty-indices": (made("MaxPool", 12, ramp(1, 2, 2, dtype="uint8"), 2, **HOLE),
                          made("MaxPool", 12, ramp(1, 2, 2, dtype="uint8"), 2, **GAP)),
    "ort-same-dilations": (made("LpPool", 18, SEVEN, kernel_shape=[3], dilations=[2], auto_pad="SAME_UPPER"),
                           made("LpPool", 18, SEVEN, kernel_shape=[3], dilations=[2], auto_pad="VALID")),
    "ort-same-strides": (made("LpPool", 11, SIX, kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER"),
                         made("LpPool", 11, SIX, kernel_shape=[1], strides=[3], auto_pad="SAME_LOWER")),
    "ort-same-refused": (made("MaxPool", 11, SIX, kernel_shape=[1], strides=[2], auto_pad="SAME_UPPER"),
                         made("MaxPool", 11, SIX.astype(float), kernel_shape=[1], strides=[2], auto_pad="SAME_UPPER")),
    "ort-quantised-divisor": (
        quantised("QLinearAveragePool", ramp(1, 1, 5, dtype="uint8"), **OVERHANGS, ceil_mode=1, count_include_pad=1),
        quantised("QLinearAveragePool", ramp(1, 1, 5, dtype="uint8"), **OVERHANGS, ceil_mode=1)),
    "ort-quantised-overflow": (quantised("QLinearGlobalAveragePool", np.full((1, 1, 2902, 2902), 255, np.uint8)),
                               quantised("QLinearGlobalAveragePool", np.full((1, 1, 2901, 2901), 255, np.uint8))),
    "ort-long-sum": (made("GlobalAveragePool", 1, np.full((1, 1, 1024, 1024), 0.1, np.float32)),
                     made("GlobalAveragePool", 1, np.full((1, 1, 64, 64), 0.1, np.float32))),
    "ort-unpool-shape": (unpool(1, 1, 5, 5), unpool()),
    "old-ort-ceil": (made("MaxPool", 12, SMALL, **DROPS, ceil_mode=1), made("MaxPool", 12, SMALL, **DROPS)),
    "old-ort-indices": (made("MaxPool", 12, np.zeros((1, 1, 2, 2), np.uint8), 2, kernel_shape=[2, 2]),
                        made("MaxPool", 12, np.zeros((1, 1, 2, 2), np.uint8), kernel_shape=[2, 2])),
    "old-ort-divisor": (made("AveragePool", 11, FIVE, **OVERHANGS, ceil_mode=1, count_include_pad=1),
                        made("AveragePool", 19, FIVE, **OVERHANGS, ceil_mode=1, count_include_pad=1)),
    "old-ort-divisor-19": (made("AveragePool", 19, FIVE, **OVERHANGS, ceil_mode=1, count_include_pad=1),
                           made("AveragePool", 11, FIVE, **OVERHANGS, ceil_mode=1, count_include_pad=1)),
    "inference-ceil": (made("MaxPool", 12, SMALL, **DROPS, ceil_mode=1),
                       made("MaxPool", 22, SMALL, **DROPS, ceil_mode=1)),
    "inference-pads": (made("MaxPool", 12, FIVE, kernel_shape=[3], pads=[0, 0], auto_pad="SAME_UPPER"),
                       made("MaxPool", 12, FIVE, kernel_shape=[3], auto_pad="SAME_UPPER")),
    "reference-missing": (made("GlobalLpPool", 2, PLANE), made("GlobalAveragePool", 1, PLANE)),
    "reference-average-1": (made("AveragePool", 1, SIX, **OVERHANGS, auto_pad="SAME_UPPER"),
                            made("AveragePool", 7, SIX, **OVERHANGS, auto_pad="SAME_UPPER")),
    "reference-ceil-average": (made("AveragePool", 10, FIVE, **OVERHANGS, ceil_mode=1),
                               made("AveragePool", 10, SEVEN, **OVERHANGS, ceil_mode=1)),
    "reference-ceil-norm": (made("LpPool", 18, SEVEN, **OVERHANGS, ceil_mode=1),
                            made("LpPool", 18, SEVEN, **OVERHANGS)),
    "reference-ceil-dropped": (made("LpPool", 18, SEVEN, kernel_shape=[1], pads=[0, 1], ceil_mode=1),
                               made("LpPool", 18, SEVEN, kernel_shape=[1], pads=[0, 1])),
    "reference-auto-ceil": (made("AveragePool", 10, SEVEN, kernel_shape=[3], auto_pad="VALID", ceil_mode=1),
                            made("AveragePool", 10, SEVEN, kernel_shape=[3], ceil_mode=1)),
    "reference-valid-ceil": (made("MaxPool", 10, SIX, kernel_shape=[3], strides=[2], auto_pad="VALID", ceil_mode=1),
                             made("MaxPool", 10, SEVEN, kernel_shape=[3], strides=[2], auto_pad="VALID", ceil_mode=1)),
    "reference-auto-dilations": (made("AveragePool", 19, SEVEN, kernel_shape=[3], dilations=[2], auto_pad="VALID"),
                                 made("AveragePool", 19, SEVEN, kernel_shape=[3], dilations=[2])),
    "reference-same-strides": (made("LpPool", 11, SIX, kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER"),
                               made("LpPool", 11, SIX, kernel_shape=[3], strides=[3], auto_pad="SAME_UPPER")),
    "reference-same-lower": (made("MaxPool", 11, SIX, kernel_shape=[4], strides=[3], auto_pad="SAME_LOWER"),
                             made("MaxPool", 11, SIX, kernel_shape=[4], strides=[3], auto_pad="SAME_UPPER")),
    "reference-unit-pads": (made("MaxPool", 11, SMALL, kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
                            made("MaxPool", 11, SMALL, kernel_shape=[2, 2], pads=[1, 1, 1, 1])),
    "reference-unit-indices": (made("MaxPool", 11, ramp(1, 2, 4, 4), 2, kernel_shape=[2, 2]),
                               made("MaxPool", 11, ramp(1, 2, 4, 4), 2, kernel_shape=[2, 2], strides=[2, 2])),
    "reference-unit-int8": (made("MaxPool", 12, PLANE.astype(np.int8), kernel_shape=[2, 2]),
                            made("MaxPool", 12, PLANE.astype(np.uint8), kernel_shape=[2, 2])),
    "reference-empty-maximum": (made("MaxPool", 12, TWO, **HOLE), made("MaxPool", 12, TWO, **GAP)),
    "reference-global-rank": (made("GlobalMaxPool", 1, ramp(1, 2, 5)), made("GlobalMaxPool", 1, ramp(1, 2, 5, 5))),
    "reference-roi-align": (align(10, sampling_ratio=2), align(16, sampling_ratio=2)),
    "openvino-missing": (unpool(), made("MaxPool", 11, FIVE, kernel_shape=[2])),
    "openvino-float64": (made("LpPool", 11, FIVE.astype(float), kernel_shape=[2]),
                         made("LpPool", 11, FIVE, kernel_shape=[2])),
    "openvino-pads": (made("AveragePool", 22, FIVE, kernel_shape=[2], pads=[2, 0]),
                      made("AveragePool", 22, FIVE, kernel_shape=[2], pads=[1, 0])),
    "openvino-ceil-average": (
        made("AveragePool", 19, FOUR, kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1, count_include_pad=1),
        made("AveragePool", 19, ramp(1, 1, 3), kernel_shape=[2], strides=[2], ceil_mode=1, count_include_pad=1)),
    "openvino-ceil": (made("MaxPool", 22, SMALL, **DROPS, ceil_mode=1), made("MaxPool", 22, SMALL, **DROPS)),
    "openvino-ceil-norm": (made("LpPool", 18, FIVE, **OVERHANGS, ceil_mode=1), made("LpPool", 18, FIVE, **OVERHANGS)),
    "openvino-empty-maximum": (made("MaxPool", 12, TWO, **HOLE), made("MaxPool", 12, TWO, **GAP)),
    "openvino-indices": (made("MaxPool", 11, ramp(1, 1, 2, 3), 2, kernel_shape=[2, 2], storage_order=1),
                         made("MaxPool", 11, FIVE, 2, kernel_shape=[2], storage_order=1)),
    "openvino-roi-align": (
        align(16), align(16, sampling_ratio=0)),
    "ort-nan": (made("MaxPool", 11, NAN, kernel_shape=[4]), BYTES),
    "ort-infinite": (made("GlobalMaxPool", 1, np.full((1, 1, 4), -np.inf, np.float32)), BYTES),
    "ort-norm-range": (made("LpPool", 11, np.float32([[[1e30, 1e30]]]), kernel_shape=[2]), BYTES),
    "reference-nan": (made("AveragePool", 7, NAN, kernel_shape=[4]), made("GlobalAveragePool", 1, NAN)),
    "reference-infinite-indices": (
        made("MaxPool", 8, np.full((1, 1, 1, 3), np.inf), 2, kernel_shape=[1, 3], pads=[0, 0, 0, 2]),
        made("MaxPool", 8, np.full((1, 1, 1, 3), np.inf), 2, kernel_shape=[1, 2])),
    "reference-norm-range": (made("LpPool", 11, np.float32([[[1e30, 1e30]]]), kernel_shape=[2]),
                             made("GlobalAveragePool", 1, FOUR)),
    "openvino-nan": (made("MaxPool", 11, NAN, kernel_shape=[4]), BYTES),
    "ort-zero-points": (Example("QLinearAveragePool", 1, (BYTE_ROW, ONE, None, ONE, None), {"kernel_shape": [2]}),
                        Example("QLinearAveragePool", 1, (BYTE_ROW, ONE, np.array(0, np.uint8), ONE),
                                {"kernel_shape": [2]})),
    "reference-rank": (made("MaxPool", 22, ramp(1, 1, 2, 2, 2, 2), kernel_shape=[1] * 4, strides=[2] * 4),
                       made("MaxPool", 22, ramp(1, 1, 2, 2, 2), kernel_shape=[1] * 3, strides=[2] * 3)),
    "reference-norm-1": (made("LpPool", 1, FIVE.astype(float), kernel_shape=[2], p=3.0),
                         made("LpPool", 1, FIVE.astype(float), kernel_shape=[2], p=2.0)),
    "reference-bfloat16": (made("GlobalAveragePool", 22, np.ones((1, 1, 400), ml_dtypes.bfloat16)),
                           made("GlobalAveragePool", 22, np.ones((1, 1, 256), ml_dtypes.bfloat16))),
    "openvino-version": (made("GlobalLpPool", 1, PLANE, p=2.0), made("GlobalLpPool", 1, PLANE)),
    "openvino-global-rank": (made("GlobalLpPool", 22, ramp(1, 2)), made("GlobalLpPool", 22, ramp(1, 2, 1))),
    "openvino-half-root": (made("GlobalLpPool", 22, LARGE_HALVES, p=3), made("GlobalLpPool", 22, LARGE_HALVES, p=4)),
    "openvino-kernel": (pool_region("bfloat16"), pool_region("float32")),
    "openvino-bfloat16-crash": (made("MaxPool", 22, ramp(1, 8, 2, 5).astype(ml_dtypes.bfloat16), kernel_shape=[1, 2]),
                                made("MaxPool", 22, ramp(1, 8, 2, 6).astype(ml_dtypes.bfloat16), kernel_shape=[1, 2])),
    "openvino-rank": (made("LpPool", 22, ramp(1, 1, 2, 2, 2, 2), kernel_shape=[1] * 4),
                      made("LpPool", 22, ramp(1, 1, 2, 2, 2), kernel_shape=[1] * 3)),
    "openvino-oversized": (made("MaxPool", 12, TWO, kernel_shape=[3], strides=[2], ceil_mode=1),
                           made("MaxPool", 12, TWO, kernel_shape=[3], strides=[2], ceil_mode=1, pads=[0, 1])),
    "openvino-quantised": (quantised("QLinearAveragePool", BYTE_ROW, kernel_shape=[2]),
                           made("AveragePool", 22, FIVE, kernel_shape=[2])),
    "openvino-empty-indices": (made("MaxPool", 12, TWO, 2, **HOLE), made("MaxPool", 12, TWO, 2, **GAP)),
    "openvino-roi-maximum": (align(16, sampling_ratio=1, mode="max"), align(16, sampling_ratio=1)),
    "openvino-long-sum": (made("AveragePool", 22, LONG, kernel_shape=[512, 512]),
                          made("AveragePool", 22, LONG, kernel_shape=[32, 32], strides=[512, 512])),
    "ort-regions-nan": (align_beyond(np.nan), made("GlobalAveragePool", 1, NAN)),
    "ort-inverted-regions": (align_inverted(), align_inverted(sampling_ratio=1)),
    "openvino-empty-regions": (align_empty(sampling_ratio=0), align_empty(sampling_ratio=0, mode="max")),
    "openvino-inverted-regions": (align_inverted(sampling_ratio=0), align_inverted(sampling_ratio=1)),
    "ort-regions-infinite": (align_beyond(np.inf), made("GlobalAveragePool", 1, FOUR)),
    "ort-mean-range": (made("AveragePool", 11, HUGE, kernel_shape=[2]),
                       made("AveragePool", 11, HUGE, kernel_shape=[1])),
    "ort-regions-range": (align_huge(2), align_huge(1)),
    "reference-mean-range": (made("AveragePool", 11, HUGE, kernel_shape=[2]),
                             made("AveragePool", 11, HUGE, kernel_shape=[1])),
    "reference-regions-nan": (align_beyond(np.nan), made("GlobalAveragePool", 1, NAN)),
    "reference-regions-infinite": (align_beyond(np.inf), made("GlobalAveragePool", 1, FOUR)),
    "reference-regions-range": (align_huge(2), align_huge(1)),
    "openvino-infinite": (made("GlobalMaxPool", 1, np.full((1, 1, 4), -np.inf, np.float32)),
                          made("GlobalMaxPool", 1, np.full((1, 1, 4), -np.inf, np.float16))),
    "openvino-infinite-indices": (made("MaxPool", 12, -LOWEST, 2, kernel_shape=[1]),
                                  made("MaxPool", 12, -LOWEST[:, :, :1], 2, kernel_shape=[1])),
    "openvino-lowest-indices": (made("MaxPool", 12, ZEROS, 2, kernel_shape=[2]),
                                made("MaxPool", 12, ZEROS, 2, kernel_shape=[4])),
    "openvino-mean-range": (made("AveragePool", 11, HUGE, kernel_shape=[2]),
                            made("AveragePool", 11, HUGE, kernel_shape=[1])),
    "openvino-norm-range": (made("LpPool", 11, HUGE, kernel_shape=[1]),
                            made("LpPool", 11, HUGE, kernel_shape=[1], p=1)),
    "openvino-regions-nan": (align_beyond(np.nan), made("GlobalAveragePool", 1, NAN)),
    "openvino-regions-infinite": (align_beyond(np.inf), made("GlobalAveragePool", 1, FOUR)),
    "openvino-regions-range": (align_huge(2), align_huge(1)),
}


ONE_NAN, TWO_NAN = (np.full((1, 1, 1, width), np.nan, np.float32) for width in (1, 2))
LAST_COLUMN = np.full((1, 1, 1, 1, 5), np.nan, np.float32)
COUNTED = {"ceil_mode": 1, "count_include_pad": 1}
TRANSPOSED = {"kernel_shape": [3, 3, 3], "pads": [2, 0, 2, 2, 0, 2], "strides": [2, 4, 2], "storage_order": 1}


def lowest(*shape):
    """An array of -inf."""
    return np.full((1, 1, *shape), -np.inf, np.float32)


# Nodes at the border of a condition: a row, a node, and whether the row applies to it.
BORDERS = {
    "a window cut at both ends": ("openvino-ceil-average", made(
        "AveragePool", 19, SIX, **COUNTED, kernel_shape=[5], dilations=[2], pads=[4, 1], strides=[3]), True),
    "a window of the whole kernel": ("openvino-ceil-average", made(
        "AveragePool", 19, SIX, **COUNTED, kernel_shape=[5], dilations=[2], pads=[4, 2], strides=[3]), False),
    "a quantised window in the padding": ("openvino-ceil", quantised(
        "QLinearAveragePool", BYTE_ROW[..., :1], **COUNTED, kernel_shape=[1], pads=[3, 2], strides=[2]), True),
    "a quantised window in the padding, without ceil_mode": ("openvino-ceil", quantised(
        "QLinearAveragePool", BYTE_ROW[..., :1], count_include_pad=1, kernel_shape=[1], pads=[3, 2], strides=[2]),
        False),
    "transposed windows of the same elements": ("openvino-indices", made(
        "MaxPool", 22, np.float32([[[[[1], [3], [2]]]]]), 2, **TRANSPOSED), False),
    "transposed windows of other elements": ("openvino-indices", made(
        "MaxPool", 22, np.float32([[[[[1, 2], [3, 4], [2, 5]]]]]), 2, **TRANSPOSED), True),
    "single elements on the diagonal": ("openvino-indices", made(
        "MaxPool", 22, PLANE, 2, kernel_shape=[1, 1], storage_order=1), False),
    "single elements beside it": ("openvino-indices", made(
        "MaxPool", 22, PLANE, 2, kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 2], storage_order=1), True),
    "other pads, but no element": ("ort-same-dilations", made(
        "AveragePool", 19, ramp(1, 1, 6, 1), kernel_shape=[1, 2], strides=[3, 3], dilations=[3, 2],
        auto_pad="SAME_LOWER", count_include_pad=1), False),
    "other pads along one axis, but no element along another": ("ort-same-dilations", made(
        "MaxPool", 12, ramp(1, 1, 8, 1, dtype="int8"), kernel_shape=[3, 2], strides=[4, 4], dilations=[2, 3],
        auto_pad="SAME_LOWER", ceil_mode=1), False),
    "other pads along one axis, and elements along another": ("ort-same-dilations", made(
        "MaxPool", 12, ramp(1, 1, 8, 1, dtype="int8"), kernel_shape=[3, 1], strides=[4, 4], dilations=[2, 3],
        auto_pad="SAME_LOWER", ceil_mode=1), True),
    "pads that count only at the beginning": ("reference-unit-pads", made(
        "MaxPool", 22, TWO, kernel_shape=[4], pads=[2, 0], ceil_mode=1), False),
    "pads that count only at the end": ("reference-unit-pads", made(
        "MaxPool", 22, TWO, kernel_shape=[4], pads=[0, 2], ceil_mode=1), True),
    "a padded element of -inf": ("reference-infinite-indices", made(
        "MaxPool", 10, np.full((1, 1, 1, 1), -np.inf), 2, kernel_shape=[3, 3], auto_pad="SAME_LOWER"), True),
    "indices of a padded image of one element": ("reference-unit-indices", made(
        "MaxPool", 10, ramp(1, 1, 1, 1), 2, kernel_shape=[2, 2], pads=[1, 1, 1, 1]), True),
    "an index of bfloat16 with padding": ("reference-unit-indices", made(
        "MaxPool", 22, ramp(1, 1, 1, 2).astype(ml_dtypes.bfloat16), 2, kernel_shape=[2, 1], auto_pad="SAME_UPPER"),
        True),
    "an index of float32 with padding": ("reference-unit-indices", made(
        "MaxPool", 22, ramp(1, 1, 1, 2), 2, kernel_shape=[2, 1], auto_pad="SAME_UPPER"), False),
    "an index of padding only": ("reference-unit-indices", made(
        "MaxPool", 12, ramp(1, 1, 3, 7, dtype="uint8"), 2, kernel_shape=[1, 1], pads=[1, 1, 1, 1]), True),
    "strides beyond the kernel, but no element": ("reference-same-strides", made(
        "MaxPool", 22, ramp(1, 1, 1, 6, dtype="uint8"), kernel_shape=[2, 1], dilations=[2, 1], strides=[2, 2],
        auto_pad="SAME_UPPER", ceil_mode=1), False),
    "indices of a row with pads": ("reference-unit-indices", made(
        "MaxPool", 22, TWO, 2, kernel_shape=[4], pads=[2, 0], ceil_mode=1), True),
    "a mean with a negative pad": ("ort-same-dilations", made(
        "AveragePool", 22, ramp(1, 1, 3), kernel_shape=[2], strides=[3], dilations=[2], auto_pad="SAME_UPPER"), True),
    "a maximum with a negative pad": ("ort-same-dilations", made(
        "MaxPool", 22, ramp(1, 1, 3), kernel_shape=[2], strides=[3], dilations=[2], auto_pad="SAME_UPPER"), False),
    "8 bfloat16 results of 24 channels": ("openvino-bfloat16-crash", made(
        "AveragePool", 22, ramp(1, 24, 2, 2, 3).astype(ml_dtypes.bfloat16), kernel_shape=[1, 1, 2]), True),
    "8 bfloat16 results of 12 channels": ("openvino-bfloat16-crash", made(
        "AveragePool", 22, ramp(1, 12, 2, 2, 3).astype(ml_dtypes.bfloat16), kernel_shape=[1, 1, 2]), False),
    "a NaN alone after padding": ("ort-nan", made(
        "MaxPool", 12, ONE_NAN, kernel_shape=[3, 2], pads=[0, 1, 2, 0]), False),
    "a NaN alone before padding": ("ort-nan", made(
        "MaxPool", 12, ONE_NAN, kernel_shape=[3, 2], pads=[2, 0, 0, 1]), True),
    "a NaN alone, strides of 2": ("ort-nan", made(
        "MaxPool", 12, TWO_NAN, kernel_shape=[1, 1], strides=[1, 2]), False),
    "a NaN alone, strides of 3": ("ort-nan", made(
        "MaxPool", 12, TWO_NAN, kernel_shape=[1, 1], strides=[1, 3]), True),
    "a NaN beyond whole vectors": ("ort-nan", made(
        "MaxPool", 12, LAST_COLUMN, kernel_shape=[1, 1, 1]), True),
    "a NaN in whole vectors": ("ort-nan", made(
        "MaxPool", 12, LAST_COLUMN[..., :4], kernel_shape=[1, 1, 1]), False),
    "indices of an image of one element": ("reference-unit-indices", made(
        "MaxPool", 11, ramp(1, 1, 1, 1), 2, kernel_shape=[2, 2], auto_pad="SAME_LOWER"), False),
    "indices of an image of two elements": ("reference-unit-indices", made(
        "MaxPool", 11, ramp(1, 1, 1, 2), 2, kernel_shape=[2, 2], auto_pad="SAME_LOWER"), True),
    "a maximum of the whole image": ("ort-infinite", made("MaxPool", 12, lowest(2, 2), kernel_shape=[2, 2]), True),
    "a maximum of less": ("ort-infinite", made("MaxPool", 12, lowest(2, 3), kernel_shape=[2, 2]), False),
    "a kernel of 33": ("ort-infinite", made("MaxPool", 12, lowest(34, 2), kernel_shape=[33, 1]), True),
    "a kernel of 32": ("ort-infinite", made("MaxPool", 12, lowest(34, 2), kernel_shape=[32, 1]), False),
    "a long row": ("ort-infinite", made("MaxPool", 12, lowest(1, 2046), kernel_shape=[1, 2]), True),
    "a row that fits": ("ort-infinite", made("MaxPool", 12, lowest(1, 2045), kernel_shape=[1, 2]), False),
}


@pytest.mark.smoke
def test_every_warning_has_an_example():
    """Each name in the table is unique, and has two example nodes."""
    assert sorted(row.name for row in DISAGREEMENTS) == sorted(EXAMPLES)


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # from onnx's own operators
@pytest.mark.parametrize("row", DISAGREEMENTS, ids=lambda row: row.name)
def test_a_warning(row, needs_named_version, monkeypatch):
    """A row applies to its example and not to a similar node, and describes the actual behaviour of the runtime."""
    example, neighbour = EXAMPLES[row.name]
    here = runs_here(row.name, monkeypatch)
    assert row.name in rows_of(example), example.shown()
    assert row.name not in rows_of(neighbour), neighbour.shown()
    if here and row.who in installed():
        needs_named_version(PACKAGES[row.who])
        assert not same(row.who, example), example.shown()
        if not [other for other in disagreements(neighbour.case) if other.who == row.who]:
            assert same(row.who, neighbour) or rows_of(neighbour, row.who), neighbour.shown()


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "example", "applies"), BORDERS.values(), ids=list(BORDERS))
def test_a_border(name, example, applies, needs_named_version, monkeypatch):
    """A row applies to a node at the border of its condition if the runtime differs, unless another row applies."""
    row, = (row for row in DISAGREEMENTS if row.name == name)
    here = runs_here(name, monkeypatch)
    assert (name in rows_of(example)) == applies, example.shown()
    if here and row.runtime in installed():
        needs_named_version(PACKAGES[row.runtime])
        others = [other for other in disagreements(example.case, Filter(values=True)) if other.name != name
                  and other.runtime == row.runtime and other.values in ("", row.values)]
        assert same(row.runtime, example) != applies or (others and not applies), example.shown()


@pytest.mark.parametrize(("sets", "channels"), [(["x86_v4", "x86_v3"], 16), (["x86_v3"], 8), (["baseline"], 8)])
def test_onnxruntime_has_blocks_as_wide_as_registers(sets, channels, monkeypatch):
    """Blocks are twice as wide with AVX-512."""
    monkeypatch.setattr(disagreements_module, "available", lambda: sets)
    blocked = [n for n in range(1, 33) if ort_blocked(made("MaxPool", 12, ramp(1, n, 2, 2), kernel_shape=[2, 2]).case)]
    assert blocked == list(range(channels, 33, channels))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("nodes", "seed"), [(80, SEED), pytest.param(20_000, None, marks=pytest.mark.slow)],
                         ids=["short", "long"])
def test_the_sweep_finds_nothing(nodes, seed, needs_named_version):
    """Peers agree on random nodes without a warning in the table, and differ on random nodes with a warning."""
    peers = [peer for peer in installed() if peer != TORCH]
    for peer in peers:
        needs_named_version(PACKAGES[peer])
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    print(f"python tools/sweep_disagreements.py --nodes {nodes} --seed {seed}")
    tally = sweep([row for row in DISAGREEMENTS if row.runtime in peers], peers, nodes, seed)
    assert not tally.misses
    assert not tally.false_alarms
    assert set(tally.nodes) == {"all", *peers}
    assert min(tally.nodes.values()) > nodes // 4


def kernel_example(operator, version, dtype):
    """A node that any kernel for the version and dtype can run."""
    x = ramp(1, 4, 4, 4).astype(dtype)
    window = {"kernel_shape": [2, 2]}
    rois = np.array([[0, 0, 0, 3, 3]]).astype(dtype)
    if operator.startswith("QLinear"):
        return quantised(operator, x, **({} if "Global" in operator else window))
    further, attributes = {
        "MaxUnpool": ((ramp(1, 4, 4, 4, dtype="int64"),), window),
        "MaxRoiPool": ((rois,), {"pooled_shape": [2, 2]}),
        "RoiAlign": ((rois[:, 1:], np.array([0])), {"sampling_ratio": 2}),
    }.get(operator, ((), {} if "Global" in operator else window))
    return Example(operator, version, (x, *further), attributes)


@pytest.mark.smoke
@pytest.mark.parametrize("operator", sorted({row["operator"] for row in onnxpool.supported()}))
def test_the_kernels_of_onnxruntime(operator, needs_named_version):
    """The table knows for each version and dtype whether onnxruntime has a kernel; bfloat16 has none."""
    needs_named_version(PACKAGES[ORT])
    for row in onnxpool.supported():
        for dtype in row["dtypes"] if row["operator"] == operator else ():
            if dtype != "bfloat16":
                example = kernel_example(operator, row["version"], dtype)
                assert ("ort-kernel" in rows_of(example)) != same(ORT, example), example.shown()
