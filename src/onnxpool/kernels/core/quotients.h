/* Exact quotients of natural numbers. A dividend has up to 128 bits, and a divisor is a product of up to one factor for
 * each axis. */
#ifndef ONNXPOOL_QUOTIENTS_H
#define ONNXPOOL_QUOTIENTS_H

#include <math.h>
#include <stdint.h>

#include "shared_constants.h"

/* A natural number, in digits of 32 bits from the lowest one. */
typedef struct {
    int n;                                     /* digits in use, the last of which is not 0 */
    uint32_t digit[2 * ONNXPOOL_MOST_AXES + 6];
} Natural;

/* Binary digits of a quotient, and the exponent of the last digit. `inexact` says whether any digits follow, and the
 * sign of `beyond_half` compares them with half a unit of the last digit. */
typedef struct {
    uint64_t digits;
    int exponent, inexact, beyond_half;
} Quotient;

enum { SIGNIFICANT = 56 }; /* digits from which any float can be rounded */

static inline int length_of(uint64_t x) { return x ? 64 - __builtin_clzll(x) : 0; }

static inline void natural_trim(Natural *a) {
    while (a->n && !a->digit[a->n - 1])
        a->n--;
}

static inline int natural_length(const Natural *a) {
    return a->n ? 32 * (a->n - 1) + length_of(a->digit[a->n - 1]) : 0;
}

static inline void natural_set(Natural *a, uint64_t high, uint64_t low) {
    a->n = 4;
    a->digit[0] = (uint32_t)low, a->digit[1] = (uint32_t)(low >> 32);
    a->digit[2] = (uint32_t)high, a->digit[3] = (uint32_t)(high >> 32);
    natural_trim(a);
}

static inline void natural_scale(Natural *a, uint64_t factor) {
    const uint64_t low = factor & 0xffffffff, high = factor >> 32;
    uint64_t carry = 0, before = 0; /* into this digit; the digit below it, whose product with `high` belongs here */
    a->digit[a->n] = a->digit[a->n + 1] = 0;
    a->n += 2;
    for (int i = 0; i < a->n; i++) {
        const uint64_t digit = a->digit[i], by_low = digit * low, by_high = before * high;
        const uint64_t sum = (by_low & 0xffffffff) + (by_high & 0xffffffff) + (carry & 0xffffffff);
        a->digit[i] = (uint32_t)sum;
        carry = (carry >> 32) + (by_low >> 32) + (by_high >> 32) + (sum >> 32);
        before = digit;
    }
    natural_trim(a);
}

/* Doubles a number, and adds a bit. */
static inline void natural_double(Natural *a, uint32_t bit) {
    for (int i = 0; i < a->n; i++) {
        const uint32_t digit = a->digit[i];
        a->digit[i] = digit << 1 | bit;
        bit = digit >> 31;
    }
    if (bit)
        a->digit[a->n++] = bit;
}

static inline int natural_compare(const Natural *a, const Natural *b) {
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->digit[i] != b->digit[i])
            return a->digit[i] < b->digit[i] ? -1 : 1;
    return 0;
}

/* Subtracts b from a, unless b is greater. Returns whether it was subtracted. */
static inline int natural_take(Natural *a, const Natural *b) {
    int64_t borrow = 0;
    if (natural_compare(a, b) < 0)
        return 0;
    for (int i = 0; i < a->n; i++) {
        borrow += (int64_t)a->digit[i] - (i < b->n ? b->digit[i] : 0);
        a->digit[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    natural_trim(a);
    return 1;
}

/* high * 2^64 + low, divided bit by bit: as a whole number, or with as many digits as any float needs. */
static __attribute__((noinline)) Quotient long_quotient(uint64_t high, uint64_t low, const Natural *divisor, int whole) {
    Natural rest;
    Quotient q = {0, 0, 0, 0};
    natural_set(&rest, high, low);
    q.exponent = natural_length(&rest);
    const int apart = natural_length(divisor) - q.exponent;
    if (whole || apart <= 0) {
        rest.n = 0;
    } else { /* the first bits of the dividend yield no digit of the quotient */
        for (int i = 0; i < apart; i++)
            natural_double(&rest, 0);
        q.exponent = -apart;
        q.digits = (uint64_t)natural_take(&rest, divisor);
    }
    while (whole ? q.exponent > 0 : length_of(q.digits) < SIGNIFICANT) {
        q.exponent--;
        natural_double(&rest, q.exponent < 0 ? 0 : (q.exponent < 64 ? low >> q.exponent : high >> (q.exponent - 64)) & 1);
        q.digits = q.digits << 1 | (uint64_t)natural_take(&rest, divisor);
    }
    q.inexact = rest.n > 0;
    for (int bit = 0; bit < q.exponent; bit++) /* bits of the dividend that are not divided yet */
        q.inexact |= (bit < 64 ? low >> bit : high >> (bit - 64)) & 1;
    natural_double(&rest, 0);
    q.beyond_half = natural_compare(&rest, divisor);
    return q;
}

/* long_quotient for a divisor of 63 bits, in a few divisions, whose function clang on Windows does not link. */
#if defined(__SIZEOF_INT128__) && !defined(_WIN32)
enum { HAS_SHORT_QUOTIENTS = 1 };
__extension__ typedef unsigned __int128 wide_uint;
static inline Quotient short_quotient(uint64_t high, uint64_t low, uint64_t divisor, int whole) {
    const wide_uint dividend = (wide_uint)high << 64 | low;
    uint64_t rest = (uint64_t)(dividend % divisor);
    Quotient q = {(uint64_t)(dividend / divisor), 0, 0, 0};
    while (!whole && rest && length_of(q.digits) < SIGNIFICANT) {
        const int more = q.digits ? 64 - length_of(q.digits) : 63;
        const wide_uint shifted = (wide_uint)rest << more;
        q.digits = q.digits << more | (uint64_t)(shifted / divisor);
        q.exponent -= more;
        rest = (uint64_t)(shifted % divisor);
    }
    q.inexact = rest > 0;
    q.beyond_half = rest > divisor - rest ? 1 : rest < divisor - rest ? -1 : 0;
    return q;
}
#else
enum { HAS_SHORT_QUOTIENTS = 0 };
static inline Quotient short_quotient(uint64_t high, uint64_t low, uint64_t divisor, int whole) {
    (void)high, (void)low, (void)divisor, (void)whole;
    return (Quotient){0, 0, 0, 0};
}
#endif

/* A quotient rounded to the nearest float with that many digits, ties to even; `least` is the smallest float's
 * exponent. */
static inline double nearest_float(Quotient q, int digits, int least) {
    int surplus = length_of(q.digits) - digits;
    if (surplus < least - q.exponent)
        surplus = least - q.exponent;
    if (surplus > 64)
        return 0;
    if (surplus > 0) {
        const uint64_t half = (uint64_t)1 << (surplus - 1), cut = q.digits & (half | (half - 1));
        q.digits = surplus < 64 ? q.digits >> surplus : 0;
        q.digits += cut > half || (cut == half && (q.inexact || (q.digits & 1)));
        q.exponent += surplus;
    }
    return ldexp((double)q.digits, q.exponent);
}

/* The nearest integer, with ties to even. */
static inline uint64_t nearest_integer(Quotient q) {
    return q.digits + (uint64_t)(q.beyond_half > 0 || (q.beyond_half == 0 && (q.digits & 1)));
}

#endif
