/* Powers of magnitudes and their roots, and doubles with a separate exponent, for sums that exceed the range of a
 * double. */
#ifndef ONNXPOOL_POWERS_H
#define ONNXPOOL_POWERS_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "vec.h"

/* pow, with the exceptions that floats.h reads. MinGW-w64's pow records them in the x87 status word instead. */
static inline double recorded_pow(double base, double p) {
    const double result = pow(base, p);
    volatile double extreme = result < DBL_MIN ? DBL_MIN : DBL_MAX;
    if ((result < DBL_MIN && base > 0) || (result > DBL_MAX && base <= DBL_MAX))
        extreme = extreme * extreme;
    return result;
}

RARE double power(double x, double p) {
    double base = fabs(x), result = 1;
    if (p == 1)
        return base;
    if (p == 2)
        return base * base;
    if (p == 3)
        return base * base * base;
    if (p != floor(p) || p > 64)
        return recorded_pow(base, p);
    for (int n = (int)p; n; n >>= 1, base *= base)
        if (n & 1)
            result *= base;
    return result;
}

/* value * 2^exponent, which neither overflows nor underflows: 0.5 <= |value| < 1, or value is 0 or not finite. */
typedef struct {
    double value;
    int64_t exponent;
} Wide;

enum { FRACTION_BITS = 52, EXPONENTS = 0x7ff }; /* of a double */
static inline double power_of_two(int64_t exponent) { /* a normal number */
    const uint64_t bits = (uint64_t)(exponent + 1023) << FRACTION_BITS;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Unsigned arithmetic wraps, and values that no window reads may be arbitrary. */
static inline int64_t sum_of(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t difference_of(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

static inline Wide wide(double value, int64_t exponent) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int64_t field = (int64_t)(bits >> FRACTION_BITS & EXPONENTS);
    if (field > 0 && field < EXPONENTS) { /* a normal number; frexp would take several times as long */
        bits = (bits & ~((uint64_t)EXPONENTS << FRACTION_BITS)) | (uint64_t)1022 << FRACTION_BITS;
        memcpy(&value, &bits, sizeof value);
        return (Wide){value, sum_of(exponent, field - 1022)};
    }
    int shift = 0;
    const double fraction = frexp(value, &shift);
    return (Wide){fraction, value != 0 && isfinite(value) ? sum_of(exponent, shift) : 0};
}

static inline Wide add_wide(Wide a, Wide b) {
    if (a.value == 0 || b.value == 0 || !isfinite(a.value) || !isfinite(b.value))
        return wide(a.value + b.value, a.value == 0 ? b.exponent : a.exponent); /* 0 + -0 is 0 in any order */
    const int64_t distance = difference_of(a.exponent, b.exponent);
    if (distance >= 0)
        return wide(a.value + (distance < 128 ? b.value * power_of_two(-distance) : 0), a.exponent);
    return wide(b.value + (distance > -128 ? a.value * power_of_two(distance) : 0), b.exponent);
}

static inline Wide wide_power(double x, double p) {
    Wide base = wide(fabs(x), 0), result = wide(1, 0);
    int64_t n = (int64_t)floor(p);
    if (base.value == 0 || !isfinite(base.value))
        return base;
    if (p != floor(p) || p > 1 << 20) {
        /* p is below 2^52, so the integer part of p times the exponent is exact. The root would show a lost digit. */
        const double part = (p - n) * base.exponent;
        const double fraction = (part - floor(part)) + fma(p - n, base.exponent, -part) + p * log2(base.value);
        return wide(exp2(fraction - floor(fraction)),
                    n * base.exponent + (int64_t)floor(part) + (int64_t)floor(fraction));
    }
    for (; n; n >>= 1) {
        if (n & 1)
            result = wide(result.value * base.value, result.exponent + base.exponent);
        if (n > 1)
            base = wide(base.value * base.value, 2 * base.exponent);
    }
    return result;
}

#define SMALL_P 0x1p-9

/* An exponent for ldexp, clamped far beyond the range of a double. */
static inline int bounded(int64_t exponent) { return exponent < -5000 ? -5000 : exponent > 5000 ? 5000 : (int)exponent; }

/* value * 2^exponent of a root whose last digits are inexact. Inexact digits alone do not make the result infinite. */
static inline double scaled_root(double value, int exponent) {
    const double result = ldexp(value, exponent);
    return isinf(result) && !isinf(ldexp(value * (1 - 8 * DBL_EPSILON), exponent)) ? DBL_MAX : result;
}

/* (value * 2^exponent) ** (1 / p) */
RARE double root(double value, int64_t exponent, double p) {
    int shift = 0;
    if (value == 0 || !isfinite(value))
        return value;
    value = frexp(value, &shift);
    exponent += shift;
    if (p < SMALL_P) {
        /* A power of the fraction would underflow. A logarithm loses only digits that the sum has already lost. */
        const double both = ((double)exponent + log2(value)) / p, least = fmax(-5000, fmin(5000, floor(both)));
        return scaled_root(exp2(fmin(1, both - least)), (int)least);
    }
    /* The exponent is divided separately and exactly, so that exp2 only sees its remainder, which is about p. */
    const int64_t whole = (int64_t)floor(exponent / p);
    const double rest = fma(-(double)whole, p - floor(p), (double)(exponent - whole * (int64_t)floor(p)));
    return scaled_root(pow(value, 1 / p) * exp2(rest / p), bounded(whole));
}

static inline double norm(double total, double p) {
    return p == 1 ? total : p == 2 ? sqrt(total) : p == 3 ? cbrt(total) : root(total, 0, p);
}
#endif
