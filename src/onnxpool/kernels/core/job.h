/* The arguments of loops. Strides are in elements, unless a comment says otherwise. */
#ifndef ONNXPOOL_JOB_H
#define ONNXPOOL_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "shared_constants.h"

/* A size of scratch memory that means more than any machine has. Its product with a thread count does not overflow. */
static const ptrdiff_t ONNXPOOL_TOO_LARGE = (ptrdiff_t)1 << (sizeof(ptrdiff_t) > 4 ? 54 : 27);

/* The windows along one axis. */
typedef struct {
    ptrdiff_t size, out;                       /* elements in, windows out */
    ptrdiff_t kernel, stride, dilation;
    ptrdiff_t pad, pad_end;                    /* elements of padding before the first element and after the last one */
    ptrdiff_t begin, end;                      /* the interior: windows whose taps are all inside */
    ptrdiff_t span;                            /* places from the first tap of a window to the last one, or FARTHEST */
    ptrdiff_t most;                            /* taps of a window that can be inside */
    int counts_pads;                           /* whether padding counts in the divisor of means */
    int wide;                                  /* whether sums and products of these numbers may exceed 64 bits */
    int singly;                                /* whether the solver reduces its windows one by one, not as shared trees */
} Axis;

/* One window: its first tap inside the array, the number of taps inside, and the divisor of a mean. */
typedef struct {
    ptrdiff_t first, taps;
    ptrdiff_t skipped;                         /* taps in the padding before the first one inside */
    ptrdiff_t divisor;
} Window;

#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 wide_int; /* attributes may take 64 bits, and their products more */
#else
typedef int64_t wide_int;
#endif

/* The number of places that `windows` neighbours span, including places in the padding; at most FARTHEST. */
static const ptrdiff_t ONNXPOOL_FARTHEST = PTRDIFF_MAX / 2;
static inline ptrdiff_t padded(const Axis *a, ptrdiff_t windows) {
    if (!a->wide)
        return (windows - 1) * a->stride + a->span;
    const wide_int places = (wide_int)(windows - 1) * a->stride + (wide_int)(a->kernel - 1) * a->dilation + 1;
    return places < ONNXPOOL_FARTHEST ? (ptrdiff_t)places : ONNXPOOL_FARTHEST;
}

/* The distance from one tap to the next, if places are `step` apart. It wraps only if no two taps are inside. */
static inline ptrdiff_t tap_distance(const Axis *a, ptrdiff_t step) {
    return (ptrdiff_t)((size_t)a->dilation * (size_t)step);
}

/* The range of elements that windows [begin, end) may read. */
static inline void elements_of(const Axis *a, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t *low, ptrdiff_t *high) {
    const wide_int first = (wide_int)begin * a->stride - a->pad;
    const wide_int behind = (wide_int)(end - 1) * a->stride - a->pad + (wide_int)(a->kernel - 1) * a->dilation + 1;
    *low = first < 0 ? 0 : first > a->size ? a->size : (ptrdiff_t)first;
    *high = behind < *low ? *low : behind > a->size ? a->size : (ptrdiff_t)behind;
}

/* Whether none of the windows [begin, end) lies wholly in the padding at either end. */
static inline int touch(const Axis *a, ptrdiff_t begin, ptrdiff_t end) {
    return !a->wide && begin * a->stride + a->span > a->pad && (end - 1) * a->stride < a->size + a->pad;
}

/* The windows of [begin, end) that touch the array. */
static __attribute__((noinline, unused)) void touching_of(const Axis *a, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t *low,
                                                  ptrdiff_t *high) {
    *low = begin, *high = end;
    const wide_int before = (wide_int)a->pad - (wide_int)(a->kernel - 1) * a->dilation;
    const wide_int behind = (wide_int)a->pad + a->size; /* all windows of a part may lie behind the array */
    const uint64_t stride = (uint64_t)a->stride, first = before > 0 ? ((uint64_t)before - 1) / stride + 1 : 0;
    const uint64_t last = behind > 0 ? ((uint64_t)behind - 1) / stride + 1 : 0;
    if (first > (uint64_t)begin)
        *low = first < (uint64_t)end ? (ptrdiff_t)first : end;
    if (last < (uint64_t)end)
        *high = (ptrdiff_t)last > *low ? (ptrdiff_t)last : *low;
}

/* The number of taps that lie less than a distance after the first tap, in two widths. The wide version bisects,
 * because 128-bit divisions call a function of the compiler's library, which clang does not link on Windows. */
