"""Strips: small windows of the last two axes, one row of them after the other, where channels do not fill vectors.

What the first of the two axes leaves of a row goes to memory with neutral values where the padding is, so that every
window has all its taps, and is taken by the other axis a row later: no vector waits for two that were just stored, and
the next row comes while this one is reduced. Columns come first, from elements where they lie; where that order could
show in a maximum of floats, of which the first of equals stays, rows do.
"""
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from .elements cimport INFINITE_DOUBLE, INFINITE_FLOAT, copy_vector, fetch_lines, part
from .geometry cimport first_tap, taps_inside
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_SQUARES,
    BYTES,
    FLOAT16,
    FLOAT16_KEYS,
    FLOAT16_SQUARES,
    FLOAT32_SQUARES,
    FLOAT64_SQUARES,
    PLAIN,
    SIGNED_BYTES,
    Format,
    parts,
)
from .reductions cimport MaxF32, MaxF64, MaxI16, SumF32, SumF64, SumI32, few, neutral, nothing, running_t


cdef inline void add_columns(const char* x, running_t* y, Py_ssize_t windows, Py_ssize_t row, Py_ssize_t step,
                             Py_ssize_t hop, int taps, Format format) noexcept nogil:
    """y[windows, row] of windows and taps that lie so many bytes apart."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), whole = row // width, last = row - width, j
    cdef Py_ssize_t size = size_of(y, format), window
    if whole == 0:  # a vector is more than a row: what is written behind it is the next row's
        for window in range(windows - 1):
            reduce_taps(x + window * step, lanes, hop, taps, format)
            copy_vector(y + window * row, lanes)
        reduce_taps(x + (windows - 1) * step, lanes, hop, taps, format)
        memcpy(y + (windows - 1) * row, lanes, row * sizeof(running_t))
        return
    for window in range(windows):
        for j in range(whole):
            reduce_taps(x + j * width * size, lanes, hop, taps, format)
            copy_vector(y + j * width, lanes)
        if row % width:  # the last vector overlaps the one before
            reduce_taps(x + last * size, lanes, hop, taps, format)
            copy_vector(y + last, lanes)
        x += step
        y += row


cdef inline void some_columns(const char* x, running_t* y, Py_ssize_t windows, Py_ssize_t row, Py_ssize_t step,
                              Py_ssize_t hop, Py_ssize_t taps, Format format) noexcept nogil:
    cdef Py_ssize_t j
    # Constants let the compiler unroll them.
    if taps == 0:
        for j in range(windows * row):
            y[j] = nothing(y[j])
    elif taps == 1:
        add_columns(x, y, windows, row, step, hop, 1, format)
    elif taps == 2:
        add_columns(x, y, windows, row, step, hop, 2, format)
    else:
        add_columns(x, y, windows, row, step, hop, 3, format)


cdef void columns_of(const char* x, running_t* y, Py_ssize_t windows, Py_ssize_t row, Py_ssize_t step, Py_ssize_t hop,
                     Py_ssize_t taps, Format format) noexcept nogil:
    cdef Py_ssize_t size = size_of(y, format)
    if step == row * size:
        windows, row = 1, windows * row  # which lie side by side
    if running_t is MaxI16:
        if format == FLOAT16_KEYS:
            some_columns(x, y, windows, row, step, hop, taps, FLOAT16_KEYS)
            return
        elif format == BFLOAT16_KEYS:
            some_columns(x, y, windows, row, step, hop, taps, BFLOAT16_KEYS)
            return
    elif running_t is SumF32:
        if format == FLOAT16:
            some_columns(x, y, windows, row, step, hop, taps, FLOAT16)
            return
        elif format == BFLOAT16:
            some_columns(x, y, windows, row, step, hop, taps, BFLOAT16)
            return
    elif running_t is SumI32:
        if format == BYTES:
            some_columns(x, y, windows, row, step, hop, taps, BYTES)
            return
        elif format == SIGNED_BYTES:
            some_columns(x, y, windows, row, step, hop, taps, SIGNED_BYTES)
            return
    elif running_t is SumF64:
        if format == FLOAT16_SQUARES:
            some_columns(x, y, windows, row, step, hop, taps, FLOAT16_SQUARES)
            return
        elif format == BFLOAT16_SQUARES:
            some_columns(x, y, windows, row, step, hop, taps, BFLOAT16_SQUARES)
            return
        elif format == FLOAT32_SQUARES:
            some_columns(x, y, windows, row, step, hop, taps, FLOAT32_SQUARES)
            return
        elif format == FLOAT64_SQUARES:
            some_columns(x, y, windows, row, step, hop, taps, FLOAT64_SQUARES)
            return
    some_columns(x, y, windows, row, step, hop, taps, PLAIN)


cdef struct Strip:
    Py_ssize_t row, windows  # values of a row of elements and of a row of windows
    Py_ssize_t left          # values of padding before a row
    Py_ssize_t taps, step, hop  # along a row; from window to window and tap to tap in values
    Py_ssize_t pitch         # values from one of two rows held to the other
    bint asks, in_turn       # for lines; whether rows of taps are read one after the other
    const char* divisors     # of the first row of windows,
    Py_ssize_t factors, pace  # and bytes from there to one over each, and to those of the next row


cdef inline void add_rows(const char* x, running_t* y, Py_ssize_t row, Py_ssize_t hop, Py_ssize_t taps,
                          Format format) noexcept nogil:
    """As `some_columns` for one window, one row of taps after the other."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), size = size_of(y, format), tap, j
    for tap in range(taps):
        for j in range(row // width):
            reduce_taps(x + tap * hop + j * width * size, lanes, 0, 1, format)
            if tap:
                merge(y + j * width, lanes, width)
            else:
                copy_vector(y + j * width, lanes)


cdef inline void hold_row(const char* x, running_t* y, Py_ssize_t row, Py_ssize_t hop, Py_ssize_t taps, bint in_turn,
                          Format format) noexcept nogil:
    """A row that one axis leaves, and neutral values behind it."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), done = 0, j
    if in_turn and taps > 1 and row >= width:
        add_rows(x, y, row, hop, taps, format)
        done = row - width if row % width else row  # the last vector overlaps the one before
    if done < row:
        some_columns(x + done * size_of(y, format), y + done, 1, row - done, 0, hop, taps, format)
    for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
        lanes[j] = neutral(lanes[j])
    copy_vector(y + row, lanes)


cdef inline void windows_of_vector(const running_t* x, running_t* lanes, Py_ssize_t hop, int taps,
                                   int step) noexcept nogil:
    cdef running_t[3 * VECTOR] space
    cdef running_t* box = space
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), j
    if step == 2:
        part(x, box, box + width, sizeof(running_t))
        if taps > 2:
            part(x + 2, box + 2 * width, lanes, sizeof(running_t))
        x, hop = box, width
    for j in range(width):
        lanes[j] = few(x + j, hop, taps)


cdef inline void windows_of_row(const running_t* x, char* y, const Strip* strip, Py_ssize_t room, int taps, int step,
                                Format format, bint finishes) noexcept nogil:
    """A row of windows; behind y are so many bytes that may be written."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef char[VECTOR] part
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), n = strip.windows, whole = n // width, vector
    cdef Py_ssize_t stored = size_of(x, format) if finishes else <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t hop = 1 if step > 1 else strip.hop, last = max(n - width, 0)
    cdef Extremes seen = no_extremes()  # not asked: a row shorter than a vector has lanes that are no results
    cdef const running_t* by = <const running_t*> strip.divisors
    cdef const running_t* factors = <const running_t*> (strip.divisors + strip.factors)
    for vector in range(whole):
        windows_of_vector(x + vector * width * step, lanes, hop, taps, step)
        put_lanes(lanes, lanes, y + vector * width * stored, by + vector * width, factors + vector * width, 1, format,
                  finishes, &seen)
    if n % width:  # the last vector overlaps the one before
        windows_of_vector(x + last * step, lanes, hop, taps, step)
        if whole or room >= VECTOR:
            put_lanes(lanes, lanes, y + last * stored, by + last, factors + last, 1, format, finishes, &seen)
        else:
            put_lanes(lanes, lanes, part, by, factors, 1, format, finishes, &seen)
            memcpy(y, part, n * stored)


