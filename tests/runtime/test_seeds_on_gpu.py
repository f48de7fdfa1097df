"""Random numbers on a GPU follow the state of torch's generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


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
