"""Tables: long windows that share most of their taps look up what 1, 2, 4, ... neighbours reduce to.

A sum of n taps is one entry for each bit of n, the higher bits first in place and last in time. A maximum is two
entries that overlap: no tap counts twice, the first of equals stays the first and the last NaN the last.

Windows at the border have a number of taps each, so that only what lies side by side at every place can be reduced
together. Short rows are therefore transposed, a vector of them at a time. What fills vectors at every place anyway goes
from place to place instead (rings.pxi).
"""
from libc.string cimport memcpy

from .elements cimport copy_bytes, transpose
from .geometry cimport Axis, Run, Span, first_tap, is_interior, run_at, taps_inside
from .reductions cimport MaxF32, MaxF64, MaxI8, MaxI16, MaxU8, SumWide, combine, running_t

cdef enum:
    LONGEST = 1 << 10  # the longest rows that are transposed, as in tiling.py,
    NEIGHBOURS = 4     # with so many values at a place


cdef inline void place(const running_t* table, running_t* y, Py_ssize_t n, Py_ssize_t step, bint fresh) noexcept nogil:
    cdef Py_ssize_t j
    if fresh and step == 1:
        copy_bytes(<const char*> table, <char*> y, n * sizeof(running_t))
    elif fresh:
        sweep(table, y, n, step, 1, 1)
    else:
        for j in range(n):
            y[j] = combine(table[j * step], y[j])


cdef inline void overlay(const running_t* table, const running_t* later, running_t* y, Py_ssize_t n,
                         Py_ssize_t step) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = combine(table[j * step], later[j * step])


cdef inline void look_up(const running_t* first, running_t* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                         Py_ssize_t taps, Py_ssize_t reach) noexcept nogil:
    """What the table of `reach` neighbours has for windows of so many taps, which may be nothing."""
    if running_t is MaxI8 or running_t is MaxU8 or running_t is MaxI16 or running_t is MaxF32 or running_t is MaxF64:
        if reach <= taps < 2 * reach:
            if step == 1:
                overlay(first, first + (taps - reach) * hop, y, n, 1)
            else:
                overlay(first, first + (taps - reach) * hop, y, n, step)
    elif taps & reach:
        first += (taps & ~(2 * reach - 1)) * hop
        if step == 1:
            place(first, y, n, 1, not taps & (reach - 1))
        else:
            place(first, y, n, step, not taps & (reach - 1))


cdef inline void look_up_border(const running_t* table, running_t* y, const Axis* axis, Span span, Py_ssize_t begin,
                                Py_ssize_t end, Py_ssize_t post, Py_ssize_t reach) noexcept nogil:
    """As `look_up` for the windows [begin, end), all of them at the border."""
    cdef Py_ssize_t window, border = 0 if begin < axis.begin else axis.begin - axis.end
    for window in range(begin, end):
        look_up(table + (axis.first[window + border] - span.low) * post, y + (window - span.begin) * post, post, 1,
                axis.hop * post, axis.inside[window + border], reach)


cdef inline void double_reach(running_t* table, Py_ssize_t n, Py_ssize_t hop) noexcept nogil:
    """The first n entries and those `hop` behind them, in place."""
    cdef running_t[VECTOR] space  # loaded before it is stored, whatever hop is
    cdef running_t* lanes = space
    cdef Py_ssize_t width = max(1, VECTOR // <Py_ssize_t> sizeof(running_t)), vector, j
    for vector in range(n // width):
        for j in range(width):
            lanes[j] = combine(table[j], table[hop + j])
        memcpy(table, lanes, width * sizeof(running_t))
        table += width
    for j in range(n % width):
        table[j] = combine(table[j], table[hop + j])


cdef inline void double_up(const running_t* x, running_t* y, const Axis* axis, Span span, Py_ssize_t post,
                           running_t* scratch) noexcept nogil:
    """y[span windows, post] from x[span elements, post]; scratch holds a table of that size, and may be x."""
    cdef Py_ssize_t length = (span.high - span.low) * post, hop = axis.hop * post, reach = 1, window, j
    cdef Py_ssize_t begin = max(span.begin, min(span.end, axis.begin)), end = max(begin, min(span.end, axis.end))
    cdef Run run
    cdef const running_t* table = x
    window = span.begin
    while window < span.end:
        if is_interior(axis, window):
            window = axis.end
            continue
        if not taps_inside(axis, window):
            for j in range(post):
                y[(window - span.begin) * post + j] = nothing(y[0])
        window += 1
    while True:
        look_up_border(table, y, axis, span, span.begin, begin, post, reach)
        window = begin
        while window < end:
            run = run_at(axis, window, end, post)
            look_up(table + (first_tap(axis, window) - span.low) * post, y + (window - span.begin) * post, run.n,
                    run.step, hop, axis.taps, reach)
            window += run.windows
        look_up_border(table, y, axis, span, end, span.end, post, reach)
        if 2 * reach > axis.most:
            return
        length -= reach * hop
        if table == scratch:
            double_reach(scratch, length, reach * hop)
        else:
            for j in range(length):
                scratch[j] = combine(x[j], x[reach * hop + j])
        table = scratch
        reach *= 2


cdef void double_up_rows(const running_t* x, running_t* y, Py_ssize_t pre, const Axis* axis, Span span,
                         Py_ssize_t post, running_t* scratch) noexcept nogil:
    """As `reduce_axis` for a vector of rows or more, transposed."""
    cdef Py_ssize_t size = sizeof(running_t), width = VECTOR // size, row = 0
    cdef Py_ssize_t length = (span.high - span.low) * post, count = (span.end - span.begin) * post
    cdef running_t* lanes = scratch + length * width
    while row < pre:
        row = min(row, pre - width)  # the last rows overlap those before
        transpose(<const char*> (x + row * length), length * size, <char*> scratch, VECTOR, width, length, size)
        if post == 1:  # a constant lets the compiler take one vector for each window
            double_up(scratch, lanes, axis, span, width, scratch)
        else:
            double_up(scratch, lanes, axis, span, post * width, scratch)
        transpose(<const char*> lanes, VECTOR, <char*> (y + row * count), count * size, count, width, size)
        row += width


cdef inline bint share_taps(const Axis* axis, Py_ssize_t windows, Py_ssize_t length) noexcept nogil:
    """Whether tables of neighbours cost less than reading every window."""
    cdef Py_ssize_t levels = 0
    while axis.most >> levels:
        levels += 1
    return length > 0 and axis.most > FEW and windows * axis.most > 2 * levels * length


cdef void look_up_axis(const running_t* x, running_t* y, Py_ssize_t pre, const Axis* axis, Span span, Py_ssize_t post,
                       running_t* scratch) noexcept nogil:
    """As `reduce_axis`; see `tables` in tiling.py for what scratch holds."""
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, longest = max(length, count), p
    cdef Py_ssize_t width = max(1, VECTOR // <Py_ssize_t> sizeof(running_t))
    if not (running_t is SumWide):
        if pre >= width and post <= NEIGHBOURS and longest <= LONGEST:
            double_up_rows(x, y, pre, axis, span, post, scratch)
            return
    if post >= width:
        look_back_axis(x, y, pre, axis, span, post, scratch)
        return
    for p in range(pre):
        double_up(x + p * length * post, y + p * count * post, axis, span, post, scratch)
