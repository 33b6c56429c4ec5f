"""Tiles: the rows of one are loaded and reduced along the last axis, the block of them along each earlier axis, and
what is left is stored.

The last axis comes first so that equal maxima resolve to the first in row-major order.
"""
from libc.stdint cimport int16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from .elements cimport (
    INFINITE_DOUBLE,
    INFINITE_FLOAT,
    MOST_DIVISOR,
    fetch_lines,
    magnitude_of_double,
    magnitude_of_float,
)
from .job cimport FLOAT64_SQUARES, MAX_I16, PLAIN, Array, Call, Job, Tile, parts, span_of, stopped
from .geometry cimport Axis, Span, divisor_of, is_interior
from .reductions cimport SumF32, SumF64, SumWide, running_t


cdef void load_row(const Job* job, const Call* call, const char* source, const Walk* walk, Span span, Py_ssize_t inner,
                   running_t* y, running_t* values, running_t* work, bint fetches, Scratch* scratch) noexcept nogil:
    """y[rows at hand, span windows, inner]; in order, they are not reduced."""
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef Py_ssize_t length = span.high - span.low, n = walk.n * length * inner
    if fetches:
        fetch_lines(source + AHEAD, parts(n * call.x.itemsize, 64))
    if running_t is SumF64:
        if inner == 1 and is_square(call.x.format) and axis.most <= FEW:
            source = read_rows(job, &call.x, floats_of(call.x.format), source, walk, length, 1, scratch)
            if call.x.format == FLOAT64_SQUARES:
                sum_squares(<const double*> source, y, walk.n, axis, span)
            else:
                sum_squares(<const float*> source, y, walk.n, axis, span)
            return
    source = read_rows(job, &call.x, call.x.format, source, walk, length, inner, scratch)
    if job.stage.load:
        job.stage.load(source, y if job.in_order else values, n, &call.rule)
        source = <const char*> values
    if not job.in_order:
        reduce_axis(<const running_t*> source, y, walk.n, axis, span, inner, work)


