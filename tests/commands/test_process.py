"""The command line as a process: imports, exit status and progress."""

import importlib.metadata
import io
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from model_files import HALVES, RAMP, node, process, save

import onnxpool
from onnxpool import __main__ as command
from onnxpool.commands import CANNOT, OK, UNREAD, progress
from onnxpool.onnx import models


@pytest.mark.parametrize(("package", "line"), [
    ("onnx", "pip install 'onnxpool[onnx]'"), ("onnxruntime", "pip install onnxruntime"),
])
def test_a_package_that_is_not_installed(tmp_path, package, line):
    """Without onnx, or without onnxruntime for --check, one line says what to install."""
    code = f"import sys; sys.modules[{package!r}] = None\nfrom onnxpool.__main__ import main\nsys.exit(main())"

    done = process("run", "--check", code=code)
    assert (done.returncode, done.stdout) == (CANNOT, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip().endswith(line)


def test_the_library_does_not_import_onnx():
    """`import onnxpool` imports neither onnx nor onnxruntime nor ml_dtypes."""
    code = "import sys, onnxpool; print({'onnx', 'onnxruntime', 'ml_dtypes', 'argparse'} & set(sys.modules) or 'none')"

    assert process(code=code).stdout == "none\n"


def test_the_command_line_alone():
    """Without a command, the process shows its usage; with --version, it prints its version."""
    done = process()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: onnxpool ")

    assert process("--version").stdout == f"onnxpool {onnxpool.__version__}\n"


@pytest.mark.parametrize("words", [["--version", "--json"], ["--json", "--version"], ["--json", "--version", "run"]])
def test_the_report_for_bugs(words, monkeypatch):
    """--version --json describes onnxpool, the interpreter, the system, and the packages that onnxpool can use."""
    monkeypatch.setenv("ONNXPOOL_NUM_THREADS", "1")
    monkeypatch.setenv("OTHER_SECRET", "hidden")

    done = process(*words)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (OK, "", 1)
    found = json.loads(done.stdout)
    assert found["threads"] == 1
    assert {**onnxpool.config(), "threads": 1}.items() <= found.items()
    assert (found["python"], found["machine"]) == (platform.python_version(), platform.machine())
    assert found["environment"]["ONNXPOOL_NUM_THREADS"] == "1"
    assert "hidden" not in done.stdout
    assert found["packages"]["numpy"] == np.__version__
    assert {"dask", "ml_dtypes", "numpy", "onnx", "onnxruntime", "xarray"} <= set(found["packages"])


def test_the_report_without_packages_or_metadata():
    """A package that is not installed is null. Without onnxpool's metadata, as in frozen programs, NumPy is listed."""
    code = """
import sys
from importlib import metadata
hidden, known = sys.argv.pop().split(","), metadata.distribution
def distribution(name):
    if name in hidden:
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.distribution = distribution
from onnxpool.__main__ import main
sys.exit(main())
"""
    def packages(hidden):
        done = process("--version", "--json", hidden, code=code)
        assert (done.returncode, done.stderr) == (OK, "")
        return json.loads(done.stdout)["packages"]

    assert packages("onnxruntime")["onnxruntime"] is None
    assert packages("onnxruntime")["numpy"] == np.__version__
    assert packages("onnxpool") == {"numpy": np.__version__}


def test_the_console_script():
    """The package installs the command onnxpool."""
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="onnxpool")
    assert script.load() is command.main


@pytest.mark.one_in(3)
@pytest.mark.parametrize("start", [["-m", "onnxpool"], ["-Im", "onnxpool"], ["-monnxpool"],
                                   ["-m", "onnxpool.__main__"], [str(Path(sysconfig.get_path("scripts"), "onnxpool"))]])
@pytest.mark.parametrize(("variable", "value"), [
    ("ISA", "none"), ("ISA", "\n::error::\x1b[2J"), ("MAX_WORK", "many"), ("MAX_OUTPUT_BYTES", "-1"),
])
def test_variables_that_onnxpool_refuses(start, variable, value):
    """If onnxpool refuses an environment variable, the command ends with one line, as it does for other bad input."""
    if not start[0].startswith("-") and not os.path.exists(start[0]):
        pytest.skip("the script is not installed beside this interpreter")
    variables = {**os.environ, f"ONNXPOOL_{variable}": value}
    done = subprocess.run([sys.executable, *start, "config", "-m"], capture_output=True, text=True, env=variables)
    assert (done.returncode, done.stdout) == (CANNOT, "")
    assert re.fullmatch(rf"onnxpool: ONNXPOOL_{variable}='[ -~]+' is not .*\n", done.stderr)


