"""The command ``onnxpool bench``: warm times of a model's pooling nodes, on onnxruntime too."""

import importlib.util
import json

import onnx
import onnxruntime
import pytest
from onnx import parser

import onnxpool
from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, OK, bench

pytestmark = pytest.mark.smoke


@pytest.fixture
def model(tmp_path):
    """A model with a node that both libraries can run, and a node of float64 means, for which onnxruntime has no
    kernel."""
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[N, 2, 8, 8] x, double[1, 2, 8] z) => (float[a, b, c, d] y, double[a, b, c] w) {
            y = MaxPool <kernel_shape = [2, 2]> (x)
            w = AveragePool <kernel_shape = [3]> (z)
        }"""), path)
    return str(path)


def data_of(capsys, *arguments):
    """The JSON of a command that succeeds."""
    assert command.main(["bench", *arguments, "--json"]) == OK
    return json.loads(capsys.readouterr().out)


def test_both_are_timed(capsys, model):
    """Each node has times on onnxpool and on onnxruntime, or the reason why there is only one time."""
    first, second = data_of(capsys, model)["nodes"]
    assert (first["name"], first["operator"], first["input_shape"], first["calls"]) == ("y", "MaxPool", [1, 2, 8, 8], 1)
    assert 0 < first["seconds"] < 1
    assert 0 < first["onnxruntime_seconds"] < 1
    assert second["seconds"] > 0
    assert second["onnxruntime_seconds"] is None
    assert second["remark"].startswith("onnxruntime cannot run it: ")


def test_the_table(capsys, model):
    """The text has a row for each node, with onnxruntime's time divided by onnxpool's."""
    assert command.main(["bench", model]) == OK
    head, first, second, summary = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "node"
    ours, theirs, ratio = map(float, first.split()[-3:])
    assert ratio == pytest.approx(theirs / ours, abs=0.01 + 0.1 * ratio)
    assert " -  " in second
    assert summary.startswith("2 pooling nodes, ")


def test_threads_are_those_of_both(capsys, model, monkeypatch):
    """--threads sets the number of threads for onnxpool's calls and for onnxruntime's sessions."""
    seen = []
    options = onnxruntime.SessionOptions

    def watched():
        made = options()
        seen.append(made)
        return made

    monkeypatch.setattr(onnxruntime, "SessionOptions", watched)
    before = onnxpool.get_num_threads()
    assert data_of(capsys, model, "--threads", "3")["threads"] == 3
    assert {made.intra_op_num_threads for made in seen} == {3}
    assert onnxpool.get_num_threads() == before


def test_without_onnxruntime(capsys, model, monkeypatch):
    """Without onnxruntime, only onnxpool is timed, and the output says so."""
    found = importlib.util.find_spec
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else found(name))
    assert command.main(["bench", model]) == OK
    text = capsys.readouterr().out
    assert text.endswith("onnxruntime is not installed, so it was not timed\n")
    assert "cannot run" not in text


@pytest.mark.parametrize("arguments", [["none.onnx"], ["--shape", "x=1,2"], ["MODEL", "--shape", "q=1,2"]])
def test_mistakes(capsys, model, arguments):
    """A mistake is reported in one line."""
    assert command.main(["bench", *(model if part == "MODEL" else part for part in arguments)]) == CANNOT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("onnxpool: ")
    assert printed.err.count("\n") == 1
