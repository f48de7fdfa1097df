"""What capturing a snippet leaves behind: graphs that can be run, the calls that made them, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import torch

from compiler.capture.slow_products import SLOW_SECONDS, product_seconds, products_in_float32
from compiler.capture.torch_internals import forget_main_module, is_made_of_tensors
from compiler.fx.fake_values import strides_at
from compiler.fx.notes import BACKWARD
from compiler.passes.layout.passed import Passed
from compiler.report import Compilation, Error, GraphBreak, Guard, Note, Recompile, Rewrite, SavedTensor, Symbol

Phase = Literal["inference", "forward", "backward"]

#: Takes a graph's inputs as one flat list and returns its outputs as one.
Implementation = Callable[[list[Any]], Sequence[Any]]


#: Inputs are copied while patches of the snippet are in force, and this class cannot be patched.
_Base = torch._C.TensorBase


def clone_with_strides(tensor: torch.Tensor) -> torch.Tensor:
    """A detached copy with the same sizes, strides and aliasing within itself, and the same memory.

    `Tensor.clone` would make an expanded tensor dense, and a graph compiled for stride 0 must be replayed on stride 0.
    What a class of the snippet makes of other tensors has no memory itself, and its `clone` may give another class.
    """
    if is_made_of_tensors(tensor) and not tensor.is_nested:  # the lengths of nested ones are equal only as one tensor
        class_of: Any = type(tensor)
        names, context = class_of.__tensor_flatten__(tensor)
        parts = {name: clone_with_strides(getattr(tensor, name)) for name in names}
        return class_of.__tensor_unflatten__(parts, context, tensor.shape, tensor.stride())  # type: ignore[no-any-return]
    tensor = _Base.detach(tensor)
    if not _has_strides(tensor):
        return _Base.clone(tensor)
    memory = _memory_of(tensor, extent_of(tensor), tensor.storage_offset())
    return _noted_as(tensor, _Base.as_strided(_Base.clone(memory), tensor.shape, tensor.stride(), 0))


def _memory_of(tensor: torch.Tensor, extent: int | torch.SymInt, first: int | torch.SymInt) -> torch.Tensor:
    """Elements as they lie in a tensor's storage, in a row."""
    return _noted_as(tensor, _Base.as_strided(tensor, (extent,), (1,), first))


