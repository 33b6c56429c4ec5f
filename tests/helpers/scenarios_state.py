"""Scenarios of signals and of floating-point states: see host.py."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from float_states import STATES, state
from host import (
    LARGE,
    LIMIT,
    PROMPT,
    WORKERS,
    ended_well,
    first_parallel_call_works,
    fork,
    long_call,
    long_plane,
    long_regions,
    main,
    parallel,
    parallel_call_works,
    running,
)

import onnxpool


def interrupt(team: int) -> None:
    """Ctrl-C soon ends a long call with KeyboardInterrupt; teams and forks work afterwards."""
    sent: list[float] = []

    def press() -> None:
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    for call in (long_call, long_plane, long_regions):
        threading.Timer(0.3, press).start()
        try:
            call(team)
        except KeyboardInterrupt:
            late = time.process_time() - sent.pop()
        else:
            raise AssertionError("the call was not interrupted")
        assert late < PROMPT, late

    def elsewhere() -> None:
        before = running()
        parallel_call_works()
        assert running() == before + WORKERS

    with ThreadPoolExecutor(1) as pool:
        pool.submit(elsewhere).result()
    ended_well(fork(first_parallel_call_works))


def handler_during_a_call(team: int) -> None:
    """A handler that does not raise runs during the call, may itself pool, and changes no result."""
    seen: list[tuple[bool, bytes]] = []
    expected, pooled = long_call(team, team), parallel()
    out = np.full_like(expected, np.nan)
    signal.signal(signal.SIGALRM, lambda *_: seen.append((bool(np.isnan(out).any()), parallel())))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    long_call(team, team, out)
    assert out.tobytes() == expected.tobytes()
    assert seen == [(True, pooled)]


def interrupt_beside_a_call() -> None:
    """Ctrl-C reaches the main thread at once while another thread computes, and the result of that thread is right."""
    expected = long_call(2, 2).tobytes()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(long_call, 2, 2)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            time.sleep(LIMIT)
        except KeyboardInterrupt:
            assert not other.done()
        else:
            raise AssertionError("the sleep was not interrupted")
        assert other.result().tobytes() == expected


# Floating-point state

def delicate() -> list[tuple[Any, list[Any]]]:
    """Calls whose results reveal rounding, subnormals, infinities and NaN, on one thread and on two."""
    random = np.random.default_rng(7)
    x = LARGE[:2] / 3
    tiny = (x * np.float32(1e-38)).astype(np.float32)
    wild = x.copy()
    wild[0, 0, :2, :2] = [[np.inf, np.nan], [-np.inf, 3e38]]
    whole = random.integers(-128, 127, LARGE.shape, np.int8, endpoint=True)
    quantised = [np.float32(0.1), np.int8(3), np.float32(0.0373), np.int8(-4)]
    images = np.array([0, 1, 1, 0])
    rois = np.array([[0.3, 1.1, 40.2, 51.7]] * 4, np.float32)
    calls: list[tuple[Any, list[Any]]] = []
    for data in (x, tiny, wild, tiny.astype(np.float64) * 1e-270, (LARGE[:4] * 1e-5).astype(np.float16)):
        for name in ("AveragePool", "LpPool", "MaxPool"):
            calls.append((getattr(onnxpool, name)(kernel_shape=3, pads=1), [data]))
        calls += [(onnxpool.GlobalAveragePool(), [data]), (onnxpool.GlobalLpPool(p=3), [data])]
    calls += [(onnxpool.RoiAlign(output_height=3, output_width=3, spatial_scale=0.7, mode=mode),
               [data, rois, images]) for data in (x, tiny) for mode in ("avg", "max")]
    calls.append((onnxpool.MaxRoiPool(pooled_shape=(3, 3), spatial_scale=0.7),
                  [x, np.concatenate([images.astype(np.float32)[:, None], rois], 1)]))
    ties = (random.integers(-4, 4, (64, 16, 6, 1)) * 6 + 3).astype(np.int8)  # means of sixths of these end in a half
    ties[:, :, 1:] = 0
    calls += [(onnxpool.QLinearAveragePool(kernel_shape=3), [whole, *quantised]),
              (onnxpool.QLinearAveragePool(kernel_shape=1), [whole, np.float32(0.1), 0, 0.2, 0]),
              (onnxpool.QLinearGlobalAveragePool(), [whole, *quantised]),
              (onnxpool.QLinearGlobalAveragePool(), [ties, 1.0, 0, 1.0, 0])]
    return calls


def float_state() -> None:
    """Whatever the caller's state, results have the bits of the default state, and the control word and its flags stay.

    This also holds if workers were started in a different state.
    """
    calls = [(operator.plan(arrays[0].shape, arrays[0].dtype), arrays) for operator, arrays in delicate()]
    expected = [call(*arrays, num_threads=1).tobytes() for call, arrays in calls]
    for name in STATES:
        for team in (1, 2):
            with state(name):
                results = [call(*arrays, num_threads=team) for call, arrays in calls]
            wrong = [call for (call, _), y, bits in zip(calls, results, expected, strict=True) if y.tobytes() != bits]
            assert not wrong, (name, team, wrong)
    assert [call(*arrays, num_threads=2).tobytes() for call, arrays in calls] == expected


def workers_of_another_state() -> None:
    """Workers started while the caller flushed subnormals to zero keep subnormals in a later call."""
    tiny = np.full(LARGE.shape, 1e-40, np.float32)
    with state("both"):
        parallel(tiny)
    assert (onnxpool.max_pool(tiny, 3, num_threads=2) == np.float32(1e-40)).all()
    assert (onnxpool.average_pool(tiny, 3, num_threads=2) == np.float32(1e-40)).all()


if __name__ == "__main__":
    main(globals())
