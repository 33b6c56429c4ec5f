"""THE TABLE of costs: nanoseconds for each unit of work of a step, by bytes of a register.

`tools/measure_routes.py --fit` fits and prints them. A step that is not listed is chosen where none of these fits, or
when a test forces it.
"""

MOVED = "moved"  # not a step: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.348, "joins": 3.79, "folds": 0.712},
        "ordered": {"taps": 0.153, "results": 3.01, "windows": 23.8, "picks": 8.05, "lines": 3.14, "rows": 8.38},
        "direct": {"taps": 0.0142, "far": 0.545, "axes": 7.3, "part": 6.32, "waits": 3.66, "columns": 0.621,
                   "windows": 8.61, "roots": 4.58},
        "passes": {"loads": 0.665, "stores": 0.666, "sums": 0.242, "splits": 0.792, "picks": 0.113, "taps": 0.682,
                   "plain": 0.238, "each": 54.8, "folds": 16.4, "folded": 0.774, "rows": 3.22, "planes": 15.1,
                   "items": 67.8, "roots": 1.8},
        MOVED: {"": 1.48},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.341, "joins": 0.996, "folds": 0.734},
        "ordered": {"taps": 0.267, "results": 0.757, "windows": 4.83, "picks": 11.2, "lines": 1.19, "rows": 2.04},
        "direct": {"taps": 0.316, "far": 0.146, "axes": 3.82, "part": 0.214, "waits": 1.52, "columns": 0.547,
                   "windows": 2.25, "roots": 1.34},
        "passes": {"loads": 0.443, "stores": 0.546, "sums": 0.363, "splits": 0.555, "picks": 0.0919, "taps": 0.758,
                   "plain": 0.216, "each": 63.5, "folds": 7.46, "folded": 0.378, "rows": 0.792, "planes": 9.02,
                   "items": 30.2, "roots": 0.659},
        MOVED: {"": 1.12},
    },
}


def nearest(register: int) -> int:
    """The bytes of a register for which there are costs: those of the widest registers that are not wider, if any."""
    return max((known for known in COSTS if known <= register), default=min(COSTS))
