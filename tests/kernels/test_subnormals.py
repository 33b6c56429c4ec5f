"""Subnormals keep their values, whatever the calling thread does with them."""

import ctypes
import platform

import numpy as np
import pytest
from oracle import DTYPES, FORMATS
from support import FLOAT_NAMES

import onnxpool


class FlushToZero:
    """Within the block, the calling thread flushes subnormals to zero and treats them as zero (x86-64, glibc)."""

    BITS = 0x8040
    EXCEPTIONS = 0x3F
    SIZE = 32  # bytes of fenv_t; MXCSR is its last word

    def __init__(self):
        self.libm = ctypes.CDLL("libm.so.6")
        self.before = self.get()

    def get(self):
        """The floating-point environment of the thread."""
        state = ctypes.create_string_buffer(self.SIZE)
        self.libm.fegetenv(state)
        return state.raw

    def control(self):
        """MXCSR without the exceptions seen so far."""
        return int.from_bytes(self.get()[-4:], "little") & ~self.EXCEPTIONS

    def __enter__(self):
        word = int.from_bytes(self.before[-4:], "little") | self.BITS
        self.libm.fesetenv(ctypes.create_string_buffer(self.before[:-4] + word.to_bytes(4, "little"), self.SIZE))
        return self

    def __exit__(self, *details):
        self.libm.fesetenv(ctypes.create_string_buffer(self.before, self.SIZE))


@pytest.mark.skipif(
    (platform.system(), platform.machine(), platform.libc_ver()[0]) != ("Linux", "x86_64", "glibc"),
    reason="sets the control word of x86-64 through glibc",
)
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_subnormals_whatever_the_caller_flushes(dtype, threads):
    """Subnormals are computed as in IEEE 754 although the caller flushes them, and the caller's state is unchanged."""
    form = FORMATS[dtype]
    whole = 4 * np.random.default_rng(7).integers(1, 9, (1, 8, 512, 512))
    x = np.ldexp(whole.astype(np.float64), -form.unit).astype(DTYPES[dtype])
    assert x.nbytes > 2**20
    quarters = whole.reshape(1, 8, 256, 2, 256, 2)
    wanted = {
        "AveragePool": quarters.sum((3, 5)) / 4,
        "MaxPool": quarters.max((3, 5)),
        "LpPool": np.rint(np.sqrt((quarters**2).sum((3, 5)))),
        "GlobalMaxPool": whole.max((2, 3), keepdims=True),
        "GlobalAveragePool": whole.mean((2, 3), keepdims=True),
    }
    for operator, units in wanted.items():
        window = {} if "Global" in operator else {"kernel_shape": 2, "strides": 2}
        with FlushToZero() as state:
            inside = state.control()
            y = getattr(onnxpool, operator)(**window)(x, num_threads=threads)
            after = state.control()
        assert inside & FlushToZero.BITS == FlushToZero.BITS
        assert after == inside
        got = np.ldexp(y.astype(np.float64), form.unit) if dtype != "float64" else np.ldexp(y * 2.0**537, 537)
        slack = {"LpPool": 1, "GlobalAveragePool": 1}.get(operator, 0)
        np.testing.assert_allclose(got, units, rtol=0, atol=slack)
