"""Rows: elements become running values on the way in, and running values become elements on the way out.

A sum leaves its safe range when it overflowed, or when an underflow may have taken digits from it. Its element is
then left not finite, or a norm of zero, and `True` is returned: if the tile holds elements so large or small that they
may be why, it is taken again with `SumWide`, whose rows mend only such elements.
"""
from libc.math cimport (
    INFINITY,
    NAN,
    cbrt,
    exp2,
    fabs,
    floor,
    fma,
    frexp,
    isfinite,
    ldexp,
    log2,
    pow,
    rintf,
    sqrt,
    sqrtf,
)
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from .elements cimport (
    INFINITE_DOUBLE,
    INFINITE_FLOAT,
    MODERATE_LEAST,
    MODERATE_MOST,
    MOST_DIVISOR,
    TINY_DOUBLE,
    TINY_FLOAT,
    TINY_SQUARE,
    bits_of_float,
    float16_of_key,
    magnitude_of_double,
    magnitude_of_float,
    mean_float,
    quotient_double,
    quotient_float,
    round_to_odd,
)
from .job cimport BFLOAT16_PAIRS, FLOAT16, Format, Rule
from .reductions cimport MaxI16, SumF32, SumF64, SumI32, SumI64, SumWide, running_t, wide

cdef enum:
    ROUGH = 64  # roots that are taken again together


ctypedef fused float_t:
    float
    double

ctypedef fused byte_t:
    int8_t
    uint8_t

ctypedef fused mean_t:
    SumF32
    SumF64

ctypedef fused integer_sum_t:
    SumI32
    SumI64


cdef inline double power(double x, double p) noexcept nogil:
    cdef double base = fabs(x), result = 1
    cdef int64_t n
    if p == 1:
        return base
    if p == 2:
        return base * base
    if p == 3:
        return base * base * base
    if p != floor(p) or p > 64:
        return pow(base, p)
    n = <int64_t> p
    while n:
        if n & 1:
            result *= base
        base *= base
        n >>= 1
    return result


cdef inline SumWide wide_power(double x, double p) noexcept nogil:
    cdef SumWide base = wide(fabs(x), 0), result = wide(1, 0)
    cdef double part, fraction
    cdef int64_t n = <int64_t> floor(p)
    if base.value == 0 or not isfinite(base.value):
        return base
    if p != floor(p) or p > 1 << 20:
        # The whole parts of p times the exponent are exact, p being below 2^52: a digit lost would show in the root.
        part = (p - n) * base.exponent
        fraction = (part - floor(part)) + fma(p - n, base.exponent, -part) + p * log2(base.value)
        return wide(exp2(fraction - floor(fraction)),
                    n * base.exponent + <int64_t> floor(part) + <int64_t> floor(fraction))
    while n:
        if n & 1:
            result = wide(result.value * base.value, result.exponent + base.exponent)
        base = wide(base.value * base.value, 2 * base.exponent)
        n >>= 1
    return result


cdef inline int bounded(int64_t exponent) noexcept nogil:
    """An exponent as `ldexp` takes it: what is cut off is far beyond a double's range."""
    return <int> max(<int64_t> -5000, min(<int64_t> 5000, exponent))


cdef inline double root(double value, int64_t exponent, double p) noexcept nogil:
    """(value * 2^exponent) ** (1 / p)"""
    cdef int shift = 0
    cdef int64_t whole
    cdef double rest
    if value == 0 or not isfinite(value):
        return value
    value = frexp(value, &shift)
    exponent += shift
    # The exponent is divided apart and exactly, so that only its remainder, about p, goes through exp2.
    whole = <int64_t> floor(exponent / p)
    rest = fma(-whole, p - floor(p), exponent - whole * <int64_t> floor(p))
    return ldexp(pow(value, 1 / p) * exp2(rest / p), bounded(whole))


cdef inline double norm(double total, double p) noexcept nogil:
    if p == 1:
        return total
    if p == 2:
        return sqrt(total)
    if p == 3:
        return cbrt(total)
    return root(total, 0, p)


