"""The work of the steps of the table, and the problems that each fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from onnxpool.constants import FEW, LEAST_SLIDING
from onnxpool.planning import steps as table
from onnxpool.planning.costs import COSTS
from onnxpool.planning.reductions import KINDS
from onnxpool.planning.steps import DISJOINT, FREQUENT

if TYPE_CHECKING:
    from onnxpool.windows import Axis

MOVES = {1: 0.6, 2: 1.0, 4: 1.0, 8: 1.6}  # instructions of a transposition for each element, relative to 4 bytes
SPLITS = {1: 1.0, 2: 1.0, 4: 0.1, 8: 0.35}  # those of splitting a row into phases, by itemsize, relative to bytes
# The least lanes that are made adjacent together, if there are so many; half or twice as many: 1.0 to 1.8.
PLANAR_LANES = {1: 128, 2: 128, 4: 32, 8: 16}
NEAR = 1 << 17  # bytes of a window that caches hold until the next one reads it
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
    register: int  # bytes of a register, for which there are costs
    whole: bool  # whether the operator has one window, which covers a whole channel
    joined: int = 1  # trailing axes that count as one in the order of sums


class Step(table.Step):
    """A record of the table, with its work."""

    __slots__ = ()

    def fits(self, problem: Problem) -> bool:
        """Whether the step can solve the problem."""
        return (problem.whole == self.whole and problem.reduction in self.reductions
                and (self.name != "passes" or has_near_windows(problem)))

    def work(self, problem: Problem) -> Work:
        """Amounts of work for each register full of results."""
        return WORK[self.name](problem)

    def cost(self, problem: Problem) -> float:
        """Nanoseconds for each register full of results."""
        total, costs = 0.0, COSTS[problem.register][self.name]
        for unit, amount in self.work(problem).items():
            total += costs[unit] * amount
        return total


def filled(values: float, width: float) -> float:
    """The number of values that the registers could hold, divided by the number of values in them."""
    return math.ceil(values / width) * width / values if values else 1


def lanes_of(problem: Problem) -> int:
    """
    The lanes that a step sees at a time: few of those that are made adjacent, in about equal parts. A short last part
    would take 1.2 to 2 times as long, because fast loops need at least two registers of lanes.
    """
    lanes, least = problem.lanes, PLANAR_LANES[problem.itemsize]
    if not problem.planar or lanes < 2 * least:
        return lanes or 1
    parts = lanes // least
    return -(-lanes // (8 * parts)) * 8


def taps_inside(axis: Axis) -> float:
    """
    The mean number of taps of a window that are inside the input, if those outside shrink steadily from the ends. A tap
    is inside for a window every stride places at most.
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


def slides(problem: Problem) -> bool:
    """Whether `direct` has a loop along rows of these windows, which may share columns."""
    *before, last = problem.axes
    kernel, columns = last.kernel, 0
    for axis in before:
        if axis.kernel > 3:
            return False
        columns += axis.kernel > 1
    return (1 <= columns <= 2 and (kernel, last.stride) in ((3, 1), (3, 2), (2, 2)) and last.dilation == 1
            and last.pads[0] < kernel and (last.out - 1) * last.stride - last.pads[0] < last.size
            and problem.lanes * problem.acc_bytes >= LEAST_SLIDING and problem.reduction in FREQUENT)


