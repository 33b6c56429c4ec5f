"""Parts have the same bits as the whole result, for any tiling, geometry, operator, dtype, layout and memory."""

import pickle
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import cases_axes
import ml_dtypes
import numpy as np
import pytest
from calls import POOLS, SeededChoices, draw_pool
from numpy.typing import NDArray
from support import same_bits

import onnxpool
from onnxpool.planning.combining import Total
from onnxpool.planning.request import Reduction

Array = NDArray[Any]
Plan = onnxpool.Plan


def cuts(rng: np.random.Generator, size: int) -> list[slice]:
    """An axis cut into a few pieces."""
    places = rng.integers(0, size + 1, int(rng.choice([0, 0, 1, 2, 3]))).tolist()
    return [slice(*pair) for pair in pairwise(sorted({0, *places, size}))] or [slice(0, 0)]


def tiling(rng: np.random.Generator, shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """A result cut into pieces."""
    return product(*(cuts(rng, size) for size in shape))


def check_tiling(rng: np.random.Generator, plan: Plan, x: Array, further: tuple[Any, ...]) -> None:
    """Every piece of a random tiling equals that piece of the whole result, in new memory or in `out`."""
    whole = plan(x, *further)
    for slices in tiling(rng, plan.output_shape):
        part = plan.tile(slices)
        given = x[part.inputs]
        assert part.shape == given.shape
        wanted = [y[slices] for y in (whole if isinstance(whole, tuple) else (whole,))]
        assert part.output_shape == wanted[0].shape
        outs = tuple(np.empty((*y.shape, 2), y.dtype)[..., 0] for y in wanted) if rng.integers(0, 2) else None
        out = outs if outs is None or len(outs) > 1 else outs[0]
        result = part(given.copy() if rng.integers(0, 2) and not reads_layout(plan) else given, *further, out=out)
        for y, truth in zip(result if isinstance(whole, tuple) else (result,), wanted, strict=True):
            assert same_bits(y, truth), (plan, x.strides, slices)
        if out is not None:
            assert result is out or result == out


def reads_layout(plan: Plan) -> bool:
    """Whether the order of sums depends on the memory layout of the array."""
    return plan.operator.label.startswith("Global")


def check_call(seed: int) -> None:
    """Check a random call of ONNX."""
    call = draw_pool(SeededChoices(seed), POOLS[seed % len(POOLS)])
    keywords = {} if call.opset is None else {"opset": call.opset}
    last = {} if call.operator == "NhwcMaxPool" else {"channels_last": int(call.channels_last)}
    more = {"return_indices": True} if call.operator == "MaxPool" and (call.opset or 9) > 8 and seed % 3 == 0 else {}
    op = getattr(onnxpool, call.operator)(**call.attributes, **keywords, **last, **more)
    try:
        plan = op.plan(call.x.shape, call.x.dtype)
    except onnxpool.PoolError:
        return
    check_tiling(np.random.default_rng(seed), plan, call.x, call.further)


def check_axes(seed: int) -> None:
    """Check a random call with named axes. Sums over whole axes are added as in arrays in row-major order."""
    case = cases_axes.varied_case(seed)
    x = np.ascontiguousarray(case.x) if case.operator in cases_axes.WHOLE else case.x
    x = x.reshape(case.x.shape)
    check_tiling(np.random.default_rng(seed), case.make().plan(x.shape, x.dtype), x, ())


@pytest.mark.smoke
@pytest.mark.parametrize("check", [check_call, check_axes])
def test_tilings_are_the_whole(check: Any) -> None:
    """A few hundred random tilings have the bits of the whole."""
    for seed in range(250):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_call, check_axes])
def test_many_tilings_are_the_whole(check: Any) -> None:
    """5,000 random tilings have the bits of the whole."""
    for seed in range(10_000, 12_500):
        check(seed)


