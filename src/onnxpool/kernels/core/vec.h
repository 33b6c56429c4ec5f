/* An instruction set: the width of a register, and the few operations that portable C cannot express well. */
#ifndef ONNXPOOL_VEC_H
#define ONNXPOOL_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__AARCH64EL__)
#include <arm_neon.h>
#define NEON /* all such processors have it */
#endif

#include "width.h"

#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline)) /* copies in each loop would only cost compile time and space */

#define VECTOR(type, bytes) __attribute__((vector_size(bytes))) type
typedef VECTOR(float, WIDTH) float_v;
typedef VECTOR(double, WIDTH) double_v;
typedef VECTOR(int8_t, WIDTH) int8_v;
typedef VECTOR(uint8_t, WIDTH) uint8_v;
typedef VECTOR(int16_t, WIDTH) int16_v;
typedef VECTOR(uint16_t, WIDTH) uint16_v;
typedef VECTOR(int32_t, WIDTH) int32_v;
typedef VECTOR(uint32_t, WIDTH) uint32_v;
typedef VECTOR(int64_t, WIDTH) int64_v;
typedef VECTOR(uint64_t, WIDTH) uint64_v;
/* The same number of lanes at half the width; the types of narrow elements in conversions. */
typedef VECTOR(uint16_t, WIDTH / 2) half_words_v;
typedef VECTOR(int16_t, WIDTH / 2) half_int16_v;
typedef VECTOR(float, WIDTH / 2) half_float_v;
typedef VECTOR(int32_t, WIDTH / 2) half_int32_v;
typedef VECTOR(uint16_t, WIDTH / 4) quarter_words_v;
typedef VECTOR(int8_t, WIDTH / 2) half_int8_v;
typedef VECTOR(uint8_t, WIDTH / 2) half_uint8_v;
typedef VECTOR(int8_t, WIDTH / 4) quarter_int8_v;
typedef VECTOR(uint8_t, WIDTH / 4) quarter_uint8_v;
typedef VECTOR(uint32_t, WIDTH / 2) half_uint32_v;

#define READ(type, x) __extension__ ({ type read_; memcpy(&read_, x, sizeof read_); read_; })
#define BLEND(type, mask, a, b) ((type)(((mask) & (__typeof__(mask))(a)) | (~(mask) & (__typeof__(mask))(b))))

/* Lanes of two neighbours, of which the first becomes the low half, whatever the byte order. Lanes are unsigned. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FIRST_LOW(v) \
    __extension__ ({ __auto_type v_ = v; const int half_ = 4 * sizeof v_[0]; (__typeof__(v_))(v_ << half_ | v_ >> half_); })
#else
#define FIRST_LOW(v) (v)
#endif

/* ---- Conversions between numbers of different sizes. For NEON, gcc 12 compiles portable code lane by lane. */
#if defined(NEON)
#define IN_HALF(type, v) vcreate_##type(READ(uint32_t, &(v))) /* a quarter of a register */
#define QUARTER(type, half) __extension__ ({ __auto_type half_ = half; READ(type, &half_); })
#define CONVERSION(name, from, to, neon) INLINE to name(from v) { return (to)neon; }
#else
#define CONVERSION(name, from, to, neon) INLINE to name(from v) { return __builtin_convertvector(v, to); }
#endif
CONVERSION(bytes_to_words, half_uint8_v, uint16_v, vmovl_u8(v))
CONVERSION(signed_bytes_to_words, half_int8_v, int16_v, vmovl_s8(v))
CONVERSION(bytes_to_int32, quarter_uint8_v, int32_v, vmovl_u16(vget_low_u16(vmovl_u8(IN_HALF(u8, v)))))
CONVERSION(signed_bytes_to_int32, quarter_int8_v, int32_v, vmovl_s16(vget_low_s16(vmovl_s8(IN_HALF(s8, v)))))
CONVERSION(words_to_uint32, half_words_v, uint32_v, vmovl_u16(v))
CONVERSION(signed_words_to_int32, half_int16_v, int32_v, vmovl_s16(v))
CONVERSION(few_words_to_uint32, quarter_words_v, half_uint32_v, vget_low_u32(vmovl_u16(IN_HALF(u16, v))))
CONVERSION(uint32_to_uint64, half_uint32_v, uint64_v, vmovl_u32(v))
CONVERSION(float_to_double, half_float_v, double_v, vcvt_f64_f32(v))
CONVERSION(words_to_bytes, uint16_v, half_uint8_v, vmovn_u16(v))
CONVERSION(uint32_to_words, uint32_v, half_words_v, vmovn_u32(v))
CONVERSION(int32_to_bytes, int32_v, quarter_int8_v,
           QUARTER(quarter_int8_v, vmovn_s16(vcombine_s16(vmovn_s32(v), vdup_n_s16(0)))))
