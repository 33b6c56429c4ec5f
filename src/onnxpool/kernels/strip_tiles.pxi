"""Strip tiles: where channels do not fill vectors, the last two axes of small windows, a few rows of windows at a time.

Elements that can be read where they lie go row by row (strips.pxi). Narrow rows, small planes of which several are
taken together, and what must be loaded first go one axis after the other over a few rows, so that what one axis leaves
for the other stays in L1: sums along columns first, maxima of floats along rows, as the first of equals stays.
"""
from .elements cimport WIDTH, fetch_lines
from .geometry cimport Axis, Span, divisor_of, is_interior, taps_inside
from .job cimport (
    FARTHEST,
    NEAR,
    PLAIN,
    Array,
    Call,
    Format,
    Job,
    Tile,
    parts,
    span_of,
    stopped,
)
from .reductions cimport MaxF32, MaxI8, MaxI16, MaxU8, SumF32, SumF64, SumI32, SumI64, SumWide, running_t

cdef enum:
    STRIP = 1 << 14  # bytes that one axis leaves
    CONTINUED = 3    # vectors of rows that are taken as one, at most
    TOUCHED = 1 << 10  # bytes of rows that are touched in their order, at least


cdef inline Py_ssize_t rows_of_window(const Axis* axis) noexcept nogil:
    return (axis.most - 1) * axis.hop + 1


cdef inline Py_ssize_t strip_row(const Job* job, const Tile* tile, running_t* like) noexcept nogil:
    """Values of a row between the two axes."""
    return extent(tile.span[job.axes - 1], not columns_first(like)) * (tile.inner_end - tile.inner_begin)


cdef inline bint fills_vectors(Py_ssize_t row, running_t* like) noexcept nogil:
    return row * <Py_ssize_t> sizeof(running_t) >= VECTOR


cdef inline bint fits_strips(const Job* job, const Tile* tile, running_t* like) noexcept nogil:
    """Not where no window of the tile has a tap; nor, but for the order of sums, where rows are narrow or those of a
    window too many."""
    cdef int last = job.axes - 1
    cdef Py_ssize_t row
    if not job.boxes or extent(tile.span[last], False) == 0 or extent(tile.span[last - 1], False) == 0:
        return False
    if running_t is SumF32 or running_t is SumF64 or running_t is SumWide:
        return True
    row = strip_row(job, tile, like)
    return fills_vectors(row, like) and (columns_first(like)
                                         or rows_of_window(&job.axis[last - 1]) * row <= job.row)


cdef inline Py_ssize_t apart(const Job* job, const Array* array) noexcept nogil:
    """Bytes from plane to plane; 0 if they lie unevenly."""
    if job.channels == 1:
        return array.image
    return array.channel if job.outer == job.channels or array.image == job.channels * array.channel else 0


cdef inline bint followed_by_elements(const Job* job, const Array* array, const Tile* tile) noexcept nogil:
    """Whether behind each plane of a tile there is another, so that a vector can be read there."""
    return (tile.outer_end < job.outer and apart(job, array) >= job.axis[0].size * array.axis[0] > 0
            and job.plane * array.itemsize >= VECTOR)


