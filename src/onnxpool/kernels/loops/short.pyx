"""short: windows along rows whose places fit into at most MOST_REGISTERS registers, on AVX-512.

A row of places, with its padding, stays in registers while taps along the axes before the last one are reduced. Then
each tap along the last axis is picked for all windows at once, from two registers. Nothing goes through scratch memory.
Planes of 14x14 to 35x35 are 1.4x to 2x faster than with blocks of rows in scratch memory (Zen 5).
"""
from libc.stdint cimport uint8_t

from ..core.element cimport (
    DIVIDES,
    LANES,
    acc_inverse,
    acc_of,
    acc_t,
    elem_t,
    vec_divide_part,
    vec_finish,
    vec_finish_part,
    vec_merge,
    vec_read,
    vec_t,
)
from ..core.job cimport FEW, MOST_RUNS, Axis, Rule, Run, Tile, ceil_div, fetch, run_at
from ..core.planes cimport Planes, RowRun, next_run, start_planes
from ..core.picks cimport picks_of, picks_t, vec_pick

cdef extern from "within.h" nogil:
    ctypedef struct within_t:
        pass
    within_t within_of(Py_ssize_t low, Py_ssize_t high) noexcept
    vec_t vec_load_within(const elem_t* x, within_t within, const Rule* rule) noexcept

cdef enum:
    AHEAD = 4096  # prefetch distance in bytes
    MOST_REGISTERS = 3
    MOST_LANES = 32

cdef struct Divisors:
    # The divisors of each window of a row.
    double known                         # the count along other axes that these divisors include
    vec_t[MOST_REGISTERS] counts, inverses

cdef struct Places:
    within_t[MOST_REGISTERS] within      # the places of a row that are inside the array
    picks_t[FEW] picks                   # the place of each tap along the last axis
    double[MOST_REGISTERS * MOST_LANES] along  # divisors of windows along the last axis

cdef struct Short:
    const Places* places
    int registers, results               # registers of a row of places, and of a row of results
    int taps                             # number of taps along the last axis
    bint careful                         # whether quotients must be computed by division
    Py_ssize_t windows                   # number of windows of a row
    Py_ssize_t x, y                      # the first place of a row, and its first window
    Py_ssize_t ahead, fetched            # prefetches: how many values ahead, and how many bytes for each row
    const Rule* rule


cdef inline void count_along(const Tile* tile, Places* s, Py_ssize_t windows) noexcept nogil:
    """Set the divisors of windows along the last axis, and 1 in lanes without a window."""
    cdef int last = tile.rank - 1
    cdef Py_ssize_t w = 0, i
    cdef Run run
    while w < windows:
        run = run_at(&tile.axis[last], tile.begin[last] + w, tile.end[last])
        for i in range(w, w + run.n):
            s.along[i] = run.window.divisor
        w += run.n
    for i in range(w, MOST_REGISTERS * LANES):
        s.along[i] = 1


cdef inline void set_divisors(const Short* s, Divisors* divisors, double outer_count) noexcept nogil:
    cdef acc_t[LANES] counts, inverses
    cdef double count
    cdef Py_ssize_t i
    cdef int k
    if divisors.known == outer_count:
        return
    divisors.known = outer_count
    for k in range(s.results):
        for i in range(LANES):
            count = s.places.along[k * LANES + i] * outer_count
            counts[i], inverses[i] = acc_of(count), acc_inverse(count, s.rule)
        divisors.counts[k], divisors.inverses[k] = vec_read(counts), vec_read(inverses)


cdef void prepare(const Tile* tile, Short* s, Places* of) noexcept nogil:
    cdef int last = tile.rank - 1, a = last - 1, k
    cdef const Axis* axis = &tile.axis[last]
    cdef Py_ssize_t places, t, i, reach = axis.stride * (tile.end[last] - tile.begin[last] - 1)
    cdef uint8_t[LANES] picked
    s.windows, s.rule, s.places, s.careful = tile.end[last] - tile.begin[last], tile.rule, of, tile.rule.careful
    s.x, s.y, s.taps = tile.begin[last] * axis.stride - axis.pad, tile.begin[last], axis.kernel
    places = reach + axis.span
    s.registers, s.results = ceil_div(places, LANES), ceil_div(s.windows, LANES)
    for k in range(s.registers):
        of.within[k] = within_of(-s.x - k * LANES, axis.size - s.x - k * LANES)
    for t in range(s.taps):
        for i in range(LANES):
            picked[i] = <uint8_t> (t * axis.dilation + min(i * axis.stride, reach))
        picks_of(&of.picks[t], picked)
    s.ahead, s.fetched = AHEAD // <Py_ssize_t> sizeof(elem_t), places * sizeof(elem_t)
    if a >= 0 and 0 < tile.x_stride[a] < 2 * axis.size:  # small gaps between rows: prefetch the whole plane
        s.fetched = ceil_div(tile.axis[a].size, tile.axis[a].out) * tile.x_stride[a] * <Py_ssize_t> sizeof(elem_t)
    if DIVIDES:
        count_along(tile, of, s.windows)


