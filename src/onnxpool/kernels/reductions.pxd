"""Reductions: what a row of running values holds, and how two of them become one.

A running maximum and a running sum are types of their own, so that a loop written once for `running_t` is compiled
for each, and no sum can meet a maximum. `combine(a, b)` takes `a` from earlier taps than `b`.

The order of every reduction is fixed by the number of taps, T(n) = combine(T(m), T(n - m)) with m the largest power
of two below n, where the second part starts m taps later; where windows are T of parts (`reduce_steps` in passes.pxi,
planes.pxi), by their geometry alone. So instruction set, threads and tiles cannot change a bit of a result, and the
error of a sum grows with log2(n).
"""
from libc.math cimport INFINITY, frexp, isfinite, ldexp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

cdef struct MaxI8:
    int8_t value

cdef struct MaxU8:
    uint8_t value

cdef struct MaxI16:
    int16_t value

cdef struct MaxF32:
    float value

cdef struct MaxF64:
    double value

cdef struct SumI32:
    int32_t value

cdef struct SumI64:
    int64_t value

cdef struct SumF32:
    float value

cdef struct SumF64:
    double value

cdef struct SumWide:
    # value * 2^exponent with 0.5 <= |value| < 1, or 0, or not finite: it neither overflows nor underflows.
    double value
    int64_t exponent

ctypedef fused running_t:
    MaxI8
    MaxU8
    MaxI16
    MaxF32
    MaxF64
    SumI32
    SumI64
    SumF32
    SumF64
    SumWide


cdef inline SumWide wide(double value, int64_t exponent) noexcept nogil:
    cdef SumWide result
    cdef int shift = 0
    result.value = frexp(value, &shift)
    result.exponent = exponent + shift if value != 0 and isfinite(value) else 0
    return result


cdef inline SumWide add_wide(SumWide a, SumWide b) noexcept nogil:
    # Also of values that no window reads, which may be anything.
    cdef int64_t distance = <int64_t> (<uint64_t> a.exponent - <uint64_t> b.exponent)
    if a.value == 0 or b.value == 0 or not isfinite(a.value) or not isfinite(b.value):
        return a if b.value == 0 else b if a.value == 0 else wide(a.value + b.value, 0)
    if distance >= 0:
        return wide(a.value + (ldexp(b.value, <int> -distance) if distance < 128 else 0.0), a.exponent)
    return wide(b.value + (ldexp(a.value, <int> distance) if distance > -128 else 0.0), b.exponent)


cdef inline running_t combine(running_t a, running_t b) noexcept nogil:
    cdef running_t result
    if running_t is SumWide:
        return add_wide(a, b)
    elif running_t is MaxI8 or running_t is MaxU8 or running_t is MaxI16:
        result.value = b.value if b.value > a.value else a.value
        return result
    elif running_t is MaxF32 or running_t is MaxF64:
        # Ties keep the first, and a NaN stays: b wins if it is greater, or a NaN. As two steps, each an instruction.
        result.value = b.value if b.value > a.value else a.value
        result.value = b.value if b.value != b.value else result.value
        return result
    else:
        result.value = a.value + b.value
        return result


cdef inline running_t nothing(running_t like) noexcept nogil:
    """The value of a window without a tap."""
    cdef running_t result
    if running_t is MaxI8:
        result.value = -128
    elif running_t is MaxI16:
        result.value = -32768
    elif running_t is MaxU8:
        result.value = 0
    elif running_t is MaxF32 or running_t is MaxF64:
        result.value = -INFINITY
    elif running_t is SumWide:
        result = wide(0, 0)
    else:
        result.value = 0
    return result


cdef inline running_t neutral(running_t like) noexcept nogil:
    """What changes nothing behind a value: -0 even leaves a sum of negative zeros as it is."""
    cdef running_t result
    if running_t is SumF32 or running_t is SumF64:
        result.value = -0.0
        return result
    else:
        return nothing(like)


cdef inline running_t pair(const running_t* x, Py_ssize_t hop) noexcept nogil:
    return combine(x[0], x[hop])


cdef inline running_t four(const running_t* x, Py_ssize_t hop) noexcept nogil:
    return combine(pair(x, hop), pair(x + 2 * hop, hop))


cdef inline running_t few(const running_t* x, Py_ssize_t hop, int taps) noexcept nogil:
    """T(taps) for 1 to 8 taps at x[0], x[hop], ...; `taps` is a constant where it is called in a loop."""
    if taps == 1:
        return x[0]
    if taps == 2:
        return pair(x, hop)
    if taps == 3:
        return combine(pair(x, hop), x[2 * hop])
    if taps == 4:
        return four(x, hop)
    if taps == 5:
        return combine(four(x, hop), x[4 * hop])
    if taps == 6:
        return combine(four(x, hop), pair(x + 4 * hop, hop))
    if taps == 7:
        return combine(four(x, hop), combine(pair(x + 4 * hop, hop), x[6 * hop]))
    return combine(four(x, hop), four(x + 4 * hop, hop))
