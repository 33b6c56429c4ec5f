"""Scenarios of processes that embed the library. Each runs in a process of its own, with a time limit."""

import importlib.util

import pytest
import scenarios_forks
import scenarios_threads
from float_states import needs_flushing, needs_states
from programs import launch, spare_libomp
from support import TESTS


def scenario(theme: str, name: str, *arguments: object, **variables: str) -> None:
    """Run a function of a file of scenarios, which must succeed."""
    run = launch(str(TESTS / "helpers" / f"scenarios_{theme}.py"), name, *map(str, arguments), **variables)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", [name for name in dir(scenarios_forks) if name.startswith("fork_")])
def test_forks(name: str) -> None:
    """Children pool in parallel from their first call on, whatever ran when they were forked."""
    scenario("forks", name)


@pytest.mark.parametrize("name", scenarios_forks.RETURNING)
def test_children_return_from_handlers(name: str) -> None:
    """A handler that runs during a parallel call may fork, and the handler may return in the child."""
    scenario("forks", "return_from_a_handler", name)


@pytest.mark.parametrize("error", ["interrupt", "exit"])
def test_children_raise_in_handlers(error: str) -> None:
    """A handler that forks during a parallel call may raise in the child."""
    scenario("forks", "raise_in_the_child", error)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method: str) -> None:
    """multiprocessing's pools and executors work with every start method after a parallel call, and receive operators
    and plans."""
    scenario("forks", "multiprocess", method)


def test_prefork_server() -> None:
    """Workers forked from a master that has pooled serve with threads, and can be replaced."""
    scenario("forks", "prefork_server")


@pytest.mark.parametrize("turns", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_threads(turns: int) -> None:
    """Many mixed calls from each of 64 threads return the same bits as serial calls."""
    scenario("threads", "many_threads", turns)


@pytest.mark.parametrize("name", [name for name in dir(scenarios_threads) if name.startswith("share_")])
def test_threads_share(name: str) -> None:
    """Threads get right results from an object that they share, even while some of them change its caches."""
    scenario("threads", name, PYTHONMALLOC="debug")  # overwrites freed memory


def test_many_callers_few_threads() -> None:
    """The number of threads does not grow with the number of callers, such as 40."""
    scenario("threads", "many_callers_few_threads")


@pytest.mark.smoke
@pytest.mark.parametrize("where", ["tasks", "threads"])
def test_limits(where: str) -> None:
    """A limit on threads applies to one asyncio task, or to one thread."""
    scenario("threads", f"limits_in_{where}")


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "variable",
    [
        "OMP_NUM_THREADS=100000",
        "OMP_NUM_THREADS=abc",
        "OMP_STACKSIZE=bogus",
        "OMP_STACKSIZE=64G",
        "GOMP_STACKSIZE= 8388608 G",
        "OMP_THREAD_LIMIT=1",
        "OMP_DYNAMIC=true",
        "OMP_MAX_ACTIVE_LEVELS=0",
        "OMP_WAIT_POLICY=active",
        "OMP_PROC_BIND=true",
        "OMP_PLACES=bogus",
        "OMP_DISPLAY_ENV=true",
    ],
)
def test_misconfigured_openmp(variable: str) -> None:
    """No setting of OpenMP ends the process or changes a bit."""
    name, value = variable.split("=")
    spare_libomp(name, value)
    scenario("threads", "parallel_calls", **{name: value})


def test_no_room_for_threads() -> None:
    """If the system refuses to start threads, calls are serial."""
    scenario("threads", "no_room_for_threads")


@pytest.mark.parametrize("team", [1, 2])
def test_interrupts(team: int) -> None:
    """Ctrl-C ends a long call."""
    scenario("state", "interrupt", team)


@pytest.mark.parametrize("team", [1, 2])
def test_handlers_during_a_call(team: int) -> None:
    """Signal handlers run during a long call."""
    scenario("state", "handler_during_a_call", team)


def test_interrupt_beside_a_call() -> None:
    """Ctrl-C does not wait for the call of another thread."""
    scenario("state", "interrupt_beside_a_call")


@needs_states
@pytest.mark.parametrize("name", ["float_state", pytest.param("workers_of_another_state", marks=needs_flushing)])
def test_float_state(name: str) -> None:
    """The caller's rounding mode, flushing of subnormals and traps leak neither in nor out."""
    scenario("state", name)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("runtime", ["onnxruntime", "torch"])
def test_other_runtimes(runtime: str, order: str) -> None:
    """Other runtimes with their own threads work beside onnxpool, whether they are imported before or after it."""
    if importlib.util.find_spec(runtime) is None:
        pytest.skip(f"{runtime} is not installed")
    first = f"import {runtime}; " if order == "before" else ""
    text = f"{first}import scenarios_threads; scenarios_threads.beside({runtime!r}, {order!r})"
    run = launch("-c", text)
    assert run.returncode == 0, run.stderr
