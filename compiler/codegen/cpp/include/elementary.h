// Exponentials, logarithms and their kin of a float: a range reduction, then a polynomial (Cephes by S. Moshier), without
// branches, so that a loop over them becomes vector instructions. They are right for infinities, NaN and denormals and
// off by some 2 units in the last place. They stand here because a call into the C library for each vector costs four
// times as much. Functions of a double come from the C library.
#pragma once

#include "c_library.h"

namespace fusionscope {

// The number of another type, as wide, that has the same bits.
template <typename To, typename From> inline To bitcast(From value) {
    static_assert(sizeof(To) == sizeof(From), "both are as wide");
    To result;
    __builtin_memcpy(&result, &value, sizeof result);
    return result;
}

inline float float_of_bits(uint32_t bits) { return bitcast<float>(bits); }
inline uint32_t bits_of_float(float value) { return bitcast<uint32_t>(value); }

// One of two numbers, by their bits. A choice that is written as one may become branches, which compilers join with
// those of later comparisons into paths of their own; of such a loop they make no vectors.
inline float select(bool condition, float chosen, float other) {
    const uint32_t mask = 0u - uint32_t(condition);
    return float_of_bits((bits_of_float(chosen) & mask) | (bits_of_float(other) & ~mask));
}

// The C library's signbit, of which GCC 12 cannot make short vectors.
inline bool has_sign(float value) { return int32_t(bits_of_float(value)) < 0; }
inline bool has_sign(double value) { return copysign(1.0, value) < 0.0; }

// a * b + c in one rounding. Where the machine has no instruction for it, the product is exact in double, and their sum
// is rounded to odd: to the one of its two neighbours whose last bit is set. A float has so many bits less that rounding
// this once more gives what one rounding of the exact sum does (S. Boldo and G. Melquiond, "Emulation of FMA and
// correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008).
inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    const double product = double(a) * double(b), sum = product + double(c), added = sum - product;
    const double error = (product - (sum - added)) + (double(c) - added);
    const uint64_t bits = bitcast<uint64_t>(sum);
    const bool is_even = (bits & 1) == 0, is_inexact = (error < 0.0) | (error > 0.0);
    const uint64_t outwards = (error > 0.0) == (sum > 0.0) ? 1 : uint64_t(-1);
    return float(bitcast<double>(bits + (is_even & is_inexact ? outwards : 0)));
#endif
}
inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }

// The sum of coefficients times the powers of x, the lowest one first.
template <typename T> inline T polynomial(T, T last) { return last; }
template <typename T, typename... Others> inline T polynomial(T x, T first, Others... others) {
    return multiply_add(polynomial(x, others...), x, first);
}

// x = n * ln 2 + r, so exp(x) = 2^n * (1 + less) with 1 + less = exp(r) and |r| <= ln 2 / 2.
struct Exponential { int32_t power; float less; };

inline Exponential split_exponential(float x) {
    const float n = __builtin_rintf(x * 1.44269504f);
    const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, x));
    const float p = polynomial(r, 5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f,
                               1.3981999507e-3f, 1.9875691500e-4f);
    return {int32_t(n), multiply_add(p, r * r, r)};
}

// What is far below, as masked elements of a softmax are, has two factors of zero: on the way to a number that is too
// small for a float, multiplications take the machine a hundred times as long.
inline float exp(float x) {
    float clamped = x < -176.0f ? -176.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;
    const Exponential e = split_exponential(clamped);
    // Two factors, since 2^n alone need not be a normal number.
    const int32_t first = e.power >> 1;
    return (e.less + 1.0f) * float_of_bits(uint32_t(first + 127) << 23) * float_of_bits(uint32_t(e.power - first + 127) << 23);
}

// For x from -87 to 88.72283, where nothing on the way is too large or too small.
inline float exp_of_moderate(float x) {
    const Exponential e = split_exponential(x);
    return float_of_bits(bits_of_float(e.less + 1.0f) + (uint32_t(e.power) << 23));
}

inline float expm1(float x) {
    float clamped = x < -20.0f ? -20.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;
    const Exponential e = split_exponential(clamped);
    const float half_power = float_of_bits(uint32_t(e.power + 126) << 23);
    const float result = 2.0f * multiply_add(half_power, e.less, half_power - 0.5f);
    return fabs(x) < 0x1p-25f ? x : result;
}

inline float exp2(float x) {
    float clamped = x < -254.0f ? -254.0f : x;
    clamped = clamped > 129.0f ? 129.0f : clamped;
    const float n = __builtin_rintf(clamped), r = clamped - n;
    const float p = polynomial(r, 1.0f, 6.931472028550421e-1f, 2.402264791363012e-1f, 5.550332471162809e-2f,
                               9.618437357674640e-3f, 1.339887440266574e-3f, 1.535336188319500e-4f);
    const int32_t power = int32_t(n), first = power >> 1;
    return p * float_of_bits(uint32_t(first + 127) << 23) * float_of_bits(uint32_t(power - first + 127) << 23);
}

