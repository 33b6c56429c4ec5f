"""Pictures as a reader of the SVG finds them: marks, the facts that marks show, and the frame."""

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


class Shown(NamedTuple):
    """A mark as a reader of the SVG finds it."""

    kind: str
    shape: str
    text: str
    data: dict[str, str]
    left: float
    top: float
    right: float
    bottom: float

    def numbers(self, name: str) -> tuple[int, ...]:
        """The facts of this name, as integers."""
        return tuple(map(int, self.data[name].split(",")))

    def covers(self, other: "Shown") -> bool:
        """Whether the middle of another mark is inside."""
        x, y = (other.left + other.right) / 2, (other.top + other.bottom) / 2
        return self.left < x < self.right and self.top < y < self.bottom


def marks_of(text: str) -> Iterator[Shown]:
    """The marks of a picture."""
    for group in ElementTree.fromstring(text).findall(f"{SVG}g"):
        for mark in group:
            facts = {name: float(value) for name, value in mark.attrib.items() if not name.startswith("data-")}
            data = {name[5:]: value for name, value in mark.attrib.items() if name.startswith("data-")}
            shape = mark.tag.removeprefix(SVG)
            if shape == "circle":
                x, y, r = facts["cx"], facts["cy"], facts["r"]
                sides = x - r, y - r, x + r, y + r
            elif shape == "rect":
                sides = facts["x"], facts["y"], facts["x"] + facts["width"], facts["y"] + facts["height"]
            else:
                sides = facts["x"], facts["y"], facts["x"], facts["y"]
            yield Shown(group.attrib["class"], shape, mark.text or "", data, *sides)


def check_frame(text: str) -> None:
    """The picture has a title, and fits its frame, and its frame fits a telephone."""
    root = ElementTree.fromstring(text)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert root.attrib["viewBox"] == f"0 0 {width:g} {height:g}"
    assert width <= 390
    assert "max-width:100%" in root.attrib["style"]
    assert root.attrib["role"] == "img"
    (title,) = root.findall(f"{SVG}title")
    assert root.attrib["aria-label"] == title.text
    styles = {group.attrib["class"]: group.attrib for group in root.findall(f"{SVG}g")}
    for mark in marks_of(text):
        left, right = mark.left, mark.right
        if mark.shape == "text":
            letters = len(mark.text) * float(styles[mark.kind]["font-size"]) * (
                0.53 if mark.kind == "caption" else 0.56)  # of DejaVu Sans, which is wide; digits are wider
            side = styles[mark.kind].get("text-anchor", "start")
            left, right = left - letters * {"start": 0, "middle": 0.5, "end": 1}[side], right + letters * {
                "start": 1, "middle": 0.5, "end": 0}[side]
        assert left >= 0
        assert right <= width
        assert 0 <= mark.top <= mark.bottom <= height
