"""Whatever is wrong, a command ends with one of its exit statuses and a message, not with a traceback."""

import os
import random
import re
import shlex

import numpy as np
import pytest
from command_line import ended
from model_files import BFLOAT16, BYTE, FLOAT, HALVES, MICROSOFT, node, save, value
from onnx import TensorProto, helper

from onnxpool.base import registry
from onnxpool.commands import CANNOT, DIFFERS, OK
from onnxpool.schemas import ALL_SCHEMAS

pytestmark = pytest.mark.smoke

HUGE = 10**30
AXES = ",".join(["1"] * 65)


def failed(words):
    """The last line of standard error of a command that fails."""
    status, out, err = ended(words)
    assert (status, out) == (CANNOT, "")
    assert "Traceback" not in err
    return err.splitlines()[-1]


@pytest.mark.parametrize("name", ["run", "bench"])
@pytest.mark.parametrize(("declared", "given", "kind"), [
    ([1] * 65, None, FLOAT), (None, AXES, FLOAT), (["N", *[1] * 64], None, FLOAT), ([1] * 65, AXES, BYTE),
    ([2**62, 2**62, 0], None, FLOAT), (None, f"0,{2**62},{2**62}", BFLOAT16), ([2**63 - 1, 2**63 - 1, 0], None, BYTE),
    (["a", "b", "c"], f"{2**62},{2**62},0", TensorProto.INT64),
])
def test_inputs_that_no_array_can_hold(tmp_path, name, declared, given, kind):
    """Shapes with too many axes, or with sizes whose product is too large even if one is 0, are refused."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)], [value("x", kind, declared)])
    line = failed([name, path, *([f"--shape=x={given}"] if given else [])])
    assert re.match(r"onnxpool: missing input 'x' .* cannot have shape \(.*\): NumPy has no array ", line)


@pytest.mark.parametrize("words", [
    f"check m.onnx --shape x={AXES}", f"explain m.onnx --shape x={AXES}", f"check m.onnx --shape x={2**62},{2**62},0",
    f"explain MaxPool kernel_shape=2 --shape {AXES}", f"explain MaxPool kernel_shape=2 axes=0 --shape {AXES}",
    f"explain MaxPool kernel_shape=1 --shape {2**62},{2**62},0", f"explain GlobalMaxPool axes=0 --shape 1,{2**63}",
    "explain GlobalMaxPool axes=0 --shape ''", f"explain MaxPool kernel_shape={2**63} --shape 1,1,4",
    f"explain MaxPool kernel_shape={'9' * 5000} --shape 1,1,4", f"explain LpPool kernel_shape=1 p={'9' * 5000} opset=1 "
    "--shape 1,1,4", f"explain MaxPool kernel_shape=1 --shape {'9' * 5000}",
])
def test_shapes_that_no_array_has(tmp_path, monkeypatch, words):
    """For shapes that no array has, plans and checks, which need no array, succeed or end with a message."""
    monkeypatch.chdir(tmp_path)
    save("m.onnx", [node("MaxPool", **HALVES)], [value("x", FLOAT, None)])
    status, _, err = ended(shlex.split(words))
    assert status in (OK, DIFFERS, CANNOT)
    assert "Traceback" not in err
    assert (status == CANNOT) == bool(err)


@pytest.mark.parametrize(("option", "text"), [("--threads", str(HUGE)), ("--threads", str(2**63)), ("--threads", "1e3"),
                                              ("--threads", "9" * 5000), ("--seed", "9" * 5000)])
def test_numbers_that_are_too_large(tmp_path, option, text):
    """Numbers that are too large, or that Python does not convert, are refused."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)])
    line = failed(["bench", path, option, text])
    assert line.startswith(f"onnxpool bench: error: argument {option}: pass an integer of at ")
    assert len(line) < 400


def test_large_numbers(tmp_path):
    """More than 256 threads count as 256, as in Python, and any integer is a seed."""
    path = save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)])
    assert ended(["bench", path, "--threads", str(2**63 - 1), "--json"])[0] == OK
    assert ended(["run", path, "--seed", str(HUGE)])[0] == OK


