"""The ops of the loop IR as C++ expressions.

Every expression is of one element and without branches where the value costs little, so that the compiler makes vector
instructions of a loop over it. What C++ has no operator for is a function of `include/fusionscope.h`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping

import torch

from compiler.codegen.functions import ARITHMETIC, COMPARISONS
from compiler.ir.body import Instruction
from compiler.ir.index import Dim, Index, Indirect
from compiler.ir.ops import NAMED
from compiler.schedule.program.program import Statement

#: What a value of a dtype is called inside a kernel; half types and float8 live in float there.
VALUE_TYPES: Mapping[torch.dtype, str] = {
    torch.float16: "float",
    torch.bfloat16: "float",
    torch.float32: "float",
    torch.float64: "double",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.uint8: "uint8_t",
    torch.bool: "bool",
    torch.float8_e4m3fn: "float",
    torch.float8_e5m2: "float",
}

#: What an element of a buffer of a dtype is called.
STORAGE_TYPES: Mapping[torch.dtype, str] = {
    **VALUE_TYPES,
    torch.float16: "fs::half",
    torch.bfloat16: "fs::bfloat16",
    torch.float8_e4m3fn: "fs::float8_e4m3fn",
    torch.float8_e5m2: "fs::float8_e5m2",
}

#: Functions of the header from a float to what is stored of it.
_TO_STORAGE: Mapping[torch.dtype, str] = {
    torch.float16: "to_half",
    torch.bfloat16: "to_bfloat16",
    torch.float8_e4m3fn: "to_float8<3>",
    torch.float8_e5m2: "to_float8<2>",
}

_OPERATORS = ARITHMETIC | COMPARISONS

#: What is in a header of its own, beside the one that every kernel includes.
HEADERS: Mapping[str, str] = {
    "sin": "trigonometry.h", "cos": "trigonometry.h", "randn": "normal.h", "lgamma": "gamma.h",
}  # fmt: skip


class UnsupportedInCpp(NotImplementedError):
    """Something that a kernel on a CPU cannot be written for; says what."""


def value_type(dtype: torch.dtype) -> str:
    """The C++ type of a variable that holds such a number. Raises UnsupportedInCpp where there is none."""
    if dtype not in VALUE_TYPES:
        raise UnsupportedInCpp(f"C++ kernels have no values of {dtype}.")
    return VALUE_TYPES[dtype]


def storage_type(dtype: torch.dtype) -> str:
    """The C++ type of such an element in memory. Raises UnsupportedInCpp where there is none."""
    if dtype not in STORAGE_TYPES:
        raise UnsupportedInCpp(f"C++ kernels have no buffers of {dtype}.")
    return STORAGE_TYPES[dtype]


def columns_text(ctype: str, name: str, block: int) -> str:
    """The declaration of one value for each column of a block.

    Its alignment is written down, since GCC 12 stores vectors to such arrays as if they were aligned to the width of
    one, and may put them where they are not: a segmentation fault."""
    return f"alignas(64) {ctype} {name}[{block}];"


def literal(value: object, dtype: torch.dtype) -> str:
    """A constant of exactly this type."""
    if dtype == torch.bool:
        return "true" if value else "false"
    if dtype.is_floating_point:
        assert isinstance(value, bool | int | float)
        return _float_literal(float(value), is_single=dtype != torch.float64)
    assert isinstance(value, bool | int | float)
    number = int(value)
    if number == -(2**63):
        return "INT64_MIN"
    return f"{value_type(dtype)}({number})"


def text_literal(text: str) -> str:
    """A text as C++ spells it."""
    spelled = "".join(_spelled(byte) for byte in text.encode())
    return f'"{spelled}"'


def _spelled(byte: int) -> str:
    is_plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
    return chr(byte) if is_plain else f"\\{byte:03o}"


def _float_literal(value: float, is_single: bool) -> str:
    kind = "float" if is_single else "double"
    if math.isnan(value):
        return "NAN" if is_single else f"{kind}(NAN)"
    if is_single and abs(value) < math.inf:
        value = _to_single(value)
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return f"{sign}INFINITY" if is_single else f"{sign}{kind}(INFINITY)"
    if not is_single:
        return repr(value)
    # The shortest text that is this float32 and no other.
    text = next(text for digits in range(1, 18) if _to_single(float(text := f"{value:.{digits}g}")) == value)
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _to_single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def index_text(index: Index, names: Mapping[int, str], narrow: frozenset[int]) -> str:
    """An element offset; loaded values among `narrow` are of a type in which the products could overflow."""

    def name(atom: Dim | Indirect) -> str:
        if isinstance(atom, Dim):
            return atom.name
        text = names[atom.value]
        return f"int64_t({text})" if atom.value in narrow else text

    return index.render(name, "/")


def convert(text: str, source: torch.dtype, target: torch.dtype, is_small: bool = False) -> str:
    """`text` of dtype `source` as a value of dtype `target`, as C converts; `is_small` where int32 holds the number."""
    if source == target:
        return text
    if target == torch.bool:
        return f"{text} != {literal(0, source)}"
    if source == torch.bool and target.is_floating_point:
        return f"{value_type(target)}(int32_t({text}))"  # GCC 12 makes vectors of it only by way of a whole number
    if source.is_floating_point and target.itemsize < 4 and not target.is_floating_point:
        return f"{value_type(target)}({'int32_t' if is_small else 'int64_t'}({text}))"
    return f"{value_type(target)}({text})"


def load_text(pointer: str, offset: str, storage: torch.dtype) -> str:
    element = f"{pointer}[{offset}]"
    if storage == torch.bool:
        return f"fs::truth({element})"
    return f"fs::to_float({element})" if storage in _TO_STORAGE else element


def store_text(pointer: str, offset: str, value: str, dtype: torch.dtype, storage: torch.dtype) -> str:
    if storage in _TO_STORAGE:
        return f"{pointer}[{offset}] = fs::{_TO_STORAGE[storage]}({convert(value, dtype, torch.float32)});"
    return f"{pointer}[{offset}] = {convert(value, dtype, storage)};"


def scatter_text(element: str, value: str, mode: str, dtype: torch.dtype, storage: torch.dtype) -> str:
    """The statement that updates `element` by a value of dtype `dtype`; half types are replaced or added to."""
    if storage in _TO_STORAGE:
        value = convert(value, dtype, torch.float32)
        value = value if mode == "set" else f"fs::to_float({element}) + {value}"
        return f"{element} = fs::{_TO_STORAGE[storage]}({value});"
    value = convert(value, dtype, storage)
    if mode == "set":
        return f"{element} = {value};"
    if mode in ("add", "mul"):
        return f"{element} {'+' if mode == 'add' else '*'}= {value};"
    return f"{element} = fs::{mode}imum({element}, {value});"


def expression(
    statement: Statement | Instruction, operands: list[str], operand_dtype: torch.dtype, is_small: bool = False
) -> str:
    """An op that computes from its operands alone, whose texts are given. They are of dtype `operand_dtype`, but for
    the values of a choice; `is_small` is that of `convert`."""
    op = statement.op
    if op == "to_dtype":
        return convert(operands[0], operand_dtype, statement.dtype, is_small)
    if op == "bitcast":
        return f"fs::bitcast<{value_type(statement.dtype)}>({operands[0]})"
    if op == "where":
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if op in NAMED:
        return f"{op}({', '.join(operands)})"
    special = _SPECIAL.get(op)
    if special is not None:
        return special(operands, operand_dtype)
    if op in _OPERATORS:
        text = f"{operands[0]} {_OPERATORS[op]} {operands[1]}"
        # C++ computes in int what is smaller; the way back is said.
        small = not operand_dtype.is_floating_point and operand_dtype.itemsize < 4 and statement.dtype == operand_dtype
        return f"{value_type(operand_dtype)}({text})" if small and operand_dtype != torch.bool else text
    return f"fs::{op}({', '.join(operands)})"


def _sign_bit(operands: list[str], dtype: torch.dtype) -> str:
    return f"fs::has_sign({operands[0]})" if dtype.is_floating_point else f"{operands[0]} < 0"


def _rounding(name: str) -> Callable[[list[str], torch.dtype], str]:
    """floor, ceil, trunc, round: whole numbers are left as they are."""
    return lambda operands, dtype: f"fs::{name}({operands[0]})" if dtype.is_floating_point else operands[0]


def _test(text: str) -> Callable[[list[str], torch.dtype], str]:
    """A test that only a float can pass."""
    return lambda operands, dtype: text.format(operands[0]) if dtype.is_floating_point else "false"


def _truths(operator: str) -> Callable[[list[str], torch.dtype], str]:
    def text(operands: list[str], dtype: torch.dtype) -> str:
        truths = operands if dtype == torch.bool else [f"({operand} != 0)" for operand in operands]
        return f"{truths[0]} {operator} {truths[1]}"

    return text


_SPECIAL: Mapping[str, Callable[[list[str], torch.dtype], str]] = {
    "neg": lambda operands, dtype: f"{value_type(dtype)}(-{operands[0]})" if dtype.itemsize < 4 else f"-{operands[0]}",
    "abs": lambda operands, dtype: f"fs::absolute({operands[0]})",
    "bitwise_not": lambda operands, dtype: f"!{operands[0]}" if dtype == torch.bool else f"~{operands[0]}",
    "logical_not": lambda operands, dtype: f"!{operands[0]}" if dtype == torch.bool else f"{operands[0]} == 0",
    "logical_and": _truths("&"),
    "logical_or": _truths("|"),
    "logical_xor": _truths("!="),
    "isnan": _test("{0} != {0}"),
    "isinf": _test("fs::fabs({0}) == INFINITY"),
    "signbit": _sign_bit,
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "round": _rounding("rint"),
    "nearest_float16": lambda operands, _: f"fs::to_float(fs::to_half({operands[0]}))",
    "nearest_bfloat16": lambda operands, _: f"fs::to_float(fs::to_bfloat16({operands[0]}))",
}
