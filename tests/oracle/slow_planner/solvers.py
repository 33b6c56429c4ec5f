"""The work of each solver in the table, and the problems that it fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from onnxpool import kernels
from onnxpool.constants import FEW, LEAST_SLIDING
from onnxpool.planning import solvers as table
from onnxpool.planning.costs import prices
from onnxpool.planning.reductions import KINDS

if TYPE_CHECKING:
    from onnxpool.windows import Axis

MOVES = {1: 0.6, 2: 0.8, 4: 1.0, 8: 1.6}  # instructions that transposing takes per element, relative to 4 bytes
UNITS = set(kernels.pools.unit_names())
SPLITS = {1: 1.0, 2: 1.0, 4: 0.1, 8: 0.35}  # instructions that splitting into phases takes, relative to one byte
# Minimum lanes that are made adjacent together, if there are enough. Half or twice as many take 1.0 to 1.8 times as
# long.
PLANAR_LANES = {1: 128, 2: 128, 4: 32, 8: 16}
NEAR = 1 << 17  # maximum bytes of a window that caches hold until the next window reads it
Work = Mapping[str, float]  # amounts of work of a solver for each register full of results


class Problem(NamedTuple):
    """The problem for which a solver is chosen: x[item, axes, lane]."""

    reduction: str
    dtype: str  # the dtype of the units
    axes: tuple[Axis, ...]
    items: int
    lanes: int  # number of lanes, which are adjacent, or made adjacent
    planar: bool  # whether lanes are strided channels
    itemsize: int
    acc_bytes: int  # bytes of an accumulator
    register: int  # the register width in bytes whose costs apply
    whole: bool  # whether the operator has one window, which covers a whole channel
    joined: int = 1  # trailing axes that count as one in the order of sums


class Solver(table.Solver):
    """A record of the table, with its work."""

    __slots__ = ()

    def fits(self, problem: Problem) -> bool:
        """Whether the solver can solve the problem."""
        return (problem.whole == self.whole and table.unit_of(self.name, problem.reduction, problem.dtype) in UNITS
                and (self.name not in FITS or FITS[self.name](problem)))

    def work(self, problem: Problem) -> Work:
        """Amounts of work for each register full of results."""
        return WORK[self.name](problem)

    def cost(self, problem: Problem) -> float:
        """Nanoseconds for each register full of results."""
        total, costs = 0.0, prices(problem.register, problem.whole)[self.file]
        for unit, amount in self.work(problem).items():
            total += costs[unit] * amount
        return total

    def singly(self, problem: Problem) -> list[int]:
        """The axes along which the solver reduces windows one by one."""
        return [a for a in range(len(problem.axes)) if self.name in SINGLY and SINGLY[self.name](problem, a)]


def filled(values: float, width: float) -> float:
    """The number of values that the registers could hold, divided by the number that they do hold."""
    return math.ceil(values / width) * width / values if values else 1


def lanes_of(problem: Problem) -> int:
    """
    The lanes that a solver sees at a time: all lanes, or about equal parts if lanes are made adjacent. A short last
    part would take 1.2 to 2 times as long, because fast loops need at least two registers of lanes.
    """
    lanes, least = problem.lanes, PLANAR_LANES[problem.itemsize]
    if not problem.planar or lanes < 2 * least:
        return lanes or 1
    parts = lanes // least
    return -(-lanes // (8 * parts)) * 8


def taps_inside(axis: Axis) -> float:
    """
    The mean number of taps of a window that are inside the input, if the number of taps outside shrinks steadily from
    the ends. Each tap is inside the input for at most one window per stride.
    """
    kernel, stride, out = axis.kernel, axis.stride, axis.out
    if axis.end - axis.begin == out:
        return kernel
    outside = 0.0
    for beyond in (axis.pads[0], (out - 1) * stride + axis.span - axis.size - axis.pads[0]):
        if beyond > 0:  # places by which the outermost window reaches into padding
            windows = -(-beyond // stride)
            if windows > out:
                windows = out
            for taps in (beyond / axis.dilation, (beyond - (windows - 1) * stride) / axis.dilation):
                outside += windows * (taps if taps < kernel else kernel) / 2
    most = -(-axis.size // stride) * kernel
    inside = kernel * out - outside
    return (most if inside > most else inside) / out if inside > 0 else 0.0


def width_of(problem: Problem) -> int:
    """The number of accumulators that the processor's registers hold."""
    return kernels.REGISTER // problem.acc_bytes


