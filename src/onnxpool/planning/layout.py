"""Layout: how arrays lie in memory, and the pool that reduces them. All callers ask `setup_of`."""

import math
import sys
from typing import NamedTuple

from ..errors import PoolError
from ..kernels import pool as pools
from ..windows import Axis
from . import routes, tiles
from .routes import Problem

ACCUMULATORS = {"mean": 4, "norm": 8, "qmean": 4, "sequential": 4, "indexed": 8, "wide": 16}  # bytes, at least
MOST_PLACES = 1 << 30  # from the first tap of a window to its last one, which 32 bits can count
MOST_TAPS_OF_BYTES = 2**31 // 256  # whose sum is sure to fit into 32 bits
MOST_FLOAT, MOST_DOUBLE = (2 - 2**-23) * 2.0**127, sys.float_info.max
PLANAR = 256  # bytes of lanes that lie apart, and are brought side by side together
PLANAR_ROOM = 1 << 17  # bytes of a tile of these
LONG_ROOM = 1 << 19  # bytes of a tile whose windows are long,
PAGE = 1 << 12  # bytes of lanes below which a tile is not cut where places are read in the order of memory,
LANES = 512  # elsewhere,
VECTOR = 64  # or where windows are long, so that the rows that they share are not read again


class Stage(NamedTuple):
    """A step of a unit, and the tiles that it takes."""

    step: str
    unit: str
    items: int
    windows: tuple[int, ...]
    lanes: int


class Setup(NamedTuple):
    """What a pool is made of: the same for all callers."""

    axes: tuple[Axis, ...]
    images: int
    channels: int
    channels_last: bool  # of the arrays
    inside: bool  # whether channels are lanes
    dtype: str
    itemsize: int
    p: float
    low: float
    high: float
    least: float  # magnitudes of elements between which no sum leaves its range
    largest: float
    indexed: bool
    column_major: bool
    route: str
    stages: tuple[Stage, ...]  # and one that computes doubtful results again


def unit_of(reduction: str, dtype: str, p: float) -> tuple[str, str]:
    """The reduction by the name of its units, and the unit."""
    names = {"max": "max", "mean": "mean", "quantised_mean": "qmean", "mean_in_order": "sequential",
             "indexed_max": "indexed", "norm": "magnitude" if math.isinf(p) else "norm"}
    return names[reduction], f"{names[reduction]}_{dtype}"


class Asked(NamedTuple):
    """The reduction that an operator asks for."""

    reduction: str
    dtype: str
    itemsize: int
    p: float
    low: float  # sums in this range lost nothing
    high: float
    retries: bool
    column_major: bool  # whether indices count the first axis fastest


def acc_bytes(reduction: str, itemsize: int) -> int:
    """The bytes of an accumulator."""
    return max(itemsize, ACCUMULATORS.get(reduction, 1))


def prefers_lanes(reduction: str, axes: tuple[Axis, ...], channels: int, itemsize: int, whole: bool) -> bool:
    """Whether channels of channels-first arrays are better brought side by side than reduced row by row."""
    if channels * itemsize < VECTOR:  # planes are rows, or there are too few of them to fill a vector
        return False
    name = unit_of(reduction, "", 2.0)[0]
    size = acc_bytes(name, itemsize)
    return routes.prefers_lanes(Problem(name, axes, 1, channels, True, itemsize, size, whole))


def counts_beyond(reduction: str, dtype: str, axes: tuple[Axis, ...]) -> bool:
    """Whether places of a window need 64 bits, which only float64 has."""
    across = 0
    for order in (axes, axes[::-1]):  # indices may count the first or the last axis fastest
        places = 1
        for axis in order:
            across = max(across, min(axis.span, 2 * axis.size) * places)
            places *= axis.size
    return reduction == "indexed_max" and dtype != "float64" and across * len(axes) > MOST_PLACES


def harmless(asked: Asked, taps: int) -> tuple[float, float]:
    """Magnitudes between which elements never take a sum of so many taps out of its range."""
    taps = max(taps, 1)
    if asked.reduction != "norm":
        return 0.0, (MOST_DOUBLE if asked.dtype == "float64" else MOST_FLOAT) / (2 * taps)
    if math.isinf(asked.p) or math.isinf(asked.high):
        return 0.0, math.inf
    return 1.001 * asked.low ** (1 / asked.p), 0.999 * (asked.high / (2 * taps)) ** (1 / asked.p)


def setup_of(asked: Asked, axes: tuple[Axis, ...], images: int, channels: int, channels_last: bool, inside: bool,
             whole: bool) -> Setup:
    """
    What the pool of a problem is made of.

    Parameters
    ----------
    asked : Asked
    axes : tuple of Axis
        At least one.
    images, channels : int
    channels_last : bool
        Whether the arrays are (N, *spatial, C).
    inside : bool
        Whether channels are lanes: they lie side by side, or are brought there.
    whole : bool
        Whether a window is all of a channel.
    """
    reduction, unit = unit_of(asked.reduction, asked.dtype, asked.p)
    if counts_beyond(asked.reduction, asked.dtype, axes):
        raise PoolError(f"MaxPool: windows across more than {MOST_PLACES} places of {asked.dtype} have no compiled "
                        f"indices; give float64")
    if reduction == "qmean" and math.prod(axis.most for axis in axes) > MOST_TAPS_OF_BYTES:
        unit = f"qlong_{asked.dtype}"
    lone = inside or channels == 1
    groups, items, lanes = 1 if lone else images, images if lone else channels, channels if inside else 1
    problem = Problem(reduction, axes, items, lanes, inside and not channels_last, asked.itemsize,
                      acc_bytes(reduction, asked.itemsize), whole)
    route, stages = stages_of(problem, unit, asked.dtype, groups, asked.retries)
    least, largest = harmless(asked, math.prod(axis.most for axis in axes))
    return Setup(axes, images, channels, channels_last, inside, asked.dtype, asked.itemsize, asked.p, asked.low,
                 asked.high, least, largest, reduction == "indexed", asked.column_major, route, stages)


def stages_of(problem: Problem, unit: str, dtype: str, groups: int, retries: bool) -> tuple[str, tuple[Stage, ...]]:
    """The route of a problem, and its steps."""
    route = routes.choose(problem)
    axes, extents = problem.axes, (groups, problem.items, problem.lanes)
    copied = problem.planar or route.step not in ("passes", "whole")

    def volume(tile: tiles.Tile, step: str = f"{route.step}_{unit}") -> int:
        return (pools.scratch_of(step, axes, tile.windows, tile.lanes, problem.lanes)
                + (tiles.elements(axes, tile) * problem.itemsize if copied else 0))

    long = any(axis.most > routes.FEW for axis in axes)
    least = (PAGE if route.step == "whole" else VECTOR if long else LANES) // problem.itemsize
    most = PLANAR // problem.itemsize if problem.planar else 1 << 62
    room = LONG_ROOM if long else PLANAR_ROOM if problem.planar else route.room
    tile = tiles.cut(axes, extents, volume, room, lane_values=(max(1, least), most),
                     grain=max(1, VECTOR // problem.itemsize))
    stages = [Stage(route.step, unit, *tile)]
    if retries:
        step = "passes" if route.step == "direct" and routes.bounded(problem) else route.step
        wide = f"wide_{dtype}"
        inner = tiles.cut(axes, extents, lambda tile: volume(tile, f"{step}_{wide}"), max(room, LONG_ROOM), within=tile)
        stages.append(Stage(step, wide, *inner))
    return route.name, tuple(stages)
