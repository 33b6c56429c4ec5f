/* Sums of bytes: integers, so in whichever order is fastest.
 *
 * Those of one channel are of bytes side by side. Those of channels side by side are of bytes below each other, which
 * are added as pairs in lanes of 16 bits, the first of two the lower (a little-endian processor): one sum of whole lanes
 * and one of their upper bytes give that of the lower.
 */
#ifndef ONNXPOOL_BYTE_SUMS_H
#define ONNXPOOL_BYTE_SUMS_H

#include "elements.h"

/* The sum of n bytes. */
static inline int64_t sum_bytes(const uint8_t *x, ptrdiff_t n, int is_signed) {
    ptrdiff_t i = 0;
    int64_t sum = 0;
#if defined(__AVX512BW__)
    const __m512i flip = _mm512_set1_epi8(is_signed ? (char)0x80 : 0), zero = _mm512_setzero_si512();
    __m512i sums = zero;
    for (; i + 64 <= n; i += 64)
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_xor_si512(_mm512_loadu_si512(x + i), flip), zero));
    if (i < n) {
        const __mmask64 rest = (UINT64_C(1) << (n - i)) - 1;
        __m512i tail = _mm512_mask_xor_epi32(zero, 0xffff, _mm512_maskz_loadu_epi8(rest, x + i), flip);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_maskz_mov_epi8(rest, tail), zero));
    }
    return _mm512_reduce_add_epi64(sums) - (is_signed ? 128 * (int64_t)n : 0);
#elif defined(__SSE2__)
    const __m128i flip = _mm_set1_epi8(is_signed ? (char)0x80 : 0), zero = _mm_setzero_si128();
    __m128i sums = zero;
    for (; i + 16 <= n; i += 16)
        sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(_mm_loadu_si128((const __m128i *)(x + i)), flip), zero));
    sum = _mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums)) - (is_signed ? 128 * (int64_t)i : 0);
#endif
    for (; i < n; i++)
        sum += is_signed ? (int8_t)x[i] : x[i];
    return sum;
}

enum { MOST_ROWS = 256 }; /* whose sums 16 bits hold */
typedef uint16_t byte_pairs __attribute__((vector_size(WIDTH)));

/* A few rows side by side are as many streams, which hide what each has to wait for. */
ALWAYS_INLINE void add_rows(const uint8_t *x, ptrdiff_t hop, uint16_t *pairs, uint16_t *uppers, ptrdiff_t n,
                            uint16_t flip, int rows) {
    for (ptrdiff_t i = 0; i < n; i += WIDTH) {
        byte_pairs all, upper, one;
        memcpy(&all, pairs + i / 2, WIDTH);
        memcpy(&upper, uppers + i / 2, WIDTH);
        _Pragma("GCC unroll 8") for (int row = 0; row < rows; row++) {
            memcpy(&one, x + row * hop + i, WIDTH);
            one ^= flip;
            all += one;
            upper += one >> 8;
        }
        memcpy(pairs + i / 2, &all, WIDTH);
        memcpy(uppers + i / 2, &upper, WIDTH);
    }
}

/* y[n] of rows of n bytes, whole registers of them, `hop` bytes apart; pairs[n] is room. */
static inline void sum_rows(const uint8_t *x, ptrdiff_t hop, ptrdiff_t rows, int32_t *restrict y, ptrdiff_t n,
                            uint16_t *restrict pairs, int is_signed) {
    uint16_t *restrict uppers = pairs + n / 2, flip = is_signed ? 0x8080 : 0;
    memset(y, 0, n * sizeof *y);
    while (rows > 0) {
        const ptrdiff_t count = rows < MOST_ROWS ? rows : MOST_ROWS;
        ptrdiff_t row = 0;
        memset(pairs, 0, n * sizeof *pairs);
        for (; row + 8 <= count; row += 8)
            add_rows(x + row * hop, hop, pairs, uppers, n, flip, 8);
        for (; row + 2 <= count; row += 2)
            add_rows(x + row * hop, hop, pairs, uppers, n, flip, 2);
        if (row < count)
            add_rows(x + row * hop, hop, pairs, uppers, n, flip, 1);
        for (ptrdiff_t i = 0; i < n / 2; i++) {
            y[2 * i] += (uint16_t)(pairs[i] - (uppers[i] << 8)) - (is_signed ? 128 * (int32_t)count : 0);
            y[2 * i + 1] += uppers[i] - (is_signed ? 128 * (int32_t)count : 0);
        }
        x += count * hop;
        rows -= count;
    }
}

#endif
