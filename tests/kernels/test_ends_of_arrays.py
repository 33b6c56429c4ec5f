"""Loops read no element before the first one or after the last one, however few elements fill a register."""

import pytest
from programs import program

PROGRAM = """
from guarded import Slot
import numpy as np, onnxpool
dtype, last = np.dtype({dtype!r}), {last}
slot = Slot(1)
for at_end in (True, False):
    for n in (*range(1, 40), 63, 64, 65, 100, 129):
        for kernel in sorted({{1, 2, 3, n // 2 or 1, n}}):
            for stride in (1, 2, 3):
                if kernel <= n:
                    for lanes in (1, 3):
                        shape = (1, n, lanes) if last else (1, lanes, n)
                        x = slot.hold(shape, dtype, at_end, fill=1)
                        way = dict(strides=[stride], channels_last=last)
                        y, indices = onnxpool.max_pool(x, [kernel], return_indices=True, **way)
                        assert (y == x.flat[0]).all() and indices.min() >= 0 and indices.max() < x.size
                        assert (onnxpool.max_pool(x, [kernel], **way) == x.flat[0]).all()
                        if dtype.kind == "f":
                            onnxpool.average_pool(x, [kernel], **way), onnxpool.lp_pool(x, [kernel], **way)
print("inside")
"""


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8"])
def test_rows_between_inaccessible_pages(dtype, last):
    """Rows of every length can lie next to an inaccessible page, in windows with and without indices."""
    assert program(PROGRAM.format(dtype=dtype, last=last)) == "inside"
