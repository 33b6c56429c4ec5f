"""Pictures of regions and of unpooled elements: what they show is what the oracle computes from the inputs."""

import re
from collections.abc import Iterator
from itertools import product
from math import ceil, floor
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
from calls import REGIONS, UNPOOL, Call, SeededChoices
from calls_family import draw_call
from drawn import SVG, Shown, check_frame, marks_of
from onnxpool_conformance import oracle_regions as regions
from onnxpool_conformance.oracle import GeometryError
from onnxpool_conformance.oracle_unpool import expect_unpool
from truths import truths

import onnxpool
from onnxpool import PoolError
from onnxpool.execution import Plan
from onnxpool.explain import Explanation

SEEDS = range(260)
CELL = 20  # pixels
EXACT = 2**20  # below this, coordinates have digits for parts of a cell
CAPTIONS = {"unread": ("element in no bin", "element beside no sample", "position in no window",
                       "0, as no element goes there"),
            "padding": ("outside X", "padding of the pool"), "overhang": ("0, as no index addresses it",)}


def plan_of(call: Call) -> Plan:
    """The plan of a random call."""
    attributes = {**call.attributes, **({"channels_last": True} if call.channels_last else {})}
    operator = getattr(onnxpool, call.operator)(**attributes, opset=call.opset)
    plan: Plan = operator.plan(call.x.shape, call.x.dtype.newbyteorder("="))
    return plan


def explained(operator: str) -> Iterator[tuple[Call, Explanation]]:
    """Random calls that the oracle accepts, with their explanations. Calls that the oracle refuses have none."""
    accepted = 0
    for seed in SEEDS:
        call = draw_call(SeededChoices(seed), (operator,))
        further = call.further[:1] if call.further[-1] is None else call.further
        try:
            truths(call)
        except GeometryError:
            with pytest.raises(PoolError):
                plan_of(call).explain(*further)
            continue
        accepted += 1
        yield call, plan_of(call).explain(*further)
    assert accepted > 100


class Along(NamedTuple):
    """The bins of a region along an axis: the lines of their samples, or their elements."""

    size: int
    bins: list[Any]

    @property
    def read(self) -> set[int]:
        """The elements that a bin reads."""
        return {place for one in self.bins for part in one if part is not None
                for place in ((part,) if isinstance(part, int) else (part.low, part.high))}


def divided(call: Call) -> list[tuple[Along, Along]]:
    """The bins of each region, from the oracle."""
    sizes = call.x.shape[1:3] if call.channels_last else call.x.shape[2:]
    given = call.attributes
    real = regions.coordinate_type(call.x.dtype)
    scale = real(given.get("spatial_scale", 1.0))
    rois = call.further[0].astype(real)
    if call.operator == "MaxRoiPool":
        return [tuple(Along(size, regions.bins(begin, end, count, size, real)) for begin, end, count, size in zip(
            *np.reshape([regions.round_away(float(place)) for place in corners * scale], (2, 2))[:, ::-1].tolist(),
            given["pooled_shape"], sizes, strict=True)) for corners in rois[:, 1:]]
    newer = call.opset is None or call.opset >= 16
    half = newer and given.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    pooled = given.get("output_height", 1), given.get("output_width", 1)
    found = []
    for corners in rois:
        left, top, right, bottom = corners * scale - real(0.5 if half else 0)
        found.append(tuple(Along(size, regions.samples(
            regions.grid(begin, end, count, given.get("sampling_ratio", 0), half, real), count, size, real))
            for begin, end, count, size in zip((top, left), (bottom, right), pooled, sizes, strict=True)))
    return found


def check_facts(call: Call, facts: dict[str, Any], pair: tuple[Along, Along]) -> None:
    """Check the data about a region."""
    for along, axis in zip(pair, facts["axes"], strict=True):
        assert axis["size"] == along.size
        assert len(axis["bins"]) == len(along.bins)
        for mine, theirs in zip(axis["bins"], along.bins, strict=True):
            if call.operator == "MaxRoiPool":
                assert range(mine["begin"], mine["end"]) == theirs
                continue
            assert len(mine["samples"]) == len(theirs)
            for sample, line in zip(mine["samples"], theirs, strict=True):
                assert sample["elements"] == ([] if line is None else [line.low, line.high])
                assert sample["weights"] == pytest.approx([] if line is None else [line.weight_low, line.weight_high])
                assert regions.line(sample["place"], along.size) == line or line is not None


