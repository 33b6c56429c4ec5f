"""Subnormals keep their values, whatever the calling thread does with them."""

import numpy as np
import pytest
from float_states import flushes, needs_flushing, state
from onnxpool_conformance.oracle import DTYPES, FORMATS
from support import FLOAT_NAMES

import onnxpool


@needs_flushing
@pytest.mark.parametrize("dtype", FLOAT_NAMES)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_subnormals_whatever_the_caller_flushes(dtype, threads):
    """Subnormals are computed as in IEEE 754 although the caller flushes them, and the caller's state is unchanged."""
    assert flushes("both")
    assert not flushes("default")
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
        plan = getattr(onnxpool, operator)(**window).plan(x.shape, x.dtype)
        with state("both"):
            y = plan(x, num_threads=threads)
        got = np.ldexp(y.astype(np.float64), form.unit) if dtype != "float64" else np.ldexp(y * 2.0**537, 537)
        slack = {"LpPool": 1, "GlobalAveragePool": 1}.get(operator, 0)
        np.testing.assert_allclose(got, units, rtol=0, atol=slack)
