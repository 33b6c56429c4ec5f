"""The command ``onnxpool explain``: plans of operators and of the nodes of a model."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import onnxpool
from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, OK

pytestmark = pytest.mark.smoke

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


@pytest.fixture
def explained(capsys):
    """Run the command and return its output, without the last newline."""

    def go(*arguments):
        assert command.main(["explain", *arguments]) == OK
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out.removesuffix("\n")

    return go


@pytest.fixture
def model(tmp_path):
    """A model with a node whose sizes are known, and a node whose sizes are unknown."""
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 2, 8, 8] x, float[1, 2, H] z) => (float[a, b, c, d] y, float[a, b, c] w) {
            y = AveragePool <kernel_shape = [2, 2]> (x)
            w = MaxPool <kernel_shape = [3]> (z)
        }"""), path)
    return str(path)


def test_an_operator(explained):
    """Attributes, dtype, opset and layout on the command line reach the plan."""
    text = explained("AveragePool", "kernel_shape=3,2", "auto_pad=SAME_UPPER", "--shape", "1,8,8,3", "--dtype",
                     "bfloat16", "--opset", "22", "--channels-last")
    operator = onnxpool.AveragePool(kernel_shape=(3, 2), auto_pad="SAME_UPPER", opset=22, channels_last=True)
    assert text == operator.plan((1, 8, 8, 3), "bfloat16").explain()
    data = json.loads(explained("LpPool", "kernel_shape=3", "p=1.5", "--shape", "1,8,8", "--opset", "1", "--json"))
    assert data == onnxpool.LpPool(kernel_shape=3, p=1.5, opset=1).plan((1, 8, 8), np.float32).explain().to_dict()


def test_the_example_of_the_page(explained):
    """The page shows the output of the command."""
    call, text = re.search(r"^\$ onnxpool explain (.*)\n((?s:.*?))\n```", PAGE.read_text(), re.MULTILINE).groups()
    assert explained(*call.split()) == text


def test_a_model(explained, model):
    """Each node is shown, with its plan or the reason why it has none. --shape sets open sizes."""
    plan = onnxpool.AveragePool(kernel_shape=(2, 2), opset=19).plan((1, 2, 8, 8), np.float32)
    assert explained(model) == f"y: {plan.explain()}\nw: its size along axis 2 is not known"
    with_shape = json.loads(explained(model, "--shape", "z=1,2,9", "--json"))
    assert with_shape["model"] == model
    other = onnxpool.MaxPool(kernel_shape=(3,), opset=19).plan((1, 2, 9), np.float32)
    assert with_shape["nodes"] == [{"name": name, **node_plan.explain().to_dict()}
                                   for name, node_plan in (("y", plan), ("w", other))]


@pytest.mark.parametrize(("arguments", "message"), [
    (["MaxPool", "kernel_shape=2"], "MaxPool: pass the shape of X once, as --shape 1,64,112,112"),
    (["MaxPool", "kernel_shape=2", "--shape", "1,x"], "--shape 1,x: pass --shape 1,64,112,112"),
    (["MaxPool", "kernel_shape", "--shape", "1,1,4"],
     "kernel_shape: pass attributes as NAME=VALUE, such as kernel_shape=3,3"),
    (["MaxPool", "kernel_shape=9", "--shape", "1,1,4"], "MaxPool-22: kernel_shape[0]=9 with dilations[0]=1 spans 9"),
    (["MaxPool", "kernel_shape=2", "--shape", "1,1,4", "--dtype", "junk"], "MaxPool-22: dtype must be a NumPy dtype"),
    (["none.onnx"], "cannot read the model none.onnx"),
    (["none.onnx", "kernel_shape=2"], "none.onnx is a model, whose nodes have attributes already"),
    (["MODEL", "--shape", "q=1,2"], "no input 'q'"),
])
def test_mistakes(capsys, model, arguments, message):
    """The error for a mistake is one line that says what to pass."""
    assert command.main(["explain", *(model if part == "MODEL" else part for part in arguments)]) == CANNOT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.startswith("onnxpool: ")
    assert printed.err.count("\n") == 1


