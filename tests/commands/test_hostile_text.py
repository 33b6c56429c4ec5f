"""Text of unknown origin, such as names in models: terminals and build servers treat it as text, never as commands."""

import ast
import io
import json
import re
import unicodedata
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import pytest
from model_files import HALVES, RAMP, node, save, value
from onnx import helper

import onnxpool
from onnxpool import __main__ as command
from onnxpool import commands
from onnxpool.commands import CANNOT, DIFFERS, OK, progress, text
from onnxpool.commands import config as config_command
from onnxpool.errors import printable
from onnxpool.onnx.protos import ModelError

pytestmark = pytest.mark.smoke

HOSTILE = {
    "line": "p\n::error file=a.py,line=1::x",
    "return": "p\r::warning::x",
    "beginning": "::error file=a.py,line=1::x",
    "after spaces": "  ::add-mask::x",
    "after an invisible mark": "\ufe0f::error::x",
    "anywhere on GitHub": "p ##[error]x",
    "anywhere on Azure": "p ##vso[task.setvariable variable=a]b",
    "colour": "\x1b[31mp",
    "title": "\x1b]0;p\x07",
    "C1": "p\x9b2J\x85x",
    "delete": "p\x7f",
    "bidirectional": "p\u202ex\u2066",
    "separators": "p\u2028::error::x\u2029::error::y",
    "zero width": "p\u200b\u200d\ufeff",
}
PLAIN = ("Größe", "模型/池化", "модель", "नमूना", "نموذج", "e\u0301", "a\\b", "a: b", "C::D", "# [1]", "100 %")


def harmless(written):
    """Whether a terminal only displays the text. Line breaks are those that the command prints."""
    lines = written.split("\n")
    return all(line.isprintable() and not re.match(r"\W*::", line) and not re.search(r"##\w*\[", line)
               for line in lines)


def hostile_model(path, name, shape=(1, 1, 4, 4)):
    """A model with this name wherever ONNX has names."""
    nodes = [node("MaxPool", name=name, **HALVES)]
    nodes[0].input[0] = nodes[0].output[0] = name
    nodes[0].output[0] += "y"
    nodes.append(helper.make_node("AveragePool", [nodes[0].output[0]], [name + "z"], kernel_shape=[2, 2],
                                  ceil_mode=1, strides=[2, 2]))
    graph = helper.make_graph(nodes, name, [value(name, shape=shape)], [value(name + "z", shape=None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22), helper.make_opsetid(name, 1)],
                              ir_version=10, producer_name=name, doc_string=name)
    onnx.save(model, path)
    return model


def ended(capsys, *words):
    """The exit status of the command line, its output, and standard error."""
    try:
        status = command.main(words)
    except SystemExit as end:
        status = end.code
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("words", [["check"], ["check", "--values"], ["run"], ["run", "--check"], ["bench"],
                                   ["explain"], ["check", "--json"], ["run", "--json"]], ids=" ".join)
def test_names_of_models(capsys, tmp_path, name, words):
    """Every command can show a model that has a hostile name everywhere."""
    path = str(tmp_path / "m.onnx")
    hostile_model(path, name)
    status, out, err = ended(capsys, *words, path)
    assert status in (OK, DIFFERS)
    assert harmless(f"{out}\n{err}")
    if "--json" in words:
        assert json.loads(out)["nodes"][0]["name"] == name


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_in_errors(capsys, tmp_path, name):
    """Errors about a node, an attribute, a domain, a type or an input show hostile names as plain text."""
    path = str(tmp_path / "m.onnx")
    broken = [hostile_model(path, name) for _ in range(7)]
    broken[0].graph.node[0].attribute.append(helper.make_attribute(name, name))
    broken[1].graph.node[0].domain = name
    broken[2].graph.node[0].op_type = name
    broken[3].graph.node[1].input[0] = name + "missing"
    broken[4].graph.node[0].attribute.append(helper.make_attribute("auto_pad", name))
    broken[5].opset_import.append(helper.make_opsetid(name, 2))
    broken[6].graph.input[0].type.tensor_type.shape.dim[3].dim_param = name
    for model in broken:
        onnx.save(model, path)
        for words in (["check", path], ["fix", path, path], ["run", path], ["run", path, "--check"], ["explain", path],
                      ["bench", path]):
            _, out, err = ended(capsys, *words)
            assert harmless(f"{out}\n{err}")
            assert "Traceback" not in err


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("words", [
    ["NAME"], ["NAME.onnx"], ["--NAME"], ["run", "NAME"], ["check", "NAME"], ["bench", "./NAME"], ["explain", "NAME"],
    ["explain", "./NAME"], ["explain", "MaxPool", "NAME"], ["explain", "MaxPool", "NAME=1", "--shape", "1,1,4"],
    ["explain", "MaxPool", "auto_pad=NAME", "kernel_shape=2", "--shape", "1,1,4"], ["explain", "MaxPool", "--NAME"],
    ["explain", "MaxPool", "kernel_shape=2", "--shape", "NAME"], ["explain", "--dtype", "NAME", "MaxPool", "opset=1"],
    ["explain", "MaxPool", "kernel_shape=2", "--shape", "1,1,4", "--dtype", "NAME"], ["supported", "NAME"],
    ["explain", "MaxPool", "kernel_shape=2", "--shape", "1,1,4", "--svg", "NAME/x"], ["run", "m", "--output", "NAME/x"],
    ["check", "m", "NAME"], ["check", "m", "--shape", "NAME=x"], ["check", "m", "--ignore", "NAME"],
    ["fix", "NAME", "x"], ["fix", "m", "NAME/x"], ["fix", "m", "x", "--runtime", "NAME"],
    ["check", "m", "--runtime", "NAME"], ["check", "m", "--runtime", "onnxruntime=NAME"],
    ["run", "m", "--seed", "NAME"],
    ["run", "m", "--rtol", "NAME"], ["run", "m", "--input", "NAME"], ["run", "m", "--input", "x=NAME"],
    ["run", "m", "--shape", "NAME=1", "--shape", "NAME=1"], ["--print-completion", "NAME"], ["config", "NAME"],
], ids=" ".join)
def test_arguments(capsys, tmp_path, monkeypatch, words, name):
    """Usage errors, and errors of commands and of the library, quote mistakes as plain text."""
    monkeypatch.chdir(tmp_path)
    status, out, err = ended(capsys, *(word.replace("NAME", name) for word in words))
    assert (status, out) == (CANNOT, "")
    assert harmless(err)
    assert err.count("\n") <= 30


