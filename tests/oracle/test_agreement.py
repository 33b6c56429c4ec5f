"""Random calls agree with the oracle, and results obey the relations that hold between calls."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from calls import FUNCTIONS, INDICES, STYLES, THREADS, WINDOWED, SeededChoices
from calls_family import draw_call
from campaign import check
from hypothesis import assume, given, settings
from strategies import any_call, legal_call, plain_window, pools
from support import assert_same_bits, assert_same_values

import onnxpool

GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool", "LpPool": "GlobalLpPool"}


def pool(operator, x, kernel, **attributes):
    """A windowed operator by its ONNX name."""
    return getattr(onnxpool, FUNCTIONS[operator])(x, kernel, **attributes)


@pytest.mark.smoke
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_any_call_agrees_with_the_oracle(operator):
    """A call with any opset, attributes, dtype, layout, memory and style returns the true result within its bound."""

    @settings(pools, max_examples=60)
    @given(any_call(operators=(operator,)))
    def agrees(call):
        outcome = check(call)
        assert outcome.problem is None, f"{call.describe()}: {outcome.problem}"

    agrees()


@pytest.mark.slow
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_many_calls_agree_with_the_oracle(operator):
    """The same for thousands of calls that are determined by seeds."""
    for seed in range(3000):
        call = draw_call(SeededChoices(seed), (operator,))
        outcome = check(call)
        assert outcome.problem is None, f"{seed}: {call.describe()}: {outcome.problem}"


@pools
@given(legal_call(operators=WINDOWED))
def test_both_layouts_give_the_same_bits(call):
    """A windowed pool of a transposed array is the transposed pool, bit for bit."""
    ways = (1, -1) if call.channels_last else (-1, 1)
    other = replace(call, x=np.moveaxis(call.x, *reversed(ways)), channels_last=not call.channels_last)
    assert_same_bits(call.run(onnxpool), np.moveaxis(other.run(onnxpool), *ways))


@pools
@given(legal_call(operators=tuple(FUNCTIONS)))
def test_threads_and_styles_give_the_same_bits(call):
    """Neither the number of threads nor the way of calling changes a bit of the result."""
    first = call.run(onnxpool)
    for threads, style in zip(THREADS, STYLES * 2, strict=False):
        again = replace(call, num_threads=threads, style=style).run(onnxpool)
        for pair in zip(first, again, strict=True) if call.operator == INDICES else [(first, again)]:
            assert_same_bits(*pair)


@pools
@given(legal_call())
def test_a_batch_is_its_images(call):
    """Pooling a batch gives the same bits as pooling its images one by one."""
    assume(len(call.x) > 0)
    images = [replace(call, x=call.x[n : n + 1]).run(onnxpool) for n in range(len(call.x))]
    assert_same_bits(call.run(onnxpool), np.concatenate(images))


@pools
@given(legal_call(), st.randoms(use_true_random=False))
def test_channels_are_independent(call, random):
    """Permuting the channels permutes the result, bit for bit; for global pools, if the memory layout is the same."""
    if call.operator.startswith("Global"):
        call = replace(call, x=np.ascontiguousarray(call.x), memory="C")
    axis = -1 if call.channels_last else 1
    order = list(range(call.x.shape[axis]))
    random.shuffle(order)
    permuted = replace(call, x=call.x.take(np.array(order, np.intp), axis))
    assert_same_bits(permuted.run(onnxpool), call.run(onnxpool).take(np.array(order, np.intp), axis))


@pools
@given(legal_call(operators=("MaxPool", "GlobalMaxPool")), st.integers(0, 2**32 - 1))
def test_the_maximum_of_maxima(call, seed):
    """The pool of an elementwise maximum is the elementwise maximum of the pools."""
    other = np.random.default_rng(seed).integers(-2, 3, call.x.shape).astype(call.x.dtype)
    both = replace(call, x=np.maximum(call.x, other))
    with np.errstate(invalid="ignore"):
        expected = np.maximum(call.run(onnxpool), replace(call, x=other).run(onnxpool))
    assert_same_values(both.run(onnxpool), expected)


@pools
@given(plain_window(), st.sampled_from(WINDOWED))
def test_a_window_of_one_is_the_input(window, operator):
    """A kernel of 1 with stride 1 is the identity, or |x| for a norm."""
    x, kernel = window
    y = pool(operator, x, (1,) * len(kernel))
    assert_same_values(y, np.abs(x) if operator == "LpPool" else x)


@pools
@given(plain_window(), st.sampled_from(("AveragePool", "LpPool")), st.integers(-20, 20))
def test_a_power_of_two_passes_through(window, operator, exponent):
    """Scaling the input by a power of two scales averages and 2-norms exactly."""
    x, kernel = window
    assert_same_values(pool(operator, np.ldexp(x, exponent), kernel), np.ldexp(pool(operator, x, kernel), exponent))


@pools
@given(plain_window(), st.sampled_from(WINDOWED))
def test_a_global_pool_is_one_window(window, operator):
    """A global pool is the pool whose kernel is the whole plane."""
    x, _ = window
    whole = getattr(onnxpool, FUNCTIONS[GLOBAL[operator]])(x)
    assert_same_values(whole, pool(operator, x, x.shape[2:]))


@pools
@given(plain_window(), st.sampled_from(WINDOWED), st.integers(1, 4))
def test_a_stride_is_a_subsample(window, operator, stride):
    """A pool with stride s is every s-th element of the pool without a stride."""
    x, kernel = window
    steps = (..., *(slice(None, None, stride),) * len(kernel))
    assert_same_values(pool(operator, x, kernel, strides=stride), pool(operator, x, kernel)[steps])


@pools
@given(plain_window(), st.sampled_from(WINDOWED), st.data())
def test_pads_are_the_identity(window, operator, data):
    """Pads act like an explicit border of -inf for a maximum, and of zeros for a norm and a mean that counts them."""
    x, kernel = window
    pads = [data.draw(st.integers(0, 5)) for _ in range(2 * len(kernel))]
    counted = {"count_include_pad": 1} if operator == "AveragePool" else {}
    border = [(0, 0), (0, 0), *zip(pads[: len(kernel)], pads[len(kernel) :], strict=True)]
    padded = np.pad(x, border, constant_values=-np.inf if operator == "MaxPool" else 0)
    assert_same_values(pool(operator, x, kernel, pads=pads, **counted), pool(operator, padded, kernel))


@pools
@given(plain_window(), st.sampled_from(WINDOWED), st.data())
def test_an_axis_of_one_changes_nothing(window, operator, data):
    """An extra spatial axis of size 1 with kernel 1 does not change the values."""
    x, kernel = window
    axis = data.draw(st.integers(0, len(kernel)))
    more = (*kernel[:axis], 1, *kernel[axis:])
    assert_same_values(pool(operator, np.expand_dims(x, axis + 2), more).squeeze(axis + 2), pool(operator, x, kernel))


@pools
@given(plain_window(ranks=(2, 3)))
def test_a_maximum_is_separable(window):
    """A max pool equals max pools along each axis in turn."""
    x, kernel = window
    y = x
    for axis, length in enumerate(kernel):
        y = pool("MaxPool", y, tuple(length if k == axis else 1 for k in range(len(kernel))))
    assert_same_values(pool("MaxPool", x, kernel), y)


@pools
@given(plain_window(), st.sampled_from(WINDOWED), st.integers(1, 3))
def test_a_dilated_pool_is_a_pool_of_a_strided_view(window, operator, dilation):
    """Every d-th result of a pool with dilation d is the plain pool of every d-th element."""
    x, kernel = window
    assume((kernel[-1] - 1) * dilation < x.shape[-1])
    y = pool(operator, x, kernel, dilations=(1,) * (len(kernel) - 1) + (dilation,))
    for phase in range(min(dilation, y.shape[-1])):
        assert_same_values(y[..., phase::dilation], pool(operator, x[..., phase::dilation], kernel))
