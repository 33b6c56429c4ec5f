"""Windows as a kernel sees them: where the taps inside the input are. Padding is not known here."""
from libc.stdint cimport int64_t

cdef struct Axis:
    Py_ssize_t size, out       # elements in, windows out
    Py_ssize_t begin, end      # the interior
    Py_ssize_t start           # first tap of window `begin`
    Py_ssize_t step, hop       # from window to window, from tap to tap
    Py_ssize_t taps, most      # of a window in the interior; of the fullest window
    double divisor               # by which an interior window divides a sum
    const int64_t* first       # of each border window: its first tap,
    const int64_t* inside      # its number of taps
    const double* divisors       # and by which it divides


cdef struct Span:
    Py_ssize_t begin, end      # windows of a tile along one axis
    Py_ssize_t low, high       # the elements they need


cdef struct Run:
    Py_ssize_t windows         # that one loop takes
    Py_ssize_t n, step         # the loop: n values, read `step` apart


cdef inline bint is_interior(const Axis* axis, Py_ssize_t window) noexcept nogil:
    return axis.begin <= window < axis.end


cdef inline Py_ssize_t border_of(const Axis* axis, Py_ssize_t window) noexcept nogil:
    return window if window < axis.begin else window - (axis.end - axis.begin)


cdef inline Py_ssize_t first_tap(const Axis* axis, Py_ssize_t window) noexcept nogil:
    if is_interior(axis, window):
        return axis.start + (window - axis.begin) * axis.step
    return axis.first[border_of(axis, window)]


cdef inline Py_ssize_t taps_inside(const Axis* axis, Py_ssize_t window) noexcept nogil:
    return axis.taps if is_interior(axis, window) else axis.inside[border_of(axis, window)]


cdef inline double divisor_of(const Axis* axis, Py_ssize_t window) noexcept nogil:
    return axis.divisor if is_interior(axis, window) else axis.divisors[border_of(axis, window)]


cdef inline Run run_at(const Axis* axis, Py_ssize_t window, Py_ssize_t end, Py_ssize_t post) noexcept nogil:
    """The windows from `window` on, none beyond `end`, that one loop can take."""
    cdef Run run = Run(1, post, 1)
    if is_interior(axis, window):
        if axis.step == 1:
            run.windows = min(end, axis.end) - window
            run.n = run.windows * post
        elif post == 1:
            run.windows = run.n = min(end, axis.end) - window
            run.step = axis.step
    return run
