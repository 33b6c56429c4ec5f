/* What Cython cannot say: 16-bit floating-point conversions, byte order and the floating-point control word.
 *
 * A row function converts n contiguous elements. Every instruction set gives the same bits: NaNs become quiet and keep
 * their leading payload bits, subnormals are exact, narrowing rounds to nearest even.
 */
#ifndef ONNXPOOL_ELEMENTS_H
#define ONNXPOOL_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__F16C__) || defined(__SSE2__)
#include <immintrin.h>
#endif

/* Belongs into the loop that calls it, however large that has grown already. */
#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

/* What loops do but at their ends. */
#if defined(__GNUC__)
#define MOSTLY(condition) __builtin_expect(!!(condition), 1)
#else
#define MOSTLY(condition) (condition)
#endif

/* Whether loops gain by asking for many lines at once: Intel's processors follow streams by themselves, and lose by it. */
static inline int gains_by_fetching(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    return !__builtin_cpu_is("intel");
#else
    return 1;
#endif
}

/* Ask for lines of memory that will be read soon. */
static inline void fetch(const char *x) {
#if defined(__GNUC__)
    __builtin_prefetch(x);
#else
    (void)x;
#endif
}

static inline void fetch_lines(const char *x, ptrdiff_t n) {
    for (ptrdiff_t line = 0; line < n; line++)
        fetch(x + 64 * line);
}

/* Read something of each line of so many bytes, in the order of memory: processors follow one stream, but not rows a
 * few hundred bytes apart that are read in turn. */
static inline void touch_lines(const char *x, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += 64)
        (void)*(const volatile char *)(x + i);
}

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float widen_float16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t exponent = magnitude & 0x0f800000;
    if (exponent == 0x0f800000) /* infinity or NaN */
        return float_of_bits(sign | (magnitude + 0x70000000) | (magnitude & 0x007fffff ? 0x00400000 : 0));
    if (exponent == 0) /* zero or subnormal: 2^-14 is taken off again, exactly */
        return float_of_bits(sign | bits_of_float(float_of_bits(magnitude + 0x38800000) - 0x1p-14f));
    return float_of_bits(sign | (magnitude + 0x38000000));
}

static inline uint16_t narrow_float16(float value) {
    uint32_t bits = bits_of_float(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) /* NaN */
        return (uint16_t)(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
    if (magnitude >= 0x47800000) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) /* below 2^-14: adding 0.5 leaves units of 2^-24 in the low bits, rounded to even */
        return (uint16_t)(sign | (bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13));
}

static inline uint16_t narrow_bfloat16(float value) {
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000) /* NaN */
        return (uint16_t)((bits >> 16) | 0x40);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

ALWAYS_INLINE void widen_float16_row(const uint16_t *restrict x, float *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++)
        y[i] = widen_float16(x[i]);
}

ALWAYS_INLINE void narrow_float16_row(const float *restrict x, uint16_t *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(y + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        y[i] = narrow_float16(x[i]);
}

ALWAYS_INLINE void widen_bfloat16_row(const uint16_t *restrict x, float *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_si512(y + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(
                                       _mm256_loadu_si256((const __m256i *)(x + i))), 16));
#endif
#if defined(__AVX2__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i *)(y + i), _mm256_slli_epi32(_mm256_cvtepu16_epi32(
                                                    _mm_loadu_si128((const __m128i *)(x + i))), 16));
#endif
    for (; i < n; i++)
        y[i] = float_of_bits((uint32_t)x[i] << 16);
}

/* Bytes of a register. */
#if defined(__AVX512BW__)
enum { WIDTH = 64 };
#elif defined(__AVX2__)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
typedef uint32_t words __attribute__((vector_size(WIDTH)));
typedef uint16_t half_words __attribute__((vector_size(WIDTH / 2)));

/* Their leading halves are bfloat16. */
ALWAYS_INLINE words rounded_to_bfloat16(words bits) {
    words nan = (words)((bits & 0x7fffffff) > 0x7f800000);
    return (nan & (bits | 0x400000)) | (~nan & (bits + 0x7fff + ((bits >> 16) & 1)));
}

