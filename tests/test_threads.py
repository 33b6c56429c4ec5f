"""How many threads run: who decides, who is heard first, and what a fork or a crowd of callers changes."""

from functools import cache

import pytest
from programs import THREAD_COUNTS, program

COUNT = "import onnxpool; print(onnxpool.get_num_threads())"
ABSURD = 10**5


@cache
def granted() -> int:
    """What the machine grants a process that nobody told otherwise."""
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
    """ONNXPOOL_NUM_THREADS goes before OMP_NUM_THREADS, which goes before what the machine grants."""
    assert int(program(COUNT, **variables)) == min(expected, granted())


@pytest.mark.parametrize("value", [str(ABSURD), str(2**70), "abc", "", "0", "-3", "1.5"])
@pytest.mark.parametrize("name", THREAD_COUNTS)
def test_absurd_environment_is_harmless(name: str, value: str) -> None:
    """A count beyond reason is capped, and what is no count is passed over; a parallel call works."""
    text = COUNT + "\nimport numpy as np; onnxpool.max_pool(np.ones((4, 16, 128, 128), np.float32), 3)"

    assert 1 <= int(program(text, **{name: value})) <= max(granted(), 1024)


def test_absurd_arguments_are_capped() -> None:
    """A setting or argument beyond reason is capped, and the call that it is for works."""
    setting = f"onnxpool.set_num_threads({ABSURD}); assert onnxpool.get_num_threads() <= 1024"

    assert 1 <= int(program(TEAM.format(setting=setting, argument=ABSURD))) <= 1024


def test_affinity_limits_the_thread_count() -> None:
    """A process that is bound to one processor uses one thread."""
    text = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + COUNT

    assert program(text) == "1"


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
    for change in (onnxpool.set_num_threads, lambda n: onnxpool.num_threads(n).__enter__()):
        try:
            change(wrong)
        except (onnxpool.PoolError, onnxpool.PoolTypeError):
            continue
        raise AssertionError(wrong)
assert onnxpool.get_num_threads() == 4
"""


def test_context_goes_before_setting_goes_before_environment() -> None:
    """A `with` block beats the setting, in its own thread only and also when left by an exception; wrong ones fail."""
    assert program(SETTINGS, ONNXPOOL_NUM_THREADS="1") == ""


# Counts this process's threads right after a large call: a team is the number asked for, or 1.
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
    """The argument of a call beats the context, that the setting, that the environment; small work stays serial."""
    text = TEAM.format(setting=setting, argument=argument)

    assert int(program(text, ONNXPOOL_NUM_THREADS="1")) == expected


@pytest.mark.parametrize("shape", [(1, 17, 64, 64), (1, 3, 200, 200), (1, 1, 400, 300)])
def test_a_team_is_one_thread_or_the_number_asked_for(shape: tuple[int, ...]) -> None:
    """Work with fewer parts than threads were asked for changes the team to no number in between."""
    text = TEAM.format(setting=f"x = np.ones({shape}, np.float32)", argument=7)

    assert int(program(text)) in (1, 7)


CROWD = """
import os, threading
import numpy as np, onnxpool
callers = 8
x = np.ones((8, 16, 64, 64), np.float32)
both = threading.Barrier(callers + 1)
def call():
    both.wait()
    for _ in range(20):
        onnxpool.average_pool(x, 3, num_threads=2)
    both.wait()
    both.wait()
crowd = [threading.Thread(target=call) for _ in range(callers)]
alone = len(os.listdir('/proc/self/task'))
for caller in crowd:
    caller.start()
both.wait()
both.wait()
print(len(os.listdir('/proc/self/task')) - alone - callers)
both.wait()
for caller in crowd:
    caller.join()
"""


def test_many_callers_do_not_multiply_teams() -> None:
    """Eight Python threads that call at once do not each keep a team of their own."""
    assert int(program(CROWD)) < 4


FORK = """
import os, signal, warnings
import numpy as np, onnxpool
warnings.simplefilter('ignore', DeprecationWarning)  # newer Pythons warn of any fork of a process with threads
x = np.arange(8 * 16 * 64 * 64, dtype=np.float32).reshape(8, 16, 64, 64)
expected = onnxpool.average_pool(x, 3, num_threads=2).tobytes()
child = os.fork()
if child == 0:
    signal.alarm(10)  # a child that hangs dies of it
    os._exit(0 if onnxpool.average_pool(x, 3, num_threads=2).tobytes() == expected else 1)
print(os.waitpid(child, 0)[1])
"""


def test_parallel_calls_work_in_a_forked_child() -> None:
    """After a parallel call and a fork, the child's first parallel call answers, with the same bits."""
    assert program(FORK) == "0"
