"""Means of integers along named axes: exact sums, rounded once, compared with fractions of Python integers."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import onnxpool
from onnxpool.planning.integers import means
from onnxpool.planning.ways import Forced

pytestmark = pytest.mark.smoke

Array = NDArray[Any]
DTYPES = ["bool", *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))]


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Random integers: from the whole range, small ones, the largest only, or the extremes."""
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    limits = np.iinfo(dtype)
    x: Array = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    way = rng.integers(4)
    if way == 1:
        return x // dtype.type(1 << int(rng.integers(0, 8 * dtype.itemsize - 1)))
    if way == 2:
        return np.full(shape, limits.max, dtype)
    if way == 3:
        return rng.choice(np.array([limits.min, limits.max, 0, 1], object), shape).astype(dtype)
    return x


def nearest(mean: Fraction, dtype: str) -> Any:
    """The nearest value of a dtype, with ties to even."""
    if "int" in dtype:
        return round(mean)
    near = np.float64(mean.numerator / mean.denominator)  # Python rounds this quotient once
    if dtype == "float64":
        return near
    around = np.float32(near)
    return min((np.nextafter(around, np.float32(-np.inf)), around, np.nextafter(around, np.float32(np.inf))),
               key=lambda value: (abs(Fraction(float(value)) - mean), int(value.view(np.uint32)) & 1))


class Call(NamedTuple):
    """A random call of `average_pool`."""

    x: Array
    axes: tuple[int, ...]
    attributes: dict[str, Any]


def results(dtype: np.dtype[Any]) -> list[str]:
    """The dtypes that means of a dtype can have."""
    return ["float64", "float32", *([] if dtype.kind == "b" else [dtype.name])]


