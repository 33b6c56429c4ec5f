"""Pictures of regions and their bins: the elements of each bin of MaxRoiPool, and the samples of RoiAlign."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from .pictures import (
    BOXES,
    CELL,
    DIGIT,
    LINE,
    MARGIN,
    MOST_CELLS,
    WIDTH,
    Cut,
    Mark,
    beside,
    cells,
    left_out,
    legend,
    table,
    table_size,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_DOTS = 400  # samples that are drawn
DOT = 4  # pixels
NAMES = {"element": "element of X", "unread": "element in no bin", "padding": "outside X", "window": "bin"}
SAMPLED = {**NAMES, "unread": "element beside no sample", "tap": "sample", "outside": "sample outside X, counts as 0"}


class Sample(NamedTuple):
    """A sample along an axis: its place, the two elements beside it, and the weight of the second one."""

    place: float
    low: int | None  # None outside X
    high: int | None
    weight: float | None


class Bin(NamedTuple):
    """A bin along an axis: [begin, end) in elements, or in coordinates if it has samples."""

    begin: float
    end: float
    samples: tuple[Sample, ...] | None = None

    @property
    def taken(self) -> int:
        """How many elements or samples there are."""
        return int(self.end - self.begin) if self.samples is None else len(self.samples)

    @property
    def edges(self) -> tuple[float, float]:
        """Where it begins and ends, in cells. Coordinates refer to the middle of a cell."""
        return (self.begin, self.end) if self.samples is None else (self.begin + 0.5, self.end + 0.5)

    def is_in(self, cut: Cut) -> bool:
        """Whether it has a part in a cell that is drawn."""
        low, high = sorted(self.edges)
        return any(floor(low) <= place < ceil(high) for place in cut)


class Region(NamedTuple):
    """A region of an image, with its corners x1, y1, x2 and y2, and its bins down and across."""

    image: int
    corners: tuple[float, ...]
    sizes: tuple[int, int]
    bins: tuple[tuple[Bin, ...], tuple[Bin, ...]]


class RegionPicture(NamedTuple):
    """The picture of a region. If no regions are given, it is the whole first image."""

    lines: tuple[str, ...]
    region: Region
    given: int  # number of regions
    axes: tuple[int, int]

    @property
    def sampled(self) -> bool:
        """Whether bins have samples."""
        return any(one.samples is not None for one in self.region.bins[0])

    def drawing(self) -> tuple[list[Mark], float]:
        """All marks, in the order in which they are drawn, and the height."""
        marks, y = texts("heading", self.lines[:1], MARGIN)
        more, y = texts("caption", self.captions(), y)
        marks += more
        shown, y = self.image(y + 6)
        marks += shown
        more, y = legend(shown, SAMPLED if self.sampled else NAMES, y)
        return [Mark("card", 0, 0, WIDTH, y + MARGIN), *marks, *more], y + MARGIN

    def captions(self) -> list[str]:
        """The number of the region, and its bins."""
        left, top, right, bottom = self.region.corners
        lines = ["No region is given: this one is the first image." if self.given == 0 else
                 f"region 0 of {self.given}, in image {self.region.image}"]
        for number, way, low, high, bins, size in zip(
                self.axes, ("down", "across"), (top, left), (bottom, right), self.region.bins, self.region.sizes,
                strict=True):
            each = f" of {bins[0].taken} sample{'s' * (bins[0].taken != 1)}" if self.sampled else ""
            lines.append(f"axis {number} ({way}): size {size}, region {low:g} to {high:g}, "
                         f"{len(bins)} bin{'s' * (len(bins) > 1)}{each}")
        return lines

    def image(self, y: float) -> tuple[list[Mark], float]:
        """The cells around the region, its bins and samples, and the number of elements or samples of each bin."""
        region = self.region
        left = DIGIT * len(str(region.sizes[0] - 1)) + 6
        room = (WIDTH - 2 * MARGIN - left) // CELL
        cuts = [Cut.around(extent(bins, size), span(bins), most) for bins, size, most in zip(
            region.bins, region.sizes, (MOST_CELLS, min(MOST_CELLS, room)), strict=True)]
        results, cell, margin = table_size([len(bins) for bins in region.bins],
                                           lambda axis, index: region.bins[axis][index].taken)
        factors = [{i: bins[i].taken for i in cut} for bins, cut in zip(region.bins, results, strict=True)]
        kinds = [kinds_of(bins, size, cut) for bins, size, cut in zip(region.bins, region.sizes, cuts, strict=True)]
        ends = [ends_of(size, cut) for size, cut in zip(region.sizes, cuts, strict=True)]
        ends_of_bins = (0, 0), (len(region.bins[0]) - 1, len(region.bins[1]) - 1)
        boxes = [place for place in dict.fromkeys(ends_of_bins) if self.is_drawn(place, cuts)]
        x = MARGIN + left
        marks = cells("X and the bins", kinds, ends, cuts, x, y)
        drawn, note = self.bins(cuts, results, boxes, x, y + 2 * LINE)
        marks += drawn
        bottom = y + 2 * LINE + cuts[0].cells * CELL
        right, top = beside(cuts, results, cell, margin, x, y)
        marks += table("samples of bins" if self.sampled else "elements of bins", factors, results,
                       boxes, cell, right, margin, top)
        bottom = max(bottom, top + 2 * LINE + results[0].cells * CELL)
        notes = [sentence for number, cut, result, bins, size in zip(
                     self.axes, cuts, results, region.bins, region.sizes, strict=True)
                 for sentence in left_out(number, cut, extent(bins, size), result, "bins")]
        more, y = texts("caption", notes + note, bottom + 6)
        return marks + more, y

    def bins(self, cuts: Sequence[Cut], results: Sequence[Cut], boxes: Sequence[tuple[int, int]], x: float,
             y: float) -> tuple[list[Mark], list[str]]:
        """The outlines of bins, thick for the first and the last, and samples, with a note if some are missing."""
        down, across = self.region.bins
        shown = [(i, j) for i in results[0] for j in results[1]]
        marks = [mark for place in shown if place not in boxes for mark in self.outline("window", place, cuts, x, y)]
        for place, kind in zip(boxes, BOXES, strict=False):
            marks += self.outline(kind, place, cuts, x, y)
        if not self.sampled:
            return marks, []
        total = len(down) * len(across) * down[0].taken * across[0].taken
        few = next((places for places in (shown, boxes, boxes[:1])
                    if len(places) * down[0].taken * across[0].taken <= MOST_DOTS), [])
        dots = [mark for i, j in few for mark in samples((i, j), down[i], across[j], cuts, self.region.sizes, x, y)]
        missing = total - len(dots)
        return marks + dots, [f"{missing} of {total} samples are not drawn."] if missing else []

    def pair(self, place: tuple[int, int]) -> list[Bin]:
        """A bin of the image, along both axes."""
        return [bins[index] for bins, index in zip(self.region.bins, place, strict=True)]

    def is_drawn(self, place: tuple[int, int], cuts: Sequence[Cut]) -> bool:
        """Whether any of a bin is drawn; an empty bin is not."""
        return all(one.is_in(cut) for one, cut in zip(self.pair(place), cuts, strict=True))

    def outline(self, kind: str, place: tuple[int, int], cuts: Sequence[Cut], x: float, y: float) -> list[Mark]:
        """The box of a bin, if some of it is drawn. Bins that share cells do not cover each other's outlines."""
        if not self.is_drawn(place, cuts):
            return []
        pair = self.pair(place)
        (top, bottom), (left, right) = (
            sorted(CELL * edge(cut, side) for side in one.edges) for one, cut in zip(pair, cuts, strict=True))
        inset = 1 + (kind != "window") if self.sampled else 2 + 4 * (place[0] % 2) + 2 * (place[1] % 2)
        return [Mark(kind, x + left + inset, y + top + inset, max(1, right - left - 2 * inset),
                     max(1, bottom - top - 2 * inset), data=(
                         ("bin", ",".join(map(str, place))), ("begin", f"{pair[0].begin!r},{pair[1].begin!r}"),
                         ("end", f"{pair[0].end!r},{pair[1].end!r}")))]