cdef void load_magnitudes(const float_t* x, float_t* y, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = fabs(x[j])


cdef bint store_magnitudes(const float_t* x, float_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    """The largest magnitude of no element is 0."""
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = 0 if x[j] < 0 else x[j]
    return False


cdef bint store_keys(const MaxI16* x, uint16_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    """True if a result may not be the first of equals: zeros are equal, NaNs are no more than one another."""
    cdef Py_ssize_t j
    cdef int unsafe = 0, nans = rule.nans
    cdef int16_t zero = <int16_t> -nans, most = <int16_t> (32767 - 2 * nans)  # infinity
    for j in range(n):
        y[j] = float16_of_key(x[j].value, nans)
        unsafe |= (x[j].value == zero) | (x[j].value > most)
    return unsafe


cdef bint odd_halves(const int16_t* x, Py_ssize_t n, int nans) noexcept nogil:
    """Whether a 16-bit float is a negative zero, the least of integers, or a NaN."""
    cdef Py_ssize_t j
    cdef int16_t highest = 0, lowest = 0
    for j in range(n):
        highest = max(highest, <int16_t> (x[j] & 0x7FFF))
        lowest = min(lowest, x[j])
    return highest > 0x7FFF - nans or lowest == -0x8000


ctypedef fused magnitude_t:
    uint16_t
    uint32_t
    uint64_t


ctypedef fused signed_t:
    int32_t
    int64_t

ctypedef fused word_t:
    uint32_t
    uint64_t


cdef bint extreme_magnitudes(const word_t* x, Py_ssize_t n, word_t least, word_t largest,
                             word_t infinity) noexcept nogil:
    """Whether a float is finite, but not zero, and its magnitude `least` at most or `largest` at least."""
    cdef Py_ssize_t j
    cdef word_t odd = 0, magnitude, most = <word_t> -1 >> 1
    for j in range(n):
        magnitude = x[j] & most
        odd |= (magnitude - 1 < least) | (magnitude - largest < infinity - largest)
    return odd != 0


cdef struct Extremes:
    char[VECTOR] highest  # magnitudes, or keys of maxima,
    char[VECTOR] lowest   # magnitudes less one, of which that of zero is the highest, or keys from that of zero;
    # of maxima of floats the elements as integers


cdef inline Extremes no_extremes() noexcept nogil:
    cdef Extremes seen
    memset(seen.highest, 0, VECTOR)
    memset(seen.lowest, 0xFF, VECTOR)
    return seen


cdef inline void note_magnitudes(const magnitude_t* lanes, magnitude_t* highest, magnitude_t* lowest) noexcept nogil:
    cdef magnitude_t magnitude, most = <magnitude_t> -1 >> 1
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(magnitude_t)):
        magnitude = lanes[j] & most
        highest[j] = max(highest[j], magnitude)
        lowest[j] = min(lowest[j], <magnitude_t> (magnitude - 1))


cdef inline void note_keys(const MaxI16* lanes, int16_t* highest, uint16_t* nearest, int nans) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(MaxI16)):
        highest[j] = max(highest[j], lanes[j].value)
        nearest[j] = min(nearest[j], <uint16_t> (lanes[j].value ^ <int16_t> -nans))


cdef inline void note_float_maxima(const magnitude_t* lanes, magnitude_t* highest) noexcept nogil:
    """Magnitudes, of which those of NaNs are the highest."""
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(magnitude_t)):
        highest[j] = max(highest[j], <magnitude_t> (lanes[j] & (<magnitude_t> -1 >> 1)))


cdef inline void note_signed(const signed_t* lanes, signed_t* lowest) noexcept nogil:
    """Floats as integers, of which negative zeros are the lowest."""
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(signed_t)):
        lowest[j] = min(lowest[j], lanes[j])


cdef inline bint any_unordered(const magnitude_t* highest, const magnitude_t* lowest,
                               magnitude_t infinity) noexcept nogil:
    """Whether the order shows in which maxima of floats are taken: among zeros, if some are negative, and NaNs."""
    cdef magnitude_t odd = 0
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(magnitude_t)):
        odd |= (highest[j] > infinity) | (lowest[j] == (<magnitude_t> -1 >> 1) + 1)
    return odd != 0


