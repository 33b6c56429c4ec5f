"""``onnxpool.onnx.fix``: rewritten models give the same results as before, and runtimes agree about them."""

import math
from collections import Counter

import fixable
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from sessions import NEWEST_OPSET

from onnxpool.onnx import backend, fix
from onnxpool.onnx.cases import INFERENCE, OPENVINO, ORT, REFERENCE, RUNTIMES
from onnxpool.onnx.checks import check_model
from onnxpool.onnx.disagreements import Filter
from onnxpool.onnx.protos import ModelError

ORT_RELEASE = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
UNITS = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}  # half a unit in the last place


def results(proto, inputs):
    """The outputs of a model on onnxpool, by name."""
    outputs = backend.prepare(proto).run([inputs[value.name] for value in proto.graph.input])
    return {value.name: output for value, output in zip(proto.graph.output, outputs, strict=True)}


def runtime_results(content, inputs, level):
    """The outputs of a model on onnxruntime, by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def agree(first, second, pool, scale, exact):
    """Whether results agree: maxima bit by bit, means and norms within both bounds. `scale` is the scale of |x|."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.dtype.kind in "iu" or pool.op_type == "MaxPool":
        return first.tobytes() == second.tobytes()
    taps = math.prod(next((a.ints for a in pool.attribute if a.name == "kernel_shape"), [9**3]))
    steps = 2 * math.log2(taps) + 4 if exact else 4 * taps + 8  # onnxruntime adds one after another
    unit = UNITS[first.dtype.name]
    with np.errstate(invalid="ignore"):
        bound = 2 * steps * min(unit, UNITS["float32"]) * scale + 2 * unit * np.abs(first)
        close = np.abs(first.astype(float) - second) <= bound
    return bool(np.all(close | (np.isnan(first) & np.isnan(second))))


def check(seed, path, counts):
    """Fix a random model. Compare its results before and after on onnxpool, and on onnxruntime if it should agree."""
    model = fixable.draw(seed)
    content = model.proto.SerializeToString()
    path.write_bytes(content)
    runtimes = (None, {ORT: ORT_RELEASE, INFERENCE: ()}, None, {OPENVINO: (), REFERENCE: ()})[seed % 4]
    fixed = fix.fix_model(path, Filter(runtimes=runtimes))
    if not any(node.changes or node.fixed for node in fixed.nodes):
        assert fixed.data == content
    new = onnx.ModelProto.FromString(fixed.data)
    onnx.checker.check_model(new, full_check=fix.is_consistent(model.proto))
    before = results(model.proto, model.inputs)
    scales = results(model.proto, {name: abs(x) if x.dtype.kind == "f" else x for name, x in model.inputs.items()})
    outputs = {"onnxpool": results(new, model.inputs)} if fixed.data != content else {}
    settled = not any(row["runtime"] in (ORT, INFERENCE) for node in fixed.nodes for row in node.remaining)
    if settled and model.proto.opset_import[0].version <= NEWEST_OPSET and (runtimes is None or ORT in runtimes):
        levels = onnxruntime.GraphOptimizationLevel
        outputs |= {level.name: runtime_results(fixed.data, model.inputs, level)
                    for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL)}
    for who, after in outputs.items():
        for name, expected in before.items():
            same = agree(expected, after[name], model.pools[f"y{name[-1]}"], scales[name], who == "onnxpool")
            assert same, f"seed {seed}: {name} of {who}"
    counts.update(onnxruntime=len(outputs) > 1, **{str(node.operator): 1 for node in fixed.nodes if node.changes})
    counts["rewritten"] += any(node.changes for node in fixed.nodes)
    counts["unfixed"] += any(node.reasons for node in fixed.nodes)


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(300, 5300), marks=pytest.mark.slow)],
                         ids=["300", "5000"])
