"""SciPy's own tests of the functions, which SciPy installs, pass with those of onnxpool."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy.ndimage.tests", reason="the tests of SciPy are not installed")

# Tests that fail, and why. All others that fail have been refused: windows are rectangles, and numbers are real.
REASONS = {
    "test_multiple_modes_sequentially": "means along two axes are rounded once, not after each axis",
    "test_uniform_filter1d_roundoff_errors": "means of integers are rounded to the nearest one, not truncated",
}
REFUSED = ("is no flat rectangle", "Complex type not supported")


@pytest.mark.slow
def test_tests_of_scipy() -> None:
    """Those that call one of these functions pass, or are among the exceptions."""
    done = subprocess.run([sys.executable, "-m", "tests.ndimage.scipy_tests"], capture_output=True, text=True,
                          cwd=Path(__file__).parents[2], timeout=600, check=False)
    lines = done.stdout.rpartition("\n--\n")[2].splitlines()
    assert lines, done.stdout + done.stderr
    unexplained = [line for line in lines[:-1]
                   if not any(text in line for text in REFUSED) and line.partition(": ")[0] not in REASONS]
    assert unexplained == []
    called, failed = (int(part.split()[0]) for part in lines[-1].split(", "))
    assert called - failed > 400


def test_truncated_means_pass_the_test_of_truncation() -> None:
    """The second exception is a matter of `truncate`."""
    import numpy as np

    from onnxpool import ndimage

    x = np.repeat([0, 1, 0], [9, 9, 9])
    for size in range(3, 10):
        assert ndimage.uniform_filter1d(x, size, truncate=True).sum() == 10 - size
