"""Following the advice of an error makes the call work: no advice is a dead end."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from refusals import BAD, Bad, board, layouts_of, operators_of, spoilt
from support import to_last

import onnxpool
from onnxpool import PoolError, PoolTypeError

pytestmark = pytest.mark.smoke

Given = dict[str, Any]
RANK = 2  # rank of the board
SIDES = {"pads": 2}
SMALL = {"pads": 0}  # the smallest values; 1 for others


def changed(given: Given, name: str, value: Any, place: str | None = None) -> Given:
    """The attributes with another value, at one position if a position is given; None removes the attribute."""
    if place is not None:
        values = list(given[name]) if name in given else least(name)
        values[int(place)] = value
        value = values
    return {key: item for key, item in {**given, name: value}.items() if item is not None}


def least(name: str) -> list[int]:
    """The smallest value for each axis or side."""
    return [SMALL.get(name, 1)] * RANK * SIDES.get(name, 1)


def other_names(given: Given, name: str, names: str) -> Iterator[Given]:
    for one in names.split(", "):
        yield changed(given, name, one)


# The end of a message, and the attributes that must then work.
WAYS: list[tuple[str, Callable[..., Iterator[Given]]]] = [
    (r": (\w+)(?:\[(\d+)\])? .*; pass an int of at least (-?\d+)$",
     lambda given, name, place, value: iter([changed(given, name, int(value), place)])),
    (r": p must be an integer.*; pass an int of at least 1, or opset=1, as p is a float in LpPool-1$",
     lambda given: iter([changed(given, "p", 1), changed(given, "opset", 1)])),
    (r": (\w+) .*; pass a float above 0, such as (.*)$",
     lambda given, name, value: iter([changed(given, name, float(value))])),
    (r": (\w+)(?:\[(\d+)\])? .*; pass a smaller int$",
     lambda given, name, place: iter([changed(given, name, 2, place)])),
    (r": (\w+) .*; pass (one int|two ints) for each spatial axis(, all beginnings first)?"
     r"(, or leave \w+ out)?$",
     lambda given, name, each, order, left: iter(
         [changed(given, name, least("pads" if each == "two ints" else "strides"))]
         + ([changed(given, name, None)] if left else []))),
    (r": (\w+)=.* (\d) spatial axes take \d; pass (\d) for each axis$",
     lambda given, name, rank, each: iter([changed(given, name, [SMALL.get(name, 1)] * int(rank) * int(each))])),
    (r": kernel_shape\[(\d)\]=\d+ with dilations\[\d\]=\d+ spans (\d+), but axis \d has (\d+) "
     r"\(\+(\d+)\+(\d+) pads\).*; (add pads|pass pads with auto_pad='NOTSET') or shrink kernel_shape$",
     lambda given, place, span, size, begin, end, way: iter([
         changed(given, "kernel_shape", 1, place),
         *([] if int(span) > 100 else [changed(
             {**given, "auto_pad": "NOTSET"} if "NOTSET" in way else given, "pads",
             int(end) + int(span) - int(size) - int(begin), str(RANK + int(place)))])])),
    (r"; lower (\w+) or (\w+)$",
     lambda given, *names: iter([changed(given, name, least(name)) for name in names])),
    (r"; lower pads or raise strides$",
     lambda given: iter([changed(given, "pads", least("pads")), changed(given, "strides", 2**62)])),
    (r": (\w+) must be one of (.*), got .*; the names are case-sensitive$", other_names),
    (r": (\w+) must be a str.*; pass one of (.*)$", other_names),
    (r": (\w+) must be 0 or 1.*; pass 0 or 1$",
     lambda given, name: iter([changed(given, name, 0), changed(given, name, 1)])),
    (r"; leave pads out or pass auto_pad='NOTSET'$",
     lambda given: iter([changed(given, "pads", None), changed(given, "auto_pad", "NOTSET")])),
    (r"; pass kernel_shape$", lambda given: iter([changed(given, "kernel_shape", [2, 2])])),
]


def advised(text: str, given: Given) -> list[Given]:
    """The attributes that a message leads to."""
    for pattern, follow in WAYS:
        found = re.search(pattern, text)
        if found:
            return list(follow(given, *found.groups()))
    raise AssertionError(f"no test knows how to follow {text!r}")


@pytest.mark.parametrize("case", BAD)
def test_the_way_out_of_a_bad_attribute_works(case: Bad) -> None:
    """Each way out that the message names works. If another position is wrong too, its own message follows."""
    for operator, last in [(name, last) for name in operators_of(case) for last in layouts_of(name)]:
        x = to_last(board(np.uint8 if operator in ("QLinearAveragePool", "NhwcMaxPool") else np.float32), last)
        open_ends = [{"kernel_shape": [2, 2], **case.attributes}]
        for _ in range(5):  # no more positions can be wrong
            following = []
            for given in open_ends:
                try:
                    spoilt(operator, x, last, given)()
                except (PoolError, PoolTypeError) as error:
                    found = advised(str(error), given)
                    assert found
                    following += found
            open_ends = following
        assert not open_ends, operator


X = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
ROI, PLACE = np.array([[0, 0, 3, 3]], np.float32), np.zeros(1, np.int64)


def far(row: Any) -> Any:
    return np.array([row], np.float32)


# A call that is refused, the end of its message, and calls that follow its advice.
CALLS: dict[str, tuple[Callable[[], Any], str, list[Callable[[], Any]]]] = {
    "axes_empty": (partial(onnxpool.max_pool, X, 2, axes=[]), "pass the number of each axis to pool",
                   [partial(onnxpool.max_pool, X, 2, axes=[2, 3])]),
    "axes_text": (partial(onnxpool.max_pool, X, 2, axes="hw"), "pass the number of each axis to pool",
                  [partial(onnxpool.max_pool, X, 2, axes=(2, 3))]),
    "axes_beyond": (partial(onnxpool.max_pool, X, 2, axes=4), "pass -4 to 3",
                    [partial(onnxpool.max_pool, X, 1, axes=axis) for axis in range(-4, 4)]),
    "pooled_shape_empty": (partial(onnxpool.max_roi_pool, X, far([0, 0, 0, 3, 3]), []),
                           "pass one int for each spatial axis",
                           [partial(onnxpool.max_roi_pool, X, far([0, 0, 0, 3, 3]), [2, 2])]),
    "kernel_of_opset_1": (partial(onnxpool.LpPool, kernel_shape=[], opset=1), "pass one int for each spatial axis",
                          [lambda: onnxpool.LpPool(kernel_shape=[2, 2], opset=1)(X)]),
    "pads_of_unpool": (partial(onnxpool.MaxUnpool, kernel_shape=[2, 2], pads=[]),
                       "pass two ints for each spatial axis, all beginnings first, or leave pads out",
                       [partial(onnxpool.MaxUnpool, kernel_shape=[2, 2], pads=[0] * 4),
                        partial(onnxpool.MaxUnpool, kernel_shape=[2, 2])]),
    "images": (partial(onnxpool.roi_align, X, ROI, PLACE + 1), "pass whole numbers in [0, 1)",
               [partial(onnxpool.roi_align, X, ROI, PLACE)]),
    "no_images": (partial(onnxpool.roi_align, X[:0], ROI, PLACE), "pass no regions",
                  [partial(onnxpool.roi_align, X[:0], ROI[:0], PLACE[:0])]),
    "samples_of_a_region": (partial(onnxpool.roi_align, X, ROI * 1e5, PLACE),
                            "pass a smaller region, or sampling_ratio=1",
                            [partial(onnxpool.roi_align, X, ROI, PLACE),
                             partial(onnxpool.roi_align, X, ROI * 1e5, PLACE, sampling_ratio=1)]),
    "samples_of_a_ratio": (partial(onnxpool.roi_align, X, ROI, PLACE, sampling_ratio=10**5), "lower sampling_ratio",
                           [partial(onnxpool.roi_align, X, ROI, PLACE, sampling_ratio=1)]),
    "samples_of_bins": (partial(onnxpool.roi_align, X, ROI, PLACE, sampling_ratio=1, output_height=2**40),
                        "lower output_height or output_width",
                        [partial(onnxpool.roi_align, X, ROI, PLACE, sampling_ratio=1, output_height=1)]),
    "region_beyond_floats": (partial(onnxpool.roi_align, X, far([-3e38, 0, 3e38, 3]), PLACE, sampling_ratio=2),
                             "clip it to the image or drop it",
                             [partial(onnxpool.roi_align, X, np.clip(far([-3e38, 0, 3e38, 3]), 0, 8), PLACE),
                              partial(onnxpool.roi_align, X, ROI[:0], PLACE[:0])]),
    "region_beyond_32_bits": (partial(onnxpool.max_roi_pool, X, far([0, -3e9, 0, 3e9, 3]), 2),
                              "clip it to the image or drop it",
                              [partial(onnxpool.max_roi_pool, X, np.clip(far([0, -3e9, 0, 3e9, 3]), 0, 8), 2),
                               partial(onnxpool.max_roi_pool, X, far([0] * 5)[:0], 2)]),
    "spatial_scale": (partial(onnxpool.max_roi_pool, X, far([0] * 5), 2, spatial_scale=1e39),
                      "pass a float above 0, such as 1.0",
                      [partial(onnxpool.max_roi_pool, X, far([0] * 5), 2, spatial_scale=1.0)]),
    "complex": (partial(onnxpool.max_pool, X * 1j, 2), "pass its real part, its imaginary part or its magnitude",
                [partial(onnxpool.max_pool, part(X * np.complex64(1j)), 2) for part in (np.real, np.imag, np.abs)]),
    "later_attribute": (partial(onnxpool.average_pool, X, 2, dilations=2, opset=11),
                        "leave it out or pass opset >= 19",
                        [partial(onnxpool.average_pool, X, 2, opset=11),
                         partial(onnxpool.average_pool, X, 2, dilations=2, opset=19)]),
}


@pytest.mark.parametrize(("call", "way", "followed"), CALLS.values(), ids=CALLS)
def test_the_way_out_works(call: Callable[[], Any], way: str, followed: list[Callable[[], Any]]) -> None:
    """The message ends with this advice, and following the advice yields a result."""
    with pytest.raises((PoolError, PoolTypeError)) as caught:
        call()
    assert str(caught.value).rpartition("; ")[2] == way
    for works in followed:
        works()
