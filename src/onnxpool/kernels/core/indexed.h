/* Maxima with places: values of 32 bits with places of 32 bits, or double with 64 bits. */
#ifndef ONNXPOOL_INDEXED_H
#define ONNXPOOL_INDEXED_H

#if defined(ELEMENT_float64)
typedef double elem_t, acc_t;
typedef double_v vec_t;
typedef int64_t place_t;
typedef int64_v lane_bits_t;
#define split_lanes split_int64
#elif defined(ELEMENT_int8) || defined(ELEMENT_uint8)
#if defined(ELEMENT_int8)
typedef int8_t elem_t;
#else
typedef uint8_t elem_t;
#endif
typedef int32_t acc_t, place_t;
typedef int32_v vec_t, lane_bits_t;
#define split_lanes split_int32
#else
#if defined(ELEMENT_float32)
typedef float elem_t;
#else
typedef uint16_t elem_t; /* float16, bfloat16 */
#endif
typedef float acc_t;
typedef float_v vec_t;
typedef int32_t place_t;
typedef int32_v lane_bits_t;
#define split_lanes split_int32
#endif
typedef lane_bits_t places_t;
#if defined(ELEMENT_float32) || defined(ELEMENT_float64)
enum { DIRECT = 1 }; /* elements are accumulators */
#else
enum { DIRECT = 0 };
#endif
enum { LANES = WIDTH / sizeof(acc_t) };
enum { FLAT = 128 }; /* measured: the indices of more items are too many streams */

#if defined(ELEMENT_int8) || defined(ELEMENT_uint8)
#define HAS_NANS 0
#else
#define HAS_NANS 1
#endif

/* ---- Whether a NaN was loaded. */
typedef lane_bits_t seen_t;
INLINE seen_t seen_nothing(void) { return (seen_t){0}; }
#if HAS_NANS
INLINE void see(seen_t *seen, vec_t v) { *seen |= v != v; }
#else
INLINE void see(seen_t *seen, vec_t v) { (void)seen, (void)v; }
#endif
INLINE int seen_nan(const seen_t *seen) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    return HAS_NANS && !_mm256_testz_si256((__m256i)*seen, (__m256i)*seen);
#else
    uint64_t parts[WIDTH / 8], any = 0;
    memcpy(parts, seen, sizeof parts);
    for (int i = 0; HAS_NANS && i < WIDTH / 8; i++)
        any |= parts[i];
    return any != 0;
#endif
}

/* ---- Elements as accumulators and back. NaNs keep their bits: those that the processor made quiet are turned back. */
INLINE vec_t vec_load(const elem_t *x, const Rule *rule) {
    (void)rule;
#if defined(ELEMENT_float16)
    float_v v = widen_float16(x);
    const seen_t nan = v != v;
    if (__builtin_expect(seen_nan(&nan), 0)) {
        const uint32_v half = __builtin_convertvector(READ(half_words_v, x), uint32_v);
        v = (float_v)((uint32_v)v & ~((uint32_v)nan & ~(half << 13) & 0x400000));
    }
    return v;
#elif defined(ELEMENT_bfloat16)
    return widen_bfloat16(x);
#elif defined(ELEMENT_int8)
    return widen_int8(x);
#elif defined(ELEMENT_uint8)
    return widen_uint8(x);
#else
    return READ(vec_t, x);
#endif
}
#if defined(ELEMENT_bfloat16)
INLINE vec_t vec_of_even(pairs_v pairs, const Rule *rule) { (void)rule; return (vec_t)(pairs << 16); }
INLINE vec_t vec_of_odd(pairs_v pairs, const Rule *rule) { (void)rule; return (vec_t)(pairs & 0xffff0000); }
#elif defined(ELEMENT_float16)
INLINE vec_t vec_of_even(pairs_v pairs, const Rule *rule) {
    const half_words_v half = __builtin_convertvector(pairs & 0xffff, half_words_v);
    return vec_load((const elem_t *)&half, rule);
}
INLINE vec_t vec_of_odd(pairs_v pairs, const Rule *rule) { return vec_of_even(pairs >> 16, rule); }
#elif defined(ELEMENT_int8) || defined(ELEMENT_uint8)
INLINE vec_t vec_of_even(pairs_v pairs, const Rule *rule) { (void)rule; return EVEN_BYTES(pairs); }
INLINE vec_t vec_of_odd(pairs_v pairs, const Rule *rule) { (void)rule; return ODD_BYTES(pairs); }
#endif
INLINE void vec_finish(elem_t *y, vec_t v) {
#if defined(ELEMENT_float16)
    half_words_v narrow = narrow_to_float16(v);
    const seen_t nan = v != v;
    if (__builtin_expect(seen_nan(&nan), 0))
        narrow &= ~__builtin_convertvector((uint32_v)nan & ~((uint32_v)v >> 13) & 0x200, half_words_v);
#elif defined(ELEMENT_bfloat16)
    const half_words_v narrow = __builtin_convertvector((uint32_v)v >> 16, half_words_v);
#elif defined(ELEMENT_int8) || defined(ELEMENT_uint8)
    const quarter_int8_v narrow = narrow_to_bytes(v);
#else
    const vec_t narrow = v;
#endif
    memcpy(y, &narrow, sizeof narrow);
}
INLINE vec_t vec_none(void) {
#if defined(ELEMENT_int8)
    return (vec_t){0} + INT8_MIN;
#elif defined(ELEMENT_uint8)
    return (vec_t){0};
#else
    return (vec_t){0} - (acc_t)__builtin_inff();
#endif
}

