"""Pictures of MaxUnpool: where each element goes, and the windows of the max-pool that is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
MOST_NUMBERS = 100  # which fit in a cell


class UnpoolPicture(NamedTuple):
    """The picture of the first plane of a result."""

    lines: tuple[str, ...]
    axes: tuple[tuple[int, Axis], ...]  # each with its number; the windows of the max-pool that is undone
    sizes: tuple[int, ...]  # of the result
    arrivals: Array | None  # the number of the element of X that goes to each position, or -1

    def drawing(self) -> tuple[list[Mark], float]:
        """All marks, in the order in which they are drawn, and the height."""
        marks, y = texts("heading", self.lines[:1], MARGIN)
        more, y = texts("caption", [*map(self.caption, range(len(self.axes))), *self.words()], y)
        marks += more
        shown, y = self.image(y + 6) if len(self.axes) == IMAGE_AXES else self.strips(y + 6)
        marks += shown
        more, y = legend(shown, NAMES if self.arrivals is None else ARRIVED, y)
        return [Mark("card", 0, 0, WIDTH, y + MARGIN), *marks, *more], y + MARGIN

    def caption(self, which: int) -> str:
        """The attributes of an axis."""
        number, axis = self.axes[which]
        way = (" (down)", " (across)")[which] if len(self.axes) == IMAGE_AXES else ""
        return (f"axis {number}{way}: kernel {axis.kernel}, stride {axis.stride}, pads {axis.pads[0]}+{axis.pads[1]}, "
                f"{axis.out} → {self.sizes[which]}")

    def words(self) -> list[str]:
        """What the numbers in the cells mean."""
        if len(self.axes) > IMAGE_AXES:
            return []
        return ["Numbers in the result, up to 99, are flat indices." if self.arrivals is None else
                "Numbers in the result, up to 99, are those of the elements of X that go there."]

    def image(self, y: float) -> tuple[list[Mark], float]:
        """The result with some windows, and the elements of X by their numbers."""
        pair = [axis for _, axis in self.axes]
        left = DIGIT * len(str(self.sizes[0] - 1)) + 6
        room = (WIDTH - 2 * MARGIN - left) // CELL
        cuts = [Cut.of(extent(axis)[0], max(extent(axis)[1], size), most) for axis, size, most in zip(
            pair, self.sizes, (MOST_CELLS, min(MOST_CELLS, room)), strict=True)]
        width = pair[1].out
        outs = [axis.out for axis in pair]
        results, cell, margin = table_size(outs, lambda axis, index: index * width + width - 1 if axis == 0 else 1)
        boxes = chosen(pair, cuts, results)
        x = MARGIN + left
        kinds = [{place: self.kind(k, place) for place in cut} for k, cut in enumerate(cuts)]
        ends = [[place for place in (0, size - 1) if cut.has(place)]
                for size, cut in zip(self.sizes, cuts, strict=True)]
        marks = self.numbered(cells("result", kinds, ends, cuts, x, y), CELL)
        for k, window in enumerate(boxes):
            marks += box(pair, cuts, window, k, x, y + 2 * LINE)
        bottom = y + 2 * LINE + cuts[0].cells * CELL
        right, top = beside(cuts, results, cell, margin, x, y)
        marks += elements(results, boxes, width, cell, right, top)
        bottom = max(bottom, top + 2 * LINE + results[0].cells * CELL)
        notes = [note for (number, axis), cut, result in zip(self.axes, cuts, results, strict=True)
                 for note in left_out(number, axis, cut, axis.out - result.missing)]
        more, y = texts("caption", notes, bottom + 6)
        return marks + more, y

    def kind(self, which: int, place: int) -> str:
        """The kind of cell at a position of an axis."""
        axis = self.axes[which][1]
        return "overhang" if axis.size <= place < self.sizes[which] else cell_of(axis, place).replace(
            "overhang", "padding")

    def strips(self, y: float) -> tuple[list[Mark], float]:
        """The strip of each axis, with its windows below it."""
        marks: list[Mark] = []
        notes = []
        for number, axis in self.axes:
            more, y, note = strip(number, axis, y, False, len(self.axes) > 1)
            marks += self.numbered(more, STRIP) if len(self.axes) == 1 else more
            notes += note
        more, y = texts("caption", notes, y)
        return marks + more, y

    def numbered(self, marks: Sequence[Mark], side: int) -> list[Mark]:
        """Cells with the number of the element that goes there, or with the index that addresses them."""
        done, digits = [], []
        for mark in marks:
            facts = dict(mark.data)
            if "cell" not in facts or mark.kind not in ("element", "unread"):
                done.append(mark)
                continue
            place = tuple(map(int, facts["cell"].split(",")))
            if self.arrivals is None:
                number = 0
                for at, (_, axis) in zip(place, self.axes, strict=True):
                    number = number * axis.size + at
                name = "index"
            else:
                number, name = int(self.arrivals[place]), "from"
                mark = mark._replace(kind="unread" if number < 0 else "element")
            done.append(mark)
            if 0 <= number < MOST_NUMBERS:
                digits.append(Mark("digit", mark.x + side / 2, mark.y + side - 5, text=str(number),
                                   data=((name, str(number)), ("place", facts["cell"]))))
        order = ("caption", "element", "unread")  # so that marks of a kind are neighbours
        done.sort(key=lambda mark: order.index(mark.kind) if mark.kind in order else len(order))
        return done + digits


def elements(results: Sequence[Cut], boxes: Sequence[tuple[int, int]], width: int, cell: int, x: float,
             y: float) -> list[Mark]:
    """The elements of X with their numbers, and the outlines of those whose windows are drawn."""
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