def _noted_as(tensor: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """`view`, conjugated and with other signs if `tensor` says so of its memory, as `z.conj().imag` does. Where both
    say so, the result is the memory itself. Kernels read memory, and `clone` would carry out what is only noted."""
    if _Base.is_conj(tensor):
        view = torch.ops.aten._conj.default(view)
    return torch.ops.aten._neg_view.default(view) if _Base.is_neg(tensor) else view


def _has_strides(tensor: torch.Tensor) -> bool:
    """Whether its elements lie at strides. A nested tensor may say that its layout is strided, and has none. Nor has
    one whose class answers every operator itself: it may keep its elements in other tensors."""
    has_memory = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return has_memory and tensor.layout == torch.strided and not tensor.is_nested and tensor.numel() > 0


def extent_of(tensor: torch.Tensor) -> int:
    """How many elements of its storage a tensor lies in, from its first one to its last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def with_strides_of(traced: Any, value: Any) -> Any:
    """`value`, or a copy with the strides of the traced tensor if these are known and others; so of each of several."""
    if isinstance(traced, list | tuple) and isinstance(value, list | tuple):
        return type(value)(map(with_strides_of, traced, value))
    if not isinstance(traced, torch.Tensor) or not isinstance(value, torch.Tensor):
        return value
    if value.layout != torch.strided or traced.layout != torch.strided:
        return value
    strides = strides_at(traced, value.shape) if len(traced.shape) == value.ndim else None
    if strides is None or 0 in value.shape:
        return value
    if all(one == other or size == 1 for one, other, size in zip(strides, value.stride(), value.shape, strict=True)):
        return value
    # Elements along a stride of zero are one.
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
    base = value[once]
    copy = torch.empty_strided(base.shape, strides, dtype=value.dtype, device=value.device).copy_(base)
    return copy.expand(value.shape)


#: The first call also pays for what is set up once: later ones may be quicker by such a factor. What takes longer than
#: predicted can be stopped.
FIRST_CALL = 4.0


class GraphRunner:
    """What Dynamo's compiled code calls for one graph.

    `implementation` can be replaced at any time: at first it is the ATen graph run operator by operator, later our
    kernels, and the user's own compiled function is then timed with either. The first call's inputs are kept, copied
    before anything runs, so that both can be checked on real data.
    """

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        # AOTAutograd then hands over one list of inputs. It wraps what runs a backward graph in a function, and
        # that function gets the attributes of the instance, not those of the class.
        self._boxed_call = True
        self.implementation: Implementation = self._eager
        self._graph = graph
        self.calls = 0
        #: The quickest call of the ATen graph run operator by operator, with quick products; None before there was one.
        self.eager_seconds: float | None = None
        #: What this CPU needs for the products of low precision of a call, predicted; None before the first call.
        self.product_seconds: float | None = None
        self.first_inputs: list[Any] | None = None
        self.on_call: Callable[[], None] | None = None

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        self.calls += 1
        if self.on_call is not None:
            self.on_call()
        if self.first_inputs is None:
            with torch.no_grad():
                self.first_inputs = [
                    clone_with_strides(value) if isinstance(value, torch.Tensor) else value for value in inputs
                ]
        return self.implementation(inputs)

    @property
    def has_slow_products(self) -> bool:
        """Whether calls that are only made for their values compute products in float32: see `slow_products`."""
        return (self.product_seconds or 0.0) > SLOW_SECONDS

    def _eager(self, inputs: list[Any]) -> Sequence[Any]:
        if self.product_seconds is None:
            self.product_seconds = product_seconds(self._graph)
        started = perf_counter()
        with products_in_float32(self.has_slow_products):
            outputs: Sequence[Any] = self._graph(*inputs)
        took = perf_counter() - started
        self.eager_seconds = took if self.eager_seconds is None else min(took, self.eager_seconds)
        return outputs


@dataclass
class RewriteCheck:
    """A graph as Dynamo made it and as it was rewritten, the inputs of its first call, and whether autograd recorded
    that."""

    captured: torch.fx.GraphModule
    rewritten: torch.fx.GraphModule
    inputs: tuple[Any, ...] | None = None
    is_recorded: bool = False

    def watching(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled function, which keeps a copy of the inputs of its first call."""

        def call(*inputs: Any) -> Any:
            if self.inputs is None:
                self.inputs, self.is_recorded = copy_values(inputs), torch.is_grad_enabled()
            return compiled(*inputs)

        return call


@dataclass
class CapturedGraph:
    """One graph. In `aten`, each node's `meta["val"]` has int sizes and `meta["lines"]` the user's lines (from 1).

    `dynamo` is None for a backward graph, which AOTAutograd derives. `function` is the user's function that it is a
    part of, by the name in the source.
    """

    name: str
    phase: Phase
    function: str | None
    dynamo: torch.fx.GraphModule | None
    aten: torch.fx.GraphModule
    runner: GraphRunner
    #: The forward graph of a backward graph, and the other way.
    partner: str | None = None
    guards: list[Guard] = field(default_factory=list)
    breaks: list[GraphBreak] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    saved: list[SavedTensor] = field(default_factory=list)
    recomputed: list[str] = field(default_factory=list)
    #: What was replaced between `dynamo` and `aten`, and how to check it where something was.
    rewrites: list[Rewrite] = field(default_factory=list)
    rewrite_check: RewriteCheck | None = None
    #: torch's default one as the graph was made. Its operators ask for it whenever they are lowered or run.
    default_dtype: torch.dtype = field(default_factory=torch.get_default_dtype)

    @property
    def inputs(self) -> list[Any] | None:
        """Real inputs of its first call, copied and detached; None if it was never called."""
        return self.runner.first_inputs

    @property
    def seconds_for_values(self) -> float:
        """What a call operator by operator takes at least, where slow products are replaced; 0.0 if there was none."""
        return (self.runner.eager_seconds or 0.0) / FIRST_CALL

    @property
    def least_seconds(self) -> float:
        """The same of a call as torch makes it."""
        slow = self.runner.product_seconds if self.runner.has_slow_products else 0.0
        return self.seconds_for_values + (slow or 0.0)

    def lay_inputs_out(self) -> None:
        """Give the inputs of a backward graph the strides that its kernels read them by: those with which the forward
        graph, as it was lowered, gives them, or else those that were traced."""
        passed: Passed | None = self.aten.meta.get(BACKWARD)
        if passed is None or self.inputs is None:
            return
        # They were recorded while the forward graph ran operator by operator, and such a run may lay a result out
        # otherwise than traced: for a batch of one, torch foretells a channels-last `cat` that is contiguous.
        taken = self.aten.graph.find_nodes(op="placeholder")
        self.inputs[:] = [
            with_strides_of(node.meta.get("val"), given) for node, given in zip(taken, self.inputs, strict=True)
        ]
        for position, strides in passed.strides_taken.items():
            given = self.inputs[position]
            laid_out = torch.empty_strided(given.shape, strides, dtype=given.dtype, device=given.device)
            self.inputs[position] = laid_out.copy_(given)


@dataclass
class EntryCall:
    """One callable that the user compiled, and the first call of it.

    `compiled` and `eager` take the arguments of that call and run under the gradient, autocast and default-device
    state that it had; `copy_arguments` gives fresh ones, for a call that changes its arguments.
    """

    name: str
    compiled: Callable[..., Any]
    eager: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    #: Those made for any of its calls, or run by one.
    graphs: list[str] = field(default_factory=list)
    #: Whether any was made for it: a layer that is compiled like the one before runs that one's.
    has_compiled: bool = False
    #: Whether that first call returned: one that raised cannot be timed.
    has_returned: bool = False
    #: torch's default one as it was called, which what runs backward from its results finds too.
    default_dtype: torch.dtype = field(default_factory=torch.get_default_dtype)

    def copy_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return copy_call((self.args, self.kwargs))  # type: ignore[no-any-return]


def copy_call(arguments: Any) -> Any:
    """`copy_values` of the arguments of a call that is made again. Tensors of inference mode remain such, and no others
    become such, whichever mode is on: Dynamo guards on that."""
    return copy_values(arguments, lambda tensor: torch.inference_mode(tensor.is_inference()))


def copy_values(
    values: Any, mode_of: Callable[[torch.Tensor], AbstractContextManager[Any]] = lambda tensor: nullcontext()
) -> Any:
    """A copy of nested lists, tuples and dicts in which every tensor is a new leaf; anything else is shared. Each
    tensor is copied within `mode_of` it.

    A tensor that occurs twice is one tensor in the copy too, and tensors that share memory share it in the copy: that
    is what a function that writes to one of them goes by, and what Dynamo and AOTAutograd guard on.
    """
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    sharing: dict[tuple[int, torch.dtype], dict[int, torch.Tensor]] = {}
    for tensor in tensors:
        if _is_copied(tensor) and _has_strides(tensor):
            key = (tensor.untyped_storage().data_ptr(), tensor.dtype)
            sharing.setdefault(key, {})[id(tensor)] = tensor
    copies: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        with mode_of(tensor):
            copies[id(tensor)] = _copy_tensor(tensor)
    for group in sharing.values():
        if len(group) > 1:
            with mode_of(next(iter(group.values()))):
                copies |= _copies_in_one_storage(group)
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: copies[id(tensor)], values)


