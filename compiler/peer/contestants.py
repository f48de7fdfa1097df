"""Who else may run the same calls: a registry of named makers, each a function that compiles another function.

To add one is to add a line here. What `torch._dynamo.list_backends()` knows is found by its own name; whether it is
installed shows when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from compiler.options import Mode
from compiler.peer.inductor import compile_with_inductor

Function = Callable[..., Any]
Maker = Callable[[Function], Function]

#: Always there, and not made here: eager, ours, and the peer in the mode that was asked for.
ALWAYS = ("eager", "compiled", "peer")
_OF_INDUCTOR = "inductor-"
_MODES: tuple[Mode, ...] = ("default", "reduce-overhead", "max-autotune")

#: Those that Dynamo keeps for debugging, and that tell what its share of a call is.
_MORE_BACKENDS = ("aot_eager",)


class UnknownContestant(ValueError):
    """Nobody of this name."""

    def __init__(self, name: str, known: Mapping[str, Maker]) -> None:
        super().__init__(f"There is no contestant {name}; there are {', '.join(sorted(known))}.")


def contestants() -> dict[str, Maker]:
    """Every maker by its name: TorchInductor in each mode as `inductor-MODE`, then Dynamo's backends."""
    from torch._dynamo import list_backends

    backends = {*list_backends(), *_MORE_BACKENDS} - {"fusionscope", "inductor"}
    modes: dict[str, Maker] = {f"{_OF_INDUCTOR}{mode}": partial(compile_with_inductor, mode=mode) for mode in _MODES}
    return modes | {name: partial(_with_backend, name) for name in sorted(backends)}


def maker_of(name: str) -> Maker:
    """Raises `UnknownContestant`."""
    known = contestants()
    if name not in known:
        raise UnknownContestant(name, known)
    return known[name]


def is_foreign(name: str) -> bool:
    """Whether it is a backend that Dynamo found: code that neither torch's compiler nor ours answers for."""
    return name not in ALWAYS and not name.startswith(_OF_INDUCTOR)


def _with_backend(name: str, function: Function) -> Function:
    """`torch.compile` with a backend of Dynamo, by way of a function of its own: so the compiled code is shared with
    nobody. Raises what the backend raises where it is not installed."""
    from torch._dynamo.backends.registry import lookup_backend

    backend = lookup_backend(name)

    def as_contestant(graph: torch.fx.GraphModule, inputs: list[Any], **options: Any) -> Any:
        return backend(graph, inputs, **options)

    return torch.compile(function, backend=as_contestant)
