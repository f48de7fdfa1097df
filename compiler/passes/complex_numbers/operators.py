"""What operators on complex numbers do to their real and imaginary parts.

A rule takes the operator's arguments with a `Pair` in place of each complex tensor, and writes ATen calls on them.
One that does not cover a case gives None: then nothing is written that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

aten = torch.ops.aten

#: Writes a call and gives its node, which has its value in `meta`.
Call = Callable[..., Node]


@dataclass(frozen=True)
class Pair:
    """The real and the imaginary part of a complex tensor: nodes of one shape, or Python numbers."""

    real: Any
    imaginary: Any

    @property
    def both(self) -> tuple[Any, Any]:
        return self.real, self.imaginary


def parts_of_number(value: Any) -> Pair:
    """A Python number, or a real tensor, as parts."""
    return Pair(value.real, value.imag) if isinstance(value, complex) else Pair(value, None)


Rule = Callable[..., Pair | Node | None]


# Sources ----------------------------------------------------------------------------------------------------------


def _view_as_complex(call: Call, x: Node) -> Pair:
    return Pair(call(aten.select.int, x, -1, 0), call(aten.select.int, x, -1, 1))


def _polar(call: Call, size: Node, angle: Node) -> Pair:
    cosine, sine = call(aten.cos.default, angle), call(aten.sin.default, angle)
    return Pair(call(aten.mul.Tensor, size, cosine), call(aten.mul.Tensor, size, sine))


def _complex(call: Call, real: Node, imaginary: Node) -> Pair | None:
    shapes = [part.meta["val"].shape for part in (real, imaginary)]
    if shapes[0] == shapes[1]:
        return Pair(real, imaginary)
    shape = torch.broadcast_shapes(*shapes)
    if any(isinstance(size, torch.SymInt) for size in shape):
        return None  # a size that no node gives
    return Pair(*(call(aten.expand.default, part, list(shape)) for part in (real, imaginary)))


# Arithmetic -------------------------------------------------------------------------------------------------------


def _mul(call: Call, a: Any, b: Any) -> Pair:
    a, b = (value if isinstance(value, Pair) else parts_of_number(value) for value in (a, b))
    if a.imaginary is None or b.imaginary is None:
        factor, other = (a.real, b) if a.imaginary is None else (b.real, a)
        return Pair(*(_product(call, part, factor) for part in other.both))
    real = call(aten.sub.Tensor, _product(call, a.real, b.real), _product(call, a.imaginary, b.imaginary))
    imaginary = call(aten.add.Tensor, _product(call, a.real, b.imaginary), _product(call, a.imaginary, b.real))
    return Pair(real, imaginary)


def _product(call: Call, a: Any, b: Any) -> Node:
    return call(aten.mul.Tensor, a, b) if isinstance(a, Node) else call(aten.mul.Tensor, b, a)


def _sum(target: Any) -> Rule:
    def rule(call: Call, a: Any, b: Any, alpha: Any = 1) -> Pair | None:
        if alpha != 1 or not isinstance(a, Pair) or not isinstance(b, Pair | bool | int | float | complex):
            return None
        real, imaginary = b.both if isinstance(b, Pair) else (complex(b).real, complex(b).imag)
        return Pair(call(target, a.real, real), call(target, a.imaginary, imaginary))

    return rule


def _div(call: Call, a: Any, b: Any) -> Pair | None:
    if not isinstance(a, Pair):
        return None
    if isinstance(b, Pair):
        return _quotient(call, a, b)
    if isinstance(b, complex):
        return _mul(call, a, 1 / b) if b != 0 else None
    return Pair(*(call(aten.div.Tensor, part, b) for part in a.both))


def _reciprocal(call: Call, z: Pair) -> Pair:
    one, nothing = (call(aten.full_like.default, z.real, number) for number in (1, 0))
    return _quotient(call, Pair(one, nothing), z)


def _quotient(call: Call, a: Pair, b: Pair) -> Pair:
    """Both are divided by the larger part of the divisor, as eager does, so that no square of it overflows (R. L.
    Smith, "Algorithm 116: Complex division", Communications of the ACM 5, 1962)."""
    is_swapped = call(aten.lt.Tensor, call(aten.abs.default, b.real), call(aten.abs.default, b.imaginary))

    def chosen(where_swapped: Node, otherwise: Node) -> Node:
        return call(aten.where.self, is_swapped, where_swapped, otherwise)

    large, small = chosen(b.imaginary, b.real), chosen(b.real, b.imaginary)
    # Nothing is divided by nothing where the divisor is zero, so that the quotient is infinite there.
    is_zero, nothing = call(aten.eq.Scalar, large, 0), call(aten.full_like.default, large, 0)
    share = call(aten.where.self, is_zero, nothing, call(aten.div.Tensor, small, large))
    divisor = call(aten.add.Tensor, large, _product(call, small, share))
    first, second = chosen(a.imaginary, a.real), chosen(a.real, a.imaginary)
    real = call(aten.add.Tensor, first, _product(call, second, share))
    imaginary = call(aten.sub.Tensor, second, _product(call, first, share))
    imaginary = chosen(call(aten.neg.default, imaginary), imaginary)
    return Pair(call(aten.div.Tensor, real, divisor), call(aten.div.Tensor, imaginary, divisor))


def conjugate(call: Call, z: Pair, **settings: Any) -> Pair:
    return Pair(z.real, call(aten.neg.default, z.imaginary))


def _exp(call: Call, z: Pair) -> Pair:
    return _polar(call, call(aten.exp.default, z.real), z.imaginary)


def _same(call: Call, z: Pair, **settings: Any) -> Pair:
    return z


# Views and what else does the same to both parts --------------------------------------------------------------------


def _each(target: Any) -> Rule:
    def rule(call: Call, z: Any, *arguments: Any, **settings: Any) -> Pair | None:
        if settings.get("dtype") is not None or any(isinstance(argument, Pair) for argument in arguments):
            return None
        return Pair(*(call(target, part, *arguments, **settings) for part in z.both))

    return rule


def _joined(target: Any) -> Rule:
    def rule(call: Call, tensors: Sequence[Any], *arguments: Any) -> Pair | None:
        if not all(isinstance(z, Pair) for z in tensors):
            return None
        lists = [z.real for z in tensors], [z.imaginary for z in tensors]
        return Pair(*(call(target, parts, *arguments) for parts in lists))

    return rule


_EACH = """view.default _unsafe_view.default reshape.default unsqueeze.default squeeze.dim squeeze.dims squeeze.default
    permute.default transpose.int t.default expand.default slice.Tensor select.int alias.default neg.default
    flip.default sum.dim_IntList sum.default mean.dim mean.default index_select.default"""


# Real numbers of complex ones ---------------------------------------------------------------------------------------


def _abs(call: Call, z: Pair) -> Node:
    return call(aten.hypot.default, z.real, z.imaginary)


def _angle(call: Call, z: Pair) -> Node:
    return call(aten.atan2.default, z.imaginary, z.real)


def view_as_real(call: Call, z: Pair) -> Node:
    """The parts beside each other, as a complex tensor lies in memory."""
    return call(aten.stack.default, list(z.both), -1)


def _overload(name: str) -> Any:
    packet, overload = name.split(".")
    return getattr(getattr(aten, packet), overload)


#: What makes complex tensors of real ones.
SOURCES: dict[Any, Rule] = {
    aten.view_as_complex.default: _view_as_complex,
    aten.polar.default: _polar,
    aten.complex.default: _complex,
}

#: What makes complex tensors of complex ones.
RULES: dict[Any, Rule] = {
    aten.mul.Tensor: _mul,
    aten.add.Tensor: _sum(aten.add.Tensor),
    aten.sub.Tensor: _sum(aten.sub.Tensor),
    aten.div.Tensor: _div,
    aten.reciprocal.default: _reciprocal,
    aten._conj.default: conjugate,
    aten.conj_physical.default: conjugate,
    aten.exp.default: _exp,
    aten.clone.default: _same,
    aten.resolve_conj.default: _same,
    aten.cat.default: _joined(aten.cat.default),
    aten.stack.default: _joined(aten.stack.default),
    **{target: _each(target) for target in map(_overload, _EACH.split())},
}

#: What makes real tensors of complex ones.
ENDS: dict[Any, Rule] = {
    aten.view_as_real.default: view_as_real,
    aten.abs.default: _abs,
    aten.angle.default: _angle,
}
