"""The expected results of any random call."""

from calls import INDICES
from calls_axes import AxesCall
from onnxpool_conformance import cases
from onnxpool_conformance.oracle import GeometryError
from oracle_axes import expect_along_axes


def truths(call):
    """The truth about each output of a call. Raises GeometryError if the library must refuse the call."""
    if isinstance(call, AxesCall):
        if call.misplaced:
            raise GeometryError("arguments that exclude each other")
        return expect_along_axes(call.base, call.x, call.attributes, call.axes, keepdims=call.keepdims is not False,
                                 dtype=call.dtype, skipna=bool(call.skipna), indexed=call.indexed)
    return cases.truths(call.operator.split()[0], call.inputs, call.attributes, call.opset, call.operator == INDICES,
                        channels_last=call.channels_last)
