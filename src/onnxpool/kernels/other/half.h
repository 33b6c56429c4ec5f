/* Rows of 16-bit floats, which are computed with as floats, and copies of elements with any strides and byte order. */
#ifndef ONNXPOOL_OTHER_HALF_H
#define ONNXPOOL_OTHER_HALF_H

#include "boxes.h"
#include "vec.h"

/* y[i] = convert(x[i]) for n elements, in vectors of `lanes`. The last ones, if fewer, go through arrays of full length. */
#define CONVERT_ROW(name, from, to, lanes, convert)                                                     \
    static inline void name(const from *restrict x, to *restrict y, ptrdiff_t n) {                       \
        ptrdiff_t i = 0;                                                                                \
        for (; i + (ptrdiff_t)(lanes) <= n; i += lanes) {                                               \
            __extension__ const __auto_type v = convert(x + i);                                         \
            memcpy(y + i, &v, sizeof v);                                                                \
        }                                                                                               \
        if (i < n) {                                                                                    \
            from part[lanes] = {0};                                                                     \
            memcpy(part, x + i, (size_t)(n - i) * sizeof(from));                                        \
            __extension__ const __auto_type v = convert(part);                                          \
            memcpy(y + i, &v, (size_t)(n - i) * sizeof(to));                                            \
        }                                                                                               \
    }
#define FLOATS (WIDTH / sizeof(float))
#define DOUBLES (WIDTH / sizeof(double))
INLINE half_words_v float16_of(const float *x) { return narrow_to_float16(READ(float_v, x)); }
INLINE half_words_v bfloat16_of(const float *x) { return narrow_to_bfloat16(quiet_to_bfloat16(READ(float_v, x))); }
INLINE half_float_v odd_of(const double *x) { return round_to_odd(READ(double_v, x)); }
CONVERT_ROW(widen_float16_row, uint16_t, float, FLOATS, widen_float16)
CONVERT_ROW(widen_bfloat16_row, uint16_t, float, FLOATS, widen_bfloat16)
CONVERT_ROW(narrow_float16_row, float, uint16_t, FLOATS, float16_of)
CONVERT_ROW(narrow_bfloat16_row, float, uint16_t, FLOATS, bfloat16_of)
/* Doubles as floats, of which a later narrowing to 16 bits makes what it would make of the doubles. */
CONVERT_ROW(round_to_odd_row, double, float, DOUBLES, odd_of)

/* Elements [i, j]; strides are in bytes, for i and for j. */
static inline void copy_elements(const char *from, const ptrdiff_t *from_strides, char *to, const ptrdiff_t *to_strides,
                                 const ptrdiff_t *shape, ptrdiff_t size, int swapped) {
    const int rows = !swapped && from_strides[1] == size && to_strides[1] == size;
    for (ptrdiff_t i = 0; i < shape[0]; i++, from += from_strides[0], to += to_strides[0])
        if (rows)
            memcpy(to, from, (size_t)(shape[1] * size));
        else
            copy_each(from, from_strides[1], to, to_strides[1], shape[1], size, swapped);
}

#endif
