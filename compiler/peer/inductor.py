"""What TorchInductor makes of a function, in its own names.

TorchInductor is asked through `torch.compile` as anyone would; while it compiles, three of its hooks are listened to:

- `set_kernel_post_grad_provenance_tracing`, called once for each launch in the generated wrapper, with the nodes that
  the launch computes: from it come origins, buffers and bytes;
- `GraphLowering.save_output_code`, called with the text of each generated module: from it come sources and wrapper;
- `WhyNoFuse`, called with the words that it logs for a pair of nodes that it does not fuse.

All are private to TorchInductor. Where a version of torch lacks the first, kernels are read from the text alone and
have no origins; where it lacks the last, there are no words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast
from unittest import mock

import torch

from compiler import compile_phases
from compiler.capture.describe import describe_fx
from compiler.capture.torch_state import compiled_in_state
from compiler.devices import usable_cores
from compiler.options import Mode
from compiler.peer.launches import Launch, describe_launch
from compiler.report import CompilePhaseName, FxNode
from compiler.wording import counted

#: Modules of TorchInductor that import the provenance hook by name: each holds its own reference.
_HOLDERS = ("debug", "codegen.cpp", "codegen.triton", "codegen.simd", "scheduler", "ir")
_HOOK = "set_kernel_post_grad_provenance_tracing"
#: Words are kept of so many pairs of a graph: the scheduler looks at pairs by their square.
MOST_REFUSALS = 20_000
#: What it says of pairs that nobody would fuse.
_EMPTY_WORDS = "no shared data"
#: C++ compilers that run at once: each takes some 300 MB.
MOST_COMPILERS = 8


@dataclass
class Module:
    """One generated module: the launches of its wrapper in order, its text, the nodes of its graph, and the graph as
    Dynamo captured it, as code."""

    launches: list[Launch] = field(default_factory=list)
    text: str = ""
    nodes: list[FxNode] = field(default_factory=list)
    captured_code: str = ""
    is_backward: bool = False
    refusals: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def counted(self) -> tuple[int, int]:
        """Generated kernels and library calls."""
        calls = sum(launch.is_library_call for launch in self.launches)
        return len(self.launches) - calls, calls


@dataclass
class Recording:
    """What was heard while TorchInductor compiled."""

    modules: list[Module] = field(default_factory=list)
    underway: Module = field(default_factory=Module)
    seconds: float = 0.0
    #: Of them, waiting for compilers that were started.
    waited: float = 0.0
    #: Called when all kernels of a graph of Dynamo are generated, before they are built.
    on_generated: Callable[[], None] = lambda: None
    #: Builds what was generated, and not waited for yet.
    unbuilt: list[Callable[[], object]] = field(default_factory=list)

    def build(self) -> None:
        """Wait for the compilers that were started."""
        started = perf_counter()
        while self.unbuilt:
            self.unbuilt.pop(0)()
        self.waited += perf_counter() - started

    def note_refusal(self, a: str, b: str, words: str) -> None:
        told = self.underway.refusals
        if words != _EMPTY_WORDS and ((a, b) in told or len(told) < MOST_REFUSALS):
            told[a, b] = words

    def note_module(self, text: str) -> None:
        self.underway.text = text
        with suppress(Exception):  # private structures of another version of torch
            from torch._inductor.virtualized import V

            self.underway.nodes = describe_fx(cast(torch.fx.GraphModule, V.graph.module))
            self.underway.is_backward = bool(V.graph.is_backward)
        self.modules.append(self.underway)
        self.underway = Module(captured_code=self.underway.captured_code)


@dataclass
class ExploredPeer:
    """What TorchInductor made of one callable, the seconds of its first call, and those of each phase of compiling."""

    modules: list[Module] = field(default_factory=list)
    message: str = ""
    compile_s: float = 0.0
    phases: dict[CompilePhaseName, float] = field(default_factory=dict)


def explore_peer(
    eager: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: torch.device,
    mode: Mode = "default",
    with_backward: bool = False,
    recording: Recording | None = None,
) -> tuple[Callable[..., Any], ExploredPeer]:
    """Compile `eager` with TorchInductor by calling it once with these arguments, which that call may change.

    `with_backward` has it generate a backward graph at once, which it otherwise does at the first `backward()`.

    Gives the compiled function and what was heard. An error of TorchInductor is the caller's to handle; what was heard
    until then is in `recording`.
    """
    recording = recording or Recording()
    compiled = compiled_in_state(eager, lambda function: compile_with_inductor(function, mode, recording))
    with listening(recording, with_backward, device):
        before, started = compile_phases.counted(), perf_counter()
        compiled(*args, **kwargs)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        recording.seconds = perf_counter() - started
        phases = compile_phases.of_inductor(compile_phases.since(before), recording.waited)
    # A later call may compile anew, which is no part of this.
    recording.on_generated = lambda: None
    return compiled, ExploredPeer(recording.modules, _message(recording, mode), recording.seconds, phases)


def _message(recording: Recording, mode: Mode) -> str:
    generated = sum(module.counted[0] for module in recording.modules)
    calls = sum(module.counted[1] for module in recording.modules)
    return (
        f"TorchInductor of torch {torch.__version__}, mode {mode}: {counted(generated, 'generated kernel')} and "
        f"{counted(calls, 'library call')} in {counted(len(recording.modules), 'graph')}; the first call took "
        f"{recording.seconds:.2f} s."
    )


def compile_with_inductor(
    function: Callable[..., Any], mode: Mode = "default", recording: Recording | None = None
) -> Callable[..., Any]:
    """`torch.compile(function, mode=mode)`, but through a backend of its own, so that it shares no compiled code with
    what the user's program compiled with TorchInductor itself."""
    from torch._inductor import list_mode_options

    patches = dict(list_mode_options(mode) or {})

    def inductor_as_peer(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        from torch._inductor.compile_fx import compile_fx

        if recording is None:
            return compile_fx(graph, inputs, config_patches=patches)
        recording.underway = Module(captured_code=graph.code)
        function = compile_fx(graph, inputs, config_patches=patches)
        recording.on_generated()
        recording.build()
        return function

    return torch.compile(function, backend=inductor_as_peer)


@contextmanager
def listening(recording: Recording, with_backward: bool, device: torch.device) -> Iterator[None]:
    """Record what TorchInductor generates, quickly. `with_backward`, a backward graph is generated together with its
    forward graph."""
    from torch._inductor.graph import GraphLowering

    with ExitStack() as stack:
        stack.enter_context(compiling_quickly(device))
        if device.type == "cpu":
            stack.enter_context(_building_later(recording))
        stack.enter_context(_functorch_setting("force_non_lazy_backward_lowering", with_backward))
        for holder in _holders_of_hook():
            stack.enter_context(mock.patch.object(holder, _HOOK, _relay(recording, getattr(holder, _HOOK))))
        for refusal, patched in _words_of_refusals(recording):
            stack.enter_context(mock.patch.object(refusal, "__call__", patched))
        stack.enter_context(mock.patch.object(GraphLowering, "save_output_code", staticmethod(recording.note_module)))
        yield


@contextmanager
def compiling_quickly(device: torch.device) -> Iterator[None]:
    """What TorchInductor does meanwhile, it does as anew and no slower than it has to.

    Its graph caches are passed over, since a hit generates nothing. On a CPU as many C++ compilers run at once as there
    are cores, in threads: a process of workers would first import torch, and has nothing to do for a CPU. Precompiled
    headers take longer to make than one snippet gains by them.
    """
    import torch._inductor.config as inductor_config
    from torch._inductor.async_compile import AsyncCompile

    with ExitStack() as stack:
        stack.enter_context(inductor_config.patch(fx_graph_cache=False, cpp_cache_precompile_headers=False))
        stack.enter_context(_functorch_setting("enable_autograd_cache", False))
        if device.type == "cpu":
            stack.enter_context(inductor_config.patch(compile_threads=min(usable_cores(), MOST_COMPILERS)))
            stack.enter_context(mock.patch.object(AsyncCompile, "use_process_pool", classmethod(lambda _: False)))
        yield


@contextmanager
def _building_later(recording: Recording) -> Iterator[None]:
    """C++ compilers run while the next graph is generated: a module waits for its own only before it is called. Those
    that were not waited for in the end, as time was up, are not started any more."""
    from torch._inductor.async_compile import AsyncCompile

    wait = AsyncCompile.wait

    def later(self: AsyncCompile, scope: dict[str, Any]) -> None:
        recording.unbuilt.append(lambda: wait(self, scope))

    with mock.patch.object(AsyncCompile, "wait", later):
        try:
            yield
        finally:
            if recording.unbuilt and AsyncCompile.pool.cache_info().currsize:
                AsyncCompile.pool().shutdown(wait=False, cancel_futures=True)
                AsyncCompile.pool.cache_clear()


@contextmanager
def _functorch_setting(name: str, value: bool) -> Iterator[None]:
    """A setting of AOTAutograd, where this version of torch has it."""
    import torch._functorch.config as functorch_config

    with functorch_config.patch({name: value}) if hasattr(functorch_config, name) else ExitStack():
        yield


def _relay(recording: Recording, hook: Callable[..., Any]) -> Callable[..., Any]:
    def heard(node_schedule: Any, kernel_name: str, is_extern: bool = False, *more: Any, **named: Any) -> Any:
        if kernel_name:
            recording.underway.launches.append(describe_launch(node_schedule, kernel_name, is_extern))
        return hook(node_schedule, kernel_name, is_extern, *more, **named)

    return heard


def _words_of_refusals(recording: Recording) -> Iterator[tuple[type, Callable[..., None]]]:
    """The class whose calls tell why two nodes are not fused, and the call that listens to it."""
    from torch._inductor import scheduler

    refusal = getattr(scheduler, "WhyNoFuse", None)
    if refusal is None:
        return
    told = refusal.__call__

    def heard(self: Any, reason: str, *args: Any) -> None:
        with suppress(Exception):  # private structures of another version of torch
            recording.note_refusal(self.name1, self.name2, " ".join((reason % args).split()))
        told(self, reason, *args)

    yield refusal, heard


def _holders_of_hook() -> list[Any]:
    import importlib

    modules = [importlib.import_module(f"torch._inductor.{name}") for name in _HOLDERS]
    return [module for module in modules if hasattr(module, _HOOK)]
