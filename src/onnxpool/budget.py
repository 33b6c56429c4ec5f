"""Limits on the work of calls and the size of their results, for untrusted attributes and data."""

import math
import os
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from .attributes import INT64_MAX, integer
from .errors import Place, PoolError
from .kernels import pools
from .scopes import Scope, Stack


class Limits(NamedTuple):
    """Limits on a call. They are infinite by default."""

    max_output_bytes: float = math.inf
    max_work: float = math.inf

    def and_(self, other: "Limits") -> "Limits":
        """The tighter of the two values for each limit."""
        return Limits(min(self.max_output_bytes, other.max_output_bytes), min(self.max_work, other.max_work))


class Need(NamedTuple):
    """The needs of a call: the bytes of its results, and its work."""

    output_bytes: int
    work: int


NO_LIMITS = Limits()
HINT = {
    "max_output_bytes": "compute the result in parts, for example with plan.tiles(), or raise the limit",
    "max_work": "use fewer or smaller windows, compute the result in parts, or raise the limit",
}

_scoped: Stack[Limits] = Stack("onnxpool.limits")
_lifted: Stack[bool] = Stack("onnxpool.limits.lifted")
_known = False  # whether any limit was ever set


def _checked(max_output_bytes: int | None, max_work: int | None) -> Limits:
    """Check limits that a caller passed. From the first limit on, calls check limits."""
    global _known
    given = zip(Limits._fields, (max_output_bytes, max_work), strict=True)
    limits = Limits(*[math.inf if value is None else integer(Place(None, name), value, 1) for name, value in given])
    if limits != NO_LIMITS and not _known:
        _known = True
        pools.limit_calls()
    return limits


def _from_environment() -> Limits:
    """The limits set by environment variables. Invalid values are refused, not ignored: somebody wanted a limit."""
    values = []
    for name in Limits._fields:
        variable = f"ONNXPOOL_{name.upper()}"
        text = os.environ.get(variable, "").strip()
        digits = text.lstrip("0")[:20]  # Python refuses to convert thousands of digits
        if text and not (text.isascii() and text.isdigit() and 0 < int(digits or 0) <= INT64_MAX):
            raise ImportError(f"{variable}={text!r} is not a limit; set it to a whole number in [1, 2^63 - 1], or "
                              f"unset {variable}")
        values.append(int(digits) if text else None)
    return _checked(*values)


_environment = _from_environment()
_process = _environment  # the limits of the environment and of `set_limits`


def set_limits(*, max_output_bytes: int | None = None, max_work: int | None = None) -> None:
    """
    Set the limits on every call of the process, for untrusted attributes and data.

    `limits` describes the limits. A call replaces the limits that an earlier call of this function set.

    Parameters
    ----------
    max_output_bytes : int, optional
        Maximum size of the results of a call in bytes. None, the default, sets no limit.
    max_work : int, optional
        Maximum work of a call. None, the default, sets no limit.

    Raises
    ------
    PoolError, PoolTypeError
        If a limit is not an integer of at least 1.

    See Also
    --------
    limits : Sets limits for a block.
    config : Returns the limits in force.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.set_limits(max_output_bytes=2**30)
    >>> onnxpool.config()["max_output_bytes"]
    1073741824
    >>> onnxpool.set_limits()
    """
    global _process
    _process = _environment.and_(_checked(max_output_bytes, max_work))


def limits(*, max_output_bytes: int | None = None, max_work: int | None = None) -> AbstractContextManager[None]:
    """
    Limit the calls within a ``with`` block of this thread or task, for untrusted attributes and data.

    A call that would exceed a limit raises `PoolError` before it allocates or writes anything. The limits of enclosing
    blocks, of `set_limits` and of the environment variables ``ONNXPOOL_MAX_OUTPUT_BYTES`` and ``ONNXPOOL_MAX_WORK``
    apply as well, so a block can tighten limits but not loosen them.

    Parameters
    ----------
    max_output_bytes : int, optional
        Maximum size of the results of a call in bytes, Indices included, whether or not `out` is given. None, the
        default, adds no limit.
    max_work : int, optional
        Maximum work of a call: the number of elements in all windows, counted once for each window that contains
        them, plus the number of results. Padding does not count. None, the default, adds no limit.

    Returns
    -------
    context manager
        Context manager that yields None. It can be entered repeatedly, even within its own block and by several threads
        or tasks at the same time, and it can decorate a function.

    Raises
    ------
    PoolError, PoolTypeError
        If a limit is not an integer of at least 1.

    See Also
    --------
    set_limits : Sets limits for the process.
    Plan.tiles : Computes a large result in parts, each of which is a call.

    Notes
    -----
    A bin of MaxRoiPool is a window, and a sample of RoiAlign counts as four elements. If `sampling_ratio` is 0, the
    sides of regions determine the number of samples. MaxUnpool has no windows: its work is the number of elements of X
    and of the result.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.zeros((1, 1, 100, 100), np.float32)
    >>> with onnxpool.limits(max_output_bytes=10**6, max_work=10**6):
    ...     y = onnxpool.max_pool(x, 2)
    ...     onnxpool.max_pool(x, 50)
    Traceback (most recent call last):
    ...
    onnxpool.errors.PoolError: MaxPool-22: X of shape (1, 1, 100, 100) needs 6505101 steps of work, more than \
max_work=1000000; use fewer or smaller windows, compute the result in parts, or raise the limit
    """
    return Scope(_scoped, _checked(max_output_bytes, max_work), None)


def lifted() -> AbstractContextManager[None]:
    """Lift the limits within a block, whose calls are steps of another call. The other call has its own limits."""
    return Scope(_lifted, True, None)


def in_force() -> Limits:
    """The limits that apply to a call made now."""
    if not _known or _lifted.innermost():
        return NO_LIMITS
    limits = _process
    for scoped in _scoped.values():
        limits = limits.and_(scoped)
    return limits


def check(label: str, name: str, shape: tuple[int, ...], need: Need, limits: Limits) -> None:
    """Refuse a call that needs more than the limits allow. The error states the array's name and shape."""
    if need.output_bytes <= limits.max_output_bytes and need.work <= limits.max_work:
        return
    for limited, needed, limit, unit in zip(Limits._fields, need, limits, ("bytes for results", "steps of work"),
                                         strict=True):
        if needed > limit:
            raise PoolError(f"{label}: {name} of shape {shape} needs {needed} {unit}, more than {limited}={limit}; "
                            f"{HINT[limited]}", label, limited, value=needed)


def shown(limit: float) -> Any:
    """A limit as a number, or None."""
    return None if limit == math.inf else limit
