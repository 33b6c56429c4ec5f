"""A call's thread count: from its argument, the context, the setting, the environment, or the machine."""

import os
from contextlib import AbstractContextManager

from .attributes import integer
from .constants import MOST_THREADS
from .errors import Place
from .scopes import Scope, Stack

SERIAL_BYTES = 1 << 19  # bytes of X; below, a second thread brings no gain (measured: 0.97x at 512 KiB, 1.7x at 1 MiB)

PLACE = Place(None, "num_threads")

_scoped: Stack[int] = Stack("onnxpool.num_threads")
_setting: int | None = None


def _read(path: str) -> str:
    # Importing pathlib would take half as long as importing this package.
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _limit(group: str) -> float:
    """The number of processors that a control group (a folder) grants; infinity if it has no limit."""
    try:
        granted, period = _read(f"{group}/cpu.max").split()
    except (OSError, ValueError):
        try:
            granted, period = _read(f"{group}/cpu.cfs_quota_us"), _read(f"{group}/cpu.cfs_period_us")
        except OSError:
            return float("inf")
    try:
        return int(granted) / int(period) if int(granted) > 0 else float("inf")
    except (ValueError, ZeroDivisionError):
        return float("inf")


def quota(root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> float:
    """The number of processors that the process's control groups and their parents grant; infinity without limits."""
    try:
        lines = _read(membership).splitlines()
    except OSError:
        return float("inf")
    least = float("inf")
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = f"{root}/cpu" if controllers else root
        names = path.strip("/").split("/")
        least = min(least, *(_limit("/".join([folder, *names[:depth]])) for depth in range(len(names) + 1)))
    return least


def granted() -> int:
    """The number of processors that this process may use."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(cpus, quota())))


def _default() -> int:
    most = granted()
    for name in ("ONNXPOOL_NUM_THREADS", "OMP_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        digits = first.lstrip("0")
        if first.isascii() and first.isdigit() and digits:
            return min(int(digits[:20]), most)  # Python refuses to convert thousands of digits
    return most


DEFAULT = _default()


def _checked(value: object) -> int:
    return min(integer(PLACE, value, 1), MOST_THREADS)


def set_num_threads(n: int | None) -> None:
    """
    Set the default number of threads of a call.

    Parameters
    ----------
    n : int or None
        At least 1. Values above 256 count as 256. None restores the default that `get_num_threads` describes.

    Raises
    ------
    PoolError, PoolTypeError
        If `n` is not an integer of at least 1.

    See Also
    --------
    num_threads : Sets the number for a block.
    get_num_threads : Returns the number in use.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.set_num_threads(2)
    >>> onnxpool.get_num_threads()
    2
    """
    global _setting
    _setting = None if n is None else _checked(n)


def get_num_threads() -> int:
    """
    Return the default number of threads of a call.

    Returns
    -------
    int
        The first of these that is set: the number of the enclosing ``with onnxpool.num_threads(n)``, the number given
        to `set_num_threads`, the environment variables ``ONNXPOOL_NUM_THREADS`` and ``OMP_NUM_THREADS``. Otherwise, the
        number of processors that the process may use.

    See Also
    --------
    set_num_threads : Sets the number for the process.
    num_threads : Sets the number for a block.

    Examples
    --------
    >>> import onnxpool
    >>> onnxpool.get_num_threads() >= 1
    True
    """
    entries = _scoped.entries.get()  # as `innermost` does, without a call
    return entries[-1][1] if entries else _setting or DEFAULT


def num_threads(n: int) -> AbstractContextManager[int]:
    """
    Set the number of threads for calls within a ``with`` block of this thread or task.

    Parameters
    ----------
    n : int
        At least 1. Values above 256 count as 256.

    Returns
    -------
    context manager
        Context manager that yields the number. It can be entered repeatedly, even within its own block and by several
        threads or tasks at the same time, and it can decorate a function.

    Raises
    ------
    PoolError, PoolTypeError
        If `n` is not an integer of at least 1.

    See Also
    --------
    set_num_threads : Sets the number for the process.
    get_num_threads : Returns the number in use.

    Examples
    --------
    >>> import onnxpool
    >>> with onnxpool.num_threads(1):
    ...     onnxpool.get_num_threads()
    1
    """
    number = _checked(n)
    return Scope(_scoped, number, number)


def team(asked: object, size: int) -> int:
    """A call's thread count for `size` bytes: 1 if there are few bytes, otherwise the requested number."""
    threads = get_num_threads() if asked is None else _checked(asked)
    return threads if size >= SERIAL_BYTES else 1
