"""What onnxruntime answers for one node."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as errors

REFUSALS = (errors.Fail, errors.InvalidArgument, errors.InvalidGraph, errors.NotImplemented, errors.RuntimeException)

KINDS = {
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int64": TensorProto.INT64,
}
IR_VERSION = 8
SILENT = 4

onnxruntime.set_default_logger_severity(SILENT)


def ask(operator, inputs, outputs, attributes, *, opset, domain=""):
    """The outputs of one node; `outputs` are their dtypes, and an input that is None is left out."""
    names = ["" if array is None else f"in{place}" for place, array in enumerate(inputs)]
    given = {name: array for name, array in zip(names, inputs, strict=True) if name}
    results = [f"out{place}" for place in range(len(outputs))]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        operator,
        [helper.make_tensor_value_info(name, KINDS[array.dtype.name], array.shape) for name, array in given.items()],
        [helper.make_tensor_value_info(*row, None) for row in zip(results, map(KINDS.get, outputs), strict=True)],
    )
    versions = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = SILENT
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def agreed_window(call):
    """Whether onnxruntime does what ONNX says for a call of a windowed operator that the library accepts.

    It has three spatial axes at most and no windows of pads alone; partial windows of a kernel larger than the
    input are others (D10), and SAME_* forgets dilations and shifts windows smaller than a stride.
    """
    spatial = call.x.shape[1:-1] if call.channels_last else call.x.shape[2:]
    kernel, strides, dilations = (
        np.broadcast_to(call.attributes.get(name, 1), len(spatial)) for name in ("kernel_shape", "strides", "dilations")
    )
    spans = (kernel - 1) * dilations + 1
    if len(spatial) > 3 or call.x.size == 0 or (spans > spatial).any():
        return False
    if np.max(call.attributes.get("pads", 0)) >= kernel.min():
        return False
    same = call.attributes.get("auto_pad", "").startswith("SAME")
    return not (same and ((dilations > 1).any() or (strides > kernel).any()))


def explicit(call):
    """The attributes as a node has them, with a kernel size for each axis."""
    kernel = np.broadcast_to(call.attributes["kernel_shape"], call.x.ndim - 2)
    return {**call.attributes, "kernel_shape": kernel.tolist()}
