"""`onnxpool check` computes shapes and pads that exporters write as nodes. No hostile model makes it expensive."""

import resource
import time
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

from onnxpool.onnx import folding
from onnxpool.onnx.cases import ORT
from onnxpool.onnx.checks import check_site
from onnxpool.onnx.disagreements import Filter
from onnxpool.onnx.protos import canonical
from onnxpool.onnx.survey import Site, survey

INT64_MIN = -(2**63)
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}


def const(name: str, value: Any, dtype: Any = np.int64) -> onnx.NodeProto:
    """A Constant node."""
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(value, dtype)))


def plain(name: str, value: Any) -> onnx.NodeProto:
    """A Constant node without a tensor, as recent exporters write it."""
    return node("Constant", [], [name], **{"value_ints" if isinstance(value, list) else "value_int": value})


def model(nodes: list[onnx.NodeProto], shape: Any = (1, 3, 8, 8), *, opset: int = 17, functions: Any = (),
          constants: Any = ()) -> onnx.ModelProto:
    """A model of nodes that compute p from x, and of a pool."""
    graph = helper.make_graph(
        [*nodes, node("MaxPool", ["p"], ["y"], name="pool", **POOL)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializer=[numpy_helper.from_array(np.array(value), name) for name, value in dict(constants).items()])
    domains = {function.domain: 1 for function in functions}
    opsets = [helper.make_opsetid(name, version) for name, version in {"": opset, **domains}.items()]
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8)
    return made


def sized(made: onnx.ModelProto, **shapes: tuple[int, ...]) -> Any:
    """The shape that reaches the pool, if the pool is fully checked."""
    (site,) = survey(canonical(made), shapes)
    assert site.error == ""
    return None if site.unknown else site.shape


def torch_pad(pads: tuple[int, ...] = (1, 2, 3, 4)) -> list[onnx.NodeProto]:
    """F.pad(x, pads), as torch.onnx.export writes it."""
    return [
        const("pads", pads), const("more", [4]),
        node("ConstantOfShape", ["more"], ["zeros"], value=numpy_helper.from_array(np.array([0]))),
        node("Concat", ["pads", "zeros"], ["all"], axis=0), const("pairs", [-1, 2]),
        node("Reshape", ["all", "pairs"], ["r"]),
        const("axis", [0]), const("start", [-1]), const("end", [INT64_MIN + 1]), const("step", [-1]),
        node("Slice", ["r", "start", "end", "axis", "step"], ["s"]), node("Transpose", ["s"], ["t"], perm=[1, 0]),
        const("flat", [-1]), node("Reshape", ["t", "flat"], ["f"]), node("Cast", ["f"], ["c"], to=TensorProto.INT64),
        const("value", 0.0, np.float32), node("Pad", ["x", "c", "value"], ["p"], mode="constant"),
    ]


def torch_pad_of_computed_length() -> list[onnx.NodeProto]:
    """F.pad as older releases write it, where the number of zeros is computed from the ranks."""
    return [
        const("rank", 4), const("two", 2), node("Mul", ["rank", "two"], ["both"]), const("given", [1, 2, 3, 4]),
        node("Shape", ["given"], ["length"]), const("zero", 0), node("Gather", ["length", "zero"], ["n"], axis=0),
        node("Sub", ["both", "n"], ["d"]), plain("axes", [0]), node("Unsqueeze", ["d", "axes"], ["more"]),
        *torch_pad()[2:],
    ]


