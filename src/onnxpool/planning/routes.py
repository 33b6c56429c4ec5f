"""THE TABLE of routes: by which steps a problem can be solved, when each fits, and what it costs."""

import math
from collections.abc import Callable
from typing import NamedTuple

from ..windows import Axis

FEW = 8  # taps that a step reads one after the other
REGISTER = 32  # bytes, for which costs were measured
# Nanoseconds for each register full of results, on AMD Zen 3 (`tools/measure_routes.py` measures and prints them):
# what a unit of work costs in each route.
COSTS = {
    "direct": {"taps": 0.59, "widened": 0.05, "tree": 0.23, "axes": 1.08, "part": 8.94, "windows": 10.05,
               "results": 1.42},
    "passes": {"loads": 0.71, "widened": 0.12, "sums": 0.30, "splits": 0.86, "picks": 1.66, "taps": 0.33, "rows": 4.06,
               "items": 70.26, "windows": 5.41, "results": 1.74},
    "moved": {"elements": 1.78},
}
CLEARLY = 0.93  # of the cost of the row before, which a later row must beat: 0.994 of the time, from memory 0.98
LEAST = min(COSTS["direct"]["results"], COSTS["passes"]["results"])  # that any window costs
MOVES = {1: 0.6, 2: 1.0, 4: 1.0, 8: 1.6}  # instructions of a transposition for each element, relative to 4 bytes
TILE = 512  # places of a tile whose channels are brought side by side
SMALL_PLANE = 64  # elements of 4 bytes of a channel, up to which channels of whole planes are brought side by side
LINED_PLANE = 1024  # of steps that load lines: planes of 35x35 take 0.7 times as long apart, of 20x20 1.5 times

UNSPLIT = frozenset(("indexed", "sequential"))  # reductions that see all taps of a window in row-major order
UNORDERED = frozenset(("max", "magnitude"))  # those whose taps may be joined in any order

Work = dict[str, float]  # what a route does for each register full of results


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
    work: Callable[[Problem], Work]  # for each register full of results; none if no other route fits
    room: int  # bytes that a tile holds
    when: str  # it fits, in words


class Choice(NamedTuple):
    """A route that a problem can take."""

    problem: Problem
    route: Route
    cost: float  # for each register full of results


def filled(values: float, width: float) -> float:
    """By how much more registers are used than values fill."""
    return math.ceil(values / width) * width / values if values else 1


def volume(problem: Problem) -> int:
    return math.prod(axis.size for axis in problem.axes)


def direct_work(problem: Problem) -> Work:
    """Each result reads all of its taps."""
    width = REGISTER / problem.acc_bytes
    registers = filled(problem.lanes, width)
    most = [axis.most for axis in problem.axes]
    taps = math.prod(most) * registers
    tree = max(most) > FEW and problem.reduction not in UNORDERED
    return {"taps": taps, "tree": taps if tree else 0, "axes": taps if len(most) > 3 else 0,
            "part": taps if problem.lanes < width else 0,
            "widened": taps if problem.itemsize < problem.acc_bytes else 0, "windows": width / max(1, problem.lanes),
            "results": registers}


def sums(axis: Axis) -> float:
    """The additions for each place of an axis that is reduced in a pass."""
    return axis.most if axis.most <= FEW else 2 * math.log2(axis.most) + 2


def places(axis: Axis) -> float:
    """How many places a row has for each of its windows."""
    return ((axis.out - 1) * axis.stride + min(axis.span, 2 * axis.size)) / max(1, axis.out)


def passes_work(problem: Problem) -> Work:
    """What an axis leaves is written and read again. Later axes read it more than once, or not all of it."""
    *before, last = problem.axes
    *spread, along = [places(axis) for axis in problem.axes]
    width, lanes, out = REGISTER / problem.acc_bytes, problem.lanes or 1, last.out or 1
    strided = last.stride > 1 and last.out > 1
    row = filled(along * out * lanes, width) * along  # registers of a row for each of results
    apart = strided and lanes >= width
    tree = last.most > FEW
    split = strided and not apart and lanes == 1 and last.stride <= 4 and not tree
    split &= not (before and before[0].most > FEW)
    picked = strided and not apart and not split
    done = filled(lanes if apart else out * lanes, width)
    rows, results = math.prod(spread[1:]), lanes
    for axis in problem.axes:
        results *= axis.out or 1
    work = {"loads": row * rows, "sums": 0.0, "splits": row if split else 0, "picks": width / lanes if picked else 0,
            "taps": done * (1 if picked or tree else last.most), "rows": width / (out * lanes) * (1 + rows),
            "items": width / results if before else 0,  # else they are rows
            "windows": width / lanes if apart else 0, "results": done}
    for a, axis in enumerate(before):
        if a == 0 and axis.most <= FEW:
            work["loads"] *= axis.most
            continue
        work["loads"] *= spread[0] if a == 0 else 1
        inner = math.prod(spread[a + 1:]) * row
        work["sums"] += sums(axis) * inner * (spread[a] if axis.most > FEW else 1)
    if tree or picked:
        work["sums"] += sums(last) * row
    work["widened"] = work["loads"] if problem.itemsize < problem.acc_bytes else 0
    return work


