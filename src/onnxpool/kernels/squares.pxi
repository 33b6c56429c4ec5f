"""Squares: sums of the squares of a few neighbours along rows, from floats to doubles in one step.

As rows of doubles, the squares would be written and read again, which takes as long as to sum them. A square of a float
is exact in double. The order is that of passes.pxi.
"""
from .geometry cimport Axis, Span, first_tap, is_interior, taps_inside
from .reductions cimport SumF64, combine, few


cdef inline SumF64 few_squares(const float_t* x, Py_ssize_t hop, int taps) noexcept nogil:
    cdef SumF64[4] squares
    cdef int tap
    for tap in range(taps):
        squares[tap].value = <double> x[tap * hop] * <double> x[tap * hop]
    return few(<const SumF64*> squares, 1, taps)


cdef inline SumF64 squares_of(const float_t* x, Py_ssize_t hop, int taps) noexcept nogil:
    """T(taps). Four at a time can stay in registers: the compiler unrolls no longer loop."""
    if taps > 4:
        return combine(few_squares(x, hop, 4), few_squares(x + 4 * hop, hop, taps - 4))
    return few_squares(x, hop, taps)


cdef inline void square_steps(const float_t* x, SumF64* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                              int taps) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = squares_of(x + j * step, hop, taps)


cdef inline void square_strides(const float_t* x, SumF64* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                                int taps) noexcept nogil:
    # Constants let the compiler load vectors.
    if step == 1:
        square_steps(x, y, n, 1, hop, taps)
    elif step == 2 and hop == 1:
        square_steps(x, y, n, 2, 1, taps)
    else:
        square_steps(x, y, n, step, hop, taps)


cdef void square_sweep(const float_t* x, SumF64* y, Py_ssize_t n, Py_ssize_t step, Py_ssize_t hop,
                       Py_ssize_t taps) noexcept nogil:
    """y[j] = T(taps) of the squares of x[j * step], x[j * step + hop], ... for j < n and at most FEW taps."""
    cdef Py_ssize_t j
    if taps == 0:
        for j in range(n):
            y[j].value = 0
    elif taps == 1:
        square_strides(x, y, n, step, hop, 1)
    elif taps == 2:
        square_strides(x, y, n, step, hop, 2)
    elif taps == 3:
        square_strides(x, y, n, step, hop, 3)
    elif taps == 4:
        square_strides(x, y, n, step, hop, 4)
    elif taps == 5:
        square_strides(x, y, n, step, hop, 5)
    elif taps == 6:
        square_strides(x, y, n, step, hop, 6)
    elif taps == 7:
        square_strides(x, y, n, step, hop, 7)
    else:
        square_strides(x, y, n, step, hop, FEW)


cdef void sum_squares(const float_t* x, SumF64* y, Py_ssize_t rows, const Axis* axis, Span span) noexcept nogil:
    """y[rows, span windows] from x[rows, span elements], as `reduce_axis`, for windows of at most FEW taps."""
    cdef Py_ssize_t length = span.high - span.low, count = span.end - span.begin, row, window, runs = rows
    cdef Py_ssize_t begin = max(axis.begin, span.begin), n = min(axis.end, span.end) - begin
    cdef const float_t* first
    if n > 0:
        first = x + first_tap(axis, begin) - span.low
        if count * axis.step == length:
            # Windows continue from row to row as if on one long axis; those at a border are replaced below.
            n += (rows - 1) * count
            runs = 1
        for row in range(runs):
            square_sweep(first + row * length, y + row * count + begin - span.begin, n, axis.step, axis.hop, axis.taps)
    window = span.begin
    while window < span.end:
        if is_interior(axis, window):
            window = axis.end
            continue
        first = x + first_tap(axis, window) - span.low
        for row in range(rows):
            square_sweep(first + row * length, y + row * count + window - span.begin, 1, 1, axis.hop,
                         taps_inside(axis, window))
        window += 1
