"""Keys: values with their places, so that one maximum finds both.

A key orders as its value does, a NaN above all and both zeros alike; of equal keys the first place wins. The sign of a
zero travels below the place, where it decides nothing.
"""
from libc.stdint cimport (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    int8_t,
    int32_t,
    int64_t,
    uint8_t,
    uint32_t,
    uint64_t,
)

from .job cimport Order, Row, Rule
from .reductions cimport NO_KEY, MaxKey, MaxPair

ctypedef fused narrow_t:
    int8_t
    uint8_t
    float

ctypedef fused key_t:
    MaxKey
    MaxPair

cdef extern from *:
    """
    /* The bits of an infinity: a NaN has a greater magnitude. */
    #define INFINITE_F32 INT32_C(0x7F800000)
    #define INFINITE_F64 INT64_C(0x7FF0000000000000)
    """
    int32_t INFINITE_F32
    int64_t INFINITE_F64


cdef inline int32_t rank_at(const narrow_t* x) noexcept nogil:
    """An integer that orders as the value does."""
    cdef int32_t magnitude, negative, nan
    if narrow_t is float:
        # All in bits, for vectors: `negative` and `nan` are masks.
        magnitude = (<const int32_t*> x)[0] & INT32_MAX
        negative = (<const int32_t*> x)[0] >> 31
        nan = -<int32_t> (magnitude > INFINITE_F32)
        return (((magnitude ^ negative) - negative) | nan) & (INT32_MAX | ~nan)
    else:
        return x[0]


cdef inline int32_t sign_at(const narrow_t* x) noexcept nogil:
    """1 for a negative zero."""
    if narrow_t is float:
        return (<const int32_t*> x)[0] == INT32_MIN
    else:
        return 0


cdef inline int64_t key_at(const narrow_t* x, int32_t place) noexcept nogil:
    cdef uint32_t low = (<uint32_t> (INT32_MAX - place) << 1) | <uint32_t> sign_at(x)
    return <int64_t> (<uint64_t> <int64_t> rank_at(x) << 32 | low)


cdef inline MaxPair pair_at(const double* x, int64_t place) noexcept nogil:
    cdef MaxPair pair
    cdef int64_t bits = (<const int64_t*> x)[0], magnitude = bits & INT64_MAX
    pair.value = INT64_MAX if magnitude > INFINITE_F64 else -magnitude if bits < 0 else magnitude
    pair.place = place << 1 | (bits == INT64_MIN)
    return pair


cdef void load_keys(const narrow_t* x, MaxKey* y, Py_ssize_t n, const Row* row, const Rule* rule) noexcept nogil:
    cdef int32_t i, c, inner = <int32_t> row.inner, place = <int32_t> row.place
    if inner == 1:
        for i in range(<int32_t> n):
            y[i].value = key_at(x + i, place + i)
        return
    for i in range(<int32_t> (n // inner)):
        for c in range(inner):
            y[c].value = key_at(x + c, place + i)
        x += inner
        y += inner


cdef void load_pairs(const double* x, MaxPair* y, Py_ssize_t n, const Row* row, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t i, c, inner = row.inner
    cdef int64_t place = row.place
    if inner == 1:
        for i in range(n):
            y[i] = pair_at(x + i, place + i)
        return
    for i in range(n // inner):
        for c in range(inner):
            y[i * inner + c] = pair_at(x + i * inner + c, place + i)


cdef void load_long_pairs(const narrow_t* x, MaxPair* y, Py_ssize_t n, const Row* row,
                          const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j].value = rank_at(x + j)
        y[j].place = (row.place + j // row.inner) << 1 | sign_at(x + j)


cdef inline int32_t rank_in(key_t key) noexcept nogil:
    """That of a window without a tap is below all others."""
    if key_t is MaxKey:
        return <int32_t> (key.value >> 32)
    else:
        return <int32_t> max(key.value, <int64_t> INT32_MIN)


cdef inline int32_t sign_in(key_t key) noexcept nogil:
    if key_t is MaxKey:
        return <int32_t> (key.value & 1)
    else:
        return <int32_t> (key.place & 1)


cdef inline int64_t place_in(key_t key) noexcept nogil:
    if key_t is MaxKey:
        return INT32_MAX - ((key.value >> 1) & INT32_MAX)
    else:
        return key.place >> 1


cdef bint store_ranked(const key_t* x, narrow_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    cdef int32_t rank, mask
    for j in range(n):
        rank = rank_in(x[j])
        if narrow_t is float:
            rank = max(rank, -INFINITE_F32)
            mask = rank >> 31
            (<int32_t*> y)[j] = ((rank ^ mask) - mask) | ((mask | -sign_in(x[j])) & INT32_MIN)
        elif narrow_t is int8_t:
            y[j] = <int8_t> max(rank, -128)
        else:
            y[j] = <uint8_t> max(rank, 0)
    return False


cdef bint store_ranked_f64(const MaxPair* x, double* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    cdef int64_t rank, mask
    for j in range(n):
        rank = max(x[j].value, -INFINITE_F64)
        mask = rank >> 63
        (<int64_t*> y)[j] = ((rank ^ mask) - mask) | ((mask | -(x[j].place & 1)) & INT64_MIN)
    return False


cdef inline int64_t column_major(int64_t place, const Order* order) noexcept nogil:
    """The place as it is counted with the first axis fastest: Horner's rule, from the last axis on."""
    cdef int64_t result = 0
    cdef int a
    for a in range(order.axes - 1, -1, -1):
        result = result * order.size[a] + place % order.size[a]
        place //= order.size[a]
    return result


cdef void store_indices(const key_t* x, int64_t* y, Py_ssize_t n, const Row* row, const Order* order) noexcept nogil:
    cdef Py_ssize_t i, c, inner = row.inner
    cdef int64_t base = row.base, plane = row.plane
    if order.axes:
        for i in range(n):
            y[i] = base + i % inner * plane + column_major(place_in(x[i]), order) if x[i].value != NO_KEY else -1
    elif inner == 1:
        for i in range(n):
            y[i] = base + place_in(x[i]) if x[i].value != NO_KEY else -1
    else:
        for i in range(n // inner):
            for c in range(inner):
                y[i * inner + c] = (base + c * plane + place_in(x[i * inner + c])
                                    if x[i * inner + c].value != NO_KEY else -1)
