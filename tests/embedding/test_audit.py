"""What the library touches outside its process: no more than docs/guarantees.md says."""

import json
import platform
import re
import sys
from pathlib import Path

import audited
import pytest
from programs import launch, program
from support import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the documented files are those of Linux")

PROGRAM = str(Path(audited.__file__))


def touched(**variables: str) -> dict[str, list[str]]:
    """What importing and calling the library touches."""
    done = launch(PROGRAM, "300", "5", **variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.smoke
def test_import_touches_what_is_documented_and_calls_nothing() -> None:
    """Variables and control groups are read at import; neither valid nor refused calls touch anything."""
    found = touched()
    assert {phase: audited.surprises(phase, found[phase]) for phase in audited.PHASES} == {
        phase: [] for phase in audited.PHASES}
    assert {f"variable {name}" for name in audited.VARIABLES} <= set(found["import"])
    assert found["results"] > found["errors"] > 50  # type: ignore[operator]


def test_wisdom_is_a_file_more(tmp_path: Path) -> None:
    """ONNXPOOL_WISDOM adds its file and the file that names the processor, and nothing else."""
    file = tmp_path / "wisdom.json"
    file.write_text(program("import json, onnxpool; print(json.dumps(onnxpool.wisdom()))"))
    found = touched(ONNXPOOL_WISDOM=str(file))
    assert audited.surprises("import", found["import"]) == ["open /proc/cpuinfo r", f"open {file} r"]
    assert found["first calls"] == found["calls"] == []


def test_the_page_names_what_is_touched() -> None:
    """docs/guarantees.md has each variable and file."""
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8").partition("## What it touches")[2]
    assert [name for name in audited.VARIABLES if f"`{name}`" not in page] == []
    names = re.findall(r"[\w/]+", " ".join(audited.FILES).replace("\\", ""))
    assert [name for name in ("/proc/self/cgroup", "/sys/fs/cgroup", *re.findall(r"cfs_\w+", " ".join(names)))
            if name not in page] == []


TOUCHES = """
import os, socket, subprocess, sys, tempfile
import audited
audit, found = audited.Audit(), set()
with audit.watched(found):
    os.environ.get("HOME"), os.getenv("PATH"), "LANG" in os.environ, list(os.environ)
    socket.socket().close()
    open(os.devnull).close()
    os.listdir("/")
    subprocess.run(["true"])
    import wave, pytest
print(*audited.surprises("import", found), sep="\\n")
"""


def test_the_audit_sees_everything() -> None:
    """Variables in any form, sockets, files, folders, programs and foreign packages are noted."""
    notes = program(TOUCHES).splitlines()
    for expected in ("variable HOME", "variable PATH", "variable LANG", "variables", "socket.__new__", "open /dev/null",
                     "os.listdir /", "subprocess.Popen true", "import pytest"):
        assert any(note.startswith(expected) for note in notes), (expected, notes)


NO_PROGRAM = """
import builtins, sys
import onnxpool

def refuse(event, arguments):
    if event.startswith(("subprocess", "os.posix_spawn", "os.fork", "os.exec", "os.system")):
        raise RuntimeError(event)

def without(path, *arguments, **keywords):
    if path == "/proc/cpuinfo":
        raise FileNotFoundError(path)
    return opened(path, *arguments, **keywords)

sys.addaudithook(refuse)
opened, builtins.open = builtins.open, without
print(onnxpool.wisdom()["processor"])
"""


def test_no_program_is_run_to_name_the_processor() -> None:
    """If /proc/cpuinfo is missing or says too little, the name of the architecture stands for the processor."""
    assert program(NO_PROGRAM) == platform.machine()
