"""Whole calls checked from end to end: the user's own function, eager and compiled, and both against float64.

Checking each graph alone would not find a wrong formula in a decomposition, or a wrong tensor saved for the backward
pass: both sides of such a check would have it. Here the function runs as the user wrote it. Each run starts from the
same arguments and the same parameters, which are put back afterwards, and is given the same gradients of its results.
What another compiler makes of the function is checked in the same way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from unittest import mock

import torch
from torch.utils._pytree import tree_leaves

from compiler.capture.captured import Capture, CapturedGraph, EntryCall, clone_with_strides
from compiler.capture.reference import is_random
from compiler.capture.rounding_noise import RoundingNoise, epsilon_of
from compiler.capture.torch_internals import noting_differentiation, without_hooks
from compiler.capture.torch_state import with_default_dtype
from compiler.runtime.checking.double_precision import InDoublePrecision
from compiler.runtime.checking.judge import Judgement, judge
from compiler.runtime.checking.verify import is_rounded, plain, scale_of
from compiler.snippet_changes import NO_CHANGES, SnippetChanges

#: Draws of noise that say how much rounding may change a result.
DRAWS = 3


@dataclass(frozen=True)
class CheckedCall:
    """One call of an entry: every result and gradient by its name, and how it was judged."""

    entry: str
    judged: list[tuple[str, Judgement]]


def check_training(
    captured: Capture, changes: SnippetChanges = NO_CHANGES, note: Callable[[str], None] = lambda _: None
) -> list[CheckedCall]:
    """Every entry that was differentiated and draws no random numbers, and whose call ran our kernels. One that asks
    for its gradients itself is noted: its results have no others."""
    checked = []
    for entry in captured.timed_entries:
        graphs = graphs_of(entry, captured)
        is_trained = any(graph.phase == "backward" and graph.runner.calls for graph in graphs)
        if is_trained and not any(map(is_random, graphs)):
            call = reference_of(entry, graphs, changes)
            # One that compiled anew, or gives nothing that could be differentiated, has nothing of ours to check.
            if call.is_ours and call.compiled.gradients:
                checked.append(call.ours())
            elif call.is_ours and call.compiled.has_differentiated:
                note(f"{entry.name} runs backward itself. So its graphs were checked one by one, not from end to end.")
    return checked


def graphs_of(entry: EntryCall, captured: Capture) -> list[CapturedGraph]:
    return [graph for graph in captured.graphs if graph.name in entry.graphs]


@dataclass
class CallReference:
    """One call of an entry, run by our kernels, as eager and float64 have it: what all others are held against. Each is
    run when it is first asked for; a function that cannot be run in float64 raises NotImplementedError."""

    entry: EntryCall
    graphs: Sequence[CapturedGraph]
    state: _State
    compiled: _Outcome
    is_ours: bool

    @cached_property
    def eager(self) -> _Outcome:
        return _run(self.entry, self.entry.eager, self.state)

    @cached_property
    def exact(self) -> _Outcome:
        return _run_in_double(self.entry, self.state)

    def judged(self, function: Callable[..., Any]) -> CheckedCall:
        """What `function`, made of the entry's by another compiler, gives for the entry's arguments."""
        return self._judged(_run(self.entry, function, self.state))

    def ours(self) -> CheckedCall:
        return self._judged(self.compiled)

    def _judged(self, found: _Outcome) -> CheckedCall:
        eager, exact = self.eager, self.exact
        inner = [node.meta.get("val") for graph in self.graphs for node in graph.aten.graph.nodes]
        draws = [RoundingNoise(epsilon_of([list(eager.values), inner]), seed) for seed in range(DRAWS)]
        names = list(eager.by_name)
        judgements = judge(
            found.values_of(names),
            exact.values_of(names),
            eager.values,
            scale_of(exact.values),
            (_run_in_double(self.entry, self.state, noise).values_of(names) for noise in draws),
        )
        return CheckedCall(self.entry.name, list(zip(names, judgements, strict=True)))


def reference_of(
    entry: EntryCall,
    graphs: Sequence[CapturedGraph],
    changes: SnippetChanges,
    seed: int | None = None,
) -> CallReference:
    """The call on the entry's own arguments; with a seed, on others of the same kind."""
    entry = entry if seed is None else _drawn_anew(entry, seed)
    state = _State(changes)
    forward = [graph for graph in graphs if graph.phase != "backward"]
    with state.recorded(forward):
        compiled = _run(entry, entry.compiled, state)
    return CallReference(entry, graphs, state, compiled, state.called == {graph.name for graph in forward})


def _drawn_anew(entry: EntryCall, seed: int) -> EntryCall:
    """Each floating argument with values drawn from its own, so that they are as large and of the same signs: what is
    positive or a probability stays one. Whole numbers, and parameters of modules, stay as they are."""
    args, kwargs = entry.copy_arguments()
    generators: dict[torch.device, torch.Generator] = {}
    for leaf in tree_leaves((args, kwargs)):
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, torch.nn.Parameter) or not is_rounded(leaf):
            continue
        if leaf.layout != torch.strided or not leaf.numel() or 0 in leaf.stride():
            continue
        device = leaf.device
        generator = generators.setdefault(device, torch.Generator(device).manual_seed(seed))
        with torch.no_grad():
            indices = torch.randint(leaf.numel(), leaf.shape, generator=generator, device=device)
            leaf.copy_(leaf.detach().reshape(-1)[indices])
    return replace(entry, args=args, kwargs=kwargs)


