"""Kinds of attribute. Each knows its ONNX type, checks values, and describes the values it accepts."""

import math
import numbers
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .constants import MOST_AXES
from .errors import Place, PoolError, PoolTypeError

INT64_MAX = 2**63 - 1
FLOAT32_MAX = (2 - 2.0**-23) * 2.0**127
SIDES = {"kernel_shape": 1, "pooled_shape": 1, "strides": 1, "dilations": 1, "pads": 2}  # values per axis
MOST_SHOWN = 200  # characters of a value that messages quote


OTHERS = (bool, np.bool_, np.timedelta64)  # types that Python or NumPy count as integers


def is_integer(value: object) -> bool:
    """Whether a value is an integer other than a bool."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, OTHERS))


def is_real(value: Any) -> bool:
    """Whether a value is a real number, including NumPy scalars of other packages' dtypes, such as bfloat16."""
    if isinstance(value, OTHERS):
        return False
    return isinstance(value, numbers.Real) or (isinstance(value, np.generic) and value.dtype.isbuiltin == 2)


def scalar(value: Any) -> Any:
    """The element of an array without axes, and any other value as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def shown(value: object) -> str:
    """A value as quoted in messages, shortened if long."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        return f"an integer of more than {MOST_SHOWN} digits"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def integer(where: Place, value: Any, minimum: int) -> int:
    """A value as an int, if it is an integer in [minimum, 2^63 - 1]."""
    if type(value) is not int:  # most values are, and calls check them here
        value = scalar(value)
    if not is_integer(value):
        raise PoolTypeError(f"{where} must be an integer, got {shown(value)} of type {type(value).__name__}; "
                            f"pass an int of at least {minimum}", *where.names, value=value)
    if not minimum <= int(value) <= INT64_MAX:
        way = f"an int of at least {minimum}" if value < minimum else "a smaller int"
        raise PoolError(f"{where} must be in [{minimum}, 2^63 - 1], got {shown(value)}; pass {way}", *where.names,
                        value=value)
    return int(value)


def as_float(value: Any) -> float:
    """A real number as a float, or infinity, whatever its sign, if its magnitude exceeds all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def positive(where: Place, value: Any, limit: float, such: float) -> float:
    """A value as a float, if it is a real number above 0 and at most `limit`. Only float infinity is infinite."""
    value = scalar(value)
    way = f"pass a float above 0, such as {such}"
    if not is_real(value):
        raise PoolTypeError(f"{where} must be a float, got {shown(value)} of type {type(value).__name__}; {way}",
                            *where.names, value=value)
    number = as_float(value)
    if not isinstance(value, float) and value != math.inf:
        limit = min(limit, sys.float_info.max)
    if not 0 < number <= limit:
        most = f" and at most {limit:.8g}" if limit < math.inf else ""
        raise PoolError(f"{where} must be above 0{most}, got {shown(value)}; {way}", *where.names, value=value)
    return number


class Attribute:
    """A kind of attribute, with its ONNX type, its default, and whether it is required."""

    __slots__ = ("default", "required")
    type: ClassVar[str]
    default: Any
    required: bool

    def __init__(self, default: Any = None, required: bool = False) -> None:
        self.default = default
        self.required = required

    @property
    def implied(self) -> Any:
        """The value of an attribute that is left out."""
        return self.default

    def check(self, where: Place, value: Any) -> Any:
        """The value in the form that operators store. If it is not allowed, the error begins with `where`."""
        raise NotImplementedError(f"{type(self).__name__} has no check")


class Ints(Attribute):
    """One integer per spatial axis, or one for each side of the axis. A single integer applies to all of them."""

    __slots__ = ("minimum", "omitted")
    type = "ints"

    def __init__(self, minimum: int, required: bool = False, omitted: int | None = None) -> None:
        super().__init__(required=required)
        self.minimum = minimum
        self.omitted = omitted  # ONNX schemas describe defaults of sequences only in words

    @property
    def implied(self) -> int | None:
        """The value of an attribute that is left out."""
        return self.omitted

    def way(self, where: Place) -> str:
        """The end of an error message: what to pass instead of an invalid value."""
        each = ("one int for each spatial axis", "two ints for each spatial axis, all beginnings first")
        rest = "" if self.omitted is None else f", or leave {where.attribute} out"
        return f"pass {each[SIDES[where.attribute] - 1]}{rest}"

    def check(self, where: Place, value: Any) -> int | tuple[int, ...]:
        """The integers as an int or a tuple."""
        value = scalar(value)
        if is_integer(value):
            return integer(where, value, self.minimum)
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist() if value.dtype.kind in "iu" else tuple(value)
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise PoolTypeError(f"{where} must be an integer or a sequence of integers, got {shown(value)} of type "
                                f"{type(value).__name__}; {self.way(where)}", *where.names, value=value)
        if not value:
            raise PoolError(f"{where} is empty; {self.way(where)}", *where.names, value=value)
        if (count := count_of(value)) > 2 * MOST_AXES:
            raise PoolError(f"{where} has {count} values, but no array has more than {MOST_AXES} axes; "
                            f"{self.way(where)}", *where.names, value=value)
        return tuple(integer(where._replace(position=i), item, self.minimum) for i, item in enumerate(value))


def count_of(values: Sequence[Any]) -> int:
    """The number of values, at most 2^63 - 1 for ranges."""
    try:
        return len(values)
    except OverflowError:
        return sys.maxsize


class Axes(Ints):
    """Axes of an array. Negative numbers count from its end."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(minimum=-MOST_AXES)

    def way(self, where: Place) -> str:
        """The end of an error message: what to pass instead of an invalid value."""
        return "pass the number of each axis to pool"

    def check(self, where: Place, value: Any) -> tuple[int, ...]:
        """The axes as a tuple."""
        checked = super().check(where, value)
        return (checked,) if isinstance(checked, int) else checked