def samples(place: tuple[int, int], down: Bin, across: Bin, cuts: Sequence[Cut], sizes: tuple[int, int], x: float,
            y: float) -> list[Mark]:
    """The samples of a bin, where they are drawn."""
    marks = []
    for row in down.samples or ():
        for column in across.samples or ():
            spot = row.place + 0.5, column.place + 0.5
            if all(cut.has(floor(at)) for cut, at in zip(cuts, spot, strict=True)):
                inside = row.low is not None and column.low is not None
                marks.append(Mark(
                    "tap" if inside else "outside", x + CELL * edge(cuts[1], spot[1]) - DOT / 2,
                    y + CELL * edge(cuts[0], spot[0]) - DOT / 2, DOT, DOT,
                    data=(("in", ",".join(map(str, place))), ("sample", f"{row.place!r},{column.place!r}"))))
    return marks


def span(bins: Sequence[Bin]) -> tuple[int, int]:
    """The positions of a region along an axis."""
    edges = [side for one in bins for side in one.edges]
    return floor(min(edges)), ceil(max(edges))


def extent(bins: Sequence[Bin], size: int) -> tuple[int, int]:
    """The positions of an axis and its region."""
    low, high = span(bins)
    return min(0, low), max(size, high)


def kinds_of(bins: Iterable[Bin], size: int, cut: Cut) -> dict[int, str]:
    """The kind of cell at each position of an axis."""
    read: set[int | None] = set()
    for one in bins:
        if one.samples is None:
            read.update(place for place in cut if one.begin <= place < one.end)
        else:
            read.update(place for sample in one.samples for place in (sample.low, sample.high))
    return {place: "padding" if not 0 <= place < size else "element" if place in read else "unread" for place in cut}


