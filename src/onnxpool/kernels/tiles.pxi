"""Tiles: the rows of one are loaded and reduced along the last axis, the block of them along each earlier axis, and
what is left is stored.

The last axis comes first so that equal maxima resolve to the first in row-major order.
"""
from libc.string cimport memcpy, memset

from .elements cimport (
    move_element,
    narrow_bfloat16_row,
    narrow_float16_row,
    widen_bfloat16_row,
    widen_float16_row,
)
from .job cimport BFLOAT16, FLOAT16, MAX_AXES, PLAIN, Array, Call, Job, Stage, Tile
from .geometry cimport Axis, Span, border_of, first_tap, is_interior, taps_inside
from .reductions cimport running_t


cdef struct Scratch:
    char* marks     # which elements of each axis but the last some window reads
    char* elements  # a row of elements, gathered or to be scattered
    char* values    # the row widened, or to be narrowed


cdef inline bint is_dense(const Array* array, Py_ssize_t axis_stride, Py_ssize_t length, Py_ssize_t inner,
                          Py_ssize_t itemsize) noexcept nogil:
    return (array.aligned and not array.swapped and (inner == 1 or array.inner == itemsize)
            and (length == 1 or axis_stride == inner * itemsize))


cdef void gather(const Array* array, const char* source, char* target, Py_ssize_t stride, Py_ssize_t length,
                 Py_ssize_t inner, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t i, c
    for i in range(length):
        for c in range(inner):
            move_element(source + i * stride + c * array.inner, target + (i * inner + c) * itemsize, itemsize,
                         array.swapped)


cdef void scatter(const Array* array, const char* source, char* target, Py_ssize_t stride, Py_ssize_t length,
                  Py_ssize_t inner, Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t i, c
    for i in range(length):
        for c in range(inner):
            move_element(source + (i * inner + c) * itemsize, target + i * stride + c * array.inner, itemsize,
                         array.swapped)


cdef inline const char* read_row(const Job* job, const Array* array, const char* source, Py_ssize_t stride,
                                 Py_ssize_t length, Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    """The elements of a row as plain values side by side: where they are if they lie so, else in the scratch memory."""
    if not is_dense(array, stride, length, inner, job.itemsize):
        gather(array, source, scratch.elements, stride, length, inner, job.itemsize)
        source = scratch.elements
    if job.format == PLAIN:
        return source
    if job.format == FLOAT16:
        widen_float16_row(<const unsigned short*> source, <float*> scratch.values, length * inner)
    else:
        widen_bfloat16_row(<const unsigned short*> source, <float*> scratch.values, length * inner)
    return scratch.values


cdef void write_row(const Job* job, const Array* array, const char* values, char* target, Py_ssize_t stride,
                    Py_ssize_t length, Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    cdef bint dense = is_dense(array, stride, length, inner, job.itemsize)
    cdef char* narrow = target if dense else scratch.elements
    if job.format == FLOAT16:
        narrow_float16_row(<const float*> values, <unsigned short*> narrow, length * inner)
    elif job.format == BFLOAT16:
        narrow_bfloat16_row(<const float*> values, <unsigned short*> narrow, length * inner)
    else:
        narrow = <char*> values
    if not dense:
        scatter(array, narrow, target, stride, length, inner, job.itemsize)


cdef inline char* outer_item(const Job* job, const Array* array, Py_ssize_t item, Py_ssize_t inner) noexcept nogil:
    return (array.data + (item // job.channels) * array.image + (item % job.channels) * array.channel
            + inner * array.inner)


cdef void mark(const Axis* axis, Span span, char* marks) noexcept nogil:
    """Marks the elements that some window of the span reads."""
    cdef Py_ssize_t window, tap
    if axis.step == 1 or (axis.hop == 1 and axis.step <= axis.taps):
        memset(marks, 1, span.high - span.low)
        return
    memset(marks, 0, span.high - span.low)
    for window in range(span.begin, span.end):
        for tap in range(taps_inside(axis, window)):
            marks[first_tap(axis, window) + tap * axis.hop - span.low] = 1


cdef running_t* load_rows(const Job* job, const Call* call, const Stage* stage, const Tile* tile, running_t* block,
                          running_t* row, running_t* work, Scratch* scratch) noexcept nogil:
    """The last axis: block[outer, elements of the other axes, windows, inner], but for rows that no window reads."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, stride = call.x.axis[last]
    cdef Py_ssize_t length = tile.span[last].high - tile.span[last].low
    cdef Py_ssize_t width = (tile.span[last].end - tile.span[last].begin) * inner, item
    cdef Py_ssize_t place[MAX_AXES]
    cdef char* marks[MAX_AXES]
    cdef const char* source
    cdef const char* image
    cdef bint wanted = True
    marks[0] = scratch.marks
    for a in range(last):
        if tile.span[a].low == tile.span[a].high:
            return block
        mark(&job.axis[a], tile.span[a], marks[a])
        marks[a + 1] = marks[a] + tile.span[a].high - tile.span[a].low
        place[a] = 0
    for item in range(tile.outer_begin, tile.outer_end):
        image = outer_item(job, &call.x, item, tile.inner_begin) + tile.span[last].low * stride
        while True:
            source = image
            wanted = True
            for a in range(last):
                source += (tile.span[a].low + place[a]) * call.x.axis[a]
                wanted &= marks[a][place[a]]
            if wanted:
                source = read_row(job, &call.x, source, stride, length, inner, scratch)
                if stage.load:
                    stage.load(source, row, length * inner, &call.rule)
                    source = <const char*> row
                reduce_axis(<const running_t*> source, block, 1, &job.axis[last], tile.span[last], inner, work)
            block += width
            a = last - 1
            while a >= 0:
                place[a] += 1
                if place[a] < tile.span[a].high - tile.span[a].low:
                    break
                place[a] = 0
                a -= 1
            if a < 0:
                break
    return block


cdef inline bint passes_through(const Axis* axis) noexcept nogil:
    """Whether every element is a window."""
    return axis.most == 1 and axis.step == 1 and axis.begin == 0 and axis.end == axis.out == axis.size


cdef running_t* reduce_block(const Job* job, const Tile* tile, running_t* block, running_t* spare,
                             running_t* work) noexcept nogil:
    """The axes before the last, from the last on: block[outer, windows of each axis, inner]."""
    cdef int a, b
    cdef Py_ssize_t pre, post = tile.inner_end - tile.inner_begin
    for a in range(job.axes - 2, -1, -1):
        post *= tile.span[a + 1].end - tile.span[a + 1].begin
        if passes_through(&job.axis[a]):
            continue
        pre = tile.outer_end - tile.outer_begin
        for b in range(a):
            pre *= tile.span[b].high - tile.span[b].low
        reduce_axis(block, spare, pre, &job.axis[a], tile.span[a], post, work)
        block, spare = spare, block
    return block


cdef inline double divisor_of(const Axis* axis, Py_ssize_t window) noexcept nogil:
    return axis.divisor if is_interior(axis, window) else axis.divisors[border_of(axis, window)]


cdef bint store_row(const Job* job, const Call* call, const Stage* stage, const running_t* row, char* values,
                    Span span, Py_ssize_t inner, double divisor) noexcept nogil:
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef Py_ssize_t window = span.begin, n
    cdef bint unsafe = False
    if not job.divides:
        return stage.store(row, values, (span.end - span.begin) * inner, 1, &call.rule)
    while window < span.end:
        n = min(span.end, axis.end) - window if is_interior(axis, window) else 1
        unsafe |= stage.store(row + (window - span.begin) * inner,
                              values + (window - span.begin) * inner * job.valuesize, n * inner,
                              divisor * divisor_of(axis, window), &call.rule)
        window += n
    return unsafe


cdef bint store_rows(const Job* job, const Call* call, const Stage* stage, const Tile* tile, const running_t* block,
                     bint mending, Scratch* scratch) noexcept nogil:
    """True if a sum left its safe range."""
    cdef int last = job.axes - 1, a
    cdef Span span = tile.span[last]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, stride = call.y.axis[last], item
    cdef Py_ssize_t length = span.end - span.begin
    cdef Py_ssize_t place[MAX_AXES]
    cdef char* target
    cdef char* values
    cdef double divisor
    cdef bint unsafe = False
    for a in range(last):
        place[a] = tile.span[a].begin
    for item in range(tile.outer_begin, tile.outer_end):
        while True:
            target = outer_item(job, &call.y, item, tile.inner_begin) + span.begin * stride
            divisor = 1
            for a in range(last):
                target += place[a] * call.y.axis[a]
                divisor *= divisor_of(&job.axis[a], place[a]) if job.divides else 1
            values = target
            if mending:
                values = <char*> read_row(job, &call.y, target, stride, length, inner, scratch)
            elif job.format != PLAIN or not is_dense(&call.y, stride, length, inner, job.itemsize):
                values = scratch.values
            if stage.store:
                unsafe |= store_row(job, call, stage, block, values, span, inner, divisor)
                write_row(job, &call.y, values, target, stride, length, inner, scratch)
            elif values == target:
                memcpy(target, block, length * inner * sizeof(running_t))
            else:
                write_row(job, &call.y, <const char*> block, target, stride, length, inner, scratch)
            block += length * inner
            a = last - 1
            while a >= 0:
                place[a] += 1
                if place[a] < tile.span[a].end:
                    break
                place[a] = tile.span[a].begin
                a -= 1
            if a < 0:
                break
    return unsafe


cdef bint pool_tile(running_t* memory, const Job* job, const Call* call, const Stage* stage, const Tile* tile,
                    bint mending, Scratch* scratch) noexcept nogil:
    cdef running_t* spare = memory + job.block
    cdef running_t* row = spare + job.block
    cdef running_t* work = row + job.row
    load_rows(job, call, stage, tile, memory, row, work, scratch)
    return store_rows(job, call, stage, tile, reduce_block(job, tile, memory, spare, work), mending, scratch)
