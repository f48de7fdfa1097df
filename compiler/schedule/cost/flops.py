"""How many floating-point operations a kernel or a library call takes: counted from bodies and shapes, not predicted.

    y = x * sin(x)            2 for each element: every operation counts as one, whatever function it is
    y.sum(-1)                 1 more for each element that the reduction takes
    a @ b                     2 * m * n * k

Comparisons, selections, conversions and what computes addresses are none. A kernel that computes a value again is
counted with what it computes, as its bytes are with what it moves. The formulas of library calls are torch's own
(`torch.utils.flop_counter`); a call that it has none for is not counted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from compiler.ir.body import Body, operands_of
from compiler.ir.index import points_of
from compiler.ir.nodes import ExternNode, Layout, TensorArgument
from compiler.ir.ops import NAMED, POINTWISE
from compiler.ir.size import hint
from compiler.schedule.cost.touches import iterations
from compiler.schedule.group import Group, parts_of
from compiler.schedule.products.loops import Product

_COLLECTIVE = frozenset(("reduce", "scan"))


def flops_of_group(group: Group) -> int:
    """What the kernel of `group` takes; where sizes differ from call to call, in the first one."""
    return sum(_flops_of_product(one) if isinstance(one, Product) else _flops_of_loops(one) for one in parts_of(group))


def flops_of_call(call: ExternNode) -> int | None:
    """What a library call takes; None where torch has no formula for it."""
    from torch.utils.flop_counter import flop_registry

    formula = flop_registry.get(getattr(call.target, "_overloadpacket", None))
    if formula is None:
        return None
    made = [_shape(output[1]) for output in call.outputs if output is not None]
    try:
        count = formula(
            *map(_shaped, call.arguments),
            **{name: _shaped(value) for name, value in call.keywords.items()},
            out_val=made[0] if len(made) == 1 else tuple(made),
        )
    except Exception:  # a formula that does not know this form of the call counts nothing
        return None
    return int(count)


def _shape(layout: Layout) -> list[int]:
    return [hint(size) for size in layout.shape]


def _shaped(value: Any) -> Any:
    """The argument with a shape in each tensor's place, as torch's formulas take it."""
    if isinstance(value, TensorArgument):
        return _shape(value.layout)
    if isinstance(value, list | tuple):
        return type(value)(map(_shaped, value))
    return value


def _flops_of_loops(group: Group) -> int:
    rows = hint(group.space.numel)
    total = 0
    for member, points in zip(group.members, iterations(group), strict=True):
        everywhere, after = _of_iteration(member.body)
        total += everywhere * points + after * rows
    return total


def _flops_of_product(product: Product) -> int:
    """The sums, and with each of its elements once what is fused before and after them."""
    batch, m, n, k = product.matrices.sizes
    calls = {call.name for call in product.calls}
    total = 0
    for member in product.members:
        everywhere, after = _of_iteration(member.body)
        if member.name in calls:
            total += batch * m * n * (2 * k + after)
        else:
            total += (everywhere + after) * points_of(member.body.dims)
    return total


@lru_cache(maxsize=1 << 13)
def _of_iteration(body: Body) -> tuple[int, int]:
    """Operations of one iteration: those at every point, and those that come after its reduction."""
    after: set[int] = set()
    counts = [0, 0]
    for number, instruction in enumerate(body.instructions):
        if instruction.op == "reduce" or not after.isdisjoint(operands_of(instruction)):
            after.add(number)
        is_arithmetic = instruction.op in POINTWISE or instruction.op in NAMED or instruction.op in _COLLECTIVE
        if is_arithmetic and instruction.dtype.is_floating_point:
            counts[number in after and instruction.op != "reduce"] += 1
    return counts[0], counts[1]
