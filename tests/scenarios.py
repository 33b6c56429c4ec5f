"""What a host does around a library: forks, threads, signals, floating-point states, other runtimes.

Each function is a program: `python scenarios.py NAME` runs it in a process of its own and ends with 0 if all held.
test_embedding.py runs them; each says in its docstring what holds.
"""

import asyncio
import contextvars
import ctypes
import ctypes.util
import multiprocessing
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import onnxpool
from onnxpool import threads

LARGE = np.random.default_rng(3).standard_normal((8, 16, 64, 65), np.float32)  # enough for a team of threads
SMALL = LARGE[:1, :3, :9, :8]
LIMIT = 60  # seconds after which a child that hangs is ended
PROMPT = 2.0  # seconds in which a signal must arrive, on a machine that is busy with other things too


def parallel(x: Any = LARGE) -> bytes:
    return onnxpool.average_pool(x, 3, pads=1, num_threads=2).tobytes()


def running() -> int:
    """The threads of this process."""
    return len(os.listdir("/proc/self/task"))


def parallel_call_works() -> None:
    """The call runs on two threads, or on those that are left of an earlier one, and gives the bits of a serial call."""
    serial = onnxpool.average_pool(LARGE, 3, pads=1, num_threads=1).tobytes()
    assert parallel() == serial


def first_parallel_call_works() -> None:
    """As `parallel_call_works`, in a process that must get a worker for it."""
    before = running()
    parallel_call_works()
    assert running() == before + 1, (before, running())


# Forks


def fork(work: Callable[[], None]) -> int:
    """A child that ends with 0 if the work was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork of a process with threads
        child = os.fork()
    if child:
        return child
    signal.alarm(LIMIT)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended_well(*children: int) -> None:
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


def fork_after_a_parallel_call() -> None:
    """The child's first parallel call works, with a team; so does the parent's next one."""
    parallel_call_works()
    ended_well(fork(first_parallel_call_works))
    first_parallel_call_works()


def fork_before_any_call() -> None:
    """A child of a process that never pooled pools in parallel."""
    ended_well(fork(first_parallel_call_works), fork(first_parallel_call_works))
    first_parallel_call_works()


def fork_twice() -> None:
    """A child that pooled forks too: its child, its sibling and all of them again work in parallel."""
    def child() -> None:
        first_parallel_call_works()
        ended_well(fork(first_parallel_call_works))
        first_parallel_call_works()

    parallel_call_works()
    ended_well(fork(child))
    ended_well(fork(child), fork(child))
    parallel_call_works()


def fork_with_threads_in_kernels() -> None:
    """While four threads pool without a pause, each child of a fifth pools in parallel, and the four stay right."""
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
    """A thread with a team of its own forks, beside the main thread's team."""
    parallel_call_works()

    def work() -> None:
        parallel_call_works()
        ended_well(fork(first_parallel_call_works))
        parallel_call_works()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    parallel_call_works()


def fork_in_a_handler() -> None:
    """A signal handler that runs during a parallel call may fork; the child pools on one thread, and the call ends well."""
    children: list[int] = []
    signal.signal(signal.SIGALRM, lambda *_: children.append(fork(serial_only)))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    long_call(2, images=8)
    assert children
    ended_well(*children)
    ended_well(fork(first_parallel_call_works))


def serial_only() -> None:
    before = running()
    parallel_call_works()
    assert running() == before
    ended_well(fork(parallel_call_works))


def multiprocess(method: str) -> None:
    """The processes of a multiprocessing pool get operators and plans, and pool in parallel."""
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
        seen = set().union(*clients.map(ask, [20] * 16))
        assert seen <= set(workers)
        parallel_call_works()
        lost = workers.pop(0)
        os.kill(lost, signal.SIGKILL)
        assert os.waitpid(lost, 0)[1] == signal.SIGKILL
        workers.append(fork(serve))
        seen = set().union(*clients.map(ask, [20] * 16))
        assert seen <= set(workers)
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    ended_well(*workers)


# Threads


