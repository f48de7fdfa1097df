"""A random program of a seed: up to thirty operators, each run as it is drawn, so that each has a meaning."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from bench.programs import operators as op
from bench.programs import shapes, writes
from bench.programs.pick import Draft, NothingFits, Pick
from bench.programs.program import Program, Statement
from bench.programs.worlds import Rejected, Worlds, run

#: How often each operator is drawn, relative to the others.
OPERATORS: dict[Callable[[Pick], Draft], float] = {
    op.rounding: 8,
    op.moving: 4,
    op.deciding: 3,
    op.of_integers: 3,
    op.of_masks: 1.5,
    op.binary: 9,
    op.binary_rounding: 3,
    op.binary_integral: 2,
    op.comparison: 3,
    op.chosen: 3,
    op.cast: 3,
    op.cast_to_integers: 1,
    op.reduction: 5,
    op.extreme: 2,
    op.several_results: 1.5,
    op.counted: 3,
    op.normalised: 4,
    op.product: 2,
    shapes.sliced: 4,
    shapes.permuted: 3,
    shapes.reshaped: 4,
    shapes.widened: 3,
    shapes.repeated: 1.5,
    shapes.turned: 2,
    shapes.part: 3,
    shapes.joined: 3,
    shapes.padded: 1.5,
    shapes.looked_up: 2.5,
    shapes.gathered: 1.5,
    shapes.scattered: 2.5,
    writes.in_place: 4,
    writes.in_place_binary: 3,
    writes.assigned: 3,
    writes.masked: 1,
    writes.indexed: 1,
}
SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 40, 130]
LARGEST_INPUT = 3000
#: Elements of one tensor; a repeated or joined one may be larger than an input.
LARGEST_TENSOR = 20000
Larger = Callable[[int], int]
#: What becomes of sizes from 2 on where a program is called with others: multiples can be reshaped as the sizes can.
LARGER: list[Larger] = [lambda size: 3 * size, lambda size: 2 * size, lambda size: size + 5, lambda size: size + 1]


def generate(seed: int, most_statements: int = 30) -> Program:
    """The program of `seed`; the same one each time, on every machine with the same PyTorch."""
    rng = random.Random(seed)
    program = Program(seed, _inputs(rng), (), ())
    worlds = Worlds(program)
    names = [name for name, _ in program.inputs]
    wanted = rng.randint(2, most_statements)
    for _ in range(4 * wanted):
        if len(program.statements) == wanted:
            break
        statement = _draw(Pick(rng, worlds, names), len(program.statements))
        if statement is None:
            continue
        try:
            worlds.step(statement)
            if any(worlds.tensor(name).numel() > LARGEST_TENSOR for name in statement.targets):
                raise Rejected("it is too large")
        except Rejected:
            worlds = _without(statement, worlds, program)
            continue
        program = replace(program, statements=(*program.statements, statement))
        names += [name for name in statement.targets if name not in names]
    made = [name for name in names if name not in dict(program.inputs)]
    results = [*made[-3:], *rng.sample(made[:-3], min(len(made[:-3]), rng.choice([0, 0, 1, 3])))]
    results += [rng.choice(names)] if rng.random() < 0.2 or not results else []
    return replace(program, results=tuple(results))


def with_open_sizes(program: Program) -> Program:
    """The same program for sizes left open, to be called with larger inputs too: by the first of `LARGER` that gives
    its statements a meaning, or not at all where none does, since a size stands in a statement."""
    program = replace(program, is_open=True)
    for larger in LARGER:
        inputs = _inputs(random.Random(program.seed), larger)
        try:
            tensors = run(replace(program, inputs=inputs)).eager.values()
        except Rejected:
            continue
        if all(value.numel() <= 4 * LARGEST_TENSOR for value in tensors if isinstance(value, torch.Tensor)):
            return replace(program, larger_inputs=inputs)
    return program


def _draw(pick: Pick, number: int) -> Statement | None:
    operator = pick.rng.choices(list(OPERATORS), list(OPERATORS.values()))[0]
    try:
        draft = operator(pick)
    except (NothingFits, IndexError, ValueError):
        return None
    if draft.writes is not None:
        return Statement(draft.code, draft.kind, (draft.writes,), draft.operands, is_write=True)
    targets = tuple(f"v{number}{letter}" for letter in "ab"[: draft.results]) if draft.results > 1 else (f"v{number}",)
    return Statement(f"{', '.join(targets)} = {draft.code}", draft.kind, targets, draft.operands)


def _without(statement: Statement, worlds: Worlds, program: Program) -> Worlds:
    """The worlds as they were before a statement that was rejected."""
    if statement.is_write:
        return run(program)
    for world in (worlds.eager, worlds.exact_world, *worlds.noisy):
        for name in statement.targets:
            world.pop(name, None)
    return worlds


# --- inputs


def _inputs(rng: random.Random, larger: Larger | None = None) -> tuple[tuple[str, str], ...]:
    """Two to four tensors whose shapes are made of the same few sizes, so that they meet."""
    shapes = _Shapes(rng, [rng.choice(SIZES) for _ in range(3)], larger)
    made = [_floating(rng, shapes), rng.choice([_floating, _integral])(rng, shapes)]
    made += [rng.choice([_floating, _integral, _mask])(rng, shapes) for _ in range(rng.randint(0, 2))]
    return tuple((name, text) for name, text in zip("abcd", made))


@dataclass(frozen=True)
class _Shapes:
    """Shapes made of `sizes`; what is `larger` is so after all has been drawn."""

    rng: random.Random
    sizes: list[int]
    larger: Larger | None

    def draw(self) -> list[int]:
        rng, sizes = self.rng, self.sizes
        rank = rng.choices([0, 1, 2, 3, 4], [1, 3, 8, 4, 1])[0]
        shape = [
            rng.choice([*sizes[-rank:], *sizes, 1]) if rng.random() < 0.4 else sizes[place % 3] for place in range(rank)
        ]
        if rng.random() < 0.02 and shape:
            shape[rng.randrange(rank)] = 0
        while torch.Size(shape).numel() > LARGEST_INPUT:
            shape[shape.index(max(shape))] = 2
        return [self.larger(size) if self.larger and size > 1 else size for size in shape]


def _floating(rng: random.Random, shapes: _Shapes) -> str:
    shape = shapes.draw()
    dtype = rng.choices(["f32", "bf16", "f16", "f64"], [8, 2, 2, 1])[0]
    if rng.random() < 0.7:
        return _strided(rng, shape, lambda shape: f"(torch.randint(-24, 25, {shape}) / 8).to({dtype})")
    return _strided(rng, shape, lambda shape: f"torch.randn({shape}).to({dtype})")


def _integral(rng: random.Random, shapes: _Shapes) -> str:
    dtype = rng.choices(["i64", "i32", "i16", "i8", "u8"], [5, 3, 1, 1, 1])[0]
    low, high = (0, 50) if dtype == "u8" else (-20, 21)
    return _strided(rng, shapes.draw(), lambda shape: f"torch.randint({low}, {high}, {shape}).to({dtype})")


def _mask(rng: random.Random, shapes: _Shapes) -> str:
    return _strided(rng, shapes.draw(), lambda shape: f"torch.randint(0, 2, {shape}).to(bool_)")


def _strided(rng: random.Random, shape: list[int], make: Callable[[list[int]], str]) -> str:
    """As it is, or transposed, with gaps, or expanded."""
    kind = rng.random()
    if len(shape) >= 2 and kind < 0.15:
        return f"{make([*shape[:-2], shape[-1], shape[-2]])}.mT"
    if shape and kind < 0.25:
        return f"{make([*shape[:-1], 2 * shape[-1]])}[..., ::2]"
    if shape and kind < 0.32:
        return f"{make([1, *shape[1:]])}.expand({shape})"
    if shape and kind < 0.38:
        return f"{make([shape[0] + 2, *shape[1:]])}[1:-1]"
    return make(shape)
