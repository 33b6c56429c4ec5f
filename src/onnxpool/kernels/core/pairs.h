/* Accumulators that are pairs of floats in adjacent lanes: a sum, and the number of its elements. Registers of pairs
 * are added like registers of floats. element.h includes this. Counts are passed as the bits of a float.
 *   firsts_write   writes the first number of each pair
 *   with_counts    elements, each with the count of one element
 *   beside         a value and a count
 *   counts_of      the second number of each pair, in the place of the first
 *   nans           all bits of a pair are set if its element is a NaN
 */
#ifndef ONNXPOOL_PAIRS_H
#define ONNXPOOL_PAIRS_H

#if !defined(OF_DOUBLES)
typedef int64_t acc_t;
typedef float_v vec_t;
typedef int64_v lane_bits_t;
typedef uint64_v pattern_t;
enum { LANES = WIDTH / sizeof(acc_t) };
INLINE void vec_split(vec_t *first, vec_t *second) { split_int64((lane_bits_t *)first, (lane_bits_t *)second); }
INLINE void vec_split_three(vec_t *first, vec_t *second, vec_t *third) {
    split_three_int64((lane_bits_t *)first, (lane_bits_t *)second, (lane_bits_t *)third);
}
INLINE acc_t acc_of(double value) {
    const float pair[2] = {(float)value, (float)value};
    return READ(acc_t, pair);
}
INLINE vec_t vec_repeat(acc_t value) { return (vec_t)((lane_bits_t){0} + value); }

/* The bits of each element, with zeros in place of its count. */
INLINE pattern_t firsts_read(const elem_t *x, const Rule *rule) {
#if defined(OF_HALVES)
    return uint32_to_uint64((half_uint32_v)widen_few(x, rule->is_other));
#else
    (void)rule;
    return uint32_to_uint64(READ(half_uint32_v, x));
#endif
}
INLINE pattern_t nans(const elem_t *x, const Rule *rule) {
    return (pattern_t)((lane_bits_t)(firsts_read(x, rule) & 0x7fffffff) > 0x7f800000);
}
INLINE vec_t with_counts(const elem_t *x, const Rule *rule) {
    return (vec_t)(firsts_read(x, rule) | rule->counted << 32);
}
INLINE vec_t beside(float value, uint64_t count) {
    return (vec_t)((pattern_t){0} + (READ(uint32_t, &value) | count << 32));
}
INLINE vec_t counts_of(vec_t pairs) { return (vec_t)((pattern_t)pairs >> 32); }
INLINE void firsts_write(elem_t *y, vec_t pairs, const Rule *rule) {
#if defined(OF_HALVES)
    const double_v firsts = widen_float((half_float_v)uint64_to_uint32((pattern_t)pairs));
    const quarter_words_v elements = narrow_double_to_either(firsts, rule->is_other);
#else
    const half_uint32_v elements = uint64_to_uint32((pattern_t)pairs);
    (void)rule;
#endif
    memcpy(y, &elements, sizeof elements);
}

#else
typedef VECTOR(double, 16) acc_t;
typedef double_v vec_t;
typedef int64_v lane_bits_t;
typedef uint64_v pattern_t;
enum { LANES = WIDTH / sizeof(acc_t) };
INLINE void vec_split(vec_t *first, vec_t *second) { split_far((int64_v *)first, (int64_v *)second); }
INLINE void vec_split_three(vec_t *first, vec_t *second, vec_t *third) {
    acc_t pairs[3 * LANES], split[3 * LANES];
    memcpy(pairs, first, WIDTH), memcpy(pairs + LANES, second, WIDTH), memcpy(pairs + 2 * LANES, third, WIDTH);
    for (int i = 0; i < 3 * LANES; i++)
        split[i % 3 * LANES + i / 3] = pairs[i];
    memcpy(first, split, WIDTH), memcpy(second, split + LANES, WIDTH), memcpy(third, split + 2 * LANES, WIDTH);
}
INLINE acc_t acc_of(double value) { return (acc_t){value, value}; }
INLINE vec_t vec_repeat(acc_t value) {
#if defined(__AVX512F__)
    return (vec_t)_mm512_broadcast_f64x4(_mm256_broadcast_pd((const __m128d *)&value));
#elif defined(__AVX2__)
    return (vec_t)_mm256_broadcast_pd((const __m128d *)&value);
#else
    return value;
#endif
}

INLINE vec_t twice(const elem_t *x) {
#if defined(__AVX512F__)
    return (vec_t)_mm512_permutexvar_pd(_mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0),
                                        _mm512_castpd256_pd512(_mm256_loadu_pd(x)));
#elif defined(__AVX2__)
    return (vec_t)_mm256_permute4x64_pd(_mm256_castpd128_pd256(_mm_loadu_pd(x)), 0x50);
#else
    return (vec_t){x[0], x[0]};
#endif
}
INLINE pattern_t nans(const elem_t *x, const Rule *rule) {
    (void)rule;
    const vec_t v = twice(x);
    return (pattern_t)(v != v);
}
INLINE pattern_t seconds(void) { /* a mask */
    const acc_t pair = {0, READ(double, &(uint64_t){~UINT64_C(0)})};
    return (pattern_t)vec_repeat(pair);
}
INLINE vec_t with_counts(const elem_t *x, const Rule *rule) {
    return BLEND(vec_t, seconds(), (pattern_t){0} + rule->counted, twice(x));
}
INLINE vec_t beside(double value, uint64_t count) {
    return BLEND(vec_t, seconds(), (pattern_t){0} + count, vec_repeat(acc_of(value)));
}
INLINE vec_t counts_of(vec_t pairs) {
#if defined(__AVX512F__)
    return (vec_t)_mm512_permute_pd((__m512d)pairs, 0xff);
#elif defined(__AVX2__)
    return (vec_t)_mm256_permute_pd((__m256d)pairs, 0xf);
#else
    return (vec_t){pairs[1], pairs[1]};
#endif
}
INLINE void firsts_write(elem_t *y, vec_t pairs, const Rule *rule) {
    (void)rule;
    _Pragma("GCC unroll 4") for (int i = 0; i < (int)LANES; i++)
        y[i] = pairs[2 * i];
}
#endif
#endif
