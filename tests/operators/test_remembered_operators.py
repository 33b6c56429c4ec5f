"""Functions cache the operators that they make, but never confuse two of them."""

import gc
import random
import sys

import numpy as np
import pytest

import onnxpool

pytestmark = pytest.mark.smoke

X = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)


@pytest.mark.parametrize("wrong", [2.0, (2.0, 2), (2, 2.0), (True, 2), [2, 2.0], [True, 2], np.float64(2), "2",
                                   (2, "2")])
def test_what_equals_a_good_argument_is_still_refused(wrong):
    """A valid call does not make equal but invalid arguments valid, such as 2.0 for 2 or True for 1, also inside a
    tuple."""
    for good in (1, 2, (1, 2), (2, 2)):
        onnxpool.max_pool(X, good)
    with pytest.raises(onnxpool.errors.PoolTypeError):
        onnxpool.max_pool(X, wrong)


@pytest.mark.parametrize("shape", [2, (2, 2), [2, 2], np.array([2, 2]), np.int64(2), (np.int32(2), 2)])
def test_every_kind_of_good_argument_gives_the_same(shape):
    """Every kind of valid argument gives the same result, even arrays, which cannot be cached."""
    for _ in range(2):
        assert np.array_equal(onnxpool.average_pool(X, shape), onnxpool.average_pool(X, (2, 2)))


def test_lists_are_remembered_as_tuples_are():
    """Lists are cached like tuples, because ONNX's attributes, and so many callers' arguments, are lists."""
    lists, tuples = {"kernel_shape": [2, 2], "strides": [1, 2]}, {"kernel_shape": (2, 2), "strides": (1, 2)}
    assert onnxpool.keys.made(onnxpool.MaxPool, **lists) is onnxpool.keys.made(onnxpool.MaxPool, **tuples)


def test_names_of_arguments_matter():
    """Equal values under other names make another operator."""
    made = onnxpool.keys.made
    assert made(onnxpool.MaxPool, kernel_shape=3, strides=2) == onnxpool.MaxPool(kernel_shape=3, strides=2)
    assert made(onnxpool.MaxPool, kernel_shape=3, dilations=2) == onnxpool.MaxPool(kernel_shape=3, dilations=2)
    assert made(onnxpool.MaxPool, strides=3, kernel_shape=2) == onnxpool.MaxPool(kernel_shape=2, strides=3)
    assert made(onnxpool.GlobalMaxPool) == onnxpool.GlobalMaxPool()
    for arguments in ((), (onnxpool.MaxPool, 2)):
        with pytest.raises(TypeError, match="positional argument"):
            made(*arguments, kernel_shape=2)


def test_changed_arguments_are_seen():
    """A list that changes between calls is read again."""
    shape = [2, 2]
    onnxpool.max_pool(X, shape)
    shape[1] = 3
    assert onnxpool.max_pool(X, shape).shape == (1, 1, 5, 4)


def outcome(make, arguments):
    """What makes the operator: the operator, or the error."""
    try:
        return make(onnxpool.MaxPool, **arguments)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


def test_functions_take_what_the_class_takes():
    """Any sequence of calls gives the same operators and errors as the class, although many arguments are equal."""
    draw = random.Random(7)
    good, bad = [1, 2, 1000], [True, 1.0, 2.0, np.int64(1), False, None, "1"]

    def item():
        return draw.choice(good if draw.random() < 0.8 else bad)

    def argument():
        kind = draw.choice([None, tuple, list, np.array])
        return item() if kind is None else kind([item() for _ in range(2)])

    found = [[argument() for _ in range(3)] for _ in range(150)]
    kept = 0
    for _ in range(6000):
        given = dict(zip(("kernel_shape", "strides", "dilations"), draw.choice(found), strict=True))
        made = outcome(onnxpool.keys.made, given)
        assert made == outcome(lambda cls, **arguments: cls(**arguments), given), given
        kept += isinstance(made, onnxpool.MaxPool)
    assert kept > 500


@pytest.mark.parametrize(("shape", "change"), [
    ([3], lambda shape: shape.append(3)),
    ([3], lambda shape: shape.__setitem__(0, 1)),
    (np.array([3]), lambda shape: shape.__setitem__(0, 1)),
])
def test_an_object_that_changes_is_another_argument(shape, change):
    made = onnxpool.keys.made
    for _ in range(3):
        assert made(onnxpool.MaxPool, kernel_shape=shape) == onnxpool.MaxPool(kernel_shape=shape)
        change(shape)


def test_cleared_caches_keep_no_operator():
    operator = onnxpool.keys.made(onnxpool.MaxPool, kernel_shape=(5, 7))
    onnxpool.clear_caches()
    gc.collect()
    other = onnxpool.MaxPool(kernel_shape=(5, 7))  # a variable and nothing else refers to it
    assert sys.getrefcount(operator) == sys.getrefcount(other)
