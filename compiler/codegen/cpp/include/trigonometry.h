// Sine and cosine of a float.
//
// Near zero a polynomial does (`near_sine`), far from it the range reduction needs hundreds of bits of pi, which is the
// C library's business. A branch between the two would keep a loop from becoming vectors, so it is taken once for each
// vector: the functions below follow the vector ABI of x86-64, in which `_ZGVeN16v_f` is f of 16 floats, and are called
// by the loops that the compiler vectorises. Other compilers and machines call the C library.
#pragma once

#include "elementary.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

extern "C" {
__attribute__((simd("notinbranch"), const)) float fusionscope_sin(float);
__attribute__((simd("notinbranch"), const)) float fusionscope_cos(float);
}

namespace fusionscope {

// The largest argument for which `near_sine` is right; not true of NaN, which the C library handles.
inline bool is_near(float x) { return fabs(x) <= 131072.0f; }

// x = n * pi / 2 + r with |r| <= pi / 4, exact to 72 bits of pi; n says which of sin(r), cos(r) it is and its sign.
template <bool is_cosine> inline float near_sine(float x) {
    const float n = __builtin_rintf(x * 0.636619747f);
    float r = multiply_add(n, -0x1.921fb4p+00f, x);
    r = multiply_add(n, -0x1.4442d0p-24f, r);
    r = multiply_add(n, -0x1.846988p-48f, r);
    const float s = r * r;
    float cosine = 2.443315711809948e-5f;
    cosine = multiply_add(cosine, s, -1.388731625493765e-3f);
    cosine = multiply_add(cosine, s, 4.166664568298827e-2f);
    cosine = multiply_add(cosine, s, -0.5f);
    cosine = multiply_add(cosine, s, 1.0f);
    float sine = -1.9515295891e-4f;
    sine = multiply_add(sine, s, 8.3321608736e-3f);
    sine = multiply_add(sine, s, -1.6666654611e-1f);
    sine = multiply_add(sine * s, r, r);
    const uint32_t quadrant = uint32_t(int32_t(n)) + (is_cosine ? 1 : 0);
    const float value = quadrant & 1 ? cosine : sine;
    return float_of_bits(bits_of_float(value) ^ (quadrant & 2) << 30);
}

template <bool is_cosine> inline float any_sine(float x) {
    return is_near(x) ? near_sine<is_cosine>(x) : is_cosine ? ::cosf(x) : ::sinf(x);
}

template <bool is_cosine, typename Vector> __attribute__((always_inline)) inline Vector vector_sine(Vector x) {
    constexpr int lanes = sizeof(Vector) / sizeof(float);
    float in[lanes], out[lanes];
    __builtin_memcpy(in, &x, sizeof x);
    int far = 0;
    #pragma omp simd reduction(|: far)
    for (int lane = 0; lane < lanes; ++lane) {
        out[lane] = near_sine<is_cosine>(in[lane]);
        far |= !is_near(in[lane]);
    }
    if (__builtin_expect(far, 0))
        for (int lane = 0; lane < lanes; ++lane) out[lane] = any_sine<is_cosine>(in[lane]);
    __builtin_memcpy(&x, out, sizeof x);
    return x;
}

typedef float float4 __attribute__((vector_size(16)));
typedef float float8 __attribute__((vector_size(32)));
typedef float float16 __attribute__((vector_size(64)));

}  // namespace fusionscope

#define FUSIONSCOPE_VECTOR(type, prefix) \
    extern "C" __attribute__((visibility("hidden"))) fusionscope::type prefix##_fusionscope_sin(fusionscope::type x) { \
        return fusionscope::vector_sine<false>(x); \
    } \
    extern "C" __attribute__((visibility("hidden"))) fusionscope::type prefix##_fusionscope_cos(fusionscope::type x) { \
        return fusionscope::vector_sine<true>(x); \
    }
FUSIONSCOPE_VECTOR(float4, _ZGVbN4v)
#if defined(__AVX2__)
FUSIONSCOPE_VECTOR(float8, _ZGVdN8v)
#elif defined(__AVX__)
FUSIONSCOPE_VECTOR(float8, _ZGVcN8v)
#endif
#ifdef __AVX512F__
FUSIONSCOPE_VECTOR(float16, _ZGVeN16v)
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
inline float sin(float x) { return ::sinf(x); }
inline float cos(float x) { return ::cosf(x); }
}

#endif

namespace fusionscope {
inline double sin(double x) { return ::sin(x); }
inline double cos(double x) { return ::cos(x); }
}
