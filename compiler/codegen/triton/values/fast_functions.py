"""The functions that fast-math approximations call (see `schedule/program/fast_math.py`, `logarithms.py`)."""

from __future__ import annotations

from compiler.schedule.program.logarithms import LOG

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
    LOG: '''@triton.jit
def log_of_normal(x):
    """log(x) of what is no smaller than the smallest normal number, or NaN: x = 2^k (1 + f), |f| <= 1/3, and
    log(1 + f) = f + f^2 p(f), with a p that is fitted so that the relative error is at most 3e-8."""
    bits = x.to(tl.int32, bitcast=True)
    power = (bits - 0x3f2aaaab) & -8388608
    f = (bits - power).to(tl.float32, bitcast=True) - 1.0
    p = f * 0.140263632 - 0.153885454
    p = p * f + 0.139958054
    p = p * f - 0.164159596
    p = p * f + 0.200111687
    p = p * f - 0.250078201
    p = p * f + 0.333331972
    p = p * f - 0.499999374
    log = power.to(tl.float32) * 8.26295823e-08 + (p * (f * f) + f)
    return tl.where(x < float("inf"), log, x)
''',
}
