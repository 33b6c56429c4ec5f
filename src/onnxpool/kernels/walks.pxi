"""Walks: through the rows of a tile, as many at a time as lie together in memory."""
from libc.stdint cimport int8_t, int16_t, uint8_t
from libc.string cimport memcpy, memset

from .elements cimport (
    copy_bytes,
    keys_of_row,
    move_elements,
    narrow_bfloat16_pairs,
    narrow_bfloat16_row,
    narrow_float16_row,
    square_bfloat16_row,
    square_double_row,
    square_float16_row,
    square_float_row,
    transpose,
    widen_bfloat16_pairs,
    widen_bfloat16_row,
    widen_float16_row,
)
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_PAIRS,
    BFLOAT16_SQUARES,
    BYTES,
    FAR,
    FARTHEST,
    FLOAT16,
    FLOAT16_KEYS,
    FLOAT16_SQUARES,
    FLOAT32_SQUARES,
    FLOAT64_SQUARES,
    MAX_AXES,
    NEAR,
    PLAIN,
    SIGNED_BYTES,
    Array,
    Distance,
    Format,
    Job,
    Row,
    Tile,
)
from .geometry cimport Axis, Span, first_tap, taps_inside


cdef enum:
    LINE = 64            # bytes of a line of a cache
    OWN_BYTES = 1 << 19  # of x that the cache of one core holds,
    FAR_BYTES = 7 << 20  # from which on lines are fetched,
    AHEAD = 1 << 12      # so many bytes before they are read
    FARTHEST_BYTES = 1 << 24  # the same for lines in the order of memory, which no cache holds
    FARTHEST_AHEAD = 1 << 14
    SHORT_ROW = 1 << 10  # bytes of rows that are rather copied than reduced one by one


cdef inline Distance distance_of(Py_ssize_t bytes) noexcept nogil:
    return FARTHEST if bytes > FARTHEST_BYTES else FAR if bytes > FAR_BYTES else NEAR


cdef struct Scratch:
    char* marks     # which elements of each axis but the last some window reads
    char* elements  # a row of elements, gathered or to be scattered
    char* values    # the row widened, or to be narrowed
    char* indices   # a row of flat indices
    char* divisors  # of the windows of an outer item,
    char* factors   # and one over each


cdef inline bint is_dense(const Array* array, Py_ssize_t axis_stride, Py_ssize_t length,
                          Py_ssize_t inner) noexcept nogil:
    return (array.aligned and not array.swapped and (inner == 1 or array.inner == array.itemsize)
            and (length == 1 or axis_stride == inner * array.itemsize))


cdef inline bint is_planar(const Array* array, Py_ssize_t axis_stride, Py_ssize_t inner) noexcept nogil:
    """Whether the places of a row lie side by side, and its channels apart."""
    return inner > 1 and axis_stride == array.itemsize and array.inner != array.itemsize and not array.swapped


cdef void gather(const Array* array, const char* source, char* target, Py_ssize_t stride, Py_ssize_t length,
                 Py_ssize_t inner) noexcept nogil:
    cdef Py_ssize_t i, size = array.itemsize
    if inner == 1:
        move_elements(source, stride, target, size, length, size, array.swapped)
        return
    if is_planar(array, stride, inner):
        transpose(source, array.inner, target, inner * size, inner, length, size)
        return
    for i in range(length):
        move_elements(source + i * stride, array.inner, target + i * inner * size, size, inner, size, array.swapped)


cdef void scatter(const Array* array, const char* source, char* target, Py_ssize_t stride, Py_ssize_t length,
                  Py_ssize_t inner) noexcept nogil:
    cdef Py_ssize_t i, size = array.itemsize
    if inner == 1:
        move_elements(source, size, target, stride, length, size, array.swapped)
        return
    if is_planar(array, stride, inner):
        transpose(source, inner * size, target, array.inner, length, inner, size)
        return
    for i in range(length):
        move_elements(source + i * inner * size, size, target + i * stride, array.inner, inner, size, array.swapped)


cdef inline bint passes_through(const Axis* axis) noexcept nogil:
    """Whether every element is a window."""
    return axis.most == 1 and axis.step == 1 and axis.begin == 0 and axis.end == axis.out == axis.size


cdef inline int itemsize_of(Format format) noexcept nogil:
    """Bytes of an element that is not plain."""
    if format == BYTES or format == SIGNED_BYTES:
        return 1
    return 8 if format == FLOAT64_SQUARES else 4 if format == FLOAT32_SQUARES else 2


cdef inline Py_ssize_t size_of(const running_t* like, Format format) noexcept nogil:
    """Bytes of an element."""
    return <Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format)


