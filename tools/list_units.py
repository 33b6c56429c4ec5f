"""List the units to compile, or print the constants of `constants.py` as C, for the build.

    python tools/list_units.py [constants]

Each line has the step, reduction and dtype of a unit, then "each" if the unit is compiled for every instruction set, or
"common" if all instruction sets share it, and the level of optimisation.
"""

import sys

from uncompiled import module

if sys.argv[1:] == ["constants"]:
    for name, value in vars(module("constants")).items():
        if name.isupper():
            print(f"#define ONNXPOOL_{name} {value}")
else:
    for *unit, rare, eager in module("planning.steps").units():
        print(*unit, "common" if rare else "each", "O3" if eager else "O2")