def places_of(cells: list[Shown]) -> list[dict[int, float]]:
    """Where the rows and columns of cells begin."""
    return [{cell.numbers("cell")[k]: getattr(cell, side) for cell in cells} for k, side in enumerate(("top", "left"))]


def check_cells(marks: list[Shown], pair: tuple[Along, Along]) -> list[Shown]:
    """Each cell has its kind."""
    cells = [mark for mark in marks if "cell" in mark.data]
    for cell in cells:
        where = list(zip(cell.numbers("cell"), pair, strict=True))
        expected = ("padding" if any(not 0 <= place < along.size for place, along in where) else
                    "element" if all(place in along.read for place, along in where) else "unread")
        assert cell.kind == expected
    return cells


def check_boxes(call: Call, marks: list[Shown], facts: dict[str, Any], cells: list[Shown]) -> int:
    """Each box that is drawn matches its bin. Returns how many sides were compared."""
    sides = places_of(cells)
    middle = 0.5 if call.operator == "RoiAlign" else 0.0
    compared = 0
    for box in (mark for mark in marks if "bin" in mark.data):
        index = box.numbers("bin")
        given = [[float(number) for number in box.data[name].split(",")] for name in ("begin", "end")]
        for k, (low, high) in enumerate((("top", "bottom"), ("left", "right"))):
            one = facts["axes"][k]["bins"][index[k]]
            assert [given[0][k], given[1][k]] == [one["begin"], one["end"]]
            for place, side, way in zip(sorted((one["begin"], one["end"])), (low, high), (1, -1), strict=True):
                at = place + middle
                if floor(at) in sides[k] and abs(at) < EXACT:
                    exact = sides[k][floor(at)] + (at - floor(at)) * CELL
                    assert -1 <= way * (getattr(box, side) - exact) <= 8 or box.right - box.left == 1 \
                        or box.bottom - box.top == 1
                    compared += 1
    return compared


def check_samples(marks: list[Shown], pair: tuple[Along, Along], facts: dict[str, Any], cells: list[Shown]) -> int:
    """Each dot is a sample, at its place. Dots outside X look different. Returns the number of dots."""
    sides = places_of(cells)
    axes = [axis["bins"] for axis in facts["axes"]]
    dots: dict[tuple[int, ...], list[Shown]] = {}
    for mark in marks:
        if "sample" in mark.data:
            dots.setdefault(mark.numbers("in"), []).append(mark)
    for index, drawn in dots.items():
        expected = []
        for (row, down), (column, across) in product(*(zip(
                axes[k][index[k]]["samples"], pair[k].bins[index[k]], strict=True) for k in (0, 1))):
            spots = row["place"] + 0.5, column["place"] + 0.5
            if all(floor(spot) in side for spot, side in zip(spots, sides, strict=True)):
                y, x = (side[floor(spot)] + (spot - floor(spot)) * CELL
                        for spot, side in zip(spots, sides, strict=True))
                expected.append((down is not None and across is not None, pytest.approx(x, rel=1e-4),
                                 pytest.approx(y, rel=1e-4)))
        assert [(dot.kind == "tap", (dot.left + dot.right) / 2, (dot.top + dot.bottom) / 2)
                for dot in drawn] == expected
    total = np.prod([sum(map(len, along.bins)) for along in pair])
    drawn = sum(map(len, dots.values()))
    captions = " ".join(mark.text for mark in marks if mark.kind == "caption")
    note = re.search(r"(\d+) of (\d+) samples are not drawn", captions)
    assert [int(part) for part in note.groups()] == [total - drawn, total] if note else drawn == total
    return drawn


