/* Transposes matrices, which makes strided channels contiguous, and vice versa.
 *
 * A square block has as many rows as a vector has elements, and is transposed in registers. There are two methods. In
 * the first one, step d swaps the elements at a distance of d from the diagonal. In the second one, each round
 * interleaves the first half of the rows with the second half, which takes one instruction for vectors of 16 bytes. The
 * last blocks of rows and columns overlap the blocks before them. A matrix with fewer rows or columns takes smaller
 * blocks.
 */
#ifndef ONNXPOOL_TRANSPOSE_H
#define ONNXPOOL_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Step d: the lane from which lane l of the upper or lower result comes. Lanes of the second vector count from n. */
#define UPPER(n, d, l) ((l) & (d) ? (n) + (l) - (d) : (l))
#define LOWER(n, d, l) ((l) & (d) ? (n) + (l) : (l) + (d))
#define LANES2(f, n, d, l) f(n, d, l), f(n, d, l + 1)
#define LANES4(f, n, d, l) LANES2(f, n, d, l), LANES2(f, n, d, l + 2)
#define LANES8(f, n, d, l) LANES4(f, n, d, l), LANES4(f, n, d, l + 4)
#define LANES16(f, n, d, l) LANES8(f, n, d, l), LANES8(f, n, d, l + 8)

#define STEP(vector, n, d)                                                            \
    _Pragma("GCC unroll 16") for (int i = 0; i < n; i++) {                            \
        if (!(i & d)) {                                                               \
            vector a = block[i], b = block[i + d];                                    \
            block[i] = __builtin_shufflevector(a, b, LANES##n(UPPER, n, d, 0));     \
            block[i + d] = __builtin_shufflevector(a, b, LANES##n(LOWER, n, d, 0)); \
        }                                                                             \
    }
/* A round: the lane from which lane l of a result comes, if that result interleaves both vectors from lane d on. */
#define WOVEN(n, d, l) (((l) & 1 ? (n) : 0) + (d) + (l) / 2)
#define ROUND(vector, n)                                                                      \
    {                                                                                         \
        vector woven[n];                                                                      \
        _Pragma("GCC unroll 8") for (int i = 0; i < n / 2; i++) {                             \
            vector a = block[i], b = block[i + n / 2];                                        \
            woven[2 * i] = __builtin_shufflevector(a, b, LANES##n(WOVEN, n, 0, 0));         \
            woven[2 * i + 1] = __builtin_shufflevector(a, b, LANES##n(WOVEN, n, n / 2, 0)); \
        }                                                                                     \
        _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)                                  \
            block[i] = woven[i];                                                              \
    }
#define ROUNDS2(vector, n) ROUND(vector, n)
#define ROUNDS4(vector, n) ROUNDS2(vector, n) ROUND(vector, n)
#define ROUNDS8(vector, n) ROUNDS4(vector, n) ROUND(vector, n)
#define ROUNDS16(vector, n) ROUNDS8(vector, n) ROUND(vector, n)

#define STEPS2(vector, n) STEP(vector, n, 1)
#define STEPS4(vector, n) STEPS2(vector, n) STEP(vector, n, 2)
#define STEPS8(vector, n) STEPS4(vector, n) STEP(vector, n, 4)
#define STEPS16(vector, n) STEPS8(vector, n) STEP(vector, n, 8)

/* to[c, r] = from[r, c]. The elements of a row are adjacent; strides are in bytes, from row to row. */
#define ELEMENTS(type)                                                                                              \
    static inline void transpose_##type##_1(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, \
                                            ptrdiff_t rows, ptrdiff_t columns) {                                    \
        const ptrdiff_t size = sizeof(type);                                                                        \
        for (ptrdiff_t r = 0; r < rows; r++)                                                                        \
            for (ptrdiff_t c = 0; c < columns; c++)                                                                 \
                memcpy(to + c * to_stride + r * size, from + r * from_stride + c * size, sizeof(type));             \
    }
#define BLOCKS(type, n, WAY, smaller)                                                                               \
    typedef type type##_lanes_##n __attribute__((vector_size(n * sizeof(type))));                                   \
    static inline void transpose_##type##_block_##n(const char *from, ptrdiff_t from_stride, char *to,              \
                                                    ptrdiff_t to_stride) {                                          \
        type##_lanes_##n block[n];                                                                                  \
        _Pragma("GCC unroll 16") for (int i = 0; i < n; i++) {                                                      \
            memcpy(&block[i], from + i * from_stride, sizeof block[i]);                                             \
            __builtin_prefetch(from + (n + i) * from_stride);                                                       \
        }                                                                                                           \
        WAY##n(type##_lanes_##n, n)                                                                                 \
        _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)                                                        \
            memcpy(to + i * to_stride, &block[i], sizeof block[i]);                                                 \
    }                                                                                                               \
    static inline void transpose_##type##_##n(const char *from, ptrdiff_t from_stride, char *to,                    \
                                              ptrdiff_t to_stride, ptrdiff_t rows, ptrdiff_t columns) {             \
        const ptrdiff_t size = sizeof(type);                                                                        \
        if (rows < n || columns < n) {                                                                              \
            transpose_##type##_##smaller(from, from_stride, to, to_stride, rows, columns);                          \
            return;                                                                                                 \
        }                                                                                                           \
        for (ptrdiff_t r = 0; r < rows; r += n) {                                                                   \
            const ptrdiff_t row = r + n <= rows ? r : rows - n;                                                     \
            for (ptrdiff_t c = 0; c < columns; c += n) {                                                            \
                const ptrdiff_t column = c + n <= columns ? c : columns - n;                                        \
                transpose_##type##_block_##n(from + row * from_stride + column * size, from_stride,                 \
                                             to + column * to_stride + row * size, to_stride);                      \
            }                                                                                                       \
        }                                                                                                           \
    }

