"""The command ``onnxpool run``: whole models, each option, each way to fail."""

import importlib.metadata
import io
import json
import subprocess
import sys
import threading
from unittest import mock

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxpool
from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, DIFFERS, OK, progress
from onnxpool.onnx import comparison, models

FLOAT, DOUBLE, BYTE, BFLOAT16 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.UINT8, TensorProto.BFLOAT16
MICROSOFT = "com.microsoft"
RAMP = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
HALVES = {"kernel_shape": [2, 2], "strides": [2, 2]}
SHAPE = [1, 1, 4, 4]


def node(operator, inputs="x", outputs="y", name="", domain="", **attributes):
    """A node; inputs and outputs are names separated by blanks."""
    return helper.make_node(operator, inputs.split(), outputs.split(), name=name, domain=domain, **attributes)


def value(name, kind=FLOAT, shape=SHAPE):
    """A graph's input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs=None, outputs=None, opset=22, initializer=(), functions=(), domain=""):
    """Writes a model and returns the path as text."""
    graph = helper.make_graph(nodes, "graph", inputs or [value("x")], outputs or [value("y", shape=None)], initializer)
    imports = [helper.make_opsetid(domain, opset), helper.make_opsetid(MICROSOFT, 1)]
    imports += [helper.make_opsetid(f.domain, 1) for f in functions]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10, functions=functions), path)
    return str(path)


@pytest.fixture
def ramp(tmp_path):
    """The option that gives input x the values 1 to 16."""
    np.save(tmp_path / "ramp.npy", RAMP)
    return f"--input=x={tmp_path / 'ramp.npy'}"


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command in this process: a model and options, to the outputs and the report."""

    def go(model, *options, expected=OK):
        file = tmp_path / "outputs.npz"
        status = command.main(["run", model, "--json", f"--output={file}", *options])
        text = capsys.readouterr()
        assert (status, text.err) == (expected, "")
        with np.load(file) as arrays:
            return dict(arrays), json.loads(text.out)

    return go


@pytest.fixture
def refused(capsys):
    """Runs the command in this process and returns the one line that it refuses with."""

    def go(*arguments):
        status = command.main(["run", *arguments])
        text = capsys.readouterr()
        assert (status, text.out) == (CANNOT, "")
        assert text.err.startswith("onnxpool: ")
        assert text.err.count("\n") == 1
        return text.err.removeprefix("onnxpool: ").rstrip("\n")

    return go


def process(*arguments, code=None, **options):
    """Runs a fresh interpreter."""
    start = ["-m", "onnxpool"] if code is None else ["-c", code]
    return subprocess.run([sys.executable, "-W", "error", *start, *arguments],
                          capture_output=True, text=True, timeout=300, **options)


def test_the_default_model_reaches_its_expected_output():
    """`python -m onnxpool run` runs the ResNet-50 of the onnx package and exits with 0."""
    done = process("run")

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == [
        "node", "operator", "attributes", "in", "out", "dtype", "calls", "first", "us", "warm", "us"]
    assert lines[1].split()[:7] == [
        "n3", "MaxPool-8", "kernel_shape=3,3", "strides=2,2", "pads=1,1,1,1", "(1,64,112,112)", "(1,64,56,56)"]
    assert lines[2].split()[:6] == [
        "n172", "AveragePool-7", "kernel_shape=7,7", "strides=1,1", "(1,2048,7,7)", "(1,2048,1,1)"]
    assert lines[3].startswith("2 pooling calls: ")
    assert lines[4].startswith("largest difference to the expected output: ")
    assert "(within rtol 0.001, atol 1e-07)" in lines[4]


