"""The backend tests in the onnx package for these operators, at every version that can express them."""

import importlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.backend.test
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, helper, numpy_helper
from onnx.backend.test.case import node as node_cases
from onnx.defs import get_all_schemas_with_history

import onnxpool

# The number of cases of each operator that onnx has published so far: fewer mean that a test has lost its data.
PUBLISHED = {"AveragePool": 20, "GlobalAveragePool": 2, "GlobalMaxPool": 2, "LpPool": 8, "MaxPool": 19}
CONVERTED = 16
EXACT = ("GlobalMaxPool", "MaxPool")
SCHEMAS = {
    (schema.name, schema.since_version): schema
    for schema in get_all_schemas_with_history()
    if schema.domain == "" and schema.name in PUBLISHED
}


class Case(NamedTuple):
    """A node, its input and its outputs."""

    name: str
    node: NodeProto
    x: NDArray[Any]
    outputs: list[NDArray[Any]]
    rtol: float
    atol: float


def published(operator: str) -> list[Case]:
    """The node tests of onnx for an operator.

    A module of onnx registers its cases when it is imported, and computes them, which takes seconds. onnx's public
    collector would import all modules, and raises warnings.
    """
    importlib.import_module(f"{node_cases.__name__}.{operator.lower()}")
    return [
        Case(case.name, case.model.graph.node[0], inputs[0], list(outputs), case.rtol, case.atol)
        for case in node_cases._NodeTestCases
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type == operator
        for inputs, outputs in case.data_sets
    ]


def can_express(version: int, case: Case) -> bool:
    """Whether a version of the operator supports the node's outputs, attributes with their types, and dtype."""
    schema = SCHEMAS[case.node.op_type, version]
    tensor = helper.tensor_dtype_to_string(helper.np_dtype_to_tensor_dtype(case.x.dtype))
    wanted = {"TensorProto.FLOAT": "tensor(float)"}.get(tensor, f"tensor({tensor.rpartition('.')[2].lower()})")
    fits = len(case.outputs) <= schema.max_output and wanted in schema.type_constraints[0].allowed_type_strs
    return fits and all(
        attribute.name in schema.attributes and int(schema.attributes[attribute.name].type) == attribute.type
        for attribute in case.node.attribute
    )


def check(case: Case, result: Any) -> None:
    """The results have the dtypes and shapes of the case, and its values: exactly if no arithmetic is involved."""
    results = result if isinstance(result, tuple) else (result,)
    for y, expected in zip(results, case.outputs, strict=True):
        if case.node.op_type in EXACT:
            np.testing.assert_array_equal(y, expected, case.name, strict=True)
        else:
            np.testing.assert_allclose(y, expected, case.rtol, case.atol, err_msg=case.name, strict=True)


def check_other_layout(case: Case) -> None:
    """The values of the first output for channels-last data, stored in `out`."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in case.node.attribute}
    if "auto_pad" in attributes:
        attributes["auto_pad"] = attributes["auto_pad"].decode()
    first = case._replace(outputs=case.outputs[:1])
    operator = getattr(onnxpool, case.node.op_type)(**attributes, channels_last=True)
    out = np.empty_like(np.moveaxis(first.outputs[0], 1, -1))

    y = operator(np.moveaxis(case.x, 1, -1), out=out)

    assert y is out
    check(first, np.moveaxis(y, -1, 1))


@pytest.mark.parametrize("operator", PUBLISHED)
def test_backend_cases(operator: str) -> None:
    """Node tests of onnx return their published values at every version that can express the node, and in either
    layout."""
    cases, met = published(operator), set()
    assert len({case.name for case in cases}) == len(cases) >= PUBLISHED[operator]
    for case in cases:
        for version in [version for name, version in SCHEMAS if name == operator and can_express(version, case)]:
            check(case, onnxpool.from_node(case.node, {"": version})(case.x))
            met.add(version)
        check_other_layout(case)
    assert met >= {version for name, version in SCHEMAS if name == operator and (name, version) != ("LpPool", 1)}


# The other operators in the converted models, as functions of their input and the attribute that names the axes.
RESHAPES = {"Unsqueeze": np.expand_dims, "Squeeze": np.squeeze}


def load(path: Path) -> NDArray[Any]:
    return numpy_helper.to_array(onnx.load_tensor(path))


def pools(model: onnx.ModelProto) -> bool:
    return any(node.op_type in PUBLISHED for node in model.graph.node)


DATA = Path(onnx.backend.test.__file__).parent / "data"
MODELS = {
    path.parent.name: path
    for folder in ("pytorch-converted", "pytorch-operator")
    for path in sorted((DATA / folder).glob("*/model.onnx"))
    if pools(onnx.load(path))
}


def test_no_converted_model_was_lost() -> None:
    """onnx ships all of these pooling models exported from PyTorch."""
    assert len(MODELS) >= CONVERTED


@pytest.mark.parametrize("newer", [0, 22], ids=["as_exported", "newest"])
@pytest.mark.parametrize("name", MODELS)
def test_converted_model(name: str, newer: int) -> None:
    """A pooling model exported from PyTorch returns PyTorch's values, at its own opset and at the newest version."""
    model = onnx.load(MODELS[name])
    opset = max(newer, model.opset_import[0].version)
    folders = sorted(MODELS[name].parent.glob("test_data_set_*"))
    assert folders

    for folder in folders:
        values = {model.graph.input[0].name: load(folder / "input_0.pb")}
        for node in model.graph.node:
            if node.op_type in RESHAPES:
                axes = tuple(node.attribute[0].ints)
                values[node.output[0]] = RESHAPES[node.op_type](values[node.input[0]], axes)
            else:
                values[node.output[0]] = onnxpool.from_node(node, {"": opset})(values[node.input[0]])

        expected = load(folder / "output_0.pb")
        np.testing.assert_allclose(values[model.graph.output[0].name], expected, rtol=1e-5, atol=1e-6, strict=True)