CHAINS: dict[str, tuple[list[onnx.NodeProto], Any, Any, dict[str, Any]]] = {
    "torch F.pad": (torch_pad(), (1, 3, 8, 8), (1, 3, 15, 11), {}),
    "torch F.pad, opset 11": (torch_pad(), (1, 3, 8, 8), (1, 3, 15, 11), {"opset": 11}),
    "torch F.pad, opset 19": (torch_pad(), (1, 3, 8, 8), (1, 3, 15, 11), {"opset": 19}),
    "torch F.pad of any batch": (torch_pad(), ("n", 3, 8, 8), ("n", 3, 15, 11), {}),
    "torch F.pad of a computed length": (
        [const("pads", [1, 2, 3, 4]), *torch_pad_of_computed_length()], (1, 3, 8, 8), (1, 3, 15, 11), {}),
    "torch flatten and view": ([  # x.view(x.size(0), x.size(1), -1, x.size(3) // 2)
        node("Shape", ["x"], ["a"]), const("0", 0), node("Gather", ["a", "0"], ["n"], axis=0),
        const("1", 1), node("Gather", ["a", "1"], ["c"], axis=0),
        const("3", 3), node("Gather", ["a", "3"], ["w"], axis=0),
        const("2", 2), node("Div", ["w", "2"], ["h"]), const("ax", [0]),
        *[node("Unsqueeze", [one, "ax"], [one + "u"]) for one in "nch"], const("-1", [-1]),
        node("Concat", ["nu", "cu", "-1", "hu"], ["to"], axis=0), node("Reshape", ["x", "to"], ["p"])],
        (2, 3, 8, 10), (2, 3, 16, 5), {}),
    "torch interpolate": ([  # sizes from the shape, by floats
        node("Shape", ["x"], ["a"]), const("2", [2]), const("4", [4]), node("Slice", ["a", "2", "4"], ["hw"]),
        node("Cast", ["hw"], ["f"], to=TensorProto.FLOAT), const("s", [1.5, 2.5], np.float32),
        node("Mul", ["f", "s"], ["m"]), node("Floor", ["m"], ["fl"]),
        node("Cast", ["fl"], ["i"], to=TensorProto.INT64), const("0", [0]),
        node("Slice", ["a", "0", "2"], ["nc"]), node("Concat", ["nc", "i"], ["to"], axis=0),
        node("Resize", ["x", "", "", "to"], ["p"], mode="nearest")], ("n", 3, 7, 5), (None, 3, 10, 12), {}),
    "torch dynamo expand": ([
        node("Shape", ["x"], ["a"], start=0, end=1), plain("c", [3]), plain("hw", [9, 7]),
        node("Concat", ["a", "c", "hw"], ["to"], axis=0), node("ReduceMean", ["x"], ["m"], axes=[2, 3]),
        node("Expand", ["m", "to"], ["p"])], ("n", 3, 8, 8), (None, 3, 9, 7), {}),
    "tf2onnx strided slice": ([  # shape[1:3] of channels last, then a pad of half of what is missing
        node("Shape", ["x"], ["a"]), node("Cast", ["a"], ["a32"], to=TensorProto.INT32), const("b", [2]),
        const("e", [4]), const("ax", [0]), node("Slice", ["a32", "b", "e", "ax"], ["hw"]),
        const("16", [16, 16], np.int32), node("Sub", ["16", "hw"], ["miss"]), const("2", [2], np.int32),
        node("Div", ["miss", "2"], ["half"]),
        node("Sub", ["miss", "half"], ["rest"]), const("00", [0, 0], np.int32),
        node("Concat", ["00", "half", "00", "rest"], ["pads32"], axis=0),
        node("Cast", ["pads32"], ["pads"], to=TensorProto.INT64), node("Pad", ["x", "pads"], ["p"])],
        ("n", 3, 9, 6), ("n", 3, 16, 16), {}),
    "tf2onnx paddings": ([  # pairs of each axis, transposed
        const("pairs", [[0, 0], [0, 0], [1, 2], [3, 4]], np.int32),
        node("Cast", ["pairs"], ["c"], to=TensorProto.INT64),
        node("Transpose", ["c"], ["t"]), const("f", [8]), node("Reshape", ["t", "f"], ["pads"]),
        node("Pad", ["x", "pads"], ["p"])], (1, 3, 8, 8), (1, 3, 11, 15), {}),
    "keras upsampling": ([  # scales of Resize, from a Tile
        const("one", [1.0], np.float32), const("2", [2]), node("Tile", ["one", "2"], ["11"]),
        const("f", [2.0], np.float32), node("Tile", ["f", "2"], ["ff"]), node("Concat", ["11", "ff"], ["to"], axis=0),
        node("Resize", ["x", "", "to"], ["p"])], (1, 3, 8, 8), (1, 3, 16, 16), {}),
    "where and range": ([  # -1 is replaced by the size of the input, as torch's expand does
        const("want", [-1, 3, -1, 9]), node("Shape", ["x"], ["a"]), const("-1", -1),
        node("Equal", ["want", "-1"], ["q"]), node("Where", ["q", "a", "want"], ["to"]), const("hw", [2]),
        const("end", [3]), node("Slice", ["x", "hw", "end", "end"], ["x1"]), node("Expand", ["x1", "to"], ["p"])],
        (2, 3, 8, 4), (2, 3, 8, 9), {}),
    "split and squeeze": ([
        node("Shape", ["x"], ["a"]), node("Split", ["a"], ["s0", "s1", "s2", "s3"], axis=0),
        node("Concat", ["s0", "s1", "s3", "s2"], ["to"], axis=0), node("Reshape", ["x", "to"], ["p"])],
        (1, 3, 8, 5), (1, 3, 5, 8), {}),
    "initializers": ([
        node("Add", ["i", "i"], ["twice"]), node("Pad", ["x", "twice"], ["p"])], (1, 3, 8, 8), (1, 3, 12, 8),
        {"constants": {"i": np.array([0, 0, 1, 0, 0, 0, 1, 0])}}),
    "elements of a long table": ([
        const("table", [0, 0, 1, 2] * 250), const("at", [0, 1, 2, 3, 0, 0, 2, 2]),
        node("Gather", ["table", "at"], ["g"]), const("same", [8]),
        node("Expand", ["g", "same"], ["pads"]), node("Pad", ["x", "pads"], ["p"])],
        (1, 3, 8, 8), (1, 3, 10, 11), {}),
    "shape of a pooled array": ([
        node("AveragePool", ["x"], ["a"], **POOL, name="first"), node("Shape", ["a"], ["s"]), const("3", [3, 3, 1, 1]),
        node("Mul", ["s", "3"], ["m"]), const("o", [1, 1, 8, 8]), node("Add", ["m", "o"], ["b"]),
        node("ConstantOfShape", ["b"], ["p"], value=numpy_helper.from_array(np.array([1], np.float32)))],
        (1, 3, 9, 9), (4, 10, 12, 12), {}),
}


