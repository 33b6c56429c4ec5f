"""Mutants of the code that checks attributes and computes with indices: tests notice most of them.

universalmutator makes them. Mutants that only change texts and types are left out. Of the others, some are equivalent:
they change only the speed.
"""

from __future__ import annotations

import ast
import itertools
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .builds import ROOT, command, folder
from .figures import Figure, none

MODULES = ("attributes", "parts", "places", "schemas", "windows", "planning/cutting", "planning/integers",
           "planning/layout", "planning/orders", "planning/quantisation", "planning/ranges", "planning/regions",
           "planning/unpooling")
QUICK_TESTS = ("tests/oracle/test_windows_of_an_axis.py", "tests/operators/test_parts.py")
TESTS = (*QUICK_TESTS, "tests/operators", "tests/oracle", "tests/kernels", "tests/embedding/test_limits.py")
QUICK, FULL = 10, 200
LEAST, QUICK_LEAST = 80, 60  # percent; ten mutants say little
LONGER = 10  # a mutant counts as killed if it takes this many times as long as the code itself
BYTES = 6 << 30  # limit on the memory of each mutant, which may allocate without end


class Mutant(NamedTuple):
    """The text of a module with a change, with the name that universalmutator gives its file."""

    module: str
    name: str
    text: str


class Unread(ast.NodeTransformer):
    """Removes what only people or type checkers read."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Remove docstrings."""
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Remove texts."""
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        """Remove texts with values in them."""
        return ast.Constant("")

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        """Remove the text of an error."""
        return ast.Raise()

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Remove the type of an argument."""
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Remove the type of a variable."""
        return ast.Assign([node.target], self.visit(node.value)) if node.value else ast.Pass()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Remove the types of a function."""
        self.generic_visit(node)
        node.returns = None
        return node


def read(text: str) -> str:
    """The part of a module that affects what Python does."""
    return ast.dump(Unread().visit(ast.parse(text)))


def mutants(modules: tuple[str, ...], seed: int, where: Path) -> Iterator[Mutant]:
    """The mutants that change what Python does, in random order."""
    files = []
    for module in modules:
        own = where / "mutants" / module.replace("/", ".")
        own.mkdir(parents=True)
        command("mutate", f"src/onnxpool/{module}.py", "python", "--noCheck", "--mutantDir", own)
        files += [(module, file) for file in sorted(own.iterdir())]
    random.Random(seed).shuffle(files)
    plain = {module: read((ROOT / f"src/onnxpool/{module}.py").read_text(encoding="utf-8")) for module in modules}
    for module, file in files:
        text = file.read_text(encoding="utf-8")
        with suppress(SyntaxError):
            if read(text) != plain[module]:
                yield Mutant(module, file.name, text)


def survives(mutant: Mutant | None, tests: tuple[str, ...], where: Path, limit: float | None = None) -> bool:
    """Whether all tests pass in time with a mutant in place of the module or, without a mutant, with the module."""
    import onnxpool

    site = where / mutant.name if mutant else where / "plain"
    shutil.copytree(Path(onnxpool.__file__).parent, site / "onnxpool", copy_function=os.symlink,
                    ignore=shutil.ignore_patterns("__pycache__"))
    if mutant:
        module = site / "onnxpool" / f"{mutant.module}.py"
        module.unlink()
        module.write_text(mutant.text, encoding="utf-8")
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    arguments = ["prlimit", f"--as={BYTES}", sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                 "--hypothesis-seed=0", *tests]
    try:
        done = subprocess.run(arguments, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                              timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.rmtree(site)
    return done.returncode == 0


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Run tests of the code itself, and then of a sample of mutants."""
    modules, tests = (("windows",), QUICK_TESTS) if quick else (MODULES, TESTS)
    count, least = (QUICK, QUICK_LEAST) if quick else (FULL, LEAST)
    if not shutil.which("mutate"):
        raise RuntimeError("there is no universalmutator: pip install --group campaign")
    with folder("mutation") as where, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        start = time.monotonic()
        yield none("false alarms", int(not survives(None, tests, where)), 1, "run of the tests")
        limit = LONGER * (time.monotonic() - start)
        drawn = [*itertools.islice(mutants(modules, seed, where), count)]
        survivors = [mutant for mutant, survived in zip(
            drawn, pool.map(lambda mutant: survives(mutant, tests, where, limit), drawn), strict=True) if survived]
        for module, name, _ in survivors:
            print(f"  survived: {name} of {module}")
        yield Figure("mutants killed", 100 * (1 - len(survivors) / len(drawn)), len(drawn), "mutants", "%", least=least)
