"""A hand-written DLPack producer, which can export anything, valid or not, and records how it is used."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

from numpy.typing import NDArray


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


Deleter = ctypes.PYFUNCTYPE(None, c_void_p)  # called with the GIL, as consumers in Python do


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", c_void_p), ("deleter", Deleter))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", Deleter), ("flags", c_uint64),
        ("tensor", Tensor),
    )


Destructor = ctypes.PYFUNCTYPE(None, c_void_p)
new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, Destructor)(("PyCapsule_New", ctypes.pythonapi))
name_of = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
raw_name_of = ctypes.PYFUNCTYPE(c_char_p, c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))

raw_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

EXPORTED: dict[int, "Producer"] = {}  # producers by the address of their tensor, until it is deleted


def deleted(managed: int) -> None:
    """The deleter, which a consumer calls to return a tensor."""
    producer = EXPORTED.pop(managed, None)
    if producer is None:
        TWICE.append(managed)
    else:
        producer.deleted += 1


delete = Deleter(deleted)


def destroyed(capsule: int) -> None:
    """The destructor that the protocol prescribes for a capsule: it deletes a tensor that nobody took."""
    name = raw_name_of(capsule)
    if not name.startswith(b"used_"):
        EXPORTED[raw_pointer_of(capsule, name)].managed.deleter(raw_pointer_of(capsule, name))


destroy = Destructor(destroyed)


TWICE: list[int] = []  # tensors that were deleted twice
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
CPU, CUDA = 1, 2
READ_ONLY = 1


class Producer:
    """A tensor in the memory of an array.

    Everything exported can be overridden: `device`, `code`, `bits`, `lanes`, `shape`, `strides` (None: NULL), `data`,
    `byte_offset`, `ndim`, `flags`, `version`. `deleted` counts the calls of the deleter.
    """

    def __init__(self, array: NDArray[Any], *, versioned: bool = True, deletes: bool = True,
                 version: tuple[int, int] = (1, 1), flags: int = 0, device: tuple[int, int] = (CPU, 0),
                 **changed: Any) -> None:
        self.array, self.device, self.is_versioned = array, device, versioned
        self.deleted = 0
        self.asked: list[dict[str, Any]] = []
        self.tensor = Tensor(
            data=array.ctypes.data, device_type=device[0], device_id=device[1], ndim=array.ndim,
            code=CODES.get(array.dtype.kind, 4), bits=8 * array.itemsize, lanes=1,
        )
        given = {"shape": array.shape, "strides": [step // array.itemsize for step in array.strides], **changed}
        for name, value in given.items():
            if isinstance(value, (tuple, list)):
                value = (c_int64 * len(value))(*value)
            setattr(self.tensor, name, value)
        deleter = delete if deletes else Deleter()
        self.managed = (
            Versioned(*version, None, deleter, flags, self.tensor) if versioned
            else Managed(self.tensor, None, deleter)
        )
        self.name = b"dltensor_versioned" if versioned else b"dltensor"

    def capsule(self) -> Any:
        EXPORTED[ctypes.addressof(self.managed)] = self
        return new_capsule(ctypes.addressof(self.managed), self.name, destroy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **given: Any) -> Any:
        self.asked.append(given)
        if given and not self.is_versioned:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.capsule()
