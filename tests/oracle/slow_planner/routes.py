"""Routes: choosing the step that solves a problem, and whether strided channels are made adjacent for it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from onnxpool.planning.costs import COSTS, MOVED
from onnxpool.planning.ways import Forced

from .steps import MOVES, STEPS, Problem, Step, taps_inside

TILE = 512  # places of a tile whose channels are made adjacent


class Choice(NamedTuple):
    """A step that solves a problem."""

    problem: Problem
    step: Step
    cost: float  # cost of each register full of results; infinite if the step has no costs


def moved(problem: Problem) -> float:
    """The registers of elements and results that are moved per register of results."""
    amount = 1.0
    for axis in problem.axes:
        read = (axis.out - 1) * axis.stride + axis.span
        amount *= (read if read < axis.size else axis.size) / (axis.out or 1)
    return (amount + 1) * MOVES[problem.itemsize] * 4 / problem.acc_bytes


def halo(problem: Problem) -> float:
    """
    The average number of times that tiles read a place, if channels are made adjacent tile by tile. They read none more
    often than windows have taps.
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


def fitting(problem: Problem) -> list[Step]:
    """The steps that fit, or only the one that is forced."""
    steps = [step for step in STEPS if step.fits(problem)]
    return steps if Forced.step is None else [step for step in steps if step.name == Forced.step] or steps


def choose(problem: Problem, steps: Sequence[Step] | None = None) -> Choice:
    """The cheapest of the steps, by default of those that fit, or the first one if none has costs."""
    steps = steps or fitting(problem)
    chosen, least = steps[0], math.inf
    for step in steps:
        if step.name in COSTS[problem.register]:
            cost = step.cost(problem)
            if cost < least:
                chosen, least = step, cost
    return Choice(problem, chosen, least)


def choose_between(rows: Problem, lanes: Problem) -> Choice:
    """The cheaper of two forms, which the same steps fit: reducing items row by row, or strided lanes made adjacent."""
    if Forced.lanes is not None:
        return choose(lanes if Forced.lanes else rows)
    steps = fitting(rows)
    by_rows = choose(rows, steps)
    moving = COSTS[lanes.register][MOVED][""] * moved(lanes)
    if moving >= by_rows.cost:  # not even free reductions would pay for the copies
        return by_rows
    by_lanes = choose(lanes, steps)
    cost = by_lanes.cost + moving
    return by_lanes if cost < by_rows.cost and cost * halo(lanes) < by_rows.cost else by_rows
