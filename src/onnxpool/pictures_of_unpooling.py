"""Pictures of MaxUnpool: where each element goes, and the windows of the max-pool that is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .pictures import (
    BOXES,
    CELL,
    DIGIT,
    IMAGE_AXES,
    LINE,
    MARGIN,
    MOST_CELLS,
    STRIP,
    WIDTH,
    Cut,
    Mark,
    beside,
    box,
    cell_of,
    cells,
    chosen,
    cut_of,
    extent,
    gaps,
    left_out,
    legend,
    strip,
    table_size,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .arrays import Array
    from .windows import Axis

NAMES = {
    "element": "position that indices address", "unread": "position in no window", "padding": "padding of the pool",
    "overhang": "0, as no index addresses it", "tap": "position of a window", "outside": "position in padding",
}
ARRIVED = {**NAMES, "element": "where an element goes", "unread": "0, as no element goes there"}
ADDRESSED = ("element", "unread")  # kinds of cells that indices address
MOST_NUMBERS = 100  # numbers below it fit in a cell


class UnpoolPicture(NamedTuple):
    """The picture of the first plane of a result."""

    lines: tuple[str, ...]
    axes: tuple[tuple[int, Axis], ...]  # each with its number; the windows of the max-pool that is undone
    sizes: tuple[int, ...]  # sizes of the result
    planes: int
    places: Array | None  # where each element of X goes, as a flat index

    def drawing(self) -> tuple[list[Mark], float]:
        """All marks, in the order in which they are drawn, and the height."""
        marks, y = texts("heading", self.lines[:1], MARGIN)
        more, y = texts("caption", [*map(self.caption, range(len(self.axes))), *self.words()], y)
        marks += more
        shown, y = self.image(y + 6) if len(self.axes) == IMAGE_AXES else self.strips(y + 6)
        marks += shown
        more, y = legend(shown, NAMES if self.places is None else ARRIVED, y)
        return [Mark("card", 0, 0, WIDTH, y + MARGIN), *marks, *more], y + MARGIN

    def caption(self, which: int) -> str:
        """The attributes of an axis."""
        number, axis = self.axes[which]
        way = (" (down)", " (across)")[which] if len(self.axes) == IMAGE_AXES else ""
        return (f"axis {number}{way}: kernel {axis.kernel}, stride {axis.stride}, pads {axis.pads[0]}+{axis.pads[1]}, "
                f"{axis.out} → {self.sizes[which]}")

    def words(self) -> list[str]:
        """What the numbers in the cells mean, and what is not drawn."""
        if len(self.axes) > IMAGE_AXES:
            return []
        numbers = ("Numbers in the result, up to 99, are flat indices." if self.places is None else
                   "Numbers in the result, up to 99, are the numbers of the elements of X that go there.")
        return [numbers, *[f"Only the first of {self.planes} planes is drawn."] * (self.planes > 1)]

    def image(self, y: float) -> tuple[list[Mark], float]:
        """The result with some windows, and the elements of X by their numbers."""
        pair = [axis for _, axis in self.axes]
        left = DIGIT * len(str(self.sizes[0] - 1)) + 6
        room = (WIDTH - 2 * MARGIN - left) // CELL
        cuts = [cut_of(axis, most, size) for axis, size, most in zip(
            pair, self.sizes, (MOST_CELLS, min(MOST_CELLS, room)), strict=True)]
        width = pair[1].out
        outs = [axis.out for axis in pair]
        results, cell, margin = table_size(outs, lambda axis, index: index * width + width - 1 if axis == 0 else 1)
        boxes = chosen(pair, cuts, results)
        x = MARGIN + left
        kinds = [{place: cell_of(axis, place, size) for place in cut}
                 for axis, size, cut in zip(pair, self.sizes, cuts, strict=True)]
        ends = [[place for place in (0, size - 1) if cut.has(place)]
                for size, cut in zip(self.sizes, cuts, strict=True)]
        marks = self.numbered(cells("result", kinds, ends, cuts, x, y), CELL)
        for k, window in enumerate(boxes):
            marks += box(pair, cuts, window, k, x, y + 2 * LINE)
        bottom = y + 2 * LINE + cuts[0].cells * CELL
        right, top = beside(cuts, results, cell, margin, x, y)
        marks += elements(results, boxes, width, cell, right, top)
        bottom = max(bottom, top + 2 * LINE + results[0].cells * CELL)
        notes = [note for (number, axis), size, cut, result in zip(self.axes, self.sizes, cuts, results, strict=True)
                 for note in left_out(number, cut, extent(axis, size), result, "windows")]
        more, y = texts("caption", notes, bottom + 6)
        return marks + more, y

    def strips(self, y: float) -> tuple[list[Mark], float]:
        """The strip of each axis, with its windows below it."""
        marks: list[Mark] = []
        notes = []
        for (number, axis), size in zip(self.axes, self.sizes, strict=True):
            more, y, note = strip(number, axis, y, False, len(self.axes) > 1, size)
            marks += self.numbered(more, STRIP) if len(self.axes) == 1 else more
            notes += note
        more, y = texts("caption", notes, y)
        return marks + more, y

    def numbered(self, marks: Sequence[Mark], side: int) -> list[Mark]:
        """Cells with the number of the element that goes there, or with the index that addresses them."""
        name = "index" if self.places is None else "from"
        numbers = self.numbers([dict(mark.data)["cell"] for mark in marks if mark.kind in ADDRESSED])
        done, digits = [], []
        for mark in marks:
            if mark.kind not in ADDRESSED:
                done.append(mark)
                continue
            cell = dict(mark.data)["cell"]
            number = numbers.get(cell, -1)
            done.append(mark if self.places is None else mark._replace(kind=ADDRESSED[number < 0]))
            if 0 <= number < MOST_NUMBERS:
                digits.append(Mark("digit", mark.x + side / 2, mark.y + side - 5, text=str(number),
                                   data=((name, str(number)), ("place", cell))))
        order = ("caption", *ADDRESSED)  # so that marks of a kind are neighbours
        done.sort(key=lambda mark: order.index(mark.kind) if mark.kind in order else len(order))
        return done + digits

    def numbers(self, cells: Sequence[str]) -> dict[str, int]:
        """The index that addresses each cell, or the number of the element that goes there, if one does."""
        indices = {}
        for cell in cells:
            index = 0
            for place, (_, axis) in zip(map(int, cell.split(",")), self.axes, strict=True):
                index = index * axis.size + place
            indices[cell] = index
        if self.places is None:
            return indices
        here = np.flatnonzero(np.isin(self.places, list(indices.values())))
        # Of elements with the same index, the last one wins, here as in the loops.
        arrived = dict(zip(self.places[here].tolist(), here.tolist(), strict=True))
        return {cell: arrived[index] for cell, index in indices.items() if index in arrived}


def elements(results: Sequence[Cut], boxes: Sequence[tuple[int, int]], width: int, cell: int, x: float,
             y: float) -> list[Mark]:
    """The elements of X with their numbers, and outlines for elements whose windows are drawn."""
    rows, columns = results
    marks = [Mark("caption", x, y + 11, text="elements of X")]
    y += 2 * LINE
    for i in rows:
        for j in columns:
            place = x + columns.left(j) * cell, y + rows.left(i) * CELL
            marks.append(Mark("result", *place, cell, CELL, data=(("at", f"{i},{j}"),)))
            marks.append(Mark("digit", place[0] + cell / 2, place[1] + 14, text=str(i * width + j),
                              data=(("number", f"{i},{j}"),)))
    marks += gaps(results, cell, x, y)
    return marks + [Mark(BOXES[k], x + columns.left(j) * cell + 2, y + rows.left(i) * CELL + 2, cell - 4, CELL - 4,
                         data=(("of", f"{i},{j}"),))
                    for k, (i, j) in enumerate(boxes) if rows.has(i) and columns.has(j)]