cdef inline void columns_then_rows(const char* x, char* y, const Side* down, const Strip* given, running_t* held,
                                   int taps, int step, Format format, bint finishes) noexcept nogil:
    """y[windows down, windows across] of a plane: the columns of one row of windows are held while those of the row
    before become its windows."""
    cdef Side rows = down[0]  # which no store can change
    cdef Strip strip = given[0]
    cdef Py_ssize_t window = rows.span.begin, end = rows.span.end, row = 0, hop = rows.axis.hop * rows.x
    cdef Py_ssize_t stored = size_of(held, format) if finishes else <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t pace = strip.windows * stored, room = (end - window) * pace
    cdef running_t* first = held - strip.left
    cdef Py_ssize_t fresh = rows.axis.step * rows.x  # bytes that no earlier row of windows has read
    cdef Py_ssize_t lines = parts(fresh, LINE) if strip.asks and fresh <= 4 * AHEAD else 0
    hold_row(first_of(x, &rows, window), held, strip.row, hop, taps_inside(&rows.axis, window), strip.in_turn, format)
    while window < end:
        window += 1
        if window < end:
            fetch_lines(first_of(x, &rows, window) + AHEAD, lines)
            hold_row(first_of(x, &rows, window), held + (row + 1) % 2 * strip.pitch, strip.row, hop,
                     taps_inside(&rows.axis, window), strip.in_turn, format)
        windows_of_row(first + row % 2 * strip.pitch, y, &strip, room, taps, step, format, finishes)
        y += pace
        room -= pace
        strip.divisors += strip.pace
        row += 1


