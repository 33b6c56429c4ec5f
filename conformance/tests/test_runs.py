"""The runner: outcomes, reports, expected failures, and runtimes that misbehave."""

import importlib
import json
import sys
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import pytest
from onnxpool_conformance import __main__, comparison, runner
from onnxpool_conformance.__main__ import main
from onnxpool_conformance.comparison import Tolerance
from onnxpool_conformance.models import given, model
from onnxpool_conformance.randoms import random_cases
from onnxpool_conformance.runner import Answer
from onnxpool_conformance.table import table

pytest.importorskip("onnx")
SOURCE = Path(comparison.__file__).parents[1]
PASSING = "averagepool_pads_1d_begin"
SOME = ["--cases", PASSING, "maxpool_1d", "d03_averagepool_1d", "maxpool_error_negative_pads"]

BACKEND = """
import os, sys, time
import numpy as np
print("garbage on the standard output")

def prepare(model, device):
    made = {}
    exec(ACTIONS.get(model.graph.name, ""), globals(), made)
    if "prepared" not in made:
        from onnxpool.onnx.backend import prepare as correct
    return made.get("prepared") or correct(model, device)

def returning(result):
    return type("Odd", (), {"run": lambda self, inputs: result})()
"""
# What a runtime does with a case, and the outcome.
WRONG = "prepared = returning([np.ones(3)])"
DONE_BY_BACKENDS = {
    "averagepool_1d": ("raise ValueError('not this one')", "refused"),
    "averagepool_2d": (WRONG, "wrong"),
    "averagepool_3d": ("prepared = returning('text')", "wrong"),
    "lppool_1d": ("os.abort()", "crashed"),
    "lppool_2d": ("sys.exit(3)", "crashed"),
    "maxpool_error_negative_pads": (WRONG, "accepted"),
    "maxpool_1d": ("", "passed"),
    "maxpool_error_no_strides": ("", "passed"),
}


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """A function that writes a backend that treats some cases in a certain way, and returns its name."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.syspath_prepend(tmp_path)

    def write(actions):
        (tmp_path / "odd_backend.py").write_text(f"{BACKEND}\nACTIONS = {actions!r}\n")
        return "odd_backend"

    return write


@pytest.fixture
def answering(monkeypatch):
    """Replaces backends by a backend in this process, which returns the expected answers except for some cases."""
    def replace(others):
        def answer(case):
            right = Answer("refused", []) if case.entry["error"] else Answer("", [y for y, _ in case.outputs()])
            return others.get(case.name, right)

        backend = Mock(answer=answer)
        backend.name = "canned"
        monkeypatch.setattr(__main__, "Backend", lambda *_: backend)
        return "canned"

    return replace


def assert_passes(backend, case):
    """Assert that a backend in this process passes a case."""
    inputs = [array for _, array in given(case)]
    if case.error:
        with pytest.raises(Exception):  # noqa: B017, PT011
            backend.prepare(model(case)).run(inputs)
        return
    found = backend.prepare(model(case)).run(inputs)
    for y, expected, truth in zip(found, case.expected(), case.truths, strict=True):
        assert comparison.difference(y, expected, comparison.tolerance(truth)) == "", case.name


def ran(tmp_path, *arguments):
    """The exit status of a run, and its outcomes by name."""
    path = tmp_path / "results.json"
    status = main(["run", "--json", str(path), *arguments])
    return status, {each["name"]: each for each in json.loads(path.read_text())["results"]}


def test_outcomes_of_backends(tmp_path, backend):
    """A case that goes wrong does not end the run, and the other cases still pass."""
    name = backend({case: action for case, (action, _) in DONE_BY_BACKENDS.items()})
    status, results = ran(tmp_path, "--backend", name, "--cases", *DONE_BY_BACKENDS)
    assert {name: each["outcome"] for name, each in results.items()} == {
        case: outcome for case, (_, outcome) in DONE_BY_BACKENDS.items()}
    assert all(bool(each["detail"]) == (each["outcome"] != "passed") for each in results.values())
    assert "killed by SIGABRT" in results["lppool_1d"]["detail"]
    assert status == 1


def test_a_backend_that_hangs(tmp_path, backend):
    """A backend that hangs is ended, and started again for the next case."""
    name = backend({PASSING: "time.sleep(60)", "maxpool_1d": WRONG})
    _, results = ran(tmp_path, "--backend", name, "--timeout", "0.3", "--cases", PASSING, "maxpool_1d")
    assert {name: each["outcome"] for name, each in results.items()} == {PASSING: "timeout", "maxpool_1d": "wrong"}


def test_tiers_decide_the_exit_status(tmp_path, answering):
    """By default, failures in the tier of choices do not affect the exit status."""
    name = answering({"d03_averagepool_1d": Answer("refused", [], "no")})
    assert ran(tmp_path, "--backend", name, *SOME)[0] == 0
    assert main(["run", "--backend", name, "--fail-on", "choice", *SOME]) == 1


def test_expected_failures(tmp_path, answering, capsys):
    """An expected failure does not count, but an unexpected pass does. The printed list of failures is a valid file of
    expected failures."""
    name, file = answering({PASSING: Answer("refused", [], "ValueError: no")}), tmp_path / "expected"
    assert main(["run", "--backend", name, *SOME]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(PASSING)]
    assert lines == [f"{PASSING}  # spec, refused: ValueError: no"]
    file.write_text("\n".join([*lines, "", "# a comment"]))
    assert main(["run", "--backend", name, "--expected-failures", str(file), *SOME]) == 0
    file.write_text(f"{PASSING}\nmaxpool_1d # fixed since\n")
    assert main(["run", "--backend", name, "--expected-failures", str(file), *SOME]) == 1
    assert "expected to fail, but passed" in capsys.readouterr().out
    file.write_text("maxpool_5d\n")
    assert main(["run", "--backend", name, "--expected-failures", str(file), *SOME]) == 2
    assert "line 1: there is no case 'maxpool_5d'" in capsys.readouterr().err


def test_reports(tmp_path, answering):
    """JUnit and Markdown have all cases, and failures with their details."""
    name = answering({PASSING: Answer("refused", [], "ValueError: a | b <c>")})
    main(["run", "--backend", name, "--junit", str(tmp_path / "j"), "--markdown", str(tmp_path / "m"), *SOME])
    root = ElementTree.parse(tmp_path / "j").getroot()
    assert len(root.findall(".//testcase")) == 4
    assert [each.get("message") for each in root.findall(".//failure")] == ["ValueError: a | b <c>"]
    assert f"| `{PASSING}` | spec | refused | ValueError: a \\| b <c> |" in (tmp_path / "m").read_text()


def test_reports_for_maintainers(tmp_path, answering, capsys):
    """A file for each kind of failure has the smallest model as text, and what is expected and found."""
    folder = tmp_path / "reports"
    name = answering(dict.fromkeys(("averagepool_1d", "averagepool_2d", "maxpool_error_no_strides"),
                                   Answer("", [np.ones(3)])))
    cases = ["--cases", "averagepool_1d", "averagepool_2d", "maxpool_1d", "maxpool_error_no_strides"]
    assert main(["run", "--backend", name, "--reports", str(folder), *cases]) == 1
    texts = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert sorted(texts) == ["averagepool-wrong-batches-channels-and-spatial-axes.md",
                             "maxpool-accepted-kernels-strides-and-dilations-below-1.md"]
    wrong, accepted = (texts[name] for name in sorted(texts))
    for part in ("y = AveragePool <kernel_shape: ints = [2], strides: ints = [2]> (x0)", "## Got",
                 "float64[3] [1., 1., 1.]", "in the form of (N x C x D1 x D2 ... Dn)",
                 "Further cases: `averagepool_2d`"):
        assert part in wrong, part
    assert "an error: kernels, strides and dilations below 1" in accepted
    assert main(["run", "--backend", name, "--reports", str(folder), *cases]) == 2
    assert "is not an empty directory" in capsys.readouterr().err


def test_kernels_and_wide_cases(capsys):
    """Cases that describe a runtime can be listed, shown and selected like other cases."""
    assert main(["list", "--kernels", "--wide", "3", "--cases", "kernel_lppool_22_*", "wide_*"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"kernel_lppool_22_float16_2d", "kernel_lppool_22_float32_5d", "wide_0_2"} <= set(names)
    for name in ("kernel_lppool_22_float32_5d", "wide_0_2"):
        assert main(["show", name]) == 0
        assert name in capsys.readouterr().out


def test_commands_without_posix(tmp_path, monkeypatch):
    """Where there are no process groups, taskkill ends a command, and paths may have backslashes."""
    log = tmp_path / "killed"
    killer = tmp_path / "taskkill"
    killer.write_text(f'#!/bin/sh\necho "$@" >> {log}\nkill -9 $4\n')
    killer.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(runner, "POSIX", False)
    command = runner.Command(f'"{sys.executable}" -c "pass" C:\\model {{model}} {{outputs}}', 0.5)
    assert command.words[0] == sys.executable
    assert "C:\\model" in command.words
    command.words[1:3] = ["-c", "import time; time.sleep(60)"]
    case = Mock(model="m", data=tmp_path)
    assert command.answer(case).ended == "timeout"
    assert log.read_text().startswith("/T /F /PID ")


PROGRAM = """
import json, os, pathlib, shutil, sys, time
model, inputs, outputs = map(pathlib.Path, sys.argv[1:])
name = model.parent.name
entry = [c for c in json.loads((model.parents[2] / "manifest.json").read_text())["cases"]
         if c["model"]["path"].endswith(name + "/model.onnx")][0]
