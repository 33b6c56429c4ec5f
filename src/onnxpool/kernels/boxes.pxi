"""Boxes: over channels that lie side by side, windows are reduced from elements to a vector of channels at once.

Windows of few taps along the last two axes, or three, or any along the last. Nothing goes to memory and back on the
way: elements are widened in registers, and where no axis is left, sums become the elements of the result. A sum is
combined along its columns, then of these, then of the planes; a maximum of floats in row-major order.
"""
from libc.stdint cimport int16_t, uint16_t
from libc.string cimport memcpy

from .elements cimport (
    copy_vector,
    fetch,
    float16_of_key,
    keys_of_row,
    load_once,
    mean_float,
    narrow_bfloat16_halves,
    narrow_bfloat16_row,
    narrow_float16_row,
    quotient_double,
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
    NEAR,
    PLAIN,
    SIGNED_BYTES,
    Distance,
    Format,
)
from .reductions cimport MaxF32, MaxF64, MaxI8, MaxI16, MaxU8, SumF32, SumF64, SumI32, combine, few, nothing, running_t

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


cdef struct Boxes:
    Py_ssize_t windows, inner     # values: y[windows, inner]; with side 2 there are two windows at least
    Py_ssize_t step, deep, pitch, hop  # bytes in x from window to window, and from plane to plane of taps, row to row,
    Py_ssize_t planes, rows, taps      # tap to tap
    Py_ssize_t pace, below        # bytes in y from window to window, and to the next row; 0 if it is not taken as well
    double divisor
    Distance far, asks            # as of the call
    Py_ssize_t left, turn         # bytes in x to the end of the row, and from there to the next row of windows


cdef inline Py_ssize_t ahead_of(const Boxes* these, Py_ssize_t window) noexcept nogil:
    """How far before they are read lines are fetched: behind the end of a row those of the next one."""
    return AHEAD if window * these.step + AHEAD < these.left else AHEAD + these.turn


cdef inline void fetch_taps(const char* x, Py_ssize_t hop, int taps) noexcept nogil:
    cdef int tap
    for tap in range(taps):
        fetch(x + tap * hop)


cdef inline bint boxes(const char* x, char* y, const Boxes* these, running_t* like, int rows, int taps,
                       Format format, int side, bint finishes) noexcept nogil:
    """y[windows, inner] of boxes; with side 2 also those of the next row. inner takes a vector at least. True if any
    finished result is odd."""
    cdef running_t[4 * VECTOR] space, odd_space  # apart from y, so that nothing has to be known about where y is
    cdef running_t* lanes = space
    cdef running_t* odd = odd_space
    cdef Extremes seen = no_extremes()
    cdef const char* line[SIDE + 1]
    cdef const char* at[SIDE + 1]
    cdef char* target
    cdef Py_ssize_t window = 0, part, done, box, width = VECTOR // <Py_ssize_t> sizeof(running_t), inner = these.inner
    cdef Py_ssize_t unit = width * vectors_of(format), ahead, advance = side, end, lead = 0
    cdef Py_ssize_t size = size_of(like, format)
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t)
    cdef Py_ssize_t hop = these.hop, pace = these.pace, below = these.below
    # No processor looks far enough ahead where elements are widened, or follows the short streams of taps that windows
    # do not share.
    cdef bint fetches = (these.asks if rows > 1 and format == PLAIN else these.far) != NEAR and (
        rows > 1 or these.step >= taps * these.hop)
    cdef running_t by = divisor_like(like, these.divisor), factor = divisor_like(like, 1 / these.divisor)
    cdef int row, tap
    if format == PLAIN and side == 2 and inner >= FEW * unit and pace % VECTOR == 0 and below % VECTOR == 0:
        # A vector across two lines is stored in two steps, which shows where four rows of results take turns.
        lead = (-<Py_ssize_t> y & (unit * stored - 1)) // stored
    for row in range(SIDE + 1):
        line[row] = x + row * these.pitch
    while advance > 0:
        part, ahead = 0, ahead_of(these, window)
        while part >= 0:
            done, target, end = part, y + part * stored, unit if lead and part == 0 else inner
            for row in range(rows + side - 1):
                at[row] = line[row] + part * size
            while done <= end - unit:
                if fetches:
                    # Two rows of the next boxes are new, or all of one row.
                    for row in range(max(rows + side - 3, 0), rows + side - 1):
                        fetch_taps(at[row] + ahead, hop, min(taps, NEW) if rows > 1 else taps)
                if format == BFLOAT16_PAIRS:
                    reduce_pairs(at, hop, lanes, odd, rows, taps, side)
                else:
                    reduce_box(at, hop, lanes, rows, taps, format, side)
                for row in range(side):
                    for tap in range(side):
                        box = (row * side + tap) * width
                        put_lanes(lanes + box, odd + box, target + row * below + tap * pace, &by, &factor, 0, format,
                                  finishes, &seen)
                for row in range(rows + side - 1):
                    at[row] += unit * size
                target += unit * stored
                done += unit
            # The last vector overlaps the one before. (A minimum in each step costs half as much again.)
            part = lead if lead and part == 0 else inner - unit if done < inner else -1
        advance = min(side, these.windows - side - window)  # the last pair may overlap the one before
        for row in range(SIDE + 1):
            line[row] += advance * these.step
        y += advance * pace
        window += advance
    return finishes and are_odd(&seen, like, format)


