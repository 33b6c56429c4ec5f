"""The public functions and classes are those that `tools/generate_api.py` writes for the build."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import onnxpool
import onnxpool.dask
import onnxpool.xarray
from onnxpool.operators import __all__ as operators
from tools import api_texts as texts

ROOT = Path(__file__).parents[2]
GENERATOR = "tools/generate_api.py"
READ = ("constants.py", "dtypes.py", "errors.py", "attributes.py", "schemas.py")
FILES = [*(f"src/onnxpool/{name}" for name in READ), GENERATOR, "tools/api_texts.py", "tools/api_texts.toml",
         "tools/uncompiled.py"]
PACKAGES = {"operators": onnxpool.operators, "dask": onnxpool.dask, "xarray": onnxpool.xarray}


def generate(root: Path, name: str) -> str:
    """What the generator of a tree prints for a package."""
    return subprocess.run([sys.executable, "-B", GENERATOR, name], cwd=root, capture_output=True, encoding="utf-8",
                          check=True).stdout


@pytest.mark.parametrize("name", PACKAGES)
def test_installed_source_is_what_is_generated(name: str) -> None:
    """The installed source is up to date. If it is not, install onnxpool again."""
    assert Path(inspect.getfile(PACKAGES[name])).read_text(encoding="utf-8") == generate(ROOT, name)


def changed(path: Path, before: str, after: str) -> None:
    """Changes one place of a file."""
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the files that the generator reads, to be changed."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_an_attribute_is_a_fact_and_a_text(copied: Path) -> None:
    """A row in the table of versions and a text put a new attribute into signatures, classes and docstrings."""
    changed(copied / "src/onnxpool/schemas.py", 'since(19, {"dilations": PER_AXIS}),',
            'since(19, {"dilations": PER_AXIS, "rounding": Choice("nearest", "down")}),')
    changed(copied / "tools/api_texts.toml", "\ncount_include_pad = ",
            '\nrounding = "How quotients are rounded."\ncount_include_pad = ')

    for name in PACKAGES:
        written = generate(copied, name)
        tree = ast.parse(written)
        taking = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                  and "rounding" in {argument.arg for argument in node.args.kwonlyargs}}
        assert taking == {"average_pool", *(["__init__"] if name == "operators" else [])}
        assert "rounding: Rounding | None = None" in " ".join(written.split())
        since = "" if name == "xarray" else " Since version 19."  # functions on labelled arrays have no opset
        assert re.search(r'    rounding : {"nearest", "down"}, default: "nearest"\n'
                         rf"        How quotients are rounded.{since}\n", written)
    written = generate(copied, "operators")
    assert '\nRounding = Literal["nearest", "down"]\n' in written
    assert "    rounding: Named[str] = Named()\n" in written


def test_another_default_is_a_row(copied: Path) -> None:
    """A version that changes a default needs only its row: docstrings tell both defaults, and the newest values."""
    changed(copied / "src/onnxpool/schemas.py", 'since(19, {"dilations": PER_AXIS}),',
            'since(19, {"dilations": PER_AXIS, "count_include_pad": Flag(1, (0, 1, 2))}),')

    for name in PACKAGES:
        written = generate(copied, name)
        assert written.count("count_include_pad : {0, 1, 2}, default: 1 (0 before version 19)\n") == (
            2 if name == "operators" else 1)


def calls_of(module: Any, function: str) -> list[tuple[str, dict[str, str]]]:
    """For each function in a module, the operator's class and the keywords of the call that it makes."""
    tree = ast.parse(inspect.getsource(module))
    return [(next(name for name in map(ast.unparse, node.args) if name[0].isupper()),
             {keyword.arg or "": ast.unparse(keyword.value) for keyword in node.keywords})
            for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == function]


def test_functions_on_labelled_arrays_pass_on_every_argument_of_their_class() -> None:
    """Each argument has its own name, except for arguments that select axes of an ONNX array."""
    calls = calls_of(onnxpool.xarray, "windowed") + calls_of(onnxpool.xarray, "reduced")
    assert len(calls) == len(onnxpool.xarray.__all__)
    for name, given in calls:
        taken = set(inspect.signature(getattr(onnxpool, name).__init__).parameters)
        assert given == {name: name for name in taken - {"self", "kernel_shape", "opset", "channels_last", "axes"}}


def taken_by(name: str) -> set[str]:
    """The arguments of a class that its function takes too, which exclude the layout of NhwcMaxPool."""
    taken = set(inspect.signature(getattr(onnxpool, name).__init__).parameters) - {"self"}
    return taken - ({"channels_last"} if name == "NhwcMaxPool" else set())


def test_functions_on_dask_arrays_pass_on_every_argument_of_their_class() -> None:
    """Each argument is passed on under its own name."""
    calls = calls_of(onnxpool.dask, "made")
    assert len(calls) == len([name for name in onnxpool.dask.__all__ if name.islower()])
    for name, given in calls:
        assert given == {name: name for name in taken_by(name)}


def test_functions_take_inputs_and_every_argument_of_their_class() -> None:
    """A function takes every argument of its class, and the inputs that its decorator names."""
    tree = ast.parse(inspect.getsource(onnxpool.operators))
    calls = {function.name: call.args for function in tree.body if isinstance(function, ast.FunctionDef)
             for call in function.decorator_list if isinstance(call, ast.Call)}
    assert set(calls) == {name for name in onnxpool.operators.__all__ if name.islower()}
    for function, (cls, *inputs) in calls.items():
        parameters = set(inspect.signature(getattr(onnxpool, function)).parameters) - {"out", "num_threads"}
        assert parameters - {ast.literal_eval(one) for one in inputs} == taken_by(ast.unparse(cls))


def test_every_text_is_used() -> None:
    """No text is left over, and docstrings in the source are the same as in Python."""
    public = [getattr(onnxpool, name) for name in operators]
    public += [getattr(module, name) for module in (onnxpool.dask, onnxpool.xarray) for name in module.__all__]
    everything = " ".join(" ".join((one.__doc__ or "").split()) for one in public)
    for text in (*texts.NOTES.values(), *texts.ATTRIBUTES.values()):
        assert " ".join(text.split()) in everything
    for name in (*texts.ATTRIBUTES, *texts.PARAMETERS):
        assert f" {name} : " in everything
    assert set(texts.OPERATORS) == {name for name in operators if not name.islower()}
    for kind in texts.RESULTS.values():
        assert f"ndarray {kind} " in everything
