"""Boxes: small windows along two axes, over channels side by side, whose numbers of taps are constants.

Four that share taps at a time, two neighbours of two rows: what they share is read once, and columns of it are combined
once. Others one at a time, where elements come from afar: the fewer instructions, the further a processor looks ahead.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t

from .elements cimport (
    copy_vector,
    fetch,
    float16_of_key,
    lanes_t,
    load_lanes,
    load_once,
    mean_float,
    narrow_bfloat16_halves,
    narrow_bfloat16_row,
    narrow_float16_row,
    quotient_double,
    store_lanes,
)
from .job cimport (
    BFLOAT16,
    BFLOAT16_EVEN,
    BFLOAT16_ODD,
    BFLOAT16_PAIRS,
    FLOAT16,
    PLAIN,
    Format,
)
from .reductions cimport MaxF32, MaxF64, MaxI16, SumF32, SumF64, combine, few, nothing, running_t

cdef enum:
    SIDE = 3     # taps of a box at most along each axis, as in tiling.py
    NEW = 2      # of a row that later boxes read first, or nearly so


cdef inline bint columns_first(const running_t* like) noexcept nogil:
    """Of equal floats the first in row-major order stays; integers and sums are combined along columns first."""
    return not (running_t is MaxF32 or running_t is MaxF64)


cdef inline running_t followed(running_t result, const running_t* x, Py_ssize_t hop, int taps) noexcept nogil:
    """The result of earlier taps and then of these, one after the other: T of up to SIDE."""
    result = combine(result, x[0])
    if taps > 1:
        result = combine(result, x[hop])
    return combine(result, x[2 * hop]) if taps > 2 else result


cdef inline running_t column(const running_t* top, const running_t* middle, const running_t* bottom,
                             int rows) noexcept nogil:
    cdef running_t result = top[0]
    if rows > 1:
        result = combine(result, middle[0])
    return combine(result, bottom[0]) if rows > 2 else result


cdef inline running_t of_box(const running_t* top, const running_t* middle, const running_t* bottom, Py_ssize_t hop,
                             int rows, int taps) noexcept nogil:
    cdef running_t result
    if columns_first(top):
        result = column(top, middle, bottom, rows)
        if taps > 1:
            result = combine(result, column(top + hop, middle + hop, bottom + hop, rows))
        if taps > 2:
            result = combine(result, column(top + 2 * hop, middle + 2 * hop, bottom + 2 * hop, rows))
        return result
    result = few(top, hop, taps)
    if rows > 1:
        result = followed(result, middle, hop, taps)
    if rows > 2:
        result = followed(result, bottom, hop, taps)
    return result


cdef inline void reduce_box(const char** line, Py_ssize_t hop, running_t* lanes, int rows, int taps, Format format,
                            int side) noexcept nogil:
    """lanes[side, side, vector] of neighbouring boxes, whose rows begin where `line` says."""
    cdef running_t[(SIDE + 1) * (SIDE + 1) * VECTOR] space
    cdef running_t* box = space
    cdef running_t* first[SIDE + 1]
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    cdef int row, tap
    if rows == 1:
        reduce_taps(line[0], lanes, hop, taps, format)
        return
    for row in range(SIDE + 1):
        first[row] = <running_t*> line[row] if format == PLAIN else box + row * (SIDE + 1) * width
    if format == PLAIN:
        hop //= <Py_ssize_t> sizeof(running_t)
    else:
        for row in range(rows + side - 1):
            for tap in range(taps + side - 1):
                widen(line[row] + tap * hop, first[row] + tap * width, format)
        hop = width
    for j in range(width):
        lanes[j] = of_box(first[0] + j, first[1] + j, first[2] + j, hop, rows, taps)
        if side == 2:
            # The compiler sees which taps are the same.
            lanes[width + j] = of_box(first[0] + hop + j, first[1] + hop + j, first[2] + hop + j, hop, rows, taps)
            lanes[2 * width + j] = of_box(first[1] + j, first[2] + j, first[3] + j, hop, rows, taps)
            lanes[3 * width + j] = of_box(first[1] + hop + j, first[2] + hop + j, first[3] + hop + j, hop, rows, taps)


cdef inline void reduce_pairs(const char** line, Py_ssize_t hop, running_t* even, running_t* odd, int rows, int taps,
                              int side) noexcept nogil:
    """As `reduce_box`, of bfloat16 in pairs."""
    cdef char[(SIDE + 1) * (SIDE + 1) * VECTOR] space
    cdef char* pairs = space
    cdef const char* row_of_pairs[SIDE + 1]
    cdef int row, tap
    for row in range(rows + side - 1):
        for tap in range(taps + side - 1):
            load_once(line[row] + tap * hop, pairs + (row * (SIDE + 1) + tap) * VECTOR)
        row_of_pairs[row] = pairs + row * (SIDE + 1) * VECTOR
    reduce_box(row_of_pairs, VECTOR, even, rows, taps, BFLOAT16_EVEN, side)
    reduce_box(row_of_pairs, VECTOR, odd, rows, taps, BFLOAT16_ODD, side)


cdef inline running_t divisor_like(const running_t* like, double divisor) noexcept nogil:
    """A divisor in the precision of a sum; anything else is not divided."""
    cdef running_t result
    if running_t is SumF32:
        result.value = <float> divisor
    elif running_t is SumF64:
        result.value = divisor
    else:
        result = nothing(like[0])
    return result


cdef inline running_t inverse(running_t divisor) noexcept nogil:
    if running_t is SumF32 or running_t is SumF64:
        divisor.value = 1 / divisor.value
    return divisor


cdef inline void put_lanes(const running_t* lanes, const running_t* odd, char* y, const running_t* divisors,
                           const running_t* factors, Py_ssize_t pace, Format format, bint finishes,
                           Extremes* seen) noexcept nogil:
    """A vector of running values, or a pair, or the elements that they become; lane j is divided by
    divisors[j * pace], and factors are one over these."""
    cdef float[VECTOR] floats, odd_floats
    cdef double[VECTOR] doubles
    cdef uint16_t[VECTOR] halves
    cdef Py_ssize_t j
    if running_t is MaxI16:
        if finishes:
            note_keys(lanes, <int16_t*> seen.highest, <uint16_t*> seen.lowest, nans_of(format))
            for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                halves[j] = float16_of_key(lanes[j].value, nans_of(format))
            copy_vector(y, halves)
            return
    elif running_t is SumF32:
        if finishes:
            for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                floats[j] = mean_float(lanes[j].value, divisors[j * pace].value, factors[j * pace].value)
            if format == BFLOAT16_PAIRS:
                for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                    odd_floats[j] = mean_float(odd[j].value, divisors[j * pace].value, factors[j * pace].value)
                narrow_bfloat16_halves(floats, odd_floats, halves)
                note_magnitudes(halves, <uint16_t*> seen.highest, <uint16_t*> seen.lowest)
                copy_vector(y, halves)
                return
            note_magnitudes(<const uint32_t*> floats, <uint32_t*> seen.highest, <uint32_t*> seen.lowest)
            if format == FLOAT16:
                narrow_float16_row(floats, <uint16_t*> y, VECTOR // <int> sizeof(running_t))
            elif format == BFLOAT16:
                narrow_bfloat16_row(floats, <uint16_t*> y, VECTOR // <int> sizeof(running_t))
            else:
                copy_vector(y, floats)
            return
    elif running_t is SumF64:
        if finishes:
            for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
                doubles[j] = quotient_double(lanes[j].value, divisors[j * pace].value, factors[j * pace].value)
            note_magnitudes(<const uint64_t*> doubles, <uint64_t*> seen.highest, <uint64_t*> seen.lowest)
            copy_vector(y, doubles)
            return
    copy_vector(y, lanes)
    if format == BFLOAT16_PAIRS:
        copy_vector(y + VECTOR, odd)


cdef struct Results:
    lanes_t highest, lowest  # as `Extremes`


cdef inline Results no_results() noexcept nogil:
    cdef Extremes seen = no_extremes()
    cdef Results results
    results.highest, results.lowest = load_lanes(seen.highest), load_lanes(seen.lowest)
    return results


cdef inline bint any_odd_results(const Results* results, const running_t* like, Format format) noexcept nogil:
    cdef Extremes seen
    store_lanes(results.highest, seen.highest)
    store_lanes(results.lowest, seen.lowest)
    return are_odd(&seen, like, format)


cdef inline void note_elements(const lanes_t* lanes, Results* results, const running_t* like) noexcept nogil:
    """Elements of maxima that are not combined in order."""
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    cdef Extremes seen
    if not columns_first(like):
        store_lanes(lanes[0], values)
        store_lanes(results.lowest, seen.lowest)
        if running_t is MaxF32:
            note_signed(<const int32_t*> values, <int32_t*> seen.lowest)
        elif running_t is MaxF64:
            note_signed(<const int64_t*> values, <int64_t*> seen.lowest)
        results.lowest = load_lanes(seen.lowest)


cdef inline void note_maxima(const lanes_t* lanes, Results* results, const running_t* like) noexcept nogil:
    """Maxima that were not combined in order."""
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    cdef Extremes seen
    if not columns_first(like):
        store_lanes(lanes[0], values)
        store_lanes(results.highest, seen.highest)
        if running_t is MaxF32:
            note_float_maxima(<const uint32_t*> values, <uint32_t*> seen.highest)
        elif running_t is MaxF64:
            note_float_maxima(<const uint64_t*> values, <uint64_t*> seen.highest)
        results.highest = load_lanes(seen.highest)


cdef inline void put_result(const lanes_t* lanes, const lanes_t* odd, char* y, const running_t* by,
                            const running_t* factor, Results* results, Format format, bint finishes) noexcept nogil:
    """A vector of running values, or a pair, or the elements that they become."""
    cdef running_t[VECTOR] space, odd_space
    cdef running_t* values = space
    cdef running_t* odd_values = odd_space
    cdef Extremes seen
    store_lanes(lanes[0], values)
    store_lanes(odd[0], odd_values)
    store_lanes(results.highest, seen.highest)
    store_lanes(results.lowest, seen.lowest)
    put_lanes(values, odd_values, y, by, factor, 0, format, finishes, &seen)
    results.highest = load_lanes(seen.highest)
    results.lowest = load_lanes(seen.lowest)


cdef inline void boxes(const char* x, char* y, const Course* course, const running_t* by, const running_t* factor,
                       Results* results, int rows, int taps, Format format, int side, bint finishes) noexcept nogil:
    """A row of windows or, with side 2, two rows of two windows at least. inner takes a vector at least."""
    cdef running_t[4 * VECTOR] space, odd_space  # apart from y, so that nothing has to be known about where y is
    cdef running_t* lanes = space
    cdef running_t* odd = odd_space
    cdef const char* line[SIDE + 1]
    cdef const char* at[SIDE + 1]
    cdef lanes_t result, odd_result
    cdef char* target
    cdef Py_ssize_t window = 0, part, done, box, width = VECTOR // <Py_ssize_t> sizeof(running_t), inner = course.inner
    cdef Py_ssize_t unit = width * vectors_of(format), ahead, advance = side, end, lead = 0, size = size_of(by, format)
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t)
    cdef Py_ssize_t hop = course.across, pace = course.pace, below = course.below
    cdef bint fetches = course.fetches, sweeps = course.sweeps
    cdef Py_ssize_t untouched = 0 if course.batch else course.windows
    cdef Sweep sweep = sweep_from(x, course)
    cdef int row, tap
    if format == PLAIN and side == 2 and inner >= FEW * unit and pace % VECTOR == 0 and below % VECTOR == 0:
        # A vector across two lines is stored in two steps, which shows where four rows of results take turns.
        lead = (-<Py_ssize_t> y & (unit * stored - 1)) // stored
    for row in range(SIDE + 1):
        line[row] = x + row * course.down
    while advance > 0:
        if window >= untouched:
            untouched = touch_batch(line[0], course, window)
        part, ahead = 0, ahead_of(course, window)
        while part >= 0:
            done, target, end = part, y + part * stored, unit if lead and part == 0 else inner
            for row in range(rows + side - 1):
                at[row] = line[row] + part * size
            while done <= end - unit:
                if side == 1 and sweeps:
                    sweep_to(&sweep, course, (window * inner + done + unit) * size)
                elif fetches:
                    # Two rows of the next boxes are new, or all of one row.
                    for row in range(max(rows + side - 3, 0), rows + side - 1):
                        for tap in range(min(taps, NEW) if rows > 1 else taps):
                            fetch(at[row] + ahead + tap * hop)
                if format == BFLOAT16_PAIRS:
                    reduce_pairs(at, hop, lanes, odd, rows, taps, side)
                else:
                    reduce_box(at, hop, lanes, rows, taps, format, side)
                for row in range(side):
                    for tap in range(side):
                        box = (row * side + tap) * width
                        result = load_lanes(lanes + box)
                        odd_result = load_lanes(odd + box) if format == BFLOAT16_PAIRS else result
                        put_result(&result, &odd_result, target + row * below + tap * pace, by, factor, results, format,
                                   finishes)
                for row in range(rows + side - 1):
                    at[row] += unit * size
                target += unit * stored
                done += unit
            # The last vector overlaps the one before. (A minimum in each step costs half as much again.)
            part = lead if lead and part == 0 else inner - unit if done < inner else -1
        advance = min(side, course.windows - side - window)  # the last pair may overlap the one before
        for row in range(SIDE + 1):
            line[row] += advance * course.step
        y += advance * pace
        window += advance


cdef inline void some_boxes(const char* x, char* y, const Course* course, const running_t* by, const running_t* factor,
                            Results* results, Format format, int side, bint finishes) noexcept nogil:
    # Constants let the compiler unroll a box.
    if side == 1 and course.rows == 1 and course.taps == 2:
        boxes(x, y, course, by, factor, results, 1, 2, format, side, finishes)
    elif side == 1 and course.rows == 1 and course.taps == 3:
        boxes(x, y, course, by, factor, results, 1, 3, format, side, finishes)
    elif side == 1 and course.rows == 1:
        boxes(x, y, course, by, factor, results, 1, 4, format, side, finishes)
    elif course.rows == 2 and course.taps == 2:
        boxes(x, y, course, by, factor, results, 2, 2, format, side, finishes)
    elif course.rows == 2:
        boxes(x, y, course, by, factor, results, 2, 3, format, side, finishes)
    elif course.taps == 2:
        boxes(x, y, course, by, factor, results, 3, 2, format, side, finishes)
    else:
        boxes(x, y, course, by, factor, results, 3, 3, format, side, finishes)


cdef inline bint is_box(const Course* course) noexcept nogil:
    """Whether `some_boxes` takes windows one at a time."""
    return (course.planes == 1 and (1 < course.rows <= SIDE and 1 < course.taps <= SIDE
                                    or course.rows == 1 and 1 < course.taps <= SIDE + 1))
