"""Tiles: how many windows along each axis, items and lanes a solver processes at a time.

Tiles never change a bit of a result. They determine the working set, and how threads can share the work.
"""

import math
from collections.abc import Callable, Sequence

from onnxpool.planning.setup import Extents
from onnxpool.windows import Axis, ceil_div

MOST = 1_000_000  # bytes per thread; a larger tile is cut whatever it costs, because callers are promised about 1 MiB
# Windows that nearly take these bytes, or more, leave so little room that tiles would read the same elements again and
# again. Their tiles may take twice as much as a window.
LARGE_WINDOW, MOST_WINDOWS = 800_000, 2
# A problem that several threads solve has 4 to 16 tasks of about LARGE elements and results, unless it is smaller. With
# 16 tasks, whose tiles read more of their borders again, and from twice as many elements on, two threads took 1.2 times
# as long (Zen 3, float32, channels last, 0.5 to 4 MB).
FEWEST_TASKS, MOST_TASKS, LARGE = 4, 16, 1 << 17
# Measured on Zen 3 with one thread:
LONGEST = 1 << 24  # maximum elements and results of a task, because signals are checked only between tasks
MOST_EXTRA = 1.6  # maximum work of two half tiles relative to a whole one, unless memory demands more
HALVED_LANES = 1.2  # work of halved lanes that fill cache lines; otherwise 2


def places(axes: Sequence[Axis], windows: Sequence[int]) -> int:
    """The number of places that the windows of a tile read."""
    total = 1
    for axis, count in zip(axes, windows, strict=True):
        total *= axis.read_by(count)
    return total


def results(tile: Extents) -> int:
    """The number of results of a tile."""
    return math.prod(tile.windows) * tile.lanes * tile.items


def elements(axes: Sequence[Axis], tile: Extents) -> int:
    """The number of elements and results of a tile."""
    return places(axes, tile.windows) * tile.lanes * tile.items + results(tile)


def reused(axes: Sequence[Axis], tile: Extents) -> int:
    """The number of elements that a row of windows reads, some of which the next row reads again."""
    return places(axes, (1, *tile.windows[1:])) * tile.lanes


