"""Small functions of Triton that are printed above a kernel that calls them."""

from __future__ import annotations

#: NVIDIA's estimate of 1 / x, an instruction of PTX.
PTX_RECIPROCAL = """tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )"""

HELPERS: dict[str, str] = {
    "any_lane": '''@triton.jit
def any_lane(mask):
    """Whether the condition holds in any lane of the block."""
    return tl.max(mask.to(tl.int32) + tl.zeros([1], tl.int32), axis=None) > 0
''',
    "multiply_in_turns": '''@triton.jit
def multiply_in_turns(pointer, first, value, mask, bits: tl.constexpr):
    """Multiply the elements at `pointer` by `value` where the mask holds. GPUs have no atomic product: a lane writes if
    the element is still what it read, bit for bit, and otherwise tries anew. `first` is an address that can be read."""
    pointer = tl.where(mask, pointer, first)
    seen = tl.load(pointer)
    waits = mask
    while any_lane(waits):
        product = tl.where(waits, seen * value, seen)
        expected = seen.to(bits, bitcast=True)
        found = tl.atomic_cas(
            pointer.to(tl.pointer_type(bits), bitcast=True), expected, product.to(bits, bitcast=True), sem="relaxed"
        )
        waits = waits & (found != expected)
        seen = found.to(value.dtype, bitcast=True)
''',
    "raise_in_place": '''@triton.jit
def raise_in_place(pointer, value, mask):
    """Raise floats to the value where the mask holds. Each update is two atomic operations, and few of many values are
    the largest so far: what is read before may be out of date, but only too small."""
    seen = tl.load(pointer, mask, other=0.0)
    tl.atomic_max(pointer, value, mask=mask & ~(value <= seen), sem="relaxed")
''',
    "lower_in_place": '''@triton.jit
def lower_in_place(pointer, value, mask):
    """Lower floats to the value where the mask holds; see `raise_in_place`."""
    seen = tl.load(pointer, mask, other=0.0)
    tl.atomic_min(pointer, value, mask=mask & ~(value >= seen), sem="relaxed")
''',
    "maximum_of_two": '''@triton.jit
def maximum_of_two(a, b):
    """The larger one; NaN wins."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    "minimum_of_two": '''@triton.jit
def minimum_of_two(a, b):
    """The smaller one; NaN wins."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    "product_of_two": """@triton.jit
def product_of_two(a, b):
    return a * b
""",
    "larger_at": '''@triton.jit
def larger_at(a, a_at, b, b_at):
    """The larger value and its position; NaN wins, and among equals the lower position."""
    a_is_nan = a != a
    b_is_nan = b != b
    is_tie = (a == b) | (a_is_nan & b_is_nan)
    takes_a = (a > b) | (a_is_nan & (b == b)) | (is_tie & (a_at < b_at))
    return tl.where(takes_a, a, b), tl.where(takes_a, a_at, b_at)
''',
    "smaller_at": '''@triton.jit
def smaller_at(a, a_at, b, b_at):
    """The smaller value and its position; NaN wins, and among equals the lower position."""
    a_is_nan = a != a
    b_is_nan = b != b
    is_tie = (a == b) | (a_is_nan & b_is_nan)
    takes_a = (a < b) | (a_is_nan & (b == b)) | (is_tie & (a_at < b_at))
    return tl.where(takes_a, a, b), tl.where(takes_a, a_at, b_at)
''',
    "first_index_of": '''@triton.jit
def first_index_of(best, values, indices, last: tl.constexpr, axis: tl.constexpr):
    """The lowest index of the extreme along an axis: where that is NaN, of a NaN."""
    return tl.min(tl.where((values == best) | (values != values), indices, last), axis)
''',
    "floor_divide_integers": '''@triton.jit
def floor_divide_integers(a, b):
    """a // b towards minus infinity; Triton's own // rounds towards zero."""
    quotient = a // b
    remainder = a % b
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), quotient - 1, quotient)
''',
    "remainder_of_integers": '''@triton.jit
def remainder_of_integers(a, b):
    """a % b with the sign of b; Triton's own % has the sign of a."""
    remainder = a % b
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)
''',
    "floor_divide_floats": '''@triton.jit
def floor_divide_floats(a, b):
    """a // b as ATen computes it: exact where floor(a / b) would round up to the next integer."""
    remainder = libdevice.fmod(a, b)
    quotient = (a - remainder) / b
    quotient = tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), quotient - 1.0, quotient)
    whole = libdevice.floor(quotient)
    whole = tl.where(quotient - whole > 0.5, whole + 1.0, whole)
    whole = tl.where(quotient == 0, libdevice.copysign(quotient * 0.0, a / b), whole)
    return tl.where(b == 0, a / b, whole)
