"""Windows: attributes and a shape become, for every axis, the windows as taps that lie inside the input.

Padding, strides, dilation and rounding end here. All arithmetic is exact: Python integers, or 64-bit ones where
nothing can overflow.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import PoolError

MOST_WINDOWS = 2**40  # of an output: no machine has the memory for more
MOST_BORDER = 2**26  # windows of an axis that are not in its interior: each is stored


class Axis(NamedTuple):
    """The windows along one spatial axis.

    Windows [begin, end) have all their taps inside the input, the first of them at element `start` and each `step`
    after the one before: the interior. For every other window, in order, `first` is its first tap inside, `inside`
    how many are inside, and `divisors` by what it divides a sum.
    """

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    pads: tuple[int, int]
    begin: int
    end: int
    start: int
    step: int
    hop: int
    taps: int
    most: int
    divisor: float
    first: NDArray[np.int64]
    inside: NDArray[np.int64]
    divisors: NDArray[np.float64]
    counts_pads: bool

    @property
    def span(self) -> int:
        """How many elements a window covers, from its first tap to its last."""
        return (self.kernel - 1) * self.dilation + 1


def axis_windows(size: int, out: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int],
                 include_pad: bool) -> Axis:
    """The windows of one axis once its output size and pads are known."""
    span = (kernel - 1) * dilation + 1
    begin = min(out, -(-pads[0] // stride))
    end = max(begin, min(out, (size - span + pads[0]) // stride + 1))
    if out - (end - begin) > MOST_BORDER:
        raise PoolError(f"{out - (end - begin)} windows reach into padding, more than the limit of {MOST_BORDER}; "
                        f"lower pads or kernel_shape")
    largest = max(pads[0], out * stride) + size + pads[1] + dilation
    whole: Any = np.int64 if largest < 2**63 else object
    window = np.concatenate([np.arange(begin), np.arange(end, out)]).astype(whole)
    place = window * stride - pads[0]

    def taps_before(limit: int) -> Any:
        return np.clip(-((place - limit) // dilation), 0, kernel)

    outside, inner = taps_before(0), taps_before(size)
    inside = np.maximum(inner - outside, 0)
    divisors = taps_before(size + pads[1]) if include_pad else inside
    several = end - begin > 1
    most = max([kernel] if end > begin else inside.tolist(), default=0)
    return Axis(
        size, out, kernel, stride, dilation, pads, begin, end,
        start=begin * stride - pads[0] if end > begin else 0, step=stride if several else 1,
        hop=dilation if most > 1 else 1, taps=kernel if end > begin else 0, most=most, divisor=float(kernel),
        first=np.where(inside > 0, place + outside * dilation, 0).astype(np.int64),
        inside=inside.astype(np.int64), divisors=divisors.astype(np.float64), counts_pads=include_pad)


def per_axis(value: int | tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The value for each of `rank` axes or sides."""
    return (value,) * rank if isinstance(value, int) else value


def check_lengths(label: str, attributes: dict[str, Any], rank: int) -> None:
    """Refuses an attribute that has not one value for each axis or side."""
    for name, sides in (("kernel_shape", 1), ("pooled_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
        value = attributes.get(name)
        if isinstance(value, tuple) and len(value) != sides * rank:
            raise PoolError(f"{label}: {name}={value} has {len(value)} values, but {rank} spatial axes take "
                            f"{sides * rank}; give {sides} for each axis")


def check_sizes(label: str, sizes: tuple[int, ...], first: int) -> None:
    """Refuses an empty spatial axis."""
    for i, size in enumerate(sizes):
        if size == 0:
            raise PoolError(f"{label}: spatial axis {first + i} is empty (size 0), a window needs at least 1 element; "
                            f"only the batch and channel axes may be empty")


def whole_windows(label: str, sizes: tuple[int, ...], first: int) -> tuple[Axis, ...]:
    """One window for all of every axis."""
    check_sizes(label, sizes, first)
    return tuple(axis_windows(size, 1, size, 1, 1, (0, 0), False) for size in sizes)


def resolve_axis(label: str, index: int, axis: int, size: int, kernel: int, stride: int, dilation: int,
                 pads: tuple[int, int], mode: str, ceil: bool, include_pad: bool) -> Axis:
    """The windows of spatial axis `index`, which is axis `axis` of the array."""
    span = (kernel - 1) * dilation + 1
    if mode.startswith("SAME"):
        out = -(-size // stride)
        total = max(0, (out - 1) * stride + span - size)
        pads = (total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2)
    else:
        room = size + sum(pads) - span
        if room < 0 and not ceil:
            raise PoolError(f"{label}: kernel_shape[{index}]={kernel} with dilations[{index}]={dilation} spans {span}, "
                            f"but axis {axis} has {size} (+{pads[0]}+{pads[1]} pads); "
                            f"add pads or shrink kernel_shape")
        out = max(1, (-(-room // stride) if ceil else room // stride) + 1)
        if ceil and out > 1 and (out - 1) * stride >= size + pads[0]:
            out -= 1  # a window that would start in the padding at the end is dropped
    try:
        return axis_windows(size, out, kernel, stride, dilation, pads, include_pad)
    except PoolError as error:
        raise PoolError(f"{label}: axis {axis} with pads {pads[0]}+{pads[1]}: {error}") from None


def resolve(label: str, attributes: dict[str, Any], sizes: tuple[int, ...], first: int) -> tuple[Axis, ...]:
    """
    The windows of every spatial axis.

    Parameters
    ----------
    label : str
        How messages name the operator.
    attributes : dict
        Checked attributes; those left out have their defaults.
    sizes : tuple of int
        Of the spatial axes.
    first : int
        Which axis of the array the first spatial axis is, for messages.
    """
    rank = len(sizes)
    if attributes.get("kernel_shape") is None:
        raise PoolError(f"{label}: kernel_shape is not given, and no result is defined without it; give kernel_shape")
    check_lengths(label, attributes, rank)
    check_sizes(label, sizes, first)
    kernel = per_axis(attributes["kernel_shape"], rank)
    strides = per_axis(attributes.get("strides", 1), rank)
    dilations = per_axis(attributes.get("dilations", 1), rank)
    pads = per_axis(attributes.get("pads", 0), 2 * rank)
    mode = attributes.get("auto_pad", "NOTSET")
    if mode != "NOTSET" and any(pads):
        raise PoolError(f"{label}: pads={pads} given together with auto_pad={mode}; "
                        f"leave pads out or give auto_pad='NOTSET'")
    return tuple(
        resolve_axis(label, i, first + i, sizes[i], kernel[i], strides[i], dilations[i], (pads[i], pads[i + rank]),
                     mode, bool(attributes.get("ceil_mode")), bool(attributes.get("count_include_pad")))
        for i in range(rank))
