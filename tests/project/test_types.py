"""Types as users meet them: snippets under mypy --strict, and stubs that match compiled modules."""

import importlib
import inspect
import itertools
import os
import shutil
import site
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

import onnxpool
from onnxpool.operators import __all__ as operators

pytest.importorskip("mypy")

HERE = Path(__file__).parent
PACKAGE = Path(onnxpool.__file__).parent
SNIPPETS = sorted(path.name for path in (HERE / "snippets").glob("*.py"))
STUBS = sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.pyi"))
STUBTEST = """
import importlib, sys
from mypy import stubtest
from onnxpool import kernels
regions = importlib.import_module(f"onnxpool.kernels.other.regions_{kernels.isa}")
sys.modules["onnxpool.kernels.other.regions"] = regions  # one stub for all instruction sets
sys.exit(stubtest.main())
"""


def run(*command: str, cwd: Path = HERE / "snippets", **environment: str) -> str:
    """The output of a command of this interpreter, which must succeed."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A command that checks modules, and reads packages such as NumPy once."""
    return ["-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent",
            f"--cache-dir={tmp_path_factory.mktemp('cache')}"]


def test_snippets_pass_strict_checks(strict: list[str]) -> None:
    """Users' programs have the types that they assert, and mistakes are found."""
    assert f"no issues found in {len(SNIPPETS)} source files" in run(*strict, *SNIPPETS)


def test_what_the_build_generates_passes_strict_checks(strict: list[str], tmp_path: Path) -> None:
    """Generated modules pass strict checks. They are not in the source tree, so checks of the tree do not see their
    bodies."""
    shutil.copytree(PACKAGE, tmp_path / "onnxpool", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    run(*strict, *(f"onnxpool/{name}/__init__.py" for name in ("operators", "dask", "xarray")),
        cwd=tmp_path)


def test_stubs_say_what_modules_have(tmp_path: Path) -> None:
    """Each hand-written stub agrees with its compiled module, but need not list the module's internal names."""
    assert len(STUBS) >= 8
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\ncache_dir = {tmp_path}\n")
    # mypy searches the interpreter's own directories itself, and refuses to be given them
    places = {} if PACKAGE.parent in map(Path, site.getsitepackages()) else {"MYPYPATH": str(PACKAGE.parent)}
    out = run("-c", STUBTEST, "--ignore-missing-stub", "--ignore-disjoint-bases", f"--mypy-config-file={config}",
              *STUBS, **places)
    assert f"no issues found in {len(STUBS)} modules" in out


@pytest.mark.parametrize("name", [name for name in operators if name.islower()])
def test_overloads_take_what_the_function_takes(name: str) -> None:
    """Every signature that type checkers see has the parameters of the function, with their kinds and order."""
    function = getattr(onnxpool, name)
    overloads = typing.get_overloads(function)
    assert len(overloads) >= 3
    for signature in map(inspect.signature, overloads):
        shown = [(key, parameter.kind) for key, parameter in signature.parameters.items()]
        assert shown == [(key, parameter.kind) for key, parameter in inspect.signature(function).parameters.items()]


def members(kind: type) -> typing.Iterator[typing.Any]:
    """The methods and properties that a public class has from this package."""
    for name, value in inspect.getmembers_static(kind):
        inner = getattr(value, "__func__", getattr(value, "fget", value))  # of class methods and properties
        public = not name.startswith("_") or name.startswith("__")
        if public and inspect.isfunction(inner) and inner.__module__.startswith("onnxpool"):
            yield inner


@pytest.mark.parametrize(("name", "needs"), [
    ("onnxpool", "numpy"), ("onnxpool.ndimage", "numpy"), ("onnxpool.dask", "dask"), ("onnxpool.xarray", "xarray"),
    ("onnxpool.onnxruntime", "onnxruntime"), ("onnxpool.onnx.backend", "onnx"), ("onnxpool.onnx.reference", "onnx"),
    ("onnxpool.onnx.checks", "onnx"), ("onnxpool.onnx.models", "onnx")])
def test_annotations_have_types_when_a_program_runs(name, needs):
    """typing.get_type_hints works for everything public, as tools for APIs and command lines require."""
    pytest.importorskip(needs)
    module = importlib.import_module(name)
    public = [getattr(module, each) for each in getattr(module, "__all__", vars(module)) if not each.startswith("_")]
    origin = "onnxpool" if hasattr(module, "__all__") else name
    ours = [each for each in public if getattr(each, "__module__", "").startswith(origin)]
    functions = [each for each in ours if inspect.isroutine(each)]
    classes = [each for each in ours if isinstance(each, type)]
    assert functions or classes
    assert all("num_threads" in typing.get_type_hints(each) for each in functions if each.__name__.endswith("_pool"))
    for each in (*functions, *classes, *itertools.chain.from_iterable(map(members, classes))):
        typing.get_type_hints(each)


def test_type_hints_of_methods_are_types():
    """Type hints name the classes that callers get, except where a module would have to be imported for the hint."""
    assert typing.get_type_hints(onnxpool.Operator.plan)["return"] is onnxpool.Plan
    assert typing.get_type_hints(onnxpool.Plan)["dtype"].__origin__ is np.dtype
