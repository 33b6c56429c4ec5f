"""Ratios of times, which say more than times.

They compare a call with a copy, a large window with a small one, two threads with one, and unusual elements with usual
ones. Less is better, as asv expects.
"""

import math

import numpy as np

from .race.rounds import Timed, at_once, copying, settle
from .workloads import BOUNDS, LAYOUTS, Call, array

THREADS = ["1", "2"]
STREAMS = [  # memory-bound pools
    "stem_max3x3s2_b8", "vgg_max2x2s2_b4", "densenet_avg2x2s2", "avg1d_k4s4", "gap_112_b8", "gmp_112_b8",
]
IN_CACHE = ["stem_max3x3s2_b1", "sppf_max5x5s1", "inception_avg3x3s1", "max3x3s1", "avg31x31s1", "tiny_max2x2"]
APART = 9973  # elements from one non-finite element to the next
ODD = {"infinity": math.inf, "nan": math.nan}
SMALL = {"1x3x8x8": (1, 3, 8, 8), "1x16x28x28": (1, 16, 28, 28), "1x64x40x40": (1, 64, 40, 40)}  # below 512 KiB
ROUNDS, SECONDS = 8, 0.02


def ratio(above, below):
    """The best time of one call divided by the best time of another, in alternating rounds, rounded to significant
    digits."""
    best = {}
    for _ in range(ROUNDS):
        for timed in (above, below):
            settle()
            once = timed.burst(1)
            best[timed] = min(best.get(timed, once), timed.burst(max(1, int(SECONDS / once))))
    return float(f"{best[above] / best[below]:.4g}")


class Bandwidth:
    """The time of the call divided by the time to copy as many bytes."""

    params = (STREAMS, ["float32", "float16"], LAYOUTS, THREADS)
    param_names = ("workload", "dtype", "layout", "threads")

    def setup(self, name, dtype, layout, threads):
        self.call = Call(name, dtype, layout, threads)
        self.copy = copying(self.call.bytes, int(threads))

    def track_copies(self, *params):
        return ratio(Timed.calls(self.call), self.copy)

    track_copies.unit = "copies"


class Growth:
    """The time of a large window, a dilated one or one over many axes, divided by a simpler window's time."""

    params = ([f"{large}/{small}" for large, small in BOUNDS], ["float32", "float16"], LAYOUTS, THREADS)
    param_names = ("workloads", "dtype", "layout", "threads")

    def setup(self, names, dtype, layout, threads):
        self.calls = [Timed.calls(Call(name, dtype, layout, threads)) for name in names.split("/")]

    def track_growth(self, *params):
        return ratio(*self.calls)

    track_growth.unit = "ratio"


class SecondThread:
    """The time with two threads divided by the time with one."""

    params = (IN_CACHE, ["float32", "float16"], LAYOUTS)
    param_names = ("workload", "dtype", "layout")

    def setup(self, name, dtype, layout):
        self.calls = [Timed.calls(Call(name, dtype, layout, threads)) for threads in reversed(THREADS)]

    def track_share_of_one_thread(self, *params):
        return ratio(*self.calls)

    track_share_of_one_thread.unit = "ratio"


class SecondCaller:
    """The time of a small pool while another Python thread makes the same calls, divided by its time alone.

    The ratio is 1 if threads do not wait for each other, and 2 if threads take turns, as they nearly do with the GIL.
    """

    params = (["plan", "operator", "function"], list(SMALL))
    param_names = ("called", "shape")

    def setup(self, called, shape):
        import onnxpool
        operator = onnxpool.MaxPool(kernel_shape=(2, 2), strides=(2, 2))
        self.arrays = [array(SMALL[shape], "float32") for _ in range(2)]
        self.call = {
            "plan": operator.plan(SMALL[shape], "float32"),
            "operator": operator,
            "function": lambda x: onnxpool.max_pool(x, (2, 2), strides=(2, 2)),
        }[called]

    def callers(self, count):
        """Calls of this many threads, each with an array of its own."""
        return at_once(self.call, [(x,) for x in self.arrays[:count]])

    def track_waits(self, *params):
        return ratio(self.callers(2), self.callers(1))

    track_waits.unit = "ratio"


class OddElements:
    """The time if some elements are not finite, or half of them are zero as after a ReLU, divided by the time of other
    elements."""

    params = (["inception_avg3x3s1", "lp2_3x3s2", "gap_7x7_b32", "stem_max3x3s2_b1"], [*ODD, "relu"],
              ["float32", "float64", "bfloat16"], LAYOUTS)
    param_names = ("workload", "elements", "dtype", "layout")

    def setup(self, name, elements, dtype, layout):
        odd, usual = Call(name, dtype, layout, "1"), Call(name, dtype, layout, "1")
        x = odd.inputs[0]
        if elements == "relu":
            np.maximum(x, 0, out=x)
        else:
            x.flat[::APART] = ODD[elements]
        self.calls = [Timed.calls(odd), Timed.calls(usual)]

    def track_odd_elements(self, *params):
        return ratio(*self.calls)

    track_odd_elements.unit = "ratio"
