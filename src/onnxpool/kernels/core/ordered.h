/* Element operations of loops/ordered.pyx, which visits taps in row-major order, for maxima with places and for float32
 * sums of bytes. element.h includes this file. A total is a value and a place. Maxima have a total order: first NaNs,
 * then the greater value, then the smaller place. Sums have no place, and taps are added in order.
 */
#ifndef ONNXPOOL_ORDERED_H
#define ONNXPOOL_ORDERED_H

#if defined(OF_FLOATS) || defined(OF_DOUBLES)
enum { DIRECT = 1 }; /* elements have the accumulator type, so windows may be read without conversion */
#else
enum { DIRECT = 0 };
#endif
#if defined(OF_HALVES) || (defined(OF_INTEGERS) && !defined(ELEMENT_int32) && !defined(ELEMENT_int64))
#define ELEMENTS_IN_PAIRS /* two registers are loaded as the even elements and the odd ones */
INLINE void vec_split_two(vec_t *first, vec_t *second) { (void)first, (void)second; }
#endif

/* ---- Whether a NaN was loaded. */
#if defined(OF_INTEGERS)
enum { HAS_NANS = 0 };
#else
enum { HAS_NANS = 1 };
#endif
typedef lane_bits_t seen_t;
INLINE seen_t seen_nothing(void) { return (seen_t){0}; }
INLINE void see(seen_t *seen, vec_t v) {
#if defined(OF_INTEGERS)
    (void)seen, (void)v;
#else
    *seen |= v != v;
#endif
}
INLINE void seen_join(seen_t *seen, seen_t later) { *seen |= later; }
INLINE int seen_nan(const seen_t *seen) { return HAS_NANS && any_lane(seen); }

/* ---- Sums. Padding may turn a sum of -0 into 0, but the result does not depend on it. */
#if defined(REDUCTION_mean_in_order)
enum { PLACES = 0 };
enum { FLAT = 256 }; /* maximum number of values in a row that joins several items */
INLINE vec_t vec_none(void) { return vec_fill(0); }
INLINE vec_t dequantise(int32_v v, const Rule *rule) {
    return rule->scales.scale * __builtin_convertvector(v - (int)rule->scales.bias, float_v);
}
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { return dequantise(widen(x), rule); }
INLINE void vec_load_two(vec_t *first, vec_t *second, const elem_t *x, const Rule *rule) {
    *first = dequantise(even_of(read_pairs(x)), rule);
    *second = dequantise(odd_of(read_pairs(x)), rule);
}
/* The zero point is added before rounding, as in onnxruntime. The mean of no elements is the zero point. Clamping
 * before rounding changes no result, and keeps numbers so small that adding a constant rounds them. A NaN becomes the
 * byte 0. */
INLINE void vec_finish(elem_t *y, vec_t total, vec_t count, vec_t inverse, const Rule *rule) {
    (void)inverse;
    const vec_t zero = (vec_t){0} + (float)rule->scales.zero;
    const vec_t low = (vec_t){0} + rule->scales.lowest, high = (vec_t){0} + rule->scales.highest;
    vec_t v = total / count / rule->scales.y_scale + zero;
    v = BLEND(vec_t, count == 0, zero, v);
    v = BLEND(vec_t, v < low, low, v);
    v = BLEND(vec_t, v > high, high, v);
    v = (v + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23 */
    __extension__ const __auto_type elements = narrow(__builtin_convertvector(v, int32_v));
    memcpy(y, &elements, sizeof elements);
}

typedef struct { int unused; } place_t, places_t; /* compilers drop it */
INLINE places_t places_fill(int64_t place) { (void)place; return (places_t){0}; }
INLINE places_t places_add(places_t a, places_t b) { (void)b; return a; }
INLINE places_t places_read(const place_t *places) { (void)places; return (places_t){0}; }
INLINE void places_write(place_t *places, places_t v) { (void)places, (void)v; }
INLINE void indices_write(int64_t *indices, places_t places, const int64_t *shift, int64_t base) {
    (void)indices, (void)places, (void)shift, (void)base;
}
typedef struct { vec_t value; places_t place; } Total;
INLINE vec_t vec_merge(vec_t earlier, vec_t later) { return earlier + later; }
INLINE void total_add(Total *total, vec_t value, places_t place, int nans) {
    (void)place, (void)nans;
    total->value = vec_merge(total->value, value);
}

/* ---- Extrema. Minima are the maxima of negated numbers, or of integers with all bits flipped. NaNs keep their bits:
 * `narrow_bits` restores NaNs that the processor made quiet. */
#else
enum { PLACES = 1 };
enum { FLAT = 128 }; /* measured: with more items, indices go to too many memory streams */
INLINE vec_t flipped(vec_t v, const Rule *rule) { return (vec_t)((pattern_t)v ^ repeated(rule->order.flip)); }
#if defined(OF_INTEGERS)
INLINE vec_t vec_none(void) { return vec_fill(LEAST); }
INLINE vec_t masked(vec_t v, const Rule *rule) {
    return v ^ ((v >> (8 * sizeof(acc_t) - 1)) & (vec_t)repeated(rule->order.mask));
}
#if defined(OF_64_BITS) /* elements may be datetimes, whose NaT counts as a NaN */
#define SHIFT(rule) repeated((rule)->order.shift)
#else
#define SHIFT(rule) ((pattern_t){0})
#endif
/* With a mask, elements are floats whose NaNs are skipped: NaNs have the least key, and -0 has the key of 0. Integers
 * have no mask, and the branch saves up to a third of their time. */
INLINE vec_t vec_key(vec_t v, const Rule *rule) {
    if (!rule->order.mask)
        return (vec_t)((pattern_t)flipped(vec_truth(v, rule), rule) - SHIFT(rule));
    const vec_t key = masked(v, rule);
    const vec_t left_out = (key ^ (key >> (8 * sizeof(acc_t) - 1))) > (vec_t)repeated(rule->most);
    return BLEND(vec_t, left_out, vec_none(), flipped(key - (key == -1), rule));
}
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { return vec_key(widen(x), rule); }
INLINE vec_t restored(vec_t v, const Rule *rule) {
    return vec_truth(masked(flipped((vec_t)((pattern_t)v + SHIFT(rule)), rule), rule), rule);
}
#else
INLINE vec_t vec_none(void) { return vec_fill(-__builtin_inf()); }
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) { return flipped(widen_bits(x), rule); }
#define restored flipped
#endif
#if defined(ELEMENTS_IN_PAIRS)
INLINE void vec_load_two(vec_t *first, vec_t *second, const elem_t *x, const Rule *rule) {
#if defined(OF_INTEGERS)
    *first = vec_key(even_of(read_pairs(x)), rule), *second = vec_key(odd_of(read_pairs(x)), rule);
#else
    *first = flipped(even_of(read_pairs(x)), rule), *second = flipped(odd_of(read_pairs(x)), rule);
#endif
}
#endif
INLINE void vec_finish(elem_t *y, vec_t v, vec_t count, vec_t inverse, const Rule *rule) {
    (void)count, (void)inverse;
    v = restored(v, rule);
#if defined(OF_INTEGERS)
    __extension__ const __auto_type bits = narrow(v);
#else
    __extension__ const __auto_type bits = narrow_bits(v);
#endif
    memcpy(y, &bits, sizeof bits);
}

