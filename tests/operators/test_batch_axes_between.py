"""Global pools whose pooled axes have batch axes between them: their results, parts, bits and memory."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import cases_axes
import numpy as np
import pytest

import onnxpool


def cases(seeds: range) -> Iterator[tuple[cases_axes.Case, Any]]:
    """Random calls with batch axes between pooled axes, and their plans."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(3, 6))
        shape = tuple(int(rng.choice([1, 2, 3, 5, 9, 17, 40])) for _ in range(rank))
        axes = tuple(map(int, rng.permutation(rank)[:rng.integers(2, rank)]))
        dtype = np.dtype(rng.choice(["float16", "float32", "float64", "int8", "bool"]))
        x = cases_axes.laid(rng, cases_axes.elements(rng, shape, dtype))
        case = cases_axes.Case("GlobalMaxPool", axes, {}, bool(seed % 2), False, x)
        plan = case.make().plan(shape, dtype)
        pooled = [axis for axis in axes if shape[axis] > 1]
        between = [axis for axis in range(rank) if axis not in axes and shape[axis] > 1
                   and min(pooled, default=rank) < axis < max(pooled, default=0)]
        if between and x.size < 100_000:
            yield case, plan


def test_results_are_those_of_arrays_in_order() -> None:
    """Results equal those of arrays in order, in any memory layout."""
    count = 0
    for case, plan in cases(range(300)):
        truth, _ = cases_axes.expected(case)
        for x in (case.x, np.ascontiguousarray(case.x), np.asfortranarray(case.x)):
            assert cases_axes.difference(case, plan(x), None, truth, None) is None, plan
        count += 1
    assert count > 30


def test_parts_have_the_bits_of_the_whole() -> None:
    """Parts have the bits of the whole, whichever axes are cut, and however small parts are."""
    rng = np.random.default_rng(0)
    for case, plan in cases(range(1000, 1150)):
        x = np.ascontiguousarray(case.x)
        whole = plan(x)
        for _ in range(20):
            ends = [sorted(rng.integers(0, size + 1, 2).tolist()) for size in whole.shape]
            slices = tuple(slice(*pair) for pair in ends)
            part = plan.tile(slices)
            for given in (x[part.inputs], x[part.inputs].copy()):
                assert np.array_equal(cases_axes.bits(part(given)), cases_axes.bits(whole[slices])), (plan, slices)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "bool"])
@pytest.mark.thread_unsafe(reason="measures the memory of the process")
def test_large_arrays_take_no_memory_but_their_result(dtype: str) -> None:
    """Large arrays take no memory except for their result, which is right on one thread and on two."""
    x = np.random.default_rng(0).integers(0, 2, (9, 40, 50, 300)).astype(dtype)
    plan = onnxpool.GlobalMaxPool(axes=(0, 3), keepdims=False).plan(x.shape, dtype)
    assert plan.explain().to_dict()["route"] == ["whole"]
    y = plan(x, num_threads=1)
    assert np.array_equal(y, x.max((0, 3)))
    assert np.array_equal(plan(x, num_threads=2), y)
    tracemalloc.start()
    plan(x)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < y.nbytes + 10_000


@pytest.mark.parametrize("pool", [onnxpool.global_average_pool, onnxpool.global_lp_pool])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_of_part_of_a_batch_have_the_bits_of_the_whole(pool: Any, dtype: str) -> None:
    """Sums keep their bits if a batch axis is split, provided that the axes between pooled axes still fill 64 bytes of
    accumulators."""
    x = np.random.default_rng(0).standard_normal((9, 40, 9, 40)).astype(dtype)
    whole = pool(x, axes=(0, 2))
    for axis in (1, 3):
        halves = [pool(np.ascontiguousarray(half), axes=(0, 2)) for half in np.split(x, 2, axis)]
        assert np.array_equal(cases_axes.bits(np.concatenate(halves, axis)), cases_axes.bits(whole)), axis
