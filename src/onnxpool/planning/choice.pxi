"""Choosing the solver of a problem, and whether strided channels are made adjacent for it."""

cdef enum:
    TILE = 512  # places of a tile whose channels are made adjacent

cdef int forced_solver = ANY, forced_lanes = ANY


cdef double moved(const Problem* p) noexcept nogil:
    """How many registers of elements and results are moved per register of results."""
    cdef double amount = 1
    cdef int a
    for a in range(p.rank):
        amount *= <double> read_by(&p.axes[a], p.axes[a].out) / or_one(p.axes[a].out)
    return (amount + 1) * moves_of(p.itemsize) * 4 / p.acc_bytes


cdef double halo(const Problem* p) noexcept nogil:
    """
    The average number of times that tiles read a place, if channels are made adjacent tile by tile. A place is read at
    most as often as windows have taps.
    """
    cdef Py_ssize_t side = <Py_ssize_t> rint(pow(TILE, 1.0 / p.rank))  # windows of a tile along each axis
    cdef double times = 1, read, most
    cdef const Axis* axis
    cdef int a
    for a in range(p.rank):
        axis = &p.axes[a]
        if axis.out > side:
            read, most = <double> read_by(axis, side) * axis.out / side, <double> read_by(axis, axis.out)
            if 2 * (axis.end - axis.begin) < axis.out:  # most windows overhang, so some may have no tap
                read = max(most, min(read, taps_inside(axis) * axis.out))
            times *= read / most
    return times


cdef Choice choose(const Problem* p, int form) noexcept nogil:
    """The cheapest solver among the first fitting solvers of all families. If none of them has costs, the first solver
    that fits."""
    cdef Choice choice = Choice(ANY, form, HUGE_VAL)
    cdef bint forced = forced_solver != ANY and fits(forced_solver, p)
    cdef int s, met = ANY  # the family of the last solver that fits
    cdef double cost
    for s in range(SOLVERS):
        if s != forced_solver if forced else table[s].family == met or not fits(s, p):
            continue
        met = table[s].family
        if choice.solver == ANY:
            choice.solver = s
        if table[s].costed:
            cost = cost_of(s, p)
            if cost < choice.cost:
                choice.solver, choice.cost = s, cost
    return choice


cdef Choice choose_between(const Problem* rows, const Problem* lanes) noexcept nogil:
    """The cheaper of two forms: rows that are reduced item by item, or strided lanes that are made adjacent."""
    cdef Choice by_rows, by_lanes
    cdef double moving = moving_cost[lanes.whole] * moved(lanes), cost
    if forced_lanes != ANY:
        return choose(lanes, 1) if forced_lanes else choose(rows, 0)
    by_rows = choose(rows, 0)
    if moving >= by_rows.cost:  # not even free reductions would pay for the copies
        return by_rows
    by_lanes = choose(lanes, 1)
    cost = by_lanes.cost + moving
    return by_lanes if cost < by_rows.cost and cost * halo(lanes) < by_rows.cost else by_rows


cdef Choice usual_of(const Problem* problems, int forms) noexcept nogil:
    """The solver and form that costs choose."""
    return choose(problems, 0) if forms == 1 else choose_between(problems, problems + 1)
