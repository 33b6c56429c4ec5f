"""
Draw the pictures of windows and plans in the documentation: docs/images/*.svg, and the pictures of pages in
docs/concepts. `Plan.explain().svg()` draws most of them, and this script draws the others in the same style.

After changing the pictures, run python tools/draw_concepts.py with onnxpool installed, and commit the files that it
writes. With --check, it writes nothing, and exits with 1 if a committed file is stale.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onnxpool
from onnxpool.ndimage.borders import MODES, repeated
from onnxpool.pictures import CELL, LINE, MARGIN, WIDTH, Mark, svg, texts

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "concepts"

# Name of the file, operator, its attributes, and the shape of its input.
PICTURES: tuple[tuple[str, str, dict[str, Any], tuple[int, ...]], ...] = (
    ("windows", "MaxPool", {"kernel_shape": 3, "strides": 2, "axes": 0}, (9,)),
    ("remainder", "MaxPool", {"kernel_shape": 3, "strides": 3, "axes": 0}, (8,)),
    ("pads", "MaxPool", {"kernel_shape": 3, "pads": 1, "axes": 0}, (6,)),
    ("same_upper", "MaxPool", {"kernel_shape": 2, "auto_pad": "SAME_UPPER", "axes": 0}, (5,)),
    ("same_lower", "MaxPool", {"kernel_shape": 2, "auto_pad": "SAME_LOWER", "axes": 0}, (5,)),
    ("ceil_mode", "AveragePool", {"kernel_shape": 3, "strides": 2, "ceil_mode": 1, "axes": 0}, (6,)),
    ("dropped", "AveragePool", {"kernel_shape": 3, "strides": 3, "pads": 1, "ceil_mode": 1, "axes": 0}, (2,)),
    ("divisor", "AveragePool", {"kernel_shape": 3, "pads": 1, "axes": 0}, (5,)),
    ("counted", "AveragePool", {"kernel_shape": 3, "pads": 1, "count_include_pad": 1, "axes": 0}, (5,)),
    ("overhang", "AveragePool", {"kernel_shape": 3, "strides": 2, "pads": (1, 0), "ceil_mode": 1,
                                 "count_include_pad": 1, "axes": 0}, (5,)),
    ("dilations", "MaxPool", {"kernel_shape": 3, "dilations": 2, "axes": 0}, (9,)),
    ("corner", "AveragePool", {"kernel_shape": 3, "pads": 1, "axes": (0, 1)}, (4, 4)),
    ("corner_counted", "AveragePool", {"kernel_shape": 3, "pads": 1, "count_include_pad": 1, "axes": (0, 1)}, (4, 4)),
    ("image", "MaxPool", {"kernel_shape": 2, "axes": (0, 1)}, (4, 5, 3)),
    ("colours", "MaxPool", {"kernel_shape": 2}, (4, 5, 3)),
    ("../plan", "AveragePool", {"kernel_shape": 3, "strides": 2, "pads": 1, "axes": (0, 1), "ceil_mode": 1,
                                "count_include_pad": 1}, (6, 8, 3)),
)
IMAGE = np.array([[9, 9, 6, 4, 1], [7, 7, 5, 5, 2], [7, 5, 4, 2, 2], [2, 2, 1, 5, 8], [2, 2, 2, 6, 9]])
SUMMANDS = (1e8, -1e8, 1)
WIDE = 60  # width of a cell with such a number


class Sketch(NamedTuple):
    """A picture of something other than windows."""

    lines: tuple[str, ...]
    marks: list[Mark]
    bottom: float

    def drawing(self) -> tuple[list[Mark], float]:
        """All marks, and the height."""
        height = self.bottom + MARGIN
        return [Mark("card", 0, 0, WIDTH, height), *texts("heading", self.lines, MARGIN)[0], *self.marks], height


def drawn(operator: str, attributes: dict[str, Any], shape: tuple[int, ...]) -> str:
    """The picture of an operator for an input of float32."""
    return str(getattr(onnxpool, operator)(**attributes).plan(shape, "float32").explain().svg())


def places() -> str:
    """Where max_unpool puts the maxima in the example on the page about Indices."""
    x = np.array([[[[3, 1, 4, 1], [5, 9, 2, 6]]]], np.float32)
    y, indices = onnxpool.max_pool(x, 2, strides=2, return_indices=True)
    return str(onnxpool.MaxUnpool(kernel_shape=2, strides=2).plan(y.shape, y.dtype).explain(indices).svg())


def ties() -> str:
    """Means of two integers, and the integers that they are rounded to."""
    pairs = np.array([(i // 2, i - i // 2) for i in range(10)], np.uint8)
    means, rounded = (onnxpool.average_pool(pairs, 2, axes=1, dtype=dtype).ravel() for dtype in (None, np.uint8))
    cell = (WIDTH - 2 * MARGIN) // len(pairs)
    marks, y = [], MARGIN + 2.0 * LINE
    for caption, kind, row in (("mean", "element", means), ("dtype=np.uint8", "result", rounded)):
        marks.append(Mark("caption", MARGIN, y + 11, text=caption))
        y += LINE + 2
        for i, value in enumerate(row):
            x = MARGIN + i * cell
            marks += [Mark(kind, x, y, cell, CELL), Mark("digit", x + cell / 2, y + 14, text=f"{value:g}")]
            if means[i] % 1:
                marks.append(Mark("first", x + 2, y + 2, cell - 4, CELL - 4))
        y += CELL + 4
    return svg(Sketch(("Ties go to the even neighbour",), marks, y))


def orders() -> str:
    """Three numbers added in two orders, with boxes as parentheses."""
    a, b, c = map(np.float32, SUMMANDS)
    marks, y = [], MARGIN + 2.0 * LINE
    for result, begin in (((a + b) + c, 0), (a + (b + c), 1)):
        marks += [Mark("first", MARGIN, y, 3 * WIDE + 16, CELL + 16),
                  Mark("inner", MARGIN + 8 + begin * WIDE, y + 4, 2 * WIDE, CELL + 8)]
        for i, value in enumerate((a, b, c)):
            x = MARGIN + 8 + i * WIDE
            marks += [Mark("element", x + 4, y + 8, WIDE - 8, CELL),
                      Mark("digit", x + WIDE / 2, y + 22, text=f"{value:g}")]
        marks.append(Mark("caption", MARGIN + 3 * WIDE + 28, y + 22, text=f"= {result:g}"))
        y += CELL + 24
    more, y = texts("caption", ["float32. The inner box is added first. 1e8 + 1 is rounded to 1e8."], y)
    return svg(Sketch(("The order of additions matters",), marks + more, y))


def means() -> str:
    """Windows of 3x3 elements over an image with padding, and the means of the elements inside."""
    top, right = MARGIN + 2.0 * LINE, MARGIN + 8.0 * CELL
    marks = [Mark("padding" if 0 in (i, j) or 6 in (i, j) else "element", MARGIN + j * CELL, top + i * CELL, CELL, CELL)
             for i in range(7) for j in range(7)]
    marks += [Mark("digit", MARGIN + (j + 1.5) * CELL, top + (i + 1) * CELL + 14, text=str(value))
              for (i, j), value in np.ndenumerate(IMAGE)]
    results = onnxpool.average_pool(IMAGE.astype(np.float32), 3, strides=2, pads=1, axes=(0, 1))
    for (i, j), value in np.ndenumerate(results):
        x, y = right + j * CELL, top + i * CELL
        marks += [Mark("result", x, y, CELL, CELL), Mark("digit", x + CELL / 2, y + 14, text=f"{value:g}")]
    y = top + 3 * CELL + 8
    for kind, (i, j) in {"first": (0, 0), "inner": (0, 1), "last": (1, 1)}.items():
        inside = IMAGE[max(0, 2 * i - 1):2 * i + 2, max(0, 2 * j - 1):2 * j + 2]
        marks += [Mark(kind, MARGIN + 2 * j * CELL + 1, top + 2 * i * CELL + 1, 3 * CELL - 2, 3 * CELL - 2),
                  Mark(kind, right + j * CELL + 2, top + i * CELL + 2, CELL - 4, CELL - 4),
                  Mark(kind, right, y, 12, 12),
                  Mark("caption", right + 18, y + 11, text=f"{inside.sum()} / {inside.size} = {results[i, j]:g}")]
        y += LINE + 4
    marks.append(Mark("caption", right, y + 11, text="Padding does not count."))
    return svg(Sketch(("3x3 means of a 5x5 image, stride 2, padding 1",), marks, top + 7 * CELL))


def borders() -> str:
    """What lies beyond the ends of an axis, by the mode of a filter."""
    letters, beyond = "abcd", 5
    marks, y = [], MARGIN + 2.0 * LINE
    modes: dict[Any, list[str]] = {}
    for name, function in MODES.items():
        modes.setdefault(function, []).append(name)
    for function, names in modes.items():
        marks.append(Mark("caption", MARGIN, y + 14, text=", ".join(names)))
        for i in range(-beyond, len(letters) + beyond):
            x, inside = MARGIN + 136 + (i + beyond) * (CELL - 4), 0 <= i < len(letters)
            element = (function or repeated)(np.array(i), len(letters))
            text = "0" if function is None and not inside else letters[element]
            marks += [Mark("element" if inside else "padding", x, y, CELL - 4, CELL),
                      Mark("digit", x + CELL / 2 - 2, y + 14, text=text)]
        y += CELL + 6
    more, y = texts("caption", ["a b c d: the elements of the axis. 0: cval."], y)
    return svg(Sketch(("Beyond the ends of an axis",), marks + more, y))


OTHERS = {"../windows": means, "places": places, "ties": ties, "orders": orders, "borders": borders}


def main() -> int:
    """Write the pictures, or check them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="exit with 1 if a committed file is stale")
    check = options.parse_args().check
    FOLDER.mkdir(parents=True, exist_ok=True)
    stale = 0
    made_of = {name: drawn(*call) for name, *call in PICTURES} | {name: draw() for name, draw in OTHERS.items()}
    for name, picture in made_of.items():
        file, made = FOLDER / f"{name}.svg", f"{picture}\n"
        if file.exists() and file.read_text(encoding="utf-8") == made:
            continue
        stale += 1
        if check:
            print(f"{file.name} is stale: run python tools/{Path(__file__).name}", file=sys.stderr)
        else:
            file.write_text(made, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
