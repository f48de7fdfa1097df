"""Whether gradients find the maximum that they belong to: random programs around maxima, minima, medians and norms.

    python -m bench.extremes --device cuda --seconds 100 --seed 1

A maximum's gradient goes to the elements that equal it. A compiler that computes these elements again may get other
digits, from values that were rounded when they were stored or by another contraction of a product and a sum. Then no
element is found, and the gradient is divided by zero. Each program computes `t` of three matrices, `y` of `t`, and an
extreme of `y`; some compare `y` with its extreme themselves, or take the root of what lies between. It counts where a
compiler has NaN and eager mode numbers, in a gradient or a root, and where eager mode finds an element and a compiler
none.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from compiler.backend import fusionscope

COMPILERS: dict[str, Any] = {"ours": fusionscope, "TorchInductor": "inductor"}
DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.float16)
ROWS, COLUMNS, GROUPS = 400, 240, 5

EXPRESSIONS = (
    "({0} * {1})", "({0} + {1})", "({0} - {1})", "({0} * {1} + a)", "({0} / (1 + b.abs()))", "(a + ({0} - a) * 0.3)",
    "torch.sigmoid(a * {0})", "torch.exp(-(a * {0}).abs())", "torch.tanh(b * {0})",
)  # fmt: skip
AT_INDICES = "torch.zeros(5, y.shape[1], dtype=y.dtype, device=y.device)"
EXTREMES = (
    "y.amax(-1)", "y.amax(0)", "y.max()", "y.amin(-1)", "y.min()", "y.median()", "y.amax((0, 1))",
    "torch.linalg.vector_norm(y, float('inf'), dim=-1)", "torch.linalg.vector_norm(y, float('-inf'), dim=-1)",
    f"{AT_INDICES}.scatter_reduce(0, index, y, 'amax', include_self=False)",
    f"{AT_INDICES}.index_reduce(0, index[:, 0].contiguous(), y, 'amin', include_self=False)",
)  # fmt: skip
FOUND = (
    "(y == y.max()).sum()", "(y == y.amax(0)).sum(0)", "(y == y.amin(-1, keepdim=True)).sum(-1)",
    "(y >= y.topk(3, -1)[0][:, -1:]).sum(-1)",
    f"(y == {AT_INDICES}.scatter_reduce(0, index, y, 'amax', include_self=False).gather(0, index)).sum(0)",
)  # fmt: skip

ROOTS = (
    "(y - y.amin()).sqrt()", "(y.amax(-1, keepdim=True) - y).sqrt()", "(y - y.amin(0)).log1p().sqrt()",
    "(y.cummax(-1)[0] - y).sqrt()", "((y - y.amin(-1, True)) / (y.amax(-1, True) - y.amin(-1, True))).acos()",
)  # fmt: skip
#: What the last result of a program is: a number whose gradient is taken, elements found, or roots.
OF_KINDS = {"gradients": EXTREMES, "comparisons": FOUND, "roots": ROOTS}

Program = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, ...]]


def written(choose: random.Random) -> tuple[str, str]:
    """The text of a program, and its kind."""
    (kind,) = choose.choices(list(OF_KINDS), (5, 3, 2))
    t, y = (_expression(choose, choose.choice((1, 1, 2)), names) for names in ("abc", "tca"))
    given = "t, extreme" if choose.random() < 0.5 else "extreme,"
    head = f"def program(a, b, c, index):\n    t = a * {t}\n    y = t * {y}\n"
    return f"{head}    extreme = {choose.choice(OF_KINDS[kind])}\n    return ({given})\n", kind


def _expression(choose: random.Random, depth: int, names: str) -> str:
    if depth == 0:
        return choose.choice((*names, "1.7", "0.3"))
    inner = [_expression(choose, depth - 1, names) for _ in range(2)]
    return choose.choice(EXPRESSIONS).format(*inner)


def misses(program: Program, compiled: Program, inputs: list[Tensor], index: Tensor, kind: str) -> bool:
    """Whether the compiled program has NaN, or finds nothing, where eager mode has numbers."""
    wanted, found = (_outcome(call, inputs, index, kind == "gradients") for call in (program, compiled))
    if kind == "comparisons":
        return bool(((found[-1] == 0) & (wanted[-1] > 0)).any())
    return any(bool((mine.isnan() & ~eager.isnan()).any()) for mine, eager in zip(found, wanted, strict=True))


def _outcome(call: Program, inputs: list[Tensor], index: Tensor, learns: bool) -> list[Tensor]:
    leaves = [x.clone().requires_grad_(learns) for x in inputs]
    results = call(*leaves, index)  # type: ignore[call-arg]
    if not learns:
        return list(results)
    return list(
        torch.autograd.grad([x.float().sum() for x in results], leaves, allow_unused=True, materialize_grads=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.extremes", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long new programs are begun (60)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    choose, until = random.Random(arguments.seed), time.monotonic() + arguments.seconds
    count: Counter[str] = Counter()
    while time.monotonic() < until:
        text, kind = written(choose)
        names: dict[str, Any] = {"torch": torch}
        exec(text, names)  # noqa: S102 - it was written above
        generator = torch.Generator().manual_seed(sum(count.values()))
        matrices = torch.randn(3, ROWS, COLUMNS, generator=generator).to(arguments.device, choose.choice(DTYPES))
        index = torch.randint(GROUPS, (ROWS, 1), generator=generator).to(arguments.device).expand(ROWS, COLUMNS)
        count[kind] += 1
        for name, backend in COMPILERS.items():
            torch._dynamo.reset()
            compiled = torch.compile(names["program"], backend=backend)
            if misses(names["program"], compiled, list(matrices), index, kind):
                count[f"{kind} missed by {name}"] += 1
                print(f"{name}, {matrices.dtype}:\n{text}", flush=True)
    print(dict(count))


if __name__ == "__main__":
    main()
