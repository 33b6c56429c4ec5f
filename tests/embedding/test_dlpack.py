"""Tensors of other frameworks are read in place, kept alive by arrays, and deleted once. Errors are onnxpool's."""

import enum
import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from producer import CUDA, READ_ONLY, TWICE, Producer, name_of

import onnxpool

KINDS = [
    *(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)),
    *(np.dtype(f"f{size}") for size in (2, 4, 8)),
    *(np.dtype(f"c{size}") for size in (8, 16)),
    np.dtype(bool),
    np.dtype(ml_dtypes.bfloat16),
]
BOTH = pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])


@pytest.fixture(autouse=True, scope="module")
def only_new_garbage() -> Iterator[None]:
    """Restricts garbage collections to objects of these tests, which takes little time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def deleted_at_most_once() -> Iterator[None]:
    """No tensor is deleted twice in any test."""
    yield
    gc.collect()
    assert TWICE == []


def some(dtype: Any = np.float32, shape: tuple[int, ...] = (2, 3, 4)) -> Any:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@BOTH
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_every_dtype_is_read_in_place(dtype: Any, versioned: bool) -> None:
    """Each dtype that NumPy has, and bfloat16, arrives with its values in the memory of the tensor."""
    x = some(dtype)

    y = onnxpool.from_dlpack(Producer(x, versioned=versioned))

    assert type(y) is np.ndarray
    assert y.dtype == x.dtype
    assert (y.ctypes.data, y.shape, y.strides) == (x.ctypes.data, x.shape, x.strides)
    assert y.tobytes() == x.tobytes()


VIEWS = {
    "scalar": lambda x: x[1, 2, 3],
    "steps": lambda x: x[:, ::2, 1::2],
    "backwards": lambda x: x[::-1, :, ::-1],
    "transposed": lambda x: x.T,
    "broadcast": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "newaxis": lambda x: x[:, None],
    "one_element": lambda x: x[1:, 2:, 3:],
    "no_elements": lambda x: x[:, 3:],
}


@BOTH
@pytest.mark.parametrize("view", VIEWS)
def test_strides_are_kept(view: str, versioned: bool) -> None:
    """Tensors keep their strides, including negative and zero strides."""
    x = np.asarray(VIEWS[view](some()))

    y = onnxpool.from_dlpack(Producer(x, versioned=versioned))

    np.testing.assert_array_equal(y, x, strict=True)
    assert not x.size or y.strides == x.strides


@BOTH
def test_no_strides_are_c_order(versioned: bool) -> None:
    """Strides of NULL mean C order."""
    x = some()

    np.testing.assert_array_equal(onnxpool.from_dlpack(Producer(x, versioned=versioned, strides=None)), x, strict=True)
    assert onnxpool.from_dlpack(Producer(x[:0], versioned=versioned, strides=None)).shape == (0, 3, 4)
    assert onnxpool.from_dlpack(Producer(x[0, 0, 0:1], strides=None, ndim=0, shape=None)).shape == ()


@BOTH
def test_byte_offset_is_added(versioned: bool) -> None:
    """The first element lies `byte_offset` after the data, aligned or not."""
    room = np.zeros(49, np.uint8)
    for offset in (4, 1):
        x = room[offset:][:24].view(np.float32).reshape(2, 3)
        x[...] = some(shape=(2, 3))
        y = onnxpool.from_dlpack(Producer(x, versioned=versioned, data=room.ctypes.data, byte_offset=offset))
        np.testing.assert_array_equal(y, x, strict=True)
        assert y.flags.aligned == x.flags.aligned


@pytest.mark.parametrize("data", [0, None], ids=["offset", "NULL"])
def test_no_elements_need_no_data(data: Any) -> None:
    """A tensor without elements need not have memory."""
    y = onnxpool.from_dlpack(Producer(np.empty((2, 0, 3), np.float16), data=data, byte_offset=1 << 40))

    assert (y.shape, y.dtype) == ((2, 0, 3), np.float16)


def test_writeable_unless_the_tensor_is_not() -> None:
    """Values written to the array arrive in the tensor, unless the tensor is read-only, or too old to tell."""
    x = some()
    onnxpool.from_dlpack(Producer(x))[0, 0, 0] = 77

    assert x[0, 0, 0] == 77
    assert onnxpool.from_dlpack(Producer(x, flags=READ_ONLY | 2)).flags.writeable is False
    assert onnxpool.from_dlpack(Producer(x, flags=2)).flags.writeable is True
    assert onnxpool.from_dlpack(Producer(x, versioned=False)).flags.writeable is False


# The deleter


@BOTH
def test_the_tensor_lives_as_long_as_the_array(versioned: bool) -> None:
    """A tensor's deleter is called once, when the last view of the array is gone."""
    producer = Producer(some(), versioned=versioned)
    y = onnxpool.from_dlpack(producer)
    view = y[0, 1:]
    del y
    gc.collect()
    assert producer.deleted == 0
    assert view[0, 0] == 4

    del view
    gc.collect()

    assert producer.deleted == 1


