"""Rows of a strided axis, of whose places each has a phase: its number modulo the stride. They are split while they are
loaded: places of the same phase lie side by side, in phases that are whole vectors."""
from libc.string cimport memset

from .element cimport (
    LANES,
    Woven,
    Woven4,
    acc_t,
    elem_t,
    join,
    load,
    vec_keep,
    vec_load,
    vec_merge,
    vec_ones,
    vec_read,
    vec_split,
    vec_split_three,
    vec_split_two,
    vec_t,
    vec_write,
)
from .job cimport FEW, Rule, ceil_div, fetch, round_up
from .rows cimport Columns, fill_row

cdef enum:
    MOST_VALUES = 256     # of a group: four registers of bytes, of 64 bytes each

cdef struct Triple:
    vec_t a, b, c

# As many registers as there are phases. A group is loaded from neighbours, and then split.
ctypedef fused group_t:
    Woven
    Triple
    Woven4


cdef inline Py_ssize_t phases_of(const group_t* v) noexcept nogil:
    if group_t is Woven4:
        return 4
    elif group_t is Triple:
        return 3
    else:
        return 2


cdef inline void load_group(group_t* v, const elem_t* x, const Rule* rule) noexcept nogil:
    if group_t is Triple:
        v.a, v.b, v.c = vec_load(x, rule), vec_load(x + LANES, rule), vec_load(x + 2 * LANES, rule)
    else:
        load(v, x, phases_of(v) * LANES, rule)


cdef inline void join_group(group_t* earlier, const group_t* later) noexcept nogil:
    if group_t is Triple:
        earlier.a, earlier.b = vec_merge(earlier.a, later.a), vec_merge(earlier.b, later.b)
        earlier.c = vec_merge(earlier.c, later.c)
    else:
        join(earlier, later)


cdef inline void split(group_t* v) noexcept nogil:
    """Neighbours become phases, of which each register is one."""
    if group_t is Triple:
        vec_split_three(&v.a, &v.b, &v.c)
    else:
        vec_split_two(&v.a, &v.b)
    if group_t is Woven4:
        vec_split_two(&v.c, &v.d)
        vec_split(&v.a, &v.c)
        vec_split(&v.b, &v.d)


cdef inline Py_ssize_t lanes_before(Py_ssize_t value, Py_ssize_t phase, Py_ssize_t stride) noexcept nogil:
    """How many lanes of a phase are before a value of a group."""
    return min(<Py_ssize_t> LANES, ceil_div(value - phase, stride)) if value > phase else 0


cdef inline void keep_elements(const Columns* c, acc_t* y, Py_ssize_t rows, Py_ssize_t lane) noexcept nogil:
    """Of the groups that begin at a lane, in each row, values that are no elements become identities."""
    cdef Py_ssize_t phase = c.pitch // c.split, pitch = c.pitch, first = lane * c.split - c.left, p, _
    cdef acc_t* lanes
    cdef vec_t ones
    for p in range(c.split):
        lanes = y + p * phase + lane
        ones = vec_ones(lanes_before(-first, p, c.split), lanes_before(c.pieces * c.n - first, p, c.split))
        for _ in range(rows):
            vec_write(lanes, vec_keep(vec_read(lanes), ones))
            lanes += pitch


cdef inline void pad_phases(const Columns* c, acc_t* y, Py_ssize_t rows, Py_ssize_t begin,
                            Py_ssize_t end) noexcept nogil:
    """What is no element in rows whose groups from lane `begin` to `end` were loaded."""
    cdef Py_ssize_t block = c.split * LANES, behind = c.left + c.pieces * c.n, phase = c.pitch // c.split, p
    if c.left % block:
        keep_elements(c, y, rows, begin)
    if behind % block and not (c.left % block and begin + LANES == end):
        keep_elements(c, y, rows, end - LANES)
    if begin or end < phase:
        for p in range(rows * c.split):
            fill_row(y + p * phase, begin)
            fill_row(y + p * phase + end, phase - end)