cdef inline bint long_lines(const char* x, char* y, const Boxes* these, running_t* held, Format format,
                            bint finishes) noexcept nogil:
    """As `boxes` for windows of one row and more than FEW taps."""
    cdef running_t* lanes
    cdef Extremes seen = no_extremes()
    cdef Py_ssize_t window, done, unit, units, width = VECTOR // <Py_ssize_t> sizeof(running_t), inner = these.inner
    cdef Py_ssize_t size = size_of(held, format)
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t), full = vectors_of(format) * width
    cdef running_t by = divisor_like(held, these.divisor), factor = divisor_like(held, 1 / these.divisor)
    for window in range(these.windows):
        done = 0
        while done < inner:
            done = min(done, inner - full)  # the last vector overlaps the one before
            units = min(inner - done, CHUNK) // full
            cascade_units(x + done * size, these.hop, these.taps, held, units, these.asks, format)
            for unit in range(units):
                lanes = held + unit * full
                put_lanes(lanes, lanes + width, y + (done + unit * full) * stored, &by, &factor, 0, format,
                          finishes, &seen)
            done += units * full
        x += these.step
        y += these.pace
    return finishes and are_odd(&seen, held, format)


cdef inline void deep_box(const char* x, const Boxes* these, running_t* box, int planes, int lines, int taps,
                          Py_ssize_t ahead, bint fetches, Format format) noexcept nogil:
    """`vectors_of` vectors of a box of several planes; lines are columns, and taps rows, where these come first."""
    cdef running_t[2 * VECTOR] line_space, plane_space
    cdef running_t* lanes = line_space
    cdef running_t* face = plane_space
    cdef Py_ssize_t width = vectors_of(format) * (VECTOR // <Py_ssize_t> sizeof(running_t))
    cdef Py_ssize_t hop = these.pitch if columns_first(box) else these.hop
    cdef Py_ssize_t pitch = these.hop if columns_first(box) else these.pitch
    cdef const char* first
    cdef int plane, line
    for plane in range(planes):
        first = x + plane * these.deep
        for line in range(lines):
            if fetches and columns_first(box) and line < NEW:
                fetch_taps(first + ahead, hop, taps)
            elif fetches and not columns_first(box):
                fetch_taps(first + ahead, hop, min(taps, NEW))
            reduce_taps(first, lanes, hop, taps, format)
            if line:
                merge(face, lanes, width)
            else:
                memcpy(face, lanes, vectors_of(format) * VECTOR)
            first += pitch
        if plane:
            merge(box, face, width)
        else:
            memcpy(box, face, vectors_of(format) * VECTOR)


cdef inline bint deep_boxes(const char* x, char* y, const Boxes* source, running_t* like, int planes, int lines,
                            int taps, Format format, bint finishes) noexcept nogil:
    """As `boxes` for windows of several planes, along three axes."""
    cdef running_t[2 * VECTOR] space
    cdef running_t* lanes = space
    cdef Extremes seen = no_extremes()
    cdef Boxes these = source[0]  # which no store to y can change
    cdef running_t by = divisor_like(like, these.divisor), factor = divisor_like(like, 1 / these.divisor)
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), unit = width * vectors_of(format)
    cdef Py_ssize_t size = size_of(like, format)
    cdef Py_ssize_t stored = size if finishes else sizeof(running_t), window, part, done, ahead
    for window in range(these.windows):
        part, ahead = 0, ahead_of(&these, window)
        while part >= 0:
            done = part
            while done <= these.inner - unit:
                deep_box(x + done * size, &these, lanes, planes, lines, taps, ahead, these.asks != NEAR, format)
                put_lanes(lanes, lanes + width, y + done * stored, &by, &factor, 0, format, finishes, &seen)
                done += unit
            part = these.inner - unit if part == 0 and these.inner % unit else -1  # as in `boxes`
        x += these.step
        y += these.pace
    return finishes and are_odd(&seen, like, format)