ALWAYS_INLINE void narrow_bfloat16_row(const float *restrict x, uint16_t *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
    for (; i + WIDTH / 4 <= n; i += WIDTH / 4) {
        words bits;
        half_words narrow;
        memcpy(&bits, x + i, sizeof bits);
        narrow = __builtin_convertvector(rounded_to_bfloat16(bits) >> 16, half_words);
        memcpy(y + i, &narrow, sizeof narrow);
    }
    for (; i < n; i++)
        y[i] = narrow_bfloat16(x[i]);
}

/* bfloat16 in pairs: of 32 neighbours, the 16 of even place (in their word) are values before the 16 of odd place. Both
 * ways it takes no shuffle. */
ALWAYS_INLINE void widen_bfloat16_half(const uint16_t *restrict x, float *restrict y, int odd) {
    for (int i = 0; i < 64; i += WIDTH) {
        words pairs;
        memcpy(&pairs, (const char *)x + i, sizeof pairs);
        pairs = odd ? pairs & 0xffff0000 : pairs << 16;
        memcpy((char *)y + i, &pairs, sizeof pairs);
    }
}

ALWAYS_INLINE void widen_bfloat16_pairs(const uint16_t *restrict x, float *restrict y, ptrdiff_t n) {
    ptrdiff_t i;
    for (i = 0; i < n; i += 32) {
        widen_bfloat16_half(x + i, y + i, 0);
        widen_bfloat16_half(x + i, y + i + 16, 1);
    }
}

ALWAYS_INLINE void narrow_bfloat16_pairs(const float *restrict x, uint16_t *restrict y, ptrdiff_t n) {
    for (ptrdiff_t unit = 0; unit < n; unit += 32)
        for (int i = 0; i < 64; i += WIDTH) {
            words even, odd;
            memcpy(&even, (const char *)(x + unit) + i, sizeof even);
            memcpy(&odd, (const char *)(x + unit + 16) + i, sizeof odd);
            even = (rounded_to_bfloat16(even) >> 16) | (rounded_to_bfloat16(odd) & 0xffff0000);
            memcpy((char *)(y + unit) + i, &even, sizeof even);
        }
}

/* Of no NaN but those of bfloat16, which rounding leaves as they are. */
ALWAYS_INLINE void narrow_bfloat16_halves(const float *even, const float *odd, uint16_t *y) {
    for (int i = 0; i < 64; i += WIDTH) {
        words low, high;
        memcpy(&low, (const char *)even + i, sizeof low);
        memcpy(&high, (const char *)odd + i, sizeof high);
        low += 0x7fff + ((low >> 16) & 1);
        high += 0x7fff + ((high >> 16) & 1);
        low = (low >> 16) | (high & 0xffff0000);
        memcpy((char *)y + i, &low, sizeof low);
    }
}

/* 64 bytes that stay in registers from loop to loop, as arrays do not; and how many of them do. */
enum { REGISTERS = WIDTH == 64 ? 16 : 4 };
typedef struct {
    words part[64 / WIDTH];
} lanes_t;

ALWAYS_INLINE lanes_t load_lanes(const void *x) {
    lanes_t lanes;
    _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++)
        memcpy(&lanes.part[i], (const char *)x + i * WIDTH, WIDTH);
    return lanes;
}

ALWAYS_INLINE void store_lanes(lanes_t lanes, void *y) {
    _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++)
        memcpy((char *)y + i * WIDTH, &lanes.part[i], WIDTH);
}

/* The larger of two numbers in each lane: of equals the earlier one, and a NaN, the later of two. Compilers make two
 * comparisons of it where one finds both. */
#if defined(__AVX512BW__)
#define LARGER(name, type, vector, suffix)                                                             \
    ALWAYS_INLINE lanes_t larger_##name(lanes_t earlier, lanes_t later) {                                \
        const vector a = (vector)earlier.part[0], b = (vector)later.part[0];                           \
        later.part[0] = (words)_mm512_mask_mov_##suffix(_mm512_max_##suffix(b, a),                       \
                                                       _mm512_cmp_##suffix##_mask(b, b, _CMP_UNORD_Q), b); \
        return later;                                                                                  \
    }
#else
#define LARGER(name, type, vector, suffix)                                                              \
    ALWAYS_INLINE lanes_t larger_##name(lanes_t earlier, lanes_t later) {                                 \
        for (int i = 0; i < 64 / WIDTH; i++) {                                                          \
            const type a = (type)earlier.part[i], b = (type)later.part[i];                              \
            const words taken = (words)(b > a) | (words)(b != b);                                       \
            later.part[i] = (taken & later.part[i]) | (~taken & earlier.part[i]);                       \
        }                                                                                               \
        return later;                                                                                   \
    }
