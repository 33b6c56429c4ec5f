"""Quads: windows over channels that lie side by side, tap by tap, a few vectors of results at a time.

These stay in registers from the first tap to the last, and numbers of taps are no constants: a window at a border goes
the way of all others.
"""
from .elements cimport fetch, lanes_t, load_lanes, store_lanes
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_PAIRS,
    BYTES,
    FLOAT16,
    FLOAT16_KEYS,
    NEAR,
    PLAIN,
    SIGNED_BYTES,
    Distance,
    Format,
)
from .reductions cimport MaxF32, MaxI16, SumF32, SumF64, SumI32, SumI64, SumWide, nothing, running_t

cdef enum:
    DEPTH = 4  # more than log2 of FEW


cdef inline bint is_ordered(const running_t* like) noexcept nogil:
    """Whether the order in which a result is combined shows."""
    return running_t is SumF32 or running_t is SumF64 or running_t is SumWide


cdef inline void fetch_quad(const char* x, Py_ssize_t pitch, int vectors, Format format) noexcept nogil:
    fetch(x)
    if vectors == QUAD:
        fetch(x + pitch)
        if format != BFLOAT16_PAIRS:
            fetch(x + 2 * pitch)
            fetch(x + 3 * pitch)


cdef inline bint plenty(const running_t* like) noexcept nogil:
    """Whether there are so many values of a kind that they are worth loops of their own."""
    return running_t is not SumWide and running_t is not SumI64


cdef inline void read_quad(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t ahead, const running_t* like,
                           int vectors, Format format) noexcept nogil:
    """A vector or a pair or, `pitch` bytes apart, a QUAD of vectors. Lines are fetched tap by tap: many at once would
    hold up the loads."""
    if ahead:
        fetch_quad(x + ahead, pitch, vectors, format)
    if format == BFLOAT16_PAIRS:
        read_pair(x, &quad.first, &quad.second, like, format)
        if vectors == QUAD:
            read_pair(x + pitch, &quad.third, &quad.fourth, like, format)
        return
    read_lanes(x, &quad.first, like, format)
    if vectors == QUAD:
        read_lanes(x + pitch, &quad.second, like, format)
        read_lanes(x + 2 * pitch, &quad.third, like, format)
        read_lanes(x + 3 * pitch, &quad.fourth, like, format)


cdef inline void take_taps(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t taps,
                           Py_ssize_t ahead, const running_t* like, int vectors, Format format) noexcept nogil:
    """So many taps behind what is there."""
    cdef Py_ssize_t tap
    for tap in range(taps):
        if ahead:
            fetch_quad(x + ahead, pitch, vectors, format)
        if format == BFLOAT16_PAIRS:
            take_pair(x, &quad.first, &quad.second, like, 0)
            if vectors == QUAD:
                take_pair(x + pitch, &quad.third, &quad.fourth, like, 0)
        else:
            take_vector(x, &quad.first, like, False, 0, format)
            if vectors == QUAD:
                take_vector(x + pitch, &quad.second, like, False, 0, format)
                take_vector(x + 2 * pitch, &quad.third, like, False, 0, format)
                take_vector(x + 3 * pitch, &quad.fourth, like, False, 0, format)
        x += hop


cdef inline void follow_lanes(const lanes_t* earlier, lanes_t* later, const running_t* like) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    store_lanes(earlier[0], values)
    take_lanes(values, later, True)


cdef inline void follow(const Quad* earlier, Quad* later, const running_t* like, int vectors) noexcept nogil:
    """What was later becomes the result of both."""
    follow_lanes(&earlier.first, &later.first, like)
    if vectors > 1:
        follow_lanes(&earlier.second, &later.second, like)
    if vectors == QUAD:
        follow_lanes(&earlier.third, &later.third, like)
        follow_lanes(&earlier.fourth, &later.fourth, like)


