"""Examples in docs/reference/decisions.md hold, and a test of operators names each decision without an example.

Most examples have the numbers of conformance cases, with which tests/onnx/test_decision_files.py
compares the library.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnxpool_conformance.table import ramp, row, table
from support import ROOT, TESTS

import onnxpool

SECTIONS = dict(re.findall(r"^## (D\d+)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "reference" / "decisions.md").read_text(),
                           re.MULTILINE | re.DOTALL))
NUMBER = re.compile(r"NaN|-?inf\b|-?\d+(?:\.\d+)?")


def outputs(*names: str) -> list[Any]:
    """The expected outputs of cases."""
    return [y for name in names for y in table()[name].expected()]


def aligned(*roi: float, samples: int) -> Any:
    """One bin of a region of the square."""
    return onnxpool.roi_align(SQUARE, np.float32([roi]), np.array([0]), sampling_ratio=samples)


def zeros(dtype: str) -> Any:
    """The maximum of -0 and 0."""
    return onnxpool.max_pool(row(-0.0, 0.0).astype(dtype), 2)


FIVE, SQUARE = ramp(5), ramp(4, 4)

# Decision, words of its example, and the calls that return the numbers in these words, or are refused.
EXAMPLES: list[tuple[str, str, Callable[[], Any]]] = [
    ("D1", "average 2.5, maximum 4, norm 5.4772",
     lambda: outputs("d01_averagepool_2d", "d01_maxpool_2d", "d01_lppool_2d_opset_22")),
    ("D2", "1.5556, 3.3333, 2, 6.3333, 11, 6, 4.5, 7.5, 4",
     lambda: outputs("d02_averagepool_2d_pads_and_overhang_opset_22")),
    ("D2", "2.5, 5", lambda: outputs("d02_averagepool_1d_overhang_opset_22")),
    ("D3", "NaN, 1.5, 3.5, 5, NaN", lambda: outputs("d03_averagepool_1d")),
    ("D3", "0, 1.5, 3.5, 2.5, 0", lambda: outputs("d03_averagepool_1d_count_include_pad")),
    ("D4", "-inf, 2, 4, 5, -inf, with the indices -1, 1, 3, 4, -1", lambda: outputs("d04_maxpool_1d_indices")),
    ("D5", "0, 2.236, 5, 5, 0", lambda: outputs("d05_lppool_1d")),
    ("D6", "NaN", lambda: outputs("d06_maxpool_1d")),
    ("D7", "averages 2, 4, 5.5 and maxima 3, 5, 6", lambda: outputs("d07_averagepool_1d", "d07_maxpool_1d")),
    *(("D8", "1, 4", lambda pool=pool, end=end: outputs(f"d08_{pool}_1d_same_{end}"))
      for pool in ("averagepool", "maxpool", "lppool") for end in ("upper", "lower")),
    ("D9", "with VALID is refused", lambda: onnxpool.average_pool(FIVE, 3, strides=2, pads=1, auto_pad="VALID")),
    ("D10", "k6 s2 is refused", lambda: onnxpool.average_pool(FIVE, 6, strides=2)),
    ("D10", "average is 3, the maximum 5 and the norm 7.416",
     lambda: outputs("d10_averagepool_1d", "d10_maxpool_1d", "d10_lppool_1d")),
    *(("D10", "5, k7 s2 and 2, k3 s1 are refused with `ceil_mode=1` too", call) for call in (
        lambda: onnxpool.average_pool(FIVE, 7, strides=2, ceil_mode=1),
        lambda: onnxpool.average_pool(ramp(2), 3, ceil_mode=1))),
    ("D13", "[[1, 2]]", lambda: outputs("d13_globallppool")),
    ("D15", "gives 6.617861", lambda: outputs("d15_lppool_1d_fraction_opset_1")),
    ("D15", "gives 4", lambda: outputs("d15_lppool_1d_infinity_opset_1")),
    ("D18", "index 4", lambda: outputs("d18_maxpool_3d_storage_order_1")[1]),
    ("D18", "(1 with", lambda: outputs("d18_maxpool_3d_storage_order_0")[1]),
    ("D19", "2, 5", lambda: outputs("d19_qlinearaveragepool_1d")),
    ("D20", ": 255", lambda: outputs("d20_qlinearglobalaveragepool_2d")),
    ("D21", "7, 8, 10, 12, 7", lambda: outputs("d21_qlinearaveragepool_1d")),
    ("D22", "is refused", lambda: onnxpool.average_pool(ramp(3, 3), 2, strides=2, ceil_mode=2)),
    *(("D23", f"{text} for {dtype}", lambda dtype=dtype: zeros(dtype))
      for text, dtype in (("-0", "float32"), ("0", "float16"))),
    *(("D23", "-0 and index 0", lambda dtype=dtype: onnxpool.max_pool(row(-0.0, 0.0).astype(dtype), 2,
                                                                      return_indices=True))
      for dtype in ("float32", "float16")),
    ("D24", "-3e38, 0, 3e38, 1 with two samples is refused", lambda: aligned(-3e38, 0, 3e38, 1, samples=2)),
    ("D24", "-2e9, 0, 2e9, 3 is refused",
     lambda: onnxpool.max_roi_pool(SQUARE, np.float32([[0, -2e9, 0, 2e9, 3]]), 1)),
    ("D24", "gives 1", lambda: outputs("d24_roialign_avg")),
]


@pytest.mark.parametrize(("decision", "words", "call"), EXAMPLES, ids=[f"{row[0]} {row[1]}" for row in EXAMPLES])
def test_an_example_holds(decision: str, words: str, call: Callable[[], Any]) -> None:
    """The page has the example's words, and the call returns their numbers, including the signs of zeros, or is
    refused."""
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
    """Each decision has an example that runs, or a test of operators that names the decision."""
    named = "".join(path.read_text() for path in (TESTS / "operators").glob("test_*.py"))
    assert decision in [row[0] for row in EXAMPLES] or re.search(rf"\b{decision}\b", named)
