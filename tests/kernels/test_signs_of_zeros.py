"""Maxima among zeros of both signs, which are equal: each layout and team returns the same one."""

import itertools

import numpy as np
import pytest
from support import FLOATS, assert_same_values, bits, taps, to_last

import onnxpool

CHANNELS = [1, 8, 16, 40, 100, 130]
SHAPES = [(9, 12), (6, 37), (5, 6, 18)]


def random_attributes(rng: np.random.Generator, axes: int) -> dict:
    kernel = rng.integers(2, 4, axes)
    pads = np.concatenate([rng.integers(0, kernel), rng.integers(0, kernel)])
    return {"kernel_shape": kernel.tolist(), "strides": rng.integers(1, 4, axes).tolist(),
            "dilations": rng.integers(1, 3, axes).tolist(), "pads": pads.tolist()}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("nans", [0, 0.002])
def test_which_zero_is_given_does_not_depend_on_layout_or_team(dtype: np.dtype, nans: float) -> None:
    """The values are those of NumPy, and the signs of zeros those of channels last, on one thread and on two."""
    rng = np.random.default_rng(3)
    for channels, shape, negative in itertools.product(CHANNELS, SHAPES, [0, 0.01, 0.5]):
        attributes = random_attributes(rng, len(shape))
        x = np.maximum(rng.standard_normal((1, channels, *shape)) - 1, 0)
        x = np.where(rng.random(x.shape) < negative, -x, x)
        x[rng.random(x.shape) < nans] = np.nan
        x = x.astype(dtype)
        y = onnxpool.MaxPool(**attributes)(x)
        expected = np.max(list(taps(x.astype(np.float64), **attributes, value=-np.inf)), axis=0)
        assert_same_values(y, expected)
        last = onnxpool.MaxPool(**attributes, channels_last=True)
        for source, team in itertools.product((to_last(x), np.repeat(to_last(x), 2, axis=-1)[..., ::2]), (1, 2)):
            again = bits(np.ascontiguousarray(last(source, num_threads=team).transpose(0, -1, *range(1, x.ndim - 1))))
            assert np.array_equal(bits(y), again), (channels, shape, attributes)