def jobs() -> list[tuple[Callable[..., Any], list[Any]]]:
    """Calls of every kind on small arrays, and the last one on a large array."""
    whole = (SMALL * 40).astype(np.int8)
    plan = onnxpool.AveragePool(kernel_shape=3, pads=1, count_include_pad=1).plan(SMALL.shape, SMALL.dtype)
    return [
        (plan, [SMALL]),
        (onnxpool.MaxPool(kernel_shape=2, strides=2), [SMALL]),
        (onnxpool.AveragePool(kernel_shape=(2, 3)), [SMALL.astype(np.float16)]),
        (onnxpool.GlobalAveragePool(), [SMALL.astype(np.float64)]),
        (onnxpool.GlobalLpPool(p=3), [SMALL]),
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


def many_threads() -> None:
    """64 threads with 10,000 calls each, of all operators, share objects and arrays and get the bits of serial calls."""
    callers, turns, seldom = 64, 10_000, 500
    work = jobs()
    expected = [call(*arrays, num_threads=1).tobytes() for call, arrays in work]
    start = threading.Barrier(callers)

    def turn(caller: int) -> int:
        wrong = 0
        start.wait()
        for turn in range(turns):
            job = len(work) - 1 if turn % seldom == caller else (caller + turn) % (len(work) - 1)
            call, arrays = work[job]
            wrong += call(*arrays, num_threads=2).tobytes() != expected[job]
        return wrong

    with ThreadPoolExecutor(callers) as pool:
        assert sum(pool.map(turn, range(callers))) == 0


def many_callers_few_threads() -> None:
    """40 threads that ask for teams of 4 have two teams between them, while they run and afterwards."""
    callers, size = 40, 4
    before = running()
    start, end = threading.Barrier(callers + 1), threading.Barrier(callers + 1)
    most = 0

    def work() -> None:
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
    assert before + callers < most <= before + callers + 2 * (size - 1), most - before - callers
    deadline = time.monotonic() + LIMIT
    while running() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert running() == before


def limits_in_tasks() -> None:
    """A limit holds for the asyncio task that set it, its children and `to_thread`, whatever other tasks set meanwhile."""
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
    """A limit holds for the thread that set it; others have their own or the setting, unless they run in its context."""
    callers = 8
    inside = threading.Barrier(callers)

    def work(limit: int) -> int:
        with onnxpool.num_threads(limit):
            inside.wait()
            seen = onnxpool.get_num_threads()
            inside.wait()
        assert onnxpool.get_num_threads() == 5
        return seen

    onnxpool.set_num_threads(5)
    with ThreadPoolExecutor(callers) as pool, onnxpool.num_threads(3):
        assert list(pool.map(work, range(1, callers + 1))) == list(range(1, callers + 1))
        assert onnxpool.get_num_threads() == 3
        assert pool.submit(onnxpool.get_num_threads).result() == 5
        context = contextvars.copy_context()
        assert pool.submit(context.run, onnxpool.get_num_threads).result() == 3


def parallel_calls() -> None:
    """Parallel calls have the bits of serial ones, whatever the environment says, and the process lives."""
    parallel_call_works()
    onnxpool.average_pool(LARGE, 3)
    ended_well(fork(parallel_call_works))


def no_room_for_threads() -> None:
    """Where no thread can be started calls are serial and right, and parallel again once there is room."""
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
    assert running() == before + 62


def affinity() -> None:
    """The processors that a process is bound to when it imports the library are its threads; told at import."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    assert threads.granted() == 1
    child = "import onnxpool; raise SystemExit(onnxpool.get_num_threads())"
    assert os.waitstatus_to_exitcode(os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", child) << 8) == 1


# Signals


def long_call(team: int, images: int = 64) -> Any:
    """A call that takes many seconds and little memory: its input is one value."""
    x = np.broadcast_to(np.float32(3), (images, 64, 512, 512))
    return onnxpool.lp_pool(x, 8, strides=8, p=2.5, opset=1, num_threads=team)


def interrupt(team: int) -> None:
    """Ctrl-C ends a long call within moments, as KeyboardInterrupt; teams and forks work afterwards."""
    sent: list[float] = []

    def press() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    for _ in range(2):
        threading.Timer(0.3, press).start()
        try:
            long_call(team)
        except KeyboardInterrupt:
            late = time.monotonic() - sent.pop()
        else:
            raise AssertionError("the call was not interrupted")
        assert late < PROMPT, late
        print(f"{1000 * late:.0f} ms")

    def elsewhere() -> None:
        before = running()
        parallel_call_works()
        assert running() == before + 1

    with ThreadPoolExecutor(1) as pool:
        pool.submit(elsewhere).result()
    ended_well(fork(first_parallel_call_works))


def handler_during_a_call(team: int) -> None:
    """A handler that does not raise runs during the call, may pool itself, and changes no result."""
    seen: list[tuple[float, bytes]] = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append((time.monotonic(), parallel())))
    expected, pooled = long_call(team, 8), parallel()
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    result = long_call(team, 8)
    end = time.monotonic()
    assert result.tobytes() == expected.tobytes()
    assert [bits for _, bits in seen] == [pooled]
    assert seen[0][0] - start < (end - start) / 2 + 0.1, (start, seen[0][0], end)


def interrupt_beside_a_call() -> None:
    """Ctrl-C reaches the main thread at once while another thread computes, and the other's result is right."""
    expected = long_call(1, 8).tobytes()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(long_call, 2, 8)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        try:
            time.sleep(LIMIT)
        except KeyboardInterrupt:
            assert time.monotonic() - start < PROMPT
        else:
            raise AssertionError("the sleep was not interrupted")
        assert other.result().tobytes() == expected


# Floating-point state

DEFAULT = 0x1f80  # of the control word MXCSR
STATES = {
    "default": DEFAULT,
    "flush to zero": 0x9f80,
    "subnormals are zeros": 0x1fc0,
    "both": 0x9fc0,
    "down": 0x3f80,
    "up": 0x5f80,
    "towards zero": 0x7f80,
    "up, both": 0xdfc0,
    "unmasked": DEFAULT & ~0x0e80,  # invalid, division by zero, overflow, underflow raise SIGFPE
}
ROUNDINGS = {0x2000: 0x400, 0x4000: 0x800, 0x6000: 0xc00}  # of MXCSR, and of the x87 control word
MXCSR = 28  # its offset in fenv_t
MATH = ctypes.CDLL(ctypes.util.find_library("m"))


def control_word() -> int:
    environment = (ctypes.c_uint8 * 32)()
    assert MATH.fegetenv(environment) == 0
    return int.from_bytes(bytes(environment[MXCSR:MXCSR + 4]), "little")


@contextmanager
def state(word: int) -> Iterator[None]:
    """Runs a block with a floating-point control word, which must be as it was at the end, its flags included."""
    before = (ctypes.c_uint8 * 32)()
    changed = (ctypes.c_uint8 * 32)()
    MATH.fegetenv(before)
    MATH.fegetenv(changed)
    changed[MXCSR:MXCSR + 4] = list(word.to_bytes(4, "little"))
    control = int.from_bytes(bytes(changed[:2]), "little") & ~0xc00 | ROUNDINGS.get(word & 0x6000, 0)
    changed[:2] = list(control.to_bytes(2, "little"))
    MATH.fesetenv(changed)
    try:
        yield
        after = control_word()
    finally:
        MATH.fesetenv(before)
    assert after == word, (hex(after), hex(word))


def delicate() -> list[tuple[Any, list[Any]]]:
    """Calls whose results show rounding, subnormals, infinities and NaN, on one thread and on two."""
    random = np.random.default_rng(7)
    x = random.standard_normal(LARGE.shape, np.float32) / 3
    tiny = (x * np.float32(1e-38)).astype(np.float32)
    wild = x.copy()
    wild[0, 0, :2, :2] = [[np.inf, np.nan], [-np.inf, 3e38]]
    whole = random.integers(-128, 127, LARGE.shape, np.int8, endpoint=True)
    quantised = [np.float32(0.1), np.int8(3), np.float32(0.0373), np.int8(-4)]
    rois = np.array([[0.3, 1.1, 40.2, 51.7]] * 4, np.float32)
    calls: list[tuple[Any, list[Any]]] = []
    for data in (x, tiny, wild, tiny.astype(np.float64) * 1e-270, (x * 1e-5).astype(np.float16)):
        for name in ("AveragePool", "LpPool", "MaxPool"):
            calls.append((getattr(onnxpool, name)(kernel_shape=3, pads=1), [data]))
        calls += [(onnxpool.GlobalAveragePool(), [data]), (onnxpool.GlobalLpPool(p=3), [data])]
    calls += [(onnxpool.RoiAlign(output_height=3, output_width=3, spatial_scale=0.7, mode=mode),
               [data, rois, np.arange(4)]) for data in (x, tiny) for mode in ("avg", "max")]
    calls.append((onnxpool.MaxRoiPool(pooled_shape=(3, 3), spatial_scale=0.7),
                  [x, np.concatenate([np.arange(4, dtype=np.float32)[:, None], rois], 1)]))
    ties = (random.integers(-4, 4, (64, 16, 6, 1)) * 6 + 3).astype(np.int8)  # means of their sixths end in a half
    ties[:, :, 1:] = 0
    calls += [(onnxpool.QLinearAveragePool(kernel_shape=3), [whole, *quantised]),
              (onnxpool.QLinearAveragePool(kernel_shape=1), [whole, np.float32(0.1), 0, 0.2, 0]),
              (onnxpool.QLinearGlobalAveragePool(), [whole, *quantised]),
              (onnxpool.QLinearGlobalAveragePool(), [ties, 1.0, 0, 1.0, 0])]
    return calls


def float_state() -> None:
    """Whatever control word the caller has, results have the bits of the default one, and the word stays, flags too.

    So too where the workers were started under another word than they work under.
    """
    calls = [(operator.plan(arrays[0].shape, arrays[0].dtype), arrays) for operator, arrays in delicate()]
    expected = [call(*arrays, num_threads=1).tobytes() for call, arrays in calls]
    for name, word in STATES.items():
        for team in (1, 2):
            with state(word):
                results = [call(*arrays, num_threads=team) for call, arrays in calls]
            wrong = [call for (call, _), y, bits in zip(calls, results, expected, strict=True) if y.tobytes() != bits]
            assert not wrong, (name, team, wrong)
    assert [call(*arrays, num_threads=2).tobytes() for call, arrays in calls] == expected


def workers_of_another_state() -> None:
    """Workers that were started while the caller flushed subnormals to zero keep them in a later call."""
    tiny = np.full(LARGE.shape, 1e-40, np.float32)
    with state(STATES["both"]):
        parallel(tiny)
    assert (onnxpool.max_pool(tiny, 3, num_threads=2) == np.float32(1e-40)).all()
    assert (onnxpool.average_pool(tiny, 3, num_threads=2) == np.float32(1e-40)).all()


# Other runtimes


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
    """Another runtime, imported before or after and with threads of its own, and onnxpool take turns, and fork."""
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


if __name__ == "__main__":
    warnings.simplefilter("error")
    name, *arguments = sys.argv[1:]
    globals()[name](*(int(argument) if argument.isdigit() else argument for argument in arguments))
