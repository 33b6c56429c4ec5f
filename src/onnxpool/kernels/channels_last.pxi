"""Channels last: windows over channels that lie side by side, in the loop that suits a row of them."""
from .elements cimport lanes_t, load_lanes
from .geometry cimport Axis, divisor_of, is_interior, taps_inside
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_PAIRS,
    BYTES,
    FARTHEST,
    FLOAT16,
    FLOAT16_KEYS,
    NEAR,
    PLAIN,
    SIGNED_BYTES,
    Distance,
    Format,
    parts,
)
from .reductions cimport MaxF32, MaxI16, SumF32, SumF64, SumI32, nothing, running_t


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


cdef struct Sides:
    const Side* deep
    const Side* down
    const Side* across
    Py_ssize_t inner
    Distance far, asks  # as of the call


cdef inline Course course_of(const Sides* sides, Py_ssize_t size, int level) noexcept nogil:
    """What all rows of windows have in common, of elements of so many bytes; `level` is that of the last axis in a
    nest."""
    cdef const Axis* taps = &sides.across.axis
    cdef Course course
    cdef Nest* nest = &course.nest
    course.inner, course.step, course.pace = sides.inner, sides.across.axis.step * sides.across.x, sides.across.y
    course.deep, course.down = sides.deep.axis.hop * sides.deep.x, sides.down.axis.hop * sides.down.x
    course.across, course.below = sides.across.axis.hop * sides.across.x, sides.down.y
    nest.hop[2], nest.hop[1 - level], nest.hop[level] = course.deep, course.down, course.across
    course.waits = sides.far != NEAR
    course.ahead = parts(AHEAD, course.step) * course.step if course.step > 0 else 0
    course.places = min(taps.step, (taps.most - 1) * taps.hop + 1)
    course.run, course.gap = sides.inner * size, sides.across.x - sides.inner * size
    if course.gap:  # no run is more than a place: those that windows leave out count too
        course.places = taps.step
    elif course.places < taps.step:
        course.run *= course.places
        course.gap = course.step - course.run
    else:
        course.run = ENDLESS
    return course


cdef inline void set_streams(Course* course, const Axis* planes, const Axis* rows) noexcept nogil:
    """What a row of windows reads first: the last planes and rows of taps, or about so."""
    cdef Py_ssize_t plane, row
    course.streams = 0
    for plane in range(max(0, course.planes - parts(planes.step, planes.hop)), course.planes):
        for row in range(max(0, course.rows - parts(rows.step, rows.hop)), course.rows):
            course.stream[course.streams] = plane * course.deep + row * course.down
            course.streams += 1


cdef inline bint reduce_courses(const char* x, char* y, running_t* work, const Sides* sides, Format format,
                                bint finishes) noexcept nogil:
    """As `reduce_boxes`."""
    cdef const Side* deep = sides.deep
    cdef const Side* down = sides.down
    cdef const Side* across = sides.across
    cdef const Axis* rows = &down.axis
    cdef const Axis* taps = &across.axis
    cdef Py_ssize_t plane, row, window, count, r, row_bytes = extent(across.span, False) * across.x
    cdef Py_ssize_t size = size_of(work, format)
    cdef bint close = (is_common(work) and columns_first(work) and 1 < rows.most <= SIDE and 1 < taps.most <= SIDE
                       and rows.step == rows.hop and taps.step == taps.hop and rows.taps > 1 and taps.taps > 1)
    # The level of taps along the last axis.
    cdef int level = 1 if taps.most == 1 or (columns_first(work) and rows.most <= SIDE and taps.most <= SIDE) else 0
    cdef Results results = no_results()
    cdef Course course = course_of(sides, size, level)
    cdef double divisor
    cdef Distance asks
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
            set_streams(&course, &deep.axis, rows)
            window = across.span.begin
            while window < across.span.end:
                course.windows = min(across.span.end, taps.end) - window if is_interior(taps, window) else 1
                course.taps = course.nest.taps[level] = taps_inside(taps, window)
                divisor = divisor_of(&deep.axis, plane) * divisor_of(rows, row) * divisor_of(taps, window)
                by, factor = divisor_like(work, divisor), divisor_like(work, 1 / divisor)
                # No processor looks far enough ahead where elements are widened, or follows the short streams of taps
                # that windows do not share.
                asks = sides.asks if course.rows > 1 and format == PLAIN else sides.far
                course.batch = batch_of(&course, size) if sides.asks == FARTHEST else 0
                course.fetches = (asks != NEAR and course.batch == 0
                                  and (course.rows > 1 or course.step >= course.taps * course.across))
                course.sweeps = (asks == FARTHEST and (FETCHES or course.fetches) and course.step > 0
                                 and course.batch == 0)
                for r in range(count):
                    first = first_of(first_of(x, deep, plane), down, row + r)
                    target = (y + (plane - deep.span.begin) * deep.y + (row + r - down.span.begin) * down.y
                              + (window - across.span.begin) * across.y)
                    course.left = row_bytes - (first_of(first, across, window) - first)
                    first = first_of(first, across, window)
                    course.turn = max(0, rows.step * down.x - row_bytes)
                    if is_common(work) and rows.most <= SIDE and taps.most <= SIDE and slides(&course, work, format):
                        if not columns_first(work):
                            results = no_results()
                        some_slide(first, target, &course, &by, &factor, &results, format, finishes)
                        if not columns_first(work) and any_odd_results(&results, work, PLAIN):
                            run_course(first, target, &course, &by, &factor, &results, format, finishes)
                    elif count == 2 and course.windows > 1:
                        if r == 0:
                            course.turn = max(0, 2 * rows.step * down.x - row_bytes)
                            some_boxes(first, target, &course, &by, &factor, &results, format, 2, finishes)
                    elif is_common(work) and (finishes or not is_ordered(work)) and course.waits and is_box(&course):
                        some_boxes(first, target, &course, &by, &factor, &results, format, 1, finishes)
                    elif course.planes == 0 or course.rows == 0 or course.taps == 0:
                        void_course(target, &course, work)
                    elif course.taps > FEW:
                        long_lines(first, target, &course, work, &by, &factor, &results, sides.asks, format, finishes)
                    else:
                        run_course(first, target, &course, &by, &factor, &results, format, finishes)
                window += course.windows
            row += count
    return finishes and any_odd_results(&results, work, format)