cdef inline Py_ssize_t unit_of(const running_t* like, Format format) noexcept nogil:
    """Bytes of the elements of a vector of running values."""
    return VECTOR // <Py_ssize_t> sizeof(running_t) * size_of(like, format)


cdef inline bint is_square(Format format) noexcept nogil:
    return (format == FLOAT16_SQUARES or format == BFLOAT16_SQUARES or format == FLOAT32_SQUARES
            or format == FLOAT64_SQUARES)


cdef inline Format floats_of(Format format) noexcept nogil:
    """The format of the same elements as floats, in their order."""
    if format == FLOAT16_KEYS or format == FLOAT16_SQUARES:
        return FLOAT16
    if format == BFLOAT16_KEYS or format == BFLOAT16_SQUARES or format == BFLOAT16_PAIRS:
        return BFLOAT16
    return PLAIN if is_square(format) else format


cdef inline int nans_of(Format format) noexcept nogil:
    """How many NaNs of either sign a 16-bit format has."""
    return 0x3FF if format == FLOAT16 or format == FLOAT16_KEYS else 0x7F


cdef inline void square_row(const char* x, double* y, Py_ssize_t n, Format format) noexcept nogil:
    if format == FLOAT16_SQUARES:
        square_float16_row(<const unsigned short*> x, y, n)
    elif format == BFLOAT16_SQUARES:
        square_bfloat16_row(<const unsigned short*> x, y, n)
    elif format == FLOAT32_SQUARES:
        square_float_row(<const float*> x, y, n)
    else:
        square_double_row(<const double*> x, y, n)


cdef const char* values_of(Format format, const char* elements, Py_ssize_t n, Scratch* scratch) noexcept nogil:
    """Elements side by side as plain values, in the scratch memory if they are not."""
    if format == PLAIN:
        return elements
    if format == FLOAT16_KEYS or format == BFLOAT16_KEYS:
        keys_of_row(<const unsigned short*> elements, <int16_t*> scratch.values, n, nans_of(format))
    elif format == BYTES:
        load_integers(<const uint8_t*> elements, <SumI32*> scratch.values, n, NULL)
    elif format == SIGNED_BYTES:
        load_integers(<const int8_t*> elements, <SumI32*> scratch.values, n, NULL)
    elif format == FLOAT16:
        widen_float16_row(<const unsigned short*> elements, <float*> scratch.values, n)
    elif format == BFLOAT16_PAIRS:
        widen_bfloat16_pairs(<const unsigned short*> elements, <float*> scratch.values, n)
    elif is_square(format):
        square_row(elements, <double*> scratch.values, n, format)
    else:
        widen_bfloat16_row(<const unsigned short*> elements, <float*> scratch.values, n)
    return scratch.values


