"""Boxes: windows of few taps along the last two axes, over channels that lie side by side, are reduced at once.

No block goes to memory and back between the axes. The order is the same: the taps of each row, then the rows.
"""
from libc.stdint cimport int16_t
from libc.string cimport memcpy

from .geometry cimport Axis, Span, first_tap, is_interior, taps_inside
from .elements cimport keys_of_row, widen_bfloat16_row, widen_float16_row
from .job cimport BFLOAT16, BFLOAT16_KEYS, FLOAT16, FLOAT16_KEYS, PLAIN, Call, Format, Job, Stage, Tile, stopped
from .reductions cimport MaxF32, MaxF64, MaxI8, MaxI16, MaxU8, SumF32, combine, few, nothing, running_t

cdef enum:
    SIDE = 3     # taps of a box at most along each axis, as in tiling.py
    VECTOR = 64  # bytes that are reduced together, as in tiling.py


cdef inline running_t followed(running_t result, const running_t* x, Py_ssize_t hop, int taps) noexcept nogil:
    """The result of earlier rows and then of this one."""
    if running_t is MaxI8 or running_t is MaxU8 or running_t is MaxI16 or running_t is MaxF32 or running_t is MaxF64:
        # A maximum has no order of its own: one tap after the other needs fewer instructions.
        result = combine(result, x[0])
        if taps > 1:
            result = combine(result, x[hop])
        return combine(result, x[2 * hop]) if taps > 2 else result
    else:
        return combine(result, few(x, hop, taps))


cdef inline running_t of_box(const running_t* top, const running_t* middle, const running_t* bottom, Py_ssize_t hop,
                             int rows, int taps) noexcept nogil:
    cdef running_t result = few(top, hop, taps)
    if rows > 1:
        result = followed(result, middle, hop, taps)
    if rows > 2:
        result = followed(result, bottom, hop, taps)
    return result


cdef inline void widen(const char* x, running_t* lanes, Format format) noexcept nogil:
    """A vector of 16-bit elements as running values."""
    if running_t is MaxI16:
        keys_of_row(<const unsigned short*> x, <int16_t*> lanes, VECTOR // <int> sizeof(int16_t), nans_of(format))
    elif format == FLOAT16:
        widen_float16_row(<const unsigned short*> x, <float*> lanes, VECTOR // <int> sizeof(float))
    else:
        widen_bfloat16_row(<const unsigned short*> x, <float*> lanes, VECTOR // <int> sizeof(float))


cdef inline void reduce_box(const char** line, Py_ssize_t place, Py_ssize_t hop, running_t* lanes, int rows, int taps,
                            Format format, int side) noexcept nogil:
    """lanes[side, side, vector] of neighbouring boxes, whose rows begin `place` bytes after those of `line`."""
    cdef running_t[(SIDE + 1) * (SIDE + 1) * VECTOR] space
    cdef running_t* box = space
    cdef running_t* first[SIDE + 1]
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    cdef int row, tap
    for row in range(SIDE + 1):
        first[row] = <running_t*> (line[row] + place) if format == PLAIN else box + row * (SIDE + 1) * width
    if format == PLAIN:
        hop //= <Py_ssize_t> sizeof(running_t)
    else:
        for row in range(rows + side - 1):
            for tap in range(taps + side - 1):
                widen(line[row] + place + tap * hop, first[row] + tap * width, format)
        hop = width
    for j in range(width):
        lanes[j] = of_box(first[0] + j, first[1] + j, first[2] + j, hop, rows, taps)
        if side == 2:
            # The compiler sees which taps are the same.
            lanes[width + j] = of_box(first[0] + hop + j, first[1] + hop + j, first[2] + hop + j, hop, rows, taps)
            lanes[2 * width + j] = of_box(first[1] + j, first[2] + j, first[3] + j, hop, rows, taps)
            lanes[3 * width + j] = of_box(first[1] + hop + j, first[2] + hop + j, first[3] + hop + j, hop, rows, taps)


cdef inline void boxes(const char* x, running_t* y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step,
                       Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t below, int rows, int taps, Format format,
                       int side) noexcept nogil:
    """y[windows, inner] of boxes `step` bytes apart, and with side 2 those of the next row, `below` values further on.

    inner takes a vector at least; with side 2 the windows are even in number.
    """
    cdef running_t[4 * VECTOR] space  # apart from y, so that nothing has to be known about where y is
    cdef running_t* lanes = space
    cdef const char* line[SIDE + 1]
    cdef Py_ssize_t window, done, width = VECTOR // <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t size = sizeof(running_t) if format == PLAIN else 2
    cdef int row
    for row in range(SIDE + 1):
        line[row] = x + row * pitch
    for window in range(windows // side):
        done = 0
        while done < inner:
            done = min(done, inner - width)  # the last vector overlaps the one before
            reduce_box(line, done * size, hop, lanes, rows, taps, format, side)
            memcpy(y + done, lanes, VECTOR)
            if side == 2:
                memcpy(y + inner + done, lanes + width, VECTOR)
                memcpy(y + below + done, lanes + 2 * width, VECTOR)
                memcpy(y + below + inner + done, lanes + 3 * width, VECTOR)
            done += width
        for row in range(SIDE + 1):
            line[row] += side * step
        y += side * inner


cdef inline void some_boxes(const char* x, running_t* y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step,
                            Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t below, Py_ssize_t rows, Py_ssize_t taps,
                            Format format) noexcept nogil:
    cdef Py_ssize_t j
    # Constants let the compiler unroll a box. Up to 3 rows T(n) adds one after the other.
    if rows == 0 or taps == 0:
        for j in range(windows * inner):
            y[j] = nothing(y[j])
    elif below:
        if rows == 2 and taps == 2:
            boxes(x, y, windows, inner, step, pitch, hop, below, 2, 2, format, 2)
        elif rows == 2:
            boxes(x, y, windows, inner, step, pitch, hop, below, 2, 3, format, 2)
        elif taps == 2:
            boxes(x, y, windows, inner, step, pitch, hop, below, 3, 2, format, 2)
        else:
            boxes(x, y, windows, inner, step, pitch, hop, below, 3, 3, format, 2)
    elif rows == 1 and taps == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 1, 1, format, 1)
    elif rows == 1 and taps == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 1, 2, format, 1)
    elif rows == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 1, 3, format, 1)
    elif rows == 2 and taps == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 2, 1, format, 1)
    elif rows == 2 and taps == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 2, 2, format, 1)
    elif rows == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 2, 3, format, 1)
    elif taps == 1:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 3, 1, format, 1)
    elif taps == 2:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 3, 2, format, 1)
    else:
        boxes(x, y, windows, inner, step, pitch, hop, 0, 3, 3, format, 1)


