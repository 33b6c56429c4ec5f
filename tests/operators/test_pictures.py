"""Pictures of plans: SVG and matplotlib show what the oracle computes, and never too much."""

import re
import sys
from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple
from xml.etree import ElementTree

import hypothesis.strategies as st
import numpy as np
import pytest
from drawn import SVG, Shown, check_frame, marks_of
from hypothesis import given, settings
from onnxpool_conformance import oracle

import onnxpool
from onnxpool import pictures

PLANS: dict[str, Any] = {
    "padded": onnxpool.AveragePool(kernel_shape=(3, 2), strides=2, dilations=(2, 1), pads=(2, 0, 2, 1),
                                   ceil_mode=1).plan((1, 3, 11, 6), "float32"),
    "image": onnxpool.MaxPool(kernel_shape=2, strides=2, axes=(0, 1)).plan((6, 8, 3), "uint8"),
    "global": onnxpool.GlobalLpPool(axes=(1, 2), keepdims=False).plan((2, 5, 4), "float64"),
    "quantised": onnxpool.QLinearAveragePool(kernel_shape=3, channels_last=1).plan((1, 9, 4), "uint8"),
    "quantised whole": onnxpool.QLinearGlobalAveragePool().plan((1, 2, 3, 4), "uint8"),
    "part": onnxpool.AveragePool(kernel_shape=3, axes=0).plan((6,), "float32").tile(slice(2, 4))._plan,
    "volume": onnxpool.AveragePool(kernel_shape=2, strides=2, pads=1, count_include_pad=1, ceil_mode=1,
                                   axes=(0, 1, 2)).plan((4, 5, 60), "float32"),
    "large": onnxpool.MaxPool(kernel_shape=3, strides=2, pads=1).plan((1, 64, 112, 112), "float32"),
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
    "image": onnxpool.AveragePool(kernel_shape=10**6, strides=10**5).plan((1, 1, 10**7, 10**8), "float32"),
    "gaps": onnxpool.AveragePool(kernel_shape=2, dilations=10**6, pads=10**5).plan((1, 1, 10**7, 10**8), "float32"),
}
EVERY = {**PLANS, **OTHERS, **{f"huge {name}": plan for name, plan in HUGE.items()}}
TIMES = "\N{MULTIPLICATION SIGN}"


# The truth about an axis, from the oracle


class Truth(NamedTuple):
    """An axis as the oracle computes it."""

    size: int
    span: int
    stride: int
    dilation: int
    begin: int  # padding
    end: int
    windows: oracle.Axis
    counts: bool

    def start(self, index: int) -> int:
        """Where a window begins."""
        return index * self.stride - self.begin

    def kind(self, place: int) -> str:
        """What is at a position."""
        if 0 <= place < self.size:
            return "element" if any(place in taps for taps in self.windows.taps) else "unread"
        if place >= self.size + self.end:
            return "overhang"
        return "counted" if self.counts else "padding"

    @property
    def places(self) -> range:
        """All positions."""
        last = self.start(len(self.windows.taps) - 1) + self.span
        return range(-self.begin, max(self.size + self.end, last))

    def tapped(self, index: int) -> set[int]:
        """The taps of a window, in padding and beyond it too."""
        return set(range(self.start(index), self.start(index) + self.span, self.dilation))

    def number(self, index: int, divided: bool) -> int:
        """What the window contributes to the number that is shown for it."""
        if not divided:
            return len(self.windows.taps[index])
        return self.windows.counted[index] if self.counts else len(self.windows.taps[index])


def truth_of(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], auto_pad: str, ceil: int,
             counts: bool) -> Truth:
    """The windows of an axis."""
    span = (kernel - 1) * dilation + 1
    begin, end, _ = oracle.placement(size, span, stride, pads, auto_pad, ceil)
    return Truth(size, span, stride, dilation, begin, end,
                 oracle.axis_windows(size, kernel, stride, dilation, pads, auto_pad, ceil), counts)