def count(axes: Sequence[Axis], items: int, lanes: int, tile: Extents) -> int:
    """The number of tiles."""
    tiles = -(-items // tile.items) * -(-lanes // tile.lanes)
    for axis, windows in zip(axes, tile.windows, strict=True):
        tiles *= -(-axis.out // windows)
    return tiles


class Work:
    """
    The work of computing windows, measured as the places that they read.

    Parameters
    ----------
    axes : sequence of Axis
    by_axis : bool
        Whether elements that stay in place are reduced one axis after the other, starting with the first. Each pass
        also reads padding, and writes its results.
    rows : bool
        Whether rows stay whole while there are several of them, because a transposition reads their places in order.
    all_lanes : bool
        Whether lanes are not cut.
    """

    __slots__ = ("all_lanes", "axes", "by_axis", "rows")

    def __init__(self, axes: Sequence[Axis], by_axis: bool, rows: bool, all_lanes: bool = False) -> None:
        self.axes, self.by_axis, self.rows, self.all_lanes = axes, by_axis, rows, all_lanes

    def halves(self, windows: Sequence[int]) -> list[float]:
        """The work of two halves relative to the whole, for each axis along which windows can be halved."""
        more = self._of_passes(windows) if self.by_axis else [
            2 * axis.read_by((count + 1) // 2) / axis.read_by(count)
            for axis, count in zip(self.axes, windows, strict=True)]
        if self.rows and math.prod(windows[:-1]) > 1:
            more[-1] = math.inf
        return [round(ratio, 1) if count > 1 else math.inf for ratio, count in zip(more, windows, strict=True)]

    def _of_passes(self, windows: Sequence[int]) -> list[float]:
        read, counts, more = [*map(padded, self.axes, windows)], [*windows], []
        whole = passed(read, counts)
        for a, axis in enumerate(self.axes):
            kept = read[a], counts[a]
            counts[a] = (counts[a] + 1) // 2
            read[a] = padded(axis, counts[a])
            more.append(2 * passed(read, counts) / whole)
            read[a], counts[a] = kept
        return more


def padded(axis: Axis, windows: int) -> int:
    """The number of places that this many windows of an axis read, including padding."""
    return (windows - 1) * axis.stride + axis.span


def passed(read: Sequence[int], windows: Sequence[int]) -> int:
    """The number of places that all passes read and write."""
    total = places = math.prod(read)
    for size, count in zip(read, windows, strict=True):
        places = places // size * count
        total += places
    return total


def halved(tile: Extents, work: Work, least: int, grain: int) -> tuple[float, Extents]:
    """The factor by which work grows (inf if indivisible), and the tile, halved where this adds the least work."""
    items, windows, lanes = tile
    if items > 1:
        return 1, Extents((items + 1) // 2, windows, lanes)
    ways = work.halves(windows)
    more = min(ways, default=math.inf)
    by_lanes = math.inf if work.all_lanes or lanes <= 1 else HALVED_LANES if lanes >= 2 * least else 2
    if by_lanes < more:
        half = ceil_div(lanes, 2 * grain) * grain if lanes >= 2 * least else ceil_div(lanes, 2)
        return by_lanes, Extents(items, windows, half)
    if more == math.inf:
        return more, tile
    a = ways.index(more)
    return more, Extents(items, (*windows[:a], (windows[a] + 1) // 2, *windows[a + 1:]), lanes)


def tasks_of(axes: Sequence[Axis], extents: tuple[int, int, int]) -> tuple[int, int]:
    """The minimum number of tasks of a problem, for one thread and for several, as far as it can be divided."""
    elements, results = 1, 1
    for axis in axes:
        elements, results = elements * axis.size, results * axis.out
    groups, items, lanes = extents
    amount = (elements + results) * groups * items * lanes
    alone = amount // LONGEST or 1
    if amount < LARGE:
        return alone, 1
    tasks = amount // LARGE
    tasks = FEWEST_TASKS if tasks < FEWEST_TASKS else MOST_TASKS if tasks > MOST_TASKS else tasks
    return alone, alone if alone > tasks else tasks


def cut(axes: Sequence[Axis], extents: tuple[int, int, int], volume: Callable[[Extents], int], room: int,
        work: Work, within: Extents | None = None, lane_values: tuple[int, int] = (1, 1 << 62),
        grain: int = 1) -> Extents:
    """
    Cuts x[group, item, axes, lane] into tiles.

    Parameters
    ----------
    axes : sequence of Axis
    extents : (int, int, int)
        Numbers of groups, items and lanes.
    volume : callable
        Returns the bytes that a tile takes.
    room : int
        The byte budget of a tile.
    work : Work
        The work of computing windows.
    within : Extents, optional
        A larger tile to cut. Default is the whole problem.
    lane_values : (int, int), optional
        Minimum lanes of a tile that is cut, and maximum lanes of any tile.
    grain : int, optional
        The lanes of every tile but the last are a multiple of it.
    """
    _, items, lanes = extents
    tile = within or Extents(items, tuple([axis.out for axis in axes]), min(lanes, lane_values[1]))
    held = volume(tile)
    while True:
        wanted = held > room
        if not wanted and held <= MOST:
            return tile
        more, smaller = halved(tile, work, lane_values[0], grain)
        fits = volume(smaller)
        if not wanted or more > MOST_EXTRA:
            window = volume(Extents(1, (1,) * len(axes), min(tile.lanes, lane_values[0])))
            if held <= max(MOST, fits, MOST_WINDOWS * window if window > LARGE_WINDOW else 0):
                return tile
        tile, held = smaller, fits


def divide(axes: Sequence[Axis], extents: tuple[int, int, int], tile: Extents, tasks: int, work: Work, least: int,
           grain: int) -> Extents:
    """A part of a tile, so that there are enough tasks, if this costs little. Items are always halved first."""
    groups, items, lanes = extents
    part = items
    others = groups * count(axes, 1, lanes, tile)  # for each tile of items
    while part > 1 and -(-items // part) * others < tasks:
        part = (part + 1) // 2
    if part < tile.items:
        tile = Extents(part, tile.windows, tile.lanes)
    while -(-items // part) * others < tasks:
        more, smaller = halved(tile, work, least, grain)
        if more > MOST_EXTRA:
            break
        tile, others = smaller, groups * count(axes, 1, lanes, smaller)
    return tile
