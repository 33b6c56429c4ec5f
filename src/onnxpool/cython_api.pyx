"""Pooling without the GIL, for Cython, C, Numba and ctypes. See `cython_api.pxd` and docs/c-api.md."""
import math
from types import SimpleNamespace

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from .kernels.core.tasks cimport MOST_AXES
from .kernels.operands cimport Operand, Operands, RunPool

from . import kernels, schemas
from .base import by_name, further_caches
from .errors import PoolError, PoolTypeError
from .arrays import can_be, dtype_named
from .dtypes import BYTES, DTYPES, FLOATS
from .execution import Plan
from .planning.kinds import INDEX, WindowPlan
from .constants import MOST_THREADS
from .threads import team

cdef extern from *:
    """
    #define onnxpool_add(count, n) __atomic_add_fetch(count, n, __ATOMIC_ACQ_REL)
    """
    int64_t onnxpool_add(int64_t* count, int64_t n) noexcept nogil

__all__ = ["Prepared"]

MOST_SIZE = 4096  # maximum size of a geometry; a larger size field is garbage
MOST_OPERATORS = 64  # maximum number of cached operators
operators = {}  # cache of operators for geometries, by all fields but the shape
further_caches.append(SimpleNamespace(cache_clear=operators.clear))

OPERATIONS = {
    ONNXPOOL_AVERAGE_POOL: "AveragePool",
    ONNXPOOL_MAX_POOL: "MaxPool",
    ONNXPOOL_LP_POOL: "LpPool",
    ONNXPOOL_GLOBAL_AVERAGE_POOL: "GlobalAveragePool",
    ONNXPOOL_GLOBAL_MAX_POOL: "GlobalMaxPool",
    ONNXPOOL_GLOBAL_LP_POOL: "GlobalLpPool",
    ONNXPOOL_QLINEAR_AVERAGE_POOL: "QLinearAveragePool",
    ONNXPOOL_QLINEAR_GLOBAL_AVERAGE_POOL: "QLinearGlobalAveragePool",
    ONNXPOOL_NHWC_MAX_POOL: "NhwcMaxPool",
}
ELEMENTS = {DTYPES[name].onnx: name for name in (*FLOATS, *BYTES)}
AUTO_PADS = {
    ONNXPOOL_NOTSET: "NOTSET",
    ONNXPOOL_SAME_UPPER: "SAME_UPPER",
    ONNXPOOL_SAME_LOWER: "SAME_LOWER",
    ONNXPOOL_VALID: "VALID",
}

cdef RunPool run_pool = <RunPool> PyCapsule_GetPointer(kernels.RUN_POOL, "onnxpool.kernels.operands.RunPool")

cdef struct Strides:
    Py_ssize_t x[MOST_AXES]
    Py_ssize_t y[MOST_AXES]
    Py_ssize_t indices[MOST_AXES]

cdef struct onnxpool_handle:
    int64_t references
    PyObject* pool             # held until the last release
    bint empty, indexed
    int threads, most_threads  # default when the handle was made, and maximum for a run
    int ndim
    int64_t shape[MOST_AXES]    # shape of the result
    Operands operands          # without data pointers
    Strides strides


def memory_of(str label, str name, tuple shape, dtype, strides=None):
    """An array without memory: only its shape and strides may be used."""
    if not can_be(shape, dtype):
        raise PoolError(f"{label}: {name} of shape {shape} is too large for any array; reduce it")
    if strides is None:
        strides = [dtype.itemsize * math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)


cdef Operand operand_of(array, Py_ssize_t* strides):
    cdef int axis, ndim = array.ndim
    cdef Py_ssize_t itemsize = array.itemsize
    for axis in range(ndim):
        strides[axis] = array.strides[axis]
    return Operand(NULL, strides, ndim, itemsize, False)


