"""The closed set of ops that loop bodies are made of, and the handler they are called through.

A lowering writes the body of a loop as a Python function of its index that calls `ops`:

    def body(index):
        x = ops.load("x", 512 * x0 + r0, torch.float32)
        return ops.mul(ops.sin(x), ops.constant(2.0, torch.float32))

`ops` forwards each call to the handler in force, which is a `Recorder` (`body.py`) while a body is traced. Everything
else (printers, counters, code generators) reads the record.

A formula that is too long for a body is a named function, written in these ops too and called like one of them; see
`functions.py`.

dtypes: a value of dtype float16, bfloat16 or float8 never occurs inside a body. A load from such a buffer gives
float32 and a store rounds back, so arithmetic inside a kernel is done at no less than float32 (as ATen's GPU kernels do
for one op).
Operands of one op have one dtype; lowerings insert `to_dtype` where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Literal, Protocol

import torch

from compiler.ir.float8 import FLOAT8
from compiler.ir.formulas import Real
from compiler.ir.index import Index
from compiler.ir.size import Integer, Size

ResultDtype = Literal["same", "bool"]


@dataclass(frozen=True)
class OpInfo:
    """What every reader of a body needs to know about an arithmetic op.

    `cost` is the number of simple operations that it counts as on a GPU's or CPU's arithmetic units, a coarse weight
    for the cost model (a transcendental function is a polynomial of some ten terms).
    """

    arity: int
    result: ResultDtype = "same"
    cost: int = 1


class NamedFunction(Protocol):
    """What the readers of a body need to know about a named function, like `OpInfo`."""

    @property
    def arity(self) -> int: ...

    @property
    def result(self) -> str: ...

    @property
    def cost(self) -> int: ...


def _rows(names: str, arity: int, result: ResultDtype = "same", cost: int = 1) -> dict[str, OpInfo]:
    return {name: OpInfo(arity, result, cost) for name in names.split()}


#: Arithmetic. Integer `truediv` does not occur (lowerings convert first); `floordiv` and `remainder` round towards
#: minus infinity as Python does, `truncdiv` and `fmod` towards zero as C does. `minimum` and `maximum` propagate NaN.
#: `nearest_float16` and `nearest_bfloat16` round a float32 as if it were stored.
POINTWISE: dict[str, OpInfo] = {
    **_rows("neg abs square floor ceil trunc round sign bitwise_not relu nearest_float16 nearest_bfloat16", 1),
    **_rows("sqrt rsqrt reciprocal", 1, cost=4),
    **_rows("exp exp2 expm1 log log2 log10 log1p sin cos sigmoid", 1, cost=10),
    **_rows("tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc", 1, cost=20),
    **_rows("lgamma", 1, cost=40),
    **_rows("isnan isinf logical_not signbit", 1, "bool"),
    **_rows("add sub mul minimum maximum copysign bitwise_and bitwise_or bitwise_xor left_shift right_shift", 2),
    **_rows("truediv floordiv truncdiv remainder fmod", 2, cost=8),
    **_rows("pow atan2 hypot", 2, cost=30),
    **_rows("eq ne lt le gt ge logical_and logical_or logical_xor", 2, "bool"),
}

#: Functions that are written in these ops and called by name as if they were some; `functions.py` says how.
NAMED: dict[str, NamedFunction] = {}


def cost_of(op: str) -> int:
    """Weighted operations of an op or a named function; 1 of what is neither."""
    return (POINTWISE.get(op) or NAMED.get(op) or OpInfo(1)).cost


#: Reductions by kind: sum, prod, minimum, maximum over the reduction variables; `any` and `all` on bool; `argmin` and
#: `argmax` take the value and its position (int64) and give the position, the lowest one among equals. NaN wins.
REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")

#: Scans by kind: each point of the last loops gets the value of all up to it, itself included, in the loops' order.
SCANS = ("sum", "prod", "min", "max")

#: What a scatter does to the element that it meets: replace it, add to it, multiply it, or keep the smaller or larger
#: one.
SCATTERS = ("set", "add", "mul", "min", "max")

#: The rest of the closed set, each with operands of its own kind; see the methods of `Ops`.
SPECIAL = (
    "load", "store", "constant", "index_value", "indirect", "to_dtype", "bitcast", "where", "rand", "randn",
    "rand_compared", "reduce", "scan",
)  # fmt: skip

#: Those that draw random numbers: their operand is a seed, their index the position of the number.
RANDOM = frozenset(("rand", "randn", "rand_compared"))


#: The `Recorder` in force.
_handler: ContextVar[Any] = ContextVar("ops handler")


@contextmanager
def handled_by(handler: Any) -> Iterator[None]:
    """Within the block, calls of `ops` go to `handler`."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


