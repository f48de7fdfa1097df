"""Small programs by one thread of the CPU, ours beside eager mode: where a kernel's own speed shows, and a call's cost.

    python -m bench.one_thread --out docs/performance/archive/one_thread_cpu.json
    python -m bench.one_thread --suite operators [--cases gelu,tanh]

`programs` are operators, norms, poolings, reductions, losses, and convolutions or products with what follows them, in
sizes of some 20 to 1,500 microseconds; `operators` are single pointwise ones of 100,000 floats. The two take turns, and
each time is the least processor time of a call, the guards of `torch.compile` included, which what else runs on the
machine lengthens least. Freed memory stays in the process.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.environment import describe, write_json
from compiler.runtime.cpp.instruction_sets import runnable
from compiler.runtime.host.allocator import keep_freed_memory

#: Nanoseconds, and turns, that a program gets; and the fewest turns.
BUDGET_NS, MOST_TURNS, FEWEST_TURNS = 200_000_000, 1000, 5
#: Below this share of eager's speed a program is named, if eager takes so many microseconds.
NAMED, LEAST_US = 1.0, 50.0
OPERATOR_ELEMENTS = 100_000

#: By how their inputs are made: of any sign, or positive; of two numbers. Those of `nn.functional` come last.
UNARY = """neg abs square floor ceil trunc round sign relu reciprocal exp exp2 expm1 sin cos sigmoid tan atan sinh cosh
tanh asinh erf erfc isnan isinf signbit""".split()
POSITIVE = "sqrt rsqrt log log2 log10 log1p lgamma digamma asin acos atanh erfinv logit".split()
BINARY = """add sub mul minimum maximum copysign true_divide floor_divide remainder fmod pow atan2 hypot logaddexp eq lt
logical_and""".split()
ACTIVATIONS = """gelu silu mish softplus elu selu celu hardswish hardsigmoid hardtanh logsigmoid softsign tanhshrink
leaky_relu relu6 softshrink hardshrink""".split()


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]


def operators() -> dict[str, Program]:
    x, y = torch.randn(2, OPERATOR_ELEMENTS)
    between = torch.rand(OPERATOR_ELEMENTS) * 0.98 + 0.01
    programs = {name: Program(getattr(torch, name), (x,)) for name in UNARY}
    programs |= {name: Program(getattr(torch, name), (between,)) for name in POSITIVE}
    programs |= {name: Program(getattr(torch, name), (x, y)) for name in BINARY}
    programs["pow"] = Program(torch.pow, (between, y))
    return programs | {name: Program(getattr(F, name), (x,)) for name in ACTIVATIONS}


def programs() -> dict[str, Program]:
    return {**_activations_and_norms(), **_pools_and_losses(), **_after_convolutions(), **_after_products()}


def _activations_and_norms() -> dict[str, Program]:
    rows, image, volume = torch.randn(64, 4096), torch.randn(4, 16, 64, 64), torch.randn(4, 32, 32, 32)
    of_rows: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": torch.relu,
        "softmax": lambda x: x.softmax(1),
        "gelu": F.gelu,
        "log_softmax": lambda x: x.log_softmax(1),
        "softplus": F.softplus,
        "hardswish": F.hardswish,
        "gelu_by_hand": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "l1_norm": lambda x: x / x.abs().sum(1, keepdim=True),
        "l2_norm": lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True),
        "cumsum": lambda x: x.cumsum(1),
        "cumprod": lambda x: x.cumprod(1),
        "cumsum_reversed": lambda x: x.flip(1).cumsum(1).flip(1),
    }
    of_images: dict[str, Callable[[Tensor], Tensor]] = {
        "batch_norm": nn.BatchNorm2d(16).eval(),
        "batch_norm_training": nn.BatchNorm2d(16),
        "instance_norm": nn.InstanceNorm2d(16),
        "group_norm": nn.GroupNorm(8, 16),
        "frobenius_norm": lambda x: x / torch.norm(x, p="fro"),
    }
    found = {name: Program(function, (rows,)) for name, function in of_rows.items()}
    found |= {name: Program(function, (image,)) for name, function in of_images.items()}
    found["layer_norm"] = Program(nn.LayerNorm([16, 32, 32]), (torch.randn(4, 16, 32, 32),))
    found["rms_norm"] = Program(lambda x: x / torch.sqrt((x**2).mean(1, keepdim=True) + 1e-5), (volume,))
    return found


def _pools_and_losses() -> dict[str, Program]:
    line, image, volume = torch.randn(8, 32, 512), torch.randn(4, 16, 64, 64), torch.randn(2, 8, 24, 24, 24)
    a, b = torch.randn(2, 64, 4096)
    classes = torch.randint(10, (64,))
    found = {
        "max_pool1d": Program(nn.MaxPool1d(4, 2, 2, 3), (line,)),
        "max_pool2d": Program(nn.MaxPool2d(3, 2, 1), (image,)),
        "max_pool2d_of_2": Program(nn.MaxPool2d(2), (image,)),
        "max_pool2d_step_1": Program(nn.MaxPool2d(3, 1, 1), (image,)),
        "max_pool3d": Program(nn.MaxPool3d(3, 2, 1), (volume,)),
        "avg_pool1d": Program(nn.AvgPool1d(4, 1, 1), (line,)),
        "avg_pool2d": Program(nn.AvgPool2d(3), (image,)),
        "avg_pool3d": Program(nn.AvgPool3d(3, 2, 1), (volume,)),
        "mse": Program(F.mse_loss, (a, b)),
        "cross_entropy": Program(F.cross_entropy, (torch.randn(64, 10), classes)),
        "huber": Program(F.smooth_l1_loss, (a, b)),
        "kl_divergence": Program(_divergence, (a, b)),
        "cosine": Program(lambda a, b: (1 - F.cosine_similarity(a, b, 1)).mean(), (a, b)),
        "hinge": Program(lambda a, b: torch.clamp(1 - a * b, min=0).mean(), (a, b)),
    }
    middle = torch.randn(16, 128, 256)
    for name in ("sum", "mean", "amax", "amin", "argmax", "argmin"):
        found[f"{name}_middle"] = Program(partial(getattr(torch, name), dim=1), (middle,))
    return found


def _divergence(a: Tensor, b: Tensor) -> Tensor:
    return F.kl_div(a.log_softmax(-1), b.softmax(-1), reduction="batchmean")


def _after_convolutions() -> dict[str, Program]:
    conv, conv3 = nn.Conv2d(8, 16, 3), nn.Conv3d(3, 16, 3)
    up, up3 = nn.ConvTranspose2d(8, 16, 3, 2, 1), nn.ConvTranspose3d(8, 16, 3, 2, 1)
    bias, norm, norm3, other_norm3 = conv.bias, nn.BatchNorm2d(16), nn.BatchNorm3d(16), nn.BatchNorm3d(16)
    assert bias is not None
    on_image: dict[str, Callable[[Tensor], Tensor]] = {
        "relu_bias": lambda y: torch.relu(y) + bias[:, None, None],
        "gelu_pool": lambda y: F.adaptive_avg_pool2d(F.gelu(y), 1),
        "norm_scale": lambda y: norm(y) * 2,
        "mish_mish": lambda y: F.mish(F.mish(y)),
        "instance_norm": lambda y: F.instance_norm(y) / 2,
        "tanh_scale_pool": lambda y: F.max_pool2d(torch.tanh(y) * 2 + bias[:, None, None], 4),
        "least_tanh": lambda y: torch.tanh(torch.tanh(torch.amin(y, 1, keepdim=True))),
        "logsumexp": lambda y: torch.logsumexp(y, 1, keepdim=True),
        "group_norm_clamp": lambda y: torch.clamp(F.max_pool2d(F.group_norm(y, 8) * 1.5, 4), 0, 1),
    }
    on_volume: dict[str, Callable[[Tensor], Tensor]] = {
        "norm_mean": lambda y: norm3(y).mean((2, 3, 4)),
        "softmax_pools": lambda y: F.max_pool3d(F.max_pool3d(torch.softmax(y, 1), 2), 2),
        "pools": lambda y: F.adaptive_avg_pool3d(F.max_pool3d(y / 2, 2), 1).sum(1),
    }
    on_larger: dict[str, Callable[[Tensor], Tensor]] = {
        "norm_centre": lambda y: (z := other_norm3(y)) - z.mean((2, 3, 4), keepdim=True),
        "layer_norm_gelu": lambda y: F.gelu(F.layer_norm(y, (15,))),
        "layer_norm_pool": lambda y: F.gelu(F.avg_pool3d(F.layer_norm(y + 1, (15,)), 2)),
        "softmax_hardswish": lambda y: F.hardswish(F.softmax(y, 1)).mean((2, 3, 4)),
    }
    on_larger_image: dict[str, Callable[[Tensor], Tensor]] = {
        "least_sum_gelu": lambda y: F.gelu(y.amin(1, keepdim=True).sum(2, keepdim=True)),
        "pool_hardtanh": lambda y: torch.tanh(F.hardtanh(F.max_pool2d(y, 2)).mean((2, 3), keepdim=True)),
        "norm_tanh_pool": lambda y: F.group_norm(F.max_pool2d(torch.tanh(norm(y)), 2), 4),
    }
    return {
        **_after("conv", conv, on_image, torch.randn(4, 8, 32, 32)),
        **_after("conv3d", conv3, on_volume, torch.randn(2, 3, 12, 16, 16)),
        **_after("transposed3d", up3, on_larger, torch.randn(2, 8, 8, 8, 8)),
        **_after("transposed", up, on_larger_image, torch.randn(4, 8, 16, 16)),
    }


def _after_products() -> dict[str, Program]:
    linear, norm = nn.Linear(256, 256), nn.BatchNorm1d(256)
    followed: dict[str, Callable[[Tensor], Tensor]] = {
        "mish": lambda y: F.mish(y) - 1,
        "group_norm_hardtanh": lambda y: F.hardtanh(F.group_norm(y, 8)),
        "norm_swish": lambda y: (z := norm(y)) * torch.sigmoid(z),
        "gelu_softmax": lambda y: F.softmax(F.gelu(y), 1),
        "pool_sum": lambda y: F.max_pool1d(y.unsqueeze(1), 2).squeeze(1).sum(1) * 0.5,
        "logsumexp_gelu": lambda y: F.gelu(F.leaky_relu(torch.logsumexp(y, 1, keepdim=True))),
        "silu_clamp": lambda y: torch.clamp(torch.tanh(torch.clamp(F.silu(y) / 2, -1, 1)), -1, 1),
        "pool_gelu_max": lambda y: (F.gelu(F.avg_pool1d(y.unsqueeze(1), 4).squeeze(1)) * 2).max(1).values,
        "sub_mul_relu": lambda y: torch.relu((y - 2) * 1.5),
    }
    return _after("linear", linear, followed, torch.randn(64, 256))


def _after(
    name: str, layer: nn.Module, followed: dict[str, Callable[[Tensor], Tensor]], x: Tensor
) -> dict[str, Program]:
    def joined(then: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda x: then(layer(x))

    return {f"{name}_{what}": Program(joined(then), (x,)) for what, then in followed.items()}


def race(program: Program) -> dict[str, float]:
    """The least processor time of a call of each, in microseconds."""
    torch._dynamo.reset()
    compiled = torch.compile(program.function, backend="fusionscope")
    contestants = {"eager_us": program.function, "ours_us": compiled}
    with torch.no_grad():
        for function in (*contestants.values(), *contestants.values()):
            function(*program.inputs)
        least, used, turns = dict.fromkeys(contestants, sys.maxsize), 0, 0
        while turns < FEWEST_TURNS or (used < BUDGET_NS and turns < MOST_TURNS):
            for name, function in contestants.items():
                start = time.thread_time_ns()
                function(*program.inputs)
                taken = time.thread_time_ns() - start
                least[name], used = min(least[name], taken), used + taken
            turns += 1
    return {name: round(taken / 1e3, 1) for name, taken in least.items()}


def results_of(chosen: dict[str, Program]) -> Iterator[tuple[str, dict[str, float]]]:
    for name, program in chosen.items():
        times = race(program)
        yield name, times | {"eager_to_ours": round(times["eager_us"] / times["ours_us"], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=("programs", "operators"), default="programs")
    parser.add_argument("--cases", default="", help="names of some, joined by commas")
    parser.add_argument("--out", type=Path, help="the file for the figures, as JSON")
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {"programs": programs, "operators": operators}[arguments.suite]()
    chosen = {name: found[name] for name in arguments.cases.split(",") if name} or found
    environment = describe(torch.device("cpu"), None, 0) | {"instruction_set": runnable()[-1]}
    print(f"{environment['device']}, {environment['instruction_set']}, torch {torch.__version__}, one thread")
    results: dict[str, dict[str, float]] = {}
    for name, result in results_of(chosen):
        results[name] = result
        print(f"{name:28} eager {result['eager_us']:8.1f} us  ours {result['ours_us']:8.1f} us", end="")
        print(f"  {result['eager_to_ours']:6.2f}", flush=True)
    mean = math.exp(sum(math.log(one["eager_us"] / one["ours_us"]) for one in results.values()) / len(results))
    slower = {
        name: one["eager_to_ours"]
        for name, one in results.items()
        if one["eager_us"] >= LEAST_US and one["eager_to_ours"] < NAMED
    }
    print(
        f"{len(results)} programs, {mean:.3f} times as fast as eager in the geometric mean; slower: {slower or 'none'}"
    )
    document = {"environment": environment, "eager_to_ours": round(mean, 3), "slower": slower, "programs": results}
    write_json(arguments.out, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
