/* The elements [low, high) of a register. Loads read only these, and set other lanes to the identity. AVX-512 only. */
#ifndef ONNXPOOL_WITHIN_H
#define ONNXPOOL_WITHIN_H

#include "element.h"

typedef struct { uint64_t bytes; vec_t ones; } within_t;
INLINE within_t within_of(ptrdiff_t low, ptrdiff_t high) {
    low = low < 0 ? 0 : low > (ptrdiff_t)LANES ? (ptrdiff_t)LANES : low;
    high = high < low ? low : high > (ptrdiff_t)LANES ? (ptrdiff_t)LANES : high;
    const uint64_t bytes = FIRST_BYTES(high * sizeof(elem_t)) & ~FIRST_BYTES(low * sizeof(elem_t));
    return (within_t){bytes, vec_ones(low, high)};
}
INLINE vec_t vec_load_within(const elem_t *x, within_t within, const Rule *rule) {
    elem_t part[PART_ROOM];
    if (AS_STORED && ORDERED) /* without this, maxima are 1.2x faster (Zen 5) */
        return (vec_t)_mm512_mask_loadu_epi8((__m512i)vec_none(), within.bytes, x);
    read_masked(part, x, within.bytes, PART_BYTES);
    return vec_keep(vec_load(part, rule), within.ones);
}

#endif
