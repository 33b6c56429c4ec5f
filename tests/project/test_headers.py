"""The C headers compile without warnings at Meson's warning_level=3, for this system and for Windows. Code that Cython
writes compiles for Windows, too."""

import functools
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import pytest

SOURCES = Path(__file__).parents[2] / "src" / "onnxpool"
KERNELS = SOURCES / "kernels"
FROM_INPUT = ["-std=c11", "-fsyntax-only", "-xc", "-"]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function"]  # a file calls few functions of a header
MADE = tempfile.TemporaryDirectory()  # headers that the build generates
WINDOWS = tempfile.TemporaryDirectory()  # headers of Python and NumPy for Windows
HERE = ["-isystem", sysconfig.get_path("include")]
THERE = ["-isystem", WINDOWS.name]
PLACES = [f"-I{place}" for place in (SOURCES, KERNELS / "core", KERNELS / "other", MADE.name)]
MINGW = "x86_64-w64-mingw32-gcc"  # clang for Windows uses its headers
COMPILERS = {
    "gcc": (["gcc", *HERE], ["gcc"]),
    "clang": (["clang", *HERE], ["clang"]),
    "gcc for Windows": ([MINGW, *THERE], [MINGW]),
    "clang for Windows": (["clang", "--target=x86_64-w64-windows-gnu", *THERE], ["clang", MINGW]),
}
# Python's headers are the same everywhere, except for the one that describes the system.
OF_WINDOWS = """
#define MS_WINDOWS
#define MS_WIN64
#define HAVE_DECLSPEC_DLL
#define HAVE_STDARG_PROTOTYPES
#define NT_THREADS
#define Py_ENABLE_SHARED
#define ALIGNOF_SIZE_T 8
#define SIZEOF_HKEY 8
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SHORT 2
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
"""
LEVELS = ["x86-64", pytest.param("x86-64-v3", marks=pytest.mark.slow), "x86-64-v4"]
# Headers of loops check which unit they are compiled for.
UNITS = ["max int8", "max float16", "extremum int8", "extremum int64", "mean float32", "norm float16", "wide bfloat16",
         "double_mean float32", "integer_mean uint8", "integer_mean int16", "long_quantised_mean uint8",
         "indexed_extremum float32", "indexed_extremum int16", "indexed_extremum int64", "mean_in_order uint8",
         "valid_mean float16", "valid_mean float32", "valid_mean float64"]
OF_UNITS = {"dtype", "element", "extremes", "leaves", "ordered", "pairs", "picks", "within"}  # headers of units
CORE = sorted(path.name for path in (KERNELS / "core").glob("*.h") if path.stem not in OF_UNITS)
MODULES = sorted(path.relative_to(SOURCES).with_suffix("").as_posix() for path in SOURCES.rglob("*.pyx"))
OTHER = sorted(path.name for path in (KERNELS / "other").glob("*.h"))


def source(*headers: str) -> str:
    """A C file that includes these headers."""
    return "".join(f'#include "{header}"\n' for header in headers)


@functools.cache
def make_headers() -> None:
    """Write the headers that the build generates from Python's tables."""
    command = [sys.executable, SOURCES.parents[1] / "tools" / "list_units.py", "constants"]
    made = subprocess.run(command, capture_output=True, check=True)
    (Path(MADE.name) / "shared_constants.h").write_bytes(made.stdout)
    there = Path(WINDOWS.name)
    for path in Path(sysconfig.get_path("include")).iterdir():
        (there / path.name).symlink_to(path)
    (there / "pyconfig.h").unlink()
    (there / "pyconfig.h").write_text(OF_WINDOWS)
    (there / "numpy").mkdir()
    for path in Path(np.get_include(), "numpy").iterdir():
        (there / "numpy" / path.name).symlink_to(path)
    config = there / "numpy" / "_numpyconfig.h"
    text = config.read_text()
    config.unlink()
    config.write_text(re.sub(".*NPY_HAVE_ENDIAN_H.*", "", text).replace("NPY_SIZEOF_LONG 8", "NPY_SIZEOF_LONG 4"))


def warnings(compiler: list[str], text: str, *options: str) -> str:
    """The output of a compiler for a C file that must compile."""
    make_headers()
    return subprocess.run([*compiler, *PLACES, *options, *FROM_INPUT], input=text, text=True, capture_output=True,
                          check=False).stderr


def command_of(compiler: str) -> list[str]:
    """The command of a compiler, which this machine must have."""
    command, needed = COMPILERS[compiler]
    for name in needed:
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name}")
    return command


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["gcc", "clang", "gcc for Windows",
                                  pytest.param("clang for Windows", marks=pytest.mark.slow)])
def test_headers_give_no_warning(name: str, level: str) -> None:
    """Each header of the core compiles without a warning, for a unit of each reduction, with each level's
    instructions."""
    compiler = command_of(name)
    options = [f"-march={level}", *STRICT]
    if warnings(compiler, "int main(void) { return 0; }\n", *options):
        pytest.skip(f"{compiler[0]} does not know {level}")
    files = [source("Python.h", *CORE), source("onnxpool.h", *OTHER)]
    openmp = [["-fopenmp"]]
    if "Windows" in name or warnings(compiler, "#include <omp.h>\n", *options, "-fopenmp"):
        openmp = []
    found = [warnings(compiler, text, *options, *more) for text in files for more in ([], *openmp)]
    for unit in UNITS:
        reduction, element = unit.split()
        of_windows = reduction in {"indexed_extremum", "mean_in_order", "integer_mean"}
        text = source("element.h") if of_windows else source("leaves.h", "extremes.h")
        if reduction in {"max", "extremum", "mean", "integer_mean"}:
            text += source("picks.h")
        if reduction in {"max", "mean"} and level == "x86-64-v4":
            text += source("within.h")
        found.append(warnings(compiler, text, *options, f"-DREDUCTION_{reduction}", f"-DELEMENT_{element}"))
    assert "".join(found) == ""


def fill(template: str, **values: str) -> str:
    """A template of the build, filled with these values."""
    text = (KERNELS / "core" / f"{template}.in").read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("windows", [name for name in COMPILERS if "Windows" in name])
def test_translated_modules_compile_for_windows(windows: str, module: str, tmp_path: Path) -> None:
    """The C code that Cython writes compiles: each module, and one unit of each file of loops."""
    compiler = command_of(windows)
    path = SOURCES / f"{module}.pyx"
    code = tmp_path / f"{path.stem}.c"
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "-Xcdivision=True", "-I", str(SOURCES.parent),
         "--module-name", f"onnxpool.{module.replace('/', '.')}", str(path), "-o", str(code)],
        check=True, capture_output=True,
    )
    (tmp_path / "isas.h").write_text(fill("isas.h", prepare="(void)0", rows=""))
    (tmp_path / "table.h").write_text(fill("units_table.h", declared="", units=""))
    text = source(code.name)
    if "steps" in path.parts:
        reduction, element = "max", "int8"
        if path.stem == "ordered":
            reduction, element = "mean_in_order", "uint8"
        text = fill("unit.c", step=path.stem, reduction=reduction, element=element, name="run")
    found = warnings(compiler, text, "-Wall", "-Werror", f"-I{tmp_path}", '-DUNITS_TABLE_H="table.h"',
                     "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
                     *(f"-Wno-unused-{kind}" for kind in ("but-set-variable", "function", "label", "variable")))
    assert found == ""
