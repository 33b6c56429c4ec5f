/* The element of a unit: its type in memory (elem_t), in an accumulator (acc_t) and in a register (vec_t). This header
 * defines how two values are joined, and how a total becomes a result.
 *
 * A unit is compiled for one REDUCTION_... of one ELEMENT_... Its loops see:
 *   vec_load            loads elements and widens them
 *   vec_read, vec_write read and write accumulators in memory
 *   vec_merge           joins two values; the first one comes from earlier taps
 *   vec_none            the identity of vec_merge
 *   vec_empty           the total of no taps
 *   vec_keep            keeps some lanes, and replaces the others by the identity
 *   vec_split           separates elements at even and odd places of two registers
 *   vec_split_two       does this for two registers that vec_load_two loaded
 *   vec_totals          joins the lanes of LANES registers as aligned binary trees: register i becomes lane i
 *   vec_finish          turns totals into elements
 *   vec_finish_by       vec_finish with a product or a division for quotients
 *   vec_divide          vec_finish with a division, which is exact for every total
 */
#ifndef ONNXPOOL_ELEMENT_H
#define ONNXPOOL_ELEMENT_H

#include "dtype.h"
#include "job.h"
#include "powers.h"

#if defined(REDUCTION_long_quantised_mean) /* for sums that do not fit into 32 bits */
#define REDUCTION_quantised_mean
#endif
#if defined(REDUCTION_extremum)
#define REDUCTION_max
#endif

/* A retry recomputes sums that left their range. KEEPS: it reads earlier results, and keeps those that are right. */
#if defined(REDUCTION_wide) || defined(REDUCTION_double_mean)
#define RETRY
enum { KEEPS = 1 };
#else
enum { KEEPS = 0 };
#endif

/* ORDERED: the order of taps matters, so that parts of a window are summed separately. IDEMPOTENT: a tap may count more
 * than once. DIVIDES: totals are divided by the number of their taps. FREQUENT: compile-time constants that only save
 * time are worth their space. */
#if defined(REDUCTION_max)
enum { ORDERED = 0, IDEMPOTENT = 1, DIVIDES = 0 };
#elif defined(REDUCTION_quantised_mean)
enum { ORDERED = 0, IDEMPOTENT = 0, DIVIDES = 0 };
#elif defined(REDUCTION_integer_mean)
enum { ORDERED = 0, IDEMPOTENT = 0, DIVIDES = 1 };
#elif defined(REDUCTION_mean) || defined(RETRY) || defined(REDUCTION_mean_in_order) || defined(REDUCTION_valid_mean)
enum { ORDERED = 1, IDEMPOTENT = 0, DIVIDES = 1 };
#else
enum { ORDERED = 1, IDEMPOTENT = 0, DIVIDES = 0 };
#endif

/* How totals are divided. QUOTIENT is wrong for a few totals. PRODUCT is exact if the divisor is a power of two.
 * DIVISION is exact for every total. */
enum { QUOTIENT, PRODUCT, DIVISION };

/* Processors without AVX2 are too rare for loops that only save time. */
#if (defined(REDUCTION_max) || defined(REDUCTION_mean)) && !defined(REDUCTION_extremum) && \
    (!defined(__SSE2__) || defined(__AVX2__))
enum { FREQUENT = 1 };
#else
enum { FREQUENT = 0 };
#endif

/* ---- Accumulators. */
#define ACCUMULATORS(type, register_type, bits)                                                 \
    typedef type acc_t;                                                                         \
    typedef register_type vec_t;                                                                \
    typedef int##bits##_v lane_bits_t;                                                          \
    typedef uint##bits##_v pattern_t;                                                           \
    enum { LANES = WIDTH / sizeof(acc_t) };                                                     \
    INLINE void vec_split(vec_t *first, vec_t *second) {                                        \
        split_int##bits((lane_bits_t *)first, (lane_bits_t *)second);                           \
    }                                                                                           \
    INLINE void vec_split_three(vec_t *first, vec_t *second, vec_t *third) {                    \
        split_three_int##bits((lane_bits_t *)first, (lane_bits_t *)second, (lane_bits_t *)third); \
    }
