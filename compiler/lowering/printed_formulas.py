"""torch's formulas of sizes as Python text that a wrapper can evaluate: `CeilToInt(s0 / 3)` as `math.ceil(s0 / 3)`.

torch prints its guards as Python too, but for numbers that may still be symbolic (`torch.sym_float(s0)`); and it has no
text for some formulas.
"""

from __future__ import annotations

import sympy
from torch.utils._sympy.printers import PythonPrinter

from compiler.ir.formulas import as_operand


class _Printer(PythonPrinter):  # type: ignore[misc]
    def _print_ToFloat(self, expression: sympy.Expr) -> str:
        return f"float({self._print(expression.args[0])})"

    def _print_OpaqueUnaryFn_sqrt(self, expression: sympy.Expr) -> str:
        return f"math.sqrt({self._print(expression.args[0])})"

    def _print_Where(self, expression: sympy.Expr) -> str:
        condition, if_true, if_false = map(self._print, expression.args)
        return f"(({if_true}) if ({condition}) else ({if_false}))"

    def _print_LShift(self, expression: sympy.Expr) -> str:
        return "({} << {})".format(*map(self._operand, expression.args))

    def _print_RShift(self, expression: sympy.Expr) -> str:
        return "({} >> {})".format(*map(self._operand, expression.args))

    def _print_TruncToFloat(self, expression: sympy.Expr) -> str:
        return f"float(math.trunc({self._print(expression.args[0])}))"

    def _print_Function(self, expression: sympy.Expr) -> str:
        """What nothing above prints: a function of `math`, or none that Python has."""
        _, is_of_math, name = type(expression).__name__.partition("OpaqueUnaryFn_")
        if not is_of_math:
            raise NotImplementedError(f"the size {expression} is no formula that kernels can be generated for")
        return f"math.{name}({self._print(expression.args[0])})"

    def _operand(self, expression: sympy.Expr) -> str:
        return as_operand(self._print(expression))


def python_text(expression: sympy.Expr) -> str:
    """Python over the symbols' names, by the functions that formulas may call. Raises NotImplementedError for what has
    no text."""
    return str(_Printer().doprint(expression))
