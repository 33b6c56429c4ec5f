"""Import pure Python modules from the source tree, without building compiled modules."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parents[1] / "src" / "onnxpool"


def module(name: str) -> ModuleType:
    """A module of onnxpool. The package's `__init__`, which needs compiled modules, is left out."""
    if "onnxpool" not in sys.modules:
        package = sys.modules["onnxpool"] = ModuleType("onnxpool")
        package.__path__ = [str(PACKAGE)]
    return importlib.import_module(f"onnxpool.{name}")