CONVERSION(few_uint32_to_words, half_uint32_v, quarter_words_v,
           QUARTER(quarter_words_v, vmovn_u32(vcombine_u32(v, vdup_n_u32(0)))))
CONVERSION(uint64_to_uint32, uint64_v, half_uint32_v, vmovn_u64(v))
CONVERSION(double_to_float, double_v, half_float_v, vcvt_f32_f64(v))

/* ---- A part of `bytes` bytes, of which only the bytes in the mask are in an array. If `bytes` is a constant, `part`
 * stays in a register: through memory, a load that is wider than the store before it would stall. */
#if defined(__AVX512BW__)
#define FIRST_BYTES(n) _bzhi_u64(~UINT64_C(0), (unsigned)(n))
INLINE void read_masked(void *part, const void *x, uint64_t mask, size_t bytes) { /* others become zeros */
    if (bytes == 64)
        _mm512_storeu_si512(part, _mm512_maskz_loadu_epi8(mask, x));
    else if (bytes == 32)
        _mm256_storeu_si256((__m256i *)part, _mm256_maskz_loadu_epi8((__mmask32)mask, x));
    else
        _mm_storeu_si128((__m128i *)part, _mm_maskz_loadu_epi8((__mmask16)mask, x));
}
INLINE void write_masked(void *y, const void *part, uint64_t mask, size_t bytes) {
    if (bytes == 64)
        _mm512_mask_storeu_epi8(y, mask, _mm512_loadu_si512(part));
    else if (bytes == 32)
        _mm256_mask_storeu_epi8(y, (__mmask32)mask, _mm256_loadu_si256((const __m256i *)part));
    else
        _mm_mask_storeu_epi8(y, (__mmask16)mask, _mm_loadu_si128((const __m128i *)part));
}
#endif

/* Whether a register has a lane that is not 0. */
INLINE int any_lane(const void *v) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    const __m256i bits = READ(__m256i, v);
    return !_mm256_testz_si256(bits, bits);
#elif defined(NEON)
    return vmaxvq_u32(READ(uint32x4_t, v)) != 0;
#else
    uint64_t parts[WIDTH / 8], any = 0;
    memcpy(parts, v, sizeof parts);
    for (int i = 0; i < WIDTH / 8; i++)
        any |= parts[i];
    return any != 0;
#endif
}

/* ---- The larger of two values: the earlier one if they are equal, and a NaN if there is one (the later of two). */
INLINE float_v max_float(float_v a, float_v b) {
#if defined(__AVX512F__)
    return (float_v)_mm512_mask_mov_ps(_mm512_max_ps((__m512)b, (__m512)a),
                                       _mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_UNORD_Q), (__m512)b);
#elif defined(__AVX2__)
    const __m256 nan = _mm256_cmp_ps((__m256)b, (__m256)b, _CMP_UNORD_Q);
    return (float_v)_mm256_blendv_ps(_mm256_max_ps((__m256)b, (__m256)a), (__m256)b, nan);
#else
    return BLEND(float_v, (b > a) | (b != b), b, a);
#endif
}
INLINE double_v max_double(double_v a, double_v b) {
#if defined(__AVX512F__)
    return (double_v)_mm512_mask_mov_pd(_mm512_max_pd((__m512d)b, (__m512d)a),
                                        _mm512_cmp_pd_mask((__m512d)b, (__m512d)b, _CMP_UNORD_Q), (__m512d)b);
#elif defined(__AVX2__)
    const __m256d nan = _mm256_cmp_pd((__m256d)b, (__m256d)b, _CMP_UNORD_Q);
    return (double_v)_mm256_blendv_pd(_mm256_max_pd((__m256d)b, (__m256d)a), (__m256d)b, nan);
#else
    return BLEND(double_v, (b > a) | (b != b), b, a);
#endif
}
#if defined(__AVX512BW__)
#define MAX_OF(name, a, b) (__typeof__(a))_mm512_max_##name((__m512i)(a), (__m512i)(b))
#elif defined(__AVX2__)
#define MAX_OF(name, a, b) (__typeof__(a))_mm256_max_##name((__m256i)(a), (__m256i)(b))
#elif defined(NEON)
#define MAX_OF(name, a, b) (__typeof__(a))MAX_##name(a, b)
#define MAX_epi8 vmaxq_s8
#define MAX_epu8 vmaxq_u8
#define MAX_epi16 vmaxq_s16
#define MAX_epi32 vmaxq_s32
#else
#define MAX_OF(name, a, b) BLEND(__typeof__(a), b > a, b, a)
#endif
INLINE int8_v max_int8(int8_v a, int8_v b) { return MAX_OF(epi8, a, b); }
INLINE uint8_v max_uint8(uint8_v a, uint8_v b) { return MAX_OF(epu8, a, b); }
INLINE int16_v max_int16(int16_v a, int16_v b) { return MAX_OF(epi16, a, b); }
INLINE int32_v max_int32(int32_v a, int32_v b) { return MAX_OF(epi32, a, b); }
INLINE int64_v max_int64(int64_v a, int64_v b) {
#if defined(__AVX512BW__)
    return MAX_OF(epi64, a, b);
#else
    return BLEND(int64_v, b > a, b, a);
#endif
}

