/* Quantised means whose float32 sums are taken in order. */
#ifndef ONNXPOOL_SEQUENTIAL_H
#define ONNXPOOL_SEQUENTIAL_H

#if defined(ELEMENT_int8)
typedef int8_t elem_t;
#else
typedef uint8_t elem_t;
#endif
typedef float acc_t;
typedef float_v vec_t;
typedef int32_v lane_bits_t;
#define split_lanes split_int32
enum { LANES = WIDTH / sizeof(acc_t) };
enum { FLAT = 256 };

INLINE vec_t dequantise(int32_v v, const Rule *rule) {
    return rule->scale * __builtin_convertvector(v - (int)rule->bias, float_v);
}
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) {
#if defined(ELEMENT_int8)
    return dequantise(widen_int8(x), rule);
#else
    return dequantise(widen_uint8(x), rule);
#endif
}
INLINE vec_t vec_of_even(pairs_v pairs, const Rule *rule) { return dequantise(EVEN_BYTES(pairs), rule); }
INLINE vec_t vec_of_odd(pairs_v pairs, const Rule *rule) { return dequantise(ODD_BYTES(pairs), rule); }
/* A sum without a tap is 0. That padding turns a sum of -0 into 0 shows in no result. */
INLINE vec_t vec_none(void) { return (vec_t){0}; }
INLINE vec_t vec_sum(vec_t earlier, vec_t later) { return earlier + later; }

typedef struct { int unused; } seen_t;
INLINE seen_t seen_nothing(void) { return (seen_t){0}; }
INLINE void see(seen_t *seen, vec_t v) { (void)seen, (void)v; }

/* The zero point is added before rounding, as onnxruntime does; the mean of nothing is real 0. What is out of range is
 * clamped before rounding. That gives the same, and leaves numbers that an addition rounds. Of a NaN the byte is 0. */
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, const Rule *rule) {
    const vec_t zero = (vec_t){0} + (float)rule->zero, low = (vec_t){0} + rule->lowest, high = (vec_t){0} + rule->highest;
    vec_t v = total / count / rule->y_scale + zero;
    v = BLEND(vec_t, count == 0, zero, v);
    v = BLEND(vec_t, v < low, low, v);
    v = BLEND(vec_t, v > high, high, v);
    v = (v + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23 */
    const quarter_int8_v narrow = narrow_to_bytes(__builtin_convertvector(v, int32_v));
    memcpy(y, &narrow, sizeof narrow);
}
#endif
