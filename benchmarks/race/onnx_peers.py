"""onnxruntime and OpenVINO: models of one node, whose inputs and outputs are bound to arrays."""

from typing import Any

import numpy as np

from .problem import Prepared, Problem

NEWEST = {"GlobalLpPool": 21, "MaxRoiPool": 21, "RoiAlign": 21}  # opsets for which onnxruntime has a kernel; else 22


def node(problem: Problem) -> tuple[str, dict[str, Any], list[str]]:
    """The ONNX operator, attributes and outputs for a problem."""
    operator, attributes = problem.work.operator, dict(problem.work.attributes)
    outputs = ["y", "indices"] if attributes.pop("return_indices", False) else ["y"]
    if operator.startswith("QLinear"):
        attributes["channels_last"] = int(problem.layout == "last")
    elif operator == "MaxPool" and problem.layout == "last" and problem.answer.dtype.itemsize == 1:
        operator = "NhwcMaxPool"
    return operator, attributes, outputs


def serialised(problem: Problem, opset: int, ir_version: int) -> bytes:
    """A model whose input is x0, whose further inputs are constants, and whose first output is y."""
    from onnx import helper, numpy_helper
    operator, attributes, outputs = node(problem)
    own = "com.microsoft" if operator.startswith(("QLinear", "Nhwc")) else ""
    names = [f"x{place}" for place in range(len(problem.inputs))]
    x = problem.inputs[0]
    graph = helper.make_graph(
        [helper.make_node(operator, names, outputs, domain=own, **attributes)], "pool",
        [helper.make_tensor_value_info("x0", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(a, name) for name, a in zip(names[1:], problem.inputs[1:], strict=True)])
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=ir_version).SerializeToString()


def can_take(problem: Problem) -> bool:
    """Whether ONNX has the operator in this layout, for a contiguous array."""
    in_layout = problem.layout == "first" or node(problem)[0].startswith(("QLinear", "Nhwc"))
    return in_layout and problem.inputs[0].flags.c_contiguous


def onnxruntime(problem: Problem) -> Prepared | None:
    """A session with its default settings, so that its threads spin between calls as OpenMP's do."""
    import onnxruntime as ort
    if not can_take(problem):
        return None
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = problem.threads, 4
    model = serialised(problem, NEWEST.get(problem.work.operator, 22), 10)
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding, out = session.io_binding(), np.empty_like(problem.answer)
    outs = {"y": out, "indices": np.empty(out.shape, np.int64)}
    binding.bind_cpu_input("x0", problem.inputs[0])
    for output in session.get_outputs():
        a = outs[output.name]
        binding.bind_output(output.name, "cpu", 0, a.dtype.type, a.shape, a.ctypes.data)
    return Prepared(lambda keep=outs: session.run_with_iobinding(binding), lambda _: out)


def openvino(problem: Problem) -> Prepared | None:
    """A compiled model that computes in the input's own type, if the processor can."""
    import openvino as ov
    x, out = problem.inputs[0], np.empty_like(problem.answer)
    quantised = problem.work.operator.startswith("QLinear")
    if not can_take(problem) or problem.layout == "last" or quantised or x.dtype.itemsize == 8:
        return None  # it has no quantised pools, and computes in float32 at most
    precision = {"float16": "f16", "bfloat16": "bf16"}.get(x.dtype.name, "f32")
    if precision != "f32" and "Lp" in problem.work.operator:
        return None  # GlobalLpPool of 16 bits did not terminate in version 2026.4.1
    hints = {"INFERENCE_NUM_THREADS": problem.threads, "PERFORMANCE_HINT": "LATENCY",
             "INFERENCE_PRECISION_HINT": precision}
    core = ov.Core()
    compiled = core.compile_model(core.read_model(serialised(problem, 19, 9)), "CPU", hints)
    request = compiled.create_infer_request()
    if precision == "bf16":
        tensors = [ov.Tensor(a.view(np.uint16), a.shape, ov.Type.bf16) for a in (x, out)]
    else:
        tensors = [ov.Tensor(a, shared_memory=True) for a in (x, out)]
    request.set_input_tensor(tensors[0])
    request.set_output_tensor(tensors[1])
    return Prepared(lambda keep=(x, out, compiled, tensors): request.infer(), lambda _: out)
