"""One compilation serves every size: loops, C++ and Triton kernels whose sizes are known only in a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from compiler.compile import Built, build, observed_compilations
from compiler.ir import interpret
from compiler.ir.nodes import ExternNode, LoopNode
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime.executable import build_executable
from compiler.runtime.interpreter.interpreter import interpret as run_triton
from compiler.runtime.triton.source import shared_function
from compiler.schedule.group import parts_of
from tests.compile_program import capture_graph, compile_graph, compile_program

#: The first is what the kernels are made for, and what Triton might assume of the others is true of it: 16 divides it.
#: They are larger and smaller, odd, and no multiples of a block.
SIZES = (48, 9, 31, 4)


def rnd(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), device="cpu")


@dataclass(frozen=True)
class Program:
    name: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    #: How often it is compiled for all of `SIZES`.
    compilations: int = 1


#: Before release 2.13 torch itself asks, of strides of 2, whether a size is even, and compiles for either answer.
EVEN_AND_ODD = 1 if TorchVersion(torch.__version__) >= "2.13" else 2


def causal(q: Tensor) -> Tensor:
    mask = torch.ones(q.shape[1], q.shape[1], device=q.device).tril() == 0
    return (q @ q.transpose(-1, -2)).masked_fill(mask, -1e9).softmax(-1)


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def heads(x: Tensor) -> Tensor:
    batch, length, _ = x.shape
    return x.view(batch, length, 4, -1).transpose(1, 2).reshape(batch * 4, length, -1) * 2


def gated(x: Tensor) -> Tensor:
    value, gate = x.chunk(2, 1)
    return value * torch.sigmoid(gate)


PROGRAMS = [
    Program("softmax", lambda x: torch.softmax(x, -1), lambda n: (rnd(n, 3 * n + 1),)),
    Program("broadcast", lambda x, y: torch.sin(x) + y * 2, lambda n: (rnd(n, 40), rnd(40))),
    Program("sum of everything", lambda x: x.sum() + x.mean(), lambda n: (rnd(n * 1000, 7),)),
    Program("rows of eight", lambda x: x.view(-1, 8).sum(1) / x.shape[0], lambda n: (rnd(n, 16),)),
    Program("a tensor and its transpose", lambda x: (x + x.t()).contiguous(), lambda n: (rnd(n * 9, n * 9),)),
    Program("cat", lambda x, y: torch.cat([x, y], 0).relu(), lambda n: (rnd(n, 5), rnd(2 * n, 5))),
    Program("slices", lambda x: x[1:, ::2] * 2 + x[:-1, 1::2], lambda n: (rnd(n + 3, 2 * n),)),
    Program("layer norm", lambda x, w: F.layer_norm(x, (x.shape[-1],), w), lambda n: (rnd(n, 64), rnd(64))),
    Program("sum of columns", lambda x: x.sum(0), lambda n: (rnd(n * 50, 33),)),
    Program("causal scores", causal, lambda n: (rnd(2, n, 8),)),
    Program("variance", lambda x: x.var(1) * x.std(), lambda n: (rnd(n, n + 5),)),
    Program("positions", lambda x: x + torch.arange(x.shape[1], device=x.device), lambda n: (rnd(3, n),)),
    Program("mean of a convolution", lambda x, w: F.relu(F.conv2d(x, w, padding=1)).mean((2, 3)),
            lambda n: (rnd(2, 3, n + 4, n + 4), rnd(4, 3, 3, 3))),
    Program("flip", lambda x: x.flip(0) * 2, lambda n: (rnd(n, 4),)),
    Program("argmax", lambda x: x.argmax(1), lambda n: (rnd(n, 3 * n),)),
    Program("rotated halves", rotate_half, lambda n: (rnd(2, n, 2 * n),)),
    Program("heads", heads, lambda n: (rnd(n, n + 1, 32),)),
    Program("gate", gated, lambda n: (rnd(n, 4 * n),)),
    Program("an integer argument", lambda x, k: x * k + k, lambda n: (rnd(5), n)),
    Program("padding", lambda x: F.pad(x, (1, 2)), lambda n: (rnd(4, n),)),
    Program("cross entropy", F.cross_entropy, lambda n: (rnd(n, 50), torch.arange(n, device="cpu") % 50)),
    Program("running sums", lambda x: (x * 2).cumsum(1) + x.cumsum(0), lambda n: (rnd(n, 3 * n + 1),)),
    Program("running softmax", lambda x: torch.softmax(x.cumsum(-1), -1), lambda n: (rnd(2, 200 * n),)),
    Program("rows added at places", lambda x, i: torch.zeros(8, x.shape[1], device=x.device).index_add(0, i, x),
            lambda n: (rnd(n, n + 1), torch.arange(n) % 5)),
    Program("largest at places", lambda x, i: (x * 2).scatter_reduce(1, i, x, "amax"),
            lambda n: (rnd(4, n), (torch.arange(4 * n) * 7 % n).view(4, n))),
    Program("places in a sorted row", lambda r, v: torch.searchsorted(r.sort().values, v) * 2,
            lambda n: (rnd(7 * n), rnd(3, n))),
    Program("what a mask chooses", lambda x, s: x.masked_scatter(x > 0.1, s) * 2, lambda n: (rnd(n, 3), rnd(4 * n))),
    Program("products at places", lambda x, i: x.index_reduce(0, i, x, "prod"),
            lambda n: (rnd(n, 3), torch.arange(n) % 3)),
    Program("largest of windows", lambda x: F.max_pool2d(x, 3, 2, 1), lambda n: (rnd(2, 3, n, n + 3),),
            EVEN_AND_ODD),
    Program("average of windows", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), lambda n: (rnd(2, 3, n, n + 3),),
            EVEN_AND_ODD),
    Program("windows as columns", lambda x: F.unfold(x, 3, 1, 1, 2), lambda n: (rnd(2, 3, n, n + 3),)),
    Program("padding with the edge", lambda x: F.pad(x, (1, 2, 0, 1), mode="replicate"), lambda n: (rnd(2, 3, n, n),)),
    Program("padding around", lambda x: F.pad(x, (1, 2, 0, 1), mode="circular"), lambda n: (rnd(2, 3, n, n + 1),)),
    Program("larger by a half", lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
            lambda n: (rnd(1, 2, n, n + 3),)),
    Program("gradient of what became larger",
            lambda g, x: torch.ops.aten.upsample_nearest2d_backward(g, g.shape[2:], x.shape),
            lambda n: (rnd(2, 3, 2 * n + 1, n - 1), rnd(2, 3, n, n + 2))),
    Program("operands of two kernels in one launch", lambda a, b: a.softmax(-1) @ b.sigmoid(),
            lambda n: (rnd(n, 150 * n), rnd(150 * n, n + 2))),
    Program("repeat", lambda x: x.repeat(2, 3), lambda n: (rnd(n, n + 2),)),
]  # fmt: skip
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


@every_program
def test_one_compilation_serves_every_size(program: Program) -> None:
    built: list[Built] = []
    torch._dynamo.reset()
    compiled = torch.compile(program.function, backend="fusionscope", dynamic=True)
    with observed_compilations(built.append):
        for n in SIZES:
            inputs = program.inputs(n)
            torch.testing.assert_close(compiled(*inputs), program.function(*inputs), atol=1e-4, rtol=1e-4)
    assert len(built) == program.compilations
    loops = built[0].loops
    assert [node.reason for node in loops.nodes if isinstance(node, ExternNode) and node.is_fallback] == []


@every_program
def test_loops_and_triton_kernels_serve_every_size(program: Program) -> None:
    graph = capture_graph(program.function, *program.inputs(SIZES[0]), dynamic=True)
    compilation = compile_graph(graph)
    executable = build(compilation).executable
    emulated = {
        kernel.name: (lambda *given, kernel=kernel: run_triton(
            kernel, list(given[: len(kernel.parameters)]), given[len(kernel.parameters) :]
        ))
        for kernel in compilation.triton.values()
    }  # fmt: skip
    through_triton = build_executable(compilation.schedule, executable.wrapper, emulated, torch.device("cpu"))
    for n in (10, 4):  # as even as the first: see EVEN_AND_ODD
        inputs = _flat(graph, program.inputs(n))
        expected = program.function(*program.inputs(n))
        (loops,) = interpret.run(compilation.loops, inputs)
        torch.testing.assert_close(loops, expected, atol=1e-4, rtol=1e-4)
        (emulation,) = through_triton.call(list(inputs))
        torch.testing.assert_close(emulation, expected, atol=1e-4, rtol=1e-4)


def test_short_kernels_of_open_sizes_share_a_launch() -> None:
    (program,) = (program for program in PROGRAMS if "one launch" in program.name)
    compilation = compile_program(program.function, *program.inputs(SIZES[0]), dynamic=True)
    (group,) = compilation.groups
    assert len(parts_of(group)) == 2
    (kernel,) = compilation.triton.values()
    taken = {parameter.name: parameter for parameter in shared_function(kernel).params}
    assert kernel.sizes and all(taken[size.name].do_not_specialize for size in kernel.sizes)


def _flat(graph: torch.fx.GraphModule, inputs: tuple[Any, ...]) -> list[Any]:
    """The inputs as the graph takes them: a size stands in front of the tensor that it was first seen in."""
    tensors = iter([value for value in inputs if isinstance(value, Tensor)])
    integers = [value for value in inputs if isinstance(value, int)]
    flat: list[Any] = []
    symbols: dict[str, int] = dict.fromkeys((), 0)
    placeholders = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    given = [next(tensors) for value in placeholders if isinstance(value, Tensor)]
    for fake, tensor in zip([value for value in placeholders if isinstance(value, Tensor)], given, strict=True):
        for size, actual in zip(fake.shape, tensor.shape, strict=True):
            symbols[str(size)] = actual
    remaining = iter(given)
    for value in placeholders:
        flat.append(next(remaining) if isinstance(value, Tensor) else symbols.get(str(value), *integers[:1]))
    return flat


def test_a_size_that_a_guard_proves_to_be_a_multiple_is_written_as_one() -> None:
    """`view(-1, 8)` guards that 8 divides the size, so the rows need no division and run on as one loop."""
    compilation = compile_program(lambda x: torch.sin(x.view(-1, 8)), rnd(64), dynamic=True)
    (kernel,) = compilation.triton.values()
    assert [atom.text.split(" // ")[1:] for atom in kernel.sizes] == [["8"]]
    assert "//" not in kernel.source and "%" not in kernel.source
    (loop,) = compilation.loops.nodes
    assert isinstance(loop, LoopNode) and len(loop.x_dims) == 1


class Block(nn.Module):
    """A transformer's block, with attention written by hand."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.project(self.before(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) / (width // 4) ** 0.5
        weights = scores.masked_fill(torch.ones(length, length, device=x.device).tril() == 0, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.after(x))