def test_another_output_than_expected_is_exit_status_1(tmp_path, monkeypatch, capsys):
    """A model that misses its expected output says so and exits with 1, with --json too."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")])
    monkeypatch.setattr(models, "example", lambda: (path, {"x": RAMP}, {"y": np.full((1, 1, 1, 1), 15, np.float32)}))

    assert command.main(["run"]) == DIFFERS
    assert "largest difference to the expected output: 1 (NOT within" in capsys.readouterr().out
    assert command.main(["run", "--json"]) == DIFFERS
    assert json.loads(capsys.readouterr().out)["expected"] == {
        "difference": 1.0, "agrees": False, "rtol": 1e-3, "atol": 1e-7}
    assert command.main(["run", "--atol", "1"]) == OK
    assert "1 (within rtol 0.001, atol 1)" in capsys.readouterr().out


@pytest.mark.parametrize(("opset", "versions"), [
    (2, [1, 1, 2, 1, 1, 2]), (8, [8, 7, 2, 1, 1, 2]), (13, [12, 11, 11, 1, 1, 2]), (19, [12, 19, 18, 1, 1, 2]),
    (22, [22] * 6),
])
def test_every_operator_runs_at_the_version_of_the_models_opset(tmp_path, ramp, run, opset, versions):
    """The pooling nodes of a model have its opset's versions and give the values computed by hand."""
    expected = {
        "MaxPool": [6, 8, 14, 16], "AveragePool": [3.5, 5.5, 11.5, 13.5], "LpPool": [14, 22, 46, 54],
        "GlobalMaxPool": [16], "GlobalAveragePool": [8.5], "GlobalLpPool": [136],
    }
    nodes = [node(operator, outputs=f"y_{operator}", name=operator, **({} if "Global" in operator else HALVES),
                  **({"p": 1} if "Lp" in operator else {})) for operator in expected]
    path = save(tmp_path / "m.onnx", nodes, outputs=[value(f"y_{name}", shape=None) for name in expected], opset=opset)

    outputs, report = run(path, ramp)

    for name, numbers in expected.items():
        assert outputs[f"y_{name}"].ravel().tolist() == numbers, name
    assert [entry["version"] for entry in report["nodes"]] == versions
    assert [entry["operator"] for entry in report["nodes"]] == list(expected)


def test_the_attributes_are_the_nodes_own(tmp_path, ramp, run):
    """Defaults that onnx adds from the newest version are neither shown nor refused; JSON has infinity as text."""
    path = save(tmp_path / "m.onnx", [node("LpPool", kernel_shape=[2, 2], p=float("inf"))], opset=1)

    entry = run(path, ramp)[1]["nodes"][0]
    assert (entry["name"], entry["attributes"]) == ("y", {"kernel_shape": [2, 2], "p": "inf"})


def test_other_nodes_run_on_the_reference_evaluator(tmp_path, ramp, run):
    """Nodes that do not pool are computed too, without warnings, and are not in the report; there may be no others."""
    path = save(tmp_path / "m.onnx", [node("Neg", "x", "a"), node("MaxPool", "a", "b", **HALVES), node("Neg", "b")])
    outputs, report = run(path, ramp)

    assert outputs["y"].ravel().tolist() == [1, 3, 9, 11]
    assert [entry["operator"] for entry in report["nodes"]] == ["MaxPool"]
    assert report["seconds"] > report["pooling_seconds"] > 0

    outputs, report = run(save(tmp_path / "m.onnx", [node("Sub", "x x", "zero"), node("Log", "zero")]), ramp)
    assert outputs["y"].ravel().tolist() == [-np.inf] * 16
    assert report["nodes"] == []


def test_contributed_operators(tmp_path, run):
    """Nodes of com.microsoft run on onnxpool with all their inputs, though onnx has no schema for them."""
    scalars = [helper.make_tensor(name, kind, [], [number])
               for name, kind, number in (("s", FLOAT, 0.5), ("z", BYTE, 1), ("t", FLOAT, 0.25), ("w", BYTE, 3))]
    nodes = [node("QLinearGlobalAveragePool", "x s z t w", "a", domain=MICROSOFT),
             node("QLinearAveragePool", "x s z t w", "b", domain=MICROSOFT, kernel_shape=[2, 2]),
             node("NhwcMaxPool", "x", "c", domain=MICROSOFT, kernel_shape=[1, 2])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", BYTE, [1, 1, 2, 2])], [value(y, BYTE, None) for y in "abc"],
                initializer=scalars)
    np.save(tmp_path / "x.npy", np.array([[[[1, 3], [5, 7]]]], np.uint8))

    outputs, report = run(path, f"--input=x={tmp_path / 'x.npy'}", "--check")

    assert report["check"] == {"agrees": True, "rtol": 1e-3, "atol": None}
    assert outputs["a"].item() == outputs["b"].item() == (4 - 1) * 0.5 / 0.25 + 3
    assert outputs["c"].ravel().tolist() == [5, 7]
    assert [(entry["difference"], entry["remark"]) for entry in report["nodes"]] == [(0, "")] * 3


@pytest.mark.parametrize(("take_then", "numbers", "taken", "idle"), [
    (True, [6, 8, 14, 16], "MaxPool", "AveragePool"), (False, [3.5, 5.5, 11.5, 13.5], "AveragePool", "MaxPool"),
])
def test_the_bodies_of_nodes(tmp_path, ramp, run, capsys, take_then, numbers, taken, idle):
    """Pooling nodes in the branches of an If run on onnxpool, and the one not taken is named as such."""
    branches = {
        side: helper.make_graph([node(operator, outputs=side, name=operator, **HALVES)], side, [], [value(side)])
        for side, operator in (("then_branch", "MaxPool"), ("else_branch", "AveragePool"))
    }
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [take_then])
    path = save(tmp_path / "m.onnx", [node("If", "c", "y", name="choice", **branches)], initializer=[condition])

    outputs, report = run(path, ramp)

    assert outputs["y"].ravel().tolist() == numbers
    assert [entry["name"] for entry in report["nodes"]] == [taken]
    assert report["idle"] == [idle]
    assert command.main(["run", path, ramp]) == 0
    assert f"not reached: {idle}\n" in capsys.readouterr().out


