// Random numbers by counter: the same element always gets the same number, whichever thread computes it.
#pragma once

#include "arithmetic.h"
#include "trigonometry.h"

namespace fusionscope {

// Philox 4x32-10 (Salmon et al., 2011): the seed is the key, the number of the draw the counter. Bit for bit what
// Triton's tl.rand4x and, up to rounding, tl.randn give for the same seed and offset.
struct Random { uint32_t first, second, third, fourth; };

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
    return {c0, c1, c2, c3};
}

inline float uniform(uint32_t bits) {
    const int32_t value = int32_t(bits);
    return float(value < 0 ? -value - 1 : value) * 4.6566127342e-10f;
}

// The four words of a draw are the uniform numbers at four positions in a row.
inline float rand(int64_t seed, int64_t position) {
    const Random bits = philox(seed, position >> 2);
    const uint32_t low = position & 1 ? bits.second : bits.first, high = position & 1 ? bits.fourth : bits.third;
    return uniform(position & 2 ? high : low);
}

inline float randn(int64_t seed, int64_t counter) {
    const Random bits = philox(seed, counter);
    const float radius = std::sqrt(-2.0f * log(maximum(1.0e-7f, uniform(bits.first))));
    return radius * cos(6.283185307179586f * uniform(bits.second));
}

}  // namespace fusionscope
