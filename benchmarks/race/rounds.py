"""Measures times in rounds: one library after another, until the best time of each is certain."""

import gc
import time
from collections.abc import Callable, Sequence
from itertools import repeat
from threading import Barrier, Thread
from typing import Any, NamedTuple

import numpy as np

SLICE, PATIENCE = 0.005, 0.2  # seconds between looks at other threads, and maximum seconds of waiting for them
SPLIT = 1 << 20  # minimum bytes of a copy that is shared among threads
SURE = 0.03  # a best time that a second round confirms this closely is not an accident
CLOSE = 0.15  # a closer result deserves more rounds
HOPELESS = 5  # a peer this many times slower than the fastest is called once, if a call is longer than a round
OURS, COPY = "onnxpool", "copy"


class Pace(NamedTuple):
    """The duration of a measurement."""

    seconds: float  # duration of a round of one library
    least: int  # rounds
    most: int
    limit: float  # seconds after which there are no rounds beyond the minimum


FULL = Pace(0.015, 3, 8, 0.6)
QUICK = Pace(0.001, 1, 1, 0.0)


class Timed(NamedTuple):
    """A function that makes a number of calls and returns the seconds that each took."""

    burst: Callable[[int], float]

    @classmethod
    def calls(cls, call: Callable[[], object]) -> "Timed":
        """One call after another."""
        def burst(reps: int) -> float:
            start = time.perf_counter()
            for _ in repeat(None, reps):
                call()
            return (time.perf_counter() - start) / reps
        return cls(burst)


def copying(count: int, threads: int) -> Timed:
    """Copies that read and write this many bytes in total, as fast as the machine allows."""
    source, target = np.ones((2, max(1, count // 2)), np.uint8)
    if threads == 1 or count < SPLIT:
        return Timed.calls(lambda: np.copyto(target, source))
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))

    return at_once(np.copyto, parts)


def at_once(called: Callable[..., object], arguments: Sequence[tuple[Any, ...]]) -> Timed:
    """Calls in several threads, one for each tuple of arguments. Threads repeat their call, so none waits for
    another."""
    def burst(reps: int) -> float:
        ready = Barrier(len(arguments) + 1)

        def work(*given: Any) -> None:
            call = called  # a variable that threads do not share
            ready.wait()
            for _ in repeat(None, reps):
                call(*given)
        workers = [Thread(target=work, args=given) for given in arguments]
        for worker in workers:
            worker.start()
        ready.wait()
        start = time.perf_counter()
        for worker in workers:
            worker.join()
        return (time.perf_counter() - start) / reps
    return Timed(burst)


def settle() -> None:
    """Wait until no thread of this process runs: threads of other libraries spin for a while after a call."""
    until = time.perf_counter() + PATIENCE
    while time.perf_counter() < until:
        used = time.process_time()
        time.sleep(SLICE)
        if time.process_time() - used < SLICE / 4:
            return


def sure(times: list[float]) -> bool:
    """Whether a second round confirms the best round."""
    best = sorted(times)[:2]
    return len(best) == 2 and best[1] <= best[0] * (1 + SURE)


def undecided(times: dict[str, list[float]]) -> list[str]:
    """The entries whose times still matter, if any is uncertain or close: onnxpool, the copy and leading peers."""
    best = {name: min(rounds) for name, rounds in times.items()}
    peers = sorted(set(times) - {OURS, COPY}, key=best.__getitem__)
    close = [name for name in peers if abs(best[name] / best[OURS] - 1) < CLOSE]
    leaders = list(dict.fromkeys([OURS, COPY, *peers[:1], *close]))
    return leaders if close or not all(sure(times[name]) for name in leaders) else []


def race(entries: dict[str, Timed], pace: Pace) -> dict[str, list[float]]:
    """The seconds per call of each entry, one number per round. Every entry must have been called before."""
    gc.collect()
    gc.disable()
    until = time.perf_counter() + pace.limit
    try:
        first = {}
        for name, entry in entries.items():
            settle()
            first[name] = entry.burst(1)
        hopeless = max(pace.seconds, HOPELESS * min(first.values()))
        times = {name: [seconds] if seconds > hopeless else [] for name, seconds in first.items()}
        running = [name for name in entries if not times[name] or name in (OURS, COPY)]
        for done in range(1, pace.most + 1):
            for name in running:
                settle()
                entries[name].burst(1)
                times[name].append(entries[name].burst(max(1, int(pace.seconds / first[name]))))
            if done >= pace.least:
                running = undecided(times) if time.perf_counter() < until else []
    finally:
        gc.enable()
    return times