@st.composite
def drawn_pools(draw: Any) -> tuple[str, dict[str, Any], tuple[int, ...]]:
    """An operator, its attributes, and spatial sizes. Not all of them fit together."""
    operator = draw(st.sampled_from(("AveragePool", "MaxPool", "LpPool")))
    rank = draw(st.sampled_from((1, 2, 2, 2, 3)))

    def each(low: int, high: int, count: int = rank) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)))

    mode = draw(st.sampled_from(("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")))
    attributes: dict[str, Any] = {
        "kernel_shape": each(1, draw(st.sampled_from((5, 5, 50)))), "strides": each(1, 4), "dilations": each(1, 3),
        "auto_pad": mode,
        "pads": each(0, draw(st.sampled_from((4, 4, 40))), 2 * rank) if mode == "NOTSET" else (0,) * (2 * rank),
        "ceil_mode": draw(st.integers(0, 1))}
    if operator == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    return operator, attributes, each(1, draw(st.sampled_from((7, 12, 40))))


def ends(places: list[int]) -> list[int]:
    """All places, or only places at the ends if there are many."""
    return places if len(places) <= 16 else places[:8] + places[-7:]


def check_cells(cells: Sequence[Shown], truths: Sequence[Truth]) -> None:
    """Each cell has its place and its kind. All cells are drawn, or the ends of each axis, or what surrounds
    elements."""
    order = ["element", "unread", "counted", "padding", "overhang"]
    found = {cell.numbers("cell"): cell for cell in cells}
    assert len(found) == len(cells)
    drawn = [sorted({place[k] for place in found}) for k in range(len(truths))]
    assert set(found) == set(product(*drawn))
    for truth, places in zip(truths, drawn, strict=True):
        everything = list(truth.places)
        if {*range(truth.size)}.isdisjoint(ends(everything)):  # only padding
            everything = [place for place in everything if -1 <= place <= truth.size]
        assert places == ends(everything)
    for place, cell in found.items():
        assert cell.kind == max((truth.kind(at) for truth, at in zip(truths, place, strict=True)), key=order.index)
    for k, side in ((-1, "left"), (0, "top"))[:len(truths)]:  # rows and columns are in order
        sides = {(place[k], getattr(cell, side)) for place, cell in found.items()}
        assert [one[1] for one in sorted(sides)] == sorted({one[1] for one in sides})
        assert len(sides) == len(drawn[k])


