"""Plans remember that plain arrays need no further checks; second calls must still meet all requirements on calls."""

import inspect
import pickle

import numpy as np
import pytest

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

CASES = [  # small, merged axes, transposed within, large, large and merged, named axes, large and joined
    ((2, 3, 9, 9), {"kernel_shape": [2, 2]}),
    ((2, 3, 9, 9), {"kernel_shape": [3, 1], "strides": [2, 1]}),
    ((1, 64, 7, 7), {"kernel_shape": [7, 7]}),
    ((2, 8, 100, 101), {"kernel_shape": [3, 3], "strides": [2, 2]}),
    ((2, 8, 100, 101), {"kernel_shape": [1, 3], "pads": [0, 1, 0, 1]}),
    ((9, 8), {"kernel_shape": 2, "axes": (0, 1)}),
    ((9, 8, 3), {"kernel_shape": 2, "strides": 2, "axes": (0, 1)}),
    ((100, 8, 101, 3), {"kernel_shape": 3, "axes": 2}),
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


def test_the_first_call_makes_what_runs_the_second_one(called):
    plan, x, _ = called
    assert len(plan._plain) == 1
    plan(x)
    assert len(plan._plain) == 1


@pytest.mark.parametrize("change", [lambda x: x.astype(">f4"), np.asfortranarray], ids=["swapped", "strided"])
def test_a_call_on_other_arrays_does_not_decide_what_runs_plain_ones(called, change):
    """Their pool may copy elements that plain arrays keep in place."""
    plan, x, y = called
    fresh = plan.operator._make_plan(x.shape, x.dtype)  # not the cached one
    fresh(change(x))
    assert fresh._plain == []
    assert np.array_equal(fresh(x), y)
    assert len(fresh._plain) == 1
    assert len(fresh._pools) == 2


@pytest.mark.parametrize("operator", [
    onnxpool.GlobalMaxPool(axes=(0, 1)), onnxpool.GlobalMaxPool(axes=(0, 1), keepdims=False),
    onnxpool.GlobalMaxPool(axes=(0, 2)), onnxpool.MaxPool(kernel_shape=1, axes=0),
    onnxpool.MaxPool(kernel_shape=2, axes=1, return_indices=True)])
@pytest.mark.parametrize("dtype", ["float32", "bool", "int32"])
def test_second_calls_on_named_axes(operator, dtype):
    x = np.random.default_rng(0).integers(0, 9, (4, 5, 6)).astype(dtype)
    plan = operator.plan(x.shape, x.dtype)
    first, second, apart = plan(x), plan(x), plan(np.asfortranarray(x))
    for again in (second, apart):
        for y, wanted in zip(again if plan.operator.return_indices else (again,),
                             first if plan.operator.return_indices else (first,), strict=True):
            assert (y.dtype, y.shape) == (wanted.dtype, wanted.shape)
            assert np.array_equal(y, wanted)


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


SCALES = (np.float32(0.05), np.uint8(3), np.float32(0.04), np.uint8(7))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("operator", [
    onnxpool.QLinearGlobalAveragePool, lambda **given: onnxpool.QLinearAveragePool(kernel_shape=[2, 3], **given)])
def test_a_plan_keeps_nothing_of_a_quantisation(operator, channels_last):
    """Each call has scales and zero points of its own, and gets an error if they are missing or wrong."""
    shape = (2, 9, 9, 80) if channels_last else (2, 80, 9, 9)
    x = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    pool = operator(channels_last=channels_last)
    plan = pool.plan(shape, x.dtype)
    others = [(np.float32(0.01), 3, 0.5, 7), (np.array([0.05], np.float32), np.array(200, np.uint8), np.float32(9), 0)]
    for given in (SCALES, *others, SCALES):
        expected = pool(x, *given)  # the plan may be new
        for _ in range(2):
            assert np.array_equal(plan(x, *given), expected)
            assert np.array_equal(plan(x[..., ::-1][..., ::-1], *given), expected)
    for wrong in ((), SCALES[:2], (np.float32(0), *SCALES[1:]), (np.ones(1), *SCALES[1:]), (True, *SCALES[1:]),
                  (*SCALES[:3], np.int8(1)), (*SCALES[:3], 256), (*SCALES[:3], True)):
        with pytest.raises((PoolError, PoolTypeError)):
            plan(x, *wrong)
    with pytest.raises(PoolError):
        onnxpool.AveragePool(kernel_shape=[2, 2]).plan((1, 1, 4, 4), np.float32)(np.ones((1, 1, 4, 4), "f4"), *SCALES)


def test_a_dtype_that_is_only_equal_is_as_good(called):
    """Unpickled arrays have dtype objects of their own; the dtype of the result is NumPy's."""
    plan, x, y = called
    other = pickle.loads(pickle.dumps(x))
    assert other.dtype is not x.dtype
    own = plan.operator.plan(x.shape, other.dtype)
    for _ in range(2):
        assert np.array_equal(plan(other), y)
        assert np.array_equal(own(other, out=np.empty(y.shape, other.dtype)), y)
        assert own(other).dtype == np.float32


def test_plans_say_what_they_take(called):
    assert "shape and dtype" in inspect.getdoc(type(called[0]).__call__)


def test_what_is_read_of_a_quantisation_is_read_once():
    """This also holds for an array that does not take the fast path, and the array is checked first."""
    class Scale:
        reads = 0

        def __array__(self, dtype=None, copy=None):
            self.reads += 1
            return np.array(0.5, np.float32)

    x = np.ones((1, 80, 9, 9), np.uint8)
    plan = onnxpool.QLinearGlobalAveragePool().plan(x.shape, x.dtype)
    given = np.uint8(0), np.float32(1), np.uint8(0)
    plan(x, np.float32(1), *given)
    for way in (x, x[..., ::-1], x.tolist()):
        scale = Scale()
        try:
            plan(way, scale, *given)
        except PoolTypeError:
            assert isinstance(way, list)  # it becomes int64
        assert scale.reads == (not isinstance(way, list))
