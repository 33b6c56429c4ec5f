"""The windows of an axis are computed on demand: they equal the windows of plain loops, and none is stored."""

import tracemalloc
from itertools import chain

import numpy as np
import pytest
from onnxpool_conformance import oracle

import onnxpool
from onnxpool.windows import Axis, resolve_axis

pytestmark = pytest.mark.smoke

SMALL = 100_000  # bytes, far fewer than one per window
PADDED = 2**25  # elements of padding


def random_axis(rng):
    """An axis whose windows may lie in the padding, or skip the whole input; and its windows by plain loops."""
    while True:
        size, kernel = int(rng.choice([1, 2, 3, 5, 9, 17])), int(rng.choice([1, 2, 3, 4, 9, 20]))
        stride, dilation = int(rng.choice([1, 2, 3, 5, 11])), int(rng.choice([1, 1, 2, 3, 7, 20]))
        pads = tuple(rng.integers(0, 40, 2).tolist()) if rng.random() < 0.7 else (0, 0)
        ceil, counts_pads = bool(rng.integers(2)), bool(rng.integers(2))
        try:
            known = oracle.axis_windows(size, kernel, stride, dilation, pads, "NOTSET", ceil)
        except oracle.GeometryError:
            continue
        axis = resolve_axis("", 0, 2, size, kernel, stride, dilation, pads, "NOTSET", ceil, counts_pads)
        return axis, [list(taps) for taps in known.taps], known.counted if counts_pads else list(map(len, known.taps))


def test_windows_are_those_of_plain_loops():
    rng, around = np.random.default_rng(0), 0
    for _ in range(4000):
        axis, taps, divisors = random_axis(rng)
        windows = [axis.window(i) for i in range(axis.out)]
        assert [list(range(w.first, w.first + w.taps * axis.dilation, axis.dilation)) for w in windows] == taps, axis
        assert [window.divisor for window in windows] == list(divisors), axis
        whole = [i for i, inside in enumerate(taps) if len(inside) == axis.kernel]
        assert list(range(axis.begin, axis.end)) == whole, axis
        assert 0 <= axis.begin <= axis.end <= axis.out, axis
        assert axis.most == len(range(0, axis.size, axis.dilation)[:axis.kernel]) >= max(map(len, taps)), axis
        assert axis.empty == taps.count([]), axis
        assert axis.taps == sum(map(len, taps)), axis
        every = list(range(axis.size))
        alone, unpadded = axis.kernel == 1, axis.pads == (0, 0)
        assert axis.kept == (alone and unpadded and taps == [[i] for i in every]), axis
        assert axis.covers == (unpadded and taps == [every] and axis.kernel == axis.size), axis
        assert (axis.picked is not None) == (alone and [] not in taps), axis
        assert axis.picked is None or [[i] for i in every[axis.picked]] == taps, axis
        assert axis.unread == axis.size - 1 - max((max(inside) for inside in taps if inside), default=-1), axis
        around += axis.dilation > axis.size and axis.kernel > 1 and axis.empty > 0
    assert around > 100


