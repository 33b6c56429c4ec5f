"""Rings: long windows over values beside each other that share most of their taps, from one place to the next.

Of what 1, 2, 4, ... neighbours reduce to, as many entries are kept as these span places: a window that ends where
the last entry does needs none that is older, nor does the next entry of twice as many. So a few vectors of all places
are read once, from elements if need be, and looked up in the nearest cache, however many places there are.
"""
from .geometry cimport Axis, Span, divisor_of, first_tap, taps_inside
from .job cimport (
    BFLOAT16,
    BFLOAT16_KEYS,
    BFLOAT16_PAIRS,
    FLOAT16,
    FLOAT16_KEYS,
    PLAIN,
    Format,
)
from .reductions cimport MaxF32, MaxF64, MaxI8, MaxI16, MaxU8, SumF32, running_t

cdef enum:
    RINGS = 1 << 15  # bytes of rings that are worth more vectors at a time, as in tiling.py


cdef struct Slab:
    const Axis* axis
    Span span
    Py_ssize_t x, y              # bytes from place to place, and from window to window
    Py_ssize_t rows, inner       # rows of so many values beside each other, at every place,
    Py_ssize_t x_row, y_row      # with so many bytes from one to the next
    Format format                # of elements,
    bint plain                   # whether x holds running values instead
    const Axis* across           # windows that rows are, whose divisors count as well, if not NULL:
    Py_ssize_t window            # the first of them
    double divisor               # and that of all others


cdef inline Py_ssize_t entry(Py_ssize_t place, Py_ssize_t reach, Py_ssize_t room) noexcept nogil:
    """Where the ring of so many neighbours has what ends at a place: the rings, of `room`, 2 * `room`, ... entries,
    follow each other and a neutral entry."""
    return 1 + room * (reach - 1) + (place & (room * reach - 1))


