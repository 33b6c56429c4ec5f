/* What Cython cannot say: 16-bit floats and byte order.
 *
 * Every instruction set gives the same bits: NaNs become quiet and keep their leading payload bits, subnormals are
 * exact, narrowing rounds to nearest even.
 */
#ifndef ONNXPOOL_OTHER_HALF_H
#define ONNXPOOL_OTHER_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__F16C__) || defined(__SSE2__)
#include <immintrin.h>
#endif

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

static inline float widen_bfloat16(uint16_t half) { return float_of_bits((uint32_t)half << 16); }

static inline uint16_t narrow_bfloat16(float value) {
    uint32_t bits = bits_of_float(value);
    uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : rounded) >> 16);
}

/* Rows of n elements side by side. */
static inline void widen_float16_row(const uint16_t *restrict x, float *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++)
        y[i] = widen_float16(x[i]);
}

static inline void narrow_float16_row(const float *restrict x, uint16_t *restrict y, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++)
        y[i] = narrow_float16(x[i]);
}

static inline void widen_bfloat16_row(const uint16_t *restrict x, float *restrict y, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = widen_bfloat16(x[i]);
}

static inline void narrow_bfloat16_row(const float *restrict x, uint16_t *restrict y, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = narrow_bfloat16(x[i]);
}

/* A double as the float whose later narrowing to 16 bits rounds the double itself: the last bit is sticky. */
static inline float round_to_odd(double value) {
    float nearest = (float)value;
    double back = nearest;
    uint32_t bits = bits_of_float(nearest), too_large = (back < 0 ? -back : back) > (value < 0 ? -value : value);
    uint32_t odd = (bits - too_large) | 1;
    return float_of_bits(back != value && value == value ? odd : bits);
}

/* Copies elements [i, j] of 2, 4 or 8 bytes from anywhere to anywhere. Turns their byte order where asked. Strides are
 * in bytes, for i and for j. */
static inline void copy_elements(const char *from, const ptrdiff_t *from_strides, char *to, const ptrdiff_t *to_strides,
                                 const ptrdiff_t *shape, ptrdiff_t size, int swapped) {
    if (!swapped && from_strides[1] == size && to_strides[1] == size) {
        for (ptrdiff_t i = 0; i < shape[0]; i++)
            memcpy(to + i * to_strides[0], from + i * from_strides[0], (size_t)(shape[1] * size));
        return;
    }
#define COPY(type, turn)                                                        \
    for (ptrdiff_t i = 0; i < shape[0]; i++)                                    \
        for (ptrdiff_t j = 0; j < shape[1]; j++) {                              \
            type bits;                                                          \
            memcpy(&bits, from + i * from_strides[0] + j * from_strides[1], sizeof bits); \
            bits = swapped ? turn(bits) : bits;                                 \
            memcpy(to + i * to_strides[0] + j * to_strides[1], &bits, sizeof bits); \
        }
    if (size == 2)
        COPY(uint16_t, __builtin_bswap16)
    else if (size == 4)
        COPY(uint32_t, __builtin_bswap32)
    else
        COPY(uint64_t, __builtin_bswap64)
#undef COPY
}

#endif
