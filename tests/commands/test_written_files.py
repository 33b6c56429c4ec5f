"""Files that commands write: whole, or not at all."""

import os
import shlex
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from command_line import ended
from model_files import HALVES, node, save

import onnxpool
from onnxpool.commands import CANNOT, OK
from onnxpool.planning import ways

EXPLAIN = "explain MaxPool kernel_shape=2,2 --shape 1,1,4,4"
WRITERS = ["run m.onnx --output", "bench m.onnx --tune", "fix m.onnx", f"{EXPLAIN} --svg", f"{EXPLAIN} --png"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty current folder, with a model beside it. What was tuned is forgotten after a test."""
    save(tmp_path / "m.onnx", [node("MaxPool", **HALVES)])
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    yield
    ways.learned.clear()
    onnxpool.clear_caches()


def split(words):
    """The words of a command, with the path of the model."""
    if "--png" in words:
        pytest.importorskip("matplotlib")
    return shlex.split(words.replace("m.onnx", "../m.onnx"))


@pytest.mark.parametrize("earlier", [None, b"earlier"])
@pytest.mark.parametrize("words", WRITERS)
def test_a_file_that_cannot_be_finished(words, earlier):
    """If a file cannot be finished, no part of it is left, and an earlier file stays as it was."""
    if earlier:
        with open("y", "wb") as file:
            file.write(earlier)
    command = shlex.join([sys.executable, "-m", "onnxpool", *split(words), "y"])
    done = subprocess.run(["bash", "-c", f"ulimit -f 0; {command}"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (CANNOT, "")
    assert done.stderr.splitlines()[-1] == "onnxpool: cannot write y: File too large"
    assert os.listdir() == (["y"] if earlier else [])
    if earlier:
        with open("y", "rb") as file:
            assert file.read() == earlier


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_while_a_file_is_written(monkeypatch, error):
    """An interrupt leaves no part of the file that was being written."""
    def fail(*_, **__):
        assert len(os.listdir()) == 1
        raise error

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    assert ended([*split(WRITERS[0]), "y"])[0] != OK
    assert os.listdir() == []


@pytest.mark.parametrize("words", WRITERS)
def test_an_earlier_file_is_replaced(words):
    """A replaced file keeps its permissions and the links that lead to it. A new file has the usual permissions."""
    with open("earlier", "w") as file:
        file.write("earlier" * 10**5)
    os.chmod("earlier", 0o604)
    os.symlink("earlier", "link")
    assert ended([*split(words), "link"])[0] == OK
    assert ended([*split(words), "new"])[0] == OK
    assert sorted(os.listdir()) == ["earlier", "link", "new"]
    assert os.readlink("link") == "earlier"
    assert stat.S_IMODE(os.stat("earlier").st_mode) == 0o604
    open("usual", "w").close()
    assert os.stat("new").st_mode == os.stat("usual").st_mode
    with open("earlier", "rb") as file:
        assert b"earlier" not in file.read()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("words", WRITERS)
def test_a_pipe_is_written_to(words):
    """A pipe is not replaced by a file, and neither is a device."""
    os.mkfifo("pipe")
    found = []

    def read():
        with open("pipe", "rb") as pipe:
            found.append(pipe.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert ended([*split(words), "pipe"])[0] == OK
    reader.join(60)
    assert len(found[0]) > 0
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert os.listdir() == ["pipe"]