#if defined(REDUCTION_wide)
typedef Wide acc_t;
typedef Wide vec_t;
enum { LANES = 1 };
INLINE void vec_split(vec_t *first, vec_t *second) { (void)first, (void)second; }
INLINE void vec_split_three(vec_t *first, vec_t *second, vec_t *third) { (void)first, (void)second, (void)third; }
#elif defined(REDUCTION_valid_mean)
#define PAIRS
#include "pairs.h"
#elif defined(REDUCTION_max)
MAXIMA(ACCUMULATORS)
#elif defined(REDUCTION_norm) || defined(REDUCTION_double_mean) || defined(OF_DOUBLES)
ACCUMULATORS(double, double_v, 64)
#elif defined(REDUCTION_long_quantised_mean)
ACCUMULATORS(int64_t, int64_v, 64)
#elif defined(REDUCTION_integer_mean) && defined(ELEMENT_uint8)
ACCUMULATORS(uint16_t, uint16_v, 16)
#elif defined(REDUCTION_integer_mean)
ACCUMULATORS(int32_t, int32_v, 32)
#elif defined(REDUCTION_indexed_extremum) && defined(OF_INTEGERS) && defined(OF_64_BITS)
ACCUMULATORS(int64_t, int64_v, 64)
#elif defined(REDUCTION_quantised_mean) || (defined(REDUCTION_indexed_extremum) && defined(OF_INTEGERS))
ACCUMULATORS(int32_t, int32_v, 32)
#else
ACCUMULATORS(float, float_v, 32)
#endif
#if !defined(REDUCTION_wide) && !defined(PAIRS)
INLINE acc_t acc_of(double value) { return (acc_t)value; }
INLINE vec_t vec_repeat(acc_t value) { return value - (vec_t){0}; } /* -0 stays -0 */
#endif
#if !defined(REDUCTION_wide)
INLINE vec_t vec_fill(double value) { return vec_repeat(acc_of(value)); }
INLINE pattern_t repeated(uint64_t bits) { return (pattern_t)((uint64_v){0} + bits); }
#endif
#if defined(ELEMENT_int8) && defined(OF_INTEGERS) && (defined(REDUCTION_extremum) || defined(REDUCTION_indexed_extremum))
/* Numbers stay as they are. Bools become 1, unless the byte is 0. */
INLINE vec_t vec_truth(vec_t v, const Rule *rule) {
    return BLEND(vec_t, repeated(rule->order.truth), (vec_t)(v != 0) & 1, v);
}
#else
INLINE vec_t vec_truth(vec_t v, const Rule *rule) { (void)rule; return v; }
#endif
INLINE vec_t vec_read(const acc_t *x) { return READ(vec_t, x); }
INLINE void vec_write(acc_t *y, vec_t v) { memcpy(y, &v, sizeof v); }

/* ---- Taps in row-major order. */
#if defined(REDUCTION_indexed_extremum) || defined(REDUCTION_mean_in_order)
#include "ordered.h"

#else
typedef struct { int unused; } seen_t; /* loops need to know nothing about elements */
INLINE seen_t seen_nothing(void) { return (seen_t){0}; }
INLINE void see(seen_t *seen, vec_t v) { (void)seen, (void)v; }
INLINE void seen_join(seen_t *seen, seen_t later) { (void)seen, (void)later; }
#endif

/* ---- Extrema: maxima of elements, or of integers that have the order of the elements or its reverse. `Order` in job.h
 * says how elements become these integers. */
#if defined(REDUCTION_max)
INLINE vec_t vec_none(void) { return vec_fill(LEAST); }
INLINE vec_t vec_empty(void) { return vec_none(); }
INLINE vec_t vec_merge(vec_t a, vec_t b) { return larger(a, b); }
#if defined(REDUCTION_extremum) && defined(ELEMENT_int8) /* there are no floats of 8 bits */
INLINE vec_t vec_key(vec_t v, const Rule *rule) { return v ^ (vec_t)repeated(rule->order.flip); }
INLINE vec_t vec_bits(vec_t key, const Rule *rule) { return vec_truth(vec_key(key, rule), rule); }
#elif defined(REDUCTION_extremum) || defined(OF_HALVES)
#if defined(REDUCTION_extremum)
#define ORDER(field) repeated(rule->order.field)
#else
#define ORDER(field) ORDER_##field
#define ORDER_mask ((pattern_t){0} + 0x7fff)
#define ORDER_flip ((pattern_t){0})
#define ORDER_shift repeated(rule->order.shift) /* the same unit serves float16 and bfloat16 */
#endif
INLINE vec_t masked(pattern_t v, const Rule *rule) { /* patterns, because sums and differences may overflow */
    (void)rule;
    return (vec_t)v ^ (((vec_t)v >> (8 * sizeof(acc_t) - 1)) & (vec_t)ORDER(mask));
}
INLINE vec_t vec_key(vec_t v, const Rule *rule) {
    return (vec_t)(((pattern_t)masked((pattern_t)v, rule) ^ ORDER(flip)) - ORDER(shift));
}
#if defined(REDUCTION_extremum)
RARE vec_t plain_magnitudes(vec_t bits, const Rule *rule) {
    const vec_t infinity = (vec_t)repeated(rule->order.infinity);
    return BLEND(vec_t, bits > infinity, infinity | infinity >> 1, bits);
}
#endif
INLINE vec_t vec_bits(vec_t key, const Rule *rule) {
    const vec_t bits = masked(((pattern_t)key + ORDER(shift)) ^ ORDER(flip), rule);
#if defined(REDUCTION_extremum)
    if (rule->order.infinity)
        return plain_magnitudes(bits, rule);
#endif
    return bits;
}
#else
INLINE vec_t vec_key(vec_t v, const Rule *rule) { (void)rule; return v; }
INLINE vec_t vec_bits(vec_t key, const Rule *rule) { (void)rule; return key; }
#endif
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { return vec_key(READ(vec_t, x), rule); }
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)count, (void)inverse;
    total = vec_bits(total, rule);
    memcpy(y, &total, sizeof total);
}

