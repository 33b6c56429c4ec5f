"""Every operator as an ONNX node and as an object, on random calls, and node tests of onnx."""

import functools
import importlib
import pickle

import numpy as np
import pytest
from calls import FUNCTIONS, INDICES, NHWC_MAX, QLINEAR, REGIONS, UNPOOL, SeededChoices
from calls_family import draw_call
from onnx import helper
from onnx.backend.test.case import node as node_cases
from onnxpool_conformance.oracle import GeometryError
from peer import explicit
from support import assert_same_bits
from truths import truths

import onnxpool

PUBLISHED = {"MaxUnpool": 2, "RoiAlign": 3}
SEEDS = range(40)


def published():
    """The node tests of onnx for these operators, and their data."""
    for operator in PUBLISHED:
        importlib.import_module(f"{node_cases.__name__}.{operator.lower()}")
    return [
        pytest.param(case.model, *data, {"rtol": case.rtol, "atol": case.atol}, id=case.name)
        for case in node_cases._NodeTestCases
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in PUBLISHED
        for data in case.data_sets
    ]


def test_every_published_case_is_here():
    """No node test of onnx is lost."""
    counts = dict.fromkeys(PUBLISHED, 0)
    for case in published():
        counts[case.values[0].graph.node[0].op_type] += 1
    assert all(counts[name] >= number for name, number in PUBLISHED.items())


@pytest.mark.parametrize(("model", "inputs", "outputs", "tolerance"), published())
def test_published_case(model, inputs, outputs, tolerance):
    """A node of onnx's tests returns the published result, within its precision."""
    op = onnxpool.from_node(model.graph.node[0], {entry.domain: entry.version for entry in model.opset_import})
    np.testing.assert_allclose(op(*inputs), outputs[0], **tolerance, strict=True)


def made_by_onnx(operator, inputs, outputs, domain, attributes):
    """The node as a NodeProto."""
    return helper.make_node(operator, ["x"] * inputs, ["y", "i"][:outputs], domain=domain, **attributes)


def made_by_onnx_ir(operator, inputs, outputs, domain, attributes):
    """The node as onnx-ir makes it: its outputs have no names."""
    ir = pytest.importorskip("onnx_ir")
    return ir.node(operator, [ir.Value(name="x")] * inputs, attributes, domain=domain, num_outputs=outputs)


def read_by_onnx_ir(*node):
    """The node as onnx-ir reads it."""
    return pytest.importorskip("onnx_ir").from_proto(made_by_onnx(*node))


@functools.cache
def legal_calls(operator):
    """Random calls that the library accepts, with attributes as in nodes."""
    calls = []
    for seed in SEEDS:
        call = draw_call(SeededChoices(seed), (operator,))
        try:
            truths(call)
        except GeometryError:
            continue
        calls.append((call, explicit(call) if "kernel_shape" in call.attributes else call.attributes))
    return calls


@pytest.mark.parametrize("made", [made_by_onnx, made_by_onnx_ir, read_by_onnx_ir])
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_node(operator, made):
    """A node returns what the call by name returns, with as many outputs as it has."""
    domain = "com.microsoft" if operator in (*QLINEAR, NHWC_MAX) else ""
    ran = 0
    for call, attributes in legal_calls(operator):
        if call.channels_last and operator not in (*QLINEAR, NHWC_MAX):
            continue
        given = {**attributes, "channels_last": 1} if call.channels_last and operator in QLINEAR else attributes
        node = made(operator.split()[0], len(call.inputs), 1 + (operator == INDICES), domain, given)
        opset = call.opset or (1 if domain else 28)
        results = onnxpool.from_node(node, {domain: opset})(*call.inputs)
        expected = call.run(onnxpool)
        for pair in zip(results, expected, strict=True) if operator == INDICES else [(results, expected)]:
            assert_same_bits(*pair)
        ran += 1
    assert ran > len(SEEDS) // 5


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_object(operator):
    """An object computes the shape of its result, survives pickling, and equals an object like it."""
    for call, _ in legal_calls(operator):
        options = {"return_indices": True} if operator == INDICES else {}
        options |= {} if operator == NHWC_MAX else {"channels_last": call.channels_last}
        op = getattr(onnxpool, operator.split()[0])(**call.attributes, opset=call.opset, **options)
        copy = pickle.loads(pickle.dumps(op))
        assert (copy, hash(copy)) == (op, hash(op))
        y = call.run(onnxpool)
        if operator not in (UNPOOL, *REGIONS):
            assert op.output_shape(call.x.shape) == (y[0] if operator == INDICES else y).shape
