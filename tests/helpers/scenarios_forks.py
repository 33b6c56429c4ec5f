"""Scenarios of forks: see host.py."""

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
from host import (
    LARGE,
    LIBOMP,
    LIMIT,
    ended_well,
    first_parallel_call_works,
    fork,
    long_call,
    long_regions,
    main,
    next_parallel_call_works,
    parallel,
    parallel_call_works,
    running,
)

import onnxpool


def fork_after_a_parallel_call() -> None:
    """The child's first parallel call works, with a team, and so does the parent's next call."""
    parallel_call_works()
    ended_well(fork(first_parallel_call_works))
    next_parallel_call_works()


def fork_before_any_call() -> None:
    """A child of a process that has never pooled pools in parallel."""
    ended_well(fork(first_parallel_call_works), fork(first_parallel_call_works))
    first_parallel_call_works()


def fork_and_exit() -> None:
    """A child may end like any program, by leaving the interpreter, with or without parallel calls before."""
    parallel_call_works()
    ended_well(fork(first_parallel_call_works, sys.exit), fork(lambda: None, sys.exit))
    parallel_call_works()


def fork_twice() -> None:
    """A child that has pooled can fork. Its child and its sibling pool in parallel, and then all processes do."""
    def child() -> None:
        first_parallel_call_works()
        ended_well(fork(first_parallel_call_works))
        next_parallel_call_works()

    parallel_call_works()
    ended_well(fork(child))
    ended_well(fork(child), fork(child))
    parallel_call_works()


def fork_with_threads_in_kernels() -> None:
    """While four threads pool without pause, each child of a fifth pools in parallel, and the four stay right."""
    expected = parallel()
    stop = threading.Event()

    def work() -> int:
        wrong = 0
        while not stop.is_set():
            wrong += parallel() != expected
        return wrong

    with ThreadPoolExecutor(4) as pool:
        crowd = [pool.submit(work) for _ in range(4)]
        for _ in range(10):
            ended_well(fork(first_parallel_call_works))
        stop.set()
        assert [caller.result() for caller in crowd] == [0] * 4


def fork_from_another_thread() -> None:
    """A thread with a team forks while the main thread has another team."""
    parallel_call_works()

    def work() -> None:
        parallel_call_works()
        ended_well(fork(first_parallel_call_works))
        parallel_call_works()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    parallel_call_works()


def fork_in_a_handler() -> None:
    """A handler that runs during a parallel call may fork. The child pools, with libgomp on one thread."""
    children: list[int] = []
    onnxpool.max_pool(LARGE[:, :1], 2, num_threads=1)  # imports what calls need, which the handler must not interrupt
    signal.signal(signal.SIGALRM, lambda *_: children.append(fork(serial_only)))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    long_call(2, images=4)
    assert children
    ended_well(*children)
    ended_well(fork(first_parallel_call_works))


def serial_only() -> None:
    before = running()
    parallel_call_works()
    assert LIBOMP or running() == before
    ended_well(fork(parallel_call_works))


def return_from_a_handler(name: str) -> None:
    """A child that returns from the handler, to a call whose workers it lacks, completes the call, and can pool."""
    run = RETURNING[name]()
    began = time.monotonic()
    expected = run(1).tobytes()
    early = (time.monotonic() - began) / 8  # two threads take at least half as long
    children: list[int] = []

    def split(*_: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            children.append(os.fork())
        if not children[0]:
            signal.alarm(LIMIT)

    signal.signal(signal.SIGALRM, split)
    signal.setitimer(signal.ITIMER_REAL, early)
    result = run(2).tobytes()
    assert children
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert result == expected
    parallel_call_works()
    if children[0]:
        ended_well(*children)
        ended_well(fork(first_parallel_call_works))
    else:
        ended_well(fork(parallel_call_works))
        os._exit(0)


def returning_unpool() -> Callable[[int], Any]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, 1, 1000, 1000), np.float32).astype(np.float16)
    places = rng.integers(0, 4 * 10**6, x.shape) + np.arange(8)[:, None, None, None] * 4 * 10**6
    return lambda team: onnxpool.max_unpool(x, places, (2, 2), strides=(2, 2), num_threads=team)


def returning_whole() -> Callable[[int], Any]:
    x = np.random.default_rng(1).standard_normal((1, 1, 1 << 24), np.float32)
    return lambda team: onnxpool.global_lp_pool(x, p=2.5, opset=1, num_threads=team)


def returning_windows() -> Callable[[int], Any]:
    return lambda team: long_call(team, images=1)


def returning_regions() -> Callable[[int], Any]:
    return lambda team: long_regions(team, 500)


RETURNING = {"windows": returning_windows, "regions": returning_regions, "unpool": returning_unpool,
             "whole": returning_whole}


def raise_in_the_child(error: str) -> None:
    """A handler that forks and then raises in the child interrupts the call there, and not in the parent."""
    onnxpool.max_pool(LARGE[:, :1], 2, num_threads=1)
    children: list[int] = []

    def split(*_: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            children.append(os.fork())
        if not children[0]:
            signal.alarm(LIMIT)
            raise SystemExit(0) if error == "exit" else KeyboardInterrupt

    signal.signal(signal.SIGALRM, split)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        long_call(2, images=4)
    except KeyboardInterrupt:
        assert not children[0]
        parallel_call_works()
        os._exit(0)
    assert children[0]
    ended_well(*children)


def multiprocess(method: str) -> None:
    """The processes of a multiprocessing pool receive operators and plans, and pool in parallel."""
    expected = parallel()
    operator = onnxpool.AveragePool(kernel_shape=3, pads=[1, 1, 1, 1])
    plan = operator.plan(LARGE.shape, LARGE.dtype)
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with context.Pool(2) as pool:
            results = pool.starmap_async(call, [(operator, LARGE), (plan, LARGE)] * 2).get(LIMIT)
        assert results == [expected] * 4
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            results = list(executor.map(call, [operator, plan] * 2, [LARGE] * 4, timeout=LIMIT))
        assert results == [expected] * 4
    parallel_call_works()


def call(operator: Callable[..., Any], x: Any) -> bytes:
    y: bytes = operator(x, num_threads=2).tobytes()
    return y


def prefork_server() -> None:
    """A master warms up and forks workers that serve one socket with threads; a worker that is killed is replaced."""
    expected = parallel()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            while connection.recv(1):
                connection.sendall(b"%d %d\n" % (parallel() == expected, os.getpid()))

    def serve() -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    def ask(requests: int) -> set[int]:
        with socket.create_connection(listener.getsockname(), timeout=LIMIT) as client, client.makefile() as lines:
            answers = []
            for _ in range(requests):
                client.sendall(b"?")
                answers.append(lines.readline().split())
        assert all(right == "1" for right, _ in answers)
        return {int(worker) for _, worker in answers}

    workers = [fork(serve) for _ in range(3)]
    with ThreadPoolExecutor(8) as clients:
        seen = set().union(*clients.map(ask, [8] * 16))
        assert seen <= set(workers)
        parallel_call_works()
        lost = workers.pop(0)
        os.kill(lost, signal.SIGKILL)
        assert os.waitpid(lost, 0)[1] == signal.SIGKILL
        workers.append(fork(serve))
        seen = set().union(*clients.map(ask, [8] * 16))
        assert seen <= set(workers)
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    ended_well(*workers)


if __name__ == "__main__":
    main(globals())
