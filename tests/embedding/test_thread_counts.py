"""The number of threads: the settings that determine it, and their order."""

import math
import os
from functools import cache
from pathlib import Path

import pytest
from programs import THREAD_COUNTS, program, spare_libomp

import onnxpool
from onnxpool import threads

COUNT = "import onnxpool; print(onnxpool.get_num_threads())"
ABSURD = 10**5
MOST = 256  # threads that a call or a setting may request
ONE_PROCESSOR = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
bound = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no os.sched_setaffinity")
counted = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")


@cache
def granted() -> int:
    """The number of threads that the machine grants to a process without settings."""
    return int(program(COUNT))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ONNXPOOL_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"}, 1),
        ({"ONNXPOOL_NUM_THREADS": "2", "OMP_NUM_THREADS": "1"}, 2),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "1,4"}, 1),
    ],
    ids=str,
)
def test_environment_chooses_the_thread_count(variables: dict[str, str], expected: int) -> None:
    """ONNXPOOL_NUM_THREADS overrides OMP_NUM_THREADS, which overrides the number that the machine grants."""
    assert int(program(COUNT, **variables)) == min(expected, granted())


@pytest.mark.one_in(4)
@pytest.mark.parametrize("value", [str(ABSURD), str(2**70), "9" * 5000, "abc", "", "0", "-3", "1.5"])
@pytest.mark.parametrize("name", THREAD_COUNTS)
def test_absurd_environment_is_harmless(name: str, value: str) -> None:
    """An absurd count, or a value that is no count, is replaced by the number of granted processors, and a parallel
    call works."""
    spare_libomp(name, value)
    text = COUNT + "\nimport numpy as np; onnxpool.max_pool(np.ones((4, 16, 128, 128), np.float32), 3)"

    assert int(program(text, **{name: value})) == granted()


@bound
@pytest.mark.parametrize("name", THREAD_COUNTS)
def test_a_variable_counts_for_no_more_than_the_processors_granted(name: str) -> None:
    """A process on one processor runs one thread, whatever its environment variables request."""
    assert program(ONE_PROCESSOR + COUNT, **{name: "2"}) == "1"


@counted
def test_absurd_arguments_are_capped() -> None:
    """An absurd setting or argument is capped, and its call works."""
    setting = f"onnxpool.set_num_threads({ABSURD}); assert onnxpool.get_num_threads() == {MOST}"

    assert int(program(TEAM.format(setting=setting, argument=ABSURD))) in (1, MOST)


