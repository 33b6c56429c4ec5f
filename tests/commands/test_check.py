"""The command ``onnxpool check``: predicted shapes, windows, warnings, and each way to fail."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, DIFFERS, OK
from onnxpool.onnx import checks

pytestmark = pytest.mark.smoke


def save(path, text, change=None):
    """Write a model, given in onnx's text format, and return its path."""
    model = parser.parse_model(text)
    if change is not None:
        change(model)
    onnx.save(model, path)
    return str(path)


@pytest.fixture
def check(tmp_path, capsys):
    """Run the command on a model, and return the nodes of its JSON report and its exit status."""

    def go(text, *options, change=None):
        status = command.main(["check", save(tmp_path / "m.onnx", text, change), "--json", *options])
        printed = capsys.readouterr()
        assert printed.err == ""
        return json.loads(printed.out)["nodes"], status

    return go


@pytest.fixture
def refused(tmp_path, capsys):
    """Run the command on a model, and return its error, which is one line."""

    def go(text, *options):
        path = save(tmp_path / "m.onnx", text)
        assert command.main(["check", path, *options]) == CANNOT
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        return printed.err.removeprefix("onnxpool: ").rstrip().replace(path, "m.onnx")

    return go


def shapes(nodes):
    """The shapes of nodes before and after."""
    return [(node["name"], node["input_shape"], node["output_shape"]) for node in nodes]


def test_a_dropped_window_decides_later_shapes(check):
    """Shapes behind a window that onnx's inference keeps, but no runtime computes, are as in the runtimes."""
    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {
            a = MaxPool <kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)
            b = Pad (a, pads)
            y = AveragePool <kernel_shape = [2, 2]> (b)
        }""", change=lambda model: model.graph.initializer.append(
            helper.make_tensor("pads", TensorProto.INT64, [8], [0, 0, 0, 0, 0, 0, 2, 1])))

    assert shapes(nodes) == [("a", [1, 1, 2, 2], [1, 1, 1, 1]), ("y", [1, 1, 3, 2], [1, 1, 2, 1])]
    assert [[w["name"] for w in node["warnings"]] for node in nodes] == [
        ["old-ort-ceil", "inference-ceil", "openvino-ceil"], ["ort-merged-pads"]]
    assert nodes[0]["warnings"][1] == {
        "name": "inference-ceil", "runtime": "onnx's shape inference", "who": "onnx's shape inference",
        "text": "keeps the window of ceil_mode that starts in the padding, so that a full check refuses the right "
                "shape"}
    assert nodes[1]["axes"][0] == {"axis": 2, "size": 3, "out": 2, "kernel": 2, "stride": 1, "dilation": 1,
                                   "pads": [0, 0], "empty": 0}
    assert status == DIFFERS


STALE = """
    <ir_version: 8, opset_import: ["" : 12]>
    agraph (float[1, 1, 2, 2] x) => (float[a, b, c, d] z) {
        y = MaxPool <kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)
        h = Relu (y)
        z = MaxPool <kernel_shape = [1, 1]> (h)
    }"""


def test_shapes_that_a_model_claims_do_not_replace_inferred_ones(check):
    """Shapes that onnx's inference has stored, or symbols of outputs between pooling nodes, do not replace
    inference."""
    def claim(model):
        model.CopyFrom(onnx.shape_inference.infer_shapes(model))
        assert len(model.graph.value_info) == 2

    for change in (None, claim):
        assert shapes(check(STALE, change=change)[0]) == [("y", [1, 1, 2, 2], [1, 1, 1, 1]),
                                                          ("z", [1, 1, 1, 1], [1, 1, 1, 1])]
    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 3, 8, 8] x) => (float[a, b, c, d] y, float[e, f, g, h] z) {
            y = MaxPool <kernel_shape = [2, 2]> (x)
            r = Relu (y)
            z = MaxPool <kernel_shape = [2, 2]> (r)
        }""")
    assert shapes(nodes) == [("y", [1, 3, 8, 8], [1, 3, 7, 7]), ("z", [1, 3, 7, 7], [1, 3, 6, 6])]
    assert status == OK


