"""Nodes of onnx-ir give the same operators and errors as the same nodes as protos."""

import logging
from pathlib import Path

import onnx
import onnx.parser
import pytest
from calls import FUNCTIONS, NHWC_MAX, QLINEAR, SeededChoices
from calls_family import draw_call
from corruption import bad_attribute, bad_element
from onnx import AttributeProto, helper
from programs import program

import onnxpool
from onnxpool import PoolError, PoolTypeError, from_node

ir = pytest.importorskip("onnx_ir")
SEEDS = range(1500)
FIELDS = ("operator", "attribute", "axis", "value")
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
POOL = {"op_type": "MaxPool", "inputs": ["x"], "outputs": ["y"]}


@pytest.fixture(autouse=True)
def quiet(caplog):
    """onnx-ir warns of nodes outside a graph, whose inputs nothing writes."""
    caplog.set_level(logging.ERROR, "onnx_ir")


def outcome(node, opsets):
    """The operator of a node, or all fields of the error."""
    try:
        return from_node(node, opsets)
    except (PoolError, PoolTypeError) as error:
        return type(error), str(error), *(getattr(error, name) for name in FIELDS)


def same(proto, opsets):
    """The outcome for a NodeProto, which must equal the outcome for the onnx-ir node."""
    expected, got = outcome(proto, opsets), outcome(ir.from_proto(proto), opsets)
    assert repr(got) == repr(expected)  # NaN among the attributes does not equal itself
    return expected


def test_malformed_nodes():
    """Wrong attributes and domains, of any type that a node can hold, are refused with the same words as in a
    NodeProto."""
    refused = accepted = 0
    for seed in SEEDS:
        choices = SeededChoices(seed)
        operator = choices.pick(tuple(FUNCTIONS))
        call = choices.pick((bad_attribute, bad_element))(choices, draw_call(choices, (operator,)))
        given = {name: value for name, value in call.attributes.items() if name != "num_threads"}
        domain = "com.microsoft" if operator in (*QLINEAR, NHWC_MAX) else choices.pick(("", "ai.onnx"))
        domain = choices.pick(("com.microsoft", "", "other")) if choices.chance(5) else domain
        outputs = choices.pick((["y"], ["y", "i"], ["y", ""], ["", "i"]))
        try:
            node = helper.make_node(operator.split()[0], ["x", "", "z"], outputs, domain=domain, **given)
        except (TypeError, ValueError):  # not a value that a node can hold
            continue
        found = same(node, {"": call.opset or 28, "com.microsoft": 1})
        refused += isinstance(found, tuple)
        accepted += not isinstance(found, tuple)
    assert refused > 300
    assert accepted > 50


@pytest.mark.parametrize("change", [
    {"op_type": "Conv"}, {"op_type": "maxpool"}, {"domain": "com.microsoft"}, {"domain": "ai.onnx"}, {},
    {"kernel_shape": 2}, {"kernel_shape": [2.0]}, {"kernel_shape": "2"}, {"foreign": [b"a", b"b"]}, {"ceil_mode": 1.5},
    {"auto_pad": "same"}, {"auto_pad": b"\xff"}, {"outputs": ["y", ""]}, {"outputs": ["y", "i"]},
    {"foreign": helper.make_tensor("t", AttributeProto.FLOAT, [2], [1, 2])},
    {"foreign": helper.make_graph([], "empty", [], [])},
], ids=repr)
@pytest.mark.parametrize("opsets", [{"": 12}, {"ai.onnx": 21}, {"com.microsoft": 1}, {"": 99}], ids=str)
def test_nodes(change, opsets):
    """Names, domains, opsets, types of attributes and omitted outputs mean what they mean in a NodeProto."""
    same(helper.make_node(**{**POOL, "kernel_shape": [2], **change}), opsets)


def test_outputs():
    """Indices are returned if there is a second output with a name or without, unless its name is empty."""
    def indices(node):
        return from_node(node, {"": 22}).return_indices

    pool = {"op_type": "MaxPool", "inputs": [ir.Value(name="x")], "attributes": {"kernel_shape": [2]}}
    assert not indices(ir.node(**pool))
    assert indices(ir.node(**pool, num_outputs=2))
    assert indices(ir.node(**pool, outputs=[ir.Value(name="y"), ir.Value(name="i")]))
    assert not indices(ir.node(**pool, outputs=[ir.Value(name="y"), ir.Value(name="")]))


