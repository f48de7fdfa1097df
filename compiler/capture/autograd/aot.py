"""AOTAutograd as both the recording backend and the `fusionscope` backend use it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves

from compiler.accelerators import is_on
from compiler.capture.autograd.draws import restore_values
from compiler.capture.autograd.expansions import with_exact_writes
from compiler.capture.autograd.naming import input_names, name_inputs, names_by_position
from compiler.capture.autograd.running_products import short_gradients_of_running_products
from compiler.capture.autograd.shared_memory import OverlappingWrite, refuse_merged_inputs, where_written_apart
from compiler.capture.autograd.signs import take_gradients_as_in_memory, with_signs_in_memory
from compiler.capture.autograd.training import CHEAP, VIEWS
from compiler.capture.autograd.written_back import note_written_back
from compiler.capture.captured import Implementation, Phase
from compiler.capture.shortcuts.thin_calls import without_guard_on_saved_tensors, without_marks, without_wrapper
from compiler.capture.shortcuts.traced_once import Unlike, may_be_traced_once, traced_once
from compiler.capture.torch_internals import (
    autograd_kernels,
    differentiated_whole,
    generators_as_tensors,
    is_autocast_on,
    is_made_of_tensors,
    keep_saved_tensors,
    refuses_shared_memory,
    runs_as_it_is,
    set_gradients,
    split_at_min_cut,
    unlogged_aot_autograd,
    unwatched,
    written_inputs,
)
from compiler.fx.fake_values import outside_fake_mode
from compiler.fx.lines import lines_of_text
from compiler.fx.notes import LINES
from compiler.passes.layout.passed import note_passed

if TYPE_CHECKING:
    from compiler.passes.rewrite.rewriting import Rewriting

#: Makes something that runs a graph. AOTAutograd calls it with one list if it has `_boxed_call`.
GraphCompiler = Callable[[torch.fx.GraphModule, Phase], Implementation]
#: Changes the joint graph of a training step in place, before it is split.
JointPass = Callable[[torch.fx.GraphModule], None]

_INTERPOLATIONS = [
    getattr(torch.ops.aten, name)
    for name in (
        *(f"upsample_nearest{rank}d" for rank in (1, 2, 3)), *(f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)),
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    )
]  # fmt: skip


def compile_through_aot(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    compile_graph: GraphCompiler,
    on_rewriting: Callable[[Rewriting], None] = lambda _: None,
    change_joint: JointPass = lambda _: None,
    is_thin: bool = False,
) -> Callable[..., Any]:
    """Rewrite, functionalise, decompose and split Dynamo's graph, and have `compile_graph` compile each part.

    `graph` stays as it is; `on_rewriting` gets what is compiled in its place before any part is. `change_joint` may
    change the graph of a training step before it is split. Where it `is_thin`, what a call passes before it gets to the
    graph is kept as short as Dynamo lets us; a report shows all of it.

    Calls in which an input is written to that shares memory with another one run `graph` as it is. Raises
    `OverlappingWrite` where that is so in the call under compilation.

    `compile_graph` is called once for "inference", or for "forward" and, when the first gradient is asked for, for
    "backward". Every graph that it gets has its nodes' lines in `meta["lines"]`.
    """
    # Imported here: lowering and rewriting read captured graphs, so capture must not need them to be imported.
    from compiler.lowering.decompositions import decompositions
    from compiler.lowering.losses import multilabel_margin_loss
    from compiler.passes.rewrite.regions import with_regions_written_out
    from compiler.passes.rewrite.rewriting import rewrite

    names: dict[int, str] = {}
    straight: list[Implementation] = []
    written: list[int] = []
    phases: set[Phase] = set()
    may_be_straight = not is_autocast_on() and not _gives_wrapped_tensors(graph)

    def compile_phase(part: torch.fx.GraphModule, _inputs: Sequence[Any], phase: Phase) -> Implementation:
        if phase != "backward":
            refuse_merged_inputs(part, example_inputs)
            written.extend(written_inputs())
            names.update(names_by_position(part, input_names(graph, part)))
        if phase == "forward":
            keep_saved_tensors()
        name_inputs(part, names)
        restore_values(part)
        attach_lines(part)
        if phase == "inference":
            note_written_back(part)
        gradients = take_gradients_as_in_memory(part) if phase == "backward" else []
        with outside_fake_mode():
            implementation = compile_graph(part, phase)
        if gradients:
            implementation = with_signs_in_memory(implementation, gradients)
        phases.add(phase)
        if phase == "inference" and _takes_straight_calls(part, example_inputs) and runs_as_it_is():
            straight.append(implementation)
        return unwatched(implementation) if _is_harmed_by_modes(part, implementation) else implementation

    aten, table = torch.ops.aten, decompositions()
    differentiated = {
        aten.multilabel_margin_loss_forward.default: multilabel_margin_loss,
        # ATen's gradient of it takes no open sizes.
        aten.affine_grid_generator.default: table[aten.affine_grid_generator.default],
    }
    backend = unlogged_aot_autograd(
        fw_compiler=partial(compile_phase, phase="forward"),
        bw_compiler=partial(compile_phase, phase="backward"),
        inference_compiler=partial(compile_phase, phase="inference"),
        decompositions=table,
        partition_fn=partial(_split, change_joint),
    )
    rewriting = rewrite(graph)
    on_rewriting(rewriting)
    with (
        generators_as_tensors(),
        _gradients_of_interpolation(example_inputs),
        short_gradients_of_running_products(),
        autograd_kernels(differentiated),
    ):
        traced = with_exact_writes(with_regions_written_out(rewriting.graph))
        try:
            compiled = _traced_once(backend, traced, example_inputs)
        except AssertionError as error:
            if refuses_shared_memory(error):
                raise OverlappingWrite from error
            raise
    if is_thin:
        without_marks()
        if phases == {"inference"} and is_on("without_hook_guard"):
            without_guard_on_saved_tensors()
    if (
        is_on("straight_calls")
        and may_be_straight
        and len(straight) == 1
        and getattr(straight[0], "_boxed_call", False)
    ):
        compiled = _called_straight(straight[0])
    return where_written_apart(compiled, graph.forward, written, example_inputs)


def _traced_once(
    backend: Callable[..., Callable[..., Any]], graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
) -> Callable[..., Any]:
    learns = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs)
    if is_on("traced_once") and not learns and may_be_traced_once(graph):
        with contextlib.suppress(Unlike), traced_once():
            return backend(graph, example_inputs)
    return backend(graph, example_inputs)


def _split(
    change_joint: JointPass, joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **settings: Any
) -> Any:
    from compiler.passes.order import WITH_GRADIENTS

    for change in (*WITH_GRADIENTS, change_joint):
        change(joint)
    forward, backward = split_at_min_cut(
        joint, inputs, views=VIEWS, cheap=CHEAP, num_fwd_outputs=num_fwd_outputs, **settings
    )
    note_passed(forward, backward, num_fwd_outputs)
    return forward, backward


def _takes_straight_calls(part: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether AOTAutograd's graph takes the very inputs that Dynamo's has: none unpacked, wrapped, added or dropped."""
    if any(isinstance(x, list | tuple | dict) or is_made_of_tensors(x) for x in example_inputs):
        return False
    return len(part.graph.find_nodes(op="placeholder")) == len(example_inputs)


