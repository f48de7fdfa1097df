"""Keep the assembler from unrolling the loop of a matrix product.

The assembler unrolls a loop whose trip count it knows by a dozen and more. For tiles on tensor cores that takes half a
second and more, twenty times as long as the loop itself. A kernel's text marks loops that gain nothing from that by
`loop_unroll_factor=1` (see `codegen/triton/product.py`). Triton does not unroll such a loop, and tells neither LLVM nor
the assembler.
"""

from __future__ import annotations

import re
from typing import Any

#: What has the assembler leave the loop alone at whose first label it stands.
AS_IT_IS = '.pragma "nounroll";'

_LABEL = re.compile(r"^(\$\w+):[^\n]*\n", re.MULTILINE)
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")
_ON_TENSOR_CORES = re.compile(r"\b(?:wgmma\.mma_async|mma)\.sync\b")


def has_loop_to_keep(module: Any) -> bool:
    """Whether the kernel, in Triton's first form, multiplies tiles in a loop that is to be left alone."""
    operators: set[str] = set()
    module.walk(lambda operator: operators.add(operator.get_name()))
    return "tt.dot" in operators and "tt.loop_unroll_factor = 1 :" in str(module)


def with_loops_kept(ptx: str) -> str:
    """The text of a kernel whose innermost loops are kept as they are, where they multiply tiles on tensor cores."""
    if _ON_TENSOR_CORES.search(ptx) is None:
        return ptx
    starts = {label[1]: label.end() for label in _LABEL.finditer(ptx)}
    ends = {
        starts[branch[1]]: branch.end()
        for branch in _BRANCH.finditer(ptx)
        if starts.get(branch[1], branch.end()) < branch.end()
    }
    made, done = [], 0
    for start, end in sorted(ends.items()):
        is_innermost = not any(start < other < end for other in ends)
        if is_innermost and _ON_TENSOR_CORES.search(ptx, start, end) is not None:
            made += [ptx[done:start], f"\t{AS_IT_IS}\n"]
            done = start
    return "".join([*made, ptx[done:]])
