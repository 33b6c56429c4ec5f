"""Next to busy processes, a call that waits for a worker longer than it computes halves the teams of later calls."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from onnxpool import about
from onnxpool.kernels.core import team  # type: ignore[attr-defined]  # compiled, and has no stub

with_threads = pytest.mark.skipif(not about.config()["openmp"], reason="built without OpenMP")
counted = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are counted in /proc")
SIZES = [2, 3, 6, 8, 64, 255, 256]
WORK, WAIT = 0.001, 0.050  # seconds of a call whose worker is late
APART = 0.005  # minimum seconds between calls for which the bound is promised
LATER = [0.032 * i for i in range(9)] + [0.25 * i for i in range(2, 9)]  # seconds of work before a wait
RISE, BRIEFLY, MOMENT = 0.032, 1.0, 0.000_25  # seconds: the first two as in team.h, and the shortest wait that counts

PROGRAM = """
import os, time
import numpy as np, onnxpool
from onnxpool.kernels.core import team
x = np.zeros((4, 64, 64, 64), np.float32)
call = lambda threads=2: onnxpool.max_pool(x, 3, num_threads=threads)
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
"""


def run(program: str) -> list[str]:
    """The output of a program in a new process, in which nothing else has limited teams."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


class Machine:
    """Calls that ask for some threads, on a made-up clock. A function of the thread count and time says who is late."""

    def __init__(self, wanted: int, late: Callable[[int, float], bool]) -> None:
        self.wanted, self.late, self.ceiling = wanted, late, team.Ceiling()
        self.teams: list[int] = []
        self.waits = 0

    def call(self, time: float) -> float:
        """Make a call, and return the time at which the next call begins."""
        threads = self.ceiling.threads(self.wanted, time)
        waits = threads > 1 and self.late(threads, time)
        end = time + WORK + WAIT * waits
        self.teams.append(threads)
        self.waits += waits
        if threads > 1:
            self.ceiling.note(threads, WORK, WAIT * waits, end)
        return max(end, time + APART)

    def run(self, calls: int, time: float = 10.0) -> float:
        for _ in range(calls):
            time = self.call(time)
        return time


def state_of(ceiling: Any, wanted: int, ended: float) -> tuple[int, float]:
    """Everything that matters after a wait that has just ended: the size of teams, and the length of the pause."""
    return ceiling.threads(wanted, ended), round(ceiling.until - ended, 3)


@pytest.mark.parametrize("wanted", SIZES)
def test_each_late_worker_halves_the_team(wanted: int) -> None:
    """Late workers halve teams down to a single thread. Smaller teams stay as they are."""
    ceiling, time, size = team.Ceiling(), 10.0, wanted
    while size > 1:
        assert [ceiling.threads(n, time) for n in (1, size, wanted)] == [1, size, size]
        ceiling.note(size, WORK, WAIT, time)
        size //= 2
        assert ceiling.until > time
    assert ceiling.threads(wanted, time) == ceiling.threads(2, time) == 1


@pytest.mark.parametrize("wanted", SIZES)
def test_teams_double_until_they_are_whole_again(wanted: int) -> None:
    """Teams double at the end of a pause, and then every 32 ms, without a call in between."""
    ceiling, size = team.Ceiling(), wanted
    while size > 1:
        ceiling.note(size, WORK, WAIT, 10.0)
        size //= 2
    assert ceiling.threads(wanted, ceiling.until - 1e-6) == 1
    sizes = [ceiling.threads(wanted, ceiling.until + 1e-6 + RISE * i) for i in range(9)]
    assert sizes == [min(wanted, 2 << i) for i in range(9)]
    assert ceiling.threads(wanted, 1e6) == wanted


@pytest.mark.parametrize(("wanted", "free"), [(64, 63), (64, 40), (64, 16), (256, 100), (8, 5), (2, 1), (3, 2)])
def test_teams_are_as_large_as_free_cores_allow(wanted: int, free: int) -> None:
    """If larger teams are always late, nearly all calls get the largest team, of a half, a quarter and so on, that is
    not late."""
    machine = Machine(wanted, lambda threads, time: threads > free)
    machine.run(20_000)
    fits = wanted
    while fits > free:
        fits //= 2
    assert machine.teams[10_000:].count(fits) > 0.98 * 10_000
    assert machine.waits < 0.003 * 20_000


