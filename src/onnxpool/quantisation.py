"""The scales and zero points of quantised operators, checked, as the numbers a kernel takes."""

import math
from typing import Any

import numpy as np

from .attributes import is_integer
from .errors import PoolError, PoolTypeError

NAMES = ("x_scale", "x_zero_point", "y_scale", "y_zero_point")


def scalar(label: str, name: str, value: Any) -> np.ndarray[Any, Any]:
    """An input that holds one value."""
    if value is None:
        raise PoolError(f"{label}: {name} is not given; it is required")
    array = np.asarray(value)
    if array.shape not in ((), (1,)):
        raise PoolError(f"{label}: {name} must be a scalar, got shape {array.shape}; quantisation is per tensor")
    return array.reshape(())


def scale(label: str, name: str, value: Any) -> np.float32:
    """A scale: a float32, or a Python float that becomes one."""
    array = scalar(label, name, value)
    if array.dtype != np.float32 and not isinstance(value, float):
        raise PoolTypeError(f"{label}: {name} must be float32, got {array.dtype}; cast it")
    with np.errstate(over="ignore"):
        number = np.float32(array)
    if not (math.isfinite(number) and number > 0):
        raise PoolError(f"{label}: {name} must be finite and above 0, got {number}; give the scale of the tensor")
    return number


def zero_point(label: str, name: str, value: Any, dtype: np.dtype[Any]) -> int:
    """A zero point: of the data's dtype, or a Python int in its range."""
    array = scalar(label, name, value)
    limits = np.iinfo(dtype)
    if is_integer(value) and not isinstance(value, np.generic):
        if not limits.min <= value <= limits.max:
            raise PoolError(f"{label}: {name}={value} is outside {dtype} [{limits.min}, {limits.max}]; "
                            f"give a value of that range")
    elif array.dtype != dtype:
        raise PoolTypeError(f"{label}: {name} has dtype {array.dtype}, but X has {dtype}; give both the same dtype")
    return int(array)


def parameters(label: str, dtype: np.dtype[Any], taps: int,
               inputs: tuple[Any, ...]) -> tuple[int, float, float, float, int]:
    """
    What a quantised mean of `taps` values takes: bias, scale, lowest, highest and zero point of y.

    The steps in float32, and their order, are those of onnxruntime's QLinearGlobalAveragePool.
    """
    if len(inputs) != len(NAMES):
        raise PoolError(f"{label}: takes X, {', '.join(NAMES)}, got {1 + len(inputs)} inputs; give all five")
    x_scale, y_scale = (scale(label, NAMES[i], inputs[i]) for i in (0, 2))
    x_zero, y_zero = (zero_point(label, NAMES[i], inputs[i], dtype) for i in (1, 3))
    with np.errstate(all="ignore"):
        ratio = np.float32(x_scale / np.float32(y_scale * np.float32(taps)))
    if not (math.isfinite(ratio) and ratio > 0):
        raise PoolError(f"{label}: x_scale={x_scale} over y_scale={y_scale} times {taps} taps is {ratio} in float32, "
                        f"but must be finite and above 0; give scales that are closer together")
    limits = np.iinfo(dtype)
    return x_zero * taps, float(ratio), float(limits.min - y_zero), float(limits.max - y_zero), y_zero
