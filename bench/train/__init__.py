"""The suite `train`: whole steps of training, from the batch to the moved parameters.

A step is forward, loss and backward under bfloat16 autocast, and in `..._adamw` AdamW's step, which each contestant
compiles as well. `gpt2` is the architecture with 124 million parameters on 16 x 1024 tokens, in torch alone;
`resnet50` and `bert` are those of the suite `models`, with their loss inside what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from bench.models import language, vision
from bench.models.model import Example, Model, ModelSize, loss_of
from bench.train.gpt2 import gpt2, gpt2_padded


class WithLoss(nn.Module):
    """A model whose output is its loss."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, **inputs: Any) -> Mapping[str, torch.Tensor]:
        return {"loss": loss_of(self.module(**inputs))}


def _with_loss(build: Callable[[ModelSize], Example]) -> Callable[[ModelSize], Example]:
    def built(size: ModelSize) -> Example:
        example = build(size)
        return replace(example, module=WithLoss(example.module))

    return built


def _step(name: str, build: Callable[[ModelSize], Example], batch: int, reference_parts: int = 1) -> dict[str, Model]:
    """The case without and with an optimiser."""
    plain = Model(name, build, True, False, torch.bfloat16, batch, reference_parts)
    optimised = replace(plain, name=f"{name}_adamw", is_optimised=True)
    return {plain.name: plain, optimised.name: optimised}


TRAINING: dict[str, Model] = {
    **_step("gpt2", gpt2, 16, 4),
    **_step("gpt2_padded", gpt2_padded, 16, 4),
    **_step("bert", _with_loss(language.bert), 16, 4),
    **_step("resnet50", _with_loss(vision.resnet), 64),
}

#: The cases that need no other library.
OWN = tuple(name for name in TRAINING if name.startswith("gpt2"))