def test_random_models(tmp_path, seeds):
    """Maxima and quantised results keep their bits, and means and norms their bounds. onnxruntime agrees if it
    should."""
    counts = Counter()
    for seed in seeds:
        check(seed, tmp_path / "m.onnx", counts)
    assert {"AveragePool", "MaxPool", "LpPool", "GlobalLpPool", "QLinearAveragePool", "NhwcMaxPool"} <= set(counts)
    assert counts["rewritten"] > len(seeds) / 3
    assert counts["onnxruntime"] > len(seeds) / 5
    assert counts["unfixed"] > len(seeds) / 20


@pytest.fixture
def fixed(tmp_path):
    """Fix a model, given in onnx's text format, and return the result and the new model."""

    def go(text, *runtimes, change=None):
        model = parser.parse_model(text)
        if change is not None:
            change(model)
        path = tmp_path / "m.onnx"
        onnx.save(model, path)
        done = fix.fix_model(path, Filter(runtimes={RUNTIMES[name]: () for name in runtimes} or None))
        return done, onnx.ModelProto.FromString(done.data)

    return go


def nodes_of(model):
    """The nodes of a model's graph, as operator and attributes."""
    return [(node.op_type, {a.name: helper.get_attribute_value(a) for a in node.attribute})
            for node in model.graph.node if node.op_type != "Constant"]


def constants_of(model):
    """The values of the Constant nodes of a model's graph."""
    return [numpy_helper.to_array(node.attribute[0].t) for node in model.graph.node if node.op_type == "Constant"]


@pytest.mark.smoke
def test_ceil_mode_becomes_pads(fixed):
    """ceil_mode of a maximum with Indices becomes pads. The batch size may be unknown."""
    done, model = fixed("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[N, C, 5, 6] x) => (float[a, b, c, d] y, int64[a, b, c, d] i) {
            y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)
        }""")
    assert nodes_of(model) == [("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 1, 0]})]
    assert [row["name"] for row in done.nodes[0].fixed] == ["ceil-mode"]
    assert done.nodes[0].reasons == done.nodes[0].remaining == []


def test_a_window_that_ceil_mode_drops(fixed):
    """Pads are removed where the window was, because rounding down would keep the window."""
    _, model = fixed("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 2] x) => (float[a, b, c] y) {
            y = MaxPool <kernel_shape = [1], strides = [2], pads = [0, 1], ceil_mode = 1> (x)
        }""")
    assert nodes_of(model) == [("MaxPool", {"kernel_shape": [1], "strides": [2]})]


@pytest.mark.parametrize(("size", "drops"), [("1", True), ("c", True), ("2", False)])
def test_a_full_check_still_passes(fixed, size, drops):
    """A node stays if the model declares the size with the window that onnx's inference keeps, here behind a Relu."""
    done, model = fixed(f"""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 2] x, float[1, 1, 5] w) => (float[a, b, {size}] z, float[1, 1, 3] v) {{
            y = MaxPool <kernel_shape = [1], strides = [2], ceil_mode = 1> (x)
            z = Relu (y)
            v = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (w)
        }}""")
    onnx.checker.check_model(model, full_check=True)
    assert [bool(node.changes) for node in done.nodes] == [drops, True]
    assert [node.reasons for node in done.nodes] == [[] if drops else [fix.DECLARED], []]


@pytest.mark.smoke
def test_padding_that_counts_becomes_a_pad(fixed):
    """Where a ceil_mode window overhangs counted padding, the padding becomes a Pad, because other pads would change
    the divisor."""
    done, model = fixed("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 6, 5] x) => (float[a, b, c, d] y) {
            y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1,
                             count_include_pad = 1> (x)
        }""", "openvino")
    assert nodes_of(model) == [("Pad", {}), ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2],
                                                             "pads": [0, 0, 1, 0]})]
    assert [array.tolist() for array in constants_of(model)] == [[0, 0, 1, 1, 0, 0, 1, 1]]
    assert [row["name"] for row in done.nodes[0].fixed] == ["openvino-ceil-average"]


@pytest.mark.parametrize(("dtype", "lowest"), [("float", -np.inf), ("float16", -np.inf), ("double", -np.inf),
                                               ("int8", -128), ("uint8", 0)])
def test_pads_as_large_as_the_kernel(fixed, dtype, lowest):
    """A Pad with the lowest value of the input's dtype replaces pads that are as large as the kernel."""
    _, model = fixed(f"""
        <ir_version: 8, opset_import: ["" : 13]>
        agraph ({dtype}[1, 1, 5] x) => ({dtype}[a, b, c] y) {{
            y = MaxPool <kernel_shape = [2], dilations = [3], strides = [2], pads = [2, 1]> (x)
        }}""", "onnxruntime")
    assert nodes_of(model) == [("Pad", {}), ("MaxPool", {"kernel_shape": [2], "dilations": [3], "strides": [2]})]
    pads, *value = constants_of(model)
    assert pads.tolist() == [0, 0, 2, 0, 0, 1]
    assert [array.item() for array in value] == ([lowest] if lowest else [])


