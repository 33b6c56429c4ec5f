"""Calls in processes of little memory end in a right result or MemoryError; and arrays of more than 2^31 elements."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .figures import Figure, all_of, none

QUICK, FULL = 12, 1200  # amounts of memory for each call
ROOMS = (1 << 20, 12 << 20)  # attempts get up to one of these sizes of address space beyond what is in use
AMPLE = 64 << 20  # one attempt gets this much, which suffices for any call
SECONDS = 60  # maximum processor time of a call
PROCESSES = 4  # among which amounts are shared
TUNABLES = ":".join(f"glibc.malloc.{name}" for name in (  # nothing is allocated from memory that was reserved before
    "arena_max=1", "mmap_threshold=65536", "trim_threshold=65536"))
RIGHT, NO_MEMORY, OTHER = 0, 1, 2
ROOT = Path(__file__).parents[2]
LARGE = "tests/kernels/test_more_than_2_to_31_elements.py"
NEEDED = 8 << 30  # bytes of free memory that tests of large arrays need


def calls() -> dict[str, Callable[[int], Any]]:
    """Calls on arrays of a few MiB, by name. Each takes a number of threads."""
    import numpy as np

    import onnxpool

    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 16, 160, 161), np.float32)
    halves, small = x.astype(np.float16), rng.integers(-128, 128, x.shape, np.int8)
    wide, holed = small.astype(np.int32), np.where(x > 2, np.float32(np.nan), x * np.float32(5e37))
    indices = np.arange(x[:, :, :80, :80].size).reshape(2, 16, 80, 80) * 4
    rois = np.array([[2 * n, n, 90 + n, 100] for n in range(24)], np.float32)
    images = np.arange(24) % 2
    scales = np.float32(0.02), np.int8(3), np.float32(0.003), np.int8(5)
    made: dict[str, tuple[Any, ...]] = {
        "maximum": (onnxpool.MaxPool(kernel_shape=3), x),
        "maximum with Indices": (onnxpool.MaxPool(kernel_shape=5, return_indices=True), x),
        "maximum of strided bytes": (onnxpool.MaxPool(kernel_shape=3, channels_last=True), small[..., ::-1]),
        "mean": (onnxpool.AveragePool(kernel_shape=9, pads=4), x),
        "mean of halves": (onnxpool.AveragePool(kernel_shape=3), halves),
        "mean in another byte order": (onnxpool.AveragePool(kernel_shape=3), x.astype(">f4")),
        "norm": (onnxpool.LpPool(kernel_shape=20, p=3), x),
        "whole axes": (onnxpool.GlobalAveragePool(axes=3), x.transpose(3, 1, 2, 0)),
        "quantised mean": (onnxpool.QLinearAveragePool(kernel_shape=3), small, *scales),
        "mean of integers": (onnxpool.AveragePool(kernel_shape=3, axes=(2, 3), dtype="float64"), wide),
        "means of integers by NumPy": (onnxpool.GlobalAveragePool(axes=1), wide),
        "means of numbers that overflow": (onnxpool.AveragePool(kernel_shape=3, axes=(2, 3), skipna=True), holed),
        "MaxUnpool": (onnxpool.MaxUnpool(kernel_shape=2, strides=2), x[:, :, :80, :80], indices),
        "RoiAlign": (onnxpool.RoiAlign(output_height=40, output_width=40), x, rois, images),
        "MaxRoiPool": (onnxpool.MaxRoiPool(pooled_shape=40), x, np.hstack([images[:, None], rois]).astype(np.float32)),
    }
    return {name: lambda threads, op=op, inputs=inputs: op(*inputs, num_threads=threads)
            for name, (op, *inputs) in made.items()}


def in_use() -> int:
    """The bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def attempt(call: Callable[[int], Any], threads: int, room: int, expected: bytes, forget: bool) -> int:
    """How a call ends in a child process with this much memory: RIGHT, NO_MEMORY or OTHER, or below 0 for a signal."""
    import onnxpool

    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ending = OTHER
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        if forget:
            onnxpool.clear_caches()
        ctypes.CDLL(None).malloc_trim(0)
        resource.setrlimit(resource.RLIMIT_AS, (in_use() + room, resource.RLIM_INFINITY))
        try:
            result = call(threads)
        except MemoryError:
            ending = NO_MEMORY
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ending = RIGHT if contents(result) == expected else OTHER
    except MemoryError:
        pass
    finally:
        os._exit(ending)