ELEMENTS(int8_t)
ELEMENTS(int16_t)
ELEMENTS(int32_t)
ELEMENTS(int64_t)
/* Blocks whose vectors fill 64, 32 or 16 bytes, but with at most 16 rows; and smaller blocks, for smaller matrices. */
BLOCKS(int8_t, 8, ROUNDS, 1)
BLOCKS(int8_t, 16, ROUNDS, 8)
BLOCKS(int16_t, 4, ROUNDS, 1)
BLOCKS(int16_t, 8, ROUNDS, 4)
BLOCKS(int32_t, 4, ROUNDS, 1)
BLOCKS(int64_t, 2, ROUNDS, 1)
#if defined(__AVX512F__)
BLOCKS(int16_t, 16, STEPS, 8)
BLOCKS(int32_t, 16, STEPS, 4)
BLOCKS(int64_t, 8, STEPS, 2)
#define LARGEST(type, avx512, avx2, sse) transpose_##type##_##avx512
#elif defined(__AVX2__)
BLOCKS(int32_t, 8, STEPS, 4)
BLOCKS(int64_t, 4, STEPS, 2)
#define LARGEST(type, avx512, avx2, sse) transpose_##type##_##avx2
#else
#define LARGEST(type, avx512, avx2, sse) transpose_##type##_##sse
#endif

static inline void transpose(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t rows,
                             ptrdiff_t columns, ptrdiff_t itemsize) {
    if (itemsize == 1)
        transpose_int8_t_16(from, from_stride, to, to_stride, rows, columns);
    else if (itemsize == 2)
        LARGEST(int16_t, 16, 8, 8)(from, from_stride, to, to_stride, rows, columns);
    else if (itemsize == 4)
        LARGEST(int32_t, 16, 8, 4)(from, from_stride, to, to_stride, rows, columns);
    else
        LARGEST(int64_t, 8, 4, 2)(from, from_stride, to, to_stride, rows, columns);
}

#endif