/* ---- The first maximum. */
#if defined(__AVX512F__)
#if defined(ELEMENT_float64)
#define PICK(type, mask, a, b) ((type)_mm512_mask_mov_epi64((__m512i)(a), mask, (__m512i)(b)))
#define COMPARE(a, b, how) _mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), how)
#else
#define PICK(type, mask, a, b) ((type)_mm512_mask_mov_epi32((__m512i)(a), mask, (__m512i)(b)))
#define COMPARE(a, b, how) _mm512_cmp_ps_mask((__m512)(a), (__m512)(b), how)
#endif
#if defined(ELEMENT_int8) || defined(ELEMENT_uint8)
#define GREATER(a, b) _mm512_cmpgt_epi32_mask((__m512i)(a), (__m512i)(b))
#define WINS(a, b) GREATER(a, b)
#else
#define GREATER(a, b) COMPARE(a, b, _CMP_GT_OQ)
#define WINS(a, b) (COMPARE(a, b, _CMP_NLE_UQ) & COMPARE(b, b, _CMP_ORD_Q))
#endif
#else
#if defined(__AVX2__)
#define PICK(type, mask, a, b) \
    ((type)_mm256_blendv_ps((__m256)(a), (__m256)(b), (__m256)(mask))) /* of all bits of a lane, or none */
#else
#define PICK(type, mask, a, b) BLEND(type, mask, b, a)
#endif
#define GREATER(a, b) ((a) > (b))
#define WINS(a, b) (~((a) <= (b)) & ((b) == (b)))
#endif

typedef struct { vec_t value; places_t place; } Best;
INLINE places_t places_fill(place_t place) { return (places_t){0} + place; }
INLINE places_t places_add(places_t a, places_t b) { return a + b; }
INLINE places_t places_read(const place_t *places) { return READ(places_t, places); }
INLINE void places_write(place_t *places, places_t v) { memcpy(places, &v, sizeof v); }
/* Indices of 64 bits: a vector of them is longer than a register. */
INLINE void indices_write(int64_t *indices, places_t places, const int64_t *shift, int64_t base) {
    typedef VECTOR(int64_t, 8 * LANES) wide_t;
    const wide_t v = __builtin_convertvector(places, wide_t) + READ(wide_t, shift) + base;
    memcpy(indices, &v, sizeof v);
}
/* The earlier one, unless the later one is greater. */
INLINE void keep_greater(Best *best, vec_t value, places_t place) {
    __extension__ const __auto_type mask = GREATER(value, best->value);
    best->place = PICK(places_t, mask, best->place, place);
    best->value = PICK(vec_t, mask, best->value, value);
}
/* The same where there may be NaNs: the first one is the greatest. */
INLINE void keep_first(Best *best, vec_t value, places_t place) {
    __extension__ const __auto_type mask = WINS(value, best->value);
    best->place = PICK(places_t, mask, best->place, place);
    best->value = PICK(vec_t, mask, best->value, value);
}
#endif
