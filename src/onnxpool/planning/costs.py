"""THE TABLE of costs: nanoseconds for each unit of work of loops in `kernels/loops/`, by bytes of a register.

Units have the order that they have in `work.pxi`. `tools/measure_routes.py --fit` fits and prints the costs.
Loops that are not listed are chosen where none of these fits, or when a test forces them.
"""

MOVED = "moved"  # not loops: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.348, "joins": 3.79, "singles": 3.79, "folds": 0.712},
        "ordered": {"taps": 0.153, "windows": 23.8, "results": 3.01, "picks": 8.05, "lines": 3.14, "rows": 8.38},
        "slide": {"columns": 0.621, "windows": 8.61},
        "direct": {"taps": 0.0142, "far": 0.545, "part": 6.32, "axes": 7.3, "waits": 3.66, "windows": 8.61,
                   "items": 33.0, "roots": 4.58},
        "short": {"held": 0.3, "taken": 0.3, "rows": 1.0},
        "disjoint": {"loads": 0.24, "picks": 0.5, "groups": 0.61},
        "passes": {"loads": 0.665, "stores": 0.666, "sums": 0.242, "splits": 0.792, "picks": 0.113, "taps": 0.682,
                   "plain": 0.238, "each": 54.8, "folds": 16.4, "folded": 0.774, "rows": 3.22, "items": 67.8,
                   "planes": 15.1, "roots": 1.8},
        MOVED: {"": 1.48},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.401, "joins": 0.664, "singles": 2.68, "folds": 0.894},
        "ordered": {"taps": 0.335, "windows": 14.8, "results": 1.08, "picks": 13.2, "lines": 1.49, "rows": 4.03},
        "slide": {"columns": 0.533, "windows": 2.84},
        "direct": {"taps": 0.456, "far": 0.565, "part": 0.026, "axes": 5.53, "waits": 0.893, "windows": 2.84,
                   "items": 33.0, "roots": 2.01},
        "short": {"held": 0.458, "taken": 0.752, "rows": 1.12},
        "disjoint": {"loads": 0.39, "picks": 0.4, "groups": 0.75},
        "passes": {"loads": 0.641, "stores": 0.647, "sums": 0.254, "splits": 0.459, "picks": 1.14, "taps": 0.454,
                   "plain": 0.149, "each": 29.2, "folds": 5.99, "folded": 0.39, "rows": 0.378, "items": 43.2,
                   "planes": 12.2, "roots": 0.519},
        MOVED: {"": 1.2},
    },
}


def nearest(register: int) -> int:
    """The bytes of a register for which there are costs: those of the widest registers that are not wider, if any."""
    return max((known for known in COSTS if known <= register), default=min(COSTS))
