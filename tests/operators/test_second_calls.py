"""Plans remember that plain arrays need no further checks. Second calls must still meet all requirements."""

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
    plain = plan._pools.plain
    assert plain is not None
    plan(x)
    assert plan._pools.plain is plain


@pytest.mark.parametrize(("dtype", "result"), [("float32", None), ("uint8", "float64"), ("bool", None)])
@pytest.mark.parametrize("attributes", [
    {"axes": (0, 2), "strides": (2, 3)}, {"axes": (2,)}, {"axes": (1, 2), "strides": (1, 9), "ceil_mode": 1}])
def test_elements_are_picked_without_python(monkeypatch, attributes, dtype, result):
    """Results are the elements of windows with one element. Bools may hold any byte, which Python turns into 1."""
    x = np.random.default_rng(1).integers(0, 3, (5, 6, 7)).astype(dtype)
    kind = onnxpool.MaxPool if result is None else onnxpool.AveragePool
    more = {} if result is None else {"dtype": result}
    plan = kind(kernel_shape=1, **attributes, **more).plan(x.shape, x.dtype)
    y, strides = plan(x), dict(zip(attributes["axes"], attributes.get("strides", (1, 1)), strict=False))
    assert np.array_equal(y, x[tuple(slice(None, None, strides.get(axis, 1)) for axis in range(3))])
    assert (plan._pools.plain is None) == (dtype == "bool")
    if plan._pools.plain is not None:
        monkeypatch.setattr(type(plan), "_call", None)
    out = np.empty(y.shape, y.dtype)
    assert plan(x, out=out) is out
    for again in (plan(x), out):
        assert (again.dtype, again.tolist()) == (y.dtype, y.tolist())


@pytest.mark.parametrize("change", [lambda x: x.astype(">f4"), np.asfortranarray], ids=["swapped", "strided"])
def test_a_call_on_other_arrays_does_not_decide_what_runs_plain_ones(called, change):
    """Plain arrays get their own pool after a call on other arrays, whose pool may copy elements that stay in place in
    plain arrays."""
    plan, x, y = called
    fresh = plan.operator._make_plan(x.shape, x.dtype)  # not the cached one
    fresh(change(x))
    assert fresh._pools.plain is None
    assert np.array_equal(fresh(x), y)
    assert fresh._pools.plain is not None
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
    """Each call uses its own scales and zero points, and raises an error if any is missing or wrong."""
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
    """Unpickled arrays have their own dtype objects, but the result has NumPy's dtype object."""
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
    """Scales are read once even if an array does not take the fast path. The array is checked first."""
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


def test_scales_that_change_during_a_call_are_read_once():
    """Scales are read once, because another thread may change an array between the check and the copy for later
    comparisons."""
    scale = np.array(1, np.float32)

    class Change:
        def __array__(self, dtype=None, copy=None):
            scale[...] = 2
            return np.array(1, np.float32)

    x = np.full((1, 1, 2, 2), 10, np.uint8)
    plan = onnxpool.QLinearGlobalAveragePool().plan(x.shape, x.dtype)
    zero = np.uint8(0)
    assert plan(x, scale, zero, np.float32(1), zero).item() == 10
    assert plan(x, scale, zero, Change(), zero).item() in (10, 20)
    assert scale == 2
    for _ in range(2):
        assert plan(x, scale, zero, np.float32(1), zero).item() == 20


def test_results_may_be_fields_of_one_array():
    """Maxima and Indices may be fields of one array, because fields that alternate in memory do not overlap."""
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 8)).astype(np.float32)
    pool = onnxpool.MaxPool(kernel_shape=2, return_indices=True)
    y, indices = pool(x)
    both = np.zeros(y.shape, [("y", np.float32), ("indices", np.int64)])
    for _ in range(2):
        pool(x, out=(both["y"], both["indices"]))
        assert np.array_equal(both["y"], y)
        assert np.array_equal(both["indices"], indices)
        both[...] = 0
    wide = np.zeros((*y.shape, 2), np.int64)
    with pytest.raises(PoolError, match="share memory"):
        pool(x, out=(wide.view(np.float32)[..., 0], wide[..., 0]))


def test_thread_counts_are_checked_in_each_call(called):
    """Thread counts are checked in each call, even if the call runs on one thread anyway."""
    plan, x, _ = called
    for _ in range(2):
        for wrong in (0, -1, 2**63, 2**70, True):
            with pytest.raises((PoolError, PoolTypeError)):
                plan(x, num_threads=wrong)
        plan(x, num_threads=2**63 - 1)


SPELLINGS = {  # of a scale and of a zero point
    "arrays": (lambda value: np.array(value, np.float32), lambda value: np.array(value, np.uint8)),
    "one element": (lambda value: np.array([value], np.float32), lambda value: np.array([value], np.uint8)),
    "scalars": (np.float32, np.uint8),
    "numbers": (float, int),
    "swapped": (lambda value: np.array(value, ">f4"), np.uint8),
    "lists": (lambda value: np.array([[value]], np.float32)[0], lambda value: [np.uint8(value)]),
}