def test_shapes_that_a_model_claims_count_where_nothing_can_be_inferred(check):
    """Shapes that a model claims count after operators that onnx does not know, and for sizes that onnx cannot
    infer."""
    def change(model):
        model.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 3, 8, 8]))
        model.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [1, 3, 4, 16]))

    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 19, "custom" : 1]>
        agraph (float[1, 3, 8, 8] x, int64[4] s) => (float[a, b, c, d] y, float[e, f, g, h] z) {
            h = custom.Op (x)
            y = MaxPool <kernel_shape = [2, 2]> (h)
            r = Reshape (x, s)
            z = MaxPool <kernel_shape = [2, 2]> (r)
        }""", change=change)
    assert shapes(nodes) == [("y", [1, 3, 8, 8], [1, 3, 7, 7]), ("z", [1, 3, 4, 16], [1, 3, 3, 15])]
    assert status == OK


def test_outputs_that_are_left_out_declare_nothing(check):
    """An omitted output has an empty name, which is not confused with an omitted input of a later node."""
    def change(model):
        model.graph.node[0].output.append("")
        model.graph.initializer.append(helper.make_tensor("s", TensorProto.INT64, [4], [1, 1, 8, 8]))

    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 8, 8] x) => (float[a, b, c, d] z) {
            y = MaxPool <kernel_shape = [2, 2]> (x)
            r = Resize (y, , , s)
            z = MaxPool <kernel_shape = [2, 2]> (r)
        }""", change=change)
    assert shapes(nodes)[1] == ("z", [1, 1, 8, 8], [1, 1, 7, 7])
    assert status == OK


@pytest.mark.parametrize(("version", "known"), [(3, True), (8, False)])
def test_default_values_of_inputs_are_no_constants(check, version, known):
    """Callers can pass other values for default inputs, except in old models, whose initializers have to be inputs."""
    def change(model):
        model.graph.initializer.append(numpy_helper.from_array(np.array([1, 4, 4, 4]), "s"))

    nodes, _ = check(f"""
        <ir_version: {version}, opset_import: ["" : 7]>
        agraph (float[1, 1, 8, 8] x, int64[4] s) => (float[a, b, c, d] y) {{
            r = Reshape (x, s)
            y = MaxPool <kernel_shape = [2, 2]> (r)
        }}""", change=change)
    assert nodes[0]["output_shape"] == ([1, 4, 3, 3] if known else None)


def test_weights_are_no_inputs(refused, tmp_path, capsys):
    """--shape neither lists nor accepts weights, although inference treats large weights as inputs."""
    text = """
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, N, N] x) => (float[a, b, c, d] y) {
            h = Conv (x, w)
            y = MaxPool <kernel_shape = [2, 2]> (h)
        }"""
    path = save(tmp_path / "m.onnx", text, lambda model: model.graph.initializer.append(
        numpy_helper.from_array(np.zeros((4, 1, 17, 17), np.float32), "w")))
    for name in ("X", "w"):
        assert command.main(["check", path, "--shape", f"{name}=4,1,17,17"]) == CANNOT
        assert f"the model has no input {name!r}; it has 'x'; pass" in capsys.readouterr().err