@BOTH
def test_a_capsule_can_be_read_once(versioned: bool) -> None:
    """A capsule is accepted once and renamed. The second time, it is refused."""
    producer = Producer(some(), versioned=versioned)
    capsule = producer.capsule()
    y = onnxpool.from_dlpack(capsule)
    used = f"used_{producer.name.decode()}"
    assert name_of(capsule) == used.encode()

    with pytest.raises(onnxpool.PoolError, match=f"has the name {used}, .* export the tensor again"):
        onnxpool.from_dlpack(capsule)

    del capsule
    gc.collect()
    assert producer.deleted == 0
    del y
    assert producer.deleted == 1


@BOTH
def test_a_deleter_may_be_missing(versioned: bool) -> None:
    """A tensor without a deleter is read, and nothing is called when the array is gone."""
    y = onnxpool.from_dlpack(Producer(some(), versioned=versioned, deletes=False))

    assert y[0, 0, 3] == 3


@BOTH
def test_a_deleter_runs_while_an_error_is_on_its_way(versioned: bool) -> None:
    """An array that dies while an exception propagates deletes its tensor and keeps the exception."""
    producer = Producer(some(), versioned=versioned)

    def fail() -> None:
        y = onnxpool.from_dlpack(producer)
        raise KeyError(y.shape)

    with pytest.raises(KeyError, match=r"2, 3, 4"):
        fail()
    gc.collect()
    assert producer.deleted == 1