def ends_of(size: int, cut: Cut) -> list[int]:
    """The first and the last element that are drawn."""
    inside = [place for place in cut if 0 <= place < size]
    return [inside[0], inside[-1]] if inside else []


def edge(cut: Cut, place: float) -> float:
    """A side of a box, in cells from the first drawn cell."""
    cell = floor(place)
    if cut.has(cell):
        return cut.left(cell) + place - cell
    if cell == place and cut.has(cell - 1):
        return cut.right(cell - 1)
    return cut.left(cell)


def region_facts(region: Region, axes: tuple[int, int]) -> dict[str, Any]:
    """A region as data."""
    def of_bin(one: Bin) -> dict[str, Any]:
        facts: dict[str, Any] = {"begin": one.begin, "end": one.end}
        if one.samples is not None:
            facts["samples"] = [{"place": place, "elements": [] if low is None else [low, high],
                                 "weights": [] if weight is None else [1 - weight, weight]}
                                for place, low, high, weight in one.samples]
        return facts

    return {"image": region.image, "corners": list(region.corners), "axes": [
        {"axis": axis, "size": size, "bins": [of_bin(one) for one in bins]}
        for axis, size, bins in zip(axes, region.sizes, region.bins, strict=True)]}


def region_lines(number: int, region: Region, axes: tuple[int, int], most: int) -> list[str]:
    """A region as text. Lists at most a few bins, each with at most a few samples."""
    lines = [f"region {number}: image {region.image}, corners {', '.join(f'{corner:g}' for corner in region.corners)}"]
    for axis, bins in zip(axes, region.bins, strict=True):
        listed = ["..." if one is None else bin_text(one, most) for one in shortened(bins, most)]
        lines.append(f"  axis {axis}: {'elements' if bins[0].samples is None else 'samples'} {', '.join(listed)}")
    return lines


def bin_text(one: Bin, most: int) -> str:
    """The elements or samples of a bin."""
    if one.taken == 0:
        return "none"
    if one.samples is None:
        return f"{one.begin:d}-{one.end - 1:d}" if one.taken > 1 else f"{one.begin:d}"
    return " ".join("..." if sample is None else f"{sample.place:g}" for sample in shortened(one.samples, most))


def shortened(items: Sequence[Any], most: int) -> list[Any]:
    """The items, or the first three and the last three with None between them."""
    return list(items) if len(items) <= most else [*items[:3], None, *items[-3:]]