def test_a_loop_counts_its_calls(tmp_path, ramp, run):
    """A node in the body of a loop has one entry, with the number of its calls."""
    body = helper.make_graph(
        [node("MaxPool", "a", "b", name="pool", kernel_shape=[3, 3], pads=[1] * 4), node("Identity", "c", "d")], "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("a")],
        [value("d", TensorProto.BOOL, []), value("b")])
    start = [helper.make_tensor("n", TensorProto.INT64, [], [3]),
             helper.make_tensor("go", TensorProto.BOOL, [], [True])]
    path = save(tmp_path / "m.onnx", [node("Loop", "n go x", body=body)], initializer=start)

    outputs, report = run(path, ramp)

    assert outputs["y"].ravel().tolist() == [16] * 16
    assert [entry["calls"] for entry in report["nodes"]] == [3]


def test_a_function_passes_its_attributes_on(tmp_path, ramp, run):
    """A pooling node in a model's function gets the attributes that refer to those of the call."""
    pool = node("LpPool", "a", "b", name="inner", domain="ai.onnx", strides=[2, 2])
    for name, kind in (("kernel_shape", onnx.AttributeProto.INTS), ("p", onnx.AttributeProto.INT)):
        pool.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=name, type=kind))
    function = helper.make_function("custom", "Norm", ["a"], ["b"], [pool], [helper.make_opsetid("", 18)],
                                    ["kernel_shape", "p"])
    path = save(tmp_path / "m.onnx", [node("Norm", domain="custom", kernel_shape=[2, 2], p=1)], functions=[function])

    outputs, report = run(path, ramp)

    assert outputs["y"].ravel().tolist() == [14, 22, 46, 54]
    assert report["nodes"][0]["attributes"] == {"kernel_shape": [2, 2], "strides": [2, 2], "p": 1}
    assert (report["nodes"][0]["name"], report["nodes"][0]["version"]) == ("inner", 18)


def test_the_long_name_of_the_default_domain(tmp_path, ramp, run):
    """A model that writes the default domain as "ai.onnx" runs, pooling nodes and others."""
    path = save(tmp_path / "m.onnx", [node("Neg", "x", "a", domain="ai.onnx"),
                                      node("MaxPool", "a", domain="ai.onnx", **HALVES)], domain="ai.onnx")

    assert run(path, ramp)[0]["y"].ravel().tolist() == [-1, -3, -9, -11]


def test_indices_are_those_of_the_whole_tensor(tmp_path, run):
    """A MaxPool that gives Indices counts through all channels, where onnx's own operator starts anew in each."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", outputs="y i", kernel_shape=[2, 2])],
                [value("x", shape=[1, 2, 2, 2])], [value("y", shape=None), value("i", TensorProto.INT64, None)])
    np.save(tmp_path / "x.npy", RAMP.ravel()[:8].reshape(1, 2, 2, 2))

    outputs, report = run(path, f"--input=x={tmp_path / 'x.npy'}", "--check")

    assert outputs["y"].ravel().tolist() == [4, 8]
    assert outputs["i"].ravel().tolist() == [3, 7]
    assert report["nodes"][0]["difference"] == 0


def test_check_compares_with_onnxruntime(tmp_path, ramp, run, capsys):
    """--check gives a difference where onnxruntime runs the node, and its reason and status 1 where it does not."""
    path = save(tmp_path / "m.onnx", [
        node("MaxPool", "x", "a", **HALVES), node("Cast", "x", "b", to=DOUBLE), node("AveragePool", "b", **HALVES),
    ], outputs=[value("y", DOUBLE, None), value("a", shape=None)])

    _, report = run(path, ramp, "--check", expected=DIFFERS)

    ours, wide = report["nodes"]
    assert (ours["difference"], ours["agrees"], ours["remark"]) == (0, True, "")
    assert (wide["difference"], wide["agrees"], report["check"]["agrees"]) == (None, False, False)
    assert wide["remark"].startswith("onnxruntime cannot run it: NOT_IMPLEMENTED : Could not find an implementation")
    assert command.main(["run", path, ramp, "--check"]) == DIFFERS
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("onnxruntime differs by")
    assert lines[1].endswith(" 0")
    assert "cannot run  onnxruntime cannot run it: NOT_IMPLEMENTED" in lines[2]
    assert lines[-1] == "onnxruntime agrees on 1 of 2 pooling nodes (rtol 0.001, atol 1e-06 of the largest input)"


def test_check_shows_a_difference(tmp_path, ramp, run, monkeypatch):
    """A node on which onnxruntime disagrees gets the largest difference; the comparison is not in the model's time."""
    clock = [0.0]

    def tick():
        clock[0] += 0.001
        return clock[0]

    def peer(*arguments):
        clock[0] += 100
        return comparison.Rival([arguments[-1][0] + np.float32([0, -2])], print)

    monkeypatch.setattr(models, "by_onnxruntime", peer)
    monkeypatch.setattr(models, "perf_counter", tick)
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)])

    _, report = run(path, ramp, "--check", expected=DIFFERS)
    assert report["nodes"][0]["difference"] == 2
    assert report["nodes"][0]["remark"] == "more than the tolerances allow"
    assert report["seconds"] < 100