@pytest.mark.parametrize("start", [["-c", "import onnxpool", "onnxpool"], ["-m", "onnxpool.commands", "onnxpool"]])
def test_other_programs_get_an_import_error(start):
    """A program that imports onnxpool with a wrong environment variable gets an ImportError, which it can handle."""
    done = subprocess.run([sys.executable, *start], capture_output=True, text=True,
                          env={**os.environ, "ONNXPOOL_ISA": "none"})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: ONNXPOOL_ISA='none' is not available here")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("words", "closed"), [("config", ">&-"), ("supported --json", ">&-"), ("config", "2>&-"),
                                               ("config", ">&- 2>&-"), ("run", "2>&-"), ("--help", ">&-")])
def test_closed_streams_are_not_failures(words, closed):
    """Writing to a closed stream does not fail, because nobody reads the stream."""
    done = subprocess.run(["bash", "-c", f"{sys.executable} -m onnxpool {words} {closed}"], capture_output=True,
                          text=True, timeout=120)
    assert (done.returncode, done.stderr) == (OK, "")


@pytest.mark.parametrize("words", ["run --help", "supported", "--version"])
def test_a_reader_that_has_left(words):
    """If the reader of a pipe has left, the exit status is the one that shells report for a closed pipe."""
    line = f"{sys.executable} -m onnxpool {words} | (exec <&-; sleep 2); exit ${{PIPESTATUS[0]}}"
    # Without a buffer, argparse would notice it, and ignore it.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, env=variables)
    assert (done.returncode, done.stderr) == (UNREAD, "")


def test_an_interrupt(monkeypatch):
    """Ctrl-C ends the command with the shell's status for interrupts, without a traceback."""
    monkeypatch.setattr(models, "Model", mock.Mock(side_effect=KeyboardInterrupt))

    assert command.main(["run"]) == 130


@pytest.mark.parametrize(("terminal", "shown"), [
    (False, "onnxpool: 2.5 s, reading m.onnx\nonnxpool: 4.6 s, 3 of 9 nodes done, now d (Conv)\n"),
    (True, "\ronnxpool: 2.5 s, reading m.onnx\x1b[K\ronnxpool: 4.6 s, 3 of 9 nodes done, now d (Conv)\x1b[K"),
])
def test_progress(monkeypatch, terminal, shown):
    """A terminal gets one line that is updated, and any other stream a new line each time."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(progress.time, "monotonic", mock.Mock(side_effect=[0.0, 2.5, 4.6]))
    line = progress.Progress(stream, "reading m.onnx")

    line.show()
    line(3, 9, "d (Conv)")
    line.show()

    assert stream.getvalue() == shown


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_of_one_long_step(monkeypatch, terminal):
    """Lines appear during a long step. At its end, a terminal's line is cleared, and the thread that writes has
    ended."""
    stream, written = io.StringIO(), threading.Event()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr(stream, "flush", written.set)
    with progress.Progress(stream, "reading m.onnx", every=0.001) as line:
        assert written.wait(60)

    text = stream.getvalue()
    assert "reading m.onnx" in text
    assert text.endswith("\r\x1b[K" if terminal else "\n")
    assert not line.thread.is_alive()


@pytest.mark.parametrize(("terminal", "pauses"), [
    (False, [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]), (True, [0.2] * 7),
])
def test_progress_of_long_work_fills_no_log(monkeypatch, terminal, pauses):
    """The pauses between lines grow if each message is a new line."""
    stream, asked = io.StringIO(), []
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    line = progress.Progress(stream, "reading m.onnx")
    monkeypatch.setattr(line.ended, "wait", lambda pause: asked.append(pause) or len(asked) == 7)
    line.watch()
    assert asked == pauses


def test_a_short_run_shows_no_progress(tmp_path, ramp, capsys):
    """Work that ends before the first line is due writes nothing to standard error."""
    assert command.main(["run", save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)]), ramp]) == OK
    assert capsys.readouterr().err == ""


def test_progress_that_nobody_reads(monkeypatch):
    """Closing standard error does not end the work."""
    stream = io.StringIO()
    line = progress.Progress(stream, "reading m.onnx")
    stream.close()
    line.show()


def test_progress_goes_through_the_nodes(tmp_path):
    """A run announces each node before it starts, and forgets the previous run."""
    path = save(tmp_path / "m.onnx", [node("Neg", "x", "a", name="first"), node("MaxPool", "a", **HALVES)])
    model, seen = models.Model(path), []
    model.run({"x": RAMP})
    again = model.run({"x": RAMP}, progress=lambda *step: seen.append(step))

    assert seen == [(0, 2, "first (Neg)"), (1, 2, "y (MaxPool)")]
    assert [entry.calls for entry in again.nodes] == [1]
