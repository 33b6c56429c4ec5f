"""Tiles: how many windows of each axis, items and lanes a step takes at a time.

A tile never changes a bit of a result. It decides what is in the caches together, and what threads can share.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..windows import Axis, ceil_div

MOST = 1_000_000  # bytes of memory that a thread should take at most, whatever it costs: what is promised is a MiB
TASKS = 16  # that a large problem is cut into at least, so that up to 8 threads share them evenly; not measured
# Measured on Zen 3 with one thread:
LARGE = 1 << 18  # elements in and out of a large problem; from half of it on: 1.7 times the time of one tile
AGAIN = 1.6  # how much more work two half tiles may be than a whole one, unless memory does not suffice
LANES = 1.2  # how much more work it is to halve lanes, while they fill cache lines; else 2


Work = Callable[[Sequence[Axis], Sequence[int]], int]


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


def passed(axes: Sequence[Axis], windows: Sequence[int]) -> int:
    """The places that passes read and the results that they leave: one axis after the other, the first one first."""
    places = math.prod((count - 1) * axis.stride + axis.span for axis, count in zip(axes, windows, strict=True))
    total = places
    for axis, count in zip(axes, windows, strict=True):
        places = places // ((count - 1) * axis.stride + axis.span) * count
        total += places
    return total


def halved(axes: Sequence[Axis], tile: Tile, work: Work, least: int, grain: int) -> tuple[float, Tile]:
    """The tile halved where that adds least work, and how much more work it is: infinite if it is one."""
    if tile.items > 1:
        return 1, Tile(ceil_div(tile.items, 2), tile.windows, tile.lanes)
    ways, whole = [], work(axes, tile.windows)
    for a, part in enumerate(tile.windows):
        if part > 1:
            windows = (*tile.windows[:a], ceil_div(part, 2), *tile.windows[a + 1:])
            ways.append((round(2 * work(axes, windows) / whole, 1), a, tile._replace(windows=windows)))
    if tile.lanes >= 2 * least:
        ways.append((LANES, len(axes), tile._replace(lanes=ceil_div(tile.lanes, 2 * grain) * grain)))
    elif tile.lanes > 1:
        ways.append((2, len(axes), tile._replace(lanes=ceil_div(tile.lanes, 2))))
    more, _, smaller = min(ways, default=(math.inf, 0, tile))
    return more, smaller


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
    work : callable
        How much work so many windows are: `places`, or `passed` for passes over elements that stay where they are.
    within : Tile, optional
        A larger tile, which is cut.
    lane_values : (int, int), optional
        Lanes below which a tile is not cut, and the most that it has.
    grain : int, optional
        Lanes of a tile are a multiple of it, but for the last tile.
    """
    groups, items, lanes = extents
    tile = within or Tile(items, tuple(axis.out for axis in axes), min(lanes, lane_values[1]))
    large = within is None and elements(axes, tile._replace(lanes=lanes)) * groups >= LARGE
    tasks = TASKS if large else 1
    held = volume(tile)
    while True:
        wanted = held > room or (tasks > 1 and groups * count(axes, items, lanes, tile) < tasks)
        if not wanted and held <= MOST:
            return tile
        more, smaller = halved(axes, tile, work, lane_values[0], grain)
        fits = volume(smaller)
        if not ((wanted and more <= AGAIN) or held > max(MOST, fits)):
            return tile
        tile, held = smaller, fits
