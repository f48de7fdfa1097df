"""Fuse pointwise nodes into the kernel of a matrix product.

    sum = left @ right;  for i: y[i] = f(sum[i], z[i])     ->    each tile of sums: y = f(sum, z)           (epilogue)
    for i: x[i] = g(i);  sum = x @ right                   ->    each tile of x that is loaded: g           (prologue)
    sum = bias + left @ right;  y[i] = relu(sum[i])        ->    one call of the library            (library epilogue)

A library call is a finished kernel, so a kernel of our own takes its place, and the library's is often the faster one:
that loss is weighed against the bytes and the launch that are saved. An epilogue is legal where it reads the product at
the point that it writes; a prologue wherever it may be computed again for each tile that reads it.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.decisions import Refuse
from compiler.ir.body import Body
from compiler.ir.nodes import ExternNode
from compiler.schedule.cost.kernel import Cost, extern_cost, sequence_us
from compiler.schedule.group import Group
from compiler.schedule.inline import compose, inline_into
from compiler.schedule.legality import align, in_order, move, reads_match_writes
from compiler.schedule.names import fused_name
from compiler.schedule.products.best_tile import has_function, may_be_ours
from compiler.schedule.products.library_epilogues import library_epilogue
from compiler.schedule.products.loops import Product, as_product, operands_overlap
from compiler.schedule.rules.verdicts import Context, Fuse, third_between
from compiler.schedule.units import Unit

LIBRARY = "library_epilogue"
#: The model of products errs by more than that of loops, and the library is the safe choice: so much must be gained.
LEAST_GAIN = 0.10
#: The same of simple arithmetic that follows a product: of ReLU and residuals after six products of bfloat16 on an
#: H200, those that were predicted to gain 5 to 12 % gained 7 to 11 %. GELU takes twice of what is expected.
LEAST_GAIN_OF_EPILOGUES = 0.05
#: The same where descriptors bring the tiles, whose model was fitted to their own kernels: of ten gates on an H200,
#: those expected to gain at all gained 1 to 11 %, and those expected to lose lost.
LEAST_GAIN_OF_DESCRIBED = 0.01
#: The same where both were measured: figures repeat so well.
LEAST_MEASURED_GAIN = 0.02


def least_gain(context: Context, epilogue: Product | None = None) -> float:
    """The least gain over the library's kernel, as a share of its time."""
    if context.measure is not None:
        return LEAST_MEASURED_GAIN
    return LEAST_GAIN if epilogue is None or has_function(epilogue) else LEAST_GAIN_OF_EPILOGUES


def is_call(unit: Unit) -> bool:
    """Whether a unit is a library call, or a kernel that replaced one."""
    return isinstance(unit, ExternNode | Product)


def fuse_with_call(a: int, b: int, context: Context) -> Fuse | Refuse:
    """The verdict on two units of which one is a library call, or a product already."""
    one, two = context.graph.units[a], context.graph.units[b]
    made = [name for name in sorted(one.produced) if name in two.needed]
    if made and not is_call(two):
        product, rule = as_ours(one, context), "epilogue"
    elif made and not is_call(one):
        product, rule = as_ours(two, context), "prologue"
    else:
        product, rule = None, ""
    if product is None:
        call = next((unit for unit in (one, two) if isinstance(unit, ExternNode)), one if is_call(one) else two)
        return Refuse("kind.extern", {"extern": name_of(call)})
    intermediate = third_between(a, b, context.graph)
    if intermediate is not None:
        return intermediate
    nodes = len(one.nodes) + len(two.nodes)
    if nodes > context.limits.most_nodes:
        return Refuse("policy.group_size", {"nodes": nodes, "limit": context.limits.most_nodes})
    if rule == "epilogue":
        assert isinstance(two, Group)
        group = with_epilogue(product, two, made)
    else:
        assert isinstance(one, Group)
        group = _with_prologue(one, product, made, {a, b}, context)
    if isinstance(group, Refuse):
        return group
    group = replace(group, stored=context.graph.escaping(group.produced, {a, b}), library=None)
    theirs = _by_library(group, rule, context)
    if theirs is not None:
        return _weigh(LIBRARY, theirs, a, b, context)
    if rule in context.disabled:
        return Refuse("policy.disabled", {"knob": rule})
    return _weigh(rule, group, a, b, context)


def _by_library(product: Product, rule: str, context: Context) -> Product | None:
    """The product computed by one library call, where there is such a call and ours is not clearly faster."""
    call = library_epilogue(product) if LIBRARY not in context.disabled else None
    if call is None:
        return None
    theirs = replace(product, library=call)
    is_ours_faster = context.cost(product).microseconds < context.cost(theirs).microseconds * (1 - least_gain(context))
    return None if is_ours_faster and rule not in context.disabled else theirs


def name_of(unit: Unit) -> str:
    """The name of the library call that a unit is or replaced."""
    return unit.call.name if isinstance(unit, Product) else unit.name


