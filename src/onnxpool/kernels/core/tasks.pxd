"""Tasks: cuts a job into tiles, and copies the arrays of a tile where their strides do not suit the loops."""
from libc.stdint cimport int64_t
from libc.string cimport memset

from .boxes cimport MOST_COPIED, Copy, CopyLoops
from .extremes cimport Extremes, has_extreme
from .floats cimport OVERFLOWED, clear_exceptions, count_again, exceptions_raised, gather_exceptions
from .interrupts cimport Interrupts, interrupted
from .job cimport (
    CACHE_LINE,
    MOST_AXES,
    Array,
    Axis,
    Loops,
    Rule,
    Scratch,
    Tile,
    Window,
    ceil_div,
    elements_of,
    part_bytes_of,
    window_at,
)

cdef enum:
    TAP = 64     # searching one tap takes about as long as searching this many elements (Zen 3)
    FRONT = 256  # bytes before a copy: four registers of the largest set, because phases are loaded from before a row

cdef struct Job:
    # x[groups, item, axes, lane], and how it is cut into tiles. Arrays without a size have one value per axis.
    Loops loops
    CopyLoops copy
    Axis* axis
    int rank, joined
    Py_ssize_t groups, items, lanes
    Py_ssize_t tile_items, tile_lanes
    Py_ssize_t* tile                     # windows of a tile along each axis
    int outer                            # dimensions of groups
    Py_ssize_t* outer_size
    Py_ssize_t* outer_place              # index strides of the dimensions of groups
    Py_ssize_t* place                    # index strides of axes
    Py_ssize_t item_place, lane_place    # index strides of items and of lanes
    bint x_rows, y_rows                  # whether loops need contiguous rows of elements, and of results
    bint gathers                         # whether loops copy strided elements themselves
    bint shares                          # whether several threads can share a tile
    bint branches                        # whether sums branch on values, even on those that no window reads
    Py_ssize_t itemsize, acc_bytes
    Py_ssize_t tasks
    Py_ssize_t x_room, y_room, index_room  # bytes for the copies of a tile, if arrays are apart
    Py_ssize_t scratch                   # bytes that loops need
    int exceptions                       # floating-point exceptions after which results may be wrong
    const Job* retry                     # the job that recomputes such results, or NULL
    Extremes extremes                    # magnitudes that can take a sum out of its range
    bint retries                         # whether this job is a retry, whose loops read earlier results

cdef struct Call:
    Array x, y, indices
    Rule rule
    Interrupts* signals                  # NULL if nothing may interrupt the call
    bint x_apart, y_apart, indices_apart  # whether an array must be copied for any loops
    bint x_gaps, y_gaps                  # whether places of a row are not adjacent
    Py_ssize_t* again                    # counts tiles that are computed again, for tests
    int* overflowed                      # set if a sum overflowed that no retry recomputes; or NULL
    Py_ssize_t far                       # bytes of elements, if a core's own caches do not hold them; otherwise 0

cdef struct Sharing:
    # How several threads share a tile; see Tile.
    int share, shares
    Py_ssize_t parts
    char* totals
    int* raised                          # exceptions in all shares so far

cdef struct Ranges:
    # The ranges of a tile along each dimension of its job.
    Py_ssize_t group, item, items, lane, lanes
    Py_ssize_t[MOST_AXES] begin, end     # windows
    Py_ssize_t[MOST_AXES] low, high      # elements that these windows may read


cdef inline bint copies_x(const Job* job, const Call* call) noexcept nogil:
    """Whether a job reads a copy of x, which it may gather itself. A retry may need a copy although the first job does
    not."""
    return call.x_apart or job.x_rows and (call.x_gaps or job.gathers and job.joined > 1)


cdef inline bint copies_y(const Job* job, const Call* call) noexcept nogil:
    """Whether a job writes results to a copy."""
    return call.y_apart or job.y_rows and call.y_gaps


cdef inline Py_ssize_t room_of(const Job* job, const Call* call) noexcept nogil:
    """The bytes of memory that a thread needs."""
    cdef Py_ssize_t room = job.scratch
    if copies_x(job, call):
        room += job.x_room
    if copies_y(job, call):
        room += job.y_room
    if call.indices_apart:
        room += job.index_room
    return room if job.retry == NULL else max(room, room_of(job.retry, call))


cdef inline bint stopped(const Call* call) noexcept nogil:
    return call.signals != NULL and interrupted(call.signals)


