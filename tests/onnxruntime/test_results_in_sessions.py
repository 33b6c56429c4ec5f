"""onnxruntime sessions whose pooling nodes run on onnxpool: results."""

import re

import numpy as np
import onnx
import onnxruntime
import pytest
from calls import FUNCTIONS, INDICES, QLINEAR, QLINEAR_AVERAGE, SeededChoices
from calls_family import draw_call
from onnx import helper
from peer import explicit
from real_models import MODELS, load
from samples import ATTRIBUTES, data, domain_of
from samples import inputs as sample_inputs
from sessions import NEWEST_OPSET, RELEASE, answers, feeds, layers, model, node_model, options, same, session

import onnxpool
from onnxpool.onnxruntime import record_nodes

SEEDS = range(40)


# Results


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_random_nodes_give_our_results_and_our_errors(operator):
    """A node with any attributes, dtype and opset returns the library's bits, or fails with its message."""
    name = operator.split()[0]
    domain = domain_of(name)
    ran = 0
    for seed in SEEDS:
        call = draw_call(SeededChoices(seed), (operator,))
        if (call.channels_last and not domain) or call.x.ndim > 6:
            continue
        attributes = explicit(call) if "kernel_shape" in call.attributes else call.attributes
        if call.channels_last and operator in QLINEAR:
            attributes = {**attributes, "channels_last": 1}
        opset = min(call.opset or NEWEST_OPSET, NEWEST_OPSET)
        inputs = [None if value is None else np.asarray(value) for value in call.inputs]
        if operator == QLINEAR_AVERAGE and inputs[2] is None:  # onnxruntime refuses the node, with or without onnxpool
            continue
        how = {"opset": NEWEST_OPSET if domain else opset, "domain": domain}
        outputs = ("y", "i") if operator == INDICES else ("y",)
        node = node_model(name, inputs, attributes, outputs=outputs, **how)
        pool = next(part for part in node.graph.node if part.name == "pool")
        made = onnxpool.from_node(pool, {domain: 1 if domain else opset})
        try:
            expected = made(*call.inputs)
        except onnxpool.PoolError as error:
            with pytest.raises(Exception, match=re.escape(str(error))):
                session(node, [name], opset=opset).run(None, feeds(inputs))
            continue
        except onnxpool.PoolTypeError:
            continue  # a dtype of a later opset than this onnxruntime has
        results = session(node, [name], opset=opset).run(None, feeds(inputs))
        for actual, truth in zip(results, expected if operator == INDICES else [expected], strict=True):
            same(actual, truth)
        ran += 1
    assert ran > len(SEEDS) // 5


VERSIONS = [
    pytest.param(row, dtype, id=f"{row['operator']}-{row['version']}-{dtype}")
    for row in onnxpool.supported() for dtype in row["dtypes"] if row["version"] <= NEWEST_OPSET
]


@pytest.mark.parametrize(("row", "dtype"), VERSIONS)
def test_every_version_and_dtype(row, dtype):
    """Every operator at every version and dtype returns the library's results, whether the opset is given or not."""
    operator, version, domain = row["operator"], row["version"], row["domain"]
    inputs, attributes = sample_inputs(operator, dtype), dict(ATTRIBUTES[operator])
    if "p" in attributes and version == 1:
        attributes["p"] = 3.0
    expected = getattr(onnxpool, operator)(**attributes, opset=version)(*inputs)
    how = {"opset": NEWEST_OPSET if domain else version, "domain": domain}

    same(answers(operator, inputs, attributes, [operator], register_opset=how["opset"], **how)[0], expected)
    same(answers(operator, inputs, attributes, [operator], **how)[0], expected)


@pytest.mark.skipif(NEWEST_OPSET < 22, reason="this onnxruntime has no opset 22")
@pytest.mark.parametrize("ops", ["missing", "all"])
@pytest.mark.parametrize(("operator", "dtype"), [
    ("AveragePool", "float64"), ("GlobalMaxPool", "bfloat16"), ("GlobalLpPool", "float32"), ("GlobalLpPool", "float64"),
    ("MaxRoiPool", "float32"), ("LpPool", "float64"), ("MaxUnpool", "bfloat16"), ("MaxPool", "bfloat16"),
])
def test_what_onnxruntime_lacks(operator, dtype, ops):
    """A node for which onnxruntime has no kernel runs, and returns the library's own results."""
    inputs, attributes = sample_inputs(operator, dtype), dict(ATTRIBUTES[operator])
    how = {"opset": NEWEST_OPSET}
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED|INVALID_GRAPH"):
        answers(operator, inputs, attributes, None, **how)

    same(answers(operator, inputs, attributes, ops, **how)[0], getattr(onnxpool, operator)(**attributes)(*inputs))