exec(ACTIONS.get(entry["name"], ""))
if entry["error"]:
    sys.exit("refused")
for i in range(len(entry["outputs"])):
    shutil.copy(inputs / f"output_{i}.pb", outputs)
"""
DONE_BY_PROGRAMS = {
    "averagepool_1d": ("sys.exit(0)", "wrong"),
    "averagepool_2d": ("sys.exit('not this')", "refused"),
    "averagepool_3d": ("(outputs / 'output_0.npy').write_bytes(b'garbage'); sys.exit(0)", "wrong"),
    "lppool_1d": ("(outputs / 'output_0.pb').write_bytes(b'garbage'); sys.exit(0)", "wrong"),
    "lppool_2d": ("import numpy as np; np.save(outputs / 'output_0.npy', np.array([object()])); sys.exit(0)", "wrong"),
    "lppool_3d": ("os.abort()", "crashed"),
    "maxpool_1d": ("import numpy as np; np.save(outputs / 'output_0.npy', np.fromfile(inputs / 'output_0.bin', 'f4')"
                   ".reshape(entry['outputs'][0]['shape'])); sys.exit(0)", "passed"),
    "maxpool_2d": ("print('x' * 10**7)", "passed"),
    "maxpool_error_negative_pads": ("sys.exit(0)", "accepted"),
    "maxpool_error_no_strides": ("", "passed"),
}


@pytest.fixture
def command(tmp_path):
    """A function that writes a program for some cases, exports these cases, and returns the options of a run."""
    def write(actions):
        program, cases = tmp_path / "runtime.py", tmp_path / "cases"
        program.write_text(f"ACTIONS = {actions!r}\n{PROGRAM}")
        assert main(["export", str(cases), "--cases", *actions]) == 0
        return "--command", f"{sys.executable} {program} {{model}} {{inputs}} {{outputs}}", "--from", str(cases)

    return write


def test_outcomes_of_commands(tmp_path, command):
    """A program in any language reads and writes files. Whatever it does wrong becomes an outcome."""
    status, results = ran(tmp_path, *command({case: action for case, (action, _) in DONE_BY_PROGRAMS.items()}))
    assert {name: each["outcome"] for name, each in results.items()} == {
        case: outcome for case, (_, outcome) in DONE_BY_PROGRAMS.items()}
    assert status == 1


def test_a_command_that_hangs(tmp_path, command):
    """A command that hangs is ended, however much it prints."""
    options = command({PASSING: "print('x' * 10**7, flush=True); time.sleep(60)"})
    assert ran(tmp_path, *options, "--timeout", "0.5")[1][PASSING]["outcome"] == "timeout"


def test_protobuf_without_onnx(command, monkeypatch, capsys):
    """A result that cannot be read because onnx is missing does not count as wrong."""
    options = command({PASSING: ""})
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["run", *options]) == 2
    assert "reading output_0.pb needs the package onnx" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["show", "maxpool"], "there is no case 'maxpool'"),
    (["export", "."], "not an empty directory"),
    (["run", "--backend", "no_such_module"], "cannot use the backend no_such_module: ModuleNotFoundError"),
    (["run", "--backend", "json"], "cannot use the backend json: AttributeError"),
    (["run", "--command", "no-such-program {model} {outputs}"], "there is no program 'no-such-program'"),
    (["run", "--command", "cat {model}"], "does not have {outputs}"),
    (["run", "--command", "cat '{model} {outputs}"], "cannot be split into words"),
    (["run", "--command", "cat {model} {outputs}", "--cases", "nothing*"], "no case fits"),
    (["run", "--command", "cat {model} {outputs}", "--from", "/no/such"], "cannot read /no/such/manifest.json"),
    (["run", "--command", "cat {model} {outputs}", "--json", "/no/such/file"], "there is no such directory"),
    (["run", "--command", "cat {model} {outputs}", "--expected-failures", "/no/such"], "cannot read the expected"),
])
def test_bad_arguments(capsys, monkeypatch, arguments, message):
    """A bad argument ends the runner with exit status 2 and a line that says what is wrong."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_comparisons():
    """NaN equals NaN. Infinities, dtypes and shapes must be equal. Other numbers are compared with the tolerance."""
    x = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    assert comparison.difference(x, x, Tolerance()) == ""
    assert comparison.difference(x.astype(np.float64), x, Tolerance()) == "dtype float64, expected float32"
    assert comparison.difference(x[None], x, Tolerance()) == "shape [1, 4], expected [4]"
    near = np.array([1.25, np.nan, np.inf, -np.inf], np.float32)
    assert comparison.difference(near, x, Tolerance(0.25)) == ""
    assert "1 of 4 elements: [0] is 1.25, expected 1.0" in comparison.difference(near, x, Tolerance(0.2))
    for place in (1, 2, 3):
        other = x.copy()
        other[place] = 3
        assert "1 of 4 elements" in comparison.difference(other, x, Tolerance(1, 1e30))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # raised by the reference
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", "reference"])
def test_a_consensus_is_one(runtime):
    """A runtime passes the cases of every rule that names the runtime in its installed version."""
    pytest.importorskip({"reference": "onnx"}.get(runtime, runtime))
    adapter = importlib.import_module(f"onnxpool_conformance.adapters.{runtime}")
    agreed = [case for case in table().values() if adapter.VERSION in case.decided.agreed]
    for case in agreed:
        assert_passes(adapter, case)


def test_onnxpool_passes():
    """onnxpool passes all cases, and random cases."""
    backend = pytest.importorskip("onnxpool.onnx.backend")
    for case in (*table().values(), *random_cases(40, 2), *random_cases(40, 2, wide=True)):
        assert_passes(backend, case)