def _run_in_double(entry: EntryCall, state: _State, noise: RoundingNoise | None = None) -> _Outcome:
    with noise or contextlib.nullcontext(), InDoublePrecision() as mode:
        return _run(entry, entry.eager, state, mode)


@dataclass
class _Outcome:
    results: list[torch.Tensor]
    gradients: dict[str, torch.Tensor]
    #: Whether the call itself ran backward, after which autograd has forgotten what its results were computed from.
    has_differentiated: bool

    @property
    def names(self) -> list[str]:
        results = ["the result"] if len(self.results) == 1 else [f"result {n + 1}" for n in range(len(self.results))]
        return [*results, *(f"the gradient of {name}" for name in self.gradients)]

    @property
    def values(self) -> list[torch.Tensor]:
        return [*self.results, *self.gradients.values()]

    @property
    def by_name(self) -> dict[str, torch.Tensor]:
        return dict(zip(self.names, self.values, strict=True))

    def values_of(self, names: Sequence[str]) -> list[torch.Tensor | None]:
        """None for what is not there."""
        return [self.by_name.get(name) for name in names]


@dataclass
class _State:
    """Tensors that graphs read, by identity: what each was before the first run, and what the graph calls it. `changes`
    are of the snippet whose functions are called."""

    changes: SnippetChanges
    before: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def recorded(self, graphs: Sequence[CapturedGraph]) -> Iterator[None]:
        """Note the inputs of every graph that runs within."""
        with contextlib.ExitStack() as stack:
            for graph in graphs:
                noting = self._noting(graph, graph.runner.implementation)
                stack.enter_context(mock.patch.object(graph.runner, "implementation", noting))
            yield

    def _noting(self, graph: CapturedGraph, call: Callable[[list[Any]], Sequence[Any]]) -> Any:
        names = [node.name for node in graph.aten.graph.nodes if node.op == "placeholder"]

        def noted(inputs: list[Any]) -> Sequence[Any]:
            self.called.add(graph.name)
            for name, value in zip(names, inputs, strict=False):
                if isinstance(value, torch.Tensor) and id(value) not in self.before:
                    self.before[id(value)] = (value, value.detach().clone())
                    self.names[id(value)] = name
            return call(inputs)

        return noted

    def note_arguments(self, given: Sequence[torch.Tensor]) -> None:
        """The arguments of a call are copies, each call's own: only what the graph calls them outlives the call."""
        if not self.arguments:
            self.arguments = [self.names.get(id(leaf), f"argument {n}") for n, leaf in enumerate(given, start=1)]
        for leaf in given:
            self.before.pop(id(leaf), None)

    def parameters(self) -> list[torch.Tensor]:
        """Leaves that want a gradient, those that graphs read."""
        return [tensor for tensor, _ in self.before.values() if tensor.requires_grad and tensor.is_leaf]

    def put_back(self) -> None:
        with torch.no_grad():
            for tensor, value in self.before.values():
                if not torch.equal(tensor, value):
                    tensor.copy_(value)


def _run(
    entry: EntryCall,
    function: Callable[..., Any],
    state: _State,
    mode: InDoublePrecision | None = None,
) -> _Outcome:
    """One call, and the gradients of its results by every leaf among the arguments and parameters."""
    args, kwargs = entry.copy_arguments()
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    passes: list[Any] = []
    calling = mode.calling() if mode else contextlib.nullcontext()
    with state.changes.in_force(), calling, noting_differentiation(passes.append):
        returned = function(*args, **kwargs)
    results = [leaf for leaf in tree_leaves(returned) if isinstance(leaf, torch.Tensor)]
    trained = [result for result in results if result.requires_grad and not passes]
    state.note_arguments(given)
    leaves = {name: leaf for name, leaf in zip(state.arguments, given, strict=True) if leaf.requires_grad}
    leaves |= {state.names[id(leaf)]: leaf for leaf in state.parameters()}
    gradients: Sequence[torch.Tensor | None] = ()
    if trained and leaves:
        tangents, gradients_of = [_tangent(result) for result in trained], torch.autograd.grad
        in_mode = mode.differentiating() if mode else contextlib.nullcontext()
        dtype, hooks = with_default_dtype(entry.default_dtype), without_hooks(leaves.values())
        with in_mode, state.changes.in_force(), dtype, hooks:
            gradients = gradients_of(trained, list(leaves.values()), tangents, allow_unused=True)
    # A result may be a tensor that one graph made and another wrote to, which is put back too.
    kept = [clone_with_strides(plain(result)) for result in results]
    state.put_back()
    found = {name: value for name, value in zip(leaves, gradients, strict=False) if value is not None}
    gradients_found = {name: plain(value) for name, value in found.items()}
    return _Outcome(kept, gradients_found, bool(passes))


def _tangent(result: torch.Tensor) -> torch.Tensor:
    """A gradient that differs from element to element, the same each time: ones would hide a sum that cancels."""
    indices = torch.arange(result.numel(), device=result.device, dtype=torch.float64)
    return torch.cos(indices).reshape(result.shape).to(result.dtype)