HUGE = 2**62
WRONG = {
    "device": ({"device_type": CUDA}, onnxpool.PoolTypeError, r"device CUDA \(2\)"),
    "lanes": ({"lanes": 4}, onnxpool.PoolTypeError, "vectors of 4 lanes"),
    "lanes_none": ({"lanes": 0}, onnxpool.PoolTypeError, "vectors of 0 lanes"),
    "opaque": ({"code": 3}, onnxpool.PoolTypeError, "opaque with 32 bits"),
    "unknown_code": ({"code": 200}, onnxpool.PoolTypeError, "type code 200 with 32 bits"),
    "float8": ({"code": 10, "bits": 8}, onnxpool.PoolTypeError, "type code 10 with 8 bits"),
    "int4": ({"code": 0, "bits": 4}, onnxpool.PoolTypeError, "int with 4 bits"),
    "float128": ({"bits": 128}, onnxpool.PoolTypeError, "float with 128 bits"),
    "bfloat32": ({"code": 4}, onnxpool.PoolTypeError, "bfloat with 32 bits"),
    "bool_of_16_bits": ({"code": 6, "bits": 16}, onnxpool.PoolTypeError, "bool with 16 bits"),
    "axes": ({"ndim": 65}, onnxpool.PoolError, "65 axes"),
    "axes_negative": ({"ndim": -1}, onnxpool.PoolError, "-1 axes"),
    "shape_missing": ({"shape": None}, onnxpool.PoolError, "3 axes, but no shape"),
    "shape_negative": ({"shape": (2, -3, 4)}, onnxpool.PoolError, "sizes cannot be negative"),
    "shape_too_large": ({"shape": (HUGE, HUGE, 4)}, onnxpool.PoolError, "address space"),
    "shape_too_large_by_little": ({"shape": (1, 1, 2**61), "strides": None}, onnxpool.PoolError, "address space"),
    "shape_too_large_but_empty": ({"shape": (HUGE, HUGE, 0)}, onnxpool.PoolError, "address space"),
    "strides_too_large": ({"strides": (1, 1, HUGE)}, onnxpool.PoolError, "address space"),
    "strides_far_below": ({"strides": (1, 1, -HUGE)}, onnxpool.PoolError, "address space"),
    "strides_that_add_up": ({"strides": (HUGE // 4 - 1, 0, HUGE // 8)}, onnxpool.PoolError, "address space"),
    "no_data": ({"data": None}, onnxpool.PoolError, "no data"),
}


@BOTH
@pytest.mark.parametrize(("changed", "error", "message"), WRONG.values(), ids=WRONG)
def test_what_no_array_can_be_is_refused(changed: Any, error: type[Exception], message: str, versioned: bool) -> None:
    """A tensor that cannot be read raises a typed error, and its producer's deleter is called once."""
    producer = Producer(some(), versioned=versioned, **changed)

    with pytest.raises(error, match=message):
        onnxpool.from_dlpack(producer)

    gc.collect()
    assert producer.deleted == 1


def test_a_later_major_version_is_refused() -> None:
    """Tensors of a later major version, which may differ in structure, are not read. Tensors of later minor versions
    are read."""
    x = some()
    producer = Producer(x, version=(2, 0), data=None, ndim=-7)
    with pytest.raises(onnxpool.PoolError, match=r"of DLPack 2\.0, but only 1\.x"):
        onnxpool.from_dlpack(producer)
    gc.collect()
    assert producer.deleted == 1
    assert onnxpool.from_dlpack(Producer(x, version=(1, 99))).shape == x.shape


@pytest.mark.parametrize("device", [(3, 0), (11, 1)], ids=["CUDA host", "ROCm host"])
def test_pinned_memory_is_memory_of_the_cpu(device: tuple[int, int]) -> None:
    """Pinned memory, which belongs to the CPU although a device can access it, is read."""
    assert onnxpool.from_dlpack(Producer(some(), device=device)).shape == (2, 3, 4)


def test_other_devices_are_not_asked_for_a_tensor() -> None:
    """An object on another device is refused before it exports anything."""
    for device, name in (((CUDA, 1), "CUDA"), ((99, 0), "type")):
        producer = Producer(some(), device=device)
        with pytest.raises(onnxpool.PoolTypeError, match=rf"device {name} \({device[0]}\), .* move it there"):
            onnxpool.from_dlpack(producer)
        assert producer.asked == []


def test_producers_are_asked_for_the_versioned_tensor_first() -> None:
    """Producers that support versions are asked for a versioned tensor, and other producers for a plain one."""
    new, old = Producer(some()), Producer(some(), versioned=False)
    onnxpool.from_dlpack(new)
    onnxpool.from_dlpack(old)

    assert new.asked == [{"max_version": (1, 0)}]
    assert old.asked == [{"max_version": (1, 0)}, {}]


def test_errors_of_the_producer_are_passed_on() -> None:
    """An exception of the producer is passed on unchanged."""

    class Refusing(Producer):
        def __dlpack__(self, **given: Any) -> Any:
            raise BufferError("conjugate bit")

    with pytest.raises(BufferError, match="conjugate bit"):
        onnxpool.from_dlpack(Refusing(some()))


class Raising:
    """An object whose conversions and operators raise."""

    def __index__(self) -> int:
        raise RuntimeError("no index")


DEVICES = {
    "nothing": None, "empty": (), "one": (1,), "three": (1, 0, 0), "text": "10", "bytes": b"10", "strings": ("1", "0"),
    "floats": (1.0, 0.0), "number_float": (1, 0.5), "none": (None, None), "number": 1, "mapping": {1: 0, 0: 1},
    "set": {1, 0}, "raising": (Raising(), 0),
}


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_what_is_no_device_is_refused(device: Any) -> None:
    """A `__dlpack_device__` that does not return two integers is refused before anything is exported."""
    producer = Producer(some())
    producer.device = device
    with pytest.raises(onnxpool.PoolTypeError, match=r"__dlpack_device__ of a Producer returned .* two integers"):
        onnxpool.from_dlpack(producer)
    assert producer.asked == []


@pytest.mark.parametrize("kind", [2**70, -(2**70), -1, 2**31])
def test_types_of_devices_may_be_any_integer(kind: int) -> None:
    """Integers that are not a known device type are refused as unknown devices, whatever their size."""
    producer = Producer(some())
    producer.device = (kind, 0)
    with pytest.raises(onnxpool.PoolTypeError, match=rf"is on device type \({kind}\)"):
        onnxpool.from_dlpack(producer)


def test_devices_may_be_enumerations() -> None:
    """The type of a device may be a member of an enumeration, or an integer of NumPy."""
    kinds = enum.IntEnum("kinds", {"CPU": 1})
    for kind in (kinds.CPU, np.int32(1)):
        producer = Producer(some())
        producer.device = (kind, np.int64(0))  # type: ignore[assignment]
        assert onnxpool.from_dlpack(producer).shape == (2, 3, 4)


@pytest.mark.parametrize("error", [RuntimeError("lost"), TypeError("lost"), IndexError("lost"), AttributeError("lost")])
@pytest.mark.parametrize("method", ["__dlpack_device__", "__dlpack__"])
def test_methods_that_raise_are_named(method: str, error: Exception) -> None:
    """A producer's error that the protocol does not define is chained to an error that says where it comes from."""

    def fail(self: Any, **given: Any) -> Any:
        raise error

    producer = type("Failing", (Producer,), {method: fail})(some())
    with pytest.raises(onnxpool.PoolTypeError, match=f"{method} of a Failing raised .*lost; pass") as caught:
        onnxpool.from_dlpack(producer)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("method", ["__dlpack_device__", "__dlpack__"])
def test_methods_that_cannot_be_looked_up_are_missing(method: str) -> None:
    """A property that raises counts as a missing method, and so does a method that is None."""

    def fail(self: Any) -> Any:
        raise RuntimeError

    with pytest.raises(onnxpool.PoolTypeError, match=f"has no {method}"):
        onnxpool.from_dlpack(type("Failing", (Producer,), {method: property(fail)})(some()))
    with pytest.raises(onnxpool.PoolTypeError, match=f"{method} of a Empty raised TypeError"):
        onnxpool.from_dlpack(type("Empty", (Producer,), {method: None})(some()))


def test_classes_are_no_tensors() -> None:
    """A class has the methods of its objects, but is no tensor."""
    with pytest.raises(onnxpool.PoolTypeError, match="__dlpack_device__ of a type raised TypeError"):
        onnxpool.from_dlpack(np.ndarray)


@pytest.mark.parametrize("result", [None, (), 0, "capsule", b"dltensor", object(), some()])
def test_results_that_are_no_capsules_are_refused(result: Any) -> None:
    """A `__dlpack__` that returns anything but a capsule is refused by type."""
    producer = type("Odd", (Producer,), {"__dlpack__": lambda self, **given: result})(some())
    with pytest.raises(onnxpool.PoolTypeError, match=f"__dlpack__ returned a {type(result).__name__}, but must"):
        onnxpool.from_dlpack(producer)


@BOTH
def test_producers_of_used_capsules_are_refused(versioned: bool) -> None:
    """A producer that hands out the same capsule twice is refused the second time, and the tensor is not touched."""
    producer = Producer(some(), versioned=versioned)
    capsule = producer.capsule()
    again = type("Again", (Producer,), {"__dlpack__": lambda self, **given: capsule})(some())
    y = onnxpool.from_dlpack(again)
    with pytest.raises(onnxpool.PoolError, match="can be read once, so export the tensor again"):
        onnxpool.from_dlpack(again)
    assert y[0, 0, 1] == 1
    assert producer.deleted == 0


@pytest.mark.parametrize("thing", [None, 3, [1.0], memoryview(b"abc"), onnxpool])
def test_what_is_no_tensor_is_refused(thing: Any) -> None:
    """Objects without the protocol are refused by type."""
    with pytest.raises(onnxpool.PoolTypeError, match=f"a {type(thing).__name__} has no __dlpack__"):
        onnxpool.from_dlpack(thing)


def test_what_is_no_capsule_is_refused() -> None:
    """A `__dlpack__` that returns no capsule is refused, and so is a capsule with an unknown name."""

    class Odd(Producer):
        def __dlpack__(self, **given: Any) -> Any:
            return self.array

    with pytest.raises(onnxpool.PoolTypeError, match="__dlpack__ returned a ndarray"):
        onnxpool.from_dlpack(Odd(some()))
    producer = Producer(some())
    producer.name = b"something"
    capsule = producer.capsule()
    with pytest.raises(onnxpool.PoolError, match="has the name something"):
        onnxpool.from_dlpack(capsule)


def test_bfloat16_without_ml_dtypes_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ml_dtypes, bfloat16 is refused with an error that names the way out, and other dtypes work."""
    x = some(ml_dtypes.bfloat16)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    producer = Producer(x)

    with pytest.raises(onnxpool.PoolTypeError, match="pip install ml_dtypes"):
        onnxpool.from_dlpack(producer)

    gc.collect()
    assert producer.deleted == 1
    assert onnxpool.from_dlpack(Producer(some())).dtype == np.float32


def test_nothing_leaks() -> None:
    """Reading and refusing tensors leaks no references."""
    dtype = np.dtype(ml_dtypes.bfloat16)
    x = some(dtype)
    before = sys.getrefcount(dtype), sys.getrefcount(x)
    for _ in range(50):
        onnxpool.from_dlpack(Producer(x))
        with pytest.raises(onnxpool.PoolError):
            onnxpool.from_dlpack(Producer(x, shape=(1, 1, -1)))
    gc.collect()

    assert (sys.getrefcount(dtype), sys.getrefcount(x)) == before


# Frameworks


def ort_value(x: Any) -> Any:
    """A tensor of onnxruntime, which does not support NumPy's bfloat16."""
    value = onnxruntime.OrtValue
    if x.dtype == ml_dtypes.bfloat16:
        return value.ortvalue_from_numpy_with_onnx_type(x.view(np.uint16), 16)
    return value.ortvalue_from_numpy(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int64])
def test_onnxruntime_values(dtype: Any) -> None:
    """An OrtValue is read in place, outlives its owner, and is pooled."""
    x = some(dtype, (1, 2, 5, 6))
    value = ort_value(x)
    y = onnxpool.from_dlpack(value)
    address = value.data_ptr()
    dead = weakref.ref(value)
    del value
    gc.collect()

    assert dead() is None
    assert (y.ctypes.data, y.dtype) == (address, x.dtype)
    assert y.tobytes() == x.tobytes()
    if dtype is not np.int64:
        assert onnxpool.max_pool(y, 2).tobytes() == onnxpool.max_pool(x, 2).tobytes()


def test_onnxruntime_capsules() -> None:
    """The capsule of an OrtValue can be read."""
    x = some(ml_dtypes.bfloat16)
    value = ort_value(x)

    assert onnxpool.from_dlpack(value._ortvalue.to_dlpack()).tobytes() == x.tobytes()


def test_numpy_arrays() -> None:
    """An ndarray can be read as a tensor, and a read-only one stays read-only."""
    x = some()
    x.flags.writeable = False

    y = onnxpool.from_dlpack(x)

    assert np.shares_memory(x, y)
    assert not y.flags.writeable


def test_torch_tensors() -> None:
    """Tensors of torch, of any strides, are read in place, and results can be stored into them."""
    torch = pytest.importorskip("torch")
    for kind in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8):
        tensor = torch.arange(120).reshape(1, 5, 4, 6).to(kind).permute(0, 3, 1, 2)
        y = onnxpool.from_dlpack(tensor)
        assert y.ctypes.data == tensor.data_ptr()
        assert [step // y.itemsize for step in y.strides] == list(tensor.stride())
        np.testing.assert_array_equal(y.astype(float), tensor.double().numpy())
        result = torch.zeros(1, 6, 4, 3, dtype=kind)
        onnxpool.max_pool(y, 2, out=onnxpool.from_dlpack(result))
        expected = torch.nn.functional.max_pool2d(tensor.double(), 2, 1)
        assert torch.equal(result.double(), expected)
    with pytest.raises(BufferError):
        onnxpool.from_dlpack(torch.ones(3, requires_grad=True))
    y = onnxpool.from_dlpack(torch.full((1000,), 7.0))
    gc.collect()
    assert (y == 7).all()


def test_jax_arrays() -> None:
    """Arrays of jax, including bfloat16 arrays, are read in place."""
    numpy = pytest.importorskip("jax.numpy")
    x = numpy.arange(24).reshape(1, 2, 3, 4).astype(numpy.bfloat16)

    y = onnxpool.from_dlpack(x)

    assert y.dtype == ml_dtypes.bfloat16
    assert y.ctypes.data == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(y, np.asarray(x))
    assert onnxpool.global_max_pool(y).tolist() == [[[[11]], [[23]]]]
