"""Draw docs/images/architecture.svg: the stages of the pipeline, and the modules around them.

    python tools/draw_architecture.py

Stages and modules come from the tables in docs/architecture.md. `tests/docs/test_architecture.py` compares these with
the source, and the file with this drawing.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
FILE = ROOT / "docs" / "images" / "architecture.svg"

WIDTH, MARGIN, PADDING = 880, 20, 14
MAIN, SIDE = 590, 214  # widths of the pipeline, and of the column next to it
CHIP, LETTER, SPACE = 24, 7.3, 8  # height of a chip, width of a letter in it, space between chips
STAGE, ARROW, HEAD = 52, 36, 50  # heights of a stage, of an arrow, and of the text of a group

LIGHT = {"page": "#ffffff", "text": "#1f2328", "muted": "#59636e", "line": "#0072b2", "box": "#eef5fb",
         "group": "#f6f8fa", "edge": "#d1d9e0", "chip": "#ffffff"}
DARK = {"page": "#0d1117", "text": "#f0f6fc", "muted": "#9198a1", "line": "#58a6ff", "box": "#14243a",
        "group": "#151b23", "edge": "#3d444d", "chip": "#0d1117"}


class Stage(NamedTuple):
    """A row of the table of stages."""

    name: str
    question: str
    answer: str
    modules: tuple[str, ...]


def rows(heading: str, columns: int) -> Iterator[list[str]]:
    """The cells of the first table after a heading of the page, without its head."""
    text = PAGE.read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    lines = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in re.findall(r"^\|.*\|$", text.partition("\n## ")[0], re.MULTILINE)]
    rule = next(i for i, cells in enumerate(lines) if set("".join(cells)) == {"-"})
    for cells in lines[rule + 1:]:
        if len(cells) != columns:
            return
        yield cells


def modules() -> dict[str, set[str]]:
    """The modules of the package from top to bottom, each with those that it imports."""
    return {name.strip("`"): set(re.findall(r"`([\w.]+)`", imports)) for name, _, imports in rows("## Modules", 3)}


def stages() -> list[Stage]:
    """The stages of the pipeline, each with its modules."""
    return [Stage(name, question, answer.replace("`", ""),
                  tuple(re.sub(r"\.(py|pxi)$|/$", "", path).replace("/", ".")
                        for path in re.findall(r"`(.*?)`", where)))
            for name, question, answer, where in rows("# Architecture", 4)]


class Groups(NamedTuple):
    """The modules that belong to no stage."""

    above: list[str]
    plans: list[str]
    shared: list[str]


def groups() -> Groups:
    """The modules above the pipeline, those of planning next to it, and the others, which it builds on."""
    taken = {name for stage in stages() for name in stage.modules}
    names = list(modules())
    top = min(map(names.index, taken))
    free = [name for name in names[top:] if name not in taken]
    return Groups(names[:top], [name for name in free if name.startswith("planning.")],
                  [name for name in free if not name.startswith("planning.")])


def text(x: float, y: float, words: str, kind: str = "text", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="{kind}"/>'


def arrow(path: str) -> str:
    return f'<path d="{path}" class="arrow" marker-end="url(#head)"/>'


def chip_width(label: str) -> float:
    return len(label) * LETTER + 14


def chips(x: float, y: float, width: float, names: Sequence[str], prefix: str = "") -> tuple[list[str], float]:
    """Names of modules without a prefix, in frames, and the bottom of the last line."""
    parts: list[str] = []
    left = x
    for name in names:
        label = name.removeprefix(prefix)
        own = chip_width(label)
        if left > x and left + own > x + width:
            left, y = x, y + CHIP + SPACE
        parts += [box(left, y, own, CHIP, "chip"), text(left + own / 2, y + CHIP / 2 + 4.5, label, "code", "middle")]
        left += own + SPACE
    return parts, y + CHIP


def group(x: float, y: float, width: float, title: str, note: str, names: Sequence[str], prefix: str = "",
          least: float = 0) -> tuple[list[str], float]:
    """A titled box of chips that is at least `least` high, and its bottom."""
    inner, bottom = chips(x + PADDING, y + HEAD, width - 2 * PADDING, names, prefix)
    bottom = max(bottom + PADDING, y + least)
    return [box(x, y, width, bottom - y, "group"), text(x + PADDING, y + 22, title, "title"),
            text(x + PADDING, y + 39, note, "muted"), *inner], bottom


def passed(y: float, words: str) -> list[str]:
    """An arrow to the next stage, with the value that is passed."""
    x = MARGIN + PADDING + 8
    return [arrow(f"M{x} {y:g}v{ARROW - 3}"), text(x + 14, y + ARROW / 2 + 4, words)]


def pipeline(y: float) -> tuple[list[str], float]:
    """The stages from top to bottom, with the values passed between them, and the bottom of the last one."""
    parts: list[str] = []
    found = stages()
    for i, stage in enumerate(found):
        width = sum(map(chip_width, stage.modules)) + SPACE * (len(stage.modules) - 1)
        parts += [box(MARGIN, y, MAIN, STAGE, "stage"), text(MARGIN + PADDING, y + 22, stage.name, "title"),
                  text(MARGIN + PADDING, y + 40, stage.question, "muted"),
                  *chips(MARGIN + MAIN - PADDING - width, y + (STAGE - CHIP) / 2, width, stage.modules)[0]]
        y += STAGE
        if i < len(found) - 1:
            parts += passed(y, stage.answer)
            y += ARROW
    return parts, y


def drawing() -> str:
    """The picture as SVG."""
    found, wide, side = groups(), WIDTH - 2 * MARGIN, WIDTH - MARGIN - SIDE
    above, bottom = group(MARGIN, MARGIN, wide, "Entry points", "Python, the command line, other libraries, C",
                          found.above)
    call, top = passed(bottom, "a call"), bottom + ARROW
    stage_parts, bottom = pipeline(top)
    first, second, last = top + STAGE / 2, top + STAGE + ARROW, bottom - STAGE / 2
    plans, end = group(side, second, SIDE, "planning", "plans and their helpers", found.plans, "planning.",
                       bottom - second)
    shared, bottom = group(MARGIN, max(bottom, end) + ARROW, wide, "Shared", "Every stage may import these.",
                           found.shared)
    height, edge, middle = bottom + MARGIN, MARGIN + MAIN, side + SIDE / 2

    def style(colours: dict[str, str]) -> str:
        return (f".page {{ fill: {colours['page']} }} text {{ fill: {colours['text']} }} "
                f".muted {{ fill: {colours['muted']} }} "
                f".stage {{ fill: {colours['box']}; stroke: {colours['line']} }} "
                f".group {{ fill: {colours['group']}; stroke: {colours['edge']} }} "
                f".chip {{ fill: {colours['chip']}; stroke: {colours['edge']} }} "
                f".arrow {{ fill: none; stroke: {colours['line']} }} .head {{ fill: {colours['line']} }}")

    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        f"<title>The pipeline of onnxpool: {', '.join(stage.name for stage in stages())}</title>",
        f"<style>{style(LIGHT)} .title {{ font-size: 15px; font-weight: bold }} "
        ".code { font-family: Menlo, Consolas, monospace; font-size: 12px } .arrow { stroke-width: 1.5 }",
        f"@media (prefers-color-scheme: dark) {{ {style(DARK)} }}</style>",
        '<marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="head"/></marker>',
        f'<rect width="{WIDTH}" height="{height:g}" rx="8" class="page"/>',
        *above, *call, *stage_parts, *plans,
        arrow(f"M{edge} {first:g}H{middle:g}V{second - 3:g}"), text(middle - 10, first - 7, "makes", anchor="end"),
        arrow(f"M{side} {last:g}H{edge + 3}"), text((side + edge) / 2, last - 7, "run", anchor="middle"),
        *shared, "</svg>", ""))


if __name__ == "__main__":
    FILE.write_text(drawing(), encoding="utf-8")
