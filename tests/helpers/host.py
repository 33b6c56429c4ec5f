"""Helpers of the scenarios: calls that use a team of threads or take long, and children that must succeed.

A scenario is a function in a file scenarios_*.py. `python FILE NAME` runs it in a process of its own, which exits with
0 if everything that its docstring claims is true. test_embedding.py runs them.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from programs import uses_libomp

import onnxpool
from onnxpool.kernels.core import team as teams  # type: ignore[attr-defined]  # compiled, and has no stub

WORKERS = bool(onnxpool.config()["openmp"])  # calls of builds without OpenMP have no workers
LIBOMP = uses_libomp()  # LLVM's runtime keeps workers that libgomp ends
teams.allow_pauses(False)  # busy cores would change how many threads a call uses
LARGE = np.random.default_rng(3).standard_normal((8, 16, 64, 65), np.float32)  # enough for a team of threads
SMALL = LARGE[:1, :3, :9, :8]
LIMIT = 60  # seconds after which a child that hangs is killed
PROMPT = 1.0  # seconds of work, over all threads, that may be done before a signal arrives


def parallel(x: Any = LARGE) -> bytes:
    return onnxpool.average_pool(x, 3, pads=1, num_threads=2).tobytes()


def running() -> int:
    """The threads of this process."""
    return len(os.listdir("/proc/self/task"))


def parallel_call_works() -> None:
    """A call on two threads returns the same bits as a serial call."""
    serial = onnxpool.average_pool(LARGE, 3, pads=1, num_threads=1).tobytes()
    assert parallel() == serial


def first_parallel_call_works() -> None:
    """Check `parallel_call_works` in a process in which the call must get a worker, if this build has any."""
    call_has_a_team(running())


def next_parallel_call_works() -> None:
    """Check a parallel call in a process that has pooled in parallel and then forked, which ends libgomp's workers."""
    call_has_a_team(running() - LIBOMP)


def call_has_a_team(alone: int) -> None:
    """Check `parallel_call_works` in a process that has `alone` threads without the worker."""
    parallel_call_works()
    assert running() == alone + WORKERS, (alone, running())


def long_call(team: int, images: int = 64, out: Any = None) -> Any:
    """A call that takes many seconds but little memory: all elements of its input share one value."""
    x = np.broadcast_to(np.float32(3), (images, 64, 512, 512))
    return onnxpool.lp_pool(x, 8, strides=8, p=2.5, opset=1, num_threads=team, out=out)


def long_plane(team: int) -> None:
    """The time of one plane, whose windows are added tap by tap, in seconds."""
    x = np.ones((1, 1, 2000, 2000), np.uint8)
    onnxpool.qlinear_average_pool(x, 0.5, None, 0.5, None, 301, num_threads=team)


def long_regions(team: int, count: int = 20000) -> Any:
    """A call on regions that takes many seconds but little memory."""
    x = np.broadcast_to(np.float32(3), (1, 64, 128, 128))
    rois = np.tile(np.array([[0, 0, 127, 127]], np.float32), (count, 1))
    return onnxpool.roi_align(x, rois, np.zeros(count, np.int64), mode="max", output_height=7, output_width=7,
                              num_threads=team)


def fork(work: Callable[[], None], leave: Callable[[int], object] = os._exit) -> int:
    """A child that exits with 0 if the work was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn about forks of a process with threads
        child = os.fork()
    if child:
        return child
    signal.alarm(LIMIT)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    leave(0)
    raise AssertionError("the child did not leave")


def ended_well(*children: int) -> None:
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


def main(scenarios: dict[str, Any]) -> None:
    warnings.simplefilter("error")
    name, *arguments = sys.argv[1:]
    scenarios[name](*(int(argument) if argument.isdigit() else argument for argument in arguments))
