"""The normal form of a problem has as few dimensions as its arrays allow, and reaches the same elements."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_planner.form import dims_of, forms_of

from onnxpool.planning.request import Reduction, Request
from onnxpool.windows import Axis

pytestmark = pytest.mark.smoke


def windows(size, kernel=1, stride=1):
    return Axis(size, (size - kernel) // stride + 1, kernel, stride)


def request_of(shape, kernels, reduction="max", keepdims=True, whole=False):
    """The request for windows of these kernels along some axes."""
    return Request(shape, np.dtype(np.float32), tuple((axis, windows(shape[axis], k)) for axis, k in kernels.items()),
                   Reduction(reduction, whole=whole), keepdims=keepdims)


def row_major(shape):
    return np.empty(shape, np.float32).strides


def sizes_of(axes, rest):
    """The sizes of dimensions with windows, and of other dimensions, in the order of the array."""
    assert all(dim.windows for dim in axes)
    assert not any(dim.windows for dim in rest)
    return tuple(dim.size for dim in sorted([*axes, *rest], key=lambda dim: dim.x))


@pytest.mark.parametrize(("shape", "kernels", "sizes"), [
    ((8, 64, 1000, 1), {2: 3, 3: 1}, (512, 1000)),
    ((8, 64, 1000, 2), {2: 3, 3: 1}, (512, 1000, 2)),
    ((8, 10, 100, 64), {1: 1, 2: 3}, (80, 100, 64)),
    ((8, 10, 100, 64), {1: 3, 2: 1}, (8, 10, 6400)),
    ((8, 64, 10, 9, 8), {2: 1, 3: 3, 4: 3}, (5120, 9, 8)),
    ((8, 64, 10, 9, 8), {2: 3, 4: 3}, (512, 10, 9, 8)),
    ((8, 64, 10, 1, 8), {2: 3, 4: 3}, (512, 10, 8)),
    ((8, 64, 10, 8), {2: 1, 3: 1}, (40960,)),
    ((1, 1, 1), {2: 1}, ()),
])  # fmt: skip
def test_contiguous_axes_become_one(shape, kernels, sizes):
    request = request_of(shape, kernels)
    assert sizes_of(*dims_of(request, row_major(shape), [row_major(request.output_shape)])) == sizes


@pytest.mark.parametrize(("shape", "pooled", "sizes"), [
    ((8, 64, 10, 9), (2, 3), (8, 64, 90)),  # channels stay alone, as they may be lanes
    ((2, 8, 64, 10, 9), (3, 4), (16, 64, 90)),
    ((8, 10, 9, 64), (1, 2), (8, 90, 64)),
    ((64, 3, 10, 200, 200), (0, 4), (64, 30, 200, 200)),
    ((64, 30, 20, 10), (0, 1), (1920, 200)),
])  # fmt: skip
def test_whole_channels_become_one_axis(shape, pooled, sizes):
    request = request_of(shape, {axis: shape[axis] for axis in pooled}, whole=True)
    assert sizes_of(*dims_of(request, row_major(shape), [row_major(request.output_shape)], alone=True)) == sizes


def laid(draw, shape, itemsize):
    """Strides of an array in any memory: its axes in any order, with gaps, backwards or repeated."""
    strides, step = [0] * len(shape), itemsize
    for axis in draw(st.one_of(st.just(list(range(len(shape)))[::-1]), st.permutations(range(len(shape))))):
        strides[axis] = step * draw(st.sampled_from((1, 1, 1, 1, 1, -1, 0)))
        step *= shape[axis] + draw(st.sampled_from((0, 0, 0, 0, 2)))
    return strides


@st.composite
def problems(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    pooled = draw(st.sets(st.sampled_from(range(len(shape)))))
    whole, keepdims = draw(st.booleans()), draw(st.booleans())
    kernels = {axis: shape[axis] if whole or not keepdims else draw(st.integers(1, shape[axis]))
               for axis in sorted(pooled)}
    reduction = draw(st.sampled_from(("max", "mean") if whole else ("max", "mean", "indexed_max")))
    request = request_of(shape, kernels, reduction, keepdims, whole)
    count = 2 if reduction == "indexed_max" else 1
    return request, laid(draw, shape, 4), [laid(draw, request.output_shape, size) for size in (4, 8)[:count]]


@given(problems())
def test_the_same_elements_are_reached(problem):
    """In each form, each result has the same elements, the same place and the same index as in the array."""
    request, x, results = problem
    along, kept = dict(request.windows), list(request.kept)

    def reach(extents, strides):
        return [sum(i * step for i, step in zip(at, strides, strict=True))
                for at in itertools.product(*map(range, extents))]

    extents = [along[axis].out if axis in along else size for axis, size in enumerate(request.shape)]
    firsts = [step * (along[axis].stride if axis in along else 1) for axis, step in enumerate(x)]
    columns = [[y[kept.index(axis)] if axis in kept else 0 for axis in range(len(x))] for y in results]
    wanted = sorted(zip(reach(extents, firsts), reach(extents, request.places),
                        *(reach(extents, column) for column in columns), strict=True))
    for form in forms_of(request, x, results, contiguous=True, least=2):
        extents = [dim.windows.out if dim.windows else dim.size for dim in form.dims]
        strides = [x[dim.x] * (dim.windows.stride if dim.windows else 1) if dim.x >= 0 else 0 for dim in form.dims]
        columns = [[y[dim.y] if dim.y >= 0 else 0 for dim in form.dims] for y in results]
        found = sorted(zip(reach(extents, strides), reach(extents, [dim.place for dim in form.dims]),
                           *(reach(extents, column) for column in columns), strict=True))
        assert found == wanted