// x = 2^exponent * (1 + fraction) with 1 + fraction between sqrt(1/2) and sqrt(2); log(1 + f) = f + rest(f).
struct Logarithm { float exponent, fraction, rest; };

inline Logarithm split_logarithm(float x) {
    const bool is_tiny = x < 0x1p-126f;
    const uint32_t bits = bits_of_float(select(is_tiny, x * 0x1p23f, x));
    const uint32_t shifted = bits - 0x3F3504F3;  // sqrt(1/2)
    const int32_t exponent = int32_t(shifted) >> 23;
    const float f = float_of_bits((shifted & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
    const float p = polynomial(f, 3.3333331174e-1f, -2.4999993993e-1f, 2.0000714765e-1f, -1.6668057665e-1f,
                               1.4249322787e-1f, -1.2420140846e-1f, 1.1676998740e-1f, -1.1514610310e-1f,
                               7.0376836292e-2f);
    return {float(exponent - 23 * int32_t(is_tiny)), f, p * f * (f * f)};
}

inline float logarithm_or_limit(float x, float finite) {
    const float limit = select(x == 0.0f, -INFINITY, select(x < 0.0f, NAN, x));
    return select((x > 0.0f) & (x < INFINITY), finite, limit);
}

inline float log(float x) {
    const Logarithm l = split_logarithm(x);
    const float low = multiply_add(-0.5f, l.fraction * l.fraction, multiply_add(-2.12194440e-4f, l.exponent, l.rest));
    return logarithm_or_limit(x, multiply_add(0.693359375f, l.exponent, l.fraction + low));
}

inline float log2(float x) {
    const Logarithm l = split_logarithm(x);
    const float low = multiply_add(-0.5f, l.fraction * l.fraction, l.rest);
    const float scaled = multiply_add(low, 0.44269504f, l.fraction * 0.44269504f);
    return logarithm_or_limit(x, scaled + low + l.fraction + l.exponent);
}

inline float log10(float x) { return log(x) * 0.434294482f; }

// log(u) for u = 1 + x, times x / (u - 1), which makes good what the addition lost (W. Kahan).
inline float log1p(float x) {
    const float u = 1.0f + x;
    const float result = log(u) * (x / (u - 1.0f));
    return select((u == 1.0f) | (u == INFINITY), x, select(u == 0.0f, -INFINITY, result));
}

// Zero where e^-x is no float, as in eager mode.
inline float sigmoid(float x) {
    float clamped = x < -88.72283f ? -88.72283f : x;
    clamped = clamped > 87.0f ? 87.0f : clamped;
    const float result = 1.0f / (1.0f + exp_of_moderate(-clamped));
    return x < -88.72283f ? 0.0f : result;
}

inline float tanh(float x) {
    const float size = fabs(x) > 10.0f ? 10.0f : fabs(x);
    const float e = expm1(2.0f * size);
    return __builtin_copysignf(e / (e + 2.0f), x);
}

// Up to 1 an odd polynomial; above, 1 minus the eighth power of a polynomial for the eighth root of 1 - erf(x), whose
// roundings the power hides where erf is near 1 (the idea of M. Abramowitz and I. Stegun, 7.1.28, without its division;
// both are minimax polynomials for the relative error of erf). Over all floats it is off by at most 2.20 units in the
// last place, by 0.63 where |x| < 0.1.
inline float erf(float x) {
    const uint32_t size = bits_of_float(x) & 0x7FFFFFFF, most = 0x407CCCCD;  // 3.95, from where erf is 1
    const float t = float_of_bits(size < most ? size : most);
    float root = polynomial(t, 1.00082195f, -0.145010089f, -6.15077488e-2f, -1.13052233e-2f, 1.28943822e-2f,
                            -2.46219114e-3f, 1.49116206e-4f);
    root *= root;
    root *= root;
    const float far = multiply_add(-root, root, 1.0f);
    const float near = polynomial(x * x, 0.128379166f, -0.376126258f, 0.112835852f, -2.68538132e-2f, 5.18832972e-3f,
                                  -8.01020978e-4f, 7.85391069e-5f);
    return fabs(x) > 1.0f ? __builtin_copysignf(far, x) : multiply_add(near, x, x);
}

inline double exp(double x) { return ::exp(x); }
inline double expm1(double x) { return ::expm1(x); }
inline double exp2(double x) { return ::exp2(x); }
inline double log(double x) { return ::log(x); }
inline double log2(double x) { return ::log2(x); }
inline double log10(double x) { return ::log10(x); }
inline double log1p(double x) { return ::log1p(x); }
inline double sigmoid(double x) { return 1.0 / (1.0 + ::exp(-x)); }
inline double tanh(double x) { return ::tanh(x); }
inline double erf(double x) { return ::erf(x); }

}  // namespace fusionscope
