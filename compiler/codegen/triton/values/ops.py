"""Printing one op as a Triton expression, with the semantics that `compiler/ir/ops.py` documents.

Where Triton's own operator means something else than ATen's (its integer division rounds towards zero, its `maximum`
drops NaN, its `exp` is the fast approximation), the text says so by what it calls: a function of `libdevice`, which is
CUDA's libm, or a small helper that is printed above the kernel (`helpers.py`).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import torch

from compiler.codegen.functions import ARITHMETIC, COMPARISONS
from compiler.codegen.triton.values.helpers import FAST_FUNCTIONS
from compiler.ir.ops import NAMED, compute_dtype, identity_of

#: Names of dtypes in Triton.
DTYPES: dict[torch.dtype, str] = {
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.float32: "tl.float32",
    torch.float64: "tl.float64",
    torch.int8: "tl.int8",
    torch.int16: "tl.int16",
    torch.int32: "tl.int32",
    torch.int64: "tl.int64",
    torch.uint8: "tl.uint8",
    torch.uint16: "tl.uint16",
    torch.uint32: "tl.uint32",
    torch.uint64: "tl.uint64",
    torch.bool: "tl.int1",
}

_SMALLEST_NORMAL_FLOAT32 = 2.0**-126

_INFIX = ARITHMETIC | {"left_shift": "<<", "right_shift": ">>"}

_SAME_IN_LIBDEVICE = """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
erf erfc lgamma rsqrt floor ceil trunc pow atan2 hypot copysign fmod"""

#: Our ops that are functions of libdevice, under its names.
_LIBDEVICE = {name: name for name in _SAME_IN_LIBDEVICE.split()} | {"round": "rint"}

_ROUNDING = ("floor", "ceil", "trunc", "round")


@dataclass(frozen=True)
class Operand:
    """The text of a value: `infix` where the other operand fixes the type, `typed` as an argument of a function, and
    `tensor` where Python itself must not compute with it (it would divide by zero, or look for a method). `number` is
    that of a constant."""

    infix: str
    typed: str
    tensor: str
    dtype: torch.dtype
    number: float | None = None

    @staticmethod
    def variable(name: str, dtype: torch.dtype) -> Operand:
        return Operand(name, name, name, dtype)

    @property
    def is_constant(self) -> bool:
        return self.number is not None

    @property
    def block(self) -> str:
        """What `tl.broadcast_to` takes: it refuses a number of Python's."""
        return self.tensor if self.is_constant else self.typed

    @property
    def reduced(self) -> str:
        """What a reduction takes: truth values as int32."""
        return f"{self.tensor}.to(tl.int32)" if self.dtype == torch.bool else self.block


def constant_operand(value: bool | float, dtype: torch.dtype) -> Operand:
    """A constant; a literal where Triton gives it the right type by itself (float32, int32, bool).

    A literal beyond float32's normal numbers would be taken as float64, so those are spelled out."""
    if dtype == torch.bool:
        spelled = f"tl.full([], {int(value)}, tl.int1)"
        return Operand(repr(bool(value)), spelled, spelled, dtype, value)
    if not dtype.is_floating_point:
        text = repr(int(value))
        spelled = f"tl.full([], {text}, {DTYPES[dtype]})"
        return Operand(text, text if dtype == torch.int32 else spelled, spelled, dtype, value)
    number = _as_float32(float(value)) if dtype == torch.float32 else float(value)
    if number == 0 and math.copysign(1.0, number) < 0:  # Triton makes 0 of a literal -0.0
        spelled = f"(tl.full([], 0.0, {DTYPES[dtype]}) * -1.0)"
        return Operand(spelled, spelled, spelled, dtype, number)
    text = repr(number) if math.isfinite(number) else f'float("{number}")'
    is_plain = not math.isfinite(number) or number == 0 or abs(number) >= _SMALLEST_NORMAL_FLOAT32
    spelled = f"tl.full([], {text}, {DTYPES[dtype]})"
    return Operand(text, text if dtype == torch.float32 and is_plain else spelled, spelled, dtype, number)


