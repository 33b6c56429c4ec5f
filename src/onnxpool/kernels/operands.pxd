"""The arrays of one call, as its caller passes them, and how a caller without the GIL runs a `Pool`."""
from .core.job cimport Scales

cdef struct Operand:
    char* data
    const Py_ssize_t* strides  # in bytes, one for each axis
    int ndim
    Py_ssize_t itemsize
    bint swapped


cdef struct Operands:
    Operand x, y, indices      # without indices, `indices.data` is NULL
    Scales scales              # for quantised means


# Returns False if scratch memory cannot be allocated. `pool` is a `Pool`, which the caller keeps alive.
ctypedef bint (*RunPool)(void* pool, const Operands* operands, int threads) noexcept nogil
