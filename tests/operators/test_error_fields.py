"""Errors provide the same information as data and as text: operator, attribute, axis and value."""

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from refusals import board

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

X = board()
BYTES = board(np.uint8)
ROIS = np.array([[0, 0, 0, 3, 3]], np.float32)
INDICES = np.zeros(X.shape, np.int64)
QUANTISED = (0.5, 0, 0.25, 0)
Fields = tuple[str | None, str | None, int | None, Any]


def fields(error: Any) -> Fields:
    return error.operator, error.attribute, error.axis, error.value


SPOILT = {
    "no_operator": (partial(onnxpool.set_num_threads, 0), PoolError, (None, "num_threads", None, 0)),
    "opset_unknown": (partial(onnxpool.MaxPool, kernel_shape=2, opset=99), PoolError, ("MaxPool", "opset", None, 99)),
    "opset_too_old": (partial(onnxpool.MaxUnpool, kernel_shape=2, opset=8), PoolError,
                      ("MaxUnpool", "opset", None, 8)),
    "attribute_of_a_later_version": (partial(onnxpool.AveragePool, kernel_shape=2, dilations=2, opset=11), PoolError,
                                     ("AveragePool", "dilations", None, 2)),
    "indices_of_a_later_version": (partial(onnxpool.MaxPool, kernel_shape=2, return_indices=True, opset=7), PoolError,
                                   ("MaxPool", "return_indices", None, True)),
    "layout": (partial(onnxpool.NhwcMaxPool, kernel_shape=2, channels_last=False), PoolError,
               ("NhwcMaxPool", "channels_last", None, False)),
    "dtype": (partial(onnxpool.lp_pool, BYTES, 2), PoolTypeError, ("LpPool", "X", None, "uint8")),
    "dtype_of_a_plan": (partial(onnxpool.GlobalMaxPool().plan, (1, 1, 2), "float31"), PoolTypeError,
                        ("GlobalMaxPool", "dtype", None, "float31")),
    "no_dtype_of_a_plan": (partial(onnxpool.GlobalMaxPool().plan, (1, 1, 2), None), PoolTypeError,
                           ("GlobalMaxPool", "dtype", None, None)),
    "shape_of_a_plan": (partial(onnxpool.GlobalMaxPool().plan, (1, 1, -2), "float32"), PoolError,
                        ("GlobalMaxPool", "shape", None, -2)),
    "kind_of_input": (partial(onnxpool.max_pool, object(), 2), PoolTypeError, ("MaxPool", "X", None, "object")),
    "masked": (partial(onnxpool.max_pool, np.ma.masked_array(X), 2), PoolTypeError,
               ("MaxPool", "X", None, "MaskedArray")),
    "rank": (partial(onnxpool.max_pool, X[0, 0], 2), PoolError, ("MaxPool", "X", None, (8, 8))),
    "rank_of_images": (partial(onnxpool.max_roi_pool, X[0], ROIS, 2), PoolError, ("MaxRoiPool", "X", None, (1, 8, 8))),
    "empty_axis": (partial(onnxpool.max_pool, X[:, :, :, :0], 2), PoolError, ("MaxPool", "X", 3, 0)),
    "inputs": (partial(onnxpool.GlobalMaxPool(), X, X), PoolError, ("GlobalMaxPool", None, None, 2)),
    "plan_of_another_shape": (partial(onnxpool.GlobalMaxPool().plan((1, 1, 4), "float32"), X), PoolError,
                              ("GlobalMaxPool", "X", None, (1, 1, 8, 8))),
    "plan_of_another_dtype": (partial(onnxpool.GlobalMaxPool().plan((1, 1, 8, 8), "float64"), X), PoolTypeError,
                              ("GlobalMaxPool", "X", None, "float32")),
    "out_of_another_shape": (partial(onnxpool.max_pool, X, 2, out=X), PoolError, ("MaxPool", "out", None, X.shape)),
    "out_of_another_dtype": (partial(onnxpool.max_pool, X, 2, out=BYTES), PoolTypeError,
                             ("MaxPool", "out", None, "uint8")),
    "out_of_another_kind": (partial(onnxpool.max_pool, X, 2, return_indices=True, out=X), PoolTypeError,
                            ("MaxPool", "out", None, "ndarray")),
    "num_threads": (partial(onnxpool.max_pool, X, 2, num_threads=2.5), PoolTypeError, (None, "num_threads", None, 2.5)),
    "scale": (partial(onnxpool.qlinear_average_pool, BYTES, -1.0, *QUANTISED[1:], 2), PoolError,
              ("QLinearAveragePool", "x_scale", None, -1.0)),
    "zero_point": (partial(onnxpool.qlinear_average_pool, BYTES, *QUANTISED[:3], 256, 2), PoolError,
                   ("QLinearAveragePool", "y_zero_point", None, 256)),
    "zero_point_of_another_dtype": (
        partial(onnxpool.qlinear_global_average_pool, BYTES, 0.5, np.int8(0), 0.5, 0), PoolTypeError,
        ("QLinearGlobalAveragePool", "x_zero_point", None, "int8")),
    "scale_missing": (partial(onnxpool.qlinear_average_pool, BYTES, None, *QUANTISED[1:], 2), PoolError,
                      ("QLinearAveragePool", "x_scale", None, None)),
    "regions_of_another_shape": (partial(onnxpool.max_roi_pool, X, ROIS[0], 2), PoolError,
                                 ("MaxRoiPool", "rois", None, (5,))),
    "regions_not_finite": (partial(onnxpool.max_roi_pool, X, ROIS + np.float32("inf"), 2), PoolError,
                           ("MaxRoiPool", "rois", None, float("inf"))),
    "image_of_a_region": (partial(onnxpool.max_roi_pool, X, ROIS + np.float32([7, 0, 0, 0, 0]), 2), PoolError,
                          ("MaxRoiPool", "rois", None, 7.0)),
    "image_of_an_index": (partial(onnxpool.roi_align, X, ROIS[:, 1:], np.array([9])), PoolError,
                          ("RoiAlign", "batch_indices", None, 9)),
    "indices_of_another_dtype": (partial(onnxpool.max_unpool, X, INDICES.astype(np.int32), 2), PoolTypeError,
                                 ("MaxUnpool", "I", None, "int32")),
    "index_out_of_range": (partial(onnxpool.max_unpool, X, INDICES + 81, 2), PoolError,
                           ("MaxUnpool", "I", None, 81)),
    "output_shape_too_small": (partial(onnxpool.max_unpool, X, INDICES, 2, np.array([1, 1, 9, 8])), PoolError,
                               ("MaxUnpool", "output_shape", 3, 8)),
    "pads_leave_nothing": (partial(onnxpool.max_unpool, X, INDICES, 1, pads=[4, 0, 4, 0]), PoolError,
                           ("MaxUnpool", "pads", 2, (4, 4))),
}


@pytest.mark.parametrize("case", SPOILT)
def test_error_about_an_argument(case: str) -> None:
    """Errors about inputs, outputs and arguments have the fields that apply, and None for the others."""
    call: Callable[[], Any]
    call, kind, expected = SPOILT[case]
    with pytest.raises(kind) as caught:
        call()

    assert fields(caught.value) == expected


@pytest.mark.parametrize("kind", [PoolError, PoolTypeError])
def test_fields_survive_pickling(kind: type[Exception]) -> None:
    """An error unpickled in another process has message and fields. An error made only from a message has fields of
    None."""
    error = kind("text", "MaxPool-12", "pads", axis=2, value=(4, 4))  # type: ignore[call-arg]
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), fields(again)) == (kind, "text", ("MaxPool", "pads", 2, (4, 4)))
    assert fields(kind("text")) == (None,) * 4