def _copies_in_one_storage(group: dict[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """Copies of tensors of one storage, by id, at the same distances from each other."""
    first = min(tensor.storage_offset() for tensor in group.values())
    extent = max(tensor.storage_offset() - first + extent_of(tensor) for tensor in group.values())
    with torch.no_grad():
        storage = _memory_of(next(iter(group.values())), extent, first).clone()
        views = {
            name: torch.as_strided(storage, tensor.shape, tensor.stride(), tensor.storage_offset() - first)
            for name, tensor in group.items()
        }
        return {
            name: _noted_as(tensor, views[name]).requires_grad_(tensor.requires_grad) for name, tensor in group.items()
        }


def _is_copied(tensor: torch.Tensor) -> bool:
    return not isinstance(tensor, torch.nn.Parameter)


def _copy_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return clone_with_strides(tensor).requires_grad_(tensor.requires_grad) if _is_copied(tensor) else tensor


@dataclass
class Capture:
    """Everything that came of running one snippet. An `error` does not lose the graphs before it."""

    device: torch.device
    graphs: list[CapturedGraph] = field(default_factory=list)
    entries: list[EntryCall] = field(default_factory=list)
    #: What runs the graphs that were made after the snippet had ended, are not in the report, and compute something.
    made_later: list[GraphRunner] = field(default_factory=list)
    #: The graphs that each of the calls ran which were timed: others than the first call's where what it changed, or a
    #: later call's sizes, led there. Backward graphs are among them only where a call runs backward itself.
    timed_graphs: set[str] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)
    output: str = ""
    error: Error | None = None
    breaks: list[GraphBreak] = field(default_factory=list)
    recompiles: int = 0
    compilations: list[Compilation] = field(default_factory=list)
    #: The snippet's globals, once it has run.
    names: dict[str, object] = field(default_factory=dict, repr=False)
    #: Those of functions of the snippet, beside its globals, that a function was made with.
    scopes: list[dict[str, object]] = field(default_factory=list, repr=False)

    def forget(self) -> None:
        """Let go of all that the snippet made. torch's guards keep its globals for as long as the process lives, so a
        process that captures many snippets would keep the tensors of all of them. What Dynamo put among them it takes
        away itself."""
        for name in [name for name in self.names if not name.startswith("__") or name.startswith("__fusionscope")]:
            del self.names[name]
        for scope in self.scopes:
            scope.clear()
        forget_main_module()
        self.graphs.clear()
        self.entries.clear()
        self.made_later.clear()

    @property
    def timed_entries(self) -> list[EntryCall]:
        """The entries whose call can be made again: those that returned."""
        return [entry for entry in self.entries if entry.has_returned]

    @property
    def graph_breaks(self) -> int:
        """How many distinct graph breaks there were."""
        return len(self.breaks)
