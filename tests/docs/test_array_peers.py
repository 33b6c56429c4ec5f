"""What docs/arrays.md says of scikit-image, SciPy and NumPy: each row of its table gives equal results."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import onnxpool

ndimage = pytest.importorskip("scipy.ndimage")
measure = pytest.importorskip("skimage.measure")

PAGE = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text()
SECTION = PAGE.partition("## What other packages write")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (.+?) \| `(.+?)` \| `(.+?)` \|$", SECTION, re.MULTILINE)


@pytest.mark.parametrize(("task", "theirs", "ours"), ROWS, ids=[row[0] for row in ROWS])
def test_the_codes_give_equal_results(task: str, theirs: str, ours: str) -> None:
    """Both codes of a row, on an image whose sides are whole blocks."""
    x = np.random.default_rng(0).random((24, 36, 3) if "(H, W, 3)" in task else (24, 36)).astype(np.float32)
    h, w = x.shape[:2]
    names: dict[str, Any] = {"np": np, "x": x, "h": h, "w": w, "skimage": SimpleNamespace(measure=measure),
                             "block_reduce": measure.block_reduce, "ndimage": ndimage,
                             "sliding_window_view": sliding_window_view, **vars(onnxpool)}
    truth, y = eval(theirs, names), eval(ours, names)
    assert y.shape == truth.shape
    assert np.allclose(y, truth, rtol=2e-6, atol=0) if "mean" in theirs or "uniform" in theirs else (y == truth).all()


def test_the_table_was_read() -> None:
    """The page has as many rows."""
    assert len(ROWS) == 10


def test_blocks_with_a_rest() -> None:
    """`ceil_mode` takes what is there; padding that counts is the zeros of `block_reduce`."""
    x = -np.random.default_rng(0).random((7, 10)).astype(np.float32)
    zeros = measure.block_reduce(x, (4, 4), np.mean)
    filled = onnxpool.average_pool(x, 4, strides=4, pads=(0, 0, 1, 2), count_include_pad=1, axes=(0, 1))
    assert np.allclose(filled, zeros)
    assert (onnxpool.average_pool(x, 4, strides=4, ceil_mode=1, axes=(0, 1)) <= zeros).all()
    assert (measure.block_reduce(x, (4, 4), np.max)[-1] == 0).all()
    assert onnxpool.max_pool(x, 4, strides=4, ceil_mode=1, axes=(0, 1)).max() < 0


def test_dtypes_of_block_reduce() -> None:
    """Means of bytes become float64."""
    assert measure.block_reduce(np.ones((4, 4), np.uint8), (2, 2), np.mean).dtype == np.float64


def test_running_sums() -> None:
    """What `uniform_filter` lost is missing in all later windows."""
    x = np.ones(20)
    x[3] = 1e17
    assert (ndimage.uniform_filter(x, 3)[5:] == 0).all()
    assert (onnxpool.average_pool(x, 3, axes=0, pads=1)[5:] == 1).all()
