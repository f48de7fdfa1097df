"""Every use of Dynamo and AOTAutograd that is not documented, in one place: what each is, and why it is needed. Apart
from it stand what torch tells of a compilation (`torch_trace.py`) and what makes calls short (`thin_calls.py`).

`tests/capture/torch_names.py` is the table of the names that this takes from torch, and of those that other folders
take, with the releases of torch in which each was found; a release that lacks one fails there with a sentence.
`torch._dynamo.optimize`, `torch._dynamo.reset` and `torch._dynamo.backends.common.aot_autograd`, which are documented
despite the underscore, are used where they are needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
import traceback
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch._dynamo import disable
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.external_utils import wrap_inline
from torch._dynamo.guards import GuardBuilder
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.source import GlobalStateSource
from torch._dynamo.symbolic_convert import TensorifyState
from torch._dynamo.utils import counters
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch._functorch.aot_autograd import aot_module_simplified
from torch.utils.checkpoint import CheckpointPolicy

from compiler.accelerators import is_on

_USUAL_BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "fusionscope")


def recompile_limit() -> int:
    """How often Dynamo compiles one function before it leaves its further calls uncompiled."""
    return int(torch._dynamo.config.recompile_limit)


def is_dynamo_control_flow(error: Exception) -> bool:
    """Whether an exception in a backend is Dynamo's own signal, such as to trace once more, and must reach it."""
    return type(error).__module__ == "torch._dynamo.exc"


def breaks_the_graph(error: Exception) -> bool:
    """Whether Dynamo breaks the graph for an exception in a backend: an operator cannot run on fake tensors, as its
    result depends on values."""
    return type(error).__name__ in _BREAKS_THE_GRAPH


_BREAKS_THE_GRAPH = frozenset(
    ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedOperatorException")
)


def refuses_shared_memory(error: Exception) -> bool:
    """Whether AOTAutograd has no way to write to one of several inputs that share memory, such as `x` and
    `x.detach()`."""
    return isinstance(error, AssertionError) and "non-differentiable view input mutations" in str(error)


def is_error_of_compiler(error: Exception) -> bool:
    """Whether an exception is one of those that Dynamo and AOTAutograd define, and not one of the user's program."""
    return type(error).__module__.startswith(("torch._dynamo", "torch._functorch", "torch.fx", "torch._subclasses"))


def reset_dynamo() -> None:
    """Forget compiled code of earlier captures, which library modules (nn.Sequential) would otherwise keep.

    `torch.compiler.reset` does the same and also resets Inductor, which it imports for that. Where Dynamo has looked at
    nothing since it was reset, as in a spare of the service, there is nothing to forget.
    """
    if torch._dynamo.convert_frame.FRAME_COUNTER:
        torch._dynamo.reset()
        forget_main_module()


def forget_main_module() -> None:
    """Have Dynamo look `__main__` up anew, which is another module for each snippet. It keeps modules by their names,
    also among the globals of torch's own files where one of these calls a function of the snippet, such as a hook. All
    modules are gone through, which takes a millisecond."""
    torch._dynamo.symbolic_convert._import_module.cache_clear()
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            vars(module).pop("__import___main__", None)


def is_backend(name: str) -> bool:
    """Whether `torch.compile` knows a backend of this name. To list them all imports each."""
    return name in _USUAL_BACKENDS or name in torch._dynamo.list_backends(exclude_tags=())


def refused_option(options: Mapping[str, Any]) -> str | None:
    """What `torch.compile` says of the first of these options that it does not take."""
    try:
        torch._TorchCompileInductorWrapper(None, dict(options), None)
    except RuntimeError as refusal:
        told = str(refusal).partition(", known options")[0]
        return told[:1].lower() + told[1:]
    return None


@functools.cache
def skip_files_of(package: str) -> None:
    """Keep Dynamo from compiling the capture machinery when it lies between two compiled functions of the user."""
    from torch._dynamo import trace_rules

    trace_rules.add(package)


