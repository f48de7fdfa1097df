"""Complex numbers as pairs of real ones, which loops compute with.

    z = view_as_complex(x)                       re, im = x[..., 0], x[..., 1]
    w = polar(1, angle)                          c, s = cos(angle), sin(angle)
    y = view_as_real(z * w)             ->       y = stack((re * c - im * s, re * s + im * c), -1)

A rotary embedding that is written so is three library calls, and one loop by its pairs. `operators.py` says what
becomes of each operator, `write.py` which of a graph's readers of complex numbers read pairs, `conjugates.py` what
becomes of the conjugate of a Python number, and of copies of conjugates.
"""
