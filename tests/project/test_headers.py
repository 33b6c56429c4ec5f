"""The C headers compile without warnings at Meson's warning_level=3. Code written by Cython is not included."""

import functools
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "onnxpool"
KERNELS = SOURCES / "kernels"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function", "-fsyntax-only",
          "-xc", "-"]  # a file calls only some functions of a header
MADE = tempfile.TemporaryDirectory()  # headers that the build generates
PLACES = ["-isystem", sysconfig.get_path("include"), *(f"-I{place}" for place in
          (SOURCES, KERNELS / "core", KERNELS / "other", MADE.name))]
LEVELS = ["x86-64", pytest.param("x86-64-v3", marks=pytest.mark.slow), "x86-64-v4"]
# Headers of loops check which unit they are compiled for.
UNITS = ["max int8", "max float16", "extremum int8", "extremum int64", "mean float32", "norm float16", "wide bfloat16",
         "integer_mean uint8", "integer_mean int16", "long_quantised_mean uint8", "indexed_extremum float32",
         "indexed_extremum int16", "indexed_extremum int64", "mean_in_order uint8", "valid_mean float16",
         "valid_mean float32", "valid_mean float64"]
OF_UNITS = {"dtype", "element", "extremes", "leaves", "ordered", "pairs", "picks"}  # element.h includes the last three
CORE = sorted(path.name for path in (KERNELS / "core").glob("*.h") if path.stem not in OF_UNITS)
OTHER = sorted(path.name for path in (KERNELS / "other").glob("*.h"))


def source(*headers: str) -> str:
    """A C file that includes these."""
    return "".join(f'#include "{header}"\n' for header in headers)


@functools.cache
def make_headers() -> None:
    """Write the headers that the build generates from Python's tables."""
    command = [sys.executable, SOURCES.parents[1] / "tools" / "list_units.py", "limits"]
    made = subprocess.run(command, capture_output=True, check=True)
    (Path(MADE.name) / "shared_limits.h").write_bytes(made.stdout)


def warnings(compiler: str, level: str, text: str, *options: str) -> str:
    """The output of a compiler for a C file that must compile."""
    make_headers()
    return subprocess.run([compiler, f"-march={level}", *PLACES, *options, *STRICT], input=text, text=True,
                          capture_output=True, check=False).stderr


@pytest.fixture(params=["gcc", "clang"])
def compiler(request: pytest.FixtureRequest) -> str:
    """A compiler of this machine."""
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    return name


@pytest.mark.parametrize("level", LEVELS)
def test_headers_give_no_warning(compiler: str, level: str) -> None:
    """Each header of the core, for a unit of each reduction, with the instructions of each level."""
    if warnings(compiler, level, "int main(void) { return 0; }\n"):
        pytest.skip(f"{compiler} does not know {level}")
    files = [source("Python.h", *CORE), source("onnxpool.h", *OTHER)]
    openmp = [] if warnings(compiler, level, "#include <omp.h>\n", "-fopenmp") else [["-fopenmp"]]
    found = [warnings(compiler, level, text, *options) for text in files for options in ([], *openmp)]
    for unit in UNITS:
        reduction, element = unit.split()
        of_windows = reduction in {"indexed_extremum", "mean_in_order", "integer_mean"}
        text = source("element.h") if of_windows else source("leaves.h", "extremes.h")
        found.append(warnings(compiler, level, text, f"-DREDUCTION_{reduction}", f"-DELEMENT_{element}"))
    assert "".join(found) == ""
