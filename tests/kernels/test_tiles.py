"""Tiles: what they read, how much memory they take, and that problems for several threads have enough of them."""

import itertools
import math

import numpy as np
import pytest
from slow_planner import tiles
from slow_planner.tiles import Extents, Work

from onnxpool.windows import Axis


def random_axes(rng, most=3):
    """Axes without padding, whose windows may overlap, be dilated, or skip elements."""
    axes = []
    for _ in range(rng.integers(1, most + 1)):
        kernel, stride, dilation = (int(rng.choice(values)) for values in ([1, 2, 3, 9, 40], [1, 2, 3, 50], [1, 1, 4]))
        out = int(rng.choice([1, 2, 7, 64, 500]))
        size = (out - 1) * stride + (kernel - 1) * dilation + 1 + int(rng.integers(0, stride))
        axes.append(Axis(size, out, kernel, stride, dilation))
    return tuple(axes)


def random_tile(rng, axes, items, lanes):
    return Extents(int(rng.integers(1, items + 1)), tuple(int(rng.integers(1, axis.out + 1)) for axis in axes),
                int(rng.integers(1, lanes + 1)))


def span_read(axis, count):
    """The places from the first tap of some windows to their last one."""
    windows = [axis.window(i) for i in range(count)]
    return max(w.first + (w.taps - 1) * axis.dilation for w in windows) - min(w.first for w in windows) + 1


def test_what_a_tile_reads_and_writes():
    """A tile reads the places from the first to the last tap along each axis, and writes one result for each window."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        axes = random_axes(rng)
        tile = random_tile(rng, axes, 5, 70)
        spans = [span_read(axis, count) for axis, count in zip(axes, tile.windows, strict=True)]
        results = tile.items * tile.lanes * math.prod(tile.windows)
        assert tiles.places(axes, tile.windows) == math.prod(spans)
        assert tiles.results(tile) == results
        assert tiles.elements(axes, tile) == tile.items * tile.lanes * math.prod(spans) + results
        assert tiles.reused(axes, tile) == span_read(axes[0], 1) * math.prod(spans[1:]) * tile.lanes


def test_the_number_of_tiles():
    """Tiles cover all items, windows and lanes. The last tile along each of these may be smaller."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        axes, items, lanes = random_axes(rng), int(rng.integers(1, 9)), int(rng.integers(1, 300))
        tile = random_tile(rng, axes, items, lanes)
        steps = [(items, tile.items), (lanes, tile.lanes)]
        steps += [(axis.out, count) for axis, count in zip(axes, tile.windows, strict=True)]
        assert tiles.count(axes, items, lanes, tile) == math.prod(math.ceil(total / step) for total, step in steps)