def test_a_real_difference_is_exit_status_1(tmp_path, run, capsys):
    """A window with NaN, of which onnxruntime loses the NaN, ends the command with 1."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", kernel_shape=[4, 4])])
    x = RAMP.copy()
    x[0, 0, 0, 0] = np.nan
    np.save(tmp_path / "x.npy", x)

    _, report = run(path, f"--input=x={tmp_path / 'x.npy'}", "--check", "--rtol=1e9", "--atol=1e9", expected=DIFFERS)
    assert report["nodes"][0]["difference"] == "inf"


@pytest.mark.parametrize(("options", "status"), [
    ([], DIFFERS), (["--atol=0.5"], OK), (["--atol=0.4"], DIFFERS), (["--rtol=0.2"], OK), (["--rtol=0.01"], DIFFERS),
])
def test_tolerances(tmp_path, ramp, monkeypatch, options, status):
    """Floats may be as far apart as --rtol and --atol say, and are by default hardly."""
    monkeypatch.setattr(models, "by_onnxruntime",
                        lambda *args: comparison.Rival([args[-1][0] - np.float32(0.5)], print))
    path = save(tmp_path / "m.onnx", [node("AveragePool", **HALVES)])

    assert command.main(["run", path, ramp, "--check", *options]) == status


def test_sums_that_cancel_are_not_taken_for_differences(tmp_path, run):
    """By default what is lost of the largest input is allowed, though the result is near 0."""
    path = save(tmp_path / "m.onnx", [node("GlobalAveragePool")], [value("x", shape=[1, 1, 3, 1])])
    np.save(tmp_path / "x.npy", np.array([1e6, 0.3, -1e6], np.float32).reshape(1, 1, 3, 1))
    option = f"--input=x={tmp_path / 'x.npy'}"

    _, report = run(path, option, "--check")
    if report["nodes"][0]["difference"]:
        run(path, option, "--check", "--atol=0", expected=DIFFERS)


@pytest.mark.parametrize(("ours", "theirs", "options", "agree"), [
    ([3], [4], {}, False), ([3], [4], {"atol": 1.0}, True), ([200], [201], {"rtol": 0.5}, False), ([7], [7], {}, True),
])
def test_integers_are_equal_unless_atol_says_so(ours, theirs, options, agree):
    """Quantised results agree to the integer; a relative tolerance is for floats only."""
    x, ours, theirs = (np.array(values, np.uint8) for values in ([255], ours, theirs))
    assert comparison.node_agrees(x, [ours], [theirs], comparison.Tolerance(**options)) == agree


def test_indices_are_equal_whatever_the_tolerance():
    """An index that is off by one is another place."""
    x, values = np.ones(1, np.float32), np.ones(1, np.float32)
    loose = comparison.Tolerance(1.0, 9.0)
    assert comparison.node_agrees(x, [values, np.array([1000])], [values, np.array([1000])], loose)
    assert not comparison.node_agrees(x, [values, np.array([1000])], [values, np.array([1001])], loose)
    assert comparison.node_agrees(x, [values, np.array([1000])], [values], loose)  # an output that is left out


def test_times_are_those_of_warm_calls(tmp_path, ramp, run, monkeypatch):
    """A node is timed again after the call of the run, and its output is that of the run."""
    ticks = iter([0.0, 10.0, 13.0, *(20.0 + i for i in range(5)), *(30.0 + i for i in range(200))])
    monkeypatch.setattr(models, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(models, "MOST_SECONDS", 0.0)
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)])

    outputs, report = run(path, ramp)
    entry = report["nodes"][0]
    assert outputs["y"].ravel().tolist() == [6, 8, 14, 16]
    assert (entry["first_seconds"], entry["warm_seconds"], entry["calls"]) == (3.0, 1.0, 1)
    assert report["pooling_seconds"] == 1.0


def test_the_median_of_warm_calls(monkeypatch):
    """One slow call does not decide; there are no more calls than allowed, and at least one."""
    clock, lengths = [0.0], iter([9.0, 1.0, 1.5, 2.0, 3.0])

    def call():
        clock[0] += next(lengths)

    monkeypatch.setattr(models, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(models, "MOST_SECONDS", 13.0)
    assert models.warm_seconds(call) == 1.75
    assert next(lengths) == 3.0

    calls = []
    models.warm_seconds(lambda: calls.append(1))
    assert len(calls) == models.MOST_REPEATS


def test_check_reaches_onnxruntime_from_the_newest_opset(tmp_path, ramp, run):
    """A model of an opset that onnxruntime does not know is compared at the operator's own version."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)], opset=28)

    assert run(path, ramp, "--check")[1]["nodes"][0]["difference"] == 0


