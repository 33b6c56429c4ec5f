"""List the units to compile, or print the constants of `constants.py` as C, for the build.

    python tools/list_units.py [constants]

Each line has the name of a unit, the file of its loops, its reduction and its dtype. The next word is "each" if the
unit is compiled for every instruction set, "fast" if it is compiled for all but the baseline of x86-64, "common" if all
instruction sets share it, or the name of one instruction set. The last word is the level of optimisation.
"""

import sys

from uncompiled import module

if sys.argv[1:] == ["constants"]:
    for name, value in vars(module("constants")).items():
        if name.isupper():
            print(f"#define ONNXPOOL_{name} {value}")
else:
    for *unit, eager in module("planning.solvers").units():
        print(*unit, "O3" if eager else "O2")