/* ---- The smaller and the larger of two magnitudes. */
#if defined(__AVX512F__)
#define EXTREME(which, type, bits, a, b) (type)_mm512_##which##_epu##bits((__m512i)(a), (__m512i)(b))
#elif defined(__AVX2__)
#define EXTREME(which, type, bits, a, b) EXTREME_##bits(which, type, a, b)
#define EXTREME_32(which, type, a, b) (type)_mm256_##which##_epu32((__m256i)(a), (__m256i)(b))
#define EXTREME_64(which, type, a, b) COMPARED_##which(type, a, b)
#elif defined(NEON)
#define EXTREME(which, type, bits, a, b) EXTREME_##bits(which, type, a, b)
#define EXTREME_32(which, type, a, b) (type)v##which##q_u32((uint32x4_t)(a), (uint32x4_t)(b))
#define EXTREME_64(which, type, a, b) COMPARED_##which(type, a, b)
#else
#define EXTREME(which, type, bits, a, b) COMPARED_##which(type, a, b)
#endif
#define COMPARED_min(type, a, b) BLEND(type, (a) < (b), a, b)
#define COMPARED_max(type, a, b) BLEND(type, (a) < (b), b, a)

/* ---- Widening. */
INLINE float_v widen_bfloat16(const uint16_t *x) {
#if defined(__AVX512F__)
    return (float_v)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x)), 16);
#elif defined(__AVX2__)
    return (float_v)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x)), 16);
#elif defined(NEON)
    return (float_v)vshll_n_u16(READ(uint16x4_t, x), 16);
#else
    return (float_v)(words_to_uint32(READ(half_words_v, x)) << 16);
#endif
}
/* Exact and branch-free. NaNs become quiet. A subtraction normalises subnormals. */
#define WIDEN_FLOAT16(words, floats, half)                                                                          \
    __extension__ ({                                                                                                \
        const words sign_ = ((half) & 0x8000) << 16, magnitude_ = ((half) & 0x7fff) << 13;                          \
        const words exponent_ = magnitude_ & 0x0f800000;                                                            \
        const words special_ = magnitude_ + 0x70000000 + ((words)((magnitude_ & 0x007fffff) != 0) & 0x00400000 &     \
                                                         ~(magnitude_ & 0x00400000));                               \
        const words small_ = (words)((floats)(magnitude_ + 0x38800000) - (floats)((words){0} + 0x38800000));         \
        const words large_ = magnitude_ + 0x38000000;                                                               \
        (floats)(sign_ | BLEND(words, (words)(exponent_ == 0x0f800000), special_,                                   \
                               BLEND(words, (words)(exponent_ == 0), small_, large_)));                             \
    })
INLINE float_v widen_float16(const uint16_t *x) {
#if defined(__AVX512F__)
    return (float_v)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)x));
#elif defined(__F16C__)
    return (float_v)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
#elif defined(NEON)
    return (float_v)vcvt_f32_f16(READ(float16x4_t, x));
#else
    const uint32_v half = words_to_uint32(READ(half_words_v, x));
    return WIDEN_FLOAT16(uint32_v, float_v, half);
#endif
}
INLINE double_v widen_float(half_float_v x) {
#if defined(__AVX512F__)
    return (double_v)_mm512_cvtps_pd((__m256)x);
#elif defined(__AVX2__)
    return (double_v)_mm256_cvtps_pd((__m128)x);
#else
    return float_to_double(x);
#endif
}
#if defined(__F16C__) || defined(NEON)
#define SOFT INLINE
#else
#define SOFT RARE /* it has so many operations that a call adds little */
#endif
SOFT half_float_v widen_few_float16(quarter_words_v x) {
#if defined(__AVX512F__)
    return (half_float_v)_mm256_cvtph_ps((__m128i)x);
#elif defined(__F16C__)
    return (half_float_v)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)&x));
