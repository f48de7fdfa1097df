"""Special functions, each defined once for the interpreter, C++ and Triton; see `compiler/ir/functions.py`.

`coefficients.py` is written by `tools/approximations.py`.
"""

from compiler.functions import bessel, bits, error, float8, gamma, incomplete_gamma, modified_bessel, polynomials

__all__ = ["bessel", "bits", "error", "float8", "gamma", "incomplete_gamma", "modified_bessel", "polynomials"]
