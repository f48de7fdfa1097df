// Each function of the kernels' headers once, on memory of exactly the size that it is promised, so that sanitizers see
// what it touches. Prints a line for each: its name and a digest of the bits that it gave, which is the same on every
// machine; what comes from the C library is run, and not printed.
#include "fusionscope.h"

#include "gamma.h"
#include "normal.h"
#include "trigonometry.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

template <typename T> struct Exactly {  // an array whose neighbours belong to nobody
    T* const first;
    const int64_t count;
    explicit Exactly(int64_t count) : first(static_cast<T*>(malloc(count * sizeof(T)))), count(count) {}
    Exactly(const Exactly&) = delete;
    ~Exactly() { free(first); }
    T& operator[](int64_t place) { return first[place]; }
};

struct Digest {
    const char* const name;
    uint64_t state = 14695981039346656037ull;  // FNV-1a
    explicit Digest(const char* name) : name(name) {}
    ~Digest() { printf("%s %016llx\n", name, static_cast<unsigned long long>(state)); }
    template <typename T> __attribute__((noinline)) void take(T value) {
        if (value != value) value = T(NAN);
        unsigned char bytes[sizeof(T)];
        memcpy(bytes, &value, sizeof value);
        for (unsigned char byte : bytes) state = (state ^ byte) * 1099511628211ull;
    }
};

static uint32_t next_bits() {
    static uint64_t state = 1;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(state >> 32);
}

// Of every kind: ordinary numbers, both zeros, denormals, infinities, NaN.
static float next_float() {
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e-40f, -1e-40f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN};
    const uint32_t bits = next_bits();
    if (bits % 8 == 0) return odd[bits / 8 % (sizeof odd / sizeof odd[0])];
    return bits % 8 == 1 ? fs::float_of_bits(next_bits()) : float(int32_t(next_bits())) * 0x1p-26f;
}

template <typename element> static void turn(const char* name) {
    Digest digest(name);
    for (int64_t rows : {1, 3, 8, 15, 16, 17, 40})
        for (int64_t columns : {1, 4, 8, 16, 21, 33}) {
            const int64_t source_stride = columns + 2, target_stride = rows + 3;
            Exactly<element> source((rows - 1) * source_stride + columns), target((columns - 1) * target_stride + rows);
            memset(source.first, 0, source.count * sizeof(element));
            memset(target.first, 0, target.count * sizeof(element));
            for (int64_t n = 0; n < source.count; ++n) {
                const uint64_t bits = next_bits() & 0x01010101;
                memcpy(&source[n], &bits, sizeof(element));
            }
            fs::transpose(source.first, source_stride, rows, columns, target.first, target_stride);
            for (int64_t row = 0; row < rows; ++row)
                for (int64_t column = 0; column < columns; ++column)
                    if (memcmp(&source[row * source_stride + column], &target[column * target_stride + row], sizeof(element)))
                        abort();
            for (int64_t n = 0; n < target.count; ++n)
                for (size_t byte = 0; byte < sizeof(element); ++byte)
                    digest.take(reinterpret_cast<const unsigned char*>(&target[n])[byte]);
        }
}

// A kernel's own use: numbers are turned into an array, which a loop reads as what they are.
static void turn_then_read() {
    Digest digest("turn_then_read");
    Exactly<float> source(256);
    for (int64_t n = 0; n < 256; ++n) source[n] = float(n);
    float turned[4 * 64], sums[64];
    fs::transpose(source.first, 4, 64, 4, turned, 64);
    for (int64_t x = 0; x < 64; ++x) sums[x] = 0.0f;
    for (int64_t r = 0; r < 4; ++r)
        for (int64_t x = 0; x < 64; ++x) sums[x] += turned[64 * r + x];
    for (int64_t x = 0; x < 64; ++x) {
        if (sums[x] != float(16 * x + 6)) abort();
        digest.take(sums[x]);
    }
}

