"""Strips: small windows of the last two axes, one row of them after the other, where channels do not fill vectors.

Columns come first, from elements where they lie: a vector of what the first of the two axes leaves of a row stays in
registers until the next one is there, in which its windows have their last taps. Lanes outside a row hold neutral
values, so that every window has all its taps along it, and rows that continue each other are taken as one.
"""
from libc.string cimport memcpy

from .elements cimport (
    MOSTLY,
    all_columns_16,
    all_columns_32,
    all_columns_64,
    copy_vector,
    first_columns_16,
    first_columns_32,
    first_columns_64,
    from_column_16,
    from_column_32,
    from_column_64,
    held_lanes,
    lanes_from,
    lanes_t,
    load_lanes,
    next_columns_16,
    next_columns_32,
    next_columns_64,
    part_lanes,
    store_lanes,
    touch_lines,
    to_column_16,
    to_column_32,
    to_column_64,
)
from .geometry cimport is_interior, taps_inside
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
)
from .reductions cimport MaxF32, MaxF64, MaxI16, SumF32, SumF64, SumI32, neutral, nothing, running_t


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
    bint continues           # whether rows of elements and of windows lie as if each were one
    bint touches             # rows of elements one after the other
    const Job* job           # that divides, if any does,
    const Tile* tile
    char* table              # of two rows of divisors, and behind each as if it began again,
    char* divisors           # those of the row at hand,
    Py_ssize_t factors       # and bytes from there to one over each
    double[2] laid           # by what the two rows that are held divide along the first axis
    Results seen             # of what was finished, or of maxima


cdef struct Lines:  # of elements, each of one row or of several; all of them divide alike
    const char* x
    Py_ssize_t n, windows  # values of each, and how many of them are windows
    Py_ssize_t count, pitch  # bytes from line to line
    Py_ssize_t hop         # bytes from tap to tap of columns
    Py_ssize_t skipped, touched  # bytes that were touched with the line before, and those that are with this one


cdef inline lanes_t neutral_lanes(const running_t* like) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(running_t)):
        space[j] = neutral(like[0])
    return load_lanes(space)


cdef inline lanes_t combined(lanes_t earlier, lanes_t later, const running_t* like) noexcept nogil:
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    store_lanes(later, values)
    take_lanes(values, &earlier, False)
    return earlier


cdef inline lanes_t reduced(const char* x, const running_t* like, Py_ssize_t hop, int taps, Results* results,
                            Format format) noexcept nogil:
    """A vector of columns."""
    cdef running_t[VECTOR] space
    cdef running_t* lanes = space
    cdef lanes_t result, element
    cdef int tap
    if columns_first(like):
        reduce_taps(x, lanes, hop, taps, format)
        return load_lanes(lanes)
    result = load_lanes(x)
    note_elements(&result, results, like)
    for tap in range(1, taps):
        element = load_lanes(x + tap * hop)
        note_elements(&element, results, like)
        result = combined(result, element, like)
    return result


cdef inline lanes_t columns_at(const char* x, const running_t* like, Py_ssize_t n, Py_ssize_t hop, Py_ssize_t place,
                               lanes_t outside, int taps, Results* results, Format format) noexcept nogil:
    """A vector of the columns of a line of n of them, which are as many at least; what is outside behind them."""
    cdef Py_ssize_t last = n - VECTOR // <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t away = (place - last) * <Py_ssize_t> sizeof(running_t)
    if MOSTLY(place <= last):
        return reduced(x + place * size_of(like, format), like, hop, taps, results, format)
    if away >= VECTOR:
        return outside
    return lanes_from(reduced(x + last * size_of(like, format), like, hop, taps, results, format), outside, away,
                      sizeof(running_t))


cdef inline lanes_t first_columns(const running_t* like) noexcept nogil:
    return (first_columns_16() if sizeof(running_t) == 2 else first_columns_32() if sizeof(running_t) == 4 else
            first_columns_64())


