"""Special functions, each defined once for the interpreter, C++ and Triton; see `compiler/ir/functions.py`.

`coefficients.py` is written by `tools/approximations.py`.
"""

from compiler.functions import error, float8, gamma

__all__ = ["error", "float8", "gamma"]
