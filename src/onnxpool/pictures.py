"""
Pictures of windows, as SVG or with matplotlib.

For two pooled axes, a picture shows the image with its padding and some windows, and below it the divisor of each
window. For another number of axes, it shows a strip of elements for each axis, and the windows along it.

The explorer's `picture.js` is this module in JavaScript, and draws the same SVG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from math import gcd, prod
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from .windows import Axis

# All sizes are pixels. Pictures fit the screen of a telephone.
WIDTH, MARGIN = 380, 10
INCH = 72  # pixels or points per inch
LINE, LETTERS = 16, {"heading": 52, "caption": 60}  # height of a line of text, and its letters
CELL, STRIP = 20, 16  # sides of a cell of an image, and of a strip
DIGIT = 7  # width of a digit at most
CAPTION = 108  # width of the words above an image at most
MOST_CELLS = 16  # positions of an axis that are drawn
MOST_ROWS = 8  # windows of a strip that are drawn
MOST_RESULTS = 10  # windows of each of two axes whose numbers are shown
IMAGE_AXES = 2

# Colours on a light and on a dark page. Colour-blind people tell them apart: see tests/operators/test_colours.py.
COLOURS = {
    "paper": ("#ffffff", "#14181d"),
    "ink": ("#1f2328", "#e6edf3"),
    "line": ("#7d858f", "#848d97"),
    "element": ("#b9d7ea", "#2b5f82"),
    "unread": ("#dce9f3", "#1b2c39"),
    "counted": ("#f7d08a", "#6e4a00"),
    "first": ("#1f62cc", "#b0b4ff"),
    "inner": ("#b84500", "#ffb000"),
    "last": ("#101418", "#24d890"),
}


class Style(NamedTuple):
    """How a kind of mark looks. Fill and stroke are names of colours."""

    shape: str  # rect, circle or text
    fill: str = ""
    stroke: str = ""
    dash: str = ""
    weight: float = 1  # weight of the stroke
    size: int = 11  # size of letters
    anchor: str = "start"  # the point of a text whose position is given
    bold: bool = False


STYLES = {
    "card": Style("rect", "paper"),
    "element": Style("rect", "element", "line"),
    "unread": Style("rect", "unread", "line"),
    "counted": Style("rect", "counted", "line"),
    "padding": Style("rect", "", "line", "3 2"),
    "overhang": Style("rect", "", "line", "1 3"),
    "result": Style("rect", "", "line"),
    "window": Style("rect", "", "first"),
    "first": Style("rect", "", "first", weight=2.5),
    "inner": Style("rect", "", "inner", weight=2.5),
    "last": Style("rect", "", "last", weight=2.5),
    "tap": Style("circle", "first"),
    "outside": Style("circle", "", "first"),
    "first-tap": Style("circle", "first"),
    "inner-tap": Style("circle", "inner"),
    "last-tap": Style("circle", "last"),
    "heading": Style("text", "ink", size=12, bold=True),
    "caption": Style("text", "ink"),
    "digit": Style("text", "ink", size=10, anchor="middle"),
    "index": Style("text", "ink", size=10, anchor="end"),
    "factor": Style("text", "ink", size=10),
}
BOXES = ("first", "inner", "last")
DOTS = ((4, 4), (10, 5), (8, 9))  # where the taps of each box are in a cell, so that none covers another
CELLS = ("element", "unread", "counted", "padding", "overhang")  # kinds of cells; where axes cross, the later kind wins
TIMES = "\N{MULTIPLICATION SIGN}"
SIGNS = {"counted": "0", "overhang": TIMES}  # what stands in a cell
NAMES = {
    "element": "element of X", "unread": "element in no window", "counted": "padding, counts as 0",
    "padding": "padding, not counted", "overhang": "overhang of ceil_mode, not counted",
}
PLAIN_NAMES = {**NAMES, "padding": "padding", "overhang": "overhang of ceil_mode"}  # where nothing is divided

OUTLINED = ("window", "bin")  # facts of boxes that the legend names


class Mark(NamedTuple):
    """A rectangle, a circle within a square, or a text, with the facts that it shows."""

    kind: str
    x: float
    y: float
    width: float = 0
    height: float = 0
    text: str = ""
    data: tuple[tuple[str, str], ...] = ()


class Cut(NamedTuple):
    """The numbers in [low, head) and in [tail, high), with a gap of one cell between them unless they meet."""

    low: int
    head: int
    tail: int
    high: int

    @classmethod
    def of(cls, low: int, high: int, most: int) -> Cut:
        """The numbers in [low, high), with a gap in the middle if there are more than `most`."""
        if high - low <= most:
            return cls(low, high, high, high)
        head = max(1, most // 2)
        return cls(low, low + head, high - max(0, most - 1 - head), high)

    @classmethod
    def around(cls, whole: tuple[int, int], part: tuple[int, int], most: int) -> Cut:
        """The numbers of a whole, or of a part and its neighbours if the whole has too many."""
        low, high = whole
        if high - low > most:
            low, high = max(low, part[0] - 1), min(high, max(part[1], part[0] + 1) + 1)
        return cls.of(low, high, most)

    @property
    def missing(self) -> int:
        """How many numbers are left out."""
        return self.tail - self.head

    @property
    def cells(self) -> int:
        """How many cells there are, with the gap."""
        return self.head - self.low + (self.missing > 0) + self.high - self.tail

    def has(self, number: int) -> bool:
        """Whether a number is not left out."""
        return self.low <= number < self.head or self.tail <= number < self.high

    def __iter__(self) -> Iterator[int]:
        yield from range(self.low, self.head)
        yield from range(self.tail, self.high)

    def left(self, number: int) -> float:
        """The left side of a number's cell, in cells. A number without a cell is in the gap, or at an end."""
        if number < self.head:
            return max(0, number - self.low)
        return min(self.cells, self.head - self.low + (0.5 if number < self.tail else 1 + number - self.tail))

    def right(self, number: int) -> float:
        """The right side of a number's cell."""
        return self.left(number) + self.has(number)