def test_an_operator_needs_no_other_package():
    """Plans of operators can be shown without onnx."""
    code = ("import sys; sys.modules['onnx'] = None\n"
            "from onnxpool.__main__ import main\n"
            "sys.exit(main(['explain', 'MaxPool', 'kernel_shape=2', '--shape', '1,1,4']))")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (OK, b"")


ATTRIBUTES = ("AveragePool", "kernel_shape=3,2", "pads=1", "--shape", "1,1,5,6")
PLAN = onnxpool.AveragePool(kernel_shape=(3, 2), pads=1).plan((1, 1, 5, 6), np.float32)


def test_a_picture_as_svg(explained, tmp_path):
    """The SVG file contains the picture of the plan, or of the only node of a model."""
    file = tmp_path / "windows.svg"
    assert explained(*ATTRIBUTES, "--svg", str(file)) == PLAN.explain()
    assert file.read_text(encoding="utf-8") == PLAN.explain().svg() + "\n"


@pytest.mark.parametrize(("arguments", "mark"), [
    (["RoiAlign", "output_height=2", "output_width=3", "sampling_ratio=2", "--shape", "1,3,6,9"], "data-sample="),
    (["MaxRoiPool", "pooled_shape=2,3", "--shape", "1,3,6,9"], "data-bin="),
    (["MaxUnpool", "kernel_shape=2,2", "strides=2,2", "--shape", "1,1,3,4"], "data-index=")])
def test_a_picture_of_an_operator_with_further_inputs(explained, tmp_path, arguments, mark):
    """Without its further inputs, an operator's picture shows the first image as a region, or the indices of the first
    plane."""
    file = tmp_path / "picture.svg"
    text = explained(*arguments, "--svg", str(file))
    picture = file.read_text(encoding="utf-8")
    assert mark in picture
    assert f"<title>{text.splitlines()[0].replace('->', '-&gt;')}</title>" in picture


def test_a_picture_of_the_node_of_a_model(explained, model, tmp_path, capsys):
    """A model with one node whose sizes are known can be drawn. A model with two nodes cannot."""
    file = tmp_path / "windows.svg"
    explained(model, "--svg", str(file))
    plan = onnxpool.AveragePool(kernel_shape=(2, 2), opset=19).plan((1, 2, 8, 8), np.float32)
    assert file.read_text(encoding="utf-8") == plan.explain().svg() + "\n"
    assert command.main(["explain", model, "--shape", "z=1,2,9", "--png", str(file)]) == CANNOT
    assert "a picture shows one pool, but" in capsys.readouterr().err


def test_a_picture_as_png(explained, tmp_path):
    """The PNG has two pixels for each pixel of the SVG, along both sides."""
    image = pytest.importorskip("matplotlib.image")
    file = tmp_path / "windows.png"
    assert explained(*ATTRIBUTES, "--png", str(file)) == PLAN.explain()
    height, width, _ = image.imread(file).shape
    frame = re.search(r'viewBox="0 0 (\d+) (\d+)"', PLAN.explain().svg())
    assert [width, height] == [2 * int(side) for side in frame.groups()]


@pytest.mark.parametrize("option", ["--svg", "--png"])
def test_a_picture_that_cannot_be_written(capsys, tmp_path, option):
    """The error about a picture that cannot be written names the file."""
    if option == "--png":
        pytest.importorskip("matplotlib")
    none = "no such directory"
    for file, reason in ((f"{tmp_path}/none/windows", none), (f"{tmp_path}/windows/", none),
                         (str(tmp_path), "Is a directory"), ("", "no file has that name")):
        assert command.main(["explain", *ATTRIBUTES, option, file]) == CANNOT
        assert capsys.readouterr().err == f"onnxpool: cannot write {file or repr(file)}: {reason}\n"
    assert [*tmp_path.iterdir()] == []


def test_a_png_without_matplotlib(capsys, monkeypatch, tmp_path):
    """Without matplotlib, the message names what to install, and no file is written."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    file = tmp_path / "windows.png"
    assert command.main(["explain", *ATTRIBUTES, "--png", str(file)]) == CANNOT
    assert "pip install 'onnxpool[plot]'" in capsys.readouterr().err
    assert not file.exists()