def test_operators_that_onnx_does_not_infer(check):
    """Shapes are propagated through the first LpPool and GlobalLpPool, and through operators of com.microsoft."""
    nodes, _ = check("""
        <ir_version: 8, opset_import: ["" : 1]>
        agraph (float[2, 3, 8, 9] x) => (float[a, b, c, d] y) {
            a = LpPool <kernel_shape = [2, 3], p = 1.5> (x)
            y = GlobalLpPool (a)
        }""")
    assert shapes(nodes) == [("a", [2, 3, 8, 9], [2, 3, 7, 7]), ("y", [2, 3, 7, 7], [2, 3, 1, 1])]

    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 19, "com.microsoft" : 1]>
        agraph (uint8[2, 8, 9, 3] x, float s, uint8 z) => (uint8[a, b, c, d] y) {
            a = com.microsoft.NhwcMaxPool <kernel_shape = [2, 3]> (x)
            b = Identity (a)
            c = com.microsoft.QLinearAveragePool <kernel_shape = [7, 1], channels_last = 1> (b, s, z, s, z)
            y = com.microsoft.QLinearGlobalAveragePool (c, s, z, s, z)
        }""")
    assert shapes(nodes) == [("a", [2, 8, 9, 3], [2, 7, 7, 3]), ("c", [2, 7, 7, 3], [2, 1, 7, 3]),
                             ("y", [2, 1, 7, 3], [2, 1, 1, 1])]
    assert [node["axes"][0]["axis"] for node in nodes] == [1, 1, 2]
    assert status == DIFFERS


def test_regions_and_unpooling(check):
    """Regions come from another input, Indices have their own type, and output_shape leaves sizes open."""
    nodes, _ = check("""
        <ir_version: 8, opset_import: ["" : 16]>
        agraph (float[N, 3, 8, 8] x, float[7, 4] r, int64[7] b, int64[4] s, float[k, 5] q)
                => (float[a, b, c, d] y, float[e, f, g, h] z, float[i, j, k, l] u, float[m, n, o, p] w, int64[q] t) {
            y = RoiAlign <output_height = 2, output_width = 3> (x, r, b)
            z = MaxRoiPool <pooled_shape = [4, 4]> (x, q)
            a, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
            u = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (a, i)
            w = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (a, i, s)
            t = Shape (i)
        }""")
    assert shapes(nodes) == [
        ("y", ["N", 3, 8, 8], [7, 3, 2, 3]), ("z", ["N", 3, 8, 8], ["k", 3, 4, 4]),
        ("a", ["N", 3, 8, 8], ["N", 3, 4, 4]), ("u", ["N", 3, 4, 4], ["N", 3, 8, 8]),
        ("w", ["N", 3, 4, 4], ["N", 3, "?", "?"])]
    assert [node["axes"] is None for node in nodes] == [True, True, False, True, True]
    assert nodes[3]["geometry"] == ["indices address (8, 8)"]
    assert "ort-unpool-shape" in [warning["name"] for warning in nodes[4]["warnings"]]


OPEN = """
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[N, 3, H, W] x) => (float[a, b, c, d] y, float[e, f, g, h] z) {
        y = LpPool <kernel_shape = [2, 2], dilations = [2, 2], auto_pad = "SAME_UPPER", p = 1> (x)
        g = GlobalMaxPool (x)
        z = MaxPool <kernel_shape = [1, 1]> (g)
    }"""


def test_open_sizes(check, tmp_path, capsys):
    """A size that the model leaves open is shown by name. Once --shape sets the size, windows and warnings are
    known."""
    nodes, status = check(OPEN)
    assert shapes(nodes) == [("y", ["N", 3, "H", "W"], ["N", 3, "?", "?"]), ("g", ["N", 3, "H", "W"], ["N", 3, 1, 1]),
                             ("z", ["N", 3, 1, 1], ["N", 3, 1, 1])]
    assert [node["axes"] is None for node in nodes] == [True, True, False]
    unknown = "its size along axis 2 and 3 is not known"
    assert [node["unchecked"] for node in nodes] == [unknown, unknown, ""]
    assert status == DIFFERS
    path = str(tmp_path / "m.onnx")
    assert command.main(["check", path, "--partial"]) == OK
    out = capsys.readouterr().out.splitlines()
    assert out.count(f"  not fully checked: {unknown}") == 2
    assert out[-2:] == ["3 pooling nodes, 0 warnings, 2 not fully checked",
                        "input 'x' has unknown sizes: pass --shape x=SIZE,SIZE,..."]

    nodes, status = check(OPEN, "--shape", "x=1,3,8,8", "--partial")
    assert shapes(nodes)[0] == ("y", [1, 3, 8, 8], [1, 3, 8, 8])
    assert [warning["name"] for warning in nodes[0]["warnings"]] == ["ort-same-dilations", "reference-auto-dilations"]
    assert status == DIFFERS


def test_open_sizes_that_decide_nothing(check):
    """An open batch, and open sizes before operators without windows, leave nothing unchecked."""
    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 16]>
        agraph (float[N, C, 8, 8] x, float[1, 3, H, W] z, float[7, 4] r, int64[7] b)
                => (float[a, b, c, d] y, float[e, f, g, h] q) {
            y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
            q = RoiAlign <sampling_ratio = 2> (z, r, b)
        }""", "--runtime=onnxruntime")
    assert [(node["unchecked"], node["warnings"]) for node in nodes] == [("", []), ("", [])]
    assert status == OK


