"""The ATen graph run operator by operator, in float64 if wanted: what errors are measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from compiler.capture.captured import CapturedGraph, with_strides_of
from compiler.capture.exact_operators import IN_ANY_DTYPE
from compiler.capture.rounding_noise import RoundingNoise, epsilon_of


def reference_run(
    graph: CapturedGraph,
    inputs: Sequence[Any],
    dtype: torch.dtype | None = torch.float64,
    noise: RoundingNoise | None = None,
) -> list[Any]:
    """Outputs of the graph on `inputs`, which are not changed; on the device of `inputs`.

    With a `dtype`, every floating input, and every floating dtype that the graph itself names (a cast to bfloat16, a
    tensor of ones), becomes that dtype, so that the result is what the formula says and not what rounding made of it.
    Casts to integers and booleans stay. With None the graph runs as it is. `noise` stands for what each operator rounds
    in the dtype that it has in the graph.
    """
    interpreter = _AsTraced(graph.aten) if dtype is None else _Raised(graph.aten, dtype, noise)
    values = [raise_precision(value, dtype) if dtype is not None else value for value in inputs]
    with torch.no_grad(), noise or nullcontext():
        outputs = interpreter.run(*values)
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def is_random(graph: CapturedGraph) -> bool:
    """Whether the graph draws random numbers, so that two runs of it differ unless seeded alike.

    One that draws again what was drawn before counts too: in float64, a generator gives other numbers. Graphs
    that it hands to an operator such as `torch.cond` are looked at too.
    """
    held = (part for part in graph.aten.modules() if isinstance(part, torch.fx.GraphModule))
    return any(draws(node.target, node.args, node.kwargs) for part in held for node in part.graph.nodes)


def draws(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call of an operator draws random numbers. Attention does for its dropout alone."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return "rng_state" in target.name()
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    return "dropout_p" not in names or bool({**dict(zip(names, args, strict=False)), **kwargs}.get("dropout_p"))


def raise_precision(value: Any, dtype: torch.dtype = torch.float64) -> Any:
    """A floating tensor or floating dtype as `dtype`; a complex one as the complex of that size; else unchanged."""
    if isinstance(value, torch.Tensor):
        raised = raise_precision(value.dtype, dtype)
        return value if raised == value.dtype else value.to(raised)
    if isinstance(value, torch.dtype):
        if value.is_floating_point:
            return dtype
        return dtype.to_complex() if value.is_complex else value
    return value


#: Operators whose result is another number in another dtype, such as the largest one.
_OF_THEIR_DTYPE = (torch.ops.aten.nextafter.default,)


class _AsTraced(torch.fx.Interpreter):
    """Runs a graph whose values lie in memory as they did when it was traced. A library may lay a result out otherwise
    than torch foretells, as cuDNN does some convolutions; a view of it, or attention, would then refuse."""

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n.op != "call_function" or not isinstance(n.target, torch._ops.OpOverload) or n.target._schema.is_mutable:
            return result
        return with_strides_of(n.meta.get("val"), result)


def _plain(results: Any) -> Any:
    """Several results as a list of Python's own; that of a graph's node is a kind of its own to torch 2.11."""
    return list(results) if isinstance(results, list) else results


class _Raised(_AsTraced):
    """Runs a graph with one floating dtype in place of all that it names."""

    def __init__(self, module: torch.fx.GraphModule, dtype: torch.dtype, noise: RoundingNoise | None = None) -> None:
        super().__init__(module)
        self._dtype = dtype
        self._noise = noise

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        held = super().get_attr(target, args, kwargs)
        if isinstance(held, torch.fx.GraphModule):  # a function that `torch.cond` or its like is given
            return lambda *values: _plain(_Raised(held, self._dtype).run(*values))
        return raise_precision(held, self._dtype)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is torch.ops.aten.view.dtype:
            return self._view_bits(target, args, kwargs)
        if target in _OF_THEIR_DTYPE:
            result = super().call_function(target, *self._in_own_dtypes())
            return raise_precision(result, self._dtype)
        raised_args, raised_kwargs = torch.utils._pytree.tree_map_only(
            torch.dtype, lambda dtype: raise_precision(dtype, self._dtype), (args, kwargs)
        )
        try:
            exact = IN_ANY_DTYPE.get(target, target)
            result = super().call_function(exact, raised_args, raised_kwargs)
        except (RuntimeError, ValueError):  # an operator of fewer dtypes, such as those that quantise
            result = super().call_function(target, *self._in_own_dtypes())
        # An operator that names no dtype (aten.full, aten.rand) makes the default one, float32.
        return torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda tensor: raise_precision(tensor, self._dtype), result
        )

    def _in_own_dtypes(self) -> tuple[Any, Any]:
        """The arguments of the node at hand in the dtypes that the graph itself gives them."""

        def own(read: torch.fx.Node) -> Any:
            value, fake = self.env[read], read.meta.get("val")
            if isinstance(value, torch.Tensor) and isinstance(fake, torch.Tensor) and value.dtype != fake.dtype:
                return with_strides_of(fake, value.to(fake.dtype))
            return value

        node = self._current_node
        return torch.fx.map_arg((node.args, node.kwargs), own)  # type: ignore[return-value]

    def _view_bits(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Reinterpreted bits have no float64 counterpart: go back to the graph's own dtype for that one operator."""
        source = self._current_node.all_input_nodes[0]
        own = args[0].to(source.meta["val"].dtype)
        return raise_precision(super().call_function(target, (own, *args[1:]), kwargs), self._dtype)

    def run_node(self, n: torch.fx.Node) -> Any:
        self._current_node = n
        if self._noise is not None:
            self._noise.epsilon = epsilon_of([n.meta.get("val")])
        return super().run_node(n)
