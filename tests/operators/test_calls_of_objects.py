"""Operators and plans are called without building tuples and dictionaries of arguments, but behave like Python
methods."""

import numpy as np
import pytest

import onnxpool
from onnxpool import PoolTypeError
from onnxpool.planning.kinds import LoopPlan

pytestmark = pytest.mark.smoke

HAVE_VECTORCALL = 1 << 11  # a flag of CPython's types
X = np.random.default_rng(5).standard_normal((1, 2, 6, 6)).astype(np.float32)
MAX = onnxpool.MaxPool(2, strides=2)
MEANS = onnxpool.QLinearGlobalAveragePool()
SCALES = 0.5, 0, 0.25, 3
CALLED = {"operator": MAX, "plan": MAX.plan(X.shape, X.dtype), "copy": onnxpool.MaxPool(1).plan(X.shape, X.dtype)}


class Text(str):
    """A keyword that is equal to a name, but not the same object."""

    __slots__ = ()


@pytest.mark.parametrize("called", [MAX, MEANS, CALLED["plan"], MEANS.plan(X.shape, np.uint8)], ids=repr)
def test_types_take_arrays_of_arguments(called):
    assert type(called).__flags__ & HAVE_VECTORCALL


@pytest.mark.parametrize("called", CALLED.values(), ids=CALLED)
def test_options_are_found_by_name(called):
    expected = called.__call__(X)
    for named in ({}, {"num_threads": 1}, {"num_threads": None, "out": None}, {"out": None}):
        assert np.array_equal(called(X, **named), expected)
    out = np.empty_like(expected)
    for named in ({"out": out}, {"num_threads": 2, "out": out}, {Text("out"): out}, {"x": X, "out": out}):
        out[...] = -9
        assert called(*([] if "x" in named else [X]), **named) is out
        assert np.array_equal(out, expected)
    cut = np.concatenate([X, X], axis=3)[..., :6]
    assert np.array_equal(called(cut, num_threads=1), expected)


@pytest.mark.parametrize("called", CALLED.values(), ids=CALLED)
def test_arguments_that_do_not_fit_are_refused_as_by_a_method(called):
    for given, named in (((), {}), ((), {"out": None}), ((X,), {"into": None}), ((X,), {"x": X}),
                         ((X,), {Text("into"): None})):
        with pytest.raises(TypeError) as expected:
            type(called).__call__(called, *given, **named)
        with pytest.raises(TypeError) as refused:
            called(*given, **named)
        assert (type(refused.value), str(refused.value)) == (type(expected.value), str(expected.value))
    with pytest.raises(PoolTypeError, match="num_threads"):
        called(X, num_threads="2")


def test_scales_follow_by_position():
    x = np.arange(72, dtype=np.uint8).reshape(1, 2, 6, 6)
    expected = MEANS.__call__(x, *SCALES)
    for called in (MEANS, MEANS.plan(x.shape, x.dtype)):
        assert np.array_equal(called(x, *SCALES), expected)
        out = np.empty_like(expected)
        assert called(x, *SCALES, out=out, num_threads=1) is out
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("base", [onnxpool.MaxPool, LoopPlan], ids=["operator", "plan"])
def test_a_subclass_may_replace_the_method(base):
    class Own(base):
        __slots__ = ()

        def __call__(self, x, *inputs, out=None, num_threads=None):
            return "own", super().__call__(x, *inputs, out=out, num_threads=num_threads)

    class Further(Own):
        __slots__ = ()

    for cls in (Own, Further):
        called = cls(2, strides=2) if base is onnxpool.MaxPool else cls(MAX, CALLED["plan"].request)
        name, result = called(X, num_threads=1)
        assert name == "own"
        assert np.array_equal(result, MAX(X))