@pytest.mark.parametrize("operator", ["AveragePool", "LpPool", "MaxPool", "GlobalAveragePool"])
@pytest.mark.parametrize("ops", ["missing", "all"])
def test_four_spatial_axes(operator, ops):
    """More spatial axes than onnxruntime's kernels support are pooled too."""
    x = data((1, 2, 3, 4, 5, 6))
    attributes = {"kernel_shape": [2] * 4} if operator[0] != "G" else {}
    with pytest.raises(Exception, match=r"Unsupported (pooling size|kernel dimension)"):
        answers(operator, [x], attributes, None, opset=NEWEST_OPSET)

    same(answers(operator, [x], attributes, ops, opset=NEWEST_OPSET)[0], getattr(onnxpool, operator)(**attributes)(x))


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("operator", ["AveragePool", "LpPool"])
def test_oldest_versions(operator, opset):
    """AveragePool-1 and LpPool-1 run, for which onnxruntime has never had kernels."""
    x = data((1, 2, 7, 7))
    if operator == "LpPool" and opset > 1:
        opset = 1
    expected = getattr(onnxpool, operator)(kernel_shape=(3, 3), opset=opset)(x)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        answers(operator, [x], {"kernel_shape": [3, 3]}, None, opset=opset)

    same(answers(operator, [x], {"kernel_shape": [3, 3]}, "missing", opset=opset, register_opset=opset)[0], expected)
    same(answers(operator, [x], {"kernel_shape": [3, 3]}, "all", opset=opset, register_opset=opset)[0], expected)
    same(answers(operator, [x], {"kernel_shape": [3, 3]}, "missing", opset=opset)[0], expected)


# onnxruntime's own kernels


@pytest.mark.parametrize(("operator", "opset"), [
    ("AveragePool", 7), ("AveragePool", 11), ("AveragePool", 19), ("LpPool", 18), ("GlobalAveragePool", 13),
    ("GlobalLpPool", 13), ("RoiAlign", 16), ("MaxRoiPool", 13),
])
def test_what_onnxruntime_has_stays(operator, opset):
    """With "missing", a node for which onnxruntime has a kernel returns onnxruntime's bits. With "all", the node runs
    on onnxpool."""
    inputs, attributes = sample_inputs(operator, "float32"), dict(ATTRIBUTES[operator])
    inputs[0] = data((2, 3, 40, 41), seed=3)
    if "kernel_shape" in attributes:
        attributes["kernel_shape"] = [9, 9]  # sums of few taps may have the same bits
    theirs = answers(operator, inputs, attributes, None, opset=opset)[0]
    ours = getattr(onnxpool, operator)(**attributes, opset=opset)(*inputs)

    same(answers(operator, inputs, attributes, "missing", opset=opset, register_opset=opset)[0], theirs)
    same(answers(operator, inputs, attributes, "all", opset=opset, register_opset=opset)[0], ours)
    if operator != "MaxRoiPool":
        assert (theirs != ours).any()


@pytest.mark.parametrize("attributes", [{"ceil_mode": 1}, {"auto_pad": "SAME_UPPER"}, {"pads": [3, 3, 3, 3]}])
def test_what_onnxruntime_is_not_trusted_with(attributes):
    """With "missing", nodes whose size onnxruntime might compute differently, or that it refuses, run on onnxpool."""
    x = data((1, 2, 30, 31))
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], **attributes}

    same(answers("AveragePool", [x], attributes, "missing", opset=19)[0],
         onnxpool.AveragePool(**attributes, opset=19)(x))


@pytest.mark.parametrize(("ops", "ours"), [("all", 3), (["MaxPool"], 1), ("missing", 0), (None, 0)])
def test_optimisers_respect_the_choice(ops, ours, tmp_path):
    """No optimiser undoes a replacement, and other nodes are optimised as usual."""
    path = tmp_path / "optimised.onnx"
    plain = session(layers()).run(None, {"x": data((1, 3, 32, 32))})[0]
    chosen = options(ops)
    chosen.optimized_model_filepath = str(path)
    made = onnxruntime.InferenceSession(layers().SerializeToString(), chosen, providers=["CPUExecutionProvider"])

    np.testing.assert_allclose(made.run(None, {"x": data((1, 3, 32, 32))})[0], plain, rtol=1e-4)
    pools = [node for node in onnx.load(path).graph.node if "Pool" in node.op_type]
    blocked = [node for node in pools if node.domain == "com.microsoft.nchwc"]
    if ops in ("missing", None) and not blocked:
        pytest.skip("onnxruntime makes no blocks of channels on this processor")
    assert [len(pools), len(blocked)] == [3, 0 if ours else 3]
    with record_nodes() as records:
        made = session(layers(), ops)
    assert sum(node.runs_on == "onnxpool" for node in records) == ours


