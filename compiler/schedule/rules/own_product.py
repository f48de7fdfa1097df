"""Run a matrix product that nothing fuses with by a kernel of our own.

    y = x @ w    8 x 4096 by 4096 x 4096    ->    tiles of 16 x 32, and 4 programs for each, with a part of k each

Where a result has few tiles, whoever computes it waits for the operands: as many programs as memory keeps busy must
share the sums. The library chooses by sizes too, and was measured to be further from what memory gives. This
fuses nothing: it decides how one unit runs, after all fusions.
"""

from __future__ import annotations

from compiler.decisions import Refuse
from compiler.ir.nodes import ExternNode
from compiler.schedule.products.best_tile import tile_of
from compiler.schedule.rules.products import as_ours, cost_of, least_gain
from compiler.schedule.rules.verdicts import Context, Fuse, Score

KIND = "own_product"


def own_product(number: int, context: Context) -> Fuse | Refuse | None:
    """The verdict on a library call; None where it is none of the products that programs could share."""
    call = context.graph.units[number]
    product = as_ours(call, context) if isinstance(call, ExternNode) else None
    if product is None:
        return None
    tile = tile_of(product, context.device)
    if tile.splits == 1:
        return None
    if KIND in context.disabled:
        return Refuse("policy.disabled", {"knob": KIND})
    ours, library = context.cost(product), cost_of(call, context)
    numbers = {
        "call": call.name,
        "shared": call.name,
        "splits": tile.splits,
        "fused_us": ours.microseconds,
        "unfused_us": library.microseconds,
        "library_us": library.microseconds,
        "least_gain": least_gain(context),
        "space": str(product.space),
    }
    if ours.microseconds > library.microseconds * (1 - least_gain(context)):
        return Refuse("profit.library", numbers)
    score = Score(KIND, library.bytes - ours.bytes, 0, ours.microseconds, library.microseconds)
    return Fuse.into(f"fused.{KIND}", product, score, numbers)
