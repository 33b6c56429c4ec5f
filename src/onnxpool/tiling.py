"""Tiling: how many windows of each axis a kernel takes at a time, so that what it holds stays in the cache.

A tile never changes a bit of a result (see kernels/reductions.pxd); it only decides what is near when.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from .windows import Axis

BLOCK = 1 << 17  # bytes of running values that a tile should hold between two passes,
LONG_BLOCK = 1 << 18  # or if windows are long, so that more of them need the same elements,
MOST_BLOCK = 3 << 17  # and at most, whatever it costs;
LONE_BLOCK = 1 << 19  # where no second block is needed, as the last pass gives elements (ring_tiles.pxi), or
# none, as all axes are reduced at once; views that lie apart need two, which shall not be more than a mebibyte
ROW = 1 << 9  # bytes: channels are not split below this, or below a vector if windows are long
LONG_ROW = 1 << 18  # bytes of running values of a row that are held at once, if parts of it do not share much
ROWS = 1 << 15  # bytes of running values of neighbouring rows that are loaded and reduced together
TASKS = 16  # that a large problem is cut into at least, for threads to share
SEGMENTED = 1 << 20  # bytes of running values of a plane that is cut into segments,
SEGMENTS = 4  # times as many as tasks, as what the last one leaves is not shared
SHARED_WORK = 1 << 18  # elements in and out above which a problem is large
SIDE = 3  # taps along each of the last two axes up to which both are reduced at once,
VECTOR = 64  # and bytes that channels must fill for it (boxes.pxi)
FEW = 8  # elements of a channel that are not worth vectors of their own (planes.pxi),
BAND = 1 << 12  # bytes of a band of several places at most, and of channels that are a task of their own
BOXES = 1 << 16  # bytes of running values of a tile of boxes,
BOX_ROWS, BOX_WINDOWS = 2, 8  # but so many windows down and across at least
PLANAR = 1 << 8  # bytes of channels that are transposed together,
SEVERAL = 40  # if there are so many, or enough for a vector: as rows, if they are no wider than
NARROW = 48  # elements,
NARROW_BOX, NARROW_BYTES = 16, 104  # elements, or bytes of running values, if more, of maxima of a few neighbours,
SHORT, SHORT_BYTES = 14, 80  # elements, or bytes of running values, if fewer, of sums
PAGE, PAGES = 1 << 12, 1 << 15  # bytes
LONG = 20  # elements of a row that follows the one before it as if they were one
FLAT = 1 << 13  # bytes of running values of planes that are taken as one long row, or twice as many of a narrow one,
FLAT_WASTE = 2  # at most so many times as elements,
FLAT_ROW = 10  # with so many elements of a row at least,
FLAT_SUMS = 192  # bytes of running sums of a row at most, or half as many of three axes,
MOST_FLAT = 48  # and so many bytes of the taps of a window along each axis at most
LONGEST = 1 << 10  # places of rows that are transposed for tables of neighbours (tables.pxi),
NEIGHBOURS = 4  # with so many values each
RINGS = 1 << 15  # bytes of several rings of them (rings.pxi)
HALO = 1.3  # how much more two half tiles may load than a whole one,
FREE_HALO = 1.1  # and how much of that is better than a part of the channels, whose rows have to be gathered


class Tiling(NamedTuple):
    """The extents of a tile, and how many values the kernel's scratch memory needs for it."""

    outer: int
    windows: tuple[int, ...]
    inner: int
    block: int
    row: int
    work: int
    marks: int
    boxes: bool
    whole: bool
    finishes: bool
    at_once: bool
    flat: int
    pitches: tuple[int, ...]
    segments: int


def needed(axis: Axis, windows: int) -> int:
    """The most elements that so many neighbouring windows need; all windows take a little that is left over as well."""
    most = min(axis.size, (windows - 1) * axis.stride + axis.span)
    return axis.size if windows == axis.out and 8 * most > 7 * axis.size else most


def passes(axes: tuple[Axis, ...], windows: list[int], inner: int, itemsize: int,
           in_order: bool) -> tuple[int, int]:
    """The largest block between two passes of one outer item, and the largest slice of a pass."""
    loaded = [needed(axis, count) for axis, count in zip(axes, windows, strict=True)]
    if in_order:
        return max(math.prod(loaded), math.prod(windows)) * inner, 0
    block = work = 0
    post = inner
    for a in range(len(axes) - 1, -1, -1):
        work = max(work, 2 * loaded[a] * post + tables(axes[a], windows[a], post, itemsize))
        post *= windows[a]
        pre = 1
        for b in range(a):
            pre *= loaded[b]
        block = max(block, pre * post)
    return block, work