#elif defined(NEON)
    return (half_float_v)vget_low_f32(vcvt_f32_f16(vreinterpret_f16_u16(IN_HALF(u16, x))));
#else
    const half_uint32_v half = few_words_to_uint32(x);
    return WIDEN_FLOAT16(half_uint32_v, half_float_v, half);
#endif
}
INLINE half_float_v widen_few_bfloat16(quarter_words_v x) {
#if defined(__AVX512F__)
    return (half_float_v)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)x), 16);
#elif defined(__AVX2__)
    return (half_float_v)_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)&x)), 16);
#elif defined(NEON)
    return (half_float_v)vget_low_u32(vshll_n_u16(IN_HALF(u16, x), 16));
#else
    return (half_float_v)(few_words_to_uint32(x) << 16);
#endif
}
INLINE double_v widen_float16_to_double(const uint16_t *x) {
    return widen_float(widen_few_float16(READ(quarter_words_v, x)));
}
INLINE double_v widen_bfloat16_to_double(const uint16_t *x) {
    return widen_float(widen_few_bfloat16(READ(quarter_words_v, x)));
}
/* Elements of either format. */
INLINE half_float_v widen_few(const uint16_t *x, int is_bfloat16) {
    const quarter_words_v v = READ(quarter_words_v, x);
    return is_bfloat16 ? widen_few_bfloat16(v) : widen_few_float16(v);
}
INLINE int32_v widen_int8(const int8_t *x) {
#if defined(__AVX512F__)
    return (int32_v)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)x));
#elif defined(__AVX2__)
    return (int32_v)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)x));
#else
    return signed_bytes_to_int32(READ(quarter_int8_v, x));
#endif
}
INLINE int32_v widen_uint8(const uint8_t *x) {
#if defined(__AVX512F__)
    return (int32_v)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)x));
#elif defined(__AVX2__)
    return (int32_v)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)x));
#else
    return bytes_to_int32(READ(quarter_uint8_v, x));
#endif
}

INLINE int32_v widen_int16(const int16_t *x) {
#if defined(__AVX512F__)
    return (int32_v)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)x));
#elif defined(__AVX2__)
    return (int32_v)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)x));
#else
    return signed_words_to_int32(READ(half_int16_v, x));
#endif
}

INLINE int32_v widen_uint16(const void *x) {
#if defined(__AVX512F__)
    return (int32_v)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x));
#elif defined(__AVX2__)
    return (int32_v)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x));
#else
    return (int32_v)words_to_uint32(READ(half_words_v, x));
#endif
}

INLINE int16_v widen_int8_to_words(const int8_t *x) {
#if defined(__AVX512BW__)
    return (int16_v)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)x));
#elif defined(__AVX2__)
    return (int16_v)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)x));
#else
    return signed_bytes_to_words(READ(half_int8_v, x));
#endif
}
INLINE int16_v widen_uint8_to_words(const uint8_t *x) {
#if defined(__AVX512BW__)
    return (int16_v)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)x));
#elif defined(__AVX2__)
    return (int16_v)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)x));
#else
    return (int16_v)bytes_to_words(READ(half_uint8_v, x));
#endif
}

/* ---- The sums of pairs of neighbours. */
INLINE uint16_v add_neighbours_uint8(uint8_v v) {
#if defined(__AVX512BW__)
    return (uint16_v)_mm512_maddubs_epi16((__m512i)v, _mm512_set1_epi8(1));
#elif defined(__AVX2__)
    return (uint16_v)_mm256_maddubs_epi16((__m256i)v, _mm256_set1_epi8(1));
#elif defined(NEON)
    return (uint16_v)vpaddlq_u8(v);
#else
    return ((uint16_v)v & 0xff) + ((uint16_v)v >> 8);
#endif
}
INLINE int32_v add_neighbours_int16(int16_v v) {
#if defined(__AVX512BW__)
    return (int32_v)_mm512_madd_epi16((__m512i)v, _mm512_set1_epi16(1));
#elif defined(__AVX2__)
    return (int32_v)_mm256_madd_epi16((__m256i)v, _mm256_set1_epi16(1));
#elif defined(NEON)
    return (int32_v)vpaddlq_s16(v);
#else
    return ((int32_v)((uint32_v)v << 16) >> 16) + ((int32_v)v >> 16);
#endif
}

/* ---- The sums of groups of 8 bytes. */
INLINE uint64_v sum_eights(uint8_v v) {
#if defined(__AVX512BW__)
    return (uint64_v)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
#elif defined(__AVX2__)
    return (uint64_v)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
#elif defined(__SSE2__)
    return (uint64_v)_mm_sad_epu8((__m128i)v, _mm_setzero_si128());
#elif defined(NEON)
    return (uint64_v)vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(v)));
