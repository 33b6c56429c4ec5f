"""Tiles: how many windows of each axis, items and lanes a step takes at a time.

A tile never changes a bit of a result; it only decides what is near when, and what threads can share.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..windows import Axis, ceil_div

MOST = 1_000_000  # bytes of memory that a thread should take at most, whatever it costs: what is promised is a MiB
TASKS = 16  # that a large problem is cut into at least, so that up to 8 threads share them evenly; not measured
# Measured on Zen 3 with one thread:
LARGE = 1 << 18  # elements in and out of a large problem; from half of it on: 1.7 times the time of one tile
HALO = 1.6  # how much more two half tiles may read than a whole one; 2.1: 1.5 times the time of windows of 31x31


class Tile(NamedTuple):
    """The extents of a tile."""

    items: int
    windows: tuple[int, ...]
    lanes: int


def needed(axis: Axis, windows: int) -> int:
    """The most elements that so many neighbouring windows read."""
    return min(axis.size, (windows - 1) * axis.stride + axis.span)


def elements(axes: Sequence[Axis], tile: Tile) -> int:
    """The elements that a tile reads, and the results that it has."""
    read = math.prod(needed(axis, count) for axis, count in zip(axes, tile.windows, strict=True))
    return (read + math.prod(tile.windows)) * tile.lanes * tile.items


def count(axes: Sequence[Axis], items: int, lanes: int, tile: Tile) -> int:
    """How many tiles there are."""
    tiles = ceil_div(items, tile.items) * ceil_div(lanes, tile.lanes)
    return tiles * math.prod(ceil_div(axis.out, part) for axis, part in zip(axes, tile.windows, strict=True))


def halo(axis: Axis, windows: int) -> float:
    """How much more is read along an axis when a tile is halved."""
    return 2 * needed(axis, ceil_div(windows, 2)) / needed(axis, windows)


def halved(axes: Sequence[Axis], tile: Tile, least: int, grain: int) -> Tile | None:
    """The tile cut where that costs least: items, then the axis with the least halo, then lanes; None if it is one."""
    if tile.items > 1:
        return tile._replace(items=ceil_div(tile.items, 2))
    costs = [(round(halo(axis, part), 1), a) for a, (axis, part) in enumerate(zip(axes, tile.windows, strict=True))
             if part > 1]
    if tile.lanes >= 2 * least:
        costs.append((1.2, len(axes)))
    cost, a = min(costs, default=(math.inf, 0))
    if cost > HALO:
        return None
    if a == len(axes):
        return tile._replace(lanes=ceil_div(tile.lanes, 2 * grain) * grain)
    windows = (*tile.windows[:a], ceil_div(tile.windows[a], 2), *tile.windows[a + 1:])
    return tile._replace(windows=windows)


def tightened(tile: Tile) -> list[Tile]:
    """A tile halved in each way, whatever is then read again; lanes first, which reads nothing again."""
    if tile.lanes > 1:
        return [tile._replace(lanes=ceil_div(tile.lanes, 2))]
    return [tile._replace(windows=(*tile.windows[:a], ceil_div(count, 2), *tile.windows[a + 1:]))
            for a, count in enumerate(tile.windows) if count > 1]


def cut(axes: Sequence[Axis], extents: tuple[int, int, int], volume: Callable[[Tile], int], room: int,
        within: Tile | None = None, lane_values: tuple[int, int] = (1, 1 << 62), grain: int = 1) -> Tile:
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
    within : Tile, optional
        A larger tile, which is cut.
    lane_values : (int, int), optional
        Lanes below which a tile is not cut, and the most that it has.
    grain : int, optional
        Lanes of a tile are a multiple of it, but for the last tile.
    """
    groups, items, lanes = extents
    tile = within or Tile(items, tuple(axis.out for axis in axes), min(lanes, lane_values[1]))
    whole = elements(axes, Tile(items, tuple(axis.out for axis in axes), lanes)) * groups
    tasks = 1 if within or whole < LARGE else TASKS
    while volume(tile) > room or groups * count(axes, items, lanes, tile) < tasks:
        smaller = halved(axes, tile, lane_values[0], grain)
        if smaller is None:
            break
        tile = smaller
    while volume(tile) > MOST:
        tile, larger = min(tightened(tile), key=volume, default=tile), tile
        if volume(tile) >= volume(larger):
            return larger
    return tile