def check_table(marks: list[Shown], pair: tuple[Along, Along]) -> None:
    """The table has the numbers of elements or samples of each bin."""
    results = {mark.numbers("result"): int(mark.text) for mark in marks if "result" in mark.data}
    shown = [sorted({place[k] for place in results}) for k in (0, 1)]
    assert set(results) == set(product(*shown))
    for (i, j), number in results.items():
        assert number == len(pair[0].bins[i]) * len(pair[1].bins[j])
    for k, along in enumerate(pair):
        assert shown[k] == list(range(len(along.bins))) or len(shown[k]) == 9
        factors = {mark.numbers("factor")[0]: int(mark.text) for mark in marks
                   if "factor" in mark.data and mark.data["axis"] == str(k)}
        assert factors == {i: len(along.bins[i]) for i in shown[k]}


def check_left_out(marks: list[Shown], facts: dict[str, Any], cells: list[Shown]) -> None:
    """A caption says how many positions of an axis and its region are not drawn, if there are any."""
    captions = " ".join(mark.text for mark in marks if mark.kind == "caption")
    for axis, places in zip(facts["axes"], places_of(cells), strict=True):
        middle = 0.5 if "samples" in axis["bins"][0] else 0
        edges = [one[side] + middle for one in axis["bins"] for side in ("begin", "end")]
        total = max(axis["size"], ceil(max(edges))) - min(0, floor(min(edges)))
        note = re.search(rf"Axis {axis['axis']}: (\d+) of (\d+) positions are not drawn", captions)
        assert [int(part) for part in note.groups()] == [total - len(places), total] if note else len(places) == total


def check_legend(marks: list[Shown]) -> None:
    """The legend names what is drawn, and nothing else."""
    kinds = {mark.kind for mark in marks if "cell" in mark.data}
    captions = {mark.text for mark in marks if mark.kind == "caption"}
    for kind, names in CAPTIONS.items():
        assert (kind in kinds) == any(name in captions for name in names)
    for fact in ("bin", "window"):
        for mark in marks:
            if fact in mark.data and mark.kind in ("first", "inner", "last"):
                assert f"{fact} [{mark.data[fact].replace(',', ', ')}]" in captions
    for mark in marks:
        if "of" in mark.data:
            assert any(text.endswith(f" [{mark.data['of'].replace(',', ', ')}]") for text in captions)


@pytest.mark.parametrize("operator", REGIONS)
def test_regions_are_divided_as_the_oracle_does(operator: str) -> None:
    """Every cell, bin, sample and number, read back from the data and from the SVG, is the oracle's."""
    sides = samples = 0
    for call, explanation in explained(operator):
        facts = explanation.to_dict()["regions"]
        truth = divided(call)
        assert len(facts) == len(truth) == len(call.further[0])
        for region, pair in zip(facts, truth, strict=True):
            check_facts(call, region, pair)
        text = explanation.svg()
        check_frame(text)
        if not truth:
            assert "No region is given" in text
            continue
        marks = list(marks_of(text))
        assert len(marks) < 1000
        cells = check_cells(marks, truth[0])
        check_left_out(marks, facts[0], cells)
        sides += check_boxes(call, marks, facts[0], cells)
        if operator == "RoiAlign":
            samples += check_samples(marks, truth[0], facts[0], cells)
        check_table(marks, truth[0])
        check_legend(marks)
    assert sides > 500
    assert samples > 1000 or operator == "MaxRoiPool"