@pytest.mark.parametrize("name", CHAINS)
def test_computed_values_are_known(name: str) -> None:
    """Shapes behind nodes that compute pads, shapes and scales are found, from known and partly known shapes."""
    nodes, before, after, how = CHAINS[name]
    sites = survey(canonical(model(nodes, before, **how)))
    site = sites[-1]
    assert (site.unknown, site.error) == ("", "")
    assert site.shape is not None
    assert site.shape[1:] == after[1:]
    assert site.shape[0] == after[0] or not isinstance(after[0], int)


def test_pads_within_functions_and_bodies() -> None:
    """Nodes of functions are folded where functions are called, and nodes of bodies with the values around them."""
    function = helper.make_function("local", "Padded", ["x"], ["p"], torch_pad(), [helper.make_opsetid("", 17)])
    called = model([node("Padded", ["x"], ["p"], domain="local")], functions=[function])
    assert sized(called) == (1, 3, 15, 11)
    then = helper.make_graph([*torch_pad()[2:], node("MaxPool", ["p"], ["q"], **POOL)], "then", [],
                             [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)])
    other = helper.make_graph([node("MaxPool", ["x"], ["q"], **POOL)], "else", [],
                              [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)])
    branched = model([*torch_pad()[:2], const("yes", True, bool),
                      node("If", ["yes"], ["p"], then_branch=then, else_branch=other)])
    assert {(1, 3, 15, 11), (1, 3, 8, 8)} <= {site.shape for site in survey(branched)}