#endif
typedef float floats __attribute__((vector_size(WIDTH)));
typedef double doubles __attribute__((vector_size(WIDTH)));
LARGER(floats, floats, __m512, ps)
LARGER(doubles, doubles, __m512d, pd)

/* The 64 bytes from some place on of two vectors, as if they lay side by side; `size` of a lane is a constant. */
ALWAYS_INLINE lanes_t lanes_from(lanes_t first, lanes_t second, ptrdiff_t bytes, int size) {
    char both[128];
#if defined(__AVX512BW__)
    const __m512i a = (__m512i)first.part[0], b = (__m512i)second.part[0];
    if (size >= 4 || size == 2) {
        const __m512i places =
            size >= 4 ? _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
                      : _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
                                         12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        first.part[0] = (words)(size >= 4 ? _mm512_permutex2var_epi32(
                                                a, _mm512_add_epi32(places, _mm512_set1_epi32((int)(bytes / 4))), b)
                                          : _mm512_permutex2var_epi16(
                                                a, _mm512_add_epi16(places, _mm512_set1_epi16((short)(bytes / 2))), b));
        return first;
    }
#define SHIFT(n)                                                                                        \
    if (bytes == n) {                                                                                   \
        first.part[0] = (words)_mm512_alignr_epi8(_mm512_alignr_epi32(b, a, 4), a, n);                   \
        return first;                                                                                   \
    }                                                                                                   \
    if (bytes == 64 - n) {                                                                              \
        first.part[0] = (words)_mm512_alignr_epi8(b, _mm512_alignr_epi32(b, a, 12), 16 - n);             \
        return first;                                                                                   \
    }
    SHIFT(1)
    SHIFT(2)
#elif defined(__SSE2__)
#if defined(__AVX2__)
#define ALIGN(a, b, n) _mm256_alignr_epi8(_mm256_permute2x128_si256(a, b, 0x21), a, n)
#define ALIGN_BACK(a, b, n) _mm256_alignr_epi8(b, _mm256_permute2x128_si256(a, b, 0x21), 16 - n)
    typedef __m256i part_t;
#else
#define ALIGN(a, b, n) _mm_or_si128(_mm_srli_si128(a, n), _mm_slli_si128(b, 16 - n))
#define ALIGN_BACK(a, b, n) _mm_or_si128(_mm_srli_si128(a, 16 - n), _mm_slli_si128(b, n))
    typedef __m128i part_t;
#endif
#define SHIFT(n)                                                                                        \
    if (bytes == n && n % size == 0) {                                                                  \
        _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++) {                                  \
            const words next = i + 1 < 64 / WIDTH ? first.part[i + 1] : second.part[0];                 \
            first.part[i] = (words)ALIGN((part_t)first.part[i], (part_t)next, n);                       \
        }                                                                                               \
        return first;                                                                                   \
    }                                                                                                   \
    if (bytes == 64 - n && n % size == 0) {                                                             \
        lanes_t joined;                                                                                 \
        _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++) {                                  \
            const words last = i ? second.part[i - 1] : first.part[64 / WIDTH - 1];                     \
            joined.part[i] = (words)ALIGN_BACK((part_t)last, (part_t)second.part[i], n);                \
        }                                                                                               \
        return joined;                                                                                  \
    }
    SHIFT(1)
    SHIFT(2)
    SHIFT(4)
    SHIFT(8)
    SHIFT(16)
#undef ALIGN
#undef ALIGN_BACK
#endif
#undef SHIFT
    store_lanes(first, both);
    store_lanes(second, both + 64);
    return load_lanes(both + bytes);
}

/* The same, which compilers would rather make anew each time than hold. */
ALWAYS_INLINE lanes_t held_lanes(lanes_t lanes) {
#if defined(__SSE2__)
    _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++)
        __asm__("" : "+v"(lanes.part[i]));
#endif
    return lanes;
}

/* Columns that the lanes of vectors have in a row of at least as many, from 0 on and `width` further; and those lanes
 * whose columns are `least` at least, or `most` at most, others being what is outside. */