def test_shapes_that_no_option_gives(check, tmp_path, capsys):
    """After an operator that onnx does not know, the reason is shown, and no useless option is suggested."""
    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 19, "custom" : 1]>
        agraph (float[1, 3, 8, 8] x) => (float[a, b, c, d] y) {
            h = custom.Op (x)
            y = MaxPool <kernel_shape = [2, 2]> (h)
        }""")
    assert [node["unchecked"] for node in nodes] == ["onnx infers no shape for its input"]
    assert status == DIFFERS
    command.main(["check", str(tmp_path / "m.onnx")])
    out = capsys.readouterr().out
    assert out.endswith("1 pooling node, 0 warnings, 1 not fully checked\n")


def test_a_dtype_that_is_not_known(check):
    """If a dtype is unknown, the report leaves open whether a runtime has kernels for the dtype."""
    nodes, _ = check("""
        <ir_version: 8, opset_import: ["" : 19, "custom" : 1]>
        agraph (float[1, 3, 8, 8] x) => (float[a, b, c, d] y) {
            h = custom.Op (x)
            y = MaxPool <kernel_shape = [2, 2]> (h)
        }""", change=lambda model: model.graph.value_info.append(
            helper.make_tensor_value_info("h", TensorProto.UNDEFINED, [1, 3, 8, 8])))
    assert [(node["dtype"], node["unchecked"]) for node in nodes] == [(None, "its dtype is not known")]


HUGE = """
    <ir_version: 8, opset_import: ["" : 18]>
    agraph (float[1, 1, SIZE] x) => (float[a, b, c] y) { y = MaxPool <kernel_shape = [KERNEL], WINDOWS> (x) }"""


@pytest.mark.parametrize("size", [10**7, 2**40])
def test_large_axes_are_not_walked(check, size):
    """The windows of a long axis are not listed one by one."""
    nodes, status = check(HUGE.replace("SIZE", str(size)).replace("KERNEL", "2").replace("WINDOWS", "strides = [1]"))
    assert nodes[0]["axes"][0]["out"] == size - 1
    assert len(" ".join(nodes[0]["geometry"])) < 1000
    assert (nodes[0]["unchecked"], status) == ("", OK)


@pytest.mark.parametrize(("kernel", "given"), [
    (2, f"pads = [{2**24}, {2**24}]"), (2, f"pads = [{2**13}, 0]"), (2**40, 'auto_pad = "SAME_LOWER"'),
    (2**40, f"pads = [{2**40}, {2**40}], strides = [{2**30}]"),
])
def test_large_paddings_are_not_walked(check, kernel, given):
    """The windows in a long padding are not listed one by one."""
    nodes, _ = check(HUGE.replace("SIZE", "8").replace("KERNEL", str(kernel)).replace("WINDOWS", given))
    assert len(" ".join(nodes[0]["geometry"])) < 1000
    assert not nodes[0]["error"]
    assert nodes[0]["unchecked"] == ""


OLD = """
    <ir_version: 8, opset_import: ["" : 12]>
    agraph (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {
        y = MaxPool <kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)
    }"""


@pytest.mark.parametrize(("options", "names"), [
    ([], ["old-ort-ceil", "inference-ceil", "openvino-ceil"]),
    (["--runtime=onnxruntime"], ["old-ort-ceil"]),
    (["--runtime=onnxruntime=1.20.1"], ["old-ort-ceil"]),
    (["--runtime=onnxruntime=1.21"], []),
    (["--runtime=onnxruntime=1.32.0"], []),
    (["--runtime=OpenVINO"], ["openvino-ceil"]),
    (["--runtime=reference"], []),
    (["--runtime=openvino=2026.4", "--runtime=inference"], ["inference-ceil", "openvino-ceil"]),
    (["--ignore=old-ort-ceil"], ["inference-ceil", "openvino-ceil"]),
    (["--ignore=old-ort-ceil", "--ignore=inference-ceil", "--runtime=onnxruntime"], []),
])
def test_filters(check, options, names):
    """Only warnings about the requested runtimes and releases are shown, and these warnings decide the exit status."""
    nodes, status = check(OLD, *options)
    assert [warning["name"] for warning in nodes[0]["warnings"]] == names
    assert status == (DIFFERS if names else OK)


@pytest.mark.parametrize(("option", "line"), [
    ("--runtime=torch", "--runtime torch: 'torch' is not a runtime; pass one of onnxruntime, openvino, reference, "),
    ("--runtime=onnxruntime=new", "--runtime onnxruntime=new: 'new' is not a version; pass --runtime onnxruntime=1.32"),
    ("--runtime=onnxruntime=", "--runtime onnxruntime=: '' is not a version; pass --runtime onnxruntime=1.32"),
    ("--ignore=ort-nans", "--ignore ort-nans: there is no such warning; pass one of ort-kernel, ort-rank, ort-pads"),
])
def test_filters_that_are_none(refused, option, line):
    """An unknown runtime, version or warning is refused with a list of the known values."""
    assert refused(OLD, option).startswith(line)


def test_a_runtime_twice(refused):
    """Two versions of one runtime are refused."""
    line = "--runtime onnxruntime=1.20: 'onnxruntime' is given twice"
    assert refused(OLD, "--runtime=onnxruntime", "--runtime=onnxruntime=1.20") == line


def test_weights_need_not_be_there(check, tmp_path):
    """Weights in a missing file are not needed. A small tensor in a file is read, because shapes may depend on its
    values."""
    def change(model):
        for name, array in (("w", np.zeros((4, 1, 17, 17), np.float32)), ("s", np.array([1, 4, 32, -1]))):
            model.graph.initializer.append(numpy_helper.from_array(array, name))
            onnx.external_data_helper.set_external_data(model.graph.initializer[-1], f"{name}.bin")
            onnx.external_data_helper.save_external_data(model.graph.initializer[-1], str(tmp_path))
            model.graph.initializer[-1].ClearField("raw_data")

    text = """
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 24, 24] x) => (float[a, b, c, d] y) {
            h = Conv (x, w)
            r = Reshape (h, s)
            y = MaxPool <kernel_shape = [2, 2]> (r)
        }"""
    assert shapes(check(text, change=change)[0]) == [("y", [1, 4, 32, 2], [1, 4, 31, 1])]
    (tmp_path / "w.bin").unlink()
    assert command.main(["check", str(tmp_path / "m.onnx")]) == OK
    (tmp_path / "s.bin").unlink()
    assert command.main(["check", str(tmp_path / "m.onnx")]) == DIFFERS


def test_attributes_of_any_kind(check, tmp_path, capsys):
    """A tensor among the attributes is shown by its kind, as text and as JSON, and the node is refused in one line."""
    def change(model):
        tensor = helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0])
        model.graph.node[0].attribute.append(helper.make_attribute("value", tensor))
        model.graph.node[0].attribute.append(helper.make_attribute("names", ["a", "b"]))

    nodes, status = check(OLD, change=change)
    assert nodes[0]["attributes"]["value"] == "(TensorProto)"
    assert nodes[0]["attributes"]["names"] == ["a", "b"]
    assert "\n" not in nodes[0]["error"]
    assert status == DIFFERS
    command.main(["check", str(tmp_path / "m.onnx")])
    assert "value=(TensorProto) names=a,b" in capsys.readouterr().out


@pytest.mark.parametrize(("option", "line"), [
    ("x=1,3,8", "m.onnx: input 'x' cannot have shape (1,3,8), as the model takes (N,3,H,W); pass --shape "
                "NAME=SIZE,SIZE,..."),
    ("x=1,4,8,8", "m.onnx: input 'x' cannot have shape (1,4,8,8), as the model takes (N,3,H,W); pass --shape "
                  "NAME=SIZE,SIZE,..."),
    ("w=1", "m.onnx: the model has no input 'w'; it has 'x'; pass --shape NAME=SIZE,SIZE,..."),
    ("x=1,b", "--shape x=1,b: pass --shape NAME=1,3,224,224"),
    ("1,2", "--shape 1,2: pass --shape NAME=1,3,224,224"),
    ("x=", "--shape x=: pass --shape NAME=1,3,224,224"),
])
def test_shapes_that_do_not_fit(refused, option, line):
    """A --shape is refused if it is malformed, names no input or contradicts the model."""
    assert refused(OPEN, "--shape", option) == line


def test_a_shape_twice(refused):
    """Two shapes for one input are refused."""
    assert refused(OPEN, "--shape=x=1,3,8,8", "--shape=x=1,3,8,8") == "--shape x=1,3,8,8: 'x' is given twice"


FUNCTION = """
    <ir_version: 10, opset_import: ["" : 19, "local" : 1]>
    agraph (float[1, 1, 8, 8] x) => (float[a, b, c, d] y) { a = Relu (x)
        y = local.Pool <size = [2, 2]> (a) }
    <opset_import: ["" : 19], domain: "local">
    Pool <size> (a) => (b) { r = Relu (a)
        b = AveragePool <kernel_shape: ints = @size> (r) }