template <typename narrow_type> static void halves(const char* name) {
    Digest digest(name);
    for (int64_t count = 0; count < 70; ++count) {
        Exactly<narrow_type> source(count), back(count);
        Exactly<float> wide(count);
        for (int64_t n = 0; n < count; ++n) source[n] = {uint16_t(next_bits())};
        fs::widen(source.first, count, wide.first);
        fs::narrow(wide.first, count, back.first);
        for (int64_t n = 0; n < count; ++n) {
            digest.take(wide[n]);
            if (wide[n] == wide[n] && back[n].bits != source[n].bits) abort();
            digest.take(fs::to_float(fs::gathered(source.first, count - 1 - n)));
        }
    }
    for (int n = 0; n < 20000; ++n) {
        Exactly<float> wide(1);
        Exactly<narrow_type> rounded(1);
        wide[0] = next_float();
        fs::narrow(wide.first, 1, rounded.first);
        digest.take(fs::to_float(rounded[0]));
    }
}

template <int mantissa_bits> static void bytes(const char* name) {
    Digest digest(name);
    for (int bits = 0; bits < 256; ++bits) {
        const float value = fs::to_float(fs::float_of_8_bits<mantissa_bits>{uint8_t(bits)});
        digest.take(value);
        digest.take(fs::to_float(fs::to_float8<mantissa_bits>(value)));
    }
}

template <typename Function> static void of_one(const char* name, Function function) {
    Digest digest(name);
    constexpr int64_t count = 4099;
    Exactly<float> x(count), y(count);
    for (int64_t n = 0; n < count; ++n) x[n] = next_float();
    float* const from = x.first;
    float* const to = y.first;
#pragma omp simd
    for (int64_t n = 0; n < count; ++n) to[n] = function(from[n]);
    for (int64_t n = 0; n < count; ++n) digest.take(to[n]);
}

template <typename Function> static void of_two(const char* name, Function function) {
    Digest digest(name);
    constexpr int64_t count = 4099;
    Exactly<float> x(count), y(count);
    for (int64_t n = 0; n < count; ++n) x[n] = next_float(), y[n] = next_float();
    for (int64_t n = 0; n < count; ++n) y[n] = function(x[n], y[n]);
    for (int64_t n = 0; n < count; ++n) digest.take(y[n]);
}

template <typename T, typename Function> static void of_integers(const char* name, Function function) {
    Digest digest(name);
    const T odd[] = {T(0), T(1), T(-1), T(2), T(-7), T(63), T(64), T(1) << (8 * sizeof(T) - 2), T(~T(0))};
    for (const T a : odd)
        for (const T b : odd) digest.take(function(a, b));
    for (int n = 0; n < 1000; ++n) {
        const T a = T(next_bits()), b = T(next_bits() % 97);
        digest.take(function(a, b));
    }
}

template <typename T> static void integers() {
    of_integers<T>("truncdiv", [](T a, T b) { return fs::truncdiv(a, b); });
    of_integers<T>("floordiv", [](T a, T b) { return fs::floordiv(a, b); });
    of_integers<T>("remainder", [](T a, T b) { return fs::remainder(a, b); });
    of_integers<T>("left_shift", [](T a, T b) { return fs::left_shift(a, b); });
    of_integers<T>("right_shift", [](T a, T b) { return fs::right_shift(a, b); });
    of_integers<T>("pow", [](T a, T b) { return fs::pow(a, T(b % 20)); });
    of_integers<T>("absolute", [](T a, T) { return fs::absolute(a); });
}

template <int count> static void lanes() {
    Digest digest("lanes");
    Exactly<float> values(count);
    Exactly<int> marks(count);
    Exactly<double> factors(count);
    for (int n = 0; n < count; ++n) {
        values[n] = float(int32_t(next_bits())) * 0x1p-26f;
        marks[n] = int(next_bits());
        factors[n] = 1.0 + double(next_bits()) * 0x1p-32;
    }
    float sum = 1.5f, largest = -INFINITY, smallest = INFINITY;
    int any = 0, all = -1;
    double product = 1.0;
    fs::add_lanes<count>(sum, values.first);
    fs::largest_of_lanes<count>(largest, values.first);
    fs::smallest_of_lanes<count>(smallest, values.first);
    fs::or_lanes<count>(any, marks.first);
    fs::and_lanes<count>(all, marks.first);
    fs::multiply_lanes<count>(product, factors.first);
    for (int n = 0; n < count; ++n)
        if (values[n] > largest || values[n] < smallest || (marks[n] & ~any) || (all & ~marks[n])) abort();
    digest.take(sum), digest.take(largest), digest.take(smallest), digest.take(product);
}

