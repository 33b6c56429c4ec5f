/* Searches a box of elements for one that can take a sum out of its range. */
#ifndef ONNXPOOL_EXTREMES_H
#define ONNXPOOL_EXTREMES_H

#include <math.h>

#include "boxes.h"

/* Magnitudes read as integers have the order of the numbers. Infinities and NaNs, which no retry can change, are largest. */
typedef struct {
    uint64_t least, largest, infinite;
    int itemsize;
} Extremes;

static inline uint64_t magnitude_of(const char *x, const Extremes *e, int swapped) {
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    if (e->itemsize == 8) {
        memcpy(&wide, x, sizeof wide);
        return (swapped ? __builtin_bswap64(wide) : wide) & INT64_MAX;
    }
    if (e->itemsize == 4) {
        memcpy(&word, x, sizeof word);
        return (swapped ? __builtin_bswap32(word) : word) & INT32_MAX;
    }
    memcpy(&half, x, sizeof half);
    return (swapped ? (uint16_t)(half << 8 | half >> 8) : half) & INT16_MAX;
}

/* The limits, for floats with so many binary digits. */
static inline Extremes extremes_of(int digits, double least, double largest) {
    Extremes e = {0, 0, 0, digits == 53 ? 8 : digits == 24 ? 4 : 2};
    const float least_float = (float)least, largest_float = (float)largest;
    uint32_t bits;
    if (digits == 53) {
        e.infinite = UINT64_C(0x7ff0000000000000);
        memcpy(&e.least, &least, sizeof e.least);
        memcpy(&e.largest, &largest, sizeof e.largest);
        return e;
    }
    memcpy(&bits, &least_float, sizeof bits);
    e.least = bits;
    memcpy(&bits, &largest_float, sizeof bits);
    e.largest = bits;
    e.infinite = UINT32_C(0x7f800000);
    if (digits == 11) { /* everything but zeros and infinities, because float16 has few bits to spare */
        e.least = 0x7c00, e.largest = 0, e.infinite = 0x7c00;
    } else if (digits == 8) {
        e.least = (e.least >> 16) + 1, e.largest >>= 16, e.infinite >>= 16;
    }
    return e;
}

static inline int has_extreme(const Copy *c, const char *x, int axis, const Extremes *e) {
    for (ptrdiff_t i = 0; i < c->n[axis]; i++, x += c->from_stride[axis]) {
        if (axis + 1 < c->axes) {
            if (has_extreme(c, x, axis + 1, e))
                return 1;
            continue;
        }
        const uint64_t m = magnitude_of(x, e, c->swapped);
        if ((m > e->largest && m < e->infinite) || (m < e->least && m > 0))
            return 1;
    }
    return 0;
}
#endif
