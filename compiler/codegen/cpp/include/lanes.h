// What the lanes of a vector have gathered each for itself, as one value: halves are joined with halves, not lane with
// lane, where one operation would wait for the other. The order is the same for vectors of any width. A number
// of lanes that is no power of two is the sum of some.
#pragma once

namespace fusionscope {

// Bytes of the machine's vectors. Compilers take wider ones apart into single numbers.
#if defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

template <typename T, int count> struct lanes_of {
    typedef T type __attribute__((vector_size(count * sizeof(T))));
};

template <int count, typename T, typename Join>
__attribute__((always_inline)) inline T joined(const T* lanes, Join join) {
    if constexpr (count == 1) {
        return lanes[0];
    } else if constexpr ((count & (count - 1)) == 0) {
        constexpr int half = count / 2, at_once = half * sizeof(T) > REGISTER ? REGISTER / sizeof(T) : half;
        T halves[half];
        for (int lane = 0; lane < half; lane += at_once) {
            typename lanes_of<T, at_once>::type low, high;
            __builtin_memcpy(&low, lanes + lane, sizeof low);
            __builtin_memcpy(&high, lanes + half + lane, sizeof high);
            low = join(low, high);
            __builtin_memcpy(halves + lane, &low, sizeof low);
        }
        return joined<half>(halves, join);
    } else {
        constexpr int most = 1 << (31 - __builtin_clz(count));
        return join(joined<most>(lanes, join), joined<count - most>(lanes + most, join));
    }
}

// How two values are joined, and a value with the lanes.
#define FUSIONSCOPE_JOIN(name, expression) \
    template <int count, typename T> __attribute__((always_inline)) inline void name(T& whole, const T* lanes) { \
        const auto join = [](auto a, auto b) { return expression; }; \
        whole = join(whole, joined<count>(lanes, join)); \
    }
FUSIONSCOPE_JOIN(add_lanes, a + b)
FUSIONSCOPE_JOIN(multiply_lanes, a * b)
FUSIONSCOPE_JOIN(or_lanes, a | b)
FUSIONSCOPE_JOIN(and_lanes, a & b)
FUSIONSCOPE_JOIN(largest_of_lanes, b > a ? b : a)
FUSIONSCOPE_JOIN(smallest_of_lanes, b < a ? b : a)
#undef FUSIONSCOPE_JOIN

}  // namespace fusionscope