class NormOfChannels(nn.Module):
    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.scale, self.shift = (nn.Parameter(t) for t in (torch.ones(channels, 1, 1), torch.zeros(channels, 1, 1)))

    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, dim=1, correction=0, keepdim=True)
        return (x - mean) / (variance + 1e-5).sqrt() * self.scale + self.shift


def two_norms() -> nn.Module:
    """Backward, a quotient of the first norm is needed after the gradient in whose place it could be kept."""
    return nn.Sequential(NormOfChannels(), NormOfChannels())


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def windows() -> nn.Module:
    return nn.Sequential(
        nn.ReplicationPad2d(1), nn.MaxPool2d(3, 2, 1), nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.AvgPool2d(3, 2, ceil_mode=True), nn.Unfold(2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "inputs", "compilations"),
    [
        (Block, lambda n: rnd(n, n + 1, 32), 1), (convolutions, lambda n: rnd(n, 3, n + 4, n + 4), 1),
        (windows, lambda n: rnd(2, 3, n, n + 4), EVEN_AND_ODD), (two_norms, lambda n: rnd(1, 16, n + 18, 16), 1),
    ],
)  # fmt: skip
def test_a_training_step_compiles_once_for_every_size(
    model: Callable[[], nn.Module], inputs: Callable[[int], Tensor], compilations: int
) -> None:
    built: list[Built] = []
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = model()
    compiled = torch.compile(module, backend="fusionscope", dynamic=True)
    with observed_compilations(built.append):
        for n in (6, 9, 5):
            assert_training_step_is_eagers(compiled, module, inputs(n), tolerance=1e-4)
    assert len(built) == 2 * compilations


