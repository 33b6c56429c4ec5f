"""Facts about solvers, dtypes and shared numbers are each stated in one file, from which all others read them."""

import ast
import re
from pathlib import Path

import pytest

from onnxpool import constants, dtypes
from onnxpool.planning import solvers

pytestmark = pytest.mark.smoke

PACKAGE = Path(__file__).parents[2] / "src" / "onnxpool"
SOLVERS = {solver.name for solver in solvers.SOLVERS} | {solvers.COPY[0]}
CODE = {path: path.read_text() for suffix in ("*.py", "*.pyx", "*.pxi", "*.pxd", "*.h", "meson.build")
        for path in PACKAGE.rglob(suffix)}
GROUPS = ast.Tuple, ast.List, ast.Set, ast.Dict
QUOTED = re.compile(r"""["'](\w+)["']""")


def strings(path):
    """The lines of a file's string literals that are one word, without docstrings."""
    if path.suffix != ".py":
        return {(line, word) for line, text in enumerate(CODE[path].split("\n")) for word in QUOTED.findall(text)}
    return {(node.lineno, node.value) for node in ast.walk(ast.parse(CODE[path]))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()}


def test_only_its_record_names_a_solver():
    """Besides the records of solvers, only the table of costs names solvers."""
    planned = [path for path in CODE if {"planning", "kernels"} & set(path.relative_to(PACKAGE).parts)]
    naming = {path.name for path in planned for _, word in strings(path) if word in SOLVERS}
    assert naming == {"solvers.py", "costs.py"}


def test_only_the_table_lists_dtypes():
    """A file may name a single dtype, but only the table lists several."""
    listing = set()
    for path, text in CODE.items():
        if path.suffix == ".py":
            groups = [{part.value for part in ast.iter_child_nodes(node) if isinstance(part, ast.Constant)}
                      for node in ast.walk(ast.parse(text)) if isinstance(node, GROUPS)]
        else:
            groups = [{word for _, word in strings(path)}]
        if any(len(group.intersection((*dtypes.FLOATS, *dtypes.BYTES))) > 1 for group in groups):
            listing.add(path.name)
    assert listing == set()


@pytest.mark.parametrize("name", [name for name in vars(constants) if name.isupper()])
def test_shared_numbers_are_defined_once(name):
    """Shared numbers are defined in Python only, and the build writes them to a header."""
    defined = {path.name for path, text in CODE.items() if re.search(rf"\b{name}\s*=\s*\d|define {name}\b", text)}
    assert defined == {"constants.py"}


def test_the_table_of_dtypes_is_that_of_onnx():
    """Numbers, bytes and limits of dtypes are the same as in the packages that define them."""
    ml_dtypes, onnx = pytest.importorskip("ml_dtypes"), pytest.importorskip("onnx")
    for name, dtype in dtypes.DTYPES.items():
        made = onnx.helper.tensor_dtype_to_np_dtype(dtype.onnx)
        assert (made.name, made.itemsize) == (name, dtype.itemsize)
        if dtype.digits:
            info = ml_dtypes.finfo(made)
            low, high = dtype.exponents
            assert dtype.digits == info.nmant + 1
            assert float(info.smallest_subnormal) == 2.0**low
            assert 2.0 ** (high - 1) <= float(info.max)
            assert float(info.max) / 2 < 2.0 ** (high - 1)
        if dtype.exact:
            info = ml_dtypes.iinfo(made) if name != "bool" else None
            largest = max(abs(int(info.min)), int(info.max)) if info else 1
            assert largest.bit_length() <= dtypes.DTYPES[dtype.exact].digits
