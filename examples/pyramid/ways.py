"""Three ways to compute a pyramid: in memory, in a stream of boxes, and with dask. All store the same bits."""

from collections.abc import Callable, Iterator
from functools import partial
from math import lcm, prod

import numpy as np
from pyramid import POOLS, Ints, Pyramid, PyramidError, Region, place, split
from source import Source
from target import Target

MIB = 1 << 20
PART = 32 * MIB  # larger boxes are no faster


def in_memory(pyramid: Pyramid, source: Source, target: Target) -> None:
    """Read the whole array, and compute each level at once."""
    whole = tuple(slice(0, n) for n in pyramid.shape)
    x = source[whole]
    for number, level in enumerate(pyramid.levels):
        region = level.within(whole)
        if not target.done(number, region):
            target.write(number, region, level.part(whole, x))


def in_stream(pyramid: Pyramid, source: Source, target: Target, max_bytes: int | None = None) -> None:
    """Read box by box, and compute all levels from each box while it is in memory.

    If the boxes and the unfinished files of all levels need more than `max_bytes`, several passes read the source.
    Without it, each pass may take what its level needs.
    """
    for numbers, sizes in list(passes(pyramid, source.grain, max_bytes)):
        Pass(pyramid, source, target, numbers, sizes).run()


class Pass:
    """One pass over the source, which fills the files of some levels.

    Boxes are nested, and their sizes are in elements of level 0. The first size is that of the boxes to read. After it
    comes a size for each level, whose boxes are whole files of that level. All boxes within a larger one are finished
    before the next one begins, so that each level has one unfinished region at a time.
    """

    def __init__(self, pyramid: Pyramid, source: Source, target: Target, numbers: list[int], sizes: list[Ints]) -> None:
        self.pyramid, self.source, self.target, self.numbers, self.sizes = pyramid, source, target, numbers, sizes
        self.unfinished: dict[int, tuple[Region, np.ndarray]] = {}

    def run(self) -> None:
        """Fill all files that the target lacks."""
        self.fill(tuple(slice(0, n) for n in self.pyramid.shape), len(self.numbers))

    def fill(self, box: Region, depth: int) -> None:
        """Fill the files of the first `depth` levels within a box, and the elements of all unfinished regions."""
        if depth == 0:
            for part in split(box, self.sizes[0]):
                self.read(part)
            return
        number = self.numbers[depth - 1]
        for part in split(box, self.sizes[depth]):
            region = self.pyramid.levels[number].within(part)
            if not self.target.done(number, region):
                shape = [s.stop - s.start for s in region]
                self.unfinished[number] = region, np.empty(shape, self.pyramid.dtype)
            self.fill(part, depth - 1)
            if number in self.unfinished:
                self.target.write(number, *self.unfinished.pop(number))

    def read(self, box: Region) -> None:
        """Compute the elements of all unfinished regions that a box yields."""
        if not self.unfinished:
            return
        x = self.source[box]
        for number, (region, block) in self.unfinished.items():
            level = self.pyramid.levels[number]
            block[place(level.within(box), region)] = level.part(box, x)


def passes(pyramid: Pyramid, grain: Ints, max_bytes: int | None) -> Iterator[tuple[list[int], list[Ints]]]:
    """The levels of each pass over the source, as few passes as the memory allows, with the sizes of their boxes."""
    def needed(numbers: list[int], sizes: list[Ints]) -> int:
        boxes = [np.minimum(size, pyramid.shape) for size in sizes]
        blocks = [-(-box // pyramid.levels[number].factors) for number, box in zip(numbers, boxes[1:], strict=True)]
        elements = sum(prod(block.tolist()) for block in (boxes[0], *blocks))
        return (elements + 2 * prod(grain)) * pyramid.dtype.itemsize  # two chunks of the source are decoded at a time

    usable = max_bytes or 4 * PART
    groups: list[list[int]] = []
    for number in range(len(pyramid.levels)):
        if groups and needed(both := [*groups[-1], number], nested(pyramid, both)) <= usable:
            groups[-1] = both
        else:
            groups.append([number])
    for numbers in groups:
        sizes = nested(pyramid, numbers)
        least = needed(numbers, sizes)
        if max_bytes and least > max_bytes:
            raise PyramidError(f"level {numbers[0]} needs {least / MIB:.1f} MiB at once, and {max_bytes / MIB:.1f} MiB "
                               "are left for it; raise the limit, or choose smaller chunks or shards")
        yield numbers, grown(sizes, pyramid.shape, grain, partial(needed, numbers), min(usable, PART))


def nested(pyramid: Pyramid, numbers: list[int]) -> list[Ints]:
    """The smallest sizes of boxes with whole windows of all these levels, and then with whole files of each."""
    levels = [pyramid.levels[number] for number in numbers]
    sizes: list[Ints] = [tuple(lcm(*factors) for factors in zip(*(level.factors for level in levels), strict=True))]
    for level in levels:
        sizes.append(tuple(lcm(n, f * u) for n, f, u in zip(sizes[-1], level.factors, pyramid.unit, strict=True)))
    return sizes


def grown(sizes: list[Ints], shape: Ints, grain: Ints, needed: Callable[[list[Ints]], int], most: int) -> list[Ints]:
    """Larger nested sizes that still fit, such that boxes to read cover the grain of the source first."""
    while True:
        read = sizes[0]
        for axis in sorted(range(len(shape)), key=lambda a: (-max(1, grain[a] / read[a]), -a)):
            if read[axis] < shape[axis] and needed(larger := enlarged(sizes, axis)) <= most:
                sizes = larger
                break
        else:
            return sizes


def enlarged(sizes: list[Ints], axis: int) -> list[Ints]:
    """The next larger nested sizes along an axis: the boxes to read become those of the first level, or all double."""
    first, *others = ([size[axis] for size in sizes])
    lengths = [others[0], *others] if others and first < others[0] else [2 * n for n in (first, *others)]
    return [(*size[:axis], n, *size[axis + 1:]) for size, n in zip(sizes, lengths, strict=True)]


def with_dask(pyramid: Pyramid, source: Source, target: Target) -> None:
    """Build a graph with a task for each region of a level, and let dask's scheduler compute it."""
    import dask
    import dask.array as da  # which takes more memory than a stream of small boxes

    import onnxpool.dask

    (chunks,) = grown([pyramid.unit], pyramid.shape, source.grain,
                      lambda sizes: prod(sizes[0]) * pyramid.dtype.itemsize, PART // 2)
    x = da.from_array(source, chunks=chunks, name=False, meta=np.empty(0, source.dtype))
    pool = getattr(onnxpool.dask, POOLS[pyramid.method])
    store = dask.delayed(target.write, pure=False)
    tasks = []
    for number, level in enumerate(pyramid.levels):
        y = pool(x, **pyramid.arguments(level.factors)) if level.plan else x
        files = tuple(-(-n // (f * u)) * u for n, f, u in zip(chunks, level.factors, pyramid.unit, strict=True))
        y = y.rechunk(files)
        regions = split(tuple(slice(0, n) for n in level.shape), files)
        tasks += [store(number, region, block) for region, block in zip(regions, y.to_delayed().ravel(), strict=True)
                  if not target.done(number, region)]
    dask.compute(*tasks)