def moved_work(problem: Problem) -> Work:
    """Channels are brought side by side, and results back to where they belong."""
    moved = 1.0
    for axis in problem.axes:
        moved *= min(axis.size, (axis.out - 1) * axis.stride + axis.span) / (axis.out or 1)
    moved += 1
    return {"elements": moved * MOVES[problem.itemsize] * 4 / problem.acc_bytes}


def halo(problem: Problem) -> float:
    """How many times the tiles together read each place, if channels are brought side by side tile by tile."""
    side = round(TILE ** (1 / len(problem.axes)))  # windows of a tile along each axis
    times = 1.0
    for axis in problem.axes:
        windows, out = min(side, axis.out or 1), axis.out or 1
        times *= axis.read_by(windows) * out / windows / (axis.read_by(out) or 1)
    return times


def cost(name: str, work: Work) -> float:
    costs, total = COSTS.get(name, {}), 0.0
    for unit, amount in work.items():
        total += costs[unit] * amount
    return total


def is_windowed(problem: Problem) -> bool:
    return not problem.whole and problem.reduction not in UNSPLIT


def bounded(problem: Problem) -> bool:
    """Whether rows with their padding are not much longer than what they hold."""
    return all(max(axis.span, (axis.out - 1) * axis.stride, *axis.pads) <= 8 * axis.size + 64 for axis in problem.axes)


ROUTES = (
    Route("whole", "whole", lambda p: p.whole, lambda p: {}, 1 << 19,
          "one window is all of a channel"),
    Route("indexed", "indexed", lambda p: p.reduction == "indexed", lambda p: {}, 1 << 18,
          "maxima with Indices"),
    Route("sequential", "sequential", lambda p: p.reduction == "sequential", lambda p: {}, 1 << 18,
          "QLinearAveragePool, except of whole channels"),
    Route("direct", "direct", is_windowed, direct_work, 1 << 19,
          "all other windows"),
    Route("passes", "passes", lambda p: is_windowed(p) and bounded(p), passes_work, 1 << 17,
          "other windows, strides and pads of at most 8 times their axis and 64 elements"),
)


class Forced:
    """For tests and measurements: a route that is taken wherever it fits, and whether rows or lanes are."""

    route: str | None = None
    lanes: bool | None = None


def choose(problem: Problem) -> Choice:
    """The first route that fits, or a later one that is clearly cheaper."""
    fitting = [route for route in ROUTES if route.fits(problem)]
    if Forced.route is not None:
        fitting = [route for route in fitting if route.name == Forced.route] or fitting
    chosen, least = fitting[0], cost(fitting[0].name, fitting[0].work(problem))
    for route in fitting[1:]:
        value = cost(route.name, route.work(problem))
        if value < CLEARLY * least:
            chosen, least = route, value
    return Choice(problem, chosen, least)


def choose_between(rows: Problem, lanes: Problem) -> Choice:
    """The cheaper one of two: reducing items row by row, or bringing lanes that lie apart side by side."""
    if Forced.lanes is not None:
        return choose(lanes if Forced.lanes else rows)
    if not is_windowed(lanes):
        size = volume(lanes)
        near = size * MOVES[lanes.itemsize] <= SMALL_PLANE if lanes.whole else size <= LINED_PLANE
        return choose(lanes if near else rows)
    by_rows, times, moved = choose(rows), halo(lanes), cost("moved", moved_work(lanes))
    if times * (moved + LEAST) >= by_rows.cost:  # whatever lanes gain
        return by_rows
    by_lanes = choose(lanes)
    return by_lanes if times * (by_lanes.cost + moved) < by_rows.cost else by_rows


def table() -> list[dict[str, str]]:
    """The rows as data."""
    return [{"name": route.name, "step": route.step, "when": route.when} for route in ROUTES]