@pytest.mark.parametrize(("actual", "expected", "difference"), [
    ([1, 2], [1, 2], 0), ([1, 2], [1, 2.5], 0.5), ([np.nan], [np.nan], 0), ([np.nan], [1], np.inf),
    ([1], [np.nan], np.inf), ([np.inf], [np.inf], 0), ([np.inf], [-np.inf], np.inf), ([1, 2], [1], np.inf), ([], [], 0),
])
def test_the_largest_difference(actual, expected, difference):
    """NaN agrees with NaN only, and arrays of different shapes are infinitely far apart."""
    assert comparison.largest_difference(np.array(actual), np.array(expected)) == difference
    assert comparison.agrees(np.array(actual), np.array(expected)) == (difference == 0)


def test_outputs_are_stored_under_any_name(tmp_path, ramp, run):
    """Outputs keep their names in the file, those that numpy.savez takes for its own too."""
    names = ["file", "a/b", "arr_0"]
    path = save(tmp_path / "m.onnx", [node("MaxPool", outputs=name, **HALVES) for name in names],
                outputs=[value(name, shape=None) for name in names])

    assert set(run(path, ramp)[0]) == set(names)


def test_inputs_in_other_forms(tmp_path, run):
    """A bfloat16 array, of which a .npy file keeps only the size, and one in the other byte order are taken."""
    import ml_dtypes
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool", "x", "y"), node("GlobalMaxPool", "w", "z")],
                [value("x", BFLOAT16), value("w")], [value("y", BFLOAT16, None), value("z", shape=None)])
    np.save(tmp_path / "x.npy", RAMP.astype(ml_dtypes.bfloat16))
    np.save(tmp_path / "w.npy", RAMP.astype(">f4"))

    outputs, report = run(path, f"--input=x={tmp_path / 'x.npy'}", f"--input=w={tmp_path / 'w.npy'}")

    assert outputs["y"].view(ml_dtypes.bfloat16).item() == outputs["z"].item() == 16
    assert [entry["dtype"] for entry in report["nodes"]] == ["bfloat16", "float32"]


def test_an_initializer_is_a_default(tmp_path, ramp, run):
    """An input that has an initializer need not be given, and may be."""
    default = helper.make_tensor("x", FLOAT, SHAPE, [2.0] * 16)
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")], initializer=[default])

    assert run(path)[0]["y"].item() == 2
    assert run(path, ramp)[0]["y"].item() == 16