/* Places have as many bits as accumulators. */
#if defined(OF_64_BITS)
typedef int64_t place_t;
#else
typedef int32_t place_t;
#endif
typedef lane_bits_t places_t;
INLINE places_t places_fill(int64_t place) { return (places_t){0} + (place_t)place; }
/* Lanes past the end of a row hold arbitrary numbers, and their sums may overflow. */
INLINE places_t places_add(places_t a, places_t b) { return (places_t)((pattern_t)a + (pattern_t)b); }
INLINE places_t places_read(const place_t *places) { return READ(places_t, places); }
INLINE void places_write(place_t *places, places_t v) { memcpy(places, &v, sizeof v); }
/* Indices have 64 bits, so a vector of them is longer than a register. */
INLINE void indices_write(int64_t *indices, places_t places, const int64_t *shift, int64_t base) {
    typedef VECTOR(uint64_t, 8 * LANES) wide_t; /* unsigned, because lanes that nobody needs may be arbitrary */
    const wide_t v = __builtin_convertvector(places, wide_t) + READ(wide_t, shift) + (uint64_t)base;
    memcpy(indices, &v, sizeof v);
}

#if defined(__AVX512F__)
#if defined(OF_64_BITS)
#define PICK(type, mask, a, b) ((type)_mm512_mask_mov_epi64((__m512i)(a), mask, (__m512i)(b)))
#define COMPARE(a, b, how) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), how)
#else
#define PICK(type, mask, a, b) ((type)_mm512_mask_mov_epi32((__m512i)(a), mask, (__m512i)(b)))
#define COMPARE(a, b, how) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), how)
#endif
#if defined(OF_INTEGERS)
#if defined(OF_64_BITS)
#define GREATER(a, b) _mm512_cmpgt_epi64_mask((__m512i)(a), (__m512i)(b))
#else
#define GREATER(a, b) _mm512_cmpgt_epi32_mask((__m512i)(a), (__m512i)(b))
#endif
#define WINS(a, b) GREATER(a, b)
#else
#define GREATER(a, b) COMPARE(a, b, _CMP_GT_OQ)
#define WINS(a, b) (COMPARE(a, b, _CMP_NLE_UQ) & COMPARE(b, b, _CMP_ORD_Q))
#endif
#else
#if defined(__AVX2__)
#define PICK(type, mask, a, b) \
    ((type)_mm256_blendv_ps((__m256)(a), (__m256)(b), (__m256)(mask))) /* each lane of the mask has all bits set, or none */
#else
#define PICK(type, mask, a, b) BLEND(type, mask, b, a)
#endif
#define GREATER(a, b) ((a) > (b))
#define WINS(a, b) (~((a) <= (b)) & ((b) == (b)))
#endif

typedef struct { vec_t value; places_t place; } Total;
/* The earlier total, unless the later one is greater. If there may be NaNs, the first NaN counts as the greatest. */
INLINE void total_add(Total *total, vec_t value, places_t place, int nans) {
    __extension__ __auto_type wins = GREATER(value, total->value);
    if (nans)
        wins = WINS(value, total->value);
    total->place = PICK(places_t, wins, total->place, place);
    total->value = PICK(vec_t, wins, total->value, value);
}
INLINE vec_t vec_merge(vec_t earlier, vec_t later) { return PICK(vec_t, GREATER(later, earlier), earlier, later); }
#endif
#endif
