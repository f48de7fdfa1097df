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

// Exponent and mantissa move into place, then a multiplication corrects the exponent and normalises denormals.
inline float to_float(half value) {
    const uint32_t magnitude = uint32_t(value.bits & 0x7FFF) << 13;
    const uint32_t scaled = bits_of_float(float_of_bits(magnitude) * 0x1p112f);
    const uint32_t finite = magnitude >= 0x0F800000 ? (magnitude | 0x7F800000) : scaled;
    return float_of_bits(finite | uint32_t(value.bits & 0x8000) << 16);
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

}  // namespace fusionscope
