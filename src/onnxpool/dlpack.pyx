"""Reads other frameworks' tensors as NumPy arrays, including bfloat16, through the DLPack protocol, without a copy.

The structures follow DLPack 1.x (dmlc/dlpack, include/dlpack/dlpack.h).
"""
import math
import sys
from operator import index

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer
from cpython.ref cimport Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from .attributes import shown
from .constants import MOST_AXES
from .errors import PoolError, PoolTypeError
from .arrays import CPU, dtype_named, says

cdef extern from "Python.h":
    int PyCapsule_SetName(object capsule, const char* name) except -1
    bint PyCapsule_IsValid(object capsule, const char* name) noexcept

cdef extern from "numpy/arrayobject.h":
    cnp.ndarray PyArray_NewFromDescr(type subtype, cnp.dtype descr, int ndim, const cnp.npy_intp* shape,
                                     const cnp.npy_intp* strides, void* data, int flags, PyObject* like)

cnp.import_array()

cdef struct DLDevice:
    int32_t device_type, device_id

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    uint8_t code, bits
    uint16_t lanes
    int64_t* shape
    int64_t* strides  # in elements; NULL for C order
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor tensor
    void* context
    void (*deleter)(DLManagedTensor*) noexcept

cdef struct DLManagedTensorVersioned:
    uint32_t major, minor
    void* context
    void (*deleter)(DLManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor tensor

cdef uint64_t READ_ONLY = 1
VERSION = (1, 0)  # the newest version that is requested; minor versions are backward compatible
OTHER = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 13: "CUDA managed", 14: "oneAPI",
         15: "WebGPU", 16: "Hexagon", 17: "MAIA"}
KINDS = ("int", "uint", "float", "opaque", "bfloat", "complex", "bool")  # kinds of elements, by code
BITS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,), "complex": (64, 128),
        "bool": (8,)}

cdef char[16] nowhere  # memory for arrays without elements


cdef class Owner:
    """The owner of an array's memory. It calls the producer's deleter once, when it is deallocated."""

    cdef DLManagedTensor* legacy
    cdef DLManagedTensorVersioned* versioned

    def __dealloc__(self):
        if self.legacy != NULL and self.legacy.deleter != NULL:
            self.legacy.deleter(self.legacy)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


def has(obj, name):
    """Whether an object has an attribute. Looking it up can raise anything."""
    return says(obj, lambda x: hasattr(x, name))


def check_device(kind, obj=None):
    if kind not in CPU:
        way = next((f", by .{method}()" for method in ("get", "cpu") if has(obj, method)), "")
        raise PoolTypeError(f"from_dlpack: the tensor is on device {OTHER.get(kind, 'type')} ({kind}), but only CPU "
                            f"memory can be read; move it there{way}")


def asked(obj, method, **given):
    """The result of a producer's method. The protocol defines BufferError; other errors become PoolTypeErrors."""
    try:
        return getattr(obj, method)(**given)
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise PoolTypeError(f"from_dlpack: {method} of a {type(obj).__name__} raised {type(error).__name__}: {error}; "
                            f"pass a tensor that supports DLPack, or np.asarray(...) of the object") from error


def device_of(obj):
    """The type of the device that a producer names."""
    device = asked(obj, "__dlpack_device__")
    try:
        kind, number = device if isinstance(device, (tuple, list)) else ()
        index(number)
        return index(kind)
    except Exception:  # attributes of other types can raise anything
        raise PoolTypeError(f"from_dlpack: __dlpack_device__ of a {type(obj).__name__} returned {shown(device)}, but "
                            f"must return two integers: the type of the device and its number; pass a tensor that "
                            f"supports DLPack, or np.asarray(...) of the object") from None


