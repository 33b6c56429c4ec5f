"""The operators for onnx's ReferenceEvaluator: new_ops, and the Evaluator, which uses them everywhere."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import real_models
from onnx import TensorProto, helper, numpy_helper, parser, version_converter
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import onnxpool
from onnxpool.__main__ import main
from onnxpool.onnx import backend, checks, comparison, protos
from onnxpool.onnx.reference import Evaluator, NodeError, new_ops

X = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# Not squeezenet: its logits are 1e10 and one rounding apart, which its softmax turns into 0 or 1.
NAMES = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "vgg19", "zfnet512")
OCR = {"ch_PP-OCRv4_det_infer": (1, 3, 32, 64), "ch_PP-OCRv4_rec_infer": (1, 3, 48, 64),
       "ch_ppocr_mobile_v2.0_cls_infer": (1, 3, 48, 64)}
CONVERTED = {"light_densenet121", "light_squeezenet", "ch_PP-OCRv4_rec_infer", "ch_ppocr_mobile_v2.0_cls_infer"}
LATEST_OPSET = 22


def evaluators(proto, **options):
    """Both ways to evaluate: the Evaluator, and a plain ReferenceEvaluator with new_ops."""
    return [Evaluator(proto, **options), ReferenceEvaluator(proto, new_ops=new_ops(), **options)]


def graph(node):
    """The graph of one node."""
    return helper.make_graph([node], "graph", [onnx.ValueInfoProto(name=name) for name in node.input if name],
                             [onnx.ValueInfoProto(name=name) for name in node.output if name])


def test_every_operator_is_there_once_under_each_name():
    """new_ops has each operator of the library under each name of its domain."""
    expected = {(row["operator"], domain) for row in onnxpool.supported()
                for domain in ([row["domain"]] if row["domain"] else ["", "ai.onnx"])}
    keys = [(operator.__name__, operator.op_domain) for operator in new_ops()]

    assert sorted(keys) == sorted(expected)
    assert all(issubclass(operator, OpRun) for operator in new_ops())


@pytest.mark.parametrize(("opset", "expected"), [(1, "count_include_pad was introduced in AveragePool-7"),
                                                 (7, [1.5, 1.75]), (21, [1.5, 1.75]), (LATEST_OPSET, [1.5, 1.75])])
def test_a_node_has_its_opset(opset, expected):
    """A node runs at the version of its opset: attributes that this version lacks are refused before anything runs."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2], strides=[2], pads=[0, 1],
                            count_include_pad=1)
    x = np.array([[[1, 2, 3.5]]], np.float32)
    for evaluate in (Evaluator, lambda *a, **k: ReferenceEvaluator(*a, new_ops=new_ops(), **k)):
        if isinstance(expected, str):
            with pytest.raises(NodeError, match=expected):
                evaluate(graph(node), opsets={"": opset})
        else:
            assert evaluate(graph(node), opsets={"": opset}).run(None, {"x": x})[0].ravel().tolist() == expected


def test_results_are_the_librarys():
    """Evaluators with new_ops are right where onnx's own operators are wrong: NaN, Indices, int8, ranks, ceil_mode."""
    nan = np.array([[[np.nan, 1, 2, 3]]], np.float32)
    small = np.array([[[[-5, -6], [-7, -8]]]], np.int8)
    node = helper.make_node
    for make, x, expected in [
        (node("MaxPool", ["x"], ["y"], kernel_shape=[4]), nan, onnxpool.max_pool(nan, 4)),
        (node("AveragePool", ["x"], ["y"], kernel_shape=[4]), nan, onnxpool.average_pool(nan, 4)),
        (node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2]), X.repeat(2, 1),
         onnxpool.max_pool(X.repeat(2, 1), 2, return_indices=True)),
        (node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 1, 1, 1]), small,
         onnxpool.max_pool(small, 2, pads=1)),
        (node("GlobalMaxPool", ["x"], ["y"]), X[0], onnxpool.global_max_pool(X[0])),
        (node("GlobalLpPool", ["x"], ["y"], p=3), X, onnxpool.global_lp_pool(X, p=3)),
        (node("AveragePool", ["x"], ["y"], kernel_shape=[4], strides=[4], ceil_mode=1), X.reshape(1, 1, 16)[..., :5],
         np.float32([[[2.5, 5]]])),
    ]:
        for evaluator in evaluators(graph(make), opsets={"": LATEST_OPSET}):
            outputs = evaluator.run(None, {"x": x})
            for ours, theirs in zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)


