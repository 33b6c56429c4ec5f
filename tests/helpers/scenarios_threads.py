"""Scenarios about threads, and about runtimes that have threads of their own: see host.py."""

import asyncio
import contextvars
import functools
import itertools
import resource
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from host import LARGE, LIBOMP, LIMIT, SMALL, WORKERS, ended_well, fork, main, parallel_call_works, running

import onnxpool


def jobs() -> list[tuple[Any, list[Any]]]:
    """One operator of every kind with its inputs; the last one is large."""
    whole = (SMALL * 40).astype(np.int8)
    return [
        (onnxpool.AveragePool(kernel_shape=3, pads=1, count_include_pad=1), [SMALL]),
        (onnxpool.AveragePool(kernel_shape=(2, 3), opset=19), [SMALL.astype(np.float16)]),
        (onnxpool.MaxPool(kernel_shape=2, strides=2), [SMALL]),
        (onnxpool.GlobalAveragePool(), [SMALL.astype(np.float64)]),
        (onnxpool.GlobalMaxPool(channels_last=True), [SMALL]),
        (onnxpool.GlobalLpPool(p=3), [SMALL]),
        (onnxpool.MinPool(kernel_shape=3, axes=(2, 3)), [(SMALL * 40).astype(np.int16)]),
        (onnxpool.GlobalMinPool(axes=(1, 2)), [SMALL]),
        (onnxpool.LpPool(kernel_shape=3), [SMALL]),
        (onnxpool.NhwcMaxPool(kernel_shape=2), [np.ascontiguousarray(np.moveaxis(whole, 1, -1))]),
        (onnxpool.QLinearAveragePool(kernel_shape=2), [whole, 0.1, 3, 0.05, -4]),
        (onnxpool.QLinearGlobalAveragePool(), [whole, 0.1, 3, 0.05, -4]),
        (onnxpool.MaxUnpool(kernel_shape=1), [SMALL, np.arange(SMALL.size).reshape(SMALL.shape)]),
        (onnxpool.MaxRoiPool(pooled_shape=(2, 2)), [SMALL, np.array([[0, 1, 1, 6, 7]], np.float32)]),
        (onnxpool.RoiAlign(output_height=2, output_width=3),
         [SMALL, np.array([[0.3, 1.1, 6.2, 7]], np.float32), np.array([0])]),
        (onnxpool.MaxPool(kernel_shape=3), [LARGE]),
    ]


def many_threads(turns: int) -> None:
    """64 threads that share objects and arrays call every operator many times, and get the same bits as one thread."""
    callers, seldom = 64, 500
    operators = jobs()
    work = [(operator.plan(arrays[0].shape, arrays[0].dtype), arrays) for operator, arrays in operators] + operators
    expected = [call(*arrays, num_threads=1).tobytes() for call, arrays in work]
    start = threading.Barrier(callers)

    def turn(caller: int) -> int:
        wrong = 0
        start.wait()
        for turn in range(turns):
            job = len(work) - 1 if turn % seldom == caller else (caller + turn) % (len(work) - 1)
            call, arrays = work[job]
            wrong += call(*arrays, num_threads=1 + (caller + turn) % 3).tobytes() != expected[job]
        return wrong

    with ThreadPoolExecutor(callers) as pool:
        assert sum(pool.map(turn, range(callers))) == 0


def many_callers_few_threads() -> None:
    """40 threads that ask for teams of 4, first in turn and then at once, get only two teams in total."""
    callers, size = 40, 4
    before = running()
    start, end = threading.Barrier(callers + 1), threading.Barrier(callers + 1)
    alone, most = threading.Lock(), 0

    def work() -> None:
        with alone:
            onnxpool.average_pool(LARGE, 3, num_threads=size)
        start.wait()
        for _ in range(20):
            onnxpool.average_pool(LARGE, 3, num_threads=size)
        end.wait()
        end.wait()

    crowd = [threading.Thread(target=work) for _ in range(callers)]
    for caller in crowd:
        caller.start()
    start.wait()
    while end.n_waiting < callers:
        most = max(most, running())
    end.wait()
    most = max(most, running())
    end.wait()
    for caller in crowd:
        caller.join()
    assert WORKERS <= most - before - callers <= 2 * (size - 1) * WORKERS, most - before - callers
    deadline = time.monotonic() + LIMIT
    kept = 2 * (size - 1) * LIBOMP
    while running() > before + kept and time.monotonic() < deadline:
        time.sleep(0.01)
    assert before <= running() <= before + kept