cdef inline void load_place(vec_t* v, const Rule* rule, const within_t* within, const elem_t* x, Py_ssize_t line,
                            Py_ssize_t lines, int registers, bint deep) noexcept nogil:
    """Load the row at one place of the row axis, and reduce all lines at that place to one."""
    cdef Py_ssize_t i
    cdef int k
    for k in range(registers):
        v[k] = vec_load_within(x + k * LANES, within[k], rule)
    if deep:
        for i in range(1, lines):
            for k in range(registers):
                v[k] = vec_merge(v[k], vec_load_within(x + i * line + k * LANES, within[k], rule))


cdef inline void pool_run(const Short* shared, const Planes* planes, const Divisors* by, int registers,
                          bint deep) noexcept nogil:
    """Pool a run of rows. `registers` and `deep` (whether there are several lines) are compile-time constants."""
    cdef Short s = shared[0]  # copies in registers, which stores cannot change
    cdef Rule rule = shared.rule[0]
    cdef const RowRun* run = &planes.rows[planes.run]
    cdef Py_ssize_t rows = run.n, taps = run.taps, tap = planes.tap, x_row = planes.x_row, y_row = planes.y_row
    cdef Py_ssize_t line = planes.line, lines = planes.lines, old = lines - planes.fresh, _, j, n
    cdef const elem_t* x = planes.x + run.x + shared.x
    cdef elem_t* y = planes.y + run.y + shared.y
    cdef within_t[MOST_REGISTERS] within
    cdef vec_t[MOST_REGISTERS] v, later
    cdef vec_t total, second
    cdef int k, t
    s.rule = &rule
    for k in range(registers):
        within[k] = shared.places.within[k]
    for _ in range(rows):
        for j in range(old, lines):
            fetch(x + j * line + s.ahead, s.fetched)
        load_place(v, &rule, within, x, line, lines, registers, deep)
        for j in range(1, taps):
            load_place(later, &rule, within, x + j * tap, line, lines, registers, deep)
            for k in range(registers):
                v[k] = vec_merge(v[k], later[k])
        for k in range(registers):
            n = s.windows - k * LANES
            if n > 0:
                second = v[min(k + 1, registers - 1)]
                total = vec_pick(v[k], second, &s.places.picks[0])
                for t in range(1, s.taps):
                    total = vec_merge(total, vec_pick(v[k], second, &s.places.picks[t]))
                if DIVIDES and s.careful:
                    vec_divide_part(y + k * LANES, min(n, <Py_ssize_t> LANES), total, by.counts[k], s.rule)
                elif n >= LANES:
                    vec_finish(y + k * LANES, total, by.counts[k], by.inverses[k], s.rule)
                else:
                    vec_finish_part(y + k * LANES, n, total, by.counts[k], by.inverses[k], s.rule)
        x += x_row
        y += y_row


cdef inline void pool_rows(const Short* s, const Planes* planes, const Divisors* by, bint deep) noexcept nogil:
    if s.registers == 1:
        pool_run(s, planes, by, 1, deep)
    elif s.registers == 2:
        pool_run(s, planes, by, 2, deep)
    else:
        pool_run(s, planes, by, 3, deep)


cdef public void run "ENTRY" (Tile* tile) noexcept nogil:
    cdef Divisors[MOST_RUNS] divisors
    cdef Planes planes
    cdef Places places
    cdef Short s
    cdef int r
    prepare(tile, &s, &places)
    start_planes(&planes, tile)
    for r in range(planes.runs):
        divisors[r].known = -1
    while next_run(&planes):
        if DIVIDES:
            set_divisors(&s, &divisors[planes.run], planes.rows[planes.run].count * planes.count)
        if planes.lines > 1:
            pool_rows(&s, &planes, &divisors[planes.run], True)
        else:
            pool_rows(&s, &planes, &divisors[planes.run], False)


cdef public Py_ssize_t scratch_of "ENTRY_SCRATCH" (const Tile* tile) noexcept nogil:
    return 0
