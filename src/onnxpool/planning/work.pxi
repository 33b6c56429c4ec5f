"""The problems that each solver fits, and its amounts of work for each register full of results.

`costs.py` has the time of each unit of work. It names a solver's amounts in the order of this file.
"""

cdef enum:
    PAGE = 1 << 12   # bytes
    NEAR = 1 << 17   # maximum bytes of a window that caches hold until the next window reads it

# The places of a solver's amounts: `whole`,
cdef enum: W_TAPS, W_CONVERTED, W_JOINS, W_SINGLES, W_FOLDS
# `ordered`,
cdef enum: O_TAPS, O_WINDOWS, O_RESULTS, O_PICKS, O_LINES, O_ROWS
# `slide` and `direct`,
cdef enum: S_COLUMNS, S_CONVERTED, S_WINDOWS
cdef enum: TAPS, CONVERTED, FAR, PART, NESTED, WAITS, WINDOWS, OWN_ROWS, ROOTS
# `short` and `disjoint`,
cdef enum: H_HELD, H_TAKEN, H_ROWS
cdef enum: D_LOADS, D_PICKS, D_GROUPS
# and `passes`.
cdef enum:
    LOADS, STORES, SUMS, SPLITS, P_PICKS, P_TAPS, PLAIN, EACH, CALLS, FOLDS, FOLDED, ROWS, ITEMS, PLANES, P_ROOTS


cdef inline double moves_of(int itemsize) noexcept nogil:
    """Instructions that transposing takes per element, relative to elements of 4 bytes."""
    return 0.6 if itemsize == 1 else 0.8 if itemsize == 2 else 1.6 if itemsize == 8 else 1.0


cdef inline double splits_of(int itemsize) noexcept nogil:
    """Instructions that splitting a row into phases takes, relative to elements of one byte."""
    return 0.1 if itemsize == 4 else 0.35 if itemsize == 8 else 1.0


cdef inline int planar_lanes(int itemsize) noexcept nogil:
    """The minimum lanes that are made adjacent together, if there are enough. Half or twice as many take 1.0 to 1.8
    times as long."""
    return 128 if itemsize <= 2 else 128 // itemsize


cdef inline double filled(double values, double width) noexcept nogil:
    """The number of values that the registers could hold, divided by the number that they do hold."""
    return ceil(values / width) * width / values if values else 1


cdef inline double or_one(double value) noexcept nogil:
    """A divisor: the value, or 1 if it is 0."""
    return value if value else 1


