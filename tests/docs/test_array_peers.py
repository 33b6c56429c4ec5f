"""The comparison with other packages in docs/reference/array_peers.md: each row of its tables gives equal results."""

import importlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import onnxpool

for module in ("bottleneck", "cv2", "dask.array", "numba", "pandas", "PIL", "scipy", "skimage", "xarray"):
    pytest.importorskip(module)

ROOT = Path(__file__).parents[2]
DTYPES = (ROOT / "docs" / "arrays.md").read_text().partition("## Dtypes\n")[2].partition("\n## ")[0]
TOOL = vars(importlib.import_module("benchmarks.compare.arrays"))
cv2, ndimage, pandas, skimage, xarray, bottleneck, Image = (
    importlib.import_module(name)
    for name in ("cv2", "scipy.ndimage", "pandas", "skimage", "xarray", "bottleneck", "PIL.Image"))
measure = skimage.measure

SHAPES = {"(H, W)": (24, 40), "(H, W, 3)": (24, 40, 3), "(D, H, W)": (8, 12, 16), "(T, Z, Y, X)": (16, 2, 8, 24),
          "(N,)": (1200,)}


def dtypes(kind: int) -> list[str]:
    """The dtypes that have maxima (1), or means (2), according to docs/arrays.md."""
    rows = [line.strip("|").split("|") for line in DTYPES.splitlines() if line.startswith("| ")]
    found = [name for row in rows if row[kind].strip().startswith("yes") for name in row[0].strip().split(", ")]
    return [name for name in found if np.dtype(getattr(ml_dtypes, name, name)).kind not in "mM"]


EXTREMA, MEANS = dtypes(1), dtypes(2)
FLOATS = [name for name in EXTREMA if "float" in name]
ROWS = {title: TOOL["rows"](title) for title in TOOL["SECTIONS"]}
# The tool times whole images; these sizes fit into small ones.
CASES = defaultdict(list)
for title, row in ((title, row) for title, rows in ROWS.items() for row in rows):
    sides = TOOL["SECTIONS"][title][1] if re.search(r"\bk\b", row.theirs) else (0,)
    for shape in row.shapes:
        CASES[f"{row.task}, {row.package.name} {shape}"] += [
            (row, shape, k, name) for k in sides for name in EXTREMA if row.accepts(name)]
LOSES_INFINITY = re.compile(r"cv2|s\.")  # at borders, or as if it were NaN
KEEPS_NAN = re.compile(r"block_reduce|skimage.transform|x\.|sliding|da\.|a\..*reduce")  # others lose or spread some


def image(shape: tuple[int, ...], dtype: np.dtype[Any], special: bool, infinite: bool, seed: int) -> Any:
    """Random elements of a dtype. If `special`, many of them are extremes, zeros of both signs and the like."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < (0.1, 0.5, 0.9)[seed % 3]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        odd = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1]
    else:
        x = (rng.standard_normal(shape) - (seed % 3 - 1)).astype(dtype)
        odd = [0.0, -0.0, *[np.inf, -np.inf] * infinite, float(ml_dtypes.finfo(dtype).smallest_subnormal)]
        odd += [float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).min)]
    if special:
        places = rng.random(shape) < 0.4
        x[places] = rng.choice(np.array(odd, object).astype(dtype), int(places.sum()))
    return x


def values(code: str, x: Any, k: int) -> Any:
    """The value of a row's code."""
    return np.asarray(eval(code, TOOL["names"](x, k)))


def same(y: Any, truth: Any) -> bool:
    """Whether all elements are equal, or NaN in both."""
    return bool(((y == truth) | ((y != y) & (truth != truth))).all())


