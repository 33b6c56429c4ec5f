"""Every pooling node of three real models, on the data that reaches it within the model, compared with onnxruntime."""

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from real_models import MODELS, load
from sessions import session
from support import to_last

import onnxpool

RELATIVE = 1e-5  # maximum error, relative to the mean of |x|


def run(model: onnx.ModelProto, x: NDArray[Any], outputs: list[str]) -> dict[str, NDArray[Any]]:
    """The named outputs of a model with one input, as onnxruntime computes them."""
    made = session(model)
    return dict(zip(outputs, made.run(outputs, {made.get_inputs()[0].name: x}), strict=True))


def alone(node: onnx.NodeProto, model: onnx.ModelProto) -> onnx.ModelProto:
    """A model of one node, at the opset of the model that contains the node."""
    graph = helper.make_graph(
        [node],
        "alone",
        [helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


@pytest.mark.parametrize("name", MODELS)
def test_pooling_nodes_of_a_real_model(name: str) -> None:
    """Every pooling node of the model returns onnxruntime's values for its input in the model, in both layouts."""
    shape, counts = MODELS[name]
    model = load(name)
    nodes = [node for node in model.graph.node if "Pool" in node.op_type]
    assert Counter(node.op_type for node in nodes) == counts
    inputs = sorted({node.input[0] for node in nodes})
    model.graph.output.extend(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None) for tensor in inputs)
    image = np.random.default_rng(len(name)).uniform(-1, 1, shape).astype(np.float32)
    reached = run(model, image, inputs)
    opsets = {opset.domain: opset.version for opset in model.opset_import}

    for node in nodes:
        x = reached[node.input[0]]
        assert x.std() > 0
        theirs = run(alone(node, model), x, [node.output[0]])[node.output[0]]

        operator = onnxpool.from_node(node, opsets)
        for data in (x, to_last(x).transpose(0, 3, 1, 2)):
            ours = operator(data)
            scale = 0 if node.op_type == "MaxPool" else RELATIVE * operator(abs(x))
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            assert (abs(ours - theirs) <= scale).all(), node.name
