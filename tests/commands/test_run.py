"""The command ``onnxpool run``: nodes, bodies, times, and the comparison with onnxruntime."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from model_files import BYTE, DOUBLE, FLOAT, HALVES, MICROSOFT, RAMP, node, process, save, value
from onnx import TensorProto, helper

from onnxpool import __main__ as command
from onnxpool.commands import DIFFERS, OK
from onnxpool.onnx import comparison, models


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
    assert lines[4].startswith("largest difference from the expected output: ")
    assert "(within rtol 0.001, atol 1e-07)" in lines[4]


def test_another_output_than_expected_is_exit_status_1(tmp_path, monkeypatch, capsys):
    """A model that misses its expected output says so and exits with 1, also with --json."""
    path = save(tmp_path / "m.onnx", [node("GlobalMaxPool")])
    monkeypatch.setattr(models, "example", lambda: (path, {"x": RAMP}, {"y": np.full((1, 1, 1, 1), 15, np.float32)}))

    assert command.main(["run"]) == DIFFERS
    assert "largest difference from the expected output: 1 (NOT within" in capsys.readouterr().out
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
    """The pooling nodes of a model have the versions of its opset and return values computed by hand."""
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
    """Defaults that onnx adds from the newest version are neither shown nor refused. In JSON, infinity is text."""
    path = save(tmp_path / "m.onnx", [node("LpPool", kernel_shape=[2, 2], p=float("inf"))], opset=1)

    entry = run(path, ramp)[1]["nodes"][0]
    assert (entry["name"], entry["attributes"]) == ("y", {"kernel_shape": [2, 2], "p": "inf"})


def test_other_nodes_run_on_the_reference_evaluator(tmp_path, ramp, run):
    """Nodes that do not pool run without warnings, and are not in the report. A model may have no other nodes."""
    path = save(tmp_path / "m.onnx", [node("Neg", "x", "a"), node("MaxPool", "a", "b", **HALVES), node("Neg", "b")])
    outputs, report = run(path, ramp)

    assert outputs["y"].ravel().tolist() == [1, 3, 9, 11]
    assert [entry["operator"] for entry in report["nodes"]] == ["MaxPool"]
    assert report["seconds"] > report["pooling_seconds"] > 0

    outputs, report = run(save(tmp_path / "m.onnx", [node("Sub", "x x", "zero"), node("Log", "zero")]), ramp)
    assert outputs["y"].ravel().tolist() == [-np.inf] * 16
    assert report["nodes"] == []


def test_contributed_operators(tmp_path, run):
    """Nodes of com.microsoft run on onnxpool with all their inputs, although onnx has no schema for them."""
    scalars = [helper.make_tensor(name, kind, [], [number])
               for name, kind, number in (("s", FLOAT, 0.5), ("z", BYTE, 1), ("t", FLOAT, 0.25), ("w", BYTE, 3))]
    nodes = [node("QLinearGlobalAveragePool", "x s z t w", "a", domain=MICROSOFT),
             node("QLinearAveragePool", "x s z t w", "b", domain=MICROSOFT, kernel_shape=[2, 2]),
             node("NhwcMaxPool", "x", "c", domain=MICROSOFT, kernel_shape=[1, 2])]
    path = save(tmp_path / "m.onnx", nodes, [value("x", BYTE, [1, 1, 2, 2])], [value(y, BYTE, None) for y in "abc"],
                initializer=scalars)
    np.save(tmp_path / "x.npy", np.array([[[[1, 3], [5, 7]]]], np.uint8))

    outputs, report = run(path, f"--input=x={tmp_path / 'x.npy'}", "--check")

    assert report["check"] == {"agrees": True, "rtol": 1e-3, "atol": None,
                               "whole": {"agrees": True, "difference": 0, "remark": ""}}
    assert outputs["a"].item() == outputs["b"].item() == (4 - 1) * 0.5 / 0.25 + 3
    assert outputs["c"].ravel().tolist() == [5, 7]
    assert [(entry["difference"], entry["remark"]) for entry in report["nodes"]] == [(0, "")] * 3


@pytest.mark.parametrize(("take_then", "numbers", "taken", "idle"), [
    (True, [6, 8, 14, 16], "MaxPool", "AveragePool"), (False, [3.5, 5.5, 11.5, 13.5], "AveragePool", "MaxPool"),
])
def test_the_bodies_of_nodes(tmp_path, ramp, run, capsys, take_then, numbers, taken, idle):
    """Pooling nodes in the branches of an If run on onnxpool, and a branch that is not taken is reported as not run."""
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
    """A pooling node in a function of the model gets the attributes that the function's call sets."""
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
    """A model that writes the default domain as "ai.onnx" runs, with pooling nodes and others."""
    path = save(tmp_path / "m.onnx", [node("Neg", "x", "a", domain="ai.onnx"),
                                      node("MaxPool", "a", domain="ai.onnx", **HALVES)], domain="ai.onnx")

    assert run(path, ramp)[0]["y"].ravel().tolist() == [-1, -3, -9, -11]