cdef inline void take_four(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t ahead,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    cdef Quad pair
    read_quad(x, &pair, pitch, ahead, like, vectors, format)
    take_taps(x + hop, &pair, pitch, hop, 1, ahead, like, vectors, format)
    read_quad(x + 2 * hop, quad, pitch, ahead, like, vectors, format)
    take_taps(x + 3 * hop, quad, pitch, hop, 1, ahead, like, vectors, format)
    follow(&pair, quad, like, vectors)


cdef inline void take_line(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t taps,
                           Py_ssize_t ahead, const running_t* like, int vectors, Format format) noexcept nogil:
    """T(taps) of 1 to FEW taps."""
    cdef Quad half
    if is_ordered(like) and taps >= 4:
        take_four(x, quad, pitch, hop, ahead, like, vectors, format)
        if taps == 4:
            return
        half = quad[0]
        x += 4 * hop
        taps -= 4
        if taps == 4:
            take_four(x, quad, pitch, hop, ahead, like, vectors, format)
        else:
            read_quad(x, quad, pitch, ahead, like, vectors, format)
            take_taps(x + hop, quad, pitch, hop, taps - 1, ahead, like, vectors, format)
        follow(&half, quad, like, vectors)
        return
    read_quad(x, quad, pitch, ahead, like, vectors, format)
    take_taps(x + hop, quad, pitch, hop, taps - 1, ahead, like, vectors, format)


cdef inline void take_face(const char* x, Registers* all, Py_ssize_t pitch, const Nest* nest, Py_ssize_t ahead,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    """T of lines of taps; results that wait for others do so in memory, but one."""
    cdef char[DEPTH * QUAD * VECTOR] held
    cdef Quad total
    cdef Py_ssize_t depth = 0, line
    if not is_ordered(like) or nest.taps[1] < 4:
        take_line(x, &all.first, pitch, nest.hop[0], nest.taps[0], ahead, like, vectors, format)
        for line in range(1, nest.taps[1]):
            total = all.first
            x += nest.hop[1]
            take_line(x, &all.first, pitch, nest.hop[0], nest.taps[0], ahead, like, vectors, format)
            follow(&total, &all.first, like, vectors)
        return
    for line in range(nest.taps[1]):
        take_line(x, &all.first, pitch, nest.hop[0], nest.taps[0], ahead, like, vectors, format)
        hold(all, <running_t*> held, &depth, line, line + 1 == nest.taps[1], vectors)
        x += nest.hop[1]


cdef inline void take_nest(const char* x, Registers* all, Py_ssize_t pitch, const Nest* nest, Py_ssize_t ahead,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    """T of faces."""
    cdef char[DEPTH * QUAD * VECTOR] held
    cdef Py_ssize_t depth = 0, face
    for face in range(nest.taps[2]):
        take_face(x, all, pitch, nest, ahead, like, vectors, format)
        if nest.taps[2] > 1:
            hold(all, <running_t*> held, &depth, face, face + 1 == nest.taps[2], vectors)
        x += nest.hop[2]


cdef inline void put_results(const Quad* quad, char* y, Py_ssize_t pitch, const running_t* by,
                             const running_t* factor, Results* results, int vectors, Format format,
                             bint finishes) noexcept nogil:
    if format == BFLOAT16_PAIRS:
        put_result(&quad.first, &quad.second, y, by, factor, results, format, finishes)
        if vectors == QUAD:
            put_result(&quad.third, &quad.fourth, y + pitch, by, factor, results, format, finishes)
        return
    put_result(&quad.first, &quad.first, y, by, factor, results, format, finishes)
    if vectors == QUAD:
        put_result(&quad.second, &quad.second, y + pitch, by, factor, results, format, finishes)
        put_result(&quad.third, &quad.third, y + 2 * pitch, by, factor, results, format, finishes)
        put_result(&quad.fourth, &quad.fourth, y + 3 * pitch, by, factor, results, format, finishes)


cdef inline void run_course(const char* x, char* y, const Course* course, const running_t* by,
                            const running_t* factor, Results* results, Format format, bint finishes) noexcept nogil:
    """QUADs of the channels of a window; of those that fill none, the same vector of neighbouring windows. Where
    elements come from afar, one vector after the other."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit = vectors_of(format) * width
    cdef Py_ssize_t size = size_of(by, format), stored = size if finishes else <Py_ssize_t> sizeof(running_t)
    cdef bint alone = course.waits or not plenty(by)
    cdef Py_ssize_t inner = course.inner, wide = 0 if alone else inner - inner % (QUAD * width)
    cdef Py_ssize_t step = course.step, pace = course.pace, most = 1 if alone else QUAD // vectors_of(format)
    cdef Py_ssize_t left = course.windows, windows, window, done, ahead
    cdef Nest nest = course.nest  # which no store to y can change
    cdef Registers all
    while left > 0:
        windows = min(left, most)
        for window in range(windows):
            done = 0
            while done < wide:
                take_nest(x + window * step + done * size, &all, unit * size, &nest, 0, by, QUAD, format)
                put_results(&all.first, y + window * pace + done * stored, unit * stored, by, factor, results, QUAD,
                            format, finishes)
                done += QUAD * width
        done, ahead = wide, ahead_of(course, course.windows - left) if course.fetches else 0
        while done < inner:
            done = min(done, inner - unit)  # the last vector may overlap the one before
            if plenty(by) and windows == QUAD // vectors_of(format):
                take_nest(x + done * size, &all, step, &nest, 0, by, QUAD, format)
                put_results(&all.first, y + done * stored, pace, by, factor, results, QUAD, format, finishes)
            else:
                for window in range(windows):
                    take_nest(x + window * step + done * size, &all, 0, &nest, ahead, by, vectors_of(format), format)
                    put_results(&all.first, y + window * pace + done * stored, 0, by, factor, results,
                                vectors_of(format), format, finishes)
            done += unit
        x += windows * step
        y += windows * pace
        left -= windows


cdef inline void put_sum(const Quad* first, const Quad* second, Quad* third, const running_t* like, int vectors,
                         int taps) noexcept nogil:
    """T of two or three columns, as the last of them."""
    cdef Quad pair
    if taps == 3:
        pair = second[0]
        follow(first, &pair, like, vectors)
        follow(&pair, third, like, vectors)
    else:
        follow(second, third, like, vectors)


cdef inline void slide(const char* x, char* y, const Course* course, const running_t* by, const running_t* factor,
                       Results* results, Py_ssize_t pitch, Py_ssize_t stored, int vectors, int taps, int fresh,
                       Format format, bint finishes) noexcept nogil:
    """Windows of so many columns, of which as many are fresh in each: the others stay in registers."""
    cdef Quad first, second, third, total
    cdef Py_ssize_t window, rows = course.rows, hop = course.down, across = course.across, windows = course.windows
    cdef Py_ssize_t step = course.step, pace = course.pace, ahead = 0
    # The columns are counted from behind: two are the second and the third.
    if taps == 3:
        take_line(x, &first, pitch, hop, rows, ahead, by, vectors, format)
        x += across
    if fresh == 1:
        take_line(x, &second, pitch, hop, rows, ahead, by, vectors, format)
        x += across
    for window in range(windows):
        ahead = ahead_of(course, window) if course.fetches else 0
        if fresh == 2:
            take_line(x, &second, pitch, hop, rows, ahead, by, vectors, format)
            take_line(x + across, &third, pitch, hop, rows, ahead, by, vectors, format)
        else:
            take_line(x, &third, pitch, hop, rows, ahead, by, vectors, format)
        total = third
        put_sum(&first, &second, &total, by, vectors, taps)
        put_results(&total, y, stored, by, factor, results, vectors, format, finishes)
        if fresh == 2:
            first = third
        else:
            first, second = second, third
        x += step
        y += pace


cdef inline void slide_course(const char* x, char* y, const Course* course, const running_t* by,
                              const running_t* factor, Results* results, int taps, int fresh, Format format,
                              bint finishes) noexcept nogil:
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit = vectors_of(format) * width, done = 0
    cdef Py_ssize_t size = size_of(by, format), stored = size if finishes else <Py_ssize_t> sizeof(running_t)
    while done <= course.inner - QUAD * width:
        slide(x + done * size, y + done * stored, course, by, factor, results, unit * size, unit * stored, QUAD, taps,
              fresh, format, finishes)
        done += QUAD * width
    while done < course.inner:
        done = min(done, course.inner - unit)  # the last vector may overlap the one before
        slide(x + done * size, y + done * stored, course, by, factor, results, 0, 0, vectors_of(format), taps, fresh,
              format, finishes)
        done += unit


cdef inline bint slides(const Course* course, const running_t* like) noexcept nogil:
    """Whether neighbouring windows share columns, which come first, and had better be taken one behind the other for a
    few of their channels at a time: from afar only if these are all."""
    cdef Py_ssize_t most = QUAD * (VECTOR // <Py_ssize_t> sizeof(running_t))
    return (columns_first(like) and course.planes == 1 and 0 < course.rows <= SIDE and 1 < course.taps <= SIDE
            and course.windows > 1 and course.step < course.taps * course.across and course.step % course.across == 0
            and (course.inner == most if course.waits else course.inner <= 2 * most))


cdef inline void some_slide(const char* x, char* y, const Course* course, const running_t* by, const running_t* factor,
                            Results* results, Format format, bint finishes) noexcept nogil:
    if course.taps == 2:
        slide_course(x, y, course, by, factor, results, 2, 1, format, finishes)
    elif course.step == course.across:
        slide_course(x, y, course, by, factor, results, 3, 1, format, finishes)
    else:
        slide_course(x, y, course, by, factor, results, 3, 2, format, finishes)


cdef inline void long_lines(const char* x, char* y, const Course* course, running_t* held, const running_t* by,
                            const running_t* factor, Results* results, Distance asks, Format format,
                            bint finishes) noexcept nogil:
    """As `run_course` for windows of one line of more than FEW taps."""
    cdef lanes_t lanes, odd
    cdef Py_ssize_t window, done, unit, units, width = VECTOR // <Py_ssize_t> sizeof(running_t), inner = course.inner
    cdef Py_ssize_t size = size_of(by, format), full = vectors_of(format) * width
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t)
    for window in range(course.windows):
        done = 0
        while done < inner:
            done = min(done, inner - full)  # the last vector overlaps the one before
            units = min(inner - done, CHUNK) // full
            cascade_units(x + done * size, course.across, course.taps, held, units, asks, format)
            for unit in range(units):
                lanes = load_lanes(held + unit * full)
                odd = load_lanes(held + unit * full + width) if format == BFLOAT16_PAIRS else lanes
                put_result(&lanes, &odd, y + (done + unit * full) * stored, by, factor, results, format, finishes)
            done += units * full
        x += course.step
        y += course.pace


cdef inline void void_course(char* y, const Course* course, const running_t* like) noexcept nogil:
    """Windows without a tap."""
    cdef Py_ssize_t window, j
    for window in range(course.windows):
        for j in range(course.inner):
            (<running_t*> (y + window * course.pace))[j] = nothing(like[0])


cdef struct Panes:
    const Side* deep
    const Side* down
    const Side* across
    Py_ssize_t inner
    Distance far, asks  # as of the call


cdef inline Course course_of(const Panes* panes, int level) noexcept nogil:
    """What all rows of windows have in common; `level` is that of the last axis in a nest."""
    cdef Course course
    cdef Nest* nest = &course.nest
    course.inner, course.step, course.pace = panes.inner, panes.across.axis.step * panes.across.x, panes.across.y
    course.deep, course.down = panes.deep.axis.hop * panes.deep.x, panes.down.axis.hop * panes.down.x
    course.across, course.below = panes.across.axis.hop * panes.across.x, panes.down.y
    nest.hop[2], nest.hop[1 - level], nest.hop[level] = course.deep, course.down, course.across
    course.waits = panes.far != NEAR
    return course


cdef inline bint quads(const char* x, char* y, running_t* work, const Panes* panes, Format format,
                       bint finishes) noexcept nogil:
    """As `reduce_boxes`."""
    cdef const Side* deep = panes.deep
    cdef const Side* down = panes.down
    cdef const Side* across = panes.across
    cdef const Axis* rows = &down.axis
    cdef const Axis* taps = &across.axis
    cdef Py_ssize_t plane, row, window, count, r, row_bytes = extent(across.span, False) * across.x
    cdef bint close = (plenty(work) and columns_first(work) and 1 < rows.most <= SIDE and 1 < taps.most <= SIDE
                       and rows.step == rows.hop and taps.step == taps.hop and rows.taps > 1 and taps.taps > 1)
    # The level of taps along the last axis.
    cdef int level = 1 if taps.most == 1 or (columns_first(work) and rows.most <= SIDE and taps.most <= SIDE) else 0
    cdef Extremes seen
    cdef Results results = no_results()
    cdef Course course = course_of(panes, level)
    cdef double divisor
    cdef running_t by, factor
    cdef const char* first
    cdef char* target
    for plane in range(deep.span.begin, deep.span.end):
        course.planes = course.nest.taps[2] = taps_inside(&deep.axis, plane)
        row = down.span.begin
        while row < down.span.end:
            count = 2 if (close and course.planes == 1 and is_interior(rows, row)
                          and row + 1 < min(down.span.end, rows.end)) else 1
            course.rows = course.nest.taps[1 - level] = taps_inside(rows, row)
            course.turn = max(0, count * rows.step * down.x - row_bytes)
            window = across.span.begin
            while window < across.span.end:
                course.windows = min(across.span.end, taps.end) - window if is_interior(taps, window) else 1
                course.taps = course.nest.taps[level] = taps_inside(taps, window)
                divisor = divisor_of(&deep.axis, plane) * divisor_of(rows, row) * divisor_of(taps, window)
                by, factor = divisor_like(work, divisor), divisor_like(work, 1 / divisor)
                # No processor looks far enough ahead where elements are widened, or follows the short streams of taps
                # that windows do not share.
                course.fetches = (panes.asks if course.rows > 1 and format == PLAIN else panes.far) != NEAR and (
                    course.rows > 1 or course.step >= course.taps * course.across)
                for r in range(count):
                    first = first_of(first_of(x, deep, plane), down, row + r)
                    target = (y + (plane - deep.span.begin) * deep.y + (row + r - down.span.begin) * down.y
                              + (window - across.span.begin) * across.y)
                    course.left = row_bytes - (first_of(first, across, window) - first)
                    first = first_of(first, across, window)
                    if plenty(work) and rows.most <= SIDE and taps.most <= SIDE and slides(&course, work):
                        some_slide(first, target, &course, &by, &factor, &results, format, finishes)
                    elif count == 2 and course.windows > 1:
                        if r == 0:
                            some_boxes(first, target, &course, &by, &factor, &results, format, 2, finishes)
                    elif plenty(work) and (finishes or not is_ordered(work)) and course.waits and is_box(&course):
                        some_boxes(first, target, &course, &by, &factor, &results, format, 1, finishes)
                    elif course.planes == 0 or course.rows == 0 or course.taps == 0:
                        void_course(target, &course, work)
                    elif course.taps > FEW:
                        long_lines(first, target, &course, work, &by, &factor, &results, panes.asks, format, finishes)
                    else:
                        run_course(first, target, &course, &by, &factor, &results, format, finishes)
                window += course.windows
            row += count
    store_lanes(results.highest, seen.highest)
    store_lanes(results.lowest, seen.lowest)
    return finishes and are_odd(&seen, work, format)


# Each is a function of its own, which compilers find enough of.
cdef bint plain_elements(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, PLAIN, True)


cdef bint plain_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, PLAIN, False)


cdef bint float16_elements(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, FLOAT16, True)


cdef bint float16_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, FLOAT16, False)


cdef bint bfloat16_elements(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BFLOAT16, True)


cdef bint bfloat16_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BFLOAT16, False)


cdef bint pair_elements(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BFLOAT16_PAIRS, True)


cdef bint pair_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BFLOAT16_PAIRS, False)


cdef bint float16_key_elements(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, FLOAT16_KEYS, True)


cdef bint float16_key_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, FLOAT16_KEYS, False)


cdef bint bfloat16_key_elements(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BFLOAT16_KEYS, True)


cdef bint bfloat16_key_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BFLOAT16_KEYS, False)


cdef bint byte_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, BYTES, False)


cdef bint signed_byte_values(const char* x, char* y, running_t* work, const Panes* panes) noexcept nogil:
    return quads(x, y, work, panes, SIGNED_BYTES, False)


cdef bint reduce_boxes(const char* x, char* y, running_t* work, const Side* deep, const Side* down, const Side* across,
                       Py_ssize_t inner, Format format, bint finishes, Distance far, Distance asks) noexcept nogil:
    """y[deep windows, down windows, across windows, inner] from x[elements of the same], of running values or, if it
    finishes, of elements: then True if any is odd."""
    cdef Panes panes = Panes(deep, down, across, inner, far, asks)
    if running_t is MaxI16:
        if format == FLOAT16_KEYS and finishes:
            return float16_key_elements(x, y, work, &panes)
        elif format == BFLOAT16_KEYS and finishes:
            return bfloat16_key_elements(x, y, work, &panes)
        elif format == FLOAT16_KEYS:
            return float16_key_values(x, y, work, &panes)
        elif format == BFLOAT16_KEYS:
            return bfloat16_key_values(x, y, work, &panes)
        else:
            return plain_values(x, y, work, &panes)
    elif running_t is SumF32:
        if format == BFLOAT16_PAIRS and finishes:
            return pair_elements(x, y, work, &panes)
        elif format == FLOAT16 and finishes:
            return float16_elements(x, y, work, &panes)
        elif format == BFLOAT16 and finishes:
            return bfloat16_elements(x, y, work, &panes)
        elif finishes:
            return plain_elements(x, y, work, &panes)
        elif format == BFLOAT16_PAIRS:
            return pair_values(x, y, work, &panes)
        elif format == FLOAT16:
            return float16_values(x, y, work, &panes)
        elif format == BFLOAT16:
            return bfloat16_values(x, y, work, &panes)
        else:
            return plain_values(x, y, work, &panes)
    elif running_t is SumI32:
        if format == BYTES:
            return byte_values(x, y, work, &panes)
        elif format == SIGNED_BYTES:
            return signed_byte_values(x, y, work, &panes)
        else:
            return plain_values(x, y, work, &panes)
    elif running_t is MaxF32:
        if format == FLOAT16:
            return float16_values(x, y, work, &panes)
        elif format == BFLOAT16:
            return bfloat16_values(x, y, work, &panes)
        else:
            return plain_values(x, y, work, &panes)
    elif running_t is SumF64:
        if finishes:
            return plain_elements(x, y, work, &panes)
        else:
            return plain_values(x, y, work, &panes)
    else:
        return plain_values(x, y, work, &panes)