cdef inline bint some_boxes(const char* x, char* y, const Boxes* these, running_t* work, Format format,
                            bint finishes) noexcept nogil:
    cdef int lines = these.taps if columns_first(work) else these.rows
    cdef int taps = these.rows if columns_first(work) else these.taps
    # Constants let the compiler unroll a box. Up to 3 rows or planes T(n) adds one after the other.
    # Plain values wait for memory: there a loop over the rows spreads what is fetched.
    if format != PLAIN and these.planes == 2 and these.rows == 2 and these.taps == 2:
        return deep_boxes(x, y, these, work, 2, 2, 2, format, finishes)
    elif format != PLAIN and these.planes == 3 and these.rows == 3 and these.taps == 3:
        return deep_boxes(x, y, these, work, 3, 3, 3, format, finishes)
    elif these.planes > 1 and taps == 1:
        return deep_boxes(x, y, these, work, these.planes, lines, 1, format, finishes)
    elif these.planes > 1 and taps == 2:
        return deep_boxes(x, y, these, work, these.planes, lines, 2, format, finishes)
    elif these.planes > 1:
        return deep_boxes(x, y, these, work, these.planes, lines, 3, format, finishes)
    elif these.below:
        if these.rows == 2 and these.taps == 2:
            return boxes(x, y, these, work, 2, 2, format, 2, finishes)
        elif these.rows == 2:
            return boxes(x, y, these, work, 2, 3, format, 2, finishes)
        elif these.taps == 2:
            return boxes(x, y, these, work, 3, 2, format, 2, finishes)
        else:
            return boxes(x, y, these, work, 3, 3, format, 2, finishes)
    elif these.rows == 1 and these.taps == 1:
        return boxes(x, y, these, work, 1, 1, format, 1, finishes)
    elif these.rows == 1 and these.taps == 2:
        return boxes(x, y, these, work, 1, 2, format, 1, finishes)
    elif these.rows == 1 and these.taps == 3:
        return boxes(x, y, these, work, 1, 3, format, 1, finishes)
    elif these.rows == 1 and these.taps == 4:
        return boxes(x, y, these, work, 1, 4, format, 1, finishes)
    elif these.rows == 1 and these.taps == 5:
        return boxes(x, y, these, work, 1, 5, format, 1, finishes)
    elif these.rows == 1 and these.taps == 6:
        return boxes(x, y, these, work, 1, 6, format, 1, finishes)
    elif these.rows == 1 and these.taps == 7:
        return boxes(x, y, these, work, 1, 7, format, 1, finishes)
    elif these.rows == 1 and these.taps == 8:
        return boxes(x, y, these, work, 1, 8, format, 1, finishes)
    elif these.rows == 1:
        return long_lines(x, y, these, work, format, finishes)
    elif these.rows == 2 and these.taps == 1:
        return boxes(x, y, these, work, 2, 1, format, 1, finishes)
    elif these.rows == 2 and these.taps == 2:
        return boxes(x, y, these, work, 2, 2, format, 1, finishes)
    elif these.rows == 2:
        return boxes(x, y, these, work, 2, 3, format, 1, finishes)
    elif these.taps == 1:
        return boxes(x, y, these, work, 3, 1, format, 1, finishes)
    elif these.taps == 2:
        return boxes(x, y, these, work, 3, 2, format, 1, finishes)
    else:
        return boxes(x, y, these, work, 3, 3, format, 1, finishes)


