"""Builds of a copy of the source tree, with faults in it or for measurements."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = "CAMPAIGN_FOLDER"  # names a folder in which builds stay, so that a later run compiles only what has changed


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """A folder for a build: one that stays, or a temporary one."""
    if os.environ.get(KEPT):
        kept = Path(os.environ[KEPT]).resolve() / name
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
    else:
        with tempfile.TemporaryDirectory(prefix=f"onnxpool-{name}-") as temporary:
            yield Path(temporary)


def command(*arguments: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command that must succeed, with these variables in its environment, and return its output."""
    done = subprocess.run([str(argument) for argument in arguments], cwd=cwd, env=os.environ | variables,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} exited with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


class Build:
    """A build of the best instruction set of this processor, in a folder.

    Parameters
    ----------
    where : Path
    options : str
        Options for `meson setup`.

    Attributes
    ----------
    tree, objects, site : Path
        The copy of the source tree, the build folder, and the folder to add to Python's path.
    """

    def __init__(self, where: Path, *options: str) -> None:
        self.tree, self.objects, self.site = where / "tree", where / "build", where / "site"
        self.refresh()
        if not (self.objects / "build.ninja").exists():
            command("meson", "setup", self.objects, self.tree, "--prefix=/usr", "-Dpython.install_env=prefix",
                    "-Dinstruction_sets=native", *options)
        command("ninja", "-C", self.objects)
        staged = where / "staged"
        command("meson", "install", "-C", self.objects, "--no-rebuild", "--destdir", staged)
        shutil.rmtree(self.site, ignore_errors=True)
        package = next(path.parent for path in staged.rglob("onnxpool/__init__.py"))
        shutil.copytree(package, self.site / "onnxpool")
        shutil.rmtree(staged)

    def refresh(self) -> None:
        """Copy only the source files that differ, so that other files keep their times."""
        files = [ROOT / "meson.build", ROOT / "meson.options"]
        files += [path for name in ("src", "tools") for path in (ROOT / name).rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts]
        for path in files:
            copy = self.tree / path.relative_to(ROOT)
            if not copy.exists() or copy.read_bytes() != path.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process that imports this build."""
        path = os.pathsep.join([str(self.site), *filter(None, [os.environ.get("PYTHONPATH")])])
        return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}

    def targets(self) -> list[str]:
        """All files that ninja can build."""
        return [line.rpartition(":")[0] for line in command("ninja", "-C", self.objects, "-t", "targets", "all")
                .splitlines() if ":" in line]
