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
    vec_part_two,
    vec_split,
    vec_split_three,
    vec_t,
    vec_write,
)
from .job cimport Rule, fetch
from .rows cimport Columns, fill_row, round_up

cdef enum:
    MOST_VALUES = 256     # of a group

cdef struct Triple:
    vec_t a, b, c

cdef struct Edge:
    # A group of which only the values from `low` to `high` are elements.
    Py_ssize_t lane, first, low, high  # where in each phase it is; the element that its first value is, or would be
    vec_t a, b, c, d                   # ones where phases have elements

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
        vec_part_two(&v.a, &v.b)
    if group_t is Woven4:
        vec_part_two(&v.c, &v.d)
        vec_split(&v.a, &v.c)
        vec_split(&v.b, &v.d)


cdef inline Py_ssize_t lanes_before(Py_ssize_t value, Py_ssize_t phase, Py_ssize_t stride) noexcept nogil:
    """How many lanes of a phase are before a value of a group."""
    return min(<Py_ssize_t> LANES, (value - phase + stride - 1) // stride) if value > phase else 0


cdef inline Edge edge_at(Py_ssize_t lane, const Columns* c, Py_ssize_t stride) noexcept nogil:
    """The group that begins at this lane of each phase."""
    cdef Edge edge
    edge.lane, edge.first = lane, lane * stride - c.left
    edge.low, edge.high = max(0, -edge.first), min(stride * LANES, c.pieces * c.n - edge.first)
    edge.a = vec_ones(lanes_before(edge.low, 0, stride), lanes_before(edge.high, 0, stride))
    edge.b = vec_ones(lanes_before(edge.low, 1, stride), lanes_before(edge.high, 1, stride))
    edge.c = vec_ones(lanes_before(edge.low, 2, stride), lanes_before(edge.high, 2, stride))
    edge.d = vec_ones(lanes_before(edge.low, 3, stride), lanes_before(edge.high, 3, stride))
    return edge


cdef inline void keep(group_t* v, const Edge* edge) noexcept nogil:
    """Of a group that is split, values that are no elements become identities."""
    v.a, v.b = vec_keep(v.a, edge.a), vec_keep(v.b, edge.b)
    if group_t is not Woven:
        v.c = vec_keep(v.c, edge.c)
    if group_t is Woven4:
        v.d = vec_keep(v.d, edge.d)


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


cdef inline void load_apart(group_t* v, const elem_t* x, const Edge* edge, const Rule* rule) noexcept nogil:
    """Only the elements of a group: others may not be there."""
    cdef elem_t[MOST_VALUES] values
    cdef Py_ssize_t i
    memset(values, 0, phases_of(v) * LANES * sizeof(elem_t))
    for i in range(edge.low, edge.high):
        values[i] = x[edge.first + i]
    load_group(v, values, rule)


cdef inline void load_edge(group_t* v, const Columns* c, const elem_t* x, const Edge* edge,
                           Py_ssize_t taps) noexcept nogil:
    cdef group_t later
    cdef Py_ssize_t t
    cdef const elem_t* source = x + edge.first
    if c.begin <= source and source + (taps - 1) * c.tap + phases_of(v) * LANES <= c.limit:
        load_group(v, source, c.rule)
        for t in range(1, taps):
            load_group(&later, source + t * c.tap, c.rule)
            join_group(v, &later)
    else:
        load_apart(v, x, edge, c.rule)
        for t in range(1, taps):
            load_apart(&later, x + t * c.tap, edge, c.rule)
            join_group(v, &later)
    split(v)
    keep(v, edge)


cdef inline void load_phases(group_t* unused, const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows,
                             Py_ssize_t taps) noexcept nogil:
    """As `load_columns`. A row begins and ends with an edge perhaps; between them all values are elements."""
    cdef group_t v, later
    cdef Py_ssize_t phases = phases_of(unused), block = phases * LANES, pitch = c.pitch, joined = c.joined
    cdef Py_ssize_t behind = c.left + c.pieces * c.n, begin = c.left // block * LANES, end = behind // block * LANES
    cdef Py_ssize_t phase = pitch if joined else pitch // phases, padded = begin
    cdef Py_ssize_t empty = round_up(behind, block) // phases  # lanes before and behind all elements
    cdef Py_ssize_t tap = c.tap, step = c.step, fetched = taps - c.fresh, ahead = c.ahead, _, t, i, p, e, edges = 0
    cdef const Rule* rule = c.rule
    cdef const elem_t* source
    cdef Edge[2] edge
    if begin * phases < c.left:
        edge[0], edges, begin = edge_at(begin, c, phases), 1, begin + LANES
    if begin <= end and end * phases < behind:
        edge[edges] = edge_at(end, c, phases)
        edges += 1
    for _ in range(rows):
        if padded or empty < phase:
            for p in range(pitch // phase):
                fill_row(y + p * phase, padded)
                fill_row(y + p * phase + empty, phase - empty)
        for e in range(edges):
            for t in range(fetched, taps):
                fetch(x + edge[e].first + t * tap + ahead, block * sizeof(elem_t))
            load_edge(&v, c, x, &edge[e], taps)
            write_phases(y + edge[e].lane, &v, phase, joined)
        source, i = x + begin * phases - c.left, begin
        while i < end:
            for t in range(fetched, taps):
                fetch(source + t * tap + ahead, block * sizeof(elem_t))
            load_group(&v, source, rule)
            for t in range(1, taps):
                load_group(&later, source + t * tap, rule)
                join_group(&v, &later)
            split(&v)
            write_phases(y + i, &v, phase, joined)
            i += LANES
            source += block
        x += step
        y += pitch


cdef inline void load_split(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows) noexcept nogil:
    if c.split == 4:
        load_phases(<Woven4*> NULL, c, x, y, rows, c.taps)
    elif c.split == 3:
        load_phases(<Triple*> NULL, c, x, y, rows, c.taps)
    elif c.taps == 3:
        load_phases(<Woven*> NULL, c, x, y, rows, 3)
    elif c.taps == 2:
        load_phases(<Woven*> NULL, c, x, y, rows, 2)
    else:
        load_phases(<Woven*> NULL, c, x, y, rows, c.taps)
