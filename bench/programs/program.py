"""A random program: inputs and statements, as text that runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch

#: The floating-point dtypes by the names that programs call them by, so that a reference can call all of them float64.
FLOATING = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
INTEGRAL = {"i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8}
DTYPES = {**FLOATING, **INTEGRAL, "bool_": torch.bool}

#: What a statement does to numbers. "moves" hands values on, or combines them in a way that is exact wherever the
#: result needs no rounding; "rounds" rounds; "decides" jumps (floor, comparison), so that it may only be given numbers
#: that every correct evaluation agrees on to the last bit.
Kind = Literal["moves", "rounds", "decides"]


@dataclass(frozen=True)
class Statement:
    """One line. `targets` are names that it gives, or the one that it writes to; `operands` are all that it reads."""

    code: str
    kind: Kind
    targets: tuple[str, ...]
    operands: tuple[str, ...]
    is_write: bool = False


@dataclass(frozen=True)
class Program:
    """`inputs` are names and the expressions that make them, drawn in order after `torch.manual_seed(seed)`."""

    seed: int
    inputs: tuple[tuple[str, str], ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]
    #: Whether sizes are left open when it is compiled, and the inputs of a second call, of other sizes, if it has one.
    is_open: bool = False
    larger_inputs: tuple[tuple[str, str], ...] = ()

    @property
    def calls(self) -> tuple[Program, ...]:
        """The program with the inputs of each call. The larger ones come first as often as second."""
        larger = (replace(self, inputs=self.larger_inputs, larger_inputs=()),) if self.larger_inputs else ()
        return (self, *larger)[:: -1 if self.seed % 2 else 1]

    @property
    def function(self) -> str:
        """The text of `program(inputs)`, which returns a list."""
        names = ", ".join(name for name, _ in self.inputs)
        lines = [f"def program({names}):", *(f"    {statement.code}" for statement in self.statements)]
        return "\n".join([*lines, f"    return [{', '.join(self.results)}]"]) + "\n"

    @property
    def make_inputs(self) -> str:
        """The text of `inputs()`, which gives fresh ones, the same each time."""
        lines = ["def inputs():", f"    torch.manual_seed({self.seed})"]
        return "\n".join([*lines, "    return [", *(f"        {made}," for _, made in self.inputs), "    ]"]) + "\n"

    def script(self, device: str = "cpu") -> str:
        """A Python file that shows what eager and what Fusionscope give, and how far they are apart."""
        dtypes = "\n".join(f"{name} = {dtype}" for name, dtype in DTYPES.items())
        makers = [one.make_inputs.replace("def inputs", f"def inputs{place}") for place, one in enumerate(self.calls)]
        names = ", ".join(f"inputs{place}" for place in range(len(makers)))
        return SCRIPT.format(
            seed=self.seed, dtypes=dtypes, make_inputs="\n\n".join(makers), function=self.function, device=device,
            names=names, is_open=self.is_open,
        )  # fmt: skip


SCRIPT = """# Random program of seed {seed}.
import torch
import torch.nn.functional as F

{dtypes}


{make_inputs}

{function}

compiled = torch.compile(program, backend="fusionscope", dynamic={is_open})
for inputs in [{names}]:
    given, expected = [x.to({device!r}) for x in inputs()], inputs()
    ours, eager = compiled(*given), program(*expected)
    for place, (a, b) in enumerate(zip([*ours, *given], [*eager, *expected])):
        error = (a.cpu().double() - b.double()).abs()
        print(place, a.dtype, tuple(a.shape), a.stride(), b.stride(), error.max().item() if error.numel() else 0)
"""


def namespace(floating: torch.dtype | None = None) -> dict[str, object]:
    """What a program's text refers to; with `floating`, every floating-point dtype is that one."""
    dtypes = {name: floating if floating and name in FLOATING else dtype for name, dtype in DTYPES.items()}
    return {"torch": torch, "F": torch.nn.functional, **dtypes}