cdef onnxpool_handle* prepare(plan, tuple inputs, x_strides, y_strides, indices_strides) except NULL:
    cdef onnxpool_handle* handle
    if not isinstance(plan, WindowPlan) or plan.request.channel is None:
        if isinstance(plan, Plan):
            raise PoolTypeError(f"{plan.label}: its inputs are checked in Python, so there is no handle; call the plan")
        raise PoolTypeError(f"onnxpool: a handle needs the plan of an operator, got {type(plan).__name__}; "
                            f"pass onnxpool.MaxPool(...).plan(shape, dtype)")
    plan._check_limits()
    rule = plan._rule(inputs)
    x = memory_of(plan.label, "X", plan.shape, plan.dtype, x_strides)
    y = memory_of(plan.label, "the result", plan.output_shape, plan.dtype, y_strides)
    indices = None
    if plan.reduction.indexed:
        indices = memory_of(plan.label, "Indices", plan.output_shape, INDEX, indices_strides)
    pool = plan._pool(x, y, indices) if x.size else None
    handle = <onnxpool_handle*> calloc(1, sizeof(onnxpool_handle))
    if handle == NULL:
        raise MemoryError(f"{plan.label}: cannot allocate {sizeof(onnxpool_handle)} bytes for a handle")
    handle.references = 1
    handle.pool = <PyObject*> pool
    Py_INCREF(pool)
    handle.empty, handle.indexed = x.size == 0, plan.reduction.indexed
    handle.threads, handle.most_threads = team(None, x.nbytes), team(MOST_THREADS, x.nbytes)
    handle.ndim = len(plan.shape)
    for axis in range(handle.ndim):
        handle.shape[axis] = plan.output_shape[axis]
    handle.operands.x = operand_of(x, handle.strides.x)
    handle.operands.y = operand_of(y, handle.strides.y)
    if indices is not None:
        handle.operands.indices = operand_of(indices, handle.strides.indices)
    if rule is not None:
        (handle.operands.scales.bias, handle.operands.scales.scale, handle.operands.scales.y_scale,
         handle.operands.scales.lowest, handle.operands.scales.highest, handle.operands.scales.zero) = rule
    return handle


cdef onnxpool_handle* prepare_plain(operator, tuple shape, dtype) except? NULL:
    """A handle for C-contiguous arrays of a shape, if this needs no plan; otherwise NULL."""
    cdef onnxpool_handle* handle
    cdef Py_ssize_t itemsize = dtype.itemsize, size
    cdef int axis, ndim = len(shape)
    found = None if operator._shapes is None else operator._shapes.prepared(shape, dtype.num)
    if found is None:
        return NULL
    handle = <onnxpool_handle*> calloc(1, sizeof(onnxpool_handle))
    if handle == NULL:
        raise MemoryError(f"{operator.label}: cannot allocate {sizeof(onnxpool_handle)} bytes for a handle")
    pool, output_shape = found
    handle.references, handle.pool, handle.ndim, handle.indexed = 1, <PyObject*> pool, ndim, operator.return_indices
    Py_INCREF(pool)
    size = lay(handle.strides.x, shape, itemsize)
    handle.threads, handle.most_threads = team(None, size), team(MOST_THREADS, size)
    lay(handle.strides.y, output_shape, itemsize)
    for axis in range(ndim):
        handle.shape[axis] = output_shape[axis]
    handle.operands.x = Operand(NULL, &handle.strides.x[0], ndim, itemsize, False)
    handle.operands.y = Operand(NULL, &handle.strides.y[0], ndim, itemsize, False)
    if handle.indexed:
        lay(handle.strides.indices, output_shape, INDEX.itemsize)
        handle.operands.indices = Operand(NULL, &handle.strides.indices[0], ndim, INDEX.itemsize, False)
    return handle


cdef Py_ssize_t lay(Py_ssize_t* strides, tuple shape, Py_ssize_t bytes):
    """Set the strides of a row-major array, and return its bytes."""
    cdef int axis
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = bytes
        bytes *= shape[axis]
    return bytes


cdef tuple values(const int64_t* source, Py_ssize_t count):
    """An array of integers as a tuple, or None if it is NULL."""
    return None if source == NULL else tuple([source[i] for i in range(count)])


def named(dict names, str field, code):
    if code not in names:
        known = ", ".join(f"{number} ({name})" for number, name in names.items())
        raise PoolError(f"onnxpool: {field}={code} of a geometry is unknown; pass {known}")
    return names[code]


