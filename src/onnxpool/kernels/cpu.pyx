"""The instruction sets of this processor and this build, and a thread's floating-point state."""
from .core.floats cimport enter_default_floats, float_state, leave_default_floats

cdef extern from *:
    """
    #ifdef _OPENMP
    #define onnxpool_openmp _OPENMP
    #else
    #define onnxpool_openmp 0
    #endif
    """
    int onnxpool_openmp

cdef extern from "isas.h":
    ctypedef struct Isa:
        const char* name
        bint runs
    Isa isa_of(int i)


def instruction_sets():
    """The instruction sets that are built and that this processor supports, best first."""
    cdef int i = 0
    names = []
    while isa_of(i).name != NULL:
        if isa_of(i).runs:
            names.append(isa_of(i).name.decode())
        i += 1
    return names


def openmp():
    """The date (yyyymm) of the OpenMP standard with which the kernels are built, or 0 without OpenMP."""
    return onnxpool_openmp


cdef class DefaultFloats:
    """A context manager: default rounding in this thread, without traps and without flushing subnormals."""
    cdef float_state saved

    def __enter__(self):
        self.saved = enter_default_floats()

    def __exit__(self, *error):
        leave_default_floats(self.saved)