cdef inline Py_ssize_t count_tiles(const Job* job, const Ranges* whole) noexcept nogil:
    """The number of tiles into which a job cuts `whole`, which may be another job's tile."""
    cdef Py_ssize_t count = ceil_div(whole.items, job.tile_items) * ceil_div(whole.lanes, job.tile_lanes)
    cdef int a
    for a in range(job.rank):
        count *= ceil_div(whole.end[a] - whole.begin[a], job.tile[a])
    return count


cdef inline void whole_of(const Job* job, Py_ssize_t group, Ranges* ranges) noexcept nogil:
    cdef int a
    ranges.group, ranges.item, ranges.items, ranges.lane, ranges.lanes = group, 0, job.items, 0, job.lanes
    for a in range(job.rank):
        ranges.begin[a], ranges.end[a] = 0, job.axis[a].out


cdef inline void locate(const Job* job, const Ranges* whole, Py_ssize_t task, Ranges* ranges) noexcept nogil:
    """Find the tile of a task. Tasks are numbered in memory order: lanes are fastest, and items slowest."""
    cdef Py_ssize_t count = ceil_div(whole.lanes, job.tile_lanes)
    cdef int a
    ranges.group = whole.group
    ranges.lane = whole.lane + task % count * job.tile_lanes
    ranges.lanes = min(job.tile_lanes, whole.lane + whole.lanes - ranges.lane)
    task //= count
    for a in range(job.rank - 1, -1, -1):
        count = ceil_div(whole.end[a] - whole.begin[a], job.tile[a])
        ranges.begin[a] = whole.begin[a] + task % count * job.tile[a]
        ranges.end[a] = min(whole.end[a], ranges.begin[a] + job.tile[a])
        elements_of(&job.axis[a], ranges.begin[a], ranges.end[a], &ranges.low[a], &ranges.high[a])
        task //= count
    ranges.item = whole.item + task * job.tile_items
    ranges.items = min(job.tile_items, whole.item + whole.items - ranges.item)


cdef inline Py_ssize_t offset_of(const Job* job, Py_ssize_t group, const Py_ssize_t* strides) noexcept nogil:
    """The offset of a group from the first group, for these strides."""
    cdef Py_ssize_t offset = 0
    cdef int a
    for a in range(job.outer - 1, -1, -1):
        offset += group % job.outer_size[a] * strides[a]
        group //= job.outer_size[a]
    return offset


cdef inline char* address(const Array* array, const Job* job, const Ranges* ranges,
                          const Py_ssize_t* at) noexcept nogil:
    cdef char* data = array.data + offset_of(job, ranges.group, array.outer)
    cdef int a
    data += ranges.item * array.item + ranges.lane * array.lane
    for a in range(job.rank):
        data += at[a] * array.axis[a]
    return data


cdef inline void describe(Copy* copy, const Job* job, const Ranges* ranges, const Array* array, const Py_ssize_t* begin,
                          const Py_ssize_t* end, Py_ssize_t* strides, Py_ssize_t itemsize) noexcept nogil:
    """Describe the copy of a box of an array to scratch memory, and set the copy's strides, in elements."""
    cdef Py_ssize_t stride = ranges.lanes
    cdef int a, rank = job.rank
    copy.from_ = address(array, job, ranges, begin)
    copy.itemsize, copy.swapped, copy.axes = itemsize, array.swapped, rank + 2
    copy.n[0], copy.n[rank + 1] = ranges.items, ranges.lanes
    copy.from_stride[0], copy.from_stride[rank + 1] = array.item, array.lane
    copy.to_stride[rank + 1] = itemsize
    for a in range(rank - 1, -1, -1):
        copy.n[a + 1], copy.from_stride[a + 1] = end[a] - begin[a], array.axis[a]
        copy.to_stride[a + 1], strides[a] = stride * itemsize, stride
        stride *= end[a] - begin[a]
    copy.to_stride[0], strides[rank] = stride * itemsize, stride


cdef inline void turn(Copy* copy) noexcept nogil:
    """Reverse the direction of a copy. The caller sets its addresses."""
    cdef Py_ssize_t[MOST_COPIED] strides
    cdef int a
    for a in range(copy.axes):
        strides[a] = copy.from_stride[a]
        copy.from_stride[a] = copy.to_stride[a]
        copy.to_stride[a] = strides[a]


cdef inline Py_ssize_t volume(const Copy* copy) noexcept nogil:
    cdef Py_ssize_t n = 1
    cdef int a
    for a in range(copy.axes):
        n *= copy.n[a]
    return n