/* ---- Sums. */
#elif !defined(REDUCTION_indexed_extremum) && !defined(REDUCTION_mean_in_order)
#if defined(REDUCTION_wide)
RARE vec_t vec_merge(vec_t a, vec_t b) { return add_wide(a, b); }
#else
#if defined(REDUCTION_integer_mean) || defined(REDUCTION_quantised_mean)
INLINE vec_t vec_merge(vec_t a, vec_t b) { return (vec_t)((pattern_t)a + (pattern_t)b); } /* unused lanes may overflow */
#else
INLINE vec_t vec_merge(vec_t a, vec_t b) { return a + b; }
#endif
INLINE vec_t vec_empty(void) { return vec_fill(0); }
#endif

#if defined(REDUCTION_mean) || defined(REDUCTION_double_mean) || defined(REDUCTION_norm) || defined(PAIRS)
INLINE vec_t vec_none(void) { return vec_fill(-0.0); } /* adding -0 does not even change a sum of negative zeros */
#endif

/* All NaN results have the same bits, whatever made them NaN. */
#if defined(REDUCTION_norm) || defined(REDUCTION_double_mean) || defined(OF_DOUBLES)
#define PLAIN_NANS plain_nans_double
#else
#define PLAIN_NANS plain_nans_float
#endif

/* ---- Means. */
#if defined(REDUCTION_mean)
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { (void)rule; return widen(x); }
INLINE void vec_store(elem_t *y, vec_t v) {
    __extension__ const __auto_type elements = narrow(v);
    memcpy(y, &elements, sizeof elements);
}
/* Wrong only if it raises an exception: an underflow, or an invalid operation on an infinite total. Rounding to
 * bfloat16 keeps NaNs, because the lower half of their bits is zero. */
INLINE vec_t vec_quotient(vec_t total, vec_t count, vec_t inverse) {
#if defined(OF_DOUBLES)
    return quotient_double(total, count, inverse);
#else
    return quotient_float(total, count, inverse);
#endif
}
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)rule;
    vec_store(y, PLAIN_NANS(vec_quotient(total, count, inverse)));
}
INLINE void vec_finish_by(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule, int finish) {
    (void)rule;
    vec_t mean = total * inverse;
    if (finish != PRODUCT) /* a single store of means keeps constants in registers */
        mean = finish == DIVISION ? total / count : vec_quotient(total, count, inverse);
    vec_store(y, PLAIN_NANS(mean));
}
INLINE void vec_divide(elem_t *y, vec_t total, vec_t count, const Rule *rule) {
    (void)rule;
    vec_store(y, PLAIN_NANS(total / count));
}

/* ---- Means that skip NaNs. A NaN adds the identity to the sum, and `left_out` to the count. */
#elif defined(PAIRS)
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) {
    const vec_t left_out = beside(-0.0, rule->left_out);
    return BLEND(vec_t, nans(x, rule), left_out, with_counts(x, rule));
}
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)inverse;
    const pattern_t pads = (pattern_t){0} - (rule->counted == 0); /* all bits, if padding counts */
    firsts_write(y, PLAIN_NANS(total / (counts_of(total) + (vec_t)((pattern_t)count & pads))), rule);
}