REFUSED = [
    ("MaxPool <kernel_shape = [2], pads = [2, 0]> (x)", "a window holds padding only"),
    ("AveragePool <kernel_shape = [2], dilations = [3], pads = [2, 0]> (x)", "a mean would count the elements of a"),
]


@pytest.mark.parametrize(("node", "reason"), REFUSED)
def test_results_that_would_change(fixed, node, reason):
    """A node whose results would change stays as it is, and the reason is given."""
    done, model = fixed(f"""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 5] x) => (float[a, b, c] y) {{ y = {node} }}""", "onnxruntime")
    assert reason in done.nodes[0].reasons[0]
    assert done.nodes[0].changes == []
    assert "ort-pads" in [row["name"] for row in done.nodes[0].remaining]
    assert [name for name, _ in nodes_of(model)] == [node.split()[0]]


@pytest.mark.parametrize(("shape", "attributes", "reason"), [
    ("1, 1, 4611686018427387904", "ceil_mode = 1, strides = [3]", None),
    ("1, 1, 4000000", "ceil_mode = 1, strides = [2], pads = [1000000, 1000000], count_include_pad = 1",
     "more than 65536 windows reach into padding"),
])
def test_sizes_and_pads_without_limit(fixed, shape, attributes, reason):
    """Huge sizes and pads cost neither time nor memory, because no tensor is made and no Pad becomes large."""
    done, _ = fixed(f"""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[{shape}] x) => (float[a, b, c] y) {{ y = AveragePool <kernel_shape = [2], {attributes}> (x) }}""")
    assert done.nodes[0].reasons[:1] == ([reason] if reason else [])


def test_bfloat16(fixed):
    """The lowest value is -inf in bfloat16, too."""
    _, model = fixed("""
        <ir_version: 10, opset_import: ["" : 22]>
        agraph (bfloat16[1, 1, 5] x) => (bfloat16[a, b, c] y) {
            y = MaxPool <kernel_shape = [2], dilations = [3], strides = [2], pads = [2, 1], ceil_mode = 1> (x)
        }""", "onnxruntime")
    assert [name for name, _ in nodes_of(model)] == ["Pad", "MaxPool"]
    x = np.arange(-9, -4, dtype=np.float32).reshape(1, 1, 5).astype(helper.tensor_dtype_to_np_dtype(
        TensorProto.BFLOAT16))
    assert results(model, {"x": x})["y"].astype(float).tolist() == [[[-8, -6, -7]]]