@pytest.mark.parametrize("task", CASES)
def test_the_codes_give_equal_results(task: str) -> None:
    """Both codes of a row give equal results on arrays of whole blocks, also in float64 if the package supports it."""
    for row, shape, k, name in CASES[task]:
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        for seed in range(4):
            x = image(SHAPES[shape], dtype, bool(seed) and not row.averages, not LOSES_INFINITY.match(row.theirs), seed)
            x = TOOL["masked"](x) if row.skips else x
            y = values(row.ours, x, k)
            exact = dtype.itemsize < 8 and row.package.accepts("float64")  # some packages do not support 16-bit floats
            truth = values(row.theirs, x.astype(np.float64) if exact else x, k)
            assert y.shape == truth.shape
            if not row.averages:
                assert y.dtype == dtype
                assert same(y, truth.astype(dtype))
                known = not (row.skips and name == "bfloat16")  # nanmax does not support bfloat16
                assert not known or same(y, values(row.theirs, x, k))
                continue
            assert y.dtype == (np.float64 if dtype.kind in "biu" and "dtype" not in row.ours else dtype)
            off = np.abs(y.astype(np.float64) - truth)
            assert same(np.isnan(off), np.isnan(truth.astype(np.float64)))
            off = np.nan_to_num(off)
            if y.dtype.kind in "iu":
                assert off.max() <= (0.5 + 1e-9 * np.abs(truth).max() if exact else 1)
                assert (np.abs(y.astype(np.float64) - values(row.theirs, x, k)) <= x.ndim).all()  # SciPy truncates
            else:  # running sums err with the largest elements, and so do sums of integers as float64
                assert off.max() <= max(2 * float(ml_dtypes.finfo(y.dtype).eps), 2.0**-44) * np.nanmax(
                    np.abs(x.astype(float)))


@pytest.mark.parametrize("task", CASES)
def test_nan_reaches_each_window_that_has_it(task: str) -> None:
    """A NaN reaches each window that contains it. Packages that keep NaN agree."""
    for row, shape, k, name in CASES[task]:
        if name not in FLOATS or row.skips:
            continue
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        rng = np.random.default_rng(1)
        x = rng.standard_normal(SHAPES[shape]).astype(dtype)
        x[rng.random(x.shape) < 0.02] = np.nan
        maxima = re.sub("min_pool|average_pool", "max_pool", row.ours)
        holds = values(re.sub("count_include_pad=1, |, dtype=x.dtype", "", maxima), np.isnan(x).astype(np.float32), k)
        y = values(row.ours, x, k)
        assert (np.isnan(y.astype(np.float64)) == (holds > 0)).all(), (k, name)
        if KEEPS_NAN.match(row.theirs):
            truth = values(row.theirs, x.astype(np.float64), k)
            assert (np.isnan(truth) == (holds > 0)).all(), (k, name)


def test_the_tables_were_read() -> None:
    """The tables have the expected number of rows, and list the dtypes whose maxima and means are supported."""
    assert {title: len(rows) for title, rows in ROWS.items()} == {
        "Downsample": 3, "Block reduce": 10, "Coarsen": 9, "Dilation and erosion": 13, "Box filter": 6,
        "Moving maximum": 12, "Sliding windows": 3, "Whole axes": 4, "Masks": 7}
    assert {row.package.name for rows in ROWS.values() for row in rows} == {item.name for item in TOOL["PACKAGES"]}
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
    """Means whose sum overflows are finite, except in NumPy."""
    x = np.full(2, 3e38, np.float32)
    with np.errstate(over="ignore"):
        assert np.isinf(x.mean())
    assert onnxpool.average_pool(x, 2, axes=0) == x[0]


def test_incomplete_blocks() -> None:
    """`ceil_mode` uses only existing elements, like Pillow. Padding that counts has the effect of scikit-image's
    zeros."""
    x = -np.random.default_rng(0).random((7, 10)).astype(np.float32)
    filled = onnxpool.average_pool(x, 4, strides=4, pads=(0, 0, 1, 2), count_include_pad=1, axes=(0, 1))
    kept = onnxpool.average_pool(x, 4, strides=4, ceil_mode=1, axes=(0, 1))
    for zeros in (measure.block_reduce(x, (4, 4), np.mean), skimage.transform.downscale_local_mean(x, (4, 4))):
        assert np.allclose(filled, zeros)
        assert (kept <= zeros).all()
    assert (measure.block_reduce(x, (4, 4), np.max)[-1] == 0).all()
    assert onnxpool.max_pool(x, 4, strides=4, ceil_mode=1, axes=(0, 1)).max() < 0
    assert np.allclose(np.asarray(Image.fromarray(x).reduce(4)), kept)
    thirds = cv2.resize(np.arange(5, dtype=np.float32)[None], (2, 1), interpolation=cv2.INTER_AREA)  # blocks of 2.5
    assert np.allclose(thirds, [[(0 + 1 + 2 / 2) / 2.5, (2 / 2 + 3 + 4) / 2.5]])


