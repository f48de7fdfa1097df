// Normally distributed numbers by counter, after G. Box and M. Muller.
#pragma once

#include "elementary.h"
#include "random.h"
#include "trigonometry.h"

namespace fusionscope {

inline float randn(int64_t seed, int64_t counter) {
    const Random bits = philox<kept_rounds>(seed, counter);
    const float radius = sqrt(-2.0f * log(maximum(1.0e-7f, uniform(bits.first))));
    return radius * cos(6.283185307179586f * uniform(bits.second));
}

}  // namespace fusionscope
