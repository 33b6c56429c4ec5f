"""Sums whose taps must be added one by one in row-major order, because their rounding is defined so.

Only QLinearAveragePool asks for it: its result is onnxruntime's float32 sum, requantised. No order of partial sums is
free here, so a window costs as much as it has taps.
"""
from .geometry cimport Axis, Run, Span, first_tap, run_at, taps_inside
from .job cimport MAX_AXES, Call, Job, Tile, stopped
from .reductions cimport combine, nothing, running_t


cdef inline void add_taps(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                          Py_ssize_t taps) noexcept nogil:
    cdef Py_ssize_t j, tap = 0
    while tap + 3 <= taps:
        for j in range(n):
            y[j] = combine(combine(combine(y[j], x[j * step]), x[j * step + hop]), x[j * step + 2 * hop])
        x += 3 * hop
        tap += 3
    while tap < taps:
        for j in range(n):
            y[j] = combine(y[j], x[j * step])
        x += hop
        tap += 1


cdef void add_row(const running_t* x, running_t* y, const Axis* axis, Span span, Py_ssize_t post) noexcept nogil:
    """Adds the taps of one row to every window of y[span windows, post]."""
    cdef Py_ssize_t window = span.begin
    cdef Run run
    while window < span.end:
        run = run_at(axis, window, span.end, post)
        if run.step == 1:
            add_taps(x + (first_tap(axis, window) - span.low) * post, y + (window - span.begin) * post, run.n, 1,
                     axis.hop * post, taps_inside(axis, window))
        else:
            add_taps(x + (first_tap(axis, window) - span.low) * post, y + (window - span.begin) * post, run.n,
                     run.step, axis.hop * post, taps_inside(axis, window))
        window += run.windows


cdef void add_in_order(const Job* job, const Call* call, const Tile* tile, const running_t* x,
                       running_t* y) noexcept nogil:
    """y[outer, windows of each axis, inner] from x[outer, elements of each axis, inner]."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, row, item, pitch = inner, volume, j
    cdef Py_ssize_t length = (tile.span[last].end - tile.span[last].begin) * inner
    cdef Py_ssize_t pitches[MAX_AXES]
    cdef Py_ssize_t window[MAX_AXES]
    cdef Py_ssize_t tap[MAX_AXES]
    cdef bint empty
    for a in range(last, -1, -1):
        pitches[a] = pitch
        pitch *= tile.span[a].high - tile.span[a].low
        window[a] = tile.span[a].begin
        tap[a] = 0
    volume = pitch
    for item in range(tile.outer_end - tile.outer_begin):
        while not stopped(call):
            for j in range(length):
                y[j] = nothing(y[j])
            empty = False
            for a in range(last):
                empty |= taps_inside(&job.axis[a], window[a]) == 0
            while not empty:
                row = item * volume
                for a in range(last):
                    row += (first_tap(&job.axis[a], window[a]) + tap[a] * job.axis[a].hop
                            - tile.span[a].low) * pitches[a]
                add_row(x + row, y, &job.axis[last], tile.span[last], inner)
                if not next_tap(job, window, tap, last):
                    break
            y += length
            if not next_window(window, tile, last):
                break


cdef inline bint next_window(Py_ssize_t* window, const Tile* tile, int axes) noexcept nogil:
    """Steps to the next of the tile's windows along the first axes; False, and back at the first, after the last."""
    cdef int a
    for a in range(axes - 1, -1, -1):
        window[a] += 1
        if window[a] < tile.span[a].end:
            return True
        window[a] = tile.span[a].begin
    return False


cdef inline bint next_tap(const Job* job, const Py_ssize_t* window, Py_ssize_t* tap, int axes) noexcept nogil:
    cdef int a
    for a in range(axes - 1, -1, -1):
        tap[a] += 1
        if tap[a] < taps_inside(&job.axis[a], window[a]):
            return True
        tap[a] = 0
    return False
