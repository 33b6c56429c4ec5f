"""Parts of a tree in scratch memory. Each 1 bit of the row count so far has a row of accumulators."""
from .element cimport Pair, acc_t, join, read, vec_t, write

ctypedef fused part_t:
    Pair
    vec_t


cdef inline void graft(acc_t* part, Py_ssize_t pitch, Py_ssize_t parts, part_t* v) noexcept nogil:
    """Join a part's values with the full parts before it. Each trailing 1 bit of `parts` has one, `pitch` apart."""
    cdef part_t earlier
    while parts & 1:
        read(&earlier, part)
        join(&earlier, v)
        v[0] = earlier
        part, parts = part + pitch, parts >> 1
    write(part, v)
