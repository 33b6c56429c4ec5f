"""The examples of docs/decisions.md hold, and each decision without an example is named by a test of operators."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import ROOT, TESTS

import onnxpool

SECTIONS = dict(re.findall(r"^## (D\d+)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "decisions.md").read_text(),
                           re.MULTILINE | re.DOTALL))
NUMBER = re.compile(r"NaN|-?inf\b|-?\d+(?:\.\d+)?")


def ramp(*sizes: int, dtype: str = "float64") -> Any:
    """1, 2, 3, ... as one image of one channel."""
    return np.arange(1, 1 + np.prod(sizes)).reshape(1, 1, *sizes).astype(dtype)


def row(*values: float, dtype: str = "float64") -> Any:
    """One spatial axis of these values."""
    return np.array([[values]], dtype)


def all_pools(x: Any, kernel: int, **attributes: Any) -> list[Any]:
    """The average, the maximum and the 2-norm."""
    return [pool(x, kernel, **attributes) for pool in (onnxpool.average_pool, onnxpool.max_pool, onnxpool.lp_pool)]


def quantised(x: Any, kernel: int, zero: int = 0, **attributes: Any) -> Any:
    """A quantised mean with scales of 1."""
    return onnxpool.qlinear_average_pool(x, 1.0, 0, 1.0, zero, kernel, **attributes)


def aligned(*roi: float, samples: int) -> Any:
    """One bin of a region of the square."""
    return onnxpool.roi_align(SQUARE.astype(np.float32), np.float32([roi]), np.array([0]), sampling_ratio=samples)


def zeros(dtype: str) -> Any:
    """The maximum of -0 and 0."""
    return onnxpool.max_pool(row(-0.0, 0.0, dtype=dtype), 2)


FIVE, SIX, SQUARE, HOLES = ramp(5), ramp(6), ramp(4, 4), {"strides": 2, "pads": (2, 3)}
CORNER = np.zeros((1, 1, 2, 2, 2))
CORNER[..., 0, 0, 1] = 1
BYTES = ramp(5, dtype="uint8")
FULL = np.full((1, 1, 2902, 2902), 255, np.uint8)

# Decision, words of its example, and the calls that return the numbers in these words, or are refused.
EXAMPLES: list[tuple[str, str, Callable[[], Any]]] = [
    ("D1", "average 2.5, maximum 4, norm 5.4772", lambda: all_pools(ramp(2, 2), 3, strides=3, pads=1, ceil_mode=1)),
    ("D2", "1.5556, 3.3333, 2, 6.3333, 11, 6, 4.5, 7.5, 4",
     lambda: onnxpool.average_pool(SQUARE, 3, strides=2, pads=1, ceil_mode=1, count_include_pad=1)),
    ("D2", "2.5, 5", lambda: onnxpool.average_pool(FIVE, 4, strides=4, ceil_mode=1, count_include_pad=1)),
    ("D3", "NaN, 1.5, 3.5, 5, NaN", lambda: onnxpool.average_pool(FIVE, 2, **HOLES)),
    ("D3", "0, 1.5, 3.5, 2.5, 0", lambda: onnxpool.average_pool(FIVE, 2, **HOLES, count_include_pad=1)),
    ("D4", "-inf, 2, 4, 5, -inf, with the indices -1, 1, 3, 4, -1",
     lambda: onnxpool.max_pool(FIVE, 2, **HOLES, return_indices=True)),
    ("D5", "0, 2.236, 5, 5, 0", lambda: onnxpool.lp_pool(FIVE, 2, **HOLES)),
    ("D6", "NaN", lambda: onnxpool.max_pool(row(1, np.nan, 2, 3), 4)),
    ("D7", "averages 2, 4, 5.5 and maxima 3, 5, 6",
     lambda: all_pools(SIX, 3, strides=2, auto_pad="VALID", ceil_mode=1)[:2]),
    *(("D8", "1, 4", lambda same=same: onnxpool.max_pool(SIX, 1, strides=3, auto_pad=same))
      for same in ("SAME_UPPER", "SAME_LOWER")),
    ("D9", "with VALID is refused", lambda: onnxpool.average_pool(FIVE, 3, strides=2, pads=1, auto_pad="VALID")),
    ("D10", "k6 s2 is refused", lambda: onnxpool.average_pool(FIVE, 6, strides=2)),
    ("D10", "average is 3, the maximum 5 and the norm 7.416", lambda: all_pools(FIVE, 6, strides=2, ceil_mode=1)),
    *(("D10", "5, k7 s2 and 2, k3 s1 are refused with `ceil_mode=1` too", call) for call in (
        lambda: onnxpool.average_pool(FIVE, 7, strides=2, ceil_mode=1),
        lambda: onnxpool.average_pool(ramp(2), 3, ceil_mode=1))),
    ("D13", "[[1, 2]]", lambda: onnxpool.global_lp_pool(np.array([[-1.0, 2.0]]))),
    *(("D15", text, lambda p=p: onnxpool.lp_pool(row(-1, 2, -3, 4), 4, p=p, opset=1))
      for text, p in (("gives 6.617861", 1.5), ("gives 4", np.inf))),
    *(("D18", text, lambda order=order: onnxpool.max_pool(CORNER, 2, storage_order=order, return_indices=True)[1])
      for text, order in (("index 4", 1), ("(1 with", 0))),
    ("D19", "2, 5", lambda: quantised(BYTES, 4, strides=4, ceil_mode=1, count_include_pad=1)),
    ("D20", ": 255", lambda: onnxpool.qlinear_global_average_pool(FULL, 1.0, 0, 1.0, 0)),
    ("D21", "7, 8, 10, 12, 7", lambda: quantised(BYTES, 2, 7, **HOLES)),
    ("D22", "is refused", lambda: onnxpool.average_pool(ramp(3, 3), 2, strides=2, ceil_mode=2)),
    *(("D23", f"{text} for {dtype}", lambda dtype=dtype: zeros(dtype))
      for text, dtype in (("-0", "float32"), ("0", "float16"))),
    *(("D23", "-0 and index 0", lambda dtype=dtype: onnxpool.max_pool(row(-0.0, 0.0, dtype=dtype), 2,
                                                                      return_indices=True))
      for dtype in ("float32", "float16")),
    ("D24", "-3e38, 0, 3e38, 1 with two samples is refused", lambda: aligned(-3e38, 0, 3e38, 1, samples=2)),
    ("D24", "-2e9, 0, 2e9, 3 is refused",
     lambda: onnxpool.max_roi_pool(SQUARE.astype(np.float32), np.float32([[0, -2e9, 0, 2e9, 3]]), 1)),
    ("D24", "gives 1", lambda: aligned(-1.5e38, -1.5e38, 1.5e38, 1.5e38, samples=1)),
]


@pytest.mark.parametrize(("decision", "words", "call"), EXAMPLES, ids=[f"{row[0]} {row[1]}" for row in EXAMPLES])
def test_an_example_holds(decision: str, words: str, call: Callable[[], Any]) -> None:
    """The page has these words, and the call returns their numbers, including the signs of zeros, or is refused."""
    example = re.sub(r"\s+", " ", SECTIONS[decision].partition("* Example:")[2]).replace("2-norm", "norm")
    assert words in example
    if "refused" in words:
        with pytest.raises(onnxpool.PoolError):
            call()
        return
    expected = [float(number) for number in NUMBER.findall(re.sub(r"float\d+", "", words))]
    result = call()
    parts = result if isinstance(result, (list, tuple)) else [result]
    got = np.concatenate([np.ravel(part).astype(float) for part in parts])
    np.testing.assert_allclose(got, expected, rtol=2e-4)
    assert np.signbit(got[got == 0]).tolist() == np.signbit([value for value in expected if value == 0]).tolist()


@pytest.mark.parametrize("decision", SECTIONS)
def test_a_decision_is_tested(decision: str) -> None:
    """Its example runs, or a test of operators names it."""
    named = "".join(path.read_text() for path in (TESTS / "operators").glob("test_*.py"))
    assert decision in [row[0] for row in EXAMPLES] or re.search(rf"\b{decision}\b", named)
