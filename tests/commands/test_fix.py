"""The command ``onnxpool fix``: what it writes and prints, and each way to fail."""

import json

import numpy as np
import onnx
import pytest
from command_line import ended
from onnx import numpy_helper, parser

from onnxpool.commands import CANNOT, DIFFERS, OK

pytestmark = pytest.mark.smoke

MODEL = """
    <ir_version: 8, opset_import: ["" : 12]>
    agraph (float[1, 1, 6, 5] x, float[1, 1, H] z) => (float[a, b, c, d] y, float[a, b, e] w) {
        [mean] y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1,
                                count_include_pad = 1> (x)
        [open] w = MaxPool <kernel_shape = [2], ceil_mode = 1> (z)
    }"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a model as the current one."""
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(MODEL), "m.onnx")
    return tmp_path


def failed(words):
    """The last line of standard error of a command that fails."""
    status, out, err = ended(words)
    assert (status, out) == (CANNOT, "")
    assert "Traceback" not in err
    return err.splitlines()[-1]


def test_output():
    """Each node that changes, or should change, is shown with the reasons. A node that needs no change is written as it
    was."""
    status, out, err = ended(["fix", "m.onnx", "new.onnx", "--runtime", "openvino"])
    assert (status, err) == (DIFFERS, "")
    assert out.splitlines() == [
        "mean: AveragePool, rewritten",
        "  now: Constant value=0,0,1,1,0,0,1,1",
        "  now: Pad(x, y_pads)",
        "  now: AveragePool(y_padded) kernel_shape=3,3 strides=2,2 pads=0,0,1,0",
        "  fixed: OpenVINO divides by the whole kernel if there are pads, even if a window of ceil_mode overhangs them "
        "[openvino-ceil-average]",
        "open: MaxPool, unchanged",
        "  reason: its size along axis 2 is not known",
        "1 pooling node rewritten, 1 not fixed",
    ]
    old, new = onnx.load("m.onnx"), onnx.load("new.onnx")
    assert [node.op_type for node in new.graph.node] == ["Constant", "Pad", "AveragePool", "MaxPool"]
    assert new.graph.node[3] == old.graph.node[1]
    onnx.checker.check_model(new, full_check=True)


def test_json():
    """The JSON has the same content as the text."""
    status, out, _ = ended(["fix", "m.onnx", "new.onnx", "--json"])
    report = json.loads(out)
    assert status == DIFFERS
    assert (report["model"], report["output"], report["rewritten"], report["unfixed"]) == ("m.onnx", "new.onnx", 1, 1)
    assert [node["name"] for node in report["nodes"]] == ["mean", "open"]
    assert [row["name"] for row in report["nodes"][0]["fixed"]] == [
        "old-ort-divisor", "openvino-ceil-average", "ceil-mode"]
    assert [row["name"] for row in report["nodes"][1]["remaining"]] == ["ceil-mode"]


def test_a_model_that_needs_nothing(folder):
    """A model that needs no change is copied. The output may also be the input file."""
    onnx.save(parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, H] x) => (float[a, b, c] y) { y = MaxPool <kernel_shape = [2]> (x) }"""), "plain.onnx")
    content = (folder / "plain.onnx").read_bytes()
    for new in ("new.onnx", "plain.onnx"):
        assert ended(["fix", "plain.onnx", new]) == (OK, "0 pooling nodes rewritten\n", "")
        assert (folder / new).read_bytes() == content


def test_weights_in_other_files(folder):
    """Weights stay in their files, so the new model must be in the same directory."""
    model = onnx.load("m.onnx")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(5000, np.float32), "weights"))
    onnx.save(model, "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (folder / "sub").mkdir()
    line = failed(["fix", "m.onnx", "sub/new.onnx"])
    assert line == ("onnxpool: cannot write sub/new.onnx: m.onnx refers to files beside it; pass a file in the same "
                    "directory")
    assert list((folder / "sub").iterdir()) == []
    (folder / "weights.bin").rename(folder / "moved")
    assert ended(["fix", "m.onnx", "./new.onnx"])[0] == DIFFERS
    (folder / "moved").rename(folder / "weights.bin")
    assert onnx.load("new.onnx").graph.initializer == onnx.load("m.onnx").graph.initializer


@pytest.mark.parametrize(("words", "reason"), [
    (["none.onnx", "new.onnx"], "cannot read the model none.onnx: No such file or directory"),
    (["junk.onnx", "new.onnx"], "junk.onnx is not an ONNX model"),
    (["MaxPool", "new.onnx"], "MaxPool is an operator; pass an ONNX file"),
    (["m.onnx", "none/new.onnx"], "cannot write none/new.onnx: no such directory"),
    (["m.onnx", "new.onnx", "--runtime", "torch"], "--runtime torch: 'torch' is not a runtime"),
    (["m.onnx"], "FILE.onnx"),
    (["m.onnx", "new.onnx", "--shape", "z=1,1,5"], "there is no option --shape"),
])
def test_mistakes(folder, words, reason):
    """Mistakes are reported in one line, and nothing is written."""
    (folder / "junk.onnx").write_bytes(b"junk")
    before = sorted(folder.iterdir())
    assert reason in failed(["fix", *words])
    assert sorted(folder.iterdir()) == before