def as_ours(unit: Unit, context: Context) -> Product | None:
    """The unit as a kernel of our own, if it is a product and the device can run it."""
    if not may_be_ours(context.device):
        return None
    if isinstance(unit, ExternNode):
        if unit.name not in context.products:
            context.products[unit.name] = as_product(unit)
        return context.products[unit.name]
    return unit if isinstance(unit, Product) else None


def with_epilogue(product: Product, guest: Group, made: list[str]) -> Product | Refuse:
    """The product with loops that read `made` of it; what it stores is not looked at."""
    mismatch = _not_pointwise(product, guest)
    if mismatch is not None:
        return mismatch
    if guest.space.numel != product.space.numel:
        return Refuse("shape.numel")
    values = align(product, guest, made)
    if isinstance(values, Refuse):
        return values
    members = in_order((*product.members, *move(guest, values)))
    wrong = reads_match_writes(members)
    if wrong is not None:
        return wrong
    return replace(product, name=fused_name(members), members=members)


def _not_pointwise(product: Product, other: Group) -> Refuse | None:
    """A refusal where loops do not compute one element at a time, with the member that stands in the way: the pair
    that was asked about may do so."""
    is_in_place = bool(other.updated) or any(member.body.is_scatter for member in other.members)
    if not (other.space.r or is_in_place or other.has_check):
        return None
    nodes = [member.node for member in other.members]
    takes_more = next((node for node in nodes if node.is_reduction or node.is_scatter or node.is_scan), nodes[-1])
    return Refuse("kind.not_pointwise", {"call": product.call.name, "unlike": takes_more.name})


def _with_prologue(
    producer: Group, product: Product, made: list[str], inside: set[int], context: Context
) -> Product | Refuse:
    mismatch = _not_pointwise(product, producer)
    if mismatch is not None:
        return mismatch
    (buffer, *others) = made
    is_random = any(member.body.is_random for member in producer.members)
    if others or is_random or len(producer.stored) != 1 or context.graph.escaping(producer.produced, inside):
        return Refuse("profit.operand_needed", {"shared": buffer})
    arithmetic = compose(producer, buffer)
    members = None if arithmetic is None else inline_into(product, arithmetic, buffer, producer.space.x)
    if members is None or _is_read_outside(product, buffer):
        return Refuse("index.no_common_loops")
    absorbed = [replace(member, body=Body(())) for member in producer.members]
    everything = (*absorbed, *members)
    # What was taken in earlier may read it, and nothing of theirs is stored that it could read.
    fused = replace(product, name=fused_name(everything), members=everything, before=(producer, *product.before))
    return Refuse("index.no_common_loops") if operands_overlap(fused) else fused


def _is_read_outside(product: Product, buffer: str) -> bool:
    """Whether what follows the sums reads the operand as well, or the product reads it as both."""
    reads = [access for member in product.members for access in member.body.reads if access.buffer == buffer]
    return len(reads) != 1 or not any(dim.name == "k" for dim in reads[0].index.dims)


def _weigh(kind: str, group: Product, a: int, b: int, context: Context) -> Fuse | Refuse:
    graph = context.graph
    one, two = graph.units[a], graph.units[b]
    is_forced = context.directives.forces(one, two)
    buffers = len(group.read_buffers) + len(group.stored)
    if not is_forced and buffers > context.limits.most_buffers:
        return Refuse("profit.too_many_buffers", {"buffers": buffers, "limit": context.limits.most_buffers})
    apart = [cost_of(unit, context) for unit in (one, two)]
    fused = context.cost(group)
    unfused_us = sequence_us(apart, context.device)
    score, numbers = context.score(kind, a, b, apart, fused, unfused_us, is_forced=is_forced)
    library = next((cost for unit, cost in zip((one, two), apart, strict=True) if isinstance(unit, ExternNode)), None)
    least = least_gain(context, group if kind == "epilogue" else None)
    numbers |= {"call": group.call.name, "least_gain": least, "space": str(group.space)}
    if library is not None:
        numbers["library_us"] = library.microseconds
    # The library's own epilogue takes nothing that the product alone would not take; and where a kernel of ours took
    # the place of several calls, it was weighed with what follows.
    is_ours_at_stake = group.library is None and not group.beside
    wanted = unfused_us * (1 - least) if is_ours_at_stake else unfused_us
    if not is_forced and fused.microseconds > wanted:
        return Refuse("profit.library", numbers)
    return Fuse.into(f"fused.{kind}", group, score, numbers)


def cost_of(unit: Unit, context: Context) -> Cost:
    """The cost of loops, or of a call for which `as_ours` found a product."""
    if isinstance(unit, Group):
        return context.cost(unit)
    product = context.products[unit.name]
    assert product is not None
    return context.measured(unit, extern_cost(unit, product.matrices, context.graph.layouts, context.device))
