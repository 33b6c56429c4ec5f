"""Elements that can take a sum out of its range; see extremes.h."""
from .boxes cimport Copy

cdef extern from "extremes.h" nogil:
    ctypedef struct Extremes:
        pass
    Extremes extremes_of(int digits, double least, double largest) noexcept
    bint has_extreme(const Copy* copy, const char* x, int axis, const Extremes* extremes) noexcept