def test_indices_are_those_of_the_whole_tensor(tmp_path, run):
    """The Indices of MaxPool count over all channels, whereas onnx's own operator starts again in each."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", outputs="y i", kernel_shape=[2, 2])],
                [value("x", shape=[1, 2, 2, 2])], [value("y", shape=None), value("i", TensorProto.INT64, None)])
    np.save(tmp_path / "x.npy", RAMP.ravel()[:8].reshape(1, 2, 2, 2))

    outputs, report = run(path, f"--input=x={tmp_path / 'x.npy'}", "--check")

    assert outputs["y"].ravel().tolist() == [4, 8]
    assert outputs["i"].ravel().tolist() == [3, 7]
    assert report["nodes"][0]["difference"] == 0


def test_check_compares_with_onnxruntime(tmp_path, ramp, run, capsys):
    """With status 1, --check reports a difference if onnxruntime runs the node, and otherwise onnxruntime's reason."""
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
    assert lines[-2] == "onnxruntime agrees on 1 of 2 pooling nodes (rtol 0.001, atol 1e-06 of the largest input)"
    assert lines[-1].startswith("onnxruntime cannot run the whole model: NOT_IMPLEMENTED")


def dequantised(kind, operator, opset, tmp_path, further=(), **attributes):
    """A model that pools dequantised elements, with the options for running it."""
    dtype, number = np.dtype(kind), helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [node("DequantizeLinear", "x s z", "d"), node(operator, "d", "p", **attributes), *further]
    constants = [helper.make_tensor("s", FLOAT, [], [0.5]),
                 helper.make_tensor("z", number, [], [3])]
    output = value(nodes[-1].output[0], number if further else FLOAT, None)
    path = save(tmp_path / "m.onnx", nodes, [value("x", number, [1, 1, 6, 6])], [output], initializer=constants,
                opset=opset)
    np.save(tmp_path / "q.npy", np.arange(36, dtype=dtype).reshape(1, 1, 6, 6))
    return path, f"--input=x={tmp_path / 'q.npy'}", "--check"


def test_check_finds_what_optimisers_of_onnxruntime_refuse(tmp_path, run, capsys):
    """A model whose nodes all agree can differ as a whole, because onnxruntime rewrites the model into one that
    onnxruntime itself refuses."""
    quantise = [node("QuantizeLinear", "p s z", "y")]
    for arguments in (("uint8", "AveragePool", 19, tmp_path, quantise), ("int8", "MaxPool", 21, tmp_path)):
        given = dequantised(*arguments, **HALVES, **({"dilations": [2, 2]} if arguments[1] == "AveragePool" else {}))

        _, report = run(*given, expected=DIFFERS)
        assert [entry["agrees"] for entry in report["nodes"]] == [True]
        assert (report["check"]["whole"]["agrees"], report["check"]["whole"]["difference"]) == (False, None)
        assert command.main(["run", *given]) == DIFFERS
        assert "\nonnxruntime refuses the model after optimising it: " in capsys.readouterr().out


@pytest.mark.parametrize(("optimised", "plain", "agrees", "text"), [
    (0, 0, True, "onnxruntime agrees on the whole model (largest difference 0)"),
    (1, 0, False, "the whole model on onnxruntime differs by 1, but not without its optimisers"),
    (1, 1, None, "the whole model on onnxruntime differs by 1, optimised or not"),
])
def test_check_tells_what_optimisers_change(tmp_path, ramp, monkeypatch, capsys, optimised, plain, agrees, text):
    """Outputs that differ only after optimising are a finding. Differences in other nodes are no finding."""
    class Session(onnxruntime.InferenceSession):
        def __init__(self, model, options, **how):
            super().__init__(model, options, **how)
            level = options.graph_optimization_level
            whole = isinstance(model, str)
            disabled = level == onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            self.added = (plain if disabled else optimised) if whole else 0

        def run(self, *arguments):
            return [y + np.float32(self.added) for y in super().run(*arguments)]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)])

    assert command.main(["run", path, ramp, "--check"]) == (DIFFERS if agrees is False else OK)
    assert capsys.readouterr().out.splitlines()[-1] == text