def tables(axis: Axis, windows: int, post: int, itemsize: int) -> int:
    """The most values that tables or rings of neighbours of so many windows take, beside the twice loaded ones."""
    if axis.most <= FEW:
        return 0
    places, lanes = max(needed(axis, windows), windows), max(1, VECTOR // itemsize)
    rows = 2 * min(places, LONGEST) * lanes * post if post <= NEIGHBOURS else 0
    return rows + rings(axis, lanes, RINGS // itemsize)


def rings(axis: Axis, lanes: int, several: int) -> int:
    """The most values that rings of neighbours take, of a vector or, up to so many, of several; begun at a line."""
    room = 1 << (axis.hop - 1).bit_length()
    return max(room * (1 << axis.most.bit_length()) * lanes, several) + lanes


def looks_up(axis: Axis) -> bool:
    """Whether windows share so many taps that they are looked up, and are not taken as whole steps."""
    steps = axis.hop == 1 and 1 < axis.step < axis.taps and axis.taps % axis.step == 0
    return not steps and axis.most > FEW and axis.out * axis.most > 2 * axis.most.bit_length() * axis.size


def final_axis(axes: tuple[Axis, ...]) -> Axis:
    """The one that is reduced after all others: the first of which not every element is a window."""
    return next((axis for axis in axes if axis.most > 1 or axis.step > 1 or axis.out != axis.size), axes[-1])


def chains(axes: tuple[Axis, ...], inner: int, itemsize: int) -> int:
    """The most values that are held back while a plane is combined (planes.pxi)."""
    return (BAND if inner > 1 else VECTOR) // itemsize * (2 + math.prod(axis.size for axis in axes).bit_length())


def halo(axis: Axis, windows: int) -> float:
    """How much more is loaded along an axis when a tile is halved."""
    return 2 * needed(axis, -(-windows // 2)) / needed(axis, windows)


def splits_row(axis: Axis, windows: int, place: int) -> bool:
    """Whether the last axis had better be split: scratch memory of many MiB would be mapped anew in each call."""
    return windows > 1 and needed(axis, windows) * place > LONG_ROW and halo(axis, windows) <= FREE_HALO


def split(axes: tuple[Axis, ...], windows: list[int], most: float, block: Callable[[], int] = lambda: 0) -> bool:
    """Halves the tile along the axis where it costs least, the first of equals that makes the block, if any, smaller.

    To a tenth, as rows had better stay whole: memory is read in order. False if all cost more than `most`.
    """
    counts = enumerate(zip(axes, windows, strict=True))
    for cost, a in sorted((round(halo(axis, count), 1), a) for a, (axis, count) in counts if count > 1):
        count, before = windows[a], block()
        windows[a] = -(-count // 2)
        if cost <= most and block() <= before / 1.5:
            return True
        windows[a] = count
    return False


def fills_vectors(axes: tuple[Axis, ...]) -> bool:
    """Whether planes of one window are worth vectors of their own."""
    return math.prod(axis.size for axis in axes) > FEW


def small_boxes(axes: tuple[Axis, ...]) -> bool:
    """Whether the last two axes are reduced at once, which is also an order of their taps."""
    return len(axes) > 1 and axes[-2].most <= SIDE >= axes[-1].most


def at_once(axes: tuple[Axis, ...]) -> bool:
    """Whether windows along up to three axes share so few taps that each had better read all of its own."""
    if len(axes) > 3 or (len(axes) > 1 and any(axis.most > FEW for axis in axes)):
        return False
    apart = 0
    for axis in axes:
        # Axis after axis, what one leaves is written and read again.
        fresh = axis.most if axis.out == 1 else min(axis.most, axis.step)
        apart = apart * fresh + (axis.most + 1 if axis.most > 1 else 0)
    return math.prod(axis.most for axis in axes) <= apart


def pitches(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """The places from plane to plane and from one element of each axis to the next in a flat tile (flat_tiles.pxi)."""
    result = [1]
    for axis in reversed(axes):
        result.append((axis.size + max(axis.pads)) * result[-1])
    return tuple(reversed(result))


def flattens(axes: tuple[Axis, ...], itemsize: int, reduction: str) -> bool:
    """Whether planes of short rows are taken as one long row.

    Sums only of few taps, and no window without any: there what is put between rows changes nothing. Not means, nor
    maxima of small boxes, of windows that follow each other as if there were one long row, unless rows are short.
    """
    sums = reduction != "max"
    last = axes[-1]
    strips = len(axes) == 2 and small_boxes(axes) and last.most > 1 and itemsize >= 4
    if last.out == last.size > LONG and (reduction == "mean" or (reduction == "max" and strips)):
        return False
    if sums and axes[-1].size * itemsize * (2 if len(axes) > 2 else 1) > FLAT_SUMS:
        return False
    most = SIDE if sums else MOST_FLAT // itemsize
    places = pitches(axes)[0]
    row = axes[-1].size
    return (row >= FLAT_ROW and (row <= NARROW or row * itemsize <= 2 * VECTOR)
            and places * itemsize <= (2 * FLAT if row <= NARROW else FLAT)
            and places <= FLAT_WASTE * math.prod(axis.size for axis in axes) and any(axis.most > 1 for axis in axes)
            and all((axis.stride == 1 or axis.out == 1) and axis.begin < axis.end and axis.most <= most
                    and axis.out <= axis.size + max(axis.pads) and not (sums and 0 in axis.inside) for axis in axes))


def transposes(axes: tuple[Axis, ...], channels: int, itemsize: int, reduction: str) -> bool:
    """Whether rows are so short that channels are better brought side by side, to fill vectors.

    Boxes of a few taps are quick to reduce as rows lie, sums the more so, and so are windows of three axes that share
    most of their taps, and those of one tap along rows. Not for one window of all elements. Long rows as well where
    taps are added in order, but for few of them and no border.
    """
    last = axes[-1]
    if all(axis.most <= 1 for axis in axes):
        return False
    if reduction == "mean_in_order":
        plain = last.most <= SIDE and last.step <= 2 and last.end - last.begin == last.out and last.size > NARROW
        return channels * itemsize >= VECTOR and not plain
    box = small_boxes(axes) and axes[-2].most > 1 < last.most
    # Channels a multiple of a page apart fall upon the same lines of the first cache, of several also of the second.
    plane = math.prod(axis.size for axis in axes) * itemsize
    paged = plane % PAGE == 0 and last.most <= SIDE
    if paged and last.out > 1 and (last.stride == 1 or (reduction == "max" and plane % PAGES == 0)):
        return False
    shared = last.stride == 1 and (last.most <= SIDE or len(axes) > 2)
    across = last.most == 1 and last.stride == 2 and len(axes) > 2
    most = NARROW
    if last.out == 1 or (reduction == "indexed_max" and not paged):
        pass
    elif box and reduction == "max" and not paged and (len(axes) == 2 or itemsize <= 2):
        most = min(NARROW, max(NARROW_BOX, NARROW_BYTES // itemsize))
    elif box or paged or shared or across:
        most = min(SHORT, SHORT_BYTES // itemsize)
    whole = all(axis.out == 1 and axis.most == axis.size for axis in axes)
    return (channels >= min(SEVERAL, VECTOR // itemsize) and last.size <= most
            and (not whole or (box and reduction not in ("max", "indexed_max"))))


def good_block(axes: tuple[Axis, ...], boxes: bool, long: bool, finishes: bool, direct: bool) -> int:
    """The bytes of running values that a tile should hold; see `choose`."""
    deep = boxes and len(axes) > 2 and (direct or at_once(axes))
    if finishes and (deep or (long and looks_up(final_axis(axes)))):
        return LONE_BLOCK
    return LONG_BLOCK if long else BLOCK


def choose(axes: tuple[Axis, ...], outer: int, inner: int, itemsize: int, in_order: bool = False,
           planar: bool = False, whole: bool = False, finishes: bool = False, direct: bool = False,
           within: Tiling | None = None) -> Tiling:
    """The tiling of x[outer, axes, inner] whose running values take `itemsize` bytes.

    Planar channels lie apart, and a tile of a few of them costs no more than one of many. In order, it
    holds all elements of its windows instead of reducing rows as they come. What finishes may go from the last pass to
    the result; it is `direct` if that is so in the same format. Tiles `within` those of another tiling are few, so that
    they may cost more, but hold no more.
    """
    windows = list(within.windows if within else (axis.out for axis in axes))
    whole = whole and (fills_vectors(axes) or (inner > 1 and not planar))
    part = within.inner if within else inner
    if planar and not whole:
        part = min(part, max(1, PLANAR // itemsize))

    def tasks(group: int) -> int:
        count = -(-outer // group) * -(-inner // part)
        for axis, extent in zip(axes, windows, strict=True):
            count *= -(-axis.out // extent)
        return count

    boxes = small_boxes(axes) and not in_order and not whole
    beside = not planar and inner * itemsize >= VECTOR  # what is transposed is not to be transposed twice
    long = any(axis.most > FEW for axis in axes)
    good = BLOCK if within else good_block(axes, boxes, long, finishes and beside, direct)
    if boxes and beside and good == BLOCK:
        for axis, least in (-2, BOX_ROWS), (-1, BOX_WINDOWS):
            while math.prod(windows) * part * itemsize > BOXES and windows[axis] > least:
                windows[axis] = -(-windows[axis] // 2)
    most = good if within else max(good, MOST_BLOCK)

    def block_of() -> int:
        return passes(axes, windows, part, itemsize, in_order)[0] * itemsize

    while not whole and (block := block_of()) > good:
        if split(axes, windows, FREE_HALO):
            continue
        if part * itemsize >= 2 * (VECTOR if long else ROW):
            part = -(-part // 2)
        elif not split(axes, windows, HALO) and not (block > most and split(axes, windows, math.inf, block_of)):
            break
    while not whole and splits_row(axes[-1], windows[-1], part * itemsize):
        windows[-1] = -(-windows[-1] // 2)
    work = outer * inner * (math.prod(axis.size for axis in axes) + math.prod(axis.out for axis in axes))
    shared = work >= SHARED_WORK
    while shared and tasks(1) < TASKS and not whole and split(axes, windows, HALO):
        pass
    while shared and tasks(1) < TASKS and whole and part * itemsize >= 2 * BAND:
        # VECTOR channels fill a vector of any running value: so do those of the last part.
        part = -(-part // 2 // VECTOR) * VECTOR
        while 0 < inner % part < VECTOR:
            part += VECTOR
    segments = 1
    if (whole and 2 * tasks(1) < TASKS and math.prod(axis.size for axis in axes) * part * itemsize >= SEGMENTED
            and (inner == 1 or part * itemsize <= BAND)):
        segments = SEGMENTS * TASKS // tasks(1)
    block, scratch = (part, chains(axes, part, itemsize)) if whole else passes(axes, windows, part, itemsize, in_order)
    if boxes:
        scratch = max(scratch, part * needed(axes[-2], windows[-2]) * needed(axes[-1], windows[-1]))
    group = max(1, min(BLOCK // (block * itemsize), outer // TASKS if shared else outer))
    loaded = [needed(axis, count) for axis, count in zip(axes, windows, strict=True)]
    row = max(loaded[-1], windows[-1]) * part
    row = max(row, min(ROWS // itemsize, group * part * math.prod(loaded)))
    if whole:
        row = max(part, min(row, ROWS // itemsize))
    elif axes[-1].most > FEW and part <= NEIGHBOURS and loaded[-1] <= LONGEST:
        row = max(row, loaded[-1] * part * VECTOR // itemsize)
    return Tiling(group, tuple(windows), part, block * group, row, max(scratch, row, block * group), sum(loaded[:-1]),
                  boxes, whole, finishes, at_once(axes), 0, (), segments)


def choose_flat(axes: tuple[Axis, ...], outer: int, itemsize: int) -> Tiling:
    """As `choose`, of flat tiles."""
    distances, volume = pitches(axes), math.prod(axis.size for axis in axes)
    reach = sum((axis.taps - 1) * axis.hop * pitch for axis, pitch in zip(axes, distances[1:], strict=True))
    shared = outer * volume >= SHARED_WORK
    group = max(1, min(BLOCK // (distances[0] * itemsize), outer // TASKS if shared else outer))
    some = min(group, max(1, FLAT // (distances[0] * itemsize)))
    flat = -(-(some * distances[0] + reach) // VECTOR) * VECTOR
    windows = tuple(axis.out for axis in axes)
    row = some * max(volume, math.prod(windows))
    return Tiling(group, windows, 1, math.prod(windows), row, 3 * flat, sum(axis.size for axis in axes[:-1]),
                  False, False, False, False, some, distances, 1)
