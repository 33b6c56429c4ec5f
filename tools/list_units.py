"""For the build: lists the units that are compiled, or writes the numbers of `limits.py` as C.

    python tools/list_units.py [limits]

A line has the step, reduction and dtype of a unit, and whether each instruction set has it or all have it in common.
"""

import importlib
import sys
import types
from pathlib import Path

# The package without its __init__, which needs the extensions that are about to be built.
package = types.ModuleType("onnxpool")
package.__path__ = [str(Path(__file__).parents[1] / "src" / "onnxpool")]
sys.modules["onnxpool"] = package

if sys.argv[1:] == ["limits"]:
    for name, value in vars(importlib.import_module("onnxpool.limits")).items():
        if name.isupper():
            print(f"#define ONNXPOOL_{name} {value}")
else:
    for *unit, rare in importlib.import_module("onnxpool.planning.steps").units():
        print(*unit, "common" if rare else "each")
