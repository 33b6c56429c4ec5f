"""MaxUnpool: scatters values to flat indices. Values are moved as bits, whatever they represent.

A first pass checks all indices, so that nothing is written if one is wrong. A second pass stores the values. Another
thread may change the indices meanwhile. Therefore the second pass loads each index once and checks it again before use.
"""
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

cimport numpy as cnp

from ..core.job cimport MOST_AXES, ceil_div
from ..core.interrupts cimport Interrupts, interrupted, raised_by_handler, run_together
from ..core.team cimport Team, begin_task, end_task, enter_team, leave_team

cnp.import_array()

cdef extern from *:
    """
    /* One load, whatever other threads store meanwhile. A compiler may read a plain variable again after its check. */
    #define onnxpool_load(place) __atomic_load_n(place, __ATOMIC_RELAXED)
    """
    int64_t load_once "onnxpool_load"(const int64_t* place) noexcept nogil

cdef enum:
    LOOKS = 1 << 16  # elements between two checks for signals
    BAD = 1  # result of a check: an index is out of range
    CROSSING = 2  # result of a check: an index is in another plane than its element

ctypedef fused bits_t:
    uint16_t
    uint32_t
    uint64_t


cdef struct Unpool:
    bint channels_last
    Py_ssize_t images, channels, size      # x consists of images * channels planes with `size` elements
    Py_ssize_t target, stored_size         # elements of a plane as addressed by indices, and as stored in y
    Py_ssize_t part, tasks                 # channels of a task, and number of tasks
    int axes
    Py_ssize_t addressed[MOST_AXES]        # shape of the planes that indices address
    Py_ssize_t stored[MOST_AXES]           # shape of the planes of y, which start at the same corner
    bint alike                             # whether the two shapes are equal


cdef struct Task:
    # A plane, or some channels of an image if channels are last: runs of adjacent elements.
    Py_ssize_t begin, end, pace, n    # runs begin at begin, begin + pace, ... < end, with n elements each
    Py_ssize_t plane, step            # the plane of a run's first element; planes from element to element


cdef void cut_tasks(Unpool* job, Py_ssize_t part) noexcept nogil:
    job.part = part
    job.tasks = job.images * ceil_div(job.channels, part)


cdef Task task_of(const Unpool* job, Py_ssize_t number) noexcept nogil:
    cdef Task task
    cdef Py_ssize_t count, first, image
    if job.channels_last:
        count = ceil_div(job.channels, job.part)
        image, first = number // count, number % count * job.part
        task.begin = image * job.size * job.channels + first
        task.end = (image + 1) * job.size * job.channels
        task.pace, task.n = job.channels, min(job.part, job.channels - first)
        task.plane, task.step = image * job.channels + first, 1
    else:
        task.begin, task.end = number * job.size, (number + 1) * job.size
        task.pace = task.n = LOOKS
        task.plane, task.step = number, 0
    return task


cdef int check_run(const Unpool* job, const int64_t* indices, Py_ssize_t n, const Task* task) noexcept nogil:
    """Check by the signs of differences, which every instruction set can vectorise, unlike 64-bit comparisons."""
    cdef uint64_t last = job.images * job.channels * job.target - 1, pace = task.step * job.target, index
    cdef uint64_t low = task.plane * job.target, high = low + job.target - 1, outside = 0, away = 0
    cdef Py_ssize_t i
    for i in range(n):
        index = indices[i]
        outside |= index | (last - index)
        away |= (index - low) | (high - index)
        low += pace
        high += pace
    return (BAD if outside >> 63 else 0) | (CROSSING if away >> 63 else 0)


cdef int check_task(const Unpool* job, const int64_t* indices, Py_ssize_t number, Interrupts* signals) noexcept nogil:
    cdef Task task = task_of(job, number)
    cdef Py_ssize_t at = task.begin, n, since = 0
    cdef int found = 0
    while at < task.end:
        n = min(task.n, task.end - at)
        found |= check_run(job, indices + at, n, &task)
        at += task.pace
        since += n
        if since >= LOOKS:
            since = 0
            if interrupted(signals):
                break
    return found


