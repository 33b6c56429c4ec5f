"""A plan in words and numbers."""

import math
from typing import TYPE_CHECKING

from .windows import Axis

if TYPE_CHECKING:
    from .pooling import WindowPlan

MOST_SHOWN = 8  # windows of an axis that are listed one by one


def window(axis: Axis, index: int) -> tuple[int, int, float]:
    """First tap, number of taps inside, and divisor of one window."""
    if axis.begin <= index < axis.end:
        return axis.start + (index - axis.begin) * axis.step, axis.taps, axis.divisor
    border = index if index < axis.begin else index - (axis.end - axis.begin)
    return int(axis.first[border]), int(axis.inside[border]), float(axis.divisors[border])


def taps_text(axis: Axis, index: int) -> str:
    """The elements that one window holds."""
    first, taps, _ = window(axis, index)
    if taps == 0:
        return "none"
    last = first + (taps - 1) * axis.hop
    return f"{first}" if taps == 1 else f"{first}-{last}" + (f" by {axis.hop}" if axis.hop > 1 else "")


def axis_lines(axis: Axis, number: int, divided: bool) -> list[str]:
    """What happens along one axis."""
    shown = range(axis.out) if axis.out <= MOST_SHOWN else [*range(3), *range(axis.out - 3, axis.out)]
    texts = [taps_text(axis, i) for i in shown]
    counts = [f"{window(axis, i)[2]:g}" for i in shown]
    if axis.out > MOST_SHOWN:
        texts.insert(3, "...")
        counts.insert(3, "...")
    lines = [f"axis {number}: kernel {axis.kernel}, stride {axis.stride}, dilation {axis.dilation}, "
             f"pads {axis.pads[0]}+{axis.pads[1]}, {axis.size} -> {axis.out}",
             f"  windows {', '.join(texts)}" + (f", divided by {', '.join(counts)}" if divided else "")]
    ends = [first + (taps - 1) * axis.hop + 1 for first, taps, _ in (window(axis, i) for i in range(axis.out)) if taps]
    unread = axis.size - max(ends, default=0)
    if unread > 0:
        lines.append(f"  the last {unread} of {axis.size} elements are in no window")
    empty = int((axis.inside == 0).sum())
    if empty:
        lines.append(f"  {empty} of {axis.out} windows lie wholly in padding")
    return lines


def explain(plan: "WindowPlan") -> str:
    """The text of `WindowPlan.explain`."""
    operator = plan.operator
    first = 1 if operator.channels_last else 2
    lines = [f"{operator.label}, {plan.dtype.name} {plan.shape} -> {plan.output_shape}"]
    for i, axis in enumerate(plan.axes):
        lines += axis_lines(axis, first + i, plan.reduction[0].startswith("mean"))
    if not plan.axes:
        lines.append("no spatial axis: every element is a window")
    if not math.prod(plan.output_shape):
        lines.append("the result is empty")
    return "\n".join(lines)
