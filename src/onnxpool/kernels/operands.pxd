"""The arrays of one call as their owner has them, and how a caller without the GIL reaches a `Pool`."""
from .core.job cimport Rule

cdef struct Operand:
    char* data
    const Py_ssize_t* strides  # in bytes, one for each axis
    int ndim
    Py_ssize_t itemsize
    bint swapped


cdef struct Operands:
    Operand x, y, indices      # indices have no data if none are asked for
    Rule rule                  # its quantisation; the pool adds what it knows itself


# False if there is no memory to work in. The pool is a `Pool`, and somebody keeps it alive.
ctypedef bint (*RunPool)(void* pool, const Operands* operands, int threads) noexcept nogil
