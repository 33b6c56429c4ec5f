"""Ways: which solver takes a problem, in which form and with which tiles. All ways give the same bits.

Costs choose a way, unless measurements have shown which way is fastest. `learned` holds the ways measured to be
fastest.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .. import kernels
from . import planner

ROOMS = (1.0, 0.5, 2.0, 0.25, 4.0)  # relative to the usual room of a tile; others than 1 can be faster
BURST = 3e-4  # seconds of calls that are timed together
CLEARLY = 0.985  # the usual way is kept unless another takes less than this fraction of its time
HOPELESS = (2.0, 1.3, 1.1)  # after rounds 1, 2 and later, ways that take longer than this times the best are dropped


class Way(NamedTuple):
    """
    A way to solve a problem.

    Attributes
    ----------
    solver : str
        The solver's name in the table of solvers.
    adjacent : bool
        Whether strided lanes are first made adjacent.
    room : float
        The byte budget of a tile, relative to the usual one.
    threads : int
        The number of threads with which the way was measured, or 0.
    """

    solver: str
    adjacent: bool
    room: float = 1.0
    threads: int = 0


class Force:
    """For tests and measurements: forces a solver wherever it fits, and rows or lanes."""

    def __init__(self) -> None:
        self._solver: str | None = None
        self._lanes: bool | None = None

    @property
    def solver(self) -> str | None:
        """The name of a solver, or None."""
        return self._solver

    @solver.setter
    def solver(self, solver: str | None) -> None:
        planner.force(solver, self._lanes)
        kernels.renew_shapes()
        self._solver = solver

    @property
    def lanes(self) -> bool | None:
        """Whether strided channels are made adjacent, or None."""
        return self._lanes

    @lanes.setter
    def lanes(self, lanes: bool | None) -> None:
        planner.force(self._solver, lanes)
        kernels.renew_shapes()
        self._lanes = lanes


Forced = Force()

learned: dict[str, Way] = {}  # by problem, as `layout.key_of` writes it


def fastest(calls: Sequence[Callable[[], object]], seconds: float) -> int:
    """
    The place of the fastest call.

    The calls take turns, so that a slow moment affects all of them. The first one is the usual way. It is called at
    least twice, and wins unless another is clearly faster.
    """
    until = time.perf_counter() + seconds
    calls[0]()  # map the pages of its arrays before timing
    best, running, rounds = [float("inf")] * len(calls), list(range(len(calls))), 0
    while len(running) > 1 or not rounds:
        for place in running:
            best[place] = min(best[place], burst(calls[place]))
            if time.perf_counter() > until:
                break
        else:
            limit = HOPELESS[min(rounds, len(HOPELESS) - 1)] * min(best)
            running = [place for place in running if place == 0 or best[place] <= limit]
            rounds += 1
            continue
        break
    winner = min(range(len(calls)), key=best.__getitem__)
    return winner if best[winner] < CLEARLY * best[0] else 0


def burst(call: Callable[[], object]) -> float:
    """The seconds that a call takes: the mean of as many calls as take BURST together."""
    start = time.perf_counter()
    count = 0
    while True:
        call()
        count += 1
        passed = time.perf_counter() - start
        if passed >= BURST:
            return passed / count
