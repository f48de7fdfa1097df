"""A model with the inputs of one batch, and one step of it: forward, and in training gradients and an optimiser."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from bench.models.judge import named_tensors
from bench.models.model import Model, loss_of
from compiler.runtime.checking.verify import to_double

Outputs = Mapping[str, Any]
Compile = Callable[[Any], Any]

#: AdamW as GPT-2 is trained with it: the same for all contestants, all tensors of a step in one list, nothing on the
#: host that the device would wait for.
ADAMW: dict[str, Any] = {"lr": 1e-4, "betas": (0.9, 0.95), "weight_decay": 0.1, "foreach": True}


@dataclass(frozen=True)
class Callee:
    """A model as a contestant runs it: keyword arguments in, the model's outputs out; and the optimiser's step."""

    forward: Callable[..., Outputs]
    update: Callable[[], object] | None = None


@dataclass(frozen=True)
class Run:
    """A model's module with the inputs of one batch. `parts` is how many pieces a step takes the batch in."""

    model: Model
    module: nn.Module
    inputs: dict[str, Tensor]
    optimiser: torch.optim.Optimizer | None = None
    parts: int = 1

    def copied(self) -> Run:
        """With a copy of what a step changes (parameters, statistics, gradients), and an optimiser of that copy."""
        if not self.model.is_trained:
            return self
        module = copy.deepcopy(self.module)
        return replace(self, module=module, optimiser=_optimiser(module) if self.model.is_optimised else None)

    def in_double(self) -> Run:
        """The reference: without an optimiser, whose work is judged by itself."""
        module = copy.deepcopy(self.module).double()
        batch = len(next(iter(self.inputs.values())))
        return Run(self.model, module, to_double(self.inputs), None, math.gcd(batch, self.model.reference_parts))

    def callee(self, compile_with: Compile = lambda function: function) -> Callee:
        """The module and its optimiser's step, each compiled on its own, as training loops do."""
        forward = compile_with(self.module)
        return Callee(forward, compile_with(_step_of(self.optimiser)) if self.optimiser is not None else None)

    def step(self, callee: Callee) -> Outputs:
        """Forward, and in training the loss, the gradients of all parameters and what the optimiser makes of them."""
        if not self.model.is_trained:
            with torch.no_grad():
                return callee.forward(**self.inputs)
        self.module.zero_grad(set_to_none=True)
        shares = [self._differentiate(callee, inputs) for inputs in self._pieces()]
        if callee.update is not None:
            callee.update()
        return shares[0] if len(shares) == 1 else {"loss": sum(share["loss"] for share in shares)}

    def _differentiate(self, callee: Callee, inputs: Mapping[str, Tensor]) -> Outputs:
        with self._precision():
            outputs = callee.forward(**inputs)
            loss = outputs["loss"] if "loss" in outputs else loss_of(outputs)
        (loss / self.parts if self.parts > 1 else loss).backward()
        return outputs if self.parts == 1 else {"loss": outputs["loss"].detach() / self.parts}

    def _pieces(self) -> list[dict[str, Tensor]]:
        pieces = {name: value.chunk(self.parts) for name, value in self.inputs.items()}
        return [{name: pieces[name][part] for name in pieces} for part in range(self.parts)]

    def _precision(self) -> AbstractContextManager[Any]:
        first = next(self.module.parameters())
        if self.model.autocast is None or first.dtype == torch.float64:
            return nullcontext()
        return torch.autocast(first.device.type, self.model.autocast)

    def results(self, callee: Callee) -> dict[str, Tensor]:
        """All that a step leaves: outputs, and in training gradients, buffers and how well the optimiser did.

        The latter is one number a parameter, 1 plus the share by which its move differs from what AdamW in float64
        makes of the very gradient that moved it: a first move is nearly the gradient's sign, so moves by other
        gradients cannot be compared."""
        parameters = dict(self.module.named_parameters())
        before = {name: p.detach().double() for name, p in parameters.items()} if self.model.is_optimised else {}
        found = named_tensors(self.step(callee), "output")
        if self.model.is_trained:
            gradients = {name: parameter.grad for name, parameter in parameters.items()}
            found |= named_tensors(gradients, "gradient") | named_tensors(dict(self.module.named_buffers()), "buffer")
        for name, start in before.items():
            missed = _missed(parameters[name], start) if self.optimiser is not None else torch.zeros_like(start.sum())
            found[f"update.{name}"] = 1 + missed
        return found

    @torch.no_grad()
    def remembered(self) -> Callable[[], None]:
        """What puts parameters, statistics and the optimiser back to where they are now, in the same memory."""
        tensors = [*self.module.parameters(), *self.module.buffers()] if self.model.is_trained else []
        kept = [(tensor, tensor.detach().clone()) for tensor in tensors]

        @torch.no_grad()
        def restore() -> None:
            for tensor, value in kept:
                tensor.copy_(value)
            for state in self.optimiser.state.values() if self.optimiser is not None else ():
                for value in state.values():
                    value.zero_()

        return restore


def _optimiser(module: nn.Module) -> torch.optim.Optimizer:
    on_gpu = next(module.parameters()).is_cuda
    return torch.optim.AdamW(module.parameters(), **ADAMW, capturable=on_gpu)


def _missed(parameter: Tensor, start: Tensor) -> Tensor:
    """How far a parameter is from where AdamW in float64 takes `start` by the same gradient, over the way it goes."""
    exact = start.clone()
    exact.grad = parameter.grad.double() if parameter.grad is not None else None
    torch.optim.AdamW([exact], **ADAMW).step()
    way = torch.linalg.vector_norm(exact - start)
    return torch.linalg.vector_norm(parameter.detach().double() - exact) / way.clamp_min(torch.finfo(way.dtype).tiny)


def _step_of(optimiser: torch.optim.Optimizer) -> Callable[[], None]:
    def update() -> None:
        optimiser.step()

    return update
