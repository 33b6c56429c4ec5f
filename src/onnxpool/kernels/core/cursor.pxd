"""Places of several axes, one after the other."""


cdef inline int advance(Py_ssize_t* at, const Py_ssize_t* begin, const Py_ssize_t* end, int axes) noexcept nogil:
    """The next place of so many axes, the last one first: which axis moved on, or -1 behind the last place."""
    cdef int a = axes - 1
    while a >= 0:
        at[a] += 1
        if at[a] < end[a]:
            return a
        at[a] = begin[a]
        a -= 1
    return -1
