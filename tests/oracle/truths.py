"""The expected results of any random call."""

from calls import INDICES, UNPOOL
from calls_axes import AxesCall
from onnxpool_conformance.oracle import GeometryError, expect
from onnxpool_conformance.oracle_indices import expect_indices
from onnxpool_conformance.oracle_regions import expect_max_roi_pool, expect_roi_align
from onnxpool_conformance.oracle_unpool import expect_unpool
from oracle_axes import expect_along_axes


def truths(call):
    """The truth about each output of a call; raises GeometryError if the library must refuse it."""
    if isinstance(call, AxesCall):
        if call.misplaced:
            raise GeometryError("arguments that exclude each other")
        return expect_along_axes(call.base, call.x, call.attributes, call.axes, keepdims=call.keepdims is not False,
                                 dtype=call.dtype, skipna=bool(call.skipna), indexed=call.indexed)
    layout = {"channels_last": call.channels_last}
    if call.operator == INDICES:
        values = expect("MaxPool", call.inputs, call.attributes, **layout)
        return values, expect_indices(call.x, call.attributes, **layout)
    if call.operator == UNPOOL:
        return (expect_unpool(call.inputs, call.attributes, **layout),)
    if call.operator == "MaxRoiPool":
        return (expect_max_roi_pool(call.inputs, call.attributes, **layout),)
    if call.operator == "RoiAlign":
        return (expect_roi_align(call.inputs, call.attributes, call.opset, **layout),)
    return (expect(call.operator, call.inputs, call.attributes, **layout),)