# A function for each: in one for all, compilers leave registers in memory.
cdef bint plain_elements(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, PLAIN, True)


cdef bint plain_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, PLAIN, False)


cdef bint float16_elements(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, FLOAT16, True)


cdef bint float16_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, FLOAT16, False)


cdef bint bfloat16_elements(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BFLOAT16, True)


cdef bint bfloat16_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BFLOAT16, False)


cdef bint pair_elements(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BFLOAT16_PAIRS, True)


cdef bint pair_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BFLOAT16_PAIRS, False)


cdef bint float16_key_elements(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, FLOAT16_KEYS, True)


cdef bint float16_key_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, FLOAT16_KEYS, False)


cdef bint bfloat16_key_elements(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BFLOAT16_KEYS, True)


cdef bint bfloat16_key_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BFLOAT16_KEYS, False)


cdef bint byte_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, BYTES, False)


cdef bint signed_byte_values(const char* x, char* y, running_t* work, const Sides* sides) noexcept nogil:
    return reduce_courses(x, y, work, sides, SIGNED_BYTES, False)


cdef bint reduce_boxes(const char* x, char* y, running_t* work, const Side* deep, const Side* down, const Side* across,
                       Py_ssize_t inner, Format format, bint finishes, Distance far, Distance asks) noexcept nogil:
    """y[deep windows, down windows, across windows, inner] from x[elements of the same], of running values or, if it
    finishes, of elements: then True if any is odd."""
    cdef Sides sides = Sides(deep, down, across, inner, far, asks)
    if running_t is MaxI16:
        if format == FLOAT16_KEYS and finishes:
            return float16_key_elements(x, y, work, &sides)
        elif format == BFLOAT16_KEYS and finishes:
            return bfloat16_key_elements(x, y, work, &sides)
        elif format == FLOAT16_KEYS:
            return float16_key_values(x, y, work, &sides)
        elif format == BFLOAT16_KEYS:
            return bfloat16_key_values(x, y, work, &sides)
        else:
            return plain_values(x, y, work, &sides)
    elif running_t is SumF32:
        if format == BFLOAT16_PAIRS and finishes:
            return pair_elements(x, y, work, &sides)
        elif format == FLOAT16 and finishes:
            return float16_elements(x, y, work, &sides)
        elif format == BFLOAT16 and finishes:
            return bfloat16_elements(x, y, work, &sides)
        elif finishes:
            return plain_elements(x, y, work, &sides)
        elif format == BFLOAT16_PAIRS:
            return pair_values(x, y, work, &sides)
        elif format == FLOAT16:
            return float16_values(x, y, work, &sides)
        elif format == BFLOAT16:
            return bfloat16_values(x, y, work, &sides)
        else:
            return plain_values(x, y, work, &sides)
    elif running_t is SumI32:
        if format == BYTES:
            return byte_values(x, y, work, &sides)
        elif format == SIGNED_BYTES:
            return signed_byte_values(x, y, work, &sides)
        else:
            return plain_values(x, y, work, &sides)
    elif running_t is MaxF32:
        if format == FLOAT16:
            return float16_values(x, y, work, &sides)
        elif format == BFLOAT16:
            return bfloat16_values(x, y, work, &sides)
        else:
            return plain_values(x, y, work, &sides)
    elif running_t is SumF64:
        if finishes:
            return plain_elements(x, y, work, &sides)
        else:
            return plain_values(x, y, work, &sides)
    else:
        return plain_values(x, y, work, &sides)