def test_elements_go_where_the_oracle_puts_them() -> None:
    """The number in each position names the element that the oracle puts there, and windows are as in the
    pool."""
    found = 0
    for call, explanation in explained(UNPOOL):
        indices = np.moveaxis(call.further[0], -1, 1) if call.channels_last else call.further[0]
        numbers = np.arange(1, indices.size + 1, dtype=np.float64).reshape(indices.shape)
        shape = None
        if len(call.further) == 2 and call.further[1] is not None:
            given = call.further[1].tolist()
            shape = np.array([given[0], given[-1], *given[1:-1]] if call.channels_last else given)
        truth = expect_unpool((numbers, indices, shape), call.attributes)
        places = np.array(explanation.to_dict()["places"]).reshape(-1, indices.ndim)
        if indices.size:
            plain = expect_unpool((numbers, indices), call.attributes).shape
            assert np.array_equal(np.ravel_multi_index(tuple(places.T), plain), indices.ravel())
        text = explanation.svg()
        check_frame(text)
        marks = list(marks_of(text))
        assert len(marks) < 1000
        inner = expect_unpool((numbers, indices), call.attributes).shape[2:]
        check_extents(marks, inner, truth.shape[2:], 1 if call.channels_last else 2)
        if indices.ndim > 4 or not indices.size:
            continue
        captions = {mark.text for mark in marks if mark.kind == "caption"}
        planes = indices.shape[0] * indices.shape[1]
        assert (f"Only the first of {planes} planes is drawn." in captions) == (planes > 1)
        plane = np.reshape(truth.cells, truth.shape)[0, 0]
        for mark in marks:
            if "from" in mark.data:
                assert plane[mark.numbers("place")] == int(mark.text) + 1
                found += 1
        cells = [mark for mark in marks if "cell" in mark.data]
        shown = {mark.numbers("place") for mark in marks if "from" in mark.data}
        for cell in cells:
            place = cell.numbers("cell")
            kinds = ["overhang" if small <= at < size else "inside" if 0 <= at < small else "padding"
                     for at, small, size in zip(place, inner, plane.shape, strict=True)]
            if set(kinds) == {"inside"}:
                assert cell.kind == ("element" if plane[place] else "unread")
                assert (place in shown) == (0 < plane[place] <= 100)
            else:
                assert cell.kind == ("overhang" if "overhang" in kinds else "padding")
        check_windows(call, marks, indices.ndim - 2)
    assert found > 300


def check_extents(marks: list[Shown], inner: tuple[int, ...], sizes: tuple[int, ...], first: int) -> None:
    """Strips and images reach to the end of the result, and strips tell apart what no index addresses."""
    cells = [mark for mark in marks if "cell" in mark.data]
    for k, (small, size) in enumerate(zip(inner, sizes, strict=True)):
        if len(sizes) == 2:
            assert {0, size - 1} <= {cell.numbers("cell")[k] for cell in cells}
            continue
        kinds = {cell.numbers("cell")[0]: cell.kind for cell in cells if cell.data["axis"] == str(first + k)}
        assert {0, size - 1} <= kinds.keys()
        assert all((kind == "overhang") == (small <= place < size) for place, kind in kinds.items())


def check_windows(call: Call, marks: list[Shown], rank: int) -> None:
    """Check the outlines of windows, and the numbers of the elements to which windows belong."""
    kernel, strides, pads = (
        np.broadcast_to(call.attributes.get(name, default), rank * sides)
        for name, default, sides in (("kernel_shape", 1, 1), ("strides", 1, 1), ("pads", 0, 2)))
    sizes = call.x.shape[1:-1] if call.channels_last else call.x.shape[2:]
    for box in (mark for mark in marks if "begin" in mark.data):
        window = np.array(box.numbers("window"))
        assert box.numbers("begin") == tuple(window * strides - pads[:rank])
        assert box.numbers("end") == tuple(window * strides - pads[:rank] + kernel)
        if rank == 2:
            ranges = [range(*pair) for pair in zip(box.numbers("begin"), box.numbers("end"), strict=True)]
            for cell in (mark for mark in marks if "cell" in mark.data):
                inside = [at in each for at, each in zip(cell.numbers("cell"), ranges, strict=True)]
                assert box.covers(cell) == all(inside)
    for mark in marks:
        if "number" in mark.data:
            assert int(mark.text) == np.ravel_multi_index(mark.numbers("number"), sizes)


@pytest.mark.parametrize(("operator", "attributes"), [
    ("MaxRoiPool", {"pooled_shape": (2, 3)}), ("MaxRoiPool", {"pooled_shape": (3, 2), "spatial_scale": 0.0625}),
    ("RoiAlign", {"output_height": 2, "output_width": 3}),
    ("RoiAlign", {"sampling_ratio": 2, "spatial_scale": 0.25, "coordinate_transformation_mode": "output_half_pixel"})])
