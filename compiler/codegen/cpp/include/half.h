// Storage of 16-bit floats. Arithmetic on them is done in float.
#pragma once

#include "elementary.h"

namespace fusionscope {

struct half { uint16_t bits; };
struct bfloat16 { uint16_t bits; };

inline float to_float(bfloat16 value) { return float_of_bits(uint32_t(value.bits) << 16); }

inline bfloat16 to_bfloat16(float value) {
    const uint32_t bits = bits_of_float(value);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even
    return {uint16_t(value != value ? 0x7FC0 : rounded)};
}

// Exponent and mantissa move into place. Of a half that is no normal number, the exponent of 2^-14 is put before the
// mantissa, and its value is taken away again: no number on the way is too small for a processor that counts such
// numbers as zero (torch.set_flush_denormal).
inline float to_float(half value) {
    const uint32_t magnitude = uint32_t(value.bits & 0x7FFF) << 13;
    const uint32_t small = bits_of_float(float_of_bits(magnitude + 0x38800000) - 0x1p-14f);
    const uint32_t finite = magnitude < 0x00800000 ? small : magnitude + 0x38000000;
    const uint32_t found = magnitude >= 0x0F800000 ? (magnitude | 0x7F800000) : finite;
    return float_of_bits(found | uint32_t(value.bits & 0x8000) << 16);
}

// Adding a power of two that lies 13 bits above the value's rounds the mantissa to 10 bits (M. Dukhan's FP16).
inline half to_half(float value) {
    const uint32_t bits = bits_of_float(value);
    const uint32_t doubled = bits + bits;
    const float base = (fabs(value) * 0x1p112f) * 0x1p-110f;
    const uint32_t bias = (doubled & 0xFF000000) < 0x71000000 ? 0x71000000 : doubled & 0xFF000000;
    const uint32_t sum = bits_of_float(float_of_bits((bias >> 1) + 0x07800000) + base);
    const uint32_t rounded = ((sum >> 13) & 0x7C00) + (sum & 0x0FFF);
    return {uint16_t(((bits >> 16) & 0x8000) | (doubled > 0xFF000000 ? 0x7E00 : rounded))};
}

// An element that lies anywhere. Machines gather vectors of 32 bits, not of 16: this is the half wanted of an aligned
// word, all of which lies in one page of memory with it. The other half may be nobody's, so no sanitizer looks.
template <typename element> __attribute__((no_sanitize("address"))) inline element gathered(const element* source, int64_t index) {
    typedef uint32_t word __attribute__((may_alias));
    const uint64_t address = reinterpret_cast<uint64_t>(source);
    const word* const words = reinterpret_cast<const word*>(address & ~uint64_t(3));
    const int64_t half_words = index + int64_t(address >> 1 & 1);
    return {uint16_t(words[half_words >> 1] >> (half_words & 1) * 16)};
}

// Rows of `count` elements from one type to the other.
template <typename narrow_type> inline void widen(const narrow_type* source, int64_t count, float* target) {
#pragma omp simd
    for (int64_t index = 0; index < count; ++index) target[index] = to_float(source[index]);
}

inline void narrow(const float* source, int64_t count, bfloat16* target) {
#pragma omp simd
    for (int64_t index = 0; index < count; ++index) target[index] = to_bfloat16(source[index]);
}

#ifdef __F16C__
// The machine's own conversions, of as many elements as a register has; what rounds is told to round to nearest.
#ifdef __AVX512F__
constexpr int CONVERTED = 16;
#else
constexpr int CONVERTED = 8;
#endif
typedef float converted_floats __attribute__((vector_size(4 * CONVERTED), aligned(4), may_alias));
typedef short converted_halves __attribute__((vector_size(2 * CONVERTED), aligned(2), may_alias));

inline void widen(const half* source, int64_t count, float* target) {
    int64_t index = 0;
    for (; index + CONVERTED <= count; index += CONVERTED) {
        const converted_halves halves = *reinterpret_cast<const converted_halves*>(source + index);
#ifdef __AVX512F__
        const converted_floats floats = __builtin_ia32_vcvtph2ps512_mask(halves, converted_floats{}, 0xFFFF, 4);
#else
        const converted_floats floats = __builtin_ia32_vcvtph2ps256(halves);
#endif
        *reinterpret_cast<converted_floats*>(target + index) = floats;
    }
    for (; index < count; ++index) target[index] = to_float(source[index]);
}

inline void narrow(const float* source, int64_t count, half* target) {
    int64_t index = 0;
    for (; index + CONVERTED <= count; index += CONVERTED) {
        const converted_floats floats = *reinterpret_cast<const converted_floats*>(source + index);
#ifdef __AVX512F__
        const converted_halves halves = __builtin_ia32_vcvtps2ph512_mask(floats, 0, converted_halves{}, 0xFFFF);
#else
        const converted_halves halves = __builtin_ia32_vcvtps2ph256(floats, 0);
#endif
        *reinterpret_cast<converted_halves*>(target + index) = halves;
    }
    for (; index < count; ++index) target[index] = to_half(source[index]);
}
#else
inline void narrow(const float* source, int64_t count, half* target) {
#pragma omp simd
    for (int64_t index = 0; index < count; ++index) target[index] = to_half(source[index]);
}
#endif

}  // namespace fusionscope
