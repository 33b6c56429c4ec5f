"""
Rehearse a release on this machine, without publishing anything: `python tools/rehearse_release.py`.

In a temporary clone of the last commit, give the changelog its date and tag the commit, as a release does. Then build
the source distribution and a wheel from it, check both, serve them as a package index, install onnxpool from there, and
run the examples of README and the tests of wheels. Needs git, a compiler and the network, on Linux. The first step that
fails ends the rehearsal with exit status 1.
"""

import argparse
import datetime
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from pathlib import Path
from typing import Any, ClassVar

from release_notes import ROOT, found

INDEX = "simple/onnxpool"


class Index(http.server.SimpleHTTPRequestHandler):
    """A package index on this machine, which records the files that it served."""

    served: ClassVar[list[str]] = []

    def log_message(self, *_given: Any) -> None:
        """Remember the path instead of printing it."""
        self.served.append(self.path)


def run(*words: str | Path, cwd: Path) -> None:
    """Show and run a command, with all its output. Stop if it fails."""
    shown = " ".join(word.name if isinstance(word, Path) else word for word in words)
    print(f"$ {shown}", flush=True)
    # Otherwise, Python and pip would also find the packages of the calling environment.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if isinstance(words[0], Path):  # a program of an environment, which may run other programs there
        environment["PATH"] = f"{words[0].parent}{os.pathsep}{environment['PATH']}"
    if subprocess.run([str(word) for word in words], cwd=cwd, env=environment, check=False).returncode:
        sys.exit(f"the rehearsal failed at: {shown}")


def environment(folder: Path) -> Path:
    """A new virtual environment; returns the folder of its programs."""
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--upgrade", "pip", cwd=folder)
    return folder / "bin"


def tagged(folder: Path, version: str) -> Path:
    """A clone whose last commit is ready for release, with its tag."""
    clone = folder / "onnxpool"
    run("git", "clone", "--quiet", ROOT, clone, cwd=folder)
    changelog = clone / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    dated = f"## {version} ({datetime.date.today().isoformat()})"
    changelog.write_text(re.sub(rf"^## {re.escape(version)} .*$", dated, text, flags=re.MULTILINE), encoding="utf-8")
    git = ("git", "-c", "user.name=rehearsal", "-c", "user.email=rehearsal@localhost")
    run(*git, "commit", "--quiet", "--all", "--allow-empty", "--message", f"Release {version}", cwd=clone)
    run(*git, "tag", f"v{version}", cwd=clone)
    return clone


def built(folder: Path, clone: Path, version: str, instruction_sets: str) -> list[Path]:
    """The source distribution and the wheel, built and checked."""
    tools = environment(folder / "tools")
    run(tools / "python", "-m", "pip", "install", "--quiet", "--group", "build", cwd=clone)
    run(tools / "python", "tools/release_notes.py", f"v{version}", cwd=clone)
    run(tools / "python", "-m", "build", f"-Csetup-args=-Dinstruction_sets={instruction_sets}", cwd=clone)
    (source,) = (clone / "dist").glob("*.tar.gz")
    (wheel,) = (clone / "dist").glob("*.whl")
    run(tools / "auditwheel", "repair", "--wheel-dir", clone / "wheelhouse", wheel, cwd=clone)
    (wheel,) = (clone / "wheelhouse").glob("*.whl")
    run(tools / "twine", "check", "--strict", source, wheel, cwd=clone)
    run(tools / "check-wheel-contents", wheel, cwd=clone)
    return [source, wheel]


def installed(folder: Path, clone: Path, address: str) -> None:
    """Install from the index as a user does, and run what README shows."""
    elsewhere = folder / "elsewhere"  # so that nothing is imported from the clone
    elsewhere.mkdir()
    shutil.copy(clone / "README.md", elsewhere)
    user = environment(folder / "user")
    install = (user / "python", "-m", "pip", "install", "--no-cache-dir", "--extra-index-url", address)
    run(*install, "onnxpool", cwd=elsewhere)
    run(user / "python", "-m", "pip", "list", cwd=elsewhere)
    run(user / "python", "-m", "doctest", "README.md", cwd=elsewhere)
    run(*install, "--quiet", "onnxpool[onnx]", cwd=elsewhere)
    run(user / "onnxpool", "run", cwd=elsewhere)
    run(user / "onnxpool", "config", cwd=elsewhere)
    run(*install, "--quiet", "pytest", cwd=elsewhere)
    run(user / "python", "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull,
        "-W", "ignore", clone / "tests" / "project" / "test_wheel.py", cwd=elsewhere)


def rehearse(folder: Path, instruction_sets: str) -> None:
    """Do all steps in a folder."""
    version = found(r"^  version: '([^']+)'", "meson.build", "version")
    clone = tagged(folder, version)
    files = built(folder, clone, version, instruction_sets)
    (folder / "index" / INDEX).mkdir(parents=True)
    for file in files:
        shutil.copy(file, folder / "index" / INDEX)
    handler = functools.partial(Index, directory=str(folder / "index"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        installed(folder, clone, f"http://127.0.0.1:{server.server_port}/simple/")
        server.shutdown()
    if f"/{INDEX}/{files[1].name}" not in Index.served:
        sys.exit(f"the rehearsal failed: pip did not install {files[1].name} from the index")
    print(f"rehearsed onnxpool {version}: {', '.join(file.name for file in files)}")


def main() -> None:
    """Run as a script."""
    parser = argparse.ArgumentParser(description=__doc__.strip().partition("\n")[0])
    parser.add_argument("--instruction-sets", default="all", help="as -Dinstruction_sets; all unless given")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rehearse(Path(name), given.instruction_sets)


if __name__ == "__main__":
    main()
