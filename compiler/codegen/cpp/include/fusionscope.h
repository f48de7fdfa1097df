// What every kernel of Fusionscope on a CPU is made of: functions of one element, written without branches so that the
// compiler turns a loop over them into vector instructions.
//
// Reading headers can take longer than compiling a kernel, so C++'s own are left out, and normal.h and trigonometry.h,
// which are code even where nothing calls it, are included by the kernels that need them.
#pragma once

#include "arithmetic.h"
#include "elementary.h"
#include "float8.h"
#include "half.h"
#include "lanes.h"
#include "positions.h"
#include "random.h"
#include "transpose.h"

namespace fs = fusionscope;

namespace fusionscope {
// The message of the first check that failed since `fusionscope_failed_check` was last asked, of this library's kernels.
static const char* failed_check = nullptr;

static inline void check(bool holds, const char* message) {
    const char* none = nullptr;
    if (!holds)
        __atomic_compare_exchange_n(&failed_check, &none, message, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// A loop that reads by such a pointer is made of single elements. GCC 12 makes wrong vectors of loads from 2i and 2i + 1
// that one condition on i guards, where both are stored side by side: a lane gets the condition of another i.
template <typename element> inline element* not_in_vectors(element* source) {
#if defined(__GNUC__) && !defined(__clang__)
    asm("" : "+r"(source));
#endif
    return source;
}

// Values on the heap, as many as the stack may not have room for. C's library gives it: C++'s is not linked.
template <typename T> struct Values {
    T* const first;
    explicit Values(int64_t count) : first(static_cast<T*>(__builtin_malloc(count * sizeof(T)))) {
        if (first == nullptr) __builtin_trap();
    }
    Values(const Values&) = delete;
    ~Values() { __builtin_free(first); }
    T& operator[](int64_t index) const { return first[index]; }
};

template <typename T> inline void fill(T* target, int64_t count, T value) {
    for (int64_t index = 0; index < count; ++index) target[index] = value;
}
}  // namespace fusionscope

extern "C" const char* fusionscope_failed_check() {
    return __atomic_exchange_n(&fs::failed_check, static_cast<const char*>(nullptr), __ATOMIC_SEQ_CST);
}