cdef inline void look_back(running_t* rings, Registers* found, Py_ssize_t last, Py_ssize_t taps, Py_ssize_t hop,
                           Py_ssize_t room, int levels, int vectors) noexcept nogil:
    """A window of so many taps, 1 or more, the last of them at the place `last`."""
    cdef Py_ssize_t row = vectors * (VECTOR // <Py_ssize_t> sizeof(running_t)), reach = 1
    cdef int level
    if running_t is MaxI8 or running_t is MaxU8 or running_t is MaxI16 or running_t is MaxF32 or running_t is MaxF64:
        while 2 * reach <= taps:
            reach *= 2
        exchange(found, rings + entry(last, reach, room) * row, vectors, READ)
        exchange(found, rings + entry(last - (taps - reach) * hop, reach, room) * row, vectors, PRECEDE)
    else:
        exchange(found, rings, vectors, CLEAR)
        for level in range(levels):  # without a branch, as the next window has other bits
            exchange(found, rings + (entry(last, reach, room) & -<Py_ssize_t> (taps >> level & 1)) * row, vectors,
                     PRECEDE)
            last -= (taps & reach) * hop
            reach *= 2


cdef inline void enter(running_t* rings, Registers* now, Py_ssize_t place, Py_ssize_t hop, Py_ssize_t room, int levels,
                       int vectors) noexcept nogil:
    """What 1, 2, 4, ... neighbours reduce to that end at a place."""
    cdef Py_ssize_t row = vectors * (VECTOR // <Py_ssize_t> sizeof(running_t)), reach = 1
    cdef Registers kept
    cdef int level
    for level in range(levels - 1):
        kept = now[0]
        exchange(now, rings + entry(place - reach * hop, reach, room) * row, vectors, PRECEDE)
        exchange(&kept, rings + entry(place, reach, room) * row, vectors, WRITE)  # which may be where that one was
        reach *= 2
    exchange(now, rings + entry(place, reach, room) * row, vectors, WRITE)


cdef struct Divisors:
    double[QUAD] rows     # of each row of those taken together
    double[QUAD] product  # and of a window of theirs,
    double[QUAD] factor   # and one over it
    double window         # that of a window along the axis, which the products are of


cdef inline void divide_by(Divisors* by, double window) noexcept nogil:
    cdef int v
    if window != by.window:
        for v in range(QUAD):
            by.product[v] = by.rows[v] * window
            by.factor[v] = 1 / by.product[v]
        by.window = window


cdef inline void put_one(const lanes_t* lanes, const lanes_t* odd, char* y, const running_t* like, const Divisors* by,
                         int v, Finish* finish, Format format) noexcept nogil:
    if finish == NULL:
        put_vectors(lanes, odd, y, like, NULL, format)
        if format == BFLOAT16_PAIRS:
            put_vectors(odd, odd, y + VECTOR, like, NULL, format)
    else:
        finish.divisor, finish.factor = by.product[v], by.factor[v]
        put_vectors(lanes, odd, y, like, finish, format)


cdef inline void put_apart(const Registers* all, char* y, Py_ssize_t pitch, const running_t* like, const Divisors* by,
                           Finish* finish, int vectors, Format format) noexcept nogil:
    """So many vectors or pairs, `pitch` bytes apart."""
    cdef const Quad* quad = &all.first
    if format == BFLOAT16_PAIRS:
        put_one(&quad.first, &quad.second, y, like, by, 0, finish, format)
        if vectors == QUAD:
            put_one(&quad.third, &quad.fourth, y + pitch, like, by, 1, finish, format)
        return
    put_one(&quad.first, &quad.first, y, like, by, 0, finish, format)
    if vectors == QUAD:
        put_one(&quad.second, &quad.second, y + pitch, like, by, 1, finish, format)
        put_one(&quad.third, &quad.third, y + 2 * pitch, like, by, 2, finish, format)
        put_one(&quad.fourth, &quad.fourth, y + 3 * pitch, like, by, 3, finish, format)


cdef struct Slice:
    Py_ssize_t x_pitch, y_pitch   # bytes from vector, or pair, to vector of those taken together
    Py_ssize_t room               # entries of the first ring: a power of two, the distance of taps or more
    int levels
    Divisors by


cdef inline bint look_back_along(const char* x, char* y, const Slab* slab, Slice* slice, running_t* rings, int vectors,
                                 Format format, bint finishes) noexcept nogil:
    """So many vectors of all windows. True if a finished result is odd."""
    cdef const Axis* axis = slab.axis
    cdef Span span = slab.span
    cdef Py_ssize_t window = span.begin, place, taps, last, hop = axis.hop, x_pace = slab.x, y_pace = slab.y
    cdef Py_ssize_t x_pitch = slice.x_pitch, y_pitch = slice.y_pitch, room = slice.room
    cdef int levels = slice.levels
    cdef bint plain = slab.plain
    cdef Registers now
    cdef Finish finish
    finish.seen = no_extremes()
    exchange(&now, rings, vectors, CLEAR)
    exchange(&now, rings, vectors, WRITE)
    for place in range(span.high - span.low):
        if plain:
            read_apart(x, x_pitch, &now.first, rings, format == BFLOAT16_PAIRS, vectors, PLAIN)
        else:
            read_apart(x, x_pitch, &now.first, rings, format == BFLOAT16_PAIRS, vectors, format)
        enter(rings, &now, place, hop, room, levels, vectors)
        while window < span.end:
            taps = taps_inside(axis, window)
            last = first_tap(axis, window) - span.low + (taps - 1) * hop if taps else place
            if last > place:
                break
            if taps:
                look_back(rings, &now, last, taps, hop, room, levels, vectors)
            else:
                exchange(&now, rings, vectors, VOID)
            if finishes:
                divide_by(&slice.by, divisor_of(axis, window))
                put_apart(&now, y, y_pitch, rings, &slice.by, &finish, vectors, format)
            else:
                put_apart(&now, y, y_pitch, rings, &slice.by, NULL, vectors, format)
            window += 1
            y += y_pace
        x += x_pace
    return finishes and are_odd(&finish.seen, rings, format)


cdef inline bint look_back_format(const char* x, char* y, const Slab* slab, Slice* slice, running_t* rings, int vectors,
                                  bint finishes) noexcept nogil:
    cdef Format format = slab.format
    if running_t is MaxI16:
        if format == FLOAT16_KEYS:
            return look_back_along(x, y, slab, slice, rings, vectors, FLOAT16_KEYS, finishes)
        elif format == BFLOAT16_KEYS:
            return look_back_along(x, y, slab, slice, rings, vectors, BFLOAT16_KEYS, finishes)
    elif running_t is MaxF32 or running_t is SumF32:
        if format == FLOAT16:
            return look_back_along(x, y, slab, slice, rings, vectors, FLOAT16, finishes)
        elif format == BFLOAT16:
            return look_back_along(x, y, slab, slice, rings, vectors, BFLOAT16, finishes)
    if running_t is SumF32:
        if format == BFLOAT16_PAIRS:
            return look_back_along(x, y, slab, slice, rings, 2 if vectors == 1 else vectors, BFLOAT16_PAIRS, finishes)
    return look_back_along(x, y, slab, slice, rings, vectors, PLAIN, finishes)


cdef inline bint look_back_slice(const char* x, char* y, const Slab* slab, Slice* slice, Py_ssize_t row, int rows,
                                 running_t* rings, bint several, bint finishes) noexcept nogil:
    """Several vectors of so many rows, or one, or a pair."""
    cdef int v
    for v in range(QUAD if finishes else 0):
        slice.by.rows[v] = slab.divisor
        if slab.across != NULL:
            slice.by.rows[v] *= divisor_of(slab.across, slab.window + row + min(v, rows - 1))
    slice.by.window = -1  # which none is
    if several:
        return look_back_format(x, y, slab, slice, rings, QUAD, finishes)
    return look_back_format(x, y, slab, slice, rings, 1, finishes)


cdef bint look_back_slab(const char* x, char* y, const Slab* slab, running_t* scratch, bint finishes) noexcept nogil:
    """y[rows, span windows, inner] from x[rows, span elements, inner], where `inner` fills a vector or pairs; see
    `rings` in tiling.py for what scratch holds. True if a finished result is odd."""
    cdef running_t* rings = <running_t*> (<char*> scratch + (-<Py_ssize_t> scratch & (VECTOR - 1)))
    cdef Py_ssize_t unit = VECTOR // <Py_ssize_t> sizeof(running_t), quad = QUAD * unit, done = 0, row = 0
    cdef Py_ssize_t x_size = sizeof(running_t) if slab.plain else size_of(scratch, slab.format)
    cdef Py_ssize_t y_size = size_of(scratch, slab.format) if finishes else sizeof(running_t)
    cdef int pairs = 2 if slab.format == BFLOAT16_PAIRS else 1, rows
    cdef bint several, odd = False
    cdef Slice of_row, of_rows
    of_row.room, of_row.levels = 1, 0
    while of_row.room < slab.axis.hop:
        of_row.room *= 2
    while slab.axis.most >> of_row.levels:
        of_row.levels += 1
    several = of_row.room * QUAD * VECTOR <= <Py_ssize_t> RINGS >> of_row.levels
    unit *= pairs
    of_row.x_pitch, of_row.y_pitch = unit * x_size, unit * y_size
    of_rows = of_row
    of_rows.x_pitch, of_rows.y_pitch = slab.x_row, slab.y_row
    for row in range(slab.rows if several else 0):
        for done in range(slab.inner // quad):
            odd |= look_back_slice(x + row * slab.x_row + done * quad * x_size,
                                   y + row * slab.y_row + done * quad * y_size, slab, &of_row, row, 1, rings, True,
                                   finishes)
    done = slab.inner // quad * quad if several else 0
    rows = QUAD // pairs if several and slab.rows >= QUAD // pairs else 1
    while done < slab.inner:
        done = min(done, slab.inner - unit)  # the last vector overlaps the one before
        row = 0
        while row < slab.rows:
            row = min(row, slab.rows - rows)
            odd |= look_back_slice(x + row * slab.x_row + done * x_size, y + row * slab.y_row + done * y_size, slab,
                                   &of_rows, row, rows, rings, rows > 1, finishes)
            row += rows
        done += unit
    return odd


cdef void look_back_axis(const running_t* x, running_t* y, Py_ssize_t pre, const Axis* axis, Span span, Py_ssize_t post,
                         running_t* scratch) noexcept nogil:
    """As `reduce_axis`, where `post` fills a vector."""
    cdef Py_ssize_t pace = post * <Py_ssize_t> sizeof(running_t)
    cdef Slab slab = Slab(axis, span, pace, pace, pre, post, (span.high - span.low) * pace,
                          (span.end - span.begin) * pace, PLAIN, True, NULL, 0, 1)
    look_back_slab(<const char*> x, <char*> y, &slab, scratch, False)
