"""Boxes: windows of few taps along the last two axes, over channels that lie side by side, are reduced at once.

No block goes to memory and back between the axes. The order is the same: the taps of each row, then the rows.
"""
from libc.string cimport memcpy

from .geometry cimport Axis, Span, first_tap, is_interior, taps_inside
from .job cimport PLAIN, Call, Job, Stage, Tile, stopped
from .reductions cimport MaxF32, MaxF64, MaxI8, MaxU8, combine, few, nothing, running_t

cdef enum:
    VECTOR = 64  # bytes that are reduced together, as in tiling.py


cdef inline running_t followed(running_t result, const running_t* x, Py_ssize_t hop, int taps) noexcept nogil:
    """The result of earlier rows and then of this one."""
    if running_t is MaxI8 or running_t is MaxU8 or running_t is MaxF32 or running_t is MaxF64:
        # A maximum has no order of its own: one tap after the other needs fewer instructions.
        result = combine(result, x[0])
        if taps > 1:
            result = combine(result, x[hop])
        return combine(result, x[2 * hop]) if taps > 2 else result
    else:
        return combine(result, few(x, hop, taps))


cdef inline running_t of_box(const running_t* x, Py_ssize_t pitch, Py_ssize_t hop, int rows, int taps) noexcept nogil:
    cdef running_t result = few(x, hop, taps)
    if rows > 1:
        result = followed(result, x + pitch, hop, taps)
    if rows > 2:
        result = followed(result, x + 2 * pitch, hop, taps)
    return result


cdef inline void boxes(const running_t* x, running_t* y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step,
                       Py_ssize_t pitch, Py_ssize_t hop, int rows, int taps) noexcept nogil:
    """y[windows, inner] of boxes `step` apart; inner takes a vector at least."""
    cdef running_t[VECTOR] lanes  # apart from y, so that nothing has to be known about where y is
    cdef Py_ssize_t window, done, j, width = VECTOR // <Py_ssize_t> sizeof(running_t)
    for window in range(windows):
        done = 0
        while done < inner:
            done = min(done, inner - width)  # the last vector overlaps the one before
            for j in range(width):
                lanes[j] = of_box(x + done + j, pitch, hop, rows, taps)
            memcpy(y + done, lanes, VECTOR)
            done += width
        x += step
        y += inner


cdef void some_boxes(const running_t* x, running_t* y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step,
                     Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t rows, Py_ssize_t taps) noexcept nogil:
    cdef Py_ssize_t j
    # Constants let the compiler unroll a box. Up to 3 rows T(n) adds one after the other.
    if rows == 0 or taps == 0:
        for j in range(windows * inner):
            y[j] = nothing(y[j])
    elif rows == 1 and taps == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 1, 1)
    elif rows == 1 and taps == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 1, 2)
    elif rows == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 1, 3)
    elif rows == 2 and taps == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 2, 1)
    elif rows == 2 and taps == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 2, 2)
    elif rows == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 2, 3)
    elif taps == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 3, 1)
    elif taps == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 3, 2)
    else:
        boxes(x, y, windows, inner, step, pitch, hop, 3, 3)


cdef void reduce_boxes(const running_t* x, running_t* y, const Axis* rows, Span down, const Axis* taps, Span across,
                       Py_ssize_t pitch, Py_ssize_t inner) noexcept nogil:
    """y[down windows, across windows, inner] from x[down elements, across elements, inner], rows `pitch` apart."""
    cdef Py_ssize_t row, window, count
    cdef const running_t* first
    for row in range(down.begin, down.end):
        first = x + (first_tap(rows, row) - down.low) * pitch if taps_inside(rows, row) else x
        window = across.begin
        while window < across.end:
            count = min(across.end, taps.end) - window if is_interior(taps, window) else 1
            some_boxes(first + (first_tap(taps, window) - across.low if taps_inside(taps, window) else 0) * inner, y,
                       count, inner, taps.step * inner, rows.hop * pitch, taps.hop * inner, taps_inside(rows, row),
                       taps_inside(taps, window))
            y += count * inner
            window += count


cdef inline bint fits_boxes(const Job* job, const Tile* tile, Py_ssize_t itemsize) noexcept nogil:
    """Not where no window of the tile has a row, nor where a part of the channels is too narrow."""
    return (job.boxes and (tile.inner_end - tile.inner_begin) * itemsize >= VECTOR
            and tile.span[job.axes - 2].high > tile.span[job.axes - 2].low)


cdef void load_boxes(const Job* job, const Call* call, const Stage* stage, const Tile* tile, running_t* block,
                     running_t* work, Scratch* scratch) noexcept nogil:
    """The last two axes: block[outer, elements of the other axes, windows of both, inner]."""
    cdef int last = job.axes - 1
    cdef Span down = tile.span[last - 1], across = tile.span[last]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = (across.high - across.low) * inner, row
    cdef Py_ssize_t height = down.high - down.low, size = call.x.itemsize, pitch = call.x.axis[last - 1]
    cdef Py_ssize_t stride = call.x.axis[last], together, n
    cdef bint direct = (not stage.load and call.x.format == PLAIN and pitch % size == 0
                        and is_dense(&call.x, stride, across.high - across.low, inner))
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* source
    cdef const char* line
    together = min(walk.together, max(1, job.row // max(1, length)))
    if together > 1 and not is_planar(&call.x, stride, inner):
        stride = inner * size  # as one long row
    walk.together = 1
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.wanted and direct:
            reduce_boxes(<const running_t*> source, block, &job.axis[last - 1], down, &job.axis[last], across,
                         pitch // size, inner)
        elif walk.wanted:
            row = 0
            while row < height:
                n = min(height - row, together)
                line = read_row(&call.x, source + row * pitch, stride, n * (across.high - across.low), inner, scratch)
                if stage.load:
                    stage.load(line, work + row * length, n * length, &call.rule)
                else:
                    memcpy(work + row * length, line, n * length * sizeof(running_t))
                row += n
            reduce_boxes(<const running_t*> work, block, &job.axis[last - 1], down, &job.axis[last], across, length,
                         inner)
        block += (down.end - down.begin) * (across.end - across.begin) * inner
        walk.n = height
        source = next_rows(job, &call.x, tile, &walk)
