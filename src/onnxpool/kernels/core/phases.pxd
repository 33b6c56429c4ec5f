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
    vec_phases,
    vec_read,
    vec_split,
    vec_split_three,
    vec_split_two,
    vec_t,
    vec_write,
)
from .job cimport FEW, Rule, fetch, round_up
from .rows cimport Columns, fill_row

cdef enum:
    MOST_VALUES = 256     # maximum values of a group: four registers of 64 bytes, with elements of one byte

cdef struct Triple:
    vec_t a, b, c

cdef struct Edges:
    # Identities around the elements of a row: in the first and last vector of each phase, and outside them.
    Py_ssize_t values, before, after     # values of whole vectors that hold elements; identities before and after them
    bint head, tail                      # whether the first vector, or another last vector, also holds identities
    vec_t[4] first, last                 # which lanes of these vectors hold elements

cdef struct Groups:
    # Groups of a row, as they are loaded.
    const elem_t* x
    Py_ssize_t tap, groups, fresh

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


cdef inline void fill_edges(const Edges* edges, acc_t* end, Py_ssize_t phases, Py_ssize_t phase) noexcept nogil:
    """Write the identities around the values of a row, which end at `end`."""
    cdef acc_t* begin = end - edges.values
    cdef Py_ssize_t p
    if edges.head:
        keep_lanes(begin, phases, phase, edges.first)
    if edges.tail:
        keep_lanes(end - LANES, phases, phase, edges.last)
    for p in range(phases if edges.before or edges.after else 0):
        fill_row(begin - edges.before + p * phase, edges.before)
        fill_row(end + p * phase, edges.after)


cdef inline void see_group(const group_t* v, Py_ssize_t joined, seen_t* seen) noexcept nogil:
    see(seen, v.a)
    if joined == 1:
        return
    see(seen, v.b)
    if group_t is not Woven:
        see(seen, v.c)
    if group_t is Woven4:
        see(seen, v.d)


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


cdef inline void load_run(group_t* unused, const Columns* c, const Groups* run, acc_t* y, Py_ssize_t rows,
                          Py_ssize_t taps, Py_ssize_t joined, const Edges* edges, seen_t* seen) noexcept nogil:
    """Load groups from rows whose elements may all be read."""
    cdef seen_t part = seen_nothing()  # these are copies in registers, which stores cannot change
    cdef const elem_t* x = run.x
    cdef Py_ssize_t phases = phases_of(unused), block = phases * LANES, phase = c.phase, pitch = c.pitch, step = c.step
    cdef Py_ssize_t fetched = taps - run.fresh, ahead = c.ahead, groups = run.groups, tap = run.tap, g, t, _
    cdef Rule rule = c.rule[0]
    cdef group_t v, later
    for _ in range(rows):
        for g in range(groups):
            for t in range(fetched, taps):
                fetch(x + g * block + t * tap + ahead, block * sizeof(elem_t))
            load_group(&v, x + g * block, &rule)
            for t in range(1, taps):
                load_group(&later, x + g * block + t * tap, &rule)
                join_group(&v, &later)
            split(&v)
            see_group(&v, joined, &part)
            write_phases(y + g * LANES, &v, phase, joined)
        if edges != NULL:
            fill_edges(edges, y + groups * LANES, phases, phase)
        x += step
        y += pitch
    seen_join(seen, part)


cdef inline void load_groups(group_t* unused, const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows,
                             Py_ssize_t taps, Py_ssize_t joined, seen_t* seen) noexcept nogil:
    """Load rows like `load_columns`. Loads before and after a row read elements of other rows. If there is no other
    row, the first or last group is gathered. Rows are written in order, because a row may overlap the next."""
    cdef elem_t[FEW * MOST_VALUES] values
    cdef Py_ssize_t phases = phases_of(unused), block = phases * LANES, n = c.pieces * c.n
    cdef Py_ssize_t begin = c.left // block * LANES, end = round_up(c.left + n, block) // phases
    cdef Py_ssize_t start = begin * phases - c.left, groups = (end - begin) // LANES, g = 0, many, before, behind
    cdef const elem_t* limit = c.limit
    cdef bint edged = not joined and (c.left or end < c.length or (c.left + n) % block)
    cdef Edges edges
    cdef Groups run
    if limit != NULL:
        limit -= groups * block + (taps - 1) * c.tap
    edges.values, edges.before, edges.after = end - begin, begin, c.length - end
    edges.head, edges.tail = c.left % block, (c.left + n) % block
    if edged:
        before, behind = c.left % block, (c.left + n - 1) % block + 1
        if edges.head or groups == 1:
            vec_phases(edges.first, before, behind if groups == 1 else block, phases)
        if edges.tail and groups > 1:
            vec_phases(edges.last, 0, behind, phases)
    if groups == 1:
        edges.head, edges.tail = edges.head or edges.tail, False
    x += start
    y += begin
    while rows:
        many = rows if g == 0 and x >= c.begin and c.limit != NULL else 0  # rows that may be read as they are
        while many and x + (many - 1) * c.step > limit:
            many -= 1
        run = Groups(x + g * block, c.tap, groups, c.fresh)
        if not many:
            run.groups = max(1, groups - 2) if g else 1
            if g == 0 or g == groups - 1:
                run = Groups(gather(c, x - start, start + g * block, block, values), MOST_VALUES, 1, 0)
        load_run(unused, c, &run, y + g * LANES, max(1, many), taps, joined,
                 &edges if edged and g + run.groups == groups else NULL, seen)
        g += run.groups
        if g == groups:
            g, many = 0, max(1, many)
            x, y, rows = x + many * c.step, y + many * c.pitch, rows - many


cdef inline void load_split(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows, seen_t* seen) noexcept nogil:
    if c.split == 2 and c.taps == 3:  # if taps are constant, the compiler unrolls their loop
        load_groups(<Woven*> NULL, c, x, y, rows, 3, c.joined, seen)
    elif c.split == 2:
        load_groups(<Woven*> NULL, c, x, y, rows, c.taps, c.joined, seen)
    elif c.split == 3:
        load_groups(<Triple*> NULL, c, x, y, rows, c.taps, c.joined, seen)
    else:
        load_groups(<Woven4*> NULL, c, x, y, rows, c.taps, c.joined, seen)