def assert_training_step_is_eagers(compiled: Any, module: nn.Module, x: Tensor, tolerance: float) -> None:
    """The result within `tolerance`, and the gradients of the input and of all parameters within ten times that."""
    x.requires_grad_()
    leaves = [x, *module.parameters()]
    result, expected = compiled(x), module(x)
    torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)
    ours = torch.autograd.grad(result.square().sum(), leaves)
    theirs = torch.autograd.grad(expected.square().sum(), leaves)
    for mine, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, wanted, atol=10 * tolerance, rtol=10 * tolerance)


def in_two_ways(x: Tensor) -> Tensor:
    """8 n elements as 2 x n x 4: torch has a formula for the 4, and its guards make it that number."""
    whole = x.view(2, -1, 4)
    whole.view(1, 4, -1).add_(1)
    return whole * 2


def turned_by_two(x: Tensor) -> Tensor:
    """Two steps along a dimension of which it is not known whether it has as many."""
    return torch.roll(x.reshape(-1, 4)[1::3, 0, None], -2, 0)


@pytest.mark.parametrize("program", [in_two_ways, turned_by_two])
def test_sizes_by_formulas_of_formulas(program: Callable[[Tensor], Tensor]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="fusionscope", dynamic=True)
    for size in (16, 48):
        x = rnd(size)
        torch.testing.assert_close(compiled(x.clone()), program(x.clone()))


