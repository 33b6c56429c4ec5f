"""Choosing the solver of a problem, and whether strided channels are made adjacent for it."""

import math
from typing import NamedTuple

from onnxpool.planning.costs import MOVED, prices
from onnxpool.planning.ways import Forced

from .solvers import MOVES, SOLVERS, Problem, Solver, first_of_families, taps_inside

TILE = 512  # places of a tile whose channels are made adjacent


class Choice(NamedTuple):
    """A solver of a problem."""

    problem: Problem
    solver: Solver
    cost: float  # cost of each register full of results; infinite if the solver has no costs


def moved(problem: Problem) -> float:
    """How many registers of elements and results are moved per register of results."""
    amount = 1.0
    for axis in problem.axes:
        read = (axis.out - 1) * axis.stride + axis.span
        amount *= (read if read < axis.size else axis.size) / (axis.out or 1)
    return (amount + 1) * MOVES[problem.itemsize] * 4 / problem.acc_bytes


def halo(problem: Problem) -> float:
    """
    The average number of times that tiles read a place, if channels are made adjacent tile by tile. A place is read at
    most as often as windows have taps.
    """
    side = round(TILE ** (1 / len(problem.axes)))  # windows of a tile along each axis
    times = 1.0
    for axis in problem.axes:
        if axis.out > side:
            read, most = axis.read_by(side) * axis.out / side, axis.read_by(axis.out)
            if 2 * (axis.end - axis.begin) < axis.out:  # most windows overhang, so some may have no tap
                read = max(most, min(read, taps_inside(axis) * axis.out))
            times *= read / most
    return times


def fitting(problem: Problem) -> list[Solver]:
    """The first solver of each family that fits, or only the forced solver."""
    solvers = [solver for solver in SOLVERS if solver.fits(problem)]
    return [solver for solver in solvers if solver.name == Forced.solver] or first_of_families(solvers)


def choose(problem: Problem) -> Choice:
    """The cheapest solver that fits, or the first solver that fits if no solver has costs."""
    solvers = fitting(problem)
    chosen, least = solvers[0], math.inf
    for solver in solvers:
        if solver.file in prices(problem.register, problem.whole):
            cost = solver.cost(problem)
            if cost < least:
                chosen, least = solver, cost
    return Choice(problem, chosen, least)


def choose_between(rows: Problem, lanes: Problem) -> Choice:
    """The cheaper of two forms: rows that are reduced item by item, or strided lanes that are made adjacent."""
    if Forced.lanes is not None:
        return choose(lanes if Forced.lanes else rows)
    by_rows = choose(rows)
    moving = prices(lanes.register, lanes.whole)[MOVED][""] * moved(lanes)
    if moving >= by_rows.cost:  # not even free reductions would pay for the copies
        return by_rows
    by_lanes = choose(lanes)
    cost = by_lanes.cost + moving
    return by_lanes if cost < by_rows.cost and cost * halo(lanes) < by_rows.cost else by_rows