cdef inline lanes_t all_columns(Py_ssize_t column, const running_t* like) noexcept nogil:
    return held_lanes(all_columns_16(column) if sizeof(running_t) == 2 else all_columns_32(column)
                      if sizeof(running_t) == 4 else all_columns_64(column))


cdef inline lanes_t next_columns(lanes_t columns, lanes_t width, lanes_t row, const running_t* like) noexcept nogil:
    return (next_columns_16(columns, width, row) if sizeof(running_t) == 2 else
            next_columns_32(columns, width, row) if sizeof(running_t) == 4 else next_columns_64(columns, width, row))


cdef inline lanes_t from_column(lanes_t lanes, lanes_t columns, lanes_t least, lanes_t outside,
                                const running_t* like) noexcept nogil:
    return (from_column_16(lanes, columns, least, outside) if sizeof(running_t) == 2 else
            from_column_32(lanes, columns, least, outside) if sizeof(running_t) == 4 else
            from_column_64(lanes, columns, least, outside))


cdef inline lanes_t to_column(lanes_t lanes, lanes_t columns, lanes_t most, lanes_t outside,
                              const running_t* like) noexcept nogil:
    return (to_column_16(lanes, columns, most, outside) if sizeof(running_t) == 2 else
            to_column_32(lanes, columns, most, outside) if sizeof(running_t) == 4 else
            to_column_64(lanes, columns, most, outside))


cdef inline void put_windows(lanes_t lanes, char* y, Py_ssize_t n, bint roomy, const running_t* by,
                             const running_t* factors, Results* results, Format format, bint finishes) noexcept nogil:
    """n windows, of a vector of them if there is room for it."""
    cdef running_t[VECTOR] space
    cdef running_t* values = space
    cdef char[VECTOR] part
    cdef char* target = y if MOSTLY(roomy) else part
    cdef Extremes seen
    note_maxima(&lanes, results, by)
    store_lanes(lanes, values)
    store_lanes(results.highest, seen.highest)
    store_lanes(results.lowest, seen.lowest)
    put_lanes(values, values, target, by, factors, 1, format, finishes, &seen)
    results.highest = load_lanes(seen.highest)
    results.lowest = load_lanes(seen.lowest)
    if not MOSTLY(roomy):
        memcpy(y, part, n * (size_of(by, format) if finishes else <Py_ssize_t> sizeof(running_t)))


cdef inline lanes_t lanes_at(lanes_t before, lanes_t here, lanes_t after, Py_ssize_t distance,
                             const running_t* like) noexcept nogil:
    """Lanes so many further."""
    cdef Py_ssize_t away = distance * <Py_ssize_t> sizeof(running_t)
    if away == 0:
        return here
    if away < 0:
        return lanes_from(before, here, VECTOR + away, sizeof(running_t))
    return lanes_from(here, after, away, sizeof(running_t))


cdef inline lanes_t halves_at(lanes_t before, lanes_t before_odd, lanes_t even, lanes_t odd, Py_ssize_t distance,
                              const running_t* like) noexcept nogil:
    """Every other lane of two vectors, from -2 to 1 further on."""
    if distance == -2:
        return lanes_at(before, even, even, -1, like)
    if distance == -1:
        return lanes_at(before_odd, odd, odd, -1, like)
    return odd if distance else even


