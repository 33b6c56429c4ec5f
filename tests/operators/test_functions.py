"""Functions are compiled, and still look and behave like the Python functions that declare them."""

import copy
import doctest
import functools
import inspect
import pickle
import pydoc
import sys
import weakref
from unittest import mock

import numpy as np
import pytest

import onnxpool
from onnxpool import PoolTypeError, operators

pytestmark = pytest.mark.smoke

X = np.random.default_rng(3).standard_normal((2, 3, 9, 8)).astype(np.float32)
FUNCTIONS = [getattr(operators, name) for name in operators.__all__ if name.islower()]


class Text(str):
    """A keyword that is equal to a name, but not the same object."""

    __slots__ = ()


def test_there_is_one_for_each_operator():
    assert 2 * len(FUNCTIONS) == len(operators.__all__)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_has_the_signature_and_the_docstring_of_its_declaration(function):
    declared = inspect.unwrap(function)
    assert inspect.isfunction(declared)
    assert inspect.isroutine(function)
    assert callable(function)
    assert inspect.signature(function) == inspect.signature(declared)
    assert inspect.getdoc(function) == inspect.getdoc(declared)
    assert (function.__name__, function.__qualname__, function.__module__) == (
        declared.__name__, declared.__name__, "onnxpool.operators")
    assert inspect.getmodule(function) is operators
    assert declared.__name__ in pydoc.render_doc(function)
    assert repr(function).startswith(f"<function {declared.__name__} at 0x")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_copies_are_the_same_function(function):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert copy.copy(function) is function
    assert copy.deepcopy([function])[0] is function


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_tools_find_the_parameters(function):
    """Weak references, mocks that check arguments, and inspect's older function work with compiled functions."""
    assert weakref.ref(function)() is function
    declared = inspect.getfullargspec(inspect.unwrap(function))
    found = inspect.getfullargspec(function)
    assert (found.args, found.kwonlyargs) == (declared.args, declared.kwonlyargs)
    mocked = mock.create_autospec(function)
    with pytest.raises(TypeError, match=r"bogus|missing"):
        mocked(*found.args, bogus=1)


def test_doctests_are_found():
    finder = doctest.DocTestFinder()
    assert len(finder.find(operators.max_pool, "max_pool", operators)[0].examples) > 1


@pytest.mark.parametrize("call", [
    lambda: onnxpool.max_pool(X, 3, strides=2),
    lambda: onnxpool.max_pool(X, kernel_shape=3, strides=2),
    lambda: onnxpool.max_pool(x=X, kernel_shape=3, strides=2),
    lambda: onnxpool.max_pool(strides=2, kernel_shape=3, x=X),
    lambda: onnxpool.max_pool(*(X, 3), strides=2),
    lambda: onnxpool.max_pool(X, **{Text("kernel_shape"): 3, Text("strides"): 2}),
    lambda: onnxpool.max_pool.__call__(X, 3, strides=2),
    lambda: functools.partial(onnxpool.max_pool, kernel_shape=3)(X, strides=2),
    lambda: onnxpool.max_pool(X, [3, 3], strides=(2, 2)),
    lambda: onnxpool.max_pool(X, 3, strides=2, num_threads=1),
    lambda: onnxpool.max_pool(X, 3, strides=2, out=np.empty((2, 3, 4, 3), np.float32)),
    lambda: onnxpool.max_pool(X, 3, strides=2, out=None, num_threads=None),
    lambda: onnxpool.max_pool(X, 3, strides=np.array(2)),
])
def test_ways_to_give_arguments(call):
    expected = onnxpool.MaxPool(kernel_shape=(3, 3), strides=(2, 2))(X)
    assert np.array_equal(call(), expected)


def test_an_array_of_attributes_may_change_between_calls():
    strides = np.array([2, 2])
    first = onnxpool.max_pool(X, 3, strides=strides)
    strides[:] = 1
    assert first.shape == (2, 3, 4, 3)
    assert onnxpool.max_pool(X, 3, strides=strides).shape == (2, 3, 7, 6)


def test_a_class_can_have_one_as_its_method():
    class Array:
        pool = onnxpool.max_pool

        def __array__(self, dtype=None, copy=None):
            return X

    assert Array.pool is onnxpool.max_pool
    assert np.array_equal(Array().pool(3), onnxpool.max_pool(X, 3))


@pytest.mark.parametrize(("given", "named", "message"), [
    ((), {}, "missing 2 required positional arguments: 'x' and 'kernel_shape'"),
    ((X,), {}, "missing 1 required positional argument: 'kernel_shape'"),
    ((X,), {"strides": 2}, "missing 1 required positional argument: 'kernel_shape'"),
    ((X, 2), {"kernel_shape": 3}, "got multiple values for argument 'kernel_shape'"),
    ((X, 2, 2), {}, "takes 2 arguments by position, got 3; name the others: strides="),
    ((X, 2), {"stride": 2}, "there is no argument stride; pass strides"),
    ((X, 2), {"": 2}, "there is no argument"),
])
def test_arguments_that_do_not_fit(given, named, message):
    with pytest.raises(PoolTypeError, match=message):
        onnxpool.max_pool(*given, **named)


def test_an_argument_that_is_given_twice():
    """An argument that is passed twice is refused. In Python, only strings with their own comparison make this
    possible."""

    class Name(str):
        __slots__ = ()

        def __hash__(self):
            return id(self)

        def __eq__(self, other):
            return str.__eq__(self, other) if type(other) is str else self is other

    with pytest.raises(PoolTypeError, match=r"max_pool: .*(multiple values|twice)"):
        onnxpool.max_pool(X, 2, **{Name("strides"): 2, Name("strides"): 1})


def test_a_required_keyword():
    with pytest.raises(PoolTypeError, match="missing 1 required keyword-only argument: 'axes'"):
        onnxpool.min_pool(X, 2)


def test_calls_leave_no_references_behind():
    """After a call, arguments, names and results have as many references as after a Python call."""
    kernel, strides, name = [2, 2], (2, 1), "".join(("num_", "threads"))
    y = np.empty((2, 3, 4, 7), np.float32)

    def counts():
        return [sys.getrefcount(one) for one in (X, kernel, strides, name, y, None, onnxpool.max_pool)]

    def repeat():
        for _ in range(100):
            onnxpool.max_pool(X, kernel, strides=strides, out=y, **{name: 1})
            onnxpool.max_pool(X, kernel, strides=strides)
            with pytest.raises(PoolTypeError):
                onnxpool.max_pool(X, kernel, stride=strides)

    repeat()
    before = counts()
    repeat()
    assert [after - count for after, count in zip(counts(), before, strict=True)] == pytest.approx([0] * 7, abs=50)