"""


def test_functions_are_looked_into(check):
    """A node of a function has the attributes and shapes of each call."""
    nodes, status = check(FUNCTION)
    assert [(node["operator"], node["version"], node["attributes"], node["input_shape"], node["output_shape"])
            for node in nodes] == [("AveragePool", 19, {"kernel_shape": [2, 2]}, [1, 1, 8, 8], [1, 1, 7, 7])]
    assert status == OK


def test_a_function_of_another_opset(check):
    """A function that cannot be inlined, because its opset differs from the model's, is listed at its own opset."""
    nodes, _ = check(FUNCTION.replace('<opset_import: ["" : 19], domain', '<opset_import: ["" : 7], domain'))
    assert [(node["operator"], node["version"], node["attributes"], node["output_shape"]) for node in nodes] == [
        ("AveragePool", 7, {"kernel_shape": "@size"}, None)]


def test_neighbours_in_a_function_of_another_opset(check):
    """Attributes and constants of a pool's neighbours may come from the function's caller."""
    nodes, _ = check("""
        <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        agraph (float[1, 1, 4, 4] x) => (float[a, b, c, d] y) { y = local.F <m = "constant", v = 0.5> (x) }
        <opset_import: ["" : 18], domain: "local">
        F <m, v> (a) => (b) {
            p = Constant <value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}> ()
            f = Constant <value_float: float = @v> ()
            h = Pad <mode: string = @m> (a, p, f)
            b = MaxPool <kernel_shape = [2, 2]> (h)
        }""")
    assert [(node["name"], node["version"]) for node in nodes] == [("b", 12)]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("constant", ["value_ints = [0, 0, 2, 2, 0, 0, 2, 2]",
                                      "value = int64[8] {0, 0, 2, 2, 0, 0, 2, 2}"])
