"""What docs/howto/onnx_tools.md says about onnxscript and spox. The examples of the page run in tests/docs."""

import doctest
import logging
import re
from unittest import mock

import numpy as np
import onnx
import pytest
from calls import FUNCTIONS, INDICES, NHWC_MAX, QLINEAR, SeededChoices
from calls_family import draw_call
from onnxpool_conformance.oracle import GeometryError, native
from peer import explicit
from support import ROOT, TESTS, assert_same_bits
from truths import truths

import onnxpool
from onnxpool.onnx.reference import Evaluator

ir = pytest.importorskip("onnx_ir")
optimizer = pytest.importorskip("onnxscript.optimizer")
folding = pytest.importorskip("onnxscript.optimizer._constant_folding")

PAGE = (ROOT / "docs" / "howto" / "onnx_tools.md").read_text()
POOLS = {name.split()[0] for name in FUNCTIONS}
OVERHANG = {"kernel_shape": [4], "strides": [4], "ceil_mode": 1, "count_include_pad": 1}
FIVE = np.array([[[1, 2, 3, 4, 5]]], np.float32)
MODEL = """
    <ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "local" : 1]>
    agraph (bool first) => (float[1, 1, a] y, float[1, 1, b] z, uint8[1, 1, c] w, int64[1, 1, d] i)
        <float[1, 1, 5] c = {1, 2, 3, 4, 5}, uint8[1, 1, 3] q = {1, 3, 5}, float s = {1}, uint8 zero = {0}> {
        y = If (first) <
            then_branch = then () => (t) { t = AveragePool <kernel_shape = [5]> (c) },
            else_branch = other () => (e) { e = MaxPool <kernel_shape = [5]> (c) } >
        z = local.pool ()
        w = com.microsoft.QLinearAveragePool <kernel_shape = [2]> (q, s, , s)
        n, i = MaxPool <kernel_shape = [4]> (c)
    }
    <opset_import: ["" : 21], domain: "local">
    pool () => (p) {
        k = Constant <value = float[1, 1, 3] {-1, 2, -3}> ()
        p = LpPool <kernel_shape = [2], p = 1> (k)
    }
"""


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """An empty registry. What a test registers is removed afterwards."""
    kept = {key: list(found) for key, found in folding.registry.op_evaluators.items() if key[1] not in POOLS}
    monkeypatch.setattr(folding.registry, "op_evaluators", kept)


@pytest.fixture
def registered(registry):
    """The functions of the page are registered."""
    code = "".join(example.source for example in doctest.DocTestParser().get_examples(PAGE))
    start, end = code.index("from functools"), code.index("onnxscript.optimizer.fold_constants(")
    exec(code[start:end], {"onnxpool": onnxpool, "ir": ir})


def test_the_page_names_the_versions_that_are_tested():
    """The page names the versions that are pinned for the tests."""
    pinned = dict(re.findall(r"^([\w-]+)==(.*)$", (TESTS / "onnx" / "versions.txt").read_text(), re.MULTILINE))
    named = re.search(r"tested\s+with\s+onnx-ir\s+(\S+),\s+onnxscript\s+(\S+)\s+and\s+spox\s+(\S+):", PAGE).groups()
    assert named == tuple(pinned[name] for name in ("onnx-ir", "onnxscript", "spox"))


def model_of(call):
    """A model whose pooling node has constant inputs only."""
    domain = "com.microsoft" if call.operator in (*QLINEAR, NHWC_MAX) else ""
    given = explicit(call) if "kernel_shape" in call.attributes else dict(call.attributes)
    if call.operator in QLINEAR and call.channels_last:
        given["channels_last"] = 1
    inputs = [array if array is None else ir.Value(
        name=f"x{place}", const_value=ir.tensor(np.ascontiguousarray(array, native(array.dtype))))
        for place, array in enumerate(call.inputs)]
    outputs = [ir.Value(name=name) for name in ("y", "i")[:1 + (call.operator == INDICES)]]
    pool = ir.node(call.operator.split()[0], inputs, given, domain=domain, outputs=outputs)
    ends = [ir.node("Identity", [value], outputs=[ir.Value(name=f"{value.name}_end")]) for value in outputs]
    opset = call.opset or 22
    graph = ir.Graph([], [end.outputs[0] for end in ends], nodes=[pool, *ends], name="graph",
                     initializers=[value for value in inputs if value is not None],
                     opset_imports={"": opset, "com.microsoft": 1})
    return ir.Model(graph, ir_version=10)


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_folded_nodes(operator, registered):
    """Nodes of every operator and version are replaced by what the call by name returns."""
    folded = 0
    for seed in range(40):
        call = draw_call(SeededChoices(seed), (operator,))
        if call.channels_last and operator not in (*QLINEAR, NHWC_MAX):
            continue
        try:
            truths(call)
        except GeometryError:
            continue
        model = model_of(call)
        optimizer.fold_constants(model, onnx_shape_inference=False)
        assert not any(node.op_type in POOLS for node in model.graph.all_nodes())
        results = Evaluator(ir.to_proto(model)).run(None, {})
        expected = call.run(onnxpool)
        for pair in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert_same_bits(*pair)
        folded += 1
    assert folded > 5