def test_names_of_bodies_hide_those_outside() -> None:
    """The input of a body hides a constant of the same name outside the body."""
    body = helper.make_graph(
        [node("Add", ["pads", "pads"], ["twice"]), node("Pad", ["x", "twice"], ["p"]),
         node("MaxPool", ["p"], ["q"], **POOL), node("Identity", ["cond"], ["cond_out"]),
         node("Identity", ["pads"], ["pads_out"])],
        "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                 helper.make_tensor_value_info("cond", TensorProto.BOOL, []),
                 helper.make_tensor_value_info("pads", TensorProto.INT64, [8])],
        [helper.make_tensor_value_info("cond_out", TensorProto.BOOL, []),
         helper.make_tensor_value_info("pads_out", TensorProto.INT64, [8]),
         helper.make_tensor_value_info("q", TensorProto.FLOAT, None)])
    made = model([const("pads", [0, 0, 1, 1, 0, 0, 1, 1]), const("n", 3), const("yes", True, bool),
                  node("Loop", ["n", "yes", "pads"], ["last", "all"], body=body), node("Identity", ["x"], ["p"])])
    assert survey(made)[0].unknown


def test_merged_pads_are_found_behind_nodes() -> None:
    """The warning about a Pad that onnxruntime merges with a pool does not depend on how the pads are written."""

    def warned(made: onnx.ModelProto, **shapes: tuple[int, ...]) -> bool:
        wanted = Filter(runtimes={ORT: (1, 20)})
        (site,) = survey(canonical(made), shapes)
        return "ort-merged-maximum" in {warning["name"] for warning in check_site(site, wanted).warnings}

    assert warned(model(torch_pad((1, 1, 2, 2))))
    nodes = CHAINS["tf2onnx strided slice"][0]
    assert warned(model(nodes, ("n", 3, 14, 13)))
    assert not warned(model(nodes, ("n", 3, "h", "w")), x=(1, 3, 14, 13))  # onnxruntime does not know these sizes


def test_max_unpool_to_a_computed_shape() -> None:
    """The output_shape of MaxUnpool decides the size of the result, if output_shape is known."""
    made = model([
        node("MaxPool", ["x"], ["m", "i"], kernel_shape=[2, 2], strides=[2, 2]), node("Shape", ["x"], ["s"]),
        node("MaxUnpool", ["m", "i", "s"], ["p"], kernel_shape=[2, 2], strides=[2, 2])], (1, 3, 9, 9))
    assert [site.shape for site in survey(made)] == [(1, 3, 9, 9), (1, 3, 4, 4), (1, 3, 9, 9)]
    small = model([
        node("MaxPool", ["x"], ["m", "i"], kernel_shape=[2, 2], strides=[2, 2]), const("s", [1, 3, 2, 2]),
        node("MaxUnpool", ["m", "i", "s"], ["p"], kernel_shape=[2, 2], strides=[2, 2])], (1, 3, 9, 9))
    assert "output_shape" in survey(small)[1].error


# Hostile models

