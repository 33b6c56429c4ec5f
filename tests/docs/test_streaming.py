"""The example program, which pools files larger than memory, stays within a limit that the system enforces."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxpool

PROGRAM = Path(__file__).parents[2] / "examples" / "streaming" / "pool_npy.py"
LIMIT, SIZE = 200, 384  # MiB that the process may allocate, and MiB of the file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sparse file, with random numbers here and there."""
    path = tmp_path_factory.mktemp("streaming") / "x.npy"
    x = np.lib.format.open_memmap(path, "w+", np.float32, (SIZE, 512, 512))
    for i in range(0, SIZE, 7):
        x[i] = np.random.default_rng(i).standard_normal((512, 512), np.float32)
    return path


def run(source: Path, target: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, PROGRAM, source, target, "--limit", str(LIMIT), *options],
                          capture_output=True, text=True, timeout=600)


def test_a_file_larger_than_memory_is_pooled(source: Path, tmp_path: Path) -> None:
    """The result for a file larger than memory equals the result for the whole array."""
    done = run(source, tmp_path / "y.npy", "--kernel", "3", "5", "--strides", "2", "4", "--axes", "0", "2")
    assert done.returncode == 0, done.stderr
    x = np.load(source, mmap_mode="r")
    y = np.load(tmp_path / "y.npy")
    assert np.array_equal(y, onnxpool.average_pool(x, (3, 5), axes=(0, 2), strides=(2, 4)))
    assert "parts, " in done.stderr


def test_means_of_integers_are_not_cut_off(tmp_path: Path) -> None:
    """The result file has the dtype of the means, whichever way the file is pooled."""
    x = np.arange(16, dtype=np.uint8).reshape(4, 4)
    np.save(tmp_path / "x.npy", x)
    for options, y in ((("--kernel", "2", "2"), onnxpool.average_pool(x, 2, strides=2, axes=(0, 1))),
                       ((), onnxpool.global_average_pool(x, axes=(0, 1), keepdims=False))):
        done = run(tmp_path / "x.npy", tmp_path / "y.npy", *options, "--axes", "0", "1")
        assert done.returncode == 0, done.stderr
        found = np.load(tmp_path / "y.npy")
        assert found.dtype == np.float64
        assert np.array_equal(found.ravel(), y.ravel())


def test_a_file_larger_than_memory_is_reduced(source: Path, tmp_path: Path) -> None:
    """Partial results of a file larger than memory are combined into the right result."""
    done = run(source, tmp_path / "y.npy", "--operator", "max", "--axes", "0", "2")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.load(source, mmap_mode="r").max((0, 2)))


def test_the_limit_is_enforced(source: Path, tmp_path: Path) -> None:
    """The process cannot allocate an array as large as the file."""
    program = (f"import resource, numpy; resource.setrlimit(resource.RLIMIT_DATA, ({LIMIT << 20},) * 2); "
               f"numpy.load({str(source)!r})")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode != 0
    assert "MemoryError" in done.stderr
