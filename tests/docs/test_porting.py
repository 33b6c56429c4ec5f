"""The porting tables in docs/reference/porting.md: both columns of each row return the same."""

import importlib
import os
import re
from typing import Any

import numpy as np
import pytest
from support import ROOT

import onnxpool

PAGE = (ROOT / "docs" / "reference" / "porting.md").read_text(encoding="utf-8")
TABLES = {title: re.findall(r"^\| `(.*)` \| `(.*)` \|$", body, re.MULTILINE)
          for title, body in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)}
ROWS = [(title, theirs, ours) for title, rows in TABLES.items() for theirs, ours in rows]
PACKAGES = {"torch": "torch", "Keras": "keras", "flax": "flax.linen", "scikit-image": "skimage", "SciPy": "scipy",
            "OpenCV": "cv2"}


def arrays() -> dict[str, Any]:
    """The arrays of the page, with numbers of both signs, and sizes that 2 and 3 divide."""
    rng = np.random.default_rng(0)
    shapes = {"x": (2, 3, 9, 8), "photos": (2, 9, 8, 3), "image": (12, 12)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def names_of(title: str, given: dict[str, Any]) -> dict[str, Any]:
    """The names that a package's codes mention."""
    if title == "Keras":
        os.environ.setdefault("KERAS_BACKEND", "jax")
    package = pytest.importorskip(PACKAGES[title])
    if title == "torch":
        return {"F": package.nn.functional, "t": package.from_numpy(given["x"])}
    if title in ("Keras", "flax"):
        return {"L" if title == "Keras" else "nn": getattr(package, "layers", package), "k": given["photos"]}
    if title == "scikit-image":
        measure, transform, morphology = (importlib.import_module(f"skimage.{name}")
                                          for name in ("measure", "transform", "morphology"))
        return {"block_reduce": measure.block_reduce, "downscale_local_mean": transform.downscale_local_mean,
                "dilation": morphology.dilation, "erosion": morphology.erosion}
    return {"ndimage": importlib.import_module("scipy.ndimage")} if title == "SciPy" else {"cv2": package}


def test_each_package_has_rows() -> None:
    """The tables have rows for each package."""
    assert list(TABLES) == list(PACKAGES)
    assert min(map(len, TABLES.values())) >= 6


@pytest.mark.parametrize("ours", [row[2] for row in ROWS])
def test_calls_of_onnxpool_run(ours: str) -> None:
    """The calls in right columns run, whether or not the other package is installed."""
    assert eval(ours, {"np": np, **{name: getattr(onnxpool, name) for name in onnxpool.__all__}, **arrays()}).size


@pytest.mark.parametrize(("title", "theirs", "ours"), ROWS)
def test_both_columns_return_the_same(title: str, theirs: str, ours: str) -> None:
    """Maxima and Indices are equal, and means are close."""
    given = arrays()
    known = {"np": np, **given, **names_of(title, given)}
    expected = np.asarray(eval(theirs, known))
    result = eval(ours, known | {name: getattr(onnxpool, name) for name in onnxpool.__all__})
    assert result.shape == expected.shape
    if "average" in ours or "lp_" in ours:
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(result, expected)
