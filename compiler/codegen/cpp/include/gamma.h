// The logarithm of the absolute value of the gamma function, without branches, so that a loop over it becomes vector
// instructions; the C library's takes ten times as long.
//
//     |x - 2| <= 1/2 once 1 or 2 have been added:  log gamma(2 + s) = s * near(s), less the logarithm of the product
//                                                  by which gamma grows on the way there
//     x >= 5/2:   Stirling's formula, (x - 1/2) (log x - 1) + (log(2 pi) - 1) / 2 + far(1 / x^2) / x
//     x < -1/2:   the reflection log gamma(-y) = log pi - log(y |sin(pi y)|) - log gamma(y)
//
// (NIST's Digital Library of Mathematical Functions, 5.5.1, 5.5.3 and 5.11.1.) Off by some 5 units in the last place,
// also near 1 and 2, where it is 0; below -2, where it is 0 too, by some units in the last place of 1.
#pragma once

#include "gamma_series.h"

namespace fusionscope {

inline double select(bool condition, double chosen, double other) {
    const uint64_t mask = 0ull - uint64_t(condition);
    return bitcast<double>((bitcast<uint64_t>(chosen) & mask) | (bitcast<uint64_t>(other) & ~mask));
}

// log(x) + base of a positive number; base takes away what a large logarithm would lose its last digits by.
inline float logarithm_and(float x, float base) {
    const Logarithm l = split_logarithm(x);
    const float low = multiply_add(-0.5f, l.fraction * l.fraction, multiply_add(-2.12194440e-4f, l.exponent, l.rest));
    return multiply_add(0.693359375f, l.exponent, base) + (l.fraction + low);
}
inline double logarithm_and(double x, double base) { return ::log(x) + base; }

// Compilers leave a call of what is so long, of which they make no vectors.
template <typename T> __attribute__((always_inline)) inline T log_of_gamma(T x) {
    const bool is_reflected = x < T(-0.5);
    const T z = select(is_reflected, -x, x);
    const bool is_far = z >= T(2.5), is_below_two = z < T(1.5), is_below_one = z < T(0.5);
    const T s = z - select(is_below_one, T(0), select(is_below_two, T(1), T(2)));
    const T grown = select(is_below_one, fabs(z * (z + T(1))), select(is_below_two | is_far, z, T(1)));
    const T logarithm = logarithm_and(grown, select(is_far, T(-1), T(0)));
    const T inverse = T(1) / z;
    const T far = (z - T(0.5)) * logarithm + (T(0.41893853320467274) + log_gamma_far(inverse * inverse) * inverse);
    const T positive = select(is_far, far, s * log_gamma_near(s) - logarithm);
    const T turn = z - rint(z);
    const T product = fabs(z * turn * sine_of_half_turns(turn * turn));
    const T reflected = T(1.1447298858494002) - logarithm_and(product, T(0)) - positive;
    const T finite = select(is_reflected, reflected, positive);
    const T value = select((x == T(0)) | (is_reflected & (turn == T(0))), T(INFINITY), finite);
    return select(fabs(x) < T(INFINITY), value, x * x);
}

__attribute__((always_inline)) inline float lgamma(float x) { return log_of_gamma(x); }
__attribute__((always_inline)) inline double lgamma(double x) { return log_of_gamma(x); }

}  // namespace fusionscope
