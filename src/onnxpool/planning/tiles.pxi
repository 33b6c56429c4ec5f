"""Tiles: how many items, lanes and windows along each axis a solver processes at a time.

Tiles never change a bit of a result. They determine the working set, and how threads can share the work.
"""

cdef enum:
    MOST = 1_000_000  # bytes per thread, as callers are promised about 1 MiB; larger tiles are cut whatever it costs
    # Windows from this size on leave so little room that tiles would read the same elements again and again. Their
    # tiles may take twice as much as a window.
    LARGE_WINDOW = 800_000
    MOST_WINDOWS = 2
    # A problem that several threads solve has 4 to 16 tasks of about LARGE elements and results, unless it is smaller.
    # Two threads took 1.2 times as long with always 16 tasks, whose tiles read more of their borders again, and also
    # with twice as many elements per task (Zen 3, float32, channels last, 0.5 to 4 MB).
    FEWEST_TASKS = 4
    MOST_TASKS = 16
    LARGE = 1 << 17
    LONGEST = 1 << 24  # maximum elements and results of a task, because signals are checked only between tasks
    # The work of two half tiles relative to a whole one, in tenths, as measured on Zen 3 with one thread.
    UNCHANGED = 10
    MOST_EXTRA = 16    # maximum work of two halves, unless memory demands more
    HALVED_LANES = 12  # work of halved lanes that fill cache lines
    FEW_LANES = 20     # work of halved lanes that do not
    INDIVISIBLE = 1 << 30
    # Byte budgets of tiles. Each was compared with half and twice its value, on Zen 3 with one thread. The figures are
    # the times with half and with twice the value, divided by the time with the value.
    PLANAR_ROOM = 1 << 17  # 1.04, 1.00
    LINE_ROOM = 1 << 16    # for more than FEW taps along a single axis, where tiles have no halo: 1.10, 1.05
    LONG_ROOM = 900_000    # for more than FEW taps along an axis, and for retries: 1.09 for 1 << 19
    LONG_LANES = 1 << 13   # minimum bytes of lanes of a tile that is cut, if windows of many taps are read one by one


cdef struct Cutting:
    # Everything that decides the tiles of a stage.
    const Problem* problem
    Scratch scratch
    double groups
    Py_ssize_t free, least, grain  # bytes that copies may take beside scratch memory; minimum and step of cut lanes
    bint all_lanes                 # whether lanes are not cut
    bint stays                     # whether elements stay in place
    bint rereads                   # whether a row of windows reads elements that the previous row has read
    bint by_axis                   # whether axes are reduced one after another, so that each pass reads padding


cdef inline Py_ssize_t read_by(const Axis* axis, Py_ssize_t windows) noexcept nogil:
    """The maximum number of elements that this many neighbouring windows read."""
    return min(axis.size, padded(axis, windows))


cdef inline double results_of(const Problem* p, const Extents* tile) noexcept nogil:
    cdef double total = <double> tile.lanes * tile.items
    cdef int a
    for a in range(p.rank):
        total *= tile.windows[a]
    return total


cdef inline double places_of(const Problem* p, const Extents* tile, bint row) noexcept nogil:
    """The number of places that the windows of a tile read or, if `row`, a row of its windows."""
    cdef double total = 1
    cdef int a
    for a in range(p.rank):
        total *= read_by(&p.axes[a], 1 if row and a == 0 else tile.windows[a])
    return total


cdef double volume(const Cutting* c, const Extents* tile) noexcept nogil:
    """The bytes that a tile takes: scratch memory, and elements and results that are copied or soon read again."""
    cdef const Problem* p = c.problem
    cdef Py_ssize_t[MOST_AXES] zero
    cdef Tile own
    cdef double held = results_of(p, tile), near = 0
    memset(&own, 0, sizeof(Tile))
    memset(zero, 0, p.rank * sizeof(Py_ssize_t))
    own.axis, own.rank, own.joined, own.items, own.lanes = p.axes, p.rank, p.joined, 1, tile.lanes
    own.all_lanes, own.most_lanes, own.begin, own.end = max(<Py_ssize_t> 1, p.lanes), tile.lanes, zero, tile.windows
    if not c.stays:
        held += places_of(p, tile, False) * tile.lanes * tile.items
    elif c.rereads:
        near = places_of(p, tile, True) * tile.lanes
    return <double> c.scratch(&own) + max(near * p.itemsize, held * p.itemsize - c.free)


cdef inline int tenths(double ratio) noexcept nogil:
    """A ratio in tenths. Its exact value is rounded, with halves to even."""
    cdef double n = rint(ratio * 10), rest = fma(ratio, 10, -n)
    return <int> n + (rest > 0.5) - (rest < -0.5)