static inline int64_t narrow_taps_before(int64_t distance, const Axis *a) {
    if (distance <= 0)
        return 0;
    const int64_t taps = a->dilation == 1 ? distance : (distance + a->dilation - 1) / a->dilation;
    return taps < a->kernel ? taps : a->kernel;
}
static inline int64_t wide_taps_before(wide_int distance, const Axis *a) {
    int64_t least = 0, most = a->kernel;
    if (a->dilation == 1)
        return distance <= 0 ? 0 : distance < most ? (int64_t)distance : most;
    while (least < most) {
        const int64_t tap = least + (most - least) / 2;
        if ((wide_int)tap * a->dilation < distance)
            least = tap + 1;
        else
            most = tap;
    }
    return least;
}

/* A window that may overhang the input. One formula in two widths, because 128-bit arithmetic is slow and long, and
 * only axes with huge attributes need it. */
#define BORDER(window_at_border, taps_before, number)                                                       \
    static inline Window window_at_border(const Axis *a, ptrdiff_t w) {                                     \
        const number place = (number)w * a->stride - a->pad, end = a->size - place;                         \
        const int64_t skipped = taps_before(-place, a), inside = taps_before(end, a) - skipped;             \
        Window window = {0, 0, (ptrdiff_t)skipped, 0};                                                      \
        if (inside > 0) {                                                                                   \
            window.first = (ptrdiff_t)(place + (number)skipped * a->dilation);                              \
            window.taps = (ptrdiff_t)inside;                                                                \
        }                                                                                                   \
        window.divisor = a->counts_pads ? (ptrdiff_t)taps_before(end + a->pad_end, a) : window.taps;        \
        return window;                                                                                      \
    }
BORDER(narrow_window_at, narrow_taps_before, int64_t)
BORDER(wide_window, wide_taps_before, wide_int)

static __attribute__((noinline)) Window wide_window_at(const Axis *a, ptrdiff_t w) { return wide_window(a, w); }

static inline Window interior_window_at(const Axis *a, ptrdiff_t w) {
    return (Window){(ptrdiff_t)((size_t)w * (size_t)a->stride - (size_t)a->pad), a->kernel, 0, a->kernel};
}

static inline Window window_at(const Axis *a, ptrdiff_t w) {
    if (a->begin <= w && w < a->end)
        return interior_window_at(a, w);
    return a->wide ? wide_window_at(a, w) : narrow_window_at(a, w);
}

/* Neighbouring windows that read the same taps and have the same divisor. */
typedef struct {
    ptrdiff_t n;
    Window window;                             /* the first one */
} Run;

/* How many windows of [w, end), all at a border, come before a tap enters or leaves the array or counted padding. */
static inline ptrdiff_t alike(const Axis *a, ptrdiff_t w, ptrdiff_t end, const Window *window) {
    const int64_t place = (int64_t)w * a->stride - a->pad, taps = window->skipped + window->taps;
    int64_t distance = a->size - place - (taps - 1) * a->dilation;
    if (window->skipped) {
        const int64_t enters = -place - (window->skipped - 1) * a->dilation;
        distance = enters < distance ? enters : distance;
    }
    if (a->counts_pads) {
        const int64_t leaves = a->size + a->pad_end - place - (window->divisor - 1) * a->dilation;
        distance = leaves < distance ? leaves : distance;
    }
    const int64_t n = (distance - 1) / a->stride + 1;
    return n < end - w ? (ptrdiff_t)n : end - w;
}

/* How many windows from w on lie before the array, or behind it. Window w has no taps. */
static inline ptrdiff_t outside(const Axis *a, ptrdiff_t w, ptrdiff_t end) {
    const int64_t place = (int64_t)w * a->stride - a->pad, behind = place + a->span;
    const int64_t n = behind <= 0 ? -behind / a->stride + 1 : place >= a->size ? end - w : 1; /* 1: between two taps */
    return n < end - w ? (ptrdiff_t)n : end - w;
}

/* Windows at a border. Several are alike if taps are further apart than windows, or if the windows lie in the padding,
 * where their divisors may differ but do not matter. */
static __attribute__((noinline)) Run border_at(const Axis *a, ptrdiff_t w, ptrdiff_t end) {
    Run run = {1, a->wide ? wide_window_at(a, w) : narrow_window_at(a, w)};
    if (!a->wide && !run.window.taps)
        run.n = outside(a, w, end);
    else if (!a->wide && a->dilation > a->stride)
        run.n = alike(a, w, end, &run.window);
    return run;
}

/* The remainder of the interior, or windows at a border. */
static inline Run run_at(const Axis *a, ptrdiff_t w, ptrdiff_t end) {
    const ptrdiff_t last = end < a->end ? end : a->end;
    return a->begin <= w && w < last ? (Run){last - w, interior_window_at(a, w)} : border_at(a, w, end);
}

