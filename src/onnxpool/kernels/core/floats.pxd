"""The floating-point state of a thread; see floats.h."""

cdef extern from "floats.h" nogil:
    ctypedef struct float_state:
        pass
    float_state enter_default_floats() noexcept
    void leave_default_floats(float_state saved) noexcept