def test_pads_that_a_constant_gives(check, constant, inside):
    """The pads may be in any attribute of a constant, and the constant may lie outside the body that has the pool."""
    pad = f"p = Constant <{constant}> ()"
    nodes, _ = check(f"""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 4, 4] x, bool c) => (float[1, 1, 7, 7] y) {{
            {'' if inside else pad}
            y = If (c) <
                then_branch = g1 () => (float[1, 1, 7, 7] u) {{
                    {pad if inside else ''}
                    h = Pad (x, p)
                    u = MaxPool <kernel_shape = [2, 2]> (h)
                }},
                else_branch = g2 () => (float[1, 1, 7, 7] v) {{ v = Identity (k) }}
            >
        }}""", change=lambda model: model.graph.initializer.append(
            numpy_helper.from_array(np.zeros((1, 1, 7, 7), np.float32), "k")))
    assert "ort-merged-pads" in [warning["name"] for warning in nodes[0]["warnings"]]


def test_bodies_are_looked_into(check):
    """Nodes in the branches of an If and in a Loop see the shapes of the enclosing graph."""
    text = """
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 8, 8] x, bool c) => (float[a, b, c, d] y, float[e, f, g, h] z) {
            a = MaxPool <kernel_shape = [2, 2]> (x)
            y = If (c) <
                then_branch = t () => (float[p, q, r, s] u) { u = MaxPool <kernel_shape = [2, 2]> (a) },
                else_branch = e () => (float[p, q, r, s] v) { m = Relu (a)
                    v = AveragePool <kernel_shape = [3, 3]> (m) }
            >
            z = GlobalMaxPool (a)
        }"""
    nodes, _ = check(text)
    assert sorted(shapes(nodes)) == [("a", [1, 1, 8, 8], [1, 1, 7, 7]), ("u", [1, 1, 7, 7], [1, 1, 6, 6]),
                                     ("v", [1, 1, 7, 7], [1, 1, 5, 5]), ("z", [1, 1, 7, 7], [1, 1, 1, 1])]