cdef inline bint strips_lie(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """Whether elements can be reduced where they are."""
    cdef int last = job.axes - 1
    cdef Py_ssize_t length = extent(tile.span[last], False), inner = tile.inner_end - tile.inner_begin
    if job.stage.load or not is_dense(&call.x, call.x.axis[last], length, inner):
        return False
    if not columns_first(like):
        return call.x.format == PLAIN
    return fills_vectors(length * inner, like) or (last == 1 and followed_by_elements(job, &call.x, tile))


cdef inline Py_ssize_t nominal(const Axis* axis, Py_ssize_t window) noexcept nogil:
    """Where the taps of a window begin, padding counted, if the interior has several."""
    return axis.start + (window - axis.begin) * axis.step


cdef inline bint rather_flat(const Call* call, const Axis* axis, Span span, running_t* like) noexcept nogil:
    """Whether one axis after the other is faster: near elements of step 1, or windows that continue from row to row,
    so that many rows as if they were one fill vectors better than each."""
    cdef Py_ssize_t length = extent(span, False)
    cdef bint continues = extent(span, True) * axis.step == length, close = axis.step == 1 and call.far == NEAR
    if running_t is MaxF32:
        return continues and close
    if running_t is MaxI8 or running_t is MaxU8:
        return close or (continues and length < 3 * VECTOR)
    if running_t is SumF32:
        return continues and length < VECTOR and call.x.format != PLAIN
    return False


cdef inline bint row_by_row(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """Whether elements are reduced where they are, one row of windows after the other."""
    cdef int last = job.axes - 1
    cdef const Axis* axis = &job.axis[last]
    cdef Span span = tile.span[last]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin
    cdef Side down = side_of(job, tile, last - 1, 0, 0), across = side_of(job, tile, last, 0, 0)
    if running_t is SumI32 or running_t is SumI64 or running_t is SumWide:
        return False
    if rather_flat(call, axis, span, like):
        return False
    if axis.end - axis.begin < 2 or not 2 <= axis.taps <= SIDE or not (
            axis.step == 1 or (axis.step == 2 and axis.hop == 1 and inner == 1)):
        return False
    if (axis.taps - 1) * axis.hop * inner * <Py_ssize_t> sizeof(running_t) > WIDTH:
        return False
    return (strips_lie(job, call, tile, like) and fills_vectors(extent(span, False) * inner, like)
            and all_have_taps(&down) and all_have_taps(&across))


cdef Strip strip_at(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    cdef Strip strip
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef const Axis* above = &job.axis[job.axes - 2]
    cdef Span span = tile.span[job.axes - 1]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, width = VECTOR // <Py_ssize_t> sizeof(running_t)
    cdef bint close
    strip.row, strip.windows = extent(span, False) * inner, extent(span, True) * inner
    strip.left = (span.low - nominal(axis, span.begin)) * inner
    strip.taps, strip.step, strip.hop = axis.taps, axis.step, axis.hop * inner
    close = call.x.axis[job.axes - 2] == strip.row * call.x.itemsize
    # Long rows: of these, what lies outside costs less than to tell what does.
    strip.continues = (close and axis.step == 1 and above.step == 1 and strip.windows == strip.row
                       and 2 <= sizeof(running_t) <= 8 and parts(strip.row, width) <= CONTINUED)
    # What windows share comes from near unless everything is from far, and a single new row is a stream of its own.
    strip.touches = (close and above.step > 1 and above.step * call.x.axis[job.axes - 2] >= TOUCHED
                     and (call.far == FARTHEST or (call.far and above.step >= rows_of_window(above))))
    strip.job, strip.tile, strip.table, strip.divisors, strip.factors = NULL, tile, NULL, NULL, 0
    strip.laid[0] = strip.laid[1] = 0
    return strip


cdef inline bint finishes_rows(const Job* job, const Tile* tile, const running_t* like) noexcept nogil:
    """Whether rows of windows may become elements in registers."""
    if running_t is SumF32 or running_t is SumF64:
        return job.finishes and (job.uniform or tile.inner_end - tile.inner_begin == 1)
    return running_t is MaxI16


cdef char* divisors_of_row(Strip* strip, Py_ssize_t window, const running_t* like) noexcept nogil:
    """Those of the windows of a row, of which two are held."""
    cdef const Job* job = strip.job
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef Py_ssize_t row = strip.windows, held = row + VECTOR // <Py_ssize_t> sizeof(running_t), j
    cdef double divisor = 1 if job.uniform else divisor_of(&job.axis[job.axes - 2], window)
    cdef int second = strip.laid[0] != 0 and strip.laid[0] != divisor
    cdef running_t* divisors = <running_t*> strip.table + second * held
    cdef running_t* factors = <running_t*> (strip.table + strip.factors) + second * held
    cdef running_t by
    if strip.laid[second] != divisor:
        for j in range(held):
            by = divisor_like(like, job.divisor if job.uniform else
                              divisor * divisor_of(axis, strip.tile.span[job.axes - 1].begin + j % row))
            divisors[j], factors[j] = by, inverse(by)
        strip.laid[second] = divisor
    return <char*> divisors


cdef inline Py_ssize_t strip_of(const Job* job, const Tile* tile, running_t* like) noexcept nogil:
    """Rows of windows that are taken together."""
    cdef const Axis* axis = &job.axis[job.axes - 2]
    cdef Py_ssize_t rows = min(job.row, STRIP // <Py_ssize_t> sizeof(running_t)) // strip_row(job, tile, like)
    return max(1, rows if columns_first(like) else (rows - rows_of_window(axis)) // axis.step + 1)


cdef void reduce_down(const char* x, running_t* y, const Side* rows, Py_ssize_t row, Format format) noexcept nogil:
    """y[windows down, row] from rows of so many values that begin where the taps of the span do."""
    cdef const Axis* axis = &rows.axis
    cdef Py_ssize_t window = rows.span.begin, n
    while window < rows.span.end:
        n = min(rows.span.end, axis.end) - window if is_interior(axis, window) else 1
        columns_of(first_of(x, rows, window), y, n, row, axis.step * rows.x, axis.hop * rows.x,
                   taps_inside(axis, window), format)
        y += n * row
        window += n


cdef void reduce_strip(const char* x, running_t* y, const Job* job, const Tile* tile, const Side* rows,
                       Py_ssize_t planes, Py_ssize_t plane, running_t* values, Format format) noexcept nogil:
    """y[planes, windows of both axes, inner] from planes so many bytes apart, whose rows lie rows.x bytes apart."""
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef Span across = tile.span[job.axes - 1]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, row = strip_row(job, tile, y)
    cdef Py_ssize_t n = extent(rows.span, True), begin, end
    cdef Py_ssize_t width = extent(across, True) * inner, length = extent(across, False) * inner, height, item, r
    cdef Side part = rows[0]
    cdef const char* first
    if columns_first(y):
        begin, end = rows.axis.begin, rows.axis.end
        if planes > 1 and n == rows.axis.out and plane == n * rows.axis.step * rows.x and begin < end:
            # Planes continue each other; what this leaves at a border is replaced.
            part.span.begin, part.span.end = begin, (planes - 1) * n + end
            part.axis.end = part.span.end
            reduce_down(x, values + begin * row, &part, row, format)
            part.axis.end = end
            for item in range(planes if end - begin < n else 0):
                part.span.begin, part.span.end = 0, begin
                reduce_down(x + item * plane, values + item * n * row, &part, row, format)
                part.span.begin, part.span.end = end, n
                reduce_down(x + item * plane, values + (item * n + end) * row, &part, row, format)
        else:
            for item in range(planes):
                reduce_down(x + item * plane, values + item * n * row, rows, row, format)
        reduce_axis(values, y, planes * n, axis, across, inner, values)
        return
    part.span = span_of(&rows.axis, rows.span.begin, rows.span.end)
    part.x = row * <Py_ssize_t> sizeof(running_t)
    height = extent(part.span, False)
    for item in range(planes):
        first = x + item * plane + (part.span.low - rows.span.low) * rows.x
        if rows.x != length * <Py_ssize_t> sizeof(running_t):
            for r in range(height):
                reduce_axis(<const running_t*> (first + r * rows.x), values + (item * height + r) * width, 1, axis,
                            across, inner, values)
        elif plane != height * rows.x:
            reduce_axis(<const running_t*> first, values + item * height * width, height, axis, across, inner, values)
        elif item == 0:  # planes continue each other
            reduce_axis(<const running_t*> first, values, planes * height, axis, across, inner, values)
    for item in range(planes):
        reduce_down(<const char*> (values + item * height * width), y + item * n * width, &part, row, PLAIN)


cdef void reduce_strips(const char* x, running_t* y, const Job* job, const Tile* tile, const Side* down,
                        running_t* values, Format format) noexcept nogil:
    """y[windows of the last two axes, inner] from a plane whose rows lie down.x bytes apart."""
    cdef Py_ssize_t most = strip_of(job, tile, y)
    cdef Py_ssize_t width = extent(tile.span[job.axes - 1], True) * (tile.inner_end - tile.inner_begin)
    cdef Side part = down[0]
    part.span.end = down.span.begin
    while part.span.end < down.span.end:
        part.span.begin, part.span.end = part.span.end, min(down.span.end, part.span.end + most)
        reduce_strip(x, y, job, tile, &part, 1, 0, values, format)
        y += extent(part.span, True) * width


cdef bint reduce_row_by_row(const char* x, char* y, const Job* job, const Tile* tile, const Side* down,
                            Strip* strip, running_t* values, Format format, bint finishes) noexcept nogil:
    """As `reduce_strips`; elements, if it finishes, and whether one is odd."""
    cdef Side part = down[0]
    cdef const char* first
    part.span = span_of(&down.axis, down.span.begin, down.span.end)
    first = x + (part.span.low - down.span.low) * down.x
    strip.seen = no_results()
    rows_of_strip(first, y, &part, strip, values, format, finishes)
    if not columns_first(values) and any_odd_results(&strip.seen, values, PLAIN):
        reduce_strips(x, <running_t*> y, job, tile, down, values, format)
    return finishes and any_odd_results(&strip.seen, values, format)


cdef inline Py_ssize_t planes_at_once(const Job* job, const Call* call, const Tile* tile, bint direct,
                                      running_t* like) noexcept nogil:
    """How many small planes are taken together, which lie evenly or are to be loaded; 0 for a part of one."""
    cdef Py_ssize_t rows = min(job.row, STRIP // <Py_ssize_t> sizeof(running_t)) // strip_row(job, tile, like)
    cdef Py_ssize_t most = rows // extent(tile.span[0], columns_first(like))
    if direct:
        return most if apart(job, &call.x) else min(most, 1)
    return min(most, job.work // (extent(tile.span[0], False) * extent(tile.span[1], False)
                                  * (tile.inner_end - tile.inner_begin) + VECTOR))


cdef inline bint may_finish_strips(const Job* job, const Call* call, const Tile* tile, running_t* like) noexcept nogil:
    """Whether `finish_strips` may reduce all axes."""
    return (job.axes == 2
            and is_dense(&call.y, call.y.axis[1], extent(tile.span[1], True), tile.inner_end - tile.inner_begin)
            and (strips_lie(job, call, tile, like) or planes_at_once(job, call, tile, False, like) > 0))


cdef inline const char* plane_of(const Job* job, const Array* array, const Tile* tile, Py_ssize_t item) noexcept nogil:
    """Where the elements of the last two axes begin that a tile reads of an outer item."""
    return (outer_item(job, array, item, tile.inner_begin) + tile.span[0].low * array.axis[0]
            + tile.span[1].low * array.axis[1])


cdef bint finish_strips(const Job* job, const Call* call, const Tile* tile, running_t* block,
                        running_t* values, running_t* work, Scratch* scratch) noexcept nogil:
    """From elements to elements; True if a sum left its safe range."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, height = extent(tile.span[0], True), item
    cdef Py_ssize_t length = extent(tile.span[1], False) * inner, width = extent(tile.span[1], True) * inner
    cdef Py_ssize_t together = rows_together(job, &call.x, tile, False), plane_bytes = apart(job, &call.x)
    cdef Py_ssize_t plane = extent(tile.span[0], False) * length  # values
    cdef bint direct = strips_lie(job, call, tile, block), unsafe = False, odd = False
    cdef Py_ssize_t planes = planes_at_once(job, call, tile, direct, block)
    cdef Side down = side_of(job, tile, 0, call.x.axis[0], 0)
    cdef Format format = call.x.format
    cdef const char* divisors = NULL
    cdef const char* source = <const char*> work
    cdef char* target
    cdef running_t* y = block
    cdef bint by_rows = row_by_row(job, call, tile, block)
    cdef bint finishes = False
    cdef Strip strip
    cdef Walk walk
    if not direct:
        down.x, plane_bytes, format = length * sizeof(running_t), plane * sizeof(running_t), PLAIN
    if by_rows:
        planes, strip = 0, strip_at(job, call, tile, block)
        finishes = finishes_rows(job, tile, block)
        strip.table, strip.factors = scratch.divisors, scratch.factors - scratch.divisors
        strip.job = job if job.divides else NULL
    walk = walk_rows(job, &call.y, tile, True, NULL) if finishes else walk_results(job, call, tile, &divisors, scratch)
    planes = min(planes, min(min(walk.together, walk.most), job.block // width) // height)
    if planes == 0:
        walk.together = min(walk.together, height)
    walk.most = (planes * height if planes else
                 min(walk.most, job.block // width if by_rows else strip_of(job, tile, block)))
    target = next_rows(job, &call.y, tile, &walk)
    while target != NULL and not stopped(call):
        planes = max(1, walk.n // height)
        down.span.begin, down.span.end = walk.place[0], walk.place[0] + min(walk.n, height)
        if call.asks and not by_rows:
            fetch_lines(target, parts(walk.n * width * call.y.itemsize, 64))
        if direct:
            source = plane_of(job, &call.x, tile, walk.item)
        elif walk.place[0] == tile.span[0].begin:
            for item in range(planes):
                load_plane(job, call, tile, plane_of(job, &call.x, tile, walk.item + item), together,
                           work + item * plane, scratch)
        if not job.stage.store and call.y.format == PLAIN:
            y = <running_t*> target
        if finishes:
            odd = reduce_row_by_row(source, target, job, tile, &down, &strip, values, format, True)
            if running_t is MaxI16:  # these are right if all zeros are alike
                unsafe, odd = unsafe | odd, False
        if not finishes or odd:
            if by_rows:
                reduce_row_by_row(source, <char*> y, job, tile, &down, &strip, values, format, False)
            else:
                reduce_strip(source, y, job, tile, &down, planes, plane_bytes, values, format)
            if y == block:
                if finishes:  # where rows of divisors are held
                    walk_results(job, call, tile, &divisors, scratch)
                    strip.laid[0] = strip.laid[1] = 0
                unsafe |= store_rows(job, call, tile, &walk, block, target, divisors, scratch)
        target = next_rows(job, &call.y, tile, &walk)
    return unsafe
