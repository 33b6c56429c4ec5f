"""
Draw docs/images/windows.svg: the windows of an average over a small image, and their means; and plan.svg: the picture
of a plan.

    python tools/draw_windows.py

`tests/docs/test_docs.py` compares the files with these drawings, and the means with those of onnxpool.
"""

from pathlib import Path

from onnxpool import AveragePool
from onnxpool.pictures import COLOURS

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "images" / "windows.svg"
PLAN_FILE = ROOT / "docs" / "images" / "plan.svg"

IMAGE = [
    [9, 9, 6, 4, 1],
    [7, 7, 5, 5, 2],
    [7, 5, 4, 2, 2],
    [2, 2, 1, 5, 8],
    [2, 2, 2, 6, 9],
]
KERNEL, STRIDE, PAD = 3, 2, 1
SIZE = len(IMAGE)
WINDOWS = (SIZE + 2 * PAD - KERNEL) // STRIDE + 1
SHOWN = {(0, 0): "first", (0, 1): "inner", (1, 1): "last"}  # window, colour
CELL = 30
LEFT, TOP = 16, 46  # position of the padded image
RIGHT = 250  # the left side of the result
WIDTH, HEIGHT = 440, 268
STYLE = (".title { font-weight: bold } .note { font-size: 13px } .padding, .result, .outline { fill: none } "
         ".padding { stroke-dasharray: 4 3 } .outline { stroke-width: 3 }")


def pixels(row: int, column: int) -> list[int]:
    """The pixels of a window that lie in the image."""
    def inside(place: int) -> range:
        first = place * STRIDE - PAD
        return range(max(first, 0), min(first + KERNEL, SIZE))

    return [IMAGE[y][x] for y in inside(row) for x in inside(column)]


def square(x: float, y: float, size: float, style: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" {style}/>'


def text(x: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{words}</text>'.replace(" >", ">")


def cell(x: float, y: float, value: int, style: str) -> list[str]:
    return [square(x, y, CELL, style), text(x + CELL / 2, y + CELL / 2 + 5.5, str(value), 'text-anchor="middle"')]


def padded_image() -> list[str]:
    """The image with its padding, and the outlines of some windows."""
    parts = [text(LEFT, TOP - 16, "5 x 5 image, padding 1", 'class="title"')]
    for row in range(-PAD, SIZE + PAD):
        for column in range(-PAD, SIZE + PAD):
            x, y = LEFT + (column + PAD) * CELL, TOP + (row + PAD) * CELL
            if 0 <= row < SIZE and 0 <= column < SIZE:
                value = IMAGE[row][column]
                parts += cell(x, y, value, 'class="element"')
            else:
                parts.append(square(x, y, CELL, 'class="padding"'))
    for (row, column), colour in SHOWN.items():
        x, y = LEFT + column * STRIDE * CELL, TOP + row * STRIDE * CELL
        parts.append(square(x + 1.5, y + 1.5, KERNEL * CELL - 3,
                            f'class="{colour} outline"'))
    return parts


def result() -> list[str]:
    """The means, and how some of them are computed."""
    parts = [text(RIGHT, TOP - 16, "3 x 3 average, stride 2", 'class="title"')]
    for row in range(WINDOWS):
        for column in range(WINDOWS):
            taken = pixels(row, column)
            x, y = RIGHT + column * CELL, TOP + row * CELL
            parts += cell(x, y, sum(taken) // len(taken), 'class="result"')
            if (row, column) in SHOWN:
                parts.append(square(x + 2.5, y + 2.5, CELL - 5, f'class="{SHOWN[row, column]} outline"'))
    y = TOP + WINDOWS * CELL + 34
    for (row, column), colour in SHOWN.items():
        taken = pixels(row, column)
        parts += [
            square(RIGHT + 2, y - 12, 12, f'class="{colour} outline"'),
            text(RIGHT + 22, y, f"{len(taken)} pixels: {sum(taken)} / {len(taken)} = {sum(taken) // len(taken)}",
                 'class="note"'),
        ]
        y += 24
    return [*parts, text(RIGHT, y + 6, "Padding does not count.", 'class="note"')]


def rules(dark: int) -> list[str]:
    """The colours of the pictures of plans, as a style sheet."""
    colours = {name: pair[dark] for name, pair in COLOURS.items()}
    return [
        f"text {{ fill: {colours['ink']} }} .card {{ fill: {colours['paper']} }}",
        f".element {{ fill: {colours['element']}; stroke: {colours['line']} }}",
        f".padding, .result {{ stroke: {colours['line']} }}",
        *(f".{name} {{ stroke: {colours[name]} }}" for name in SHOWN.values()),
    ]


def drawing() -> str:
    """The picture as SVG."""
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14" role="img" style="max-width:100%;height:auto">',
        "<title>Windows of a 3 x 3 average with stride 2 and padding 1 over a 5 x 5 image</title>",
        f"<style>{STYLE}", *rules(0), "@media (prefers-color-scheme: dark) {", *rules(1), "}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="card"/>',
        *padded_image(), *result(), "</svg>", ""))


def plan() -> str:
    """The picture of a plan, that of docs/arrays.md with padding that counts and an overhang."""
    pool = AveragePool(kernel_shape=3, strides=2, pads=1, axes=(0, 1), ceil_mode=1, count_include_pad=1)
    return pool.plan((6, 8, 3), "float32").explain().svg() + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(drawing(), encoding="utf-8")
    PLAN_FILE.write_text(plan(), encoding="utf-8")