def current_handler() -> Any:
    """The handler in force."""
    return _handler.get()


#: Floats of two bytes.
HALF_TYPES = frozenset((torch.float16, torch.bfloat16))
_HELD_IN_FLOAT32 = HALF_TYPES.union(FLOAT8)


def compute_dtype(storage: torch.dtype) -> torch.dtype:
    """The dtype in which a body holds a value of a buffer of dtype `storage`."""
    return torch.float32 if storage in _HELD_IN_FLOAT32 else storage


def zero_of(dtype: torch.dtype) -> bool | int | float:
    return False if dtype == torch.bool else 0.0 if dtype.is_floating_point else 0


def identity_of(kind: str, dtype: torch.dtype) -> bool | int | float:
    """What changes nothing when a reduction joins it with other values."""
    if kind in ("any", "all") or dtype == torch.bool:
        return kind in ("all", "min", "prod")
    if kind in ("sum", "prod"):
        number = int(kind == "prod")
        return float(number) if dtype.is_floating_point else number
    if dtype.is_floating_point:
        return inf if kind == "min" else -inf
    return torch.iinfo(dtype).max if kind == "min" else torch.iinfo(dtype).min


def wrapped(value: int, dtype: torch.dtype) -> int:
    """The number of an integer dtype that equals `value` modulo the dtype's range."""
    limits = torch.iinfo(dtype)
    return (value - limits.min) % (limits.max - limits.min + 1) + limits.min


#: What may stand beside a value for a constant of its dtype.
_NUMBERS = (int, float, Size, Real)


