"""Context managers of the public API can be entered repeatedly, nested, by threads and by tasks, and can decorate."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np
import pytest
from sessions import node_model, session

import onnxpool
import onnxpool.onnxruntime

WORK = 9
OUTSIDE = {"max_work": None, "threads": 5}
INSIDE = {"max_work": WORK, "threads": 2}

SCOPES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "max_work": lambda: onnxpool.limits(max_work=WORK),
    "threads": lambda: onnxpool.num_threads(2),
}
BOTH = pytest.mark.parametrize("name", SCOPES)


@pytest.fixture(autouse=True)
def five_threads() -> Iterator[None]:
    onnxpool.set_num_threads(5)
    yield
    onnxpool.set_num_threads(None)


def now(name: str) -> Any:
    """The limit or the number of threads that a call would have."""
    return onnxpool.config()[name]


@BOTH
def test_a_scope_can_be_entered_again(name: str) -> None:
    """The same object takes effect in each of its blocks, and nowhere else."""
    scope = SCOPES[name]()
    for _ in range(3):
        with scope as target:
            assert target == (None if name == "max_work" else 2)
            assert now(name) == INSIDE[name]
        assert now(name) == OUTSIDE[name]


@BOTH
def test_a_scope_can_be_entered_within_itself(name: str) -> None:
    """A nested block of the same object does not end the outer block, even by an exception."""
    scope = SCOPES[name]()
    with scope:
        with scope, scope:
            assert now(name) == INSIDE[name]
        with pytest.raises(KeyError), scope:
            raise KeyError
        assert now(name) == INSIDE[name]
    assert now(name) == OUTSIDE[name]


@BOTH
def test_scopes_may_be_left_in_any_order(name: str) -> None:
    """Blocks that do not enclose each other, as in an ExitStack, end their own settings and no others."""
    one, other = SCOPES[name](), SCOPES[name]()
    with ExitStack() as first:
        first.enter_context(one)
        second = ExitStack()
        second.enter_context(other)
        first.close()
        assert now(name) == INSIDE[name]
        second.close()
    assert now(name) == OUTSIDE[name]


def test_the_tightest_limit_holds_whatever_the_order() -> None:
    """A looser limit that is entered later, or left later, does not loosen a tighter limit."""
    tight, loose = onnxpool.limits(max_work=9), onnxpool.limits(max_work=90, max_output_bytes=7)
    tight.__enter__()
    loose.__enter__()
    assert onnxpool.config()["max_work"] == 9
    assert onnxpool.config()["max_output_bytes"] == 7
    tight.__exit__(None, None, None)
    assert onnxpool.config()["max_work"] == 90
    loose.__exit__(None, None, None)
    assert onnxpool.config()["max_work"] is None


@BOTH
def test_threads_share_a_scope(name: str) -> None:
    """Threads in blocks of the same object at the same time do not see each other's settings."""
    scope, inside, seen = SCOPES[name](), threading.Barrier(4), []

    def work(enters: bool) -> None:
        for _ in range(20):
            if enters:
                with scope, scope:
                    inside.wait(10)
                    seen.append(now(name) == INSIDE[name])
                    inside.wait(10)
            else:
                inside.wait(10)
                seen.append(now(name) == OUTSIDE[name])
                inside.wait(10)
            seen.append(now(name) == OUTSIDE[name])

    workers = [threading.Thread(target=work, args=(i < 3,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(seen) == 160
    assert all(seen)


@BOTH
def test_tasks_share_a_scope(name: str) -> None:
    """Tasks in blocks of the same object keep their settings apart, in whatever order blocks end."""
    scope = SCOPES[name]()

    async def work(steps: int) -> None:
        for _ in range(steps):
            with scope:
                await asyncio.sleep(0)
                assert now(name) == INSIDE[name]
                with scope:
                    await asyncio.sleep(0)
                assert now(name) == INSIDE[name]
            assert now(name) == OUTSIDE[name]
            await asyncio.sleep(0)

    async def all_tasks() -> None:
        await asyncio.gather(*(work(steps) for steps in (1, 2, 3, 4)))
        assert now(name) == OUTSIDE[name]

    asyncio.run(all_tasks())


@BOTH
def test_a_scope_decorates_functions(name: str) -> None:
    """A decorated function runs within the scope at each call, recursive ones too."""

    @SCOPES[name]()
    def inside(depth: int) -> Any:
        return inside(depth - 1) if depth else now(name)

    assert [inside(2), inside(0)] == [INSIDE[name]] * 2
    assert now(name) == OUTSIDE[name]


@BOTH
def test_leaving_a_block_elsewhere_is_an_error(name: str) -> None:
    """Leaving a block in another thread is an error, and the block stays in force where it was entered."""
    scope, errors = SCOPES[name](), []

    def leave() -> None:
        try:
            scope.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(str(error))

    with scope:
        other = threading.Thread(target=leave)
        other.start()
        other.join()
        assert now(name) == INSIDE[name]
    assert len(errors) == 1
    assert "in the same thread or task" in errors[0]


def test_records_can_be_taken_again() -> None:
    """Each block of the same `record_nodes` has a list of its own, and so do nested blocks."""
    recording = onnxpool.onnxruntime.record_nodes()
    model = node_model("AveragePool", [np.ones((1, 1, 3, 3))], {"kernel_shape": [2, 2]}, opset=19)
    with recording as first:
        one = session(model, "missing")
    with recording as second:
        two = session(model, "missing")
        with recording as third:
            three = session(model, "missing")
    assert [len(made) for made in (first, second, third)] == [1, 1, 1]
    assert len({id(made[0]) for made in (first, second, third)}) == 3
    del one, two, three
