// Sine and cosine of a float.
//
// Near zero a polynomial does (`near_sine`), far from it the range reduction needs hundreds of bits of pi, which is the
// C library's business. A branch between the two would keep a loop from becoming vectors, so it is taken once for each
// vector: the functions below follow the vector ABI of x86-64, in which `_ZGVeN16v_f` is f of 16 floats, and are called
// by the loops that the compiler vectorises. Other compilers and machines compute the same one by one.
#pragma once

#include "elementary.h"

namespace fusionscope {

// The largest argument for which `near_sine` is right; not true of NaN, which the C library handles.
constexpr float nearest_far = 131072.0f;
inline bool is_near(float x) { return fabs(x) <= nearest_far; }

template <int lanes> struct vector_of {
    typedef float floats __attribute__((vector_size(4 * lanes)));
    typedef int32_t wholes __attribute__((vector_size(4 * lanes)));
    typedef int64_t pairs __attribute__((vector_size(4 * lanes)));
};

#if defined(__FMA__) && defined(__GNUC__) && !defined(__clang__)
#define FUSIONSCOPE_HAS_VECTOR_SINES
inline vector_of<4>::floats multiply_add(vector_of<4>::floats a, vector_of<4>::floats b, vector_of<4>::floats c) {
    return __builtin_ia32_vfmaddps(a, b, c);
}
inline vector_of<8>::floats multiply_add(vector_of<8>::floats a, vector_of<8>::floats b, vector_of<8>::floats c) {
    return __builtin_ia32_vfmaddps256(a, b, c);
}
#ifdef __AVX512F__
inline vector_of<16>::floats multiply_add(vector_of<16>::floats a, vector_of<16>::floats b, vector_of<16>::floats c) {
    return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
}
#endif
#endif

// x = m * pi + r with |r| <= pi / 2, exact to 72 bits of pi, so that the sine of x is that of r, or less than zero by it
// for each second m. A sine has whole m, a cosine those between. A number of the size of `rounder` has no bits behind the
// point, so that adding it rounds, and the lowest bit of the sum says whether m is even; `rounder` is odd for a cosine,
// whose m = -1/2 is the first with the sign of r. The polynomial is the one of least relative error, 6.2e-9, among those
// that take four products with r * r; it is a factor of r, so that -0.0 stays what it is.
// `Float` is a float, or a vector of them, and `Whole` as many whole numbers.
template <bool is_cosine, typename Float, typename Whole> __attribute__((always_inline)) inline Float near_sine(Float x) {
    constexpr float rounder = is_cosine ? 12582913.0f : 12582912.0f;
    constexpr float half = is_cosine ? 0.5f : 0.0f;
    const auto all = [](float number) { return Float{} + number; };
    const Float shifted = multiply_add(x, all(0.318309886f), all(-half)) + rounder;
    const Float m = shifted - rounder + half;
    Float r = multiply_add(m, all(-0x1.921fb4p+01f), x);
    r = multiply_add(m, all(-0x1.4442d0p-23f), r);
    r = multiply_add(m, all(-0x1.846988p-47f), r);
    const Float s = r * r;
    Float factor = multiply_add(s, all(2.6060955e-6f), all(-1.98097769e-4f));
    factor = multiply_add(factor, s, all(8.33306927e-3f));
    factor = multiply_add(factor, s, all(-0.166666597f));
    factor = multiply_add(factor, s, all(1.0f));
    return bitcast<Float>(bitcast<Whole>(factor * r) ^ bitcast<Whole>(shifted) << 31);
}

template <bool is_cosine> inline float any_sine(float x) {
    return is_near(x) ? near_sine<is_cosine, float, int32_t>(x) : is_cosine ? ::cosf(x) : ::sinf(x);
}

}  // namespace fusionscope

#ifdef FUSIONSCOPE_HAS_VECTOR_SINES

extern "C" {
__attribute__((simd("notinbranch"), const)) float fusionscope_sin(float);
__attribute__((simd("notinbranch"), const)) float fusionscope_cos(float);
}

namespace fusionscope {

// Floats without their signs are ordered as their bits are, NaN above all.
template <int lanes> __attribute__((always_inline)) inline bool is_any_far(typename vector_of<lanes>::wholes bits) {
    const int32_t nearest = bitcast<int32_t>(nearest_far);
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_cmpd512_mask)
    if constexpr (lanes == 16) return __builtin_ia32_cmpd512_mask(bits, decltype(bits){} + nearest, 6, -1) != 0;
#endif
    const auto is_far = (typename vector_of<lanes>::pairs)(bits > nearest);
    int64_t any = 0;
    for (int pair = 0; pair < lanes / 2; ++pair) any |= is_far[pair];
    return any != 0;
}

// Where some are far, which is rare enough to be kept out of the others' way.
template <bool is_cosine, int lanes>
__attribute__((noinline, cold)) typename vector_of<lanes>::floats each_sine(typename vector_of<lanes>::floats x) {
    for (int lane = 0; lane < lanes; ++lane) x[lane] = any_sine<is_cosine>(x[lane]);
    return x;
}

template <bool is_cosine, int lanes>
__attribute__((always_inline)) inline typename vector_of<lanes>::floats vector_sine(
    typename vector_of<lanes>::floats x) {
    typedef typename vector_of<lanes>::wholes Whole;
    if (__builtin_expect(is_any_far<lanes>(bitcast<Whole>(x) & 0x7FFFFFFF), 0)) return each_sine<is_cosine, lanes>(x);
    return near_sine<is_cosine, decltype(x), Whole>(x);
}

}  // namespace fusionscope

#define FUSIONSCOPE_VECTOR(lanes, prefix) \
    extern "C" __attribute__((visibility("hidden"))) fusionscope::vector_of<lanes>::floats prefix##_fusionscope_sin( \
        fusionscope::vector_of<lanes>::floats x) { \
        return fusionscope::vector_sine<false, lanes>(x); \
    } \
    extern "C" __attribute__((visibility("hidden"))) fusionscope::vector_of<lanes>::floats prefix##_fusionscope_cos( \
        fusionscope::vector_of<lanes>::floats x) { \
        return fusionscope::vector_sine<true, lanes>(x); \
    }
FUSIONSCOPE_VECTOR(4, _ZGVbN4v)
#if defined(__AVX2__)
FUSIONSCOPE_VECTOR(8, _ZGVdN8v)
#elif defined(__AVX__)
FUSIONSCOPE_VECTOR(8, _ZGVcN8v)
#endif
#ifdef __AVX512F__
FUSIONSCOPE_VECTOR(16, _ZGVeN16v)
#endif
#undef FUSIONSCOPE_VECTOR

// The scalar versions, defined under another name: a body beside the declaration would get vector versions of its own.
extern "C" __attribute__((visibility("hidden"))) float fusionscope_scalar_sin(float x) __asm__("fusionscope_sin");
extern "C" __attribute__((visibility("hidden"))) float fusionscope_scalar_cos(float x) __asm__("fusionscope_cos");
float fusionscope_scalar_sin(float x) { return fusionscope::any_sine<false>(x); }
float fusionscope_scalar_cos(float x) { return fusionscope::any_sine<true>(x); }

namespace fusionscope {
inline float sin(float x) { return fusionscope_sin(x); }
inline float cos(float x) { return fusionscope_cos(x); }
}

#else

namespace fusionscope {
inline float sin(float x) { return any_sine<false>(x); }
inline float cos(float x) { return any_sine<true>(x); }
}

#endif

namespace fusionscope {
inline double sin(double x) { return ::sin(x); }
inline double cos(double x) { return ::cos(x); }
}
