"""Behaviour common to all commands: help, exit statuses, closed outputs; and ``config`` and ``supported``."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import onnx
import pytest
from onnx import parser

import onnxpool
from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, OK, UNREAD, arguments
from onnxpool.commands import config as config_command
from onnxpool.commands import supported as supported_command

pytestmark = pytest.mark.smoke

COMMANDS = ("run", "check", "fix", "explain", "bench", "config", "supported")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


@pytest.fixture
def model(tmp_path):
    """A model with a pooling node whose name is not ASCII."""
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 19]>
        agraph (float[1, 1, 8, 8] x) => (float[a, b, c, d] y) { y = AveragePool <kernel_shape = [2, 2]> (x) }"""), path)
    proto = onnx.load(path)
    proto.graph.node[0].name = "pöol"
    onnx.save(proto, path)
    return str(path)


def process(*arguments, stdout=subprocess.PIPE, **variables):
    """Run the command line in a process of its own."""
    return subprocess.run([sys.executable, "-W", "error", "-m", "onnxpool", *arguments], stdout=stdout,
                          stderr=subprocess.PIPE, timeout=300, env={**os.environ, **variables}, check=False)


def help_of(capsys, *arguments):
    """The help of the command line."""
    with pytest.raises(SystemExit) as end:
        command.main([*arguments, "--help"])
    assert end.value.code == OK
    return capsys.readouterr().out


def test_help_lists_the_commands(capsys):
    """Each command is listed with a line that describes it."""
    text = help_of(capsys)
    for name in COMMANDS:
        assert re.search(rf"^    {name}\s+\w", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_help_can_be_parsed(capsys, name):
    """The help of each command has examples, with options that it knows, and mentions --json."""
    text = help_of(capsys, name)
    examples = re.findall(rf"^  (onnxpool {name}\b.*?)(?:  .*)?$", text.partition("\nexamples:\n")[2], re.MULTILINE)
    assert len(examples) >= 2
    for example in examples:
        assert arguments.read(shlex.split(example)[1:]).command == name
    assert any("--json" in example for example in examples)
    assert max(map(len, text.splitlines())) <= 80 or "COLUMNS" in os.environ


def test_examples_in_the_documentation_can_be_parsed():
    """The commands shown on the page have options that exist."""
    examples = re.findall(r"^\$ (onnxpool .*)$", PAGE.read_text(), re.MULTILINE)
    assert len(examples) >= 4
    for example in examples:
        arguments.read(shlex.split(example)[1:])


def test_config(capsys):
    """The text is what show_config prints, and the JSON is what config returns."""
    assert command.main(["config"]) == OK
    text = capsys.readouterr().out
    onnxpool.show_config()
    assert capsys.readouterr().out == text
    assert command.main(["config", "--json"]) == OK
    assert json.loads(capsys.readouterr().out) == onnxpool.config()


def test_supported(capsys):
    """The table has a row for each version, and operator names select rows. The JSON is what supported() returns."""
    assert command.main(["supported"]) == OK
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["operator", "version", "dtypes", "attributes"]
    assert len(rows) == len(onnxpool.supported())
    assert any(row.startswith("com.microsoft:NhwcMaxPool ") for row in rows)

    assert command.main(["supported", "LpPool", "--json"]) == OK
    listed = json.loads(capsys.readouterr().out)
    assert [row["version"] for row in listed] == [1, 2, 11, 18, 22]
    assert listed[1]["attributes"]["p"] == {"type": "int", "required": False, "default": 2}

    assert command.main(["supported", "Conv"]) == CANNOT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("onnxpool: Conv is not a pooling operator; pass one or more of AveragePool, ")


@pytest.mark.parametrize("name", ["config", "supported"])
def test_commands_that_need_no_other_package(name):
    """The installation can be shown without onnx."""
    code = ("import sys; sys.modules['onnx'] = None\n"
            f"from onnxpool.__main__ import main\nsys.exit(main([{name!r}]))")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (OK, b"")


@pytest.mark.parametrize("arguments", [["check", "MODEL"], ["run", "MODEL", "--json"], ["supported"], ["config"]])
def test_a_pipe_that_is_closed(model, arguments):
    """A reader that exits early, such as head, ends the command silently."""
    reading, writing = os.pipe()
    os.close(reading)
    done = process(*(model if argument == "MODEL" else argument for argument in arguments), stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_disk_that_is_full(model):
    """Output that cannot be written is reported in one line."""
    with open("/dev/full", "w") as full:
        done = process("check", model, stdout=full)
    assert (done.returncode, done.stderr) == (CANNOT, b"onnxpool: cannot write the output: No space left on device\n")


def test_names_that_the_output_cannot_show(model):
    """An ASCII terminal gets escapes for other characters."""
    done = process("check", model, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (OK, b"")
    assert done.stdout.startswith(b"p\\xf6ol: AveragePool-19, ")


def test_paths_of_any_bytes(model, tmp_path, capsys):
    """A file name that is not valid text is accepted, and errors can show it."""
    path = os.fsdecode(bytes(tmp_path) + b"/\xff.onnx")
    os.rename(model, path)
    assert command.main(["check", path, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["model"] == path
    assert command.main(["run", path]) == OK
    capsys.readouterr()
    done = process("check", path + "gone")
    assert done.returncode == CANNOT
    assert done.stderr.endswith(b"\\udcff.onnxgone: No such file or directory\n")


@pytest.mark.parametrize(("error", "line"), [
    (MemoryError, "onnxpool: there is not enough memory\n"),
    (onnxpool.PoolError("two\nlines"), "onnxpool: two\\nlines\n"),
])
def test_errors_are_one_line(monkeypatch, capsys, error, line):
    """An error that a user can fix is reported in one line, with exit status 2."""
    monkeypatch.setattr(supported_command, "run", mock.Mock(side_effect=error))
    assert command.main(["supported"]) == CANNOT
    assert capsys.readouterr().err == line


def test_errors_of_the_library_are_not_hidden(monkeypatch, capsys):
    """An error that no user can fix keeps its traceback, and its exit status is not the status for a difference."""
    monkeypatch.setattr(config_command, "run", mock.Mock(side_effect=ValueError("a bug")))
    assert command.main(["config"]) == CANNOT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Traceback (most recent call last):\n")
    assert printed.err.endswith("onnxpool: internal error: ValueError: a bug; please report it with the lines above\n")


@pytest.mark.parametrize("wrong", [
    [], ["walk"], ["check"], ["check", "m.onnx", "--bogus"], ["run", "--rtol=-1"], ["run", "--atol=nan"],
    ["run", "--rtol=inf"], ["run", "--seed=-1"], ["run", "--seed=x"],
])
def test_arguments_that_are_none(capsys, wrong):
    """For wrong arguments, the command line shows its usage and exits with 2."""
    with pytest.raises(SystemExit) as end:
        command.main(wrong)
    assert end.value.code == CANNOT
    assert capsys.readouterr().err.startswith("usage: onnxpool")
