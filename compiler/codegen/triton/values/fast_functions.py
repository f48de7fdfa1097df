"""The functions that fast-math approximations call (see `schedule/program/fast_math.py`)."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "one_plus_erf": '''@triton.jit
def one_plus_erf(x):
    """1 + erf(x), for results in half types. For x < 0 it is erfc(-x) = 2^p(-x), with a p that is fitted so that the
    relative error is at most 6e-6 down to -4.4; the rest is smaller than 1e-9."""
    t = tl.abs(x)
    p = t * -2.0317941e-05 + 4.8609523e-04
    p = p * t - 5.2236542e-03
    p = p * t + 3.3910349e-02
    p = p * t - 1.5242983e-01
    p = p * t - 9.1708159e-01
    p = p * t - 1.6280632
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
