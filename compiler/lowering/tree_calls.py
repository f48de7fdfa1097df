"""Library calls of what takes functions, or tensors inside other structures: mappings, tuples of tuples.

    z = cond(flag, true_graph_0, false_graph_0, (y, w))                    auto_functionalized(operator, x=..., n=3)

- Operators that take functions: `torch.cond`, `while_loop`, `map`, `scan`, `flex_attention` and others. Which of the
  functions runs, or how often, is known only when the call is made. PyTorch runs them operator by operator.
- Operators and kernels of the user that write to their arguments. AOTAutograd wraps a `torch.library.custom_op` with
  `mutates_args` in `auto_functionalized`, and a Triton kernel in `triton_kernel_wrapper_functional`: a call that copies
  what is written to, makes the user's call on the copies and returns them.
- Random numbers that the graph draws twice alike, as a checkpointed region does: the forward graph draws by
  `run_and_save_rng_state(operator, ...)`, which returns the state of torch's generator beside the numbers, and the
  backward graph by `run_with_rng_state(state, operator, ...)`. Only torch's own generator has that state.

Each stays one call, into which nothing fuses. A library call of the loop IR takes tensors and numbers one beside the
other, so it keeps its arguments as a tree with holes where tensors and open sizes go, and gives its results flat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from compiler.ir.formulas import Real
from compiler.ir.size import Size
from compiler.lowering.builder import Builder
from compiler.lowering.eager import describe
from compiler.lowering.registry import operator_name
from compiler.lowering.values import TensorValue

_STEPS = "how often its functions run is known only when it is called"
_SCORES = "PyTorch computes it operator by operator, with all scores in memory"

#: How users know the operators that take functions, and why each is one call.
_KNOWN = {
    "cond": ("torch.cond", "which of its two functions runs is known only when it is called"),
    "while_loop": ("while_loop", _STEPS),
    "while_loop_stack_output": ("while_loop", _STEPS),
    "map_impl": ("map", "its function runs once for each slice"),
    "scan": ("scan", "its function runs once for each slice, after the one before"),
    "associative_scan": ("associative_scan", "its function runs once for each step of the scan"),
    "flex_attention": ("flex_attention", _SCORES),
    "flex_attention_backward": ("the gradient of flex_attention", _SCORES),
}

#: As which such a call is a kernel of a report.
RUN_BY_OPERATORS = frozenset(name for name, _ in _KNOWN.values())

#: The functional forms of what writes to its arguments.
_KERNEL = "triton_kernel_wrapper_functional"
_OF_USERS = ("auto_functionalized", "auto_functionalized_v2", _KERNEL)
_DRAWS = ("run_and_save_rng_state", "run_with_rng_state")


@dataclass(frozen=True, eq=False)
class TreeCall:
    """A call of `target`, made for the FX node of that name, with holes in `leaves`; its results are a flat tuple."""

    node: str
    target: Any
    leaves: tuple[Any, ...]
    holes: tuple[int, ...]
    structure: TreeSpec

    @property
    def is_of_user(self) -> bool:
        """Whether it is the functional form of a call of the user's that writes to its arguments."""
        return self.target.name() in _OF_USERS

    def __str__(self) -> str:
        name = str(self.target.name())
        operator = next((leaf for leaf in self.leaves if isinstance(leaf, OpOverload)), None)
        if name in _DRAWS:
            return f"{name} of {operator_name(operator)}"
        if not self.is_of_user:
            return _KNOWN.get(name, (name,))[0]
        return str(function_of(self).__name__) if operator is None else operator_name(operator)

    @property
    def __name__(self) -> str:
        return f"{self} at {self.node}"

    @property
    def reason(self) -> str:
        """Why it is one call."""
        name = self.target.name()
        if name in _DRAWS:
            return f"{self} must draw the same numbers in the forward and in the backward pass."
        if self.is_of_user:
            return f"{self} writes to its arguments and runs as it is, on copies of them."
        why = "PyTorch runs it by rules of its own"
        if name in _KNOWN:
            why = _KNOWN[name][1]
            why += "" if why == _SCORES else ", and PyTorch runs the operators in it one by one"
        return f"{self} is a library call: {why}. The code before and after it is compiled."

    def filled(self, given: Sequence[Any]) -> list[Any]:
        """The leaves with what goes into the holes."""
        leaves = list(self.leaves)
        for position, value in zip(self.holes, given, strict=True):
            leaves[position] = value
        return leaves

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        args, kwargs = tree_unflatten(self.filled(given), self.structure)
        results = tree_flatten(self.target(*args, **kwargs))[0]
        return tuple(results if self.is_of_user else _owning(results, given))


@dataclass(frozen=True)
class Given:
    """The position of an argument among those of the library call."""

    position: int


def function_of(call: TreeCall) -> Any:
    """The function with `@triton.jit` that a call launches; None for a call of an operator."""
    found = table_entry(call)
    return found[0] if found is not None else None


def table_entry(call: TreeCall) -> tuple[Any, Any, dict[str, Any]] | None:
    """Of the launch of a user's kernel: the function, the first configuration that it is tuned among, and the arguments
    of torch's wrapper, with a `Given` in each hole."""
    if call.target.name() != _KERNEL:
        return None
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    _, named = tree_unflatten(call.filled([Given(position) for position in range(len(call.holes))]), call.structure)
    function, config = kernel_side_table.get_kernel(named["kernel_idx"]), None
    while not hasattr(function, "params"):  # inside what tunes it, or computes arguments
        config = next(iter(getattr(function, "configs", [])), config)
        function = function.fn
    return function, config, {**named, "constants": kernel_side_table.get_constant_args(named["constant_args_idx"])}


def _owning(results: Iterable[Any], given: Iterable[Any]) -> Iterator[Any]:
    """The results, copied where a function gives back what it was given: the plan of memory goes by who owns it."""
    known = {value.untyped_storage().data_ptr() for value in given if isinstance(value, torch.Tensor)}
    for result in results:
        if not isinstance(result, torch.Tensor) or result.numel() == 0:
            yield result
            continue
        memory = result.untyped_storage().data_ptr()
        yield result.clone() if memory in known else result
        known.add(memory)


def tree_call(build: Builder, node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> Any:
    """The library call for a node, whose value has the structure that the target gives (a tuple, or a dictionary)."""
    arguments = torch.fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
    leaves, structure = tree_flatten(arguments)
    holes = tuple(position for position, leaf in enumerate(leaves) if isinstance(leaf, TensorValue | Size | Real))
    kept = tuple(None if position in holes else leaf for position, leaf in enumerate(leaves))
    target = TreeCall(node.name, node.target, kept, holes, structure)
    results, shape_of_results = tree_flatten(node.meta["val"])
    described = tuple(describe(result) for result in results)
    given = [leaves[position] for position in holes]
    of_operator = target.is_of_user and function_of(target) is None
    value = build.extern(target, given, {}, is_fallback=of_operator, reason=target.reason, result=described)
    return tree_unflatten(value, shape_of_results)