cdef inline const elem_t* gather(const Columns* c, const elem_t* x, Py_ssize_t first, Py_ssize_t n,
                                 elem_t* values) noexcept nogil:
    """The elements of a group, tap by tap: what would be before and behind them may not be there."""
    cdef Py_ssize_t t, i
    for t in range(c.taps):
        memset(values + t * MOST_VALUES, 0, n * sizeof(elem_t))
        for i in range(max(0, -first), min(n, c.pieces * c.n - first)):
            values[t * MOST_VALUES + i] = x[first + i + t * c.tap]
    return values


cdef inline void write_phases(acc_t* y, group_t* v, Py_ssize_t phase, Py_ssize_t joined) noexcept nogil:
    """Each phase, or so many of the first ones as one."""
    if joined > 1:
        v.a = vec_merge(v.a, v.b)
    if group_t is not Woven and joined > 2:
        v.a = vec_merge(v.a, v.c)
    if group_t is Woven4 and joined > 3:
        v.a = vec_merge(v.a, v.d)
    vec_write(y, v.a)
    if joined:
        return
    vec_write(y + phase, v.b)
    if group_t is not Woven:
        vec_write(y + 2 * phase, v.c)
    if group_t is Woven4:
        vec_write(y + 3 * phase, v.d)


cdef inline void load_groups(group_t* unused, const Columns* columns, const elem_t* x, acc_t* y, Py_ssize_t rows,
                             Py_ssize_t taps, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """As `load_columns`. What is loaded before and behind a row are elements of other rows. Where there are none, the
    first and the last group of the row are gathered."""
    cdef Columns c = columns[0]  # in registers, as nobody else can write it
    cdef elem_t[FEW * MOST_VALUES] values
    cdef group_t v, later
    cdef Py_ssize_t phases = phases_of(unused), block = phases * LANES, phase = c.pitch // phases
    cdef Py_ssize_t fetched = taps - c.fresh, first = begin * phases - c.left, tap, i, stop, t, _
    cdef const elem_t* limit = NULL if c.limit == NULL else c.limit - (end - begin) * phases - (taps - 1) * c.tap
    cdef const elem_t* source
    cdef bint alone
    for _ in range(rows):
        i, stop, source, tap = begin, end, x + first, c.tap
        alone = source < c.begin or source > limit
        if alone:
            stop, source, tap = begin + LANES, gather(&c, x, first, block, values), MOST_VALUES
        while True:
            while i < stop:
                for t in range(fetched, taps):
                    fetch(x + i * phases - c.left + t * c.tap + c.ahead, block * sizeof(elem_t))
                load_group(&v, source, c.rule)
                for t in range(1, taps):
                    load_group(&later, source + t * tap, c.rule)
                    join_group(&v, &later)
                split(&v)
                write_phases(y + i, &v, phase, c.joined)
                i += LANES
                source += block
            if i == end:
                break
            source, tap, stop = x + i * phases - c.left, c.tap, end - LANES
            if i == stop:
                source, tap, stop = gather(&c, x, i * phases - c.left, block, values), MOST_VALUES, end
        x += c.step
        y += c.pitch


cdef inline void load_split(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows) noexcept nogil:
    cdef Py_ssize_t block = c.split * LANES, begin = c.left // block * LANES
    cdef Py_ssize_t end = round_up(c.left + c.pieces * c.n, block) // c.split
    if c.split == 2 and c.taps == 3:
        load_groups(<Woven*> NULL, c, x, y, rows, 3, begin, end)
    elif c.split == 2:
        load_groups(<Woven*> NULL, c, x, y, rows, c.taps, begin, end)
    elif c.split == 3:
        load_groups(<Triple*> NULL, c, x, y, rows, c.taps, begin, end)
    else:
        load_groups(<Woven4*> NULL, c, x, y, rows, c.taps, begin, end)
    if not c.joined:
        pad_phases(c, y, rows, begin, end)