@pytest.mark.parametrize(("shape", "axes"), [
    ((20, 40, 50), 0), ((7, 3, 200), 0), ((20, 4, 5), 0), ((1, 20, 3, 200), 1), ((9, 7, 20), (0, 2)),
    ((9, 7, 20, 90), (0, 2)), ((6, 90, 5, 9), (2, 3)), ((90, 5, 9), (1, 2)), ((5, 40, 1), (0, 2)),
    ((1, 9, 9, 3), (0, 2, 3)),
])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sums_of_whole_axes_keep_their_order(shape: tuple[int, ...], axes: Any, dtype: str) -> None:
    """Sums have the bits of the whole, whichever axes are cut and however small parts are: parts read more than they
    return if the order of sums requires it."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for op in (onnxpool.GlobalAveragePool(axes=axes), onnxpool.GlobalLpPool(axes=axes, keepdims=False)):
        plan = op.plan(shape, dtype)
        whole = plan(x)
        for axis, size in enumerate(plan.output_shape):
            for cut in {(0, size), (0, 1), (size // 2, size // 2 + 1), (size // 3, size), (0, max(1, size - 3))}:
                slices = (slice(None),) * axis + (slice(*cut),)
                part = plan.tile(slices)
                assert same_bits(part(x[part.inputs]), whole[slices]), slices


def test_a_part_reads_no_more_than_it_needs() -> None:
    """A part reads the elements between its first and its last tap, and no elements of other images."""
    plan = onnxpool.AveragePool(kernel_shape=3, strides=2, pads=1).plan((4, 3, 9, 9), "float32")
    assert plan.tile((slice(1, 2), slice(None), slice(1, 3))).inputs == (
        slice(1, 2), slice(0, 3), slice(1, 6), slice(0, 9))
    assert plan.tile((slice(1, 2), slice(2, 3), slice(0, 1), slice(4, 5))).inputs == (
        slice(1, 2), slice(2, 3), slice(0, 2), slice(7, 9))
    plan = onnxpool.GlobalAveragePool().plan((4, 3, 9, 9), "float32")
    assert plan.tile((slice(1, 2), slice(2, 3))).inputs == (slice(1, 2), slice(0, 3), slice(0, 9), slice(0, 9))


@pytest.mark.parametrize(("plan", "kept"), [
    (onnxpool.MaxPool(kernel_shape=3, strides=2, pads=1).plan((2, 3, 9, 8), "float32"), [0, 1, 2, 3]),
    (onnxpool.LpPool(kernel_shape=2, axes=0).plan((7, 4), "float32"), [0, 1]),
    (onnxpool.GlobalAveragePool(axes=(1, 3), keepdims=False).plan((5, 4, 6, 3), "float32"), [0, 2]),
    (onnxpool.GlobalAveragePool(channels_last=True).plan((2, 6, 5, 40), "float32"), [0, 1, 2, 3]),
], ids=str)
def test_lines_say_what_parts_read(plan: Any, kept: list[int]) -> None:
    """`lines` has a slice for each axis of the input, whatever the part."""
    assert [axis for axis, line in enumerate(plan.lines) if line.kept] == kept
    assert [line.size for line in plan.lines] == list(plan.shape)
    assert tuple(line.windows for line in plan.lines if line.windows) == plan.axes
    rng = np.random.default_rng(0)
    for slices in (slices for _ in range(20) for slices in tiling(rng, plan.output_shape)):
        wanted = dict(zip(kept, slices, strict=True))
        places = [line.part(wanted[axis].start, wanted[axis].stop) if line.kept else line.part(0, 1)
                  for axis, line in enumerate(plan.lines)]
        assert plan.tile(slices).inputs == tuple(slice(low, high) for low, high, _ in places)


@pytest.mark.parametrize("limit", [{"n": 1}, {"n": 7}, {"n": 10**9}, {"max_bytes": 3000}, {"max_bytes": 10**9}])
def test_tiles_cover_the_result_once(limit: dict[str, int]) -> None:
    """Parts come in row-major order, and there are at least `n`, or none is larger than `max_bytes`."""
    x = np.random.default_rng(0).standard_normal((3, 5, 20, 30)).astype(np.float32)
    plan = onnxpool.MaxPool(kernel_shape=3, strides=(1, 2), pads=1, return_indices=True).plan(x.shape, x.dtype)
    whole, places = plan(x)
    y, indices, seen = np.zeros_like(whole), np.zeros_like(places), np.zeros(whole.shape, int)
    parts = list(plan.tiles(**limit))
    for part in parts:
        y[part.outputs], indices[part.outputs] = part(x[part.inputs])
        seen[part.outputs] += 1
        assert part.shape == x[part.inputs].shape
        assert part.output_shape == y[part.outputs].shape
        if "max_bytes" in limit:
            assert x[part.inputs].nbytes + 12 * y[part.outputs].size <= limit["max_bytes"]
    assert (seen == 1).all()
    assert same_bits(y, whole)
    assert np.array_equal(indices, places)
    assert [part.outputs for part in parts] == sorted((part.outputs for part in parts),
                                                      key=lambda cuts: [cut.start for cut in cuts])
    if "n" in limit:
        assert min(limit["n"], y.size) <= len(parts) <= 2 * limit["n"]


def test_tiles_count_elements_that_are_read_for_the_order_of_sums() -> None:
    """Parts of few channels read more channels than they return. The bytes that such parts read are within the
    limit."""
    plan = onnxpool.GlobalAveragePool(channels_last=True).plan((2, 6, 5, 300), "float32")
    for wanted in (1, 100, 299):
        low, high = plan.tile([slice(0, 1)] * 3 + [slice(0, wanted)]).inputs[3].indices(300)[:2]
        assert high - low > 1
        smallest = 4 * (30 * (high - low) + wanted)
        for limit in (smallest - 1, smallest, smallest + 1):
            try:
                parts = list(plan.tiles(max_bytes=limit))
            except onnxpool.PoolError:
                assert (wanted, limit) == (1, smallest - 1)
            else:
                assert parts
                for part in parts:
                    assert 4 * (np.prod(part.shape) + np.prod(part.output_shape)) <= limit


def test_tiles_of_an_empty_result_are_none() -> None:
    """An empty result has no tiles."""
    assert list(onnxpool.MaxPool(kernel_shape=2, axes=1).plan((0, 5), "float32").tiles(n=3)) == []


def test_windows_beyond_the_input_have_parts() -> None:
    """Windows entirely in the padding, at either end, are as in the whole result, including divisors."""
    x = np.arange(1, 4, dtype=np.float32)
    for count in (0, 1):
        plan = onnxpool.AveragePool(kernel_shape=2, axes=0, pads=(4, 5), count_include_pad=count).plan((3,), "float32")
        whole = plan(x)
        assert len(whole) == 11
        for begin, end in product(range(11), range(12)):
            part = plan.tile(slice(begin, end))
            assert same_bits(part(x[part.inputs]), whole[begin:end])


SHARES = {
    "mean": (onnxpool.GlobalAveragePool, {}), "norm": (onnxpool.GlobalLpPool, {}),
    "large norm": (onnxpool.GlobalLpPool, {"p": 300}), "largest": (onnxpool.GlobalLpPool, {"p": 2**53}),
    "small norm": (onnxpool.GlobalLpPool, {"p": 0.5, "opset": 1}), "max": (onnxpool.GlobalMaxPool, {}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", SHARES)
def test_shares_combine_to_the_whole(kind: str, dtype: str) -> None:
    """Maxima are the same, and sums are within the bound that `combine` states."""
    cls, given = SHARES[kind]
    if dtype == "bfloat16" and "opset" in given:
        pytest.skip("version 1 has no bfloat16")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 50, 7, 30)).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for axes, keepdims in (((1, 3), True), ((0, 1), False), ((0, 1, 2, 3), False)):
        plan = cls(axes=axes, keepdims=keepdims, **given).plan(x.shape, x.dtype)
        whole = plan(x).astype(np.float64)
        for limit in ({"n": 1}, {"n": 7}, {"max_bytes": 60_000}):
            shares = list(plan.partials(**limit))
            y = plan.combine(share(x[share.inputs]) for share in shares)
            assert (y.dtype, y.shape) == (x.dtype, plan.output_shape)
            if kind == "max":
                assert same_bits(y, plan(x))
                continue
            unit = 2.0**-53 if dtype == "float64" else 2.0**-24
            steps = 2 * np.log2(np.prod([x.shape[axis] for axis in axes])) + 4
            if kind == "mean":
                bound = ((steps + 1) * unit + len(shares) * 2.0**-53) * np.abs(x.astype(np.float64)).mean(
                    axes, keepdims=keepdims)
            else:
                bound = np.abs(whole) * ((steps + len(shares)) * 2.0**-53 * max(1, 1 / plan.reduction.p) + unit)
            with np.errstate(invalid="ignore"):  # float16 cannot represent some norms
                error = np.abs(np.where(y == plan(x), 0, y.astype(np.float64) - whole))
            # Both the combined result and the whole result have errors, and are rounded.
            assert (error <= 2 * bound + float(ml_dtypes.finfo(y.dtype).eps) * np.abs(whole)).all()


@pytest.mark.parametrize("kind", SHARES)
def test_shares_of_what_is_not_finite(kind: str) -> None:
    """Infinities, NaNs, zeros and the largest numbers give the results of the whole call."""
    cls, given = SHARES[kind]
    huge = 1.7e308 if kind in ("mean", "max", "largest") else 1.0
    x = np.array([[np.inf, 1, 2, 3], [np.inf, 1, -np.inf, 3], [0, 0, 0, 0], [huge, huge, huge, -huge],
                  [np.nan, 1, 2, 3], [np.nan, np.inf, 2, 3], [0, 0, 1, 0]])
    plan = cls(axes=1, keepdims=False, **given).plan(x.shape, x.dtype)
    y = plan.combine(share(x[share.inputs]) for share in plan.partials(n=4))
    assert np.allclose(y, plan(x), rtol=1e-15, atol=0, equal_nan=True)


def test_parts_and_shares_are_picklable() -> None:
    """Shares and partial results can be sent to other processes."""
    x = np.random.default_rng(0).standard_normal((9, 8, 5))
    plan = onnxpool.MaxPool(kernel_shape=2, axes=(0, 1), return_indices=True).plan(x.shape, x.dtype)
    part = plan.tile((slice(1, 4), slice(2, 5)))
    again = pickle.loads(pickle.dumps(part))
    assert again.inputs == part.inputs
    for a, b in zip(again(x[part.inputs]), part(x[part.inputs]), strict=True):
        assert np.array_equal(a, b)
    share = list(onnxpool.GlobalLpPool(axes=(0, 1)).plan(x.shape, x.dtype).partials(n=3))[1]
    again = pickle.loads(pickle.dumps(share))
    assert np.array_equal(again(x[share.inputs]).value, share(x[share.inputs]).value)
    assert repr(part) == ("<part of MaxPool(kernel_shape=2, opset=28, return_indices=True, axes=(0, 1))"
                          ".plan((9, 8, 5), 'float64'): [1:4, 2:5, 0:5] from [1:5, 2:6, 0:5]>")
    with pytest.raises(AttributeError, match="immutable: cannot set inputs; create a new one"):
        part.inputs = ()
    with pytest.raises(AttributeError, match="immutable: cannot delete inputs"):
        del part.inputs


PLAN = onnxpool.MaxPool(kernel_shape=2, axes=0).plan((9, 4), "float32")
MEAN = onnxpool.GlobalAveragePool(axes=0).plan((9, 4), "float32")
REGIONS = onnxpool.RoiAlign().plan((1, 3, 8, 8), "float32")
REFUSED: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "an_int": (lambda: PLAN.tile((3,)), r"slices\[0\] must be a slice", ("slices", 0, 3)),
    "floats": (lambda: PLAN.tile(slice(0.5, 2)), "slice of integers", ("slices", 0, slice(0.5, 2))),
    "step": (lambda: PLAN.tile((slice(None), slice(0, 4, 2))), "has the step 2", ("slices", 1, 2)),
    "too_many": (lambda: PLAN.tile((slice(None),) * 3), "3 slices of a result with 2 axes", ("slices", None, 3)),
    "neither": (lambda: PLAN.tiles(), "neither of n and max_bytes", ("n", None, None)),
    "both": (lambda: PLAN.tiles(3, max_bytes=4), "both of n and max_bytes", ("n", None, 3)),
    "zero": (lambda: PLAN.tiles(0), "pass an int of at least 1", ("n", None, 0)),
    "too_small": (lambda: PLAN.tiles(max_bytes=11), "the smallest part has 12 bytes", ("max_bytes", None, 11)),
    "share_too_small": (lambda: MEAN.partials(max_bytes=15), "has 16 bytes", ("max_bytes", None, 15)),
    "no_global_operator": (lambda: PLAN.partials(2), "only global operators", ("partials", None, None)),
    "regions": (lambda: REGIONS.tile(slice(0, 1)), "cannot be cut into parts", ("slices", None, None)),
    "regions_in_parts": (lambda: REGIONS.tiles(3), "cut the inputs", ("slices", None, None)),
    "regions_in_shares": (lambda: REGIONS.partials(3), "cut the inputs", ("slices", None, None)),
    "regions_combined": (lambda: REGIONS.combine([]), "cut the inputs", ("slices", None, None)),
    "none": (lambda: MEAN.combine([]), "of 0 elements, but there are 9", ("partials", None, 0)),
    "one_of_two": (lambda: MEAN.combine([onnxpool.Partial(np.zeros((1, 4)), 5)]), "of 5 elements",
                   ("partials", None, 5)),
    "of_another_plan": (lambda: MEAN.combine([onnxpool.Partial(np.zeros(4), 9)]), "has shape",
                        ("partials", None, (4,))),
    "other_input": (lambda: PLAN.tile(slice(0, 2))(np.zeros((9, 4), np.float32)), "for shape", ("X", None, (9, 4))),
    "other_share": (lambda: next(MEAN.partials(9))(np.zeros((9, 4), np.float32)), "for shape",
                    ("X", None, (9, 4))),
    "out": (lambda: MEAN.tile((slice(None), slice(0, 1)))(np.zeros((9, 4), np.float32), out=np.zeros((1, 2), "f4")),
            "out has shape", ("out", None, (1, 2))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Wrong arguments are refused with an error that says what is wrong and what to do."""
    call, text, fields = REFUSED[name]
    with pytest.raises((onnxpool.PoolError, onnxpool.PoolTypeError), match=text) as caught:
        call()
    error: Any = caught.value
    assert (error.attribute, error.axis, error.value) == fields


def test_partial_minima_merge_in_the_dtype_of_their_elements() -> None:
    """Partial minima are exact, because they keep the dtype of their elements."""
    total = Total(Reduction("min"), 6, np.dtype(np.int8))
    for value, taps in (([3, -7], 2), ([-1, 5], 4)):
        total.add(np.array(value, np.int8), taps)

    result = total.result()

    assert result is not None
    assert (result.dtype, result.tolist()) == (np.int8, [-1, -7])


def test_empty_results_have_no_parts():
    """An empty result has no parts, however long its other axes are."""
    for shape in ((0, 3, 2**61), (2**61, 0, 5)):
        plan = onnxpool.MaxPool(kernel_shape=2).plan(shape, np.uint8)
        assert [*plan.tiles(n=4)] == [*plan.tiles(max_bytes=1 << 20)] == []
