"""A program run side by side: as it is, in float64, and in float64 with a little noise in every step.

The first world is eager PyTorch. The second is the reference. The others say how much of a difference rounding may
make in this very program: each operand and each result of a step that rounds is off by a random part of its dtype's
epsilon, as another order of a sum or another approximation of a sine would make it. A cancellation, a division by a
small number or a cast to half precision on the way shows in them (stochastic arithmetic, after La Porte and Vignes,
1974).

Some values no rounding has touched: integers, comparisons, copies, sums of a few multiples of 1/8. They are *exact*;
every correct evaluation has the same bits, and only they may be compared, rounded down or used as an index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from bench.programs.program import Program, Statement, namespace

#: Worlds with noise. More of them make the bound a little less a matter of luck.
NOISY_WORLDS = 2
#: Larger magnitudes would drown everything else in a tensor.
LARGEST = 1e4


class Rejected(Exception):
    """The statement cannot be run here, or its result is of no use."""


class Worlds:
    """The state of one program in all worlds, statement by statement."""

    def __init__(self, program: Program) -> None:
        self.eager = namespace()
        self.exact_world = namespace(torch.float64)
        self.noisy = [namespace(torch.float64) for _ in range(NOISY_WORLDS)]
        self.noise = torch.Generator().manual_seed(program.seed)
        #: Storages of the eager world that hold a rounded value.
        self.rounded: set[int] = set()
        self.inputs = [name for name, _ in program.inputs]
        scope = namespace()
        exec(program.make_inputs, scope)
        for world, dtype in self._worlds():
            given = scope["inputs"]()  # type: ignore[operator]
            world.update(zip(self.inputs, [_converted(tensor, dtype) for tensor in given]))

    def _worlds(self) -> list[tuple[dict[str, Any], torch.dtype | None]]:
        return [(self.eager, None), *((world, torch.float64) for world in (self.exact_world, *self.noisy))]

    # --- what is known of a value

    def tensor(self, name: str) -> Tensor:
        return self.eager[name]  # type: ignore[return-value]

    def is_exact(self, name: str) -> bool:
        value = self.tensor(name)
        return not value.dtype.is_floating_point or _storage(value) not in self.rounded

    # --- running

    def step(self, statement: Statement) -> None:
        """Run a statement in all worlds. Raises `Rejected`, after which the worlds are of no use if it was a write."""
        if any(name not in self.eager for name in statement.operands):
            raise Rejected("it reads what is not there")
        is_exact = all(self.is_exact(name) for name in statement.operands)
        if statement.kind == "decides" and not is_exact:
            raise Rejected("it decides by rounded numbers")
        known = {_storage(value) for value in self.eager.values() if isinstance(value, Tensor)}
        self._run(statement, self.eager)
        with _default_dtype(torch.float64):
            self._run(statement, self.exact_world)
        results = [self.tensor(name) for name in statement.targets]
        self._check(statement, results)
        # New memory may lie where a tensor that was dropped lay.
        self.rounded -= {_storage(result) for result in results} - known
        is_exact &= self._remember(statement, results, is_exact)
        for world in self.noisy:
            with _default_dtype(torch.float64):
                self._run_with_noise(statement, world, results, known, is_exact)

    def _run(self, statement: Statement, world: dict[str, Any]) -> None:
        try:
            exec(statement.code, world)
        except Exception as error:
            raise Rejected(str(error)) from error

    def _check(self, statement: Statement, results: Sequence[Any]) -> None:
        for name, result in zip(statement.targets, results):
            if not isinstance(result, Tensor):
                raise Rejected("it gives no tensor")
            if not result.dtype.is_floating_point and not all(self.is_exact(n) for n in statement.operands):
                raise Rejected("it makes integers of rounded numbers")
            reference = self.exact_world[name]
            assert isinstance(reference, Tensor)
            if reference.shape != result.shape:
                raise Rejected("its shape depends on values")
            values = result.double()
            if statement.kind == "rounds" and result.is_floating_point() and not reference.any() and values.numel():
                raise Rejected("everything cancels: how far off another evaluation may be has no measure")
            if not bool(torch.isfinite(values).all()) or bool((values.abs() > LARGEST).any()):
                raise Rejected("its values are too large")

    def _remember(self, statement: Statement, results: Sequence[Tensor], is_exact: bool) -> bool:
        """Note which storages are rounded now; gives whether the results are exact."""
        for name, result in zip(statement.targets, results):
            if result.dtype.is_floating_point:
                same = statement.kind != "rounds" and torch.equal(result.double(), self.exact_world[name])  # type: ignore[arg-type]
                is_exact = is_exact and same
        if not is_exact:
            self.rounded |= {_storage(result) for result in results if result.dtype.is_floating_point}
        return is_exact

    def _run_with_noise(
        self, statement: Statement, world: dict[str, Any], results: Sequence[Tensor], known: set[int], is_exact: bool
    ) -> None:
        if is_exact:
            return self._run(statement, world)
        kept = {name: world[name] for name in statement.operands}
        if statement.kind == "rounds":
            # An operator of several steps (a variance) rounds sums of its operand on the way.
            own = {_storage(kept[name]) for name in statement.targets if name in kept} if statement.is_write else set()
            for name, value in kept.items():
                if value.dtype.is_floating_point and _storage(value) not in own:
                    terms = max(_terms(value, result) for result in results)
                    world[name] = self._perturbed(value, self.tensor(name).dtype, terms)
        self._run(statement, world)
        world.update({name: value for name, value in kept.items() if name not in statement.targets})
        for name, result in zip(statement.targets, results):
            is_new = statement.is_write or _storage(result) not in known
            if is_new and result.dtype.is_floating_point:
                value = world[name]
                if not any(step == 0 and size > 1 for step, size in zip(value.stride(), value.shape)):
                    terms = max(_terms(kept[name], value) for name in statement.operands)
                    value.copy_(self._perturbed(value, result.dtype, terms))

    def _perturbed(self, value: Tensor, dtype: torch.dtype, terms: float = 1) -> Tensor:
        """Off by up to an epsilon, or by what rounding makes of a sum of so many terms, which grows with their root."""
        noise = 2 * torch.rand(value.shape, generator=self.noise, dtype=torch.float64) - 1
        return value * (1 + torch.finfo(dtype).eps * max(1.0, terms**0.5 / 2) * noise)


def _terms(operand: Tensor, result: Tensor) -> float:
    """How many elements of an operand may go into one of the result: a reduction's, or a row's of a product."""
    return max(operand.numel() / max(result.numel(), 1), *operand.shape, 1)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _converted(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """In another floating dtype, with the same strides."""
    if dtype is None or not tensor.dtype.is_floating_point:
        return tensor
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    storage = tensor.as_strided((extent,), (1,)).to(dtype)
    return storage.as_strided(tensor.shape, tensor.stride())


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def run(program: Program) -> Worlds:
    """All worlds at the end of a program; raises `Rejected` where a part of it has no meaning."""
    worlds = Worlds(program)
    for statement in program.statements:
        worlds.step(statement)
    return worlds
