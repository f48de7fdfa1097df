"""What several kernels or several points need: computed where it is needed, kept as a table, or loaded once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.compile_program import call_interpreted, compile_program, kernel_count


def gate_and_halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """Sums of columns and a rearrangement, of one float32 copy of bfloat16."""
    a, b = x.float().chunk(2, 1)
    return (a * b.sigmoid()).sum(0), torch.cat((b, a), 1).to(x.dtype)


def crop_of_an_output(x: Tensor) -> tuple[Tensor, Tensor]:
    image = x.float() / 255
    return image, image[:, 8:-8].flip(1)


def norm_and_rotation(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads that are normalised, and rotated by halves, lie in a row of three times as many."""
    heads = F.normalize(x.unflatten(-1, (3, 16, 64)).select(-3, 0).transpose(1, 2), dim=-1)
    a, b = heads.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def pairs(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], (a * b).sum(-1)


def positions(x: Tensor) -> Tensor:
    """Angles that all of 64 heads share."""
    angles = torch.arange(x.shape[1])[:, None] / 10000 ** (torch.arange(x.shape[2]) / x.shape[2])
    return x * angles.cos() + x.flip(-1) * angles.sin()


def slopes(x: Tensor) -> Tensor:
    """A number for each head, which all elements of a thread share: no kernel of its own."""
    return x + torch.pow(2.0, -torch.arange(x.shape[0]).float())[:, None, None] * torch.arange(x.shape[2])


def messages(x: Tensor, edges: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])


def attraction(x: Tensor, m: Tensor) -> Tensor:
    """Distances of each to each, which are many more than there are coordinates."""
    apart = [x[None, :, k] - x[:, None, k] for k in range(3)]
    weight = m * (sum(d * d for d in apart) + 0.01).pow(-1.5)  # type: ignore[union-attr]
    return sum((d * weight).sum(1) for d in apart)  # type: ignore[return-value]


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    kernels: int


HALVES = torch.empty(16384, 2048, dtype=torch.bfloat16)
EDGES = torch.zeros(2, 262144, dtype=torch.int64)
TABLE = torch.empty(1024, 32)
PROGRAMS = [
    Program(gate_and_halves, (HALVES,), 1),
    Program(crop_of_an_output, (torch.empty(64, 240, 720, dtype=torch.uint8),), 1),
    Program(norm_and_rotation, (torch.empty(4, 1024, 3072), TABLE, TABLE), 1),
    Program(pairs, (torch.empty(1 << 22, 2), torch.empty(1 << 22, 2)), 1),
    Program(positions, (torch.empty(64, 2048, 128),), 2),
    Program(slopes, (torch.empty(16, 1024, 1024),), 1),
    Program(messages, (torch.empty(32768, 64), EDGES), 2),
    Program(attraction, (torch.empty(2048, 3), torch.empty(2048)), 2),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.function.__name__)
def test_kernels_and_what_is_between_them(program: Program) -> None:
    compilation = compile_program(program.function, *program.inputs)
    assert kernel_count(compilation) == (program.kernels, 0)
    # Nothing that is as large as what is read and written goes through memory but the result.
    largest = max(max(x.nbytes for x in program.inputs) // 4, 1 << 16)
    kept = {name for name, b in compilation.memory.buffers.items() if b.fate not in ("register", "input", "output")}
    kept -= compilation.memory.slices.keys()
    layouts = compilation.schedule.graph.buffers
    assert all(layouts[name].bytes < largest or "index_put" in name for name in kept)


def test_parts_of_a_stack_are_loaded_once_for_each_of_their_own_places() -> None:
    """Nine planes that are shifted differently: one loop over the stack would load all nine for each element of it."""

    def stream(f: Tensor) -> Tensor:
        return torch.stack([torch.roll(f[k], (k % 3 - 1, k // 3 - 1), (0, 1)) for k in range(9)])

    compilation = compile_program(stream, torch.empty(9, 1024, 1024))
    (kernel,) = compilation.triton.values()
    # The loop goes over the places of one plane, of which each plane has one: nothing is masked or chosen.
    assert kernel.source.count("tl.load(") == kernel.source.count("tl.store(") == 9
    assert "where" not in kernel.source and "mask=" not in kernel.source
    assert kernel.config["XBLOCK"] * kernel.grid == 1024 * 1024


def test_what_a_row_shares_is_loaded_before_the_parts_of_a_stack_are_told_apart() -> None:
    """The masks of the parts go along the row that was reduced, and the load does not."""

    def largest_and_last(x: Tensor) -> Tensor:
        largest = x.amax(1)
        return torch.stack((largest - x[:, 2], largest, largest), 1)

    x = torch.randn(2, 3, 64, 64)
    compilation = compile_program(largest_and_last, x)
    assert kernel_count(compilation) == (1, 0)
    assert torch.equal(call_interpreted(compilation, [x])[0], largest_and_last(x))


def test_rows_far_apart_are_reduced_along_lanes() -> None:
    def nearest(x: Tensor, c: Tensor) -> Tensor:
        return (x[:, None] - c[None]).square().sum(-1)

    compilation = compile_program(nearest, torch.empty(8192, 16), torch.empty(256, 16))
    (kernel,) = compilation.triton.values()
    assert kernel.config["plan"] == "persistent"
