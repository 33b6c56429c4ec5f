/* The arguments of a copy: the number of elements along each axis, and their strides in bytes at both ends. */
#ifndef ONNXPOOL_BOXES_H
#define ONNXPOOL_BOXES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared_constants.h"

enum { MOST_COPIED = ONNXPOOL_MOST_AXES + 2 }; /* the axes of an array, with images and channels as two */

typedef struct {
    const char *from;
    char *to;
    ptrdiff_t itemsize;
    int swapped; /* whether bytes are swapped */
    int axes;
    ptrdiff_t n[MOST_COPIED], from_stride[MOST_COPIED], to_stride[MOST_COPIED];
} Copy;

typedef void (*CopyLoops)(const Copy *copy);

#define COPY_EACH(type, turned)                                     \
    for (ptrdiff_t i = 0; i < n; i++, from += from_stride, to += to_stride) { \
        type bits;                                                  \
        memcpy(&bits, from, sizeof bits);                           \
        bits = swapped ? turned : bits;                             \
        memcpy(to, &bits, sizeof bits);                             \
    }
static inline void copy_each(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t n,
                             ptrdiff_t itemsize, int swapped) {
    if (itemsize == 1)
        COPY_EACH(uint8_t, bits)
    else if (itemsize == 2)
        COPY_EACH(uint16_t, (uint16_t)(bits << 8 | bits >> 8))
    else if (itemsize == 4)
        COPY_EACH(uint32_t, __builtin_bswap32(bits))
    else
        COPY_EACH(uint64_t, __builtin_bswap64(bits))
}
#undef COPY_EACH
#endif
