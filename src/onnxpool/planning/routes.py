"""THE TABLE of routes: by which steps a problem can be solved, when each fits, and what it costs."""

import math
from collections.abc import Callable
from typing import NamedTuple

from ..windows import Axis

FEW = 8  # taps that a step reads one after the other
REGISTER = 32  # bytes
# In operations on registers, estimated from forced routes on AMD Zen 3:
TREE_COST = 2.5  # for each tap of a tree in one window, or of many axes
ROW_COST = 25.0  # what a row costs besides
MOVED_COST = 5.0  # to bring a register full of elements to their place, or back
SMALL_PLANE = 256  # elements of a channel, up to which channels had better be brought side by side


class Problem(NamedTuple):
    """What a route is chosen for: x[item, axes, lane]."""

    reduction: str
    axes: tuple[Axis, ...]
    items: int
    lanes: int  # that lie side by side, or are brought there
    planar: bool  # whether lanes are channels that lie apart
    itemsize: int
    acc_bytes: int  # of an accumulator
    whole: bool  # whether the operator has one window, that is all of a channel


class Route(NamedTuple):
    """A row of the table."""

    name: str
    step: str
    fits: Callable[[Problem], bool]
    cost: Callable[[Problem], float]  # operations on registers for each result that fills one lane
    room: int  # bytes that a tile holds


def vectors(lanes: int, width: float) -> float:
    """By how much more registers are used than lanes fill."""
    return math.ceil(lanes / width) * width / lanes if lanes else 1


def volume(problem: Problem) -> int:
    return math.prod(axis.size for axis in problem.axes)


def taps(problem: Problem) -> int:
    return math.prod(axis.most for axis in problem.axes)


def direct_cost(problem: Problem) -> float:
    """Each result reads all of its taps."""
    trees = len(problem.axes) > 3 or any(axis.most > FEW for axis in problem.axes)
    return (taps(problem) * (TREE_COST if trees else 1) + 4) * vectors(problem.lanes, REGISTER / problem.acc_bytes)


def passes_cost(problem: Problem) -> float:
    """What an axis leaves is written and read again. Later axes read it more than once, or not all of it."""
    cost = 0.0
    for a, axis in enumerate(problem.axes):
        later = math.prod(min(x.step, x.most) if x.out > 1 else x.most for x in problem.axes[a + 1:])
        each = axis.most if axis.most <= FEW else axis.stride * (2 * math.log2(axis.most) + 2)
        cost += later * each * (0.6 if a < len(problem.axes) - 1 else 1)
    return cost + 5 + (2 if problem.lanes * problem.acc_bytes < REGISTER and problem.axes[-1].step > 1 else 0)


def is_windowed(problem: Problem) -> bool:
    return not problem.whole and problem.reduction not in ("indexed", "sequential")


def bounded(problem: Problem) -> bool:
    """Whether rows with their padding are not much longer than what they hold."""
    return all(axis.span <= 4 * axis.size + 64 for axis in problem.axes)


ROUTES = (
    Route("whole", "whole", lambda p: p.whole, lambda p: 1, 1 << 19),
    Route("indexed", "indexed", lambda p: p.reduction == "indexed", lambda p: 1, 1 << 18),
    Route("sequential", "sequential", lambda p: p.reduction == "sequential", lambda p: 1, 1 << 18),
    Route("direct", "direct", is_windowed, direct_cost, 1 << 20),
    Route("passes", "passes", lambda p: is_windowed(p) and bounded(p), passes_cost, 1 << 17),
)


class Forced:
    """For tests and measurements: a route that is taken wherever it fits, and whether rows or lanes are."""

    route: str | None = None
    lanes: bool | None = None


def choose(problem: Problem) -> Route:
    """The cheapest route that fits."""
    fitting = [route for route in ROUTES if route.fits(problem)]
    forced = [route for route in fitting if route.name == Forced.route]
    return min(forced or fitting, key=lambda route: route.cost(problem))


def prefers_lanes(problem: Problem) -> bool:
    """Whether lanes that lie apart are better brought side by side than items are reduced row by row."""
    if Forced.lanes is not None:
        return Forced.lanes
    if problem.whole:
        return volume(problem) <= SMALL_PLANE
    rows = problem._replace(lanes=1, planar=False)
    width = REGISTER / problem.acc_bytes
    out = max(1, problem.axes[-1].out)
    by_rows = (passes_cost(rows) + ROW_COST / math.ceil(out / width)) * vectors(out, width)
    moved = math.prod(axis.size / max(1, axis.out) for axis in problem.axes) + 1
    by_lanes = min(direct_cost(problem), passes_cost(problem)) * vectors(problem.lanes, width)
    return by_lanes + MOVED_COST * moved < by_rows


WHEN = {  # each row in words
    "whole": "one window is all of a channel",
    "indexed": "maxima with Indices",
    "sequential": "QLinearAveragePool, except of whole channels",
    "direct": "all other windows",
    "passes": "all other windows that span at most 4 times their axis and 64 elements",
}


def table() -> list[dict[str, str]]:
    """The rows as data."""
    return [{"name": route.name, "step": route.step, "when": WHEN[route.name]} for route in ROUTES]