@pytest.mark.parametrize("words", ["run m.onnx --output .", "run m.onnx --output ''", "bench m.onnx --tune .",
                                   "run m.onnx --output none/x.npz", "bench m.onnx --tune none/x",
                                   "bench m.onnx --tune ''", "fix m.onnx .", "fix m.onnx none/x", "fix m.onnx ''"])
def test_files_that_cannot_be_written(tmp_path, monkeypatch, words):
    """A file that cannot be written is reported before the work, not after it."""
    monkeypatch.chdir(tmp_path)
    save("m.onnx", [node("MaxPool", **HALVES)])
    assert failed(shlex.split(words)).startswith("onnxpool: cannot write ")
    assert os.listdir() == ["m.onnx"]


@pytest.mark.parametrize("text", [b"TAGGED_NODE", b"TAGGED_IN", b"TAGGED_OUT", b"TAGGED_SIZE", b"TAGGED_DOMAIN",
                                  b"kernel_shape", b"MaxPool", b"TAGGED_GRAPH"])
def test_names_that_are_not_text(tmp_path, text):
    """Models with names that are not UTF-8, which protobuf reads as bytes, are refused."""
    made = node("MaxPool", "TAGGED_IN", "TAGGED_OUT", name="TAGGED_NODE", **HALVES)
    graph = helper.make_graph([made], "TAGGED_GRAPH", [value("TAGGED_IN", shape=["TAGGED_SIZE", 1, 4, 4])],
                              [value("TAGGED_OUT", shape=None)])
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("TAGGED_DOMAIN", 1)]
    content = helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(content.replace(text, b"\xff\xfe" + text[2:]))
    for words in (["check"], ["run"], ["run", "--json"], ["bench"], ["explain"], ["check", "--json"]):
        assert re.search(r"is not an ONNX model: it has the text b'\\xff\\xfe\w+', which is not UTF-8$",
                         failed([*words, str(path)]))


NUMBERS = ["0", "1", "-1", str(HUGE), "9" * 5000, "nan", "inf", "1e400", "x", "", "a\n::error::b", "\udcff", "1.5",
           "True", str(2**62), "0x10", "²", "2,2", "[]", "none", "3x3", "SAME_UPPER", "f4"]
SHAPES = ["1,1,4,4", "0,0,0,0", "1,1,0,4", f"{2**62},{2**62},0", str(2**63 - 1), AXES, "-1,2", "x", "", f"1,1,{2**62}",
          "1x1x4x4", "9" * 5000]
FILES = ["m.onnx"] * 8 + ["none.onnx", ".", "x.npy", "junk.npy", "\udcff.onnx", "a\n::error::b.onnx", "MaxPool", "",
                          "-", "/dev/null", "none/x", "x\0y"]
OPTIONS = {"--shape": SHAPES, "--input": FILES, "--seed": NUMBERS, "--threads": NUMBERS,
           "--tune": ["w.json", ".", "none/x"], "--output": ["o.npz", ".", "none/x", "/dev/full", "\udcff.npz"],
           "--check": None, "--rtol": NUMBERS,
           "--atol": NUMBERS, "--runtime": ["onnxruntime=1.32", "openvino=x", "\n", f"onnxruntime={'9' * 5000}"],
           "--ignore": ["ort-nan", "x"], "--values": None, "--partial": None, "--json": None, "more": None}
ARGUMENTS = sorted({name for cls in registry.values() for name in cls._optional}
                   | {"result_dtype", "num_threads", "evil\n::error::x"})
KINDS = ["f4", ">i2", "half", "M8[s]", "bfloat16", "?", "O", "S5", "f4,f4", "3f4", "complex64", "x", "V4", "", "M8"]


