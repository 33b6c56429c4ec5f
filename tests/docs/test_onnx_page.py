"""The page about the command line shows the output of the commands."""

from pathlib import Path

import onnx.parser
import pytest
from support import ROOT

from onnxpool import __main__ as command
from onnxpool.commands import DIFFERS, OK

CHECKED = """
    <ir_version: 8, opset_import: ["" : 12]>
    agraph (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {
        [pool] y = MaxPool <kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1> (x)
    }"""
FIXED = """
    <ir_version: 8, opset_import: ["" : 12]>
    agraph (float[1, 1, 5, 6] x) => (float[a, b, c, d] y) {
        [mean] y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1,
                                count_include_pad = 1> (x)
    }"""


@pytest.mark.parametrize(("line", "text", "status"), [
    ("check model.onnx", CHECKED, DIFFERS), ("fix model.onnx fixed.onnx", FIXED, OK)], ids=["check", "fix"])
def test_the_output_of_a_command(line: str, text: str, status: int, tmp_path: Path,
                                 monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows the output that the command prints for a model."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    shown = page.partition(f"$ onnxpool {line}\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(text), "model.onnx")

    assert command.main(line.split()) == status
    assert capsys.readouterr().out == shown
