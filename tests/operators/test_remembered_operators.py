"""Functions cache the operators that they create, but never confuse two of them."""

import ast
import inspect

import numpy as np
import pytest

import onnxpool

pytestmark = pytest.mark.smoke

X = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)


@pytest.mark.parametrize("wrong", [2.0, (2.0, 2), (2, 2.0), (True, 2), [2, 2.0], [True, 2], np.float64(2), "2",
                                   (2, "2")])
def test_what_equals_a_good_argument_is_still_refused(wrong):
    """2.0 == 2 and True == 1, even inside a tuple; an earlier good call does not make them valid."""
    for good in (1, 2, (1, 2), (2, 2)):
        onnxpool.max_pool(X, good)
    with pytest.raises(onnxpool.errors.PoolTypeError):
        onnxpool.max_pool(X, wrong)


@pytest.mark.parametrize("shape", [2, (2, 2), [2, 2], np.array([2, 2]), np.int64(2), (np.int32(2), 2)])
def test_every_kind_of_good_argument_gives_the_same(shape):
    """Unhashable arguments include arrays, which cannot be cached."""
    for _ in range(2):
        assert np.array_equal(onnxpool.average_pool(X, shape), onnxpool.average_pool(X, (2, 2)))


def test_lists_are_remembered_as_tuples_are():
    """ONNX attributes are lists, so many callers have lists."""
    arguments = [2, 2], [1, 2], None, None, None, None, None, False, None, False, None
    assert onnxpool.base.made(onnxpool.MaxPool, *arguments) is onnxpool.base.made(onnxpool.MaxPool, *arguments)


def test_changed_arguments_are_seen():
    """A list that changes between calls is read again."""
    shape = [2, 2]
    onnxpool.max_pool(X, shape)
    shape[1] = 3
    assert onnxpool.max_pool(X, shape).shape == (1, 1, 5, 4)


@pytest.mark.parametrize("module", ["windowed", "whole", "quantised", "unpooling", "regions"])
def test_functions_hand_on_arguments_in_the_order_of_their_class(module):
    """Attributes are passed on by position: in another order, pads would become strides."""
    source = ast.parse(inspect.getsource(getattr(onnxpool.operators, module)))
    calls = [node for node in ast.walk(source) if isinstance(node, ast.Call) and ast.unparse(node.func) == "made"]
    assert calls
    for call in calls:
        cls, *given = map(ast.unparse, call.args)
        names = list(getattr(onnxpool, cls).__init__.__kwdefaults__)
        assert [name if value == "True" else value for name, value in zip(names, given, strict=True)] == names
