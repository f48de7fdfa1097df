"""What padding does for products of odd sizes on a GPU: times with and without it, beside those that are predicted.

    python -m bench.padding [--seconds SECONDS]

Each function is compiled with padding turned off and with padding forced, whatever is expected of it. Printed is
a table of Markdown: device time between CUDA events, L2 cache overwritten before each sample, contestants interleaved,
medians in microseconds; and errors ||out - ref|| / ||ref|| of the first rows against float64. Predictions are those of
`compiler/passes/price.py`, of the products and their copies alone.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.contest import VARIANTS, compile_ours
from compiler.compile import Built, observed_compilations
from compiler.options import Timing
from compiler.passes.padding import decide
from compiler.passes.padding.choice import PaddingChoice
from compiler.runtime.checking.verify import to_double
from compiler.runtime.timing.measure import take_samples
from compiler.runtime.timing.stopwatch import stopwatch

#: Rows of the result that are compared with float64.
CHECKED = 64


def returned(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return x @ w.t()


def with_bias(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w, b)


def gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b)) * 2


def into_another(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.tanh(F.linear(x, w, b)) @ w


@dataclass(frozen=True)
class Case:
    """Rows of x, columns of x and of the weight, and rows of the weight."""

    function: Callable[..., Tensor]
    sizes: tuple[int, int, int]


CASES = (
    Case(with_bias, (16384, 768, 30522)), Case(with_bias, (256, 768, 30522)), Case(returned, (1024, 768, 50257)),
    Case(returned, (32, 768, 50257)), Case(returned, (1, 768, 50257)), Case(gelu, (4096, 4096, 4098)),
    Case(returned, (4096, 4100, 4096)), Case(returned, (4096, 4097, 4096)), Case(into_another, (2048, 1024, 2049)),
    Case(gelu, (4096, 1024, 1025)), Case(returned, (16384, 768, 1001)), Case(returned, (16384, 256, 2050)),
    Case(returned, (16384, 64, 4100)), Case(gelu, (16384, 64, 4100)), Case(gelu, (8192, 588, 1024)),
    Case(returned, (8192, 588, 1024)), Case(returned, (2048, 2048, 1026)), Case(returned, (1024, 1024, 1025)),
    Case(returned, (1024, 1024, 1026)), Case(gelu, (1024, 1024, 1026)), Case(returned, (1024, 1025, 1024)),
    Case(gelu, (512, 768, 1001)), Case(gelu, (256, 256, 257)), Case(returned, (65536, 512, 10)),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=math.inf, help="No case is begun after so many.")
    until = time.monotonic() + parser.parse_args().seconds
    print("| product | eager | not padded | padded | predicted saved | found | chosen | errors |")
    print("|---|---|---|---|---|---|---|---|")
    for case in CASES:
        if time.monotonic() < until:
            print(row_of(case, torch.device("cuda")), flush=True)


def row_of(case: Case, device: torch.device) -> str:
    """One line of the table."""
    torch._dynamo.reset()
    given, function = _given(case, device), case.function
    padded, chosen = _compiled_padded(function, given)
    plain = compile_ours(_alike(function), VARIANTS["ours_without_padding"])
    with torch.no_grad():
        exact = function(*to_double((given[0][:CHECKED], *given[1:])))
        errors = [
            float((call(*given)[:CHECKED] - exact).norm() / exact.norm()) for call in (function, plain, padded)
        ]  # fmt: skip
        calls = {"eager": function, "plain": plain, "padded": padded}
        bound = {name: (lambda call=call: call(*given)) for name, call in calls.items()}
        samples = take_samples(bound, stopwatch(device, cold_l2=True), device, Timing(min_runs=15, max_seconds=0.3))
    us = {name: 1e3 * sample.median_ms for name, sample in samples.items()}
    saved = sum(choice.saved_us or 0.0 for choice in chosen)
    does = ", ".join("padded" if _pays(choice) else "kept" for choice in chosen) or "no candidate"
    name = f"{function.__name__} {' x '.join(map(str, case.sizes))}"
    times = " | ".join(f"{us[name]:.1f}" for name in ("eager", "plain", "padded"))
    found = us["plain"] - us["padded"]
    return f"| {name} | {times} | {saved:.1f} | {found:.1f} | {does} | {' '.join(f'{error:.1e}' for error in errors)} |"


def _given(case: Case, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    rows, inner, columns = case.sizes
    torch.manual_seed(0)
    x, w, b = (torch.randn(shape, device=device) for shape in ((rows, inner), (columns, inner), (columns,)))
    return x.bfloat16(), (w / inner**0.5).bfloat16(), b.bfloat16()


def _alike(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same function with code of its own: Dynamo keeps what it compiled by code."""
    assert isinstance(function, FunctionType)
    return FunctionType(function.__code__.replace(), function.__globals__)


def _compiled_padded(
    function: Callable[..., Tensor], given: tuple[Tensor, ...]
) -> tuple[Callable[..., Tensor], tuple[PaddingChoice, ...]]:
    """The function with all its products padded, and what was expected of that."""
    graphs: list[Built] = []
    compiled = compile_ours(_alike(function))
    forced: dict[str, Any] = {"LEAST_PRODUCTS": 0, "FEWEST": 0, "WORTH": math.inf}
    with torch.no_grad(), observed_compilations(graphs.append), patch.multiple(decide, **forced):
        compiled(*given)
    return compiled, graphs[0].paddings


def _pays(choice: PaddingChoice) -> bool:
    rows, inner, columns = choice.sizes
    is_large = rows * inner * columns >= decide.LEAST_PRODUCTS and min(rows, columns) >= decide.FEWEST
    saved_us = choice.saved_us
    return is_large and saved_us is not None and saved_us > (1 - decide.WORTH) * choice.numbers["kept_us"]


if __name__ == "__main__":
    main()
