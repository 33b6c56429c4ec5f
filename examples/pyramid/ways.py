"""Three ways to compute a pyramid: in memory, in a stream of boxes, and with dask. All store the same bits."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, lcm, prod

import numpy as np
from pyramid import POOLS, Ints, Pyramid, PyramidError, Region, place, split
from source import Source
from target import Target

MIB = 1 << 20
PART = 8 * MIB  # larger boxes are no faster
ENOUGH = MIB  # what smaller boxes would save is not worth their number
AMPLE = 256 * MIB  # what levels may take together where no limit is given


def in_memory(pyramid: Pyramid, source: Source, target: Target) -> None:
    """Read the whole array, and compute each level at once."""
    whole = tuple(slice(0, n) for n in pyramid.shape)
    x = source[whole]
    for number, level in enumerate(pyramid.levels):
        region = level.within(whole)
        if not target.done(number, region):
            target.write(number, region, level.part(whole, x))


@dataclass(frozen=True)
class Pass:
    """The levels that one pass over the source computes, and the sizes of its boxes.

    Boxes are nested, and their sizes are in elements of level 0. The first size is that of the boxes to read. After it
    comes a size for each level, whose boxes are whole files of that level.
    """

    numbers: list[int]
    sizes: list[Ints]


def in_stream(pyramid: Pyramid, source: Source, target: Target, max_bytes: int | None = None) -> None:
    """Read box by box, and compute all levels from each box while it is in memory.

    If boxes of a useful size and the unfinished files of all levels need more than `max_bytes`, several passes read the
    source. Without it, a pass may take what its level needs.
    """
    for each in passes(pyramid, source, max_bytes):
        Stream(pyramid, source, target, each).run()


class Stream:
    """What makes one pass over the source.

    All boxes within a larger one are finished before the next one begins, so that each level has one unfinished region
    at a time.
    """

    def __init__(self, pyramid: Pyramid, source: Source, target: Target, each: Pass) -> None:
        self.pyramid, self.source, self.target, self.numbers, self.sizes = (
            pyramid, source, target, each.numbers, each.sizes)
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


def passes(pyramid: Pyramid, source: Source, max_bytes: int | None = None) -> list[Pass]:
    """The passes over the source that read least while they take no more memory than allowed.

    Levels share a pass unless their unfinished files leave so little memory for boxes that separate passes read less.
    """
    planned: list[Pass] = []
    for number in range(len(pyramid.levels)):
        alone = largest(pyramid, source, [number], max_bytes)
        if alone is None:
            raise refused(pyramid, source, max_bytes or 0)
        both = largest(pyramid, source, [*planned[-1].numbers, number], max_bytes) if planned else None
        if both and cost(pyramid, source, both) <= cost(pyramid, source, planned[-1]) + cost(pyramid, source, alone):
            planned[-1] = both
        else:
            planned.append(alone)
    return planned


def largest(pyramid: Pyramid, source: Source, numbers: list[int], max_bytes: int | None) -> Pass | None:
    """A pass with the largest useful boxes that fit in memory, if any do."""
    sizes = nested(pyramid, numbers)
    least = needed(pyramid, source, numbers, sizes)
    most = max_bytes or (AMPLE if len(numbers) > 1 else max(AMPLE, 2 * least))  # a level alone takes what it must
    if least > most:
        return None

    def fits(sizes: list[Ints]) -> bool:
        box = prod(map(min, sizes[0], pyramid.shape)) * pyramid.dtype.itemsize
        return box <= PART and needed(pyramid, source, numbers, sizes) <= most

    return Pass(numbers, grown(sizes, pyramid.shape, source.grain, fits))


def needed(pyramid: Pyramid, source: Source, numbers: list[int], sizes: list[Ints]) -> int:
    """The bytes that a pass takes: unfinished regions, and either what reads a box or what writes files."""
    blocks = 0
    for number, size in zip(numbers, sizes[1:], strict=True):
        level = pyramid.levels[number]
        blocks += prod(min(-(-s // f), n) for s, f, n in zip(size, level.factors, level.shape, strict=True))
    box, chunks, files = work(pyramid, source, numbers, sizes)
    return (blocks * pyramid.dtype.itemsize + max(box + chunks, files)) * 9 // 8  # the allocator leaves gaps


def work(pyramid: Pyramid, source: Source, numbers: list[int], sizes: list[Ints]) -> tuple[int, int, int]:
    """The bytes that a box with its part of a level takes, chunks of the source, and files while they are written.

    zarr decodes two chunks at a time, or two shards as far as they are in the box, and writes two files at a time. Each
    has copies: the elements, and what is compressed.
    """
    size = pyramid.dtype.itemsize
    whole = prod(pyramid.shape) * size
    box = 2 * max(prod(map(min, sizes[0], pyramid.shape)) * size, min(ENOUGH, whole))
    decoded = prod(min(most, max(b, g)) for most, b, g in zip(source.unit, sizes[0], source.grain, strict=True))
    copies = 3 if pyramid.shards else 4
    together = 1
    for number, outer in zip(numbers, sizes[1:], strict=True):
        level = pyramid.levels[number]
        region = (min(-(-s // f), n) for s, f, n in zip(outer, level.factors, level.shape, strict=True))
        together = max(together, min(2, prod(-(-n // u) for n, u in zip(region, pyramid.unit, strict=True))))
    return box, 0 if source.mapped else 4 * decoded * size, copies * together * prod(pyramid.unit) * size


def refused(pyramid: Pyramid, source: Source, max_bytes: int) -> PyramidError:
    """The error for the level that needs most memory, with what would suffice."""
    least, number = max((needed(pyramid, source, [number], nested(pyramid, [number])), number)
                        for number in range(len(pyramid.levels)))
    sizes = nested(pyramid, [number])
    ways_out = ("smaller factors", f"a source with smaller chunks than {source.grain}",
                f"smaller {'shards' if pyramid.shards else 'chunks'} than {pyramid.unit}")
    amounts = work(pyramid, source, [number], sizes)
    return PyramidError(f"level {number} needs {ceil(10 * least / MIB) / 10} MiB at once, and only "
                        f"{floor(10 * max_bytes / MIB) / 10} MiB are left for it; raise the limit by "
                        f"{ceil((least - max_bytes) / MIB)} MiB, or choose {ways_out[amounts.index(max(amounts))]}")


def cost(pyramid: Pyramid, source: Source, each: Pass) -> int:
    """What a pass reads, in bytes: chunks of the source, as often as they are decoded, and an allowance per box."""
    boxes = decoded = 1
    for n, b, g in zip(pyramid.shape, each.sizes[0], source.grain, strict=True):
        boxes *= -(-n // b)
        decoded *= -(-n // b) + -(-n // g) - -(-n // lcm(b, g))  # pairs of a box and a chunk that overlap
    return decoded * prod(source.grain) * pyramid.dtype.itemsize + boxes * ENOUGH


def nested(pyramid: Pyramid, numbers: list[int]) -> list[Ints]:
    """The smallest sizes of boxes with whole windows of all these levels, and then with whole files of each."""
    levels = [pyramid.levels[number] for number in numbers]
    sizes: list[Ints] = [tuple(lcm(*factors) for factors in zip(*(level.factors for level in levels), strict=True))]
    for level in levels:
        sizes.append(tuple(lcm(n, f * u) for n, f, u in zip(sizes[-1], level.factors, pyramid.unit, strict=True)))
    return sizes


def grown(sizes: list[Ints], shape: Ints, grain: Ints, fits: Callable[[list[Ints]], bool]) -> list[Ints]:
    """Larger nested sizes that still fit, such that boxes to read cover the grain of the source first."""
    while True:
        read = sizes[0]
        for axis in sorted(range(len(shape)), key=lambda a: (-max(1, grain[a] / read[a]), -a)):
            if read[axis] < shape[axis] and fits(larger := enlarged(sizes, axis)):
                sizes = larger
                break
        else:
            return sizes


def enlarged(sizes: list[Ints], axis: int) -> list[Ints]:
    """The next larger nested sizes along an axis: the boxes to read get closer to those of the first
    level, or all double."""
    first, *others = ([size[axis] for size in sizes])
    if others and first < others[0]:
        lengths = [first * next(n for n in range(2, others[0] + 1) if others[0] // first % n == 0), *others]
    else:
        lengths = [2 * n for n in (first, *others)]
    return [(*size[:axis], n, *size[axis + 1:]) for size, n in zip(sizes, lengths, strict=True)]


def with_dask(pyramid: Pyramid, source: Source, target: Target) -> None:
    """Build a graph with a task for each region of a level, and let dask's scheduler compute it."""
    import dask
    import dask.array as da  # which takes more memory than a stream of small boxes

    import onnxpool.dask

    (chunks,) = grown([pyramid.unit], pyramid.shape, source.grain,
                      lambda sizes: prod(sizes[0]) * pyramid.dtype.itemsize <= 16 * MIB)
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
