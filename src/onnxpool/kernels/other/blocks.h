/* Matrices are transposed, so that channels which lie apart come to lie side by side, and back.
 *
 * A square block has as many rows as a vector of 16 bytes has elements. It is transposed in registers: each round
 * interleaves the first half of the rows with the second one. The last blocks of rows and of columns overlap those
 * before them.
 */
#ifndef ONNXPOOL_OTHER_BLOCKS_H
#define ONNXPOOL_OTHER_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define SHUFFLE(vector, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(vector, a, b, ...) __builtin_shuffle(a, b, (vector){__VA_ARGS__})
#endif
#define FRONT2 0, 2
#define BACK2 1, 3
#define FRONT4 0, 4, 1, 5
#define BACK4 2, 6, 3, 7
#define FRONT8 0, 8, 1, 9, 2, 10, 3, 11
#define BACK8 4, 12, 5, 13, 6, 14, 7, 15

/* to[c, r] = from[r, c]; the elements of a row lie side by side, strides are bytes from row to row. */
#define BLOCK(type, n)                                                                                         \
    typedef type type##_vector __attribute__((vector_size(16)));                                               \
    static inline void transpose_block_##type(const char *from, ptrdiff_t from_stride, char *to,               \
                                              ptrdiff_t to_stride) {                                           \
        type##_vector block[n], woven[n];                                                                      \
        _Pragma("GCC unroll 8") for (int i = 0; i < n; i++) {                                                  \
            memcpy(&block[i], from + i * from_stride, 16);                                                     \
            __builtin_prefetch(from + (n + i) * from_stride);                                                  \
        }                                                                                                      \
        _Pragma("GCC unroll 3") for (int round = 1; round < n; round *= 2) {                                   \
            _Pragma("GCC unroll 4") for (int i = 0; i < n / 2; i++) {                                          \
                woven[2 * i] = SHUFFLE(type##_vector, block[i], block[i + n / 2], FRONT##n);                   \
                woven[2 * i + 1] = SHUFFLE(type##_vector, block[i], block[i + n / 2], BACK##n);                \
            }                                                                                                  \
            memcpy(block, woven, sizeof block);                                                                \
        }                                                                                                      \
        _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)                                                    \
            memcpy(to + i * to_stride, &block[i], 16);                                                         \
    }

/* All rows and columns, of which there is a block at least. */
#define TRANSPOSE(type, n)                                                                                     \
    static void transpose_##type(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride,       \
                                 ptrdiff_t rows, ptrdiff_t columns) {                                          \
        const ptrdiff_t size = sizeof(type);                                                                   \
        for (ptrdiff_t r = 0; r < rows; r += n) {                                                              \
            const ptrdiff_t row = r + n <= rows ? r : rows - n;                                                \
            for (ptrdiff_t c = 0; c < columns; c += n) {                                                       \
                const ptrdiff_t column = c + n <= columns ? c : columns - n;                                   \
                transpose_block_##type(from + row * from_stride + column * size, from_stride,                  \
                                       to + column * to_stride + row * size, to_stride);                       \
            }                                                                                                  \
        }                                                                                                      \
    }
BLOCK(int16_t, 8)
TRANSPOSE(int16_t, 8)
BLOCK(int32_t, 4)
TRANSPOSE(int32_t, 4)
#if defined(__AVX__)
enum { BLOCK64 = 4 };
static inline void transpose_block_int64_t(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride) {
    __m256d row[4], pair[4];
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
        row[i] = _mm256_loadu_pd((const double *)(from + i * from_stride));
        __builtin_prefetch(from + (4 + i) * from_stride);
    }
    _Pragma("GCC unroll 2") for (int i = 0; i < 4; i += 2) {
        pair[i] = _mm256_unpacklo_pd(row[i], row[i + 1]);
        pair[i + 1] = _mm256_unpackhi_pd(row[i], row[i + 1]);
    }
    _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) {
        _mm256_storeu_pd((double *)(to + i * to_stride), _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x20));
        _mm256_storeu_pd((double *)(to + (i + 2) * to_stride), _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x31));
    }
}
#else
enum { BLOCK64 = 2 };
BLOCK(int64_t, 2)
#endif
TRANSPOSE(int64_t, BLOCK64)

/* Whether there is a whole block. */
static inline int can_transpose(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t size) {
    return (rows < columns ? rows : columns) >= (size == 8 ? BLOCK64 : 16 / size);
}

static inline void transpose(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t rows,
                             ptrdiff_t columns, ptrdiff_t size) {
    if (size == 2)
        transpose_int16_t(from, from_stride, to, to_stride, rows, columns);
    else if (size == 4)
        transpose_int32_t(from, from_stride, to, to_stride, rows, columns);
    else
        transpose_int64_t(from, from_stride, to, to_stride, rows, columns);
}

#endif
