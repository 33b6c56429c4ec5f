/* Converts rows of n 16-bit floats to floats and back, as core/vec.h does, with the same bits on every processor. */
#ifndef ONNXPOOL_OTHER_HALF_H
#define ONNXPOOL_OTHER_HALF_H

#include "vec.h"

enum { FLOATS = WIDTH / sizeof(float), DOUBLES = WIDTH / sizeof(double) };

#define ROW(name, from_type, to_type, lanes, converted)                             \
    static inline void name(const from_type *x, to_type *y, ptrdiff_t n) {          \
        ptrdiff_t i = 0;                                                            \
        for (; i + lanes <= n; i += lanes) {                                        \
            const from_type *from = x + i;                                          \
            __extension__ const __auto_type v = converted;                          \
            memcpy(y + i, &v, sizeof v);                                            \
        }                                                                           \
        if (i < n) {                                                                \
            from_type from[lanes] = {0};                                            \
            memcpy(from, x + i, (size_t)(n - i) * sizeof(from_type));               \
            __extension__ const __auto_type v = converted;                          \
            memcpy(y + i, &v, (size_t)(n - i) * sizeof(to_type));                   \
        }                                                                           \
    }
ROW(widen_float16_row, uint16_t, float, FLOATS, widen_float16(from))
ROW(widen_bfloat16_row, uint16_t, float, FLOATS, widen_bfloat16(from))
ROW(narrow_float16_row, float, uint16_t, FLOATS, narrow_to_float16(READ(float_v, from)))
ROW(narrow_bfloat16_row, float, uint16_t, FLOATS, narrow_to_bfloat16(quiet_to_bfloat16(READ(float_v, from))))
ROW(round_to_odd_row, double, float, DOUBLES, round_to_odd(READ(double_v, from))) /* floats to be narrowed later */
#undef ROW

/* The same conversions for the 16-bit format with the given number of binary digits. */
static inline void widen_row(int digits, const uint16_t *x, float *y, ptrdiff_t n) {
    if (digits == 11)
        widen_float16_row(x, y, n);
    else
        widen_bfloat16_row(x, y, n);
}
static inline void narrow_row(int digits, const float *x, uint16_t *y, ptrdiff_t n) {
    if (digits == 11)
        narrow_float16_row(x, y, n);
    else
        narrow_bfloat16_row(x, y, n);
}
#endif
