"""Lines: the elements that windows read along the last axis, for one tap of each other axis.

A line is loaded once for all windows of a row of results. It is copied to scratch memory as accumulators, with
identities in place of the padding. The copy is ordered by phases: places whose distance is a multiple of `modulus`, the
distance between windows, are adjacent. Each tap therefore reads the values of all windows and lanes as one contiguous
run. Only phases that contain taps are stored. Short lines of several items are loaded one after another. A box is one
tap of each axis except the last two. Lines along the second-to-last axis are kept in a ring until the box changes.
"""
from libc.stdint cimport int64_t

from .cursor cimport advance
from .element cimport (
    LANES,
    Woven,
    Woven4,
    acc_t,
    elem_t,
    end_of,
    see,
    seen_t,
    vec_load,
    vec_load_part,
    vec_t,
    vec_write,
)
from .job cimport MOST_AXES, TOO_LARGE, Axis, Rule, Tile, Window, window_at
from .ordered cimport FLAT
from .phases cimport Triple, load_groups
from .rows cimport Columns, fill_row

cdef struct Line:
    const elem_t* x            # place 0 of the last axis
    char* row                  # the line as loaded, or reduced
    int64_t place              # the index of place 0
    bint fresh                 # not loaded yet

cdef struct Phase:
    # Places from low to high lie inside the array; the first of them is at x.
    Py_ssize_t low, high, x

cdef struct Lines:
    const Tile* tile
    # The windows of the last axis, and how a group of items has its lines loaded, one after another.
    Py_ssize_t windows, values           # number of windows; length of a row, with unused values between items
    Py_ssize_t most, group, pitch        # maximum items of a group, items of this group; values from item to item
    Py_ssize_t room, results             # sizes of a loaded row and of a row of results, sufficient for smaller tiles
    Py_ssize_t first, taps               # place of the first tap of the first window; taps of each window
    Py_ssize_t modulus, phases           # places from window to window; number of phases
    Py_ssize_t most_phases               # maximum number of phases, over smaller tiles as well
    bint split                           # whether every remainder has a phase, in order
    Columns columns                      # if `split`, how all phases are loaded at once
    Py_ssize_t length, phase_pitch       # places of a phase, and accumulators from one to the next
    Phase* phase
    const elem_t* limit                  # all elements before it may be read, needed or not; or NULL
    Py_ssize_t* tap                      # distances of taps in a loaded line
    # The windows of the other axes (at least one), and the lines that they read.
    int outer
    Py_ssize_t[MOST_AXES] at
    double divisor                       # their factor of a mean's divisor
    Py_ssize_t ring, boxes               # places of the ring; taps of the axes before the ring's axis
    Py_ssize_t* made                     # the place that each row of the ring holds
    Line* line
    Py_ssize_t n                         # number of lines; 0 if a window is empty
    char* rows
    Py_ssize_t row                       # bytes from row to row