@pytest.mark.parametrize("wanted", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_few_calls_wait_if_workers_are_late_at_random(wanted: int, seed: int) -> None:
    """Fewer than one call in a hundred waits, whatever the probabilities of late workers in teams that fit the free
    cores and in larger teams."""
    rng = random.Random(f"{wanted} {seed}")
    free, fits, others = rng.randint(1, wanted), rng.choice([0, 0.001, 0.01, 0.03]), rng.choice([0.01, 0.05, 0.3, 1])
    machine = Machine(wanted, lambda threads, time: rng.random() < (others if threads > free else fits))
    machine.run(20_000)
    assert machine.waits < 200, (free, fits, others)


@pytest.mark.parametrize("wanted", [2, 64])
def test_few_calls_wait_next_to_periodic_work(wanted: int) -> None:
    """Fewer than one call in a hundred waits, whatever the period in which something else takes all other cores."""
    for period in range(50, 3000, 59):
        for taken in (10, 100, 400):
            machine = Machine(wanted, lambda threads, time, p=period, t=taken: 1000 * time % p < t)  # type: ignore[misc]
            machine.run(4000)
            assert machine.waits < 40 + 10, (period, taken)  # 10 until the pauses are as long as they become


@pytest.mark.parametrize("wanted", SIZES)
def test_no_order_of_waits_exceeds_the_bound(wanted: int) -> None:
    """
    Of calls 5 ms apart, fewer than one in a hundred wait, even if workers are late at the worst moments.

    The next wait comes at once, after teams have doubled a few times, or when the next pause will be shorter. In a
    graph of all states after waits, each wait adds 1, less the calls since the last wait divided by 100. No cycle of
    the graph has a positive sum.
    """
    first = team.Ceiling()
    first.note(wanted, 0, MOMENT, 0)
    todo, found = [(first, 0.0)], {state_of(first, wanted, 0.0)}
    steps: list[tuple[tuple[int, float], tuple[int, float], float]] = []
    while todo:
        ceiling, ended = todo.pop()
        times = {ended + APART, *(ceiling.until + later for later in LATER)}
        for begun in (time + MOMENT for time in times if time >= ended + APART):
            threads, following, end = ceiling.threads(wanted, begun), copy(ceiling), begun + MOMENT
            if threads > 1:
                following.note(threads, 0, MOMENT, end)
                state = state_of(following, wanted, end)
                steps.append((state_of(ceiling, wanted, ended), state, 1 - (end - ended) / (100 * APART)))
                if state not in found:
                    found.add(state)
                    todo.append((following, end))
    assert 2 <= len(found) < 200
    gains = dict.fromkeys(found, 0.0)
    for _ in found:
        for state, following, gain in steps:
            gains[following] = max(gains[following], gains[state] + gain)
    assert all(gains[following] >= gains[state] + gain for state, following, gain in steps)


@pytest.mark.parametrize(("worked", "waited"), [(0.001, 0.001), (0.050, 0.040), (0.0, 0.0001)])
def test_a_wait_that_is_no_longer_than_the_work_limits_nothing(worked: float, waited: float) -> None:
    """A wait that is no longer than the work limits nothing, and neither does a wait of less than 0.2 ms."""
    ceiling = team.Ceiling()
    ceiling.note(64, worked, waited, 10.0)
    assert ceiling.threads(64, 10.0) == 64


def test_a_pause_grows_with_each_wait_and_is_bounded() -> None:
    """A pause takes 32 ms at first, 4 times as long after each further wait, and at most 4.096 s."""
    ceiling, time = team.Ceiling(), 10.0
    for pause in (0.032, 0.128, 0.512, 2.048, 4.096, 4.096):
        ceiling.note(2, WORK, WAIT, time)
        assert ceiling.until - time == pytest.approx(pause)
        time = ceiling.until + 0.9


@pytest.mark.parametrize("size", [2, 64])
def test_a_second_without_a_wait_shortens_the_next_pause(size: int) -> None:
    """A wait that comes after a second without waits starts a pause a quarter as long as the last pause."""
    ceiling, time = team.Ceiling(), 10.0
    for _ in range(3):
        ceiling.note(size, 0, MOMENT, time)
        time = ceiling.until
    for pause in (0.128, 0.032, 0.032):
        time += BRIEFLY + 2 * MOMENT
        ceiling.note(size, 0, MOMENT, time)
        assert ceiling.until - time == pytest.approx(pause)
        time = ceiling.until


@with_threads
@counted
def test_calls_run_alone_until_the_pause_is_over() -> None:
    """During a pause, calls on two threads run on one. After the pause, they have two again."""
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


@with_threads
@counted
def test_calls_on_many_threads_run_on_half_as_many() -> None:
    """After a late worker, a call on 8 threads has 4. Callers that ask for no more than 4 are not limited."""
    assert run("""
def team_of(wanted):
    call(wanted)
    return threads() - before + 1

for _ in range(5):
    team.note(0.001, 0.050, 8)  # about four seconds
team.allow_pauses(False)  # so that nothing else limits teams
print(team_of(8), team_of(3), team_of(4), team.paused() > 0)
""") == ["4", "3", "4", "True"]


@with_threads
@counted
def test_another_caller_keeps_its_team() -> None:
    """The thread whose worker was late steps down, and another thread with workers of its own does not."""
    assert run("""
import threading
for _ in range(4):
    team.note(0.001, 0.050)
call()
alone = threads() - before
def other():
    inside = threads()
    call()
    print(alone, threads() - inside, team.paused())

thread = threading.Thread(target=other)
thread.start()
thread.join()
""") == ["0", "1", "0.0"]


@with_threads
def test_the_next_owner_of_workers_goes_on_where_the_last_one_stopped() -> None:
    """Servers whose request threads come and go do not wait again in each new thread."""
    assert run("""
import threading
def first():
    for _ in range(4):
        team.note(0.001, 0.050)

def second():
    print(team.paused() > 0)

for target in (first, second):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
""") == ["True"]


@with_threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_child_of_a_fork_goes_on_where_its_parent_stopped() -> None:
    """A forked child has its parent's cores, and keeps the parent's limit. Afterwards, the child starts workers of its
    own."""
    assert run("""
call()
for _ in range(4):
    team.note(0.001, 0.050)
child = os.fork()
if not child:
    os._exit(0 if team.paused() > 0 and (call() == 0).all() else 1)
print(os.waitpid(child, 0)[1])
""") == ["0"]


@with_threads
def test_smaller_teams_return_the_same_bits() -> None:
    """One window is divided into as many shares as the team has threads, not into as many as were requested."""
    assert run("""
rng = np.random.default_rng(0)
for shape in ((2, 4, 1 << 18), (3, 1, 1 << 18), (1, 8, 1 << 18), (4, 2, 1 << 19)):
    x = rng.standard_normal(shape, np.float32)
    for pool in (onnxpool.global_average_pool, onnxpool.global_lp_pool, onnxpool.global_max_pool):
        alone = pool(x, num_threads=1).tobytes()
        for size in (2, 8, 32, 256):
            for _ in range(5):
                team.note(0.001, 0.050, size)
            assert pool(x, num_threads=256).tobytes() == alone, (shape, size)
print("equal")
""") == ["equal"]


@with_threads
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
                    reason="threads cannot be bound to different processors")