def test_a_view_of_a_part_whose_size_is_a_formula_shares_its_memory() -> None:
    def program(x: Tensor) -> list[Tensor]:
        last = x.chunk(2)[-1]
        return [last, last[:1]]

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="fusionscope", dynamic=True)
    for size in (5, 8):
        x = rnd(size, 3)
        for mine, wanted in zip(compiled(x), program(x), strict=True):
            assert torch.equal(mine, wanted) and mine.data_ptr() == wanted.data_ptr()


def test_strides_that_are_the_larger_of_two_formulas_are_those_of_eager() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.exp(x.diagonal(1, -2, -1).movedim(0, -1))

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="fusionscope", dynamic=True)
    for size in (5, 8):
        x = rnd(3, size, size)
        mine, wanted = compiled(x), program(x)
        torch.testing.assert_close(mine, wanted)
        assert mine.stride() == wanted.stride()


def test_what_a_backward_graph_reads_by_strides_of_a_formula_lies_by_them() -> None:
    """A number of blocks that torch cannot prove to be positive makes strides the larger of it and 1."""

    def program(x: Tensor) -> Tensor:
        blocks = F.pad(x, (0, 0, 0, (4 - x.shape[2] % 4) % 4)).reshape(*x.shape[:2], -1, 4, 4)
        blocks = torch.sin(blocks @ blocks).masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(), 0)
        for i in range(1, 4):
            row = (blocks[..., i, :, None].clone() * blocks[..., :, :i].clone()).sum(-2)
            blocks[..., i, :i] = blocks[..., i, :i] + row
        return blocks

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="fusionscope", dynamic=True)
    for size in (12, 11, 20):
        x = rnd(2, 2, size, 4).requires_grad_()
        mine, wanted = compiled(x), program(x)
        gradient = torch.randn_like(wanted)
        found, expected = (torch.autograd.grad(y, x, gradient)[0] for y in (mine, wanted))
        torch.testing.assert_close((mine, found), (wanted, expected))


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_gradients_of_interpolation_are_one_kernel_for_every_size(mode: str) -> None:
    def larger(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2, mode=mode)

    seen: list[Built] = []
    torch._dynamo.reset()
    compiled = torch.compile(larger, backend="fusionscope", dynamic=True)
    with observed_compilations(seen.append):
        for size in (5, 8):
            x = rnd(2, 3, size, size + 2).contiguous(memory_format=torch.channels_last).requires_grad_()
            mine, wanted = compiled(x), larger(x)
            assert mine.stride() == wanted.stride()
            gradient = torch.randn_like(wanted)
            found, expected = (torch.autograd.grad(y, x, gradient)[0] for y in (mine, wanted))
            assert found.stride() == expected.stride()
            torch.testing.assert_close((mine, found), (wanted, expected))
    forward, backward = (len(one.groups) for one in seen)
    assert forward == 1 and backward <= 2


def test_elements_that_lie_an_open_size_apart_are_scheduled() -> None:
    source = """import torch
@torch.compile
def queued(x, length):
    choice = x.argmax(-1)
    chosen = torch.nn.functional.one_hot(choice, 8)
    place = chosen.cumsum(0) * chosen - 1
    is_kept = (place >= 0) & (place < length)
    queues = torch.zeros(40, 8, length)
    queues[torch.arange(40), choice, torch.where(is_kept, place, 0).sum(-1)] = is_kept.any(-1).float()
    return queues
for length in (4, 6):
    queued(torch.randn(40, 8), length)
"""
    report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    assert report.status == "ok" and all(graph.errors for graph in report.graphs), report.error
