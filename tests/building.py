"""Extensions that are built against the installed package."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest


def build(source: Path, folder: Path) -> ModuleType:
    """Translate a .pyx file with Cython, compile it in a folder, and import it."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip("no C compiler")
    code, library = folder / f"{source.stem}.c", folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_path("include")
    for command in (
        [sys.executable, "-m", "cython", "-3", "-Werror", str(source), "-o", str(code)],
        [*compiler.split(), "-shared", "-fPIC", "-O1", "-fopenmp", f"-I{include}", str(code), "-o", str(library)],
    ):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    spec = importlib.util.spec_from_file_location(source.stem, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