cdef bytes some(const int64_t* source, Py_ssize_t count):
    """An array of integers as bytes, empty if it is NULL."""
    return b"" if source == NULL else b"-" + (<const char*> source)[:count * sizeof(int64_t)]


cdef bytes key_of(const onnxpool_geometry* geometry):
    """All fields of a geometry but its shape, as bytes."""
    cdef onnxpool_geometry rest = geometry[0]
    cdef Py_ssize_t spatial = geometry.ndim - 2
    rest.shape = rest.kernel_shape = rest.strides = rest.pads = rest.dilations = NULL
    rest.x_strides = rest.y_strides = rest.indices_strides = NULL
    return b"".join([(<const char*> &rest)[:sizeof(onnxpool_geometry)], some(geometry.kernel_shape, spatial),
                     some(geometry.strides, spatial), some(geometry.pads, 2 * spatial),
                     some(geometry.dilations, spatial)])


cdef onnxpool_geometry known_part(const onnxpool_geometry* given) except *:
    """The fields of a geometry that this version knows. Fields of later versions must be 0."""
    cdef onnxpool_geometry geometry
    cdef Py_ssize_t byte
    if not sizeof(onnxpool_geometry) <= given.size <= MOST_SIZE:
        raise PoolError(f"onnxpool: size={given.size} of a geometry, but it has at least {sizeof(onnxpool_geometry)} "
                        f"bytes; set every field to 0 and size to sizeof(onnxpool_geometry)")
    for byte in range(<Py_ssize_t> sizeof(onnxpool_geometry), given.size):
        if (<const char*> given)[byte]:
            raise PoolError(f"onnxpool: byte {byte} of a geometry is set, but this version knows only "
                            f"{sizeof(onnxpool_geometry)} bytes; set the others to 0 or install a newer onnxpool")
    memcpy(&geometry, given, sizeof(onnxpool_geometry))
    return geometry


cdef int onnxpool_abi_version() noexcept nogil:
    return ONNXPOOL_ABI_VERSION


cdef onnxpool_handle* onnxpool_prepare(object plan, object inputs) except NULL:
    return prepare(plan, () if inputs is None else tuple(inputs), None, None, None)


cdef onnxpool_handle* onnxpool_prepare_geometry(const onnxpool_geometry* given) except NULL:
    cdef onnxpool_geometry geometry
    cdef onnxpool_handle* handle
    if given == NULL:
        raise PoolError("onnxpool: the geometry is NULL; pass the address of one")
    geometry = known_part(given)
    name = named(OPERATIONS, "operation", geometry.operation)
    dtype = named(ELEMENTS, "dtype", geometry.dtype)
    auto_pad = named(AUTO_PADS, "auto_pad", geometry.auto_pad)
    least = 3 if "kernel_shape" in schemas.resolve(name, None).attributes else 2
    if not least <= geometry.ndim <= MOST_AXES:
        raise PoolError(f"{name}: ndim={geometry.ndim} of a geometry; pass {least} to {MOST_AXES} axes")
    if geometry.shape == NULL:
        raise PoolError(f"{name}: shape of a geometry is NULL; pass {geometry.ndim} sizes")
    key = key_of(&geometry)  # reads arrays, whose length is now known
    operator = operators.get(key)
    if operator is not None and not operator.quantised and (
            geometry.x_strides == geometry.y_strides == geometry.indices_strides == NULL):
        handle = prepare_plain(operator, values(geometry.shape, geometry.ndim), dtype_named(dtype))
        if handle != NULL:
            return handle
    spatial = geometry.ndim - 2
    attributes = {
        "kernel_shape": values(geometry.kernel_shape, spatial),
        "strides": values(geometry.strides, spatial),
        "pads": values(geometry.pads, 2 * spatial),
        "dilations": values(geometry.dilations, spatial),
        "auto_pad": auto_pad if geometry.auto_pad else None,
        "ceil_mode": geometry.ceil_mode or None,
        "count_include_pad": geometry.count_include_pad or None,
        "storage_order": geometry.storage_order or None,
        "p": geometry.p or None,
    }
    opset = geometry.opset or None
    power = schemas.resolve(name, opset).attributes.get("p")
    if power is not None and power.type == "int" and geometry.p.is_integer():
        attributes["p"] = int(geometry.p) or None
    changes = operator is not None
    if not changes:
        operator = by_name(name, opset, attributes, geometry.channels_last, geometry.return_indices)
    plan = operator.plan(values(geometry.shape, geometry.ndim), dtype_named(dtype))
    scales = (geometry.x_scale, geometry.x_zero_point, geometry.y_scale, geometry.y_zero_point)
    handle = prepare(plan, scales if operator.quantised or any(scales) else (),
                     values(geometry.x_strides, geometry.ndim), values(geometry.y_strides, geometry.ndim),
                     values(geometry.indices_strides, geometry.ndim))
    if changes:
        operator._learn(plan)
    else:
        if len(operators) >= MOST_OPERATORS:
            operators.clear()
        operators[key] = operator
    return handle