cdef bint boxes_of(const char* x, char* y, const Boxes* these, running_t* work, Format format,
                   bint finishes) noexcept nogil:
    cdef Py_ssize_t j
    cdef running_t* values = <running_t*> y
    if not these.planes or not these.rows or not these.taps:
        for j in range(these.windows * these.inner):
            values[j] = nothing(values[j])
        return False
    elif running_t is MaxI16:
        if format == FLOAT16_KEYS and finishes:
            return some_boxes(x, y, these, work, FLOAT16_KEYS, True)
        elif format == BFLOAT16_KEYS and finishes:
            return some_boxes(x, y, these, work, BFLOAT16_KEYS, True)
        elif format == FLOAT16_KEYS:
            return some_boxes(x, y, these, work, FLOAT16_KEYS, False)
        elif format == BFLOAT16_KEYS:
            return some_boxes(x, y, these, work, BFLOAT16_KEYS, False)
        else:
            return some_boxes(x, y, these, work, PLAIN, False)
    elif running_t is SumF32:
        if format == BFLOAT16_PAIRS and finishes:
            return some_boxes(x, y, these, work, BFLOAT16_PAIRS, True)
        elif format == BFLOAT16_PAIRS:
            return some_boxes(x, y, these, work, BFLOAT16_PAIRS, False)
        elif format == FLOAT16 and finishes:
            return some_boxes(x, y, these, work, FLOAT16, True)
        elif format == BFLOAT16 and finishes:
            return some_boxes(x, y, these, work, BFLOAT16, True)
        elif finishes:
            return some_boxes(x, y, these, work, PLAIN, True)
        elif format == FLOAT16:
            return some_boxes(x, y, these, work, FLOAT16, False)
        elif format == BFLOAT16:
            return some_boxes(x, y, these, work, BFLOAT16, False)
        else:
            return some_boxes(x, y, these, work, PLAIN, False)
    elif running_t is SumI32:
        if format == BYTES:
            return some_boxes(x, y, these, work, BYTES, False)
        elif format == SIGNED_BYTES:
            return some_boxes(x, y, these, work, SIGNED_BYTES, False)
        else:
            return some_boxes(x, y, these, work, PLAIN, False)
    elif running_t is MaxF32:
        if format == FLOAT16:
            return some_boxes(x, y, these, work, FLOAT16, False)
        elif format == BFLOAT16:
            return some_boxes(x, y, these, work, BFLOAT16, False)
        else:
            return some_boxes(x, y, these, work, PLAIN, False)
    elif running_t is SumF64:
        if finishes:
            return some_boxes(x, y, these, work, PLAIN, True)
        else:
            return some_boxes(x, y, these, work, PLAIN, False)
    else:
        return some_boxes(x, y, these, work, PLAIN, False)