@bound
def test_affinity_limits_the_thread_count() -> None:
    """A process that is bound to one processor uses one thread."""
    assert program(ONE_PROCESSOR + COUNT) == "1"


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/", {"cpu.max": "max 100000"}, math.inf),
        ("0::/", {}, math.inf),
        ("0::/", {"cpu.max": "nonsense"}, math.inf),
        ("0::/", {"cpu.max": "1000 0"}, math.inf),
        ("0::/a.slice/b.service", {"a.slice/b.service/cpu.max": "200000 100000"}, 2),
        ("0::/a.slice/b.service", {"a.slice/cpu.max": "50000 100000", "a.slice/b.service/cpu.max": "max 100000"}, 0.5),
        ("0::/not/mounted", {"cpu.max": "300000 100000"}, 3),
        ("3:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ("3:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "250000", "cpu/x/cpu.cfs_period_us": "100000"}, 2.5),
        ("9:cpuset:/x\n1:name=systemd:/x", {"cpu.max": "100000 100000"}, math.inf),
        ("", {"cpu.max": "100000 100000"}, math.inf),
    ],
)
def test_control_groups_limit_processors(
    membership: str, files: dict[str, str], expected: float, tmp_path: Path
) -> None:
    """The smallest quota of the process's group and of its ancestors counts, in both versions of control groups."""
    for name, text in {**files, "membership": membership + "\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    assert threads.quota(str(tmp_path), str(tmp_path / "membership")) == expected


def test_quota_becomes_whole_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fraction of a processor does not add a thread, but there is always one."""
    cpus = threads.granted()
    for quota, expected in ((0.5, 1), (1.5, 1), (2.0, min(2, cpus)), (math.inf, cpus)):
        monkeypatch.setattr(threads, "quota", lambda quota=quota: quota)
        assert threads.granted() == expected


SETTINGS = """
import threading
import onnxpool

seen = []
def elsewhere():
    seen.append(onnxpool.get_num_threads())

assert onnxpool.get_num_threads() == 1
onnxpool.set_num_threads(3)
assert onnxpool.get_num_threads() == 3
with onnxpool.num_threads(2):
    assert onnxpool.get_num_threads() == 2
    with onnxpool.num_threads(1):
        assert onnxpool.get_num_threads() == 1
    onnxpool.set_num_threads(4)
    assert onnxpool.get_num_threads() == 2
    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
assert onnxpool.get_num_threads() == 4
try:
    with onnxpool.num_threads(2):
        raise KeyError
except KeyError:
    pass
assert onnxpool.get_num_threads() == 4
assert seen == [4], seen
for wrong in (0, -1, 1.5, '2', None):
    for change in (onnxpool.num_threads, *[onnxpool.set_num_threads] * (wrong is not None)):
        try:
            change(wrong)
        except (onnxpool.PoolError, onnxpool.PoolTypeError):
            continue
        raise AssertionError(wrong)
assert onnxpool.get_num_threads() == 4
with onnxpool.num_threads(3) as given:
    assert given == 3
onnxpool.set_num_threads(None)
assert onnxpool.get_num_threads() == 1
"""


def test_context_goes_before_setting_goes_before_environment() -> None:
    """A `with` block overrides the setting, but only in its own thread, and only until the block is left, even by an
    exception."""
    assert program(SETTINGS, ONNXPOOL_NUM_THREADS="1") == ""


# Counts the threads of this process right after a large call: a team is the number requested, or 1.
TEAM = """
import os, numpy as np, onnxpool
x = np.ones((8, 16, 128, 128), np.float32)
def team():
    return len(os.listdir('/proc/self/task'))
kept = []
def scope(n):
    kept.append(onnxpool.num_threads(n))
    kept[-1].__enter__()
alone = team()
{setting}
onnxpool.max_pool(x, 3, num_threads={argument})
print(team() - alone + 1)
"""


@counted
@pytest.mark.parametrize(
    ("setting", "argument", "expected"),
    [
        ("", None, 1),
        ("", 2, 2),
        ("onnxpool.set_num_threads(2)", None, 2),
        ("onnxpool.set_num_threads(2)", 1, 1),
        ("scope(2)", None, 2),
        ("scope(2)", 1, 1),
        ("onnxpool.set_num_threads(2); scope(1)", None, 1),
        ("onnxpool.set_num_threads(1); scope(1)", 2, 2),
        ("x = x[:1, :15, :64, :64]", 2, 1),
    ],
)
def test_the_chosen_number_of_threads_runs(setting: str, argument: int | None, expected: int) -> None:
    """The argument overrides the context, which overrides the setting, which overrides the environment. Small work is
    serial."""
    text = TEAM.format(setting=setting, argument=argument)

    assert int(program(text, ONNXPOOL_NUM_THREADS="1")) == (expected if onnxpool.config()["openmp"] else 1)


@counted
@pytest.mark.parametrize("shape", [(1, 17, 64, 64), (1, 3, 200, 200), (1, 1, 400, 300)])
def test_a_team_is_one_thread_or_the_number_asked_for(shape: tuple[int, ...]) -> None:
    """If there are fewer parts than threads requested, the team is not reduced to a number in between."""
    text = TEAM.format(setting=f"x = np.ones({shape}, np.float32)", argument=7)

    assert int(program(text)) in (1, 7)
