"""Comparisons of onnxpool with other packages: `python -m benchmarks.compare.arrays`, `.ndimage`,
`.labelled`, `.chunked` and `.figures`.

Each task has several ways, the first of which is onnxpool's. Ways alternate, so that noise affects all of them, and the
minimum time of each counts. Memory is the peak of what NumPy allocates besides the input, including the result.
"""

import importlib.metadata
import platform
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

Ways = dict[str, Callable[[], Any]]
TURNS, TURN, LIMIT = 15, 0.02, 5.0  # the number of rounds, the seconds of each, and the seconds of all


def shortest(calls: Sequence[Callable[[], object]], limit: float = LIMIT) -> list[float]:
    """The shortest time of each call, in seconds."""
    times, begin = [np.inf] * len(calls), time.perf_counter()
    for turn in range(TURNS):
        for i, call in enumerate(calls):
            now = time.perf_counter()
            until = now + TURN
            while now < until:
                call()
                after = time.perf_counter()
                times[i], now = min(times[i], after - now), after
        if now - begin > limit and turn > 1:
            break
    return times


def peak(call: Callable[[], object]) -> float:
    """The peak allocation of a call, in MiB."""
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def difference(y: Any, ours: Any) -> str:
    """How a result differs from onnxpool's."""
    if y.shape != ours.shape:
        return "other shape"
    if np.array_equal(y, ours):
        return "equal"
    off = float(np.abs(np.asarray(y, np.float64) - np.asarray(ours, np.float64)).max())
    assert off < 1e-5
    return f"within {off:.0e}"


def introduce(*packages: str) -> None:
    """Print the versions of what is compared."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {versions}\n")


def head(*titles: str, left: int = 2, right: int = 0) -> None:
    """Print the titles of a table in Markdown: columns of text, of numbers, and of text again."""
    shown(*titles)
    print(f"{'|---' * left}{'|--:' * (len(titles) - left - right)}{'|---' * right}|")


def shown(*cells: object) -> None:
    """Print a row as soon as it is known."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def called(way: Callable[[], Any]) -> Any:
    """The result of calling a way."""
    return way()


def compare(tasks: Iterable[tuple[str, Ways]], run: Callable[[Any], Any] = called, whole: Callable[[Any], Any] = called,
            facts: Mapping[str, Callable[[Any], object]] = MappingProxyType({})) -> None:
    """Print a table of tasks. `run` times ways, `whole` returns their results, and `facts` are columns."""
    head("task", "method", "ms", "ratio", "MiB", *facts, "result", right=1)
    for task, ways in tasks:
        results = [np.asarray(whole(way)) for way in ways.values()]
        calls = [partial(run, way) for way in ways.values()]
        times = shortest(calls)
        for i, (name, way) in enumerate(ways.items()):
            shown("" if i else task, name, f"{times[i] * 1e3:.1f}", f"{times[i] / times[0]:.1f}",
                  f"{peak(calls[i]):.0f}", *(fact(way) for fact in facts.values()),
                  difference(results[i], results[0]) if i else "")
