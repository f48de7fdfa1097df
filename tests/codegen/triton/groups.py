"""Groups written by hand, each with what eager PyTorch computes: the cases that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from compiler.ir.body import trace
from compiler.ir.index import Dim, Index
from compiler.ir.interpret import normal, uniform
from compiler.ir.nodes import Layout, LoopNode
from compiler.ir.ops import ops
from compiler.ir.positions import flatten
from compiler.schedule.group import Group, Member, Space


@dataclass
class Builder:
    """Collects the loop nodes of one group over a space, all indexed by the space's own loops."""

    x: tuple[Dim, ...]
    r: tuple[Dim, ...] = ()
    storage: dict[str, torch.dtype] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)

    def buffer(self, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> str:
        self.storage[name], self.shapes[name] = dtype, shape
        return name

    def load(self, name: str, index: Index, mask: Any = None) -> Any:
        return ops.load(name, index, self.storage[name], mask)

    def node(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, body: Callable[[], None]) -> None:
        self.buffer(name, shape, dtype)
        traced = trace(body)
        layout = Layout(shape, (1,) * len(shape), dtype)
        self.members.append(Member(LoopNode(name, layout, self.x, self.r, traced), traced))

    def group(self, name: str, *stored: str) -> Group:
        return Group(f"fused_{name}", Space(self.x, self.r), tuple(self.members), frozenset(stored))


def dims(letter: str, *sizes: int) -> tuple[tuple[Dim, ...], tuple[Index, ...]]:
    made = tuple(Dim(f"{letter}{place}", size) for place, size in enumerate(sizes))
    return made, tuple(Index.of(dim) for dim in made)


@dataclass(frozen=True)
class Case:
    """A group, its tensors, and the reference: a function of the inputs in float64 that gives the outputs in order."""

    name: str
    group: Group
    storage: dict[str, torch.dtype]
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, tuple[int, ...]]
    reference: Callable[..., Any]


#: A case with more elements is only compiled, so its inputs have no memory.
_MOST_ELEMENTS = 1 << 20


def make_input(shape: tuple[int, ...], dtype: torch.dtype, high: int = 100) -> torch.Tensor:
    if prod(shape) > _MOST_ELEMENTS:
        return torch.empty(shape, dtype=dtype, device="meta")
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -high, high, shape).to(dtype)
    return torch.randn(shape).to(dtype)


def case(
    name: str,
    builder: Builder,
    reference: Callable[..., Any],
    *stored: str,
    inputs: dict[str, torch.Tensor] | None = None,
) -> Case:
    group = builder.group(name, *stored)
    values = {b: make_input(builder.shapes[b], builder.storage[b]) for b in group.read_buffers} | (inputs or {})
    return Case(name, group, builder.storage, values, {b: builder.shapes[b] for b in stored}, reference)


def pointwise(dtype: torch.dtype, *sizes: int) -> Case:
    loops, index = dims("x", *sizes)
    b = Builder(loops)
    b.buffer("a", sizes, dtype)
    b.buffer("b", sizes[-1:], dtype)
    at = flatten(index, sizes)

    def scaled() -> None:
        ops.store("mul", at, ops.mul(b.load("a", at), b.load("b", index[-1])))

    def shifted() -> None:
        ops.store("add", at, ops.add(b.load("mul", at), ops.constant(3, dtype)))

    b.node("mul", sizes, dtype, scaled)
    b.node("add", sizes, dtype, shifted)
    return case(f"pointwise_{str(dtype)[6:]}_{'x'.join(map(str, sizes))}", b, lambda a, b: (a * b + 3,), "add")