def test_names_of_files(capsys, tmp_path, monkeypatch):
    """Names of models, inputs and outputs are shown as text, whether or not the files exist."""
    monkeypatch.chdir(tmp_path)
    for name in filter(lambda name: "/" not in name, HOSTILE.values()):
        save(name, [node("MaxPool", **HALVES)], [value("x", onnx.TensorProto.BFLOAT16)])
        np.save(f"{name}.npy", RAMP)
        for words in (["run", name, "--output", f"{name}.npz"], ["check", f"./{name}"], ["bench", name, "--tune", "."],
                      ["run", name, "--input", f"x={name}.npy"], ["run", name, "--input", f"x={name}"]):
            status, out, err = ended(capsys, *words)
            assert status in (OK, DIFFERS, CANNOT)
            assert harmless(f"{out}\n{err}")


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_and_warnings_and_tracebacks(capsys, monkeypatch, terminal):
    """Text from a node, a package or a bug is shown as text."""
    for name in HOSTILE.values():
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
        line = progress.Progress(stream, f"reading {name}")
        line.show()
        line(1, 2, name)
        line.show()
        assert harmless(stream.getvalue().replace("\x1b[K", "").replace("\r", ""))

        def fail(args, name=name):
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn(name, stacklevel=1)
            raise ValueError(name)

        monkeypatch.setattr(config_command, "run", fail)
        status, out, err = ended(capsys, "config")
        assert (status, out) == (CANNOT, "")
        assert re.search(r"(?s)UserWarning.*ValueError", err)
        assert harmless(err)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_exceptions_of_the_library(name):
    """Exceptions of the library quote names of nodes, attributes, arguments and values, even with their own repr."""

    class Named:
        def __repr__(self):
            return name

    odd = node("MaxPool", domain=name, kernel_shape=[2])
    attribute = node("MaxPool", kernel_shape=[2])
    attribute.attribute.append(helper.make_attribute(name, 1))
    plan = onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4), "float32")
    for call in (lambda: onnxpool.from_node(odd, {"": 22}), lambda: onnxpool.from_node(attribute, {"": 22}),
                 lambda: onnxpool.max_pool(RAMP, **{name: 1}), lambda: onnxpool.max_pool(RAMP, Named()),
                 lambda: onnxpool.max_pool(RAMP, 2, auto_pad=name), lambda: plan.tuned(seconds=Named()),
                 lambda: onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4), name), lambda: setattr(plan, name, 1),
                 lambda: onnxpool.max_pool([name], 2), lambda: delattr(plan, name)):
        with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError, AttributeError)) as caught:
            call()
        assert str(caught.value).isprintable()
        assert not re.search(r"##\w*\[", str(caught.value))
    assert str(ModelError(name)) == printable(name)
    with pytest.warns(RuntimeWarning) as warned:
        onnxpool.load_wisdom({"version": Named()})
    assert str(warned[0].message).isprintable()


def test_what_is_escaped():
    """Escaping changes the characters that repr escapes, in the same way. Otherwise, only commands of build servers are
    changed."""
    special = "\\'\""  # repr shows these in different ways, depending on the text
    for first in range(0, 0x110000, 0x100):
        text = "".join(chr(code) for code in range(first, first + 0x100) if chr(code) not in special)
        assert printable(text) == repr(text)[1:-1]
        assert not any(map(str.isprintable, (character for character in text if unicodedata.category(character) in (
            "Cc", "Cf", "Cs", "Zl", "Zp"))))
    assert printable(special) == special
    for plain in PLAIN:
        assert printable(plain) == plain
    for name in HOSTILE.values():
        assert printable(printable(name)) == printable(name)


def test_plain_names_are_shown_as_they_are(capsys, tmp_path):
    """Names in any language are shown as they are."""
    path = str(tmp_path / "m.onnx")
    for name in PLAIN:
        hostile_model(path, name)
        assert ended(capsys, "check", path)[1].startswith(f"{name}: MaxPool-22, float32 (1,1,4,4) -> (1,1,2,2)\n")


def test_commands_print_in_one_place():
    """Commands print through one function, because text that is printed in another way could be hostile."""
    folder = Path(commands.__file__).parent
    found = set()
    for file in [*folder.glob("*.py"), folder.parent / "__main__.py"]:
        for part in ast.walk(ast.parse(file.read_text())):
            name = ast.unparse(part.func) if isinstance(part, ast.Call) else ""
            if name == "print" or re.search(r"std(out|err)\.write$", name):
                found.add(file.name)
    # The one place; sequences that move the cursor, around a text that is escaped; and a script, which has no names.
    assert found == {"text.py", "progress.py", "completion.py"}
    with mock.patch("builtins.print") as printing:
        text.print_lines("::error::x", "a\nb")
    assert [call.args for call in printing.call_args_list] == [("\\x3a:error::x",), ("a\\nb",)]
