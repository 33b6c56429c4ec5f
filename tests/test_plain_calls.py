"""Plans remember that plain arrays need no further look: what is asked of them holds in the second call too."""

import numpy as np
import pytest

import onnxpool
from onnxpool import PoolError, PoolTypeError

CASES = [  # small, merged axes, transposed within, large, large and merged
    ((2, 3, 9, 9), {"kernel_shape": [2, 2]}),
    ((2, 3, 9, 9), {"kernel_shape": [3, 1], "strides": [2, 1]}),
    ((1, 64, 7, 7), {"kernel_shape": [7, 7]}),
    ((2, 8, 100, 101), {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ((2, 8, 100, 101), {"kernel_shape": [1, 3], "pads": [0, 1, 0, 1]}),
]


@pytest.fixture(params=CASES, ids=str)
def called(request):
    """A plan, its input and the result of its first call."""
    shape, attributes = request.param
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    plan = onnxpool.AveragePool(**attributes).plan(shape, x.dtype)
    return plan, x, plan(x)


def test_all_arrays_give_what_the_first_call_gave(called):
    plan, x, y = called
    fixed = x.copy()
    fixed.flags.writeable = False
    for again in (x, fixed, np.asfortranarray(x), np.repeat(x, 2, axis=-1)[..., ::2], x.astype(">f4")):
        for threads in (None, 1, 2, np.int64(2)):
            assert np.array_equal(plan(again, num_threads=threads), y)
            out = np.empty(y.shape, np.float32)
            assert plan(again, out=out, num_threads=threads) is out
            assert np.array_equal(out, y)
            apart = np.empty((*y.shape[:-1], 2 * y.shape[-1]), np.float32)[..., ::2]
            assert np.array_equal(plan(again, out=apart, num_threads=threads), y)


def test_an_out_that_overlaps_is_as_good_as_another(called):
    plan, x, y = called
    memory = np.empty(x.size + y.size, np.float32)
    given = memory[:x.size].reshape(x.shape)
    for begin in (0, x.size // 2, x.size):
        given[...] = x
        out = memory[begin:begin + y.size].reshape(y.shape)
        assert np.array_equal(plan(given, out=out), y)


def test_what_is_wrong_is_refused(called):
    plan, x, y = called
    for wrong in (x[:1, :1], x.T):
        with pytest.raises(PoolError):
            plan(wrong)
    with pytest.raises(PoolTypeError):
        plan(x.astype(np.float64))
    with pytest.raises(PoolTypeError):
        plan(x, out=np.empty(y.shape))
    with pytest.raises(PoolError):
        plan(x, out=np.empty((*y.shape, 1), np.float32))
    fixed = np.empty(y.shape, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(PoolError):
        plan(x, out=fixed)
    with pytest.raises(PoolError):
        plan(x, num_threads=0)