def test_waits_before_the_work_count_too() -> None:
    """A wait before the work counts too, as for a worker without a core that has not yet returned from the call
    before."""
    slow, unnoticed = map(int, run("""
import subprocess, sys

def delayed():  # seconds in which this thread lacked a core itself
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9

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
    while time.monotonic() < end or (not slow and time.monotonic() < end + 20):
        begun, delay = time.monotonic(), delayed()
        call()
        taken, delay = time.monotonic() - begun, delayed() - delay
        slow, unnoticed = slow + (taken > 0.02), unnoticed + (taken - delay > 0.02 and not team.paused())
finally:
    busy.kill()
print(slow, unnoticed)
"""))
    assert slow
    assert unnoticed <= slow // 4


@with_threads
def test_pauses_can_be_forbidden() -> None:
    """Pauses can be forbidden, as scenarios that count threads must do on a busy machine."""
    assert float(run("team.allow_pauses(False); team.note(0.001, 0.050); print(team.paused())")[0]) == 0


@with_threads
def test_a_wait_for_a_longer_region_pauses_nothing() -> None:
    """A thread that waits because another has a longer region causes no pause: the regions of an image are not equal
    tasks."""
    assert float(run("""
image = np.zeros((1, 64, 256, 256), np.float32)
regions, images = np.array([[0, 0, 80, 80], [0, 0, 250, 250]], np.float32), np.zeros(2, np.int64)
for _ in range(20):
    onnxpool.roi_align(image, regions, images, output_height=60, output_width=60, sampling_ratio=0, num_threads=2)
print(team.paused())
""")[0]) == 0