def random_model(draw):
    """A small model, which may be valid."""
    operator = draw.choice([*ALL_SCHEMAS, "MaxPool", "AveragePool", "Nothing"])
    attributes = {"kernel_shape": draw.choice([[2, 2], [2, 2], [2], [1] * 63, [2**62, 2], [-1, 2]])}
    for name, values in {"strides": [[1, 1], [2**62, 1]], "pads": [[0] * 4, [2**62] * 4, [1, 1]], "ceil_mode": [1, 7],
                         "auto_pad": ["VALID", "x\n::error::y"], "p": [2, 0], "bad\n": [1]}.items():
        if draw.random() < 0.15:
            attributes[name] = draw.choice(values)
    shape = draw.choice([[1, 1, 4, 4]] * 4 + [["N", 1, 4, 4], [1, 1, "H", 4], [0, 1, 4, 4], [1, 1, 2**62, 4], [1] * 65,
                                              [2**31, 1, 2**31, 4], [], [2**63 - 1] * 3, [1, 1, 0, 4]])
    kind = draw.choice([FLOAT] * 5 + [BFLOAT16, BYTE, TensorProto.STRING, TensorProto.COMPLEX64, 22, 0, 99])
    made = node(operator, draw.choice(["x"] * 5 + ["x y", "z"]), draw.choice(["y", "y i"]),
                draw.choice(["", "::error::n"]), draw.choice(["", "", "", "ai.onnx", MICROSOFT]), **attributes)
    graph = helper.make_graph([made], "g", [value("x", kind, shape)], [value("y", shape=None)])
    imports = [helper.make_opsetid(domain, draw.choice([22, 22, 22, 7, 1, 0, 99]))
               for domain in draw.choice([[""], [""], ["", MICROSOFT], ["", "ai.onnx"], ["ai.onnx"]])]
    content = bytearray(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())
    if draw.random() < 0.3:
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def random_line(draw):
    """The words of a random command line."""
    name = draw.choice(["run", "check", "fix", "bench", "explain", "explain", "supported", "config", "nothing",
                        "--version"])
    words = [name]
    if name in ("run", "check", "bench", "fix"):
        words.append(draw.choice(FILES))
        words += [draw.choice(OPTIONS["--output"])] if name == "fix" else []
        for option in draw.choices([*OPTIONS], k=draw.choice([0, 0, 1, 1, 2])):
            values = OPTIONS[option]
            prefix = draw.choice(["x=", "x=", "", "y\n="]) if option in ("--shape", "--input") else ""
            words += [option] if values is None else [option, prefix + draw.choice(values)]
    elif name == "explain":
        words += [draw.choice([*registry, *FILES]), f"--shape={draw.choice(SHAPES)}"]
        words += [f"kernel_shape={draw.choice(['1', '2', '2,2'])}"] if draw.random() < 0.7 else []
        words += [f"--dtype={draw.choice(KINDS)}"] if draw.random() < 0.5 else []
        for argument in draw.choices(ARGUMENTS, k=draw.choice([0, 1, 2])):
            words.append(f"{draw.choice(['', '--'])}{argument}={draw.choice(NUMBERS)}")
        words += [f"{draw.choice(['--svg', '--png'])}={draw.choice(['a.svg', '.', 'none/x'])}"] * (draw.random() < 0.1)
    else:
        words += draw.choices(["--json", "MaxPool", "x\n", "--print-completion", "bash"], k=draw.choice([0, 1, 2]))
    return words


@pytest.mark.parametrize("count", [400, pytest.param(5000, marks=pytest.mark.slow)])
def test_random_command_lines(tmp_path, monkeypatch, count):
    """Random command lines end with a documented status, with a message if they fail, and print no control
    characters."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones((1, 1, 4, 4), np.float32))
    (tmp_path / "junk.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'shape': (" + b"1," * 70 + b")}\n")
    draw = random.Random(count)
    for _ in range(count):
        (tmp_path / "m.onnx").write_bytes(random_model(draw))
        words = random_line(draw)
        status, out, err = ended(words)
        assert status in (OK, DIFFERS, CANNOT), words
        assert "Traceback" not in err, (words, err)
        assert (status == CANNOT) <= bool(err), words
        for line in f"{out}\n{err}".split("\n"):
            assert line.isprintable(), words
            assert not re.match(r"\W*::", line), words
