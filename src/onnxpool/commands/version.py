"""``onnxpool --version``: the version and, as JSON, a description of the installation for bug reports."""

import argparse
import os
import platform
import re
import sys
from importlib import metadata
from typing import Any

from .. import __version__
from ..about import config
from . import OK
from .text import json_text, print_lines

DISTRIBUTION = "onnxpool"
VARIABLES = ("ONNXPOOL_", "OMP_", "GOMP_", "KMP_")  # prefixes of variables that the library and OpenMP read


def installed(package: str) -> str | None:
    """The version of a package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def related() -> list[str]:
    """The packages that onnxpool and its extras depend on."""
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # a copy without metadata, as in frozen applications
        return ["numpy"]
    return sorted({re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in required})


def report() -> dict[str, Any]:
    """The installation, the interpreter and the system."""
    return {
        **config(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": {package: installed(package) for package in related()},
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)},
    }


def run(args: argparse.Namespace) -> int:
    """The option ``--version``."""
    print_lines(json_text(report()) if args.json else f"onnxpool {__version__}")
    return OK