def slides(problem: Problem) -> bool:
    """Whether there is a loop along rows of these windows, which may share columns."""
    *before, last = problem.axes
    kernel, columns = last.kernel, 0
    for axis in before:
        if axis.kernel > 3:
            return False
        columns += axis.kernel > 1
    return (1 <= columns <= 2 and (kernel, last.stride) in ((3, 1), (3, 2), (2, 2)) and last.dilation == 1
            and last.pads[0] < kernel and (last.out - 1) * last.stride - last.pads[0] < last.size
            and problem.lanes * problem.acc_bytes >= LEAST_SLIDING)


def column_of(problem: Problem) -> float:
    """The number of taps of a window's column: the product of the taps along all axes but the last one."""
    taps = 1.0
    for axis in problem.axes[:-1]:
        taps *= taps_inside(axis)
    return taps


def converts(problem: Problem) -> bool:
    """Whether loads convert elements."""
    return (problem.itemsize < problem.acc_bytes or problem.reduction == "extremum"
            or (problem.itemsize == 2 and problem.reduction == "max"))


def slide_work(problem: Problem) -> Work:
    """The work of windows that slide along rows: registers of new columns, and of totals of shared ones, and those
    whose elements are converted; windows."""
    lanes, last, width = lanes_of(problem), problem.axes[-1], problem.register / problem.acc_bytes
    taps = column_of(problem) * last.stride + last.kernel - last.stride
    taps *= -(-lanes // width) * (width / lanes)
    return {"columns": taps, "converted": taps if converts(problem) else 0, "windows": width / lanes}


def is_ordered(problem: Problem) -> bool:
    """Whether the order of taps matters."""
    return problem.reduction not in ("max", "extremum", "integer_mean")


def by_columns(problem: Problem, inside: float, column: float, registers: float) -> bool:
    """Whether `direct` reads the taps of a window column by column, in long pieces."""
    last = problem.axes[-1]
    if problem.reduction == "max":
        column = FEW
    elif problem.reduction != "mean" or column == inside:
        return False
    return (inside >= 2 * FEW and column * registers >= 48 and registers <= 384
            and (last.kernel <= last.stride or inside * lanes_of(problem) * problem.itemsize >= 24 << 10))


def direct_work(problem: Problem) -> Work:
    """
    The work of windows that read all of their taps: registers of taps, and how many are converted, belong to large
    windows, or to few lanes; calls for more taps of further axes, if there is a tree or if axes or taps are many; taps
    of blocks of registers, since each block waits for the one before it; windows; rows of several windows; roots.
    Adjacent windows with stride 1 are one window with all their lanes.
    """
    lanes: float = lanes_of(problem)
    axes, inside, first, many = problem.axes, 1.0, 0.0, len(problem.axes) > 3
    for axis in axes:
        taps = taps_inside(axis)
        if not first and (axis.kernel > 1 or axis is axes[-1]):
            first = taps
        inside *= taps
        many |= is_ordered(problem) and axis.kernel > FEW
    many |= inside > FEW**3
    last, far = axes[-1], inside > FEW and inside * lanes * problem.itemsize > NEAR
    width = problem.register / problem.acc_bytes
    rows = width / lanes / last.out if last.out > 1 else 0
    registers, each = -(-lanes // width), width / lanes  # of a window; windows for each register full of results
    if last.stride == 1 and not many and last.out:
        inner = last.end - last.begin if last.end > last.begin else 0
        runs, most = last.out - inner, 2 * last.kernel  # at the borders, adjacent windows with the same taps are one
        lanes *= last.out / ((runs if runs < most else most) + (inner > 0))
        far = far and inner < 2  # rows of several windows are read in order
        registers, each = -(-lanes // width), width / lanes
    elif not many and by_columns(problem, inside, first, registers):
        far = False
    taps = inside * registers * each
    blocks = registers // 4 + registers % 4 - (0 if many else registers % 4 // 2)
    return {"taps": taps, "converted": taps if converts(problem) else 0, "far": taps if far else 0,
            "part": taps if each > 1 else 0,
            "nested": max(0.0, inside / (first or 1) - 1) * blocks * each if many else 0,
            "waits": inside * blocks * each, "windows": each, "rows": rows,
            "roots": registers * each if problem.reduction == "norm" else 0}


def whole_work(problem: Problem) -> Work:
    """
    The work of whole channels: registers of taps, and registers that are converted; joining the elements of a register
    in which a single lane ends: several channels at a time, one by one for maxima of few bytes, and in few steps for
    quantised elements.
    """
    width, taps = problem.register / problem.acc_bytes, 1
    for axis in problem.axes:
        taps *= axis.size
    read = taps * filled(lanes_of(problem), width) if problem.lanes > 1 else -(-taps // width) * width
    work = {"taps": read, "converted": read if converts(problem) else 0}
    if problem.lanes > 1:
        return work
    quantised = "quantised" in problem.reduction
    unit = "folds" if quantised else "singles" if problem.acc_bytes < 4 else "joins"
    return {**work, unit: width * math.log2(width)}


def ordered_work(problem: Problem) -> Work:
    """
    The work of taps in row-major order: registers of taps and results; windows of lanes, or rows, each with a line for
    every tap of the other axes. Elements far apart are picked one by one. Rows of a single axis hold all items.
    """
    width, lanes, inside = problem.register / problem.acc_bytes, lanes_of(problem), 1.0
    for axis in problem.axes:
        inside *= taps_inside(axis)
    if lanes > 1:
        registers = filled(lanes, width)
        return {"taps": inside * registers, "windows": width / lanes, "results": registers}
    *before, last = problem.axes
    results = max(1, last.out if before else last.out * problem.items)
    registers, read = filled(results, width), 1.0
    for axis in before:
        read *= min(axis.size, places(axis)) / (axis.out or 1)
    row = read * places(last) / (last.out or 1)
    return {"taps": inside * registers, "results": registers, "picks": row if last.stride > 4 else 0,
            "lines": width / results * inside / (taps_inside(last) or 1), "rows": width / results}


def places(axis: Axis) -> int:
    """The number of places that windows read, including places in the padding."""
    span = axis.span if axis.span < 2 * axis.size else 2 * axis.size
    across = (axis.out - 1) * axis.stride
    return span + (across if across < axis.size + span else axis.size + span)


def share_little(problem: Problem, axis: Axis, values: float) -> bool:
    """Whether windows of many taps share so few places, and rows have so many values, that each is reduced alone."""
    few = axis.out == 1 or axis.kernel <= 2 * axis.kernel.bit_length() * axis.stride
    return axis.kernel > FEW and few and values * problem.acc_bytes >= 2 * problem.register


def stacked(problem: Problem, a: int) -> bool:
    """Whether `stack` reduces the windows along an axis one by one."""
    values: float = problem.lanes
    if a < len(problem.axes) - 1:
        width = problem.register / problem.acc_bytes
        values = -(-(places(problem.axes[-1]) or 1) * lanes_of(problem) // width) * width
    return share_little(problem, problem.axes[a], values)


def is_stacked(problem: Problem) -> bool:
    """Whether `stack` reduces windows along any axis one by one."""
    return has_near_windows(problem) and any(stacked(problem, a) for a in range(len(problem.axes)))


def is_folded(problem: Problem) -> bool:
    """Whether windows along a row have many adjacent taps, and share few of these."""
    last, least = problem.axes[-1], 1024 if problem.reduction == "mean" else 512
    return (problem.lanes == 1 and last.dilation == 1 and last.kernel > FEW
            and last.kernel * problem.acc_bytes >= least and (last.out == 1 or last.kernel <= 2 * last.stride)
            and has_near_windows(problem))


def folded(problem: Problem, a: int) -> bool:
    """Whether `folded` reduces the windows along an axis one by one."""
    return a == len(problem.axes) - 1 or stacked(problem, a)


def has_planes(problem: Problem) -> bool:
    """Whether every window has few taps, along at most three axes and not all outside, and few rows overhang an end."""
    *_, row, _last = (None, *problem.axes)
    return len(problem.axes) <= 3 and (row is None or row.out - max(0, row.end - row.begin) < 2 * FEW) and all(
        axis.kernel <= FEW and axis.dilation <= axis.size and axis.pads[0] < axis.span
        and (axis.out - 1) * axis.stride - axis.pads[0] < axis.size for axis in problem.axes)


def is_short(problem: Problem) -> bool:
    """Whether few registers hold a row, and every window has taps inside."""
    last, width = problem.axes[-1], width_of(problem)
    reach = (last.out - 1) * last.stride + last.span
    return (problem.lanes == 1 and has_planes(problem) and reach <= (3 if last.stride == 1 else 2) * width
            and not (last.span > width and last.stride == 1))


def short_work(problem: Problem) -> Work:
    """The work of rows in registers: registers of a row for each tap of other axes; registers of taps; rows."""
    last, width = problem.axes[-1], problem.register / problem.acc_bytes
    rows = width / (last.out or 1)  # for each register full of results
    return {"held": column_of(problem) * -(-places(last) // width) * rows,
            "taken": last.kernel * -(-last.out // width) * rows, "rows": rows}


def is_disjoint(problem: Problem) -> bool:
    """Whether windows share no place along the last axis, and rows hold enough groups of them."""
    last, lanes, width = problem.axes[-1], problem.lanes, width_of(problem)
    inside = last.end - last.begin
    groups = 1 if inside == last.out else 32 if lanes == 1 else 4
    return (1 < last.stride <= 4 and last.kernel == last.span <= last.stride and not problem.planar
            and (lanes > 1 or last.stride != 3)
            and (lanes == 1 or (2 * lanes <= width and last.kernel * (last.stride - 1) <= kernels.PICKS))
            and inside >= width // lanes * groups and has_planes(problem)
            and (len(problem.axes) < 3 or problem.axes[1].kernel <= problem.axes[1].stride))


def disjoint_work(problem: Problem) -> Work:
    """The work of groups of windows: registers that are loaded; registers that are split or picked from; groups."""
    last, lanes, width = problem.axes[-1], problem.lanes, problem.register // problem.acc_bytes
    groups = width / (width // lanes * lanes)  # for each register full of results
    return {"loads": last.stride * column_of(problem) * groups,
            "picks": (last.stride - 1) * (last.kernel if lanes > 1 else 1) * groups, "groups": groups}


def passes_work(problem: Problem, singly: Callable[[Problem, int], bool] = lambda problem, a: False) -> Work:
    """
    The work of passes: registers that are loaded, stored, added, and split into phases; results that are picked one by
    one; registers of taps along the last axis, and of those that `direct` reads as they are; windows of the last axis
    that are reduced one by one; registers of their taps whose powers are computed by calls; windows that are reduced in
    registers, with the registers of their taps; rows; planes that are loaded; items that are loaded one by one; square
    roots. `singly` says along which axes windows are reduced
    one by one.

    Each pass writes results that the next one reads again: some repeatedly, some not at all. Rows hold the padding of
    the last axis, and trees hold the padding of their axis. Few taps of the first axis, and taps of windows that are
    reduced one by one, are reduced while they are loaded.
    """
    *before, last = problem.axes
    axes_before = len(before)
    width, lanes, out, tree = problem.register / problem.acc_bytes, lanes_of(problem), last.out or 1, last.kernel > FEW
    results = out * lanes / width  # registers of a row of results
    strided = last.stride > 1 and out > 1
    apart = strided and lanes >= width
    split = strided and lanes == 1 and last.stride <= 4 and not tree and not (before and before[0].kernel > FEW)
    picked = strided and not apart and not split
    joined = split and axes_before <= 1 and last.span == last.kernel <= last.stride and last.begin + out == last.end
    padded = places(last) or 1
    row = -(-padded * lanes // width) / results
    loaded = row if padded <= last.size else -(-last.size * lanes // width) / results
    done = filled(lanes if apart else out * lanes, width)
    taps = done if picked or joined or tree else done * last.kernel
    stores, added, loads, each, windows, planes = 0.0, 0.0, 1.0, 0.0, 1, 1
    inner = row  # registers of rows for each register of results
    for a in range(axes_before - 1, -1, -1):
        axis = before[a]
        windows *= axis.out or 1
        count = places(axis)
        lone = singly(problem, a)
        if axis.kernel > FEW and not lone:
            added += (2 * math.log2(axis.kernel) + 2) * inner * count / (axis.out or 1)
            stores += inner
            loads = count / (axis.out or 1)
        else:
            loads = taps_inside(axis)
            if lone:
                each += inner / row / results
            if a:
                added += loads * inner
                stores += inner
                if count > axis.size and not lone:
                    count = axis.size
        if a:
            inner *= count / (axis.out or 1)
        if a < axes_before - 1:
            planes *= count if a else axis.out
    rows = inner / row  # for each row of results, and for each tap of the first axis
    even = axes_before == 1 and before[0].kernel <= FEW and before[0].end - before[0].begin == before[0].out and (
        before[0].size == before[0].out * before[0].stride and problem.reduction != "mean")
    lone = singly(problem, axes_before)
    single = not even if before else lone or (apart and problem.planar)  # otherwise items are rows
    fold = lone and problem.lanes == 1
    if fold and not before:
        inner = loaded = 0
    elif fold:
        pass
    elif lone and before:
        added += done * last.kernel
        stores += done
    elif lone:
        inner, loaded = done, done * taps_inside(last)
    elif picked or tree:
        added += (2 * math.log2(last.kernel) + 2 if tree else last.kernel) * row
        stores += row
    reduced, read, calls = 0, loads * rows * loaded, 0.0
    while reduced < axes_before and before[reduced].kernel == 1:
        reduced += 1
    if problem.reduction == "norm" and singly(problem, reduced) and not (fold and reduced == axes_before):
        calls = done * last.kernel if before and reduced == axes_before else read
    return {"loads": read, "stores": stores + (rows * done if joined else inner),
            "sums": added, "splits": inner * SPLITS[problem.itemsize] if split else 0,
            "picks": width / lanes if picked else 0, "taps": taps,
            "plain": taps if apart and not converts(problem) else 0,
            "each": each + (width / lanes if lone and not fold else 0), "calls": calls, "folds": width if fold else 0,
            "folded": last.kernel if fold else 0,
            "rows": rows / results if before or lone or strided or padded > last.size else 0,  # otherwise loaded as one
            "items": 1 / (results * windows) if single else 0,
            "planes": planes / (results * windows) if axes_before > 1 else 0,
            "roots": done if problem.reduction == "norm" else 0}


def has_near_windows(problem: Problem) -> bool:
    """Whether windows that touch the input reach only a little beyond it, so that rows hold little padding."""
    return max([(axis.span if axis.out == 1 or axis.span > axis.stride else axis.stride) - 8 * axis.size
                for axis in problem.axes]) <= 64


WORK: dict[str, Callable[[Problem], Work]] = {
    "whole": whole_work, "ordered": ordered_work, "slide": slide_work, "direct": direct_work, "short": short_work,
    "disjoint": disjoint_work, "folded": lambda problem: passes_work(problem, folded),
    "stack": lambda problem: passes_work(problem, stacked), "passes": passes_work}
FITS = {"slide": slides, "short": is_short, "disjoint": is_disjoint, "folded": is_folded, "stack": is_stacked,
        "passes": has_near_windows}
SINGLY = {"folded": folded, "stack": stacked}
SOLVERS = tuple(Solver(*record) for record in table.SOLVERS)


def first_of_families(solvers: Sequence[Solver]) -> list[Solver]:
    """The first solver of each family."""
    return [solver for i, solver in enumerate(solvers) if i == 0 or solver.family != solvers[i - 1].family]


def retry_of(solver: Solver, problem: Problem, dtype: str) -> tuple[Solver, str]:
    """
    The solver that recomputes another solver's suspect results, and its reduction: the retry in the other solver's
    record, the general solver of its family, or the first solver that accepts the results.
    """
    doubles = problem.reduction == "mean" and dtype in KINDS["double_mean"].dtypes
    reduction = "double_mean" if doubles else "wide"
    again = problem._replace(reduction=reduction, dtype=dtype)
    if solver.retry is not None and max([axis.kernel for axis in problem.axes]) > FEW:
        for other in SOLVERS:
            if other.name == solver.retry and other.fits(again):
                return other, reduction
    general = next(other for other in SOLVERS if other.name == solver.family)
    if reduction in general.reductions:
        return general, reduction
    return next(other for other in SOLVERS if other.fits(again)), reduction
