"""Python programs in processes of their own, for behaviour that depends on environment variables, limits or imports."""

import os
import subprocess
import sys
from pathlib import Path

import onnxpool

THREAD_COUNTS = ("ONNXPOOL_NUM_THREADS", "OMP_NUM_THREADS")
LIMIT = 300  # seconds after which a program that hangs is killed
ROOT = Path(__file__).parents[2]
HELPERS = [str(ROOT / name) for name in ("tests/helpers", "tests/oracle", "conformance/src")]


def uses_libomp() -> bool:
    """Whether kernels run on LLVM's OpenMP, instead of gcc's."""
    maps = Path("/proc/self/maps")
    return bool(onnxpool.config()["openmp"]) and maps.exists() and "libomp" in maps.read_text()


def spare_libomp(name: str, value: str) -> None:
    """Skip a test whose variable makes LLVM's OpenMP end every process at its first parallel region."""
    import pytest  # not at the top, because programs that only call `uses_libomp` need not load it

    if uses_libomp() and name == "OMP_NUM_THREADS" and value in ("abc", "", "-3", "1.5", str(2**70)):
        pytest.skip("LLVM's OpenMP ends any process that has this OMP_NUM_THREADS")


def launch(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with warnings as errors, with these environment variables but without thread counts from the caller.

    The program can import the helpers of tests.
    """
    clean = {name: value for name, value in os.environ.items() if name not in THREAD_COUNTS}
    clean["PYTHONPATH"] = os.pathsep.join([*HELPERS, *filter(None, [clean.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**clean, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def program(text: str, **variables: str) -> str:
    """The output of a program, which must succeed and print no error.

    OpenMP prints a warning about a count that it cannot parse, which no library can prevent.
    """
    run = launch("-c", text, **variables)
    warned = ("libgomp: Invalid value", "OMP: Warning", "OMP: Hint", "OMP: Info")
    errors = [line for line in run.stderr.splitlines() if line and not line.startswith(warned)]
    assert (run.returncode, errors) == (0, []), run.stderr
    return run.stdout.strip()
