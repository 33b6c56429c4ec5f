"""For the build: lists the units that are compiled, or writes the numbers of `limits.py` as C.

    python tools/list_units.py [limits]

A line has the step, reduction and dtype of a unit, and whether each instruction set has it or all have it in common.
"""

import sys

from uncompiled import module

if sys.argv[1:] == ["limits"]:
    for name, value in vars(module("limits")).items():
        if name.isupper():
            print(f"#define ONNXPOOL_{name} {value}")
else:
    for *unit, rare in module("planning.steps").units():
        print(*unit, "common" if rare else "each")