static void random_numbers() {
    Digest digest("random");
    for (int64_t position = 0; position < 9; ++position)
        for (int64_t count : {1, 2, 7, 16, 33}) {
            Exactly<float> room(count + 6), more_room(count + 14);
            const float* const drawn = fs::draw(7, position, count, room.first);
            const float* const compared = fs::draw_compared(7, position, count, more_room.first);
            for (int64_t n = 0; n < count; ++n) {
                if (drawn[n] != fs::rand(7, position + n) || compared[n] != fs::rand_compared(7, position + n)) abort();
                digest.take(drawn[n]), digest.take(compared[n]);
            }
        }
}

static void positions() {
    Digest digest("positions");
    for (int n = 0; n < 4000; ++n) {
        const float value = next_float();
        const int64_t at = next_bits();
        const int64_t whole = fs::with_position(value, at);
        if (fs::position(whole) != at) abort();
        digest.take(whole), digest.take(fs::with_position(fs::reversed(value), at));
        digest.take(fs::with_position(int16_t(at), at));
    }
}

int main() {
    turn<uint8_t>("turn1"), turn<fs::bfloat16>("turn2"), turn<float>("turn4"), turn<double>("turn8");
    turn_then_read();
    halves<fs::bfloat16>("bfloat16"), halves<fs::half>("half");
    bytes<3>("float8_e4m3fn"), bytes<2>("float8_e5m2");
    of_one("exp", [](float x) { return fs::exp(x); }), of_one("expm1", [](float x) { return fs::expm1(x); });
    of_one("exp2", [](float x) { return fs::exp2(x); }), of_one("log", [](float x) { return fs::log(x); });
    of_one("log2", [](float x) { return fs::log2(x); }), of_one("log10", [](float x) { return fs::log10(x); });
    of_one("log1p", [](float x) { return fs::log1p(x); }), of_one("sigmoid", [](float x) { return fs::sigmoid(x); });
    of_one("tanh", [](float x) { return fs::tanh(x); }), of_one("erf", [](float x) { return fs::erf(x); });
    of_one("lgamma", [](float x) { return fs::lgamma(x); });
    of_one("sin", [](float x) { return fs::is_near(x) ? fs::sin(x) : 0.0f; });
    of_one("cos", [](float x) { return fs::is_near(x) ? fs::cos(x) : 0.0f; });
    of_one("relu", [](float x) { return fs::relu(x); }), of_one("sign", [](float x) { return fs::sign(x); });
    of_two("multiply_add", [](float x, float y) { return fs::multiply_add(x, y, x - 1.0f); });
    of_two("fmod", [](float x, float y) { return fs::fmod(x, y); });
    of_two("remainder of floats", [](float x, float y) { return fs::remainder(x, y); });
    of_two("floordiv of floats", [](float x, float y) { return fs::floordiv(x, y); });
    of_two("minimum", [](float x, float y) { return fs::minimum(x, y); });
    of_two("maximum", [](float x, float y) { return fs::maximum(x, y); });
    integers<uint8_t>(), integers<int8_t>(), integers<int16_t>(), integers<int32_t>(), integers<int64_t>();
    lanes<1>(), lanes<2>(), lanes<7>(), lanes<16>(), lanes<32>(), lanes<70>(), lanes<256>();
    random_numbers(), positions();
    for (int n = 0; n < 100; ++n) fs::randn(3, n);
    fs::check(true, "never"), fs::check(false, "first"), fs::check(false, "second");
    return strcmp(fusionscope_failed_check(), "first") || fusionscope_failed_check() != nullptr;
}
