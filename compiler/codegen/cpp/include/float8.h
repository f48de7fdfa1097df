// Storage of 8-bit floats. Arithmetic on them is done in float, and what is stored has been rounded already.
#pragma once

#include "elementary.h"

namespace fusionscope {

template <int mantissa_bits>
struct float_of_8_bits { uint8_t bits; };

using float8_e4m3fn = float_of_8_bits<3>;
using float8_e5m2 = float_of_8_bits<2>;

template <int mantissa_bits> constexpr int float8_bias = mantissa_bits == 3 ? 7 : 15;
// From here on the bits stand for no number: a NaN, or infinity where there is one.
template <int mantissa_bits> constexpr uint32_t float8_special = mantissa_bits == 3 ? 0x7F : 0x7C;
// How many of the smallest number make 1.
template <int mantissa_bits> constexpr float float8_units = mantissa_bits == 3 ? 0x1p9f : 0x1p16f;

template <int mantissa_bits>
inline float to_float(float_of_8_bits<mantissa_bits> value) {
    constexpr int shift = 23 - mantissa_bits;
    const uint32_t magnitude = value.bits & 0x7F;
    const uint32_t small = bits_of_float(float(int32_t(magnitude)) * (1 / float8_units<mantissa_bits>));
    const uint32_t normal = (magnitude << shift) + (uint32_t(127 - float8_bias<mantissa_bits>) << 23);
    const uint32_t special = mantissa_bits == 3 ? 0x7FC00000 : (magnitude << shift) | 0x7F800000;
    const uint32_t finite = magnitude < (1 << mantissa_bits) ? small : normal;
    const uint32_t bits = magnitude >= float8_special<mantissa_bits> ? special : finite;
    return float_of_bits(bits | uint32_t(value.bits & 0x80) << 24);
}

// Of a number that the format has.
template <int mantissa_bits>
inline float_of_8_bits<mantissa_bits> to_float8(float value) {
    const uint32_t bits = bits_of_float(value);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    const float size = float_of_bits(magnitude);
    const bool is_normal = magnitude >= uint32_t(128 - float8_bias<mantissa_bits>) << 23;
    const uint32_t small = uint32_t(int32_t(is_normal ? 0.0f : size * float8_units<mantissa_bits>));
    const uint32_t normal = (magnitude >> (23 - mantissa_bits)) - ((127 - float8_bias<mantissa_bits>) << mantissa_bits);
    const uint32_t number = is_normal ? normal : small;
    const uint32_t bounded = magnitude >= 0x7F800000 ? float8_special<mantissa_bits> : number;
    return {uint8_t((magnitude > 0x7F800000 ? 0x7F : bounded) | (bits >> 24 & 0x80))};
}

}  // namespace fusionscope