def test_refused_nodes(check, tmp_path, capsys):
    """A node that onnxpool refuses is listed with the reason: its attributes, its shape or its dtype."""
    text = """
        <ir_version: 8, opset_import: ["" : 9]>
        agraph (float[1, 1, 4, 4] x, uint8[1, 1, 4, 4] q) => (float[a, b, c, d] y, uint8[e, f, g, h] z) {
            a = AveragePool <kernel_shape = [2, 2], ceil_mode = 1> (x)
            b = MaxPool <kernel_shape = [5, 2]> (x)
            y = Add (a, b)
            z = MaxPool <kernel_shape = [2, 2]> (q)
        }"""
    nodes, status = check(text)
    assert [node["error"].split(" ", 3)[:3] for node in nodes] == [
        ["AveragePool-7:", "ceil_mode=1", "given,"], ["MaxPool-8:", "kernel_shape[0]=5", "with"],
        ["MaxPool-8:", "dtype", "uint8"]]
    assert (status, [node["warnings"] for node in nodes]) == (DIFFERS, [[], [], []])
    assert command.main(["check", str(tmp_path / "m.onnx")]) == DIFFERS
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "a: AveragePool-7, float32 (1,1,4,4) -> (...)"
    assert out[-1] == "3 pooling nodes, 0 warnings, 3 refused"


