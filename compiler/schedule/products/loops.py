"""Matrix products as loops: what a library call of one computes, in the form in which groups are fused.

    mm      for m: for n: for k: sum += left[m, k] * right[k, n]
    addmm   ...; then alpha * sum + beta * bias[m, n]
    bmm     for b: the same

A `Product` is such a loop nest as a group: one kernel of our own in place of the call, so that pointwise nodes may
join it. What follows at the same m and n is computed on the sums before they are stored; a pointwise producer of an
operand is computed as the operand's tiles are loaded. Products of one left operand may be one kernel too, which walks
along k once and has a sum for each of them (`with_another`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from compiler.ir.body import Body, operands_of, trace
from compiler.ir.index import Dim, Index
from compiler.ir.nodes import ExternNode, Layout, LoopNode, TensorArgument
from compiler.ir.ops import ops
from compiler.schedule.group import Group, Member, Space
from compiler.schedule.names import fused_name
from compiler.schedule.products.tiles import Matrices, Precision, Tile

aten = torch.ops.aten

#: How many of the leading arguments are added to the product: one for `addmm(bias, left, right)`.
_ADDED = {
    aten.mm.default: 0,
    aten.bmm.default: 0,
    aten.addmm.default: 1,
    aten.baddbmm.default: 1,
}
#: Dtypes that tensor cores, or `tl.dot` without them, multiply.
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True)
class Product(Group):
    """A matrix product with what is fused into it. The member whose body has the sum is the product itself; `call` is
    the library call that it stands for, and `beside` are the others that it stands for, where it is several products of
    one left operand; `before` are the groups that its operands came from. `library` is the one call that computes all
    of it, where the library can and that is what will run; `tile` the one that was measured to be the fastest, where
    tiles are measured."""

    call: ExternNode
    matrices: Matrices
    beside: tuple[ExternNode, ...] = ()
    before: tuple[Group, ...] = ()
    library: ExternNode | None = None
    tile: Tile | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.stored, self.library))

    @property
    def calls(self) -> tuple[ExternNode, ...]:
        """The library calls that it stands for."""
        return (self.call, *self.beside)

    @property
    def products(self) -> tuple[Member, ...]:
        """The members that have the sums, in the order of `calls`."""
        by_name = {member.name: member for member in self.members}
        return tuple(by_name[call.name] for call in self.calls)

    @property
    def follows(self) -> frozenset[str]:
        followed = (*(call.follows for call in self.calls), *(member.node.follows for member in self.members))
        return frozenset().union(*followed)

    @property
    def after(self) -> Group | None:
        """What is computed with the product's result, as a group of its own that reads it."""
        made_before = {name for group in self.before for name in group.produced}
        made_before.update(call.name for call in self.calls)
        members = tuple(m for m in self.members if m.name not in made_before)
        if not members:
            return None
        stored = self.stored - made_before
        return Group(self.name, Space(self.space.x), members, stored)


def as_product(call: ExternNode) -> Product | None:
    """The call as loops, or None where it is none of the products above, or one that `tl.dot` does not do: of other
    dtypes, of several dtypes, of sizes that differ from call to call."""
    added = _ADDED.get(call.target)
    if added is None or call.crosses_devices or len(call.outputs) != 1 or call.outputs[0] is None:
        return None
    tensors = call.arguments[: added + 2]
    if len(call.arguments) != added + 2 or not all(isinstance(tensor, TensorArgument) for tensor in tensors):
        return None
    scales = {name: call.keywords.get(name, 1) for name in ("alpha", "beta")}
    if set(call.keywords) - set(scales) or not all(isinstance(scale, int | float) for scale in scales.values()):
        return None
    layouts = [tensor.layout for tensor in tensors] + [call.outputs[0][1]]
    sizes = [size for layout in layouts for size in (*layout.shape, *layout.stride, layout.offset)]
    dtypes = {layout.dtype for layout in layouts}
    if len(dtypes) != 1 or layouts[-1].dtype not in DTYPES or not all(isinstance(size, int) for size in sizes):
        return None
    if any(0 in layout.shape for layout in layouts) or scales["beta"] == 0:
        return None
    product = _loops_of(call, list(tensors), call.outputs[0][1], **scales)
    # Without a loop along k an operand may be what is added; without others, or expanded, it may be the other one.
    return None if product.matrices.sizes[3] == 1 or operands_overlap(product) else product


