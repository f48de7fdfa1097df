"""Seeds on a GPU are what torch.randint gives, and the generator goes on from there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.runtime.host.seeds import END, LOWEST, by_kernel, seed_drawer

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seed", [0, 5, 2**40 + 12345, 2**63 + 99])
def test_they_are_those_of_randint(seed: int, count: int) -> None:
    draw = seed_drawer(GPU, count)
    assert (draw is by_kernel) == (count > 1)
    torch.cuda.manual_seed(seed)
    torch.rand(1000, device=GPU)
    state = torch.cuda.get_rng_state()
    expected = [torch.randint(LOWEST, END, [count], dtype=torch.int64, device=GPU) for _ in range(3)]
    after = torch.rand(10, device=GPU)
    torch.cuda.set_rng_state(state)
    found = [torch.empty(count, dtype=torch.int64, device=GPU) for _ in range(3)]
    for one in found:
        draw(one)
    assert torch.equal(torch.stack(found), torch.stack(expected))
    assert torch.equal(torch.rand(10, device=GPU), after)


def test_they_are_the_first_thing_a_process_asks_of_its_gpu() -> None:
    program = (
        "import torch; from compiler.runtime.host.seeds import by_kernel, seed_drawer;"
        "assert seed_drawer(torch.device('cuda', 0), 1) is not by_kernel"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def dropped(x: Tensor) -> Tensor:
    return torch.nn.functional.dropout(x, 0.5)


def test_dropout_repeats_with_the_generators_state_on_any_stream_and_differs_in_each_replay() -> None:
    x = torch.ones(4096, device=GPU)
    compiled = torch.compile(dropped, backend=fusionscope)
    with torch.no_grad():
        compiled(x)
        torch.cuda.manual_seed(1)
        first, second = compiled(x), compiled(x)
        assert not torch.equal(first, second)
        torch.cuda.manual_seed(1)
        assert torch.equal(compiled(x), first)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            assert torch.equal(compiled(x), second)
        torch.cuda.current_stream().wait_stream(side)
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = compiled(x)
        torch.cuda.manual_seed(1)
        replays = [(graph.replay(), result.clone())[1] for _ in range(2)]
        assert torch.equal(replays[0], first) and torch.equal(replays[1], second)
        torch.cuda.manual_seed(1)
        assert torch.equal(compiled(x), first)
