"""Rows along a strided axis, split into phases while they are loaded. The phase of a place is its position modulo the
stride. Places with the same phase become adjacent, and each phase is stored as whole vectors."""
from .element cimport (
    LANES,
    Woven,
    Woven4,
    acc_t,
    copy_within,
    elem_t,
    join,
    load,
    see,
    seen_join,
    seen_nothing,
    seen_t,
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
    MOST_VALUES = 256     # values of a group at most: four registers of 64 bytes, with elements of one byte

cdef struct Triple:
    vec_t a, b, c

# A group has one register for each phase. It is loaded from adjacent elements, and then split.
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
    """Split adjacent elements into phases, one in each register."""
    if group_t is Triple:
        vec_split_three(&v.a, &v.b, &v.c)
    else:
        vec_split_two(&v.a, &v.b)
    if group_t is Woven4:
        vec_split_two(&v.c, &v.d)
        vec_split(&v.a, &v.c)
        vec_split(&v.b, &v.d)


cdef inline void keep_lanes(acc_t* y, Py_ssize_t phases, Py_ssize_t phase, const vec_t* ones) noexcept nogil:
    """In one vector of each phase, replace the lanes that hold no element by identities."""
    cdef Py_ssize_t p
    for p in range(phases):
        vec_write(y + p * phase, vec_keep(vec_read(y + p * phase), ones[p]))


cdef inline void see_group(const group_t* v, Py_ssize_t joined, seen_t* seen) noexcept nogil:
    see(seen, v.a)
    if joined == 1:
        return
    see(seen, v.b)
    if group_t is not Woven:
        see(seen, v.c)
    if group_t is Woven4:
        see(seen, v.d)


cdef inline Py_ssize_t lanes_before(Py_ssize_t value, Py_ssize_t phase, Py_ssize_t stride) noexcept nogil:
    """The number of lanes of a phase that come before a value of a group."""
    return min(<Py_ssize_t> LANES, ceil_div(value - phase, stride)) if value > phase else 0


cdef inline const elem_t* gather(const Columns* c, const elem_t* x, Py_ssize_t first, Py_ssize_t n,
                                 elem_t* values) noexcept nogil:
    """Copy the elements of a group, tap by tap, because memory before and after them may not be readable."""
    cdef Py_ssize_t t, low = max(0, -first), high = min(n, c.pieces * c.n - first)
    for t in range(c.taps):
        copy_within(values + t * MOST_VALUES, n, low, x + first + low + t * c.tap, high - low)
    return values


cdef inline void write_phases(acc_t* y, group_t* v, Py_ssize_t phase, Py_ssize_t joined) noexcept nogil:
    """Write each phase, or the first `joined` phases merged into one."""
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
                             Py_ssize_t taps, Py_ssize_t joined, seen_t* seen) noexcept nogil:
    """Like `load_columns`. Loads before and after a row read elements of other rows. If there are none, the first and
    the last group of a row are gathered. Rows are written in order, because one may overlap the next."""
    cdef Columns c = columns[0]  # a copy in registers, which stores cannot change
    cdef elem_t[FEW * MOST_VALUES] values
    cdef vec_t[4] first, last
    cdef seen_t part
    cdef group_t v, later
    cdef Py_ssize_t phases = phases_of(unused), block = phases * LANES, n = c.pieces * c.n, fetched = taps - c.fresh
    cdef Py_ssize_t begin = c.left // block * LANES, end = round_up(c.left + n, block) // phases
    cdef Py_ssize_t start = begin * phases - c.left, tap, i, stop, t, p, _
    cdef bint head = c.left % block and not joined, tail = (c.left + n) % block and not joined
    cdef bint apart = (begin or end < c.length) and not joined, edges = head or tail or apart
    cdef const elem_t* limit = NULL if c.limit == NULL else c.limit - (end - begin) * phases - (taps - 1) * c.tap
    cdef const elem_t* source
    for p in range(phases if head else 0):
        first[p] = vec_ones(lanes_before(-start, p, phases), LANES)
    for p in range(phases if tail else 0):
        last[p] = vec_ones(0, lanes_before(c.left + n - (end - LANES) * phases, p, phases))
    for _ in range(rows):
        i, stop, source, tap = begin, end, x + start, c.tap
        if source < c.begin or source > limit:
            stop, source, tap = begin + LANES, gather(&c, x, start, block, values), MOST_VALUES
        while True:
            part = seen_nothing()  # per loop, because a register does not survive the calls between these loops
            while i < stop:
                for t in range(fetched, taps):
                    fetch(x + i * phases - c.left + t * c.tap + c.ahead, block * sizeof(elem_t))
                load_group(&v, source, c.rule)
                for t in range(1, taps):
                    load_group(&later, source + t * tap, c.rule)
                    join_group(&v, &later)
                split(&v)
                see_group(&v, joined, &part)
                write_phases(y + i, &v, c.phase, joined)
                i += LANES
                source += block
            seen_join(seen, part)
            if i == end:
                break
            source, tap, stop = x + i * phases - c.left, c.tap, end - LANES
            if i == stop:
                source, tap, stop = gather(&c, x, i * phases - c.left, block, values), MOST_VALUES, end
        if edges:
            if head:
                keep_lanes(y + begin, phases, c.phase, first)
            if tail:
                keep_lanes(y + end - LANES, phases, c.phase, last)
            for p in range(phases if apart else 0):
                fill_row(y + p * c.phase, begin)
                fill_row(y + p * c.phase + end, c.length - end)
        x += c.step
        y += c.pitch


cdef inline void load_split(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows, seen_t* seen) noexcept nogil:
    if c.split == 2 and c.taps == 3:  # if taps are constant, the compiler unrolls their loop
        load_groups(<Woven*> NULL, c, x, y, rows, 3, c.joined, seen)
    elif c.split == 2:
        load_groups(<Woven*> NULL, c, x, y, rows, c.taps, c.joined, seen)
    elif c.split == 3:
        load_groups(<Triple*> NULL, c, x, y, rows, c.taps, c.joined, seen)
    else:
        load_groups(<Woven4*> NULL, c, x, y, rows, c.taps, c.joined, seen)
