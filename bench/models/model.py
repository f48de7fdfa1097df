"""What the models of the suite have in common: how one is built, what it is called with, and what a training step is.

Models have random weights: nothing is downloaded. Most are of the library `transformers`, where `full` is the library's
own default configuration, `small` the same architecture shrunk until two CPU cores run it in moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor, nn

ModelSize = Literal["full", "small"]

#: How far parameters that a fresh model holds constant (biases, scales) are moved, so that each of them matters.
SPREAD = 0.1


@dataclass(frozen=True)
class Example:
    """A module on the CPU, in evaluation mode, and what makes inputs for a batch of a given size."""

    module: nn.Module
    inputs: Callable[[int, torch.Generator], dict[str, Tensor]]


@dataclass(frozen=True)
class Model:
    """One architecture. `build` gives it in either size; one that `is_trained` is run forward and backward in training
    mode, and all its gradients are results. One that `is_optimised` also takes a step of AdamW, and how far each
    parameter moves is a result; training runs under `autocast` to that dtype, if any. `batch` is the size that it is
    run with unless another is asked for. `reference_parts` is how many pieces the float64 reference takes the batch
    in, for want of memory: for a model whose loss is a mean over the examples of a batch, and which has no statistics
    of it."""

    name: str
    build: Callable[[ModelSize], Example]
    is_trained: bool = False
    is_optimised: bool = False
    autocast: torch.dtype | None = None
    batch: int | None = None
    reference_parts: int = 1

    def example(self, size: ModelSize, device: torch.device, seed: int) -> Example:
        """The model on `device`, the same for the same seed."""
        torch.manual_seed(seed)
        with torch.device(device):
            example = self.build(size)
            # `torch.Tensor(3, 4)`, as Mask2Former makes one of its parameters, knows nothing of a default device.
            example.module.to(device)
            _spread_constants(example.module)
        example.module.train(self.is_trained)
        return example


def missing_library() -> str | None:
    """What to install where the models' library is not there, as one sentence."""
    if find_spec("transformers") is not None:
        return None
    return "The models are those of the package transformers, which is missing: pip install '.[bench]'."


def pixels(size: int, name: str = "pixel_values") -> Callable[[int, torch.Generator], dict[str, Tensor]]:
    """Inputs of a model of square images."""

    def make(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        return {name: normal((batch, 3, size, size), generator)}

    return make


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, device=generator.device)


def tokens(words: int, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    return torch.randint(0, words, shape, generator=generator, device=generator.device)


def loss_of(outputs: Mapping[str, Any]) -> Tensor:
    """A number that depends on every logit and is not symmetric in them: what a training step differentiates."""
    logits: Tensor = outputs["logits"]
    targets = torch.arange(logits.shape[:-1].numel(), device=logits.device) % logits.shape[-1]
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets)


@torch.no_grad()
def _spread_constants(module: nn.Module) -> None:
    """Move every parameter and statistic that is one constant to random values around it. A fresh model has biases of
    zero and branches scaled by 1e-6, in which a mistake would not show."""
    for tensor in module.parameters():
        if tensor.numel() > 1 and bool((tensor == tensor.flatten()[0]).all()):
            tensor.add_(SPREAD * torch.randn_like(tensor))
    for name, statistic in module.named_buffers():
        if name.endswith("running_mean"):
            statistic.add_(SPREAD * torch.randn_like(statistic))
        if name.endswith("running_var"):
            statistic.mul_(1 + SPREAD * torch.rand_like(statistic))