#else
    uint64_v sums = (uint64_v)v;
    sums = (sums & UINT64_C(0x00ff00ff00ff00ff)) + (sums >> 8 & UINT64_C(0x00ff00ff00ff00ff));
    sums = (sums & UINT64_C(0x0000ffff0000ffff)) + (sums >> 16 & UINT64_C(0x0000ffff0000ffff));
    return (sums & UINT64_C(0xffffffff)) + (sums >> 32);
#endif
}

/* ---- Narrowing, to nearest even. */
/* For numbers and quiet NaNs. Rounding may turn other NaNs into anything. */
#define ROUND_TO_BFLOAT16(words, bits) ((bits) + 0x7fff + (((bits) >> 16) & 1))
#define QUIET_TO_BFLOAT16(words, bits)                                                \
    BLEND(words, (words)(((bits) & 0x7fffffff) > 0x7f800000), ((bits) | 0x400000) & 0xffff0000, bits)
INLINE float_v quiet_to_bfloat16(float_v x) {
    const uint32_v bits = (uint32_v)x;
    return (float_v)QUIET_TO_BFLOAT16(uint32_v, bits);
}
INLINE uint32_v round_to_bfloat16(float_v x) { /* the result is the upper half of each lane */
    const uint32_v bits = (uint32_v)x;
    return ROUND_TO_BFLOAT16(uint32_v, bits);
}
INLINE half_words_v narrow_to_bfloat16(float_v x) {
    const uint32_v words = round_to_bfloat16(x) >> 16;
#if defined(__AVX2__) && !defined(__AVX512F__)
    return (half_words_v)_mm_packus_epi32(_mm256_castsi256_si128((__m256i)words), _mm256_extracti128_si256((__m256i)words, 1));
#else
    return uint32_to_words(words);
#endif
}
#define NARROW_FLOAT16(words, floats, bits)                                                                          \
    __extension__ ({                                                                                                \
        const words sign_ = ((bits) >> 16) & 0x8000, magnitude_ = (bits) & 0x7fffffff;                              \
        const words small_ = (words)((floats)magnitude_ + 0.5f) - 0x3f000000;                                       \
        const words large_ = (magnitude_ - 0x38000000 + 0xfff + ((magnitude_ >> 13) & 1)) >> 13;                    \
        const words nan_ = 0x7e00 | ((magnitude_ >> 13) & 0x1ff);                                                   \
        words half_ = BLEND(words, (words)(magnitude_ < 0x38800000), small_, large_);                               \
        half_ = BLEND(words, (words)(magnitude_ >= 0x47800000), (words){0} + 0x7c00, half_);                         \
        sign_ | BLEND(words, (words)(magnitude_ > 0x7f800000), nan_, half_);                                        \
    })
INLINE half_words_v narrow_to_float16(float_v x) {
#if defined(__AVX512F__)
    return (half_words_v)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__F16C__)
    return (half_words_v)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
#elif defined(NEON)
    return (half_words_v)vcvt_f16_f32(x);
#else
    const uint32_v bits = (uint32_v)x;
    return uint32_to_words(NARROW_FLOAT16(uint32_v, float_v, bits));
#endif
}
/* Doubles become floats first, which keep 16 significant bits. The last bit is sticky, which prevents double rounding.
 * Subnormal floats hold all 16 bits, down to half the least bfloat16. */
INLINE half_float_v round_to_odd(double_v x) {
    const int64_v bits = (int64_v)x, low = (int64_v){0} + ((INT64_C(1) << 37) - 1);
    return double_to_float((double_v)((bits | ((bits & low) + low)) & ~low));
}
INLINE quarter_words_v narrow_double_to_bfloat16(double_v x) {
    half_uint32_v bits = (half_uint32_v)round_to_odd(x);
    bits = QUIET_TO_BFLOAT16(half_uint32_v, bits);
    return few_uint32_to_words(ROUND_TO_BFLOAT16(half_uint32_v, bits) >> 16);
}
SOFT quarter_words_v narrow_double_to_float16(double_v x) {
    const half_float_v narrow = round_to_odd(x);
#if defined(__AVX512F__)
    return (quarter_words_v)_mm256_cvtps_ph((__m256)narrow, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__F16C__)
    const __m128i words = _mm_cvtps_ph((__m128)narrow, _MM_FROUND_TO_NEAREST_INT);
    quarter_words_v quarter;
    memcpy(&quarter, &words, sizeof quarter);
    return quarter;
#elif defined(NEON)
    return QUARTER(quarter_words_v, vcvt_f16_f32(vcombine_f32(narrow, vdup_n_f32(0))));
#else
    const half_uint32_v bits = (half_uint32_v)narrow;
    return few_uint32_to_words(NARROW_FLOAT16(half_uint32_v, half_float_v, bits));
#endif
}

