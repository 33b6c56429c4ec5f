"""Tiles: the rows of one are loaded and reduced along the last axis, the block of them along each earlier axis, and
what is left is stored.

The last axis comes first so that equal maxima resolve to the first in row-major order.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from .elements cimport (
    move_elements,
    narrow_bfloat16_row,
    narrow_float16_row,
    widen_bfloat16_row,
    widen_float16_row,
)
from .job cimport BFLOAT16, FLOAT16, MAX_AXES, PLAIN, Array, Call, Job, Row, Stage, Tile
from .geometry cimport Axis, Span, border_of, first_tap, is_interior, taps_inside
from .reductions cimport running_t


cdef struct Scratch:
    char* marks     # which elements of each axis but the last some window reads
    char* elements  # a row of elements, gathered or to be scattered
    char* values    # the row widened, or to be narrowed
    char* indices   # a row of flat indices


cdef inline bint is_dense(const Array* array, Py_ssize_t axis_stride, Py_ssize_t length,
                          Py_ssize_t inner) noexcept nogil:
    return (array.aligned and not array.swapped and (inner == 1 or array.inner == array.itemsize)
            and (length == 1 or axis_stride == inner * array.itemsize))


cdef void gather(const Array* array, const char* source, char* target, Py_ssize_t stride, Py_ssize_t length,
                 Py_ssize_t inner) noexcept nogil:
    cdef Py_ssize_t i, size = array.itemsize
    if inner == 1:
        move_elements(source, stride, target, size, length, size, array.swapped)
        return
    for i in range(length):
        move_elements(source + i * stride, array.inner, target + i * inner * size, size, inner, size, array.swapped)


cdef void scatter(const Array* array, const char* source, char* target, Py_ssize_t stride, Py_ssize_t length,
                  Py_ssize_t inner) noexcept nogil:
    cdef Py_ssize_t i, size = array.itemsize
    if inner == 1:
        move_elements(source, size, target, stride, length, size, array.swapped)
        return
    for i in range(length):
        move_elements(source + i * inner * size, size, target + i * stride, array.inner, inner, size, array.swapped)


cdef const char* read_row(const Array* array, const char* source, Py_ssize_t stride, Py_ssize_t length,
                          Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    """The elements of a row as plain values side by side: where they are if they lie so, else in the scratch memory."""
    if not is_dense(array, stride, length, inner):
        gather(array, source, scratch.elements, stride, length, inner)
        source = scratch.elements
    if array.format == PLAIN:
        return source
    if array.format == FLOAT16:
        widen_float16_row(<const unsigned short*> source, <float*> scratch.values, length * inner)
    else:
        widen_bfloat16_row(<const unsigned short*> source, <float*> scratch.values, length * inner)
    return scratch.values


cdef void write_row(const Array* array, const char* values, char* target, Py_ssize_t stride, Py_ssize_t length,
                    Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    """Values side by side become the elements of a row; nothing is to do if the values are there already."""
    cdef bint dense = is_dense(array, stride, length, inner)
    cdef char* narrow = target if dense else scratch.elements
    if array.format == FLOAT16:
        narrow_float16_row(<const float*> values, <unsigned short*> narrow, length * inner)
    elif array.format == BFLOAT16:
        narrow_bfloat16_row(<const float*> values, <unsigned short*> narrow, length * inner)
    elif dense:
        if values != target:
            memcpy(target, values, length * inner * array.itemsize)
    else:
        narrow = <char*> values
    if not dense:
        scatter(array, narrow, target, stride, length, inner)


cdef inline char* outer_item(const Job* job, const Array* array, Py_ssize_t item, Py_ssize_t inner) noexcept nogil:
    return (array.data + (item // job.channels) * array.image + (item % job.channels) * array.channel
            + inner * array.inner)


cdef inline Py_ssize_t extent(Span span, bint windows) noexcept nogil:
    return span.end - span.begin if windows else span.high - span.low


cdef Py_ssize_t rows_together(const Job* job, const Array* array, const Tile* tile, bint windows) noexcept nogil:
    """How many rows of the tile, of its windows or else its elements, lie one after another as if they were one."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = extent(tile.span[last], windows), rows = 1
    cdef Py_ssize_t pitch = length * inner * array.itemsize
    if inner != job.inner or not is_dense(array, array.axis[last], length, inner):
        return 1
    for a in range(last - 1, -1, -1):
        if extent(tile.span[a], windows) > 1 and array.axis[a] != pitch:
            return rows
        if job.fast.index and not windows and job.pace[a] != rows * length:
            return rows  # places have a gap where the elements have none
        rows *= extent(tile.span[a], windows)
        pitch *= extent(tile.span[a], windows)
    if job.fast.index or (job.channels > 1 and array.channel != pitch) or array.image != pitch * job.channels:
        return rows
    return rows * (tile.outer_end - tile.outer_begin)


