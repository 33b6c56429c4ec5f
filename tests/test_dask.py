"""Results on dask arrays are those of whole arrays, bit by bit, whatever the chunks; and graphs hold what they need."""

import pickle
from collections import Counter
from typing import Any

import cases_axes
import numpy as np
import pytest
from calls import FUNCTIONS, SeededChoices, draw_pool
from numpy.typing import NDArray

import onnxpool

da = pytest.importorskip("dask.array")
import onnxpool.dask as pools  # noqa: E402

Array = NDArray[Any]
WINDOWED, WHOLE = cases_axes.WINDOWED, cases_axes.WHOLE
POOLS = {operator: getattr(pools, FUNCTIONS[operator]) for operator in (*WINDOWED, *WHOLE)}


def computed(y: Any) -> Any:
    """The values, on this thread."""
    return da.compute(y, scheduler="sync")[0]


def random_chunks(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Chunks of random sizes, now and then empty ones."""
    chunks = []
    for size in shape:
        cuts = sorted(rng.integers(0, size + 1, int(rng.choice([0, 0, 1, 2, 3]))).tolist())
        chunks.append(tuple(np.diff([0, *cuts, size]).tolist()))
    return tuple(chunks)


def differs(y: Any, truth: Any) -> bool:
    """Whether a result has other bits; any NaN is as good as another."""
    got = y if isinstance(y, tuple) else (y,)
    return any(a.dtype != b.dtype or not np.array_equal(cases_axes.bits(a), cases_axes.bits(b))
               for a, b in zip(got, truth if isinstance(truth, tuple) else (truth,), strict=True))


def check_windows(seed: int) -> None:
    """A random call on windows, in random chunks, with chunks of the result given or not."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        call = draw_pool(SeededChoices(seed), WINDOWED[seed % 3])
        x, operator, given = call.x, call.operator, {**call.attributes, "channels_last": call.channels_last}
        given |= {} if call.opset is None else {"opset": call.opset}
    else:
        case = next(case for case in map(cases_axes.drawn, range(seed * 1000, seed * 1000 + 99))
                    if case.operator in WINDOWED)
        x, operator, given = case.x, case.operator, {**case.attributes, "axes": case.axes}
        given |= {"return_indices": True} if case.indexed else {}
    function = getattr(onnxpool, FUNCTIONS[operator])
    try:
        truth = function(x, **given)
    except onnxpool.PoolError:
        return
    first = truth[0] if isinstance(truth, tuple) else truth
    chunks = random_chunks(rng, first.shape) if rng.random() < 0.4 else None
    d = da.from_array(x, chunks=random_chunks(rng, x.shape))
    y = POOLS[operator](d, chunks=chunks, **given)
    assert not differs(computed(y), truth), (seed, operator, given, d.chunks, chunks)
    for one in y if isinstance(y, tuple) else (y,):
        assert one.shape == first.shape


def check_whole(seed: int) -> None:
    """A random call of a global operator, in random chunks: maxima are exact, sums within the bound."""
    rng = np.random.default_rng(seed)
    case = next(case for case in map(cases_axes.drawn, range(seed * 1000, seed * 1000 + 99)) if case.operator in WHOLE)
    x = np.ascontiguousarray(case.x).reshape(case.x.shape)
    truth = case.make()(x)
    d = da.from_array(x, chunks=random_chunks(rng, x.shape))
    y = computed(POOLS[case.operator](d, **case.attributes, axes=case.axes, keepdims=case.keepdims))
    if case.operator == "GlobalMaxPool" or all(len(sizes) == 1 for sizes in d.chunks):
        assert np.array_equal(y, truth, equal_nan=y.dtype.kind == "f") or not differs(y, truth), (seed, d.chunks)
    assert cases_axes.difference(case, y, None, truth, None) is None, (seed, d.chunks)


@pytest.mark.smoke
@pytest.mark.parametrize("check", [check_windows, check_whole])
def test_chunks_do_not_change_results(check: Any) -> None:
    """100 random chunkings."""
    for seed in range(1, 51):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_windows, check_whole])
def test_many_chunks_do_not_change_results(check: Any) -> None:
    """1,000 random chunkings, and 500 of global operators."""
    for seed in range(1000, 2000 if check is check_windows else 1500):
        check(seed)
