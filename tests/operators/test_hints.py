"""Errors about calls in the style of other libraries say what to pass instead."""

import inspect
import re
from typing import Any

import numpy as np
import pytest
from samples import OPERATORS, build

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

X = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)


@pytest.mark.parametrize(("given", "wanted"), [
    ("stride", "strides"), ("padding", "pads"), ("dilation", "dilations"), ("strids", "strides"),
    ("kernel_size", "kernel_shape"), ("ceil", "ceil_mode"), ("threads", "num_threads"), ("axis", "axes"),
])
def test_names_of_other_libraries(given: str, wanted: str) -> None:
    """A name from another library leads to the ONNX name."""
    with pytest.raises(PoolTypeError, match=rf"^max_pool: there is no argument {given}; pass {wanted}$") as caught:
        onnxpool.max_pool(X, 2, **{given: 2})  # type: ignore[call-overload]
    assert (caught.value.operator, caught.value.attribute, caught.value.value) == ("max_pool", given, 2)
    if wanted != "num_threads":
        with pytest.raises(PoolTypeError, match=rf"^MaxPool: there is no argument {given}; pass {wanted}$"):
            onnxpool.MaxPool(**{given: 2})  # type: ignore[arg-type]


def test_a_name_like_none() -> None:
    """For a name that resembles no parameter, the error lists all parameters."""
    with pytest.raises(PoolTypeError, match=r"^global_max_pool: there is no argument colour; it takes x, opset"):
        onnxpool.global_max_pool(X, colour=1)  # type: ignore[call-overload]


def test_attributes_by_position() -> None:
    """The error for attributes by position lists the parameters that must be passed by name."""
    with pytest.raises(PoolTypeError, match=r"^max_pool: takes 2 arguments by position, got 3; name the others: str"):
        onnxpool.max_pool(X, 2, 2)  # type: ignore[call-overload]
    with pytest.raises(PoolTypeError, match=r"^MaxPool: takes 1 arguments by position, got 2; name the others: str"):
        onnxpool.MaxPool(2, 2)  # type: ignore[misc]
    with pytest.raises(PoolTypeError, match=r"^GlobalMaxPool: takes 0 arguments by position, got 1; name the others"):
        onnxpool.GlobalMaxPool(2)  # type: ignore[misc]


@pytest.mark.parametrize(("name", "attribute"), [
    ("AveragePool", "kernel_shape"), ("MaxPool", "kernel_shape"), ("MinPool", "kernel_shape"),
    ("LpPool", "kernel_shape"), ("NhwcMaxPool", "kernel_shape"), ("QLinearAveragePool", "kernel_shape"),
    ("MaxUnpool", "kernel_shape"), ("MaxRoiPool", "pooled_shape"),
])
def test_objects_take_the_attribute_by_position_that_functions_do(name: str, attribute: str) -> None:
    """Objects take the same attribute by position as functions do: it is their first, optional parameter."""
    cls = getattr(onnxpool, name)
    more = {"axes": (2, 3)} if name == "MinPool" else {}
    assert cls(2, **more) == cls(**{attribute: 2}, **more)
    assert repr(cls(2, **more)) == repr(cls(**{attribute: 2}, **more))
    assert next(iter(inspect.signature(cls).parameters)) == attribute
    with pytest.raises(PoolTypeError, match=f"{name}: got multiple values for argument '{attribute}'"):
        cls(2, **{attribute: 2}, **more)


def test_an_argument_that_is_missing() -> None:
    """The message about a missing argument is Python's own, followed by the available parameters."""
    with pytest.raises(PoolTypeError, match=r"^max_pool: missing 1 required positional argument: 'kernel_shape'; it"):
        onnxpool.max_pool(X)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", OPERATORS)
def test_every_function_and_class_has_hints(name: str) -> None:
    """Signatures stay as written, and errors raised in the body of a call are unchanged."""
    cls = getattr(onnxpool, name)
    function = next(f for f in (getattr(onnxpool, f) for f in dir(onnxpool)) if inspect.isroutine(f)
                    and f.__name__.replace("_", "") == name.lower())
    for call in (function, cls):
        assert "given" not in inspect.signature(call).parameters
        with pytest.raises(PoolTypeError, match="there is no argument nonsense"):
            call(nonsense=1)


def test_errors_of_a_body_are_left_alone() -> None:
    """Only errors about parameters that a function does not take are rewritten."""

    class Strange:
        def __array__(self, *arguments: Any, **named: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        onnxpool.max_pool(Strange(), 2)  # type: ignore[call-overload]
    with pytest.raises(PoolError, match="strides"):
        onnxpool.max_pool(X, 2, strides=0)


@pytest.mark.parametrize("name", OPERATORS)
def test_only_what_was_given_is_shown(name: str) -> None:
    """Only arguments that were passed are shown, with the opset, which decides their meaning."""
    operator = build(name)
    shown = set(re.findall(r"(\w+)=", repr(operator)))
    assert shown == {"opset", *operator.attributes, *(["channels_last"] if operator.channels_last else [])}
    assert "channels_last=True" in repr(onnxpool.GlobalMaxPool(channels_last=True))


def test_bits_of_bfloat16() -> None:
    """The error about uint16 suggests a view as bfloat16, which libraries without this dtype store as uint16."""
    with pytest.raises(PoolTypeError, match=r"; if these are the bits of bfloat16, pass x\.view\("):
        onnxpool.max_pool(X.astype(np.uint16), 2)
    with pytest.raises(PoolTypeError, match="represents every uint16 exactly, or name"):
        onnxpool.max_pool(X.astype(np.uint16), 2, opset=12)
