"""THE TABLE of costs: nanoseconds for each unit of work of loops in `kernels/loops/`, by bytes of a register.

Units have the order that they have in `work.pxi`. `tools/measure_routes.py --fit` fits and prints the costs.
Loops that are not listed are chosen where none of these fits, or when a test forces them.
"""

MOVED = "moved"  # not loops: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.44, "joins": 2.93, "singles": 4.17, "folds": 0.568},
        "ordered": {"taps": 0.0435, "windows": 5.58, "results": 0.961, "picks": 6.72, "lines": 2.23, "rows": 5.93},
        "slide": {"columns": 0.594, "converted": 0.0335, "windows": 2.62},
        "direct": {"taps": 0.451, "converted": 0.107, "far": 0.82, "part": 6.63, "nested": 18.7, "waits": 0.654,
                   "windows": 3.73, "rows": 118.0, "roots": 5.1},
        "short": {"held": 0.334, "taken": 0.334, "rows": 1.11},
        "disjoint": {"loads": 0.891, "picks": 0.0314, "groups": 0.0702},
        "passes": {"loads": 0.609, "stores": 0.556, "sums": 0.253, "splits": 0.528, "picks": 0.441, "taps": 0.528,
                   "plain": 0.0242, "each": 51.6, "calls": 1.49, "folds": 3.44, "folded": 0.167, "rows": 3.6,
                   "items": 75.7, "planes": 42.0, "roots": 1.39},
        MOVED: {"": 1.32},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.401, "joins": 0.664, "singles": 2.68, "folds": 0.894},
        "ordered": {"taps": 0.335, "windows": 14.8, "results": 1.08, "picks": 13.2, "lines": 1.49, "rows": 4.03},
        "slide": {"columns": 0.533, "converted": 0.001, "windows": 2.84},
        "direct": {"taps": 0.456, "converted": 0.001, "far": 0.565, "part": 0.026, "nested": 15.0, "waits": 0.893,
                   "windows": 2.84, "rows": 33.0, "roots": 2.01},
        "short": {"held": 0.458, "taken": 0.752, "rows": 1.12},
        "disjoint": {"loads": 0.39, "picks": 0.4, "groups": 0.75},
        "passes": {"loads": 0.641, "stores": 0.647, "sums": 0.254, "splits": 0.459, "picks": 1.14, "taps": 0.454,
                   "plain": 0.149, "each": 29.2, "calls": 1.5, "folds": 5.99, "folded": 0.39, "rows": 0.378,
                   "items": 43.2, "planes": 12.2, "roots": 0.519},
        MOVED: {"": 1.2},
    },
}


def nearest(register: int) -> int:
    """The bytes of a register for which there are costs: those of the widest registers that are not wider, if any."""
    return max((known for known in COSTS if known <= register), default=min(COSTS))