cdef inline void rows_then_columns(const char* x, running_t* y, const Side* down, const Strip* given, running_t* held,
                                   running_t* lines, int taps, int step) noexcept nogil:
    """Of plain values."""
    cdef Side rows = down[0]
    cdef Strip strip = given[0]
    cdef Py_ssize_t n = strip.windows, height = rows.span.high - rows.span.low, window, row
    cdef running_t* first = held - strip.left
    hold_row(x, held, strip.row, 0, 1, False, PLAIN)
    for row in range(height):
        if row + 1 < height:
            hold_row(x + (row + 1) * rows.x, held + (row + 1) % 2 * strip.pitch, strip.row, 0, 1, False, PLAIN)
        windows_of_row(first + row % 2 * strip.pitch, <char*> (lines + row * n), &strip, VECTOR, taps, step, PLAIN,
                       False)
    for window in range(rows.span.begin, rows.span.end):
        some_columns(<const char*> (lines + (first_tap(&rows.axis, window) - rows.span.low) * n), y, 1, n, 0,
                     rows.axis.hop * n * <Py_ssize_t> sizeof(running_t), taps_inside(&rows.axis, window), PLAIN)
        y += n


cdef inline bint odd_maximum(const char* x, const running_t* y, const Side* rows, const Strip* strip) noexcept nogil:
    """Whether the order of taps may show: among zeros, if some are negative, and among NaNs."""
    cdef Py_ssize_t row
    if running_t is MaxF32:
        if odd_words(<const uint32_t*> y, (rows.span.end - rows.span.begin) * strip.windows, INFINITE_FLOAT):
            for row in range(rows.span.high - rows.span.low):
                if odd_elements(<const uint32_t*> (x + row * rows.x), strip.row, INFINITE_FLOAT):
                    return True
    elif running_t is MaxF64:
        if odd_words(<const uint64_t*> y, (rows.span.end - rows.span.begin) * strip.windows, INFINITE_DOUBLE):
            for row in range(rows.span.high - rows.span.low):
                if odd_elements(<const uint64_t*> (x + row * rows.x), strip.row, INFINITE_DOUBLE):
                    return True
    return False


