"""THE TABLE of steps: the problems that the loops of each can solve, their costs, and how problems are cut for them.

A step is a file in `kernels/steps/` and a record here. No other file names one: planning and the core read the record.
The build reads it too, so this module imports nothing that has to be compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..limits import CACHE_LINE, FEW
from .reductions import KINDS

if TYPE_CHECKING:
    from ..windows import Axis

REGISTER = 32  # bytes of the registers with which costs were measured
MOVES = {1: 0.6, 2: 1.0, 4: 1.0, 8: 1.6}  # instructions of a transposition for each element, relative to 4 bytes
SMALL_PLANE = 64  # elements of 4 bytes: channels of whole planes are made adjacent up to this size,
LINED_PLANE = 1024  # or up to this one if steps load lines: 35x35 takes 0.7 times as long in place, 20x20 1.5 times
PAGE = 1 << 12  # bytes
WINDOWED = ("max", "magnitude", "mean", "norm", "wide")  # reductions that can be computed one axis after the other

Work = Mapping[str, float]  # amounts of work of a step for each register full of results


class Problem(NamedTuple):
    """The problem for which a step is chosen: x[item, axes, lane]."""

    reduction: str
    axes: tuple[Axis, ...]
    items: int
    lanes: int  # number of lanes, which are adjacent, or made adjacent
    planar: bool  # whether lanes are strided channels
    itemsize: int
    acc_bytes: int  # bytes of an accumulator
    whole: bool  # whether the operator has one window, which covers a whole channel
    joined: int = 1  # trailing axes that count as one in the order of sums


class Step(NamedTuple):
    """
    All that planning and the core know about a step.

    Attributes
    ----------
    name : str
        Name of the step and of its file.
    when : str
        The problems that it fits, in words.
    reductions : tuple of str
        Reductions for which it is compiled.
    room : int
        Byte budget of a tile.
    whole : bool
        Whether it reduces whole channels rather than windows.
    bounded : callable, optional
        Whether it fits a problem of these reductions. By default, it fits all of them.
    work : callable
        Amounts of work for each register full of results.
    costs : mapping
        Nanoseconds for each unit of work, among them "results", on AMD Zen 3. `tools/measure_routes.py` measures and
        prints them. A step without costs is chosen where no step with costs fits, or when a test forces it.
    is_near : callable, optional
        Whether strided channels should be made adjacent. By default, costs decide.
    least_lanes : int
        Minimum bytes of lanes of a tile that is cut.
    in_place : bool
        Whether contiguous elements are not copied.
    gathers : bool
        Whether it reads strided elements itself, so that none are copied beforehand.
    copies_in_room : bool
        Whether copied elements count towards the byte budget of a tile.
    rereads : bool
        Whether a row of windows reads elements that the previous row has read.
    by_axis : bool
        Whether axes are reduced one after the other. Then rows must be contiguous, and padding is read as well.
    retry : str, optional
        The step that computes suspect results again, if it fits. By default the same one, if it takes "wide".
    """

    name: str
    when: str
    reductions: tuple[str, ...]
    room: int
    whole: bool = False
    bounded: Callable[[Problem], bool] | None = None
    work: Callable[[Problem], Work] = lambda problem: {}
    costs: Mapping[str, float] = {}
    is_near: Callable[[Problem], bool] | None = None
    least_lanes: int = CACHE_LINE
    in_place: bool = False
    gathers: bool = False
    copies_in_room: bool = False
    rereads: bool = False
    by_axis: bool = False
    retry: str | None = None

    def fits(self, problem: Problem) -> bool:
        """Whether the step can solve the problem."""
        return (problem.whole == self.whole and problem.reduction in self.reductions
                and (self.bounded is None or self.bounded(problem)))

    def cost(self, problem: Problem) -> float:
        """Nanoseconds for each register full of results."""
        total, costs = 0.0, self.costs
        for unit, amount in self.work(problem).items():
            total += costs[unit] * amount
        return total


def filled(values: float, width: float) -> float:
    """The number of values that the registers could hold, divided by the number of values in them."""
    return math.ceil(values / width) * width / values if values else 1


def volume(problem: Problem) -> int:
    return math.prod(axis.size for axis in problem.axes)


def direct_work(problem: Problem) -> Work:
    """The work of windows that read all of their taps."""
    width = REGISTER / problem.acc_bytes
    registers = filled(problem.lanes, width)
    most = [axis.most for axis in problem.axes]
    taps = math.prod(most) * registers
    tree = max(most) > FEW and KINDS[problem.reduction].merge is None
    return {"taps": taps, "tree": taps if tree else 0, "axes": taps if len(most) > 3 else 0,
            "part": taps if problem.lanes < width else 0,
            "widened": taps if problem.itemsize < problem.acc_bytes else 0, "windows": width / max(1, problem.lanes),
            "results": registers}


def sums(axis: Axis) -> float:
    """The additions for each place of an axis that is reduced in a pass."""
    return axis.most if axis.most <= FEW else 2 * math.log2(axis.most) + 2


def places(axis: Axis) -> float:
    """The number of places of a row for each of its windows."""
    return ((axis.out - 1) * axis.stride + min(axis.span, 2 * axis.size)) / max(1, axis.out)


def passes_work(problem: Problem) -> Work:
    """The work of passes. Each writes results that the next one reads again: some repeatedly, some not at all."""
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
            "items": width / results if before else 0,  # otherwise items are rows
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


def has_short_padding(problem: Problem) -> bool:
    """Whether rows with their padding are not much longer than the elements in them."""
    excess = [max(axis.span, (axis.out - 1) * axis.stride, *axis.pads) - 8 * axis.size for axis in problem.axes]
    return max(excess) <= 64


STEPS = (
    Step("whole", "one window that covers a whole channel",
         (*WINDOWED, "quantised_mean", "long_quantised_mean"), 1 << 19, whole=True, least_lanes=PAGE,
         is_near=lambda problem: volume(problem) * MOVES[problem.itemsize] <= SMALL_PLANE,
         in_place=True, gathers=True),
    Step("ordered", "maxima with Indices; QLinearAveragePool, except of whole channels",
         ("indexed_max", "mean_in_order"), 1 << 18, is_near=lambda problem: volume(problem) <= LINED_PLANE),
    Step("direct", "all other windows",
         WINDOWED, 1 << 19, in_place=True, copies_in_room=True, rereads=True, retry="passes",
         work=direct_work,
         costs={"taps": 0.59, "widened": 0.05, "tree": 0.23, "axes": 1.08, "part": 8.94, "windows": 10.05,
                "results": 1.42}),
    Step("passes", "other windows whose strides and pads are at most 8 times the axis plus 64 elements",
         WINDOWED, 1 << 17, in_place=True, by_axis=True, bounded=has_short_padding,
         work=passes_work,
         costs={"loads": 0.71, "widened": 0.12, "sums": 0.30, "splits": 0.86, "picks": 1.66, "taps": 0.33, "rows": 4.06,
                "items": 70.26, "windows": 5.41, "results": 1.74}),
)
COPY = "copy", "any", "bytes"  # the unit that copies a box of elements between any strides, for all steps
VIEW = "copy"  # the route of results that are elements of X, which NumPy copies


def retry_of(step: Step, problem: Problem) -> Step:
    """The step that computes suspect results of a step again: its retry, itself, or the first one that takes them."""
    if step.retry is not None:
        for other in STEPS:
            if other.name == step.retry and other.fits(problem):
                return other
    if "wide" in step.reductions:
        return step
    again = problem._replace(reduction="wide")
    return next(other for other in STEPS if other.fits(again))


def unit_of(step: str, reduction: str, dtype: str) -> str:
    """The name of the compiled function."""
    return f"{step}_{reduction}_{dtype}"


def units() -> Iterator[tuple[str, str, str, bool]]:
    """The units that the build compiles: step, reduction, dtype, and whether the reduction is rare."""
    yield (*COPY, False)
    for step in STEPS:
        for name in step.reductions:
            for dtype in KINDS[name].dtypes:
                yield step.name, name, dtype, KINDS[name].rare


def table() -> list[dict[str, str]]:
    """The steps as data."""
    return [{"name": step.name, "step": step.name, "when": step.when} for step in STEPS]
