"""A mean is its sum divided with one rounding, whatever instructions divide, and 16-bit norms are rounded once."""

import ml_dtypes
import numpy as np
import pytest

import onnxpool

pytestmark = pytest.mark.smoke

DIVISORS = [*range(1, 50), 99, 121, 127, 255, 961, 1000, 4097]
EDGES = {"float32": np.uint32, "float64": np.uint64}


def values(dtype: str, count: int) -> np.ndarray:
    """Finite values of every exponent, zeros of both signs, the smallest and the largest."""
    bits = EDGES[dtype]
    x = np.random.default_rng(count).integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype)
    info = np.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, info.max, -info.max, info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    return np.concatenate([x[np.isfinite(x)], np.array(edges, dtype)])


@pytest.mark.parametrize("tiny", [False, True], ids=["without tiny sums", "with tiny sums"])
@pytest.mark.parametrize("dtype", sorted(EDGES))
def test_one_rounding(dtype: str, tiny: bool) -> None:
    """A mean of one value and negative zeros, which add nothing, is the value divided by the number of taps."""
    for taps in DIVISORS:
        x = values(dtype, 700)
        x = x if tiny else x[(x == 0) | (abs(x) > 1e-15)]
        windows = np.full((1, len(x), taps), -0.0, dtype)
        windows[0, :, taps // 2] = x
        y = onnxpool.average_pool(windows, taps)[0, :, 0]
        expected = x / np.dtype(dtype).type(taps)
        assert np.array_equal(y.view(EDGES[dtype]), expected.view(EDGES[dtype])), taps


@pytest.mark.parametrize("dtype", sorted(EDGES))
@pytest.mark.parametrize(("kernel", "begin"), [((3, 2), (1, 0)), ((3, 2, 2), (2, 0, 0)), ((7, 2), (5, 0))], ids=str)
def test_one_rounding_of_2x2_taps_beside_counted_padding(dtype: str, kernel: tuple[int, ...],
                                                         begin: tuple[int, ...]) -> None:
    """Means are rounded once in windows with at most 2x2 taps inside, whose divisors are not powers of two."""
    x = values(dtype, 700)
    x = x[(x == 0) | (abs(x) > 1e-15)]  # without underflows, after which means are divided again
    planes = np.full((1, 1, *[4 * size for size in kernel[:-1]], 2 * len(x)), -0.0, dtype)
    first = (0, 0, *[0] * (len(kernel) - 1))
    planes[(*first, slice(None, None, 2))] = x
    y = onnxpool.average_pool(planes, kernel, strides=kernel, pads=(*begin, *[0] * len(kernel)), count_include_pad=1)
    expected = x / np.dtype(dtype).type(np.prod(kernel))
    assert np.array_equal(y[first].view(EDGES[dtype]), expected.view(EDGES[dtype]))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_the_norm_of_one_value_is_its_magnitude(dtype):
    """The norm of one value is its magnitude, including the smallest and the largest."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):  # from signalling NaN
        x = x[np.isfinite(x)]
    y = onnxpool.lp_pool(x[None, None], 1)[0, 0]
    assert np.array_equal(y.view(np.uint16), x.view(np.uint16) & 0x7FFF)


@pytest.mark.parametrize("subnormal", [False, True], ids=["normal", "subnormal"])
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_norms_of_16_bits_are_rounded_once(dtype, subnormal):
    """Each norm is the 16-bit number nearest to its root, even where the root lies close to the midpoint between two
    numbers."""
    scale = float(np.uint16(25).view(dtype)) if subnormal else 1.0
    x = (scale * np.random.default_rng(0).uniform(0.5, 4, (1, 1 << 20, 2))).astype(dtype)
    y = onnxpool.lp_pool(x, 2)[0, :, 0]
    exact = np.sqrt(np.square(x[0].astype(np.longdouble)).sum(axis=-1))
    error = np.abs(y.astype(np.longdouble) - exact)
    for step in np.uint16(1), np.uint16(0xFFFF):
        neighbour = (y.view(np.uint16) + step).view(dtype)
        assert (error <= np.abs(neighbour.astype(np.longdouble) - exact)).all()


@pytest.mark.parametrize("taps", [3, 5, 9, 25, 49, 961, 16129, 65535, 65537, 70001])
def test_means_are_quotients_whatever_the_number_of_taps(taps):
    """Every code path that divides returns the quotient, for windows of one number and zeros."""
    rng = np.random.default_rng(taps)
    values = rng.uniform(1, 2, 40 + 2**21 // taps).astype(np.float32)
    expected = values / np.float32(taps)
    x = np.zeros((len(values), taps), np.float32)
    x[:, taps // 2] = values
    last = np.ascontiguousarray(x.T)[None]
    assert np.array_equal(onnxpool.average_pool(x[None], taps)[0, :, 0], expected)
    assert np.array_equal(onnxpool.average_pool(last, taps, channels_last=True)[0, 0], expected)
    assert np.array_equal(onnxpool.global_average_pool(x[None])[0, :, 0], expected)
    assert np.array_equal(onnxpool.global_average_pool(last, channels_last=True)[0, 0], expected)
    y = onnxpool.average_pool(x[None], taps, pads=(1, 1))[0]  # divisors that differ
    assert np.array_equal(y, values[:, None] / np.array([taps - 1, taps, taps - 1], np.float32))


@pytest.mark.parametrize("taps", range(1, 18))
def test_every_mean_of_bytes_by_few_taps(taps):
    """Every sum of up to 17 bytes is divided correctly. Sums of up to 16 bytes take fewer steps."""
    sums = np.arange(255 * taps + 1)
    x = (sums[:, None] + np.arange(taps)) // taps  # each row has one of the sums
    assert np.array_equal(x.sum(1), sums)
    rounded, rest = np.divmod(2 * sums + taps, 2 * taps)
    expected = rounded - ((rest == 0) & (rounded & 1))
    y = onnxpool.average_pool(np.ascontiguousarray(x.astype(np.uint8).T), taps, axes=0, dtype=np.uint8)
    assert np.array_equal(y[0], expected)
    y = onnxpool.average_pool(x.astype(np.uint8).ravel(), taps, strides=taps, axes=0, dtype=np.uint8)
    assert np.array_equal(y, expected)
