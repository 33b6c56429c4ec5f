"""Prints the best instruction set that this processor runs, for -Dinstruction_sets=native."""

import platform

FLAGS = {
    "x86_v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86_v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
}


def native() -> str:
    """The name of the instruction set; the baseline where the processor cannot be asked."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        try:
            with open("/proc/cpuinfo") as lines:
                known = next(set(line.split(":")[1].split()) for line in lines if line.startswith("flags"))
        except (OSError, StopIteration):
            return "baseline"
        for name, needed in FLAGS.items():
            if needed <= known:
                return name
    return "baseline"


print(native())
