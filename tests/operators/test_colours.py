"""The colours of pictures: people with any kind of colour vision tell them apart, and text is easy to read."""

from itertools import combinations

import numpy as np
import pytest

from onnxpool.pictures import BOXES, CELLS, COLOURS, STYLES

# How a linear RGB colour looks without one of the three kinds of cones: Machado, Oliveira and Fernandes,
# "A physiologically-based model for simulation of color vision deficiency", 2009, severity 1.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
}
# The XYZ colours of linear sRGB, and white.
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041]])
WHITE = XYZ.sum(axis=1)
NOTICEABLE = 8.0  # distance in CIELAB; about 2.3 is just noticeable side by side
DISTINCT = 18.0  # for lines, which are thin


def linear(colour: str) -> np.ndarray:
    """A colour such as #ffffff as linear RGB."""
    parts = np.array([int(colour[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour: str, vision: str) -> np.ndarray:
    """A colour as it is seen, in CIELAB."""
    x, y, z = np.cbrt(np.maximum(XYZ @ np.clip(VISIONS[vision] @ linear(colour), 0, 1) / WHITE, 1e-9))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """The ratio of two colours' luminances, as the guidelines for accessible pages define it."""
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [0, 1])
@pytest.mark.parametrize("vision", VISIONS)
def test_colours_are_told_apart(vision: str, dark: int) -> None:
    """Cells differ from each other, and so do the outlines of windows."""
    def closest(names: list[str]) -> float:
        return min(float(np.linalg.norm(lab(COLOURS[one][dark], vision) - lab(COLOURS[other][dark], vision)))
                   for one, other in combinations(names, 2))

    assert closest(["paper", *(fill for kind in CELLS if (fill := STYLES[kind].fill))]) > NOTICEABLE
    assert closest([STYLES[kind].stroke for kind in BOXES]) > DISTINCT


@pytest.mark.parametrize("dark", [0, 1])
def test_text_and_outlines_stand_out(dark: int) -> None:
    """Text has a contrast of at least 4.5. Outlines of windows, on every cell, and edges of cells have at least 3."""
    fills = {"paper", *(fill for kind in CELLS if (fill := STYLES[kind].fill))}
    for fill in fills:
        assert contrast(COLOURS["ink"][dark], COLOURS[fill][dark]) >= 4.5
        for kind in BOXES:
            assert contrast(COLOURS[STYLES[kind].stroke][dark], COLOURS[fill][dark]) >= 3, (kind, fill)
    assert contrast(COLOURS["line"][dark], COLOURS["paper"][dark]) >= 3


def test_cells_differ_without_colours() -> None:
    """Dashes and signs tell cells apart for readers who see no colours."""
    from onnxpool.pictures import SIGNS

    looks = {(STYLES[kind].dash, SIGNS.get(kind), bool(STYLES[kind].fill), kind == "unread") for kind in CELLS}
    assert len(looks) == len(CELLS)
    assert contrast(*(COLOURS[STYLES[kind].fill][0] for kind in ("element", "unread"))) > 1.2


def test_every_colour_is_used() -> None:
    """Every colour of the table has a style that uses it, and styles use no other colours."""
    named = {name for style in STYLES.values() for name in (style.fill, style.stroke) if name}
    assert named == set(COLOURS)
