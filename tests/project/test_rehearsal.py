"""The rehearsal of a release makes the clone that a release needs. It builds for minutes: see docs/releasing.md."""

import shutil
import subprocess
import sys

import pytest
from support import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from rehearse_release import INDEX, Index, tagged
from release_notes import found


def test_the_clone_is_ready_for_release(tmp_path, capfd):
    """The clone's changelog has a date, and its last commit has a tag, for which there are release notes."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs git, and a clone of the repository")
    version = found(r"^  version: '([^']+)'", "meson.build", "version")
    clone = tagged(tmp_path, version)
    tag = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=clone, check=True, capture_output=True, text=True)
    assert tag.stdout == f"v{version}\n"
    command = [sys.executable, "tools/release_notes.py", tag.stdout.strip()]
    notes = subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True)
    assert notes.stdout.strip()
    assert str(tmp_path) not in capfd.readouterr().out


def test_the_index_remembers_what_it_served():
    """The index remembers what it served, so that the rehearsal knows whether pip took the local wheel."""
    request = Index.__new__(Index)
    request.path = f"/{INDEX}/a.whl"
    request.log_message("%s", "GET")
    assert Index.served.pop() == request.path
