"""Keys: values with their places, so that one maximum finds both.

A key orders as its value does, a NaN above all and both zeros alike; of equal keys the first place wins. The sign of a
zero travels below the place, where it decides nothing.
"""
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t

from .job cimport Order, Row, Rule
from .reductions cimport NO_KEY, MaxKey, MaxPair

ctypedef fused narrow_t:
    int8_t
    uint8_t
    float

ctypedef fused key_t:
    MaxKey
    MaxPair

cdef enum:
    INFINITE_F32 = 0x7F800000       # the bits of an infinity: a NaN has a greater magnitude

cdef int64_t INFINITE_F64 = 0x7FF0000000000000


cdef inline int64_t rank_at(const narrow_t* x) noexcept nogil:
    """An integer that orders as the value does."""
    cdef int32_t bits, magnitude
    if narrow_t is float:
        bits = (<const int32_t*> x)[0]
        magnitude = bits & INT32_MAX
        return INT32_MAX if magnitude > INFINITE_F32 else -magnitude if bits < 0 else magnitude
    else:
        return x[0]


cdef inline int64_t sign_at(const narrow_t* x) noexcept nogil:
    """1 for a negative zero."""
    if narrow_t is float:
        return (<const int32_t*> x)[0] == INT32_MIN
    else:
        return 0


cdef inline int64_t key_at(const narrow_t* x, int64_t place) noexcept nogil:
    return rank_at(x) * (<int64_t> 1 << 32) + ((INT32_MAX - place) << 1) + sign_at(x)


cdef inline MaxPair pair_at(const double* x, int64_t place) noexcept nogil:
    cdef MaxPair pair
    cdef int64_t bits = (<const int64_t*> x)[0], magnitude = bits & INT64_MAX
    pair.value = INT64_MAX if magnitude > INFINITE_F64 else -magnitude if bits < 0 else magnitude
    pair.place = place << 1 | (bits == INT64_MIN)
    return pair


cdef void load_keys(const narrow_t* x, MaxKey* y, Py_ssize_t n, const Row* row, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t i, c, inner = row.inner
    cdef int64_t place = row.place
    if inner == 1:
        for i in range(n):
            y[i].value = key_at(x + i, place + i)
        return
    for i in range(n // inner):
        for c in range(inner):
            y[i * inner + c].value = key_at(x + i * inner + c, place + i)


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
    if key_t is MaxKey:
        return <int32_t> (key.value >> 32)
    else:
        return <int32_t> key.value


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
    cdef int32_t rank, bits
    for j in range(n):
        rank = rank_in(x[j])
        if narrow_t is float:
            bits = (-rank if rank < 0 else rank) | (INT32_MIN if (rank < 0) | (sign_in(x[j]) != 0) else 0)
            (<int32_t*> y)[j] = <int32_t> (INFINITE_F32 | INT32_MIN) if x[j].value == NO_KEY else bits
        elif narrow_t is int8_t:
            y[j] = <int8_t> (-128 if x[j].value == NO_KEY else rank)
        else:
            y[j] = <uint8_t> (0 if x[j].value == NO_KEY else rank)
    return False


cdef bint store_ranked_f64(const MaxPair* x, double* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    cdef int64_t rank, bits
    for j in range(n):
        rank = x[j].value
        bits = (-rank if rank < 0 else rank) | (INT64_MIN if (rank < 0) | (sign_in(x[j]) != 0) else 0)
        (<int64_t*> y)[j] = INFINITE_F64 | INT64_MIN if rank == NO_KEY else bits
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
