// Small matrices from rows to columns: what a kernel reads or writes across the direction of its vectors.
//
// Elements are moved as words of their width. C++ lets a compiler assume that a store of a whole number changes no float,
// so it may move that store behind the loop which reads the floats. A `Word` may alias any other type.
#pragma once

#include <stdint.h>

namespace fusionscope {

// Rows and columns that are turned at a time, in registers: as many as a register has of four bytes.
#ifdef __AVX512F__
constexpr int TURNED = 16;
#else
constexpr int TURNED = 8;
#endif

// A type of its own for each width, since a template takes a type without the attributes that were added to it.
template <typename number> struct __attribute__((may_alias)) Word { typedef number type; number value; };

template <int64_t bytes> struct word_of;
template <> struct word_of<1> { typedef Word<uint8_t> type; };
template <> struct word_of<2> { typedef Word<uint16_t> type; };
template <> struct word_of<4> { typedef Word<uint32_t> type; };
template <> struct word_of<8> { typedef Word<uint64_t> type; };

template <typename word> struct row_of {
    typedef typename word::type type __attribute__((vector_size(TURNED * sizeof(word))));
};

// The numbers from 0 to below `count`. (Those of the C++ library are in a header that takes longer to read than the rest.)
template <int... place> struct Places {};
template <int count, int... place> struct places_below : places_below<count - 1, count - 1, place...> {};
template <int... place> struct places_below<0, place...> { typedef Places<place...> type; };

// The elements of a and b in turn, from `first` on.
template <int first, typename row, int... place> inline row merge(row a, row b, Places<place...>) {
    return __builtin_shufflevector(a, b, (first + place / 2 + place % 2 * TURNED)...);
}

// Again and again, rows i and i + half are merged element by element into rows 2i and 2i + 1: each time moves one bit of
// an element's row number to its column number, and one back.
template <typename row> inline void turn_in_registers(row (&rows)[TURNED]) {
    constexpr int half = TURNED / 2;
    constexpr typename places_below<TURNED>::type places;
    row merged[TURNED];
    for (int bit = 1; bit < TURNED; bit *= 2) {
        for (int i = 0; i < half; ++i) {
            merged[2 * i] = merge<0>(rows[i], rows[i + half], places);
            merged[2 * i + 1] = merge<half>(rows[i], rows[i + half], places);
        }
        for (int i = 0; i < TURNED; ++i) rows[i] = merged[i];
    }
}

// A square of as many rows as a row has elements.
template <typename word> inline void turn_square(
    const word* source, int64_t source_stride, word* target, int64_t target_stride) {
    typename row_of<word>::type rows[TURNED];
    for (int i = 0; i < TURNED; ++i) __builtin_memcpy(&rows[i], source + source_stride * i, sizeof(rows[i]));
    turn_in_registers(rows);
    for (int i = 0; i < TURNED; ++i) __builtin_memcpy(target + target_stride * i, &rows[i], sizeof(rows[i]));
}

// What is left beside the squares, of fewer rows or columns.
template <typename word> inline void turn_part(
    const word* source, int64_t source_stride, int64_t rows, int64_t columns, word* target, int64_t target_stride) {
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
            target[target_stride * column + row] = source[source_stride * row + column];
}

// target[column * target_stride + row] = source[row * source_stride + column]; strides in elements.
template <typename element> inline void turn(
    const element* source, int64_t source_stride, int64_t rows, int64_t columns, element* target,
    int64_t target_stride) {
    typedef typename word_of<sizeof(element)>::type word;
    const word* const from = reinterpret_cast<const word*>(source);
    word* const to = reinterpret_cast<word*>(target);
    for (int64_t row = 0; row < rows; row += TURNED) {
        const int64_t rows_here = rows - row < TURNED ? rows - row : TURNED;
        for (int64_t column = 0; column < columns; column += TURNED) {
            const int64_t columns_here = columns - column < TURNED ? columns - column : TURNED;
            const word* const first = from + source_stride * row + column;
            word* const place = to + target_stride * column + row;
            if (rows_here == TURNED && columns_here == TURNED)
                turn_square(first, source_stride, place, target_stride);
            else
                turn_part(first, source_stride, rows_here, columns_here, place, target_stride);
        }
    }
}

}  // namespace fusionscope