/* ---- Norms: sums of powers in doubles. A sum may leave the range of a double. */
#elif defined(REDUCTION_norm)
RARE vec_t vec_powers(vec_t v, double p) {
    if (p == 1)
        return v;
    if (p == 3)
        return v * v * v;
    for (int i = 0; i < (int)LANES; i++)
        v[i] = power(v[i], p);
    return v;
}
RARE vec_t vec_roots(vec_t v, double p) {
    for (int i = 0; i < (int)LANES; i++)
        v[i] = norm(v[i], p);
    return v;
}
/* A skipped NaN adds the identity. The total stays -0 until the power of a number, which is at least 0, is added. */
RARE vec_t vec_valid_powers(vec_t v, double p) {
    return BLEND(vec_t, v != v, vec_none(), vec_powers((vec_t)((int64_v)v & INT64_MAX), p));
}
RARE vec_t vec_without_zeros(vec_t total) {
    return BLEND(vec_t, (int64_v)total == INT64_MIN, vec_fill(__builtin_nan("")), total);
}
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) {
    const vec_t v = widen_to_double(x), magnitude = (vec_t)((int64_v)v & INT64_MAX);
    if (rule->p == 2)
        return v * v;
    if (rule->p == 1)
        return magnitude;
    if (rule->p == -2)
        return BLEND(vec_t, v != v, vec_none(), v * v);
    if (rule->p < 0)
        return vec_valid_powers(v, -rule->p);
#if defined(LOOPS_whole) /* elsewhere, roots take longer than a call */
    if (rule->p == 3)
        return v * v * magnitude;
#endif
    return vec_powers(magnitude, rule->p);
}
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)count, (void)inverse;
    /* Totals that lost digits become NaNs, and the addition raises an exception. Bits are compared, because comparing
     * numbers would raise the exception for every NaN. Sums are positive, so their bits have the same order. */
    const int64_v bits = (int64_v)total, low = (int64_v)vec_fill(rule->low), high = (int64_v)vec_fill(rule->high);
    const int64_v lost = ((bits > 0) & (bits < low)) | ((bits > high) & (bits < (int64_v)vec_fill(__builtin_inf())));
    total = BLEND(vec_t, lost, vec_fill(__builtin_nans("")), total);
    if (rule->p < 0)
        total = vec_without_zeros(total);
    total += 0.0; /* no norm is -0 */
    if (rule->p == 2 || rule->p == -2)
        total = root_double(total);
    else if (rule->p != 1 && rule->p != -1)
        total = vec_roots(total, fabs(rule->p));
    __extension__ const __auto_type elements = narrow_double(PLAIN_NANS(total));
    memcpy(y, &elements, sizeof elements);
}

/* ---- Means of integers, rounded to integers, with ties to even. The mean of no elements is 0. */
#elif defined(REDUCTION_integer_mean)
#define OWN_INVERSE
INLINE vec_t vec_none(void) { return vec_fill(0); }
#if defined(ELEMENT_uint8) /* at most 257 taps, so that sums fit into 16 bits */
/* Rounded down for many taps, or else up, but at most 65535. */
INLINE acc_t acc_inverse(double count, const Rule *rule) {
    const double inverse = count > 1 ? 65536 / count : 65535;
    return (acc_t)(rule->few ? ceil(inverse) : inverse);
}
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { (void)rule; return (vec_t)widen_uint8_to_words(x); }
/* The product with the inverse is the quotient, or one less. The remainder decides which. */
INLINE vec_t mean_of_many(vec_t total, vec_t count, vec_t inverse) {
    count |= (vec_t)(count == 0) & 1;
    vec_t mean = multiply_high(total, inverse), rest = total - mean * count;
    const vec_t less = (vec_t)((int16_v)rest >= (int16_v)count);
    mean -= less;
    rest -= less & count;
    return mean - (vec_t)((int16_v)(rest + rest + (mean & 1)) > (int16_v)count);
}
/* Up to 16 taps, the high half of the product is the quotient, with ties rounded up: the inverse is too large by less
 * than count / 65536, and the sum plus half of the count is less than 256 * count, so that the product is too large by
 * less than 1 / count. For a tie, the low half is only the product's error, which is less than the inverse itself. */