INLINE quarter_words_v narrow_double_to_either(double_v x, int is_bfloat16) {
    return is_bfloat16 ? narrow_double_to_bfloat16(x) : narrow_double_to_float16(x);
}

INLINE half_uint8_v narrow_words(uint16_v v) { /* words are at most 255 */
#if defined(__AVX512BW__)
    return (half_uint8_v)_mm512_cvtepi16_epi8((__m512i)v);
#elif defined(__AVX2__)
    return (half_uint8_v)_mm_packus_epi16(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
#else
    return words_to_bytes(v);
#endif
}
INLINE uint16_v multiply_high(uint16_v a, uint16_v b) {
#if defined(__AVX512BW__)
    return (uint16_v)_mm512_mulhi_epu16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (uint16_v)_mm256_mulhi_epu16((__m256i)a, (__m256i)b);
#elif defined(NEON)
    const uint32x4_t low = vmull_u16(vget_low_u16(a), vget_low_u16(b)), high = vmull_high_u16(a, b);
    return (uint16_v)vuzp2q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
#else
    typedef VECTOR(uint32_t, 2 * WIDTH) wide_t;
    return __builtin_convertvector(__builtin_convertvector(a, wide_t) * __builtin_convertvector(b, wide_t) >> 16, uint16_v);
#endif
}
INLINE quarter_int8_v narrow_to_bytes(int32_v v) { /* the low ones */
#if defined(__AVX512F__)
    return (quarter_int8_v)_mm512_cvtepi32_epi8((__m512i)v);
#elif defined(__AVX2__)
    const __m256i low = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi32(0x0c080400));
    const __m128i pairs = _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    return READ(quarter_int8_v, &pairs);
#else
    return int32_to_bytes(v);
#endif
}

/* ---- Elements at even and at odd places of two adjacent registers. */
#define EVEN_ODD(type, even, odd)                                               \
    INLINE void split_##type(type##_v *first, type##_v *second) {               \
        const type##_v a = *first, b = *second;                                  \
        *first = __builtin_shufflevector(a, b, even);                            \
        *second = __builtin_shufflevector(a, b, odd);                            \
    }
#define FROM4(o) o, (o) + 2, (o) + 4, (o) + 6
#define FROM8(o) FROM4(o), FROM4((o) + 8)
#define FROM16(o) FROM8(o), FROM8((o) + 16)
#define FROM2(o) o, (o) + 2
/* Bytes and words are halves of wider lanes. Packing narrows these lanes within each 16 bytes. */
#if defined(__AVX512BW__)
#define IN_ORDER(v) _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), v)
#define PACKED(pack, bits, mask)                                                                                   \
    const __m512i a = (__m512i)*first, b = (__m512i)*second, low = mask;                                            \
    const __m512i even = _mm512_##pack(_mm512_and_si512(a, low), _mm512_and_si512(b, low));                         \
    const __m512i odd = _mm512_##pack(_mm512_srli_epi##bits(a, bits / 2), _mm512_srli_epi##bits(b, bits / 2));
#define ALL(bits, value) _mm512_set1_epi##bits(value)
#elif defined(__AVX2__)
#define IN_ORDER(v) _mm256_permute4x64_epi64(v, 0xd8)
#define PACKED(pack, bits, mask)                                                                                   \
    const __m256i a = (__m256i)*first, b = (__m256i)*second, low = mask;                                            \
    const __m256i even = _mm256_##pack(_mm256_and_si256(a, low), _mm256_and_si256(b, low));                         \
    const __m256i odd = _mm256_##pack(_mm256_srli_epi##bits(a, bits / 2), _mm256_srli_epi##bits(b, bits / 2));
#define ALL(bits, value) _mm256_set1_epi##bits(value)
#endif
#if defined(__AVX2__)
INLINE void split_int8(int8_v *first, int8_v *second) {
    PACKED(packus_epi16, 16, ALL(16, 0xff))
    *first = (int8_v)IN_ORDER(even);
    *second = (int8_v)IN_ORDER(odd);
}
INLINE void split_int16(int16_v *first, int16_v *second) {
    PACKED(packus_epi32, 32, ALL(32, 0xffff))
    *first = (int16_v)IN_ORDER(even);
    *second = (int16_v)IN_ORDER(odd);
}
#else
EVEN_ODD(int8, FROM16(0), FROM16(1))
EVEN_ODD(int16, FROM8(0), FROM8(1))
#endif
/* A split within each 16 bytes, or of pieces of 16 bytes, takes one instruction per result. */
#define IN_PIECES(name, type, register_type, first_half, second_half)                \
    INLINE void split_##name(type *first, type *second) {                             \
        const register_type a = (register_type)*first, b = (register_type)*second;   \
        *first = (type)first_half;                                                    \
        *second = (type)second_half;                                                  \
    }