cdef inline void windows_of_lines(const Lines* given, char* y, Py_ssize_t room, Strip* strip, const running_t* like,
                                  int down, int taps, int step, bint waits, bint continues, Format format,
                                  bint finishes) noexcept nogil:
    """y[lines, windows], behind which so many bytes may be written; `waits` if windows have taps in the next vector."""
    cdef Lines lines = given[0]  # which no store can change
    cdef const running_t* by = <const running_t*> strip.divisors
    cdef const running_t* factors = <const running_t*> (strip.divisors + strip.factors)
    cdef Py_ssize_t width = VECTOR // <Py_ssize_t> sizeof(running_t), row = strip.row, hop = strip.hop
    cdef Py_ssize_t left = strip.left, stored = size_of(like, format) if finishes else <Py_ssize_t> sizeof(running_t)
    cdef Py_ssize_t pace = lines.windows * stored, line, window, place, column
    cdef Results seen = strip.seen  # also of lanes that are no results, which may only be odd in vain
    cdef lanes_t first, second, third, fresh, fresh_odd, outside = held_lanes(neutral_lanes(like))
    cdef lanes_t before, before_odd, here, odd, after, after_odd
    cdef lanes_t columns = first_columns(like), widths = all_columns(width, like), rows = all_columns(row, like)
    cdef lanes_t least = all_columns(left, like), middle_least = all_columns(max(0, left - hop), like)
    cdef lanes_t most = all_columns(row - 1 - max(0, 2 * hop - left), like)
    cdef lanes_t middle_most = all_columns(row - 1 - max(0, hop - left), like)
    fresh_odd = outside
    for line in range(lines.count):
        touch_lines(lines.x + lines.skipped, lines.touched)
        here = odd = after = after_odd = outside
        column, place = 0, 0
        window = -width if waits else 0
        while window < lines.windows:
            fresh = columns_at(lines.x, like, lines.n, lines.hop, place, outside, down, &seen, format)
            place += width
            if step == 2:
                fresh_odd = columns_at(lines.x, like, lines.n, lines.hop, place, outside, down, &seen, format)
                part_lanes(&fresh, &fresh_odd, sizeof(running_t))
                place += width
            before, before_odd = here, odd
            here, odd = (after, after_odd) if waits else (fresh, fresh_odd)
            after, after_odd = fresh, fresh_odd
            if MOSTLY(window >= 0):
                if step == 1:
                    first = lanes_at(before, here, after, -left, like)
                    second = lanes_at(before, here, after, hop - left, like)
                    third = lanes_at(before, here, after, 2 * hop - left, like) if taps > 2 else second
                elif waits:
                    first, second, third = here, odd, lanes_at(here, here, after, 1, like)
                else:
                    first = halves_at(before, before_odd, here, odd, -left, like)
                    second = halves_at(before, before_odd, here, odd, 1 - left, like)
                    third = halves_at(before, before_odd, here, odd, 2 - left, like) if taps > 2 else second
                if continues:  # no tap of a window is one of another row
                    first = from_column(first, columns, least, outside, like)
                    if hop != left:
                        second = from_column(second, columns, middle_least, outside, like)
                        second = to_column(second, columns, middle_most, outside, like)
                    third = to_column(third, columns, most, outside, like)
                    columns = next_columns(columns, widths, rows, like)
                first = combined(first, second, like)
                if taps > 2:
                    first = combined(first, third, like)
                put_windows(first, y + window * stored, lines.windows - window,
                            (window + width) * stored <= room, by + column, factors + column, &seen, format,
                            finishes)
                column += width
                if continues:
                    column -= row if column >= row else 0
            window += width
        lines.x += lines.pitch
        y += pace
        room -= pace
    strip.seen = seen


cdef inline void some_down(const Lines* lines, char* y, Py_ssize_t room, Strip* strip, const running_t* like,
                           Py_ssize_t down, int taps, int step, bint waits, bint continues, Format format,
                           bint finishes) noexcept nogil:
    # Constants let the compiler keep columns in registers.
    if down == 1:
        windows_of_lines(lines, y, room, strip, like, 1, taps, step, waits, continues, format, finishes)
    elif down == 2:
        windows_of_lines(lines, y, room, strip, like, 2, taps, step, waits, continues, format, finishes)
    else:
        windows_of_lines(lines, y, room, strip, like, 3, taps, step, waits, continues, format, finishes)


