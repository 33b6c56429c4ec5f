"""Sums whose taps must be added one by one in row-major order, because their rounding is defined so.

Only QLinearAveragePool asks for it: its result is onnxruntime's float32 sum, requantised. No order of partial sums is
free here, so a window costs as much as it has taps.
"""
from .elements cimport copy_vector, part
from .geometry cimport Axis, Run, Span, first_tap, run_at, taps_inside
from .job cimport MAX_AXES, Call, Job, Tile, stopped
from .reductions cimport combine, nothing, running_t


cdef inline void add_taps(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                          Py_ssize_t taps) noexcept nogil:
    cdef Py_ssize_t j, tap = 0
    while tap + SIDE <= taps:
        for j in range(n):
            y[j] = followed(y[j], x + j * step, hop, SIDE)
        x += SIDE * hop
        tap += SIDE
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


cdef inline void add_boxes(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t pitch, Py_ssize_t rows,
                           Py_ssize_t hop, int taps, int step) noexcept nogil:
    """y[n] of windows of whole rows of taps; n fills a vector."""
    cdef running_t[VECTOR] space
    cdef running_t[3 * VECTOR] box_space
    cdef running_t* lanes = space
    cdef running_t* box = box_space
    cdef const running_t* line
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), done = 0, row, j
    while done < n:
        done = min(done, n - width)  # the last vector overlaps the one before
        for j in range(width):
            lanes[j] = nothing(lanes[j])
        for row in range(rows):
            line = x + row * pitch + done * step
            if step == 2:
                part(line, box, box + width, sizeof(running_t))
                if taps > 2:
                    part(line + 2, box + 2 * width, box_space + 3 * width, sizeof(running_t))
                line = box
            for j in range(width):
                lanes[j] = followed(lanes[j], line + j, width if step == 2 else hop, taps)
        copy_vector(y + done, lanes)
        done += width


cdef inline void add_some_boxes(const running_t* x, running_t* y, Py_ssize_t n, Py_ssize_t pitch, Py_ssize_t rows,
                                Py_ssize_t hop, Py_ssize_t taps, int step) noexcept nogil:
    # Constants let the compiler unroll them.
    if taps == 1:
        add_boxes(x, y, n, pitch, rows, hop, 1, step)
    elif taps == 2:
        add_boxes(x, y, n, pitch, rows, hop, 2, step)
    else:
        add_boxes(x, y, n, pitch, rows, hop, 3, step)


cdef bint add_row_of_boxes(const running_t* x, running_t* y, const Axis* axis, Span span, Py_ssize_t inner,
                           Py_ssize_t pitch, Py_ssize_t rows) noexcept nogil:
    """All rows of taps of a row of windows; False if they had better be added one by one."""
    cdef Py_ssize_t window = max(axis.begin, span.begin), end = min(axis.end, span.end), n = end - window, w, row
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t)
    if axis.taps > SIDE or n < 1:
        return False
    x -= span.low * inner
    y -= span.begin * inner
    if (axis.step == 1 or n == 1) and n * inner >= width:
        add_some_boxes(x + first_tap(axis, window) * inner, y + window * inner, n * inner, pitch, rows,
                       axis.hop * inner, axis.taps, 1)
    elif axis.step == 2 and axis.hop == inner == 1 and n >= width:
        add_some_boxes(x + first_tap(axis, window), y + window, n, pitch, rows, 1, axis.taps, 2)
    elif inner >= width:
        for w in range(window, end):
            add_some_boxes(x + first_tap(axis, w) * inner, y + w * inner, inner, pitch, rows, axis.hop * inner,
                           axis.taps, 1)
    else:
        return False
    w = end if window == span.begin else span.begin
    while w < span.end:
        for row in range(rows):
            add_taps(x + row * pitch + first_tap(axis, w) * inner, y + w * inner, inner, 1, axis.hop * inner,
                     taps_inside(axis, w))
        w = end if w + 1 == window else w + 1
    return True


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
            if last == 1 and not empty:
                row = item * volume + (first_tap(&job.axis[0], window[0]) - tile.span[0].low) * pitches[0]
                empty = add_row_of_boxes(x + row, y, &job.axis[1], tile.span[1], inner, job.axis[0].hop * pitches[0],
                                         taps_inside(&job.axis[0], window[0]))
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
