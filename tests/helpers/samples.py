"""Each operator once, with its smallest attributes, and inputs of any dtype and shape, for tests of all operators."""

from typing import Any

import numpy as np
from calls import QLINEAR
from numpy.typing import NDArray
from onnxpool_conformance.oracle import DTYPES, NHWC_MAX, QLINEAR_AVERAGE, QLINEAR_GLOBAL

import onnxpool

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": [2, 2]},
    "MaxPool": {"kernel_shape": [2, 2]},
    "LpPool": {"kernel_shape": [2, 2], "p": 3},
    "GlobalAveragePool": {},
    "GlobalMaxPool": {},
    "GlobalLpPool": {"p": 3},
    "MaxRoiPool": {"pooled_shape": [2, 2]},
    "MaxUnpool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "RoiAlign": {"output_height": 2, "output_width": 2},
    QLINEAR_AVERAGE: {"kernel_shape": [2, 2]},
    QLINEAR_GLOBAL: {},
    NHWC_MAX: {"kernel_shape": [2, 2]},
}
OPERATORS = tuple(ATTRIBUTES)
CONTRIBUTED = (*QLINEAR, NHWC_MAX)
SHAPE = (2, 3, 6, 6)


def domain_of(operator: str) -> str:
    """The domain of an operator."""
    return "com.microsoft" if operator in CONTRIBUTED else ""


def dtype_of(operator: str) -> str:
    """A dtype that every version of an operator accepts."""
    return "uint8" if operator in CONTRIBUTED else "float32"


def data(shape: tuple[int, ...], dtype: Any = "float32", seed: int = 0) -> NDArray[Any]:
    """Random values."""
    values = np.random.default_rng(seed).standard_normal(shape)
    if np.dtype(dtype).kind in "iu":
        values = (values * 40).astype(np.int64)  # unlike floats, int64 wraps around on every processor
    return values.astype(dtype)


def further(operator: str, x: Any) -> list[Any]:
    """The inputs of an operator after x."""
    scales = [np.float32(0.1), np.array(3, x.dtype), np.float32(0.02), np.array(4, x.dtype)]
    rows = np.array([[0, 0, 0, 3, 3], [len(x) > 1, 1, 1, 5, 4]] if x.ndim else []).reshape(-1, 5)
    by_operator: dict[str, list[Any]] = {
        QLINEAR_AVERAGE: scales,
        QLINEAR_GLOBAL: scales,
        "MaxRoiPool": [rows.astype(x.dtype)],
        "MaxUnpool": [np.arange(x.size).reshape(x.shape) * 4],
        "RoiAlign": [rows[:, 1:].astype(x.dtype), rows[:, 0].astype(np.int64)],
    }
    return by_operator.get(operator, [])


def inputs(operator: str, dtype: Any = None, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> list[Any]:
    """Random inputs of an operator."""
    x = data(shape, DTYPES.get(dtype or dtype_of(operator), dtype), seed)
    return [x, *further(operator, x)]


def build(operator: str, **changed: Any) -> Any:
    """An operator with its smallest attributes, except for those that are overridden."""
    return getattr(onnxpool, operator)(**{**ATTRIBUTES[operator], **changed})
