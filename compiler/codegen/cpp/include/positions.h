// A value and its position as one whole number, so that vectors find the largest of many, and where it stands: above the
// value, in the order of whole numbers and NaN above all; below it the position, counted down, so that of equal values
// the first one wins.
#pragma once

#include "elementary.h"

namespace fusionscope {

template <typename T> inline int32_t in_order(T value) { return int32_t(value); }
inline int32_t in_order(float value) {
    const int32_t bits = bitcast<int32_t>(value + 0.0f);  // both zeros are one
    return value != value ? INT32_MAX : bits ^ ((bits >> 31) & INT32_MAX);
}

// What is larger where the value is smaller; NaN stays NaN.
template <typename T> inline int32_t reversed(T value) { return ~int32_t(value); }
inline float reversed(float value) { return -value; }

// Positions below 2^32.
template <typename T> inline int64_t with_position(T value, int64_t at) {
    return (int64_t(in_order(value)) << 32) | (~at & 0xFFFFFFFF);
}
inline int64_t position(int64_t value_and_position) { return ~value_and_position & 0xFFFFFFFF; }

}  // namespace fusionscope