def test_without_regions_the_first_image_is_shown(operator: str, attributes: dict[str, Any]) -> None:
    """Without regions, the picture shows the bins of the first image as a region."""
    plan = getattr(onnxpool, operator)(**attributes).plan((2, 3, 6, 9), "float32")
    scale = attributes.get("spatial_scale", 1)
    last = operator == "MaxRoiPool"
    corners = np.array([[0, 0, (9 - last) / scale, (6 - last) / scale]], np.float32)
    further = (np.insert(corners, 0, 0, axis=1),) if last else (corners, np.zeros(1, np.int64))
    whole, same = list(marks_of(plan.explain().svg())), list(marks_of(plan.explain(*further).svg()))
    assert "regions" not in plan.explain().to_dict()
    assert "No region is given: this one is the first image." in {mark.text for mark in whole}
    assert [mark for mark in whole if mark.data] == [mark for mark in same if mark.data]


def test_without_indices_positions_have_theirs() -> None:
    """Without indices, the numbers are the flat indices of the first plane."""
    text = onnxpool.MaxUnpool(kernel_shape=2, strides=(2, 3)).plan((1, 2, 3, 2), "float32").explain().svg()
    numbers = {mark.numbers("place"): int(mark.text) for mark in marks_of(text) if "index" in mark.data}
    assert numbers == {(i, j): i * 5 + j for i in range(6) for j in range(5)}
    assert {mark.kind for mark in marks_of(text) if mark.data.get("cell") == "0,2"} == {"unread"}


def test_positions_that_are_not_drawn_need_no_memory() -> None:
    """The picture looks up the positions that it shows, and not all 2^38 positions."""
    plan = onnxpool.MaxUnpool(kernel_shape=1, strides=2**19).plan((1, 1, 2, 2), "float32")
    size = 2**19 + 1
    text = plan.explain(np.array([[[[0, size * size - 1], [3, 3]]]])).svg()
    check_frame(text)
    numbers = {mark.numbers("place"): int(mark.text) for mark in marks_of(text) if "from" in mark.data}
    assert numbers == {(0, 0): 0, (size - 1, size - 1): 1, (0, 3): 3}


def test_positions_around_a_region_are_said_to_be_left_out() -> None:
    """A region in the middle of a large map is drawn with its surroundings, and a caption says what is left out."""
    plan = onnxpool.MaxRoiPool(pooled_shape=(2, 2)).plan((1, 1, 56, 9), "float32")
    text = plan.explain(np.array([[0, 1, 20, 4, 25]], np.float32)).svg()
    rows = {mark.numbers("cell")[0] for mark in marks_of(text) if "cell" in mark.data}
    assert rows == set(range(19, 27))
    captions = " ".join(mark.text for mark in marks_of(text) if mark.kind == "caption")
    assert "Axis 2: 48 of 56 positions are not drawn." in captions
    assert "Axis 3: " not in captions


@pytest.mark.parametrize("plan", [
    onnxpool.RoiAlign(output_height=3).plan((1, 1, 10**6, 10**7), "float32"),
    onnxpool.RoiAlign(spatial_scale=1e-40).plan((1, 1, 9, 9), "float32"),
    onnxpool.MaxRoiPool(pooled_shape=7).plan((0, 1, 9, 9), "float32")], ids=["samples", "corners", "images"])
def test_an_image_that_is_no_region_is_not_drawn(plan: Plan) -> None:
    """An image that is not a region is not drawn, and the picture has only text."""
    text = plan.explain().svg()
    check_frame(text)
    assert not any(mark.data for mark in marks_of(text))
    assert len(ElementTree.fromstring(text).findall(f"{SVG}title")) == 1


def test_long_lists_are_cut() -> None:
    """The text has the first regions and bins, and says how many are left out."""
    plan = onnxpool.MaxRoiPool(pooled_shape=(1, 20)).plan((1, 1, 30, 30), "float32")
    text = plan.explain(np.tile(np.float32([0, 0, 0, 29, 29]), (10, 1)))
    assert text.splitlines()[2:5] == ["region 0: image 0, corners 0, 0, 29, 29", "  axis 2: elements 0-29",
                                      "  axis 3: elements 0-1, 1-2, 3-4, ..., 25-26, 27-28, 28-29"]
    assert text.splitlines()[-1] == "2 more regions"
