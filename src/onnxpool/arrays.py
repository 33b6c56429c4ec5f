"""Arrays: checks of inputs and outputs, allocation of results, and dtypes by name."""

import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .dtypes import DTYPES
from .errors import PoolError, PoolTypeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import DTypeLike as DTypeLike
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:  # for typing.get_type_hints; numpy.typing takes a millisecond to import
    Array, ArrayLike, DTypeLike = np.ndarray, Any, Any
T = TypeVar("T", bound=np.generic)
F = TypeVar("F", bound="np.floating[Any]")
CPU = {1: "CPU", 3: "CUDA host", 11: "ROCm host"}  # DLPack devices whose memory the CPU can read


def as_array(label: str, x: object, name: str = "X") -> Array:
    """An input as an ndarray. Refuses masked arrays, whose mask would be lost, and matrices, which are always 2-D."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, (np.ma.MaskedArray, np.matrix)):
        way = "x.filled(...)" if isinstance(x, np.ma.MaskedArray) else "numpy.array(x, subok=False)"
        raise PoolTypeError(f"{label}: {name} is a {type(x).__name__}, which is not supported; "
                            f"pass an ndarray, such as {way}", label, name, value=type(x).__name__)
    try:
        array = np.asanyarray(x)
    except MemoryError:
        raise
    except Exception as error:  # conversions of other types can raise anything
        raise unreadable(label, x, name, str(error)) from error
    if type(array) is not np.ndarray:  # a subclass, which `__array__` may return too
        return np.asarray(array) if array is x else as_array(label, array, name)
    if array.dtype.kind in "OSU":
        raise unreadable(label, x, name, f"it becomes an array of dtype {array.dtype}")
    return array


# Properties of tensors that keep NumPy from reading their memory, and the method that returns a readable tensor.
CHANGES: tuple[tuple[Callable[[Any], Any], str], ...] = (
    (lambda x: x.requires_grad, "detach"),
    (lambda x: "strided" not in str(x.layout), "to_dense"),
    (lambda x: x.is_quantized, "dequantize"),
    (lambda x: "float8" in str(x.dtype), "float"),
    (lambda x: x.is_conj(), "resolve_conj"),
    (lambda x: x.is_neg(), "resolve_neg"),
    (lambda x: x._is_zerotensor(), "clone"),
    (lambda x: x.__dlpack_device__()[0] not in CPU, "get"),
    (lambda x: x.__dlpack_device__()[0] not in CPU and not hasattr(x, "get"), "cpu"),
)


def says(x: Any, question: Callable[[Any], Any]) -> bool:
    """Whether a tensor has a property; False if its framework does not know the property."""
    try:
        return bool(question(x))
    except Exception:  # attributes of other types can raise anything
        return False


def readable(x: object) -> str:
    """An expression that turns an object that NumPy cannot read into one that it can."""
    if says(x, lambda x: x.is_meta) or says(x, lambda x: x.fake_mode):
        return "a tensor that has values"
    if says(x, lambda x: x.is_nested):
        return "one of its tensors, or all of them padded to one shape"
    changed = "x" + "".join(f".{method}()" for question, method in CHANGES
                            if says(x, question) and says(x, attrgetter(method)))
    if says(x, lambda x: x.__dlpack__ and x.__dlpack_device__) or (
            type(x).__name__ == "PyCapsule" and '"dltensor' in repr(x)):
        return f"onnxpool.from_dlpack({changed})"
    return "an ndarray" if changed == "x" else f"{changed}.numpy()"


def unreadable(label: str, x: object, name: str, reason: str) -> PoolTypeError:
    """The error for an object that NumPy cannot convert to an array of numbers."""
    return PoolTypeError(f"{label}: {name} is a {type(x).__module__}.{type(x).__qualname__}, which NumPy cannot "
                         f"convert to an array of numbers: {reason}; pass {readable(x)}", label, name,
                         value=type(x).__name__)


@lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, cached because NumPy takes microseconds to compute it."""
    name = dtype.type.__name__  # the same for the usual dtypes, and faster
    return name if name in DTYPES else dtype.name


def native(dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype in native byte order, which all results have."""
    resolved = np.dtype(dtype)
    return resolved if resolved.isnative else resolved.newbyteorder("=")


def dtype_of(label: str, dtype: Any) -> np.dtype[Any]:
    """The dtype that a caller passed, in native byte order."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype_named(dtype)
    if dtype is None:
        raise PoolTypeError(f"{label}: dtype is None, which NumPy reads as float64; pass one such as 'float32'",
                            label, "dtype")
    try:
        return native(dtype)
    except Exception as error:  # NumPy raises many kinds
        raise PoolTypeError(f"{label}: dtype must be a NumPy dtype, got {dtype!r} of type {type(dtype).__name__}: "
                            f"{error}; pass one such as 'float32'", label, "dtype", value=dtype) from None


def dtype_named(name: str) -> np.dtype[Any]:
    """The dtype with this name. ml_dtypes is imported only for dtypes that NumPy does not have."""
    if DTYPES[name].numpy:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise PoolTypeError(f"onnxpool: arrays of {name} need the package ml_dtypes, which is not installed; "
                            f"pip install ml_dtypes", value=name) from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def check_out(label: str, out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Refuse an `out` that does not have exactly the shape and dtype of the result."""
    if type(out) is not np.ndarray and (not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray)):
        raise PoolTypeError(f"{label}: out is a {type(out).__name__}; pass an ndarray of shape {shape}", label, "out",
                            value=type(out).__name__)
    if out.dtype != dtype and native(out.dtype) != dtype:
        raise PoolTypeError(f"{label}: out has dtype {out.dtype}, but the result has {dtype}; pass an array of that "
                            f"dtype", label, "out", value=out.dtype.name)
    if out.shape != shape:
        raise PoolError(f"{label}: out has shape {out.shape}, but the result has {shape}; pass an array of that shape",
                        label, "out", value=out.shape)
    if not out.flags.writeable:
        raise PoolError(f"{label}: output array is read-only; pass a writeable one", label, "out")
    return out


@lru_cache(maxsize=1)
def machine_memory() -> int:
    """The size of this machine's memory in bytes."""
    if not hasattr(os, "sysconf"):
        return 2**62
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def can_be(shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """Whether NumPy can represent an array of this shape, regardless of the memory available."""
    return math.prod(filter(None, shape)) * dtype.itemsize <= sys.maxsize


def allocate(label: str, shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None = None) -> Array:
    """An array for a result; `order` lists its axes from the slowest in memory to the fastest."""
    needed = math.prod(shape) * dtype.itemsize
    if (not needed or needed > sys.maxsize) and not can_be(shape, dtype):
        raise PoolError(f"{label}: a result of shape {shape} is too large for any array; reduce pads or the output "
                        f"shape", label, value=shape)
    if needed > machine_memory():
        raise PoolError(f"{label}: the result of shape {shape} needs {needed} bytes, but this machine has "
                        f"{machine_memory()}; reduce pads or the output shape, or pass out=", label, value=shape)
    if order is None or order == tuple(range(len(shape))):
        return np.empty(shape, dtype)
    places = sorted(range(len(order)), key=order.__getitem__)
    result: Array = np.empty([shape[axis] for axis in order], dtype).transpose(places)
    return result


def delivered(result: Array, out: Array | None) -> Array:
    """The result, copied to `out` if the caller passed one."""
    if out is None or out is result:
        return result
    np.copyto(out, result)
    return out
