"""Iteration over the places of several axes."""


cdef inline int advance(Py_ssize_t* at, const Py_ssize_t* begin, const Py_ssize_t* end, int axes) noexcept nogil:
    """Go to the next place; the last axis is the fastest. Return the axis that advanced, or -1 after the last place."""
    cdef int a = axes - 1
    while a >= 0:
        at[a] += 1
        if at[a] < end[a]:
            return a
        at[a] = begin[a]
        a -= 1
    return -1
