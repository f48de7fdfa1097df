"""Kernels that are made with other programs or threads than they were priced with, by kind of plan, for an H200:
`python -m bench.predictions.tiles`. It schedules the fusion table and the wide suite from fake inputs, and renders
products, without a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch

from bench.fusion.count import scheduled, schedules_of
from bench.fusion.table import PROGRAMS
from bench.patterns import Case, Input
from bench.wide import WIDE
from compiler.codegen.triton.render import plan_tile, render_triton
from compiler.compile import Planned
from compiler.ir.size import hint
from compiler.schedule.cost.kernel import cost_parts, work_and_shape
from compiler.schedule.group import Batch, parts_of
from compiler.schedule.products.loops import Product


def kinds_of(compilation: Planned) -> Iterator[tuple[str, bool]]:
    """The kind of plan of each kernel, and whether it is made as it was priced."""
    graph, device = compilation.schedule.graph, compilation.model
    for group in compilation.groups:
        if isinstance(group, Product):
            made = render_triton(group, graph.dtypes, device)
            yield "product", made.grid == cost_parts(group, graph.buffers, device)["programs"]
            continue
        for part in parts_of(group):
            shares_launch = isinstance(group, Batch)
            plan = plan_tile(part, graph.dtypes, device, shares_launch)
            _, shape = work_and_shape(part, graph.buffers, device, None, shares_launch)
            kind = f"{plan.label}, across" if part.across else plan.label
            yield kind, (shape.programs, shape.threads) == (hint(plan.grid), 32 * plan.num_warps)


def main() -> None:
    found = Counter[tuple[str, bool]]()
    for program in PROGRAMS.values():
        for compilation in schedules_of(program):
            found.update(kinds_of(compilation))
    for case in WIDE.values():
        for compilation in _schedules_of_case(case):
            found.update(kinds_of(compilation))
    for kind in sorted({kind for kind, _ in found}):
        print(f"{kind:20} {found[kind, False]:5} of {found[kind, False] + found[kind, True]:5} differ")
    print(f"{'all':20} {sum(n for (_, same), n in found.items() if not same):5} of {found.total():5} differ")


def _schedules_of_case(case: Case) -> list[Planned]:
    return scheduled(
        case.function, lambda: [_empty(one) for one in case.full], lambda compiled, x: case.call(compiled)(*x)
    )


def _empty(one: Input) -> torch.Tensor:
    is_index = one.kind == "index" and one.dtype.is_floating_point
    return torch.empty(one.shape, dtype=torch.bool if one.kind == "mask" else torch.int64 if is_index else one.dtype)


if __name__ == "__main__":
    main()
