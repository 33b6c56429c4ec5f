"""Calls with millions of windows in the padding run few lines of Python and take little memory, like any other."""

import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
import xarray

import onnxpool
import onnxpool.xarray

PAD = 1 << 18
FEW_LINES = 50_000
FEW_BYTES = 4 << 20  # maximum memory besides the results
FLOATS = np.arange(4, dtype=np.float32)
INTEGERS = np.arange(4, dtype=np.int32)
DATES = np.arange(4).astype("M8[s]")
HUGE = 1 << 45

CALLS: dict[str, Any] = {
    "maximum": lambda: onnxpool.max_pool(FLOATS, 2, pads=PAD, axes=0, skipna=True),
    "minimum": lambda: onnxpool.min_pool(FLOATS, 2, pads=PAD, axes=0, skipna=True, dilations=7),
    "indices": lambda: onnxpool.max_pool(FLOATS, 2, pads=PAD, axes=0, skipna=True, return_indices=True),
    "dates": lambda: onnxpool.max_pool(DATES, 2, pads=PAD, axes=0, skipna=True),
    "norm": lambda: onnxpool.lp_pool(FLOATS, 2, pads=PAD, axes=0, skipna=True),
    "mean": lambda: onnxpool.average_pool(FLOATS, 2, pads=PAD, axes=0, skipna=True, count_include_pad=1),
    "float16": lambda: onnxpool.average_pool(FLOATS.astype(np.float16), 2, pads=PAD, axes=0, dtype=np.float64),
    "integers": lambda: onnxpool.average_pool(INTEGERS, 2, pads=PAD, axes=0),
    "rounded integers": lambda: onnxpool.average_pool(INTEGERS, 2, pads=PAD, axes=0, dtype=np.int32),
    "counted padding": lambda: onnxpool.average_pool(INTEGERS, 3, pads=PAD, axes=0, count_include_pad=1,
                                                     dtype=np.float32),
    "divisors beyond doubles": lambda: onnxpool.average_pool(
        INTEGERS, HUGE, pads=HUGE, strides=HUGE // PAD, axes=0, count_include_pad=1),
    "several axes": lambda: onnxpool.average_pool(
        INTEGERS.reshape(2, 2), (HUGE, HUGE), pads=HUGE, strides=HUGE >> 8, axes=(0, 1), count_include_pad=1),
    "coordinates": lambda: onnxpool.xarray.max_pool(
        xarray.DataArray(FLOATS, {"x": [1, 2, 3, 4], "time": ("x", DATES)}, dims="x"), {"x": 2}, pads={"x": PAD}),
    "names": lambda: onnxpool.xarray.max_pool(xarray.DataArray(FLOATS, {"x": list("abcd")}, dims="x"), {"x": 2},
                                              pads={"x": PAD}, coord_func="max"),
}


def lines_of(call: Any) -> int:
    """The lines of Python that a call runs."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.thread_unsafe
@pytest.mark.parametrize("name", CALLS)
def test_long_padding(name):
    call = CALLS[name]
    call()
    assert lines_of(call) < FEW_LINES
    tracemalloc.start()
    try:
        results = call()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if "coord" not in name and name != "names":
        assert peak - held < FEW_BYTES, results
