"""Time of each operator's workloads, by dtype, layout and threads: prepared plans into preallocated outputs."""

from .once import OneSetup
from .workloads import BYTES, FLOATS, FURTHER, LAYOUTS, POOLS, SHAPES, WORKLOADS, ZOO, Call

THREADS = ["1", "2"]


def named(*operators, among=POOLS | FURTHER):
    """The workloads of some operators."""
    return [name for name, work in among.items() if work.operator in operators]


class _Family(OneSetup):
    param_names = ("workload", "dtype", "layout", "threads")

    def prepare(self, *params):
        self.call = Call(*params)

    def time_plan(self, *params):
        self.call()


class Max(_Family):
    """MaxPool."""

    params = (named("MaxPool"), FLOATS + BYTES, LAYOUTS, THREADS)


class Average(_Family):
    """AveragePool."""

    params = (named("AveragePool"), FLOATS, LAYOUTS, THREADS)


class Norm(_Family):
    """LpPool and GlobalLpPool."""

    params = (named("LpPool", "GlobalLpPool"), FLOATS, LAYOUTS, THREADS)


class Whole(_Family):
    """GlobalAveragePool and GlobalMaxPool."""

    params = (named("GlobalAveragePool", "GlobalMaxPool"), FLOATS, LAYOUTS, THREADS)


class Unpooled(_Family):
    """MaxUnpool."""

    params = (named("MaxUnpool"), FLOATS, LAYOUTS, THREADS)


class Regions(_Family):
    """MaxRoiPool and RoiAlign."""

    params = (named("MaxRoiPool", "RoiAlign"), FLOATS, LAYOUTS, THREADS)


class Nhwc(_Family):
    """NhwcMaxPool of com.microsoft."""

    params = (named("NhwcMaxPool"), BYTES, ["last"], THREADS)


class Quantised(_Family):
    """The QLinear operators of com.microsoft."""

    params = (named("QLinearGlobalAveragePool", "QLinearAveragePool"), BYTES, LAYOUTS, THREADS)


class UnusualMax(_Family):
    """MaxPool with geometries that are rare in networks: odd sizes, few channels, large windows, views, many axes."""

    params = (named("MaxPool", among=SHAPES), ["float32", "float16", "uint8"], LAYOUTS, THREADS)


class UnusualAverage(_Family):
    """AveragePool and the global pools with geometries that are rare in networks."""

    params = (named("AveragePool", "GlobalAveragePool", "GlobalMaxPool", among=SHAPES),
              ["float32", "float16"], LAYOUTS, THREADS)


class Zoo(_Family):
    """Layers of about 60 networks, with batch 1 and 8."""

    params = (list(ZOO), ["float32", "bfloat16", "uint8"], LAYOUTS, ["1"])

    def prepare(self, workload, dtype, *params):
        if dtype not in WORKLOADS[workload].dtypes:
            raise NotImplementedError(f"{workload} has no {dtype}")  # asv leaves the benchmark out
        super().prepare(workload, dtype, *params)
