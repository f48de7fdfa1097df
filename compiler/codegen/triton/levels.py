"""Where the values of a kernel live by its plan: in memory, a cache, or registers.

Memory gives each element once. A kernel may load it more often: in later passes over a reduction that is too long for
registers, in each program that needs a row of weights, at each point where a window reads it. A load fetches a tile
that spans the axes which its index depends on:

    pointwise over 1024 x 512, x0 and x1 in one axis      bias[x1] is loaded by each of the 524,288 points
    reduction over r of 1024 rows, 4 rows a program       weight[r] is loaded by each of the 256 programs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

import torch

from compiler import report
from compiler.codegen.triton.render import plan_tile
from compiler.codegen.triton.values.statements import StatementPrinter
from compiler.devices import Device
from compiler.ir.nodes import Layout
from compiler.ir.size import hint, known
from compiler.schedule.cost.kernel import lost_from_cache
from compiler.schedule.cost.moved import moved_by_group
from compiler.schedule.group import Batch, Group, parts_of
from compiler.schedule.products.best_tile import tile_of
from compiler.schedule.products.loops import Product
from compiler.schedule.products.tiles import programs_of
from compiler.schedule.program.program import Level, Statement
from compiler.schedule.tiles.plan import Axis, CooperativePlan, LookBackPlan, PersistentPlan, Plan, ProductPlan


def describe_levels(
    group: Group, storage: dict[str, torch.dtype], layouts: Mapping[str, Layout], device: Device
) -> report.KernelLevels:
    """The levels of memory of the Triton kernel of `group` for `device`."""
    if isinstance(group, Product):
        return _levels_of_product(group, layouts, device)
    plans = [plan_tile(part, storage, device, isinstance(group, Batch)) for part in parts_of(group)]
    loaded = Counter[str]()
    for plan in plans:
        loaded.update(_loaded_bytes(plan))
    moved = moved_by_group(group, layouts)
    return report.KernelLevels(
        target=device.target,
        plan=plans[0].label if len(plans) == 1 else "batch",
        programs=sum(hint(plan.grid) for plan in plans),
        threads=32 * max(plan.num_warps for plan in plans),
        tile={axis.block_name: axis.block for axis in plans[0].axes} if len(plans) == 1 else {},
        passes=max(_passes(plan) for plan in plans),
        loads=[
            report.TensorLoads(tensor=name, memory_bytes=size, loaded_bytes=max(loaded[name], size))
            for name, size in moved.read.items()
        ],
        missed_bytes=lost_from_cache(group, dict(layouts), device),
        kept=[member.name for member in group.members if member.name not in group.stored],
        combined=[m.name for m in group.members if m.body.reduction is not None or m.body.scan is not None],
    )


def _levels_of_product(product: Product, layouts: Mapping[str, Layout], device: Device) -> report.KernelLevels:
    tile = tile_of(product, device)
    blocks = {product.matrices.rows: tile.m, product.matrices.columns: tile.n}
    loaded = Counter[str]()
    for access in {access for member in product.members for access in member.body.reads}:
        if access.buffer not in product.produced:
            # Each tile of the result loads what it needs for itself.
            apart = (known(dim.size) if dim in access.index.dims else -(-known(dim.size) // blocks.get(dim, 1))
                     for dim in product.space.x)  # fmt: skip
            along_k = known(product.matrices.inner.size) if product.matrices.inner in access.index.dims else 1
            loaded[access.buffer] += prod(apart) * along_k * layouts[access.buffer].dtype.itemsize
    return report.KernelLevels(
        target=device.target,
        plan=ProductPlan.label,
        programs=programs_of(product.matrices, tile),
        threads=32 * tile.warps,
        tile={"MBLOCK": tile.m, "NBLOCK": tile.n, "KBLOCK": tile.k},
        passes=1,
        loads=[
            report.TensorLoads(tensor=name, memory_bytes=size, loaded_bytes=max(loaded[name], size))
            for name, size in moved_by_group(product, layouts).read.items()
        ],
        kept=[member.name for member in product.members if member.name not in product.stored],
    )


def _passes(plan: Plan) -> int:
    """How often it runs through the reduction loops and loads; 0 where there are none."""
    runs = len(plan.program.passes)
    return min(runs, 1) if isinstance(plan, PersistentPlan | CooperativePlan | LookBackPlan) else runs


def _loaded_bytes(plan: Plan) -> Counter[str]:
    found = Counter[str]()
    printer = StatementPrinter(plan)
    for level, statement in _in_order(plan):
        printer.note_axes(statement)
        if statement.op == "load" and statement.buffer is not None:
            axes = [axis for axis in plan.axes if axis.name != "r" or level == "r"]
            count = prod(_times(axis, printer.axes_of[statement.number]) for axis in axes)
            count *= plan.splits if level == "x" else 1
            if level == "tail":
                assert statement.index is not None
                count = statement.index.points
            found[statement.buffer] += count * plan.program.dtype_of(statement).itemsize
    return found


def _in_order(plan: Plan) -> Iterator[tuple[Level, Statement]]:
    """Every statement with its level, as often as it stands in the kernel: a looped one has some in several passes."""
    for section in plan.program.sections:
        yield from ((section.level, statement) for statement in section.statements)
    yield from (("tail", statement) for statement in plan.program.tail)


def _times(axis: Axis, varies_along: frozenset[str]) -> int:
    """Elements that tiles fetch along an axis: all of them, or one a block where the index does not depend on it."""
    return hint(axis.numel) if axis.name in varies_along or axis.is_scalar else hint(axis.blocks)