cdef element_of(const DLTensor* tensor):
    """The dtype of a tensor's elements."""
    kind = KINDS[tensor.code] if tensor.code < len(KINDS) else f"type code {tensor.code}"
    if tensor.lanes != 1:
        raise PoolTypeError(f"from_dlpack: the tensor has vectors of {tensor.lanes} lanes as elements, but NumPy has "
                            f"only scalars; export it with 1 lane")
    if tensor.bits not in BITS.get(kind, ()):
        raise PoolTypeError(f"from_dlpack: the tensor has elements of {kind} with {tensor.bits} bits, which NumPy "
                            f"does not have; cast it, for example to float32")
    if kind == "bfloat":
        return dtype_named("bfloat16")
    return np.dtype("bool" if kind == "bool" else f"{kind}{tensor.bits}")


cdef tuple extents(const DLTensor* tensor, object itemsize):
    """Shape and strides in bytes. Python integers check that NumPy can address them."""
    if not 0 <= tensor.ndim <= MOST_AXES:
        raise PoolError(f"from_dlpack: the tensor has {tensor.ndim} axes, but an array has 0 to {MOST_AXES}")
    if tensor.ndim and tensor.shape == NULL:
        raise PoolError(f"from_dlpack: the tensor has {tensor.ndim} axes, but no shape")
    shape = [tensor.shape[axis] for axis in range(tensor.ndim)]
    if min(shape, default=0) < 0:
        raise PoolError(f"from_dlpack: the tensor has shape {tuple(shape)}, but sizes cannot be negative")
    if tensor.strides == NULL:
        strides = [itemsize * math.prod(shape[axis + 1:]) for axis in range(tensor.ndim)]
    else:
        strides = [itemsize * tensor.strides[axis] for axis in range(tensor.ndim)]
    reach = sum(max(size - 1, 0) * abs(step) for size, step in zip(shape, strides)) + itemsize
    if max(reach, itemsize * math.prod(max(size, 1) for size in shape), *map(abs, strides), 0) > sys.maxsize:
        raise PoolError(f"from_dlpack: the tensor has shape {tuple(shape)} and strides {tuple(strides)} in bytes, "
                        f"which exceed the address space")
    return tuple(shape), tuple(strides)


cdef cnp.ndarray array_of(const DLTensor* source, Owner owner, bint writeable):
    """A view of a tensor's memory, which `owner` keeps alive."""
    cdef DLTensor own = source[0]  # a copy, so that checks hold even if the producer changes the original
    cdef const DLTensor* tensor = &own
    cdef cnp.npy_intp shape[64]
    cdef cnp.npy_intp strides[64]
    cdef char* data = <char*> tensor.data
    cdef cnp.ndarray array
    check_device(tensor.device.device_type)
    dtype = element_of(tensor)
    sizes, steps = extents(tensor, dtype.itemsize)
    for axis, (size, step) in enumerate(zip(sizes, steps)):
        shape[axis], strides[axis] = size, step
    if 0 in sizes:
        data = nowhere
    elif data == NULL:
        raise PoolError(f"from_dlpack: the tensor has shape {sizes}, but no data")
    else:
        data += tensor.byte_offset
    Py_INCREF(dtype)  # NewFromDescr takes one reference
    array = PyArray_NewFromDescr(np.ndarray, dtype, tensor.ndim, shape, strides, data,
                                 cnp.NPY_ARRAY_WRITEABLE if writeable else 0, NULL)
    cnp.set_array_base(array, owner)
    return array


cdef void* claim(capsule, const char* name, const char* used) except? NULL:
    """The tensor of a capsule of this name, which is then marked as used; NULL if it has another name. If several
    threads read the same capsule, only one of them gets the tensor."""
    cdef void* tensor = NULL
    with cython.critical_section(capsule):
        if PyCapsule_IsValid(capsule, name):
            tensor = PyCapsule_GetPointer(capsule, name)
            PyCapsule_SetName(capsule, used)
    return tensor