def _is_harmed_by_modes(part: torch.fx.GraphModule, implementation: Implementation) -> bool:
    """Whether complex numbers are computed with."""
    values = (value for node in part.graph.nodes for value in tree_leaves(node.meta.get("val")))
    is_complex = any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)
    return is_complex and getattr(implementation, "_boxed_call", False)


def _gives_wrapped_tensors(graph: torch.fx.GraphModule) -> bool:
    return any(is_made_of_tensors(node.meta.get("example_value")) for node in graph.graph.nodes)


def _called_straight(implementation: Implementation) -> Callable[..., Any]:
    """What Dynamo calls instead of AOTAutograd's own function around an inference graph, where that would do no more.

    Kernels know no gradients, and library calls must not record any."""
    direct: Callable[..., Any] | None = getattr(implementation, "direct", None)
    if direct is not None and is_on("without_wrapper"):
        return without_wrapper(direct)
    is_grad_enabled = torch.is_grad_enabled

    def call(*inputs: Any) -> Any:
        if not is_grad_enabled():
            return implementation(list(inputs))
        set_gradients(False)
        try:
            return implementation(list(inputs))
        finally:
            set_gradients(True)

    return call


def _gradients_of_interpolation(example_inputs: Sequence[Any]) -> AbstractContextManager[None]:
    """Have them be one operator each."""
    sizes = (size for x in example_inputs for size in (x.shape if isinstance(x, torch.Tensor) else (x,)))
    return differentiated_whole(_INTERPOLATIONS, any(isinstance(size, torch.SymInt) for size in sizes))


def attach_lines(graph: torch.fx.GraphModule) -> None:
    """Give every node its lines; one that torch left without a stack has those of what it reads."""
    for node in graph.graph.nodes:
        lines = lines_of_text(node.meta.get("stack_trace"))
        if not lines and node.op == "call_function":
            lines = next((read.meta[LINES] for read in node.all_input_nodes if read.meta.get(LINES)), ())
        node.meta[LINES] = lines