cdef const char* read_row(const Array* array, const char* source, Py_ssize_t stride, Py_ssize_t length,
                          Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    """The elements of a row as plain values side by side: where they are if they lie so, else in the scratch memory."""
    if not is_dense(array, stride, length, inner):
        gather(array, source, scratch.elements, stride, length, inner)
        source = scratch.elements
    return values_of(array.format, source, length * inner, scratch)


cdef void write_row(const Array* array, const char* values, char* target, Py_ssize_t stride, Py_ssize_t length,
                    Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    """Values side by side become the elements of a row; nothing is to do if the values are there already."""
    cdef bint dense = is_dense(array, stride, length, inner)
    cdef char* narrow = target if dense else scratch.elements
    if array.format == FLOAT16:
        narrow_float16_row(<const float*> values, <unsigned short*> narrow, length * inner)
    elif array.format == BFLOAT16:
        narrow_bfloat16_row(<const float*> values, <unsigned short*> narrow, length * inner)
    elif array.format == BFLOAT16_PAIRS:
        narrow_bfloat16_pairs(<const float*> values, <unsigned short*> narrow, length * inner)
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
    cdef Py_ssize_t pitch = length * array.itemsize
    cdef bint planar = is_planar(array, array.axis[last], inner)
    if not planar:
        if inner != job.inner or not is_dense(array, array.axis[last], length, inner):
            return 1
        pitch *= inner
    for a in range(last - 1, -1, -1):
        if extent(tile.span[a], windows) > 1 and array.axis[a] != pitch:
            return rows
        if job.indexed and not windows and job.pace[a] != rows * length:
            return rows  # places have a gap where the elements have none
        rows *= extent(tile.span[a], windows)
        pitch *= extent(tile.span[a], windows)
    if planar or job.indexed or (job.channels > 1 and array.channel != pitch) or array.image != pitch * job.channels:
        return rows
    return rows * (tile.outer_end - tile.outer_begin)


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


cdef struct Walk:
    bint windows                   # whether rows are of windows or of elements
    Py_ssize_t rows, together      # in all, and that lie together
    Py_ssize_t bunch               # that may be brought together where they do not, being short; else 1
    Py_ssize_t most                # at a time
    Py_ssize_t done, n             # before the rows at hand, and of them
    Py_ssize_t stride              # bytes from place to place in them
    bint apart                     # whether they are to be brought together
    Py_ssize_t place[MAX_AXES]     # of the first of them, for each axis but the last
    Py_ssize_t item                # its outer item
    bint wanted                    # whether any window reads it
    char* marks[MAX_AXES]
    Row row


cdef Walk walk_rows(const Job* job, const Array* array, const Tile* tile, bint windows, char* marks) noexcept nogil:
    """A walk before its first rows; those of elements know from their marks whether they are wanted."""
    cdef Walk walk
    cdef int a
    walk.windows, walk.done, walk.n, walk.bunch = windows, 0, 0, 1
    walk.together = rows_together(job, array, tile, windows)
    walk.rows = tile.outer_end - tile.outer_begin
    walk.most = (tile.inner_end - tile.inner_begin) * extent(tile.span[job.axes - 1], windows)
    walk.most = max(1, job.row // max(1, walk.most))
    for a in range(job.axes - 1):
        walk.rows *= extent(tile.span[a], windows)
        walk.marks[a] = marks
        if not windows:
            if mark(&job.axis[a], tile.span[a], marks):
                walk.together = 1
            marks += tile.span[a].high - tile.span[a].low
    return walk


cdef void bring_together(const Job* job, const Array* array, const Tile* tile, Walk* walk) noexcept nogil:
    """Lets a walk before its first rows take several along an axis, for `read_rows`."""
    cdef int last = job.axes - 1
    cdef Py_ssize_t length = extent(tile.span[last], walk.windows) * (tile.inner_end - tile.inner_begin), a
    if last > 0 and walk.together == 1 and length * array.itemsize <= SHORT_ROW:
        walk.bunch = extent(tile.span[last - 1], walk.windows)
        for a in range(walk.bunch):
            if not walk.marks[last - 1][a]:
                walk.bunch = 1
                break


cdef char* next_rows(const Job* job, const Array* array, const Tile* tile, Walk* walk) noexcept nogil:
    """Where the next rows of a walk begin; NULL after the last ones."""
    cdef int last = job.axes - 1, a
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = extent(tile.span[last], walk.windows), row
    cdef Py_ssize_t start = tile.span[last].begin if walk.windows else tile.span[last].low
    cdef char* where
    walk.done += walk.n
    if walk.done == walk.rows:
        return NULL
    walk.n = min(walk.together - walk.done % walk.together, walk.most)
    walk.stride, walk.apart = array.axis[last], walk.bunch > 1
    if walk.apart:
        walk.n = min(walk.bunch - walk.done % walk.bunch, walk.most)
    elif walk.n > 1 and not is_planar(array, walk.stride, inner):
        walk.stride = inner * array.itemsize  # as one long row
    walk.wanted = True
    walk.row.place = start
    row = walk.done
    for a in range(last - 1, -1, -1):
        walk.place[a] = row % extent(tile.span[a], walk.windows)
        row //= extent(tile.span[a], walk.windows)
        if not walk.windows:
            walk.wanted &= walk.marks[a][walk.place[a]]
        walk.place[a] += tile.span[a].begin if walk.windows else tile.span[a].low
        walk.row.place += walk.place[a] * job.pace[a]
    walk.item = tile.outer_begin + row
    walk.row.inner = inner
    walk.row.base = (walk.item * job.inner + tile.inner_begin) * job.plane
    walk.row.plane = job.plane
    where = outer_item(job, array, walk.item, tile.inner_begin) + start * array.axis[last]
    for a in range(last):
        where += walk.place[a] * array.axis[a]
    return where


cdef const char* read_rows(const Job* job, const Array* array, Format format, const char* source, const Walk* walk,
                           Py_ssize_t length, Py_ssize_t inner, Scratch* scratch) noexcept nogil:
    """As `read_row` for the rows at hand, of so many places each, in a format."""
    cdef Py_ssize_t row, bytes = length * inner * array.itemsize
    cdef const char* line = source
    if walk.apart:
        for row in range(walk.n):
            if is_dense(array, walk.stride, length, inner):
                copy_bytes(line, scratch.elements + row * bytes, bytes)
            else:
                gather(array, line, scratch.elements + row * bytes, walk.stride, length, inner)
            line += array.axis[job.axes - 2]
        source = scratch.elements
    elif not is_dense(array, walk.stride, walk.n * length, inner):
        gather(array, source, scratch.elements, walk.stride, walk.n * length, inner)
        source = scratch.elements
    return values_of(format, source, walk.n * length * inner, scratch)
