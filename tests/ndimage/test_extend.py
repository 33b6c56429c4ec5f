"""Extended arrays have the elements that NumPy picks, whatever their memory layout is."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxpool.kernels.other.extend import Extender, as_doubles, as_integers

DTYPES = ["?", "i1", ">u2", "e", ml_dtypes.bfloat16, "<i4", ">f4", "f8", "M8[s]", "c16", "V3"]
rng = np.random.default_rng(0)


def laid_out(x: Any) -> Any:
    """The array in another memory layout: reversed, with axes in another order, with gaps, or repeated."""
    way = rng.integers(5) if x.ndim else 0
    if way == 1:
        return np.asfortranarray(x)
    if way == 2:
        return np.ascontiguousarray(x[(slice(None, None, -1),) * x.ndim])[(slice(None, None, -1),) * x.ndim]
    if way == 3:
        axis = int(rng.integers(x.ndim))
        return np.broadcast_to(x[(*(slice(None),) * axis, slice(0, 1))], x.shape)
    if way == 4:
        y = np.zeros([2 * size + 3 for size in x.shape], [("gap", "V1"), ("x", x.dtype)])["x"]
        part = y[tuple([slice(1, 2 * size + 1, 2) for size in x.shape])]
        part[...] = x
        return part
    return x


def drawn(size: int) -> tuple[Any, ...]:
    """Random parts of an axis: slices, and arrays of places, some of which ascend or descend in steps of 1."""
    parts: list[Any] = []
    for _ in range(rng.integers(4)):
        begin, end = np.sort(rng.integers(0, size + 1, 2)).tolist()
        places = np.arange(begin, end)
        parts.append([slice(begin, end), places, places[::-1], rng.integers(0, max(1, size), (3 if size else 0)),
                      np.repeat(places, 2)][rng.integers(5)])
    return tuple(parts) if rng.random() < 0.8 else (slice(0, size),)


def chosen(x: Any, places: Any) -> Any:
    """The elements that NumPy picks."""
    numbers = [np.concatenate([np.arange(x.shape[axis])[part] for part in parts] or [np.zeros(0, int)]).astype(int)
               for axis, parts in enumerate(places)]
    return x[np.ix_(*numbers)] if numbers else x


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements(dtype: Any) -> None:
    """Extending moves bits along up to four axes, also of empty arrays."""
    dtype = np.dtype(dtype)
    for _ in range(150):
        shape = tuple(rng.integers(0 if rng.random() < 0.2 else 1, [9, 90][rng.integers(2)], rng.integers(5)).tolist())
        shape = shape if np.prod(shape) < 1 << 18 else shape[:2]
        x = laid_out(rng.integers(0, 2 if dtype.kind == "b" else 256, (*shape, dtype.itemsize), np.uint8)
                     .view(dtype).reshape(shape))
        places = [drawn(size) for size in shape]
        y = Extender(shape, places).extend(x)
        expected = chosen(x, places)
        assert (y.shape, y.dtype, y.flags.c_contiguous) == (expected.shape, dtype, True)
        assert y.tobytes() == np.ascontiguousarray(expected).tobytes()
        assert y.flags.owndata
        assert y.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants(dtype: Any) -> None:
    """Constants replace the elements of ranges along any axis, and the dtype of the array decides their bytes."""
    dtype = np.dtype(dtype)
    for _ in range(60):
        shape = tuple(rng.integers(1, 9, rng.integers(1, 5)).tolist())
        x = laid_out(rng.integers(0, 2 if dtype.kind == "b" else 256, (*shape, dtype.itemsize), np.uint8)
                     .view(dtype).reshape(shape))
        places = [(slice(0, size), np.zeros(2, int)) for size in shape]
        fills = []
        for axis in rng.integers(0, len(shape), rng.integers(4)).tolist():
            begin, end = np.sort(rng.integers(0, shape[axis] + 3, 2)).tolist()
            fills.append((*(slice(None),) * axis, slice(begin, end)))
        constant = x.ravel()[0]
        expected = chosen(x, places)
        for fill in fills:
            expected[fill] = constant
        for given in (constant, np.asarray(constant).astype(dtype.newbyteorder())):
            assert Extender(shape, places, fills, given).extend(x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("fill", [(slice(0, 6),), (slice(3, 2),), (slice(-1, 2),), (slice(None),) * 2])
def test_constants_outside(fill: Any) -> None:
    """Ranges outside the results are refused."""
    with pytest.raises((IndexError, TypeError)):
        Extender((5,), [(slice(0, 5),)], [fill], 0)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 300])
def test_rows(size: int) -> None:
    """Rows of any length are copied, forwards and backwards."""
    x = rng.integers(0, 256, (70, size), np.uint8)
    for parts in ((slice(0, size),), (np.arange(size)[::-1], slice(0, size), np.full(3, size - 1))):
        places = ((np.array([1, 0]), slice(0, 70), np.array([69, 69, 2])), parts)
        for array in (x, x[::-1], x[:, ::-1], np.asfortranarray(x)):
            assert np.array_equal(Extender(x.shape, places).extend(array), chosen(array, places))


def test_many_axes() -> None:
    """Arrays may have as many axes as NumPy allows."""
    x = np.arange(8).reshape((2,) * 3 + (1,) * 61)
    places = [(np.array([1, 0, 1]), slice(0, 2))] * 2 + [(slice(0, 1), np.array([0]))] * 2 + [(slice(0, 1),)] * 60
    places = [*places[:2], (slice(0, 2),), *places[2:4], *places[4:-1]]
    assert np.array_equal(Extender(x.shape, places).extend(x),
                          chosen(x.reshape(2, 2, 2, 1, 1), places[:5]).reshape(5, 5, 2, 2, 2, *(1,) * 59))


def test_large_arrays() -> None:
    """Large arrays are copied without the GIL."""
    x = rng.integers(0, 256, (300, 500, 3), np.uint8)
    places = [(np.arange(9)[::-1], slice(0, 300), np.arange(3)), (np.arange(400, 500), slice(0, 500)), (slice(0, 3),)]
    for array in (x, x[::-1, ::-1], np.asfortranarray(x)):
        assert np.array_equal(Extender(x.shape, places).extend(array), chosen(array, places))


@pytest.mark.parametrize("part", [slice(-1, 2), slice(0, 4), slice(2, 1), np.array([0, 3]), np.array([-1])])
def test_places_beyond_an_axis_are_refused(part: Any) -> None:
    """Places beyond an axis are refused before an array is read."""
    with pytest.raises(IndexError, match="of an axis of 3 elements"):
        Extender((3,), [(part,)])


def test_other_arrays_are_refused() -> None:
    """Arrays of other shapes or of objects are refused, and so are results that memory cannot hold."""
    with pytest.raises(ValueError, match="axes"):
        Extender((3,), [])
    with pytest.raises(TypeError):
        Extender((3,), [(np.array([0.5]),)])
    one = Extender((3, 2), [(slice(0, 3), slice(0, 3)), (slice(0, 2),)])
    for array in (np.zeros((3, 3)), np.zeros((2, 2)), np.zeros(3), np.zeros((3, 2), object)):
        with pytest.raises(ValueError, match=r"axis 0|axis 1|axes"):
            one.extend(array)
    size = np.iinfo(np.intp).max
    with pytest.raises(MemoryError):
        Extender((size,), [(slice(0, size), slice(0, 1))])
    with pytest.raises((ValueError, MemoryError)):
        Extender((size // 2, 1), [(slice(0, size // 2),), (slice(0, 1),) * 9]).extend(
            np.broadcast_to(np.zeros(1), (size // 2, 1)))


@pytest.mark.parametrize("limit", [2.0**52 / 3, 2.0**51, 100.5])
@pytest.mark.parametrize("dtype", ["i8", ">i8", "u8", ">u8"])
def test_integers_become_doubles(dtype: str, limit: float) -> None:
    """Integers become doubles in place. The result is None if an integer is beyond the limit."""
    most = int(limit)
    info = np.iinfo(dtype)
    for element in (0, 1, most, most + 1, 2**62, 2**63 - 1, -1, -most, -most - 1, -2**62, -2**63, 2**63, 2**63 + most,
                    2**64 - most, 2**64 - 1):
        if not info.min <= element <= info.max:
            continue
        for count in (1, 5, 64):
            x = np.full(count, 7, dtype)
            x[count // 2] = element
            expected = x.astype(np.float64)
            y = as_doubles(x, limit)
            assert (y is None) == (abs(element) > limit)
            assert y is None or (y.dtype == np.float64 and np.array_equal(y, expected) and np.shares_memory(x, y))
    assert as_doubles(np.zeros((0, 3), dtype), limit).shape == (0, 3)  # type: ignore[union-attr]


def test_means_become_integers() -> None:
    """Means become the nearest integers, with ties to even, or are truncated."""
    x = np.array([[0.0, 0.5, 1.5, 2.5], [-0.5, -0.75, -1.5, 2.0**51 - 0.5]])
    assert as_integers(x.copy(), np.dtype(np.int64), False).tolist() == np.rint(x).astype(int).tolist()
    assert as_integers(x.copy(), np.dtype(np.int64), True).tolist() == np.trunc(x).astype(int).tolist()
    assert as_integers(abs(x), np.dtype(np.uint64), True).dtype == np.uint64


def test_elements_that_cannot_be_replaced() -> None:
    """Elements of views, read-only arrays and other dtypes cannot be replaced."""
    x = np.zeros((4, 4), np.int64)
    for array in (x.T[1:], np.broadcast_to(x[0], (3, 4)), x.astype(np.int32), x.astype(np.float64)):
        with pytest.raises(ValueError, match="cannot be replaced"):
            as_doubles(array, 1.0)
    for array in (x, np.zeros((4, 4))[:, ::2], np.zeros(3, np.float32)):
        with pytest.raises(ValueError, match="cannot be replaced"):
            as_integers(array, np.dtype(np.int64), False)
    with pytest.raises((ValueError, TypeError)):
        as_integers(np.zeros(3), np.dtype("V3"), False)