def test_contributed_operators():
    """Operators of com.microsoft run, and an optional input may be omitted."""
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        agraph (uint8[1, 1, 3] x, float s, float t, uint8 w, uint8 z) => (uint8[1, 1, 2] y, uint8[1, 1, 1] m) {
            y = com.microsoft.QLinearAveragePool <kernel_shape = [2]> (x, s, , t)
            m = com.microsoft.QLinearGlobalAveragePool (x, s, z, t, w)
        }""")
    feeds = {"x": np.array([[[1, 3, 5]]], np.uint8), "s": np.float32(0.5), "t": np.float32(0.25),
             "w": np.uint8(3), "z": np.uint8(1)}
    for evaluator in evaluators(model):
        y, m = evaluator.run(None, feeds)
        assert (y.tolist(), m.item()) == ([[[4, 8]]], 7)


FUNCTIONS = """
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    agraph (float[1, 1, 4, 4] x) => (float[a, b, c, d] y) { y = local.Outer <size = [2, 2]> (x) }
    <opset_import: ["" : 17, "local" : 1], domain: "local">
    Outer <size> (a) => (b) { b = local.Inner <size: ints = @size> (a) }
    <opset_import: ["" : 1], domain: "local">
    Inner <size> (a) => (b) { b = LpPool <kernel_shape: ints = @size, p: float = 1.0, strides: ints = @size> (a) }
"""


def test_functions_have_their_own_opsets():
    """The Evaluator reaches functions that call functions; a node has the opset of the function that contains it."""
    model = parser.parse_model(FUNCTIONS)
    assert Evaluator(model).run(None, {"x": X})[0].ravel().tolist() == [14, 22, 46, 54]

    model.functions[1].opset_import[0].version = 17  # in this opset, p is an integer
    with pytest.raises(NodeError, match="node 'b': LpPool-11: p"):
        Evaluator(model).run(None, {"x": X})


def test_defaults_of_functions():
    """Attributes that a call of a function omits have the function's defaults; the model is not changed."""
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        agraph (float[1, 1, 4, 4] x) => (float[a, b, c, d] y, float[e, f, g, h] z) {
            y = local.Norm (x)
            z = local.Norm <p = 2> (x)
        }
        <opset_import: ["" : 21], domain: "local">
        Norm <p: int = 1> (a) => (b) { b = GlobalLpPool <p: int = @p> (a) }""")
    before = model.SerializeToString()
    y, z = Evaluator(model).run(None, {"x": X})

    assert (y.item(), z.item()) == (136, pytest.approx(np.sqrt((X**2).sum())))
    assert model.SerializeToString() == before


def test_overloads_of_functions(tmp_path):
    """Overloads distinguish functions of one name, also where functions call them."""
    parts = "".join(f"""
        <opset_import: ["" : 21], domain: "local"> Pool (a) => (b) {{ b = {name} (a) }}"""
                    for name in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"))
    model = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        agraph (float[1, 1, 4, 4] x) => (float[a, b, c, d] y, float[e, f, g, h] z, float[i, j, k, l] w) {{
            y = local.Pool (x)
            z = local.Pool (x)
            w = local.Outer (x)
        }}{parts}
        <opset_import: ["" : 21, "local" : 1], domain: "local"> Outer (a) => (b) {{ b = local.Pool (a) }}""")
    _, mean, norm, outer = model.functions
    mean.overload = model.graph.node[1].overload = "mean"
    norm.overload = outer.node[0].overload = "norm"
    before = model.SerializeToString()
    results = [y.item() for y in Evaluator(model).run(None, {"x": X})]

    assert results == [16, 8.5, pytest.approx(np.sqrt((X**2).sum()))]
    assert model.SerializeToString() == before
    onnx.save(model, tmp_path / "m.onnx")
    assert [row.operator for row in checks.check_model(tmp_path / "m.onnx").nodes] == [
        "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"]


@pytest.mark.parametrize("imported", ["", "ai.onnx"])
@pytest.mark.parametrize("written", ["", "ai.onnx"])
def test_the_default_domain_under_both_names(imported, written):
    """Nodes and imports can name the default domain either way, also in functions and bodies; models stay unchanged."""
    model = parser.parse_model(FUNCTIONS)
    branch = helper.make_graph([helper.make_node("MaxPool", ["y"], ["m"], domain=written, kernel_shape=[2, 2])],
                               "branch", [], [helper.make_tensor_value_info("m", TensorProto.FLOAT, None)])
    choice = helper.make_node("If", ["c"], ["z"], domain=written, then_branch=branch, else_branch=branch)
    model.graph.node.append(choice)
    model.graph.initializer.append(helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 1, 1, 1]))
    model.functions[1].node[0].domain = written
    for holder in (model, *model.functions):
        holder.opset_import[0].domain = imported
    before = model.SerializeToString()

    assert Evaluator(model).run(["z"], {"x": X})[0].item() == 54
    assert model.SerializeToString() == before