cdef Py_ssize_t lanes_of(const Problem* p) noexcept nogil:
    """
    The lanes that a solver sees at a time. Lanes that are made adjacent are cut into small parts of about equal size. A
    short last part would take 1.2 to 2 times as long, because fast loops need at least two registers of lanes.
    """
    cdef Py_ssize_t least = planar_lanes(p.itemsize)
    if not p.planar or p.lanes < 2 * least:
        return max(<Py_ssize_t> 1, p.lanes)
    return ceil_div(p.lanes, 8 * (p.lanes // least)) * 8


cdef double taps_inside(const Axis* axis) noexcept nogil:
    """
    The mean number of a window's taps inside the input, if the taps outside become steadily fewer from the ends
    inwards. A tap is inside for at most one window every `stride` places.
    """
    cdef double kernel = <double> axis.kernel, out = <double> axis.out, outside = 0, inside, most, windows
    cdef double[2] beyond  # places by which the outermost windows reach into padding
    cdef int side
    if axis.end - axis.begin == axis.out:
        return kernel
    beyond[0], beyond[1] = axis.pad, <double> padded(axis, axis.out) - axis.size - axis.pad
    for side in range(2):
        if beyond[side] > 0:
            windows = min(out, ceil(beyond[side] / axis.stride))
            outside += windows * min(beyond[side] / axis.dilation, kernel) / 2
            outside += windows * min((beyond[side] - (windows - 1) * axis.stride) / axis.dilation, kernel) / 2
    most = <double> ((axis.size - 1) // axis.stride + 1) * kernel
    inside = kernel * out - outside
    return min(most, inside) / out if inside > 0 else 0.0


cdef inline double places(const Axis* axis) noexcept nogil:
    """The number of places that windows read, including places in the padding."""
    cdef double size = <double> axis.size, span = min(<double> axis.span, 2 * size)
    return span + min(<double> padded(axis, axis.out) - axis.span, size + span)


cdef inline double width_of(const Problem* p) noexcept nogil:
    """The number of accumulators that a register holds, for costs."""
    return <double> p.register_bytes / p.acc_bytes


cdef bint converts(const Problem* p) noexcept nogil:
    """Whether loads convert elements."""
    cdef const Kind* kind = &kinds[p.kind]
    return p.itemsize < p.acc_bytes or kind.is_extremum or p.itemsize == 2 and kind.is_max


cdef bint has_near_windows(const Problem* p) noexcept nogil:
    """Whether windows that touch the input reach only a little beyond it, so that rows hold little padding."""
    cdef const Axis* axis
    cdef int a
    for a in range(p.rank):
        axis = &p.axes[a]
        if <double> (axis.span if axis.out == 1 else max(axis.span, axis.stride)) - 8.0 * axis.size > 64:
            return False
    return True


cdef bint has_planes(const Axis* axes, int rank) noexcept nogil:
    """Whether rows of windows can be listed: every window has few taps, at least one of them inside, and few rows
    overhang an end."""
    cdef const Axis* axis
    cdef int a
    if rank > 3 or (rank > 1 and axes[rank - 2].out - max(<Py_ssize_t> 0, axes[rank - 2].end - axes[rank - 2].begin)
                    >= MOST_RUNS):
        return False
    for a in range(rank):
        axis = &axes[a]
        if (axis.wide or axis.kernel > FEW or axis.dilation > axis.size or axis.pad >= axis.span
                or (axis.out - 1) * axis.stride - axis.pad >= axis.size):
            return False
    return True


cdef inline int register_lanes(const Problem* p) noexcept nogil:
    """The number of accumulators that the processor's registers hold."""
    return register_bytes // p.acc_bytes


cdef bint fits_slide(const Problem* p) noexcept nogil:
    """Whether windows have 2 or 3 taps, and columns, each with an element inside, that they may share."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef int a, columns = 0
    for a in range(p.rank - 1):
        if p.axes[a].kernel > 3:
            return False
        columns += p.axes[a].kernel > 1
    return (1 <= columns <= 2 and not last.wide and last.dilation == 1
            and (last.kernel == 3 and last.stride < 3 or last.kernel == last.stride == 2)
            and last.pad < last.kernel and (last.out - 1) * last.stride - last.pad < last.size
            and p.lanes * p.acc_bytes >= LEAST_SLIDING)


cdef double column_of(const Problem* p) noexcept nogil:
    """The number of taps of a window's column: the product of the taps along all axes but the last one."""
    cdef double taps = 1
    cdef int a
    for a in range(p.rank - 1):
        taps *= taps_inside(&p.axes[a])
    return taps


cdef void slide_work(const Problem* p, double* amounts) noexcept nogil:
    """The work of windows that slide along rows: registers of new columns and of totals of shared columns; registers
    whose elements are converted; windows."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef double lanes = <double> lanes_of(p), width = width_of(p), taps
    taps = column_of(p) * last.stride + last.kernel - last.stride
    taps *= ceil(lanes / width) * (width / lanes)
    amounts[S_COLUMNS], amounts[S_CONVERTED], amounts[S_WINDOWS] = taps, taps if converts(p) else 0, width / lanes


cdef bint by_columns(const Problem* p, double inside, double column, double registers) noexcept nogil:
    """Whether `direct` reads the taps of a window column by column, in long pieces."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef const Kind* kind = &kinds[p.kind]
    if not kind.is_max:
        if not kind.is_mean or column == inside:
            return False
    else:
        column = FEW
    return (inside >= 2 * FEW and column * registers >= 48 and registers <= 384
            and (last.kernel <= last.stride or inside * <double> lanes_of(p) * p.itemsize >= 24 << 10))


cdef void direct_work(const Problem* p, double* amounts) noexcept nogil:
    """
    The work of windows that read all of their taps: registers of taps, and how many of these are converted, belong to
    large windows, or have few lanes; calls for taps along further axes, if there is a tree or if axes or taps are many;
    taps of blocks of registers, since each block waits for the one before it; windows; rows of several windows; roots.
    Adjacent windows with stride 1 are one window with all their lanes.
    """
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef double lanes = <double> lanes_of(p), inside = 1, first = 0, width = width_of(p)
    cdef double registers, each, taps, inner, runs, blocks
    cdef bint far, many = p.rank > 3
    cdef int a
    for a in range(p.rank):
        taps = taps_inside(&p.axes[a])
        if not first and (p.axes[a].kernel > 1 or a == p.rank - 1):
            first = taps
        inside *= taps
        many |= kinds[p.kind].is_ordered and p.axes[a].kernel > FEW
    many |= inside > FEW * FEW * FEW
    far = inside > FEW and inside * lanes * p.itemsize > NEAR  # few taps are streams, whatever their distance
    amounts[OWN_ROWS] = width / lanes / last.out if last.out > 1 else 0
    registers, each = ceil(lanes / width), width / lanes  # registers of a window; windows per register of results
    if last.stride == 1 and not many and last.out:
        inner = max(<Py_ssize_t> 0, last.end - last.begin)
        runs = last.out - inner  # at the borders, adjacent windows with the same taps are one
        lanes *= last.out / (min(runs, 2.0 * last.kernel) + (inner > 0))
        far = far and inner < 2  # rows of several windows are read in order
        registers, each = ceil(lanes / width), width / lanes
    elif not many and by_columns(p, inside, first, registers):
        far = False
    taps = inside * registers * each
    amounts[CONVERTED] = taps if converts(p) else 0
    amounts[TAPS], amounts[FAR], amounts[PART] = taps, taps if far else 0, taps if each > 1 else 0
    blocks = floor(registers / 4) + fmod(registers, 4)
    if many:
        amounts[NESTED] = max(0.0, inside / or_one(first) - 1) * blocks * each
    else:
        blocks -= floor(fmod(registers, 4) / 2)
    amounts[WAITS] = inside * blocks * each
    amounts[WINDOWS] = each
    amounts[ROOTS] = registers * each if kinds[p.kind].is_norm else 0


cdef void whole_work(const Problem* p, double* amounts) noexcept nogil:
    """
    The work of whole channels: registers of taps, and registers that are converted. If a single lane ends in a register
    whose elements must be joined, also the joins: several channels at a time, one by one for maxima of few bytes, or in
    few steps for quantised elements.
    """
    cdef double width = width_of(p), taps = 1
    cdef int a
    for a in range(p.rank):
        taps *= p.axes[a].size
    amounts[W_TAPS] = taps * filled(<double> lanes_of(p), width) if p.lanes > 1 else ceil(taps / width) * width
    amounts[W_CONVERTED] = amounts[W_TAPS] if converts(p) else 0
    if p.lanes <= 1:
        amounts[W_FOLDS if kinds[p.kind].is_quantised else W_SINGLES if p.acc_bytes < 4 else W_JOINS] = (
            width * log2(width))


cdef void ordered_work(const Problem* p, double* amounts) noexcept nogil:
    """
    The work of taps in row-major order: registers of taps and of results; windows of lanes, or rows with a line for
    every tap of the other axes. Elements far apart are picked one by one. Rows of a single axis hold all items.
    """
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef double width = width_of(p), lanes = <double> lanes_of(p), inside = 1, read = 1, results, registers
    cdef int a
    for a in range(p.rank):
        inside *= taps_inside(&p.axes[a])
    if lanes > 1:
        registers = filled(lanes, width)
        amounts[O_TAPS], amounts[O_WINDOWS], amounts[O_RESULTS] = inside * registers, width / lanes, registers
        return
    results = max(1.0, <double> last.out if p.rank > 1 else <double> last.out * p.items)
    registers = filled(results, width)
    for a in range(p.rank - 1):
        read *= min(<double> p.axes[a].size, places(&p.axes[a])) / or_one(p.axes[a].out)
    amounts[O_TAPS], amounts[O_RESULTS] = inside * registers, registers
    amounts[O_PICKS] = read * places(last) / or_one(last.out) if last.stride > 4 else 0
    amounts[O_LINES], amounts[O_ROWS] = width / results * inside / or_one(taps_inside(last)), width / results


cdef bint fits_short(const Problem* p) noexcept nogil:
    """Whether few registers hold a row, and rows can be listed."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef int width = register_lanes(p)
    return (p.lanes == 1 and has_planes(p.axes, p.rank)
            and padded(last, last.out) <= (3 if last.stride == 1 else 2) * width
            and (last.span <= width or last.stride > 1))


cdef void short_work(const Problem* p, double* amounts) noexcept nogil:
    """The work of rows in registers: registers of a row for each tap of other axes; registers of taps along rows;
    rows."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef double width = width_of(p), rows = width / or_one(last.out)  # for each register full of results
    amounts[H_HELD] = column_of(p) * ceil(places(last) / width) * rows
    amounts[H_TAKEN] = last.kernel * ceil(last.out / width) * rows
    amounts[H_ROWS] = rows


cdef bint fits_disjoint(const Problem* p) noexcept nogil:
    """Whether windows share no place along the last axis, and rows hold enough groups of them."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef Py_ssize_t lanes = p.lanes, width = register_lanes(p), inside = last.end - last.begin
    # Windows that overhang an end are reduced one by one. For a single lane, other loops are nearly as fast.
    cdef Py_ssize_t groups = 1 if inside == last.out else 32 if lanes == 1 else 4
    return (1 < last.stride <= 4 and last.kernel == last.span and last.kernel <= last.stride and not p.planar and lanes
            and (lanes > 1 or last.stride != 3)  # splitting three registers takes so long that little is gained
            and (lanes == 1 or 2 * lanes <= width and last.kernel * (last.stride - 1) <= most_picks)
            and inside >= width // lanes * groups and has_planes(p.axes, p.rank)
            and (p.rank < 3 or p.axes[1].kernel <= p.axes[1].stride))  # otherwise, windows share rows


cdef void disjoint_work(const Problem* p, double* amounts) noexcept nogil:
    """The work of groups of windows: registers that are loaded; registers that are split or picked from; groups."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef Py_ssize_t width = p.register_bytes // p.acc_bytes
    cdef double groups = <double> width / (width // p.lanes * p.lanes)
    amounts[D_LOADS] = last.stride * column_of(p) * groups
    amounts[D_PICKS] = (last.stride - 1) * (last.kernel if p.lanes > 1 else 1) * groups
    amounts[D_GROUPS] = groups


cdef bint share_little(const Problem* p, const Axis* axis, double values) noexcept nogil:
    """Whether windows of many taps share so few places, and rows have so many values, that windows are reduced one by
    one."""
    return (axis.kernel > FEW and values * p.acc_bytes >= 2 * p.register_bytes
            and (axis.out == 1 or <double> axis.kernel <= 2.0 * bits_of(axis.kernel) * axis.stride))


cdef bint stacked(const Problem* p, int a) noexcept nogil:
    """Whether `stack` reduces the windows along an axis one by one."""
    cdef double values = <double> p.lanes, width = width_of(p)
    if a < p.rank - 1:
        values = ceil(or_one(places(&p.axes[p.rank - 1])) * <double> lanes_of(p) / width) * width
    return share_little(p, &p.axes[a], values)


cdef bint fits_stack(const Problem* p) noexcept nogil:
    cdef int a
    if has_near_windows(p):
        for a in range(p.rank):
            if stacked(p, a):
                return True
    return False


cdef bint fits_folded(const Problem* p) noexcept nogil:
    """Whether windows along rows have many adjacent taps, of which they share few."""
    cdef const Axis* last = &p.axes[p.rank - 1]
    return (p.lanes == 1 and last.dilation == 1 and last.kernel > FEW
            and <double> last.kernel * p.acc_bytes >= (1024 if kinds[p.kind].is_mean else 512)
            and (last.out == 1 or <double> last.kernel <= 2.0 * last.stride) and has_near_windows(p))


cdef bint folded(const Problem* p, int a) noexcept nogil:
    """Whether `folded` reduces the windows along an axis one by one: always along rows, and otherwise as `stack`
    does."""
    return a == p.rank - 1 or stacked(p, a)


cdef void work_of_passes(const Problem* p, bint (*singly)(const Problem*, int) noexcept nogil,
                         double* amounts) noexcept nogil:
    """
    The work of passes: registers that are loaded, stored, added, and split into phases; results that are picked one by
    one; registers of taps along the last axis, and of taps that `direct` reads as they are; windows of the last axis
    that are reduced one by one; registers of their taps whose powers are computed by calls; windows that are reduced in
    registers, with the registers of their taps; rows; planes that are loaded; items that are loaded one by one; square
    roots. `singly` says along which axes windows are reduced one by one, if there are any.

    Each pass writes results. The next pass reads some of them repeatedly, some not at all. Rows hold the padding of the
    last axis, and trees hold the padding of their axis. Taps are reduced while they are loaded if they are few taps of
    the first axis, or belong to windows that are reduced one by one.
    """
    cdef const Axis* last = &p.axes[p.rank - 1]
    cdef const Axis* first = p.axes
    cdef const Axis* axis
    cdef const Kind* kind = &kinds[p.kind]
    cdef int a, before = p.rank - 1, reduced = 0
    cdef double width, lanes, out, size, results, row_places, row, loaded, done, taps, inner, rows, count
    cdef double stores = 0, added = 0, loads = 1, each = 0, windows = 1, planes = 1
    cdef bint tree = last.kernel > FEW, strided, apart, split, picked, joined, even, lone, fold
    width, lanes, out, size = width_of(p), <double> lanes_of(p), or_one(last.out), <double> last.size
    results = out * lanes / width  # registers of a row of results
    strided = last.stride > 1 and out > 1
    apart = strided and lanes >= width
    split = strided and lanes == 1 and last.stride <= 4 and not tree and not (before and first.kernel > FEW)
    picked = strided and not apart and not split
    joined = (split and before <= 1 and last.span == last.kernel and last.kernel <= last.stride
              and last.begin + last.out == last.end)
    row_places = or_one(places(last))
    row = ceil(row_places * lanes / width) / results
    loaded = row if row_places <= size else ceil(size * lanes / width) / results
    done = filled(lanes if apart else out * lanes, width)
    taps = done if picked or joined or tree else done * last.kernel
    inner = row  # registers of rows per register of results
    for a in range(before - 1, -1, -1):
        axis = &p.axes[a]
        windows *= or_one(axis.out)
        count = places(axis)
        lone = singly != NULL and singly(p, a)
        if axis.kernel > FEW and not lone:
            added += (2 * log2(<double> axis.kernel) + 2) * inner * count / or_one(axis.out)
            stores += inner
            loads = count / or_one(axis.out)
        else:
            loads = taps_inside(axis)
            if lone:
                each += inner / row / results
            if a:
                added += loads * inner
                stores += inner
                if count > axis.size and not lone:
                    count = <double> axis.size
        if a:
            inner *= count / or_one(axis.out)
        if a < before - 1:
            planes *= count if a else <double> axis.out
    rows = inner / row  # rows per row of results and tap of the first axis
    even = (before == 1 and first.kernel <= FEW and first.end - first.begin == first.out
            and <double> first.size == <double> first.out * first.stride and not kind.is_mean)
    lone = singly != NULL and singly(p, p.rank - 1)
    fold = lone and p.lanes == 1
    if fold:
        if not before:
            inner = loaded = 0
    elif lone and before:
        added += done * last.kernel
        stores += done
    elif lone:
        inner, loaded = done, done * taps_inside(last)
    elif picked or tree:
        added += (2 * log2(<double> last.kernel) + 2 if tree else <double> last.kernel) * row
        stores += row
    amounts[LOADS], amounts[STORES] = loads * rows * loaded, stores + (rows * done if joined else inner)
    amounts[SUMS], amounts[SPLITS] = added, inner * splits_of(p.itemsize) if split else 0
    amounts[P_PICKS], amounts[P_TAPS] = width / lanes if picked else 0, taps
    amounts[PLAIN] = taps if apart and not converts(p) else 0
    amounts[EACH] = each + (width / lanes if lone and not fold else 0)
    while reduced < before and p.axes[reduced].kernel == 1:
        reduced += 1
    if kind.is_norm and singly != NULL and singly(p, reduced) and not (fold and reduced == before):
        amounts[CALLS] = done * last.kernel if before and reduced == before else amounts[LOADS]
    if fold:
        amounts[FOLDS], amounts[FOLDED] = width, <double> last.kernel
    if before or lone or strided or row_places > size:  # otherwise loaded as one
        amounts[ROWS] = rows / results
    if not even if before else lone or apart and p.planar:
        amounts[ITEMS] = 1 / (results * windows)  # otherwise items are rows
    if before > 1:
        amounts[PLANES] = planes / (results * windows)
    if kind.is_norm:
        amounts[P_ROOTS] = done


cdef void passes_work(const Problem* p, double* amounts) noexcept nogil:
    work_of_passes(p, NULL, amounts)


cdef void stack_work(const Problem* p, double* amounts) noexcept nogil:
    work_of_passes(p, stacked, amounts)


cdef void folded_work(const Problem* p, double* amounts) noexcept nogil:
    work_of_passes(p, folded, amounts)


cdef bint fits(int s, const Problem* p) noexcept nogil:
    """Whether a solver can solve the problem."""
    cdef const Solver* solver = &table[s]
    return (p.whole == solver.whole and units[s][p.kind][p.dtype] != NULL
            and (solver.fits == NULL or solver.fits(p)))


cdef double cost_of(int s, const Problem* p) noexcept nogil:
    """Nanoseconds for each register full of results."""
    cdef double[MOST_AMOUNTS] amounts
    cdef double total = 0
    cdef int i
    memset(amounts, 0, sizeof(amounts))
    table[s].work(p, amounts)
    for i in range(table[s].amounts):
        total += table[s].cost[i] * amounts[i]
    return total