def transposed(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> Case:
    loops, (i, j) = dims("x", rows, columns)
    b = Builder(loops)
    b.buffer("a", (columns, rows), dtype)
    b.buffer("b", (rows, columns), dtype)

    def body() -> None:
        ops.store("add", i * columns + j, ops.add(b.load("a", j * rows + i), b.load("b", i * columns + j)))

    b.node("add", (rows, columns), dtype, body)
    return case(f"transposed_{rows}x{columns}", b, lambda a, b: (a.t() + b,), "add")


def pairs_apart(rows: int, width: int, dtype: torch.dtype = torch.float32) -> Case:
    """Each row's elements of even places, then those of odd ones."""
    (d0, d1, d2), (row, half, place) = dims("x", rows, 2, width)
    b = Builder(x=(d0, d1, d2))
    a = b.buffer("a", (rows, 2 * width), dtype)

    def body() -> None:
        value = ops.to_dtype(b.load(a, 2 * width * row + 2 * place + half), torch.float32)
        ops.store("twice", 2 * width * row + width * half + place, ops.mul(value, ops.constant(2.0, torch.float32)))

    b.node("twice", (rows, 2, width), torch.float32, body)
    return case(
        f"pairs_apart_{rows}x{width}_{str(dtype)[6:]}", b, lambda a: (2 * a.unflatten(1, (width, 2)).mT,), "twice"
    )


def softmax(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> Case:
    x, (i,) = dims("x", rows)
    r, (j,) = dims("r", columns)
    b = Builder(x, r)
    b.buffer("a", (rows, columns), dtype)
    at = i * columns + j
    compute = torch.float64 if dtype == torch.float64 else torch.float32

    def amax() -> None:
        ops.store("amax", i, ops.reduce("max", b.load("a", at)))

    def exp() -> None:
        ops.store("exp", at, ops.exp(ops.sub(b.load("a", at), b.load("amax", i))))

    def total() -> None:
        ops.store("total", i, ops.reduce("sum", b.load("exp", at)))

    def div() -> None:
        ops.store("div", at, ops.truediv(b.load("exp", at), b.load("total", i)))

    b.node("amax", (rows,), compute, amax)
    b.node("exp", (rows, columns), compute, exp)
    b.node("total", (rows,), compute, total)
    b.node("div", (rows, columns), dtype, div)
    return case(f"softmax_{str(dtype)[6:]}_{rows}x{columns}", b, lambda a: (a.softmax(-1),), "div")


def layer_norm(rows: int, columns: int) -> Case:
    x, (i,) = dims("x", rows)
    r, (j,) = dims("r", columns)
    b = Builder(x, r)
    f = torch.float32
    for name, shape in (("a", (rows, columns)), ("weight", (columns,)), ("bias", (columns,))):
        b.buffer(name, shape)
    at = i * columns + j

    def mean() -> None:
        total = ops.reduce("sum", b.load("a", at))
        ops.store("mean", i, ops.truediv(total, ops.constant(columns, f)))

    def variance() -> None:
        centred = ops.sub(b.load("a", at), b.load("mean", i))
        total = ops.reduce("sum", ops.mul(centred, centred))
        ops.store("rstd", i, ops.rsqrt(ops.add(ops.truediv(total, ops.constant(columns, f)), ops.constant(1e-5, f))))

    def norm() -> None:
        centred = ops.mul(ops.sub(b.load("a", at), b.load("mean", i)), b.load("rstd", i))
        ops.store("norm", at, ops.add(ops.mul(centred, b.load("weight", j)), b.load("bias", j)))

    b.node("mean", (rows,), f, mean)
    b.node("rstd", (rows,), f, variance)
    b.node("norm", (rows, columns), f, norm)

    def reference(a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rstd = (a.var(-1, correction=0) + 1e-5).rsqrt()
        return torch.nn.functional.layer_norm(a, (columns,), weight, bias), rstd

    return case(f"layer_norm_{rows}x{columns}", b, reference, "norm", "rstd")


def reduction(
    kind: str, rows: int, columns: int, dim: int, dtype: torch.dtype = torch.float32, data: torch.Tensor | None = None
) -> Case:
    """One reduction of a rows x columns matrix along `dim` (1 reduces each row), or over all of it (-1)."""
    sizes = (rows, columns)
    all_dims, (i, j) = dims("x", rows, columns)
    x, r = {1: (all_dims[:1], all_dims[1:]), 0: (all_dims[1:], all_dims[:1]), -1: ((), all_dims)}[dim]
    b = Builder(x, r)
    b.buffer("a", sizes, dtype)
    out = {1: i, 0: j, -1: Index.number(0)}[dim]
    position = {1: j, 0: i, -1: i * columns + j}[dim]
    result = torch.int64 if kind.startswith("arg") else dtype

    def body() -> None:
        value = b.load("a", i * columns + j)
        operands = (value, ops.index_value(position)) if kind.startswith("arg") else (value,)
        ops.store("out", out, ops.reduce(kind, *operands))

    shape = {1: (rows,), 0: (columns,), -1: ()}[dim]
    b.node("out", shape, result, body)

    def reference(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        name = {"min": "amin", "max": "amax"}.get(kind, kind)
        if dim == -1:
            return (getattr(torch, name)(a.flatten(), 0),)
        return (getattr(torch, name)(a, dim),)

    inputs = {} if data is None else {"a": data}
    return case(f"{kind}_{str(dtype)[6:]}_{rows}x{columns}_dim{dim}", b, reference, "out", inputs=inputs)


def reduced_constant(rows: int, columns: int) -> Case:
    """A maximum and a sum of numbers that no buffer holds."""
    x, (i,) = dims("x", rows)
    r, (j,) = dims("r", columns)
    b = Builder(x, r)
    b.buffer("a", (rows, columns), torch.float32)

    def body() -> None:
        largest = ops.reduce("max", ops.constant(3.0, torch.float32))
        total = ops.reduce("sum", ops.mul(b.load("a", i * columns + j), ops.constant(0.5, torch.float32)))
        ops.store("out", i, ops.add(largest, ops.add(total, ops.reduce("sum", ops.constant(1.0, torch.float32)))))

    b.node("out", (rows,), torch.float32, body)
    return case(f"constant_{rows}x{columns}", b, lambda a: ((a * 0.5).sum(1) + 3 + columns,), "out")


def stored_and_summed(rows: int, columns: int) -> Case:
    """What is summed reaches memory as well."""
    x, (i,) = dims("x", rows)
    r, (j,) = dims("r", columns)
    b = Builder(x, r)
    b.buffer("a", (rows, columns), torch.float32)
    at = i * columns + j
    b.node("b", (rows, columns), torch.float32, lambda: ops.store("b", at, ops.square(b.load("a", at))))
    b.node("total", (rows,), torch.float32, lambda: ops.store("total", i, ops.reduce("sum", b.load("b", at))))
    return case(f"stored_and_summed_{rows}x{columns}", b, lambda a: (a.square(), a.square().sum(1)), "b", "total")


def concatenated(left: int, right: int) -> Case:
    x, (i,) = dims("x", left + right)
    b = Builder(x)
    b.buffer("a", (left,))
    b.buffer("b", (right,))

    def body() -> None:
        is_left = ops.lt(ops.index_value(i), ops.constant(left, torch.int64))
        a = b.load("a", i, is_left)
        other = b.load("b", i - left, ops.logical_not(is_left))
        ops.store("cat", i, ops.where(is_left, a, other))

    b.node("cat", (left + right,), torch.float32, body)
    return case("cat", b, lambda a, b: (torch.cat([a, b]),), "cat")


def embedding(words: int, width: int, tokens: int, dtype: torch.dtype = torch.int64) -> Case:
    x, (i, j) = dims("x", tokens, width)
    b = Builder(x)
    b.buffer("table", (words, width))
    b.buffer("tokens", (tokens,), dtype)

    def body() -> None:
        row = ops.indirect(ops.to_dtype(b.load("tokens", i), torch.int64), words)
        ops.store("embedding", i * width + j, ops.square(b.load("table", row * width + j)))

    b.node("embedding", (tokens, width), torch.float32, body)
    inputs = {"tokens": torch.randint(0, words, (tokens,)).to(dtype)}
    return case(
        f"embedding_{str(dtype)[6:]}", b, lambda tokens, table: (table[tokens.long()] ** 2,), "embedding", inputs=inputs
    )


def random(count: int, kind: str) -> Case:
    x, (i,) = dims("x", count)
    b = Builder(x)
    b.buffer("seed", (1,), torch.int64)

    def body() -> None:
        ops.store("noise", i, getattr(ops, kind)(b.load("seed", Index.number(0)), i))

    b.node("noise", (count,), torch.float32, body)

    def reference(seed: torch.Tensor) -> tuple[torch.Tensor, ...]:
        function = {"rand": uniform, "randn": normal}[kind]
        return (function(seed, torch.arange(count)),)

    return case(f"{kind}_{count}", b, reference, "noise", inputs={"seed": torch.tensor([1234567890123])})