cdef inline void set_source(Tile* tile, const Job* job, const Call* call, const Ranges* ranges, Py_ssize_t* strides,
                            char* memory) noexcept nogil:
    """Set where a tile reads its elements: in place, or copied to scratch memory."""
    cdef Copy copy
    cdef int a, rank = job.rank
    cdef Py_ssize_t[MOST_AXES] zero
    if copies_x(job, call) and not job.gathers:
        describe(&copy, job, ranges, &call.x, ranges.low, ranges.high, strides, job.itemsize)
        # Loops also compute with values around the elements. Values other than zeros could raise exceptions.
        memset(memory, 0, FRONT)
        copy.to = memory = memory + FRONT
        if volume(&copy):
            job.copy(&copy)
        memset(memory + volume(&copy) * job.itemsize, 0, CACHE_LINE)
        tile.x, tile.x_item = memory, strides[rank]
        for a in range(rank):
            tile.x -= ranges.low[a] * strides[a] * job.itemsize
        return
    for a in range(rank):
        zero[a], strides[a] = 0, call.x.axis[a] // job.itemsize
    tile.x, tile.x_item = address(&call.x, job, ranges, zero), call.x.item // job.itemsize
    tile.strided = &call.x if copies_x(job, call) else NULL


cdef inline char* target_of(Copy* copy, const Job* job, const Ranges* ranges, const Array* array, bint apart,
                            Py_ssize_t* strides, char* memory) noexcept nogil:
    """The address for the result of window 0. If results are apart, `copy` later moves them into place."""
    cdef int a, rank = job.rank
    cdef char* y
    cdef char* target
    cdef Py_ssize_t[MOST_AXES] zero
    if apart:
        describe(copy, job, ranges, array, ranges.begin, ranges.end, strides, array.itemsize)
        target = <char*> copy.from_
        if job.retries:
            copy.to = memory
            job.copy(copy)
        turn(copy)
        copy.from_, copy.to, y = memory, target, memory
        for a in range(rank):
            y -= ranges.begin[a] * strides[a] * array.itemsize
        return y
    for a in range(rank):
        zero[a], strides[a] = 0, array.axis[a] // array.itemsize
    strides[rank] = array.item // array.itemsize
    return address(array, job, ranges, zero)


cdef inline void set_tile(Tile* tile, const Job* job, const Ranges* ranges, const Call* call) noexcept nogil:
    memset(tile, 0, sizeof(Tile))
    tile.axis, tile.rank, tile.items, tile.lanes = job.axis, job.rank, ranges.items, ranges.lanes
    tile.joined, tile.all_lanes, tile.most_lanes = job.joined, job.lanes, job.tile_lanes
    tile.begin = &ranges.begin[0]
    tile.end = &ranges.end[0]
    tile.rule, tile.far = &call.rule, call.far


cdef inline void bring_closest_inside(Copy* copy) noexcept nogil:
    """Exchange the last axis with the one whose elements are closest in memory."""
    cdef int a, last = copy.axes - 1
    cdef Py_ssize_t n, stride
    for a in range(last):
        n, stride = copy.n[a], copy.from_stride[a]
        if n > 1 and (copy.n[last] == 1 or max(stride, -stride) < max(copy.from_stride[last], -copy.from_stride[last])):
            copy.n[a], copy.from_stride[a] = copy.n[last], copy.from_stride[last]
            copy.n[last], copy.from_stride[last] = n, stride


cdef inline bint is_sparse(const Job* job, const Ranges* ranges, int axis) noexcept nogil:
    """Whether the taps of a tile along an axis are so far apart that searching tap by tap is faster than searching all
    elements between them."""
    cdef double inner = <double> ranges.items * ranges.lanes, taps = job.axis[axis].kernel
    cdef int a
    for a in range(axis + 1, job.rank):
        inner *= ranges.high[a] - ranges.low[a]
    taps *= ranges.end[axis] - ranges.begin[axis]
    return taps * (inner + TAP) < (ranges.high[axis] - ranges.low[axis]) * inner


cdef inline bint has_cause(const Job* job, const Call* call, const Ranges* ranges, int axis) noexcept nogil:
    """Whether a tile has finite elements that may have taken a sum out of its range. The ranges of sparse axes before
    this one are already narrowed to one tap each."""
    cdef Copy copy
    cdef Ranges one
    cdef Window window
    cdef Py_ssize_t[MOST_AXES + 1] strides
    cdef Py_ssize_t w, tap
    while axis < job.rank and not is_sparse(job, ranges, axis):
        axis += 1
    if axis == job.rank:
        describe(&copy, job, ranges, &call.x, ranges.low, ranges.high, strides, job.itemsize)
        bring_closest_inside(&copy)
        return has_extreme(&copy, copy.from_, 0, &job.extremes)
    one = ranges[0]
    for w in range(ranges.begin[axis], ranges.end[axis]):
        window = window_at(&job.axis[axis], w)
        for tap in range(window.taps):
            if stopped(call):
                return False
            one.low[axis] = window.first + tap * job.axis[axis].dilation
            one.high[axis] = one.low[axis] + 1
            if has_cause(job, call, &one, axis + 1):
                return True
    return False


