"""Requirements on wheels for any platform.

These tests need only NumPy and pytest. A release runs them on every wheel.
"""

import importlib
import importlib.metadata
import itertools
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxpool
from onnxpool import kernels

pytestmark = pytest.mark.smoke

FLOATS = (np.float16, np.float32, np.float64)
DTYPES = (np.int8, np.uint8, *FLOATS)
FUNCTIONS = {
    "max": (onnxpool.max_pool, DTYPES, np.max, {}),
    "mean": (onnxpool.average_pool, FLOATS, np.mean, {}),
    "norm": (onnxpool.lp_pool, FLOATS, lambda taps: np.sqrt(np.sum(taps * taps)), {"p": 2}),
}
CASES = [(kind, dtype) for kind, (_, dtypes, _, _) in FUNCTIONS.items() for dtype in dtypes]
CHANNELS = (1, 7, 64)
DIGEST = """
import hashlib, numpy as np, onnxpool
x = np.random.default_rng(0).standard_normal((2, 19, 33, 35)).astype(np.float32)
results = [f(x, 3, strides=s, pads=1).tobytes() for f in (onnxpool.max_pool, onnxpool.average_pool) for s in (1, 2)]
results.append(onnxpool.lp_pool(x, 3, p=2).tobytes())
print(hashlib.sha256(b"".join(results)).hexdigest())
"""


def elements(shape, dtype):
    """Small integers in no particular order, of both signs if the dtype is signed."""
    values = np.random.default_rng(1).integers(0 if dtype == np.uint8 else -9, 10, shape)
    return values.astype(dtype)


def expected(x, kernel, stride, reduce):
    """The results of windows along two axes without padding, computed one after another."""
    rows, columns = ((size - kernel) // stride + 1 for size in x.shape[2:])
    y = np.empty((*x.shape[:2], rows, columns))
    for n, c, i, j in itertools.product(*map(range, y.shape)):
        taps = x[n, c, i * stride:i * stride + kernel, j * stride:j * stride + kernel]
        y[n, c, i, j] = reduce(taps.astype(np.float64))
    return y


def run(*arguments, **environment):
    """The output of a new interpreter, which must succeed."""
    if sys.platform == "emscripten":
        pytest.skip("there are no processes")
    result = subprocess.run([sys.executable, *arguments], env=os.environ | environment, capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_windows_in_both_layouts(kind, dtype, channels):
    """Maxima, means and norms equal the results of plain loops."""
    function, _, reduce, attributes = FUNCTIONS[kind]
    tolerance = 2.0 ** -9 if dtype == np.float16 else 1e-6
    x = elements((2, channels, 9, 11), dtype)
    for kernel, stride in ((2, 2), (3, 1), (3, 2)):
        y = function(x, kernel, strides=stride, **attributes)
        last = function(np.ascontiguousarray(np.moveaxis(x, 1, -1)), kernel, strides=stride, channels_last=True,
                        **attributes)
        assert y.dtype == last.dtype == x.dtype
        np.testing.assert_allclose(y.astype(np.float64), expected(x, kernel, stride, reduce), rtol=tolerance)
        np.testing.assert_array_equal(y, np.moveaxis(last, -1, 1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_global_pools(dtype):
    """Global pools reduce whole planes."""
    x = elements((2, 5, 6, 7), dtype)
    np.testing.assert_array_equal(onnxpool.global_max_pool(x), x.max((2, 3), keepdims=True))
    np.testing.assert_allclose(onnxpool.global_average_pool(x), x.astype(np.float64).mean((2, 3), keepdims=True),
                               rtol=2.0 ** -9)
    np.testing.assert_allclose(onnxpool.global_lp_pool(x, p=1), np.abs(x).astype(np.float64).sum((2, 3), keepdims=True),
                               rtol=2.0 ** -9)


def test_indices_and_unpooling():
    """MaxUnpool puts maxima back in their places."""
    x = np.random.default_rng(2).permutation(96).astype(np.float32).reshape(1, 2, 6, 8)
    y, indices = onnxpool.max_pool(x, 2, strides=2, return_indices=True)
    np.testing.assert_array_equal(x.ravel()[indices], y)
    back = onnxpool.max_unpool(y, indices, 2, strides=2)
    np.testing.assert_array_equal(back, np.where(np.isin(x, y), x, 0))


def test_regions():
    """A region as large as a plane, pooled to one element, gives the plane's maximum. A constant plane gives the
    constant."""
    x = elements((1, 2, 4, 4), np.float32)
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    np.testing.assert_array_equal(onnxpool.max_roi_pool(x, rois, 1)[0, :, 0, 0], x.max((0, 2, 3)))
    images = np.zeros(1, np.int64)
    aligned = onnxpool.roi_align(np.full_like(x, 3), rois[:, 1:], images, output_height=2, output_width=2)
    np.testing.assert_array_equal(aligned, np.full((1, 2, 2, 2), 3, np.float32))


def test_quantised_averages():
    """With scales of 1 and zero points of 0, quantised averages are rounded means."""
    x = elements((1, 3, 4, 4), np.int8)
    one, zero = np.float32(1), np.int8(0)
    y = onnxpool.qlinear_global_average_pool(x, one, zero, one, zero)
    np.testing.assert_array_equal(y, np.rint(x.mean((2, 3), keepdims=True)).astype(np.int8))
    y = onnxpool.qlinear_average_pool(x, one, zero, one, zero, kernel_shape=4)
    np.testing.assert_array_equal(y, np.rint(x.mean((2, 3), keepdims=True)).astype(np.int8))


def test_threads_give_the_same_bits():
    """A call on two threads gives the same bits as one thread."""
    x = np.random.default_rng(3).standard_normal((1, 16, 256, 256)).astype(np.float32)
    one, two = (onnxpool.average_pool(x, 3, strides=2, num_threads=threads) for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_every_instruction_set_gives_the_same_bits():
    """Each instruction set that is built and supported here can be selected, and none changes a result."""
    digests = {isa: run("-c", DIGEST, ONNXPOOL_ISA=isa) for isa in kernels.available()}
    assert len(set(digests.values())) == 1, digests


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc has a library and versions of such functions")
def test_functions_of_libm_have_versions():
    """Calls of libm's functions have symbol versions, because loops are linked with libm. Otherwise, glibc would use
    its oldest pow."""
    loops = Path(importlib.import_module("onnxpool.kernels.units_common").__file__).read_bytes()
    assert b"\0pow\0" in loops
    assert b"\0libm.so.6\0" in loops


def test_errors_name_the_operator():
    """A wrong attribute is refused before any loop runs."""
    with pytest.raises(onnxpool.PoolError, match="MaxPool"):
        onnxpool.max_pool(np.zeros((1, 1, 2, 2), np.float32), 2, strides=0)


def test_the_version_is_that_of_the_distribution():
    """The metadata, the module and the command line report the same version."""
    assert importlib.metadata.version("onnxpool") == onnxpool.__version__
    assert run("-m", "onnxpool", "--version") == f"onnxpool {onnxpool.__version__}"


def test_what_is_installed_beside_the_code():
    """Types, the headers for C and Cython, and the licence are included."""
    folder = Path(onnxpool.__file__).parent
    for name in ("py.typed", "onnxpool.h", "cython_api.pxd", "cython_api.pyi"):
        assert (folder / name).is_file(), name
    names = [file.name for file in importlib.metadata.files("onnxpool") or ()]
    assert "LICENSE" in names