INLINE vec_t mean_of_few(vec_t total, vec_t count, vec_t inverse) {
    const vec_t half = (count + ((vec_t)(count == 1) & 1)) >> 1, even = (count & 1) - 1;
    total += half;
    const vec_t tie = (vec_t)(total * inverse < (inverse & even));
    return multiply_high(total, inverse) & ~(tie & 1);
}
INLINE vec_t mean_of(vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    return rule->few ? mean_of_few(total, count, inverse) : mean_of_many(total, count, inverse);
}
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    const half_uint8_v elements = narrow_words(mean_of(total, count, inverse, rule));
    memcpy(y, &elements, sizeof elements);
}
#else /* int16 or uint16, at most 32768 taps */
/* A float in the bits of an integer: 0 for a count of 0. */
INLINE acc_t acc_inverse(double count, const Rule *rule) {
    (void)rule;
    const float inverse = count > 0 ? (float)(1 / count) : 0;
    return READ(acc_t, &inverse);
}
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { return rule->is_other ? widen_uint16(x) : widen(x); }
/* Adding ROUNDER rounds a float to an integer. The low bits of the sum are that integer. */
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */
INLINE vec_t rounded(float_v v) { return (vec_t)(v + ROUNDER); }
/* Up to 256 taps, floats hold sums exactly, quotients are correctly rounded, and only exact ties become ties. */
INLINE vec_t mean_of_few(vec_t total, vec_t count, vec_t inverse) {
    const float_v divisor = __builtin_convertvector(count, float_v);
    return rounded(quotient_float(__builtin_convertvector(total, float_v), divisor, (float_v)inverse));
}
/* With more taps, the quotient is rounded to the mean or, close to a half, to a neighbour. The remainder decides. */
INLINE vec_t mean_of_many(vec_t total, vec_t count, vec_t inverse) {
    const float rounder = ROUNDER;
    vec_t mean = rounded(__builtin_convertvector(total, float_v) * (float_v)inverse) - READ(acc_t, &rounder);
    const vec_t rest = total - mean * count, twice = rest + rest, odd = mean & 1;
    return mean - (vec_t)(twice + odd > count) + (vec_t)(twice - odd < -count);
}
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    __extension__ const __auto_type elements =
        narrow(rule->few ? mean_of_few(total, count, inverse) : mean_of_many(total, count, inverse));
    memcpy(y, &elements, sizeof elements);
}
#endif

/* ---- Means of whole quantised channels. */
#elif defined(REDUCTION_quantised_mean)
INLINE vec_t vec_none(void) { return vec_fill(0); }
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) {
    (void)rule;
#if defined(REDUCTION_long_quantised_mean)
    vec_t v;
    for (int i = 0; i < (int)LANES; i++)
        v[i] = x[i];
    return v;
#else
    return widen(x);
#endif
}
/* Values are clamped before they are rounded, because the addition rounds only small numbers. */
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)count, (void)inverse;
#if !defined(REDUCTION_long_quantised_mean)
    const float_v low = (float_v){0} + rule->scales.lowest, high = (float_v){0} + rule->scales.highest;
    float_v v = __builtin_convertvector(total - (acc_t)rule->scales.bias, float_v) * rule->scales.scale;
    v = BLEND(float_v, v < low, low, v);
    v = BLEND(float_v, v > high, high, v);
    v = (v + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23 */
    __extension__ const __auto_type elements =
        narrow((int32_v)((uint32_v)__builtin_convertvector(v, int32_v) + (uint32_t)rule->scales.zero));
    memcpy(y, &elements, sizeof elements);
#else
    for (int i = 0; i < (int)LANES; i++) {
        float value = (float)(total[i] - rule->scales.bias) * rule->scales.scale;
        value = value < rule->scales.lowest ? rule->scales.lowest : value;
        value = value > rule->scales.highest ? rule->scales.highest : value;
        y[i] = (elem_t)((int)__builtin_rintf(value) + rule->scales.zero);
    }
#endif
}
/* ---- Retries of means whose sums are not finite floats. */
#elif defined(REDUCTION_double_mean)
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { (void)rule; return widen_to_double(x); }
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)inverse, (void)rule;
    const vec_t there = widen_to_double(y);
    const int64_v finite = ((int64_v)there & INT64_MAX) < (int64_v)vec_fill(__builtin_inf());
    __extension__ const __auto_type elements = narrow_double(BLEND(vec_t, finite, there, PLAIN_NANS(total / count)));
    memcpy(y, &elements, sizeof elements);
}