cdef inline int take_exceptions(int which) noexcept nogil:
    """Return which of these exceptions the thread has raised, and clear its record."""
    cdef int raised = which and which & exceptions_raised()
    if raised:
        clear_exceptions()
    return raised


cdef inline void run_tile(const Job* job, const Call* call, const Ranges* ranges, char* memory,
                          const Sharing* sharing) noexcept nogil:
    """Compute a tile, or a share of it. If exceptions show that results may be wrong, means are computed again with
    divisions. If sums may still have left their range, a retry follows."""
    cdef Tile tile
    cdef Copy copy, indices
    cdef Rule careful
    cdef int raised
    cdef Py_ssize_t[MOST_AXES + 1] x_stride, y_stride, index_stride
    cdef bint y_apart = copies_y(job, call)
    cdef char* results = memory + (job.x_room if copies_x(job, call) else 0)
    cdef char* places = results + (job.y_room if y_apart else 0)
    set_tile(&tile, job, ranges, call)
    if sharing != NULL:
        tile.share, tile.shares, tile.totals = sharing.share, sharing.shares, sharing.totals
        tile.parts, tile.part_bytes = sharing.parts, part_bytes_of(job.tile_lanes, job.acc_bytes)
    tile.scratch = places + (job.index_room if call.indices_apart else 0)
    if job.retries and job.branches:
        memset(tile.scratch, 0, job.scratch)
    set_source(&tile, job, call, ranges, x_stride, memory)
    tile.y = target_of(&copy, job, ranges, &call.y, y_apart, y_stride, results)
    tile.x_stride, tile.y_stride, tile.y_item = x_stride, y_stride, y_stride[job.rank]
    if call.indices.data != NULL:
        tile.indices = target_of(&indices, job, ranges, &call.indices, call.indices_apart, index_stride, places)
        tile.index_stride, tile.index_item, tile.pace = index_stride, index_stride[job.rank], job.place
        tile.base_item, tile.base_lane = job.item_place, job.lane_place
        tile.base = (offset_of(job, ranges.group, job.outer_place) + ranges.item * tile.base_item
                     + ranges.lane * tile.base_lane)
    job.loops(&tile)
    raised = take_exceptions(job.exceptions)
    if sharing != NULL:
        gather_exceptions(sharing.raised, raised)
        if sharing.share < sharing.shares:
            return
        raised = sharing.raised[0]
    if raised and not call.rule.divides and job.retry == NULL and call.overflowed != NULL and (
            has_cause(job, call, ranges, 0)):
        gather_exceptions(call.overflowed, raised)
    if raised and call.rule.divides and not call.rule.careful:
        count_again(call.again)
        careful = call.rule
        careful.careful, tile.rule = 1, &careful
        job.loops(&tile)
        raised |= take_exceptions(job.exceptions)
    if y_apart:
        job.copy(&copy)
    if call.indices.data != NULL and call.indices_apart:
        job.copy(&indices)
    if call.rule.divides:
        raised &= OVERFLOWED  # divisions lose no digits
    if raised and job.retry != NULL and has_cause(job, call, ranges, 0):
        count_again(call.again)
        retry_tile(job.retry, call, ranges, memory)


cdef inline void retry_tile(const Job* job, const Call* call, const Ranges* whole, char* memory) noexcept nogil:
    """Compute suspect results of a tile again, in tiles of the retry's size."""
    cdef Ranges ranges
    cdef Py_ssize_t task
    for task in range(count_tiles(job, whole)):
        if not stopped(call):
            locate(job, whole, task, &ranges)
            run_tile(job, call, &ranges, memory, NULL)


cdef inline void run_task(const Job* job, const Call* call, Py_ssize_t task, char* memory,
                          const Sharing* sharing) noexcept nogil:
    cdef Ranges whole, ranges
    cdef Py_ssize_t each = job.tasks // job.groups
    whole_of(job, task // each, &whole)
    locate(job, &whole, task % each, &ranges)
    run_tile(job, call, &ranges, memory, sharing)
