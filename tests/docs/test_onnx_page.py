"""The page about the onnx package shows the output of the commands."""

from pathlib import Path

import onnx.parser
import pytest
from support import ROOT

from onnxpool import __main__ as command
from onnxpool.commands import DIFFERS, OK


def test_the_example_of_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows the output of the command."""
    page = (ROOT / "docs" / "onnx.md").read_text()
    shown = page.partition("$ onnxpool check model.onnx\n")[2].partition("```")[0]
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {
            [pool] y = MaxPool <kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)
        }""")
    path = tmp_path / "model.onnx"
    onnx.save(model, path)

    assert command.main(["check", str(path)]) == DIFFERS
    assert capsys.readouterr().out == shown


def test_the_example_of_a_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows the output of the command."""
    page = (ROOT / "docs" / "onnx.md").read_text()
    shown = page.partition("$ onnxpool fix model.onnx fixed.onnx\n")[2].partition("```")[0]
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 12]>
        agraph (float[1, 1, 5, 6] x) => (float[a, b, c, d] y) {
            [mean] y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1,
                                    count_include_pad = 1> (x)
        }""")
    path = tmp_path / "model.onnx"
    onnx.save(model, path)

    assert command.main(["fix", str(path), str(tmp_path / "fixed.onnx")]) == OK
    assert capsys.readouterr().out == shown
