"""Real models: three of the rapidocr package, which need not be installed.

Only the files of rapidocr are used, so the package is installed without its dependencies.
"""

import importlib.metadata
from pathlib import Path

import onnx
import pytest

PACKAGE = "rapidocr"
INSTALL = "pip install --no-deps --group models"

# Model file: a realistic input shape, and the number of pooling nodes.
MODELS: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "ch_PP-OCRv4_det_infer.onnx": ((2, 3, 96, 160), {"GlobalAveragePool": 10}),
    "ch_PP-OCRv4_rec_infer.onnx": ((2, 3, 48, 200), {"AveragePool": 1, "GlobalAveragePool": 2}),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": ((3, 3, 48, 192), {"GlobalAveragePool": 10, "MaxPool": 1}),
}


def path(name: str) -> Path:
    """The file of a model in the installed package, which is found without importing it."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"the real models are not installed: {INSTALL}")
    return next(Path(str(file.locate())) for file in files if file.name == name)


def load(name: str) -> onnx.ModelProto:
    """A model of the installed package."""
    return onnx.load(path(name))