class Picture(NamedTuple):
    """The content of a picture."""

    lines: tuple[str, ...]  # above the axes; the first one is the title
    axes: tuple[tuple[int, Axis], ...]  # each with its number
    divided: bool  # whether sums are divided

    def drawing(self) -> tuple[list[Mark], float]:
        """All marks, in the order in which they are drawn, and the height."""
        marks, y = texts("heading", self.lines[:1], MARGIN)
        more, y = texts("caption", [*self.lines[1:], *map(self.caption, range(len(self.axes)))], y)
        marks += more
        if self.axes:
            shown, y = self.image(y + 6) if len(self.axes) == IMAGE_AXES else self.strips(y + 6)
            marks += shown
            more, y = self.legend(shown, y)
            marks += more
        return [Mark("card", 0, 0, WIDTH, y + MARGIN), *marks], y + MARGIN

    def caption(self, which: int) -> str:
        """The attributes of an axis."""
        number, axis = self.axes[which]
        way = (" (down)", " (across)")[which] if len(self.axes) == IMAGE_AXES else ""
        gaps = f"dilation {axis.dilation}, " if axis.dilation > 1 else ""
        return (f"axis {number}{way}: kernel {axis.kernel}, stride {axis.stride}, {gaps}"
                f"pads {axis.pads[0]}+{axis.pads[1]}, {axis.size} → {axis.out}")

    def strips(self, y: float) -> tuple[list[Mark], float]:
        """The strip of each axis, with its windows below it."""
        marks: list[Mark] = []
        notes = []
        for number, axis in self.axes:
            more, y, note = strip(number, axis, y, self.divided, len(self.axes) > 1)
            marks += more
            notes += note
        if self.divided and len(self.axes) > 1 and all(axis.out for _, axis in self.axes):
            notes.append(f"A sum is divided by the product of these numbers: {self.product(0)} in the first window, "
                         f"{self.product(-1)} in the last.")
        more, y = texts("caption", notes, y)
        return marks + more, y

    def product(self, index: int) -> str:
        """The divisor of the first or the last window."""
        numbers = [axis.window(index % axis.out).divisor for _, axis in self.axes]
        return f"{f' {TIMES} '.join(map(str, numbers))} = {prod(numbers)}"

    def counted(self, axis: Axis, index: int) -> int:
        """What a window along one axis contributes to the number in its cell."""
        return axis.window(index).divisor if self.divided else axis.window(index).taps

    def image(self, y: float) -> tuple[list[Mark], float]:
        """The image with its padding and some windows, and the table of the windows' divisors."""
        pair = [axis for _, axis in self.axes]
        left = DIGIT * len(str(pair[0].size - 1)) + 6
        room = (WIDTH - 2 * MARGIN - left) // CELL
        cuts = [cut_of(pair[0], MOST_CELLS), cut_of(pair[1], min(MOST_CELLS, room))]
        results, cell, margin = table_size([axis.out for axis in pair],
                                           lambda axis, index: self.counted(pair[axis], index))
        boxes = chosen(pair, cuts, results)
        marks = padded(pair, cuts, boxes, MARGIN + left, y)
        bottom = y + 2 * LINE + cuts[0].cells * CELL
        right, top = beside(cuts, results, cell, margin, MARGIN + left, y)
        marks += self.map(pair, results, boxes, cell, right, margin, top)
        bottom = max(bottom, top + 2 * LINE + results[0].cells * CELL)
        notes = [note for (number, axis), cut, result in zip(self.axes, cuts, results, strict=True)
                 for note in left_out(number, cut, extent(axis), result, "windows")]
        more, y = texts("caption", notes, bottom + 6)
        return marks + more, y

    def map(self, pair: Sequence[Axis], results: Sequence[Cut], boxes: Sequence[tuple[int, int]], cell: int,
            x: float, margin: float, y: float) -> list[Mark]:
        """The numbers of all windows as a table of products."""
        factors = [{i: self.counted(axis, i) for i in cut} for axis, cut in zip(pair, results, strict=True)]
        return table("divisors" if self.divided else "elements in windows", factors, results, boxes, cell, x, margin, y)

    def legend(self, marks: Sequence[Mark], y: float) -> tuple[list[Mark], float]:
        """What the kinds of marks in the picture mean."""
        return legend(marks, NAMES if self.divided else PLAIN_NAMES, y)


