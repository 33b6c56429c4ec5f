"""Boxes: over channels that lie side by side, windows are reduced from elements to a vector of channels at once.

Windows of few taps along the last two axes, or any along the last. Nothing goes to memory and back on the way: elements
are widened in registers, and where no axis is left, sums become the elements of the result. The order is that of
passes.pxi: the taps of each row, then the rows.
"""
from libc.stdint cimport int16_t, uint16_t
from libc.string cimport memcpy, memset

from .geometry cimport Axis, Span, divisor_of, first_tap, is_interior, taps_inside
from .elements cimport (
    float16_of_key,
    keys_of_row,
    narrow_bfloat16_halves,
    narrow_bfloat16_row,
    narrow_float16_row,
    quotient_double,
    quotient_float,
    widen_bfloat16_row,
    widen_float16_row,
)
from .job cimport (
    BFLOAT16,
    BFLOAT16_EVEN,
    BFLOAT16_KEYS,
    BFLOAT16_ODD,
    BFLOAT16_PAIRS,
    BYTES,
    FLOAT16,
    FLOAT16_KEYS,
    PLAIN,
    SIGNED_BYTES,
    Call,
    Format,
    Job,
    Stage,
    Tile,
    stopped,
)
from .reductions cimport MaxF32, MaxF64, MaxI8, MaxI16, MaxU8, SumF32, SumF64, SumI32, combine, few, nothing, running_t

cdef enum:
    SIDE = 3     # taps of a box at most along each axis, as in tiling.py


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


cdef inline void reduce_box(const char** line, Py_ssize_t place, Py_ssize_t hop, running_t* lanes, int rows, int taps,
                            Format format, int side) noexcept nogil:
    """lanes[side, side, vector] of neighbouring boxes, whose rows begin `place` bytes after those of `line`."""
    cdef running_t[(SIDE + 1) * (SIDE + 1) * VECTOR] space
    cdef running_t* box = space
    cdef running_t* first[SIDE + 1]
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    cdef int row, tap
    if rows == 1:
        reduce_taps(line[0] + place, lanes, hop, taps, 1, format)
        return
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