def test_floats_have_the_precision_of_nodes():
    """A float of onnx-ir, which is a Python float, is rounded to 32 bits like an attribute of a NodeProto."""
    node = ir.node("GlobalLpPool", [ir.Value(name="x")], {"p": 1.1})
    proto = helper.make_node("GlobalLpPool", ["x"], ["y"], p=1.1)
    assert from_node(node, {"": 1}) == from_node(proto, {"": 1})
    assert from_node(node, {"": 1}) != onnxpool.GlobalLpPool(p=1.1, opset=1)


def test_references_to_attributes_of_functions():
    """A node of a function is refused if the caller sets an attribute, whether the node is from onnx or onnx-ir."""
    proto = helper.make_node("MaxPool", ["x"], ["y"], strides=[2])
    proto.attribute.append(AttributeProto(name="kernel_shape", ref_attr_name="size", type=AttributeProto.INTS))
    kind, text, *fields = same(proto, {"": 22})
    assert (kind, fields) == (PoolError, ["MaxPool", "kernel_shape", None, "size"])
    made = ir.node("MaxPool", [ir.Value(name="x")])
    made.attributes["kernel_shape"] = ir.RefAttr("kernel_shape", "size", ir.AttributeType.INTS)
    assert outcome(made, {"": 22})[1] == text


def test_inlined_functions():
    """A node of a function is accepted after onnx-ir has replaced its references by the values of the caller."""
    model = ir.from_proto(onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        agraph (float[1, 1, 4] x) => (float[1, 1, 2] y) { y = local.Halved <size = [2]> (x) }
        <opset_import: ["" : 21], domain: "local">
        Halved <size> (a) => (b) { b = MaxPool <kernel_shape: ints = @size, strides: ints = @size> (a) }
    """))
    inliner = pytest.importorskip("onnx_ir.passes.common")
    inliner.InlinePass()(model)
    found = [from_node(node, model.opset_imports) for node in model.graph]
    assert found == [onnxpool.MaxPool(kernel_shape=[2], strides=[2], opset=21)]


@pytest.mark.parametrize(("kind", "value"), [
    ("INTS", [2, 2**70]), ("INT", None), ("INTS", None), ("UNDEFINED", 1), ("STRING", 3), ("SPARSE_TENSOR", 0),
])
def test_values_of_another_type_than_declared(kind, value):
    """onnx-ir checks few values. Values that a NodeProto cannot hold are refused for their type."""
    node = ir.node("MaxPool", [ir.Value(name="x")], {"kernel_shape": [2]})
    node.attributes["strides"] = ir.Attr("strides", ir.AttributeType[kind], value)
    with pytest.raises(PoolTypeError, match=rf"^MaxPool: strides=.* is not a value of the type {kind} that the node "
                                            "declares; change it$") as caught:
        from_node(node, {"": 22})
    assert (caught.value.operator, caught.value.attribute) == ("MaxPool", "strides")


def test_opset_imports_decide():
    """Opset imports decide the version, because saved models do not have onnx-ir's node.version."""
    node = ir.node("LpPool", [ir.Value(name="x")], {"kernel_shape": [2], "p": 2}, version=22)
    graph = ir.Graph([node.inputs[0]], node.outputs, nodes=[node], opset_imports={"": 18})
    assert from_node(node, graph.opset_imports).version == 18


def test_other_objects_of_onnx_ir():
    """Other objects of onnx-ir are refused as nodes."""
    graph = ir.Graph([], [], nodes=[])
    for wrong in (graph, ir.Model(graph, ir_version=10), ir.Value(name="x"), ir.AttrInt64s("strides", [2])):
        with pytest.raises(PoolTypeError, match=r"node is a \w+; pass a NodeProto, .* or an onnx_ir.Node"):
            from_node(wrong, {"": 22})


def test_onnx_ir_is_not_imported():
    """Nodes of onnx do not import onnx-ir, and are read even while another thread is importing onnx-ir."""
    assert program("""
import sys, types
from onnx.helper import make_node
from onnxpool import from_node
node = make_node("MaxPool", ["x"], ["y"], kernel_shape=[2])
print(from_node(node, {"": 22}), "onnx_ir" in sys.modules)
sys.modules["onnx_ir"] = types.ModuleType("onnx_ir")
assert from_node(node, {"": 22})
""") == "MaxPool(kernel_shape=(2,), opset=22) False"


def test_every_node_of_a_model():
    """The pooling nodes of a whole model have the same operators in both forms."""
    pools = [node for node in onnx.load(LIGHT).graph.node if node.op_type in FUNCTIONS]
    opsets = {"": 9}
    model = ir.load(LIGHT)
    found = [from_node(node, opsets) for node in model.graph if node.op_type in FUNCTIONS]
    assert found == [from_node(node, opsets) for node in pools]
    assert found