/* ---- Retries of other means, and of norms: no sum can leave the range. */
#elif defined(REDUCTION_wide)
INLINE acc_t acc_of(double value) { return wide(value, 0); }
INLINE vec_t vec_fill(double value) { return wide(value, 0); }
INLINE vec_t vec_repeat(acc_t value) { return value; }
INLINE vec_t vec_none(void) { return wide(-0.0, 0); }
INLINE vec_t vec_empty(void) { return wide(0, 0); }
RARE vec_t vec_load(const elem_t *x, const Rule *rule) {
    const double value = value_of(READ(elem_t, x));
    if (rule->p < 0 && value != value)
        return vec_none();
    return rule->divides ? wide(value, 0) : wide_power(value, fabs(rule->p));
}
RARE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)inverse;
    const double there = value_of(READ(elem_t, y));
    double result;
    if (isfinite(there) && (rule->divides || there != 0))
        return;
    if (rule->divides)
        result = ldexp(total.value / ldexp(count.value, (int)count.exponent), bounded(total.exponent));
    else if (total.value == total.value && !(rule->p < 0 && signbit(total.value)))
        result = root(total.value + 0.0, total.exponent, fabs(rule->p)); /* no norm is -0 */
    else
        return; /* it is already a NaN */
    const elem_t element = element_of(result == result ? result : __builtin_nan(""));
    memcpy(y, &element, sizeof element);
}
#endif
#endif

/* The inverse of a count, in the form that `vec_finish` takes. */
#if !defined(OWN_INVERSE)
INLINE acc_t acc_inverse(double count, const Rule *rule) { (void)rule; return acc_of(1 / count); }
#endif

/* ---- Two registers of adjacent elements, in an order that only these functions know. Elements of 8 or 16 bits are
 * parts of lanes: one register then has the even elements, and the other the odd ones. */
#if defined(REDUCTION_mean) && defined(UPPER_HALVES)
INLINE void vec_load_two(vec_t *first, vec_t *second, const elem_t *x, const Rule *rule) {
    (void)rule;
    *first = even_of(read_pairs(x)), *second = odd_of(read_pairs(x));
}
INLINE void vec_split_two(vec_t *first, vec_t *second) { (void)first, (void)second; }
INLINE void vec_finish_two(elem_t *y, vec_t first, vec_t second, vec_t count, vec_t inverse, const Rule *rule) {
    (void)rule;
    const uint32_v even = round_to_bfloat16(PLAIN_NANS(vec_quotient(first, count, inverse)));
    const uint32_v odd = round_to_bfloat16(PLAIN_NANS(vec_quotient(second, count, inverse)));
    const uint32_v both = FIRST_LOW((even >> 16) | (odd & 0xffff0000));
    memcpy(y, &both, sizeof both);
}
#elif defined(REDUCTION_integer_mean)
INLINE void vec_split_two(vec_t *first, vec_t *second) { (void)first, (void)second; }
#if defined(ELEMENT_uint8)
INLINE void vec_load_two(vec_t *first, vec_t *second, const elem_t *x, const Rule *rule) {
    (void)rule;
    const vec_t pairs = FIRST_LOW(READ(vec_t, x));
    *first = pairs & 0xff, *second = pairs >> 8;
}
INLINE vec_t vec_load_neighbours(const elem_t *x, const Rule *rule) {
    (void)rule;
    return add_neighbours_uint8(READ(uint8_v, x));
}
INLINE void vec_finish_two(elem_t *y, vec_t first, vec_t second, vec_t count, vec_t inverse, const Rule *rule) {
    const vec_t both = FIRST_LOW(mean_of(first, count, inverse, rule) | mean_of(second, count, inverse, rule) << 8);
    memcpy(y, &both, sizeof both);
}
#else
INLINE void vec_load_two(vec_t *first, vec_t *second, const elem_t *x, const Rule *rule) {
    const pattern_t pairs = (pattern_t)read_pairs(x);
    *first = rule->is_other ? (vec_t)(pairs & 0xffff) : even_of((pairs_v)pairs);
    *second = rule->is_other ? (vec_t)(pairs >> 16) : odd_of((pairs_v)pairs);
}
INLINE vec_t vec_load_neighbours(const elem_t *x, const Rule *rule) {
    if (!rule->is_other)
        return add_neighbours_int16(READ(int16_v, x));
    const pattern_t pairs = READ(pattern_t, x);
    return (vec_t)((pairs & 0xffff) + (pairs >> 16));
}
INLINE vec_t low_words(vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    elem_t part[LANES];
    vec_finish(part, total, count, inverse, rule);
    return widen(part);
}
INLINE void vec_finish_two(elem_t *y, vec_t first, vec_t second, vec_t count, vec_t inverse, const Rule *rule) {
    const uint32_v low = (uint32_v)low_words(first, count, inverse, rule) & 0xffff;
    const uint32_v both = FIRST_LOW(low | (uint32_v)low_words(second, count, inverse, rule) << 16);
    memcpy(y, &both, sizeof both);
}
#endif
#else
#if !defined(ELEMENTS_IN_PAIRS)
INLINE void vec_load_two(vec_t *first, vec_t *second, const elem_t *x, const Rule *rule) {
    *first = vec_load(x, rule), *second = vec_load(x + LANES, rule);
}
INLINE void vec_split_two(vec_t *first, vec_t *second) { vec_split(first, second); }
#endif
INLINE void vec_finish_two(elem_t *y, vec_t first, vec_t second, vec_t count, vec_t inverse, const Rule *rule) {
    vec_finish(y, first, count, inverse, rule);
    vec_finish(y + LANES, second, count, inverse, rule);
}
#endif