def padded_call(rng: np.random.Generator, dtype: str, counted: int) -> tuple[Call, list[list[tuple[range, int]]]]:
    """A call whose windows are mostly padding, and the elements and the divisor of each along each axis."""
    shape = tuple(int(size) for size in rng.integers(1, 6, int(rng.integers(1, 4))))
    axes = tuple(range(int(rng.integers(1, len(shape) + 1))))
    kernels, strides, begins, ends, along = [], [], [], [], []
    for axis in axes:
        kernel = 1 + int(rng.integers(1 << int(rng.integers(1, 60))))
        begin, end = (int(rng.integers(kernel + 1)) for _ in range(2))
        end += max(0, kernel - shape[axis] - begin - end)  # so that a window fits
        room = shape[axis] + begin + end - kernel
        stride = 1 + room // int(rng.integers(1, 6))
        places = [index * stride - begin for index in range(room // stride + 1)]
        taps = [range(max(0, place), min(shape[axis], place + kernel)) for place in places]
        along.append([(own, kernel if counted else len(own)) for own in taps])
        for values, value in zip((kernels, strides, begins, ends), (kernel, stride, begin, end), strict=True):
            values.append(value)
    return Call(integers(rng, shape, np.dtype(dtype)), axes, {
        "kernel_shape": kernels, "strides": strides, "pads": [*begins, *ends], "count_include_pad": counted}), along


@pytest.mark.one_in(4)
@pytest.mark.parametrize("counted", [1, 0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_of_any_size(dtype: str, counted: int) -> None:
    """Divisors of up to 2^180 are exact, also for few elements in windows of many taps."""
    rng = np.random.default_rng(8)
    largest = 0
    for _ in range(80):
        call, along = padded_call(rng, dtype, counted)
        for result in results(call.x.dtype):
            y = onnxpool.average_pool(call.x, axes=call.axes, dtype=result, **call.attributes)
            for place in np.ndindex(*y.shape):
                windows = [along[axis][at] for axis, at in enumerate(place[:len(along)])]
                taps = [*(places for places, _ in windows), *(range(at, at + 1) for at in place[len(along):])]
                total = sum(int(call.x[tap]) for tap in itertools.product(*taps))
                divisor = math.prod(kernel for _, kernel in windows)
                largest = max(largest, divisor)
                if divisor:
                    assert y[place] == nearest(Fraction(total, divisor), result), (call, result, place)
                else:
                    assert y[place] == 0 if "int" in result else math.isnan(y[place])
    assert largest > 2**90 if counted else largest < 2**8


def exact_sums(rng: np.random.Generator, counts: list[int], dtype: str) -> list[int]:
    """Sums whose means are in the range of a dtype: any, whole means, ties, and their neighbours."""
    limits = np.iinfo(dtype)
    sums = []
    for count in counts:
        mean = int(rng.integers(limits.min, limits.max, dtype=dtype, endpoint=True)) >> int(rng.integers(64))
        beside = [int(rng.integers(count)) if count < 2**63 else count // 3, 0, count // 2, (count + 1) // 2]
        total = mean * count + beside[int(rng.integers(4))] + int(rng.integers(-1, 2))
        sums.append(max(limits.min * count, min(limits.max * count, total)) if abs(total) < 2**126 else mean)
    return sums


@pytest.mark.parametrize("bits", [7, 31, 51, 62])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_quotients_of_sums(dtype: str, bits: int) -> None:
    """Quotients are exact for sums of up to 126 bits in parts, and divisors of up to four factors and 250 bits."""
    rng = np.random.default_rng(9)
    for factors in (1, 1, 2, 4):
        divisors = [1 + (rng.integers(0, 2**63, 300) >> rng.integers(0, 63, 300)) for _ in range(factors)]
        if factors == 1:
            divisors = [np.minimum(divisors[0], 1 + (2**62 >> rng.integers(0, 60)))]
        counts = [math.prod(column) for column in zip(*(one.tolist() for one in divisors), strict=True)]
        sums = exact_sums(rng, counts, dtype)
        pieces = -(-127 // bits)
        parts = [np.array([total >> bits * (pieces - 1 - k) & (-1 if k == 0 else 2**bits - 1) for total in sums])
                 for k in range(pieces)]
        for result in ("float64", "float32", dtype):
            y = means(parts, bits, divisors, np.dtype(result))
            for value, total, count in zip(y, sums, counts, strict=True):
                assert value == nearest(Fraction(total, count), result), (total, count, result)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_combined_means_stay_in_range(dtype: str) -> None:
    """Combined means of the largest integers stay in range. They once became the smallest, because float64 rounds them
    up."""
    limits = np.iinfo(dtype)
    for value in (limits.max, limits.min, limits.max - 1, limits.max // 2):
        x = np.full(6, value, dtype)
        plan = onnxpool.GlobalAveragePool(axes=0, keepdims=False, dtype=dtype).plan(x.shape, dtype)
        y = plan.combine(share(x[share.inputs]) for share in plan.partials(n=3))
        assert type(y) is np.ndarray
        assert (y.dtype, plan(x).item()) == (dtype, value)
        assert abs(y.item() - value) <= 2**-50 * abs(value)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32"])
def test_large_windows_by_every_route(dtype: str) -> None:
    """Means of windows of many taps, most of which some windows share, equal NumPy's sums in images and stacks, on
    every route."""
    rng = np.random.default_rng(4)
    for _ in range(150):
        shape = tuple(int(size) for size in rng.choice([1, 3, 5, 21, 40, 70], int(rng.integers(1, 4))))
        axes = tuple(sorted(int(axis) for axis in rng.permutation(len(shape))[:rng.integers(1, len(shape) + 1)]))
        kernel = [int(rng.integers(1, min(shape[axis], 30) + 1)) for axis in axes]
        strides = [int(rng.choice([1, 1, 2, 3, 5])) for _ in axes]
        pads = [int(rng.integers(0, size)) for size in kernel]
        counted = int(rng.integers(2))
        x = integers(rng, shape, np.dtype(dtype))
        padding = [(pads[axes.index(axis)],) * 2 if axis in axes else (0, 0) for axis in range(x.ndim)]

        def windows(values: Array) -> Array:
            every = np.lib.stride_tricks.sliding_window_view(np.pad(values, padding), kernel, axes)  # noqa: B023
            steps = tuple(slice(None, None, strides[axes.index(axis)] if axis in axes else 1)  # noqa: B023
                          for axis in range(values.ndim))
            total: Array = every[steps].sum(tuple(range(-len(axes), 0)), dtype=np.int64)  # noqa: B023
            return total

        counts = np.full_like(windows(x), math.prod(kernel)) if counted else windows(np.ones_like(x))
        quotient, rest = np.divmod(windows(x), counts)
        truth = quotient + ((2 * rest > counts) | ((2 * rest == counts) & (quotient % 2 == 1)))
        op = onnxpool.AveragePool(kernel_shape=kernel, strides=strides, pads=[*pads, *pads], axes=axes, dtype=dtype,
                                  count_include_pad=counted)
        for Forced.solver, Forced.lanes in itertools.product((None, "direct", "passes"), (None, False, True)):
            plan = op._make_plan(x.shape, x.dtype)
            assert np.array_equal(plan(x), truth), (shape, axes, op, Forced.solver, Forced.lanes)


def sums_along(x: Array, kernel: int, axis: int) -> Array:
    """The sums of windows of stride 1 along an axis."""
    sums = np.insert(np.cumsum(x, axis, dtype=np.int64), 0, 0, axis)
    end = [np.arange(kernel, sums.shape[axis]), np.arange(sums.shape[axis] - kernel)]
    after, before = (np.take(sums, places, axis) for places in end)
    return np.asarray(after - before)


@pytest.mark.parametrize("kernel", [(16, 17), (1, 258), (17, 17), (128, 256), (181, 181), (182, 182), (1, 256)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_whose_sums_need_more_than_16_bits(dtype: str, kernel: tuple[int, int]) -> None:
    """Extremes, ties and random bytes give exact means, with windows near the largest size that the int16 loops
    accept."""
    rng = np.random.default_rng(5)
    limits = np.iinfo(dtype)
    arrays = [np.full((190, 260), value, dtype) for value in (limits.min, limits.max)]
    arrays += [integers(rng, (190, 260), np.dtype(dtype)) for _ in range(3)]
    arrays.append((np.indices((190, 260)).sum(0) % 2).astype(dtype))
    for x in arrays:
        count = kernel[0] * kernel[1]
        total = sums_along(sums_along(x, kernel[0], 0), kernel[1], 1)
        quotient, rest = np.divmod(total, count)
        truth = quotient + ((2 * rest > count) | ((2 * rest == count) & (quotient % 2 == 1)))
        plan = onnxpool.AveragePool(kernel_shape=kernel, axes=(0, 1), dtype=dtype).plan(x.shape, dtype)
        for y in (plan(x), plan(x), plan(x[:, ::-1])[:, ::-1]):
            assert y.dtype == dtype
            assert np.array_equal(y, truth)


@pytest.mark.parametrize(("dtype", "kernel", "held"), [
    ("int8", 3, "int16"), ("uint8", 17, "int16"), ("uint8", 181, "int16"), ("uint8", 182, "float64")])
def test_bytes_are_averaged_as_int16(dtype: str, kernel: int, held: str) -> None:
    """Bytes are averaged as int16 if the loops for int16 can round their means."""
    op = onnxpool.AveragePool(kernel_shape=kernel, axes=(0, 1), dtype=dtype)
    assert f"{dtype} becomes {held}, a part at a time" in op.plan((200, 210), dtype).explain()


@pytest.mark.parametrize(("dtype", "result"), [("uint8", "uint8"), ("int8", "int8"), ("uint8", "float32"),
                                               ("int16", "float64")])
def test_second_calls_of_casts_need_no_python(dtype: str, result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of small arrays cast elements in compiled code, if the arrays are plain."""
    x = integers(np.random.default_rng(6), (30, 40), np.dtype(dtype))
    plan = onnxpool.AveragePool(kernel_shape=20, axes=(0, 1), dtype=result).plan(x.shape, dtype)
    y = plan(x)
    monkeypatch.setattr(type(plan), "_call", None)
    out = np.empty_like(y)
    assert plan(x, out=out) is out
    assert plan(x).tolist() == out.tolist() == y.tolist()
    with pytest.raises(TypeError, match="not callable"):
        plan(x[:, ::-1])


@pytest.fixture(autouse=True)
def chosen_routes() -> Iterator[None]:
    """Routes are chosen again after a test."""
    yield
    Forced.solver = Forced.lanes = None


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_over_whole_axes(dtype: str) -> None:
    """Means over all axes, or over some, are exact, whether the pooled axes are kept or dropped."""
    rng = np.random.default_rng(1)
    for keepdims, axes in itertools.product((False, True), ((0,), (1, 2), (0, 2), (0, 1, 2))):
        x = integers(rng, (4, 5, 6), np.dtype(dtype))
        taps = math.prod(x.shape[axis] for axis in axes)
        totals = x.astype(object).sum(axes, keepdims=keepdims)
        for result in results(x.dtype):
            y = onnxpool.global_average_pool(x, axes=axes, keepdims=keepdims, dtype=result)
            truth = [nearest(Fraction(total, taps), result) for total in np.ravel(totals)]
            assert (y.dtype, y.shape, y.ravel().tolist()) == (result, np.shape(totals), truth)


def test_ties_go_to_even() -> None:
    """Ties go to even for both signs, as in NumPy's `rint`."""
    x = np.array([[1, 2], [2, 3], [-1, -2], [-2, -3], [0, 1], [0, -1]], np.int16)
    assert onnxpool.average_pool(x, 2, axes=1, dtype="int16").ravel().tolist() == [2, 2, -2, -2, 0, 0]
    assert onnxpool.global_average_pool(x, axes=1, keepdims=False, dtype="int16").tolist() == [2, 2, -2, -2, 0, 0]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_means_close_to_ties_of_floats(dtype: str) -> None:
    """Means that lie halfway between floats, exactly or nearly, are rounded right at any magnitude, where a single unit
    decides."""
    rng, limits = np.random.default_rng(2), np.iinfo(dtype)
    sign = 1 if limits.min == 0 else -1
    for digits, result in ((24, "float32"), (53, "float64")):
        for bits in range(digits + 1, limits.bits - (sign < 0) + 1):
            step = 1 << (bits - digits)  # the distance between floats with this many bits
            least, end = 1 << (digits - 1), 1 << digits
            for first in (least, end - 1, *rng.integers(least, end, 4).tolist()):
                tie = first * step + step // 2
                for taps in (1, 2, 3, 5):
                    rows = [[tie] * taps for _ in range(3)]
                    rows[1][0] += 1
                    rows[2][0] -= 1
                    rows = [row for row in rows if max(row) <= limits.max]
                    rows += [[sign * one for one in row] for row in rows] if sign < 0 else []
                    y = onnxpool.global_average_pool(np.array(rows, dtype), axes=1, keepdims=False, dtype=result)
                    assert y.tolist() == [nearest(Fraction(sum(row), taps), result) for row in rows], (rows, result)


def test_the_default_is_float64() -> None:
    """The default is float64, as in `numpy.mean`, also for lists, empty arrays, plans and their parts."""
    x = np.arange(24, dtype=np.uint8).reshape(4, 6)
    assert onnxpool.average_pool(x, 2, axes=0).dtype == np.float64
    assert onnxpool.average_pool([1, 2], 2, axes=0).tolist() == [1.5]
    assert onnxpool.average_pool(x[:, :0], 2, axes=0).dtype == np.float64
    plan = onnxpool.AveragePool(kernel_shape=2, axes=0, dtype="uint8").plan(x.shape, x.dtype)
    assert (plan.dtype, plan.result_dtype) == (np.uint8, np.uint8)
    plan = onnxpool.AveragePool(kernel_shape=3, axes=(0, 1), pads=1).plan(x.shape, x.dtype)
    assert (plan.dtype, plan.result_dtype) == (np.uint8, np.float64)
    y = plan(x)
    for part in plan.tiles(max_bytes=100):
        assert part(x[part.inputs]).tolist() == y[part.outputs].tolist()
    out = np.empty(plan.output_shape)
    assert plan(x, out=out) is out
    with pytest.raises(onnxpool.PoolTypeError, match="out has dtype uint8, but the result has float64"):
        plan(x, out=np.empty(plan.output_shape, np.uint8))


def test_explanations_name_both_dtypes() -> None:
    """If the two dtypes differ, explanations name both, and what is converted."""
    plan = onnxpool.AveragePool(kernel_shape=2, axes=0).plan((5,), "uint8")
    text = plan.explain()
    assert text.startswith("AveragePool-22, uint8 (5,) -> float64 (4,)\n")
    assert "uint8 becomes float64, a part at a time" in text
    assert text.to_dict()["result_dtype"] == "float64"
    plan = onnxpool.AveragePool(kernel_shape=2, axes=0, dtype="uint8").plan((5,), "uint8")
    assert plan.explain().startswith("AveragePool-22, uint8 (5,) -> (4,)\n")
    assert "becomes" not in plan.explain()
    assert onnxpool.GlobalAveragePool(axes=0).plan((5,), "uint8").explain().to_dict()["route"] == ["numpy"]


def test_shares_are_combined_exactly() -> None:
    """Shares are combined exactly if float64 represents the sums."""
    rng = np.random.default_rng(2)
    for dtype, result in itertools.product(("uint8", "int16", "uint16"), ("float64", "float32", "own")):
        x = integers(rng, (37, 41), np.dtype(dtype))
        op = onnxpool.GlobalAveragePool(axes=(0, 1), dtype=dtype if result == "own" else result)
        plan = op.plan(x.shape, x.dtype)
        combined = plan.combine(share(x[share.inputs]) for share in plan.partials(n=7))
        assert (combined.dtype, combined.tolist()) == (plan.result_dtype, plan(x).tolist())


@pytest.mark.parametrize("result", ["float64", "float32", "own"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_shares_of_small_integers_are_combined_exactly(dtype: str, result: str) -> None:
    """The sums decide, not the range of the dtype: an element of the result is exact if its sums are below 2^51."""
    rng = np.random.default_rng(3)
    largest = np.iinfo(dtype).max
    for taps, most in itertools.product((3, 30, 41, 1000), (2, 100, 2**31 - 1, 2**40)):
        x = rng.integers(0, min(most, largest), (50, taps), dtype)
        x = np.where(dtype.startswith("i") & (rng.random(x.shape) < 0.5), -x.astype(np.int64), x).astype(dtype)
        x[7] = largest  # this does not affect other elements of the result
        op = onnxpool.GlobalAveragePool(axes=1, keepdims=False, dtype=dtype if result == "own" else result)
        plan = op.plan(x.shape, x.dtype)
        shares = [share(x[share.inputs]) for share in plan.partials(n=4)]
        y, combined = plan(x), plan.combine(reversed(shares))
        exact = np.arange(50) != 7
        assert combined.dtype == y.dtype
        assert combined[exact].tolist() == y[exact].tolist()
        assert abs(int(combined[7]) - largest) <= 2**-23 * largest


@pytest.mark.parametrize(("dtype", "result"), [
    ("float16", "float32"), ("float16", "float64"), ("bfloat16", "float32"), ("float32", "float64")])
def test_means_of_floats_can_be_wider(dtype: str, result: str) -> None:
    """A mean in a wider dtype equals the mean of elements that were converted first."""
    rng = np.random.default_rng(3)
    kind = onnxpool.AveragePool(kernel_shape=1, axes=0, dtype=dtype).dtype
    x = rng.standard_normal((9, 11)).astype(kind)
    for function, more in ((onnxpool.average_pool, {"kernel_shape": 4}), (onnxpool.global_average_pool, {})):
        y = function(x, axes=(0, 1), dtype=result, **more)
        assert y.dtype == result
        assert y.tolist() == function(x.astype(result), axes=(0, 1), **more).tolist()


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: onnxpool.average_pool(x, 2, axes=0, dtype="int32"), "dtype=int32 .* float32, float64, uint8"),
    (lambda x: onnxpool.average_pool(x > 1, 2, axes=0, dtype=bool), "dtype=bool .* float32, float64; cast"),
    (lambda x: onnxpool.average_pool(x.astype(np.float32), 2, axes=0, dtype="float16"), "dtype=float16"),
    (lambda x: onnxpool.average_pool(x, 2, axes=0, dtype="float16"), "dtype=float16"),
    (lambda x: onnxpool.average_pool(x[None, None] * 1.0, 2, dtype="float64"), "without axes"),
    (lambda x: onnxpool.average_pool(x, 2, axes=0, dtype="float31"), "must be a NumPy dtype"),
    (lambda x: onnxpool.average_pool(x * 1j, 2, axes=0), "dtype complex128 is not accepted"),
    (lambda x: onnxpool.lp_pool(x, 2, axes=0), "cast to float32")])
def test_other_dtypes_are_refused(call: Any, text: str) -> None:
    """Other dtypes are refused with an error that lists the accepted dtypes."""
    with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError), match=text):
        call(np.ones((3, 4), np.uint8))


def test_the_dtype_of_the_result_belongs_to_the_operator() -> None:
    """The dtype of the result is part of the operator's repr, equality and pickles."""
    import pickle

    op = onnxpool.AveragePool(kernel_shape=2, axes=(0,), dtype=np.float32)
    assert repr(op) == "AveragePool(kernel_shape=2, opset=28, axes=(0,), dtype='float32')"
    plain = onnxpool.AveragePool(kernel_shape=2, axes=0)
    assert pickle.loads(pickle.dumps(op)) == op != plain
    wide = onnxpool.AveragePool(kernel_shape=2, axes=0, dtype=np.float64)
    assert wide != plain  # although NumPy's float64 equals None
    assert wide.plan((4,), "float32") != plain.plan((4,), "float32")
    assert pickle.loads(pickle.dumps(op.plan((3,), "uint8"))).result_dtype == np.float32


@pytest.mark.parametrize("dtype", [">u8", ">i8", ">u4", ">i2"])
def test_byte_swapped_integers(dtype):
    """Means of byte-swapped integers with the highest bit set are right. They were once negative."""
    limits = np.iinfo(dtype)
    x = np.array([limits.max - 10, limits.max - 20, limits.min, 7], dtype)
    native = x.astype(x.dtype.newbyteorder("="))
    for result in (None, "float32", native.dtype):
        for name, kernel in (("average_pool", (2,)), ("global_average_pool", ())):
            pool = getattr(onnxpool, name)
            np.testing.assert_array_equal(pool(x, *kernel, axes=0, dtype=result),
                                          pool(native, *kernel, axes=0, dtype=result))
    assert onnxpool.average_pool(np.array([2**63 + 10, 2**63 + 20], ">u8"), 2, axes=0).item() == 2.0**63


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_of_another_byte_order(dtype: str) -> None:
    """Arrays that receive means may have the other byte order, and so may the elements."""
    x = np.arange(12).reshape(3, 4).astype(dtype)
    for result in results(x.dtype):
        out = np.empty((1, 4), np.dtype(result).newbyteorder())
        expected = onnxpool.global_average_pool(x, axes=0, dtype=result)
        assert onnxpool.global_average_pool(x.astype(x.dtype.newbyteorder()), axes=0, dtype=result, out=out) is out
        assert np.array_equal(out, expected)
        out = np.empty((2, 4), np.dtype(result).newbyteorder())
        onnxpool.average_pool(x, 2, axes=0, dtype=result, out=out)
        assert np.array_equal(out, onnxpool.average_pool(x, 2, axes=0, dtype=result))