cdef inline void strip_rows(const char* x, char* y, const Side* rows, const Strip* strip, running_t* held,
                            running_t* lines, int taps, int step, Format format, bint finishes) noexcept nogil:
    columns_then_rows(x, y, rows, strip, held, taps, step, format, finishes)
    if odd_maximum(x, <const running_t*> y, rows, strip):
        rows_then_columns(x, <running_t*> y, rows, strip, held, lines, taps, step)


cdef inline void some_rows(const char* x, char* y, const Side* rows, const Strip* strip, running_t* held,
                           running_t* lines, Format format, bint finishes) noexcept nogil:
    # Constants let the compiler keep windows in registers.
    if strip.taps == 2 and strip.step == 1:
        strip_rows(x, y, rows, strip, held, lines, 2, 1, format, finishes)
    elif strip.taps == 2:
        strip_rows(x, y, rows, strip, held, lines, 2, 2, format, finishes)
    elif strip.step == 1:
        strip_rows(x, y, rows, strip, held, lines, 3, 1, format, finishes)
    else:
        strip_rows(x, y, rows, strip, held, lines, 3, 2, format, finishes)


cdef void rows_of_strip(const char* x, char* y, const Side* rows, const Strip* strip, running_t* held,
                        running_t* lines, Format format, bint finishes) noexcept nogil:
    """y[windows of both axes, inner] of a plane, of running values or, if it finishes, of elements."""
    if running_t is MaxI16:
        if format == FLOAT16_KEYS and finishes:
            some_rows(x, y, rows, strip, held, lines, FLOAT16_KEYS, True)
        elif format == BFLOAT16_KEYS and finishes:
            some_rows(x, y, rows, strip, held, lines, BFLOAT16_KEYS, True)
        elif format == FLOAT16_KEYS:
            some_rows(x, y, rows, strip, held, lines, FLOAT16_KEYS, False)
        else:
            some_rows(x, y, rows, strip, held, lines, BFLOAT16_KEYS, False)
    elif running_t is SumF32:
        if format == FLOAT16 and finishes:
            some_rows(x, y, rows, strip, held, lines, FLOAT16, True)
        elif format == BFLOAT16 and finishes:
            some_rows(x, y, rows, strip, held, lines, BFLOAT16, True)
        elif finishes:
            some_rows(x, y, rows, strip, held, lines, PLAIN, True)
        elif format == FLOAT16:
            some_rows(x, y, rows, strip, held, lines, FLOAT16, False)
        elif format == BFLOAT16:
            some_rows(x, y, rows, strip, held, lines, BFLOAT16, False)
        else:
            some_rows(x, y, rows, strip, held, lines, PLAIN, False)
    elif running_t is SumF64:
        if format == FLOAT16_SQUARES:
            some_rows(x, y, rows, strip, held, lines, FLOAT16_SQUARES, False)
        elif format == BFLOAT16_SQUARES:
            some_rows(x, y, rows, strip, held, lines, BFLOAT16_SQUARES, False)
        elif format == FLOAT32_SQUARES:
            some_rows(x, y, rows, strip, held, lines, FLOAT32_SQUARES, False)
        elif format == FLOAT64_SQUARES:
            some_rows(x, y, rows, strip, held, lines, FLOAT64_SQUARES, False)
        elif finishes:
            some_rows(x, y, rows, strip, held, lines, PLAIN, True)
        else:
            some_rows(x, y, rows, strip, held, lines, PLAIN, False)
    else:
        some_rows(x, y, rows, strip, held, lines, PLAIN, False)