def test_ties() -> None:
    """OpenCV and Pillow round the mean of a block up if it lies in the middle between two integers."""
    x = np.array([[1, 2, 3, 4], [3, 4, 5, 6]], np.uint8)
    assert onnxpool.average_pool(x, 2, strides=2, axes=(0, 1), dtype=x.dtype).tolist() == [[2, 4]]
    assert cv2.resize(x, (2, 1), interpolation=cv2.INTER_AREA).tolist() == [[3, 5]]
    assert np.asarray(Image.fromarray(x).reduce(2)).tolist() == [[3, 5]]


def test_infinities() -> None:
    """OpenCV pads with the least number rather than minus infinity, and pandas treats infinities as NaN."""
    x = np.full((5, 5), -np.inf, np.float32)
    assert (onnxpool.max_pool(x, 3, pads=1, axes=(0, 1)) == x).all()
    assert cv2.dilate(x, np.ones((3, 3), np.uint8))[0, 0] == np.finfo(np.float32).min
    assert np.isnan(pandas.Series(x[0]).rolling(3).max()).all()


def test_nan_left_out() -> None:
    """Moving windows with `min_count`, and xarray's coarsen, skip NaN."""
    x = np.array([1.0, np.nan, 2.0, 4.0])
    assert bottleneck.move_max(x, 2, min_count=1).tolist() == [1, 1, 2, 4]
    assert pandas.Series(x).rolling(2, min_periods=1).max().tolist() == [1, 1, 2, 4]
    assert xarray.DataArray(x, dims="t").coarsen(t=2).mean().values.tolist() == [1, 3]
    assert np.isnan(onnxpool.average_pool(x, 2, strides=2, axes=0)).tolist() == [True, False]
    assert onnxpool.average_pool(x, 2, strides=2, axes=0, skipna=True).tolist() == [1, 3]


def test_dtypes_of_other_packages() -> None:
    """Means of integers become float64 in scikit-image, and so do all results of bottleneck, and results of moving
    windows."""
    x = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert measure.block_reduce(x, (2, 2), np.mean).dtype == np.float64
    assert bottleneck.move_max(x, 2).dtype == np.float64
    assert pandas.Series(x[0]).rolling(2).max().dtype == np.float64
    assert pandas.Series(x[0].astype(np.float32)).rolling(2).max().dtype == np.float64
    assert ndimage.uniform_filter(np.array([0, 1, 1], np.uint8), 3)[1] == 0  # truncated


def test_borders_of_masks() -> None:
    """SciPy's erosion of masks treats positions beyond the border as False."""
    x = np.ones((4, 4), bool)
    assert onnxpool.min_pool(x, 3, pads=1, axes=(0, 1)).all()
    assert ndimage.binary_erosion(x, np.ones((3, 3))).sum() == 4


def test_running_sums() -> None:
    """Running sums spoil all windows after a huge element or a NaN, whereas onnxpool adds each window by itself."""
    x = np.ones(20)
    x[3] = 1e17
    assert (ndimage.uniform_filter(x, 3)[5:] == 0).all()
    assert (bottleneck.move_mean(x, 3)[6:] == 0).all()
    assert (onnxpool.average_pool(x, 3, axes=0, pads=1)[5:] == 1).all()
    x[3] = np.nan
    assert np.isnan(ndimage.uniform_filter(x, 3)[5:]).all()
    assert not np.isnan(onnxpool.average_pool(x, 3, axes=0, pads=1)[5:]).any()
    for k in TOOL["SECTIONS"]["Moving maximum"][1]:
        x = np.ones(20 * k)
        x[3 * k] = 1e17
        assert (np.flatnonzero(onnxpool.average_pool(x, k, axes=0) != 1) == np.arange(2 * k + 1, 3 * k + 1)).all()
