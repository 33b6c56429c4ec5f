"""Fixtures for tests of the command ``onnxpool run``."""

import json

import numpy as np
import pytest
from model_files import RAMP

from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, OK


@pytest.fixture
def ramp(tmp_path):
    """The option that gives input x the values 1 to 16."""
    np.save(tmp_path / "ramp.npy", RAMP)
    return f"--input=x={tmp_path / 'ramp.npy'}"


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command in this process on a model with options, and return the outputs and the report."""

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
    """Run the command in this process and return the single line of its error."""

    def go(*arguments):
        status = command.main(["run", *arguments])
        text = capsys.readouterr()
        assert (status, text.out) == (CANNOT, "")
        assert text.err.startswith("onnxpool: ")
        assert text.err.count("\n") == 1
        return text.err.removeprefix("onnxpool: ").rstrip("\n")

    return go