def _as_float32(value: float) -> float:
    """The value unless float32 cannot hold it: then infinity. (Its digits are kept: 0.1 reads better than its
    float32 neighbour, and Triton rounds.)"""
    if not math.isfinite(value):
        return value
    try:
        struct.pack("f", value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def convert(value: Operand, wanted: torch.dtype) -> str:
    """Conversion as C does it."""
    if wanted == value.dtype:
        return value.typed
    if wanted == torch.bool:
        return f"{value.tensor} != 0"
    small = (torch.int8, torch.int16, torch.uint8)
    if value.dtype.is_floating_point and wanted in small:
        # Through int32, so that what does not fit wraps around; straight it would be undefined.
        return f"{value.tensor}.to(tl.int32).to({DTYPES[wanted]})"
    return f"{value.tensor}.to({DTYPES[compute_dtype(wanted)]})"


def expression(op: str, operands: list[Operand], dtype: torch.dtype) -> str:
    """The expression of an op that computes its result of `dtype` from values alone."""
    if op == "to_dtype":
        return convert(operands[0], dtype)
    if op == "bitcast":
        return f"{operands[0].tensor}.to({DTYPES[dtype]}, bitcast=True)"
    if op == "where":
        condition, yes, no = operands
        if yes.is_constant and no.is_constant:
            return f"tl.where({condition.typed}, {yes.typed}, {no.typed})"
        return f"tl.where({condition.typed}, {yes.infix}, {no.infix})"
    return pointwise(op, operands)


def pointwise(op: str, operands: list[Operand]) -> str:
    """The expression of an op of `POINTWISE`."""
    first = operands[0]
    dtype = first.dtype
    if op in NAMED or op in FAST_FUNCTIONS:
        return _call(function_name(op, dtype) if op in NAMED else op, operands)
    if dtype == torch.bool and op in _OF_BOOL:
        op = _OF_BOOL[op]
    if op in ("truediv", "quick_truediv"):
        return _quotient(operands, is_quick=op != "truediv")
    if op in _INFIX:
        return _infix(_INFIX[op], operands)
    if op in COMPARISONS:
        return _comparison(COMPARISONS[op], operands)
    if op in ("floordiv", "remainder"):
        return _call(_division_helper(op, dtype), operands)
    if op == "pow" and not dtype.is_floating_point:
        return _call("power_of_integers", operands)
    if op == "truncdiv":
        return f"libdevice.trunc({_quotient(operands)})" if dtype.is_floating_point else _infix("//", operands)
    if op == "fmod" and not dtype.is_floating_point:
        return _infix("%", operands)
    if op in ("minimum", "maximum"):
        return _extremum(op, operands)
    if op in _ROUNDING and not dtype.is_floating_point:
        return first.typed
    if op in _LIBDEVICE:
        return f"libdevice.{_LIBDEVICE[op]}({', '.join(operand.typed for operand in operands)})"
    if op.startswith("logical_"):
        return _logical(op, operands)
    return _unary(op, first)


#: On truth values arithmetic is logic: a sum is "or", a product is "and".
_OF_BOOL = {
    "add": "bitwise_or",
    "mul": "bitwise_and",
    "maximum": "bitwise_or",
    "minimum": "bitwise_and",
    "abs": "identity",
    "relu": "identity",
    "square": "identity",
    "sign": "identity",
    "sub": "bitwise_xor",
}


def function_name(name: str, dtype: torch.dtype) -> str:
    """What a named function is called in Triton: the constants of one of float64 are others than those of float32."""
    return f"{name}_in_float64" if dtype == torch.float64 else name


def _infix(sign: str, operands: list[Operand]) -> str:
    left, right = operands
    return f"{left.tensor if right.is_constant else left.infix} {sign} {right.infix}"


def _quotient(operands: list[Operand], is_quick: bool = False) -> str:
    """Of float32 as eager mode has it on a GPU: rounded once, and by a number the product with its reciprocal. Triton's
    `/`, which is quick, may be off by two roundings: x / x is not always one."""
    left, right = operands
    if left.dtype != torch.float32:
        return _infix("/", operands)
    if right.number is not None and _SMALLEST_NORMAL_FLOAT32 <= abs(right.number) <= 1 / _SMALLEST_NORMAL_FLOAT32:
        return f"{left.tensor} * (1.0 / {right.infix})"
    if is_quick:
        return _infix("/", operands)
    return f"divide({left.typed}, {right.block})"


def _comparison(sign: str, operands: list[Operand]) -> str:
    left, right = operands
    # Triton's comparisons, unlike its arithmetic, make a literal a float32 before they look at the other operand.
    return f"{left.tensor} {sign} {right.tensor}" if right.dtype == torch.float64 else _infix(sign, operands)


def _call(function: str, operands: list[Operand]) -> str:
    return f"{function}({', '.join(operand.tensor for operand in operands)})"


def _division_helper(op: str, dtype: torch.dtype) -> str:
    if dtype.is_floating_point:
        return "floor_divide_floats" if op == "floordiv" else "remainder_of_floats"
    return "floor_divide_integers" if op == "floordiv" else "remainder_of_integers"


def _extremum(op: str, operands: list[Operand]) -> str:
    values = ", ".join(operand.typed for operand in operands)
    if not operands[0].dtype.is_floating_point:
        return f"tl.{op}({values})"
    return f"tl.{op}({values}, propagate_nan=tl.PropagateNan.ALL)"


def _relu(text: str, dtype: torch.dtype) -> str:
    """One instruction of float32; of other types a choice, whose literal takes the type of the value."""
    if dtype == torch.float32:
        return f"tl.maximum({text}, 0.0, propagate_nan=tl.PropagateNan.ALL)"
    # Where the comparison fails for NaN, NaN stays. Of -0.0 eager makes 0.0 on a GPU.
    return f"tl.where({text} <= 0, {'0.0' if dtype.is_floating_point else '0'}, {text})"


def _sigmoid(text: str, dtype: torch.dtype) -> str:
    """The quotient's divisor is one or more, so that of float32 needs no care for small ones: a third of it all."""
    divisor = f"1.0 + libdevice.exp(-{text})"
    return f"libdevice.fast_dividef(1.0, {divisor})" if dtype == torch.float32 else f"1.0 / ({divisor})"


def _logical(op: str, operands: list[Operand]) -> str:
    values = [o.tensor if o.dtype == torch.bool else f"({o.tensor} != 0)" for o in operands]
    if op == "logical_not":
        return f"{values[0]} == 0"
    return f"{values[0]} {({'logical_and': '&', 'logical_or': '|', 'logical_xor': '^'})[op]} {values[1]}"


def _unary(op: str, value: Operand) -> str:
    text, dtype = value.tensor, value.dtype
    is_float = dtype.is_floating_point
    is_signed = is_float or dtype.is_signed
    bits = "tl.int64" if dtype == torch.float64 else "tl.int32"
    texts = {
        "identity": text,
        "neg": f"{text} * -1.0" if is_float else f"-{text}",  # -x is 0 - x in Triton, which makes 0 of 0, not -0
        "abs": f"tl.abs({text})" if is_signed else text,
        "square": f"{text} * {text}",
        "sign": f"({text} > 0).to({DTYPES[dtype]}) - ({text} < 0).to({DTYPES[dtype]})"
        if is_signed
        else f"({text} > 0).to({DTYPES[dtype]})",
        "bitwise_not": f"{text} == 0" if dtype == torch.bool else f"~{text}",
        "relu": _relu(text, dtype) if is_signed else text,
        "nearest_float16": f"{text}.to(tl.float16).to(tl.float32)",
        "nearest_bfloat16": f"{text}.to(tl.bfloat16).to(tl.float32)",
        "reciprocal": f"divide(1.0, {text})" if dtype == torch.float32 else f"1.0 / {text}",
        "quick_reciprocal": f"1.0 / {text}",
        "sqrt": f"square_root({text})" if dtype == torch.float32 else f"libdevice.sqrt({text})",
        "sigmoid": _sigmoid(text, dtype),
        "isnan": f"{text} != {text}",
        "isinf": f'tl.abs({text}) == float("inf")' if is_float else f"{text} != {text}",
        "signbit": f"{text}.to({bits}, bitcast=True) < 0" if is_float else f"{text} < 0",
    }
    if op not in texts:
        raise NotImplementedError(f"the Triton printer has no op {op!r}")
    return texts[op]


@dataclass(frozen=True)
class Reduction:
    """How one kind of reduction is printed.

    `identity` fills lanes outside of the loop; `accumulate` joins two partial results; `reduce` collapses an axis.
    `dtype` is that of its partial results.
    """

    kind: str
    dtype: torch.dtype

    @property
    def is_position(self) -> bool:
        """Whether it carries a position beside the value."""
        return self.kind.startswith("arg")

    @property
    def identity(self) -> str:
        return constant_operand(identity_of(self.kind.removeprefix("arg"), self.dtype), self.dtype).infix

    @property
    def helper(self) -> str | None:
        """The function that joins two partial results, where no operator does."""
        if self.is_position:
            return "larger_at" if self.kind == "argmax" else "smaller_at"
        if self.kind == "prod":
            return "product_of_two"
        if self.kind in ("max", "min") and self.dtype.is_floating_point:
            return "maximum_of_two" if self.kind == "max" else "minimum_of_two"
        return None

    def join(self, left: str, right: str) -> str:
        """Two partial results as one (positions: see `helper`)."""
        if self.kind == "sum":
            return f"{left} + {right}"
        if self.kind == "prod":
            return f"{left} * {right}"
        if self.helper:
            return f"{self.helper}({left}, {right})"
        return f"tl.{'maximum' if self.kind in ('max', 'any') else 'minimum'}({left}, {right})"

    def add(self, name: str, value: str) -> str:
        """The line that joins one more value to what is in the variable `name`."""
        if self.kind in ("sum", "prod"):
            return f"{name} {'+' if self.kind == 'sum' else '*'}= {value}"
        return f"{name} = {self.join(name, value)}"

    def collapse(self, value: str, axis: int) -> str:
        """`value` reduced along a tile axis, as a value of `dtype`."""
        if self.helper:
            return f"tl.reduce({value}, {axis}, {self.helper})"
        name = {"sum": "sum", "max": "max", "any": "max", "min": "min", "all": "min"}[self.kind]
        text = f"tl.{name}({value}, {axis})"
        # tl.sum, tl.max and tl.min of small integers come out as int32.
        is_small = not self.dtype.is_floating_point and self.dtype.itemsize < 4
        return f"{text}.to({DTYPES[self.dtype]})" if is_small else text


def reduction_of(kind: str, dtype: torch.dtype) -> Reduction:
    """The printing rules of `kind` over values of `dtype`; truth values are reduced as int32."""
    return Reduction(kind, torch.int32 if dtype == torch.bool else dtype)