class Ops:
    """The calls that a body may make, of values (`value.py`); `index` arguments are `compiler.ir.index.Index`."""

    def load(self, buffer: str, index: Any, storage: torch.dtype, mask: Any = None) -> Any:
        """Element `index` of `buffer`; where the bool value `mask` is given and false, zero, and nothing is read."""
        operands = () if mask is None else (mask,)
        return _handler.get().emit("load", operands, compute_dtype(storage), buffer=buffer, index=index)

    def store(self, buffer: str, index: Any, value: Any) -> Any:
        return _handler.get().emit("store", (value,), value.dtype, buffer=buffer, index=index)

    def scatter(self, buffer: str, index: Any, value: Any, mode: str, mask: Any = None) -> Any:
        """A store that updates element `index` by one of `SCATTERS`, only where the bool value `mask` holds. Several
        points may update one element: `set` leaves the value of one of them (the last, where points run in order).
        Raises ValueError for a mode that is none."""
        if mode not in SCATTERS:
            raise ValueError(f"{mode!r} is no way to scatter; the ways are {', '.join(SCATTERS)}")
        operands = (value,) if mask is None else (value, mask)
        return _handler.get().emit("store", operands, value.dtype, buffer=buffer, index=index, value=mode)

    def constant(self, value: bool | int | float | Size | Real, dtype: torch.dtype) -> Any:
        """A number; integers wrap around into the dtype, as PyTorch's scalars do."""
        dtype = compute_dtype(dtype)
        if isinstance(value, Size):
            return self.to_dtype(self.index_value(Index.number(value)), dtype)
        if isinstance(value, Real):
            return self.to_dtype(self._real(value), dtype)
        if dtype.is_floating_point:
            value = float(value)
        else:
            value = bool(value) if dtype == torch.bool else wrapped(int(value), dtype)
        return _handler.get().emit("constant", (), dtype, value=value)

    def _real(self, number: Real) -> Any:
        """A float of which the kernel gets both halves of its bits."""
        upper, lower = (self.index_value(Index.number(half)) for half in number.halves)
        upper = self.left_shift(upper, self.constant(32, torch.int64))
        lower = self.bitwise_and(lower, self.constant(0xFFFFFFFF, torch.int64))
        return self.bitcast(self.bitwise_or(upper, lower), torch.float64)

    def index_value(self, index: Any, dtype: torch.dtype = torch.int64) -> Any:
        """The value of an index expression, as a number."""
        return _handler.get().emit("index_value", (), dtype, index=index)

    def indirect(self, value: Any, size: Integer) -> Any:
        """A loaded integer value as an index variable; the lowering has made sure that 0 <= value < size."""
        return _handler.get().emit("indirect", (value,), torch.int64, value=size)

    def to_dtype(self, value: Any, dtype: torch.dtype) -> Any:
        """Convert as C does (float to integer truncates, to bool tests for non-zero)."""
        dtype = compute_dtype(dtype)
        return value if value.dtype == dtype else _handler.get().emit("to_dtype", (value,), dtype)

    def bitcast(self, value: Any, dtype: torch.dtype) -> Any:
        """The number of type `dtype` that has the same bits. Raises TypeError where the two are not as wide."""
        if value.dtype.itemsize != dtype.itemsize:
            raise TypeError(f"ops.bitcast: {value.dtype} and {dtype} are not as wide")
        return _handler.get().emit("bitcast", (value,), dtype)

    def where(self, condition: Any, if_true: Any, if_false: Any) -> Any:
        if_true, if_false = self._values(if_true, if_false)
        return _handler.get().emit("where", (condition, if_true, if_false), if_true.dtype)

    def rand(self, seed: Any, index: Any) -> Any:
        """A uniform float32 in [0, 1): word `index` % 4 of Philox 4x32-10 with key `seed` (an int64 value) at counter
        `index` // 4, so that one draw serves four numbers in a row."""
        return _handler.get().emit("rand", (seed,), torch.float32, index=index)

    def rand_compared(self, seed: Any, index: Any) -> Any:
        """A uniform float32 in [0, 1) of which nothing counts but whether it is above bounds that are known, each
        between 1 / 32 and 31 / 32. Two in a row share word `index` // 2 % 4 of Philox 4x32-7 at counter `index` // 8,
        which the second one sees rotated by 16 bits, so that one draw serves eight. Each is as fine as `rand`; that
        both of two are below p is as likely as for independent ones up to 2^-15, since a comparison is all but decided
        by the upper 16 bits."""
        return _handler.get().emit("rand_compared", (seed,), torch.float32, index=index)

    def randn(self, seed: Any, index: Any) -> Any:
        """A standard normal float32 from the same generator."""
        return _handler.get().emit("randn", (seed,), torch.float32, index=index)

    def reduce(self, kind: str, *operands: Any) -> Any:
        """Reduce over all reduction variables of the loop; see `REDUCTIONS`. Raises ValueError for a kind that is none.

        Positions are int64; what else is reduced keeps its dtype."""
        if kind not in REDUCTIONS:
            raise ValueError(f"{kind!r} is not a reduction; the reductions are {', '.join(REDUCTIONS)}")
        dtype = torch.int64 if kind.startswith("arg") else operands[0].dtype
        return _handler.get().emit("reduce", operands, dtype, value=kind)

    def scan(self, kind: str, operand: Any) -> Any:
        """What a reduction over the reduction variables so far would give, at each of their points; see `SCANS`. Raises
        ValueError for a kind that is none."""
        if kind not in SCANS:
            raise ValueError(f"{kind!r} is not a scan; the scans are {', '.join(SCANS)}")
        return _handler.get().emit("scan", (operand,), operand.dtype, value=kind)

    def call(self, name: str, *operands: Any) -> Any:
        """The op `name` of `POINTWISE`, or the named function; a number beside a value is a constant. Raises
        TypeError for another number of operands than it takes, or operands of several dtypes: there is no promotion
        here, lowerings have converted."""
        info = POINTWISE[name] if name in POINTWISE else NAMED[name]
        if len(operands) != info.arity:
            raise TypeError(f"ops.{name} takes {info.arity} operands, got {len(operands)}")
        values = self._values(*operands)
        dtypes = {value.dtype for value in values}
        if len(dtypes) != 1:
            raise TypeError(f"ops.{name}: operands of one dtype wanted, got {', '.join(sorted(map(str, dtypes)))}")
        return _handler.get().emit(name, values, torch.bool if info.result == "bool" else dtypes.pop())

    def _values(self, *operands: Any) -> tuple[Any, ...]:
        """The operands, numbers among them as constants. Raises TypeError where there is no value among them."""
        values = [operand for operand in operands if not isinstance(operand, _NUMBERS)]
        if len(values) == len(operands):
            return operands
        if not values:
            raise TypeError("one of the operands must be a value; make a number one by ops.constant")
        dtype = values[0].dtype
        return tuple(self.constant(one, dtype) if isinstance(one, _NUMBERS) else one for one in operands)

    def __getattr__(self, name: str) -> Any:
        if name not in POINTWISE and name not in NAMED:
            raise AttributeError(f"ops has no {name!r}; the ops are {', '.join([*POINTWISE, *SPECIAL, *NAMED])}")
        found = self.__dict__[name] = partial(self.call, name)
        return found


ops = Ops()
