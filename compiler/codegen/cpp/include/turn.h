// Small matrices from rows to columns: what a kernel reads or writes across the direction of its vectors.
#pragma once

#include <stdint.h>

#include <utility>

namespace fusionscope {

// Rows and columns that are turned at a time, in registers: as many as a register has of four bytes.
#ifdef __AVX512F__
constexpr int TURNED = 16;
#else
constexpr int TURNED = 8;
#endif

template <int64_t bytes> struct whole_number;
template <> struct whole_number<1> { typedef uint8_t type; };
template <> struct whole_number<2> { typedef uint16_t type; };
template <> struct whole_number<4> { typedef uint32_t type; };
template <> struct whole_number<8> { typedef uint64_t type; };

template <typename word> struct row_of {
    typedef word type __attribute__((vector_size(TURNED * sizeof(word))));
};

// The elements of a and b in turn, from `first` on.
template <int first, typename row, int... place> inline row merge(row a, row b, std::integer_sequence<int, place...>) {
    return __builtin_shufflevector(a, b, (first + place / 2 + place % 2 * TURNED)...);
}

// A square of as many rows as a row has elements. Again and again, rows i and i + half are merged element by element
// into rows 2i and 2i + 1: each time moves one bit of an element's row number to its column number, and one back.
template <typename word> inline void turn_in_registers(
    const word* source, int64_t source_stride, word* target, int64_t target_stride) {
    constexpr int half = TURNED / 2;
    constexpr auto places = std::make_integer_sequence<int, TURNED>();
    typename row_of<word>::type rows[TURNED], merged[TURNED];
    for (int i = 0; i < TURNED; ++i) __builtin_memcpy(&rows[i], source + source_stride * i, sizeof(rows[i]));
    for (int bit = 1; bit < TURNED; bit *= 2) {
        for (int i = 0; i < half; ++i) {
            merged[2 * i] = merge<0>(rows[i], rows[i + half], places);
            merged[2 * i + 1] = merge<half>(rows[i], rows[i + half], places);
        }
        for (int i = 0; i < TURNED; ++i) rows[i] = merged[i];
    }
    for (int i = 0; i < TURNED; ++i) __builtin_memcpy(target + target_stride * i, &rows[i], sizeof(rows[i]));
}

// target[column * target_stride + row] = source[row * source_stride + column]; strides in elements.
template <typename element> inline void turn(
    const element* source, int64_t source_stride, int64_t rows, int64_t columns, element* target,
    int64_t target_stride) {
    typedef typename whole_number<sizeof(element)>::type word;
    const int64_t whole_rows = rows - rows % TURNED, whole_columns = columns - columns % TURNED;
    for (int64_t row = 0; row < whole_rows; row += TURNED) {
        for (int64_t column = 0; column < whole_columns; column += TURNED) {
            turn_in_registers(
                reinterpret_cast<const word*>(source + source_stride * row + column), source_stride,
                reinterpret_cast<word*>(target + target_stride * column + row), target_stride);
        }
    }
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column) {
            target[target_stride * column + row] = source[source_stride * row + column];
        }
    }
}

}  // namespace fusionscope