def mark_as_wrapper(wrapper: Callable[..., Any]) -> None:
    """Tell Dynamo that `wrapper`, made by functools.wraps of a compiled function, is itself that compiled function.

    Dynamo checks the id to tell a real compiled function from one whose attributes were merely copied.
    """
    if hasattr(wrapper, "_torchdynamo_wrapper_id"):
        wrapper._torchdynamo_wrapper_id = id(wrapper)


def is_compiled_function(function: Any) -> bool:
    """Whether it is what torch.compile made of a function, or a wrapper around that."""
    return hasattr(function, "_torchdynamo_orig_callable")


def traceable(function: Callable[..., Any]) -> Callable[..., Any]:
    """What Dynamo traces as `function`. Of a module without a `forward` outside of torch it compiles nothing where
    `module.compile()` gives it the module's call: it passes over torch's files, and leaves this call as it is."""
    module = getattr(function, "__self__", None)
    if not isinstance(module, torch.nn.Module) or getattr(function, "__name__", "") != "_call_impl":
        return function
    home = str(type(module).forward.__module__)  # None where torch.fx has written it
    return wrap_inline(function) if home.startswith("torch.") else function


def replace_forward(module: torch.nn.Module, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put `wrap` around what an OptimizedModule calls; setting `forward` on it does not touch the user's module."""
    module.forward = wrap(module.forward)


def user_frames(error: BaseException) -> Sequence[traceback.FrameSummary]:
    """Frames of the user that Dynamo was tracing when it raised: they are in no traceback, since they never ran."""
    return getattr(error, "real_stack", None) or ()


def lazy_backward_off() -> contextlib.AbstractContextManager[Any]:
    """Have AOTAutograd compile a backward graph with its forward one, also where nothing calls it."""
    return torch._functorch.config.patch(force_non_lazy_backward_lowering=True)  # type: ignore[no-any-return]


def unlogged_aot_autograd(**settings: Any) -> Callable[..., Callable[..., Any]]:
    """`aot_autograd`, which keeps a log for TorchInductor where TORCH_COMPILE_DEBUG asks for that. To ask, it imports
    that compiler whole, log or not: a tenth of a second of a first call. Without the log this does the same."""
    logged = aot_autograd(**settings)

    # Dynamo would trace this function too, and tell a graph break of it, where a compiled function calls `backward()`.
    @disable(reason="do not trace backward compiler function")
    def compile_backward(*args: Any, **more: Any) -> Any:
        return disable(settings["bw_compiler"](*args, **more), reason="do not trace generated backwards pass")

    def compile_graph(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        is_logged = os.environ.get("TORCH_COMPILE_DEBUG") == "1" or not is_on("inductor_left_out")
        if is_logged or any(isinstance(x, _NESTED) for x in example_inputs):
            return logged(graph, example_inputs)
        counted = counters["aot_autograd"]
        counted["total"] += 1
        try:
            compiled = aot_module_simplified(graph, example_inputs, **settings | {"bw_compiler": compile_backward})
        except Exception as error:
            counted["not_ok"] += not is_dynamo_control_flow(error)
            raise
        counted["ok"] += 1
        return disable(compiled, reason="do not trace AOT-compiled graph")  # type: ignore[no-any-return]

    return compile_graph


#: Inputs that it flattens first.
_NESTED = (list, tuple, dict)


def split_at_min_cut(
    joint: torch.fx.GraphModule, inputs: Any, *, views: Iterable[Any] = (), cheap: Iterable[Any] = (), **settings: Any
) -> Any:
    """The forward and the backward graph of a joint one, cut where the fewest bytes are saved: what recomputing saves
    memory traffic. Documented is only that AOTAutograd takes a function that splits, none that does it well.

    `views` and `cheap` are operators that it may compute again beside those that it knows: it has a list of what
    TorchInductor fuses after its own decompositions, and takes whatever it does not know for a call of a library, so
    that all that is computed of it is saved."""
    from torch._functorch import partitioners

    known = partitioners.get_default_op_list()
    wider = dataclasses.replace(
        known,
        view_ops=known.view_ops | set(views),
        fusible_ops=known.fusible_ops | {*views, *cheap},
        recomputable_ops=known.recomputable_ops | {*views, *cheap},
    )
    _save_reads_of_changed_inputs(joint, wider.view_ops)
    with mock.patch.object(partitioners, "get_default_op_list", lambda: wider):
        return partitioners.min_cut_rematerialization_partition(joint, inputs, **settings)


def _save_reads_of_changed_inputs(joint: torch.fx.GraphModule, views: Iterable[Any]) -> None:
    """Have what a graph reads of an input that is written to after its forward pass saved, and not computed again from
    what was written: torch's split takes inputs for what costs nothing to keep."""
    told = joint.graph.output_node().meta.get("desc", ())
    changed = [result.mutated_input for result in told if isinstance(result, InputMutationAOTOutput)]
    read = [node for node in joint.graph.find_nodes(op="placeholder") if node.meta.get("desc") in changed]
    for node in read:
        for user in node.users:
            if getattr(user.target, "overloadpacket", None) in views or user.target in views:
                read.append(user)
            elif user.op == "call_function" and user.meta.get("partitioner_tag") != "is_backward":
                user.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def generators_as_tensors() -> contextlib.AbstractContextManager[Any]:
    """Have the state of a random generator pass between graphs as a tensor on GPUs too, and not as a generator object.

    It does on the CPU. Our graphs take and give tensors and numbers.
    """
    return torch._functorch.config.patch(graphsafe_rng_functionalization=False)  # type: ignore[no-any-return]


def runs_as_it_is() -> bool:
    """Whether AOTAutograd, which has an inference graph compiled now, will only call it at each call: no input is
    written back, no output is a view that it makes anew, and nothing else follows. Unknown counts as no."""
    context = torch._guards.TracingContext.try_get()
    facts = context.fw_metadata if context is not None and not context.fakify_first_call else None
    undone = (
        "num_mutated_inp_runtime_indices num_mutated_graph_handled_indices num_outputs_aliased num_intermediate_bases "
        "tokens dynamic_outputs is_rng_op_functionalized num_graphsafe_rng_states"
    ).split()
    if facts is None or any(getattr(facts, name, True) for name in undone):
        return False
    return getattr(facts, "grad_enabled_mutation", True) is None


def changed_inputs() -> tuple[dict[int, int], frozenset[int]]:
    """Of the inference graph that AOTAutograd has compiled now: from the position of an output to that of the input
    into which it is copied after each call, and the positions of outputs of which only shape and strides are looked
    at, since the caller gets the input itself or a view of it. The former come first, in the order of the inputs."""
    context = torch._guards.TracingContext.try_get()
    facts = context.fw_metadata if context is not None and not context.fakify_first_call else None
    if facts is None or getattr(facts, "tokens", True):
        return {}, frozenset()
    positions = list(facts.mutated_inp_runtime_indices)
    changes = [facts.input_info[position] for position in positions]
    changed = {
        output: position
        for output, (position, change) in enumerate(zip(positions, changes, strict=True))
        if change.mutates_data and not change.mutates_metadata and not change.mutates_storage_metadata
    }
    kinds = [output.output_type.name for output in facts.output_info]
    of_inputs = (n for n, kind in enumerate(kinds, len(positions)) if kind in ("is_input", "alias_of_input"))
    return changed, frozenset(of_inputs)


def unwatched(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """`run`, a function of a list of inputs, outside of the mode in which AOTAutograd has the first call of a graph.

    There it looks whether operators of the user's give what they were given. For the time of a call that a mode sees,
    torch leaves lazily conjugated numbers as they are, and `linalg.pinv` and `linalg.lstsq`, which make such numbers
    inside, give wrong results."""
    watcher = getattr(torch._functorch._aot_autograd.runtime_wrappers, "_AnalyzeCustomOpInputOutputMode", ())
    modes = torch.utils._python_dispatch

    def call(inputs: list[Any]) -> Any:
        if not isinstance(modes._get_current_dispatch_mode(), watcher):
            return run(inputs)
        with modes._pop_mode_temporarily():
            return run(inputs)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def written_inputs() -> list[int]:
    """The positions of the inputs whose elements the graph that AOTAutograd has compiled now changes."""
    context = torch._guards.TracingContext.try_get()
    facts = context.fw_metadata if context is not None else None
    return [] if facts is None else [position for position, given in enumerate(facts.input_info) if given.mutates_data]


def keep_saved_tensors() -> None:
    """Tell AOTAutograd of the training graph that it compiles now that its backward graph writes over no saved tensor.

    It takes each that only autograd holds for one that is written over, as TorchInductor may, and raises where a
    backward pass with `retain_graph=True` comes to a backward graph that was compiled in one without."""
    context = torch._guards.TracingContext.try_get()
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.bw_donated_idxs = []


def is_autocast_on() -> bool:
    """Whether autocast is on for any device; while it compiles, AOTAutograd has it turned off."""
    return bool(torch._C._is_any_autocast_enabled())


#: `torch.set_grad_enabled` without the object that undoes it, which costs more than many kernels.
set_gradients: Callable[[bool], None] = torch._C._set_grad_enabled


def is_made_of_tensors(value: Any) -> bool:
    """Whether a value is of a class that wraps other tensors, which AOTAutograd unwraps and wraps again."""
    return bool(torch.utils._python_dispatch.is_traceable_wrapper_subclass(value))


@contextlib.contextmanager
def autograd_kernels(kernels: Mapping[torch._ops.OpOverload[..., Any], Callable[..., Any] | None]) -> Iterator[None]:
    """What autograd calls for operators within, in the place of what PyTorch has it call; None for ATen's own code."""
    key = torch._C.DispatchKey.Autograd
    with contextlib.ExitStack() as stack:
        for overload, kernel in kernels.items():
            stack.callback(overload._dispatch_cache.clear)
            stack.enter_context(mock.patch.dict(overload.py_kernels))
            overload.py_kernels.pop(key, None)
            if kernel is not None:
                overload.py_kernels[key] = kernel
            overload._dispatch_cache.clear()
        yield


@contextlib.contextmanager
def differentiated_whole(
    operators: Sequence[torch._ops.OpOverloadPacket[..., Any]], are_sizes_open: bool
) -> Iterator[None]:
    """Have autograd take the gradients of `operators` as ATen does, with the operator that ATen has for it.

    For some, PyTorch registers its decomposition in front of autograd, which then takes the gradient of each step of
    that: one scatter for each element that an interpolation reads. Without this, gradients of interpolation are those.
    ATen's own code does not take open sizes, so that their results' sizes are told here.
    """
    early = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    removed: list[tuple[Any, dict[Any, Any]]] = []
    for packet in operators:
        for name in packet.overloads():  # type: ignore[no-untyped-call]
            overload = getattr(packet, name)
            kernels = {key: overload.py_kernels.pop(key) for key in early if key in overload.py_kernels}
            removed.append((overload, kernels))
            if are_sizes_open and name == "vec":
                overload.py_kernels[early[1]] = functools.partial(_of_sizes, packet.default)
            overload._dispatch_cache.clear()
    sizes = {packet.default: _interpolated for packet in operators}
    sizes |= {getattr(torch.ops.aten, f"{p.__name__}_backward").default: _gradient_of_image for p in operators}
    try:
        with mock.patch.dict(torch._decomp.decomposition_table, sizes if are_sizes_open else {}):
            yield
    finally:
        for overload, kernels in removed:
            overload.py_kernels.update(kernels)
            overload._dispatch_cache.clear()


def _of_sizes(
    operator: torch._ops.OpOverload[..., Any], x: torch.Tensor, size: Sequence[int] | None, *arguments: Any
) -> torch.Tensor:
    """An interpolation whose size is given, or how many times that of the image it is, as ATen has it."""
    *corners, scales = arguments
    size = torch._decomp.decompositions.upsample_compute_output_size(x.shape, size, scales)
    made: torch.Tensor = operator(x, size, *corners, *(scales or ()))
    return made


def _interpolated(x: torch.Tensor, size: Sequence[int], *_: Any, **__: Any) -> torch.Tensor:
    of = torch._prims_common.suggest_memory_format(x) if x.dim() > 3 else torch.contiguous_format
    return x.new_empty((*x.shape[:2], *size)).contiguous(memory_format=of)


def _gradient_of_image(gradient: torch.Tensor, _: Any, size: Sequence[int], *__: Any, **___: Any) -> torch.Tensor:
    of = torch._prims_common.suggest_memory_format(gradient) if gradient.dim() > 3 else torch.contiguous_format
    return gradient.new_empty(size).contiguous(memory_format=of)


def is_transformed() -> bool:
    """Whether what runs now is within `torch.vmap`, `torch.func.grad` or their like, whose tensors have no memory to
    look at and mean nothing once that has ended."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_forward_mode() -> bool:
    """Whether a level of forward-mode differentiation is open, whose tensors carry tangents that no graph sees; a guard
    makes what is compiled now count for that answer alone."""
    context = torch._guards.TracingContext.try_get()
    if context is not None:
        guard = torch._guards.Guard(GlobalStateSource(), GuardBuilder.DUAL_LEVEL)  # type: ignore[arg-type]
        context.guards_context.dynamo_guards.add(guard)
    return torch.autograd.forward_ad._current_level >= 0


@contextlib.contextmanager
def noting_differentiation(
    note: Callable[[bool], None], note_hook: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Within, `note` is called whenever autograd begins a backward pass, with whether its gradients have some too, and
    `note_hook` whenever a tensor is asked to do something with its gradient, which one without a gradient refuses."""
    begin = torch.autograd._engine_run_backward

    def noted(*args: Any, **kwargs: Any) -> Any:
        note(bool(args[3:4] and args[3]))
        return begin(*args, **kwargs)

    def noting_hook(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def asked(*args: Any, **kwargs: Any) -> Any:
            note_hook()
            return method(*args, **kwargs)

        return asked

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.autograd, "_engine_run_backward", noted))
        for name in ("register_hook", "retain_grad"):
            stack.enter_context(mock.patch.object(torch.Tensor, name, noting_hook(getattr(torch.Tensor, name))))
        yield


@contextlib.contextmanager
def without_hooks(leaves: Collection[torch.Tensor]) -> Iterator[None]:
    """Within, a gradient of one of `leaves` goes through no hook of it: one that computes would do so in another dtype
    than the leaf's where all is computed in float64, which autograd refuses."""
    hooks = [leaf._backward_hooks for leaf in leaves]
    try:
        for leaf in leaves:
            leaf._backward_hooks = None
        yield
    finally:
        for leaf, its_hooks in zip(leaves, hooks, strict=True):
            leaf._backward_hooks = its_hooks


@contextlib.contextmanager
def transforms_closed() -> Iterator[None]:
    """Where this raises, levels of torch.func's transforms that a graph opened within are closed: nodes of a graph open
    and close them one by one. Torch closes them all with one call, which fails in 2.11 if one is of forward mode."""
    functorch = torch._C._functorch
    kinds = functorch.TransformType
    closes = {
        kinds.Vmap: functorch._vmap_decrement_nesting,
        kinds.Grad: functorch._grad_decrement_nesting,
        kinds.Jvp: functorch._jvp_decrement_nesting,
        kinds.Functionalize: functorch._func_decrement_nesting,
    }
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    except BaseException:
        while functorch.get_dynamic_layer_stack_depth() > depth:
            closes[functorch.peek_interpreter_stack().key()]()
        with contextlib.suppress(RuntimeError):  # none of forward mode is open
            torch._C._exit_dual_level(level=0)
        raise


def guards_see_changed_tensors() -> contextlib.AbstractContextManager[Any]:
    """Have guards that are made within look at the tensors of modules and dictionaries at each call.

    Guards of torch 2.11 look at them only when an entry of the dictionary is another object than before. They miss
    `weight.data = other` and `module.half()`, which give the same object other strides or another dtype, and kernels
    would read memory by the old ones. Later releases look at each call
    (https://github.com/pytorch/pytorch/pull/177525)."""
    if torch.__version__ >= (2, 12):  # type: ignore[operator]
        return contextlib.nullcontext()
    shortcuts = ("use_recursive_dict_tags_for_guards", "skip_tensor_guards_with_matching_dict_tags")
    return torch._dynamo.config.patch(dict.fromkeys(shortcuts, False))  # type: ignore[no-any-return]


def writes_to_numbers_kept() -> contextlib.AbstractContextManager[Any]:
    """Have Dynamo keep calls that write to a float64 of no dimensions, such as `count.add_(1)`.

    An open number of Python is such a tensor, of which `item()` is asked. Where AOTAutograd has no use for an open one,
    Dynamo traces anew, and removes inputs that only `item()` reads. It looks for them among all nodes. A call in place
    gives the fake value of the input, so torch 2.13 removes one that nothing reads."""
    by_torch = OutputGraph.remove_tensorify_specialized_graphargs
    is_fixed = TensorifyState.should_specialize

    def remove_inputs(output: OutputGraph) -> None:
        inputs = output.graph.find_nodes(op="placeholder")
        numbers = {_number_in(one) for one in inputs if all(user.target == "item" for user in one.users)}
        with mock.patch.object(TensorifyState, "should_specialize", lambda name: name in numbers and is_fixed(name)):
            by_torch(output)

    return mock.patch.object(OutputGraph, "remove_tensorify_specialized_graphargs", remove_inputs)


def _number_in(tensor: torch.fx.Node) -> str:
    """The symbol of the number that a tensor holds, where it has one."""
    number = getattr(tensor.meta.get("example_value"), "item_memo", None)
    return str(number.node._expr) if isinstance(number, torch.SymFloat) else ""


@dataclass(frozen=True)
class GuardFacts:
    """What Dynamo's own guard object says: its kind, the expression of its subject, its code, where it arose.

    `value` is the guarded object in the call that was compiled, or `NO_VALUE`. It must not be kept: it may be large.
    """

    kind: str
    name: str
    code: tuple[str, ...]
    frames: tuple[traceback.FrameSummary, ...]
    value: Any


NO_VALUE = object()


def guard_facts(entry: Any) -> GuardFacts:
    """Read one entry of those handed to `guard_filter_fn`, an option of torch.compile."""
    guard = entry.orig_guard
    return GuardFacts(
        kind=entry.guard_type,
        # `entry.name` leaves out that a name is a local or a global one: two different ones may be spelt alike.
        name=guard.name,
        code=tuple(dict.fromkeys(guard.code_list or ())),
        frames=tuple(guard.user_stack or ()),
        value=entry.value if entry.has_value else NO_VALUE,
    )


def forget_guarded_objects(entries: Iterable[Any]) -> None:
    """Have guards be built anew of those handed to `guard_filter_fn`: each has an object of the build that lists them,
    and torch asks whether that is the object of the next build. Of a NumPy array there is a new tensor each time, which
    is asked for all its elements."""
    for entry in entries:
        entry.orig_guard.obj_weakref = None


def trace_default_device() -> None:
    """Have Dynamo trace what a default device does to each function that makes a tensor. torch 2.11 does so for four of
    them, and `torch.arange` makes a tensor on the CPU there; 2.13 does it by itself."""
    from torch._dynamo.variables.torch import get_overridable_functions

    get_overridable_functions().update(torch.utils._device._device_constructors())


def default_device() -> torch.device | None:
    """The device set by torch.set_default_device, or None. `torch.get_default_device` cannot tell "cpu" from unset."""
    return getattr(torch.utils._device, "CURRENT_DEVICE", None)


def device_in_force() -> torch.device | None:
    """The device set so, or by `with torch.device(...)`, or None."""
    modes = torch.overrides._get_current_function_mode_stack()
    return next((mode.device for mode in modes if isinstance(mode, torch.utils._device.DeviceContext)), None)