CONTRADICTIONS = [[("", 21), ("ai.onnx", 7)], [("ai.onnx", 7), ("", 21)], [("", 21), ("", 7)],
                  [("", 21), ("com.microsoft", 1), ("com.microsoft", 2)], [("ai.onnx", 21), ("ai.onnx", 20)]]


def with_imports(proto, imports):
    """A copy of a model or function with these opset imports."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    del copy.opset_import[:]
    copy.opset_import.extend(helper.make_opsetid(*one) for one in imports)
    return copy


@pytest.mark.parametrize("imports", CONTRADICTIONS, ids=str)
def test_a_domain_has_one_opset(imports, tmp_path, capsys):
    """Two different opsets of a domain are refused in models, functions and graphs, so neither is silently dropped."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2])
    function = helper.make_function("local", "F", ["x"], ["y"], [node], [helper.make_opsetid("", 21)])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    outer = helper.make_model(graph, ir_version=10, functions=[with_imports(function, imports)],
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("local", 1)])
    message = r"domain '(|com.microsoft)'.* is imported with opsets \d+ and \d+; keep one of them"
    for proto in (with_imports(model, imports), with_imports(function, imports), outer):
        with pytest.raises(onnxpool.PoolError, match=message):
            Evaluator(proto)
    for proto in (with_imports(model, imports), outer):
        with pytest.raises(onnxpool.PoolError, match=message):
            backend.prepare(proto)
        onnx.save(proto, tmp_path / "m.onnx")
        for command in ("run", "check", "bench", "explain"):
            assert main([command, str(tmp_path / "m.onnx")]) == 2
            assert re.search(message, capsys.readouterr().err)
    if len(dict(imports)) == len(imports):
        opsets = dict(imports)
        for call in (lambda: Evaluator(graph, opsets), lambda: onnxpool.from_node(node, opsets),
                     lambda: ReferenceEvaluator(graph, opsets, new_ops=new_ops())):
            with pytest.raises(onnxpool.PoolError, match=message):
                call()


@pytest.mark.parametrize("imports", [[("", 12), ("ai.onnx", 12)], [("", 12), ("", 12)], [("ai.onnx", 12)]], ids=str)
def test_the_same_opset_twice(imports, tmp_path, capsys):
    """Two equal imports of a domain, under either name, are accepted, also for a graph."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = with_imports(helper.make_model(graph, ir_version=10), imports)
    assert Evaluator(model).run(None, {"x": X})[0].shape == (1, 1, 3, 3)
    assert Evaluator(graph, dict(imports)).run(None, {"x": X})[0].shape == (1, 1, 3, 3)
    assert onnxpool.from_node(node, dict(imports)).opset == 12
    assert onnxpool.from_node(node, {"": 12, "ai.onnx": np.int64(12)}).opset == 12
    for other in (12.0, "12", None, np.array([12, 12])):
        with pytest.raises(onnxpool.PoolError, match="imported with opsets"):
            onnxpool.from_node(node, {"": 12, "ai.onnx": other})
    onnx.save(model, tmp_path / "m.onnx")
    assert main(["check", str(tmp_path / "m.onnx")]) == 0
    assert capsys.readouterr().out.startswith("y: MaxPool-12, ")


def test_what_can_be_evaluated(tmp_path):
    """An Evaluator accepts all that ReferenceEvaluator accepts: paths as str or Path, bytes, models, graphs, etc."""
    node = helper.make_node("GlobalMaxPool", ["x"], ["y"])
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        agraph (float[1, 1, 4, 4] x) => (float[1, 1, 1, 1] y) { y = GlobalMaxPool (x) }""")
    function = helper.make_function("local", "F", ["x"], ["y"], [node], [helper.make_opsetid("", 21)])
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    for proto, options in [(str(path), {}), (path, {}), (path.read_bytes(), {}), (model, {}), (node, {}),
                           (model.graph, {"opsets": {"": 21}})]:
        assert Evaluator(proto, **options).run(None, {"x": X})[0].item() == 16
    assert Evaluator(function).run(None, {"x": X}, attributes={})[0].item() == 16


def test_other_new_operators_come_first():
    """new_ops passed to an Evaluator are added to the library's, and replace operators of the same name."""

    class GlobalMaxPool(OpRun):
        op_domain = ""

        def _run(self, x):
            return (x[..., :1, :1],)

    node = helper.make_node("GlobalMaxPool", ["x"], ["y"])
    assert Evaluator(node, new_ops=[GlobalMaxPool]).run(None, {"x": X})[0].item() == 1
    assert Evaluator(node).run(None, {"x": X})[0].item() == 16