@pytest.mark.parametrize("name", MODELS)
def test_whole_models(name):
    """A real model returns what onnxruntime alone returns, to the digits that remain after another order of sums.

    With "missing", and if onnxruntime has all kernels, the model returns exactly the same bits.
    """
    proto, shape = load(name), MODELS[name][0]
    plain, pooled = session(proto), session(proto, "all")
    image = {plain.get_inputs()[0].name: np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)}
    expected, actual = plain.run(None, image), pooled.run(None, image)

    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    missing = session(proto, "missing").run(None, image)
    for same_kernels, theirs in zip(missing, expected, strict=True):
        same(same_kernels, theirs)


# Graphs


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 19])
@pytest.mark.parametrize(("shape", "pads"), [((1, 1, 2), [0, 0, 0, 0, 0, 1]), ((1, 1, 1, 2), [0] * 7 + [1])])
def test_a_pad_before_a_mean_is_data(opset, shape, pads):
    """Zeros that a Pad adds count in the divisor, and pads of the pool do not, whichever way the library is
    registered."""
    x = np.array([2, 4], np.float32).reshape(shape)
    kernel = [1] * (x.ndim - 3) + [2]
    pool = helper.make_node("AveragePool", ["z"], ["y"], kernel_shape=kernel,
                            pads=[0] * (x.ndim - 3) + [1] + [0] * (x.ndim - 2))
    pad = helper.make_node("Pad", ["x", "p"], ["z"]) if opset > 10 else helper.make_node("Pad", ["x"], ["z"], pads=pads)
    proto = model([pad, pool], [("x", "float32", shape)], [("y", "float32", None)], opset,
                  constants={"p": np.array(pads)} if opset > 10 else {})
    alone = [(None, None)] if RELEASE >= (1, 21) else []  # older releases are wrong here
    for ops, given in (*alone, ("missing", None), ("missing", opset), ("all", None), ("all", opset),
                       (["AveragePool"], opset)):
        made = session(proto, ops, **({"opset": given} if ops else {}))
        assert made.run(None, {"x": x})[0].ravel().tolist() == [2, 3, 2]


def test_a_pad_before_a_maximum_is_data():
    """Zeros that a Pad adds count as elements of a maximum. Before 1.32, onnxruntime by itself treats such zeros as
    padding."""
    x = np.array([[[[-1, -2], [-3, -4]]]], np.float32)
    nodes = [helper.make_node("Pad", ["x", "p"], ["z"]),
             helper.make_node("MaxPool", ["z"], ["y"], kernel_shape=[2, 2], pads=[0, 0, 0, 0])]
    proto = model(nodes, [("x", "float32", x.shape)], [("y", "float32", None)], 13,
                  constants={"p": np.array([0, 0, 1, 1, 0, 0, 0, 0])})
    for ops in ("missing", "all", ["MaxPool"]):
        assert session(proto, ops).run(None, {"x": x})[0].ravel().tolist() == [0, 0, 0, -1]


def test_dilations_of_a_fused_mean_are_refused():
    """onnxruntime fuses a dilated mean between Q and DQ into an operator without dilations, and refuses the fused node
    itself."""
    scale, zero = np.float32(0.5), np.uint8(3)
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]),
             helper.make_node("AveragePool", ["d"], ["a"], kernel_shape=[2, 2], dilations=[2, 2]),
             helper.make_node("QuantizeLinear", ["a", "s", "z"], ["y"])]
    proto = model(nodes, [("x", "uint8", [1, 1, 5, 5])], [("y", "uint8", None)], 19,
                  constants={"s": scale, "z": zero})
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for ops in (None, "missing", "all", ["QLinearAveragePool"], ["AveragePool", "QLinearAveragePool"]):
        with pytest.raises(Exception, match="Unrecognized attribute: dilations for operator QLinearAveragePool"):
            session(proto, ops)


def test_outputs_that_are_left_out():
    """Indices are computed if a node names them, whatever comes last in its list of outputs."""
    x = data((1, 2, 5, 5))
    expected, indices = onnxpool.max_pool(x, 2, return_indices=True)
    for outputs in (("y",), ("y", ""), ("y", "i")):
        results = answers("MaxPool", [x], {"kernel_shape": [2, 2]}, "all", outputs=outputs, opset=12)
        same(results[0], expected)
        assert len(results) == 1 or (results[1] == indices).all()


