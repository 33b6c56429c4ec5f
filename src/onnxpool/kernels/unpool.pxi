"""MaxUnpool: values go to the flat places that indices name. Values are moved as bits, whatever they stand for.

Indices are data that another thread may change while they are read: each is loaded once, checked, and only then used.
A first pass checks them all, so that nothing is written when one is wrong; a second one stores.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from .job cimport MAX_AXES, Interrupts, interrupted, raised_by_handler

cdef enum:
    LOOKS = 1 << 16  # elements between two looks for signals

ctypedef fused bits_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef struct Unpool:
    Py_ssize_t planes, channels, size     # planes of the input, those of one image, and elements of each
    Py_ssize_t target                     # elements of a plane that indices address
    Py_ssize_t image_step, plane_step, step  # of the input, in elements
    Py_ssize_t out_image, out_channel, out_step
    int axes
    Py_ssize_t addressed[MAX_AXES]        # the shape that indices address, and
    Py_ssize_t stored[MAX_AXES]           # the shape that is stored, its corner at the same place
    bint alike                            # whether both are the same


cdef inline Py_ssize_t input_of(const Unpool* job, Py_ssize_t plane) noexcept nogil:
    return plane // job.channels * job.image_step + plane % job.channels * job.plane_step


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


cdef Py_ssize_t find_bad(const Unpool* job, const int64_t* indices, bint* crossing, Interrupts* signals) noexcept nogil:
    """The first element, in the order of N, C and the spatial axes, whose index is out of range, or -1.

    `crossing` tells whether some index leaves its own plane, so that planes depend on each other.
    """
    cdef Py_ssize_t plane, i, limit = job.planes * job.target, source, low
    cdef int64_t index
    for plane in range(job.planes):
        source, low = input_of(job, plane), plane * job.target
        for i in range(job.size):
            index = indices[source + i * job.step]
            if index < 0 or index >= limit:
                return plane * job.size + i
            if index < low or index >= low + job.target:
                crossing[0] = True
            if i % LOOKS == 0 and interrupted(signals):
                return -1
    return -1


cdef void store_plane(const Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, Py_ssize_t plane,
                      int64_t low, int64_t high, Interrupts* signals) noexcept nogil:
    """An index that has left [low, high) since it was checked stores nothing."""
    cdef Py_ssize_t i, place, source = input_of(job, plane), home = output_of(job, plane), start = plane * job.target
    cdef int64_t index
    for i in range(job.size):
        place = source + i * job.step
        index = indices[place]
        if start <= index < start + job.target:
            y[home + place_of(job, index - start)] = x[place]
        elif low <= index < high:
            y[output_of(job, index // job.target) + place_of(job, index % job.target)] = x[place]
        if i % LOOKS == 0 and interrupted(signals):
            return


cdef Py_ssize_t unpool_as(const Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, Py_ssize_t volume,
                          int threads, Interrupts* signals) noexcept nogil:
    cdef bint crossing = False
    cdef Py_ssize_t plane, bad = find_bad(job, indices, &crossing, signals)
    if bad >= 0:
        return bad
    memset(y, 0, volume * sizeof(bits_t))
    if crossing or threads == 1:
        for plane in range(job.planes):
            store_plane(job, x, indices, y, plane, 0, job.planes * job.target, signals)
    else:
        for plane in prange(job.planes, num_threads=threads, schedule="static"):
            store_plane(job, x, indices, y, plane, plane * job.target, (plane + 1) * job.target, signals)
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
    job.step = job.out_step = job.channels if channels_last else 1
    job.plane_step = 1 if channels_last else job.size
    job.out_channel = 1 if channels_last else y_size
    job.image_step, job.out_image = job.channels * job.size, job.channels * y_size
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