cdef void load_rows(const Job* job, const Call* call, const Tile* tile, running_t* block,
                    running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """The last axis: block[outer, elements of the other axes, windows, inner], but for rows that no window reads.

    In order, rows are not reduced: block[outer, elements of all axes, inner]. Long rows are taken in pieces, so that
    what is widened or fetched stays near.
    """
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef Span span = tile.span[job.axes - 1], piece
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = span.high - span.low
    cdef Py_ssize_t width = length if job.in_order else span.end - span.begin
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef Py_ssize_t near = AHEAD // (inner * call.x.itemsize)
    cdef bint fetches = (call.asks and not share_taps(axis, span.end - span.begin, length)
                         and is_dense(&call.x, call.x.axis[job.axes - 1], length, inner))
    cdef Py_ssize_t part = 4 * near  # places
    cdef bint pieces = length > part > 16 * (axis.most * axis.hop + axis.step) and not job.in_order
    cdef const char* source
    bring_together(job, &call.x, tile, &walk)
    if fetches and near > length > 0:  # as many rows as are fetched ahead, neither more nor fewer
        walk.most = min(walk.most, near // length)
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.wanted and pieces and walk.n == 1:
            piece.end = span.begin
            while piece.end < span.end:
                piece = span_of(axis, piece.end, min(span.end, piece.end + part // axis.step))
                load_row(job, call, source + (piece.low - span.low) * walk.stride, &walk, piece, inner,
                         block + (piece.begin - span.begin) * inner, values, work, fetches, scratch)
        elif walk.wanted:
            load_row(job, call, source, &walk, span, inner, block, values, work, fetches, scratch)
        block += walk.n * width * inner
        source = next_rows(job, &call.x, tile, &walk)


cdef inline bint are_odd_values(const Job* job, const char* values, Py_ssize_t n, int nans) noexcept nogil:
    """Whether there is a negative zero or a NaN, or a float of which sums may leave their range."""
    if job.stage.running == MAX_I16:
        return odd_halves(<const int16_t*> values, n, nans)
    if job.valuesize == sizeof(double):
        return extreme_magnitudes(<const uint64_t*> values, n, magnitude_of_double(job.least),
                                  magnitude_of_double(job.largest), INFINITE_DOUBLE)
    return extreme_magnitudes(<const uint32_t*> values, n, magnitude_of_float(<float> job.least),
                              magnitude_of_float(<float> job.largest), INFINITE_FLOAT)


cdef bint any_odd(const Job* job, const Call* call, const Tile* tile, Scratch* scratch) noexcept nogil:
    """Whether a tile holds an odd value."""
    cdef Array x = call.x
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = extent(tile.span[job.axes - 1], False)
    cdef Py_ssize_t most = max(1, job.row // inner), places, done, n
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* source
    cdef const char* line
    x.format = PLAIN if job.stage.running == MAX_I16 else floats_of(x.format)
    bring_together(job, &x, tile, &walk)
    source = next_rows(job, &x, tile, &walk)
    while source != NULL:
        places, done = walk.n * length if walk.wanted else 0, 0
        while done < places:
            n = places if walk.apart else min(places - done, most)  # long rows in pieces
            if walk.apart:
                line = read_rows(job, &x, x.format, source, &walk, length, inner, scratch)
            else:
                line = read_row(&x, source + done * walk.stride, walk.stride, n, inner, scratch)
            if are_odd_values(job, line, n * inner, call.rule.nans):
                return True
            done += n
        source = next_rows(job, &x, tile, &walk)
    return False


cdef running_t* reduce_block(const Job* job, const Call* call, const Tile* tile, int first, int axes, running_t* block,
                             running_t* spare, running_t* target, running_t* work) noexcept nogil:
    """The axes from `first` on of the first `axes`, the last of them first: block[outer, windows of each axis, inner],
    in `target` if it can."""
    cdef int a, b
    cdef Py_ssize_t pre, post = tile.inner_end - tile.inner_begin
    for a in range(job.axes - 1, -1, -1):
        if first <= a < axes and not passes_through(&job.axis[a]) and not stopped(call):
            pre = tile.outer_end - tile.outer_begin
            for b in range(a):
                pre *= tile.span[b].high - tile.span[b].low
            if a == 0 and target != NULL:
                spare = target
            reduce_axis(block, spare, pre, &job.axis[a], tile.span[a], post, work)
            block, spare = spare, block
        post *= tile.span[a].end - tile.span[a].begin
    return block


cdef char* where_stored(const Job* job, const Call* call, const Tile* tile) noexcept nogil:
    """Where in y the windows of a tile lie just as its last pass leaves them; NULL if they do not."""
    cdef Py_ssize_t rows = tile.outer_end - tile.outer_begin
    cdef Walk walk
    cdef int a
    for a in range(job.axes - 1):
        rows *= tile.span[a].end - tile.span[a].begin
    if job.stage.store or call.y.format != PLAIN or rows_together(job, &call.y, tile, True) < rows:
        return NULL
    if not is_dense(&call.y, call.y.axis[job.axes - 1], extent(tile.span[job.axes - 1], True),
                    tile.inner_end - tile.inner_begin):
        return NULL
    walk = walk_rows(job, &call.y, tile, True, NULL)
    return next_rows(job, &call.y, tile, &walk)


cdef bint store_row(const Job* job, const Call* call, const running_t* row, char* values,
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
        unsafe |= job.stage.store(row + (window - span.begin) * inner,
                                  values + (window - span.begin) * inner * job.valuesize, n * inner,
                                  divisor * divisor_of(axis, window), &call.rule)
        window += n
    return unsafe


cdef void lay_divisors(const Job* job, const Tile* tile, float_t* divisors, float_t* factors,
                       float_t* along) noexcept nogil:
    """The divisors of all windows of a tile, of one outer item and one channel, and one over each; `along` has room for
    those of the last axis."""
    cdef int last = job.axes - 1, a
    cdef Span span = tile.span[last]
    cdef Py_ssize_t width = span.end - span.begin, rows = 1, row, place, j
    cdef double divisor, before = -1  # which none is
    for a in range(last):
        rows *= tile.span[a].end - tile.span[a].begin
    for j in range(width):
        along[j] = <float_t> divisor_of(&job.axis[last], span.begin + j)
    for row in range(rows):
        divisor = 1
        place = row
        for a in range(last - 1, -1, -1):
            divisor *= divisor_of(&job.axis[a], tile.span[a].begin + place % (tile.span[a].end - tile.span[a].begin))
            place //= tile.span[a].end - tile.span[a].begin
        if divisor == before:  # as most rows are
            memcpy(divisors, divisors - width, width * sizeof(float_t))
            memcpy(factors, factors - width, width * sizeof(float_t))
        else:
            for j in range(width):
                divisors[j] = <float_t> (divisor * along[j])
                factors[j] = 1 / divisors[j]
        before = divisor
        divisors += width
        factors += width


cdef Walk walk_results(const Job* job, const Call* call, const Tile* tile,
                       const char** divisors, Scratch* scratch) noexcept nogil:
    """A walk through the results of a tile. `divisors` are those of an outer item where they differ and a stage takes
    them at once; else NULL."""
    cdef Walk walk = walk_rows(job, &call.y, tile, True, NULL)
    divisors[0] = NULL
    if not job.divides or job.uniform:
        return walk
    if tile.inner_end - tile.inner_begin > 1 or job.stage.divide == NULL or job.divisor > MOST_DIVISOR:
        walk.together = 1
        return walk
    if job.valuesize == sizeof(double):
        lay_divisors(job, tile, <double*> scratch.divisors, <double*> scratch.factors, <double*> scratch.elements)
    else:
        lay_divisors(job, tile, <float*> scratch.divisors, <float*> scratch.factors, <float*> scratch.elements)
    divisors[0] = scratch.divisors
    return walk


cdef bint store_rows(const Job* job, const Call* call, const Tile* tile, const Walk* walk, const running_t* block,
                     char* target, const char* divisors, Scratch* scratch) noexcept nogil:
    """The rows at hand; True if a sum left its safe range."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, width = extent(tile.span[job.axes - 1], True)
    cdef Py_ssize_t n = walk.n * width, plane = walk.rows // (tile.outer_end - tile.outer_begin) * width
    cdef Py_ssize_t done = 0, place = walk.done * width, part, first
    cdef bint unsafe = False
    cdef const char* values = target
    if not job.stage.store:
        values = <const char*> block
    elif running_t is SumWide:  # only what is odd is stored
        values = read_row(&call.y, target, walk.stride, n, inner, scratch)
    elif call.y.format != PLAIN or not is_dense(&call.y, walk.stride, n, inner):
        values = scratch.values
    if job.stage.store and (not job.divides or job.uniform):
        unsafe = job.stage.store(block, <char*> values, n * inner, job.divisor, &call.rule)
    elif divisors != NULL:
        while done < n:
            part = min(n - done, plane - (place + done) % plane)
            first = (place + done) % plane * job.valuesize
            unsafe |= job.stage.divide(block + done, <char*> values + done * job.valuesize, part, divisors + first,
                                       scratch.factors + first)
            done += part
    elif job.stage.store:
        unsafe = store_row(job, call, block, <char*> values, tile, walk.place)
    write_row(&call.y, values, target, walk.stride, n, inner, scratch)
    return unsafe


cdef bint store_block(const Job* job, const Call* call, const Tile* tile, const running_t* block,
                      Scratch* scratch) noexcept nogil:
    """True if a sum left its safe range."""
    cdef Py_ssize_t row = extent(tile.span[job.axes - 1], True) * (tile.inner_end - tile.inner_begin)
    cdef const char* divisors
    cdef Walk walk = walk_results(job, call, tile, &divisors, scratch)
    cdef bint unsafe = False
    cdef char* target = next_rows(job, &call.y, tile, &walk)
    while target != NULL:
        unsafe |= store_rows(job, call, tile, &walk, block, target, divisors, scratch)
        block += walk.n * row
        target = next_rows(job, &call.y, tile, &walk)
    return unsafe


cdef bint reduce_tile(running_t* memory, const Job* job, const Call* call, const Tile* tile, bint boxed, bint stripped,
                      bint lined, running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """Axis after axis, as `pool_tile`."""
    cdef running_t* spare = memory + job.block
    cdef running_t* target = <running_t*> where_stored(job, call, tile)
    cdef int left = job.axes - (2 if boxed or stripped else 1)  # axes after the load
    cdef running_t* block = target if target != NULL and (left == 0 or job.whole) else memory
    if job.whole:
        load_planes(job, call, tile, block, values, work, scratch)
    elif boxed or stripped:
        load_boxes(job, call, tile, boxed, block, values, work, scratch)
    elif lined:
        load_lines(job, call, tile, block, work, scratch)
    elif lies_in_lines(job, call, tile, work) and looks_up(job, tile, job.axes - 1):
        load_back(job, call, tile, block, work, scratch)
    else:
        load_rows(job, call, tile, block, values, work, scratch)
    if stopped(call) or tile.segment >= 0:
        return False
    if job.in_order:
        if running_t is SumF32:
            add_in_order(job, call, tile, memory, spare)
        block = spare
    elif job.whole:
        if not job.stage.load:  # magnitudes have zeros of one sign
            settle_zeros(job, call, tile, block, scratch)
    elif left > 0 and may_finish_back(job, call, tile, block, work):
        block = reduce_block(job, call, tile, final_axis(job) + 1, left, block, spare, target, work)
        return finish_back(job, call, tile, block, work)
    elif left > 0 and target == NULL and may_finish_down(job, call, tile, block):
        block = reduce_block(job, call, tile, 1, left, block, spare, target, work)
        return finish_down(job, call, tile, block, work)
    else:
        block = reduce_block(job, call, tile, 0, left, block, spare, target, work)
    # What is free now has been written before: no more memory is touched.
    scratch.divisors, scratch.factors = <char*> work, <char*> (spare if block == memory else memory)
    return block != target and store_block(job, call, tile, block, scratch)


cdef bint pool_tile(running_t* memory, const Job* job, const Call* call, const Tile* tile,
                    Scratch* scratch) noexcept nogil:
    """From elements to elements; True if a result may be wrong, so that the tile is taken again."""
    cdef running_t* values = memory + 2 * job.block
    cdef running_t* work = values + job.row + VECTOR  # a vector may be written behind the last row
    cdef bint boxed = fits_boxes(job, tile, sizeof(running_t))
    cdef bint stripped = not boxed and fits_strips(job, tile, memory)
    cdef bint lined = not boxed and not stripped and fits_lines(job, call, tile, memory)
    if job.flat:
        return finish_flat(job, call, tile, values, work, scratch)
    if (boxed or lined) and may_finish_boxes(job, call, tile, boxed, work):
        return finish_boxes(job, call, tile, work)
    if not boxed and may_finish_down(job, call, tile, <running_t*> NULL):
        return finish_down(job, call, tile, <running_t*> NULL, work)
    if may_finish_back(job, call, tile, <running_t*> NULL, work):
        return finish_back(job, call, tile, <running_t*> NULL, work)
    if running_t is SumF32 or running_t is SumF64:
        if may_finish_steps(job, call, tile, work):
            return finish_steps(job, call, tile, work, scratch)
    if running_t is MaxI16 or running_t is SumF32 or running_t is SumF64:
        if may_finish_planes(job, call, tile, work):
            return finish_planes(job, call, tile, work)
    if running_t is not SumWide and stripped and may_finish_strips(job, call, tile, memory):
        return finish_strips(job, call, tile, memory, values, work, scratch)
    return reduce_tile(memory, job, call, tile, boxed, stripped, lined, values, work, scratch)
