"""Tiles: how many windows of each axis, items and lanes a step takes at a time.

A tile never changes a bit of a result. It decides what is in the caches together, and what threads can share.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..windows import Axis, ceil_div

MOST = 1_000_000  # bytes of memory of a thread; a larger tile is cut at any cost, as about 1 MiB is promised
TASKS = 16  # that a large problem is cut into at least, so that up to 8 threads share them evenly; not measured
# Measured on Zen 3 with one thread:
LARGE = 1 << 18  # elements in and out of a large problem; from half of it on: 1.7 times the time of one tile
AGAIN = 1.6  # how much more work two half tiles may be than a whole one, unless memory does not suffice
LANES = 1.2  # how much more work it is to halve lanes, while they fill cache lines; else 2


class Tile(NamedTuple):
    """The extents of a tile."""

    items: int
    windows: tuple[int, ...]
    lanes: int


def places(axes: Sequence[Axis], windows: Sequence[int]) -> int:
    """The places that windows read."""
    return math.prod(axis.read_by(count) for axis, count in zip(axes, windows, strict=True))


def results(tile: Tile) -> int:
    """The results of a tile."""
    return math.prod(tile.windows) * tile.lanes * tile.items


def elements(axes: Sequence[Axis], tile: Tile) -> int:
    """The elements that a tile reads, and the results that it has."""
    return places(axes, tile.windows) * tile.lanes * tile.items + results(tile)


def reused(axes: Sequence[Axis], tile: Tile) -> int:
    """The elements that a row of windows reads, of which the next row reads some again."""
    return places(axes, (1, *tile.windows[1:])) * tile.lanes


def count(axes: Sequence[Axis], items: int, lanes: int, tile: Tile) -> int:
    """How many tiles there are."""
    tiles = -(-items // tile.items) * -(-lanes // tile.lanes)
    for axis, windows in zip(axes, tile.windows, strict=True):
        tiles *= -(-axis.out // windows)
    return tiles


class Work:
    """
    How much work windows are: the places that they read.

    Parameters
    ----------
    axes : sequence of Axis
    by_axis : bool
        Whether elements that stay where they are are reduced one axis after the other, the first one first. Each pass
        reads padding too, and leaves results.
    rows : bool
        Whether rows stay whole as long as there are several: a transposition reads their places one after the other.
    """

    __slots__ = ("axes", "by_axis", "rows")

    def __init__(self, axes: Sequence[Axis], by_axis: bool, rows: bool) -> None:
        self.axes, self.by_axis, self.rows = axes, by_axis, rows

    def halves(self, windows: Sequence[int]) -> list[float]:
        """How much more work two halves are than the whole, for each axis along which windows are halved."""
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
    """The places of an axis that so many windows read, with padding."""
    return (windows - 1) * axis.stride + axis.span


def passed(read: Sequence[int], windows: Sequence[int]) -> int:
    """What passes read and leave."""
    total = places = math.prod(read)
    for size, count in zip(read, windows, strict=True):
        places = places // size * count
        total += places
    return total


def halved(tile: Tile, work: Work, least: int, grain: int) -> tuple[float, Tile]:
    """The tile halved where that adds least work, and how much more work it is: infinite if it is one."""
    items, windows, lanes = tile
    if items > 1:
        return 1, Tile((items + 1) // 2, windows, lanes)
    ways = work.halves(windows)
    more = min(ways, default=math.inf)
    by_lanes = LANES if lanes >= 2 * least else 2 if lanes > 1 else math.inf
    if by_lanes < more:
        half = ceil_div(lanes, 2 * grain) * grain if lanes >= 2 * least else ceil_div(lanes, 2)
        return by_lanes, Tile(items, windows, half)
    if more == math.inf:
        return more, tile
    a = ways.index(more)
    return more, Tile(items, (*windows[:a], (windows[a] + 1) // 2, *windows[a + 1:]), lanes)


def cut(axes: Sequence[Axis], extents: tuple[int, int, int], volume: Callable[[Tile], int], room: int,
        work: Work, within: Tile | None = None, lane_values: tuple[int, int] = (1, 1 << 62), grain: int = 1) -> Tile:
    """
    Cuts x[group, item, axes, lane] into tiles.

    Parameters
    ----------
    axes : sequence of Axis
    extents : (int, int, int)
        Groups, items and lanes.
    volume : callable
        The bytes that a tile holds.
    room : int
        The most bytes of a tile.
    work : Work
        How much work windows are.
    within : Tile, optional
        A larger tile, which is cut.
    lane_values : (int, int), optional
        Lanes below which a tile is not cut, and the most that it has.
    grain : int, optional
        Lanes of a tile are a multiple of it, but for the last tile.
    """
    groups, items, lanes = extents
    tile = within or Tile(items, tuple(axis.out for axis in axes), min(lanes, lane_values[1]))
    large = within is None and elements(axes, Tile(items, tile.windows, lanes)) * groups >= LARGE
    tasks = TASKS if large else 1
    if large:  # items are always halved first
        tile = Tile(fewer(items, tasks, groups * ceil_div(lanes, tile.lanes)), tile.windows, tile.lanes)
    held = volume(tile)
    while True:
        wanted = held > room or (tasks > 1 and groups * count(axes, items, lanes, tile) < tasks)
        if not wanted and held <= MOST:
            return tile
        more, smaller = halved(tile, work, lane_values[0], grain)
        fits = volume(smaller)
        if not ((wanted and more <= AGAIN) or held > max(MOST, fits)):
            return tile
        tile, held = smaller, fits


def fewer(items: int, tasks: int, each: int) -> int:
    """Items of a tile, halved until there are as many tasks, of which each item has some."""
    part = items
    while part > 1 and -(-items // part) * each < tasks:
        part = (part + 1) // 2
    return part