@pytest.mark.parametrize(("array", "line"), [
    (RAMP.astype(np.float64), "input 'x' is float64 (1,1,4,4), the model takes float32 (1,1,4,4); "
                              "give --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."),
    (RAMP[:, :, :3], "input 'x' is float32 (1,1,3,4), the model takes float32 (1,1,4,4); "
                     "give --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."),
    (RAMP[0], "input 'x' is float32 (1,4,4), the model takes float32 (1,1,4,4); "
              "give --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."),
])
def test_an_input_that_does_not_fit(tmp_path, refused, array, line):
    """An array of another dtype, size or rank is refused with both."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")])
    np.save(tmp_path / "x.npy", array)

    assert refused(path, "--input", f"x={tmp_path / 'x.npy'}") == line


def test_inputs_that_are_not_given_are_made(tmp_path, run, capsys):
    """Floats are normal, bytes fill their range, other integers are 0; a batch that is open is 1; seeds repeat."""
    kinds = {"x": (FLOAT, ["N", 2, 40, 40]), "b": (BYTE, [1, 1, 40, 40]), "i": (TensorProto.INT64, [7]),
             "c": (TensorProto.BOOL, [99]), "h": (BFLOAT16, [3, 4])}
    path = save(tmp_path / "m.onnx", [node("Identity", name, f"y_{name}") for name in kinds],
                [value(name, *kind) for name, kind in kinds.items()],
                [value(f"y_{name}", kind, None) for name, (kind, _) in kinds.items()])

    outputs, report = run(path)
    assert report["made_inputs"]["x"] == {"dtype": "float32", "shape": [1, 2, 40, 40]}
    assert list(report["made_inputs"]) == list(kinds)
    assert abs(outputs["y_x"].mean()) < 0.2
    assert 0.8 < outputs["y_x"].std() < 1.2
    assert (outputs["y_b"].min(), outputs["y_b"].max()) == (0, 255)
    assert outputs["y_i"].tolist() == [0] * 7
    assert set(outputs["y_c"].tolist()) == {False, True}
    assert (run(path)[0]["y_x"] == outputs["y_x"]).all()
    assert (run(path, "--seed=1")[0]["y_x"] != outputs["y_x"]).any()
    assert command.main(["run", path, "--seed", "7"]) == OK
    assert "input 'x' was made: float32 (1,2,40,40), seed 7\n" in capsys.readouterr().out


def test_a_shape_for_an_input_that_is_made(tmp_path, ramp, run, refused):
    """--shape closes open sizes; it is refused for an input that is given, is none, or cannot have that shape."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")], [value("x", shape=["N", 1, "H", "W"])])

    assert run(path, "--shape=x=2,1,3,5")[1]["nodes"][0]["input_shape"] == [2, 1, 3, 5]
    advice = "; give --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."
    assert refused(path, ramp, "--shape=x=1,1,4,4") == f"a shape for 'x', which is no input that is made{advice}"
    assert refused(path, "--shape=z=1,1,4,4") == f"a shape for 'z', which is no input that is made{advice}"
    assert refused(path, "--shape=x=1,2,4,4") == (
        f"input 'x' is float32 (1,2,4,4), the model takes float32 (N,1,H,W){advice}")
    assert refused(path, "--shape=x=1,b") == "--shape x=1,b: give --shape NAME=1,3,224,224"


@pytest.mark.parametrize(("made", "line"), [
    (value("x", shape=["N", 3, None, -1]), "missing input 'x' float32 (N,3,?,?), whose sizes the model leaves open"),
    (value("x", shape=None), "missing input 'x' float32 of any shape, whose sizes the model leaves open"),
    (value("x", TensorProto.STRING, [1]), "missing input 'x' string (1), of which none can be made"),
    (value("x", shape=[2**20, 2**9]), "missing input 'x' float32 (1048576,512): 2 GiB are too much to be made"),
    (helper.make_tensor_sequence_value_info("x", FLOAT, None),
     "missing input 'x' (no tensor) of any shape, of which none can be made"),
])
def test_an_input_that_cannot_be_made(tmp_path, refused, made, line):
    """A missing input with open sizes, without numbers or too large is named with its dtype, shape and the options."""
    path = save(tmp_path / "m.onnx", [node("Identity")], [made])
    assert refused(path) == f"{line}; give --input NAME=FILE.npy or --shape NAME=SIZE,SIZE,..."


def test_the_bits_of_bfloat16_outputs(tmp_path, capsys):
    """The text says how to read a dtype that a .npz file does not know."""
    import ml_dtypes
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)], [value("x", BFLOAT16)], [value("y", BFLOAT16, None)])
    file = tmp_path / "y.npz"

    assert command.main(["run", path, f"--output={file}"]) == OK
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == (f"output 'y' is bfloat16, of which {file} keeps the bits: read it with .view(ml_dtypes.bfloat16)")
    with np.load(file) as arrays:
        assert arrays["y"].view(ml_dtypes.bfloat16).shape == (1, 1, 2, 2)


def test_missing_weights(tmp_path, refused, capsys):
    """Weights in a file that is not there are what is missing, not the model."""
    tensor = numpy_helper.from_array(np.ones((1, 1, 2, 2), np.float32), "w")
    path = save(tmp_path / "m.onnx", [node("Conv", "x w")], initializer=[tensor])
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert command.main(["run", path]) == OK
    capsys.readouterr()
    (tmp_path / "weights.bin").unlink()

    assert refused(path).startswith(f"cannot read the weights of {path}: ")