cdef double passed(const double* read, const double* windows, int rank) noexcept nogil:
    """The number of places that all passes read and write."""
    cdef double total, left = 1
    cdef int a
    for a in range(rank):
        left *= read[a]
    total = left
    for a in range(rank):
        left = left / read[a] * windows[a]
        total += left
    return total


cdef int cheapest_half(const Cutting* c, const Py_ssize_t* windows, int* axis) noexcept nogil:
    """
    The least work of two halves relative to the whole, in tenths, and the axis whose windows are then halved. The last
    axis stays whole while there are several rows that a transposition reads in order.
    """
    cdef const Axis* axes = c.problem.axes
    cdef double[MOST_AXES] read, counts
    cdef double whole = 1, rows = 1
    cdef Py_ssize_t half
    cdef int a, more, least = INDIVISIBLE, rank = c.problem.rank
    if c.by_axis:
        for a in range(rank):
            read[a], counts[a] = <double> padded(&axes[a], windows[a]), windows[a]
        whole = passed(read, counts, rank)
    for a in range(rank - 1):
        rows *= windows[a]
    axis[0] = -1
    for a in range(rank):
        if windows[a] <= 1 or (a == rank - 1 and c.problem.planar and rows > 1):
            continue
        half = (windows[a] + 1) // 2
        if c.by_axis:
            read[a], counts[a] = <double> padded(&axes[a], half), half
            more = tenths(2 * passed(read, counts, rank) / whole)
            read[a], counts[a] = <double> padded(&axes[a], windows[a]), windows[a]
        else:
            more = tenths(2.0 * read_by(&axes[a], half) / read_by(&axes[a], windows[a]))
        if more < least:
            least, axis[0] = more, a
    return least


cdef int halved(const Cutting* c, const Extents* tile, Extents* smaller) noexcept nogil:
    """Halve a tile where this adds the least work, and return the factor by which work grows, in tenths."""
    cdef int more, axis, by_lanes
    cdef bint many = tile.lanes >= 2 * c.least
    smaller[0] = tile[0]
    if tile.items > 1:
        smaller.items = (tile.items + 1) // 2
        return UNCHANGED
    more = cheapest_half(c, tile.windows, &axis)
    by_lanes = INDIVISIBLE if c.all_lanes or tile.lanes <= 1 else HALVED_LANES if many else FEW_LANES
    if by_lanes < more:
        smaller.lanes = ceil_div(tile.lanes, 2 * c.grain) * c.grain if many else ceil_div(tile.lanes, 2)
        return by_lanes
    if axis >= 0:
        smaller.windows[axis] = (tile.windows[axis] + 1) // 2
    return more


cdef void cut(const Cutting* c, double room, Extents* tile) noexcept nogil:
    """Halve a tile until it fits into its room, while halving costs little. Above MOST bytes, halve whatever it
    costs."""
    cdef Extents smaller, single
    cdef double held = volume(c, tile), fits, window
    cdef bint wanted
    cdef int a, more
    while True:
        wanted = held > room
        if not wanted and held <= MOST:
            return
        more = halved(c, tile, &smaller)
        fits = volume(c, &smaller)
        if not wanted or more > MOST_EXTRA:
            single.items, single.lanes = 1, min(tile.lanes, c.least)
            for a in range(c.problem.rank):
                single.windows[a] = 1
            window = volume(c, &single)
            if held <= max(max(<double> MOST, fits), MOST_WINDOWS * window if window > LARGE_WINDOW else 0.0):
                return
        tile[0], held = smaller, fits


cdef inline double tiles_of(const Cutting* c, const Extents* tile) noexcept nogil:
    """The number of tiles for each tile of items."""
    cdef double count = c.groups * ceil_div(c.problem.lanes, tile.lanes)
    cdef int a
    for a in range(c.problem.rank):
        count *= ceil_div(c.problem.axes[a].out, tile.windows[a])
    return count


cdef void divide(const Cutting* c, double tasks, Extents* tile) noexcept nogil:
    """Take a part of a tile, so that there are enough tasks, if this costs little. Items are always halved first."""
    cdef Py_ssize_t items = c.problem.items, part = items
    cdef double others = tiles_of(c, tile)
    cdef Extents smaller
    while part > 1 and ceil_div(items, part) * others < tasks:
        part = (part + 1) // 2
    tile.items = min(part, tile.items)
    while ceil_div(items, part) * others < tasks and halved(c, tile, &smaller) <= MOST_EXTRA:
        tile[0], others = smaller, tiles_of(c, &smaller)