#define COLUMNS(bits)                                                                                        \
    ALWAYS_INLINE lanes_t all_columns_##bits(ptrdiff_t column) {                                             \
        typedef uint##bits##_t type __attribute__((vector_size(WIDTH)));                                     \
        lanes_t columns;                                                                                     \
        for (int i = 0; i < 64 / WIDTH; i++)                                                                 \
            columns.part[i] = (words)((type){} + (uint##bits##_t)column);                                    \
        return columns;                                                                                      \
    }                                                                                                        \
    ALWAYS_INLINE lanes_t first_columns_##bits(void) {                                                       \
        uint##bits##_t columns[512 / bits];                                                                  \
        for (int i = 0; i < 512 / bits; i++)                                                                 \
            columns[i] = (uint##bits##_t)i;                                                                  \
        return load_lanes(columns);                                                                          \
    }                                                                                                        \
    ALWAYS_INLINE lanes_t next_columns_##bits(lanes_t columns, lanes_t width, lanes_t row) {                 \
        typedef uint##bits##_t type __attribute__((vector_size(WIDTH)));                                     \
        _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++) {                                       \
            const type next = (type)columns.part[i] + (type)width.part[i], over = next - (type)row.part[i];  \
            columns.part[i] = LESSER(bits, next, over);                                                      \
        }                                                                                                    \
        return columns;                                                                                      \
    }                                                                                                        \
    ALWAYS_INLINE lanes_t from_column_##bits(lanes_t lanes, lanes_t columns, lanes_t least, lanes_t outside) { \
        typedef uint##bits##_t type __attribute__((vector_size(WIDTH)));                                     \
        _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++) {                                       \
            const type column = (type)columns.part[i], bound = (type)least.part[i];                          \
            lanes.part[i] = CHOICE(bits, column, <, bound, lt, outside.part[i], lanes.part[i]);              \
        }                                                                                                    \
        return lanes;                                                                                        \
    }                                                                                                        \
    ALWAYS_INLINE lanes_t to_column_##bits(lanes_t lanes, lanes_t columns, lanes_t most, lanes_t outside) {   \
        typedef uint##bits##_t type __attribute__((vector_size(WIDTH)));                                     \
        _Pragma("GCC unroll 4") for (int i = 0; i < 64 / WIDTH; i++) {                                       \
            const type column = (type)columns.part[i], bound = (type)most.part[i];                           \
            lanes.part[i] = CHOICE(bits, column, >, bound, gt, outside.part[i], lanes.part[i]);              \
        }                                                                                                    \
        return lanes;                                                                                        \
    }
#if defined(__AVX512BW__)
#define LESSER(bits, a, b) (words)_mm512_min_epu##bits((__m512i)a, (__m512i)b)
#define CHOICE(bits, a, order, b, name, chosen, other)                                                       \
    (words)_mm512_mask_mov_epi##bits((__m512i)other, _mm512_cmp##name##_epu##bits##_mask((__m512i)a, (__m512i)b), \
                                     (__m512i)chosen)
#else
#define CHOICE(bits, a, order, b, name, chosen, other) \
    (((words)(a order b) & (words)chosen) | (~(words)(a order b) & (words)other))
#define LESSER(bits, a, b) CHOICE(bits, a, <, b, lt, a, b)
#endif
COLUMNS(16)
COLUMNS(32)
COLUMNS(64)

/* As memcpy of a vector, which compilers may cut in pieces that no later load finds again in the store buffer. */
ALWAYS_INLINE void copy_vector(void *y, const void *x) { store_lanes(load_lanes(x), y); }

/* A vector that is read once, where the compiler would rather read it again than hold it. */
ALWAYS_INLINE void load_once(const void *x, void *y) {
    for (int i = 0; i < 64; i += WIDTH) {
        words part;
        memcpy(&part, (const char *)x + i, sizeof part);
#if defined(__AVX512BW__)
        __asm__("" : "+v"(part));
#endif
        memcpy((char *)y + i, &part, sizeof part);
    }
}

/* 16-bit floats as keys, integers of the same order; n is the number of NaNs of either sign. Negative NaNs, the lowest
 * of all, turn over to the top, so that the key of minus infinity is the least integer. */