def limits_in_tasks() -> None:
    """A limit holds for the task that sets it, its children and `to_thread`, whatever other tasks set meanwhile."""
    async def task(limit: int) -> None:
        for _ in range(10):
            with onnxpool.num_threads(limit):
                await asyncio.sleep(0.001)
                assert onnxpool.get_num_threads() == limit
                assert await asyncio.to_thread(onnxpool.get_num_threads) == limit
                assert await asyncio.create_task(child()) == limit
                with onnxpool.num_threads(limit + 10):
                    await asyncio.sleep(0.001)
                    assert onnxpool.get_num_threads() == limit + 10
            assert onnxpool.get_num_threads() == outside
            await asyncio.sleep(0)

    async def child() -> int:
        await asyncio.sleep(0.001)
        return onnxpool.get_num_threads()

    async def main() -> None:
        await asyncio.gather(*(task(limit) for limit in range(1, 9)))

    outside = onnxpool.get_num_threads()
    asyncio.run(main())
    assert onnxpool.get_num_threads() == outside


def limits_in_threads() -> None:
    """A limit holds for the thread that sets it, and for other threads only if they run in a copy of its context.

    Python can give every new thread such a copy. Free-threaded builds do so by default, since 3.14.
    """
    callers, outside = 8, 3 if getattr(sys.flags, "thread_inherit_context", False) else 5
    inside = threading.Barrier(callers)

    def work(limit: int) -> int:
        with onnxpool.num_threads(limit):
            inside.wait()
            seen = onnxpool.get_num_threads()
            inside.wait()
        assert onnxpool.get_num_threads() == outside
        return seen

    onnxpool.set_num_threads(5)
    with ThreadPoolExecutor(callers) as pool, onnxpool.num_threads(3):
        assert list(pool.map(work, range(1, callers + 1))) == list(range(1, callers + 1))
        assert onnxpool.get_num_threads() == 3
        assert pool.submit(onnxpool.get_num_threads).result() == outside
        context = contextvars.copy_context()
        assert pool.submit(context.run, onnxpool.get_num_threads).result() == 3


def parallel_calls() -> None:
    """Parallel calls return the same bits as serial calls, whatever the environment says, and the process survives."""
    parallel_call_works()
    onnxpool.average_pool(LARGE, 3)
    ended_well(fork(parallel_call_works))


def no_room_for_threads() -> None:
    """If no thread can be started, calls run serially and correctly; once threads can start again, calls use them."""
    parallel_call_works()
    before = running()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    serial = onnxpool.average_pool(LARGE, 3, pads=1, num_threads=1).tobytes()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), limits[1]))
    assert onnxpool.average_pool(LARGE, 3, pads=1, num_threads=64).tobytes() == serial
    assert running() == before
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert onnxpool.average_pool(LARGE, 3, pads=1, num_threads=64).tobytes() == serial
    assert running() == before + 62 * WORKERS


