"""Places: running maxima together with where they were found, for the second output of MaxPool.

Values and places are rows of their own, side by side, so that a loop takes as many values at a time as a plain maximum
does. A later value wins only if it is greater, so ties keep the first place. Along the last axis, which comes first,
the places count up and are not stored before they have been chosen among. A tile that holds a NaN is taken again with
`PlacedAny`, which knows that a NaN wins.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from .geometry cimport Axis, Run, Span, first_tap, is_interior, run_at, taps_inside
from .job cimport Rule

cdef enum:
    SOME = 5  # taps that `chain` takes at a time

cdef struct PlacedI8:
    int8_t value
    int32_t place

cdef struct PlacedU8:
    uint8_t value
    int32_t place

cdef struct PlacedF32:
    float value
    int32_t place

cdef struct PlacedF64:
    double value
    int64_t place

cdef struct PlacedAny:
    # Any value, a NaN too, and places of more than 31 bits.
    double value
    int64_t place

ctypedef fused placed_t:
    PlacedI8
    PlacedU8
    PlacedF32
    PlacedF64
    PlacedAny

ctypedef fused plain_t:
    int8_t
    uint8_t
    float
    double

cdef struct Rows:
    char* values
    char* places  # NULL where they count up from element to element


cdef struct Count:
    int64_t start, step, hop  # the place of the first tap, from window to window, from tap to tap


cdef void load_any(const plain_t* x, double* y, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = x[j]


cdef bint store_any(const double* x, plain_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    """The maximum of nothing, minus infinity, becomes the lowest value."""
    cdef Py_ssize_t j
    for j in range(n):
        if plain_t is float or plain_t is double:
            y[j] = <plain_t> x[j]
        elif plain_t is int8_t:
            y[j] = <int8_t> max(x[j], -128.0)
        else:
            y[j] = <uint8_t> max(x[j], 0.0)
    return False


cdef inline Py_ssize_t value_size(const placed_t* kind) noexcept nogil:
    if placed_t is PlacedI8 or placed_t is PlacedU8:
        return 1
    elif placed_t is PlacedF32:
        return 4
    else:
        return 8


cdef inline Py_ssize_t place_size(const placed_t* kind) noexcept nogil:
    if placed_t is PlacedF64 or placed_t is PlacedAny:
        return 8
    else:
        return 4


cdef inline placed_t at(const Rows* rows, Py_ssize_t j, const placed_t* kind) noexcept nogil:
    """The value and place at j; place 0 where places count."""
    cdef placed_t result
    if placed_t is PlacedI8:
        result.value = (<const int8_t*> rows.values)[j]
    elif placed_t is PlacedU8:
        result.value = (<const uint8_t*> rows.values)[j]
    elif placed_t is PlacedF32:
        result.value = (<const float*> rows.values)[j]
    else:
        result.value = (<const double*> rows.values)[j]
    if placed_t is PlacedF64 or placed_t is PlacedAny:
        result.place = (<const int64_t*> rows.places)[j] if rows.places != NULL else 0
    else:
        result.place = (<const int32_t*> rows.places)[j] if rows.places != NULL else 0
    return result


cdef inline void put(const Rows* rows, Py_ssize_t j, placed_t item) noexcept nogil:
    if placed_t is PlacedI8:
        (<int8_t*> rows.values)[j] = item.value
    elif placed_t is PlacedU8:
        (<uint8_t*> rows.values)[j] = item.value
    elif placed_t is PlacedF32:
        (<float*> rows.values)[j] = item.value
    else:
        (<double*> rows.values)[j] = item.value
    if placed_t is PlacedF64 or placed_t is PlacedAny:
        (<int64_t*> rows.places)[j] = item.place
    else:
        (<int32_t*> rows.places)[j] = item.place


cdef inline placed_t first_greatest(placed_t a, placed_t b) noexcept nogil:
    cdef placed_t result
    # The forms that compilers make vectors of; bytes leave long tails, which masks keep free of branches.
    if placed_t is PlacedF32 or placed_t is PlacedF64:
        result.value = b.value if b.value > a.value else a.value
        result.place = b.place if b.value > a.value else a.place
    elif placed_t is PlacedAny:
        result.place = -<int64_t> (not b.value <= a.value) & -<int64_t> (a.value == a.value)
        result.value = b.value if result.place else a.value
        result.place = (a.place & ~result.place) | (b.place & result.place)
    else:
        result.place = -<int32_t> (b.value > a.value)
        result.value = b.value if b.value > a.value else a.value
        result.place = (a.place & ~result.place) | (b.place & result.place)
    return result


cdef inline bint has_nan(const plain_t* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    cdef int found = 0
    for j in range(n):
        found |= x[j] != x[j]
    return found


cdef inline placed_t tap_of(const Rows* rows, Py_ssize_t first, Py_ssize_t hop, int tap, Count count,
                            const placed_t* kind) noexcept nogil:
    cdef placed_t result = at(rows, first + tap * hop, kind)
    if rows.places == NULL:
        result.place = tap * count.hop
    return result


cdef inline void chain(Rows x, Rows y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t pace, Py_ssize_t hop, int taps,
                       Count count, const placed_t* kind) noexcept nogil:
    """y[j * pace] of 1 to SOME taps x[j * step], x[j * step + hop], ... for j < n."""
    cdef Py_ssize_t j
    cdef placed_t best, shift
    shift.place = count.start
    for j in range(n):
        best = at(&x, j * step, kind)
        if taps > 1:
            best = first_greatest(best, tap_of(&x, j * step, hop, 1, count, kind))
        if taps > 2:
            best = first_greatest(best, tap_of(&x, j * step, hop, 2, count, kind))
        if taps > 3:
            best = first_greatest(best, tap_of(&x, j * step, hop, 3, count, kind))
        if taps > 4:
            best = first_greatest(best, tap_of(&x, j * step, hop, 4, count, kind))
        if x.places == NULL:
            best.place += shift.place
            shift.place += count.step
        put(&y, j * pace, best)


cdef inline void chains(Rows x, Rows y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t pace, Py_ssize_t hop, int taps,
                        Count count, const placed_t* kind) noexcept nogil:
    # Constants let the compiler load vectors.
    if pace == 1 and step == 1:
        chain(x, y, n, 1, 1, hop, taps, count, kind)
    elif pace == 1 and step == 2 and hop == 1:
        chain(x, y, n, 2, 1, 1, taps, count, kind)
    else:
        chain(x, y, n, step, pace, hop, taps, count, kind)


cdef void extend(Rows x, Rows y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t pace, Py_ssize_t hop, Py_ssize_t tap,
                 Py_ssize_t taps, Count count, const placed_t* kind) noexcept nogil:
    """As `chain` goes on: the taps from `tap` on."""
    cdef Py_ssize_t j
    cdef placed_t other
    while tap < taps:
        for j in range(n):
            other = at(&x, j * step + tap * hop, kind)
            if x.places == NULL:
                other.place = count.start + j * count.step + tap * count.hop
            put(&y, j * pace, first_greatest(at(&y, j * pace, kind), other))
        tap += 1


cdef inline void leave_empty(Rows y, Py_ssize_t n, Py_ssize_t pace, const placed_t* kind) noexcept nogil:
    cdef placed_t empty
    cdef Py_ssize_t j
    if placed_t is PlacedI8:
        empty.value = -128
    elif placed_t is PlacedU8:
        empty.value = 0
    else:
        empty.value = -INFINITY
    empty.place = -1
    for j in range(n):
        put(&y, j * pace, empty)


cdef inline Rows moved(Rows rows, Py_ssize_t n, const placed_t* kind) noexcept nogil:
    """The rows from place n on."""
    rows.values += n * value_size(kind)
    if rows.places != NULL:
        rows.places += n * place_size(kind)
    return rows


cdef void take(Rows x, Rows y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t pace, Py_ssize_t hop, Py_ssize_t taps,
               Count count, const placed_t* kind) noexcept nogil:
    """As `chain` for any number of taps."""
    cdef Rows counted
    if taps == 0:
        leave_empty(y, n, pace, kind)
        return
    if x.places != NULL:
        if taps == 1:
            chains(x, y, n, step, pace, hop, 1, count, kind)
        elif taps == 2:
            chains(x, y, n, step, pace, hop, 2, count, kind)
        elif taps == 3:
            chains(x, y, n, step, pace, hop, 3, count, kind)
        elif taps == 4:
            chains(x, y, n, step, pace, hop, 4, count, kind)
        else:
            chains(x, y, n, step, pace, hop, 5, count, kind)
    else:
        counted.values, counted.places = x.values, NULL
        if taps == 1:
            chains(counted, y, n, step, pace, hop, 1, count, kind)
        elif taps == 2:
            chains(counted, y, n, step, pace, hop, 2, count, kind)
        elif taps == 3:
            chains(counted, y, n, step, pace, hop, 3, count, kind)
        elif taps == 4:
            chains(counted, y, n, step, pace, hop, 4, count, kind)
        else:
            chains(counted, y, n, step, pace, hop, 5, count, kind)
    extend(x, y, n, step, pace, hop, SOME, taps, count, kind)


cdef inline void count_on(Rows rows, Py_ssize_t windows, Py_ssize_t post, int64_t place, Py_ssize_t step,
                          const placed_t* kind) noexcept nogil:
    """Adds to the places of each window that of its first tap."""
    cdef Py_ssize_t window, j
    for window in range(windows):
        for j in range(post):
            if placed_t is PlacedF64 or placed_t is PlacedAny:
                (<int64_t*> rows.places)[window * post + j] += place + window * step
            else:
                (<int32_t*> rows.places)[window * post + j] += <int32_t> (place + window * step)


cdef void take_run(Rows x, Rows y, const Axis* axis, Py_ssize_t windows, Py_ssize_t first, Py_ssize_t hop,
                   Py_ssize_t taps, int64_t place, Py_ssize_t post, const placed_t* kind) noexcept nogil:
    """`windows` neighbours, the first at element `first`; `hop` elements of the axis from tap to tap."""
    cdef Py_ssize_t window
    x = moved(x, first * post, kind)
    place += first
    if post == 1:
        take(x, y, windows, axis.step, 1, hop, taps, Count(place, axis.step, hop), kind)
        return
    if axis.step == 1:
        take(x, y, windows * post, 1, 1, hop * post, taps, Count(0, 0, hop), kind)
    else:
        for window in range(windows):
            take(moved(x, window * axis.step * post, kind), moved(y, window * post, kind), post, 1, 1, hop * post, taps,
                 Count(0, 0, hop), kind)
    if x.places == NULL and taps:
        count_on(y, windows, post, place, axis.step, kind)


cdef void place_by_tables(Rows x, Rows y, const Axis* axis, Span span, Py_ssize_t post, int64_t place, Rows spare,
                          Rows other, const placed_t* kind) noexcept nogil:
    """One slice of `place_axis` by tables of 1, 2, 4, ... neighbours: a window is the union of two entries."""
    cdef Py_ssize_t length = span.high - span.low, reach = 1, window, taps, first
    cdef Axis all = axis[0]
    cdef Run run
    cdef Rows table = x
    all.step = 1
    if x.places == NULL:
        take_run(x, other, &all, length, 0, 1, 1, place, post, kind)
        table = other
    while True:
        window = span.begin
        while window < span.end:
            run = run_at(axis, window, span.end, post)
            taps = taps_inside(axis, window)
            if reach <= taps < 2 * reach or (taps == 0 and reach == 1):
                take_run(table, moved(y, (window - span.begin) * post, kind), axis, run.windows,
                         first_tap(axis, window) - span.low if taps else 0, (taps - reach) * axis.hop,
                         min(taps, 1 if taps == reach else 2), 0, post, kind)
            window += run.windows
        if 2 * reach > axis.most:
            return
        length -= reach * axis.hop
        take_run(table, spare, &all, length, 0, reach * axis.hop, 2, 0, post, kind)
        table, spare, other = spare, other, spare
        reach *= 2


cdef void place_border(Rows x, Rows y, Py_ssize_t pre, const Axis* axis, Span span, Py_ssize_t post, int64_t place,
                       const placed_t* kind) noexcept nogil:
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, window = span.begin, p, taps, first
    while window < span.end:
        if is_interior(axis, window):
            window = axis.end
            continue
        taps = taps_inside(axis, window)
        first = first_tap(axis, window) - span.low if taps else 0
        if post == 1:
            take(moved(x, first, kind), moved(y, window - span.begin, kind), pre, length, count, axis.hop, taps,
                 Count(place + first, length, axis.hop), kind)
        else:
            for p in range(pre):
                take(moved(x, (p * length + first) * post, kind),
                     moved(y, (p * count + window - span.begin) * post, kind), post, 1, 1, axis.hop * post, taps,
                     Count(place + p * length + first, 0, axis.hop), kind)
        window += 1


cdef void place_axis(Rows x, Rows y, Py_ssize_t pre, const Axis* whole, Span span, Py_ssize_t post, int64_t place,
                     Rows spare, Rows other, const placed_t* kind) noexcept nogil:
    """y[pre, span windows, post] from x[pre, span elements, post], whose first place is `place` if places count."""
    cdef Axis axis = whole[0]
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, p, slices = pre
    cdef Py_ssize_t begin = max(axis.begin, span.begin), end = min(axis.end, span.end)
    if pre == 0:
        return
    if share_taps(&axis, count, length):
        for p in range(pre):
            place_by_tables(moved(x, p * length * post, kind), moved(y, p * count * post, kind), &axis, span, post,
                            place + p * length, spare, other, kind)
        return
    if begin < end:
        axis.start, axis.begin = first_tap(whole, begin), begin
        axis.step = length if count == 1 else axis.step
        if count * axis.step == length:
            end += (pre - 1) * count  # as in `reduce_axis`
            slices = 1
        for p in range(slices):
            take_run(moved(x, p * length * post, kind), moved(y, (p * count + begin - span.begin) * post, kind), &axis,
                     end - begin, axis.start - span.low, axis.hop, axis.taps, place + p * length, post, kind)
    place_border(x, y, pre, whole, span, post, place, kind)