cdef void boxes_of(const char* x, running_t* y, Py_ssize_t windows, Py_ssize_t inner, Py_ssize_t step,
                   Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t below, Py_ssize_t rows, Py_ssize_t taps,
                   Format format) noexcept nogil:
    if running_t is MaxI16:
        if format == PLAIN:
            some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, PLAIN)
        elif format == FLOAT16_KEYS:
            some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, FLOAT16_KEYS)
        else:
            some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, BFLOAT16_KEYS)
    elif running_t is SumF32 or running_t is MaxF32:
        if format == FLOAT16:
            some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, FLOAT16)
        elif format == BFLOAT16:
            some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, BFLOAT16)
        else:
            some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, PLAIN)
    else:
        some_boxes(x, y, windows, inner, step, pitch, hop, below, rows, taps, PLAIN)


cdef void reduce_boxes(const char* x, running_t* y, const Axis* rows, Span down, const Axis* taps, Span across,
                       Py_ssize_t pitch, Py_ssize_t inner, Format format) noexcept nogil:
    """y[down windows, across windows, inner] from x[down elements, across elements, inner], rows `pitch` bytes apart."""
    cdef Py_ssize_t row = down.begin, window, count, side, pixel = inner * (
        <Py_ssize_t> sizeof(running_t) if format == PLAIN else 2)
    cdef Py_ssize_t line = (across.end - across.begin) * inner, r
    cdef bint close = rows.step == rows.hop and taps.step == taps.hop and rows.taps > 1 and taps.taps > 1
    cdef const char* first
    cdef running_t* target
    while row < down.end:
        side = 2 if close and is_interior(rows, row) and row + 1 < min(down.end, rows.end) else 1
        window = across.begin
        while window < across.end:
            count = min(across.end, taps.end) - window if is_interior(taps, window) else 1
            if side == 2 and count > 1:
                count &= ~1
            for r in range(1 if side == 2 and count > 1 else side):
                first = x
                target = y + r * line + (window - across.begin) * inner
                if taps_inside(rows, row + r):
                    first += (first_tap(rows, row + r) - down.low) * pitch
                if taps_inside(taps, window):
                    first += (first_tap(taps, window) - across.low) * pixel
                boxes_of(first, target, count, inner, taps.step * pixel, rows.hop * pitch, taps.hop * pixel,
                         line if side == 2 and count > 1 else 0, taps_inside(rows, row), taps_inside(taps, window), format)
            window += count
        y += side * line
        row += side


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
    cdef bint direct = not stage.load and is_dense(&call.x, stride, across.high - across.low, inner)
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
            reduce_boxes(source, block, &job.axis[last - 1], down, &job.axis[last], across, pitch, inner,
                         call.x.format)
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
            reduce_boxes(<const char*> work, block, &job.axis[last - 1], down, &job.axis[last], across,
                         length * <Py_ssize_t> sizeof(running_t), inner, PLAIN)
        block += (down.end - down.begin) * (across.end - across.begin) * inner
        walk.n = height
        source = next_rows(job, &call.x, tile, &walk)
