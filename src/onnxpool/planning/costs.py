"""THE TABLE of costs: nanoseconds for each unit of work of loops in `kernels/loops/`, by bytes of a register.

Units have the order that they have in `work.pxi`. `tools/measure_routes.py --fit` fits and prints the costs.
Loops that are not listed are chosen where none of these fits, or when a test forces them.
"""

MOVED = "moved"  # not loops: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.382, "joins": 2.55, "singles": 3.61, "folds": 0.495},
        "ordered": {"taps": 0.048, "windows": 5.86, "results": 0.852, "picks": 5.85, "lines": 1.96, "rows": 5.28},
        "slide": {"columns": 0.643, "converted": 0.028, "windows": 3.1},
        "direct": {"taps": 0.00919, "converted": 0.114, "far": 0.831, "part": 6.11, "axes": 5.76, "waits": 2.74,
                   "windows": 7.52, "items": 114.0, "roots": 5.34},
        "short": {"held": 0.3, "taken": 0.3, "rows": 1.0},
        "disjoint": {"loads": 0.853, "picks": 0.0724, "groups": 0.142},
        "passes": {"loads": 0.577, "stores": 0.758, "sums": 0.181, "splits": 0.413, "picks": 0.0905, "taps": 0.583,
                   "plain": 0.117, "each": 32.9, "folds": 3.15, "folded": 0.147, "rows": 2.61, "items": 69.1,
                   "planes": 34.8, "roots": 1.3},
        MOVED: {"": 1.15},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.401, "joins": 0.664, "singles": 2.68, "folds": 0.894},
        "ordered": {"taps": 0.335, "windows": 14.8, "results": 1.08, "picks": 13.2, "lines": 1.49, "rows": 4.03},
        "slide": {"columns": 0.533, "converted": 0.001, "windows": 2.84},
        "direct": {"taps": 0.456, "converted": 0.001, "far": 0.565, "part": 0.026, "axes": 5.53, "waits": 0.893,
                   "windows": 2.84, "items": 33.0, "roots": 2.01},
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