def use_onnxruntime() -> Callable[[], None]:
    import onnx
    import onnxruntime as ort

    node = onnx.helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, LARGE.shape) for name in "xy"]
    graph = onnx.helper.make_graph([node], "pool", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def use() -> None:
        y = session.run(None, {"x": LARGE})[0]
        np.testing.assert_allclose(y, onnxpool.average_pool(LARGE, 3, pads=1, num_threads=2), rtol=1e-4, atol=1e-6)

    return use


def use_torch() -> Callable[[], None]:
    import torch

    torch.set_num_threads(2)

    def use() -> None:
        y = torch.nn.functional.max_pool2d(torch.from_numpy(LARGE), 3).numpy()
        assert y.tobytes() == onnxpool.max_pool(LARGE, 3, strides=3, num_threads=2).tobytes()
        mine = torch.from_numpy(onnxpool.average_pool(LARGE, 3, pads=1, num_threads=2))
        assert torch.isfinite(mine).all()

    return use


def beside(runtime: str, order: str) -> None:
    """Another runtime with its own threads, imported before or after onnxpool, alternates with onnxpool and forks."""
    prepare = {"onnxruntime": use_onnxruntime, "torch": use_torch}[runtime]
    assert (runtime in sys.modules) == (order == "before")
    if order == "after":
        parallel_call_works()
    use = prepare()
    for _ in range(5):
        use()
        parallel_call_works()
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(task) for task in (use, parallel_call_works) * 4]:
            future.result()
    ended_well(fork(parallel_call_works))
    use()
    parallel_call_works()


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of functions that start together, each in a thread of its own."""
    start = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


def share_scales() -> None:
    """Threads that call a quantised plan with scales of their own get the bits of their scales."""
    x = (SMALL * 40).astype(np.int8)
    plan = onnxpool.QLinearAveragePool(kernel_shape=2).plan(x.shape, x.dtype)
    kinds = [(np.float32(0.1 + 0.01 * i), np.int8(i), np.float32(0.05), np.int8(-i)) for i in range(4)]
    expected = [plan(x, *scales).tobytes() for scales in kinds]

    def work(first: int) -> int:
        return sum(plan(x, *kinds[i % len(kinds)]).tobytes() != expected[i % len(kinds)]
                   for i in range(first, first + 20_000))

    assert at_once(*(functools.partial(work, first) for first in range(4))) == [0] * 4


def share_tuned_plans() -> None:
    """A plan is called while another thread tunes it, so that the pools that calls are using are replaced."""
    from onnxpool.planning import layout, ways

    plan: Any = onnxpool.MaxPool(kernel_shape=3).plan(SMALL.shape, SMALL.dtype)
    expected, tuned = plan(SMALL).tobytes(), threading.Event()
    (memory,) = plan._pools
    plan.tuned(SMALL, seconds=0.001)
    (key,) = ways.learned
    one, other, *_ = (way._replace(threads=1) for way in layout.pools_of(plan.request, *memory))

    def tune() -> int:
        before = plan._pools
        for _ in range(2000):
            for ways.learned[key] in (one, other):
                plan.tuned(SMALL)
                plan(SMALL)
        tuned.set()
        return int(plan._pools is before)

    def call() -> int:
        wrong = 0
        while not tuned.is_set():
            wrong += plan(SMALL, num_threads=1).tobytes() != expected
        return wrong

    assert at_once(tune, call, call) == [0] * 3


def share_renewed_plans() -> None:
    """A plan is called while another thread keeps replacing its pools, without the pauses that tuning makes."""
    callers = 3
    plan: Any = onnxpool.MaxPool(kernel_shape=3).plan(SMALL.shape, SMALL.dtype)
    expected, done = plan(SMALL).tobytes(), threading.Event()
    arrays = [SMALL.copy() for _ in range(callers)]  # shared reference counts would put the threads' calls in order

    def renew() -> int:
        for _ in range(2000):
            plan._renew()
            plan(SMALL)
        done.set()
        return 0

    def call(x: Any) -> int:
        wrong = 0
        while not done.is_set():
            wrong += plan(x, num_threads=1).tobytes() != expected
        return wrong

    assert at_once(renew, *(functools.partial(call, x) for x in arrays)) == [0] * (callers + 1)


def share_operators() -> None:
    """Functions and operators are called on arrays of many shapes while another thread clears the caches."""
    arrays = [np.ascontiguousarray(SMALL[:, :, :rows]) for rows in range(4, 9)]
    operator = onnxpool.AveragePool(kernel_shape=3)
    expected, done = [operator(x).tobytes() for x in arrays], threading.Event()

    def clear() -> int:
        while not done.is_set():
            onnxpool.clear_caches()
        return 0

    def call(first: int) -> int:
        wrong = 0
        for i in range(first, first + 1500):
            x, bits = arrays[i % len(arrays)], expected[i % len(arrays)]
            wrong += operator(x).tobytes() != bits
            wrong += onnxpool.average_pool(x, 3).tobytes() != bits
        done.set()
        return wrong

    assert at_once(clear, *(functools.partial(call, first) for first in range(3))) == [0] * 4


def share_wisdom() -> None:
    """Wisdom is read while another thread learns."""
    from onnxpool.planning import ways

    way, done = ways.Way("direct", False, 1.0, 1), threading.Event()
    ways.learned.update((f"problem {i}", way) for i in range(10_000))

    def learn() -> None:
        for i in itertools.count():
            ways.learned[f"other {i}"] = way
            time.sleep(1e-5)
            if done.is_set():
                break

    def read() -> None:
        try:
            for _ in range(100):
                assert len(onnxpool.wisdom()["ways"]) >= 10_000
        finally:
            done.set()

    at_once(learn, read)


def share_capsules() -> None:
    """Of the threads that read the same capsule, one gets the tensor, and the tensor is deleted once."""
    from producer import TWICE, Producer

    for _ in range(400):
        producer = Producer(np.arange(6.0))
        capsule = producer.__dlpack__(max_version=(1, 0))

        def read(capsule: Any = capsule) -> Any:
            try:
                return onnxpool.from_dlpack(capsule)
            except onnxpool.PoolError:
                return None

        arrays = [array for array in at_once(read, read, read) if array is not None]
        assert [array.tolist() for array in arrays] == [[0, 1, 2, 3, 4, 5]]
        del arrays, capsule, read
        assert (producer.deleted, TWICE) == (1, [])


if __name__ == "__main__":
    main(globals())