def test_what_passes_read_and_write():
    """Each pass reads the block that the previous pass left, with one axis reduced to windows."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        axes = random_axes(rng)
        windows = [int(rng.integers(1, axis.out + 1)) for axis in axes]
        block = [span_read(axis, count) for axis, count in zip(axes, windows, strict=True)]
        assert [tiles.padded(axis, count) for axis, count in zip(axes, windows, strict=True)] == block
        held = [math.prod(windows[:done] + block[done:]) for done in range(len(axes) + 1)]
        assert tiles.passed(block, windows) == sum(held)


def work_of(axes, windows, by_axis):
    """The places that a tile reads, or that its passes read and write."""
    block = [span_read(axis, count) for axis, count in zip(axes, windows, strict=True)]
    held = [math.prod([*windows[:done], *block[done:]]) for done in range(len(axes) + 1)]
    return sum(held) if by_axis else held[0]


@pytest.mark.parametrize("by_axis", [False, True])
def test_a_tile_is_halved_where_that_adds_the_least_work(by_axis):
    """Items are halved first, which adds no work. Then lanes or windows are halved, whichever adds less work, rounded
    to a tenth. Halving lanes counts as 1.2 times the work while lanes are many, and as twice the work afterwards. Rows
    that are transposed are cut last."""
    rng = np.random.default_rng(4)
    kinds = set()
    for _ in range(400):
        axes, grain = random_axes(rng), int(rng.choice([1, 16]))
        least = grain * int(rng.integers(1, 4))
        tile = random_tile(rng, axes, int(rng.choice([1, 1, 4])), int(rng.choice([1, 40, 300])))
        rows = bool(rng.integers(2))
        more, half = tiles.halved(tile, Work(axes, by_axis, rows), least, grain)
        if tile.items > 1:
            assert (more, half) == (1, tile._replace(items=math.ceil(tile.items / 2)))
            continue
        ways = {}
        for a, count in enumerate(tile.windows):
            if count > 1 and not (rows and a == len(axes) - 1 and math.prod(tile.windows[:-1]) > 1):
                windows = (*tile.windows[:a], math.ceil(count / 2), *tile.windows[a + 1:])
                grown = 2 * work_of(axes, windows, by_axis) / work_of(axes, tile.windows, by_axis)
                ways[round(grown, 1), 0, a] = tile._replace(windows=windows)
        if tile.lanes >= 2 * least:
            ways[1.2, 1, 0] = tile._replace(lanes=math.ceil(tile.lanes / 2 / grain) * grain)
        elif tile.lanes > 1:
            ways[2, 1, 0] = tile._replace(lanes=math.ceil(tile.lanes / 2))
        best = min(ways, default=(math.inf, 2, 0))
        assert (more, half) == (best[0], ways.get(best, tile)), (axes, tile, ways)
        kinds.add(best[1])
    assert kinds == {0, 1, 2}


def random_problem(rng):
    """Axes, extents, the bytes of an element, and a budget."""
    extents = (int(rng.integers(1, 4)), int(rng.choice([1, 2, 30])), int(rng.choice([1, 3, 64, 1000])))
    return random_axes(rng), extents, int(rng.choice([1, 4, 8])), int(rng.choice([1 << 12, 1 << 16, 900_000]))


def test_tiles_take_their_room_or_cannot_be_cut():
    """A tile takes no more than its room, unless halving it costs more than 1.6 times the work. In any case, it takes
    no more than a megabyte, unless a single window takes nearly as much, the tile cannot be halved, or halving would
    not help."""
    rng = np.random.default_rng(5)
    kinds = set()
    for _ in range(400):
        axes, extents, itemsize, room = random_problem(rng)
        work, grain = Work(axes, bool(rng.integers(2)), False), 16
        least, most = int(rng.choice([16, 32])), int(rng.choice([48, 1 << 62]))

        def volume(tile, axes=axes, itemsize=itemsize):
            return tiles.elements(axes, tile) * itemsize

        tile = tiles.cut(axes, extents, volume, room, work, lane_values=(least, most), grain=grain)
        assert 1 <= tile.items <= extents[1]
        assert 1 <= tile.lanes <= min(extents[2], most)
        assert all(1 <= count <= axis.out for axis, count in zip(axes, tile.windows, strict=True))
        held, window = volume(tile), volume(Extents(1, (1,) * len(axes), min(tile.lanes, least)))
        more, smaller = tiles.halved(tile, work, least, grain)
        kinds.add((held <= room, held <= tiles.MOST))
        if held > room:
            assert more > tiles.MOST_EXTRA
        if held > tiles.MOST:
            assert held <= volume(smaller) or (window > tiles.LARGE_WINDOW and held <= 2 * window)
        within = tiles.cut(axes, extents, volume, room // 4, work, within=tile, lane_values=(least, most), grain=grain)
        assert all(inner <= outer for inner, outer in zip(
            (within.items, *within.windows, within.lanes), (tile.items, *tile.windows, tile.lanes), strict=True))
    assert kinds == {(True, True), (False, True), (False, False)}


def test_a_tile_that_fits_is_whole():
    """A tile that fits is not cut."""
    rng = np.random.default_rng(6)
    whole = 0
    for _ in range(500):
        axes, extents, itemsize, room = random_problem(rng)
        everything = Extents(extents[1], tuple(axis.out for axis in axes), extents[2])
        held = tiles.elements(axes, everything) * itemsize
        tile = tiles.cut(axes, extents, lambda tile, axes=axes, size=itemsize: tiles.elements(axes, tile) * size,
                         held if held <= room else room, Work(axes, True, False))
        whole += held <= room
        assert (tile == everything) or held > room
    assert whole > 50


def test_there_are_enough_tasks_or_more_would_cost_too_much():
    """Tiles are divided into enough tasks, unless this costs too much, and not further: before the last halving, there
    were too few tasks."""
    rng = np.random.default_rng(7)
    reached = 0
    for _ in range(400):
        axes, extents, _, _ = random_problem(rng)
        groups, items, lanes = extents
        work, tasks = Work(axes, bool(rng.integers(2)), False), int(rng.integers(2, 17))
        start = random_tile(rng, axes, items, lanes)._replace(items=items)
        for _ in range(rng.integers(0, 3)):  # as `cut` halves items
            start = start._replace(items=math.ceil(start.items / 2))
        part = tiles.divide(axes, extents, start, tasks, work, 32, 16)
        number = groups * tiles.count(axes, items, lanes, part)
        before = groups * tiles.count(axes, items, lanes, start)
        if number < tasks:  # items are single, and halving anything else adds too much
            assert part.items == 1
            assert tiles.halved(part, work, 32, 16)[0] > tiles.MOST_EXTRA
        reached += before < tasks <= number
        if before >= tasks:
            assert part == start
        elif part.windows == start.windows and part.lanes == start.lanes and part.items > 1:
            larger = 2 * part.items  # or one less
            assert part == start or groups * math.ceil(items / larger) * tiles.count(axes, 1, lanes, start) < tasks
    assert reached > 20


def test_several_threads_have_tasks_from_2_to_17_elements_and_results_on():
    """For several threads, problems of at least 2^17 elements and results have several tasks. Smaller problems have
    one."""
    for elements, results, wanted in ((2**16, 2**16, 4), (2**16, 2**16 - 1, 1), (2**17 - 1, 1, 4), (2**17 - 2, 1, 1)):
        assert tiles.tasks_of((Axis(elements, results, 1),), (1, 1, 1)) == (1, wanted)
        assert tiles.tasks_of((Axis(elements, results, 1),), (2, 1, 1))[1] == 4


def test_tasks_are_neither_too_few_nor_too_long():
    """For one thread, no task reads and writes much more than 2^24 elements and results. Several threads have 4 to 16
    tasks of about 2^17 elements and results, or more tasks if these would be too long."""
    rng = np.random.default_rng(8)
    kinds = set()
    for groups, items, lanes in itertools.product((1, 3, 50), (1, 7, 300), (1, 16, 1000)):
        axes = random_axes(rng, 2)
        amount = groups * items * lanes * (math.prod(a.size for a in axes) + math.prod(a.out for a in axes))
        alone, together = tiles.tasks_of(axes, (groups, items, lanes))
        assert alone == max(1, amount // 2**24)
        wanted = 1 if amount < 2**17 else max(alone, min(16, max(4, amount // 2**17)))
        assert together == wanted
        kinds.add((alone > 1, together))
    assert {together for _, together in kinds} >= {1, 4, 16}
