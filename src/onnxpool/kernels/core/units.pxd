"""The loops of one instruction set; see units.h."""
from .job cimport Scratch

cdef extern from "units.h" nogil:
    ctypedef struct Unit:
        const char* name
        void (*run)() noexcept nogil
        Scratch scratch
