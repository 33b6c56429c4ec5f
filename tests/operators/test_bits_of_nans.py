"""A NaN that a sum, a norm or an interpolation returns has the same bits everywhere, whatever made it."""

import itertools
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import onnxpool
from onnxpool import kernels

PLAIN = {"float16": 0x7e00, "bfloat16": 0x7fc0, "float32": 0x7fc00000, "float64": 0x7ff8 << 48}
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in PLAIN}
# Quiet NaNs of both signs, one with a payload, signalling ones, and infinities, as the highest 16 bits of float64.
PATTERNS = {
    "float16": [0x7e00, 0xfe00, 0xfe55, 0x7d01, 0xfc01, 0x7c00, 0xfc00, 0x3c00],
    "bfloat16": [0x7fc0, 0xffc0, 0xffd5, 0x7f81, 0xff81, 0x7f80, 0xff80, 0x3f80],
    "float32": [0x7fc00000, 0xffc00000, 0xffd55555, 0x7f800001, 0xff800001, 0x7f800000, 0xff800000, 0x3f800000],
    "float64": [0x7ff8 << 48, 0xfff8 << 48, 0xfff85555 << 32, (0x7ff0 << 48) + 1, (0xfff0 << 48) + 1, 0x7ff0 << 48,
                0xfff0 << 48, 0x3ff0 << 48],
}
OPERATORS = [
    onnxpool.AveragePool(kernel_shape=2, axes=-1), onnxpool.AveragePool(kernel_shape=1, axes=-1),
    onnxpool.AveragePool(kernel_shape=(2, 3), axes=(0, 1), pads=(2, 3, 2, 3), count_include_pad=1),
    onnxpool.AveragePool(kernel_shape=70, axes=-1), onnxpool.AveragePool(kernel_shape=2, strides=2, axes=-1, pads=3),
    onnxpool.AveragePool(kernel_shape=3, axes=-1, skipna=True), onnxpool.GlobalAveragePool(axes=(0, 1)),
    onnxpool.GlobalAveragePool(axes=0), onnxpool.GlobalAveragePool(axes=0, skipna=True),
    *[onnxpool.LpPool(kernel_shape=3, axes=-1, p=p) for p in (1, 2, 3, 5, 2**53)],
    onnxpool.LpPool(kernel_shape=3, axes=-1, pads=4, skipna=True), onnxpool.GlobalLpPool(axes=1, p=2),
    onnxpool.GlobalLpPool(axes=(0, 1), p=3), onnxpool.GlobalLpPool(axes=0, p=2**60),
]


def elements(name: str, lanes: int) -> np.ndarray:
    """Rows of all sequences of four elements, repeated for as many columns, and a few of ordinary numbers."""
    bits = np.array(PATTERNS[name], f"u{DTYPES[name].itemsize}")
    rows = np.array([*itertools.product(range(len(bits)), repeat=3)])[::3].reshape(-1)
    return np.tile(bits[rows][:lanes], (12, 1)).view(DTYPES[name])


def bits_of(y: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(y).view(f"u{y.dtype.itemsize}")


def assert_plain(y: np.ndarray) -> None:
    nans = bits_of(y)[np.isnan(y.astype(np.float64))]
    assert set(nans.tolist()) <= {PLAIN[y.dtype.name]}


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
@pytest.mark.parametrize("name", PLAIN)
def test_computed_nans(name, operator):
    x = elements(name, 517)
    plan = operator.plan(x.shape, x.dtype)
    with np.errstate(all="raise"):
        y = plan(x)
        assert np.isnan(y.astype(np.float32)).any()
        assert_plain(y)
        for part in plan.tiles(n=7):
            assert np.array_equal(bits_of(part(x[part.inputs])), bits_of(y[part.outputs]))
        assert np.array_equal(bits_of(operator(np.asfortranarray(x))), bits_of(y))
        if not operator.windowed:
            total = plan.combine(share(x[share.inputs]) for share in plan.partials(n=5))
            assert_plain(total)


@pytest.mark.parametrize("name", PLAIN)
def test_wider_results(name):
    """Elements that are signalling NaNs become wider without a warning."""
    x = elements(name, 64)
    for kernel in (1, 2):
        with np.errstate(all="raise"):
            y = onnxpool.average_pool(x, kernel, axes=-1, dtype=np.float64)
        assert_plain(y)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_interpolated_nans(name, mode):
    x = elements(name, 510).reshape(1, 12, 17, 30)
    rois = np.array([[0, 0, 29, 16], [3, 2, 9, 9], [1.5, 2.5, 2.5, 3.5]], x.dtype)
    with np.errstate(all="raise"):
        y = onnxpool.roi_align(x, rois, np.zeros(3, np.int64), mode=mode, output_height=5, output_width=6)
        last = onnxpool.roi_align(np.ascontiguousarray(np.moveaxis(x, 1, -1)), rois, np.zeros(3, np.int64), mode=mode,
                                  output_height=5, output_width=6, channels_last=True)
    assert np.isnan(y).any()
    assert_plain(y)
    assert np.array_equal(bits_of(np.moveaxis(last, -1, 1)), bits_of(y))


def test_every_instruction_set():
    """All operators of this file return the same bits in processes that use another instruction set."""
    program = (f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
               "import hashlib, test_bits_of_nans as t\n"
               "print(hashlib.sha256(b''.join(t.bits_of(operator(t.elements(name, 517))).tobytes()\n"
               "                     for name in t.PLAIN for operator in t.OPERATORS)).hexdigest())")
    found = {isa: subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                                 env=os.environ | {"ONNXPOOL_ISA": isa}).stdout for isa in kernels.available()}
    assert len(set(found.values())) == 1, found