def test_inputs_that_are_left_out():
    """y_zero_point and output_shape may be omitted. onnxruntime does not accept nodes without x_zero_point."""
    x = data((1, 2, 6, 6), "uint8")
    scale = np.float32(0.5)
    node = {"attributes": {"kernel_shape": [2, 2]}, "opset": 12, "domain": "com.microsoft"}
    for inputs in ([x, scale, np.uint8(1), scale, None], [x, scale, np.uint8(1), scale, np.uint8(3)]):
        inputs = [value if value is None else np.asarray(value) for value in inputs]
        expected = onnxpool.qlinear_average_pool(*inputs, 2)
        same(answers(QLINEAR_AVERAGE, inputs, ops=[QLINEAR_AVERAGE], **node)[0], expected)
    y, indices = onnxpool.max_pool(data((1, 2, 6, 6)), 2, strides=2, return_indices=True)
    unpool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for further in ([], [np.array([1, 2, 7, 8])]):
        inputs = [y, indices * 0 + np.arange(y.size).reshape(y.shape), *further]
        expected = onnxpool.max_unpool(*inputs[:2], 2, *further, strides=2)
        same(answers("MaxUnpool", inputs, unpool, "all", opset=11)[0], expected)


@pytest.mark.parametrize("ops", ["missing", "all"])
def test_empty_arrays_and_changing_shapes(ops):
    """One session accepts any number of images, including none, and images of any size."""
    made = session(node_model("AveragePool", [data((1, 1, 4, 4))], {"kernel_shape": [3, 3]}, opset=19), ops)
    for shape in ((2, 3, 8, 9), (0, 3, 8, 9), (2, 3, 8, 9), (1, 0, 5, 5), (5, 1, 3, 3), (1, 2, 3, 9)):
        x = np.round(data(shape) * 9) * 9
        same(made.run(None, {"x0": x})[0], onnxpool.average_pool(x, 3, opset=19))


def test_constants_bodies_and_functions():
    """Nodes on constants, in branches and in functions of the model run on onnxpool."""
    x = data((1, 2, 6, 6), "float64")
    pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2])
    expected = onnxpool.average_pool(x, 2)
    folded = model([helper.make_node("AveragePool", ["c"], ["a"], kernel_shape=[2, 2]),
                    helper.make_node("Add", ["a", "x"], ["z"])],
                   [("x", "float64", [1])], [("z", "float64", None)], 19, constants={"c": x})
    same(session(folded, "missing").run(None, {"x": np.zeros(1)})[0], expected)
    branch = helper.make_graph([helper.make_node("AveragePool", ["x"], ["b"], kernel_shape=[2, 2])], "b", [],
                               [helper.make_tensor_value_info("b", onnx.TensorProto.DOUBLE, None)])
    either = model([helper.make_node("Cast", ["f"], ["t"], to=onnx.TensorProto.BOOL),
                    helper.make_node("If", ["t"], ["z"], then_branch=branch, else_branch=branch)],
                   [("x", "float64", [1, 2, 6, 6]), ("f", "int64", [])], [("z", "float64", None)], 19)
    same(session(either, "missing").run(None, {"x": x, "f": np.array(1)})[0], expected)
    function = helper.make_function("local", "Twice", ["x"], ["z"], [pool, helper.make_node("Add", ["y", "y"], ["z"])],
                                    [helper.make_opsetid("", 19)])
    called = model([helper.make_node("Twice", ["x"], ["z"], domain="local")], [("x", "float64", [1, 2, 6, 6])],
                   [("z", "float64", None)], 19, functions=[function])
    same(session(called, "missing").run(None, {"x": x})[0], 2 * expected)


SHAPES = [
    ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, ["N", 3, 9, 8]),
    ("MaxPool", {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 3]}, [1, 3, 9, 8]),
    ("LpPool", {"kernel_shape": [3, 2], "p": 3}, [1, "C", 9, 8]),
    ("GlobalLpPool", {"p": 1}, ["N", "C", 4, 5]),
    ("GlobalMaxPool", {}, [2, 3, 4]),
]


@pytest.mark.parametrize(("operator", "attributes", "shape"), SHAPES)
def test_shapes_are_inferred(operator, attributes, shape):
    """The shape of a result is known before a session runs, including names of open sizes."""
    proto = node_model(operator, [data((1, 1, 1, 1))], attributes, opset=19, shape=shape)
    assert session(proto, "all").get_outputs()[0].shape == session(proto).get_outputs()[0].shape != []


@pytest.mark.parametrize("shape", [None, [None, 2, 5, 5], [1, 2, "H", 5], [1, "C", None, None]])
def test_open_sizes(shape):
    """Sizes that are unknown are open in the result too, as without the library, and the session runs."""
    x = data((1, 2, 5, 5))
    proto = node_model("MaxPool", [x], {"kernel_shape": [2, 2]}, opset=12, shape=shape)
    made = session(proto, "all")
    assert made.get_outputs()[0].shape == session(proto).get_outputs()[0].shape
    same(made.run(None, {"x0": x})[0], onnxpool.max_pool(x, 2))
