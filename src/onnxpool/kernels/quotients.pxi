"""Means of integers from exact sums: quotients that are rounded once, to the nearest value, with ties to even."""
from libc.math cimport NAN
from libc.stdint cimport int8_t, int16_t, int32_t

cdef extern from "quotients.h" nogil:
    ctypedef struct Natural:
        pass

    ctypedef struct Quotient:
        pass

    const bint HAS_SHORT_QUOTIENTS
    void natural_set(Natural* a, uint64_t high, uint64_t low) noexcept
    void natural_scale(Natural* a, uint64_t factor) noexcept
    Quotient long_quotient(uint64_t high, uint64_t low, const Natural* divisor, bint whole) noexcept
    Quotient short_quotient(uint64_t high, uint64_t low, uint64_t divisor, bint whole) noexcept
    double nearest_float(Quotient quotient, int digits, int least) noexcept
    uint64_t nearest_integer(Quotient quotient) noexcept

cdef enum:
    MOST_PIECES = 64

cdef int64_t EXACT = 1 << 53  # doubles represent integers up to here exactly

ctypedef fused result_t:
    int64_t  # integers of all sizes: the lowest bits
    float
    double


cdef struct Means:
    int parts, bits, factors
    const int64_t* part[MOST_PIECES]      # sums of pieces of elements, the highest piece first
    const int64_t* factor[MOST_AXES]     # factors of divisors


cdef struct Sum:
    # An integer of 128 bits.
    int64_t high
    uint64_t low


cdef inline Sum sum_at(const Means* means, Py_ssize_t i) noexcept nogil:
    """The sum of the parts. Each part is `bits` bits above the next one."""
    cdef Sum total = Sum(means.part[0][i] >> 63, <uint64_t> means.part[0][i])
    cdef int64_t part
    cdef int k
    for k in range(1, means.parts):
        part = means.part[k][i]
        total.high = <int64_t> (<uint64_t> total.high << means.bits | total.low >> (64 - means.bits))
        total.low = (total.low << means.bits) + <uint64_t> part
        total.high += (part >> 63) + (total.low < <uint64_t> part)
    return total


cdef inline bint between_floats(double value) noexcept nogil:
    """Whether a double lies halfway between two floats. If a number was rounded to such a double, it is unknown which
    float is nearer to the number."""
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(bits))
    return bits & 0x1fffffff == 0x10000000


cdef inline bint divided(result_t* y, int64_t total, int64_t count) noexcept nogil:
    """Divide numbers of 64 bits, unless their quotient as an integer or a double does not determine the result."""
    cdef double near
    cdef int64_t whole, rest
    if result_t is float or result_t is double:
        if not (-EXACT <= total <= EXACT and count <= EXACT):
            return False
        near = <double> total / <double> count
        y[0] = <result_t> near
        return result_t is double or not between_floats(near)
    else:
        whole, rest = total // count, total % count  # as C divides
        if rest > count - rest or (rest == count - rest and whole & 1):
            whole += 1
        elif -rest > count + rest or (-rest == count + rest and whole & 1):
            whole -= 1
        y[0] = <result_t> whole
        return True


cdef void set_mean(result_t* y, const Means* means, Py_ssize_t i) noexcept nogil:
    """Set a mean. The mean of no elements is NaN, or 0 as an integer."""
    cdef Natural divisor
    cdef Quotient quotient
    cdef Sum total = sum_at(means, i)
    cdef uint64_t high = <uint64_t> total.high, low = total.low
    cdef int64_t value = <int64_t> total.low, count = means.factor[0][i]
    cdef bint whole = result_t is not float and result_t is not double
    cdef double near
    cdef int k
    for k in range(means.factors):
        if means.factor[k][i] == 0:
            y[0] = <result_t> 0 if whole else <result_t> NAN
            return
    if high == 0 and low == 0:
        y[0] = 0
        return
    if means.factors == 1 and total.high == value >> 63 and divided(y, value, count):
        return
    if total.high < 0:
        low = 0 - low
        high = ~high + (low == 0)
    if means.factors == 1 and HAS_SHORT_QUOTIENTS:
        quotient = short_quotient(high, low, <uint64_t> count, whole)
    else:
        natural_set(&divisor, 0, 1)
        for k in range(means.factors):
            natural_scale(&divisor, <uint64_t> means.factor[k][i])
        quotient = long_quotient(high, low, &divisor, whole)
    if result_t is float or result_t is double:
        near = nearest_float(quotient, 53, -1074) if result_t is double else nearest_float(quotient, 24, -149)
        y[0] = <result_t> (-near if total.high < 0 else near)
    else:
        low = nearest_integer(quotient)
        y[0] = <result_t> (0 - low if total.high < 0 else low)


cdef void set_means(result_t* y, Py_ssize_t n, const Means* means) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        set_mean(y + i, means, i)


cdef void set_integers(void* y, int itemsize, Py_ssize_t n, const Means* means) noexcept nogil:
    cdef int64_t value
    cdef Py_ssize_t i
    for i in range(n):
        set_mean(&value, means, i)
        if itemsize == 1:
            (<int8_t*> y)[i] = <int8_t> value
        elif itemsize == 2:
            (<int16_t*> y)[i] = <int16_t> value
        elif itemsize == 4:
            (<int32_t*> y)[i] = <int32_t> value
        else:
            (<int64_t*> y)[i] = value


def round_quotients(list parts, int bits, list factors, cnp.ndarray y):
    """Divide sums by products of factors, and store the means. Each part of a sum is `bits` bits above the next one.
    Factors are at least 0. All arrays are contiguous and have the size of y; parts and factors are int64.
    """
    cdef Means means
    cdef cnp.ndarray array
    cdef Py_ssize_t n = cnp.PyArray_SIZE(y)
    cdef void* data = cnp.PyArray_DATA(y)
    cdef int i, typenum = cnp.PyArray_TYPE(y)
    means.parts, means.bits, means.factors = <int> len(parts), bits, <int> len(factors)
    if not (0 < means.parts <= MOST_PIECES and 0 < bits < 64 and 0 < means.factors <= MOST_AXES):
        raise ValueError(f"onnxpool: {means.parts} parts of {bits} bits, {means.factors} factors")
    for i, array in enumerate((*parts, *factors, y)):
        if not cnp.PyArray_ISCARRAY_RO(array) or cnp.PyArray_SIZE(array) != n or (
                cnp.PyArray_TYPE(array) != cnp.NPY_INT64 and array is not y):
            raise ValueError(f"onnxpool: array {i} of {array.size} elements of {array.dtype} for {n} means")
        if i < means.parts:
            means.part[i] = <const int64_t*> cnp.PyArray_DATA(array)
        elif i < means.parts + means.factors:
            means.factor[i - means.parts] = <const int64_t*> cnp.PyArray_DATA(array)
    with nogil:
        if cnp.PyArray_ISINTEGER(y):
            set_integers(data, cnp.PyArray_ITEMSIZE(y), n, &means)
        elif typenum == cnp.NPY_FLOAT32:
            set_means(<float*> data, n, &means)
        elif typenum == cnp.NPY_FLOAT64:
            set_means(<double*> data, n, &means)
        else:
            with gil:
                raise ValueError(f"onnxpool: no means of {y.dtype}")
