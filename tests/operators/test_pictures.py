"""Pictures of plans: SVG and matplotlib show the taps of the windows that `explain` lists, but never too many."""

import sys
from typing import Any
from xml.etree import ElementTree

import pytest

import onnxpool

PLANS: dict[str, Any] = {
    "padded": onnxpool.AveragePool(kernel_shape=(3, 2), strides=2, dilations=(2, 1), pads=(2, 0, 2, 1),
                                   ceil_mode=1).plan((1, 3, 11, 6), "float32"),
    "image": onnxpool.MaxPool(kernel_shape=2, strides=2, axes=(0, 1)).plan((6, 8, 3), "uint8"),
    "global": onnxpool.GlobalLpPool(axes=(1, 2), keepdims=False).plan((2, 5, 4), "float64"),
    "quantised": onnxpool.QLinearAveragePool(kernel_shape=3, channels_last=1).plan((1, 9, 4), "uint8"),
    "part": onnxpool.AveragePool(kernel_shape=3, axes=0).plan((6,), "float32").tile(slice(2, 4))._plan,
}
OTHERS: dict[str, Any] = {
    "regions": onnxpool.RoiAlign().plan((1, 3, 8, 8), "float32"),
    "unpooled": onnxpool.MaxUnpool(kernel_shape=2).plan((1, 3, 8), "float32"),
    "no spatial axis": onnxpool.GlobalMaxPool().plan((2, 3), "float32"),
    "empty": onnxpool.MaxPool(kernel_shape=2).plan((0, 3, 8), "float32"),
}
HUGE: dict[str, Any] = {
    "size": onnxpool.MaxPool(kernel_shape=3).plan((1, 1, 10**9), "float32"),
    "pads": onnxpool.MaxPool(kernel_shape=2**26, pads=2**25).plan((1, 1, 8), "float32"),
    "kernel": onnxpool.MaxPool(kernel_shape=10**6).plan((1, 1, 10**7), "float32"),
    "stride": onnxpool.MaxPool(kernel_shape=3, strides=10**6).plan((1, 1, 10**7), "float32"),
    "dilation": onnxpool.MaxPool(kernel_shape=3, dilations=10**6).plan((1, 1, 10**7), "float32"),
}
SVG = "{http://www.w3.org/2000/svg}"


def elements(text: str, kind: str) -> list[ElementTree.Element]:
    """The plans of an image."""
    return ElementTree.fromstring(text).findall(f"{SVG}{kind}")


@pytest.mark.parametrize("name", PLANS)
def test_a_picture_has_the_elements_and_the_taps(name: str) -> None:
    """A square for each element, a disc for each tap inside, a ring for each other tap; numbers and divisors."""
    plan = PLANS[name]
    text = plan.explain().svg()
    squares, discs = elements(text, "rect"), elements(text, "circle")
    filled = [[one for one in some if one.get("fill") != "none"] for some in (squares, discs)]
    assert len(filled[0]) == sum(axis.size for axis in plan.axes)
    assert len(filled[1]) == sum(axis.window(i).taps for axis in plan.axes for i in range(axis.out))
    assert len(discs) == sum(axis.kernel * axis.out for axis in plan.axes)
    words = [one.text for one in elements(text, "text")]
    assert words[0] == str(plan.explain()).splitlines()[0]
    divisors = [f"/ {axis.window(i).divisor}" for axis in plan.axes for i in range(axis.out)]
    means = name in ("padded", "quantised", "part")
    assert [word for word in words if word and word.startswith("/")] == (divisors if means else [])
    numbers = [i for axis in plan.axes for i in range(axis.out)]
    assert [int(word) for word in words if word and word.isdigit()] == numbers


@pytest.mark.parametrize("name", [*PLANS, *OTHERS, *HUGE])
def test_notebooks_show_the_picture(name: str) -> None:
    """Plans and explanations of every kind have a small picture."""
    plan = {**PLANS, **OTHERS, **HUGE}[name]
    text = plan.explain().svg()
    assert plan._repr_html_() == plan.explain()._repr_html_() == text
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert 1 <= len(root) < 1000
    assert float(root.get("width", "0")) < 1600
    for one in root:
        x = float(one.get("x") or one.get("cx") or "nan")
        assert 0 <= x < float(root.get("width", "0"))


def test_windows_that_are_not_drawn_are_counted() -> None:
    """The last line says how many there are."""
    assert "992 more" in [one.text for one in elements(
        onnxpool.MaxPool(kernel_shape=1, axes=0).plan((1000,), "float32").explain().svg(), "text")]


@pytest.mark.parametrize("name", [*PLANS, *OTHERS, *HUGE])
def test_matplotlib_draws_the_same(name: str) -> None:
    """The picture is drawn on the given axes, or on new ones."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    plan = {**PLANS, **OTHERS, **HUGE}[name]
    ax = pyplot.figure().add_subplot()
    assert plan.plot(ax) is ax
    text = plan.explain().svg()
    assert len(ax.patches) == len(elements(text, "rect")) + len(elements(text, "circle"))
    assert [one.get_text() for one in ax.texts] == [one.text for one in elements(text, "text")]
    other = plan.plot()
    assert other is not ax
    assert len(other.patches) == len(ax.patches)
    other.figure.canvas.draw()
    pyplot.close("all")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install onnxpool\[plot\]"):
        PLANS["image"].plot()