@pytest.mark.parametrize(("node", "x", "text"), [
    (helper.make_node("MaxPool", ["x"], ["y"], "pool", kernel_shape=[9, 9]), X,
     "node 'pool': MaxPool-22: kernel_shape[0]=9 with dilations[0]=1 spans 9, but axis 2 has 4"),
    (helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2]), X.astype(np.int8),
     "node 'y': AveragePool-22: dtype int8 is not accepted"),
    (helper.make_node("MaxUnpool", ["x", "x"], ["y"], kernel_shape=[2, 2]), X,
     "node 'y': MaxUnpool-22: I has dtype float32, but must be int64"),
])
def test_errors_arrive_with_their_text(node, x, text):
    """Errors of an operator arrive with its message and the name of the node, for values and for dtypes."""
    for evaluator in evaluators(graph(node), opsets={"": LATEST_OPSET}):
        with pytest.raises(NodeError) as caught:
            evaluator.run(None, {"x": x})
        assert str(caught.value).startswith(text)
        assert isinstance(caught.value, (onnxpool.PoolError, protos.ModelError))
        assert isinstance(caught.value.__cause__, (onnxpool.PoolError, onnxpool.PoolTypeError))


def test_a_wrong_kind_of_attribute_arrives_with_its_text():
    """An attribute of the wrong type gets a message, although ReferenceEvaluator hides messages of TypeErrors."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape="two")
    for evaluate in (Evaluator, lambda *a, **k: ReferenceEvaluator(*a, new_ops=new_ops(), **k)):
        with pytest.raises(NodeError, match="node 'y': MaxPool-22: kernel_shape"):
            evaluate(graph(node), opsets={"": LATEST_OPSET})


def test_an_evaluator_from_many_threads():
    """One evaluator returns the same results to threads that call it at once with different shapes."""
    model = parser.parse_model(FUNCTIONS.replace("float[1, 1, 4, 4] x", "float[1, 1, h, w] x"))
    evaluator = Evaluator(model)
    arrays = [np.random.default_rng(i).normal(size=(1, 1, 4 + i % 7, 4 + i % 5)).astype(np.float32) for i in range(200)]
    expected = [onnxpool.lp_pool(x, 2, strides=2, p=1.0, opset=1) for x in arrays]

    with ThreadPoolExecutor(8) as pool:
        for y, want in zip(pool.map(lambda x: evaluator.run(None, {"x": x})[0], arrays), expected, strict=True):
            np.testing.assert_array_equal(y, want)


def by_onnxruntime(path, feeds):
    """The first output of a model as onnxruntime computes it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def check_whole_model(path, name, x, expected):
    """Runs a model: pooling nodes agree with onnxruntime, shapes with predictions, outputs with expectations.

    Before opset 14, ReferenceEvaluator runs BatchNormalization as in training and Softmax along the last axis: models
    that contain them are converted, so that they reach their outputs.
    """
    model = onnx.load(path)
    opsets = protos.opsets_of(model)
    values = Evaluator(model).run(None, {name: x}, intermediate=True)
    nodes = [node for node in model.graph.node if "Pool" in node.op_type]
    foreseen = checks.check_model(path, {name: x.shape}).nodes
    for node, check in zip(nodes, foreseen, strict=True):
        data, ours = values[node.input[0]], values[node.output[0]]
        theirs = comparison.run_node(node, opsets[""], [data], [ours]).outputs[0]
        assert abs(ours - theirs).max() <= (0 if node.op_type == "MaxPool" else 1e-5 * abs(data).max())
        assert (check.operator, check.dtype, check.error) == (node.op_type, ours.dtype.name, "")
        assert (check.input_shape, check.output_shape) == (data.shape, ours.shape)
    output = values[model.graph.output[0].name]
    if path.stem in CONVERTED:
        assert not np.allclose(output, expected, rtol=1e-3)
        output = Evaluator(version_converter.convert_version(model, 14)).run(None, {name: x})[0]
    np.testing.assert_allclose(output, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in ("resnet50", "shufflenet"))) for name in NAMES])
def test_the_models_of_the_onnx_package(name):
    """Whole models that onnx ships run through the Evaluator, and return the outputs that come with them."""
    path = LIGHT / f"light_{name}.onnx"
    given = next(value for value in protos.inputs_of(onnx.load(path).graph) if not value.optional)
    x = (np.arange(np.prod(given.shape)).reshape(given.shape) / np.prod(given.shape)).astype(np.float32)
    expected = onnx.TensorProto()
    expected.ParseFromString(path.with_name(f"light_{name}_output_0.pb").read_bytes())

    check_whole_model(path, given.name, x, numpy_helper.to_array(expected))


@pytest.mark.parametrize("name", OCR)
def test_the_models_of_pp_ocr(name):
    """The three models of PP-OCR, as used in production, run through the Evaluator and return onnxruntime's outputs."""
    path = real_models.path(f"{name}.onnx")
    x = np.random.default_rng(0).uniform(-1, 1, OCR[name]).astype(np.float32)

    check_whole_model(path, "x", x, by_onnxruntime(path, {"x": x}))