def test_files_that_are_not_there(tmp_path, refused, ramp):
    """A missing model, input file or output folder is named."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")])
    gone = tmp_path / "gone"

    assert refused(str(gone)) == f"cannot read the model {gone}: No such file or directory"
    assert refused(path, f"--input=x={gone}") == f"cannot read {gone}: No such file or directory"
    assert refused(path, ramp, f"--output={gone}/y.npz") == f"cannot write {gone}/y.npz: no such directory"
    assert refused(path, ramp, f"--output={tmp_path}") == f"cannot write {tmp_path}: Is a directory"


def test_a_broken_model(tmp_path, refused):
    """A file that holds no model, or only the beginning of one, is refused."""
    path = tmp_path / "m.onnx"
    save(path, [node("GlobalMaxPool")])
    whole = path.read_bytes()
    halves = [whole[:size] for size in range(1, len(whole) // 2, 7)]
    for content in (b"", b"no model at all", bytes(range(256)), *halves):
        path.write_bytes(content)

        assert refused(str(path)).startswith(f"{path} is not an ONNX model: "), content


@pytest.mark.parametrize(("nodes", "opset", "reason"), [
    ([node("AveragePool", name="pool", kernel_shape=[2, 2], count_include_pad=1)], 1, "{path}: "
     "node 'pool': AveragePool-1: count_include_pad=1 given, but count_include_pad exists since AveragePool-7; "),
    ([node("MaxPool", kernel_shape=[2, 2], ceil_mode=2)], 22, "{path}: node 'y': MaxPool-22: ceil_mode"),
    ([node("LpPool", name="pool", kernel_shape=[2, 2], p=2.0)], 22, "{path}: node 'pool': LpPool-22: p"),
    ([node("MaxPool")], 22, "{path}: node 'y': MaxPool-22: kernel_shape is not given"),
    ([node("Unheard")], 22, "{path}: "),
    ([node("Neg", "nowhere")], 22, "{path}: node 'y' (Neg) reads 'nowhere', but nothing before writes it"),
    ([node("Neg", outputs="z")], 22, "{path}: output 'y' is written by no node"),
    ([node("Neg", domain="unheard")], 22, "{path}: Domain 'unheard' (node type: 'Neg') is not specified."),
    ([node("MaxPool", name="pool", kernel_shape=[9, 9])], 22, "node 'pool': MaxPool-22: kernel_shape[0]=9"),
    ([node("Cast", "x", "a", to=BYTE), node("AveragePool", "a", name="pool", **HALVES)], 22,
     "node 'pool': AveragePool-22: dtype uint8 is not accepted"),
    ([node("Cast", "x", "a", to=TensorProto.BOOL), node("Neg", "a")], 22, "node 'y' (Neg): The numpy boolean negative"),
])
def test_a_node_that_cannot_run(tmp_path, refused, ramp, nodes, opset, reason):
    """What is wrong with the model is refused with its path before anything runs, what fails then with the node."""
    path = save(tmp_path / "m.onnx", nodes, opset=opset, outputs=[value("y", 0, None)])

    assert refused(path, ramp).startswith(reason.format(path=path))


@pytest.mark.parametrize(("arguments", "line"), [
    (["{model}", "--input=x"], "--input x: give --input NAME=FILE.npy"),
    (["{model}", "--input==f.npy"], "--input =f.npy: give --input NAME=FILE.npy"),
    (["{model}", "--input=x={ramp}", "--input=x={ramp}"], "--input x={ramp}: 'x' is given twice"),
    (["{model}", "--input=x={ramp}", "--input=z={ramp}"], "the model has no input 'z'; it has 'x'"),
    (["{model}", "--input=x={model}"], "{model} is not a .npy file: "),
    (["{model}", "--input=x={pickled}"], "{pickled} is not a .npy file: Object arrays cannot be loaded"),
    (["--input=x={ramp}"], "--input needs a MODEL: the default model brings its own input"),
    (["--shape=x=1"], "--shape needs a MODEL: the default model brings its own input"),
    (["{model}", "--rtol=1"], "--rtol and --atol need --check: nothing else is compared"),
])
def test_options_that_make_no_sense(tmp_path, refused, ramp, arguments, line):
    """An --input that is no NAME=FILE, is double, names no input or holds no array of numbers is refused."""
    names = {name: tmp_path / f"{name}.npy" for name in ("ramp", "pickled", "model")}
    np.save(names["pickled"], np.array([{}], dtype=object), allow_pickle=True)
    save(names["model"], [node("GlobalMaxPool")])

    assert refused(*(argument.format(**names) for argument in arguments)).startswith(line.format(**names))


def test_an_output_that_is_no_array(tmp_path, refused, ramp, capsys):
    """A sequence among the outputs is shown, and refused only where it should be stored."""
    made = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    path = save(tmp_path / "m.onnx", [node("MaxPool", "x", "a", **HALVES), node("SequenceConstruct", "a a")],
                outputs=[made])

    assert command.main(["run", path, ramp, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == {"y": {"length": 2}}
    file = tmp_path / "y.npz"
    assert refused(path, ramp, f"--output={file}") == f"cannot write output 'y' to {file}: it is no array of numbers"


@pytest.mark.parametrize(("package", "line"), [
    ("onnx", "pip install 'onnxpool[onnx]'"), ("onnxruntime", "pip install onnxruntime"),
])
def test_a_package_that_is_not_installed(tmp_path, package, line):
    """Without onnx, or without onnxruntime for --check, one line says what to install."""
    code = f"import sys; sys.modules[{package!r}] = None\nfrom onnxpool.__main__ import main\nsys.exit(main())"

    done = process("run", "--check", code=code)
    assert (done.returncode, done.stdout) == (CANNOT, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip().endswith(line)


def test_the_library_does_not_import_onnx():
    """`import onnxpool` imports neither onnx nor onnxruntime nor ml_dtypes."""
    code = "import sys, onnxpool; print({'onnx', 'onnxruntime', 'ml_dtypes', 'argparse'} & set(sys.modules) or 'none')"

    assert process(code=code).stdout == "none\n"


def test_the_command_line_alone():
    """Without a command the process shows how to use it, and it tells its version."""
    done = process()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: onnxpool ")

    assert process("--version").stdout == f"onnxpool {onnxpool.__version__}\n"


def test_the_console_script():
    """The package installs the command onnxpool."""
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="onnxpool")
    assert script.load() is command.main


def test_an_interrupt(monkeypatch):
    """Ctrl-C ends the command with the shell's status for it, not with a traceback."""
    monkeypatch.setattr(models, "Model", mock.Mock(side_effect=KeyboardInterrupt))

    assert command.main(["run"]) == 130


