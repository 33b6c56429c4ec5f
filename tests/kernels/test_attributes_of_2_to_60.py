"""Kernels with any number of taps, most of them in the padding."""

import numpy as np
import pytest
from support import LAYOUTS, to_first, to_last

import onnxpool

HUGE = 2**60


@pytest.mark.parametrize("channels", [1, 3, 64])
@pytest.mark.parametrize("last", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("kernel", [(2, HUGE), (HUGE, 2), (HUGE, HUGE)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_norms_of_kernels_that_reach_far_into_padding(dtype, kernel, last, channels):
    """Norms are right although an element's position in the tree of a sum also counts taps in the padding."""
    x = np.ones((1, channels, 2, 5), dtype)
    y = onnxpool.lp_pool(to_last(x, last), kernel, auto_pad="SAME_UPPER", channels_last=last)
    y = to_first(y, last)
    # A kernel of 2 reads one element beyond its window, if there is one.
    along = [np.full(n, n) if taps == HUGE else np.append(np.full(n - 1, 2), 1)
             for n, taps in zip((2, 5), kernel, strict=True)]
    expected = np.broadcast_to(np.sqrt(np.outer(*along)), y.shape)
    np.testing.assert_allclose(y.astype(float), expected, 1e-3 if dtype == "float16" else 1e-6)