HUGE = 2**40
BOMBS: dict[str, list[onnx.NodeProto]] = {
    "ConstantOfShape": [const("n", [HUGE]), node("ConstantOfShape", ["n"], ["v"])],
    "ConstantOfShape of many axes": [const("n", [2**31] * 60), node("ConstantOfShape", ["n"], ["v"])],
    "ConstantOfShape without elements": [const("n", [HUGE, 0]), node("ConstantOfShape", ["n"], ["v"])],
    "ConstantOfShape below zero": [const("n", [-HUGE]), node("ConstantOfShape", ["n"], ["v"])],
    "Expand": [const("a", [1]), const("n", [HUGE]), node("Expand", ["a", "n"], ["v"])],
    "Expand without elements": [const("a", [[1]]), const("n", [HUGE, 0]), node("Expand", ["a", "n"], ["v"])],
    "Tile": [const("a", [1]), const("n", [HUGE]), node("Tile", ["a", "n"], ["v"])],
    "Tile without elements": [const("a", [[1, 2]]), const("n", [HUGE, 0]), node("Tile", ["a", "n"], ["v"])],
    "Range": [const("a", 0), const("n", HUGE), const("d", 1), node("Range", ["a", "n", "d"], ["v"])],
    "Range of no step": [const("a", 0), const("n", 5), const("d", 0), node("Range", ["a", "n", "d"], ["v"])],
    "Range of NaN": [const("a", 0, float), const("n", np.nan, float), const("d", 1, float),
                     node("Range", ["a", "n", "d"], ["v"])],
    "Range of infinity": [const("a", 0, float), const("n", np.inf, float), const("d", 1, float),
                          node("Range", ["a", "n", "d"], ["v"])],
    "broadcasting": [const("a", np.zeros((1000, 1))), const("b", np.zeros((1, 1000))),
                     *[node("Add", [f"v{i}" if i else "a", "b"], [f"v{i + 1}"]) for i in range(3)]],
    "doubling": [const("v0", [1]), *[node("Concat", [f"v{i}"] * 2, [f"v{i + 1}"], axis=0) for i in range(60)]],
    "many inputs": [const("a", np.zeros(1000)), node("Concat", ["a"] * 50_000, ["v"], axis=0),
                    node("Max", ["a"] * 50_000, ["w"]), node("Sum", ["a"] * 50_000, ["u"])],
    "many results of one": [const("v0", np.zeros(1000)), *[
        node("Identity", [f"v{i}"], [f"v{i + 1}"]) for i in range(20_000)]],
    "many different results": [const("v0", np.zeros(1000)), const("b", np.ones(1000)), *[
        node("Add", [f"v{i}", "b"], [f"v{i + 1}"]) for i in range(8000)]],
    "squaring": [const("a", np.zeros((32, 32))), const("i", np.zeros((32, 32))), node("Gather", ["a", "i"], ["v"])],
    "Split": [const("a", [1]), node("Split", ["a"], ["v"], num_outputs=HUGE)],
    "Split into none": [const("a", [1]), node("Split", ["a"], ["v"], num_outputs=0)],
    "axes": [const("a", [1]), const("n", np.arange(1000)), node("Unsqueeze", ["a", "n"], ["v"])],
    "division by zero": [const("a", [1]), const("z", [0]), node("Div", ["a", "z"], ["v"]),
                         node("Mod", ["a", "z"], ["w"])],
    "overflow": [const("a", [2**63 - 1]), node("Add", ["a", "a"], ["v"]), node("Mul", ["v", "a"], ["w"]),
                 node("ReduceProd", ["a"], ["u"])],
    "NaN as an integer": [const("a", [np.nan, 1e300], float), node("Cast", ["a"], ["v"], to=TensorProto.INT64)],
    "wrong inputs": [const("a", [1]), node("Reshape", ["a"], ["v"]), node("Gather", ["a", "a"], ["w"], axis=7),
                     node("Slice", ["a"], ["u"]), node("Where", ["a"], ["t"]), node("Range", ["a"], ["q"])],
    "many results": [const("a", [1]), node("Identity", ["a"], ["v", "w"]), node("Shape", ["a"], ["t", "u"]),
                     node("Size", [], ["q"])],
    "text": [const("a", [1]), node("Cast", ["a"], ["v"], to=TensorProto.STRING)],
    "external values": [node("ConstantOfShape", ["n"], ["v"], value=helper.make_tensor(
        "t", TensorProto.INT64, [1], [1])), const("n", [3])],
}


def cost(run: Any) -> tuple[float, int]:
    """The seconds of processor time, and the bytes by which the most memory of the process grew."""
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    run()
    return time.process_time() - begin, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_not_evaluated(name: str) -> None:
    """Values that need much memory or time stay unknown, and invalid nodes do no harm."""
    made = model([*BOMBS[name], node("Reshape", ["x", "v"], ["p"])], opset=18)
    folder = folding.Folder(18)

    def run() -> None:
        folder.fold(made.graph, {}, {})

    seconds, grown = cost(run)
    assert seconds < 20
    assert grown < 2**27
    held = [value for results in folder._results.values() for value in results]
    assert all(value.size <= 1024 for value in held)


