"""Next to busy processes, a call that waits for a worker longer than it computes makes later calls single-threaded."""

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
team.note(0.001, 0.050)
for _ in range(7):
    team.note(0.001, 0.050)  # about a second
call()
print(threads() - before)
while team.paused():
    time.sleep(0.01)
call()
print(threads() - before)
""")
    assert (alone, later) == ("0", "1")


def test_a_pause_grows_with_each_wait_and_is_bounded() -> None:
    """16 ms at first, 4 times as long after each further wait, at most 1024 ms."""
    pauses = [float(text) for text in run("""
for _ in range(5):
    team.note(0.001, 0.050)
    print(team.paused())
""")]
    for pause, most in zip(pauses, [0.016, 0.064, 0.256, 1.024, 1.024], strict=True):
        assert 0 < pause <= most
    assert pauses[-1] > 0.256


def test_calls_that_did_not_wait_shorten_the_next_pause() -> None:
    """After many calls without a wait, a pause is short again."""
    assert 0 < float(run("""
team.note(0.001, 0.050)
team.note(0.001, 0.050)
for _ in range(100):
    team.note(0.001, 0.0)
while team.paused():
    pass
team.note(0.001, 0.050)
print(team.paused())
""")[0]) <= 0.016


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