cdef consume(capsule):
    """The array of a capsule. If there is an error, the capsule gets its tensor back."""
    cdef Owner owner = Owner()
    cdef DLManagedTensor* legacy
    cdef DLManagedTensorVersioned* versioned
    versioned = <DLManagedTensorVersioned*> claim(capsule, "dltensor_versioned", "used_dltensor_versioned")
    if versioned != NULL:
        try:
            if versioned.major != VERSION[0]:
                raise PoolError(f"from_dlpack: the tensor is of DLPack {versioned.major}.{versioned.minor}, but only "
                                f"{VERSION[0]}.x is supported; export it with max_version={VERSION}")
            array = array_of(&versioned.tensor, owner, not versioned.flags & READ_ONLY)
        except BaseException:
            claim(capsule, "used_dltensor_versioned", "dltensor_versioned")
            raise
        owner.versioned = versioned
        return array
    legacy = <DLManagedTensor*> claim(capsule, "dltensor", "used_dltensor")
    if legacy != NULL:
        try:
            array = array_of(&legacy.tensor, owner, False)
        except BaseException:
            claim(capsule, "used_dltensor", "dltensor")
            raise
        owner.legacy = legacy
        return array
    if not PyCapsule_CheckExact(capsule):
        raise PoolTypeError(f"from_dlpack: __dlpack__ returned a {type(capsule).__name__}, but must return a capsule; "
                            f"pass a tensor that supports DLPack, or np.asarray(...) of the object")
    name = PyCapsule_GetName(capsule)
    label = "none" if name == NULL else (<bytes> name).decode(errors="replace")
    raise PoolError(f"from_dlpack: the capsule has the name {label}, but must have dltensor or dltensor_versioned; "
                    f"a capsule can be read once, so export the tensor again")


def from_dlpack(obj):
    """
    Read a tensor of another framework as a NumPy array, without a copy.

    Parameters
    ----------
    obj : object with ``__dlpack__`` and ``__dlpack_device__``, or DLPack capsule
        For example a torch.Tensor, a jax.Array or an onnxruntime.OrtValue, in CPU memory. Its memory stays alive as
        long as the array.

    Returns
    -------
    ndarray
        An array with the tensor's shape and strides; bfloat16 is the dtype of the package ml_dtypes. It is writeable
        unless the tensor is read-only, or uses a protocol older than DLPack 1.0, which does not say whether it is.

    Raises
    ------
    PoolError
        If the tensor has a shape that no array can have, or if its capsule was read before.
    PoolTypeError
        If `obj` is not a tensor, is not in CPU memory, or has elements of a type that NumPy lacks, or if its methods
        raise errors or do not follow the protocol. Tensors of torch with the negative bit are refused too, because
        their memory holds the negated numbers.
    BufferError
        If the framework refuses to export the tensor.

    See Also
    --------
    numpy.from_dlpack : NumPy's function, which does not support bfloat16.

    Examples
    --------
    >>> import numpy as np, onnxpool
    >>> x = np.arange(4.0)
    >>> np.shares_memory(onnxpool.from_dlpack(x), x)
    True
    """
    if PyCapsule_CheckExact(obj):
        return consume(obj)  # the caller keeps a reference
    for method in ("__dlpack__", "__dlpack_device__"):
        if not has(obj, method):
            raise PoolTypeError(f"from_dlpack: a {type(obj).__name__} has no {method}; pass a tensor that supports "
                                f"DLPack, or np.asarray(...) of the object")
    check_device(device_of(obj), obj)
    if says(obj, lambda x: x.is_neg()):  # torch exports the memory regardless
        raise PoolTypeError("from_dlpack: the tensor has its negative bit set, so its memory holds negated "
                            "numbers; pass x.resolve_neg()")
    try:
        capsule = asked(obj, "__dlpack__", max_version=VERSION)
    except TypeError as error:
        if not isinstance(error.__cause__, TypeError):
            raise
        capsule = asked(obj, "__dlpack__")  # a producer older than DLPack 1.0
    try:
        return consume(capsule)
    except BaseException:
        capsule = None  # its destructor may run Python code, which must not run while an error is propagating
        raise