cdef inline bint any_beyond(const magnitude_t* highest, const magnitude_t* lowest, magnitude_t infinity,
                            magnitude_t tiny) noexcept nogil:
    cdef magnitude_t odd = 0
    cdef Py_ssize_t j
    for j in range(VECTOR // <Py_ssize_t> sizeof(magnitude_t)):
        odd |= (highest[j] >= infinity) | (lowest[j] < tiny)
    return odd != 0


cdef inline bint are_odd(const Extremes* seen, const running_t* like, Format format) noexcept nogil:
    """Whether some finished result has to be looked at more closely: a mean that is not finite, or so tiny that it may
    have lost digits; a maximum that may not be the first of equals."""
    if running_t is MaxF32:
        return any_unordered(<const uint32_t*> seen.highest, <const uint32_t*> seen.lowest, INFINITE_FLOAT)
    elif running_t is MaxF64:
        return any_unordered(<const uint64_t*> seen.highest, <const uint64_t*> seen.lowest, INFINITE_DOUBLE)
    elif running_t is MaxI16:
        return any_beyond(<const uint16_t*> seen.highest, <const uint16_t*> seen.lowest,
                          <uint16_t> (0x8000 - 2 * nans_of(format)), <uint16_t> 1)
    elif running_t is SumF64:
        return any_beyond(<const uint64_t*> seen.highest, <const uint64_t*> seen.lowest, INFINITE_DOUBLE, TINY_DOUBLE)
    elif running_t is SumF32:
        if format == BFLOAT16_PAIRS:  # looked at when they are narrow
            return any_beyond(<const uint16_t*> seen.highest, <const uint16_t*> seen.lowest,
                              <uint16_t> (INFINITE_FLOAT >> 16), <uint16_t> ((TINY_FLOAT >> 16) + 1))
        return any_beyond(<const uint32_t*> seen.highest, <const uint32_t*> seen.lowest,
                          INFINITE_FLOAT, <uint32_t> (0 if format == FLOAT16 else TINY_FLOAT))
    else:
        return False


cdef void load_powers(const float_t* x, SumF64* y, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    # Constants let the compiler take vectors.
    if rule.p == 1:
        for j in range(n):
            y[j].value = power(x[j], 1)
    elif rule.p == 3:
        for j in range(n):
            y[j].value = power(x[j], 3)
    else:
        for j in range(n):
            y[j].value = power(x[j], rule.p)


cdef void load_integers(const byte_t* x, integer_sum_t* y, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j].value = x[j]


cdef void load_wide(const float_t* x, SumWide* y, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = wide_power(x[j], rule.p) if rule.p else wide(x[j], 0)


cdef inline bint quotients(const mean_t* x, float_t* y, Py_ssize_t n, const float_t* divisors, const float_t* factors,
                           Py_ssize_t pace) noexcept nogil:
    """y[j] = x[j] / divisors[j * pace], correctly rounded; factors are one over the divisors. Several divisors are no
    larger than MOST_DIVISOR."""
    cdef Py_ssize_t j
    cdef uint32_t most_float = 0, least_float = 0xFFFFFFFF
    cdef uint64_t most_double = 0, least_double = 0xFFFFFFFFFFFFFFFF
    cdef bint unsafe
    for j in range(n):
        if float_t is float:
            y[j] = mean_float(x[j].value, divisors[j * pace], factors[j * pace])
            most_float = max(most_float, magnitude_of_float(x[j].value))
            # Zeros wrap around to the largest number: they are not tiny.
            least_float = min(least_float, magnitude_of_float(x[j].value) - 1)
        else:
            y[j] = quotient_double(x[j].value, divisors[j * pace], factors[j * pace])
            most_double = max(most_double, magnitude_of_double(x[j].value))
            least_double = min(least_double, magnitude_of_double(x[j].value) - 1)
    unsafe = most_float >= INFINITE_FLOAT or most_double >= INFINITE_DOUBLE
    if unsafe or least_float < TINY_FLOAT or least_double < TINY_DOUBLE or not pace and divisors[0] > MOST_DIVISOR:
        for j in range(n):
            y[j] = <float_t> x[j].value / divisors[j * pace]
    return unsafe


cdef bint store_means(const mean_t* x, float_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    """Sums over their divisor, correctly rounded."""
    cdef Py_ssize_t j
    cdef float_t by = <float_t> divisor, factor = <float_t> (1 / divisor)
    cdef uint32_t most_float = 0
    cdef uint64_t most_double = 0
    cdef int shift = 0
    if frexp(divisor, &shift) == 0.5 and shift < 64:
        # A power of two multiplies, to the same bits.
        for j in range(n):
            y[j] = <float_t> x[j].value * factor
            if float_t is float:
                most_float = max(most_float, magnitude_of_float(y[j]))
            else:
                most_double = max(most_double, magnitude_of_double(y[j]))
        return most_float >= INFINITE_FLOAT or most_double >= INFINITE_DOUBLE
    return quotients(x, y, n, &by, &factor, 0)


cdef bint divide_means(const mean_t* x, float_t* y, Py_ssize_t n, const float_t* divisors,
                       const float_t* factors) noexcept nogil:
    """As `store_means`, each sum over a divisor of its own."""
    return quotients(x, y, n, divisors, factors, 1)


cdef inline void store_float(double value, float_t* y, const Rule* rule) noexcept nogil:
    if float_t is float:
        y[0] = round_to_odd(value) if rule.dropped else <float> value
    else:
        y[0] = value


cdef inline bint store_roots(const SumF64* x, float_t* y, Py_ssize_t n, double p, bint to_odd,
                             const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    cdef int64_t unsafe = 0
    cdef double value, low = rule.low, high = rule.high
    for j in range(n):
        value = x[j].value
        unsafe |= (value >= low) & (value <= high) ^ 1
        value = value if (value >= low) | (value == 0) else NAN
        value = value if (value <= high) | (value == INFINITY) else NAN
        value = norm(value, p)
        if float_t is float:
            y[j] = round_to_odd(value) if to_odd else <float> value
        else:
            y[j] = value
    return unsafe != 0


cdef bint rough_roots(const SumF64* x, float* y, Py_ssize_t n, int dropped) noexcept nogil:
    """Square roots in single precision; True if one is not good enough to be narrowed by so many bits.

    They are off by a unit in the last place at most, so only those next to the middle of two results could be rounded
    to the wrong one. Roots below 2^-14 may be subnormal in 16 bits.
    """
    cdef Py_ssize_t j
    cdef uint32_t rest, odd = 0, mask = (<uint32_t> 1 << dropped) - 1, middle = <uint32_t> 1 << (dropped - 1)
    cdef float total
    for j in range(n):
        total = <float> x[j].value
        y[j] = sqrtf(total)
        rest = (bits_of_float(y[j]) & mask) - middle + 1
        odd |= (rest <= 2) | ((bits_of_float(total) - TINY_SQUARE >= INFINITE_FLOAT - TINY_SQUARE) & (x[j].value != 0))
    return odd != 0


cdef bint store_norms(const SumF64* x, float_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t done = 0, part
    cdef bint unsafe = False
    # Constants let the compiler take vectors.
    if rule.p == 1 and rule.dropped:
        return store_roots(x, y, n, 1, True, rule)
    if rule.p == 1:
        return store_roots(x, y, n, 1, False, rule)
    if rule.p == 2 and rule.dropped:
        while done < n:
            part = min(n - done, ROUGH)
            if rough_roots(x + done, <float*> y + done, part, rule.dropped):
                unsafe |= store_roots(x + done, y + done, part, 2, True, rule)
            done += part
        return unsafe
    if rule.p == 2:
        return store_roots(x, y, n, 2, False, rule)
    return store_roots(x, y, n, rule.p, rule.dropped != 0, rule)


cdef bint mend_floats(const SumWide* x, float_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        if isfinite(y[j]) and not (rule.p and y[j] == 0):
            continue
        if rule.p and x[j].value != x[j].value:  # it is one NaN already, wherever a tile ends
            continue
        if rule.p:
            store_float(root(x[j].value, x[j].exponent, rule.p), y + j, rule)
        else:
            store_float(ldexp(x[j].value / divisor, bounded(x[j].exponent)), y + j, rule)
    return False


cdef bint store_quantised(const integer_sum_t* x, byte_t* y, Py_ssize_t n, double count,
                          const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    cdef float value
    for j in range(n):
        value = <float> (<int64_t> x[j].value - rule.bias) * rule.scale
        value = rule.lowest if value < rule.lowest else value
        value = rule.highest if value > rule.highest else value
        y[j] = <byte_t> (<int> rintf(value) + rule.zero)
    return False


cdef void load_dequantised(const byte_t* x, SumF32* y, Py_ssize_t n, const Rule* rule) noexcept nogil:
    cdef Py_ssize_t j
    cdef int zero = <int> rule.bias
    for j in range(n):
        y[j].value = rule.scale * <float> (<int> x[j] - zero)


cdef inline bint requantise(const SumF32* x, byte_t* y, Py_ssize_t n, float by, const Rule* rule,
                            bint fused) noexcept nogil:
    """True if fused quotients may not be those of divisions."""
    cdef Py_ssize_t j
    cdef float value, factor = 1 / by, y_scale = rule.y_scale, y_factor = 1 / y_scale, zero = <float> rule.zero
    cdef float lowest = rule.lowest, highest = rule.highest
    cdef uint32_t most = 0, least = 0xFFFFFFFF
    for j in range(n):
        value = quotient_float(x[j].value, by, factor) if fused else x[j].value / by
        if fused:
            most = max(most, magnitude_of_float(value))
            least = min(least, magnitude_of_float(value) - 1)
        value = quotient_float(value, y_scale, y_factor) if fused else value / y_scale
        value = rintf(value + zero)
        value = lowest if value < lowest else value
        value = highest if value > highest else value
        y[j] = <byte_t> <int> value
    return fused and (most > MODERATE_MOST or least < MODERATE_LEAST)


cdef bint store_requantised(const SumF32* x, byte_t* y, Py_ssize_t n, double divisor, const Rule* rule) noexcept nogil:
    """The zero point is added before rounding, as onnxruntime does; the mean of nothing is real 0."""
    cdef Py_ssize_t j
    if divisor == 0:
        for j in range(n):
            y[j] = <byte_t> rule.zero
    elif (not MODERATE_LEAST <= bits_of_float(rule.y_scale) <= MODERATE_MOST
          or requantise(x, y, n, <float> divisor, rule, True)):
        requantise(x, y, n, <float> divisor, rule, False)
    return False
