"""Small models in files, and the command line in a process of its own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper

FLOAT, DOUBLE, BYTE, BFLOAT16 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.UINT8, TensorProto.BFLOAT16
MICROSOFT = "com.microsoft"
RAMP = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
HALVES = {"kernel_shape": [2, 2], "strides": [2, 2]}
SHAPE = [1, 1, 4, 4]


def node(operator: str, inputs: str = "x", outputs: str = "y", name: str = "", domain: str = "",
         **attributes: Any) -> onnx.NodeProto:
    """A node; inputs and outputs are names separated by spaces."""
    return helper.make_node(operator, inputs.split(), outputs.split(), name=name, domain=domain, **attributes)


def value(name: str, kind: int = FLOAT, shape: Any = SHAPE) -> onnx.ValueInfoProto:
    """An input or output of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)


def save(path: Path, nodes: Sequence[onnx.NodeProto], inputs: Any = None, outputs: Any = None, opset: int = 22,
         initializer: Sequence[Any] = (), functions: Sequence[Any] = (), domain: str = "") -> str:
    """Write a model and return its path as a string."""
    graph = helper.make_graph(nodes, "graph", inputs or [value("x")], outputs or [value("y", shape=None)], initializer)
    imports = [helper.make_opsetid(domain, opset), helper.make_opsetid(MICROSOFT, 1)]
    imports += [helper.make_opsetid(f.domain, 1) for f in functions]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10, functions=functions), path)
    return str(path)


def process(*arguments: str, code: str | None = None, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a fresh interpreter."""
    start = ["-m", "onnxpool"] if code is None else ["-c", code]
    return subprocess.run([sys.executable, "-W", "error", *start, *arguments],
                          capture_output=True, text=True, timeout=300, **options)