def legend(marks: Sequence[Mark], names: Mapping[str, str], y: float) -> tuple[list[Mark], float]:
    """What the kinds of marks mean: cells by their names, boxes by what they outline, and taps."""
    kinds = {mark.kind for mark in marks}
    entries = [(kind, names[kind], SIGNS.get(kind, "")) for kind in CELLS if kind in kinds]
    entries += [(mark.kind, f"{name} [{value.replace(',', ', ')}]", "") for mark in marks if mark.kind in BOXES
                for name, value in mark.data if name in OUTLINED]
    if "window" in kinds and "window" in names:
        entries.append(("window", names["window"], ""))
    if kinds & {"tap", "first-tap"}:
        entries.append(("tap", names.get("tap", "tap of a window"), ""))
    if "outside" in kinds:
        entries.append(("outside", names.get("outside", "tap outside X"), ""))
    made: list[Mark] = []
    x: float = MARGIN
    y += 8
    for kind, name, sign in entries:
        wide = 20 + 6.5 * len(name) + 8
        if x + wide > WIDTH - MARGIN and x > MARGIN:
            x, y = MARGIN, y + 18
        circle = STYLES[kind].shape == "circle"
        made.append(Mark(kind, x + 3, y + 3, 8, 8) if circle else Mark(kind, x, y, 14, 14))
        if sign:
            made.append(Mark("digit", x + 7, y + 11, text=sign))
        made.append(Mark("caption", x + 20, y + 11, text=name))
        x += wide
    return made, y + 18