def test_parts_of_an_axis_have_its_windows():
    """Parts read the elements that their windows need, and at least one element. A part may begin after the axis, but
    not end before it."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        axis, taps, divisors = random_axis(rng)
        begin, end = sorted(rng.integers(0, axis.out + 1, 2).tolist())
        low, part = axis.part(begin, end)
        assert (part.out, part.pads[1] >= 0) == (end - begin, True), axis
        assert begin < end or (low, part.size, part.kernel) == (0, 0, 1), axis
        assert begin == end or 0 <= low < low + part.size <= axis.size, axis
        windows = [part.window(i) for i in range(part.out)]
        assert [list(range(low + w.first, low + w.first + w.taps * axis.dilation, axis.dilation))
                for w in windows] == taps[begin:end], axis
        assert [window.divisor for window in windows] == list(divisors[begin:end]), axis
        whole = [i for i, window in enumerate(windows) if begin < end and window.taps == axis.kernel]
        assert list(range(part.begin, part.end)) == whole, axis
        assert 0 <= part.begin <= part.end <= part.out, axis
        beyond = (part.out - 1) * part.stride - part.pads[0] + part.span - part.size
        assert part.pads[1] <= max(0, beyond), axis
        if any(taps[begin:end]):  # from the first tap to the last one
            first, last = (index * axis.stride - axis.pads[0] for index in (begin, end - 1))
            assert (low, low + part.size) == (max(0, first), min(axis.size, last + axis.span)), axis


def test_how_much_neighbouring_windows_read():
    """`read_by` is at most the whole axis, and never less than what neighbouring windows read."""
    rng, known = np.random.default_rng(2), 0
    for _ in range(2000):
        axis, taps, _ = random_axis(rng)
        count = int(rng.integers(1, axis.out + 1))
        groups = [list(chain(*taps[i:i + count])) for i in range(axis.out - count + 1)]
        spans = [max(group) - min(group) + 1 for group in groups if group]
        assert max(spans, default=0) <= axis.read_by(count) <= axis.size, axis
        if axis.pads == (0, 0) and all(len(inside) == axis.kernel for inside in taps):
            known += 1
            assert set(spans) == {axis.read_by(count)}, axis
    assert known > 100


def test_windows_by_default():
    """By default, windows are adjacent, and so are their taps, without padding."""
    axis = Axis(5, 4, 2)
    assert (axis.stride, axis.dilation, axis.pads, axis.counts_pads) == (1, 1, (0, 0), False)


def test_windows_are_counted_without_a_look_at_each():
    """Counting works for any number of windows, even if their taps are farther apart than the input is long."""
    axis = Axis(5, out=2**60, kernel=2**40, stride=7, dilation=7, pads=(7 * 2**50 + 1, 0))
    assert axis.empty == axis.out
    assert axis.unread == axis.size
    axis = Axis(5, out=2**60, kernel=2**40, stride=7, dilation=7, pads=(7 * 2**50 + 3, 0))
    # Each tap of some window is the last element.
    assert axis.empty == axis.out - axis.kernel
    assert axis.unread == 0


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("operator", [
    onnxpool.MaxPool, onnxpool.AveragePool, onnxpool.LpPool, onnxpool.QLinearAveragePool,
])
def test_nothing_is_stored_for_a_window_in_the_padding(operator, channels_last):
    """Plans, output shapes and explanations take no memory in proportion to the padding."""
    op = operator(kernel_shape=2, pads=(PADDED, 5), channels_last=channels_last)
    shape = (1, 9, 3) if channels_last else (1, 3, 9)
    dtype = np.uint8 if op.quantised else np.float32
    op.plan(shape, dtype).explain()  # imports
    tracemalloc.start()
    try:
        result = op.output_shape(shape)
        text = op.plan(shape, dtype).explain()
        assert tracemalloc.get_traced_memory()[1] < SMALL
    finally:
        tracemalloc.stop()
    assert result == ((1, PADDED + 13, 3) if channels_last else (1, 3, PADDED + 13))
    assert f"{PADDED + 3} of {PADDED + 13} windows lie entirely in padding" in text
    assert len(text.to_dict()["route"]) == 1


def test_shapes_that_no_array_has_are_explained():
    """A plan for a shape that no array has can be explained. It has no route, because there is nothing to run."""
    plan = onnxpool.MaxPool(kernel_shape=2).plan((2**60, 2**60, 5), np.float32)
    assert plan.explain().to_dict()["route"] == []


def test_more_windows_in_the_padding_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(onnxpool.windows, "MOST_BORDER", 1)
    with pytest.raises(onnxpool.PoolError, match=r"axis 2 with pads 1\+1: 2 windows .* than the limit of 1; lower"):
        onnxpool.MaxPool(kernel_shape=(3,), pads=1, opset=11).output_shape((1, 1, 5))


@pytest.mark.parametrize("pads", [(2**20, 0), (0, 2**20)])
@pytest.mark.parametrize("shape", [(1, 1, 9), (1, 9, 1), (1, 9, 70)])
def test_tiles_may_lie_wholly_in_the_padding(shape, pads):
    """Tiles may lie wholly in the padding, before the first element or beyond the last one."""
    last = shape[1] == 9
    x = np.ones(shape, np.uint8)
    y = onnxpool.max_pool(x, 2, pads=pads, channels_last=last)
    assert y.shape[1 if last else 2] == 2**20 + 8
    assert int(y.sum()) == 9 * shape[2 if last else 1]