def test_random_values_are_unknown() -> None:
    """Operators with random results are not folded, nor any operator that is not in the table."""
    for op, attributes in (("RandomNormal", {"shape": [4]}), ("RandomUniform", {"shape": [4]}), ("Bernoulli", {}),
                           ("RandomNormalLike", {}), ("RandomUniformLike", {}), ("Multinomial", {}), ("Unknown", {})):
        inputs = [] if "shape" in attributes else ["a"]
        made = model([const("a", [1.0, 2.0, 3.0, 4.0], np.float32), node(op, inputs, ["r"], **attributes),
                      node("Cast", ["r"], ["to"], to=TensorProto.INT64), node("Reshape", ["x", "to"], ["p"])])
        folder = folding.Folder(17)
        assert not folder.fold(made.graph, {}, {})
        assert folder._results == {}


def test_values_in_other_files_are_not_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of an attribute that names a file is unknown."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(np.int64(5).tobytes())
    tensor = onnx.TensorProto(dims=[1], data_type=TensorProto.INT64, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret")
    made = model([node("Constant", [], ["n"], value=tensor), const("m", [2]),
                  node("ConstantOfShape", ["m"], ["v"], value=tensor), node("Add", ["n", "m"], ["w"])])
    folder = folding.Folder(17)
    assert not folder.fold(made.graph, {}, {})
    assert folder._results == {}


def test_broken_tensors_are_unknown() -> None:
    """Tensors whose content does not fit their shape or type are no reason to refuse a model."""
    for broken in (onnx.TensorProto(dims=[4], data_type=TensorProto.INT64, raw_data=b"abc"),
                   onnx.TensorProto(dims=[2], data_type=TensorProto.INT64, int64_data=[1]),
                   onnx.TensorProto(dims=[1], data_type=99)):
        broken.name = "b"
        made = model([node("Constant", [], ["a"], value=broken), node("Add", ["a", "b"], ["s"]),
                      node("Shape", ["u"], ["w"])])
        made.graph.initializer.append(broken)
        made.graph.value_info.add(name="u").type.tensor_type.elem_type = 99
        assert not folding.Folder(17).fold(made.graph, {}, {})


def test_the_number_of_evaluations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long chain of different nodes stops being folded; equal nodes are evaluated once."""
    monkeypatch.setattr(folding, "MOST_EVALUATIONS", 10)
    nodes = [const("v0", [1]), *[node("Add", [f"v{i}", "v0"], [f"v{i + 1}"]) for i in range(30)]]
    folder = folding.Folder(17)
    folder.fold(model(nodes).graph, {}, {})
    assert len(folder._results) == 10
    nodes = [const("v0", [1]), *[node("Add", ["v0", "v0"], [f"v{i + 1}"]) for i in range(30)]]
    folder = folding.Folder(17)
    folder.fold(model(nodes).graph, {}, {})
    assert len(folder._results) == 1


def test_long_chains_of_pools_and_shapes_end() -> None:
    """Shapes that alternately follow from pools and from folding are found in a bounded number of rounds."""
    nodes, value = [const("0", [0, 0, 1, 1]), const("h", [1, 1, 0, 0])], "x"
    for i in range(8):
        nodes += [node("MaxPool", [value], [f"m{i}"], kernel_shape=[2, 2]), node("Shape", [f"m{i}"], [f"s{i}"]),
                  node("Add", [f"s{i}", "0"], [f"t{i}"]), node("ConstantOfShape", [f"t{i}"], [f"v{i}"])]
        value = f"v{i}"
    nodes.append(node("Identity", [value], ["p"]))
    site: Site = survey(model(nodes, (1, 1, 9, 9)))[-1]
    assert site.shape == (1, 1, 9, 9)
