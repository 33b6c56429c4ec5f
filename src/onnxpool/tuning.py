"""Wisdom: results of measurements as data, for other processes on machines of the same kind."""

import json
import platform
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from . import kernels
from .base import clear_caches
from .constants import MOST_THREADS
from .errors import PoolTypeError, printable
from .planning.solvers import SOLVERS
from .planning.ways import ROOMS, Way, learned
from .version import __version__

KINDS = ("model name", "cpu family", "model", "CPU implementer", "CPU part")  # processor's identity on Linux


def processor() -> str:
    """The kind of processor, as far as the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line.partition(":") for line in file.read().partition("\n\n")[0].splitlines()]
    except OSError:
        lines = []
    found = {name.strip(): value.strip() for name, _, value in lines}
    kinds = [f"{name} {found[name]}" for name in KINDS if name in found]
    if not kinds and sys.platform == "win32":  # elsewhere, this function runs a program
        kinds = [platform.processor()]
    return ", ".join(filter(None, kinds)) or platform.machine()


def machine() -> dict[str, str]:
    """The facts besides the problem on which the fastest way depends."""
    return {"version": __version__, "processor": processor(), "instruction_set": kernels.isa}


def wisdom() -> dict[str, Any]:
    """
    Return what `Plan.tuned` has learned in this process, and what `load_wisdom` has loaded.

    Returns
    -------
    dict
        Data that `json` can write: the ``version``, ``processor`` and ``instruction_set`` for which it holds, and the
        ``ways``, by problem.

    See Also
    --------
    load_wisdom : Loads it in another process.
    Plan.tuned : Measures.

    Examples
    --------
    >>> import onnxpool
    >>> sorted(onnxpool.wisdom())
    ['instruction_set', 'processor', 'version', 'ways']
    """
    return machine() | {"ways": {key: list(way) for key, way in learned.copy().items()}}


def load_wisdom(data: Mapping[str, Any]) -> int:
    """
    Use what another process has learned, for all plans that are made from now on.

    Wisdom of another version, processor or instruction set is ignored with a warning, and so are entries that this
    version does not understand. Results have the same bits with and without wisdom. Cached plans are dropped, so that
    calls of functions and operators use it too.

    Parameters
    ----------
    data : mapping
        What `wisdom` returned.

    Returns
    -------
    int
        Number of problems that were loaded.

    Raises
    ------
    PoolTypeError
        If `data` is not a mapping.

    Warns
    -----
    RuntimeWarning
        If something is ignored.

    See Also
    --------
    wisdom : Returns the data.

    Notes
    -----
    The environment variable ``ONNXPOOL_WISDOM`` names a JSON file that is loaded when onnxpool is imported.

    Examples
    --------
    >>> import json, onnxpool
    >>> text = json.dumps(onnxpool.wisdom())
    >>> onnxpool.load_wisdom(json.loads(text)) == len(json.loads(text)["ways"])
    True
    """
    if not isinstance(data, Mapping):
        raise PoolTypeError(f"load_wisdom: data must be a mapping, got {type(data).__name__}; pass what wisdom() "
                            f"returned", value=data)
    for name, here in machine().items():
        if data.get(name) != here:
            ignored(f"its {name} is {data.get(name)!r}, but here it is {here!r}")
            return 0
    entries = data.get("ways")
    if not isinstance(entries, Mapping):
        ignored("it has no ways")
        return 0
    found = {key: way_of(entry) for key, entry in entries.items() if isinstance(key, str)}
    known = {key: way for key, way in found.items() if way is not None}
    if len(known) < len(entries):
        ignored(f"{len(entries) - len(known)} of {len(entries)} entries are not ways of this version")
    learned.update(known)
    kernels.renew_shapes()
    clear_caches()
    return len(known)


def way_of(entry: Any) -> Way | None:
    """The way of an entry, or None if it is not one."""
    if not isinstance(entry, (list, tuple)) or len(entry) != len(Way._fields):
        return None
    solver, adjacent, room, threads = entry
    known = (solver in [row.name for row in SOLVERS] and isinstance(adjacent, bool) and room in ROOMS
             and isinstance(threads, int) and 0 < threads <= MOST_THREADS)
    return Way(solver, adjacent, float(room), threads) if known else None


def load_file(path: str) -> None:
    """Load the file that the environment names. A file that cannot be read is ignored with a warning."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        load_wisdom(data)
    except (OSError, ValueError, RecursionError, PoolTypeError) as error:
        ignored(f"{path}: {error}")


def ignored(reason: str) -> None:
    warnings.warn(f"onnxpool: wisdom is ignored: {printable(reason)}; tune on this machine", RuntimeWarning,
                  stacklevel=3)