@pytest.mark.parametrize("operator", [onnxpool.QLinearGlobalAveragePool(),
                                      onnxpool.QLinearAveragePool(kernel_shape=2, strides=2)], ids=repr)
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_new_scales_and_zero_points_count(operator, spelling):
    """A later call with other values, in new objects or the same arrays, gives the result of a fully checked call."""
    x = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
    view = np.repeat(x, 2, axis=-1)[..., ::2]
    plan, (scale, zero) = operator.plan(x.shape, x.dtype), spelling
    values = [(0.05, 3, 0.04, 5), (0.05, 3, 0.04, 5), (0.07, 3, 0.04, 5), (0.05, 4, 0.04, 5), (0.05, 3, 0.03, 5),
              (0.05, 3, 0.04, 6), (0.05, 3, 0.04, 5)]
    kept = [make(value) for make, value in zip([scale, zero] * 2, values[0], strict=True)]
    for numbers in values:
        given = [make(value) for make, value in zip([scale, zero] * 2, numbers, strict=True)]
        expected = plan(view, *given)
        assert np.array_equal(plan(x, *given), expected)
        if isinstance(kept[0], np.ndarray) and isinstance(kept[1], np.ndarray):
            for array, value in zip(kept, numbers, strict=True):
                array[...] = value
            assert np.array_equal(plan(x, *kept), expected)


@pytest.mark.parametrize(("place", "value", "error"), [
    (1, np.array(0.05, np.float64), PoolTypeError), (1, np.array(np.nan, np.float32), PoolError),
    (1, np.zeros(2, np.float32), PoolError), (2, np.array(3, np.int8), PoolTypeError), (2, 300, PoolError),
    (2, None, PoolError), (4, np.array(5, np.float32), PoolTypeError)])
def test_wrong_scales_are_refused_after_right_ones(place, value, error):
    """Neither a new object nor a changed array escapes the checks."""
    x = np.ones((1, 1, 4, 4), np.uint8)
    inputs = [x, np.array(0.05, np.float32), np.array(3, np.uint8), np.array(0.05, np.float32), np.array(5, np.uint8)]
    plan = onnxpool.QLinearGlobalAveragePool().plan(x.shape, x.dtype)
    expected = [plan(*inputs) for _ in range(3)][-1]
    out = np.full_like(expected, 77)
    with pytest.raises(error):
        plan(*inputs[:place], value, *inputs[place + 1:], out=out)
    assert (out == 77).all()
    inputs[3][...] = -1
    with pytest.raises(PoolError, match="y_scale"):
        plan(*inputs)
    inputs[3][...] = 0.05
    assert np.array_equal(plan(*inputs), expected)


@pytest.fixture
def indexed():
    """A plan with Indices, its input and the pair of the first call."""
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 9)).astype(np.float32)
    plan = onnxpool.MaxPool(kernel_shape=2, return_indices=True).plan(x.shape, x.dtype)
    return plan, x, plan(x)


def test_later_pairs_are_those_of_the_first_call(indexed):
    """Later pairs equal the first call's: new arrays, passed arrays, and arrays that are not plain."""
    plan, x, (y, indices) = indexed
    assert plan._pools.plain is not None
    for again in (x, np.asfortranarray(x), x.astype(">f4")):
        for threads in (None, 1, 2):
            got = plan(again, num_threads=threads)
            assert isinstance(got, tuple)
            assert np.array_equal(got[0], y)
            assert np.array_equal(got[1], indices)
            assert got[1].dtype == np.int64
            for outs in ((np.empty_like(y), np.empty_like(indices)),
                         (np.empty((*y.shape[:-1], 16), np.float32)[..., ::2], np.asfortranarray(indices))):
                given = plan(again, out=outs, num_threads=threads)
                assert given[0] is outs[0]
                assert given[1] is outs[1]
                assert np.array_equal(outs[0], y)
                assert np.array_equal(outs[1], indices)


def test_wrong_pairs_are_refused_after_right_ones(indexed):
    """Both arrays of a pair are checked, and nothing is written."""
    plan, x, (y, indices) = indexed
    both = np.full(y.nbytes + indices.nbytes, 77, np.uint8)
    fixed = indices.copy()
    fixed.flags.writeable = False
    for out in (y, [y, indices], (y,), (y, indices, indices), (y, y), (indices, indices), (y, indices.astype(np.int32)),
                (y[1:], indices), (y, indices[1:]), (y, fixed), (y, indices.tolist())):
        kept = y.copy(), indices.copy()
        with pytest.raises((PoolError, PoolTypeError)):
            plan(x, out=out)
        assert np.array_equal(y, kept[0])
        assert np.array_equal(indices, kept[1])
    shared = both[:y.nbytes].view(np.float32).reshape(y.shape), both[:indices.nbytes].view(np.int64).reshape(y.shape)
    with pytest.raises(PoolError, match="memory"):
        plan(x, out=shared)
    assert (both == 77).all()


@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_units_of_times_are_not_mixed(kind):
    """A call distinguishes arrays that differ only in their datetime unit from the arrays before them."""
    operator = onnxpool.MaxPool(kernel_shape=2, axes=0)
    seconds, nanoseconds = (np.arange(12).astype(f"{kind}[{unit}]") for unit in ("s", "ns"))
    for x in (seconds, seconds, nanoseconds, nanoseconds, seconds):
        for y in (operator(x), onnxpool.max_pool(x, 2, axes=0)):
            assert y.dtype == x.dtype
            assert np.array_equal(y, x[1:])
    plan = operator.plan(seconds.shape, seconds.dtype)
    plan(seconds)
    with pytest.raises(PoolTypeError, match=r"\[ns\]"):
        plan(nanoseconds)
