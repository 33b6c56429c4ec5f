"""Time of each operator's workloads, by dtype, layout and threads: prepared plans into preallocated outputs."""

from .workloads import WORKLOADS, Call

FLOATS = ["float32", "float16", "bfloat16", "float64"]
BYTES = ["int8", "uint8"]


def named(*operators):
    """The workloads of some operators."""
    return [name for name, work in WORKLOADS.items() if work.operator in operators]


class _Family:
    param_names = ("workload", "dtype", "layout", "threads")

    def setup(self, *params):
        self.call = Call(*params)

    def time_plan(self, *params):
        self.call()


class Max(_Family):
    """MaxPool."""

    params = (named("MaxPool"), FLOATS + BYTES, ["first", "last"], ["1", "2"])


class Average(_Family):
    """AveragePool."""

    params = (named("AveragePool"), FLOATS, ["first", "last"], ["1", "2"])


class Norm(_Family):
    """LpPool and GlobalLpPool."""

    params = (named("LpPool", "GlobalLpPool"), FLOATS, ["first", "last"], ["1", "2"])


class Whole(_Family):
    """GlobalAveragePool and GlobalMaxPool."""

    params = (named("GlobalAveragePool", "GlobalMaxPool"), FLOATS, ["first", "last"], ["1", "2"])


class Unpooled(_Family):
    """MaxUnpool."""

    params = (named("MaxUnpool"), FLOATS, ["first", "last"], ["1", "2"])


class Regions(_Family):
    """MaxRoiPool and RoiAlign."""

    params = (named("MaxRoiPool", "RoiAlign"), FLOATS, ["first", "last"], ["1", "2"])


class Nhwc(_Family):
    """NhwcMaxPool of com.microsoft."""

    params = (named("NhwcMaxPool"), BYTES, ["last"], ["1", "2"])


class Quantised(_Family):
    """The QLinear operators of com.microsoft."""

    params = (named("QLinearGlobalAveragePool", "QLinearAveragePool"), BYTES, ["first", "last"], ["1", "2"])
