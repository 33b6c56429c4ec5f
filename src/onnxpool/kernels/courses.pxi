"""Courses: neighbouring windows of a row over channels that lie side by side, and the lines that they will read.

Loads jump from tap to tap and back, where no processor follows them. So lines are asked for apart from loads, in the
order in which they lie in memory, and only those that no earlier row of windows reads. Windows that follow each other
without a gap or a tap in common are read in that order before: a processor follows a stream of loads further ahead.
"""
from .elements cimport fetch, touch_lines

cdef enum:
    ENDLESS = 1 << 30  # bytes
    BATCH = 1 << 12    # bytes of windows that are touched at once, or one that takes more,
    LEAST_TOUCHED = 1 << 10  # and of each at least
    MOST_TOUCHED = 1 << 14   # and at most


cdef struct Nest:
    Py_ssize_t[3] taps, hop  # of a window along three axes, the innermost first, and bytes from one to the next


cdef struct Course:
    Nest nest                     # of neighbouring windows of a row: y[windows, inner]
    Py_ssize_t windows, inner
    Py_ssize_t step, pace         # bytes in x and y from window to window
    Py_ssize_t planes, rows, taps       # of a window, and bytes from one to the next
    Py_ssize_t deep, down, across
    Py_ssize_t below              # bytes in y to the next row, where two are taken at once
    bint waits, fetches, sweeps   # for elements beyond L2; whether lines are asked for, and in the order of memory
    Py_ssize_t batch              # windows that are touched at once; 0 if none are
    Py_ssize_t ahead              # so many bytes before they are read
    Py_ssize_t[FEW * FEW] stream  # bytes from a window to its rows of taps that no earlier row of windows reads,
    Py_ssize_t streams, places    # how many these are, and places of each that no earlier window of the row reads
    Py_ssize_t run, gap           # bytes of them that follow each other, and from there to the next
    Py_ssize_t left, turn         # bytes to the end of the row, and from there to the next row of windows


cdef inline Py_ssize_t ahead_of(const Course* course, Py_ssize_t window) noexcept nogil:
    """How far before they are read lines are asked for: behind the end of a row those of the next one."""
    return AHEAD if window * course.step + AHEAD < course.left else AHEAD + course.turn


cdef inline Py_ssize_t batch_of(const Course* course, Py_ssize_t size) noexcept nogil:
    """How many windows to touch at once, of elements of so many bytes."""
    if (course.planes != 1 or course.rows != 1 or course.across != course.inner * size
            or course.step != course.taps * course.across or not LEAST_TOUCHED <= course.step <= MOST_TOUCHED):
        return 0
    return max(1, BATCH // course.step)


cdef inline Py_ssize_t touch_batch(const char* x, const Course* course, Py_ssize_t window) noexcept nogil:
    """Touch a batch, of which this window is the first; where the next one begins."""
    cdef Py_ssize_t windows = min(course.batch, course.windows - window)
    touch_lines(x, windows * course.step)
    return window + windows


cdef struct Sweep:
    const char* x           # what is asked for next,
    Py_ssize_t rest, left   # bytes to the end of its run and from there to that of the row,
    Py_ssize_t asked        # and how many were


cdef inline Sweep sweep_from(const char* x, const Course* course) noexcept nogil:
    cdef Py_ssize_t left = course.left - course.ahead
    if left > 0:
        return Sweep(x + course.ahead, min(course.run, left), left - min(course.run, left), 0)
    return Sweep(x + course.ahead + course.turn, course.run, ENDLESS, 0)


cdef inline void next_run(Sweep* sweep, const Course* course) noexcept nogil:
    """From the end of a run, or behind it."""
    sweep.asked += sweep.rest
    sweep.left -= course.run + course.gap
    sweep.x += sweep.rest + course.gap
    sweep.rest = course.run
    if sweep.left < 0:
        sweep.x += course.turn
        sweep.left = ENDLESS


cdef inline void sweep_to(Sweep* sweep, const Course* course, Py_ssize_t bytes) noexcept nogil:
    """Ask for so many bytes a place, from the first window on: behind the end of the row for those of the next one."""
    cdef Py_ssize_t stream
    while sweep.asked < bytes * course.places:
        for stream in range(course.streams):
            fetch(sweep.x + course.stream[stream])
        sweep.asked += LINE
        sweep.x += LINE
        sweep.rest -= LINE
        if sweep.rest <= 0:
            next_run(sweep, course)