def test_indices_are_kept(fixed):
    """A pool with Indices is kept, because a Pad would change the Indices."""
    done, model = fixed("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 5] x) => (float[a, b, c] y, int64[a, b, c] i) {
            y, i = MaxPool <kernel_shape = [2], dilations = [3], pads = [2, 1], strides = [2]> (x)
        }""", "onnxruntime")
    assert done.nodes[0].reasons == ["a Pad would change its Indices"]
    assert [name for name, _ in nodes_of(model)] == ["MaxPool"]


@pytest.mark.smoke
@pytest.mark.parametrize("text", [
    "agraph (float[1, 1, H] x) => (float[a, b, c] y) { y = MaxPool <kernel_shape = [2], ceil_mode = 1> (x) }",
    """agraph (float[1, 1, 5] x, int64[3] s) => (float[a, b, c] y) <float[1, 1, 5] r> {
        r = Reshape (x, s)
        y = MaxPool <kernel_shape = [2], ceil_mode = 1> (r) }""",
    """agraph (float[1, 1, 8] x, int64 n, bool c) => (float[a, b, d] z) {
        z = Loop (n, c, x) <body = b (int64 i, bool go, float[1, 1, 8] v) => (bool more, float[1, 1, 4] y) {
            more = Identity (go)
            y = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (v) }> }""",
], ids=["input", "claim", "loop"])
def test_sizes_that_are_not_sure(fixed, text):
    """A node is not rewritten if sizes are unknown, or only claimed by the model."""
    done, model = fixed(f'<ir_version: 8, opset_import: ["" : 16]>\n{text}')
    assert [node.changes for node in done.nodes] == [[]]
    assert "not known" in done.nodes[0].reasons[0] or "infers no shape" in done.nodes[0].reasons[0]
    assert onnx.printer.to_text(model).count("ceil_mode") == 1


FUNCTION = """
    <ir_version: 8, opset_import: ["" : 19, "own" : 1]>
    agraph (float[1, 1, 8] x, float[1, 1, {size}] y) => (float[a, b, c] u, float[a, b, d] v) {{
        u = own.pool {given} (x)
        v = own.pool {given} (y)
    }}
    <domain: "own", opset_import: ["" : 19]>
    pool {attributes} (x) => (y) {{ y = MaxPool <kernel_shape = [3], {strides}, auto_pad = "SAME_UPPER"> (x) }}"""


@pytest.mark.parametrize(("size", "attributes", "strides", "reason"), [
    (10, "", "strides = [2]", None),
    (9, "", "strides = [2]", "the calls of its function need different pads"),
    (10, "<steps>", "strides: ints = @steps", "its attributes come from the caller of a function"),
])
def test_functions(fixed, size, attributes, strides, reason):
    """Functions are rewritten if the change fits all of their calls."""
    given = "<steps = [2]>" if attributes else ""
    done, model = fixed(FUNCTION.format(size=size, attributes=attributes, strides=strides, given=given))
    node = model.functions[0].node[0]
    assert done.nodes[0].reasons == ([reason] if reason else [])
    assert ("auto_pad" in [a.name for a in node.attribute]) is bool(reason)
    if not reason:
        assert [list(a.ints) for a in node.attribute if a.name == "pads"] == [[0, 1]]


def test_names_that_the_model_uses(fixed):
    """New values get other names, also in the bodies of a graph."""
    _, model = fixed("""
        <ir_version: 8, opset_import: ["" : 13]>
        agraph (float[1, 1, 5] x, bool y_padded) => (float[a, b, c] z) {
            y_pads = Not (y_padded)
            z = If (y_pads) <then_branch = t () => (float[a, b, c] y) {
                y = MaxPool <kernel_shape = [2], dilations = [3], strides = [2], pads = [2, 1]> (x)
            }, else_branch = e () => (float[a, b, c] y_padded_2) { y_padded_2 = Identity (x) }>
        }""", "onnxruntime")
    body = model.graph.node[1].attribute[0].g
    written = [name for node in body.node for name in node.output]
    assert len(written) == 4
    assert {"y_padded", "y_pads", "y_padded_2"}.isdisjoint(written)
    onnx.checker.check_model(model, full_check=True)


ROI = """
    <ir_version: 8, opset_import: ["" : 22]>
    agraph (float[1, 1, 5, 5] x, float[2, 5] r) => (float[2, 1, 2, 2] z) {
        y = MaxRoiPool <pooled_shape = [2, 2]> (x, r)
        z = OTHER (y)
    }"""


@pytest.mark.parametrize(("other", "opset"), [("Relu", 21), ("Sin", 22)])
def test_versions_that_a_runtime_lacks(fixed, other, opset):
    """The opset changes only if all other nodes have the same versions in the new opset, which Sin does not."""
    done, model = fixed(ROI.replace("OTHER", other), "onnxruntime")
    assert [entry.version for entry in model.opset_import] == [opset]
    assert done.opset == (None if opset == 22 else (22, opset))
    assert ("ort-kernel" in [row["name"] for row in done.nodes[0].remaining]) is (opset == 22)


def test_an_older_version_with_another_meaning(fixed):
    """RoiAlign is not moved to opset 15, because its defaults differ before version 16."""
    done, model = fixed("""
        <ir_version: 8, opset_import: ["" : 22]>
        agraph (float[1, 1, 5, 5] x, float[2, 4] r, int64[2] b) => (float[2, 1, 1, 1] y) { y = RoiAlign (x, r, b) }""",
                        "onnxruntime")
    assert done.opset == (22, 21)
    assert model.opset_import[0].version == 21


@pytest.mark.parametrize(("operator", "given"), [("LpPool", "kernel_shape = [2], "), ("GlobalLpPool", "")])
@pytest.mark.parametrize(("p", "opset"), [("3.0", 2), ("1.5", 1)])
def test_an_exponent_of_another_type(fixed, operator, given, p, opset):
    """A fractional exponent keeps a node at version 1, because exponents are integers in version 2."""
    done, model = fixed(f"""
        <ir_version: 3, opset_import: ["" : 1]>
        agraph (float[1, 1, 4] x) => (float[a, b, c] y) {{ y = {operator} <{given}p = {p}> (x) }}""", "onnxruntime")
    assert done.opset == (None if opset == 1 else (1, opset))
    exponent = model.graph.node[0].attribute[-1]
    assert (exponent.name, exponent.type) == ("p", onnx.AttributeProto.INT if opset == 2 else onnx.AttributeProto.FLOAT)
    onnx.checker.check_model(model)


def test_a_norm_of_everything(fixed):
    """GlobalLpPool-22, for which onnxruntime has no kernel, becomes an LpPool."""
    _, model = fixed("""
        <ir_version: 8, opset_import: ["" : 22]>
        agraph (float[N, 2, 4, 5] x) => (float[N, 2, 1, 1] z) {
            y = GlobalLpPool <p = 3> (x)
            z = Identity (y)
        }""", "onnxruntime")
    assert nodes_of(model)[0] == ("LpPool", {"p": 3, "kernel_shape": [4, 5]})


def test_a_runtime_that_refuses_a_node_is_not_led_to_other_values(fixed):
    """A node without zero points, which onnxruntime refuses, gets none, because onnxruntime would otherwise divide by
    the whole kernel."""
    done, model = fixed("""
        <ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
        agraph (uint8[1, 1, 6] x, float s) => (uint8[1, 1, z] y) {
            y = com.microsoft.QLinearAveragePool <kernel_shape = [70000], strides = [65000], pads = [66000, 66000],
                                                  ceil_mode = 1, count_include_pad = 1> (x, s, , s, )
        }""", "onnxruntime")
    assert [row["name"] for row in done.nodes[0].remaining] == ["ort-zero-points", "ort-quantised-divisor"]
    assert not done.nodes[0].changes
    assert list(model.graph.node[0].input)[:4] == ["x", "s", "", "s"]


@pytest.mark.parametrize(("point", "others", "pads"), [
    ("p", "", [[0, 0, 1, 0, 0, 0], 7]), ("", "", [[0, 0, 1, 0, 0, 0], 0]), ("p", ", uint8 p", None)],
    ids=["constant", "omitted", "input"])
def test_quantised_means(fixed, point, others, pads):
    """A quantised mean is padded with the zero point, which may be omitted but must be a constant if it is not."""
    done, model = fixed(f"""
        <ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]>
        agraph (uint8[1, 1, 6] x, float s{others}) => (uint8[1, 1, 3] y) <uint8 p = {{7}}> {{
            y = com.microsoft.QLinearAveragePool <kernel_shape = [4], strides = [2], pads = [1, 0], ceil_mode = 1,
                                                  count_include_pad = 1> (x, s, {point}, s, p)
        }}""", "onnxruntime")
    assert [array.tolist() for array in constants_of(model)] == (pads or [])
    assert done.nodes[0].reasons[-1:] == ([] if pads else ["its zero point is not a constant of the model"])
    assert len(model.graph.node[-1].input) == 5
    assert [tensor.name for tensor in model.graph.initializer] == ["p"]


@pytest.mark.parametrize("opset", [8, 9])
def test_constants_of_bytes(fixed, opset):
    """A full check of onnx passes where old versions of Constant do not support bytes."""
    done, model = fixed(f"""
        <ir_version: 4, opset_import: ["" : {opset}, "com.microsoft" : 1]>
        agraph (uint8[1, 1, 6] x, float s) => (uint8[1, 1, z] y) {{
            y = com.microsoft.QLinearAveragePool <kernel_shape = [2]> (x, s, , s)
        }}""", "onnxruntime")
    onnx.checker.check_model(model, full_check=True)
    assert [node.reasons for node in done.nodes] == ([["the model's opset has no Constant of uint8"]] if opset < 9
                                                     else [[]])


def shuffled(content):
    """A model as another writer may have stored it: fields in another order, a default value, an unknown field."""
    model = onnx.ModelProto.FromString(content)
    imports, graph = model.opset_import[0].SerializeToString(), model.graph.SerializeToString()
    unknown = b"\xfa\x3e\x03abc"  # field 1007
    return (b"\x42" + bytes([len(imports)]) + imports + unknown + b"\x3a" + bytes([len(graph) & 127 | 128,
            len(graph) >> 7]) + graph + b"\x22\x00" + b"\x08\x08")


@pytest.mark.smoke
def test_all_other_bytes_stay(tmp_path):
    """All other bytes stay, even where parsing and writing a model would change these bytes."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 5] x) => (float[a, b, c] z) <float[200] w> {
            v = Relu (x)
            y = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (v)
            z = Relu (y)
        }""")
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(200, np.float32), "w"))
    path = tmp_path / "m.onnx"
    content = shuffled(model.SerializeToString())
    path.write_bytes(content)
    old = model.graph.node[1].SerializeToString()
    new = onnx.ModelProto.FromString(fix.fix_model(path).data).graph.node[1].SerializeToString()
    done = fix.fix_model(path).data
    assert b"\xfa\x3e\x03abc" in done
    start = content.index(old)
    assert done[done.index(new) + len(new):] == content[start + len(old):]
    assert fix.fix_model(path, Filter(runtimes={ORT: ()})).data == content

    path.write_bytes(done)
    assert fix.fix_model(path).data == done
    assert fix.fix_model(path).nodes == []
    assert [node.warnings for node in check_model(path).nodes] == [[]]


def test_a_graph_in_two_pieces(tmp_path):
    """A model whose graph is stored in two pieces is refused, because protobuf merges them and places in the file
    differ from places in the model."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 5] x) => (float[a, b, c] z) {
            y = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x)
            z = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (y)
        }""")
    first, second = onnx.ModelProto(), onnx.ModelProto()
    first.CopyFrom(model)
    second.graph.node.append(first.graph.node.pop())
    path = tmp_path / "m.onnx"
    path.write_bytes(first.SerializeToString() + second.SerializeToString())
    with pytest.raises(ModelError, match="stores a message in several pieces"):
        fix.fix_model(path)


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x08", b"\x3a\x05abc"])
def test_files_that_are_no_models(tmp_path, content):
    """Files that are not models are refused."""
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is not an ONNX model"):
        fix.fix_model(path)


def test_models_as_text(tmp_path):
    """Models as text are refused, because their bytes could not be kept."""
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])], []))
    path = tmp_path / "m.textproto"
    onnx.save(model, path)
    with pytest.raises(ModelError, match="is not in ONNX's binary format"):
        fix.fix_model(path)
