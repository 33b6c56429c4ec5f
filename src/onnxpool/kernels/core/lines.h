/* The element of a unit that keeps its taps in row-major order: of maxima with indices, or of sums in order. Both have
 *   elem_t, acc_t, vec_t, LANES   an element in memory and in an accumulator, a register, and how many it holds
 *   FLAT                          values that rows have at most, if they are of more than one item
 *   vec_load, acc_of              elements as accumulators; some more are derived here
 *   vec_none                      what padding holds: it changes nothing
 *   seen_t, see                   remembers what loops must know of the elements that were loaded
 */
#ifndef ONNXPOOL_LINES_H
#define ONNXPOOL_LINES_H

#include "vec.h"
#include "job.h"

/* The low bytes. */
INLINE quarter_int8_v narrow_to_bytes(int32_v v) {
#if defined(__AVX512F__)
    return (quarter_int8_v)_mm512_cvtepi32_epi8((__m512i)v);
#elif defined(__AVX2__)
    const __m256i low = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi32(0x0c080400));
    const __m128i pairs = _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    return READ(quarter_int8_v, &pairs);
#else
    return __builtin_convertvector(v, quarter_int8_v);
#endif
}

/* Elements side by side as one number, and the even and the odd ones of bytes. */
#if defined(ELEMENT_int8)
typedef VECTOR(int16_t, WIDTH / 2) pairs_v;
#define EVEN_BYTES(pairs) __builtin_convertvector((pairs_v)((pairs) << 8) >> 8, int32_v)
#define ODD_BYTES(pairs) __builtin_convertvector((pairs) >> 8, int32_v)
#elif defined(ELEMENT_uint8)
typedef half_words_v pairs_v;
#define EVEN_BYTES(pairs) __builtin_convertvector((pairs) & 0xff, int32_v)
#define ODD_BYTES(pairs) __builtin_convertvector((pairs) >> 8, int32_v)
#else
typedef uint32_v pairs_v;
#endif

#if defined(REDUCTION_indexed_max)
#include "indexed.h"
#else
#include "sequential.h"
#endif

INLINE vec_t vec_read(const acc_t *x) { return READ(vec_t, x); }
INLINE void vec_write(acc_t *y, vec_t v) { memcpy(y, &v, sizeof v); }
INLINE vec_t vec_fill(acc_t value) { return (vec_t){0} + value; }

INLINE acc_t acc_of(const elem_t *x, const Rule *rule) {
    elem_t part[LANES] = {*x};
    return vec_load(part, rule)[0];
}
/* Every second element of twice LANES: the first one and so on, or the one behind it and so on. */
#if !defined(ELEMENT_float32) && !defined(ELEMENT_float64)
INLINE vec_t vec_load_even(const elem_t *x, const Rule *rule) { return vec_of_even(READ(pairs_v, x), rule); }
INLINE vec_t vec_load_odd(const elem_t *x, const Rule *rule) { return vec_of_odd(READ(pairs_v, x), rule); }
#else
INLINE vec_t vec_load_even(const elem_t *x, const Rule *rule) {
    vec_t first = vec_load(x, rule), second = vec_load(x + LANES, rule);
    split_lanes((lane_bits_t *)&first, (lane_bits_t *)&second);
    return first;
}
INLINE vec_t vec_load_odd(const elem_t *x, const Rule *rule) {
    vec_t first = vec_load(x, rule), second = vec_load(x + LANES, rule);
    split_lanes((lane_bits_t *)&first, (lane_bits_t *)&second);
    return second;
}
#endif
#endif