cdef inline void strip_rows(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like, int taps,
                            int step, bint waits, bint continues, Format format, bint finishes) noexcept nogil:
    """y[windows down, windows across] of a plane."""
    cdef Lines lines
    cdef Py_ssize_t window = rows.span.begin, end = rows.span.end, n, reach, advance = rows.axis.step * rows.x
    cdef Py_ssize_t pace = strip.windows * (size_of(like, format) if finishes else <Py_ssize_t> sizeof(running_t))
    lines.n, lines.windows, lines.pitch, lines.hop = strip.row, strip.windows, advance, rows.axis.hop * rows.x
    while window < end:
        n = min(end, rows.axis.end) - window if is_interior(&rows.axis, window) else 1
        lines.x, lines.count = first_of(x, rows, window), n
        reach = ((taps_inside(&rows.axis, window) - 1) * rows.axis.hop + 1) * rows.x
        lines.touched = min(advance, reach) if strip.touches else 0
        lines.skipped = reach - lines.touched
        if continues:
            lines.n, lines.windows, lines.count = n * strip.row, n * strip.row, 1
        if finishes and strip.job != NULL:
            strip.divisors = divisors_of_row(strip, window, like)
        some_down(&lines, y, (end - window) * pace, strip, like, taps_inside(&rows.axis, window), taps, step, waits,
                  continues, format, finishes)
        y += n * pace
        window += n


cdef inline void format_rows(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like, int taps,
                             int step, bint waits, bint continues, Format format, bint finishes) noexcept nogil:
    if running_t is MaxI16:
        if format == FLOAT16_KEYS and finishes:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT16_KEYS, True)
        elif format == BFLOAT16_KEYS and finishes:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, BFLOAT16_KEYS, True)
        elif format == FLOAT16_KEYS:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT16_KEYS, False)
        else:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, BFLOAT16_KEYS, False)
    elif running_t is SumF32:
        if format == FLOAT16 and finishes:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT16, True)
        elif format == BFLOAT16 and finishes:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, BFLOAT16, True)
        elif finishes:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, PLAIN, True)
        elif format == FLOAT16:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT16, False)
        elif format == BFLOAT16:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, BFLOAT16, False)
        else:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, PLAIN, False)
    elif running_t is SumF64:
        if format == FLOAT16_SQUARES:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT16_SQUARES, False)
        elif format == BFLOAT16_SQUARES:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, BFLOAT16_SQUARES, False)
        elif format == FLOAT32_SQUARES:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT32_SQUARES, False)
        elif format == FLOAT64_SQUARES:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, FLOAT64_SQUARES, False)
        elif finishes:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, PLAIN, True)
        else:
            strip_rows(x, y, rows, strip, like, taps, step, waits, continues, PLAIN, False)
    else:
        strip_rows(x, y, rows, strip, like, taps, step, waits, continues, PLAIN, False)


# A function each, as compilers give up on registers where there are too many loops.
cdef void two_taps(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                   Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 2, 1, True, False, format, finishes)


cdef void two_taps_continued(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                             Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 2, 1, True, True, format, finishes)


cdef void two_taps_apart(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                         Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 2, 2, False, False, format, finishes)


cdef void three_taps(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                     Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 3, 1, True, False, format, finishes)


cdef void three_taps_continued(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                               Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 3, 1, True, True, format, finishes)


cdef void three_taps_apart(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                           Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 3, 2, True, False, format, finishes)


cdef void three_taps_behind(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                            Format format, bint finishes) noexcept nogil:
    format_rows(x, y, rows, strip, like, 3, 2, False, False, format, finishes)


cdef void rows_of_strip(const char* x, char* y, const Side* rows, Strip* strip, const running_t* like,
                        Format format, bint finishes) noexcept nogil:
    """y[windows of both axes, inner] of a plane, of running values or, if it finishes, of elements."""
    if strip.taps == 2 and strip.continues:
        two_taps_continued(x, y, rows, strip, like, format, finishes)
    elif strip.taps == 2 and strip.step == 1:
        two_taps(x, y, rows, strip, like, format, finishes)
    elif strip.taps == 2:
        two_taps_apart(x, y, rows, strip, like, format, finishes)
    elif strip.continues:
        three_taps_continued(x, y, rows, strip, like, format, finishes)
    elif strip.step == 1:
        three_taps(x, y, rows, strip, like, format, finishes)
    elif strip.left == 0:
        three_taps_apart(x, y, rows, strip, like, format, finishes)
    else:
        three_taps_behind(x, y, rows, strip, like, format, finishes)
