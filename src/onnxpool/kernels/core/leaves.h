/* leaf_t: the registers in which `whole` reduces up to 8 rows to one. A leaf has the lanes of two registers of
 * accumulators. WORDS: a leaf of bytes is a single register of 16-bit sums, which can hold MOST_WORDS bytes each and
 * are added in any order. */
#ifndef ONNXPOOL_LEAVES_H
#define ONNXPOOL_LEAVES_H

#include "element.h"
#include "shared_constants.h"

/* The length of a row of few lanes, in bytes and in accumulators; and how many accumulators are reduced together. */
enum { ROW = ONNXPOOL_FULL_ROW, FULL = ROW / sizeof(acc_t), PART = FULL > LANES ? 2 * LANES : LANES };

#if defined(REDUCTION_quantised_mean) && !defined(REDUCTION_long_quantised_mean) && defined(widen_to_words)
typedef struct { int16_v words; } leaf_t;
enum { WORDS = 1, MOST_WORDS = 128 };
INLINE leaf_t leaf_load(const elem_t *x, const Rule *rule) {
    (void)rule;
    return (leaf_t){widen_to_words(x)};
}
INLINE leaf_t leaf_merge(leaf_t earlier, leaf_t later) { return (leaf_t){earlier.words + later.words}; }
INLINE void leaf_widen(vec_t *first, vec_t *second, leaf_t leaf) {
#if defined(__AVX512BW__)
    const __m512i words = (__m512i)leaf.words;
    *first = (vec_t)_mm512_cvtepi16_epi32(_mm512_castsi512_si256(words));
    *second = (vec_t)_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(words, 1));
#elif defined(__AVX2__)
    const __m256i words = (__m256i)leaf.words;
    *first = (vec_t)_mm256_cvtepi16_epi32(_mm256_castsi256_si128(words));
    *second = (vec_t)_mm256_cvtepi16_epi32(_mm256_extracti128_si256(words, 1));
#else
    half_int16_v halves[2];
    memcpy(halves, &leaf, sizeof halves);
    *first = signed_words_to_int32(halves[0]);
    *second = signed_words_to_int32(halves[1]);
#endif
}
/* The sum of n adjacent bytes. Signed ones are made unsigned first. The last register may overlap the one before. */
INLINE acc_t sum_line(const elem_t *x, ptrdiff_t n) {
    const int sign = (elem_t)-1 < 0 ? 128 : 0;
    const uint8_v flip = (uint8_v){0} + (uint8_t)sign;
    const ptrdiff_t rest = n % WIDTH;
    uint64_v sums = {0}, others = {0};
    acc_t total = 0;
    ptrdiff_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) { /* one register at a time takes up to 1.5 times as long (Zen 3) */
        const elem_t *later = x + i + 2 * WIDTH;
        sums += sum_eights(READ(uint8_v, x + i) ^ flip) + sum_eights(READ(uint8_v, x + i + WIDTH) ^ flip);
        others += sum_eights(READ(uint8_v, later) ^ flip) + sum_eights(READ(uint8_v, later + WIDTH) ^ flip);
    }
    for (sums += others; i + WIDTH <= n; i += WIDTH)
        sums += sum_eights(READ(uint8_v, x + i) ^ flip);
    if (rest && n > WIDTH) {
        const uint8_v counted = READ(uint8_v, ones_and_zeros + 64 - (WIDTH - rest));
        sums += sum_eights((READ(uint8_v, x + n - WIDTH) ^ flip) & ~counted);
    } else if (rest) {
        uint8_v last = flip;
        memcpy(&last, x, (size_t)n);
        sums += sum_eights(last ^ flip);
    }
    for (int lane = 0; lane < WIDTH / 8; lane++)
        total += (acc_t)sums[lane];
    return total - (acc_t)(n * sign);
}
#else
typedef struct { vec_t first, second; } leaf_t;
enum { WORDS = 0, MOST_WORDS = 1 };
INLINE acc_t sum_line(const elem_t *x, ptrdiff_t n) { (void)n; return READ(acc_t, x); } /* never called */
INLINE leaf_t leaf_load(const elem_t *x, const Rule *rule) {
    return (leaf_t){vec_load(x, rule), vec_load(x + LANES, rule)};
}
INLINE leaf_t leaf_merge(leaf_t earlier, leaf_t later) {
    return (leaf_t){vec_merge(earlier.first, later.first), vec_merge(earlier.second, later.second)};
}
INLINE void leaf_widen(vec_t *first, vec_t *second, leaf_t leaf) { *first = leaf.first, *second = leaf.second; }
#endif

/* ---- Joins the values of a row: the first half with the second half, until one is left. This takes as many rows as a
 * register has lanes, each in a register. The result is a register with one total per row, in order. */
#if !defined(REDUCTION_wide) && !defined(PAIRS) && !(defined(REDUCTION_max) && (defined(OF_INTEGERS) || defined(OF_HALVES)))
enum { FOLDS = 1 };
#define EACH2(place, half, q) place(half, q), place(half, (q) + 1)
#define EACH4(place, half, q) EACH2(place, half, q), EACH2(place, half, (q) + 2)
#define EACH8(place, half, q) EACH4(place, half, q), EACH4(place, half, (q) + 4)
#define EACH16(place, half, q) EACH8(place, half, q), EACH8(place, half, (q) + 8)
#if defined(REDUCTION_norm) || defined(REDUCTION_double_mean) || defined(OF_64_BITS) || defined(REDUCTION_long_quantised_mean)
#define EACH_OF(wide, narrow) wide
#else
#define EACH_OF(wide, narrow) narrow
#endif
#if defined(__AVX512BW__)
#define EACH EACH_OF(EACH8, EACH16)
#elif defined(__AVX2__)
#define EACH EACH_OF(EACH4, EACH8)
#else
#define EACH EACH_OF(EACH2, EACH4)
#endif
/* Two registers consist of blocks with two halves each. These are the places of all first halves, and of all second
 * halves, alternately from either register. */
#define FIRSTS(half, q) (q) / (2 * (half)) * 2 * (half) + (q) % (half) + (q) / (half) % 2 * LANES
#define SECONDS(half, q) FIRSTS(half, q) + (half)
#define FOLD(half)                                                              \
    for (int k = 0; k < (half); k++)                                            \
        v[k] = vec_merge(__builtin_shufflevector(v[k], v[k + (half)], EACH(FIRSTS, half, 0)), \
                         __builtin_shufflevector(v[k], v[k + (half)], EACH(SECONDS, half, 0)));
INLINE void fold_lanes(vec_t *v) {
    if (LANES > 8)
        FOLD(LANES > 8 ? 8 : 1)
    if (LANES > 4)
        FOLD(LANES > 4 ? 4 : 1)
    if (LANES > 2)
        FOLD(LANES > 2 ? 2 : 1)
    FOLD(1)
}
#else
enum { FOLDS = 0 };
INLINE void fold_lanes(vec_t *v) { (void)v; }
#endif
#endif
