/* Picks any lanes of two registers. `picks_of` takes the numbers of the lanes, which go on from the first register to
 * the second. `vec_replace` picks too, but needs lanes of the first register to keep their places. */
#ifndef ONNXPOOL_PICKS_H
#define ONNXPOOL_PICKS_H

#include "element.h"

#define COLD static __attribute__((noinline, cold)) /* optimised for size */

#if defined(__AVX512BW__)
/* Bytes are picked as halves of words: first for even places, then for odd places. */
typedef struct { __m512i lanes, odd, halves, odd_halves; } picks_t;
INLINE vec_t vec_pick(vec_t first, vec_t second, const picks_t *picks) {
    const __m512i a = (__m512i)first, b = (__m512i)second;
    if (sizeof(acc_t) == 1)
        return (vec_t)_mm512_or_si512(
            _mm512_shuffle_epi8(_mm512_permutex2var_epi16(a, picks->lanes, b), picks->halves),
            _mm512_shuffle_epi8(_mm512_permutex2var_epi16(a, picks->odd, b), picks->odd_halves));
    return (vec_t)(sizeof(acc_t) == 2   ? _mm512_permutex2var_epi16(a, picks->lanes, b)
                   : sizeof(acc_t) == 4 ? _mm512_permutex2var_epi32(a, picks->lanes, b)
                                        : _mm512_permutex2var_epi64(a, picks->lanes, b));
}
#define vec_replace vec_pick
COLD void picks_of(picks_t *picks, const uint8_t *from) {
    enum { SIZE = sizeof(acc_t) < 2 ? 2 : sizeof(acc_t) > 8 ? 8 : sizeof(acc_t), EACH = sizeof(acc_t) / SIZE };
    uint8_t lanes[2][WIDTH] = {{0}}, halves[2][WIDTH];
    for (int i = 0; i < WIDTH / SIZE; i++) { /* each number fits into the lowest byte of a lane */
        if (EACH)
            lanes[0][i * SIZE] = (uint8_t)(from[i / (EACH + !EACH)] * EACH + i % (EACH + !EACH));
        for (int odd = 0; odd < 2 && !EACH; odd++) {
            const uint8_t byte = from[2 * i + odd];
            lanes[odd][2 * i] = byte / 2;
            halves[odd][2 * i + odd] = (uint8_t)(2 * i % 16 + byte % 2);
            halves[odd][2 * i + !odd] = 0x80; /* becomes 0 */
        }
    }
    picks->lanes = READ(__m512i, lanes[0]), picks->odd = READ(__m512i, lanes[1]);
    if (!EACH)
        picks->halves = READ(__m512i, halves[0]), picks->odd_halves = READ(__m512i, halves[1]);
}

#elif defined(__AVX2__)
/* Lanes of 32 bits are picked from each register, smaller lanes from each half of each register. */
typedef struct { __m256i halves[4], lanes, is_second; } picks_t;
INLINE __m256i picked_halves(__m256i v, const __m256i *halves) {
    const __m256i low = _mm256_permute4x64_epi64(v, 0x44), high = _mm256_permute4x64_epi64(v, 0xee);
    return _mm256_or_si256(_mm256_shuffle_epi8(low, halves[0]), _mm256_shuffle_epi8(high, halves[1]));
}
INLINE vec_t vec_pick(vec_t first, vec_t second, const picks_t *picks) {
    const __m256i a = (__m256i)first, b = (__m256i)second;
    if (sizeof(acc_t) < 4)
        return (vec_t)_mm256_or_si256(picked_halves(a, picks->halves), picked_halves(b, picks->halves + 2));
    return (vec_t)_mm256_blendv_epi8(_mm256_permutevar8x32_epi32(a, picks->lanes),
                                     _mm256_permutevar8x32_epi32(b, picks->lanes), picks->is_second);
}
INLINE vec_t vec_replace(vec_t first, vec_t second, const picks_t *picks) {
    const __m256i a = (__m256i)first, b = (__m256i)second;
    if (sizeof(acc_t) < 4)
        return (vec_t)_mm256_or_si256(_mm256_andnot_si256(picks->is_second, a), picked_halves(b, picks->halves + 2));
    return (vec_t)_mm256_blendv_epi8(a, _mm256_permutevar8x32_epi32(b, picks->lanes), picks->is_second);
}
COLD void picks_of(picks_t *picks, const uint8_t *from) {
    uint8_t halves[4][WIDTH], is_second[WIDTH];
    int32_t lanes[WIDTH / 4];
    for (int i = 0; i < WIDTH; i++) {
        const int size = sizeof(acc_t), byte = from[i / size] * size + i % size;
        for (int half = 0; half < 4; half++)
            halves[half][i] = byte / 16 == half ? (uint8_t)(byte % 16) : 0x80; /* becomes 0 */
        lanes[i / 4] = byte % WIDTH / 4;
        is_second[i] = byte < WIDTH ? 0 : 0xff;
    }
    memcpy(picks->halves, halves, sizeof halves);
    picks->lanes = READ(__m256i, lanes), picks->is_second = READ(__m256i, is_second);
}

#elif defined(NEON)
typedef struct { uint8x16_t bytes; } picks_t;
INLINE vec_t vec_pick(vec_t first, vec_t second, const picks_t *picks) {
    const uint8x16x2_t both = {{(uint8x16_t)first, (uint8x16_t)second}};
    return (vec_t)vqtbl2q_u8(both, picks->bytes);
}
#define vec_replace vec_pick
COLD void picks_of(picks_t *picks, const uint8_t *from) {
    uint8_t bytes[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        bytes[i] = (uint8_t)(from[i / (int)sizeof(acc_t)] * (int)sizeof(acc_t) + i % (int)sizeof(acc_t));
    picks->bytes = vld1q_u8(bytes);
}

#else /* PICKS is 0, so that nothing is picked */
typedef struct { int unused; } picks_t;
INLINE vec_t vec_pick(vec_t first, vec_t second, const picks_t *picks) { (void)second, (void)picks; return first; }
#define vec_replace vec_pick
INLINE void picks_of(picks_t *picks, const uint8_t *from) { (void)picks, (void)from; }
#endif

/* The picks for each tap of windows that share no place. `stride` registers hold as many windows as fit into one
 * register of results. The first pick reads the first two registers. Each later pick replaces lanes that are in the
 * next register. */
COLD void picks_of_windows(picks_t *picks, ptrdiff_t lanes, ptrdiff_t stride, ptrdiff_t taps) {
    const ptrdiff_t group = (ptrdiff_t)LANES / lanes * lanes;
    uint8_t from[LANES];
    for (ptrdiff_t t = 0; t < taps; t++)
        for (ptrdiff_t k = 0; k < 3; k++) {
            for (ptrdiff_t i = 0; i < (ptrdiff_t)LANES; i++) {
                const ptrdiff_t value = i < group ? (i / lanes * stride + t) * lanes + i % lanes : i;
                const ptrdiff_t lane = value % group, number = value / group;
                from[i] = (uint8_t)(i < group && number == k + 1 ? (ptrdiff_t)LANES + lane : k ? i : lane);
            }
            if (k + 1 < stride)
                picks_of(picks + 3 * t + k, from);
        }
}
#endif