def direct_work(problem: Problem) -> Work:
    """
    The work of windows that read all of their taps: registers of taps, of those of few lanes, and of those of large
    windows; taps of blocks of registers, each of which waits for the one before it, and calls for those of more than
    three axes; windows; roots. Windows that slide along rows read each column once, and the totals of those that they
    share. Adjacent windows of stride 1 are one window with as many lanes.
    """
    lanes: float = lanes_of(problem)
    axes, inside, column, tree = problem.axes, 1.0, 1.0, False
    for axis in axes:
        column, inside = inside, inside * taps_inside(axis)
        tree |= axis.kernel > FEW
    last, far = axes[-1], inside * lanes * problem.itemsize > NEAR
    width = problem.register / problem.acc_bytes
    registers, each = -(-lanes // width), width / lanes  # of a window; windows for each register full of results
    if slides(problem):
        taps = column * last.stride + last.kernel - last.stride
        return {"columns": taps * registers * each, "windows": each}
    if last.stride == 1 and not tree and last.out:
        inner = last.end - last.begin if last.end > last.begin else 0
        runs, most = last.out - inner, 2 * last.kernel  # at the borders, adjacent windows with the same taps are one
        lanes *= last.out / ((runs if runs < most else most) + (inner > 0))
        registers, each = -(-lanes // width), width / lanes
    taps = inside * registers * each
    blocks = registers // 4 + registers % 4 // 2 + registers % 2
    calls = inside * (registers // 4 + registers % 4) * each
    return {"taps": taps, "far": taps if far else 0, "part": taps if each > 1 else 0,
            "axes": calls if len(axes) > 3 else 0, "waits": inside * blocks * each, "windows": each,
            "roots": registers * each if problem.reduction == "norm" else 0}


def whole_work(problem: Problem) -> Work:
    """
    The work of whole channels: registers of taps; joining the elements of a register in which a single lane ends: those
    of several channels at a time, of maxima of few bytes one by one, and of quantised elements in few steps.
    """
    width, taps = problem.register / problem.acc_bytes, 1
    for axis in problem.axes:
        taps *= axis.size
    if problem.lanes > 1:
        return {"taps": taps * filled(lanes_of(problem), width)}
    joins = width * math.log2(width)
    quantised = "quantised" in problem.reduction
    unit = "folds" if quantised else "singles" if problem.acc_bytes < 4 else "joins"
    return {"taps": -(-taps // width) * width, unit: joins}


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
    """The number of places that windows read, with those in the padding."""
    span = axis.span if axis.span < 2 * axis.size else 2 * axis.size
    across = (axis.out - 1) * axis.stride
    return span + (across if across < axis.size + span else axis.size + span)


def alone(problem: Problem, axis: Axis, values: float) -> bool:
    """Whether `passes` reduces windows of many taps one by one: few of them share a place, and rows are long."""
    few = axis.out == 1 or axis.kernel <= 2 * axis.kernel.bit_length() * axis.stride
    enough = values * problem.acc_bytes >= 2 * problem.register
    return few and enough and not KINDS[problem.reduction].rare


def folded(problem: Problem) -> bool:
    """Whether `passes` reduces windows along a row in registers: many taps, of which windows share few."""
    last, least = problem.axes[-1], 1024 if problem.reduction == "mean" else 512
    return (problem.lanes == 1 and last.dilation == 1 and last.kernel * problem.acc_bytes >= least
            and (last.out == 1 or last.kernel <= 2 * last.stride) and problem.reduction in FREQUENT)


def is_short(problem: Problem) -> bool:
    """Whether `passes` keeps rows in registers: few of them hold a row, and every window has taps inside."""
    axes = problem.axes
    if (problem.register < 64 or problem.lanes != 1 or problem.acc_bytes == 1 or len(axes) > 3
            or problem.reduction not in FREQUENT):
        return False
    last, width = axes[-1], problem.register // problem.acc_bytes
    reach, span = (last.out - 1) * last.stride, last.span
    if reach + span > (3 if last.stride == 1 else 2) * width or (span > width and last.stride == 1):
        return False
    if len(axes) > 1 and axes[-2].out - max(0, axes[-2].end - axes[-2].begin) >= 2 * FEW:
        return False
    for axis in axes:
        size, before = axis.size, axis.pads[0]
        if (axis.kernel > FEW or axis.dilation > size or before >= axis.span
                or (axis.out - 1) * axis.stride - before >= size):
            return False
    return True


def short_work(problem: Problem) -> Work:
    """The work of rows in registers: registers of a row for each tap of other axes; those of taps of a row; rows."""
    *before, last = problem.axes
    width, loads = problem.register / problem.acc_bytes, 1.0
    rows = width / (last.out or 1)  # for each register full of results
    for axis in before:
        loads *= taps_inside(axis)
    return {"held": loads * -(-places(last) // width) * rows, "taken": last.kernel * -(-last.out // width) * rows,
            "short": rows}


def is_disjoint(problem: Problem) -> bool:
    """Whether `passes` keeps groups of windows in registers: they share no place along the last axis."""
    last, lanes = problem.axes[-1], problem.lanes
    width, inside = problem.register // problem.acc_bytes, last.end - last.begin
    groups, picks = 1 if inside == last.out else 32 if lanes == 1 else 4, 6 if problem.register == 32 else 12
    return (1 < last.stride <= 4 and last.kernel == last.span <= last.stride and not problem.planar
            and len(problem.axes) <= 3 and (lanes > 1 or last.stride != 3)
            and (lanes == 1 or (2 * lanes <= width and last.kernel * (last.stride - 1) <= picks))
            and inside >= width // lanes * groups
            and problem.reduction in DISJOINT
            and (len(problem.axes) < 3 or problem.axes[1].kernel <= problem.axes[1].stride)
            and all(axis.kernel <= FEW and max(axis.pads) < axis.span for axis in problem.axes))


def disjoint_work(problem: Problem) -> Work:
    """The work of groups of windows: registers that are loaded, and split or picked from; groups."""
    *before, last = problem.axes
    lanes, width, loads = problem.lanes, problem.register // problem.acc_bytes, float(last.stride)
    groups = width / (width // lanes * lanes)  # for each register full of results
    for axis in before:
        loads *= taps_inside(axis)
    return {"joined": loads * groups, "chosen": (last.stride - 1) * (last.kernel if lanes > 1 else 1) * groups,
            "groups": groups}


def passes_work(problem: Problem) -> Work:
    """
    The work of passes: registers that are loaded, stored, added, and split into phases; results that are picked one by
    one; registers of taps along the last axis, and of those that `direct` reads as they are; windows of the last axis
    that are reduced one by one, and those that are reduced in registers, with the registers of their taps; rows; planes
    that are loaded; items that are loaded one by one; square roots. Short rows and disjoint windows are other matters.

    Each pass writes results that the next one reads again: some repeatedly, some not at all. Rows hold the padding of
    the last axis, and trees that of theirs. Few taps of the first axis, and those of windows that are reduced one by
    one, are reduced while they are loaded.
    """
    *before, last = problem.axes
    # The first two conditions are only there because a new shape should take few calls.
    if problem.lanes == 1 and last.out * problem.acc_bytes <= 3 * problem.register and is_short(problem):
        return short_work(problem)
    if last.kernel <= last.stride and is_disjoint(problem):
        return disjoint_work(problem)
    axes_before = len(before)  # once, because a new shape should take few calls
    width, lanes, out, tree = problem.register / problem.acc_bytes, lanes_of(problem), last.out or 1, last.kernel > FEW
    results = out * lanes / width  # registers of a row of results
    strided = last.stride > 1 and out > 1
    apart = strided and lanes >= width
    split = strided and lanes == 1 and last.stride <= 4 and not tree and not (before and before[0].kernel > FEW)
    picked = strided and not apart and not split
    joined = split and axes_before <= 1 and last.span == last.kernel <= last.stride and last.begin + out == last.end
    converts = (problem.itemsize < problem.acc_bytes or problem.reduction == "extremum"
                or (problem.itemsize == 2 and problem.reduction == "max"))
    padded = places(last) or 1
    row = -(-padded * lanes // width) / results
    loaded = row if padded <= last.size else -(-last.size * lanes // width) / results
    done = filled(lanes if apart else out * lanes, width)
    taps = done if picked or joined or tree else done * last.kernel
    stores, added, loads, singly, windows, planes = 0.0, 0.0, 1.0, 0.0, 1, 1
    inner = row  # registers of rows for each register of results
    for a in range(axes_before - 1, -1, -1):
        axis = before[a]
        windows *= axis.out or 1
        count = places(axis)
        lone = axis.kernel > FEW and alone(problem, axis, row * results * width)
        if axis.kernel > FEW and not lone:
            added += (2 * math.log2(axis.kernel) + 2) * inner * count / (axis.out or 1)
            stores += inner
            loads = count / (axis.out or 1)
        else:
            loads = taps_inside(axis)
            if lone:
                singly += inner / row / results
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
    lone, fold = tree and alone(problem, last, lanes), tree and folded(problem)
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
    return {"loads": loads * rows * loaded, "stores": stores + (rows * done if joined else inner),
            "sums": added, "splits": inner * SPLITS[problem.itemsize] if split else 0,
            "picks": width / lanes if picked else 0, "taps": taps, "plain": taps if apart and not converts else 0,
            "each": singly + (width / lanes if lone else 0), "folds": width if fold else 0,
            "folded": last.kernel if fold else 0, "rows": rows / results,
            "items": 1 / (results * windows) if before and not even else 0,  # otherwise items are rows
            "planes": planes / (results * windows) if axes_before > 1 else 0,
            "roots": done if problem.reduction == "norm" else 0}


def has_near_windows(problem: Problem) -> bool:
    """Whether windows that touch the input, and so rows with the padding that they read, reach not much beyond it."""
    return max([(axis.span if axis.out == 1 or axis.span > axis.stride else axis.stride) - 8 * axis.size
                for axis in problem.axes]) <= 64


WORK = {"whole": whole_work, "ordered": ordered_work, "direct": direct_work, "passes": passes_work}
STEPS = tuple(Step(*record) for record in table.STEPS)


def retry_of(step: Step, problem: Problem, dtype: str) -> tuple[Step, str]:
    """
    The step that computes suspect results of a step again, and its reduction. The step is its retry, itself, or the
    first one that takes them.
    """
    doubles = problem.reduction == "mean" and dtype in KINDS["double_mean"].dtypes
    reduction = "double_mean" if doubles else "wide"
    if step.retry is not None and max([axis.kernel for axis in problem.axes]) > FEW:
        for other in STEPS:
            if other.name == step.retry and other.fits(problem):
                return other, reduction
    if reduction in step.reductions:
        return step, reduction
    again = problem._replace(reduction=reduction)
    return next(other for other in STEPS if other.fits(again)), reduction
