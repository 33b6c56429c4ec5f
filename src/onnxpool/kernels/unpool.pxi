"""MaxUnpool: values go to the flat places that indices name. Values are moved as bits, whatever they stand for.

Indices are data that another thread may change while they are read: each is loaded once, checked, and only then used.
A first pass checks them all, so that nothing is written when one is wrong; a second one stores.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from .job cimport MAX_AXES, Interrupts, interrupted, parts, raised_by_handler

cdef enum:
    LOOKS = 1 << 16  # elements between two looks for signals

ctypedef fused bits_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef struct Unpool:
    # Rows as they lie in memory: of one channel, or of the channels of one place.
    Py_ssize_t images, rows, length       # rows of each image, and elements of each row
    Py_ssize_t row_step, step             # planes from row to row, and from element to element
    Py_ssize_t planes, channels, size     # planes of the input, those of one image, and elements of each
    Py_ssize_t target                     # elements of a plane that indices address
    Py_ssize_t out_image, out_channel, out_step
    int axes
    Py_ssize_t addressed[MAX_AXES]        # the shape that indices address, and
    Py_ssize_t stored[MAX_AXES]           # the shape that is stored, its corner at the same place
    bint alike                            # whether both are the same


cdef inline Py_ssize_t output_of(const Unpool* job, Py_ssize_t plane) noexcept nogil:
    return plane // job.channels * job.out_image + plane % job.channels * job.out_channel


cdef inline Py_ssize_t place_of(const Unpool* job, Py_ssize_t place) noexcept nogil:
    """Where in its output plane a place of the addressed plane is."""
    cdef Py_ssize_t result = 0, pace = 1
    cdef int a
    if job.alike:
        return place * job.out_step
    for a in range(job.axes - 1, -1, -1):
        result += place % job.addressed[a] * pace
        place //= job.addressed[a]
        pace *= job.stored[a]
    return result * job.out_step


cdef bint check_row(const Unpool* job, const int64_t* indices, Py_ssize_t n, Py_ssize_t plane,
                    bint* crossing) noexcept nogil:
    """Whether an index is out of range. `crossing` tells whether one leaves its own plane, so that planes depend on
    each other."""
    cdef uint64_t limit = job.planes * job.target, target = job.target, low = plane * job.target
    cdef uint64_t pace = job.step * job.target
    cdef Py_ssize_t j
    cdef int64_t bad = 0, away = 0
    for j in range(n):
        bad |= <uint64_t> indices[j] >= limit
        away |= <uint64_t> indices[j] - (low + j * pace) >= target
    if away:
        crossing[0] = True
    return bad != 0


cdef Py_ssize_t find_bad(const Unpool* job, const int64_t* indices) noexcept nogil:
    """The first element, in the order of N, C and the spatial axes, whose index is out of range, or -1."""
    cdef Py_ssize_t plane, i, limit = job.planes * job.target
    cdef Py_ssize_t pace = job.length if job.step else 1  # from place to place
    cdef int64_t index
    for plane in range(job.planes):
        for i in range(job.size):
            index = indices[plane // job.channels * job.channels * job.size + i * pace
                            + plane % job.channels * (1 if job.step else job.size)]
            if index < 0 or index >= limit:
                return plane * job.size + i
    return -1


cdef Py_ssize_t check_indices(const Unpool* job, const int64_t* indices, bint* crossing,
                              Interrupts* signals) noexcept nogil:
    """As `find_bad`, at one go where nothing is bad."""
    cdef Py_ssize_t row, begin, n, since = 0
    for row in range(job.images * job.rows):
        begin = 0
        while begin < job.length:
            n = min(job.length - begin, LOOKS)
            if check_row(job, indices + row * job.length + begin, n,
                         row // job.rows * job.channels + row % job.rows * job.row_step + begin * job.step, crossing):
                return find_bad(job, indices)
            begin += n
            since += n
            if since >= LOOKS:
                since = 0
                if interrupted(signals):
                    return -1
    return -1


cdef void store_part(const Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, Py_ssize_t task,
                     Py_ssize_t part, bint crossing, Interrupts* signals) noexcept nogil:
    """One row of one channel, or so many channels of all rows of an image; tasks count through the planes.

    An index that has left its plane since it was checked stores nothing, nor one out of range if planes are crossed.
    """
    cdef Py_ssize_t groups = 1 if job.step else job.rows, count = parts(job.length, part), image, row, i, since = 0
    cdef Py_ssize_t begin = task % count * part, end = min(job.length, begin + part), place, plane, start, home
    cdef Py_ssize_t first = task // count % groups * (job.rows // groups), limit = job.planes * job.target
    cdef int64_t index
    image = task // (count * groups)
    for row in range(first, first + job.rows // groups):
        plane = image * job.channels + row * job.row_step + begin * job.step
        start, home = plane * job.target, output_of(job, plane)
        for i in range(begin, end):
            place = (image * job.rows + row) * job.length + i
            index = indices[place]
            if start <= index < start + job.target:
                y[home + place_of(job, index - start)] = x[place]
            elif crossing and 0 <= index < limit:
                y[output_of(job, index // job.target) + place_of(job, index % job.target)] = x[place]
            start += job.step * job.target
            home += job.step * job.out_channel
            since += 1
            if since == LOOKS:
                since = 0
                if interrupted(signals):
                    return


cdef Py_ssize_t unpool_as(const Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, Py_ssize_t volume,
                          int threads, Interrupts* signals) noexcept nogil:
    cdef bint crossing = False
    cdef Py_ssize_t task, tasks, part, bad = check_indices(job, indices, &crossing, signals)
    if bad >= 0:
        return bad
    memset(y, 0, volume * sizeof(bits_t))
    # Of two elements with one index the last one stays, in the order of planes: planes that are crossed go one by one.
    part = max(1, job.length if job.step == 0 else 1 if crossing else parts(job.length, threads))
    tasks = job.images * (1 if job.step else job.rows) * parts(job.length, part)
    if crossing or threads == 1:
        for task in range(tasks):
            store_part(job, x, indices, y, task, part, crossing, signals)
    else:
        for task in prange(tasks, num_threads=threads, schedule="static"):
            store_part(job, x, indices, y, task, part, False, signals)
    return -1


def unpool(cnp.ndarray x, cnp.ndarray indices, cnp.ndarray y, addressed, bint channels_last, int threads):
    """Stores x at the places that indices name in the shape `addressed`, into y, which is zero elsewhere.

    All arrays are contiguous and native, y of at least the addressed shape. The result is -1, or the position of the
    first bad index in the order of N, C and the spatial axes; then y is as it was.
    """
    cdef Unpool job
    cdef Interrupts signals
    cdef Py_ssize_t bad, volume = cnp.PyArray_SIZE(y), y_size = 1
    cdef int a, first = 1 if channels_last else 2, itemsize = cnp.PyArray_ITEMSIZE(x)
    cdef char* source = <char*> cnp.PyArray_DATA(x)
    cdef char* target = <char*> cnp.PyArray_DATA(y)
    cdef const int64_t* places = <const int64_t*> cnp.PyArray_DATA(indices)
    job.axes = len(addressed)
    job.channels = x.shape[x.ndim - 1] if channels_last else x.shape[1]
    job.planes = x.shape[0] * job.channels
    job.size, job.target = 1, 1
    for a in range(job.axes):
        job.addressed[a], job.stored[a] = addressed[a], y.shape[first + a]
        job.size *= x.shape[first + a]
        job.target *= job.addressed[a]
        y_size *= job.stored[a]
    job.images = x.shape[0]
    job.rows, job.length = (job.size, job.channels) if channels_last else (job.channels, job.size)
    job.row_step, job.step = (0, 1) if channels_last else (1, 0)
    job.out_step = job.channels if channels_last else 1
    job.out_channel = 1 if channels_last else y_size
    job.out_image = job.channels * y_size
    job.alike = True
    for a in range(job.axes):
        job.alike &= job.addressed[a] == job.stored[a]
    memset(&signals, 0, sizeof(Interrupts))
    threads = enter_team(threads if job.planes > 1 else 1)
    with nogil:
        if itemsize == 1:
            bad = unpool_as(&job, <uint8_t*> source, places, <uint8_t*> target, volume, threads, &signals)
        elif itemsize == 2:
            bad = unpool_as(&job, <uint16_t*> source, places, <uint16_t*> target, volume, threads, &signals)
        elif itemsize == 4:
            bad = unpool_as(&job, <uint32_t*> source, places, <uint32_t*> target, volume, threads, &signals)
        else:
            bad = unpool_as(&job, <uint64_t*> source, places, <uint64_t*> target, volume, threads, &signals)
    leave_team(threads)
    raised_by_handler(&signals)
    return bad
