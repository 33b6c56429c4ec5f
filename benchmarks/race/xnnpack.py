"""XNNPACK, through LiteRT: a model of one operator, for geometries that padding SAME or VALID can express."""

from typing import Any

import numpy as np

from .problem import Prepared, Problem

# By operator: the operator of LiteRT, the class of its options, and the dtypes that XNNPACK accepts.
OPERATORS = {
    "MaxPool": ("MAX_POOL_2D", "Pool2DOptions", ("float32", "int8", "uint8")),
    "NhwcMaxPool": ("MAX_POOL_2D", "Pool2DOptions", ("int8", "uint8")),
    "AveragePool": ("AVERAGE_POOL_2D", "Pool2DOptions", ("float32", "float16")),
    "GlobalMaxPool": ("REDUCE_MAX", "ReducerOptions", ("float32",)),
    "GlobalAveragePool": ("MEAN", "ReducerOptions", ("float32", "float16")),
}
SPATIAL = np.array([1, 2], np.int32)  # the axes of a reducer, which are its second input
CURRENT, IDENTIFIER = 3, b"TFL3"  # version and file identifier of the schema


def padding(problem: Problem) -> str | None:
    """The padding of a window, if it is SAME or VALID."""
    kernel, strides = problem.attribute("kernel_shape"), problem.attribute("strides")
    pads = problem.attribute("pads", 0)
    others = [problem.work.attributes.get(name) for name in ("ceil_mode", "count_include_pad", "return_indices")]
    if any(others) or max(problem.attribute("dilations")) > 1:
        return None
    if not any(pads):
        return "VALID"
    for axis, size in enumerate(problem.inputs[0].shape[1:-1]):
        total = max(0, (-(-size // strides[axis]) - 1) * strides[axis] + kernel[axis] - size)
        if [pads[axis], pads[axis + len(kernel)]] != [total // 2, total - total // 2]:
            return None
    return "SAME"


def tensor(schema: Any, name: str, array: np.ndarray, buffer: int = 0) -> Any:
    """The description of an array; bytes are not scaled."""
    made = schema.TensorT()
    made.name, made.shape, made.buffer = name, list(array.shape), buffer
    made.type = getattr(schema.TensorType, array.dtype.name.upper())
    if array.dtype.itemsize == 1:
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale, made.quantization.zeroPoint = [1.0], [0]
    return made


def options_of(schema: Any, kind: str, problem: Problem, padded: str) -> Any:
    """The attributes of the operator."""
    options = getattr(schema, f"{kind}T")()
    if kind == "ReducerOptions":
        options.keepDims = True
        return options
    options.padding = getattr(schema.Padding, padded)
    options.filterHeight, options.filterWidth = problem.attribute("kernel_shape")
    options.strideH, options.strideW = problem.attribute("strides")
    return options


def model(problem: Problem, padded: str) -> bytes:
    """A model that consists of the operator."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema
    name, kind, _ = OPERATORS[problem.work.operator]
    x = problem.inputs[0]
    code, operator, graph, made = schema.OperatorCodeT(), schema.OperatorT(), schema.SubGraphT(), schema.ModelT()
    code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, name)
    code.version = 1 if x.dtype == np.float32 else 2
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0], [1]
    operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
    operator.builtinOptions = options_of(schema, kind, problem, padded)
    graph.tensors = [tensor(schema, "x", x), tensor(schema, "y", problem.answer)]
    made.buffers = [schema.BufferT(), schema.BufferT()]
    if kind == "ReducerOptions":
        operator.inputs = [0, 2]
        graph.tensors.append(tensor(schema, "axes", SPATIAL, buffer=1))
        made.buffers[1].data = np.frombuffer(SPATIAL.tobytes(), np.uint8)
    graph.inputs, graph.outputs, graph.operators, graph.name = [0], [1], [operator], "main"
    made.version, made.operatorCodes, made.subgraphs = CURRENT, [code], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.Pack(builder), IDENTIFIER)
    return bytes(builder.Output())


def xnnpack(problem: Problem) -> Prepared | None:
    """An interpreter that holds the input. The peer takes part if the interpreter delegates the operator to XNNPACK."""
    from ai_edge_litert.interpreter import Interpreter
    x = problem.inputs[0]
    _, kind, dtypes = OPERATORS.get(problem.work.operator, (None, None, ()))
    if problem.layout != "last" or x.ndim != 4 or x.dtype.name not in dtypes or not x.flags.c_contiguous:
        return None
    padded = "VALID" if kind == "ReducerOptions" else padding(problem)
    if padded is None:
        return None
    interpreter = Interpreter(model_content=model(problem, padded), num_threads=problem.threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    if not any(step["op_name"] == "DELEGATE" for step in interpreter._get_ops_details()):
        return None
    return Prepared(interpreter.invoke, lambda _: interpreter.get_tensor(1))
