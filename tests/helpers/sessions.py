"""onnxruntime sessions on small models, with and without onnxpool's operators."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from samples import data

from onnxpool.onnxruntime import register

RELEASE = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
NEWEST_OPSET = 22 if RELEASE >= (1, 21) else 20
SILENT = 4
TYPES = {"bfloat16": TensorProto.BFLOAT16, "float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT}
TYPES |= {"float64": TensorProto.DOUBLE, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}
TYPES |= {"int64": TensorProto.INT64}


def options(ops: str | Iterable[str] | None = None, *, opset: int | None = None,
            threads: int = 1) -> onnxruntime.SessionOptions:
    """Session options, on which onnxpool is registered unless `ops` is None."""
    made = onnxruntime.SessionOptions()
    made.log_severity_level = SILENT
    made.intra_op_num_threads = threads
    if ops is not None:
        register(made, ops, opset=opset)
    return made


def session(model: ModelProto, ops: str | Iterable[str] | None = None, **how: Any) -> onnxruntime.InferenceSession:
    """A session of a model."""
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options(ops, **how), providers=["CPUExecutionProvider"]
    )


Port = tuple[str, str, Any]  # name, dtype, shape


def model(nodes: Sequence[Any], inputs: Iterable[Port], outputs: Iterable[Port], opset: int, *,
          constants: Any = (), functions: Sequence[Any] = ()) -> ModelProto:
    """A model of nodes."""
    imports = {"": opset} | {node.domain: 1 for node in nodes if node.domain}
    ports = [[helper.make_tensor_value_info(name, TYPES[dtype], shape) for name, dtype, shape in given]
             for given in (inputs, outputs)]
    graph = helper.make_graph(
        nodes, "g", ports[0], ports[1],
        initializer=[numpy_helper.from_array(array, name) for name, array in dict(constants).items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in imports.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions)


def node_model(operator: str, inputs: Sequence[Any], attributes: dict[str, Any], *, opset: int,
               outputs: Sequence[str] = ("y",), domain: str = "", dtypes: Sequence[str] | None = None,
               shape: Any = None) -> ModelProto:
    """A model of one node on arrays of these dtypes; bfloat16 cannot be an input, so it is cast from and to float32."""
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    results = dict(zip(outputs, dtypes or (inputs[0].dtype.name, "int64"), strict=False))
    given = {name: array.dtype.name for name, array in zip(names, inputs, strict=False) if name}
    halves = {name for name, dtype in {**given, **results}.items() if dtype == "bfloat16"}

    def inner(name: str) -> str:
        return name + "_bf16" if name in halves else name

    nodes = [
        helper.make_node("Cast", [name], [inner(name)], to=TensorProto.BFLOAT16) for name in given if name in halves
    ]
    nodes.append(helper.make_node(operator, [inner(name) for name in names], [inner(name) for name in outputs],
                                  name="pool", domain=domain, **attributes))
    nodes += [
        helper.make_node("Cast", [inner(name)], [name], to=TensorProto.FLOAT) for name in results if name in halves
    ]

    def described(ports: dict[str, str], shape: Any) -> list[Port]:
        return [(name, "float32" if name in halves else dtype, shape) for name, dtype in ports.items() if name]

    return model(nodes, described(given, shape), described(results, None), opset)


def feeds(inputs: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """The inputs for a model of one node; onnxruntime accepts only native byte order."""
    arrays = {f"x{i}": np.asarray(array) for i, array in enumerate(inputs) if array is not None}
    return {name: array.astype(np.float32 if array.dtype.name == "bfloat16" else array.dtype.newbyteorder("="))
            for name, array in arrays.items()}


def answers(operator: str, inputs: Sequence[Any], attributes: dict[str, Any], ops: str | Iterable[str] | None, *,
            register_opset: int | None = None, **how: Any) -> Any:
    """The outputs of one node as computed by a session, with bfloat16 as float32."""
    made = session(node_model(operator, inputs, attributes, **how), ops, opset=register_opset)
    return made.run(None, feeds(inputs))


def same(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Whether the output of a session has exactly the values of an array; bfloat16 arrives as float32."""
    expected = expected.astype(np.float32) if expected.dtype.name == "bfloat16" else expected
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


def layers() -> ModelProto:
    """A network of convolutions and pools as optimised by onnxruntime: in blocks of channels."""
    pools: dict[str, dict[str, Any]] = {
        "MaxPool": {"kernel_shape": [2, 2]}, "AveragePool": {"kernel_shape": [3, 3]}, "GlobalAveragePool": {},
    }
    made, constants, last = [], {}, "x"
    for i, (operator, attributes) in enumerate(pools.items()):
        constants[f"w{i}"] = data((16, 3 if i == 0 else 16, 3, 3), seed=i)
        made += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"]), helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
                 helper.make_node(operator, [f"r{i}"], [f"p{i}"], **attributes)]
        last = f"p{i}"
    return model(made, [("x", "float32", [1, 3, 32, 32])], [(last, "float32", None)], 12, constants=constants)