cdef Py_ssize_t find_bad(const Unpool* job, const int64_t* indices) noexcept nogil:
    """The first element, in the order of N, C and the spatial axes, whose index is out of range, or -1."""
    cdef Py_ssize_t plane, place, at, limit = job.images * job.channels * job.target
    for plane in range(job.images * job.channels):
        for place in range(job.size):
            at = plane * job.size + place
            if job.channels_last:
                at = (plane // job.channels * job.size + place) * job.channels + plane % job.channels
            if not 0 <= indices[at] < limit:
                return plane * job.size + place
    return -1


cdef inline Py_ssize_t plane_in_y(const Unpool* job, Py_ssize_t plane) noexcept nogil:
    if job.channels_last:
        return plane // job.channels * job.channels * job.stored_size + plane % job.channels
    return plane * job.stored_size


cdef inline Py_ssize_t place_in_plane(const Unpool* job, Py_ssize_t place) noexcept nogil:
    """The position in a plane of y of a place in the addressed plane."""
    cdef Py_ssize_t result = 0, pace = 1
    cdef int a
    if job.alike:
        result = place
    else:
        for a in range(job.axes - 1, -1, -1):
            result += place % job.addressed[a] * pace
            place //= job.addressed[a]
            pace *= job.stored[a]
    return result * job.channels if job.channels_last else result


cdef void store_run(const Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, Py_ssize_t n,
                    const Task* task, bint crossing) noexcept nogil:
    """Scatter values. An index that changed since the check stores nothing if it has left its plane or, if indices may
    cross planes, the range of y."""
    cdef Py_ssize_t low = task.plane * job.target, home = plane_in_y(job, task.plane), i
    cdef Py_ssize_t step = task.step * job.target
    cdef uint64_t limit = job.images * job.channels * job.target, target = job.target, index
    if job.alike and not (job.channels_last or crossing):
        y += home
        for i in range(n):
            index = <uint64_t> load_once(indices + i) - low
            if index < target:
                y[index] = x[i]
        return
    for i in range(n):
        index = <uint64_t> load_once(indices + i) - low
        if index < target:
            y[home + place_in_plane(job, index)] = x[i]
        elif crossing and index + low < limit:
            y[plane_in_y(job, (index + low) // target) + place_in_plane(job, (index + low) % target)] = x[i]
        low += step
        home += task.step


cdef void store_task(const Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, Py_ssize_t number,
                     bint clears, bint crossing, Interrupts* signals) noexcept nogil:
    cdef Task task = task_of(job, number)
    cdef Py_ssize_t at = task.begin, n, since = 0
    if clears:
        clear_planes(job, y, task.plane, job.part)
    while at < task.end:
        n = min(task.n, task.end - at)
        store_run(job, x + at, indices + at, y, n, &task, crossing)
        at += task.pace
        since += n
        if since >= LOOKS:
            since = 0
            if interrupted(signals):
                break


cdef void clear_planes(const Unpool* job, bits_t* y, Py_ssize_t plane, Py_ssize_t n) noexcept nogil:
    """Set n planes to zero: one plane, or all planes of an image if channels are last."""
    memset(y + plane * job.stored_size, 0, n * job.stored_size * sizeof(bits_t))


cdef void store_all(Unpool* job, const bits_t* x, const int64_t* indices, bits_t* y, bint crossing, Team* team,
                    Interrupts* signals) noexcept nogil:
    cdef int threads = team.threads
    cdef Py_ssize_t number
    cdef bint clears  # whether each task clears its own planes, which are then in the cache when values are stored
    if crossing:
        # Of elements with the same index, the last one in the order of planes wins, so planes are scattered one by one.
        cut_tasks(job, 1)
        threads = 1
    clears = not crossing and (job.part == job.channels or not job.channels_last)
    if not clears:
        for number in prange(job.images * job.channels, num_threads=threads, schedule="static",
                             use_threads_if=threads > 1):
            begin_task(team)
            clear_planes(job, y, number, 1)
    for number in prange(job.tasks, num_threads=threads, schedule="static", use_threads_if=threads > 1):
        begin_task(team)
        store_task(job, x, indices, y, number, clears, crossing, signals)
        end_task(team)


cdef struct Tasks:
    Unpool* job
    void* x
    const int64_t* indices
    void* y
    int itemsize
    Team* team
    Interrupts* signals
    Py_ssize_t bad  # the result of `unpool`


cdef void run_all(void* tasks) noexcept nogil:
    cdef Tasks* own = <Tasks*> tasks
    cdef Unpool* job = own.job
    cdef const int64_t* indices = own.indices
    cdef Interrupts* signals = own.signals
    cdef int found = 0, threads = own.team.threads
    cdef Py_ssize_t number
    for number in prange(job.tasks, num_threads=threads, schedule="static", use_threads_if=threads > 1):
        found |= check_task(job, indices, number, signals)
    own.bad = find_bad(job, indices) if found & BAD else -1
    if own.bad >= 0 or signals.raised:  # another thread of the caller may have corrected the index
        return
    if own.itemsize == 2:
        store_all(job, <uint16_t*> own.x, indices, <uint16_t*> own.y, found & CROSSING, own.team, signals)
    elif own.itemsize == 4:
        store_all(job, <uint32_t*> own.x, indices, <uint32_t*> own.y, found & CROSSING, own.team, signals)
    else:
        store_all(job, <uint64_t*> own.x, indices, <uint64_t*> own.y, found & CROSSING, own.team, signals)


def unpool(cnp.ndarray x, cnp.ndarray indices, cnp.ndarray y, addressed, bint channels_last, int threads):
    """Store x in y, at the places that indices name in the shape `addressed`. y is zero elsewhere.

    All arrays are contiguous and native, elements have 2, 4 or 8 bytes, and y has at least the addressed shape. The
    result is -1, or the position of the first bad index in the order of N, C and the spatial axes. If an index is bad,
    y is unchanged.
    """
    cdef Unpool job
    cdef Interrupts signals
    cdef Team team
    cdef Tasks tasks
    cdef int a, first = 1 if channels_last else 2
    job.channels_last, job.axes, job.alike = channels_last, len(addressed), True
    job.images, job.channels = x.shape[0], x.shape[x.ndim - 1] if channels_last else x.shape[1]
    job.size = job.target = job.stored_size = 1
    for a in range(job.axes):
        job.addressed[a], job.stored[a] = addressed[a], y.shape[first + a]
        job.alike &= job.addressed[a] == job.stored[a]
        job.size *= x.shape[first + a]
        job.target *= job.addressed[a]
        job.stored_size *= job.stored[a]
    memset(&signals, 0, sizeof(Interrupts))
    team = enter_team(threads if job.images * job.channels > 1 else 1)
    cut_tasks(&job, max(1, ceil_div(job.channels, team.threads)) if channels_last else 1)
    tasks = Tasks(&job, cnp.PyArray_DATA(x), <const int64_t*> cnp.PyArray_DATA(indices), cnp.PyArray_DATA(y),
                  cnp.PyArray_ITEMSIZE(x), &team, &signals, -1)
    with nogil:
        if team.threads == 1:
            run_all(&tasks)
        elif not run_together(run_all, &tasks, &signals):
            team.threads = 1
            run_all(&tasks)
    leave_team(&team)
    raised_by_handler(&signals)
    return tasks.bad
