"""THE TABLE of costs: nanoseconds for each unit of work of loops in `kernels/loops/`, by bytes of a register.

Units have the order that they have in `work.pxi`. `tools/measure_routes.py --fit` fits and prints the costs.
Loops that are not listed are chosen where none of these fits, or when a test forces them.
"""

MOVED = "moved"  # not loops: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.413, "joins": 2.75, "singles": 3.91, "folds": 0.531},
        "ordered": {"taps": 0.043, "windows": 5.3, "results": 0.885, "picks": 6.04, "lines": 2.09, "rows": 5.58},
        "slide": {"columns": 0.607, "converted": 0.0343, "windows": 2.73},
        "direct": {"taps": 0.309, "converted": 0.123, "far": 0.8, "part": 5.64, "axes": 4.99, "waits": 1.29,
                   "windows": 3.54, "rows": 109.0, "roots": 5.16},
        "short": {"held": 0.3, "taken": 0.3, "rows": 1.0},
        "disjoint": {"loads": 0.852, "picks": 0.0411, "groups": 0.101},
        "passes": {"loads": 0.546, "stores": 0.737, "sums": 0.171, "splits": 0.471, "picks": 0.128, "taps": 0.544,
                   "plain": 0.0502, "each": 33.7, "folds": 1.84, "folded": 0.0987, "rows": 3.25, "items": 73.2,
                   "planes": 35.6, "roots": 1.28},
        MOVED: {"": 1.24},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.401, "joins": 0.664, "singles": 2.68, "folds": 0.894},
        "ordered": {"taps": 0.335, "windows": 14.8, "results": 1.08, "picks": 13.2, "lines": 1.49, "rows": 4.03},
        "slide": {"columns": 0.533, "converted": 0.001, "windows": 2.84},
        "direct": {"taps": 0.456, "converted": 0.001, "far": 0.565, "part": 0.026, "axes": 5.53, "waits": 0.893,
                   "windows": 2.84, "rows": 33.0, "roots": 2.01},
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
