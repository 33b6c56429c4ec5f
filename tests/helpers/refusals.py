"""Attributes that are refused, with the words of the error, for tests of error messages and of the fields of errors."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from calls import FUNCTIONS, UNPOOL
from numpy.typing import NDArray
from onnxpool_conformance.oracle import DTYPES as BY_NAME
from onnxpool_conformance.oracle import NHWC_MAX, QLINEAR_AVERAGE
from samples import further

import onnxpool
from onnxpool import PoolError, PoolTypeError

SLIDING = ("AveragePool", "LpPool", "MaxPool", QLINEAR_AVERAGE, NHWC_MAX)
WINDOWED = (*SLIDING, UNPOOL)
NEWEST = {row["operator"]: row for row in onnxpool.supported() if row["operator"] in WINDOWED}
CANARY = 77
MOST = 2**63 - 1
LEAST = -(2**63)


def board(dtype: Any = np.float32, shape: tuple[int, ...] = (1, 1, 8, 8)) -> NDArray[Any]:
    """0, 1, 2, ... modulo 97, as the tables below assume."""
    return (np.arange(np.prod(shape)) % 97).reshape(shape).astype(dtype)


def says(error: object, operator: str, words: tuple[str, ...]) -> None:
    """The message starts with operator and version, contains the words and whole numbers, and suggests a correction."""
    text = str(error)
    assert re.match(rf"{operator}-\d+: ", text), text
    body = text.partition(": ")[2]
    for word in words:
        # An index is not a value: "strides[0]" does not mention the number 0.
        place = body if "[" in word else re.sub(r"\[\d+\]", "", body)
        assert re.search(rf"(?<![\w.-]){re.escape(word)}(?!\w|\.\d)", place), f"{word!r} is missing in {text!r}"
    assert body.partition("; ")[2].strip(), f"no correction after a semicolon in {text!r}"


def refused(call: Callable[..., Any], error: type[Exception], dtype: Any, shape: tuple[int, ...]) -> Any:
    """The error of a call that is refused, made without `out` and with an `out` that must stay unchanged."""
    with pytest.raises(error) as caught:
        call()
    out = np.full(shape, CANARY, dtype)
    with pytest.raises(error):
        call(out=out)
    assert (out == np.asarray(CANARY, dtype)).all()
    return caught.value


class Bad(NamedTuple):
    """Attributes on the 8x8 board, and words of the error."""

    name: str
    attributes: dict[str, Any]
    words: tuple[str, ...]
    axis: int | None = None  # the spatial axis that the message names
    error: type[Exception] = PoolError
    operators: tuple[str, ...] = WINDOWED  # of these, the ones that have the attributes are tested


TOO_BIG = 2**70
BAD_GEOMETRY = [
    Bad("stride_zero", {"strides": [0, 0]}, ("strides[0]", "0", "1")),
    Bad("stride_negative", {"strides": [1, -1]}, ("strides[1]", "-1", "1")),
    Bad("stride_least", {"strides": [LEAST, 1]}, ("strides[0]", str(LEAST), "1")),
    Bad("stride_beyond_64_bits", {"strides": [1, TOO_BIG]}, ("strides[1]", str(TOO_BIG))),
    Bad("kernel_zero", {"kernel_shape": [2, 0]}, ("kernel_shape[1]", "0", "1")),
    Bad("kernel_negative", {"kernel_shape": [-1, 2]}, ("kernel_shape[0]", "-1", "1")),
    Bad("kernel_empty", {"kernel_shape": []}, ("kernel_shape",)),
    Bad("kernel_missing", {"kernel_shape": None}, ("kernel_shape",)),
    Bad("kernel_most", {"kernel_shape": [MOST, MOST]}, (str(MOST), "8"), axis=0),
    Bad("kernel_beyond_64_bits", {"kernel_shape": [TOO_BIG, 2]}, ("kernel_shape[0]", str(TOO_BIG))),
    Bad("kernel_larger_than_input", {"kernel_shape": [2, 9]}, ("kernel_shape[1]", "9", "8", "pads"), axis=1),
    Bad("kernel_larger_stride_2", {"kernel_shape": [9, 9], "strides": 2}, ("kernel_shape[0]", "9", "8"), axis=0),
    Bad("kernel_larger_valid", {"kernel_shape": [9, 2], "auto_pad": "VALID"}, ("kernel_shape[0]", "9", "8"), axis=0),
    Bad("kernel_larger_ceil_mode", {"kernel_shape": [2, 9], "ceil_mode": 1},
        ("kernel_shape[1]", "9", "8", "ceil_mode", "strides[1]", "1", "pads"), axis=1),
    Bad("kernel_larger_ceil_mode_by_a_stride", {"kernel_shape": [11, 2], "strides": 3, "ceil_mode": 1},
        ("kernel_shape[0]", "11", "8", "ceil_mode", "strides[0]", "3"), axis=0),
    Bad("kernel_larger_ceil_mode_valid", {"kernel_shape": [9, 2], "auto_pad": "VALID", "ceil_mode": 1},
        ("kernel_shape[0]", "9", "8", "ceil_mode", "NOTSET"), axis=0),
    Bad("pads_empty", {"pads": []}, ("pads", "two")),
    Bad("strides_empty", {"strides": []}, ("strides", "one")),
    Bad("dilations_empty", {"dilations": ()}, ("dilations", "one")),
    Bad("kernel_larger_padded", {"kernel_shape": [2, 12], "pads": [0, 2, 0, 1]}, ("12", "8", "2", "1"), axis=1),
    Bad("dilation_zero", {"dilations": [0, 1]}, ("dilations[0]", "0", "1")),
    Bad("dilation_negative", {"dilations": [1, -1]}, ("dilations[1]", "-1", "1")),
    Bad("dilation_beyond_64_bits", {"dilations": [TOO_BIG, 1]}, ("dilations[0]", str(TOO_BIG))),
    Bad("dilation_overflows", {"kernel_shape": [3, 3], "dilations": [2**62, 1]}, (str(2**62), "3"), axis=0),
    Bad("same_pads_overflow", {"kernel_shape": [2**60, 1], "dilations": [2**31, 1], "auto_pad": "SAME_UPPER"},
        ("kernel_shape[0]", str(2**60), str(2**31), "SAME_UPPER", str(MOST)), axis=0),
    Bad("dilated_kernel_larger", {"dilations": [9, 1], "kernel_shape": [2, 1]}, ("9", "10", "8"), axis=0),
    Bad("pad_negative", {"pads": [0, 0, -1, 0]}, ("pads[2]", "-1", "0")),
    Bad("pad_huge", {"pads": [2**62] * 4}, ("pads", str(2**62)), operators=SLIDING),
    Bad("pad_most", {"pads": [0, MOST, 0, MOST]}, (str(MOST),), operators=SLIDING),
    Bad("pad_beyond_64_bits", {"pads": [0, 0, 0, TOO_BIG]}, ("pads[3]", str(TOO_BIG))),
    Bad("pads_3", {"pads": [1, 1, 1]}, ("pads", "3", "4")),
    Bad("strides_1", {"strides": [1]}, ("strides", "1", "2")),
    Bad("dilations_3", {"dilations": [1, 1, 1]}, ("dilations", "3", "2")),
    Bad("kernel_of_one_axis", {"kernel_shape": [2]}, ("kernel_shape", "1", "2")),
    Bad("kernel_of_three_axes", {"kernel_shape": [2, 2, 2]}, ("kernel_shape", "3", "2")),
    Bad("auto_pad_unknown", {"auto_pad": "BOGUS"}, ("auto_pad", "BOGUS", "SAME_UPPER")),
    Bad("auto_pad_lower_case", {"auto_pad": "same_upper"}, ("auto_pad", "same_upper", "SAME_UPPER")),
    Bad("same_with_pads", {"auto_pad": "SAME_UPPER", "pads": [1, 1, 1, 1]}, ("auto_pad", "SAME_UPPER", "pads")),
    Bad("valid_with_pads", {"auto_pad": "VALID", "pads": [0, 0, 0, 1]}, ("auto_pad", "VALID", "pads")),
    *(Bad(f"ceil_mode_{bad}", {"ceil_mode": bad}, ("ceil_mode", str(bad), "0", "1")) for bad in (2, -1, TOO_BIG)),
    Bad("count_include_pad_7", {"count_include_pad": 7}, ("count_include_pad", "7")),
    Bad("storage_order_5", {"storage_order": 5}, ("storage_order", "5")),
    Bad("channels_last_2", {"channels_last": 2}, ("channels_last", "2")),
    *(Bad(f"p_{bad}", {"p": bad}, ("p", str(bad))) for bad in (0, -1, LEAST, TOO_BIG)),
]

NOT_INTS: dict[str, Any] = {
    "float": 2.5,
    "whole_float": 2.0,
    "text": "2",
    "bool": True,
    "float_in_list": [2, 2.5],
    "text_in_list": ["2", 2],
    "bool_in_list": [True, 2],
    "none_in_list": [2, None],
    "nested": [[2, 2]],
    "nested_array": np.array([[2, 2]]),
    "float_array": np.array([2.0, 2.0]),
    "bool_array": np.array([True, True]),
    "dict": {2: 2},
}
NOT_FLAGS: dict[str, Any] = {"half": 0.5, "whole_float": 1.0, "text": "1", "list": [1], "nan": float("nan")}
NOT_NAMES: dict[str, Any] = {"bytes": b"SAME_UPPER", "number": 1, "list": ["VALID"], "bool": False}
KINDS = {
    **dict.fromkeys(("kernel_shape", "strides", "dilations", "pads"), NOT_INTS),
    "auto_pad": NOT_NAMES,
    **dict.fromkeys(("ceil_mode", "count_include_pad", "storage_order", "p"), NOT_FLAGS),
    "channels_last": {"text": "yes"},
}
BAD_KINDS = [
    Bad(f"{name}_{kind}", {name: value}, (name,), error=PoolTypeError)
    for name, values in KINDS.items() for kind, value in values.items()
]


BAD = [pytest.param(case, id=case.name) for case in BAD_GEOMETRY + BAD_KINDS]


def operators_of(case: Bad) -> list[str]:
    """Each operator that has a case's attributes. Unpooling is left out where the length of an axis is the reason."""
    return [
        name for name in case.operators
        if set(case.attributes) - {"channels_last"} <= set(NEWEST[name]["attributes"])
        and not (name == NHWC_MAX and "channels_last" in case.attributes)
        and not (name == UNPOOL and case.axis is not None)
    ]


def dtypes_of(operator: str) -> list[Any]:
    """The dtypes that the newest version of an operator accepts."""
    return [BY_NAME[name] for name in NEWEST[operator]["dtypes"]]


def layouts_of(operator: str) -> tuple[bool, ...]:
    """Channels first and last, if an operator has both."""
    return (True,) if operator == NHWC_MAX else (False, True)


def spoilt(operator: str, x: NDArray[Any], last: bool, attributes: dict[str, Any]) -> Callable[..., Any]:
    """A call by name with attributes that may be bad, on channels-last data if `last`."""
    layout = {} if operator == NHWC_MAX else {"channels_last": last}
    given = {"kernel_shape": [2, 2], **layout, **attributes}
    kernel = given.pop("kernel_shape")
    others = [np.zeros(x.shape, np.int64)] if operator == UNPOOL else further(operator, x)
    return partial(getattr(onnxpool, FUNCTIONS[operator]), x, *others, kernel, **given)