static inline int16_t key_of_float16(uint16_t half, int nans) {
    int16_t bits = (int16_t)half;
    return (int16_t)((bits ^ ((bits >> 15) & 0x7fff)) - nans);
}

static inline uint16_t float16_of_key(int16_t key, int nans) {
    int16_t bits = (int16_t)(key + nans);
    return (uint16_t)(bits ^ ((bits >> 15) & 0x7fff));
}

typedef int16_t keys __attribute__((vector_size(WIDTH)));

ALWAYS_INLINE void keys_of_row(const uint16_t *restrict x, int16_t *restrict y, ptrdiff_t n, int nans) {
    ptrdiff_t i = 0;
    for (; i + WIDTH / 2 <= n; i += WIDTH / 2) {
        keys bits;
        memcpy(&bits, x + i, sizeof bits);
        bits = (bits ^ ((bits >> 15) & 0x7fff)) - (int16_t)nans;
        memcpy(y + i, &bits, sizeof bits);
    }
    for (; i < n; i++)
        y[i] = key_of_float16(x[i], nans);
}

/* Squares. The sign of a NaN does not matter: what it reaches is taken again with magnitudes (see rows.pxi). */
ALWAYS_INLINE void square_eight(const float *x, double *y) {
#if defined(__AVX512F__)
    const __m512d wide = _mm512_cvtps_pd(_mm256_loadu_ps(x));
    _mm512_storeu_pd(y, _mm512_mul_pd(wide, wide));
#elif defined(__AVX__)
    const __m256d low = _mm256_cvtps_pd(_mm_loadu_ps(x)), high = _mm256_cvtps_pd(_mm_loadu_ps(x + 4));
    _mm256_storeu_pd(y, _mm256_mul_pd(low, low));
    _mm256_storeu_pd(y + 4, _mm256_mul_pd(high, high));
#else
    for (int i = 0; i < 8; i++)
        y[i] = (double)x[i] * x[i];
#endif
}

ALWAYS_INLINE void square_float_row(const float *restrict x, double *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8)
        square_eight(x + i, y + i);
    for (; i < n; i++)
        y[i] = (double)x[i] * x[i];
}

ALWAYS_INLINE void square_double_row(const double *restrict x, double *restrict y, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = x[i] * x[i];
}

#define SQUARES_OF_HALVES(name)                                                                     \
    ALWAYS_INLINE void square_##name(const uint16_t *restrict x, double *restrict y, ptrdiff_t n) {   \
        float wide[8];                                                                              \
        ptrdiff_t i = 0;                                                                            \
        for (; i + 8 <= n; i += 8) {                                                                \
            widen_##name(x + i, wide, 8);                                                           \
            square_eight(wide, y + i);                                                              \
        }                                                                                           \
        widen_##name(x + i, wide, n - i);                                                           \
        square_float_row(wide, y + i, n - i);                                                       \
    }
SQUARES_OF_HALVES(float16_row)
SQUARES_OF_HALVES(bfloat16_row)

/* A double as the float whose later narrowing to 16 bits rounds the double itself: the last bit is sticky. */
static inline float round_to_odd(double value) {
    float nearest = (float)value;
    double back = nearest;
    uint32_t bits = bits_of_float(nearest), too_large = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    uint32_t odd = (bits - too_large) | 1;
    return float_of_bits(back != value && value == value ? odd : bits);
}

/* Magnitudes as integers, whose order is that of the numbers: infinities and NaNs are the largest. */
#define INFINITE_FLOAT UINT32_C(0x7f800000)
#define INFINITE_DOUBLE UINT64_C(0x7ff0000000000000)
static inline uint32_t magnitude_of_float(float value) { return bits_of_float(value) & 0x7fffffff; }
static inline uint64_t magnitude_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & UINT64_C(0x7fffffffffffffff);
}

/* Below these, 1e-20 and 1e-200, a remainder could lose digits to an underflow. */
#define TINY_FLOAT UINT32_C(0x1e3ce508)
#define TINY_DOUBLE UINT64_C(0x16687e92154ef7ac)
/* The square of the least normal float16. */
#define TINY_SQUARE UINT32_C(0x31800000)
/* 2^-60 and 2^60: neither a quotient of two such magnitudes nor a step on the way to it leaves the normal numbers. */
#define MODERATE_LEAST UINT32_C(0x21800000)
#define MODERATE_MOST UINT32_C(0x5d800000)

