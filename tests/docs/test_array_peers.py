"""The comparison with scikit-image, SciPy and NumPy in docs/arrays.md: each row of its table gives equal results."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import onnxpool

ndimage = pytest.importorskip("scipy.ndimage")
measure = pytest.importorskip("skimage.measure")

PAGE = (Path(__file__).parents[2] / "docs" / "arrays.md").read_text()


def section(title: str) -> str:
    """A section of the page."""
    return PAGE.partition(f"## {title}")[2].partition("\n## ")[0]


def dtypes(kind: int) -> list[str]:
    """The dtypes that have maxima (1), or means (2), according to the page."""
    rows = [line.strip("|").split("|") for line in section("Dtypes").splitlines() if line.startswith("| ")]
    found = [name for row in rows if row[kind].strip().startswith("yes") for name in row[0].strip().split(", ")]
    return [name for name in found if np.dtype(getattr(ml_dtypes, name, name)).kind not in "mM"]


ROWS = re.findall(r"^\| (.+?) \| `(.+?)` \| `(.+?)` \|$", section("Equivalent calls in other packages"), re.MULTILINE)
EXTREMA, MEANS = dtypes(1), dtypes(2)
FLOATS = [name for name in EXTREMA if "float" in name]


def claimed(theirs: str) -> list[str]:
    """The dtypes that a row is about."""
    if "ndimage" in theirs:  # it computes in float64
        return [name for name in EXTREMA if name not in ("int64", "uint64")] if "imum" in theirs else MEANS
    return EXTREMA if re.search("max|min", theirs) else MEANS


CASES = [(*row, dtype) for row in ROWS for dtype in claimed(row[1])]


def image(shape: tuple[int, ...], dtype: np.dtype[Any], special: bool, seed: int) -> Any:
    """Random elements of a dtype; if special, many of them are extremes, zeros of both signs and the like."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < (0.1, 0.5, 0.9)[seed % 3]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        odd = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1]
    else:
        x = (rng.standard_normal(shape) - (seed % 3 - 1)).astype(dtype)
        odd = [0.0, -0.0, np.inf, -np.inf, float(ml_dtypes.finfo(dtype).smallest_subnormal)]
        odd += [float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).min)]
    if special:
        places = rng.random(shape) < 0.4
        x[places] = rng.choice(np.array(odd, object).astype(dtype), int(places.sum()))
    return x


def values(code: str, x: Any) -> Any:
    """The value of the code of a row."""
    h, w = x.shape[:2]
    skimage = SimpleNamespace(measure=measure)
    return eval(code, {"np": np, "x": x, "h": h, "w": w, "skimage": skimage, "block_reduce": measure.block_reduce,
                       "ndimage": ndimage, "sliding_window_view": sliding_window_view, **vars(onnxpool)})


@pytest.mark.parametrize(("task", "theirs", "ours", "name"), CASES, ids=[f"{row[0]} {row[3]}" for row in CASES])
def test_the_codes_give_equal_results(task: str, theirs: str, ours: str, name: str) -> None:
    """Both codes of a row, on images of whole blocks; the other package's in float64 as well, which is exact."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    mean = "mean" in theirs or "uniform" in theirs
    for seed in range(12):
        x = image((24, 36, 3) if "(H, W, 3)" in task else (24, 36), dtype, bool(seed) and not mean, seed)
        y = values(ours, x)
        assert y.dtype == dtype
        wide = x if dtype.itemsize == 8 else x.astype(np.float64)  # some packages know no 16-bit floats
        truth = values(theirs, wide)
        assert y.shape == truth.shape
        if mean:
            close = max(2 * float(ml_dtypes.finfo(dtype).eps), 2.0**-46)  # sums of `uniform_filter` run along the image
            assert np.allclose(y.astype(np.float64), truth, rtol=close, atol=close)
            continue
        assert (y == truth.astype(dtype)).all()
        if not ("ndimage" in theirs and name in ("float16", "bfloat16")):
            assert (y == values(theirs, x)).all()


@pytest.mark.parametrize(("theirs", "ours", "name"), [
    (theirs, ours, name) for _, theirs, ours, name in CASES if name in FLOATS])
def test_nan_reaches_each_window_that_has_it(theirs: str, ours: str, name: str) -> None:
    """NumPy's codes agree; for SciPy's, which lose NaN, the positions of NaN are computed instead."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    rng = np.random.default_rng(1)
    x = rng.standard_normal((24, 36, 3) if "(4, 4, 1)" in theirs else (24, 36)).astype(dtype)
    x[rng.random(x.shape) < 0.02] = np.nan
    holds = values(ours.replace("min_pool", "max_pool").replace("average_pool", "max_pool").replace(
        "count_include_pad=1, ", ""), np.isnan(x).astype(np.float32)) > 0
    y = values(ours, x)
    assert (np.isnan(y.astype(np.float64)) == holds).all()
    if "ndimage" not in theirs:
        truth = values(theirs, x.astype(np.float64))
        assert (np.isnan(truth) == holds).all()


def test_the_tables_were_read() -> None:
    """The page has this many rows, and lists the dtypes whose maxima and means are supported."""
    assert len(ROWS) == 12
    integers = ["bool", *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))]
    assert FLOATS == MEANS == ["float16", "bfloat16", "float32", "float64"]
    assert [*FLOATS, *integers] == EXTREMA
    x = np.ones((8, 8))
    for name in EXTREMA:
        given = x.astype(getattr(ml_dtypes, name, name))
        assert onnxpool.max_pool(given, 1, axes=0).dtype == given.dtype
        assert onnxpool.average_pool(given, 1, axes=0).dtype == (given.dtype if name in FLOATS else np.float64)
        if name in FLOATS:
            assert onnxpool.lp_pool(given, 1, axes=0).dtype == given.dtype
        else:
            with pytest.raises(onnxpool.PoolTypeError):
                onnxpool.lp_pool(given, 1, axes=0)


def test_means_whose_sum_overflows() -> None:
    """They are finite, except in NumPy."""
    x = np.full(2, 3e38, np.float32)
    with np.errstate(over="ignore"):
        assert np.isinf(x.mean())
    assert onnxpool.average_pool(x, 2, axes=0) == x[0]


def test_blocks_with_a_rest() -> None:
    """`ceil_mode` uses only existing elements; padding that counts equals the zeros of `block_reduce`."""
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
    """An element that `uniform_filter` loses is missing from all later windows."""
    x = np.ones(20)
    x[3] = 1e17
    assert (ndimage.uniform_filter(x, 3)[5:] == 0).all()
    assert (onnxpool.average_pool(x, 3, axes=0, pads=1)[5:] == 1).all()
