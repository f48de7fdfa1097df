// Small matrices from rows to columns: what a kernel reads or writes across the direction of its vectors.
//
// Elements are moved as words of their width. C++ lets a compiler assume that a store of a whole number changes no float,
// so it may move that store behind the loop which reads the floats. A `Word` may alias any other type.
#pragma once

#include <stdint.h>

namespace fusionscope {

// Rows and columns that are transposed at a time, in registers: as many as a register has of four bytes.
#ifdef __AVX512F__
constexpr int SQUARE = 16;
#else
constexpr int SQUARE = 8;
#endif

// A type of its own for each width, since a template takes a type without the attributes that were added to it.
template <typename number> struct __attribute__((may_alias)) Word { typedef number type; number value; };

template <int64_t bytes> struct word_of;
template <> struct word_of<1> { typedef Word<uint8_t> type; };
template <> struct word_of<2> { typedef Word<uint16_t> type; };
template <> struct word_of<4> { typedef Word<uint32_t> type; };
template <> struct word_of<8> { typedef Word<uint64_t> type; };

template <typename word> struct row_of {
    typedef typename word::type type __attribute__((vector_size(SQUARE * sizeof(word))));
};

// The numbers from 0 to below `count`. (Those of the C++ library are in a header that takes longer to read than the rest.)
template <int... lane> struct Lanes {};
template <int count, int... lane> struct lanes_below : lanes_below<count - 1, count - 1, lane...> {};
template <int... lane> struct lanes_below<0, lane...> { typedef Lanes<lane...> type; };

// The elements of a and b in turn, from `first` on.
template <int first, typename row, int... lane> inline row merge(row a, row b, Lanes<lane...>) {
    return __builtin_shufflevector(a, b, (first + lane / 2 + lane % 2 * SQUARE)...);
}

// Again and again, rows i and i + half are merged element by element into rows 2i and 2i + 1: each time moves one bit of
// an element's row number to its column number, and one back.
template <typename row> inline void transpose_in_registers(row (&rows)[SQUARE]) {
    constexpr int half = SQUARE / 2;
    constexpr typename lanes_below<SQUARE>::type lanes;
    row merged[SQUARE];
    for (int bit = 1; bit < SQUARE; bit *= 2) {
        for (int i = 0; i < half; ++i) {
            merged[2 * i] = merge<0>(rows[i], rows[i + half], lanes);
            merged[2 * i + 1] = merge<half>(rows[i], rows[i + half], lanes);
        }
        for (int i = 0; i < SQUARE; ++i) rows[i] = merged[i];
    }
}

// A square of as many rows as a row has elements.
template <typename word> inline void transpose_square(
    const word* source, int64_t source_stride, word* target, int64_t target_stride) {
    typename row_of<word>::type rows[SQUARE];
    for (int i = 0; i < SQUARE; ++i) __builtin_memcpy(&rows[i], source + source_stride * i, sizeof(rows[i]));
    transpose_in_registers(rows);
    for (int i = 0; i < SQUARE; ++i) __builtin_memcpy(target + target_stride * i, &rows[i], sizeof(rows[i]));
}

// What is left beside the squares, of fewer rows or columns.
template <typename word> inline void transpose_part(
    const word* source, int64_t source_stride, int64_t rows, int64_t columns, word* target, int64_t target_stride) {
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
            target[target_stride * column + row] = source[source_stride * row + column];
}

// target[column * target_stride + row] = source[row * source_stride + column]; strides in elements.
template <typename element> inline void transpose(
    const element* source, int64_t source_stride, int64_t rows, int64_t columns, element* target,
    int64_t target_stride) {
    typedef typename word_of<sizeof(element)>::type word;
    const word* const from = reinterpret_cast<const word*>(source);
    word* const to = reinterpret_cast<word*>(target);
    for (int64_t row = 0; row < rows; row += SQUARE) {
        const int64_t rows_here = rows - row < SQUARE ? rows - row : SQUARE;
        for (int64_t column = 0; column < columns; column += SQUARE) {
            const int64_t columns_here = columns - column < SQUARE ? columns - column : SQUARE;
            const word* const first = from + source_stride * row + column;
            word* const destination = to + target_stride * column + row;
            if (rows_here == SQUARE && columns_here == SQUARE)
                transpose_square(first, source_stride, destination, target_stride);
            else
                transpose_part(first, source_stride, rows_here, columns_here, destination, target_stride);
        }
    }
}

}  // namespace fusionscope