/* ---- Totals of registers that hold adjacent places. The order of places matters. */
#if defined(REDUCTION_mean)
#if defined(OF_DOUBLES)
#define SPLIT_NEAR(a, b) split_near_int64((int64_v *)(a), (int64_v *)(b))
#else
#define SPLIT_NEAR(a, b) split_near_int32((int32_v *)(a), (int32_v *)(b))
#endif
INLINE vec_t vec_totals(vec_t *v) {
    _Pragma("GCC unroll 4") for (int n = LANES / 2; n; n /= 2) {
        _Pragma("GCC unroll 8") for (int i = 0; i < n; i++) {
            vec_t first = v[2 * i], second = v[2 * i + 1];
            if (LANES / n * sizeof(acc_t) <= 16)
                SPLIT_NEAR(&first, &second);
            else
                split_far((int64_v *)&first, (int64_v *)&second);
            v[i] = vec_merge(first, second);
        }
    }
    return v[0];
}
#else
INLINE vec_t vec_totals(vec_t *v) { return v[0]; }
#endif
/* Decides which of several equal maxima at adjacent places is the result: the first zero, or the last NaN. */
INLINE acc_t acc_decided(acc_t largest, const acc_t *x, ptrdiff_t n) {
#if defined(REDUCTION_max) && (defined(OF_FLOATS) || defined(OF_DOUBLES))
    /* These loops stay within bounds even if another thread changes the places meanwhile. */
    for (ptrdiff_t i = n - 1; i >= 0 && largest != largest; i--) {
        const acc_t last = READ(acc_t, x + i);
        if (last != last)
            return last;
    }
    for (ptrdiff_t i = 0; i < n && largest == 0; i++) {
        const acc_t first = READ(acc_t, x + i);
        if (first == 0)
            return first;
    }
#else
    (void)x, (void)n;
#endif
    return largest;
}

/* A load for loops that have many copies of it. The load of norms is long, so it is a function of its own. */
#if defined(REDUCTION_norm)
static __attribute__((noinline)) vec_t vec_load_briefly(const elem_t *x, const Rule *rule) { return vec_load(x, rule); }
#else
INLINE vec_t vec_load_briefly(const elem_t *x, const Rule *rule) { return vec_load(x, rule); }
#endif

/* EXACT: values can be subtracted from a sum again. */
#if defined(REDUCTION_integer_mean)
enum { EXACT = 1 };
INLINE vec_t vec_without(vec_t sum, vec_t part) { /* may overflow before the next value is added */
    return (vec_t)((pattern_t)sum - (pattern_t)part);
}
#else
enum { EXACT = 0 };
INLINE vec_t vec_load_neighbours(const elem_t *x, const Rule *rule) { return vec_load(x, rule); } /* never called */
INLINE vec_t vec_without(vec_t sum, vec_t part) { (void)part; return sum; } /* never called */
#endif

/* AS_STORED: an accumulator is an element as it is in memory. */
#if (defined(REDUCTION_max) && !defined(REDUCTION_extremum) && !defined(OF_HALVES)) || \
    (defined(REDUCTION_mean) && (defined(OF_FLOATS) || defined(OF_DOUBLES)))
enum { AS_STORED = 1 };
#else
enum { AS_STORED = 0 };
#endif

/* ---- Division, which is exact where `vec_finish` may not be. */
#if !defined(REDUCTION_mean)
INLINE void vec_finish_by(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule, int finish) {
    (void)finish;
    vec_finish(y, total, count, inverse, rule);
}
INLINE void vec_divide(elem_t *y, vec_t total, vec_t count, const Rule *rule) {
    vec_finish(y, total, count, count, rule);
}
#endif