@pytest.mark.parametrize(("terminal", "shown"), [
    (False, "onnxpool: 2.5 s, reading m.onnx\nonnxpool: 4.6 s, 3 of 9 nodes done, now d (Conv)\n"),
    (True, "\ronnxpool: 2.5 s, reading m.onnx\x1b[K\ronnxpool: 4.6 s, 3 of 9 nodes done, now d (Conv)\x1b[K"),
])
def test_progress(monkeypatch, terminal, shown):
    """A terminal has one line that changes, any other stream a new line each time."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(progress.time, "monotonic", mock.Mock(side_effect=[0.0, 2.5, 4.6]))
    line = progress.Progress(stream, "reading m.onnx")

    line.show()
    line(3, 9, "d (Conv)")
    line.show()

    assert stream.getvalue() == shown


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_of_one_long_step(monkeypatch, terminal):
    """Lines come while a step is under way, a terminal is cleared at the end, and nothing comes after that."""
    stream, written = io.StringIO(), threading.Event()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(stream, "flush", written.set)
    with progress.Progress(stream, "reading m.onnx", every=0.001) as line:
        assert written.wait(60)

    text = stream.getvalue()
    assert "reading m.onnx" in text
    assert text.endswith("\r\x1b[K" if terminal else "\n")
    assert not line.thread.is_alive()


@pytest.mark.parametrize(("terminal", "pauses"), [
    (False, [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]), (True, [0.2] * 7),
])
def test_progress_of_long_work_fills_no_log(monkeypatch, terminal, pauses):
    """The pauses between lines grow where each is a new line."""
    stream, asked = io.StringIO(), []
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    line = progress.Progress(stream, "reading m.onnx")
    monkeypatch.setattr(line.ended, "wait", lambda pause: asked.append(pause) or len(asked) == 7)
    line.watch()
    assert asked == pauses


def test_a_short_run_shows_no_progress(tmp_path, ramp, capsys):
    """Work that ends before the first line is due leaves standard error empty."""
    assert command.main(["run", save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)]), ramp]) == OK
    assert capsys.readouterr().err == ""


def test_progress_that_nobody_reads(monkeypatch):
    """A stream that is closed does not end the work."""
    stream = io.StringIO()
    line = progress.Progress(stream, "reading m.onnx")
    stream.close()
    line.show()


def test_progress_goes_through_the_nodes(tmp_path):
    """A run tells of each node before it starts, and forgets the run before it."""
    path = save(tmp_path / "m.onnx", [node("Neg", "x", "a", name="first"), node("MaxPool", "a", **HALVES)])
    model, seen = models.Model(path), []
    model.run({"x": RAMP})
    again = model.run({"x": RAMP}, progress=lambda *step: seen.append(step))

    assert seen == [(0, 2, "first (Neg)"), (1, 2, "y (MaxPool)")]
    assert [entry.calls for entry in again.nodes] == [1]