/* How elements become signed integers in the same order, or in reverse order for minima. If an element is negative as
 * an integer, the bits in `mask` are flipped. Then the bits in `flip` are flipped. Then `shift` is subtracted, which
 * moves the least integers, the NaNs, to the top. Each pattern is repeated to fill 64 bits. `truth` has all bits set
 * for bools, of which any byte but 0 is true. `infinity` has the bits of infinity, if larger magnitudes become the same
 * NaN. */
typedef struct {
    uint64_t mask, flip, shift, truth, infinity;
} Order;

/* Parameters of quantised means. If integers are summed, `bias` is the sum of the zero points of all taps, and the
 * range is relative to the zero point. */
typedef struct {
    int64_t bias;                              /* the zero point of x */
    float scale, y_scale;                      /* the value of one unit of the sum, in units of y or as a real number */
    float lowest, highest;                     /* the range of y */
    int zero;                                  /* the zero point of y */
} Scales;

/* Parameters of a reduction. */
typedef struct {
    double p;                                  /* order of the norm, or its negative if NaNs are skipped */
    int divides;                               /* whether totals are divided, as in means */
    double low, high;                          /* the safe range of totals */
    Order order;                               /* the order by which extrema compare */
    uint64_t most;                             /* the bits of the largest magnitude, if extrema have indices */
    uint64_t counted, left_out;                /* what numbers and NaNs add to the count of a mean, as bits of a float */
    int is_other;                              /* whether int16 stands for uint16, or float16 for bfloat16 */
    int few;                                   /* whether means of integers have few taps, so that rounding takes fewer steps */
    int careful;                               /* whether quotients must be computed by division */
    Scales scales;                             /* of quantised means, for each call */
} Rule;

/* The address and strides (in bytes) of an array in one call. */
typedef struct {
    char *data;
    ptrdiff_t itemsize;
    int swapped;                               /* whether the byte order is not the processor's */
    ptrdiff_t item, lane;
    ptrdiff_t outer[ONNXPOOL_MOST_AXES], axis[ONNXPOOL_MOST_AXES];
} Array;

/* A tile: a part of the result, and the elements that it is computed from. Loops reduce its items one after another. */
typedef struct {
    const Axis *axis;
    int rank;
    int joined;                                /* trailing axes with gaps between them that sums treat as one axis */
    ptrdiff_t items, lanes;                    /* lanes are adjacent at each place */
    ptrdiff_t all_lanes, most_lanes;           /* lanes of the job, and of its largest tile */
    const char *x;                             /* the element of the first item at place 0 of all axes */
    char *y;                                   /* the result of the first item in window 0 of all axes */
    ptrdiff_t x_item, y_item;                  /* from item to item */
    const ptrdiff_t *x_stride, *y_stride;      /* from place to place, from window to window of each axis */
    const ptrdiff_t *begin, *end;              /* windows of each axis */
    const Rule *rule;
    char *scratch;
    char *indices;                             /* indices of maxima as 64-bit integers, like y; else NULL */
    ptrdiff_t index_item;
    const ptrdiff_t *index_stride;
    const ptrdiff_t *pace;                     /* index stride of each axis */
    int64_t base, base_item, base_lane;        /* index of the first element; index strides of items and lanes */
    const Array *strided;                      /* the strides of x, if loops themselves copy elements; else NULL */
    ptrdiff_t far;                             /* bytes of elements, if a core's own caches do not hold them; or 0 */
    /* If several threads share a tile, the number of this call's share, below `shares`. The call that joins the totals
     * of all shares and finishes them has the number `shares`. If the tile is not shared, `shares` is 0. */
    int share, shares;
    char *totals;                              /* `part_bytes` for each part of each item, which has at most `parts` */
    ptrdiff_t parts, part_bytes;
} Tile;

static inline int bits_of(ptrdiff_t n) { return 64 - __builtin_clzll((unsigned long long)n); } /* digits of n > 0 */
static inline ptrdiff_t ceil_div(ptrdiff_t a, ptrdiff_t b) { return (a + b - 1) / b; }
static inline ptrdiff_t round_up(ptrdiff_t n, ptrdiff_t unit) { return ceil_div(n, unit) * unit; }

/* The bytes that a part's totals take: accumulators for all lanes, another row of few lanes, and what a register may
 * read after them. */
static inline ptrdiff_t part_bytes_of(ptrdiff_t lanes, ptrdiff_t acc_bytes) {
    return acc_bytes * round_up(lanes, 64 / acc_bytes) + 2 * ONNXPOOL_FULL_ROW;
}

/* Prefetches the cache lines of a range of bytes. */
static inline void fetch(const void *x, ptrdiff_t bytes) {
    for (ptrdiff_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)x + i);
}

typedef void (*Loops)(Tile *tile);
typedef ptrdiff_t (*Scratch)(const Tile *tile); /* the scratch memory in bytes that loops need for a tile */

#endif