/* x / d, correctly rounded, for a finite x that is 0 or not tiny, and r = 1 / d rounded. Two corrections by fused
 * multiply-adds: the first result is within a unit in the last place, from which one more correction rounds correctly
 * (Markstein, IBM J. Res. Dev. 34, 1990). Signs of zeros come out right. Where nothing is fused, division is faster. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define QUOTIENT(type, fma)                                       \
    static inline type quotient_##type(type x, type d, type r) { \
        type q = x * r;                                           \
        q = fma(fma(q, d, -x), -r, q);                            \
        return fma(fma(q, d, -x), -r, q);                         \
    }
#else
#define QUOTIENT(type, fma) \
    static inline type quotient_##type(type x, type d, type r) { return x / d; }
#endif
QUOTIENT(float, __builtin_fmaf)
QUOTIENT(double, __builtin_fma)

/* The same for a d of whole numbers up to MOST_DIVISOR, for which one correction is enough: all significands of x over
 * all odd d below 70000 were tried. Of doubles there are too many. */
#define MOST_DIVISOR 65536
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
static inline float mean_float(float x, float d, float r) {
    float q = x * r;
    return __builtin_fmaf(__builtin_fmaf(q, d, -x), -r, q);
}
#else
static inline float mean_float(float x, float d, float r) { return x / d; }
#endif

/* As memcpy, without a call for a few vectors. */
static inline void copy_bytes(const char *from, char *to, ptrdiff_t n) {
    ptrdiff_t i = 0;
    if (n <= 1024)
        for (; i + 64 <= n; i += 64)
            memcpy(to + i, from + i, 64);
    if (i < n)
        memcpy(to + i, from + i, (size_t)(n - i));
}

/* Rows of so many bytes; the last piece of a row overlaps the one before, rather than be smaller. */
#define COPY_ROWS(piece)                                                   \
    if (bytes >= piece) {                                                  \
        for (; rows > 0; rows--, from += from_stride, to += to_stride) {   \
            for (i = 0; i + piece < bytes; i += piece)                     \
                memcpy(to + i, from + i, piece);                           \
            memcpy(to + bytes - piece, from + bytes - piece, piece);       \
        }                                                                  \
        return;                                                            \
    }
static inline void copy_rows(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t rows,
                             ptrdiff_t bytes) {
    ptrdiff_t i;
    COPY_ROWS(WIDTH)
    COPY_ROWS(16)
    COPY_ROWS(8)
    COPY_ROWS(4)
    COPY_ROWS(2)
    COPY_ROWS(1)
}
#undef COPY_ROWS

/* Copies n elements of 1, 2, 4 or 8 bytes from anywhere to anywhere, turning their byte order where asked. */
static inline void move_elements(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t n,
                          ptrdiff_t itemsize, int swapped) {
    ptrdiff_t i;
    if (from_stride == itemsize && to_stride == itemsize && !swapped) {
        copy_bytes(from, to, n * itemsize);
        return;
    }
#define MOVE(type, turn)                               \
    for (i = 0; i < n; i++) {                          \
        type bits;                                     \
        memcpy(&bits, from + i * from_stride, sizeof bits); \
        bits = swapped ? turn : bits;                  \
        memcpy(to + i * to_stride, &bits, sizeof bits); \
    }
    if (itemsize == 1)
        MOVE(uint8_t, bits)
    else if (itemsize == 2)
        MOVE(uint16_t, (uint16_t)(bits << 8 | bits >> 8))
    else if (itemsize == 4)
        MOVE(uint32_t, __builtin_bswap32(bits))
    else
        MOVE(uint64_t, __builtin_bswap64(bits))
#undef MOVE
}

/* A vector of the first bytes of x and the rest of y, all of which can be read. */
typedef uint64_t eights __attribute__((vector_size(64)));

ALWAYS_INLINE void join_vectors(const void *x, ptrdiff_t bytes, const void *y, void *joined) {
    static const uint64_t ones_and_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    eights head, tail, mask;
    memcpy(&mask, (const char *)ones_and_zeros + 64 - bytes, sizeof mask);
    memcpy(&head, x, sizeof head);
    memcpy(&tail, y, sizeof tail);
    head = (head & mask) | (tail & ~mask);
    memcpy(joined, &head, sizeof head);
}

