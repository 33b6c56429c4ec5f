"""The backend for onnx.backend.base: onnx's own test runner, and the promises of the interface."""

import unittest
import warnings
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from support import ROOT

import onnxpool
from onnxpool.onnx import backend, protos
from onnxpool.onnx.backend import OnnxPoolBackend
from onnxpool.onnx.reference import NodeError

FAMILY = {(row["operator"], row["domain"]) for row in onnxpool.supported()}
KINDS = ("node", "real", "simple", "pytorch-converted", "pytorch-operator")
RAMP = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)

# Whole models for which onnx's ReferenceEvaluator misses the expected outputs, whoever runs their pooling nodes: it
# runs BatchNormalization-9 as in training, and Softmax-1 along the last axis.
# test_reference_evaluator.py runs them too.
OTHERS_FAIL = {"test_densenet121", "test_squeezenet"}


def case_model(case):
    """The model of a test case of the onnx package."""
    if case.model is not None:
        return case.model
    if case.url is not None:
        return onnx.load(Path(onnx.__file__).parents[1] / case.url)
    return onnx.load(Path(case.model_dir) / "model.onnx")


def of_the_family():
    """The names of onnx's test cases that have a pooling node, by kind."""
    return {kind: {case.name for case in load_model_tests(kind=kind)
                   if any((node.op_type, node.domain) in FAMILY for node in protos.nodes_of(case_model(case)))}
            for kind in KINDS}


@pytest.fixture(scope="module")
def cases():
    """The names of onnx's test cases of the family, by kind."""
    with warnings.catch_warnings(action="ignore"):  # onnx's own warnings, while it generates its cases
        return of_the_family()


def run(names):
    """Run only the cases with these names, and return the names of the cases that pass."""
    runner = Runner(backend)
    for name in names:
        runner.include(f"^{name}_cpu$")
    result = unittest.TestResult()
    passed = []
    result.addSuccess = lambda test: passed.append(test.id().rpartition(".")[2].removesuffix("_cpu"))
    runner.test_suite.run(result)
    assert [text for _, text in result.failures + result.errors] == []
    return sorted(passed)


def test_onnx_runs_its_tests_of_the_family(cases):
    """onnx's BackendTest passes for each of its small models with a pooling node."""
    wanted = sorted(name for kind in KINDS if kind != "real" for name in cases[kind])

    assert len(wanted) > 60
    assert run(wanted) == wanted


def test_the_page_counts_the_cases(cases, needs_named_version):
    """docs/onnx.md has a row for each kind of case, with the numbers of cases and of cases that pass."""
    needs_named_version("onnx")
    page = (ROOT / "docs" / "onnx.md").read_text()
    rows = {kind: (len(names), len(names - OTHERS_FAIL)) for kind, names in cases.items() if names}
    for kind, text in (("node", "node"), ("pytorch-converted", "PyTorch, converted"),
                       ("pytorch-operator", "PyTorch, operator"), ("real", "whole models")):
        assert "| {} | {} | {} |".format(text, *rows.pop(kind)) in page
    assert rows == {}


@pytest.mark.slow  # test_reference_evaluator.py runs these models in less time
def test_onnx_runs_its_whole_models(cases, tmp_path, monkeypatch):
    """onnx's BackendTest passes for the whole models, all of which have pooling nodes."""
    monkeypatch.setenv("ONNX_MODELS", str(tmp_path))
    wanted = sorted(cases["real"] - OTHERS_FAIL)

    assert run(wanted) == wanted
    assert len(wanted) == 9 - len(OTHERS_FAIL)


def model(nodes, inputs=None, outputs=None, opset=22, **more):
    """A model of some nodes from x to y."""
    graph = helper.make_graph(nodes, "graph", inputs or [helper.make_tensor_value_info("x", 1, ["N", 1, 4, 4])],
                              outputs or [helper.make_tensor_value_info("y", 1, ["a", "b", "c", "d"])], **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


HALVED = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("form", [backend, OnnxPoolBackend])
@pytest.mark.parametrize("inputs", [RAMP, [RAMP], (RAMP,), {"x": RAMP}])
def test_the_forms_of_inputs_and_outputs(form, inputs):
    """Module and class are the same backend. Inputs can be passed alone, in order or by name. Outputs can be read in
    order or by name."""
    assert isinstance(form, ModuleType) or issubclass(form, onnx.backend.base.Backend)
    for outputs in (form.prepare(model([HALVED])).run(inputs), form.run_model(model([HALVED]), inputs),
                    form.run_node(HALVED, inputs)):
        assert isinstance(outputs, tuple)
        assert len(outputs) == 1
        assert outputs["y"] is outputs[0]
        assert outputs[0].ravel().tolist() == [6, 8, 14, 16]


def test_devices():
    """Only the CPU is supported. Other devices are refused by name."""
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    assert not backend.is_compatible(model([HALVED]), "CUDA")
    for call in (lambda: backend.prepare(model([HALVED]), "CUDA:1"), lambda: backend.run_node(HALVED, RAMP, "CUDA:1")):
        with pytest.raises(protos.ModelError, match="device='CUDA:1' is not supported, only 'CPU'"):
            call()


def test_what_is_compatible():
    """A model is compatible if it can be prepared, without wrong attributes, unknown operators, or a broken graph."""
    assert backend.is_compatible(model([HALVED]))
    assert backend.is_compatible(model([helper.make_node("Neg", ["x"], ["y"])]))
    for nodes in ([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], p=2)],
                  [helper.make_node("Unheard", ["x"], ["y"])], [helper.make_node("Neg", ["nowhere"], ["y"])]):
        assert not backend.is_compatible(model(nodes))
    assert not backend.is_compatible(model([helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2],
                                                             count_include_pad=1)], opset=1))


