"""The memory that a call uses besides its arrays, measured in a process that does nothing else: in one that has run
other tests, their threads and what they free would count.
"""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import onnxpool
from benchmarks.memory import LARGEST, Scratch
from benchmarks.workloads import LAYOUTS, array

PROMISED = 1 << 20  # bytes for each thread
ODD = ("float32", "bfloat16")  # dtypes that are also tested with non-finite elements
APART = 9973  # elements from one non-finite element to the next


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        yield executor


def measured(process: ProcessPoolExecutor, function: Any, *args: Any) -> Any:
    """What ``function`` returns in the process. The test is skipped if the process cannot measure."""
    try:
        return process.submit(function, *args).result()
    except NotImplementedError as reason:
        pytest.skip(str(reason))


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("dtype", "odd"), [(name, odd) for name in ("float32", "bfloat16", "float64", "uint8")
                                             for odd in ((False, True) if name in ODD else (False,))])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operator", LARGEST)
def test_a_call_holds_a_mebibyte_at_most(process, operator: str, dtype: str, layout: str, odd: bool) -> None:
    """A call holds at most a mebibyte besides input and output. Divisors of many windows once took half more, and tiles
    that are computed again, because infinities and NaNs make results exceptional, took three mebibytes.
    """
    assert measured(process, held_by_workload, operator, dtype, layout, odd) <= PROMISED


def held_by_workload(operator: str, dtype: str, layout: str, odd: bool) -> int:
    scratch = Scratch()
    scratch.setup(operator, dtype, layout, "1")
    if odd:
        x = scratch.call.inputs[0]
        x.flat[::APART] = np.inf
        x.flat[APART // 2 :: APART] = np.nan
    return scratch.track_scratch()


def held_by(call: Any) -> int:
    """The bytes that a call holds beyond its arrays when it runs again."""
    scratch = Scratch()
    scratch.call = call
    call()
    return scratch.track_scratch()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("apart", ["x", "y", "x and y"])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("operator", [onnxpool.MaxPool, onnxpool.AveragePool])
def test_views_of_three_axes_hold_a_mebibyte_at_most(process, operator, dtype: str, kernel: int, stride: int, pad: int,
                                                     apart: str) -> None:
    """A call on every second channel of a channels-last array holds at most a mebibyte. Its tiles are copied, and once
    took 1.4 to 1.7 MiB."""
    assert measured(process, held_by_views, operator, dtype, kernel, stride, pad, apart) <= PROMISED


def held_by_views(operator: Any, dtype: str, kernel: int, stride: int, pad: int, apart: str) -> int:
    pool = operator(kernel_shape=[kernel] * 3, strides=[stride] * 3, pads=[pad] * 6, channels_last=True)
    x = array((2, 16, 32, 32, 128), dtype)
    x = x[..., ::2] if "x" in apart else x[..., :64].copy()
    y = pool(x)
    y = np.repeat(y, 2, axis=-1)[..., ::2] if "y" in apart else y
    plan = pool.plan(x.shape, x.dtype)
    return held_by(lambda: plan(x, out=y, num_threads=1))


@pytest.mark.parametrize("name", ["average_pool", "max_pool", "min_pool", "lp_pool"])
@pytest.mark.parametrize("more", [{"kernel_shape": 3}, {"kernel_shape": 3, "return_indices": True}, {}])
def test_leaving_nans_out_holds_a_mebibyte_at_most(process, name: str, more: dict[str, object]) -> None:
    """No copy or mask of the array is made, wherever NaNs and zeros are."""
    if "return_indices" in more and name not in ("max_pool", "min_pool"):
        pytest.skip("no Indices")
    assert measured(process, held_without_nans, name, more) <= PROMISED


def held_without_nans(name: str, more: dict[str, object]) -> int:
    x = np.random.default_rng(0).integers(-1, 2, (1500, 2000)).astype(np.float32)
    x[::3] = x[:, ::5] = np.nan
    pool = getattr(onnxpool, name if more else f"global_{name}")
    y = pool(x, axes=(0, 1), skipna=True, **more)
    return held_by(lambda: pool(x, axes=(0, 1), skipna=True, **more, out=y, num_threads=1))


@pytest.mark.parametrize("axes", [(0, 1), 1])
def test_whole_means_of_large_integers_hold_few_mebibytes(process, axes: tuple[int, ...] | int) -> None:
    """Whole means of large integers hold few mebibytes. Converted pieces once took as much memory as the array."""
    assert measured(process, held_by_whole_means, axes) <= 8 * PROMISED


def held_by_whole_means(axes: tuple[int, ...] | int) -> int:
    x = np.random.default_rng(0).integers(-2**63, 2**63 - 1, (500, 20_000), np.int64, endpoint=True)
    pool = onnxpool.GlobalAveragePool(axes=axes)
    return held_by(lambda: pool(x, num_threads=1))


@pytest.mark.parametrize(("dtype", "shape", "kernel", "more"), [
    ("float16", (1, 1, 1 << 19), 467_021, {"strides": 2, "pads": 467_020}),
    ("float32", (1, 1, 1 << 19), 300_000, {}),
    ("int8", (1, 349_525, 3), 174_763, {"channels_last": True}),
    ("float32", (1, 100_000, 64), 50_000, {"channels_last": True, "pads": 49_999}),
    ("float64", (1, 2000, 1500), 1200, {"channels_last": True}),
])
def test_windows_beyond_a_mebibyte(process, dtype: str, shape: tuple[int, ...], kernel: int,
                                   more: dict[str, object]) -> None:
    """Windows larger than a mebibyte take about twice their size. With less memory, each tile would have a single
    window, which once took up to a minute."""
    held, allowed = measured(process, held_by_windows, dtype, shape, kernel, more)
    assert held <= allowed


def held_by_windows(dtype: str, shape: tuple[int, ...], kernel: int, more: dict[str, object]) -> tuple[int, float]:
    plan = onnxpool.MaxPool(kernel_shape=[kernel], **more).plan(shape, dtype)
    x = array(shape, dtype)
    y = plan(x)
    setup = plan._row_major_pool().setup
    (axis,), tile = setup.axes, setup.stages[0].tile
    tiles = -(-axis.out // tile.windows[0])
    assert tiles * axis.read_by(tile.windows[0]) <= 20 * axis.size
    held = held_by(lambda: plan(x, out=y, num_threads=1))
    return held, max(1, 2.3 * kernel * tile.lanes * 4 / PROMISED) * PROMISED
