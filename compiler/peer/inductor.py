"""What TorchInductor makes of a function, in our terms.

TorchInductor is asked through `torch.compile` as anyone would; while it compiles, two of its hooks are listened to:

- `set_kernel_post_grad_provenance_tracing`, called once for each launch in the generated wrapper, with the nodes that
  the launch computes: from it come origins, user lines, buffers and bytes;
- `GraphLowering.save_output_code`, called with the text of each generated module: from it come the kernels' sources.

Both are private to TorchInductor. Where a version of torch lacks the first, kernels are read from the text alone and
have no origins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest import mock

import torch
from pydantic import Field

from compiler.options import Mode
from compiler.peer.launches import Launch, describe_launch, generated_sources, library_calls
from compiler.report import Kernel, Peer
from compiler.wording import counted

#: Modules of TorchInductor that import the provenance hook by name: each holds its own reference.
_HOLDERS = ("debug", "codegen.cpp", "codegen.triton", "codegen.simd", "scheduler", "ir")
_HOOK = "set_kernel_post_grad_provenance_tracing"


@dataclass
class Module:
    """One generated module: the launches of its wrapper in order, and its text."""

    launches: list[Launch] = field(default_factory=list)
    text: str = ""


@dataclass
class Recording:
    """What was heard while TorchInductor compiled."""

    modules: list[Module] = field(default_factory=list)
    underway: list[Launch] = field(default_factory=list)
    seconds: float = 0.0

    def note_launch(self, node_schedule: Any, name: str, is_library_call: bool) -> None:
        self.underway.append(describe_launch(node_schedule, name, is_library_call))

    def note_module(self, text: str) -> None:
        self.modules.append(Module(self.underway, text))
        self.underway = []


class ExploredPeer(Peer):
    """A peer with the seconds of its first call, compiling included; they are no part of the report's peer."""

    compile_s: float = Field(default=0.0, exclude=True)


def explore_peer(
    eager: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: torch.device,
    mode: Mode = "default",
    with_backward: bool = False,
) -> tuple[Callable[..., Any], ExploredPeer]:
    """Compile `eager` with TorchInductor by calling it once with these arguments, which that call may change.

    `with_backward` has it generate a backward graph at once, which it otherwise does at the first `backward()`.

    Gives the compiled function and the kernels that it launches, library calls included, in order. An error of
    TorchInductor is the caller's to handle.
    """
    compiled = compile_with_inductor(eager, mode)
    with listening(with_backward) as recording:
        started = perf_counter()
        compiled(*args, **kwargs)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        recording.seconds = perf_counter() - started
    kernels = kernels_of(recording.modules)
    calls = sum(kernel.kind == "extern" for kernel in kernels)
    launches = f"{counted(len(kernels) - calls, 'generated kernel')} and {counted(calls, 'library call')}"
    message = (
        f"TorchInductor of torch {torch.__version__}, mode {mode}: {launches} in "
        f"{counted(len(recording.modules), 'graph')}; the first call took {recording.seconds:.2f} s."
    )
    return compiled, ExploredPeer(kernels=kernels, message=message, compile_s=recording.seconds)


def compile_with_inductor(function: Callable[..., Any], mode: Mode = "default") -> Callable[..., Any]:
    """`torch.compile(function, mode=mode)`, but through a backend of its own, so that it shares no compiled code with
    what the user's program compiled with TorchInductor itself."""
    from torch._inductor import list_mode_options

    patches = dict(list_mode_options(mode) or {})

    def inductor_as_peer(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(graph, inputs, config_patches=patches)

    return torch.compile(function, backend=inductor_as_peer)


@contextmanager
def listening(with_backward: bool) -> Iterator[Recording]:
    """Record what TorchInductor generates. Its graph caches are passed over meanwhile, since a hit generates nothing;
    `with_backward`, a backward graph is generated together with its forward graph."""
    import torch._functorch.config as functorch_config
    import torch._inductor.config as inductor_config
    from torch._inductor.graph import GraphLowering

    recording = Recording()
    with ExitStack() as stack:
        # Precompiled headers take longer to make than one snippet gains by them.
        stack.enter_context(inductor_config.patch(fx_graph_cache=False, cpp_cache_precompile_headers=False))
        for name, value in (("enable_autograd_cache", False), ("force_non_lazy_backward_lowering", with_backward)):
            if hasattr(functorch_config, name):
                stack.enter_context(functorch_config.patch({name: value}))
        for holder in _holders_of_hook():
            stack.enter_context(mock.patch.object(holder, _HOOK, _relay(recording, getattr(holder, _HOOK))))
        stack.enter_context(mock.patch.object(GraphLowering, "save_output_code", staticmethod(recording.note_module)))
        yield recording


def kernels_of(modules: Sequence[Module]) -> list[Kernel]:
    """One kernel for each launch. A kernel that is launched again, or that has the name of one in another module, gets
    a number: `triton_poi_fused_add_0`, `triton_poi_fused_add_0_2`."""
    kernels: list[Kernel] = []
    seen: dict[str, int] = {}
    for module in modules:
        sources = generated_sources(module.text)
        calls = library_calls(module.text)
        for launch in module.launches or [Launch(name) for name in sources]:
            seen[launch.name] = seen.get(launch.name, 0) + 1
            times = seen[launch.name]
            kernels.append(_kernel(launch, launch.name if times == 1 else f"{launch.name}_{times}", sources, calls))
    return kernels


def _kernel(launch: Launch, name: str, sources: Mapping[str, str], calls: dict[str, list[str]]) -> Kernel:
    source = sources.get(launch.name)
    if source is None:
        lines = calls.get(launch.name, [])
        source = lines.pop(0) if len(lines) > 1 else next(iter(lines), launch.name)
        kind = "extern"
    else:
        kind = "cpp" if "#include" in source else "triton"
    return Kernel(
        name=name,
        kind=kind,  # type: ignore[arg-type]  # one of the three literals above
        nodes=launch.buffers,
        origins=launch.origins,
        source=source,
        language="cpp" if kind == "cpp" else "python",
        user_lines=launch.user_lines,
        reads=launch.reads,
        writes=launch.writes,
        bytes=launch.bytes,
    )


def _relay(recording: Recording, hook: Callable[..., Any]) -> Callable[..., Any]:
    def heard(node_schedule: Any, kernel_name: str, is_extern: bool = False, *more: Any, **named: Any) -> Any:
        if kernel_name:
            recording.note_launch(node_schedule, kernel_name, is_extern)
        return hook(node_schedule, kernel_name, is_extern, *more, **named)

    return heard


def _holders_of_hook() -> list[Any]:
    import importlib

    modules = [importlib.import_module(f"torch._inductor.{name}") for name in _HOLDERS]
    return [module for module in modules if hasattr(module, _HOOK)]
