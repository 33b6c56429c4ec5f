"""
The pools whose history is published: some of each family, few enough to be measured for many commits.

All use one thread, which can be bound to a processor. docs/benchmarking.md says how they are measured.
"""

from .once import OneSetup
from .workloads import Call


class _Tracked(OneSetup):
    param_names = ("pool",)

    def prepare(self, pool):
        name, dtype, layout = pool.split()
        self.call = Call(name, dtype, layout, "1")

    def time_plan(self, pool):
        self.call()


class Max(_Tracked):
    """MaxPool, with and without Indices."""

    params = ([
        "stem_max3x3s2_b1 float32 first",
        "stem_max3x3s2_b1 float32 last",
        "stem_max3x3s2_b1 bfloat16 last",
        "vgg_max2x2s2_b4 float32 first",
        "spp_max13x13s1 float32 first",
        "spp_max13x13s1 uint8 last",
        "max3d_3s2 float16 last",
        "indices_stem_max3x3s2_b1 float32 first",
    ],)


class Average(_Tracked):
    """AveragePool."""

    params = ([
        "inception_avg3x3s1 float32 first",
        "inception_avg3x3s1 float32 last",
        "inception_avg3x3s1 bfloat16 last",
        "densenet_avg2x2s2 float32 first",
        "densenet_avg2x2s2 float16 last",
        "avg31x31s1 float32 first",
        "avg31x31s1 float32 last",
        "avg1d_k25s5 float64 first",
    ],)


class Whole(_Tracked):
    """Global pools."""

    params = ([
        "gap_7x7_b32 float32 first",
        "gap_7x7_b32 float32 last",
        "gap_7x7_b32 bfloat16 first",
        "gap_112_b8 float32 first",
        "gmp_112_b8 float16 last",
        "glp2_7x7_b32 float32 first",
    ],)


class Others(_Tracked):
    """Norms, quantised pools, unpooling and regions."""

    params = ([
        "lp2_3x3s2 float32 last",
        "qgap_7x7_b32 uint8 last",
        "qavg3x3s1 uint8 first",
        "nhwc_stem_max3x3s2_b1 uint8 last",
        "unpool2x2s2_b4 float32 first",
        "rois_7x7_r512 float32 first",
        "align_7x7_r512 float32 first",
    ],)