cdef inline Row locate_row(const Job* job, const Tile* tile, Py_ssize_t row, bint windows, Py_ssize_t* item,
                           Py_ssize_t* place) noexcept nogil:
    """Which outer item, and which windows or else elements of the axes before the last, a row of the tile is of."""
    cdef Row result
    cdef int a
    for a in range(job.axes - 2, -1, -1):
        place[a] = row % extent(tile.span[a], windows) + (tile.span[a].begin if windows else tile.span[a].low)
        row //= extent(tile.span[a], windows)
    item[0] = tile.outer_begin + row
    result.inner = tile.inner_end - tile.inner_begin
    result.place = 0
    result.base = (item[0] * job.inner + tile.inner_begin) * job.plane
    result.plane = job.plane
    return result


cdef bint mark(const Axis* axis, Span span, char* marks) noexcept nogil:
    """Marks the elements that some window of the span reads; True if that may not be all."""
    cdef Py_ssize_t window, tap
    if axis.step == 1 or (axis.hop == 1 and axis.step <= axis.taps):
        memset(marks, 1, span.high - span.low)
        return False
    memset(marks, 0, span.high - span.low)
    for window in range(span.begin, span.end):
        for tap in range(taps_inside(axis, window)):
            marks[first_tap(axis, window) + tap * axis.hop - span.low] = 1
    return True