/* The elements of even and of odd place of two vectors of 64 bytes, as two vectors. */
#define EVEN1(l) 2 * (l)
#define EVEN2(l) EVEN1(l), EVEN1(l + 1)
#define EVEN4(l) EVEN2(l), EVEN2(l + 2)
#define EVEN8(l) EVEN4(l), EVEN4(l + 4)
#define EVEN16(l) EVEN8(l), EVEN8(l + 8)
#define EVEN32(l) EVEN16(l), EVEN16(l + 16)
#define EVEN64(l) EVEN32(l), EVEN32(l + 32)
#define PART(type, n)                                                                  \
    ALWAYS_INLINE void part_##type(const void *x, void *even, void *odd) {             \
        typedef type lanes __attribute__((vector_size(n * sizeof(type))));             \
        const lanes places = {EVEN##n(0)};                                             \
        const int size = sizeof places;                                                \
        _Pragma("GCC unroll 4") for (int i = 0; i < 64; i += size) {                   \
            lanes first, second, part;                                                 \
            memcpy(&first, (const char *)x + 2 * i, size);                             \
            memcpy(&second, (const char *)x + 2 * i + size, size);                     \
            part = __builtin_shuffle(first, second, places);                           \
            memcpy((char *)even + i, &part, size);                                     \
            part = __builtin_shuffle(first, second, places + 1);                       \
            memcpy((char *)odd + i, &part, size);                                      \
        }                                                                              \
    }
#if defined(__AVX512BW__)
PART(int8_t, 64)
PART(int16_t, 32)
PART(int32_t, 16)
PART(int64_t, 8)
#elif defined(__AVX2__)
PART(int8_t, 32)
PART(int16_t, 16)
PART(int32_t, 8)
PART(int64_t, 4)
#else
PART(int8_t, 16)
PART(int16_t, 8)
PART(int32_t, 4)
PART(int64_t, 2)
#endif

ALWAYS_INLINE void part(const void *x, void *even, void *odd, int itemsize) {
    if (itemsize == 1)
        part_int8_t(x, even, odd);
    else if (itemsize == 2)
        part_int16_t(x, even, odd);
    else if (itemsize == 4)
        part_int32_t(x, even, odd);
    else
        part_int64_t(x, even, odd);
}

ALWAYS_INLINE void part_lanes(lanes_t *first, lanes_t *second, int itemsize) {
    char both[128], even[64], odd[64];
    store_lanes(*first, both);
    store_lanes(*second, both + 64);
    part(both, even, odd, itemsize);
    *first = load_lanes(even);
    *second = load_lanes(odd);
}

/* 16 bytes as integers. */
ALWAYS_INLINE void widen_bytes(const void *x, int32_t *y, int is_signed) {
#if defined(__AVX512F__)
    const __m128i all = _mm_loadu_si128(x);
    _mm512_storeu_si512(y, is_signed ? _mm512_cvtepi8_epi32(all) : _mm512_cvtepu8_epi32(all));
#elif defined(__AVX2__)
    for (int i = 0; i < 16; i += 8) {
        const __m128i half = _mm_loadl_epi64((const __m128i *)((const char *)x + i));
        _mm256_storeu_si256((__m256i *)(y + i), is_signed ? _mm256_cvtepi8_epi32(half) : _mm256_cvtepu8_epi32(half));
    }
#else
    for (int i = 0; i < 16; i++)
        y[i] = is_signed ? ((const int8_t *)x)[i] : ((const uint8_t *)x)[i];
#endif
}

/* Default rounding, no flush-to-zero, for as long as a worker computes; the caller's state comes back afterwards. */
#if defined(__SSE2__)
typedef unsigned int float_state;
static inline float_state enter_default_floats(void) {
    float_state saved = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return saved;
}
static inline void leave_default_floats(float_state saved) { _mm_setcsr(saved); }
#elif defined(__aarch64__)
typedef uint64_t float_state;
static inline float_state enter_default_floats(void) {
    float_state saved, clear = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(clear));
    return saved;
}
static inline void leave_default_floats(float_state saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
#else
typedef int float_state;
static inline float_state enter_default_floats(void) { return 0; }
static inline void leave_default_floats(float_state saved) { (void)saved; }
#endif

#endif
