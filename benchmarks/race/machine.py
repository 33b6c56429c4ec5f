"""The machine and the software of a measurement."""

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path

PACKAGES = ["onnxpool", "numpy", "onnxruntime", "torch", "openvino", "onednn-cpu-gomp", "ai-edge-litert",
            "ml_dtypes"]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def processor() -> str:
    """The name of the processor."""
    lines = _read(Path("/proc/cpuinfo")).splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def caches() -> str:
    """The caches that the first core uses, with the cores that share each."""
    found = []
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, shared = _read(cache / "type"), _read(cache / "shared_cpu_list")
        if kind != "Instruction":
            found.append(f"L{_read(cache / 'level')} {_read(cache / 'size')} (cpu {shared})")
    return ", ".join(found)


def versions() -> dict[str, str]:
    """The versions of onnxpool and of the installed peers."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of this clone, with a mark if files differ from it."""
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=8"], cwd=Path(__file__).parent,
                              capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe() -> dict[str, str]:
    """The machine and the software, in a few words each."""
    from onnxpool import kernels
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "processor": processor(),
        "caches": caches(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "instruction set of onnxpool": kernels.isa,
        "versions": ", ".join(f"{package} {version}" for package, version in versions().items()),
    }


class Others:
    """How much other processes use the machine from now on."""

    def __init__(self) -> None:
        self.start = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        """The time, and the CPU time of other processes, in seconds."""
        fields = _read(Path("/proc/stat")).partition("\n")[0].split()[1:]
        ticks = [int(field) for field in fields] or [0] * 8
        busy = sum(ticks[:3]) + sum(ticks[5:8])  # all except idle and iowait
        return time.perf_counter(), busy / os.sysconf("SC_CLK_TCK") - time.process_time()

    def share(self) -> float:
        """The average number of cores that other processes use."""
        (before, used), (now, used_now) = self.start, self._now()
        return max(0.0, (used_now - used) / (now - before))
