// The polynomials of gamma.h, from `python tools/approximations.py write`.
#pragma once

#include "elementary.h"

namespace fusionscope {

template <typename T> inline T polynomial(T, T last) { return last; }
template <typename T, typename... Others> inline T polynomial(T x, T first, Others... others) {
    return multiply_add(polynomial(x, others...), x, first);
}

// log gamma(2 + s) / s for |s| <= 1/2.
inline float log_gamma_near(float x) {
    return polynomial(x,
        4.22784335e-1f, 3.22467034e-1f, -6.73522813e-2f, 2.05807883e-2f, -7.38617764e-3f, 2.89095619e-3f,
        -1.18583770e-3f, 5.05657420e-4f, -2.53861847e-4f, 1.15003558e-4f);
}
inline double log_gamma_near(double x) {
    return polynomial(x,
        4.2278433509846714e-1, 3.2246703342411322e-1, -6.7352301053198094e-2, 2.0580808427784546e-2,
        -7.3855510286741125e-3, 2.8905103307416914e-3, -1.1927539116953513e-3, 5.0966952473500459e-4,
        -2.2315475870541318e-4, 9.9457512995024832e-5, -4.4926232067590166e-5, 2.0507209325544351e-5,
        -9.4395421578115523e-6, 4.3749025615285670e-6, -2.0388179147899775e-6, 9.5489896646565929e-7,
        -4.5112265782192663e-7, 2.1313482607704041e-7, -9.5005613649525534e-8, 4.4805286737173216e-8,
        -3.1321130957181651e-8, 1.5188150671219617e-8);
}

// z times what is left by Stirling's formula, of 1 / z^2, for z >= 5/2.
inline float log_gamma_far(float x) {
    return polynomial(x,
        8.33333332e-2f, -2.77773238e-3f, 7.91239382e-4f, -5.48339922e-4f, 4.24466502e-4f);
}
inline double log_gamma_far(double x) {
    return polynomial(x,
        8.3333333333333333e-2, -2.7777777777773060e-3, 7.9365079338750235e-4, -5.9523803658471127e-4,
        8.4174389123387131e-4, -1.9170200802459775e-3, 6.3853945394133673e-3, -2.8677516737946084e-2,
        1.5655429295272316e-1, -9.0945042417167067e-1, 4.9332579664324751, -2.2499006930553533e+1,
        7.9238059332184383e+1, -1.9748805267686971e+2, 3.0636489801802539e+2, -2.2096727043235196e+2);
}

// sin(pi r) / r, of r^2, for |r| <= 1/2.
inline float sine_of_half_turns(float x) {
    return polynomial(x,
        3.14159265f, -5.16771276f, 2.55016332f, -5.99252198e-1f, 8.20504018e-2f, -7.02838641e-3f);
}
inline double sine_of_half_turns(double x) {
    return polynomial(x,
        3.1415926535897932, -5.1677127800499700, 2.5501640398773453, -5.9926452932078690e-1,
        8.2145886610993626e-2, -7.3704309437029233e-3, 4.6630278746467181e-4, -2.1915250322993031e-5,
        7.9485394883650771e-7, -2.2283752246648240e-8);
}

}  // namespace fusionscope
