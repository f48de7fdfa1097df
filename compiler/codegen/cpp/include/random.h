// Random numbers by counter: the same element always gets the same number, whichever thread computes it.
#pragma once

#include "arithmetic.h"

namespace fusionscope {

// Rounds for numbers that are kept as values, and for those that are only compared with a bound: `ROUNDS` in
// compiler/ir/interpret.py has the reason.
constexpr int kept_rounds = 10, compared_rounds = 7;

// Philox 4x32 (Salmon et al., 2011): the seed is the key, the number of the draw the counter. With ten rounds bit for
// bit what Triton's tl.randint4x and, up to rounding, tl.randn give for the same seed and offset.
struct Random { uint32_t first, second, third, fourth; };

template <int rounds>
inline Random philox(int64_t seed, int64_t counter) {
    uint32_t c0 = uint32_t(counter), c1 = uint32_t(uint64_t(counter) >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(uint64_t(seed) >> 32);
    for (int round = 0; round < rounds; ++round) {
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
template <int rounds>
inline uint32_t word(int64_t seed, int64_t position) {
    const Random bits = philox<rounds>(seed, position >> 2);
    const uint32_t low = position & 1 ? bits.second : bits.first, high = position & 1 ? bits.fourth : bits.third;
    return position & 2 ? high : low;
}

inline float rand(int64_t seed, int64_t position) { return uniform(word<kept_rounds>(seed, position)); }

// Where a number is only compared, two in a row share a word, which the second one sees rotated by 16 bits; it is the
// upper 31 bits.
inline uint32_t rotated(uint32_t bits) { return bits << 16 | bits >> 16; }
inline float upper(uint32_t bits) { return float(int32_t(bits >> 1)) * 4.6566127342e-10f; }

inline float rand_compared(int64_t seed, int64_t position) {
    const uint32_t shared = word<compared_rounds>(seed, position >> 1);
    return upper(position & 1 ? rotated(shared) : shared);
}

// The numbers at `count` positions in a row, at the address that is returned: each word of each draw is used, and the
// draws are vector instructions. `numbers` has room for 6 more, those of the first and the last draw.
inline const float* draw(int64_t seed, int64_t position, int64_t count, float* numbers) {
    const int64_t first = position >> 2, draws = ((position + count + 3) >> 2) - first;
    #pragma omp simd
    for (int64_t index = 0; index < draws; ++index) {
        const Random bits = philox<kept_rounds>(seed, first + index);
        numbers[4 * index] = uniform(bits.first);
        numbers[4 * index + 1] = uniform(bits.second);
        numbers[4 * index + 2] = uniform(bits.third);
        numbers[4 * index + 3] = uniform(bits.fourth);
    }
    return numbers + (position & 3);
}

// The same of numbers that are only compared, with room for 14 more.
inline const float* draw_compared(int64_t seed, int64_t position, int64_t count, float* numbers) {
    const int64_t first = position >> 3, draws = ((position + count + 7) >> 3) - first;
    #pragma omp simd
    for (int64_t index = 0; index < draws; ++index) {
        const Random bits = philox<compared_rounds>(seed, first + index);
        numbers[8 * index] = upper(bits.first);
        numbers[8 * index + 1] = upper(rotated(bits.first));
        numbers[8 * index + 2] = upper(bits.second);
        numbers[8 * index + 3] = upper(rotated(bits.second));
        numbers[8 * index + 4] = upper(bits.third);
        numbers[8 * index + 5] = upper(rotated(bits.third));
        numbers[8 * index + 6] = upper(bits.fourth);
        numbers[8 * index + 7] = upper(rotated(bits.fourth));
    }
    return numbers + (position & 7);
}

}  // namespace fusionscope
