// Sums relative to another result of the row, joined from one part of the row to the next.
#pragma once

#include "arithmetic.h"
#include "elementary.h"

namespace fusionscope {

// Of a part: its largest value, finite where there is nothing but minus infinity, and the sum of exp(x - largest).
template <typename T>
inline void join_exponentials(T& largest, T& total, T other_largest, T other_total) {
    const T highest = maximum(largest, other_largest);
    total = total * exp(largest - highest) + other_total * exp(other_largest - highest);
    largest = highest;
}

// Of a part: how many values it has, their mean, and the sum of (x - mean)^2 (Chan, Golub and LeVeque).
template <typename T>
inline void join_squares(T& count, T& mean, T& total, T other_count, T other_mean, T other_total) {
    const T distance = other_mean - mean, share = other_count / (count + other_count);
    mean += distance * share;
    total += other_total + distance * distance * count * share;
    count += other_count;
}

}  // namespace fusionscope
