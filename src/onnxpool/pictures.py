"""Pictures of windows: a strip of elements for each pooled axis, with the taps of each window below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .windows import Axis

MOST_ROWS = 8  # windows of an axis that are drawn
MOST_CELLS = 40  # positions of an axis that are drawn
CELL = 16  # pixels
LABELS = 7  # width in cells of the window numbers on the left, and of the divisors on the right
RADIUS = 0.28  # radius of a tap, in cells
INPUT, TAP, LINE = "#b9d7ea", "#0072b2", "#888888"


class Mark(NamedTuple):
    """A shape or text to draw. Its upper left corner is at (x, y), in cells."""

    kind: str  # input or padding: a cell; tap or outside: a tap in the input or in padding; text; label
    x: float
    y: float
    text: str = ""


class Picture(NamedTuple):
    """The content of a picture."""

    lines: tuple[str, ...]  # above the axes
    axes: tuple[tuple[int, Axis], ...]  # each with its number
    divided: bool  # whether sums are divided

    def marks(self) -> Iterator[Mark]:
        """All marks, from top to bottom."""
        y = 0.0
        for line in self.lines:
            yield Mark("text", 0, y, line)
            y += 1.5
        for number, axis in self.axes:
            yield Mark("text", 0, y, f"axis {number}, {axis.size} to {axis.out}")
            rows = shown_rows(axis)
            low, high = extent(axis, rows)
            yield from (Mark("input" if 0 <= place < axis.size else "padding", place - low, y + 1.5)
                        for place in range(low, high))
            y += 3
            for index in range(rows):
                yield from row_of(axis, index, low, high, y, self.divided)
                y += 1
            if rows < axis.out:
                yield Mark("label", -1, y, f"{axis.out - rows} more")
                y += 1
            y += 1


def shown_rows(axis: Axis) -> int:
    """The number of windows to draw, all of which begin at a position that is drawn."""
    return max(1, min(axis.out, MOST_ROWS, (MOST_CELLS - 1) // axis.stride + 1)) if axis.out else 0


def extent(axis: Axis, rows: int) -> tuple[int, int]:
    """The range of positions to draw, which begins with the padding."""
    low = -axis.pads[0]
    behind = axis.size + axis.pads[1] if rows == axis.out else 0
    return low, low + min(MOST_CELLS, max(behind - low, (rows - 1) * axis.stride + axis.span))


def row_of(axis: Axis, index: int, low: int, high: int, y: float, divided: bool) -> Iterator[Mark]:
    """The marks of a window: its number, its taps, and its divisor."""
    yield Mark("label", -1, y, str(index))
    begin = index * axis.stride + low
    places = range(begin, min(high, begin + axis.span), axis.dilation)
    yield from (Mark("tap" if 0 <= place < axis.size else "outside", place - low, y) for place in places)
    if begin + axis.span > high:
        yield Mark("text", high - low + 0.5, y, "...")
    if divided:
        yield Mark("text", high - low + 2, y, f"/ {axis.window(index).divisor}")


def svg(picture: Picture) -> str:
    """A picture as SVG source. Text has the colour of the page's text."""
    from html import escape  # slow to import

    marks = list(picture.marks())
    left = LABELS if picture.axes else 0
    width = max(left + mark.x + (LABELS if mark.kind in ("input", "padding") else 0.55 * len(mark.text))
                for mark in marks) + 1
    height = max(mark.y for mark in marks) + 2

    def drawn(mark: Mark) -> str:
        x, y = (mark.x + (left if mark.kind != "text" or mark.x else 0) + 0.5) * CELL, (mark.y + 0.5) * CELL
        if mark.kind in ("input", "padding"):
            style = f'fill="{INPUT}"' if mark.kind == "input" else 'fill="none" stroke-dasharray="2"'
            return f'<rect x="{x:g}" y="{y:g}" width="{CELL}" height="{CELL}" stroke="{LINE}" {style}/>'
        if mark.kind in ("tap", "outside"):
            style = f'fill="{TAP}"' if mark.kind == "tap" else f'fill="none" stroke="{LINE}"'
            return f'<circle cx="{x + CELL / 2:g}" cy="{y + CELL / 2:g}" r="{RADIUS * CELL:g}" {style}/>'
        anchor = ' text-anchor="end"' if mark.kind == "label" else ""
        return f'<text x="{x:g}" y="{y + 0.75 * CELL:g}"{anchor}>{escape(mark.text)}</text>'

    style = f'font-family="sans-serif" font-size="{0.75 * CELL:g}" fill="currentColor"'
    return "\n".join((f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * CELL:g}" height="{height * CELL:g}" '
                      f'{style}>', *map(drawn, marks), "</svg>"))


def plot(picture: Picture, ax: Any = None) -> Any:
    """Draw a picture on matplotlib axes, or on those of a new figure."""
    try:
        from matplotlib import pyplot
        from matplotlib.patches import Circle, Rectangle
    except ImportError:
        raise ImportError("onnxpool: plot needs the package matplotlib, which is not installed; "
                          "pip install onnxpool[plot]") from None
    if ax is None:
        ax = pyplot.figure().add_subplot()
    patches: dict[str, Callable[[float, float], Any]] = {
        "input": lambda x, y: Rectangle((x, y), 1, 1, facecolor=INPUT, edgecolor=LINE),
        "padding": lambda x, y: Rectangle((x, y), 1, 1, fill=False, edgecolor=LINE, linestyle=":"),
        "tap": lambda x, y: Circle((x + 0.5, y + 0.5), RADIUS, color=TAP),
        "outside": lambda x, y: Circle((x + 0.5, y + 0.5), RADIUS, fill=False, edgecolor=LINE),
    }
    marks = list(picture.marks())
    for mark in marks:
        if mark.kind in patches:
            ax.add_patch(patches[mark.kind](mark.x, mark.y))
        else:
            side = "right" if mark.kind == "label" else "left"
            ax.text(mark.x, mark.y + 0.5, mark.text, horizontalalignment=side, verticalalignment="center")
    ax.set_xlim(-LABELS, max(mark.x for mark in marks) + LABELS)
    ax.set_ylim(max(mark.y for mark in marks) + 2, -1)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
