"""The memory that a call needs: input, output and little else."""

import ctypes
import re
from pathlib import Path

from .workloads import LAYOUTS, WORKLOADS, Call

LARGEST = {  # a workload of each operator
    "AveragePool": "avg31x31s1",
    "AveragePool of long windows": "avg127x127s1",
    "GlobalAveragePool": "gap_112_b8",
    "GlobalLpPool": "glp3_56_b8",
    "GlobalMaxPool": "gmp_112_b8",
    "LpPool": "lp2_3x3s2",
    "MaxPool": "vgg_max2x2s2_b4",
    "MaxPool with Indices": "indices_sppf_max5x5s1",
    "MaxRoiPool": "rois_7x7_r512",
    "MaxUnpool": "unpool2x2s2_b4",
    "NhwcMaxPool": "nhwc_stem_max3x3s2_b1",
    "QLinearAveragePool": "qavg3x3s1",
    "QLinearGlobalAveragePool": "qgap_56_b8",
    "RoiAlign": "align_7x7_r512",
}
MMAP_THRESHOLD = -3  # the parameter of mallopt
THP_DISABLE = 41  # PR_SET_THP_DISABLE
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(which):
    """The bytes of memory that the process uses now (RSS) or has used at most (HWM)."""
    return int(re.search(rf"Vm{which}:\s+(\d+) kB", STATUS.read_text())[1]) * 1024


class _Memory:
    params = (list(LARGEST), ["float32", "float16", "uint8"], LAYOUTS, ["1", "2"])
    param_names = ("operator", "dtype", "layout", "threads")

    def setup(self, operator, dtype, layout, threads):
        work = WORKLOADS[LARGEST[operator]]
        if layout not in work.layouts or dtype not in work.dtypes:
            raise NotImplementedError(f"{operator} is not for {dtype}, channels {layout}")
        self.call = Call(LARGEST[operator], dtype, layout, threads)


class Peak(_Memory):
    """The peak memory of a process that creates the arrays of a workload and pools them."""

    def peakmem_plan(self, *params):
        self.call()


class Scratch(_Memory):
    """The memory that a call holds temporarily, besides its input and output, on a system that can measure it."""

    def track_scratch(self, *params):
        libc = ctypes.CDLL(None)
        if not (RESET.exists() and hasattr(libc, "malloc_trim")):
            raise NotImplementedError("the system does not count it")
        libc.prctl(THP_DISABLE, 1, 0, 0, 0)  # huge pages would count 2 MiB for a few bytes
        libc.mallopt(MMAP_THRESHOLD, 1 << 17)  # the initial value, which freeing large arrays has raised
        held = []
        for _ in range(3):  # temporary allocations elsewhere in the process are not counted every time
            libc.malloc_trim(0)  # memory freed by earlier calls must not count as already present
            RESET.write_text("5")  # the peak from now on
            before = resident("RSS")
            self.call()
            held.append(max(0, resident("HWM") - before))
        libc.prctl(THP_DISABLE, 0, 0, 0, 0)
        return min(held)

    track_scratch.unit = "bytes"