def operands_overlap(product: Product) -> bool:
    """Whether one operand, as it is computed, is needed to compute the other: their tiles lie along different axes."""
    return any(_operands_overlap(member.body) for member in product.products)


def _operands_overlap(body: Body) -> bool:
    needed: list[set[int]] = []
    for recipe, instruction in zip(body.recipes, body.instructions, strict=True):
        needed.append({recipe}.union(*(needed[operand] for operand in operands_of(instruction))))
        if instruction.op == "reduce":
            left, right = body.instructions[instruction.operands[0]].operands
            return body.recipes[left] in needed[right] or body.recipes[right] in needed[left]
    return False


def left_operand(call: ExternNode) -> TensorArgument | None:
    """What a library call multiplies from the left; None where it is no product."""
    added = _ADDED.get(call.target)
    left = None if added is None or len(call.arguments) <= added else call.arguments[added]
    return left if isinstance(left, TensorArgument) else None


def with_another(product: Product, other: Product) -> Product | None:
    """Both as one: the tiles of the left operand are loaded once for the sums of all. None where that operand or the
    sizes are not the same, or where a producer was fused into one of the two.

        mm1    for m: for n: for k: sum1 += x[m, k] * w1[k, n]
        mm2    ...                  sum2 += x[m, k] * w2[k, n]      ->    for m: for n: for k: both
    """
    count = product.matrices.count + other.matrices.count
    matrices = replace(product.matrices, count=count)
    if matrices != replace(other.matrices, count=count) or left_operand(product.call) != left_operand(other.call):
        return None
    if product.before or other.before:
        return None
    members = (*product.members, *other.members)
    return replace(
        product,
        name=fused_name(members),
        members=members,
        stored=product.stored | other.stored,
        matrices=matrices,
        beside=(*product.beside, *other.calls),
        library=None,
    )


def _loops_of(call: ExternNode, tensors: list[TensorArgument], result: Layout, alpha: float, beta: float) -> Product:
    *added, left, right = tensors
    *leading, m_size, k_size = left.layout.shape
    b, m, n, k = (
        Dim("b", leading[0] if leading else 1),
        Dim("m", m_size),
        Dim("n", right.layout.shape[-1]),
        Dim("k", k_size),
    )
    batch = (Index.of(b),) if leading else ()
    at_m, at_n, at_k = Index.of(m), Index.of(n), Index.of(k)
    dtype = result.dtype

    def body() -> None:
        one = _load(left, (*batch, at_m, at_k))
        two = _load(right, (*batch, at_k, at_n))
        value = ops.reduce("sum", ops.mul(one, two))
        if alpha != 1:
            value = ops.mul(value, ops.constant(alpha, torch.float32))
        if added:
            bias = _load(added[0], _broadcast(added[0].layout, (*batch, at_m, at_n)))
            value = ops.add(value, bias if beta == 1 else ops.mul(bias, ops.constant(beta, torch.float32)))
        ops.store(call.name, result.index((*batch, at_m, at_n)), value)

    x_dims = (*((b,) if leading else ()), m, n)
    node = LoopNode(call.name, result, x_dims, (k,), trace(body), call.origins, call.lines)
    precision: Precision = "half" if dtype.itemsize == 2 else "tf32" if call.allows_tf32 else "ieee"
    matrices = Matrices(m, n, k, b if leading else None, dtype, precision)
    member = Member(node, node.body)
    return Product(call.name, Space(x_dims, (k,)), (member,), frozenset((call.name,)), call, matrices)


def _load(tensor: TensorArgument, position: tuple[Index, ...]) -> Any:
    return ops.load(tensor.buffer, tensor.layout.index(position), tensor.layout.dtype)


def _broadcast(layout: Layout, position: tuple[Index, ...]) -> tuple[Index, ...]:
    """The position in a tensor that is broadcast to the shape that has this position."""
    kept = position[len(position) - len(layout.shape) :]
    return tuple(
        Index.number(0) if size == 1 else index for index, size in zip(kept, layout.shape, strict=True)
    )  # fmt: skip
