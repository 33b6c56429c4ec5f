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

import onnxpool

INCLUDES = (sysconfig.get_path("include"), str(Path(onnxpool.__file__).parent))


def command(*arguments: str, folder: Path) -> None:
    """Run a command that must succeed."""
    run = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def compile_c(source: Path, *flags: str, folder: Path) -> None:
    """Compile a C file, with warnings as errors unless Cython wrote it."""
    compiler = os.environ.get("CC", "cc").split()
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    command(*compiler, *(f"-I{include}" for include in INCLUDES), *flags, str(source), folder=folder)


def build(source: Path, folder: Path) -> ModuleType:
    """Build an extension of one .pyx or .c file in a folder, and import it."""
    code, flags = source, ["-Wall", "-Wextra", "-Werror"]
    if source.suffix == ".pyx":
        code, flags = folder / f"{source.stem}.c", []
        command(sys.executable, "-m", "cython", "-3", "-Werror", str(source), "-o", str(code), folder=folder)
    library = folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    compile_c(code, *flags, "-shared", "-fPIC", "-O1", "-fopenmp", "-o", str(library), folder=folder)
    spec = importlib.util.spec_from_file_location(source.stem, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
