"""THE TABLE of costs: nanoseconds for each unit of work of loops in `kernels/loops/`, by bytes of a register.

Units have the order that they have in `work.pxi`. `tools/measure_routes.py --fit` fits and prints the costs.
Loops that are not listed are chosen where none of these fits, or when a test forces them.
"""

MOVED = "moved"  # not loops: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.434, "converted": 0.0254, "joins": 2.68, "singles": 3.68, "folds": 0.668},
        "ordered": {"taps": 0.0452, "windows": 6.05, "results": 1.03, "picks": 6.41, "lines": 2.53, "rows": 6.59},
        "slide": {"columns": 0.59, "converted": 0.0428, "windows": 2.5},
        "direct": {"taps": 0.466, "converted": 0.108, "far": 0.682, "part": 7.2, "nested": 18.8, "waits": 0.595,
                   "windows": 3.5, "rows": 120.0, "roots": 4.86},
        "short": {"held": 0.319, "taken": 0.319, "rows": 1.06},
        "disjoint": {"loads": 0.893, "picks": 0.0219, "groups": 0.0522},
        "passes": {"loads": 0.619, "stores": 0.512, "sums": 0.252, "splits": 0.432, "picks": 0.473, "taps": 0.534,
                   "plain": 0.0116, "each": 38.3, "calls": 1.42, "folds": 5.01, "folded": 0.2, "rows": 4.07,
                   "items": 78.5, "planes": 54.2, "roots": 1.38},
        MOVED: {"": 1.49},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.401, "converted": 0.001, "joins": 0.664, "singles": 2.68, "folds": 0.894},
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