def table_size(outs: Sequence[int], factor: Callable[[int, int], int]) -> tuple[list[Cut], int, int]:
    """
    Which rows and columns of a table of products are shown, and the widths of a cell and of the factors on the left.
    `factor` returns the factor of an axis at an index.
    """
    rows, columns = (Cut.of(0, out, MOST_RESULTS) for out in outs)
    wide = max(len(str(factor(0, i) * factor(1, j))) for i in [*rows, 0] for j in [*columns, 0]) if all(outs) else 1
    cell = max(CELL, DIGIT * wide + 4)
    margin = 6 + DIGIT * max([len(str(factor(0, i))) for i in rows], default=1)
    return [rows, Cut.of(0, outs[1], max(1, min(MOST_RESULTS, (WIDTH - 2 * MARGIN - margin) // cell)))], cell, margin


def beside(cuts: Sequence[Cut], results: Sequence[Cut], cell: int, margin: int, x: float,
           y: float) -> tuple[float, float]:
    """The place of a table: beside the image if there is room, or below it."""
    right = max(x + cuts[1].cells * CELL, MARGIN + CAPTION) + 18
    if right + margin + max(results[1].cells * cell, DIGIT * 13) <= WIDTH - MARGIN:
        return right, y
    return MARGIN, y + 2 * LINE + cuts[0].cells * CELL + 10


def table(caption: str, factors: Sequence[Mapping[int, int]], results: Sequence[Cut],
          boxes: Sequence[tuple[int, int]], cell: int, x: float, margin: float, y: float) -> list[Mark]:
    """A table of products, whose factors stand at its sides."""
    marks = [Mark("caption", x, y + 11, text=caption)]
    x, y = x + margin, y + 2 * LINE
    rows, columns = results
    marks += [Mark("digit", x + (columns.left(j) + 0.5) * cell, y - 4, text=str(factors[1][j]),
                   data=(("axis", "1"), ("factor", str(j)))) for j in columns]
    marks += [Mark("index", x - 4, y + rows.left(i) * CELL + 14, text=str(factors[0][i]),
                   data=(("axis", "0"), ("factor", str(i)))) for i in rows]
    for i in rows:
        for j in columns:
            place = x + columns.left(j) * cell, y + rows.left(i) * CELL
            marks.append(Mark("result", *place, cell, CELL, data=(("at", f"{i},{j}"),)))
            marks.append(Mark("digit", place[0] + cell / 2, place[1] + 14, text=str(factors[0][i] * factors[1][j]),
                              data=(("result", f"{i},{j}"),)))
    marks += gaps(results, cell, x, y)
    marks += [Mark(BOXES[k], x + columns.left(j) * cell + 2, y + rows.left(i) * CELL + 2, cell - 4, CELL - 4,
                   data=(("of", f"{i},{j}"),))
              for k, (i, j) in enumerate(boxes) if rows.has(i) and columns.has(j)]
    return marks


def gaps(cuts: Sequence[Cut], cell: float, x: float, y: float) -> list[Mark]:
    """Dots where rows and columns are left out."""
    rows, columns = cuts
    marks = [Mark("digit", x + (columns.head - columns.low + 0.5) * cell, y + rows.left(row) * CELL + 14, text="…")
             for row in rows if columns.missing]
    middle = y + (rows.head - rows.low + 0.5) * CELL + 4
    return marks + [Mark("digit", x + (columns.left(column) + 0.5) * cell, middle, text="…")
                    for column in columns if rows.missing]


def texts(kind: str, lines: Sequence[str], y: float) -> tuple[list[Mark], float]:
    """Lines of text, wrapped if they are too long."""
    marks = []
    for line in lines:
        for part in broken(line, LETTERS[kind]):
            marks.append(Mark(kind, MARGIN, y + 11, text=part))
            y += LINE
    return marks, y


def broken(line: str, letters: int) -> list[str]:
    """A line of text as lines of at most this many letters, where words allow it."""
    parts = [""]
    for word in line.split(" "):
        if parts[-1] and len(parts[-1]) + 1 + len(word) > letters:
            parts.append(word)
        else:
            parts[-1] += (" " if parts[-1] else "") + word
    return parts


def extent(axis: Axis, size: int = 0) -> tuple[int, int]:
    """
    The positions of an axis: elements, padding, and positions that the last window reaches beyond them.
    `size` is the size of a longer result, which only MaxUnpool has.
    """
    last = (axis.out - 1) * axis.stride - axis.pads[0] + axis.span if axis.out else 0
    return min(0, -axis.pads[0]), max(axis.size + axis.pads[1], last, size)


def cut_of(axis: Axis, most: int, size: int = 0) -> Cut:
    """The positions of an axis that are drawn: not only padding, if there are elements. `size` is as in `extent`."""
    whole, end = extent(axis, size), max(axis.size, size)
    cut = Cut.of(*whole, most)
    return Cut.around(whole, (0, end), most) if end and cut.head <= 0 and end <= cut.tail else cut


def is_read(axis: Axis, place: int) -> bool:
    """Whether an element is in a window: the congruence of its tap has a solution among the windows around it."""
    distance = place + axis.pads[0]
    low = max(0, -((axis.span - 1 - distance) // axis.stride))
    common = gcd(axis.stride, axis.dilation)
    if distance % common:
        return False
    period = axis.dilation // common
    solution = distance // common * pow(axis.stride // common, -1, period) % period
    return low + (solution - low) % period <= min(axis.out - 1, distance // axis.stride)


def cell_of(axis: Axis, place: int, size: int = 0) -> str:
    """The kind of cell at a position of an axis, with `size` as in `extent`."""
    if 0 <= place < axis.size:
        return "element" if is_read(axis, place) else "unread"
    if place >= axis.size + axis.pads[1] or axis.size <= place < size:
        return "overhang"
    return "counted" if axis.counts_pads else "padding"


def left_out(number: int, cut: Cut, whole: tuple[int, int], result: Cut | None = None, noun: str = "") -> list[str]:
    """Sentences about what is not drawn: positions of the whole axis, and windows or bins."""
    notes = []
    total, drawn = whole[1] - whole[0], cut.high - cut.low - cut.missing
    if drawn < total:
        notes.append(f"Axis {number}: {total - drawn} of {total} positions are not drawn{' (…)' * (cut.missing > 0)}.")
    if result is not None and result.missing:
        notes.append(f"Axis {number}: {result.missing} of {result.high} {noun} are not shown.")
    return notes


def chosen(pair: Sequence[Axis], cuts: Sequence[Cut], results: Sequence[Cut]) -> list[tuple[int, int]]:
    """The windows that are drawn as boxes: the first, one whose taps are all elements, and the last."""
    if not all(axis.out for axis in pair):
        return []
    inner = []
    for axis, cut, result in zip(pair, cuts, results, strict=True):
        index = max(axis.begin, 1)
        begin = index * axis.stride - axis.pads[0]
        fits = index < min(axis.end, axis.out - 1) and result.has(index)
        inner.append(index if fits and cut.has(begin) and cut.has(begin + axis.span - 1) else 0)
    windows = [(0, 0), (inner[0], inner[1]), (pair[0].out - 1, pair[1].out - 1)]
    return list(dict.fromkeys(windows))


def padded(pair: Sequence[Axis], cuts: Sequence[Cut], boxes: Sequence[tuple[int, int]], x: float,
           y: float) -> list[Mark]:
    """The cells of an image and its padding, and the outlines of windows."""
    kinds = [{place: cell_of(axis, place) for place in cut} for axis, cut in zip(pair, cuts, strict=True)]
    ends = [[place for place in (0, axis.size - 1) if cut.has(place)] for axis, cut in zip(pair, cuts, strict=True)]
    marks = cells("X with its padding", kinds, ends, cuts, x, y)
    for k, window in enumerate(boxes):
        marks += box(pair, cuts, window, k, x, y + 2 * LINE)
    return marks


def cells(caption: str, kinds: Sequence[Mapping[int, str]], ends: Sequence[Sequence[int]], cuts: Sequence[Cut],
          x: float, y: float) -> list[Mark]:
    """An image of cells, with numbers at its ends. A cell has the later of its row's and its column's kinds."""
    rows, columns = cuts
    marks = [Mark("caption", MARGIN, y + 11, text=caption)]
    y += 2 * LINE
    marks += [Mark("digit", min(x + (columns.left(place) + 0.5) * CELL, WIDTH - MARGIN - DIGIT * len(str(place)) / 2),
                   y - 4, text=str(place), data=(("column", str(place)),)) for place in dict.fromkeys(ends[1])]
    marks += [Mark("index", x - 4, y + rows.left(place) * CELL + 14, text=str(place), data=(("row", str(place)),))
              for place in dict.fromkeys(ends[0])]
    for kind in CELLS:
        for row in rows:
            for column in columns:
                if max(kinds[0][row], kinds[1][column], key=CELLS.index) == kind:
                    marks.append(Mark(kind, x + columns.left(column) * CELL, y + rows.left(row) * CELL, CELL, CELL,
                                      data=(("cell", f"{row},{column}"),)))
    marks += [Mark("digit", mark.x + CELL / 2, mark.y + 14, text=SIGNS[mark.kind])
              for mark in marks if mark.kind in SIGNS]
    return marks + gaps(cuts, CELL, x, y)


def box(pair: Sequence[Axis], cuts: Sequence[Cut], window: tuple[int, int], k: int, x: float, y: float) -> list[Mark]:
    """The outline of a window, and its taps if it has gaps. Boxes that share cells do not cover each other."""
    rows, columns = cuts
    begins = [index * axis.stride - axis.pads[0] for index, axis in zip(window, pair, strict=True)]
    lasts = [begin + axis.span - 1 for begin, axis in zip(begins, pair, strict=True)]
    inset = 2 + 2 * k
    left, top = x + columns.left(begins[1]) * CELL + inset, y + rows.left(begins[0]) * CELL + inset
    right, bottom = x + columns.right(lasts[1]) * CELL - inset, y + rows.right(lasts[0]) * CELL - inset
    marks = [Mark(BOXES[k], left, top, max(1, right - left), max(1, bottom - top), data=(
        ("window", ",".join(map(str, window))), ("begin", ",".join(map(str, begins))),
        ("end", ",".join(str(last + 1) for last in lasts))))]
    if any(axis.dilation > 1 and axis.kernel > 1 for axis in pair):
        taps = [[place for place in cut if begin <= place <= last and (place - begin) % axis.dilation == 0]
                for axis, cut, begin, last in zip(pair, cuts, begins, lasts, strict=True)]
        across, down = DOTS[k]
        marks += [Mark(f"{BOXES[k]}-tap", x + columns.left(column) * CELL + across, y + rows.left(row) * CELL + down,
                       4, 4, data=(("tap", f"{row},{column}"),)) for row in taps[0] for column in taps[1]]
    return marks


def strip(number: int, axis: Axis, y: float, divided: bool, several: bool,
          size: int = 0) -> tuple[list[Mark], float, list[str]]:
    """The positions of an axis, its windows one below the other, and notes. `size` is as in `extent`."""
    left = MARGIN + DIGIT * len(str(max(axis.out - 1, 0))) + 6
    right = DIGIT * (3 + len(str(max(axis.window(0).divisor, axis.window(axis.out - 1).divisor, axis.most)))
                     ) if divided and axis.out else 0
    cut = cut_of(axis, max(3, min(MOST_CELLS, int(WIDTH - MARGIN - left - right) // STRIP)), size)
    marks = [Mark("caption", MARGIN, y + 11, text=f"axis {number}")] if several else []
    y += LINE * several
    cells = [Mark(cell_of(axis, place, size), left + cut.left(place) * STRIP, y, STRIP, STRIP,
                  data=(("axis", str(number)), ("cell", str(place)))) for place in cut]
    marks += cells
    marks += [Mark("digit", mark.x + STRIP / 2, y + 12, text=SIGNS[mark.kind]) for mark in cells if mark.kind in SIGNS]
    if cut.missing:
        marks.append(Mark("digit", left + (cut.head - cut.low + 0.5) * STRIP, y + 12, text="…"))
    y += STRIP + 2
    drawn = 0
    for index in (*drawn_windows(axis, cut), axis.out):
        if drawn < index:
            marks.append(Mark("factor", left, y + 12, text=more_windows(index - drawn)))
            y += STRIP
        if index == axis.out:
            break
        drawn = index + 1
        marks += row_of(number, axis, index, cut, left, y)
        if divided:
            marks.append(Mark("factor", left + cut.cells * STRIP + 6, y + 12, text=f"÷ {axis.window(index).divisor}",
                              data=(("axis", str(number)), ("divisor", str(index)))))
        y += STRIP
    return marks, y + 6, left_out(number, cut, extent(axis, size))


def more_windows(count: int) -> str:
    """The text that replaces windows that are left out."""
    return f"… {count} more window{'s' * (count > 1)}"


def drawn_windows(axis: Axis, cut: Cut) -> list[int]:
    """The first and last windows that have drawn positions."""
    def reaching(place: int) -> int:  # the first window that reaches a position
        return max(0, (place + axis.pads[0] - axis.span) // axis.stride + 1)

    def behind(place: int) -> int:  # the first window that begins there or later
        return min(axis.out, -(-(place + axis.pads[0]) // axis.stride))

    begin, end, half = reaching(cut.low), behind(cut.high), MOST_ROWS // 2
    head = range(begin, max(begin, min(behind(cut.head), begin + half)))
    return [*head, *range(max(reaching(cut.tail) if cut.missing else begin, end - half, head.stop), end)]


def row_of(number: int, axis: Axis, index: int, cut: Cut, x: float, y: float) -> list[Mark]:
    """A window of a strip: its number, its outline and its taps."""
    begin = index * axis.stride - axis.pads[0]
    last = begin + axis.span - 1
    name = ("axis", str(number)), ("window", str(index))
    marks = [Mark("index", x - 5, y + 12, text=str(index)),
             Mark("window", x + cut.left(begin) * STRIP + 1, y + 2, (cut.right(last) - cut.left(begin)) * STRIP - 2,
                  STRIP - 4, data=(*name, ("begin", str(begin)), ("end", str(last + 1))))]
    marks += [Mark("tap" if 0 <= place < axis.size else "outside", x + cut.left(place) * STRIP + 4, y + 4, 8, 8,
                   data=(*name, ("tap", str(place))))
              for place in cut if begin <= place <= last and (place - begin) % axis.dilation == 0]
    return marks


class Drawable(Protocol):
    """The interface of all pictures: lines of text, the first of which is the title, and marks with their height."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of text."""

    def drawing(self) -> tuple[list[Mark], float]:
        """All marks, in the order in which they are drawn, and the height."""


def svg(picture: Drawable) -> str:
    """A picture as SVG source. It looks the same on every page, and dark where the reader prefers that."""
    from html import escape  # slow to import

    marks, height = picture.drawing()
    title = escape(picture.lines[0])

    def drawn(mark: Mark) -> str:
        data = "".join(f' data-{name}="{value}"' for name, value in mark.data)
        shape = STYLES[mark.kind].shape
        if shape == "rect":
            return f'<rect x="{mark.x:g}" y="{mark.y:g}" width="{mark.width:g}" height="{mark.height:g}"{data}/>'
        if shape == "circle":
            radius = mark.width / 2
            return f'<circle cx="{mark.x + radius:g}" cy="{mark.y + radius:g}" r="{radius:g}"{data}/>'
        return f'<text x="{mark.x:g}" y="{mark.y:g}"{data}>{escape(mark.text)}</text>'

    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" class="onnxpool" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" style="max-width:100%;height:auto" font-family="sans-serif" role="img" '
        f'aria-label="{title}">',
        f"<title>{title}</title>", f"<style>{dark_rules()}</style>",
        *(f'<g class="{kind}"{attributes(STYLES[kind])}>{"".join(map(drawn, group))}</g>'
          for kind, group in groupby(marks, lambda mark: mark.kind)),
        "</svg>"))


def attributes(style: Style) -> str:
    """The look of a kind of mark on a light page, as SVG attributes."""
    fill, stroke = (COLOURS[name][0] if name else "none" for name in (style.fill, style.stroke))
    text = f' fill="{fill}"'
    if style.stroke:
        text += f' stroke="{stroke}"'
    if style.weight > 1:
        text += f' stroke-width="{style.weight:g}"'
    if style.dash:
        text += f' stroke-dasharray="{style.dash}"'
    if style.shape == "text":
        text += f' font-size="{style.size}"'
    if style.anchor != "start":
        text += f' text-anchor="{style.anchor}"'
    return text + ' font-weight="bold"' * style.bold


def dark_rules() -> str:
    """The style sheet that replaces the colours on a dark page."""
    rules = []
    for kind, style in STYLES.items():
        colours = [f"{name}:{COLOURS[colour][1]}" for name, colour in (("fill", style.fill), ("stroke", style.stroke))
                   if colour]
        rules.append(f".onnxpool .{kind}{{{';'.join(colours)}}}")
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"


def plot(picture: Drawable, ax: Any = None) -> Any:
    """Draw a picture on matplotlib axes, or on a new figure as large as the picture."""
    try:
        from matplotlib import colors, patches
    except ImportError:
        raise ImportError("onnxpool: plot needs the package matplotlib, which is not installed; "
                          "pip install onnxpool[plot]") from None
    marks, height = picture.drawing()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.figure(figsize=(WIDTH / INCH, height / INCH)).add_axes((0, 0, 1, 1))
    red, green, blue = colors.to_rgb(ax.get_facecolor())
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
    room = ax.get_window_extent()
    point = min(room.width / WIDTH, room.height / height) * INCH / ax.figure.dpi  # pixel size in points

    for mark in marks:
        style = STYLES[mark.kind]
        fill, stroke = (COLOURS[name][dark] if name else "none" for name in (style.fill, style.stroke))
        if style.shape == "text":
            side = {"start": "left", "middle": "center", "end": "right"}[style.anchor]
            ax.text(mark.x, mark.y, mark.text, color=fill, fontsize=style.size * point, horizontalalignment=side,
                    verticalalignment="baseline", parse_math=False, fontweight="bold" if style.bold else "normal")
            continue
        dash = (0, tuple(map(float, style.dash.split()))) if style.dash else "solid"
        look = {"facecolor": fill, "edgecolor": stroke, "linewidth": style.weight * point, "linestyle": dash}
        radius = mark.width / 2
        ax.add_patch(patches.Circle((mark.x + radius, mark.y + radius), radius, **look) if style.shape == "circle" else
                     patches.Rectangle((mark.x, mark.y), mark.width, mark.height, **look))
    ax.set_xlim(0, WIDTH)
    ax.set_ylim(height, 0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def png(picture: Drawable, file: IO[bytes]) -> None:
    """Write a picture as PNG, with twice as many pixels along each side."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("onnxpool: a PNG needs the package matplotlib, which is not installed; "
                          "pip install onnxpool[plot]") from None
    _, height = picture.drawing()
    figure = Figure(figsize=(WIDTH / INCH, height / INCH), dpi=2 * INCH)
    plot(picture, figure.add_axes((0, 0, 1, 1)))
    figure.savefig(file, format="png")
