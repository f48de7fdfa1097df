"""A bias and an activation that the library computes itself, at the end of its own product.

    addmm(bias, x, w), then relu or GELU by tanh    ->    one call: cuBLASLt has an epilogue for each of the two

The product stays the library's, so nothing is lost; but only these two activations can be had so, of a bias for each
column, and only where nothing else reads the product.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from compiler.ir.body import Body, trace
from compiler.ir.index import Index
from compiler.ir.nodes import ExternNode
from compiler.ir.ops import ops
from compiler.schedule.inline import compose
from compiler.schedule.products.loops import Product

aten = torch.ops.aten

#: Digits of constants that must agree: formulas written by hand round theirs.
_DIGITS = 9


class AddmmGelu:
    """addmm and GELU by tanh: ATen's operator for both on a GPU, where that is what it computes; on a CPU it has the
    other GELU."""

    __name__ = "addmm_gelu"

    def __str__(self) -> str:
        return self.__name__

    def __call__(self, bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        if bias.is_cuda:
            return torch.ops.aten._addmm_activation.default(bias, left, right, use_gelu=True)  # type: ignore[no-any-return]
        return torch.nn.functional.gelu(torch.addmm(bias, left, right), approximate="tanh")


ADDMM_GELU = AddmmGelu()


def library_epilogue(product: Product) -> ExternNode | None:
    """The one call that computes all of `product`, or None where there is none."""
    call, after = product.call, product.after
    if call.target is not aten.addmm.default or call.keywords or product.before or product.beside or after is None:
        return None
    if len(call.arguments[0].layout.shape) != 1 or len(product.stored) != 1:
        return None
    (result,) = product.stored
    member = next(member for member in product.members if member.name == result)
    output, made = member.node.layout, call.outputs[0]
    if made is None or (output.shape, output.stride, output.dtype) != (made[1].shape, made[1].stride, made[1].dtype):
        return None
    body = compose(after, result)
    target = None if body is None else _activation(body, call.name, output.dtype)
    if target is None:
        return None
    nodes = [member.node for member in product.members]
    return replace(
        call,
        target=target,
        outputs=((result, output),),
        origins=tuple(dict.fromkeys(origin for node in nodes for origin in node.origins)),
        lines=tuple(sorted({line for node in nodes for line in node.lines})),
        covers=tuple(node.name for node in nodes),
        follows=call.follows.union(*(node.follows for node in nodes)),
        reason="A matrix product is a library call, and the library adds the bias and applies the activation in it.",
    )


def _activation(body: Body, buffer: str, dtype: torch.dtype) -> Any:
    """The operator of addmm with the activation that the body computes of one element of `buffer`."""
    if [access.buffer for access in body.reads] != [buffer] or body.reads[0].index != body.writes[0].index:
        return None
    tree = _tree(body)
    if tree == ("relu", "x"):
        return aten._addmm_activation.default
    # In float32 the library's tanh may be less exact than eager's.
    return ADDMM_GELU if dtype.itemsize == 2 and tree == _gelu_by_tanh() else None


@cache
def _gelu_by_tanh() -> Any:
    def constant(value: float) -> Any:
        return ops.constant(value, torch.float32)

    def body() -> None:
        x = ops.load("x", Index.number(0), torch.float32)
        cube = ops.mul(ops.mul(x, x), x)
        inner = ops.mul(ops.add(x, ops.mul(cube, constant(0.044715))), constant(math.sqrt(2 / math.pi)))
        ops.store("y", Index.number(0), ops.mul(ops.mul(x, constant(0.5)), ops.add(ops.tanh(inner), constant(1.0))))

    return _tree(trace(body))


def _tree(body: Body) -> Any:
    """What is stored, as nested tuples of op and operands; factors of a product and terms of a sum are in one order."""
    trees: list[Any] = []
    for instruction in body.instructions:
        operands = [trees[number] for number in instruction.operands]
        if instruction.op == "store":
            return operands[0]
        if instruction.op == "load":
            trees.append("x")
        elif instruction.op == "constant":
            assert isinstance(instruction.value, bool | int | float)
            trees.append(_rounded(instruction.value))
        elif instruction.op in ("mul", "square"):
            trees.append(_product([*operands, *operands] if instruction.op == "square" else operands))
        else:
            trees.append((instruction.op, *(sorted(operands, key=repr) if instruction.op == "add" else operands)))
    return None


def _product(factors: list[Any]) -> Any:
    """One product of all factors: x * (y * 0.5) as 0.5, x, y."""
    flat: list[Any] = []
    for factor in factors:
        flat += factor[1:] if isinstance(factor, tuple) and factor[0] == "mul" else (factor,)
    numbers = [factor for factor in flat if isinstance(factor, float)]
    others = sorted((factor for factor in flat if not isinstance(factor, float)), key=repr)
    return ("mul", *([_rounded(math.prod(numbers))] if numbers else []), *others)


def _rounded(value: float) -> float:
    return float(f"{float(value):.{_DIGITS}g}")