cdef inline void put_lanes(const running_t* lanes, const running_t* odd, char* y, double divisor, Format format,
                           bint finishes) noexcept nogil:
    """A vector of running values, or a pair, or the elements that they become."""
    cdef float[VECTOR] floats, odd_floats
    cdef double[VECTOR] doubles
    cdef uint16_t[VECTOR] halves
    cdef float by = <float> divisor, factor = <float> (1 / divisor)
    cdef Py_ssize_t j
    if running_t is MaxI16:
        if finishes:
            for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                halves[j] = float16_of_key(lanes[j].value, nans_of(format))
            memcpy(y, halves, VECTOR)
            return
    elif running_t is SumF32:
        if finishes:
            for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                floats[j] = quotient_float(lanes[j].value, by, factor)
            if format == BFLOAT16_PAIRS:
                for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                    odd_floats[j] = quotient_float(odd[j].value, by, factor)
                narrow_bfloat16_halves(floats, odd_floats, <uint16_t*> y)
            elif format == FLOAT16:
                narrow_float16_row(floats, <uint16_t*> y, VECTOR // <int> sizeof(running_t))
            elif format == BFLOAT16:
                narrow_bfloat16_row(floats, <uint16_t*> y, VECTOR // <int> sizeof(running_t))
            else:
                memcpy(y, floats, VECTOR)
            return
    elif running_t is SumF64:
        if finishes:
            for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                doubles[j] = quotient_double(lanes[j].value, divisor, 1 / divisor)
            memcpy(y, doubles, VECTOR)
            return
    memcpy(y, lanes, VECTOR)
    if format == BFLOAT16_PAIRS:
        memcpy(y + VECTOR, odd, VECTOR)


cdef struct Boxes:
    Py_ssize_t windows, inner   # values: y[windows, inner]; with side 2 windows are even in number
    Py_ssize_t step, pitch, hop  # bytes in x from window to window, from row to row of taps, from tap to tap
    Py_ssize_t below            # bytes in y to the next row; 0 if it is not taken as well
    Py_ssize_t rows, taps
    double divisor
    bint far                    # as of the call


cdef inline void boxes(const char* x, char* y, const Boxes* these, running_t* unused, int rows, int taps,
                       Format format, int side, bint finishes) noexcept nogil:
    """y[windows, inner] of boxes; with side 2 also those of the next row. inner takes a vector at least."""
    cdef running_t[4 * VECTOR] space, odd_space  # apart from y, so that nothing has to be known about where y is
    cdef running_t* lanes = space
    cdef running_t* odd = odd_space
    cdef const char* line[SIDE + 1]
    cdef Py_ssize_t window, part, done, box, width = VECTOR // <Py_ssize_t> sizeof(running_t), inner = these.inner
    cdef Py_ssize_t unit = width * vectors_of(format)
    cdef Py_ssize_t size = sizeof(running_t) if format == PLAIN else itemsize_of(format)
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t)
    cdef Py_ssize_t hop = these.hop, below = these.below, step = side * these.step
    cdef double divisor = these.divisor
    cdef int row, tap
    for row in range(SIDE + 1):
        line[row] = x + row * these.pitch
    for window in range(these.windows // side):
        part = 0
        while part >= 0:
            done = part
            while done <= inner - unit:
                if rows > 1 and these.far:
                    # What the next boxes of this row read first, or nearly so: two rows and two taps of each are new.
                    for row in range(max(rows + side - 3, 0), rows + side - 1):
                        for tap in range(min(taps, 2)):
                            fetch(line[row] + done * size + tap * hop + AHEAD)
                if format == BFLOAT16_PAIRS:
                    reduce_box(line, done * size, hop, lanes, rows, taps, BFLOAT16_EVEN, side)
                    reduce_box(line, done * size, hop, odd, rows, taps, BFLOAT16_ODD, side)
                else:
                    reduce_box(line, done * size, hop, lanes, rows, taps, format, side)
                for row in range(side):
                    for tap in range(side):
                        box = (row * side + tap) * width
                        put_lanes(lanes + box, odd + box, y + row * below + (tap * inner + done) * stored, divisor,
                                  format, finishes)
                done += unit
            # The last vector overlaps the one before. (A minimum in each step costs half as much again.)
            part = inner - unit if part == 0 and inner % unit else -1
        for row in range(SIDE + 1):
            line[row] += step
        y += side * inner * stored


cdef inline void long_lines(const char* x, char* y, const Boxes* these, running_t* unused, Format format,
                            bint finishes) noexcept nogil:
    """As `boxes` for windows of one row and more than FEW taps."""
    cdef running_t[MOST_VECTORS * VECTOR] space
    cdef double[LEVELS * HELD] held_space
    cdef running_t* held = <running_t*> held_space
    cdef running_t* lanes = space
    cdef running_t* odd
    cdef Py_ssize_t window, done, vectors, v, width = VECTOR // <Py_ssize_t> sizeof(running_t), inner = these.inner
    cdef Py_ssize_t size = sizeof(running_t) if format == PLAIN else itemsize_of(format)
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t)
    for window in range(these.windows):
        done = 0
        while done < inner:
            vectors = MOST_VECTORS
            if inner - done >= MOST_VECTORS * width:
                cascade_vectors(x + done * size, lanes, these.hop, these.taps, held, these.far, MOST_VECTORS, format)
            else:
                vectors = vectors_of(format)
                done = min(done, inner - vectors * width)  # the last vector overlaps the one before
                cascade_vectors(x + done * size, lanes, these.hop, these.taps, held, these.far, vectors_of(format),
                                format)
            for v in range(vectors // vectors_of(format)):
                odd = lanes + v * vectors_of(format) * width
                put_lanes(odd, odd + width, y + (done + v * vectors_of(format) * width) * stored, these.divisor, format,
                          finishes)
            done += vectors * width
        x += these.step
        y += inner * stored


cdef inline void some_boxes(const char* x, char* y, const Boxes* these, running_t* like, Format format,
                            bint finishes) noexcept nogil:
    # Constants let the compiler unroll a box. Up to 3 rows T(n) adds one after the other.
    if these.below:
        if these.rows == 2 and these.taps == 2:
            boxes(x, y, these, like, 2, 2, format, 2, finishes)
        elif these.rows == 2:
            boxes(x, y, these, like, 2, 3, format, 2, finishes)
        elif these.taps == 2:
            boxes(x, y, these, like, 3, 2, format, 2, finishes)
        else:
            boxes(x, y, these, like, 3, 3, format, 2, finishes)
    elif these.rows == 1 and these.taps == 1:
        boxes(x, y, these, like, 1, 1, format, 1, finishes)
    elif these.rows == 1 and these.taps == 2:
        boxes(x, y, these, like, 1, 2, format, 1, finishes)
    elif these.rows == 1 and these.taps == 3:
        boxes(x, y, these, like, 1, 3, format, 1, finishes)
    elif these.rows == 1 and these.taps == 4:
        boxes(x, y, these, like, 1, 4, format, 1, finishes)
    elif these.rows == 1 and these.taps == 5:
        boxes(x, y, these, like, 1, 5, format, 1, finishes)
    elif these.rows == 1 and these.taps == 6:
        boxes(x, y, these, like, 1, 6, format, 1, finishes)
    elif these.rows == 1 and these.taps == 7:
        boxes(x, y, these, like, 1, 7, format, 1, finishes)
    elif these.rows == 1 and these.taps == 8:
        boxes(x, y, these, like, 1, 8, format, 1, finishes)
    elif these.rows == 1:
        long_lines(x, y, these, like, format, finishes)
    elif these.rows == 2 and these.taps == 1:
        boxes(x, y, these, like, 2, 1, format, 1, finishes)
    elif these.rows == 2 and these.taps == 2:
        boxes(x, y, these, like, 2, 2, format, 1, finishes)
    elif these.rows == 2:
        boxes(x, y, these, like, 2, 3, format, 1, finishes)
    elif these.taps == 1:
        boxes(x, y, these, like, 3, 1, format, 1, finishes)
    elif these.taps == 2:
        boxes(x, y, these, like, 3, 2, format, 1, finishes)
    else:
        boxes(x, y, these, like, 3, 3, format, 1, finishes)


cdef void boxes_of(const char* x, char* y, const Boxes* these, running_t* like, Format format,
                   bint finishes) noexcept nogil:
    cdef Py_ssize_t j
    cdef running_t* values = <running_t*> y
    if not these.rows or not these.taps:
        for j in range(these.windows * these.inner):
            values[j] = nothing(values[j])
    elif running_t is MaxI16:
        if format == FLOAT16_KEYS and finishes:
            some_boxes(x, y, these, like, FLOAT16_KEYS, True)
        elif format == BFLOAT16_KEYS and finishes:
            some_boxes(x, y, these, like, BFLOAT16_KEYS, True)
        elif format == FLOAT16_KEYS:
            some_boxes(x, y, these, like, FLOAT16_KEYS, False)
        elif format == BFLOAT16_KEYS:
            some_boxes(x, y, these, like, BFLOAT16_KEYS, False)
        else:
            some_boxes(x, y, these, like, PLAIN, False)
    elif running_t is SumF32:
        if format == BFLOAT16_PAIRS and finishes:
            some_boxes(x, y, these, like, BFLOAT16_PAIRS, True)
        elif format == BFLOAT16_PAIRS:
            some_boxes(x, y, these, like, BFLOAT16_PAIRS, False)
        elif format == FLOAT16 and finishes:
            some_boxes(x, y, these, like, FLOAT16, True)
        elif format == BFLOAT16 and finishes:
            some_boxes(x, y, these, like, BFLOAT16, True)
        elif finishes:
            some_boxes(x, y, these, like, PLAIN, True)
        elif format == FLOAT16:
            some_boxes(x, y, these, like, FLOAT16, False)
        elif format == BFLOAT16:
            some_boxes(x, y, these, like, BFLOAT16, False)
        else:
            some_boxes(x, y, these, like, PLAIN, False)
    elif running_t is SumI32:
        if format == BYTES:
            some_boxes(x, y, these, like, BYTES, False)
        elif format == SIGNED_BYTES:
            some_boxes(x, y, these, like, SIGNED_BYTES, False)
        else:
            some_boxes(x, y, these, like, PLAIN, False)
    elif running_t is MaxF32:
        if format == FLOAT16:
            some_boxes(x, y, these, like, FLOAT16, False)
        elif format == BFLOAT16:
            some_boxes(x, y, these, like, BFLOAT16, False)
        else:
            some_boxes(x, y, these, like, PLAIN, False)
    elif running_t is SumF64:
        if finishes:
            some_boxes(x, y, these, like, PLAIN, True)
        else:
            some_boxes(x, y, these, like, PLAIN, False)
    else:
        some_boxes(x, y, these, like, PLAIN, False)


cdef bint reduce_boxes(const char* x, char* y, running_t* like, const Axis* rows, Span down, const Axis* taps,
                       Span across, Py_ssize_t inner, Py_ssize_t pitch, Py_ssize_t line, Format format,
                       bint finishes, bint far) noexcept nogil:
    """y[down windows, across windows, inner] from x[down elements, across elements, inner], whose rows are `line` and
    `pitch` bytes apart; of running values, or finished elements if their sums or keys are not odd.

    False where an element cannot be finished, being of no tap.
    """
    cdef Py_ssize_t row = down.begin, r, window, side
    cdef Py_ssize_t pixel = inner * (<Py_ssize_t> sizeof(running_t) if format == PLAIN else itemsize_of(format))
    cdef Py_ssize_t stored = pixel if finishes else inner * <Py_ssize_t> sizeof(running_t)
    cdef bint close = rows.step == rows.hop and taps.step == taps.hop and rows.taps > 1 and taps.taps > 1
    cdef const char* first
    cdef Boxes these
    these.far = far
    these.inner, these.step, these.pitch, these.hop = inner, taps.step * pixel, rows.hop * pitch, taps.hop * pixel
    while row < down.end:
        side = 2 if close and is_interior(rows, row) and row + 1 < min(down.end, rows.end) else 1
        these.rows = taps_inside(rows, row)
        window = across.begin
        while window < across.end:
            these.windows = min(across.end, taps.end) - window if is_interior(taps, window) else 1
            these.taps = taps_inside(taps, window)
            if finishes and not (these.rows and these.taps):
                return False
            these.below = line if side == 2 and these.windows > 1 else 0
            these.divisor = divisor_of(rows, row) * divisor_of(taps, window)
            if these.below:
                these.windows &= ~1
            for r in range(1 if these.below else side):
                first = x
                if these.rows:
                    first += (first_tap(rows, row + r) - down.low) * pitch
                if these.taps:
                    first += (first_tap(taps, window) - across.low) * pixel
                boxes_of(first, y + (row + r - down.begin) * line + (window - across.begin) * stored, &these, like,
                         format, finishes)
            window += these.windows
        row += side
    return True


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
    cdef Py_ssize_t width = (across.end - across.begin) * inner * <Py_ssize_t> sizeof(running_t)
    cdef bint direct = (not stage.load and not is_square(call.x.format)
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
            reduce_boxes(source, <char*> block, block, &job.axis[last - 1], down, &job.axis[last], across, inner, pitch,
                         width, call.x.format, False, call.far)
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
            reduce_boxes(<const char*> work, <char*> block, block, &job.axis[last - 1], down, &job.axis[last], across,
                         inner, length * <Py_ssize_t> sizeof(running_t), width, PLAIN, False, False)
        block += (down.end - down.begin) * (across.end - across.begin) * inner
        walk.n = height
        source = next_rows(job, &call.x, tile, &walk)


cdef Axis one_row() noexcept nogil:
    """The rows of windows along one axis."""
    cdef Axis axis
    memset(&axis, 0, sizeof(Axis))
    axis.size = axis.out = axis.end = axis.step = axis.hop = axis.taps = axis.most = 1
    axis.divisor = 1
    return axis


cdef bint fits_lines(const Job* job, const Call* call, const Stage* stage, const Tile* tile,
                     running_t* like) noexcept nogil:
    """Whether the last axis may be reduced from elements to vectors; not where windows share many taps."""
    cdef const Axis* axis = &job.axis[job.axes - 1]
    cdef Span span = tile.span[job.axes - 1]
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = span.high - span.low
    return (not stage.load and not is_square(call.x.format) and not job.in_order and not job.indexed and length > 0
            and inner * <Py_ssize_t> sizeof(running_t) >= VECTOR
            and is_dense(&call.x, call.x.axis[job.axes - 1], length, inner)
            and not in_steps(axis) and not share_taps(axis, span.end - span.begin, length))


cdef void load_lines(const Job* job, const Call* call, const Tile* tile, running_t* block,
                     Scratch* scratch) noexcept nogil:
    """The last axis: block[outer, elements of the other axes, windows, inner], as `load_rows`."""
    cdef Span across = tile.span[job.axes - 1]
    cdef Axis taps = job.axis[job.axes - 1], row = one_row()
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, length = across.high - across.low
    cdef Py_ssize_t width = across.end - across.begin
    cdef Walk walk = walk_rows(job, &call.x, tile, False, scratch.marks)
    cdef const char* source
    if width == 1 and taps.begin <= across.begin < taps.end:
        # The windows of neighbouring rows follow each other as if they were of one row.
        taps.start, taps.begin = first_tap(&taps, across.begin), across.begin
        taps.step, taps.end = length, across.begin + walk.rows
    else:
        walk.together = 1
    source = next_rows(job, &call.x, tile, &walk)
    while source != NULL and not stopped(call):
        if walk.wanted:
            across.end = across.begin + walk.n * width
            reduce_boxes(source, <char*> block, block, &row, Span(0, 1, 0, 1), &taps, across, inner, 0, 0,
                         call.x.format, False, call.far)
        block += walk.n * width * inner
        source = next_rows(job, &call.x, tile, &walk)


cdef bint finish_boxes(const Job* job, const Call* call, const Stage* stage, const Tile* tile, bint boxed,
                       running_t* like, Scratch* scratch) noexcept nogil:
    """From elements to elements, where both lie side by side; False if that could not be, or gave an odd result."""
    cdef Py_ssize_t inner = tile.inner_end - tile.inner_begin, item, row, n, pitch = 0, line = 0
    cdef int last = job.axes - 1
    cdef bint odd = False
    cdef Axis unit = one_row()
    cdef const Axis* rows = &job.axis[0] if boxed else &unit
    cdef Span down = tile.span[0] if boxed else Span(0, 1, 0, 1), across = tile.span[last]
    cdef const char* source
    cdef char* target
    if (not job.finishes or last != (1 if boxed else 0) or stage != &job.fast
            or not is_dense(&call.x, call.x.axis[last], across.high - across.low, inner)
            or not is_dense(&call.y, call.y.axis[last], across.end - across.begin, inner)):
        return False
    if boxed:
        pitch, line = call.x.axis[0], call.y.axis[0]
    n = (across.end - across.begin) * inner
    for item in range(tile.outer_begin, tile.outer_end):
        source = outer_item(job, &call.x, item, tile.inner_begin) + down.low * pitch + across.low * call.x.axis[last]
        target = outer_item(job, &call.y, item, tile.inner_begin) + down.begin * line + across.begin * call.y.axis[last]
        if not reduce_boxes(source, target, like, rows, down, &job.axis[last], across, inner, pitch, line,
                            call.x.format, True, call.far):
            return False
        for row in range(down.end - down.begin):
            odd |= odd_results(target + row * line, n, stage.running, call.x.format)
        if odd and stage.running != MAX_I16:
            return False
    # Keys are right if all zeros are alike.
    return not odd or not any_odd_keys(job, call, tile, scratch)