''',
    "remainder_of_floats": '''@triton.jit
def remainder_of_floats(a, b):
    """a % b with the sign of b."""
    remainder = libdevice.fmod(a, b)
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)
''',
    "approximate_reciprocal": f'''@triton.jit
def approximate_reciprocal(x):
    """1 / x within one unit in the last place, by the GPU's instruction for it (PTX ISA: `rcp.approx.ftz.f32`)."""
    return {PTX_RECIPROCAL}
''',
    "divide": '''@triton.jit
def divide(a, b):
    """a / b of float32, rounded once: the product with the reciprocal, corrected by its remainder (Markstein 1990). The
    reciprocal is computed once for each `b`. `tl.div_rn` takes three times as long where some `a` are zero."""
    # The scaled divisor and its reciprocal are normal numbers, and the scaled quotient does not overflow. Numerators
    # below 2^-102 lose digits of the remainder, quotients below 2^-125 the last digit.
    scale = tl.where(tl.abs(b) > 2.0**64, 2.0**-4, tl.where(tl.abs(b) < 2.0**-64, 2.0**24, 2.0))
    divisor = b * scale
    negative = divisor * -1.0
    estimate = approximate_reciprocal(divisor)
    reciprocal = tl.fma(tl.fma(estimate, negative, 1.0), estimate, estimate)  # a step of Newton's method: rounded once
    quotient = a * reciprocal
    corrected = tl.fma(tl.fma(quotient, negative, a), reciprocal, quotient)
    # Zeros keep their sign. Zero and infinity as a divisor have no corrected reciprocal, and need none.
    return tl.where(tl.abs(corrected) > 0, corrected, a * estimate) * scale
''',
    "square_root": '''@triton.jit
def square_root(x):
    """The root of a float32, rounded once: the product with the reciprocal root, corrected by its remainder (Markstein
    1990). `tl.sqrt_rn` is slower, above all where some `x` are zero."""
    # So that the remainder is a normal number.
    is_small = x < 2.0**-100
    scaled = x * tl.where(is_small, 2.0**48, 1.0)
    reciprocal = libdevice.rsqrt(scaled)
    root = scaled * reciprocal
    corrected = tl.fma(tl.fma(root * -1.0, root, scaled), reciprocal * 0.5, root)
    # Zero and infinity are their own roots.
    return tl.where(tl.abs(x) * 2.0 == x, x, corrected * tl.where(is_small, 2.0**-24, 1.0))
''',
    "power_of_integers": '''@triton.jit
def power_of_integers(base, exponent):
    """base ** exponent by squaring; for a negative exponent the integer part of the fraction, as ATen gives."""
    result = base * 0 + 1
    square = base
    rest = exponent
    for _ in range(64):
        result = tl.where((rest & 1) != 0, result * square, result)
        square = square * square
        rest = rest >> 1
    of_one = tl.where((base == 1) | ((base == -1) & ((exponent & 1) == 0)), 1, tl.where(base == -1, -1, 0))
    return tl.where(exponent < 0, of_one, result)
''',
}

#: The functions that fast-math approximations call (see `schedule/program/fast_math.py`).
FAST_FUNCTIONS: dict[str, str] = {
    "one_plus_erf": '''@triton.jit
def one_plus_erf(x):
    """1 + erf(x), for results in half types. For x < 0 it is erfc(-x) = 2^p(-x), with a p that is fitted so that the
    relative error is at most 6e-6 down to -4.4; the rest is smaller than 1e-9."""
    t = tl.abs(x)
    p = tl.fma(t, -2.0317941e-05, 4.8609523e-04)
    p = tl.fma(p, t, -5.2236542e-03)
    p = tl.fma(p, t, 3.3910349e-02)
    p = tl.fma(p, t, -1.5242983e-01)
    p = tl.fma(p, t, -9.1708159e-01)
    p = tl.fma(p, t, -1.6280632)
    tail = libdevice.exp2(p * t)
    return tl.where(x < 0, tail, 2.0 - tail)
''',
    "one_plus_tanh": '''@triton.jit
def one_plus_tanh(x):
    """1 + tanh(x) = 2 / (1 + exp(-2 x)), for results in half types."""
    return libdevice.fast_dividef(2.0, 1.0 + libdevice.exp2(x * -2.8853901))
''',
    "quick_exp": '''@triton.jit
def quick_exp(x):
    """exp(x), for results in half types."""
    return libdevice.exp2(x * 1.442695)
''',
    "quick_sigmoid": '''@triton.jit
def quick_sigmoid(x):
    """1 / (1 + exp(-x)), for results in half types."""
    return libdevice.fast_dividef(1.0, 1.0 + libdevice.exp2(x * -1.442695))
''',
}
