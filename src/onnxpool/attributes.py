"""Kinds of attribute: each checks a value, names its ONNX type and describes what it takes."""

import math
import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .errors import PoolError, PoolTypeError

INT64_MAX = 2**63 - 1


def is_integer(value: object) -> bool:
    """Whether a value is an integer, which a bool is not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def integer(where: str, value: Any, minimum: int) -> int:
    """A value as an int in [minimum, 2^63 - 1]."""
    if not is_integer(value):
        raise PoolTypeError(f"{where} must be an integer, got {value!r} of type {type(value).__name__}; "
                            f"give an int of at least {minimum}")
    if not minimum <= int(value) <= INT64_MAX:
        raise PoolError(f"{where} must be in [{minimum}, 2^63 - 1], got {value}; give an int of at least {minimum}")
    return int(value)


class Ints(NamedTuple):
    """One integer for each spatial axis, or for each of its `sides`; a single integer stands for all."""

    minimum: int
    required: bool = False
    sides: int = 1
    type = "ints"
    default = None

    def check(self, where: str, value: Any) -> int | tuple[int, ...]:
        """The integers as an int or a tuple."""
        if is_integer(value):
            return integer(where, value, self.minimum)
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = tuple(value)
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise PoolTypeError(f"{where} must be an integer or a sequence of integers, got {value!r} of type "
                                f"{type(value).__name__}; give one int for each spatial axis")
        if not value:
            raise PoolError(f"{where} is empty; give one int for each spatial axis")
        return tuple(integer(f"{where}[{i}]", item, self.minimum) for i, item in enumerate(value))


class Flag(NamedTuple):
    """0 or 1; the bools stand for them."""

    default: int = 0
    type = "int"
    required = False

    def check(self, where: str, value: Any) -> int:
        """The value as an int."""
        if not is_integer(value) and not isinstance(value, (bool, np.bool_)):
            raise PoolTypeError(f"{where} must be 0 or 1, got {value!r} of type {type(value).__name__}; give 0 or 1")
        if value not in (0, 1):
            raise PoolError(f"{where} must be 0 or 1, got {value}; give 0 or 1")
        return int(value)


class Int(NamedTuple):
    """An integer of at least `minimum`."""

    default: int
    minimum: int
    type = "int"
    required = False

    def check(self, where: str, value: Any) -> int:
        """The value as an int."""
        return integer(where, value, self.minimum)


class Float(NamedTuple):
    """A float above 0; infinity is one."""

    default: float
    type = "float"
    required = False

    def check(self, where: str, value: Any) -> float:
        """The value as a float."""
        if not isinstance(value, (float, np.floating)):
            raise PoolTypeError(f"{where} must be a float, got {value!r} of type {type(value).__name__}; "
                                f"give a float above 0, such as {self.default}")
        if math.isnan(value) or value <= 0:
            raise PoolError(f"{where} must be above 0, got {value}; give a float above 0, such as {self.default}")
        return float(value)


class Choice(NamedTuple):
    """One of a few strings; the empty string stands for the first."""

    values: tuple[str, ...]
    type = "string"
    required = False

    @property
    def default(self) -> str:
        """The first of the strings."""
        return self.values[0]

    def check(self, where: str, value: Any) -> str:
        """The value itself."""
        if not isinstance(value, str):
            raise PoolTypeError(f"{where} must be a str, got {value!r} of type {type(value).__name__}; "
                                f"give one of {', '.join(self.values)}")
        if value not in (*self.values, ""):
            raise PoolError(f"{where} must be one of {', '.join(self.values)}, got {value!r}; "
                            f"the names are case-sensitive")
        return value or self.default


Attribute = Ints | Flag | Int | Float | Choice
