// What every kernel of Fusionscope on a CPU is made of: functions of one element, written without branches so that
// the compiler turns a loop over them into vector instructions.
//
// The float functions are polynomials after a range reduction (Cephes by S. Moshier; erf and the sine's reduction
// after N. Juffa). They are right for infinities, NaN and denormals and off by some 2 units in the last place. They
// stand here because a call into the C library for each element costs ten times as much.
#pragma once

#include <cmath>
#include <cstdint>

namespace fusionscope {

// Storage of 16-bit floats; arithmetic on them is done in float.
struct half { uint16_t bits; };
struct bfloat16 { uint16_t bits; };

inline float float_of_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

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
    const float base = (std::fabs(value) * 0x1p112f) * 0x1p-110f;
    const uint32_t bias = (doubled & 0xFF000000) < 0x71000000 ? 0x71000000 : doubled & 0xFF000000;
    const uint32_t sum = bits_of_float(float_of_bits((bias >> 1) + 0x07800000) + base);
    const uint32_t rounded = ((sum >> 13) & 0x7C00) + (sum & 0x0FFF);
    return {uint16_t(((bits >> 16) & 0x8000) | (doubled > 0xFF000000 ? 0x7E00 : rounded))};
}

// a * b + c, in one rounding where the machine has an instruction for it.
inline float multiply_add(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

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
inline float absolute(float a) { return std::fabs(a); }
inline double absolute(double a) { return std::fabs(a); }
template <typename T> inline T rsqrt(T a) { return T(1) / std::sqrt(a); }

// x = n * ln 2 + r, so exp(x) = 2^n * exp(r) with |r| <= ln 2 / 2; the powers of two go in by their bits.
inline float exp(float x) {
    float clamped = x < -104.0f ? -104.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;
    const float n = __builtin_rintf(clamped * 1.44269504f);
    float r = multiply_add(n, -0.693359375f, clamped);
    r = multiply_add(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = multiply_add(p, r, 1.3981999507e-3f);
    p = multiply_add(p, r, 8.3334519073e-3f);
    p = multiply_add(p, r, 4.1665795894e-2f);
    p = multiply_add(p, r, 1.6666665459e-1f);
    p = multiply_add(p, r, 5.0000001201e-1f);
    p = multiply_add(p, r * r, r) + 1.0f;
    // Two factors, since 2^n alone need not be a normal number.
    const int32_t power = int32_t(n), first = power >> 1;
    return p * float_of_bits(uint32_t(first + 127) << 23) * float_of_bits(uint32_t(power - first + 127) << 23);
}

inline float expm1(float x) {
    float clamped = x < -20.0f ? -20.0f : x;
    clamped = clamped > 89.0f ? 89.0f : clamped;
    const float n = __builtin_rintf(clamped * 1.44269504f);
    float r = multiply_add(n, -0.693359375f, clamped);
    r = multiply_add(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = multiply_add(p, r, 1.3981999507e-3f);
    p = multiply_add(p, r, 8.3334519073e-3f);
    p = multiply_add(p, r, 4.1665795894e-2f);
    p = multiply_add(p, r, 1.6666665459e-1f);
    p = multiply_add(p, r, 5.0000001201e-1f);
    p = multiply_add(p, r * r, r);
    const float half_power = float_of_bits(uint32_t(int32_t(n) + 126) << 23);
    const float result = 2.0f * multiply_add(half_power, p, half_power - 0.5f);
    return x == 0.0f ? x : result;
}

inline float exp2(float x) {
    float clamped = x < -151.0f ? -151.0f : x;
    clamped = clamped > 129.0f ? 129.0f : clamped;
    const float n = __builtin_rintf(clamped), r = clamped - n;
    float p = 1.535336188319500e-4f;
    p = multiply_add(p, r, 1.339887440266574e-3f);
    p = multiply_add(p, r, 9.618437357674640e-3f);
    p = multiply_add(p, r, 5.550332471162809e-2f);
    p = multiply_add(p, r, 2.402264791363012e-1f);
    p = multiply_add(p, r, 6.931472028550421e-1f);
    p = multiply_add(p, r, 1.0f);
    const int32_t power = int32_t(n), first = power >> 1;
    return p * float_of_bits(uint32_t(first + 127) << 23) * float_of_bits(uint32_t(power - first + 127) << 23);
}

// x = 2^exponent * (1 + fraction) with 1 + fraction between sqrt(1/2) and sqrt(2); log(1 + f) = f + rest(f).
struct Logarithm { float exponent, fraction, rest; };

inline Logarithm split_logarithm(float x) {
    const bool is_tiny = x < 0x1p-126f;
    const uint32_t bits = bits_of_float(is_tiny ? x * 0x1p23f : x);
    const uint32_t shifted = bits - 0x3F3504F3;  // sqrt(1/2)
    const int32_t exponent = int32_t(shifted) >> 23;
    const float f = float_of_bits((shifted & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
    float p = 7.0376836292e-2f;
    p = multiply_add(p, f, -1.1514610310e-1f);
    p = multiply_add(p, f, 1.1676998740e-1f);
    p = multiply_add(p, f, -1.2420140846e-1f);
    p = multiply_add(p, f, 1.4249322787e-1f);
    p = multiply_add(p, f, -1.6668057665e-1f);
    p = multiply_add(p, f, 2.0000714765e-1f);
    p = multiply_add(p, f, -2.4999993993e-1f);
    p = multiply_add(p, f, 3.3333331174e-1f);
    return {float(exponent - (is_tiny ? 23 : 0)), f, p * f * (f * f)};
}

inline float logarithm_or_limit(float x, float finite) {
    float result = x == 0.0f ? -INFINITY : finite;
    result = x < 0.0f ? NAN : result;
    return (x == INFINITY) | (x != x) ? x : result;
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
    return (u == 1.0f) | (u == INFINITY) ? x : u == 0.0f ? -INFINITY : result;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

inline float tanh(float x) {
    const float size = std::fabs(x) > 10.0f ? 10.0f : std::fabs(x);
    const float e = expm1(2.0f * size);
    return __builtin_copysignf(e / (e + 2.0f), x);
}

inline float erf(float x) {
    const float square = x * x;
    const float t = std::fabs(x) > 5.0f ? 5.0f : std::fabs(x);
    const float t_square = t * t;
    float far = multiply_add(-1.72853470e-5f, t, 3.83197126e-4f);
    far = multiply_add(far, t_square, multiply_add(-3.88396438e-3f, t, 2.42546219e-2f));
    far = multiply_add(far, t, -1.06777877e-1f);
    far = multiply_add(far, t, -6.34846687e-1f);
    far = multiply_add(far, t, -1.28717512e-1f);
    far = 1.0f - exp(multiply_add(far, t, -t));
    float near = -5.96761703e-4f;
    near = multiply_add(near, square, 4.99119423e-3f);
    near = multiply_add(near, square, -2.67681349e-2f);
    near = multiply_add(near, square, 1.12819925e-1f);
    near = multiply_add(near, square, -3.76125336e-1f);
    near = multiply_add(near, square, 1.28379166e-1f);
    near = multiply_add(near, x, x);
    return t > 0.927734375f ? __builtin_copysignf(far, x) : near;
}

// Everything else, and every function of a double, comes from the C library.
inline double exp(double x) { return std::exp(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double log(double x) { return std::log(x); }
inline double log2(double x) { return std::log2(x); }
inline double log10(double x) { return std::log10(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline float sin(float x) { return std::sin(x); }
inline float cos(float x) { return std::cos(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }

// Division that rounds towards minus infinity, and its remainder, which has the divisor's sign. An integer divided by
// zero gives zero: a kernel cannot raise, and the machine's instruction would end the process.
template <typename T> inline T truncdiv(T a, T b) { return b == T(0) ? T(0) : b == T(-1) ? T(0 - a) : T(a / b); }
inline uint8_t truncdiv(uint8_t a, uint8_t b) { return b == 0 ? 0 : a / b; }
inline float truncdiv(float a, float b) { return std::trunc(a / b); }
inline double truncdiv(double a, double b) { return std::trunc(a / b); }

template <typename T> inline T fmod(T a, T b) { return T(a - truncdiv(a, b) * b); }
inline float fmod(float a, float b) { return std::fmod(a, b); }
inline double fmod(double a, double b) { return std::fmod(a, b); }

template <typename T> inline T remainder(T a, T b) {
    const T rest = fmod(a, b);
    return (rest != T(0)) & ((rest < T(0)) != (b < T(0))) ? T(rest + b) : rest;
}

template <typename T> inline T floordiv(T a, T b) {
    const T quotient = truncdiv(a, b), rest = fmod(a, b);
    return T(quotient - ((rest != T(0)) & ((rest < T(0)) != (b < T(0))) ? 1 : 0));
}

template <typename T> inline T floordiv_of_floats(T a, T b) {
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    quotient = (rest != T(0)) & ((b < T(0)) != (rest < T(0))) ? quotient - T(1) : quotient;
    const T floor = std::floor(quotient);
    const T nearest = quotient - floor > T(0.5) ? floor + T(1) : floor;
    return b == T(0) ? a / b : quotient == T(0) ? std::copysign(T(0), a / b) : nearest;
}
inline float floordiv(float a, float b) { return floordiv_of_floats(a, b); }
inline double floordiv(double a, double b) { return floordiv_of_floats(a, b); }

inline float pow(float a, float b) { return std::pow(a, b); }
inline double pow(double a, double b) { return std::pow(a, b); }
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
    return T(a >> (is_out ? T(8 * sizeof(T) - 1) : b));
}

// Philox 4x32-10 (Salmon et al., 2011): the seed is the key, the element's number the counter. Bit for bit what
// Triton's tl.rand and, up to rounding, tl.randn give for the same seed and offset.
struct Random { uint32_t first, second; };

inline Random philox(int64_t seed, int64_t counter) {
    uint32_t c0 = uint32_t(counter), c1 = uint32_t(uint64_t(counter) >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(uint64_t(seed) >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t(0xD2511F53u) * c0, b = uint64_t(0xCD9E8D57u) * c2;
        c0 = uint32_t(b >> 32) ^ c1 ^ k0;
        c2 = uint32_t(a >> 32) ^ c3 ^ k1;
        c1 = uint32_t(b);
        c3 = uint32_t(a);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1};
}

inline float uniform(uint32_t bits) {
    const int32_t value = int32_t(bits);
    return float(value < 0 ? -value - 1 : value) * 4.6566127342e-10f;
}

inline float rand(int64_t seed, int64_t counter) { return uniform(philox(seed, counter).first); }

inline float randn(int64_t seed, int64_t counter) {
    const Random bits = philox(seed, counter);
    const float radius = std::sqrt(-2.0f * log(maximum(1.0e-7f, uniform(bits.first))));
    return radius * cos(6.283185307179586f * uniform(bits.second));
}

}  // namespace fusionscope

namespace fs = fusionscope;
