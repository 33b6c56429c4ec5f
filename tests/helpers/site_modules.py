"""The modules of the site's extensions, which import the tools."""

import importlib
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def module(name: str) -> Any:
    """A module of the site's extensions."""
    folders = [str(ROOT / "docs" / "_site"), str(ROOT / "tools")]
    sys.path[:0] = folders
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[:len(folders)]