def check_image(marks: Sequence[Shown], truths: Sequence[Truth], divided: bool) -> None:
    """Check the picture of two axes."""
    cells = [mark for mark in marks if "cell" in mark.data]
    check_cells(cells, truths)
    boxes = [mark for mark in marks if "window" in mark.data]
    lasts = tuple(len(truth.windows.taps) - 1 for truth in truths)
    assert boxes[0].numbers("window") == (0, 0)
    assert boxes[-1].numbers("window") == lasts
    assert [box.kind for box in boxes] == ["first", "inner", "last"][:len(boxes)]
    dilated = any(truth.dilation > 1 and truth.span > 1 for truth in truths)
    for box in boxes:
        window = box.numbers("window")
        begins = tuple(truth.start(i) for truth, i in zip(truths, window, strict=True))
        assert box.numbers("begin") == begins
        assert box.numbers("end") == tuple(at + truth.span for at, truth in zip(begins, truths, strict=True))
        ranges = [range(at, at + truth.span) for at, truth in zip(begins, truths, strict=True)]
        for cell in cells:
            assert box.covers(cell) == all(at in each for at, each in zip(cell.numbers("cell"), ranges, strict=True))
        inside = [cell for cell in cells if box.covers(cell)]
        if inside:  # its sides are in the cells at its ends, or in the gap beside them
            gap = 0 if {begins, tuple(each[-1] for each in ranges)} <= {cell.numbers("cell") for cell in cells} else 10
            assert min(cell.left for cell in inside) - gap <= box.left
            assert min(cell.top for cell in inside) - gap <= box.top
            assert box.right <= max(cell.right for cell in inside) + gap
            assert box.bottom <= max(cell.bottom for cell in inside) + gap
        dots = [mark for mark in marks if mark.kind == f"{box.kind}-tap"]
        tapped = [truth.tapped(i) for truth, i in zip(truths, window, strict=True)]
        drawn = {cell.numbers("cell") for cell in cells}
        assert {dot.numbers("tap") for dot in dots} == (set(product(*tapped)) & drawn if dilated else set())
        for dot in dots:
            assert next(cell for cell in cells if cell.numbers("cell") == dot.numbers("tap")).covers(dot)
    results = {mark.numbers("result"): int(mark.text) for mark in marks if "result" in mark.data}
    shown = [sorted({place[k] for place in results}) for k in (0, 1)]
    assert set(results) == set(product(*shown))
    for (i, j), number in results.items():
        assert number == truths[0].number(i, divided) * truths[1].number(j, divided)
    for k, truth in enumerate(truths):
        everything = list(range(lasts[k] + 1))
        count = len(shown[k])
        assert shown[k] in (everything, everything[:(count + 1) // 2] + everything[-(count // 2):])
        assert everything == shown[k] or count == 9
        factors = {mark.numbers("factor")[0]: int(mark.text) for mark in marks
                   if "factor" in mark.data and mark.data["axis"] == str(k)}
        assert factors == {i: truth.number(i, divided) for i in shown[k]}
        ends = {int(mark.text) for mark in marks if ("row", "column")[k] in mark.data}
        assert ends == {0, truth.size - 1}.intersection(cell.numbers("cell")[k] for cell in cells)
        for box in (mark for mark in marks if "of" in mark.data):
            inside = [cell for cell in marks if "result" in cell.data and cell.numbers("result") == box.numbers("of")]
            assert [box.left < cell.left < box.right and box.top < cell.top < box.bottom for cell in inside] == [True]
    assert [mark.numbers("of") for mark in marks if "of" in mark.data] == [box.numbers("window") for box in boxes]


def check_strips(marks: Sequence[Shown], truths: Sequence[Truth], divided: bool) -> None:
    """Check the picture of one axis, or of more than two axes."""
    for number, truth in enumerate(truths, 2):
        own = [mark for mark in marks if mark.data.get("axis") == str(number)]
        cells = [mark for mark in own if "cell" in mark.data]
        check_cells(cells, [truth])
        drawn = {cell.numbers("cell")[0]: cell for cell in cells}
        boxes = [mark for mark in own if "begin" in mark.data]
        windows = [box.numbers("window")[0] for box in boxes]
        count = len(truth.windows.taps)
        places = sorted(drawn)
        after = next((k for k in range(1, len(places)) if places[k] > places[k - 1] + 1), len(places))  # the gap
        head, tail = ([i for i in range(count) if any(0 <= at - truth.start(i) < truth.span for at in part)]
                      for part in (places[:after], places[after:] or places))
        assert windows == sorted({*head[:4], *tail[-4:]})
        steps = [-1, *windows, count]
        skipped = [after - before - 1 for before, after in pairwise(steps) if after > before + 1]
        notes = [re.fullmatch(r"… (\d+) more windows?", mark.text) for mark in marks if mark.kind == "factor"]
        assert len(truths) > 1 or [int(note[1]) for note in notes if note] == skipped
        for box in boxes:
            index = box.numbers("window")[0]
            start = truth.start(index)
            assert (box.numbers("begin"), box.numbers("end")) == ((start,), (start + truth.span,))
            for place, cell in drawn.items():
                middle = (cell.left + cell.right) / 2
                assert (box.left < middle < box.right) == (start <= place < start + truth.span)
            taps = {mark.numbers("tap")[0]: mark for mark in own
                    if "tap" in mark.data and mark.numbers("window")[0] == index}
            assert set(taps) == truth.tapped(index) & set(drawn)
            for place, tap in taps.items():
                assert tap.kind == ("tap" if place in truth.windows.taps[index] else "outside")
                assert drawn[place].left < (tap.left + tap.right) / 2 < drawn[place].right
                assert box.covers(tap)
        divisors = {mark.numbers("divisor")[0]: mark.text for mark in own if "divisor" in mark.data}
        assert divisors == ({i: f"÷ {truth.number(i, True)}" for i in windows} if divided else {})
    products = re.findall(rf"([\d {TIMES}]+) = (\d+)", " ".join(mark.text for mark in marks if mark.kind == "caption"))
    expected = [[truth.number(i, True) for truth in truths] for i in (0, -1)] if divided and len(truths) > 1 else []
    assert [(list(map(int, factors.split(f" {TIMES} "))), int(value)) for factors, value in products] == [
        (factors, prod(factors)) for factors in expected]


def check_legend(marks: Sequence[Shown], divided: bool) -> None:
    """The legend explains what is drawn, and nothing else."""
    names = {"element": "element of X", "unread": "element in no window", "counted": "padding, counts as 0",
             "padding": "padding, not counted" if divided else "padding",
             "overhang": "overhang of ceil_mode, not counted" if divided else "overhang of ceil_mode"}
    kinds = {mark.kind for mark in marks if "cell" in mark.data}
    captions = {mark.text for mark in marks if mark.kind == "caption"}
    assert {kind for kind, name in names.items() if name in captions} == kinds
    for mark in marks:
        if mark.kind in pictures.BOXES and "window" in mark.data:
            assert f"window [{mark.data['window'].replace(',', ', ')}]" in captions
    assert ("tap outside X" in captions) == any(mark.kind == "outside" for mark in marks)


@settings(deadline=None, max_examples=150)
@given(drawn_pools())
def test_a_picture_shows_what_the_oracle_computes(pool: tuple[str, dict[str, Any], tuple[int, ...]]) -> None:
    """Every cell, box, tap and number, read back from the SVG, is what the oracle computes."""
    operator, attributes, sizes = pool
    rank = len(sizes)
    pairs = zip(attributes["pads"][:rank], attributes["pads"][rank:], strict=True)
    divided, counts = operator == "AveragePool", bool(attributes.get("count_include_pad"))
    try:
        truths = [truth_of(*row, attributes["auto_pad"], attributes["ceil_mode"], counts) for row in zip(
            sizes, attributes["kernel_shape"], attributes["strides"], attributes["dilations"], pairs, strict=True)]
    except oracle.GeometryError:
        return
    plan = getattr(onnxpool, operator)(**attributes).plan((1, 1, *sizes), "float32")
    text = plan.explain().svg()
    marks = list(marks_of(text))
    (check_image if rank == 2 else check_strips)(marks, truths, divided)
    check_legend(marks, divided)
    check_frame(text)
    for number, truth in enumerate(truths, 2):
        note = re.search(rf"Axis {number}: (\d+) of (\d+) positions are not drawn",
                         " ".join(mark.text for mark in marks if mark.kind == "caption"))
        drawn = {mark.numbers("cell")[number - 2 if rank == 2 else 0] for mark in marks if "cell" in mark.data and (
            rank == 2 or mark.data["axis"] == str(number))}
        total = len(truth.places)
        assert [int(part) for part in note.groups()] == [total - len(drawn), total] if note else len(drawn) == total


@pytest.mark.parametrize("name", EVERY)
def test_notebooks_show_the_picture(name: str) -> None:
    """Plans and explanations of every kind have a small picture, in its frame."""
    plan = EVERY[name]
    text = plan.explain().svg()
    assert plan._repr_html_() == plan.explain()._repr_html_() == text
    check_frame(text)
    assert 2 <= len(list(marks_of(text))) < 1000
    words = " ".join(mark.text for mark in marks_of(text) if mark.kind == "heading")
    assert words == str(plan.explain()).splitlines()[0] == ElementTree.fromstring(text).findtext(f"{SVG}title")


def test_divisors_have_all_their_digits() -> None:
    """All digits of divisors are shown, even if divisors exceed a million."""
    assert "divided by 1234567\n" in onnxpool.GlobalAveragePool().plan((1, 1, 1234567), "float32").explain()


@pytest.mark.parametrize("name", PLANS)
def test_numbers_come_from_the_plan(name: str) -> None:
    """Numbers come from the plan, also for parts of plans, named axes, and global and quantised operators."""
    plan = PLANS[name]
    divided = name in ("padded", "quantised", "quantised whole", "part", "volume")
    assert ("divided by" in plan.explain()) == divided
    found = list(marks_of(plan.explain().svg()))
    if len(plan.axes) == 2:
        for mark in found:
            if "result" in mark.data:
                windows = [axis.window(i) for axis, i in zip(plan.axes, mark.numbers("result"), strict=True)]
                assert int(mark.text) == prod(one.divisor if divided else one.taps for one in windows)
        return
    places = plan._places()
    for mark in found:
        if "divisor" in mark.data:
            axis = plan.axes[places.index(int(mark.data["axis"]))]
            assert mark.text == f"÷ {axis.window(mark.numbers('divisor')[0]).divisor}"
    assert any("divisor" in mark.data for mark in found) == divided


def test_padding_that_counts_and_the_overhang_look_different() -> None:
    """The overhang, by which a mean does not divide, looks different from padding that counts."""
    plan = onnxpool.AveragePool(kernel_shape=3, strides=2, pads=1, ceil_mode=1, count_include_pad=1).plan(
        (1, 1, 6, 6), "float32")
    kinds = {mark.numbers("cell"): mark.kind for mark in marks_of(plan.explain().svg()) if "cell" in mark.data}
    assert (kinds[-1, 0], kinds[6, 0], kinds[7, 0], kinds[6, 7]) == ("counted", "counted", "overhang", "overhang")


@pytest.mark.parametrize("mode", [0, 1])
def test_elements_in_no_window_are_found(mode: int) -> None:
    """Elements in no window are those that a search for each finds, however strides and dilations share factors."""
    draw = np.random.default_rng(mode)
    unread = 0
    for _ in range(500):
        size, kernel, stride, dilation, head, tail = (int(draw.integers(low, high)) for low, high in (
            (1, 30), (1, 6), (1, 9), (1, 9), (0, 9), (0, 9)))
        try:
            taps = oracle.axis_windows(size, kernel, stride, dilation, (head, tail), "NOTSET", mode).taps
        except oracle.GeometryError:
            continue
        (axis,) = onnxpool.MaxPool(kernel_shape=kernel, strides=stride, dilations=dilation, pads=(head, tail),
                                   ceil_mode=mode, axes=0).plan((size,), "float32").axes
        read = {place for each in taps for place in each}
        assert [pictures.is_read(axis, place) for place in range(size)] == [place in read for place in range(size)]
        unread += size - len(read)
    assert unread > 500


def test_dark_pages_have_dark_pictures() -> None:
    """The style sheet replaces every colour of the light page, from the same table."""
    text = PLANS["padded"].explain().svg()
    (style,) = ElementTree.fromstring(text).findall(f"{SVG}style")
    assert style.text is not None
    assert style.text.startswith("@media (prefers-color-scheme:dark){")
    rules = dict(re.findall(r"\.onnxpool \.([\w-]+)\{([^}]*)\}", style.text))
    for group in ElementTree.fromstring(text).findall(f"{SVG}g"):
        dark = dict(part.split(":") for part in rules[group.attrib["class"]].split(";"))
        for name in ("fill", "stroke"):
            light = group.attrib.get(name, "none")
            assert (light, dark.get(name)) in {("none", None), *pictures.COLOURS.values()}


@pytest.mark.thread_unsafe(reason="changes the style of the process")
@pytest.mark.parametrize(("name", "style"), [
    ("padded", "default"), ("volume", "dark_background"), ("regions", "default"), ("huge dilation", "default")])
def test_matplotlib_draws_the_same(name: str, style: str) -> None:
    """matplotlib draws the picture on the given axes, or on new ones, in the colours of a light or dark page."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import colors, pyplot

    plan = EVERY[name]
    marks = list(marks_of(plan.explain().svg()))
    with pyplot.style.context(style):
        ax = pyplot.figure().add_subplot()
        assert plan.plot(ax) is ax
        other = plan.plot()
    assert other is not ax
    for one in (ax, other):
        assert [text.get_text() for text in one.texts] == [mark.text for mark in marks if mark.shape == "text"]
        boxes = [patch.get_path().get_extents(patch.get_patch_transform()) for patch in one.patches]
        assert [(box.x0, box.y0, box.x1, box.y1) for box in boxes] == [
            pytest.approx((mark.left, mark.top, mark.right, mark.bottom)) for mark in marks if mark.shape != "text"]
        paper = pictures.COLOURS["paper"][style != "default"]
        assert colors.to_hex(one.patches[0].get_facecolor()) == paper
    width, height = other.figure.get_size_inches()
    root = ElementTree.fromstring(plan.explain().svg())
    assert width / height == pytest.approx(float(root.attrib["width"]) / float(root.attrib["height"]))
    other.figure.canvas.draw()
    pyplot.close("all")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """If matplotlib is missing, the error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install onnxpool\[plot\]"):
        PLANS["image"].plot()