cdef void onnxpool_retain(onnxpool_handle* handle) noexcept nogil:
    if handle != NULL:
        onnxpool_add(&handle.references, 1)


cdef void onnxpool_release(onnxpool_handle* handle) noexcept nogil:
    if handle == NULL or onnxpool_add(&handle.references, -1) > 0:
        return
    with gil:
        Py_DECREF(<object> handle.pool)
    free(handle)


cdef int onnxpool_output_shape(const onnxpool_handle* handle, int64_t* shape) noexcept nogil:
    cdef int axis
    if handle == NULL:
        return 0
    if shape != NULL:
        for axis in range(handle.ndim):
            shape[axis] = handle.shape[axis]
    return handle.ndim


cdef int onnxpool_run(const onnxpool_handle* handle, const void* x, void* y, int64_t* indices,
                      int threads) noexcept nogil:
    cdef Operands operands
    if handle == NULL or ((x == NULL or y == NULL) and not handle.empty):
        return ONNXPOOL_NULL_POINTER
    if threads < 0:
        return ONNXPOOL_BAD_THREADS
    if handle.empty:
        return ONNXPOOL_OK
    if handle.indexed != (indices != NULL):
        return ONNXPOOL_BAD_INDICES
    operands = handle.operands
    operands.x.data, operands.y.data, operands.indices.data = <char*> x, <char*> y, <char*> indices
    threads = min(threads if threads else handle.threads, handle.most_threads)
    return ONNXPOOL_OK if run_pool(handle.pool, &operands, threads) else ONNXPOOL_NO_MEMORY


cdef const char* onnxpool_message(int status) noexcept nogil:
    if status == ONNXPOOL_OK:
        return "done"
    if status == ONNXPOOL_NULL_POINTER:
        return "a handle or array is NULL"
    if status == ONNXPOOL_BAD_INDICES:
        return "indices are NULL although the handle computes them, or not NULL although it does not"
    if status == ONNXPOOL_BAD_THREADS:
        return "the number of threads is negative"
    if status == ONNXPOOL_NO_MEMORY:
        return "no scratch memory"
    return "unknown status"


cdef class Prepared:
    """
    Handle for code that runs without the GIL. It is released together with this object.

    Parameters
    ----------
    plan : Plan
        Plan of an operator that reduces windows. Arrays must be in C order.
    *inputs
        Inputs of a quantised operator after X.

    Raises
    ------
    PoolError
        If the operator does not allow a scale or zero point.
    PoolTypeError
        If `plan` is not such a plan.

    Examples
    --------
    >>> import onnxpool.cython_api
    >>> plan = onnxpool.MaxPool(kernel_shape=2).plan((1, 1, 4, 4), "float32")
    >>> handle = onnxpool.cython_api.Prepared(plan).address
    """

    cdef onnxpool_handle* handle

    def __cinit__(self, plan, *inputs):
        self.handle = onnxpool_prepare(plan, inputs)

    def __dealloc__(self):
        onnxpool_release(self.handle)

    @property
    def address(self):
        """The handle as an int, for Numba and ctypes. It is valid as long as this object exists."""
        return <uintptr_t> self.handle

    @property
    def route(self):
        """The names of the solvers that the handle runs, as in `plan.explain()`."""
        pool = <object> self.handle.pool
        return [] if pool is None else [pool.setup.solver]
