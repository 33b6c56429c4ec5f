/* Means of bfloat16 in pairs: a vec_t is the elements of even and those of odd place, which takes no shuffle either way.
 * Lanes must be a multiple of LANES: accumulators lie in another order than elements. */
#ifndef ONNXPOOL_PAIRS_H
#define ONNXPOOL_PAIRS_H

typedef struct {
    float_v even, odd;
} vec_t;
enum { LANES = WIDTH / 2 };
INLINE acc_t acc_of(double value) { return (acc_t)value; }
INLINE vec_t vec_fill(double value) {
    const float_v all = (acc_t)value - (float_v){}; /* -0 stays -0 */
    return (vec_t){all, all};
}
INLINE void vec_split(vec_t *first, vec_t *second) { (void)first, (void)second; }
INLINE vec_t vec_merge(vec_t a, vec_t b) { return (vec_t){a.even + b.even, a.odd + b.odd}; }
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) {
    (void)rule;
    const uint32_v words = READ(uint32_v, x);
    return (vec_t){(float_v)(words << 16), (float_v)(words & 0xffff0000)};
}
#endif
