"""Quads: windows over channels that lie side by side, tap by tap, a few vectors of results at a time.

These stay in registers from the first tap to the last, and numbers of taps are no constants: a window at a border goes
the way of all others.
"""
from .elements cimport lanes_t, store_lanes
from .job cimport BFLOAT16_PAIRS, Format
from .reductions cimport SumF32, SumF64, SumI64, SumWide, running_t

cdef enum:
    DEPTH = 4  # more than log2 of FEW


cdef inline bint is_ordered(const running_t* like) noexcept nogil:
    """Whether the order in which a result is combined shows."""
    return running_t is SumF32 or running_t is SumF64 or running_t is SumWide


cdef inline bint is_common(const running_t* like) noexcept nogil:
    """Whether so many calls have running values of this kind that they are worth loops of their own."""
    return running_t is not SumWide and running_t is not SumI64


cdef inline void take_taps(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t taps,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    """So many taps behind what is there."""
    cdef Py_ssize_t tap
    for tap in range(taps):
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


cdef inline void take_four(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t hop, const running_t* like,
                           int vectors, Format format) noexcept nogil:
    cdef Quad pair
    read_apart(x, pitch, &pair, like, format == BFLOAT16_PAIRS, vectors, format)
    take_taps(x + hop, &pair, pitch, hop, 1, like, vectors, format)
    read_apart(x + 2 * hop, pitch, quad, like, format == BFLOAT16_PAIRS, vectors, format)
    take_taps(x + 3 * hop, quad, pitch, hop, 1, like, vectors, format)
    follow(&pair, quad, like, vectors)


cdef inline void take_line(const char* x, Quad* quad, Py_ssize_t pitch, Py_ssize_t hop, Py_ssize_t taps,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    """T(taps) of 1 to FEW taps."""
    cdef Quad half
    if is_ordered(like) and taps >= 4:
        take_four(x, quad, pitch, hop, like, vectors, format)
        if taps == 4:
            return
        half = quad[0]
        x += 4 * hop
        taps -= 4
        if taps == 4:
            take_four(x, quad, pitch, hop, like, vectors, format)
        else:
            read_apart(x, pitch, quad, like, format == BFLOAT16_PAIRS, vectors, format)
            take_taps(x + hop, quad, pitch, hop, taps - 1, like, vectors, format)
        follow(&half, quad, like, vectors)
        return
    read_apart(x, pitch, quad, like, format == BFLOAT16_PAIRS, vectors, format)
    take_taps(x + hop, quad, pitch, hop, taps - 1, like, vectors, format)


cdef inline void take_face(const char* x, Registers* all, Py_ssize_t pitch, const Nest* nest,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    """T of lines of taps; results that wait for others do so in memory, but one."""
    cdef char[DEPTH * QUAD * VECTOR] held
    cdef Quad total
    cdef Py_ssize_t depth = 0, line
    if not is_ordered(like) or nest.taps[1] < 4:
        take_line(x, &all.first, pitch, nest.hop[0], nest.taps[0], like, vectors, format)
        for line in range(1, nest.taps[1]):
            total = all.first
            x += nest.hop[1]
            take_line(x, &all.first, pitch, nest.hop[0], nest.taps[0], like, vectors, format)
            follow(&total, &all.first, like, vectors)
        return
    for line in range(nest.taps[1]):
        take_line(x, &all.first, pitch, nest.hop[0], nest.taps[0], like, vectors, format)
        hold(all, <running_t*> held, &depth, line, line + 1 == nest.taps[1], vectors)
        x += nest.hop[1]


cdef inline void take_nest(const char* x, Registers* all, Py_ssize_t pitch, const Nest* nest,
                           const running_t* like, int vectors, Format format) noexcept nogil:
    """T of faces."""
    cdef char[DEPTH * QUAD * VECTOR] held
    cdef Py_ssize_t depth = 0, face
    for face in range(nest.taps[2]):
        take_face(x, all, pitch, nest, like, vectors, format)
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
    """QUADs of the channels of a window; of those that fill none, the same vector of neighbouring windows. Where lines
    are asked for or touched in the order of memory, one vector after the other."""
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit = vectors_of(format) * width
    cdef Py_ssize_t size = size_of(by, format), stored = size if finishes else <Py_ssize_t> sizeof(running_t)
    cdef bint alone = course.sweeps or course.batch or not is_common(by)
    cdef Py_ssize_t inner = course.inner, wide = 0 if alone else inner - inner % (QUAD * width)
    cdef Py_ssize_t step = course.step, pace = course.pace, most = 1 if alone else QUAD // vectors_of(format)
    cdef Py_ssize_t left = course.windows, windows, window, done
    cdef Nest nest = course.nest  # which no store to y can change
    cdef Registers all
    cdef Py_ssize_t untouched = 0 if course.batch else left
    cdef Sweep sweep = sweep_from(x, course)
    while left > 0:
        windows = min(left, most)
        if windows < most and wide == 0 and course.windows >= most:  # the last group may overlap the one before
            x -= (most - windows) * step
            y -= (most - windows) * pace
            left += most - windows
            windows = most
        if course.windows - left >= untouched:
            untouched = touch_batch(x, course, course.windows - left)
        for window in range(windows):
            done = 0
            while done < wide:
                take_nest(x + window * step + done * size, &all, unit * size, &nest, by, QUAD, format)
                put_results(&all.first, y + window * pace + done * stored, unit * stored, by, factor, results, QUAD,
                            format, finishes)
                done += QUAD * width
        done = wide
        while done < inner:
            if course.sweeps:
                sweep_to(&sweep, course, ((course.windows - left) * inner + done + unit) * size)
            done = min(done, inner - unit)  # the last vector may overlap the one before
            if is_common(by) and windows == QUAD // vectors_of(format):
                take_nest(x + done * size, &all, step, &nest, by, QUAD, format)
                put_results(&all.first, y + done * stored, pace, by, factor, results, QUAD, format, finishes)
            else:
                for window in range(windows):
                    take_nest(x + window * step + done * size, &all, 0, &nest, by, vectors_of(format), format)
                    put_results(&all.first, y + window * pace + done * stored, 0, by, factor, results,
                                vectors_of(format), format, finishes)
            done += unit
        x += windows * step
        y += windows * pace
        left -= windows