cdef void load_rows(const Job* job, const Call* call, const Stage* stage, const Tile* tile, running_t* block,
                    running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """The last axis: block[outer, elements of the other axes, windows, inner], but for rows that no window reads.

    In order, rows are not reduced: block[outer, elements of all axes, inner].
    """
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t stride = call.x.axis[last], length = tile.span[last].high - tile.span[last].low
    cdef Py_ssize_t width = length if job.in_order else tile.span[last].end - tile.span[last].begin
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, rows = tile.outer_end - tile.outer_begin, done = 0, n
    cdef Py_ssize_t together = rows_together(job, &call.x, tile, False), item
    cdef Py_ssize_t place[MAX_AXES]
    cdef char* marks[MAX_AXES]
    cdef const char* source
    cdef bint wanted
    cdef Row row
    marks[0] = scratch.marks
    for a in range(last):
        if mark(&job.axis[a], tile.span[a], marks[a]):
            together = 1
        marks[a + 1] = marks[a] + tile.span[a].high - tile.span[a].low
        rows *= tile.span[a].high - tile.span[a].low
    while done < rows:
        row = locate_row(job, tile, done, False, &item, place)
        source = outer_item(job, &call.x, item, tile.inner_begin) + tile.span[last].low * call.x.axis[last]
        row.place = tile.span[last].low
        wanted = True
        for a in range(last):
            source += place[a] * call.x.axis[a]
            row.place += place[a] * job.pace[a]
            wanted &= marks[a][place[a] - tile.span[a].low]
        n = min(together - done % together, max(1, job.row // max(1, length * inner)))
        if n > 1:
            stride = inner * call.x.itemsize  # rows that lie together are one long row
        if wanted:
            source = read_row(&call.x, source, stride, n * length, inner, scratch)
            if stage.load:
                stage.load(source, block if job.in_order else values, n * length * inner, &row, &call.rule)
                source = <const char*> values
            if not job.in_order:
                reduce_axis(<const running_t*> source, block, n, &job.axis[last], tile.span[last], inner, work)
        block += n * width * inner
        done += n


cdef inline bint passes_through(const Axis* axis) noexcept nogil:
    """Whether every element is a window."""
    return axis.most == 1 and axis.step == 1 and axis.begin == 0 and axis.end == axis.out == axis.size


cdef running_t* reduce_block(const Job* job, const Tile* tile, running_t* block, running_t* spare, running_t* target,
                             running_t* work) noexcept nogil:
    """The axes before the last, from the last on: block[outer, windows of each axis, inner], in `target` if it can."""
    cdef int a, b
    cdef Py_ssize_t pre, post = tile.inner_end - tile.inner_begin
    for a in range(job.axes - 2, -1, -1):
        post *= tile.span[a + 1].end - tile.span[a + 1].begin
        if passes_through(&job.axis[a]):
            continue
        pre = tile.outer_end - tile.outer_begin
        for b in range(a):
            pre *= tile.span[b].high - tile.span[b].low
        if a == 0 and target != NULL:
            spare = target
        reduce_axis(block, spare, pre, &job.axis[a], tile.span[a], post, work)
        block, spare = spare, block
    return block


cdef char* where_stored(const Job* job, const Call* call, const Stage* stage, const Tile* tile) noexcept nogil:
    """Where in y the windows of a tile lie just as its last pass leaves them; NULL if they do not."""
    cdef Py_ssize_t rows = tile.outer_end - tile.outer_begin, item
    cdef Py_ssize_t place[MAX_AXES]
    cdef int a
    for a in range(job.axes - 1):
        rows *= tile.span[a].end - tile.span[a].begin
    if stage.store or stage.index or call.y.format != PLAIN or rows_together(job, &call.y, tile, True) < rows:
        return NULL
    if rows == 1 and not is_dense(&call.y, call.y.axis[job.axes - 1],
                                  tile.span[job.axes - 1].end - tile.span[job.axes - 1].begin,
                                  tile.inner_end - tile.inner_begin):
        return NULL
    locate_row(job, tile, 0, True, &item, place)
    return window_row(job, &call.y, tile, item, place)


cdef inline double divisor_of(const Axis* axis, Py_ssize_t window) noexcept nogil:
    return axis.divisor if is_interior(axis, window) else axis.divisors[border_of(axis, window)]


cdef bint store_row(const Job* job, const Call* call, const Stage* stage, const running_t* row, char* values,
                    const Tile* tile, const Py_ssize_t* place) noexcept nogil:
    """A row whose windows are divided by numbers of their own; True if a sum left its safe range."""
    cdef int last = job.axes - 1, a
    cdef const Axis* axis = &job.axis[last]
    cdef Span span = tile.span[last]
    cdef Py_ssize_t window = span.begin, inner = tile.inner_end - tile.inner_begin, n
    cdef double divisor = 1
    cdef bint unsafe = False
    for a in range(last):
        divisor *= divisor_of(&job.axis[a], place[a])
    while window < span.end:
        n = min(span.end, axis.end) - window if is_interior(axis, window) else 1
        unsafe |= stage.store(row + (window - span.begin) * inner,
                              values + (window - span.begin) * inner * job.valuesize, n * inner,
                              divisor * divisor_of(axis, window), &call.rule)
        window += n
    return unsafe


cdef inline char* window_row(const Job* job, const Array* array, const Tile* tile, Py_ssize_t item,
                             const Py_ssize_t* place) noexcept nogil:
    cdef int last = job.axes - 1, a
    cdef char* target = outer_item(job, array, item, tile.inner_begin) + tile.span[last].begin * array.axis[last]
    for a in range(last):
        target += place[a] * array.axis[a]
    return target


cdef bint store_rows(const Job* job, const Call* call, const Stage* stage, const Tile* tile, const running_t* block,
                     bint mending, Scratch* scratch) noexcept nogil:
    """True if a sum left its safe range."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t stride = call.y.axis[last], length = tile.span[last].end - tile.span[last].begin
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, rows = tile.outer_end - tile.outer_begin, done = 0, n
    cdef Py_ssize_t together = rows_together(job, &call.y, tile, True), item
    cdef Py_ssize_t place[MAX_AXES]
    cdef const char* values
    cdef char* target
    cdef bint unsafe = False, alike = not job.divides or job.uniform
    cdef Row row
    if stage.index:
        together = min(together, rows_together(job, &call.indices, tile, True))
    for a in range(last):
        rows *= tile.span[a].end - tile.span[a].begin
    while done < rows:
        row = locate_row(job, tile, done, True, &item, place)
        n = min(together - done % together, max(1, job.row // (length * inner))) if alike else 1
        target = window_row(job, &call.y, tile, item, place)
        values = target
        if n > 1:
            stride = inner * call.y.itemsize  # rows that lie together are one long row
        if not stage.store:
            values = <const char*> block
        elif mending:
            values = read_row(&call.y, target, stride, n * length, inner, scratch)
        elif call.y.format != PLAIN or not is_dense(&call.y, stride, n * length, inner):
            values = scratch.values
        if stage.store and alike:
            unsafe |= stage.store(block, <char*> values, n * length * inner, job.divisor, &call.rule)
        elif stage.store:
            unsafe |= store_row(job, call, stage, block, <char*> values, tile, place)
        write_row(&call.y, values, target, stride, n * length, inner, scratch)
        if stage.index:
            stage.index(block, <int64_t*> scratch.indices, n * length * inner, &row, &job.order)
            write_row(&call.indices, scratch.indices, window_row(job, &call.indices, tile, item, place),
                      call.indices.axis[last] if n == 1 else inner * call.indices.itemsize, n * length, inner, scratch)
        block += n * length * inner
        done += n
    return unsafe


cdef bint pool_tile(running_t* memory, const Job* job, const Call* call, const Stage* stage, const Tile* tile,
                    bint mending, Scratch* scratch) noexcept nogil:
    cdef running_t* spare = memory + job.block
    cdef running_t* values = spare + job.block
    cdef running_t* work = values + job.row
    cdef running_t* target = <running_t*> where_stored(job, call, stage, tile)
    cdef running_t* block = target if job.axes == 1 and target != NULL else memory
    load_rows(job, call, stage, tile, block, values, work, scratch)
    if job.in_order:
        add_in_order(job, tile, memory, spare)
        block = spare
    else:
        block = reduce_block(job, tile, block, spare, target, work)
    return block != target and store_rows(job, call, stage, tile, block, mending, scratch)
