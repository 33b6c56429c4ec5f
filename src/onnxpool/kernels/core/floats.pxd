"""The floating-point state of a thread; see floats.h."""

cdef extern from "floats.h" nogil:
    ctypedef struct float_state:
        pass
    enum:
        INVALID
        OVERFLOWED
        UNDERFLOWED
    float_state enter_default_floats() noexcept
    void leave_default_floats(float_state saved) noexcept
    int exceptions_raised() noexcept
    void clear_exceptions() noexcept
    void gather_exceptions(int* all, int raised) noexcept
    void count_again(Py_ssize_t* count) noexcept