def test_errors_keep_their_text():
    """Errors of a pooling node keep the library's message, for a model, a node, a shape and a dtype."""
    bad = helper.make_node("LpPool", ["x"], ["y"], "norm", kernel_shape=[2, 2], ceil_mode=1)
    text = "node 'norm': LpPool-11: ceil_mode=1 given, but ceil_mode was introduced in LpPool-18"
    with pytest.raises(NodeError, match=text):
        backend.prepare(model([bad], opset=17))
    with pytest.raises(NodeError, match=text):
        backend.run_node(bad, RAMP, opset_version=17)
    with pytest.raises(onnxpool.PoolError, match=r"node 'y': MaxPool-22: kernel_shape\[0\]=2 .* axis 2 has 1"):
        backend.run_node(HALVED, RAMP[:, :, :1])
    with pytest.raises(NodeError, match="node 'y': AveragePool-22: dtype int8 is not accepted") as caught:
        backend.run_node(helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2]), RAMP.astype(np.int8))
    assert isinstance(caught.value.__cause__, onnxpool.PoolTypeError)


@pytest.mark.parametrize(("inputs", "text"), [
    ([], "0 inputs given, but the model takes 1: 'x'"),
    ([RAMP, RAMP], "2 inputs given, but the model takes 1: 'x'"),
    ({}, "missing input 'x' float32 (N,1,4,4)"),
    ({"x": RAMP, "z": RAMP}, "the model has no input 'z'; it has 'x', 'w'"),
    (RAMP.astype(np.float64), "input 'x' is float64 (1,1,4,4), but the model takes float32 (N,1,4,4)"),
    (RAMP[:, :, :3], "input 'x' is float32 (1,1,3,4), but the model takes float32 (N,1,4,4)"),
])
def test_inputs_that_do_not_fit(inputs, text):
    """Inputs are refused by name, with the expected type. An input with a default may be omitted, or passed by name."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    made = model([helper.make_node("Mul", ["x", "w"], ["a"]), helper.make_node("GlobalMaxPool", ["a"], ["y"])],
                 [helper.make_tensor_value_info("x", 1, ["N", 1, 4, 4]), helper.make_tensor_value_info("w", 1, [1])],
                 initializer=[weight])
    prepared = backend.prepare(made)
    assert prepared.run(RAMP)[0].item() == 32
    assert prepared.run({"x": RAMP, "w": np.float32([3])})[0].item() == 48
    with pytest.raises(protos.InputError) as caught:
        prepared.run(inputs)
    assert str(caught.value) == text


@pytest.mark.parametrize(("given", "wanted"), [
    (np.ones((1, 1, 2), ml_dtypes.bfloat16), np.float16), (np.ones((1, 1, 2), ml_dtypes.float8_e4m3fn), np.int8),
    (np.ones((1, 1, 2), [("a", np.float32)]), np.float32), (np.ones((1, 1, 2), "V4"), np.float32)])
def test_bits_of_another_dtype_are_refused(given, wanted):
    """Only raw bytes, as in .npy files, are read as another dtype, and only as a dtype that .npy files do not know."""
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(wanted))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [
        helper.make_tensor_value_info("x", dtype, [1, 1, 2])], [helper.make_tensor_value_info("y", dtype, [1, 1, 2])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    with pytest.raises(protos.InputError, match="but the model takes"):
        backend.prepare(made).run([given])


def test_a_node_at_its_opset():
    """run_node uses the given opset, by default the newest. Nodes of both domains, and other operators, run."""
    x = np.array([[[1, 3, 5]]], np.float32)
    align = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], sampling_ratio=1)
    inputs = [RAMP, np.float32([[0, 0, 3, 3]]), np.int64([0])]
    assert backend.run_node(align, inputs, opset_version=10)[0].item() == pytest.approx(8.5)
    assert backend.run_node(align, inputs)[0].item() == pytest.approx(6.0)
    assert backend.run_node(helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[3], p=1.0), [x],
                            opset_version=1)[0].item() == 9
    assert backend.run_node(helper.make_node("Neg", ["x"], ["y"]), [x])[0].tolist() == [[[-1, -3, -5]]]
    assert backend.run_node(helper.make_node("GlobalMaxPool", ["x"], ["y"], domain="ai.onnx"), [x])[0].item() == 5
    mean = helper.make_node("QLinearAveragePool", ["x", "s", "", "t"], ["y"], domain="com.microsoft", kernel_shape=[2])
    quantised = [np.array([[[1, 3, 5]]], np.uint8), np.float32(0.5), np.float32(0.25)]
    assert backend.run_node(mean, quantised)[0].tolist() == [[[4, 8]]]


def test_the_checker_looks_at_models_and_nodes():
    """Models and nodes that onnx's checker refuses are refused, as the interface requires."""
    with pytest.raises(onnx.checker.ValidationError):
        backend.prepare(model([helper.make_node("Neg", ["x"], ["y"], alpha=1)]))
    with pytest.raises(onnx.checker.ValidationError):
        backend.run_node(helper.make_node("Neg", ["x"], ["y"], alpha=1), RAMP)
