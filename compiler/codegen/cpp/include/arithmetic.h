// Arithmetic in which PyTorch and C++ differ: NaN in comparisons, rounding of quotients, shifts by more than the width.
#pragma once

#include "c_library.h"

namespace fusionscope {

// A number that the compiler is not to know.
inline int64_t unknown(int64_t value) {
    asm("" : "+r"(value));
    return value;
}

// What is stored of a bool. GCC 12 makes vectors of bytes that are compared, but not of a loop that loads bools.
inline bool truth(const bool& stored) { return reinterpret_cast<const uint8_t&>(stored) != 0; }

// NaN wins, as in PyTorch.
template <typename T> inline T minimum(T a, T b) { return (a != a) | (a < b) ? a : b; }
template <typename T> inline T maximum(T a, T b) { return (a != a) | (a > b) ? a : b; }

// Whether a value takes the place of the best so far in argmin and argmax: NaN first, then the value, then the position.
template <typename T> inline bool is_above(T a, int64_t at, T best, int64_t best_at) {
    const bool is_equal = (a == best) | ((a != a) & (best != best));
    return is_equal ? at < best_at : (a > best) | (a != a);
}
template <typename T> inline bool is_below(T a, int64_t at, T best, int64_t best_at) {
    const bool is_equal = (a == best) | ((a != a) & (best != best));
    return is_equal ? at < best_at : (a < best) | (a != a);
}

template <typename T> inline T relu(T a) { return a < T(0) ? T(0) : a; }
template <typename T> inline T square(T a) { return T(a * a); }
template <typename T> inline T reciprocal(T a) { return T(1) / a; }
template <typename T> inline T sign(T a) { return T((a > T(0)) - (a < T(0))); }
template <typename T> inline T absolute(T a) { return a < T(0) ? T(-a) : a; }
inline uint8_t absolute(uint8_t a) { return a; }
inline bool absolute(bool a) { return a; }
inline float absolute(float a) { return fabs(a); }
inline double absolute(double a) { return fabs(a); }
template <typename T> inline T rsqrt(T a) { return T(1) / sqrt(a); }

// Division that rounds towards minus infinity, and its remainder, which has the divisor's sign. An integer divided by
// zero gives zero: a kernel cannot raise, and the machine's instruction would end the process.
template <typename T> inline T truncdiv(T a, T b) { return b == T(0) ? T(0) : b == T(-1) ? T(0 - a) : T(a / b); }
inline uint8_t truncdiv(uint8_t a, uint8_t b) { return b == 0 ? 0 : a / b; }
inline float truncdiv(float a, float b) { return trunc(a / b); }
inline double truncdiv(double a, double b) { return trunc(a / b); }

template <typename T> inline T fmod(T a, T b) { return T(a - truncdiv(a, b) * b); }

#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__aarch64__)
// rest - n * size for the n that leaves least: at most half of size, or so much less than rest as a double has bits. As
// both are of floats, nothing is rounded.
inline double less_multiples(double rest, double size, double inverse) {
    return __builtin_fma(-__builtin_rint(rest * inverse), size, rest);
}

// The C library's function goes bit by bit; quotients of floats are below 2^277, which six doubles hold.
inline float fmod(float a, float b) {
    const double divisor = fabs(double(b)), size = divisor > 0x1p200 ? 0x1p200 : divisor, inverse = 1.0 / size;
    double rest = fabs(double(a));
    rest = less_multiples(rest, size, inverse);
    rest = less_multiples(rest, size, inverse);
    rest = less_multiples(rest, size, inverse);
    rest = less_multiples(rest, size, inverse);
    rest = less_multiples(rest, size, inverse);
    rest = less_multiples(rest, size, inverse);
    return copysign(float(rest < 0.0 ? rest + size : rest), a);
}
#else
inline float fmod(float a, float b) { return ::fmodf(a, b); }
#endif

template <typename T> inline T remainder(T a, T b) {
    const T rest = fmod(a, b);
    return (rest != T(0)) & ((rest < T(0)) != (b < T(0))) ? T(rest + b) : rest;
}

template <typename T> inline T floordiv(T a, T b) {
    const T quotient = truncdiv(a, b), rest = fmod(a, b);
    return T(quotient - ((rest != T(0)) & ((rest < T(0)) != (b < T(0))) ? 1 : 0));
}

template <typename T> inline T floordiv_of_floats(T a, T b) {
    const T rest = fmod(a, b);
    T quotient = (a - rest) / b;
    quotient = (rest != T(0)) & ((b < T(0)) != (rest < T(0))) ? quotient - T(1) : quotient;
    const T below = floor(quotient);
    const T nearest = quotient - below > T(0.5) ? below + T(1) : below;
    return b == T(0) ? a / b : quotient == T(0) ? copysign(T(0), a / b) : nearest;
}
inline float floordiv(float a, float b) { return floordiv_of_floats(a, b); }
inline double floordiv(double a, double b) { return floordiv_of_floats(a, b); }

template <typename T> inline T pow(T base, T exponent) {
    if (exponent < T(0)) return base == T(1) ? T(1) : base == T(-1) ? (exponent % 2 ? T(-1) : T(1)) : T(0);
    T result = 1;
    for (uint64_t rest = uint64_t(exponent); rest; rest >>= 1, base = T(base * base))
        if (rest & 1) result = T(result * base);
    return result;
}

// A shift by at least the width moves every bit out.
template <typename T> inline T left_shift(T a, T b) {
    return (b < T(0)) | (uint64_t(b) >= 8 * sizeof(T)) ? T(0) : T(uint64_t(a) << (b & T(8 * sizeof(T) - 1)));
}
template <typename T> inline T right_shift(T a, T b) {
    const bool is_out = (b < T(0)) | (uint64_t(b) >= 8 * sizeof(T));
    return T(a >> (is_out ? T(8 * sizeof(T) - (T(-1) < T(0))) : b));
}

}  // namespace fusionscope