def folded(text):
    """A model after folding."""
    model = onnx.parser.parse_model(text)
    optimizer.fold_constants(model)
    return model


def pools_of(proto):
    """The pooling nodes of a model, also in bodies and functions."""
    return [node.op_type for node in ir.from_proto(proto).graph.all_nodes() if node.op_type in POOLS] + [
        node.op_type for function in proto.functions for node in function.node if node.op_type in POOLS]


def test_bodies_and_functions(registered):
    """Nodes in the branches of an If or in functions are folded, and so are nodes of com.microsoft and nodes with
    Indices."""
    before = onnx.parser.parse_model(MODEL)
    after = folded(MODEL)
    assert sorted(pools_of(before)) == ["AveragePool", "LpPool", "MaxPool", "MaxPool", "QLinearAveragePool"]
    assert pools_of(after) == []
    for first in (True, False):
        feeds = {"first": np.array(first)}
        for y, expected in zip(Evaluator(after).run(None, feeds), Evaluator(before).run(None, feeds), strict=True):
            assert_same_bits(y, expected)


def test_without_registration(needs_named_version):
    """Without registration, onnxscript folds with the reference, but folds neither Indices nor com.microsoft nodes."""
    needs_named_version("onnx")
    after = folded("""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph () => (float[1, 1, a] z) <float[1, 1, 5] c = {1, 2, 3, 4, 5}> {
            y = AveragePool <kernel_shape = [4], strides = [4], ceil_mode = 1, count_include_pad = 1> (c)
            z = Identity (y)
        }""")
    assert onnx.numpy_helper.to_array(after.graph.initializer[0]).tolist() == [[[1.5, 4]]]
    assert {"MaxPool", "QLinearAveragePool"} <= set(pools_of(folded(MODEL)))


def test_inputs_stay(registered):
    """A node is not folded if its input may change, as a graph input may, even one with a default."""
    for inputs in ("float[1, 1, 5] c", "float[1, 1, 5] c = {1, 2, 3, 4, 5}"):
        after = folded(f"""
            <ir_version: 10, opset_import: ["" : 21]>
            agraph ({inputs}) => (float[1, 1, a] y) {{ y = MaxPool <kernel_shape = [4]> (c) }}""")
        assert pools_of(after) == ["MaxPool"]


def test_a_node_that_is_not_valid(registered):
    """For a node that is not valid, onnxpool's error is the cause of onnxscript's error."""
    with pytest.raises(RuntimeError, match="MaxPool") as caught:
        folded("""
            <ir_version: 10, opset_import: ["" : 21]>
            agraph () => (float[1, 1, a] z) <float[1, 1, 5] c = {1, 2, 3, 4, 5}> {
                y = MaxPool <kernel_shape = [6]> (c)
                z = Identity (y)
            }""")
    assert isinstance(caught.value.__cause__, onnxpool.PoolError)


def test_eager_operators_of_onnxscript(needs_named_version):
    """Eager operators run on onnxpool only while the reference is replaced."""
    needs_named_version("onnx")
    evaluator = pytest.importorskip("onnxscript.evaluator")
    opset = pytest.importorskip("onnxscript").opset21
    with evaluator.default_as(evaluator.OnnxReferenceRuntimeEvaluator()):
        assert np.asarray(opset.AveragePool(FIVE, **OVERHANG)).tolist() == [[[1.5, 4]]]
        with mock.patch("onnx.reference.ReferenceEvaluator", Evaluator):
            assert np.asarray(opset.AveragePool(FIVE, **OVERHANG)).tolist() == [[[2.5, 5]]]


def test_spox_itself(needs_named_version):
    """spox's settings choose the reference or onnxruntime."""
    needs_named_version("onnx")
    op, settings = pytest.importorskip("spox.opset.ai.onnx.v21"), pytest.importorskip("spox._future")
    found = {}
    for backend in settings.ValuePropBackend:
        with settings.value_prop_backend(backend):
            found[backend.name] = str(op.average_pool(op.const(FIVE), **OVERHANG)).partition(" = ")[2]
    assert found == {"NONE": "", "REFERENCE": "[[[1.5 4. ]]]>", "ONNXRUNTIME": "[[[2.5 5. ]]]>"}


def test_spox_goes_on_without_the_value_of_a_refused_node(caplog):
    """spox logs the error of the node, and the result has a type but no value."""
    op = pytest.importorskip("spox.opset.ai.onnx.v21")
    caplog.set_level(logging.DEBUG)
    x = op.const(FIVE)
    with mock.patch("onnx.reference.ReferenceEvaluator", Evaluator):
        refused = op.average_pool(x, kernel_shape=[4], ceil_mode=2)
    assert "ceil_mode must be 0 or 1" in caplog.text
    assert "=" not in str(refused)
