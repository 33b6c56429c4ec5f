"""Quantisation: checks scales and zero points, and turns them into the parameters of a kernel."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..arrays import as_array
from ..attributes import as_float, is_integer, is_real
from ..dtypes import BYTES
from ..errors import PoolError, PoolTypeError

NAMES = ("x_scale", "x_zero_point", "y_scale", "y_zero_point")
LIMITS = {np.dtype(name): np.iinfo(name) for name in BYTES}
MOST_TAPS = 2**55  # maximum elements of a channel, so that its sum and bias fit in 64 bits


def scalar(label: str, name: str, value: Any) -> np.ndarray[Any, Any]:
    """An input that must hold a single value."""
    if value is None:
        raise PoolError(f"{label}: {name} is not given; it is required", label, name)
    array = as_array(label, value, name)
    if array.shape not in ((), (1,)):
        raise PoolError(f"{label}: {name} must be a scalar, got shape {array.shape}; quantisation is per tensor",
                        label, name, value=array.shape)
    return array.reshape(())


def scale(label: str, name: str, value: Any) -> np.float32:
    """A scale: a float32, or a Python number that is rounded to float32."""
    if is_real(value) and not isinstance(value, np.generic):
        value = as_float(value)
    if type(value) is np.float32:
        number = value
    else:
        array = scalar(label, name, value)
        if array.dtype.newbyteorder("=") != np.float32 and not isinstance(value, float):
            raise PoolTypeError(f"{label}: {name} must be float32, got {array.dtype}; cast it", label, name,
                                value=array.dtype.name)
        with np.errstate(over="ignore"):
            number = np.float32(array)
    if not 0 < float(number) < math.inf:
        raise PoolError(f"{label}: {name} must be finite and above 0, got {number}; pass the scale of the tensor",
                        label, name, value=float(number))
    return number


def zero_point(label: str, name: str, value: Any, dtype: np.dtype[Any]) -> int:
    """A zero point: a value of the data's dtype, or a Python int within its range."""
    array = scalar(label, name, value)
    if array.dtype != dtype:
        if not is_integer(value) or isinstance(value, np.generic):
            raise PoolTypeError(f"{label}: {name} has dtype {array.dtype}, but X has {dtype}; pass both the same dtype",
                                label, name, value=array.dtype.name)
        limits = LIMITS[dtype]
        if not limits.min <= value <= limits.max:
            raise PoolError(f"{label}: {name}={value} is outside {dtype} [{limits.min}, {limits.max}]; "
                            f"pass a value of that range", label, name, value=value)
    return int(array)


@lru_cache(maxsize=256)
def ratio_of(x_scale: np.float32, y_scale: np.float32, taps: int) -> np.float32:
    """The factor that turns an integer sum into steps of y, in float32 and in onnxruntime's order of operations."""
    with np.errstate(all="ignore"):
        return np.float32(x_scale / np.float32(y_scale * np.float32(taps)))


class Scales(NamedTuple):
    """The rule by which a kernel turns a sum into a byte."""

    bias: int  # the zero point of x, times the number of taps if integers are summed
    scale: float  # the value of one unit of the sum
    y_scale: float
    lowest: float  # value of y, minus its zero point if integers are summed
    highest: float
    zero: int  # the zero point of y


class Quantisation(NamedTuple):
    """The scales and zero points of x and y, and the range of their dtype."""

    x_scale: np.float32
    x_zero: int
    y_scale: np.float32
    y_zero: int
    low: int
    high: int

    def whole(self, label: str, taps: int) -> Scales:
        """The rule for means of whole channels, by integer sums as in onnxruntime's QLinearGlobalAveragePool."""
        if taps > MOST_TAPS:
            raise PoolError(f"{label}: X has {taps} elements in each channel, but at most 2^55 are accepted, so that "
                            f"their sum fits in 64 bits; pool parts of it", label, "X", value=taps)
        ratio = ratio_of(self.x_scale, self.y_scale, taps)
        if not 0 < float(ratio) < math.inf:
            raise PoolError(f"{label}: x_scale={self.x_scale} over y_scale={self.y_scale} times {taps} taps is {ratio} "
                            f"in float32, but must be finite and above 0; pass scales that are closer together",
                            label, "x_scale", value=float(self.x_scale))
        return Scales(bias=self.x_zero * taps, scale=float(ratio), y_scale=1.0, lowest=float(self.low - self.y_zero),
                    highest=float(self.high - self.y_zero), zero=self.y_zero)

    def in_order(self) -> Scales:
        """The rule for means of windows, by float32 sums as in onnxruntime's QLinearAveragePool."""
        return Scales(bias=self.x_zero, scale=float(self.x_scale), y_scale=float(self.y_scale), lowest=float(self.low),
                    highest=float(self.high), zero=self.y_zero)


def maker(label: str, dtype: np.dtype[Any], optional: bool, in_order: bool,
          inputs: tuple[Any, ...]) -> Callable[[int], Scales]:
    """A function that makes a rule from a window's number of taps, for these inputs after X. Windows that are added in
    order all have the same rule."""
    given = read(label, dtype, inputs, optional)
    if in_order:
        rule = given.in_order()
        return lambda taps: rule
    return partial(given.whole, label)


def read(label: str, dtype: np.dtype[Any], inputs: tuple[Any, ...], optional: bool) -> Quantisation:
    """Read the inputs after X. If zero points are `optional`, a missing one is 0."""
    if optional and len(inputs) == len(NAMES) - 1:
        inputs = (*inputs, None)
    if len(inputs) != len(NAMES):
        raise PoolError(f"{label}: takes X, {', '.join(NAMES)}, got {1 + len(inputs)} inputs; pass all of them", label,
                        value=1 + len(inputs))
    scales = [scale(label, NAMES[i], inputs[i]) for i in (0, 2)]
    zeros = [0 if optional and inputs[i] is None else zero_point(label, NAMES[i], inputs[i], dtype) for i in (1, 3)]
    limits = LIMITS[dtype]
    return Quantisation(x_scale=scales[0], x_zero=zeros[0], y_scale=scales[1], y_zero=zeros[1], low=int(limits.min),
                        high=int(limits.max))