/* ---- Partial vectors. */
RARE void copy_within(elem_t *y, ptrdiff_t n, ptrdiff_t low, const elem_t *x, ptrdiff_t count) { /* others become 0 */
    memset(y, 0, (size_t)n * sizeof(elem_t));
    memcpy(y + low, x, (size_t)count * sizeof(elem_t));
}
#define ONES4 -1, -1, -1, -1
#define ONES16 ONES4, ONES4, ONES4, ONES4
static const int8_t ones_and_zeros[128] = {ONES16, ONES16, ONES16, ONES16};
INLINE vec_t vec_ones(ptrdiff_t begin, ptrdiff_t end) { /* ones in lanes begin to end, for vec_keep */
#if defined(REDUCTION_wide)
    return wide(begin <= 0 && end > 0, 0);
#else
    const char *end_of_ones = (const char *)ones_and_zeros + 64;
    const lane_bits_t before = READ(lane_bits_t, end_of_ones - begin * (ptrdiff_t)sizeof(acc_t));
    return (vec_t)(READ(lane_bits_t, end_of_ones - end * (ptrdiff_t)sizeof(acc_t)) & ~before);
#endif
}
/* vec_ones for `phases` registers that take turns, one value each: ones where they hold the values [begin, end). */
RARE void vec_phases(vec_t *ones, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t phases) {
#define LANES_BEFORE(value) /* divisions by constants are fast */                                             \
    ((value) <= p ? 0 : phases == 2 ? ceil_div((value) - p, 2) : phases == 3 ? ceil_div((value) - p, 3)       \
                                                               : ceil_div((value) - p, 4))
    for (ptrdiff_t p = 0; p < phases; p++)
        ones[p] = vec_ones(LANES_BEFORE(begin), LANES_BEFORE(end));
}
INLINE vec_t vec_keep(vec_t v, vec_t ones) { /* other lanes become the identity */
#if defined(REDUCTION_wide)
    return ones.value ? v : vec_none();
#else
    return BLEND(vec_t, (lane_bits_t)ones, v, vec_none());
#endif
}
/* The first n elements of an array. `part` has room for LANES elements, but at least 16 bytes. */
enum { PART_BYTES = LANES * sizeof(elem_t), PART_ROOM = PART_BYTES < 16 ? 16 / sizeof(elem_t) : LANES };
INLINE void read_part(elem_t *part, const elem_t *x, ptrdiff_t n) { /* followed by zeros */
#if defined(__AVX512BW__)
    read_masked(part, x, FIRST_BYTES(n * sizeof(elem_t)), PART_BYTES);
#else
    memset(part, 0, PART_BYTES);
    memcpy(part, x, (size_t)n * sizeof(elem_t));
#endif
}
INLINE void write_part(elem_t *y, const elem_t *part, ptrdiff_t n) {
#if defined(__AVX512BW__)
    write_masked(y, part, FIRST_BYTES(n * sizeof(elem_t)), PART_BYTES);
#else
    memcpy(y, part, (size_t)n * sizeof(elem_t));
#endif
}
INLINE vec_t vec_load_part(const elem_t *x, ptrdiff_t n, const Rule *rule) {
    elem_t part[PART_ROOM];
    read_part(part, x, n);
    return vec_load(part, rule);
}
INLINE void vec_finish_part(elem_t *y, ptrdiff_t n, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    elem_t part[PART_ROOM];
    if (KEEPS)
        read_part(part, y, n);
    vec_finish(part, total, count, inverse, rule);
    write_part(y, part, n);
}
INLINE void vec_divide_part(elem_t *y, ptrdiff_t n, vec_t total, vec_t count, const Rule *rule) {
    elem_t part[PART_ROOM];
    if (KEEPS)
        read_part(part, y, n);
    vec_divide(part, total, count, rule);
    write_part(y, part, n);
}

#if !defined(REDUCTION_indexed_extremum) && !defined(REDUCTION_mean_in_order)
/* Finish windows without taps. Their results are equal, because zero divided by any count is zero. A retry need not
 * look at them. */
RARE void finish_without_taps(elem_t *y, ptrdiff_t windows, ptrdiff_t step, ptrdiff_t lanes, double count,
                              const Rule *rule) {
    elem_t none[PART_ROOM];
    if (KEEPS)
        return;
    vec_finish(none, vec_empty(), vec_fill(count), vec_repeat(acc_inverse(count, rule)), rule);
    if (step == lanes)
        lanes *= windows, windows = 1;
    for (ptrdiff_t w = 0; w < windows; w++)
        for (ptrdiff_t i = 0; i < lanes; i++)
            memcpy(y + w * step + i, none, sizeof none[0]); /* results need not be aligned */
}
#endif

/* The same functions, not inlined, for loops that call them seldom. */
RARE vec_t vec_load_few(const elem_t *x, ptrdiff_t n, const Rule *rule) { return vec_load_part(x, n, rule); }
RARE void vec_finish_few(elem_t *y, ptrdiff_t n, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    vec_finish_part(y, n, total, count, inverse, rule);
}

#endif
