"""THE TABLE of costs: nanoseconds for each unit of work of loops in `kernels/loops/`, by bytes of a register.

Units are in the same order as in `work.pxi`. `tools/measure_routes.py --fit` fits and prints the costs. Loops that are
not listed are chosen where no listed loops fit, or if a test forces them.
"""

MOVED = "moved"  # not loops: makes a register of elements adjacent

COSTS = {
    32: {  # AMD Zen 3
        "whole": {"taps": 0.431, "converted": 0.0131, "joins": 2.64, "singles": 3.62, "folds": 0.671},
        "ordered": {"taps": 0.217, "windows": 4.69, "results": 0.984, "picks": 6.28, "lines": 3.82, "rows": 4.55},
        "slide": {"columns": 0.542, "converted": 0.0436, "windows": 1.58},
        "direct": {"taps": 0.5, "converted": 0.0943, "far": 0.677, "part": 7.35, "nested": 29.3, "waits": 0.431,
                   "windows": 0.984, "rows": 125, "roots": 5.32},
        "short": {"held": 0.318, "taken": 0.318, "rows": 1.06},
        "disjoint": {"loads": 0.614, "picks": 0.0143, "groups": 1.16},
        "passes": {"loads": 0.728, "stores": 0.236, "sums": 0.264, "splits": 0.567, "picks": 0.639, "taps": 0.52,
                   "plain": 0.00413, "each": 41.8, "calls": 1.6, "folds": 6.66, "folded": 0.135, "rows": 3.67,
                   "items": 77.3, "planes": 24, "roots": 1.7},
        MOVED: {"": 1.46},
    },
    64: {  # AMD Zen 5
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


SHARED = 32  # the bytes of the register whose costs choose the form of whole channels on every processor


def prices(register: int, whole: bool) -> dict[str, dict[str, float]]:
    """The costs for registers of these bytes. Whole channels have the same costs with every instruction set, because
    the order of their sums depends on the form."""
    return COSTS[SHARED if whole else register]


def nearest(register: int) -> int:
    """The register width in bytes whose costs apply: the widest known one that is not wider, or else the narrowest."""
    return max((known for known in COSTS if known <= register), default=min(COSTS))
