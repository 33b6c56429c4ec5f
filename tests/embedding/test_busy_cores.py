"""Next to busy processes, a call that waits for a worker longer than it computes makes later calls single-threaded."""

import os
import subprocess
import sys

import pytest

from onnxpool import about

pytestmark = pytest.mark.skipif(not about.config()["openmp"], reason="built without OpenMP")

PROGRAM = """
import os, time
import numpy as np, onnxpool
from onnxpool.kernels.core import team
x = np.zeros((4, 64, 64, 64), np.float32)
call = lambda: onnxpool.max_pool(x, 3, num_threads=2)
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
"""


def run(program: str) -> list[str]:
    """The output of a program in a process of its own, whose calls nothing else has paused."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")
def test_calls_run_alone_until_the_pause_is_over() -> None:
    """A pause affects calls on two threads, and ends."""
    alone, later = run("""
for _ in range(3):
    team.note(0.001, 0.050)  # about half a second
call()
print(threads() - before)
while team.paused():
    time.sleep(0.01)
call()
print(threads() - before)
""")
    assert (alone, later) == ("0", "1")


def test_a_pause_grows_with_each_wait_and_is_bounded() -> None:
    """32 ms at first, 4 times as long after each further wait, at most 4.096 s."""
    pauses = [float(text) for text in run("""
for _ in range(6):
    team.note(0.001, 0.050)
    print(team.paused())
""")]
    for pause, most in zip(pauses, [0.032, 0.128, 0.512, 2.048, 4.096, 4.096], strict=True):
        assert 0 < pause <= most
    assert pauses[-1] > 2.048


def test_half_a_second_without_a_wait_shortens_the_next_pause() -> None:
    """A wait that comes later than that starts a pause a quarter as long as the last one."""
    sooner, later = map(float, run("""
def wait_after(seconds):
    begun = time.monotonic()
    while team.paused() or time.monotonic() < begun + seconds:
        pass
    team.note(0.001, 0.0)
    team.note(0.001, 0.010)
    print(team.paused())

team.note(0.001, 0.010)
wait_after(0.1)
wait_after(0.128 + 0.6)
"""))
    assert 0.032 < sooner <= 0.128
    assert 0 < later <= 0.032


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
                    reason="threads cannot be bound to different processors")
def test_waits_before_the_work_count_too() -> None:
    """After a call, a worker without a core has not yet returned to the pool, and the next call waits for it first."""
    slow, unnoticed = map(int, run("""
import subprocess, sys
first, second = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, {first})
call()
worker = max(map(int, os.listdir("/proc/self/task")))
os.sched_setaffinity(worker, {second})
os.setpriority(os.PRIO_PROCESS, worker, 10)  # so that waits are long
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
os.sched_setaffinity(busy.pid, {second})
slow = unnoticed = 0
end = time.monotonic() + 2
try:
    while time.monotonic() < end:
        begun = time.monotonic()
        call()
        waited = time.monotonic() > begun + 0.02
        slow, unnoticed = slow + waited, unnoticed + (waited and not team.paused())
finally:
    busy.kill()
print(slow, unnoticed)
"""))
    assert slow
    assert unnoticed <= slow // 4


@pytest.mark.parametrize(("worked", "waited"), [(0.001, 0.001), (0.050, 0.040), (0.0, 0.0001)])
def test_a_wait_that_is_no_longer_than_the_work_pauses_nothing(worked: float, waited: float) -> None:
    """Nor does a wait of less than a fifth of a millisecond."""
    assert float(run(f"team.note({worked}, {waited}); print(team.paused())")[0]) == 0


def test_pauses_can_be_forbidden() -> None:
    """Scenarios that count threads need this on a busy machine."""
    assert float(run("team.allow_pauses(False); team.note(0.001, 0.050); print(team.paused())")[0]) == 0


def test_a_wait_for_a_longer_region_pauses_nothing() -> None:
    """Regions of an image are not equal tasks: one thread may have worked all the time that another one waited."""
    assert float(run("""
image = np.zeros((1, 64, 256, 256), np.float32)
regions, images = np.array([[0, 0, 80, 80], [0, 0, 250, 250]], np.float32), np.zeros(2, np.int64)
for _ in range(20):
    onnxpool.roi_align(image, regions, images, output_height=60, output_width=60, sampling_ratio=0, num_threads=2)
print(team.paused())
""")[0]) == 0