cdef void tasks_of(const Problem* p, double groups, double* alone, double* together) noexcept nogil:
    """The minimum number of tasks of a problem, for one thread and for several, as far as it can be divided."""
    cdef double elements = 1, results = 1, amount
    cdef int a
    for a in range(p.rank):
        elements, results = elements * p.axes[a].size, results * p.axes[a].out
    amount = (elements + results) * groups * p.items * p.lanes
    alone[0], together[0] = max(1.0, floor(amount / LONGEST)), 1
    if amount >= LARGE:
        together[0] = max(alone[0], min(<double> MOST_TASKS, max(<double> FEWEST_TASKS, floor(amount / LARGE))))


cdef int retry_of(int s, const Problem* p, int dtype, int* kind) noexcept nogil:
    """
    The solver that recomputes another solver's suspect results, and its reduction: the retry in the other's record, the
    general solver of its family, or the first solver that takes them.
    """
    cdef Problem other = p[0]
    cdef Py_ssize_t taps = 0
    cdef int a, retry = table[s].retry
    kind[0] = wide
    if kinds[p.kind].is_mean and units[WHOLE][double_mean][dtype] != NULL:
        kind[0] = double_mean
    for a in range(p.rank):
        taps = max(taps, p.axes[a].kernel)
    other.kind, other.dtype = kind[0], dtype
    if retry >= 0 and taps > FEW and fits(retry, &other):
        return retry
    if units[table[s].family][kind[0]][dtype] != NULL:
        return table[s].family
    for s in range(SOLVERS):
        if fits(s, &other):
            return s
    return ANY


cdef void set_stage(Stage* stage, const Problem* p, int s, int kind, int dtype) noexcept nogil:
    stage.solver, stage.kind, stage.unit, stage.by_axis = s, kind, units[s][kind][dtype], table[s].by_axis
    stage.gathers, stage.shares = table[s].gathers and not p.planar, table[s].shares and not p.planar


cdef int set_stages(const Problem* p, int chosen, double groups, int retried, bint contiguous, double share,
                    Stage* stages) noexcept nogil:
    """
    Set up the chosen solver with its tiles. If results may have to be recomputed, also set up a second solver for
    elements of the dtype `retried`, which is -1 otherwise. Return the number of stages.
    """
    cdef const Solver* solver = &table[chosen]
    cdef double room = PLANAR_ROOM if p.planar else solver.room, one, several
    cdef Py_ssize_t least = CACHE_LINE if p.planar and not solver.whole else solver.least_lanes, taps = 0
    cdef Py_ssize_t most = p.lanes
    cdef Cutting c
    cdef int a, again, kind = p.kind
    for a in range(p.rank):
        taps = max(taps, p.axes[a].most)
    if not solver.whole and taps > FEW:
        room, least = LONG_ROOM if p.rank > 1 else LINE_ROOM, CACHE_LINE
        if p.axes[0].singly and not p.planar and share_little(p, p.axes, <double> p.lanes):
            least = LONG_LANES
    room = min(floor(share * room), <double> MOST)
    # Strided elements and results are copied. Contiguous ones stay in place, where some are soon read again.
    c.problem, c.groups, c.stays = p, groups, not p.planar and solver.in_place and (solver.gathers or contiguous)
    # A thread may take MOST bytes: the part that is not scratch memory is available for copied elements.
    c.free = 0 if p.planar or (solver.copies_in_room and not c.stays) else MOST - <Py_ssize_t> room
    c.rereads, c.by_axis = solver.rereads and c.stays, c.stays and solver.by_axis
    c.all_lanes, c.grain = not solver.least_lanes, VECTOR // p.itemsize
    c.least = p.lanes if c.all_lanes else least // p.itemsize
    set_stage(stages, p, chosen, kind, p.dtype)
    c.scratch = stages.unit.scratch
    if p.planar:
        most = lanes_of(p)
    stages.tile.items, stages.tile.lanes = p.items, min(p.lanes, most)
    for a in range(p.rank):
        stages.tile.windows[a] = p.axes[a].out
    cut(&c, room, &stages.tile)
    tasks_of(p, groups, &one, &several)
    if one > 1:
        divide(&c, one, &stages.tile)
    stages.divided = stages.tile
    if several > one:
        divide(&c, several, &stages.divided)
    if retried < 0:
        return 1
    again = retry_of(chosen, p, retried, &kind)
    set_stage(&stages[1], p, again, kind, retried)
    c.rereads, c.scratch = table[again].rereads and c.stays, stages[1].unit.scratch
    c.least, c.grain, c.all_lanes = 1, 1, False
    stages[1].tile = stages.tile
    cut(&c, max(room, <double> LONG_ROOM), &stages[1].tile)
    stages[1].divided = stages[1].tile
    return 2
