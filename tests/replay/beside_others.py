"""Programs that are replayed while others free what torch keeps for all of them; each run in a process of its own.

    python -m tests.replay.beside_others inductor      eight networks, each beside TorchInductor's own CUDA graph of it
    python -m tests.replay.beside_others workspaces    one, with the workspaces of cuBLAS freed between its calls

A replay that reads or writes memory of others may leave the GPU of no more use to its process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.replay.replayed import ReplayedCall
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import relative_error

CALLS = 10
#: What the peer may be off by, whose convolutions round to TF32: four times the distance of two such numbers.
TF32_ERROR = 4 * 2**-10
#: Width, heads, layers, side of a patch, side of the images, images.
NETWORKS = (
    (256, 4, 2, 16, 128, 4),
    (384, 6, 3, 16, 224, 2),
    (192, 3, 4, 16, 224, 8),
    (512, 8, 2, 32, 224, 1),
    (128, 4, 3, 8, 96, 4),
    (768, 12, 2, 16, 224, 1),
    (320, 5, 2, 16, 160, 3),
    (256, 8, 4, 14, 196, 2),
)


class Network(nn.Module):
    """A small vision transformer. The sums of its last product are so long beside its result that torch launches it."""

    def __init__(self, width: int, heads: int, layers: int, patch: int, side: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True) for _ in range(layers)
        )
        self.classes = nn.Linear((side // patch) ** 2 * width, 10, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        for layer in self.layers:
            tokens = layer(tokens)
        return self.classes(tokens.flatten(1))


class Checked:
    """A network, and functions that are to give what it gives."""

    def __init__(self, width: int, heads: int, layers: int, patch: int, side: int, images: int) -> None:
        torch._dynamo.reset()
        self.network = Network(width, heads, layers, patch, side).cuda().eval()
        self.inputs = [torch.randn(images, 3, side, side, device="cuda") for _ in range(3)]
        self.eager = [self.network(x) for x in self.inputs]
        self.exact = [self.network.double()(x.double()) for x in self.inputs]
        self.network.float()
        self.seen: list[Built] = []
        ours = torch.compile(self.network, backend=fusionscope, options={"mode": "reduce-overhead"})
        peer = torch.compile(self.network, mode="reduce-overhead")
        self.functions: dict[str, Callable[[Tensor], Tensor]] = {"ours": ours, "peer": peer}

    def call(self, name: str, times: int) -> None:
        for place in range(times):
            torch.compiler.cudagraph_mark_step_begin()
            with observed_compilations(self.seen.append):
                found = self.functions[name](self.inputs[place % 3])
            torch.cuda.synchronize()
            assert self._is_right(name, found, place % 3), f"{name}, call {place}"

    def _is_right(self, name: str, found: Tensor, place: int) -> bool:
        if name == "ours":
            return is_correct(found, self.exact[place], self.eager[place])
        return relative_error(found, self.exact[place]) < TF32_ERROR

    def assert_replayed(self) -> None:
        assert self.seen
        for compilation in self.seen:
            made: Any = compilation.replayed
            assert isinstance(made, ReplayedCall) and made.decision.verdict == "replayed", compilation.replay_decision


def beside_inductor() -> None:
    for network in NETWORKS:
        checked = Checked(*network)
        for _ in range(3):
            for name in ("ours", "peer"):
                checked.call(name, CALLS)
        checked.assert_replayed()


def without_workspaces() -> None:
    checked = Checked(*NETWORKS[0])
    checked.call("ours", CALLS)
    for _ in range(3):
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        checked.call("ours", CALLS)
    checked.assert_replayed()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # one call for a whole layer, which is not recorded
    with torch.no_grad():
        {"inductor": beside_inductor, "workspaces": without_workspaces}[sys.argv[1]]()
