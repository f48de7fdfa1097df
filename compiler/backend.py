"""`torch.compile(f, backend="fusionscope")`: the compiler as a backend like any other.

The entry point `torch_dynamo_backends` of the package names `fusionscope`, so that torch finds it without an import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler.capture.autograd.aot import compile_through_aot
from compiler.capture.autograd.repeated_writes import write_to_repeated_memory
from compiler.capture.autograd.shared_memory import OverlappingWrite
from compiler.capture.captured import Implementation, Phase
from compiler.capture.shortcuts.while_captured import shorten_captures_for
from compiler.capture.torch_internals import is_forward_mode
from compiler.fx.fake_values import device_of
from compiler.options import Options


class BoxedGraph:
    """A compiled graph, called with one list of inputs, which it may empty to free them early."""

    def __init__(self, implementation: Implementation) -> None:
        # On the instance: AOTAutograd wraps what runs a backward graph in a function, which gets only these.
        self._boxed_call = True
        #: The same as a builtin function of the inputs by position, where there is one; with gradients off.
        self.direct: Callable[..., list[Any]] | None = getattr(implementation, "direct", None)
        self._implementation = getattr(implementation, "boxed", implementation)

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        return self._implementation(inputs)


def fusionscope(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **settings: Any) -> Callable[..., Any]:
    """Compile what Dynamo captured with Fusionscope's kernels.

    `settings` are what `torch.compile(options={...})` names: fields of `Options`. Sizes that Dynamo leaves open
    (`dynamic=True`, or a second call with another size) are arguments of the kernels.
    """
    if write_to_repeated_memory(graph) is not None or is_forward_mode():
        return graph.forward
    options = Options.named(settings.get("options") or settings)

    def compile_part(part: torch.fx.GraphModule, phase: Phase) -> Implementation:
        from compiler.compile import compile_graph

        return BoxedGraph(compile_graph(part, options, device_of(part), phase))

    def change_joint(joint: torch.fx.GraphModule) -> None:
        from compiler.passes.padding.decide import pad_joint

        pad_joint(joint, options)

    if any(isinstance(one, torch.Tensor) and one.is_cuda for one in example_inputs):
        from compiler.compile import have_helpers

        have_helpers(graph)  # now, as they take a while to begin
    try:
        return compile_through_aot(graph, example_inputs, compile_part, change_joint=change_joint, is_thin=True)
    except OverlappingWrite:
        return graph.forward


shorten_captures_for(fusionscope)
