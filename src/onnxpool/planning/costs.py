"""THE TABLE of costs: nanoseconds for each unit of work of a step, by bytes of a register.

`tools/measure_routes.py --fit` fits and prints them. A step that is not listed is chosen where none of these fits, or
when a test forces it.
"""

MOVED = "moved"  # not a step: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.348, "joins": 3.79, "singles": 3.79, "folds": 0.712},
        "ordered": {"taps": 0.153, "results": 3.01, "windows": 23.8, "picks": 8.05, "lines": 3.14, "rows": 8.38},
        "direct": {"taps": 0.0142, "far": 0.545, "axes": 7.3, "part": 6.32, "waits": 3.66, "columns": 0.621,
                   "windows": 8.61, "roots": 4.58},
        "passes": {"loads": 0.665, "stores": 0.666, "sums": 0.242, "splits": 0.792, "picks": 0.113, "taps": 0.682,
                   "plain": 0.238, "each": 54.8, "folds": 16.4, "folded": 0.774, "rows": 3.22, "planes": 15.1,
                   "items": 67.8, "roots": 1.8, "held": 0.3, "taken": 0.3, "short": 1.0},
        MOVED: {"": 1.48},
    },
    64: {  # AMD Zen 5
        "whole": {"taps": 0.418, "joins": 0.606, "singles": 2.78, "folds": 0.689},
        "ordered": {"taps": 0.0975, "results": 1.08, "windows": 8.95, "picks": 12.1, "lines": 0.752, "rows": 3.39},
        "direct": {"taps": 0.46, "far": 0.352, "axes": 3.28, "part": 0.0296, "waits": 1.05, "columns": 0.515,
                   "windows": 3.27, "roots": 1.67},
        "passes": {"loads": 0.648, "stores": 0.3, "sums": 0.253, "splits": 0.187, "picks": 1.9, "taps": 0.61,
                   "plain": 0.393, "each": 53.1, "folds": 4.26, "folded": 0.501, "rows": 0.584, "planes": 20.6,
                   "items": 34.6, "roots": 0.225, "held": 0.434, "taken": 0.963, "short": 0.962},
        MOVED: {"": 1.08},
    },
}


def nearest(register: int) -> int:
    """The bytes of a register for which there are costs: those of the widest registers that are not wider, if any."""
    return max((known for known in COSTS if known <= register), default=min(COSTS))