def test_the_text(tmp_path, capsys):
    """Each node has a line, its attributes, its windows and its warnings; the last line has the totals."""
    path = save(tmp_path / "m.onnx", """
        <ir_version: 8, opset_import: ["" : 22]>
        agraph (double[1, 1, 4] x) => (double[a, b, c] y) {
            y = MaxPool <kernel_shape = [2], strides = [2]> (x)
        }""")
    assert command.main(["check", path]) == DIFFERS
    assert capsys.readouterr().out == """\
y: MaxPool-22, float64 (1,1,4) -> (1,1,2)
  kernel_shape=2 strides=2
  axis 2: kernel 2, stride 2, dilation 1, pads 0+0, 4 -> 2
    windows 0-1, 2-3
  warning: OpenVINO computes float64 in float32 [openvino-float64]
1 pooling node, 1 warning
"""
    assert command.main(["check", path, "--values"]) == DIFFERS
    assert [line.rpartition("[")[2] for line in capsys.readouterr().out.splitlines() if "warning:" in line] == [
        "openvino-float64]", "ort-nan]", "reference-nan]", "openvino-nan]", "openvino-infinite]"]


def test_models_without_pooling_or_sense(check, refused, tmp_path, capsys):
    """A model without pooling nodes is accepted. A missing, invalid or contradictory file is refused in one line."""
    assert check("""<ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1] x) => (float[1] y) { y = Relu (x) }""") == ([], OK)
    (tmp_path / "no.onnx").write_bytes(b"no model")
    for path, reason in ((tmp_path / "no.onnx", "is not an ONNX model"), (tmp_path / "gone", "No such file")):
        assert command.main(["check", str(path)]) == CANNOT
        assert reason in capsys.readouterr().err
    assert refused("""<ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1] x) => (float[1] y) { y = unheard.Of (x) }""").startswith("m.onnx: ")


def test_large_weights_are_not_copied_into_inference(check):
    """A model with large initializers is checked without copying these, and small initializers, on which shapes depend,
    keep their values."""

    def change(model):
        model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [64, 1, 5, 5], np.zeros(1600)))
        model.graph.initializer.append(helper.make_tensor("s", TensorProto.INT64, [4], [1, 4, 32, -1]))

    nodes, _ = check("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 8, 8] x) => (float[a, b, c, d] y) {
            a = Conv (x, w)
            b = Reshape (a, s)
            y = MaxPool <kernel_shape = [2, 2]> (b)
        }""", change=change)
    assert shapes(nodes) == [("y", [1, 4, 32, 8], [1, 4, 31, 7])]
    assert checks.NodeCheck(**nodes[0]).error == ""


def test_pads_of_torch_are_checked_fully(check):
    """The nodes that torch.onnx.export writes for F.pad are computed, so that nothing is left to `--partial`."""
    nodes, status = check("""
        <ir_version: 8, opset_import: ["" : 17]>
        agraph (float[n, 3, 8, 8] x) => (float[a, b, c, d] y) {
            pads = Constant <value_ints = [1, 2, 3, 4]> ()
            more = Constant <value_ints = [4]> ()
            zeros = ConstantOfShape <value = int64[1] {0}> (more)
            all = Concat <axis = 0> (pads, zeros)
            pairs = Constant <value_ints = [-1, 2]> ()
            rows = Reshape (all, pairs)
            start = Constant <value_ints = [-1]> ()
            stop = Constant <value_ints = [-9223372036854775807]> ()
            zero = Constant <value_ints = [0]> ()
            back = Slice (rows, start, stop, zero, start)
            turned = Transpose <perm = [1, 0]> (back)
            flat = Reshape (turned, start)
            cast = Cast <to = 7> (flat)
            p = Pad (x, cast)
            y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (p)
        }""")

    assert [node["unchecked"] for node in nodes] == [""]
    assert nodes[0]["input_shape"][1:] == [3, 15, 11]
    assert status == (DIFFERS if nodes[0]["warnings"] else OK)