@pytest.mark.parametrize(("nodes", "outputs", "domains"), [
    ([node("GlobalMaxPool", "x", "m"), node("Cast", "m", "k", to=TensorProto.INT64),
      helper.make_node("LabelEncoder", ["k"], ["y"], domain="ai.onnx.ml", keys_int64s=[16], values_strings=["cat"])],
     [value("y", TensorProto.STRING, None)], {"ai.onnx.ml": 2}),
    ([node("GlobalMaxPool", "x", "m"), node("SequenceConstruct", "m x", "y")],
     [helper.make_tensor_sequence_value_info("y", FLOAT, None)], {})],
    ids=["strings", "sequence"])
def test_check_compares_outputs_of_any_kind(tmp_path, ramp, capsys, nodes, outputs, domains):
    """`--check` compares strings, and sequences of arrays with different shapes."""
    imports = [helper.make_opsetid("", 19), *(helper.make_opsetid(*pair) for pair in domains.items())]
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, [1, 1, 4, 4])], outputs)
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "m.onnx")

    assert command.main(["run", str(tmp_path / "m.onnx"), ramp, "--check", "--json"]) == OK
    whole = json.loads(capsys.readouterr().out)["check"]["whole"]
    assert (whole["agrees"], whole["difference"]) == (True, 0)


@pytest.mark.parametrize(("ours", "theirs", "difference"), [
    (["a", "b"], ["a", "b"], 0), (["a", "b"], ["a", "c"], np.inf), ([[1.0], [2.0, 3.0]], [[1.0], [2.0, 3.5]], 0.5),
    ([[1.0]], [[1.0], [2.0]], np.inf), ({"a": 1.0}, {"a": 1.25}, 0.25), ({"a": 1.0}, {"b": 1.0}, np.inf),
    (None, None, 0)])
def test_differences_of_outputs_of_any_kind(monkeypatch, ours, theirs, difference):
    """Differences are infinite if outputs are not numbers, or consist of different parts."""
    class Session:
        def __init__(self, *given, **options):
            pass

        def run(self, *given):
            return [[np.array(one) for one in theirs] if isinstance(theirs, list) else theirs]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    value = [np.array(one) for one in ours] if isinstance(ours, list) else ours
    whole = comparison.compare_whole("", {}, {"y": value}, comparison.Tolerance())
    assert (whole.agrees, whole.difference) == (True if difference == 0 else None, difference)


def test_check_shows_a_difference(tmp_path, ramp, run, monkeypatch):
    """A node with which onnxruntime disagrees gets the largest difference; the run's time excludes the comparison."""
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
    """A window with a NaN that onnxruntime loses makes the command exit with 1."""
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
    """Floats may differ by as much as --rtol and --atol allow, and by default only by a few roundings."""
    monkeypatch.setattr(models, "by_onnxruntime",
                        lambda *args: comparison.Rival([args[-1][0] - np.float32(0.5)], print))
    path = save(tmp_path / "m.onnx", [node("AveragePool", **HALVES)])

    assert command.main(["run", path, ramp, "--check", *options]) == status


def test_sums_that_cancel_are_not_taken_for_differences(tmp_path, run):
    """By default, the rounding error of the largest input is allowed, even if the result is close to 0."""
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
    """Quantised results must be equal, because a relative tolerance is for floats only."""
    x, ours, theirs = (np.array(values, np.uint8) for values in ([255], ours, theirs))
    assert comparison.node_agrees(x, [ours], [theirs], comparison.Tolerance(**options)) == agree


def test_indices_are_equal_whatever_the_tolerance():
    """Indices must be equal whatever the tolerance, because an index that is off by one is a different position."""
    x, values = np.ones(1, np.float32), np.ones(1, np.float32)
    loose = comparison.Tolerance(1.0, 9.0)
    assert comparison.node_agrees(x, [values, np.array([1000])], [values, np.array([1000])], loose)
    assert not comparison.node_agrees(x, [values, np.array([1000])], [values, np.array([1001])], loose)
    assert comparison.node_agrees(x, [values, np.array([1000])], [values], loose)  # an omitted output


def test_times_are_those_of_warm_calls(tmp_path, ramp, run, monkeypatch):
    """A node is timed after its call in the run, and its output is that of the run."""
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
    """The time is a median, so one slow call does not change it. At least one call is made, and no more than
    allowed."""
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
    """NaN agrees only with NaN, and arrays of different shapes are infinitely far apart."""
    assert comparison.largest_difference(np.array(actual), np.array(expected)) == difference
    assert comparison.agrees(np.array(actual), np.array(expected)) == (difference == 0)
