"""SciPy's own tests of the functions pass with onnxpool's functions."""

import re
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from onnxpool import ndimage

scipy = pytest.importorskip("scipy")

# Tests that fail, and why. Other failing tests end in refusals: windows are rectangles, and numbers are real.
REASONS = {
    "test_multiple_modes_sequentially": "means along two axes are rounded once, not after each axis",
    "test_uniform_filter1d_roundoff_errors": "means of integers are rounded to the nearest one, not truncated",
}
REFUSED = ("is no flat rectangle", "Complex type not supported")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["installed", "sdist"])
def test_tests_of_scipy(source: str, tmp_path: Path) -> None:
    """SciPy's tests of these functions pass, or are among the exceptions. An sdist has these tests as well."""
    if find_spec("scipy.ndimage.tests") is None:
        pytest.skip("scipy.ndimage.tests is not installed; run python -m tests.ndimage.scipy_tests SDIST")
    sdist = tmp_path / "scipy-1.0.tar.gz"
    if source == "sdist":
        installed = Path(scipy.__file__).parent
        with tarfile.open(sdist, "w:gz") as archive:
            for part in ("conftest.py", "ndimage/tests"):
                archive.add(installed / part, f"scipy-1.0/scipy/{part}")
    done = subprocess.run([sys.executable, "-m", "tests.ndimage.scipy_tests", *[str(sdist)] * (source == "sdist")],
                          capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=600, check=False)
    lines = done.stdout.rpartition("\n--\n")[2].splitlines()
    assert lines, done.stdout + done.stderr
    unexplained = [line for line in lines[:-1]
                   if not any(text in line for text in REFUSED) and line.partition(": ")[0] not in REASONS]
    assert unexplained == []
    tests, called, functions, failed = map(int, re.findall(r"\d+", lines[-1]))
    assert called == functions == len(ndimage.__all__)
    assert tests - failed > 400


def test_truncated_means_pass_the_test_of_truncation() -> None:
    """With `truncate`, means pass the test that is the second exception."""
    x = np.repeat([0, 1, 0], [9, 9, 9])
    for size in range(3, 10):
        assert ndimage.uniform_filter1d(x, size, truncate=True).sum() == 10 - size