cdef inline Py_ssize_t gcd(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    while b:
        a, b = b, a % b
    return a


cdef inline Py_ssize_t calm_windows(const Tile* tile) noexcept nogil:
    """The maximum number of windows of the last axis for which lines are loaded at once, so that lines are not mostly
    padding. It does not depend on the tile, because scratch memory must also suffice for smaller tiles."""
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef double room = (4.0 * axis.size + 64 - <double> axis.kernel * axis.dilation) / axis.stride
    return 1 if room < 2 else <Py_ssize_t> min(room, 9e18)


cdef inline void set_group(Lines* lines, Py_ssize_t items) noexcept nogil:
    lines.group = items
    lines.values = (items - 1) * lines.pitch + lines.windows * lines.tile.lanes


cdef inline void plan(Lines* lines, const Tile* tile, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Plan lines for windows [begin, end) of the last axis. A single window only needs its taps inside the array."""
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef Window window
    lines.tile, lines.windows = tile, end - begin
    lines.outer = max(1, tile.rank - 1)
    if lines.windows == 1:
        window = window_at(axis, begin)
        lines.first, lines.taps, lines.modulus, lines.phases = window.first, window.taps, axis.dilation, 1
        lines.length = min(axis.kernel, axis.size)
        lines.split = False
    else:
        lines.first, lines.taps, lines.modulus = begin * axis.stride - axis.pad, axis.kernel, axis.stride
        lines.phases = min(axis.kernel, axis.stride // gcd(axis.stride, axis.dilation))
        lines.length = lines.windows + (axis.kernel - 1) * axis.dilation // axis.stride
        lines.split = tile.lanes == 1 and 2 <= axis.stride <= 4 and 2 * lines.phases >= axis.stride
    lines.most_phases = max(lines.phases, min(<Py_ssize_t> 4, lines.modulus))
    if lines.split:
        lines.phases = axis.stride
    lines.pitch = lines.length * tile.lanes
    lines.most = max(1, min(tile.items, FLAT // max(1, lines.pitch)))
    lines.room = max(lines.pitch, <Py_ssize_t> FLAT if tile.items > 1 else 0)
    lines.results = max(lines.windows * tile.lanes, <Py_ssize_t> FLAT if tile.items > 1 else 0)
    lines.phase_pitch = lines.room + LANES
    set_group(lines, lines.most)


cdef inline Py_ssize_t settle(Lines* lines, char* scratch, Py_ssize_t row) noexcept nogil:
    """Divide up the scratch memory, and return its size. A row takes `row` bytes."""
    cdef const Tile* tile = lines.tile
    cdef const Axis* axis
    cdef Py_ssize_t kept = 1
    cdef char* begin = scratch
    cdef int a
    lines.boxes, lines.ring, lines.row = 1, 1, row
    for a in range(tile.rank - 1):
        axis = &tile.axis[a]
        kept = min(axis.kernel, axis.size)
        if a < lines.outer - 1:
            lines.boxes *= kept
        else:  # the span of a window, computed without overflow
            lines.ring = axis.size
            if axis.kernel - 1 < axis.size // axis.dilation:
                lines.ring = min(axis.size, (axis.kernel - 1) * axis.dilation + 1)
    lines.tap = <Py_ssize_t*> scratch
    scratch += max(lines.taps, lines.length) * sizeof(Py_ssize_t)
    if <double> lines.ring * lines.boxes * (row + 2.0 * sizeof(Line)) > TOO_LARGE:
        return TOO_LARGE  # before the product wraps around
    lines.made = <Py_ssize_t*> scratch
    scratch += lines.ring * lines.boxes * sizeof(Py_ssize_t)
    lines.phase = <Phase*> scratch
    scratch += lines.most_phases * sizeof(Phase)
    lines.line = <Line*> scratch
    scratch += lines.boxes * kept * sizeof(Line)
    lines.rows = scratch
    return scratch - begin + lines.boxes * lines.ring * row


cdef inline void forget(Lines* lines) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(lines.ring * lines.boxes):
        lines.made[i] = -1


cdef inline Py_ssize_t places_below(Py_ssize_t place, Py_ssize_t first, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    """How many of n places lie below `place`. They start at `first` and are `step` apart."""
    return max(0, min(n, (place - first + step - 1) // step if place > first else 0))


cdef inline void prepare(Lines* lines) noexcept nogil:
    """Set the taps and phases of all lines."""
    cdef const Tile* tile = lines.tile
    cdef const Axis* axis = &tile.axis[tile.rank - 1]
    cdef Py_ssize_t t, first
    lines.limit = end_of(tile)
    prepare_columns(lines)
    for t in range(lines.taps):
        lines.tap[t] = (t * axis.dilation % lines.modulus if lines.split else t % lines.phases) * lines.phase_pitch
        lines.tap[t] += t * axis.dilation // lines.modulus * tile.lanes
    for t in range(lines.phases):
        first = lines.first + (t if lines.split else t * axis.dilation % lines.modulus)
        lines.phase[t].low = places_below(0, first, lines.modulus, lines.length)
        lines.phase[t].high = places_below(axis.size, first, lines.modulus, lines.length)
        lines.phase[t].x = (first + lines.phase[t].low * lines.modulus) * tile.x_stride[tile.rank - 1]


cdef inline void prepare_columns(Lines* lines) noexcept nogil:
    """Describe how all phases of adjacent places are loaded at once."""
    cdef const Tile* tile = lines.tile
    cdef Py_ssize_t begin = max(0, lines.first), end = lines.first + lines.length * lines.modulus
    cdef Columns* c = &lines.columns
    c.pieces, c.n, c.left = 1, min(tile.axis[tile.rank - 1].size, end) - begin, begin - lines.first
    c.taps, c.tap, c.fresh, c.ahead, c.step = 1, 0, 0, 0, tile.x_item
    c.split, c.joined, c.phase, c.length, c.pitch = lines.modulus, 0, lines.phase_pitch, lines.length, lines.pitch
    if lines.taps == 1 and c.left == 0 and c.n > (lines.length - 1) * lines.modulus:
        c.joined = 1  # only the first phase is needed, and it has no padding
    c.begin, c.limit, c.rule = <const elem_t*> tile.x, lines.limit, tile.rule


cdef inline bint first_row(Lines* lines) noexcept nogil:
    """Go to the first window of all axes but the last one. Returns False if there are none."""
    cdef int a
    cdef bint any = lines.windows > 0
    for a in range(lines.tile.rank - 1):
        lines.at[a] = lines.tile.begin[a]
        any &= lines.tile.begin[a] < lines.tile.end[a]
    forget(lines)
    return any


cdef inline bint next_row(Lines* lines) noexcept nogil:
    cdef int moved = advance(lines.at, lines.tile.begin, lines.tile.end, lines.tile.rank - 1)
    if moved < lines.outer - 1:
        forget(lines)  # the ring holds lines of other boxes
    return moved >= 0


cdef inline int64_t pace_of(const Tile* tile, int axis) noexcept nogil:
    return tile.pace[axis] if tile.indices != NULL else 0


cdef inline void add_lines(Lines* lines, const elem_t* x, int64_t place, Py_ssize_t box,
                           const Window* window) noexcept nogil:
    """Add the lines of a box, one for each tap of its window along the second-to-last axis."""
    cdef const Tile* tile = lines.tile
    cdef int a = lines.outer - 1
    cdef Py_ssize_t _tap, at = window.first, slot = at % lines.ring, row
    cdef Line* line = &lines.line[lines.n]
    for _tap in range(window.taps):
        row = slot * lines.boxes + box
        line.x, line.place = x + at * tile.x_stride[a], place + at * pace_of(tile, a)
        line.row = lines.rows + row * lines.row
        line.fresh, lines.made[row] = lines.made[row] != at, at
        line += 1
        at += tile.axis[a].dilation
        slot += tile.axis[a].dilation
        if slot >= lines.ring:
            slot -= lines.ring
    lines.n += window.taps


cdef inline void find_lines(Lines* lines, const elem_t* x) noexcept nogil:
    """List the lines of the current windows, in order."""
    cdef const Tile* tile = lines.tile
    cdef int inner = lines.outer - 1, a
    cdef Window[MOST_AXES] window
    cdef Py_ssize_t[MOST_AXES] tap, zero, taps
    cdef Py_ssize_t box = 0, at
    cdef const elem_t* source
    cdef int64_t place
    cdef bint empty = lines.taps == 0
    lines.n, lines.divisor = 0, 1
    if tile.rank == 1:
        lines.line[0], lines.n = Line(x, lines.rows, 0, True), not empty
        return
    for a in range(inner + 1):
        window[a] = window_at(&tile.axis[a], lines.at[a])
        tap[a], zero[a], taps[a] = 0, 0, window[a].taps
        lines.divisor *= window[a].divisor
        empty |= window[a].taps == 0
    if empty:
        return
    while True:
        source, place = x, 0
        for a in range(inner):
            at = window[a].first + tap[a] * tile.axis[a].dilation
            source += at * tile.x_stride[a]
            place += at * pace_of(tile, a)
        add_lines(lines, source, place, box, &window[inner])
        box += 1
        if advance(tap, zero, taps, inner) < 0:
            return


cdef inline void load_run(const Lines* lines, const elem_t* x, acc_t* y, Py_ssize_t n,
                          seen_t* seen) noexcept nogil:
    """Load adjacent elements. The last vector overlaps the one before it. A single vector may write past the end."""
    cdef Py_ssize_t i = 0
    cdef Rule rule = lines.tile.rule[0]  # a copy in registers
    cdef seen_t now = seen[0]
    cdef vec_t v
    if n < LANES:
        v = vec_load(x, &rule) if x + LANES <= lines.limit else vec_load_part(x, n, &rule)
        see(seen, v)
        vec_write(y, v)
        return
    while i < n:
        i = min(i, n - LANES)
        v = vec_load(x + i, &rule)
        see(&now, v)
        vec_write(y + i, v)
        i += LANES
    seen[0] = now


cdef inline void load_places(const Lines* lines, const elem_t* x, Py_ssize_t step, acc_t* y, Py_ssize_t n,
                             seen_t* seen) noexcept nogil:
    """Load the lanes of n places."""
    cdef Py_ssize_t i, lanes = lines.tile.lanes
    if step == lanes:
        load_run(lines, x, y, n * lanes, seen)
    else:
        for i in range(n):
            load_run(lines, x + i * step, y + i * lanes, lanes, seen)


cdef inline void load_line_split(const Columns* c, const elem_t* x, acc_t* y, Py_ssize_t rows,
                                 seen_t* seen) noexcept nogil:
    """Call `load_split` for rows of one tap."""
    if c.split == 2:
        load_groups(<Woven*> NULL, c, x, y, rows, 1, 0, seen)
    elif c.split == 3:
        load_groups(<Triple*> NULL, c, x, y, rows, 1, 0, seen)
    else:
        load_groups(<Woven4*> NULL, c, x, y, rows, 1, 0, seen)


cdef inline void load_line(const Lines* lines, const elem_t* x, acc_t* y, seen_t* seen) noexcept nogil:
    """Load the phases of a line of each item."""
    cdef const Tile* tile = lines.tile
    cdef Py_ssize_t i, item, step = lines.modulus * tile.x_stride[tile.rank - 1]
    cdef Phase phase
    cdef acc_t* to
    if lines.split and tile.x_stride[tile.rank - 1] == 1:
        if lines.columns.n > 0:
            load_line_split(&lines.columns, x + max(0, lines.first), y, lines.group, seen)
        for i in range(lines.phases if lines.columns.n <= 0 else 0):
            fill_row(y + i * lines.phase_pitch, lines.group * lines.pitch)
        return
    for i in range(lines.phases):
        phase = lines.phase[i]
        for item in range(lines.group):  # in order, because a row's end may overlap the next row
            to = y + i * lines.phase_pitch + item * lines.pitch
            fill_row(to, phase.low * tile.lanes)
            if phase.low < phase.high:  # otherwise, x may lie far outside the array
                load_places(lines, x + item * tile.x_item + phase.x, step, to + phase.low * tile.lanes,
                            phase.high - phase.low, seen)
            fill_row(to + phase.high * tile.lanes, (lines.length - phase.high) * tile.lanes)