def contents(result: Any) -> bytes:
    """The bytes of all results."""
    return b"".join(one.tobytes() for one in (result if isinstance(result, tuple) else (result,)))


def sweep(seed: int, times: int) -> None:
    """Attempt each call this many times, and print how often each ending occurred. Runs in a process of its own."""
    import numpy as np

    rng = np.random.default_rng(seed)
    endings: dict[str, dict[int, int]] = {}
    for name, call in calls().items():
        expected = contents(call(2))
        rooms = [0, AMPLE, *(int(rng.integers(0, ROOMS[rng.integers(len(ROOMS))])) for _ in range(times - 2))]
        endings[name] = Counter(
            attempt(call, int(rng.integers(1, 4)), room, expected, bool(rng.integers(2))) for room in rooms)
    print(json.dumps(endings))


def swept(seed: int, times: int) -> dict[str, Counter[int]]:
    """What `sweep` has found."""
    program = f"from tests.campaign.memory import sweep; sweep({seed}, {times})"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, text=True, capture_output=True,
                          check=False, env=os.environ | {"GLIBC_TUNABLES": TUNABLES})
    if done.returncode:
        raise RuntimeError(f"the process exited with {done.returncode}\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    if any(int(ending) not in (RIGHT, NO_MEMORY) for endings in found.values() for ending in endings):
        print(done.stderr[-3000:])
    return {name: Counter({int(ending): count for ending, count in endings.items()}) for name, endings in found.items()}


def large(quick: bool) -> Figure:
    """Run the tests of arrays of more than 2^31 elements, one at a time, if there is memory."""
    available = os.sysconf("SC_AVPHYS_PAGES") * resource.getpagesize()
    name = "failed tests of more than 2^31 elements"
    if available < NEEDED:
        return Figure(name, 0, 1, "tests", note=f"not run: {available >> 30} GiB of {NEEDED >> 30} GiB are free")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        chosen = ["-k", "test_windows_of_one_element or (test_last_window and spatial0)"] if quick else ["-m", ""]
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", LARGE, f"--junitxml={report}", *chosen],
                       cwd=ROOT, capture_output=True, check=False)
        suite = next(iter(ElementTree.parse(report).getroot()))
    counts = {key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")}
    return none(name, counts["failures"] + counts["errors"], counts["tests"] - counts["skipped"], "tests")


def run(seed: int, quick: bool) -> Iterator[Figure]:
    """Sweep in several processes, one per processor at a time."""
    times = (QUICK if quick else FULL) // PROCESSES
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shares = list(pool.map(swept, range(seed * PROCESSES, (seed + 1) * PROCESSES), [times] * PROCESSES))
    endings = {name: sum((share[name] for share in shares), Counter[int]()) for name in shares[0]}
    total = sum(endings.values(), Counter[int]())
    others = {name: {describe(ending): count for ending, count in found.items() if ending not in (RIGHT, NO_MEMORY)}
              for name, found in endings.items()}
    for name, found in others.items():
        if found:
            print(f"  {name}: {found}")
    yield none("other endings than a right result or MemoryError", total.total() - total[RIGHT] - total[NO_MEMORY],
               total.total(), "calls", f"{total[RIGHT]:,} results, {total[NO_MEMORY]:,} MemoryErrors")
    both = sum(found[RIGHT] > 0 and found[NO_MEMORY] > 0 for found in endings.values())
    yield all_of("kinds of calls that ended in both ways", both, len(endings), "kinds of calls", ", ".join(
        name for name, found in endings.items() if not found[RIGHT] or not found[NO_MEMORY]))
    yield large(quick)


def describe(ending: int) -> str:
    """An unwanted ending in words."""
    return signal.Signals(-ending).name if ending < 0 else f"exit {ending}"
