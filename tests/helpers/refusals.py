"""Attributes that are refused, with the words of the refusal, for tests of texts and of fields of errors."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from support import BYTES, FLOATS

import onnxpool
from onnxpool import PoolError, PoolTypeError

WINDOWED = {"AveragePool": FLOATS, "LpPool": FLOATS, "MaxPool": [*FLOATS, *BYTES]}
GLOBAL = {"GlobalAveragePool": FLOATS, "GlobalLpPool": FLOATS, "GlobalMaxPool": FLOATS}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AveragePool": onnxpool.average_pool,
    "GlobalAveragePool": onnxpool.global_average_pool,
    "GlobalLpPool": onnxpool.global_lp_pool,
    "GlobalMaxPool": onnxpool.global_max_pool,
    "LpPool": onnxpool.lp_pool,
    "MaxPool": onnxpool.max_pool,
}
MOST = 2**63 - 1
LEAST = -(2**63)


def board(dtype: Any = np.float32, shape: tuple[int, ...] = (1, 1, 8, 8)) -> NDArray[Any]:
    """0, 1, 2, ... below 97, as the tables below assume."""
    return (np.arange(np.prod(shape)) % 97).reshape(shape).astype(dtype)


class Bad(NamedTuple):
    """Attributes on the 8x8 board, and what the refusal says."""

    name: str
    attributes: dict[str, Any]
    words: tuple[str, ...]
    axis: int | None = None  # the spatial axis that the text names
    error: type[Exception] = PoolError
    operators: tuple[str, ...] = tuple(WINDOWED)


TOO_BIG = 2**70
BAD_GEOMETRY = [
    Bad("stride_zero", {"strides": [0, 0]}, ("strides[0]", "0", "1")),
    Bad("stride_negative", {"strides": [1, -1]}, ("strides[1]", "-1", "1")),
    Bad("stride_least", {"strides": [LEAST, 1]}, ("strides[0]", str(LEAST), "1")),
    Bad("kernel_zero", {"kernel_shape": [2, 0]}, ("kernel_shape[1]", "0", "1")),
    Bad("kernel_negative", {"kernel_shape": [-1, 2]}, ("kernel_shape[0]", "-1", "1")),
    Bad("kernel_empty", {"kernel_shape": []}, ("kernel_shape",)),
    Bad("kernel_missing", {"kernel_shape": None}, ("kernel_shape",)),
    Bad("kernel_most", {"kernel_shape": [MOST, MOST]}, (str(MOST), "8"), axis=0),
    Bad("kernel_beyond_64_bits", {"kernel_shape": [TOO_BIG, 2]}, ("kernel_shape[0]", str(TOO_BIG))),
    Bad("kernel_larger_than_input", {"kernel_shape": [2, 9]}, ("kernel_shape[1]", "9", "8", "pads"), axis=1),
    Bad("kernel_larger_stride_2", {"kernel_shape": [9, 9], "strides": 2}, ("kernel_shape[0]", "9", "8"), axis=0),
    Bad("kernel_larger_valid", {"kernel_shape": [9, 2], "auto_pad": "VALID"}, ("kernel_shape[0]", "9", "8"), axis=0),
    Bad("kernel_larger_padded", {"kernel_shape": [2, 12], "pads": [0, 2, 0, 1]}, ("12", "8", "2", "1"), axis=1),
    Bad("dilation_zero", {"dilations": [0, 1]}, ("dilations[0]", "0", "1")),
    Bad("dilation_negative", {"dilations": [1, -1]}, ("dilations[1]", "-1", "1")),
    Bad("dilation_overflows", {"kernel_shape": [3, 3], "dilations": [2**62, 1]}, (str(2**62), "3"), axis=0),
    Bad("dilated_kernel_larger", {"dilations": [9, 1], "kernel_shape": [2, 1]}, ("9", "10", "8"), axis=0),
    Bad("pad_negative", {"pads": [0, 0, -1, 0]}, ("pads[2]", "-1", "0")),
    Bad("pad_huge", {"pads": [2**62] * 4}, ("pads", str(2**62))),
    Bad("pad_most", {"pads": [0, MOST, 0, MOST]}, (str(MOST),)),
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
    Bad("count_include_pad_7", {"count_include_pad": 7}, ("count_include_pad", "7"), operators=("AveragePool",)),
    Bad("storage_order_5", {"storage_order": 5}, ("storage_order", "5"), operators=("MaxPool",)),
    Bad("channels_last_2", {"channels_last": 2}, ("channels_last", "2")),
    *(Bad(f"p_{bad}", {"p": bad}, ("p", str(bad)), operators=("LpPool",)) for bad in (0, -1, LEAST, TOO_BIG)),
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
    **dict.fromkeys(("kernel_shape", "strides", "dilations", "pads"), (NOT_INTS, tuple(WINDOWED))),
    "auto_pad": (NOT_NAMES, tuple(WINDOWED)),
    "ceil_mode": (NOT_FLAGS, tuple(WINDOWED)),
    "channels_last": ({"text": "yes"}, tuple(WINDOWED)),
    "count_include_pad": (NOT_FLAGS, ("AveragePool",)),
    "storage_order": (NOT_FLAGS, ("MaxPool",)),
    "p": (NOT_FLAGS, ("LpPool",)),
}
BAD_KINDS = [
    Bad(f"{name}_{kind}", {name: value}, (name,), error=PoolTypeError, operators=operators)
    for name, (values, operators) in KINDS.items()
    for kind, value in values.items()
]


def applied(cases: list[Bad]) -> list[Any]:
    return [pytest.param(case, name, id=f"{name}-{case.name}") for case in cases for name in case.operators]
