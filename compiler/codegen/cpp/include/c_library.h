// The C library's functions, each by one name for float and double.
//
// C's own header is read, and not C++'s, whose templates and special functions take longer to compile than most kernels
// do. It also tells the compiler, by `omp declare simd`, which functions the library has for vectors; but only those who
// take fast arithmetic are told, since these may be off by 4 units in the last place. That is few enough here.
#pragma once

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#define __FAST_MATH__
#include <math.h>
#undef __FAST_MATH__
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <stdint.h>

namespace fusionscope {

#define FUSIONSCOPE_ONE_OPERAND(name) \
    inline float name(float x) { return ::name##f(x); } \
    inline double name(double x) { return ::name(x); }
#define FUSIONSCOPE_TWO_OPERANDS(name) \
    inline float name(float x, float y) { return ::name##f(x, y); } \
    inline double name(double x, double y) { return ::name(x, y); }

FUSIONSCOPE_ONE_OPERAND(fabs)
FUSIONSCOPE_ONE_OPERAND(floor)
FUSIONSCOPE_ONE_OPERAND(ceil)
FUSIONSCOPE_ONE_OPERAND(trunc)
FUSIONSCOPE_ONE_OPERAND(rint)
FUSIONSCOPE_ONE_OPERAND(sqrt)
FUSIONSCOPE_ONE_OPERAND(tan)
FUSIONSCOPE_ONE_OPERAND(asin)
FUSIONSCOPE_ONE_OPERAND(acos)
FUSIONSCOPE_ONE_OPERAND(atan)
FUSIONSCOPE_ONE_OPERAND(sinh)
FUSIONSCOPE_ONE_OPERAND(cosh)
FUSIONSCOPE_ONE_OPERAND(asinh)
FUSIONSCOPE_ONE_OPERAND(acosh)
FUSIONSCOPE_ONE_OPERAND(atanh)
FUSIONSCOPE_ONE_OPERAND(erfc)
FUSIONSCOPE_TWO_OPERANDS(atan2)
FUSIONSCOPE_TWO_OPERANDS(copysign)
FUSIONSCOPE_TWO_OPERANDS(hypot)
FUSIONSCOPE_TWO_OPERANDS(pow)

inline double fmod(double x, double y) { return ::fmod(x, y); }

#undef FUSIONSCOPE_ONE_OPERAND
#undef FUSIONSCOPE_TWO_OPERANDS

}  // namespace fusionscope
