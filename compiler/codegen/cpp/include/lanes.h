// What the lanes of a vector have summed up each for itself, as one sum: halves are added to halves, not lane to lane,
// where one addition would wait for the other.
#pragma once

namespace fusionscope {

template <typename T, int count> struct lanes_of {
    typedef T type __attribute__((vector_size(count * sizeof(T))));
};

template <int count, typename T> __attribute__((always_inline)) inline T sum_of_lanes(const T* lanes) {
    if constexpr (count == 1) {
        return lanes[0];
    } else if constexpr ((count & (count - 1)) == 0) {
        typename lanes_of<T, count / 2>::type low, high;
        __builtin_memcpy(&low, lanes, sizeof low);
        __builtin_memcpy(&high, lanes + count / 2, sizeof high);
        low += high;
        T sums[count / 2];
        __builtin_memcpy(sums, &low, sizeof low);
        return sum_of_lanes<count / 2>(sums);
    } else {
        T sum = lanes[0];
        for (int lane = 1; lane < count; ++lane) sum += lanes[lane];
        return sum;
    }
}

}  // namespace fusionscope