#if defined(__AVX512BW__)
EVEN_ODD(int32, FROM16(0), FROM16(1))
EVEN_ODD(int64, FROM8(0), FROM8(1))
IN_PIECES(near_int32, int32_v, __m512, _mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd))
IN_PIECES(near_int64, int64_v, __m512i, _mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
IN_PIECES(far, int64_v, __m512i, _mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd))
#elif defined(__AVX2__)
IN_PIECES(near_int32, int32_v, __m256, _mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd))
IN_PIECES(near_int64, int64_v, __m256i, _mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
IN_PIECES(far, int64_v, __m256i, _mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31))
INLINE void split_int32(int32_v *first, int32_v *second) {
    split_near_int32(first, second);
    *first = (int32_v)IN_ORDER((__m256i)*first), *second = (int32_v)IN_ORDER((__m256i)*second);
}
INLINE void split_int64(int64_v *first, int64_v *second) {
    split_near_int64(first, second);
    *first = (int64_v)IN_ORDER((__m256i)*first), *second = (int64_v)IN_ORDER((__m256i)*second);
}
#else
EVEN_ODD(int32, FROM4(0), FROM4(1))
EVEN_ODD(int64, FROM2(0), FROM2(1))
#define split_near_int32 split_int32
#define split_near_int64 split_int64
INLINE void split_far(int64_v *first, int64_v *second) { (void)first, (void)second; } /* a register is one piece */
#endif

/* Elements at every third place of three registers. As the number of lanes is not a multiple of 3, elements of the same
 * phase occupy different lanes, so they can be blended and then reordered. */
