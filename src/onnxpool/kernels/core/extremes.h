/* Searches a box of elements for one that can take a sum out of its range. */
#ifndef ONNXPOOL_EXTREMES_H
#define ONNXPOOL_EXTREMES_H

#include <math.h>

#include "boxes.h"

/* Magnitudes read as integers have the order of the numbers, and infinities and NaNs are the largest. An element is
 * extreme if its magnitude is tiny, in [1, 1 + tinies), or large, in [large, large + larges). Zeros are harmless, and
 * no retry can change infinities and NaNs. */
typedef struct {
    uint64_t tinies, large, larges;
    int itemsize;
} Extremes;

/* The bits of a magnitude as an integer. The bits of a bfloat16 are the upper half of a float's. */
static inline uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline uint64_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The numbers outside two limits, in a format with the given number of binary digits. */
static inline Extremes extremes_of(int digits, double least, double largest) {
    uint64_t low = bits_of_float((float)least), high = bits_of_float((float)largest), infinite = bits_of_float(INFINITY);
    int itemsize = 4;
    if (digits == 53)
        low = bits_of_double(least), high = bits_of_double(largest), infinite = bits_of_double(INFINITY), itemsize = 8;
    else if (digits == 11) /* all numbers but 0, because float16 has few bits to spare */
        low = infinite = 0x7c00, high = infinite - 1, itemsize = 2;
    else if (digits == 8)
        low = (low >> 16) + 1, high >>= 16, infinite >>= 16, itemsize = 2;
    return (Extremes){low ? low - 1 : 0, high + 1, infinite > high ? infinite - high - 1 : 0, itemsize};
}

/* There is no branch per element, so a scan is fast compared with a sum, even if all elements are infinite. */
#define SCAN(type, swap)                                                                \
    for (ptrdiff_t i = 0; i < n; i++) {                                                 \
        type bits;                                                                      \
        memcpy(&bits, x + i * stride, sizeof bits);                                     \
        bits = (swap) & (type)((type)-1 >> 1);                                          \
        found |= ((type)(bits - 1) < tinies) | ((type)(bits - large) < larges);         \
    }
#if defined(__clang__) /* cannot optimise a single function differently */
#define VECTORISED
#else
#define VECTORISED __attribute__((optimize("O3")))
#endif
#define SCANNER(type, turned)                                                                                    \
    VECTORISED static int scan_##type(const char *x, ptrdiff_t stride, ptrdiff_t n, const Extremes *e,             \
                                      int swapped) {                                                               \
        const type tinies = (type)e->tinies, large = (type)e->large, larges = (type)e->larges;                     \
        type found = 0;                                                                                            \
        if (swapped)                                                                                               \
            SCAN(type, turned)                                                                                     \
        else if (stride == sizeof(type)) {                                                                         \
            stride = sizeof(type);                                                                                 \
            SCAN(type, bits)                                                                                       \
        } else                                                                                                     \
            SCAN(type, bits)                                                                                       \
        return found != 0;                                                                                         \
    }
SCANNER(uint16_t, (uint16_t)(bits << 8 | bits >> 8))
SCANNER(uint32_t, __builtin_bswap32(bits))
SCANNER(uint64_t, __builtin_bswap64(bits))
#undef SCAN
#undef SCANNER

static inline int has_extreme(const Copy *c, const char *x, int axis, const Extremes *e) {
    if (axis + 1 == c->axes)
        return e->itemsize == 2   ? scan_uint16_t(x, c->from_stride[axis], c->n[axis], e, c->swapped)
               : e->itemsize == 4 ? scan_uint32_t(x, c->from_stride[axis], c->n[axis], e, c->swapped)
                                  : scan_uint64_t(x, c->from_stride[axis], c->n[axis], e, c->swapped);
    for (ptrdiff_t i = 0; i < c->n[axis]; i++, x += c->from_stride[axis])
        if (has_extreme(c, x, axis + 1, e))
            return 1;
    return 0;
}
#endif
