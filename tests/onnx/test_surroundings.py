"""Warnings about runtimes that rewrite a pool and the nodes around it: where the warnings apply, and where they do
not."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from sessions import RELEASE, model, options

from onnxpool.onnx.cases import ORT
from onnxpool.onnx.checks import check_site
from onnxpool.onnx.disagreements import OF_GRAPHS, Filter
from onnxpool.onnx.protos import canonical
from onnxpool.onnx.reference import Evaluator
from onnxpool.onnx.survey import survey

OLD = (1, 20)  # a release before all fixes
KERNEL = {"kernel_shape": [3], "strides": [2]}
PAD, CAST = {"op": "Pad", "pads": [0, 0, 1, 0, 0, 1]}, {"op": "Cast", "to": onnx.TensorProto.FLOAT}
Q, DQ = {"op": "QuantizeLinear"}, {"op": "DequantizeLinear"}
MAXIMUM = {"op": "MaxPool", **KERNEL}
MEAN = {"op": "AveragePool", **KERNEL}
POINT = np.uint8(40)
COUNTED = {**MEAN, "count_include_pad": 1}


def graph(steps: list[dict[str, Any]], *, opset: int = 19, zero: Any = POINT, size: int = 7,
          twice: str = "") -> onnx.ModelProto:
    """A model of consecutive nodes; `twice` names an operator whose result is an output too."""
    nodes, constants, value = [], {"s": np.float32(0.5), "z": zero, "zeros": np.float32(0)}, "x"
    others = []
    for i, step in enumerate(steps):
        attributes = {name: given for name, given in step.items() if name != "op"}
        inputs = [value]
        if step["op"] == "Pad" and opset > 10:
            constants[f"p{i}"] = np.array(attributes.pop("pads"))
            inputs += [f"p{i}", "zeros"]
        inputs += ["s", "z"] if step["op"] in ("QuantizeLinear", "DequantizeLinear") else []
        nodes.append(helper.make_node(step["op"], inputs, [f"v{i}"], **attributes))
        others += [f"v{i}"] if step["op"] == twice else []
        value = f"v{i}"
    kind = "float32" if steps[0]["op"] != "DequantizeLinear" else zero.dtype.name
    last = zero.dtype.name if steps[-1]["op"] == "QuantizeLinear" else "float32"
    ports = [(value, last, None), *((name, "float32", None) for name in others if name != value)]
    made = model(nodes, [("x", kind, (1, 1, size))], ports, opset, constants=constants)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def names(made: onnx.ModelProto, release: tuple[int, ...] = OLD, runtime: str = ORT) -> set[str]:
    """The warnings about a model."""
    wanted = Filter(runtimes={runtime: release})
    return {warning["name"] for site in survey(canonical(made)) for warning in check_site(site, wanted).warnings}


SIGNED = {"zero": np.int8(40)}
HOLDS: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    ("ort-merged-maximum", [PAD, MAXIMUM], {}),
    ("ort-merged-maximum", [PAD, CAST, MAXIMUM], {}),
    ("ort-merged-maximum", [PAD, {**MAXIMUM, "pads": [1, 0]}], {"opset": 10}),
    ("ort-merged-pads", [PAD, {**MAXIMUM, "pads": [2, 0]}], {}),
    ("ort-merged-pads", [PAD, {**COUNTED, "pads": [0, 2]}], {}),
    ("ort-merged-ceil", [{**PAD, "pads": [0, 0, 0, 0, 0, 2]}, {**COUNTED, "ceil_mode": 1}], {"size": 6}),
    ("ort-merged-average", [PAD, MEAN], {}),
    ("ort-fused-dilations", [DQ, {**MEAN, "dilations": [2]}, Q], {}),
    ("ort-fused-dilations", [DQ, {**MEAN, "dilations": [1]}, Q], SIGNED),
    ("ort-fused-dilations", [Q, DQ, {**MEAN, "dilations": [2]}, Q, DQ], SIGNED),
    ("ort-fused-divisor", [DQ, {**COUNTED, "ceil_mode": 1}, Q], {"size": 8}),
    ("ort-signed-maximum", [DQ, MAXIMUM], {**SIGNED, "opset": 21}),
    ("ort-signed-maximum", [Q, DQ, MAXIMUM, {"op": "Relu"}], {**SIGNED, "opset": 21}),
]
HOLDS_NOT: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    ("ort-merged", [{**PAD, "mode": "edge"}, MAXIMUM], {}),
    ("ort-merged", [{**PAD, "pads": [0, 1, 1, 0, 0, 1]}, MAXIMUM], {}),
    ("ort-merged", [{**PAD, "pads": [0] * 6}, MAXIMUM], {}),
    ("ort-merged", [PAD, MAXIMUM], {"twice": "Pad"}),
    ("ort-merged", [PAD, {"op": "Relu"}, MAXIMUM], {}),
    ("ort-merged", [PAD, {**MAXIMUM, "auto_pad": "VALID"}], {}),
    ("ort-merged", [PAD, {"op": "LpPool", **KERNEL}], {}),
    ("ort-merged-average", [PAD, COUNTED], {}),
    ("ort-fused", [DQ, {**MEAN, "dilations": [2]}], {}),
    ("ort-fused", [DQ, {**MEAN, "dilations": [2]}, Q], {"twice": "AveragePool"}),
    ("ort-fused", [Q, DQ, {**MEAN, "dilations": [2]}, Q], SIGNED),
    ("ort-fused", [DQ, MEAN, Q], {}),
    ("ort-signed", [DQ, MAXIMUM], {"opset": 21}),
    ("ort-signed", [DQ, MAXIMUM], {**SIGNED, "opset": 20}),
    ("ort-signed", [DQ, MAXIMUM, Q], {**SIGNED, "opset": 21}),
    ("ort-signed", [MAXIMUM], {"opset": 21}),
]


def test_every_row_of_graphs_has_an_example():
    """The warnings about onnxruntime are in a table, and the warning about OpenVINO has a test of its own."""
    assert {row for row, _, _ in HOLDS} == {row.name for row in OF_GRAPHS if row.runtime == ORT}


@pytest.mark.parametrize(("row", "steps", "how"), HOLDS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_row_of_graphs_holds(row, steps, how):
    """The warning names the pool of the graph, and applies only to releases that have the bug."""
    made = graph(steps, **how)
    assert row in names(made)
    before = next(entry.before for entry in OF_GRAPHS if entry.name == row)
    assert (row in names(made, before or (9, 9))) == (not before)


@pytest.mark.parametrize(("rows", "steps", "how"), HOLDS_NOT, ids=lambda value: value if isinstance(value, str) else "")
def test_a_row_of_graphs_does_not_hold(rows, steps, how):
    """The warning does not apply to a graph that differs in one detail, in which nothing is merged."""
    assert not {name for name in names(graph(steps, **how)) if name.startswith(rows)}


@pytest.mark.parametrize(("row", "steps", "how"), HOLDS, ids=lambda value: value if isinstance(value, str) else "")
def test_onnxruntime_does_what_a_row_says(row, steps, how):
    """If a row applies to the installed release, the release refuses the graph or differs, and otherwise it agrees."""
    entry = next(entry for entry in OF_GRAPHS if entry.name == row)
    made = graph(steps, **how)
    kind = helper.tensor_dtype_to_np_dtype(made.graph.input[0].type.tensor_type.elem_type)
    size = made.graph.input[0].type.tensor_type.shape.dim[2].dim_value
    x = (np.arange(size) * 9 - (90 if kind == np.float32 else 0)).astype(kind).reshape(1, 1, size)

    def answer(level):
        chosen = options(None)
        chosen.graph_optimization_level = level
        session = onnxruntime.InferenceSession(made.SerializeToString(), chosen, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": x})[0]

    levels = onnxruntime.GraphOptimizationLevel
    plain = answer(levels.ORT_DISABLE_ALL)
    try:
        optimised = answer(levels.ORT_ENABLE_ALL)
        differs = optimised.shape != plain.shape or bool(np.abs(optimised.astype(float) - plain).max() > 1e-4)
    except Exception:
        differs = True
    assert differs == (not entry.before or entry.before > RELEASE)
    if made.opset_import[0].version >= 19:  # before that, the reference has no Q and DQ
        np.testing.assert_allclose(Evaluator(made).run(None, {"x": x})[0], plain, rtol=1e-5)


def test_openvino_pads_with_zero_instead_of_the_zero_point():
    """The warning appears where OpenVINO pools 8-bit elements, which happens if they are quantised before or after the
    pool."""
    padded = {**COUNTED, "pads": [1, 1]}
    row = "openvino-quantised-pads"
    for steps in ([DQ, padded, Q], [Q, DQ, padded], [Q, DQ, padded, {"op": "Relu"}]):
        assert names(graph(steps), (), "OpenVINO") == {row}
    for steps, how in (([DQ, padded], {}), ([DQ, COUNTED, Q], {}), ([DQ, {**padded, "count_include_pad": 0}, Q], {}),
                       ([DQ, padded, Q], {"zero": np.uint8(0)}), ([DQ, {**padded, "dilations": [1]}, Q], {})):
        assert row not in names(graph(steps, **how), (), "OpenVINO")


def test_bodies_have_surroundings_of_their_own():
    """A Pad in a branch of an If is found in that branch. A Pad that a branch reads from outside is not a node of the
    branch."""
    pads = helper.make_tensor("p", onnx.TensorProto.INT64, [6], [0, 0, 1, 0, 0, 1])
    pad, pool = helper.make_node("Pad", ["x", "p"], ["z"]), helper.make_node("MaxPool", ["z"], ["b"], **KERNEL)
    output = [helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, None)]
    inside = helper.make_graph([pad, pool], "inside", [], output, [pads])
    outside = helper.make_graph([pool], "outside", [], output)
    for branch, nodes, expected in ((inside, [], True), (outside, [pad], False)):
        choice = helper.make_node("If", ["t"], ["y"], then_branch=branch, else_branch=branch)
        proto = helper.make_model(helper.make_graph(
            [*nodes, choice], "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 7]),
                                    helper.make_tensor_value_info("t", onnx.TensorProto.BOOL, [])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], [pads]),
            opset_imports=[helper.make_opsetid("", 19)], ir_version=8)
        assert ("ort-merged-maximum" in names(proto)) is expected


OVER = {**PAD, "pads": [0, 0, 0, 0, 0, 2]}
SIMPLIFIED = [
    ([PAD, MAXIMUM], {"onnxoptimizer-merged-zeros", "old-onnxsim-merged-zeros"}),
    ([PAD, MEAN], set()),
    ([PAD, COUNTED], set()),
    ([PAD, {**MEAN, "pads": [1, 1]}], {"onnxoptimizer-merged-zeros", "old-onnxsim-mean-merged-zeros"}),
    ([PAD, {**MEAN, "auto_pad": "SAME_UPPER"}], {"onnxoptimizer-merged-zeros", "old-onnxsim-mean-merged-zeros"}),
    ([OVER, {**MEAN, "ceil_mode": 1}], {"onnxsim-merged-ceil", "onnxoptimizer-merged-ceil",
                                        "old-onnxsim-mean-merged-ceil"}),
    ([PAD, {"op": "LpPool", **KERNEL}], set()),
    ([MAXIMUM], set()),
]


@pytest.mark.parametrize(("steps", "rows"), SIMPLIFIED)
def test_simplifiers_merge_the_pad(steps, rows):
    """onnxoptimizer merges every Pad of zeros. Since 0.8, onnxsim merges a Pad only where a mean counts padding."""
    made = graph(steps, size=6 if OVER in steps else 7)
    found = {runtime: names(made, release, runtime) for runtime, release in (
        ("onnxoptimizer", (0, 4, 2)), ("onnxsim", (0, 4, 36)))}
    assert found["onnxoptimizer"] | found["onnxsim"] == rows
    assert names(made, (0, 8, 1), "onnxsim") == {row for row in rows if row.startswith("onnxsim")}
    assert names(made, (0, 7, 3), "onnxsim") == {row for row in rows if row.startswith(("onnxsim", "old-onnxsim-mean"))}


@pytest.mark.parametrize(("steps", "rows"), SIMPLIFIED)
def test_onnxoptimizer_does_what_a_row_says(steps, rows):
    """The optimised model has other results, or none, if a row says so, and otherwise the same results."""
    optimizer = pytest.importorskip("onnxoptimizer")
    made = graph(steps, size=6 if OVER in steps else 7)
    x = -np.arange(1, 1 + made.graph.input[0].type.tensor_type.shape.dim[2].dim_value, dtype=np.float32)[None, None]
    expected = Evaluator(made).run(None, {"x": x})[0]
    try:
        y = Evaluator(optimizer.optimize(made)).run(None, {"x": x})[0]
        same = y.shape == expected.shape and np.allclose(y, expected)
    except Exception:
        same = False
    assert same != any(row.startswith("onnxoptimizer") for row in rows)