#define OF_SECOND(n, phase, i) ((n + (i)) % 3 == phase ? n + (i) : (i))
#define OF_THIRD(n, phase, i) ((2 * n + (i)) % 3 == phase ? n + (i) : (i))
#define OF_PHASE(n, phase, i) ((3 * (i) + phase) % n)
#define LANES_2(of, n, phase, i) of(n, phase, i), of(n, phase, (i) + 1)
#define LANES_4(of, n, phase, i) LANES_2(of, n, phase, i), LANES_2(of, n, phase, (i) + 2)
#define LANES_8(of, n, phase, i) LANES_4(of, n, phase, i), LANES_4(of, n, phase, (i) + 4)
#define LANES_16(of, n, phase, i) LANES_8(of, n, phase, i), LANES_8(of, n, phase, (i) + 8)
#define LANES_32(of, n, phase, i) LANES_16(of, n, phase, i), LANES_16(of, n, phase, (i) + 16)
#define LANES_64(of, n, phase, i) LANES_32(of, n, phase, i), LANES_32(of, n, phase, (i) + 32)
#define PHASE(n, phase, y)                                                                                         \
    do {                                                                                                           \
        __extension__ const __auto_type two = __builtin_shufflevector(a, b, LANES_##n(OF_SECOND, n, phase, 0));    \
        __extension__ const __auto_type all = __builtin_shufflevector(two, c, LANES_##n(OF_THIRD, n, phase, 0));   \
        *y = __builtin_shufflevector(all, all, LANES_##n(OF_PHASE, n, phase, 0));                                  \
    } while (0)
#define THIRDS(type, n)                                                                     \
    INLINE void split_three_##type(type##_v *first, type##_v *second, type##_v *third) {    \
        const type##_v a = *first, b = *second, c = *third;                                  \
        PHASE(n, 0, first);                                                                 \
        PHASE(n, 1, second);                                                                \
        PHASE(n, 2, third);                                                                 \
    }
#if defined(__AVX512BW__)
THIRDS(int8, 64) THIRDS(int16, 32) THIRDS(int32, 16) THIRDS(int64, 8)
#elif defined(__AVX2__)
THIRDS(int8, 32) THIRDS(int16, 16) THIRDS(int32, 8) THIRDS(int64, 4)
#else
#if defined(NEON) /* one instruction takes bytes from three registers */
#define OF_BYTES(size, phase, i) ((3 * ((i) / size) + phase) * size + (i) % size)
#define BYTES(type, size, phase) (type##_v)vqtbl3q_u8(all, (uint8x16_t){LANES_16(OF_BYTES, size, phase, 0)})
#define THIRDS_OF_BYTES(type, size)                                                                   \
    INLINE void split_three_##type(type##_v *first, type##_v *second, type##_v *third) {              \
        const uint8x16x3_t all = {{(uint8x16_t)*first, (uint8x16_t)*second, (uint8x16_t)*third}};      \
        *first = BYTES(type, size, 0), *second = BYTES(type, size, 1), *third = BYTES(type, size, 2);  \
    }
THIRDS_OF_BYTES(int8, 1) THIRDS_OF_BYTES(int16, 2) THIRDS_OF_BYTES(int32, 4)
#else
THIRDS(int8, 16) THIRDS(int16, 8) THIRDS(int32, 4)
#endif
INLINE void split_three_int64(int64_v *first, int64_v *second, int64_v *third) {
    const int64_v a = *first, b = *second, c = *third;
    *first = __builtin_shufflevector(a, b, 0, 3);
    *second = __builtin_shufflevector(a, c, 1, 2);
    *third = __builtin_shufflevector(b, c, 0, 3);
}
#endif

/* Quotients, which are correctly rounded for totals that are 0 or not tiny. Floats take one step of Newton's method
 * with fused multiply-adds (Markstein, IBM J. Res. Dev. 34, 1990), and doubles take two. One step is enough for whole
 * counts up to 65536: all significands were tried with all of these counts. `inverse` is 1 / count, rounded. A step
 * subtracts the excess of a quotient. For a zero, the excess is 0 - 0 = +0, so a zero keeps its sign. */
INLINE float_v quotient_float(float_v total, float_v count, float_v inverse) {
#if defined(__AVX512F__)
    const __m512 t = (__m512)total, c = (__m512)count, f = (__m512)inverse, q = _mm512_mul_ps(t, f);
    return (float_v)_mm512_fnmadd_ps(_mm512_fmsub_ps(q, c, t), f, q);
#elif defined(__FMA__)
    const __m256 t = (__m256)total, c = (__m256)count, f = (__m256)inverse, q = _mm256_mul_ps(t, f);
    return (float_v)_mm256_fnmadd_ps(_mm256_fmsub_ps(q, c, t), f, q);
#else
    (void)inverse;
    return total / count;
#endif
}
INLINE double_v quotient_double(double_v total, double_v count, double_v inverse) {
#if defined(__AVX512F__)
    const __m512d t = (__m512d)total, c = (__m512d)count, f = (__m512d)inverse;
    __m512d q = _mm512_mul_pd(t, f);
    q = _mm512_fnmadd_pd(_mm512_fmsub_pd(q, c, t), f, q);
    return (double_v)_mm512_fnmadd_pd(_mm512_fmsub_pd(q, c, t), f, q);
#elif defined(__FMA__)
    const __m256d t = (__m256d)total, c = (__m256d)count, f = (__m256d)inverse;
    __m256d q = _mm256_mul_pd(t, f);
    q = _mm256_fnmadd_pd(_mm256_fmsub_pd(q, c, t), f, q);
    return (double_v)_mm256_fnmadd_pd(_mm256_fmsub_pd(q, c, t), f, q);
#else
    (void)inverse;
    return total / count;
#endif
}
/* Every NaN becomes the positive quiet NaN without payload. Which NaN an operation returns depends on the operands, on
 * the processor and on the operands' order, which compilers choose. */
INLINE float_v plain_nans_float(float_v v) {
    const float_v nan = (float_v){0} + __builtin_nanf("");
#if defined(__AVX512F__)
    return (float_v)_mm512_mask_mov_ps((__m512)v, _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q), (__m512)nan);
#elif defined(__AVX2__)
    return (float_v)_mm256_blendv_ps((__m256)v, (__m256)nan, (__m256)(v != v));
#else
    return BLEND(float_v, v != v, nan, v);
#endif
}
INLINE double_v plain_nans_double(double_v v) {
    const double_v nan = (double_v){0} + __builtin_nan("");
#if defined(__AVX512F__)
    return (double_v)_mm512_mask_mov_pd((__m512d)v, _mm512_cmp_pd_mask((__m512d)v, (__m512d)v, _CMP_UNORD_Q), (__m512d)nan);
#elif defined(__AVX2__)
    return (double_v)_mm256_blendv_pd((__m256d)v, (__m256d)nan, (__m256d)(v != v));
#else
    return BLEND(double_v, v != v, nan, v);
#endif
}
INLINE double_v root_double(double_v x) {
#if defined(__AVX512F__)
    return (double_v)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
    return (double_v)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
    return (double_v)_mm_sqrt_pd((__m128d)x);
#elif defined(NEON)
    return (double_v)vsqrtq_f64(x);
#else
    for (size_t i = 0; i < sizeof x / sizeof(double); i++)
        x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}
#endif