class Flag(Attribute):
    """One of a few integers, by default 0 and 1. A bool counts as 0 or 1."""

    __slots__ = ("values",)
    type = "int"

    def __init__(self, default: int = 0, values: tuple[int, ...] = (0, 1)) -> None:
        super().__init__(default)
        self.values = values

    def check(self, where: Place, value: Any) -> int:
        """The value as an int."""
        *others, last = self.values
        known = f"{', '.join(map(str, others))} or {last}"
        value = scalar(value)
        if not is_integer(value) and not isinstance(value, (bool, np.bool_)):
            raise PoolTypeError(f"{where} must be {known}, got {shown(value)} of type {type(value).__name__}; "
                                f"pass {known}", *where.names, value=value)
        if value not in self.values:
            raise PoolError(f"{where} must be {known}, got {shown(value)}; pass {known}", *where.names, value=value)
        return int(value)


class Int(Attribute):
    """An integer of at least `minimum`."""

    __slots__ = ("minimum",)
    type = "int"

    def __init__(self, default: int, minimum: int) -> None:
        super().__init__(default)
        self.minimum = minimum

    def check(self, where: Place, value: Any) -> int:
        """The value as an int."""
        return integer(where, value, self.minimum)


class Float(Attribute):
    """A float above 0. Infinity is allowed unless there is a limit."""

    __slots__ = ("limit",)
    type = "float"

    def __init__(self, default: float, limit: float = math.inf) -> None:
        super().__init__(default)
        self.limit = limit

    def check(self, where: Place, value: Any) -> float:
        """The value as a float."""
        return positive(where, value, self.limit, self.default)


class Choice(Attribute):
    """One of a few strings. If `blank`, the empty string means the first string."""

    __slots__ = ("blank", "values")
    type = "string"

    def __init__(self, *values: str, blank: bool = False) -> None:
        super().__init__(values[0])
        self.values = values
        self.blank = blank

    def check(self, where: Place, value: Any) -> str:
        """The value, with the empty string replaced."""
        if not isinstance(value, str):
            raise PoolTypeError(f"{where} must be a str, got {shown(value)} of type {type(value).__name__}; "
                                f"pass one of {', '.join(self.values)}", *where.names, value=value)
        if value not in self.values and not (self.blank and value == ""):
            raise PoolError(f"{where} must be one of {', '.join(self.values)}, got {shown(value)}; "
                            f"the names are case-sensitive", *where.names, value=value)
        return value or self.values[0]
