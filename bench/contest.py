"""One case: run it each way, check each result against float64, time all of them against each other."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from bench.dropout import dropout_error
from bench.patterns import Case, Size
from bench.turns import Turns
from compiler.capture.rounding_noise import RoundingNoise, epsilon_of
from compiler.options import Timing
from compiler.runtime.checking.gradients import DRAWS
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import relative_error, to_double
from compiler.runtime.timing.measure import Samples, beside_each_other, take_samples
from compiler.runtime.timing.stopwatch import Stopwatch

CONTESTANTS = ("eager", "ours", "inductor_default", "inductor_reduce_overhead")
#: TorchInductor's modes, by the contestant's name. The last two run where they are asked for: the first of them times
#: kernels for a minute and more. With CUDA graphs a mode copies its inputs into them, which of a model are few and of a
#: pattern are all that there is; so both ways are raced.
MODES = {
    "inductor_default": None,
    "inductor_reduce_overhead": "reduce-overhead",
    "inductor_max_autotune": "max-autotune-no-cudagraphs",
    "inductor_max_autotune_replayed": "max-autotune",
}
#: Those that are the kernels of the mode before them in a CUDA graph, which are found compiled.
REPLAYED = ("inductor_reduce_overhead", "inductor_max_autotune_replayed")
#: Ours with other options, which run where they are asked for.
VARIANTS: dict[str, dict[str, Any]] = {
    "ours_in_eager_layout": {"knobs": {"disable": ["layout", "folding"]}},
    "ours_without_folding": {"knobs": {"disable": ["folding"]}},
    "ours_without_padding": {"knobs": {"disable": ["padding"]}},
    "ours_replayed": {"cuda_graphs": "on"},
    "ours_without_parts": {"knobs": {"disable": ["parts"]}},
    "ours_launched_one_by_one": {"cuda_graphs": "off"},
    "ours_max_autotune": {"mode": "max-autotune"},
    "ours_rounded": {"knobs": {"tf32": True}},
}
KNOWN = tuple(dict.fromkeys((*CONTESTANTS, *MODES, *VARIANTS)))

Outputs = Any
Function = Callable[..., Outputs]


class DeviceLost(RuntimeError):
    """A contestant's kernel left the GPU unusable for this process."""

    def __init__(self, contestant: str, sentence: str) -> None:
        super().__init__(sentence)
        self.contestant = contestant


@dataclass(frozen=True)
class Setup:
    """What all cases of a run share. `bandwidth` is the device's copy bandwidth in bytes per second."""

    device: torch.device
    size: Size
    seed: int
    repeat: int
    max_seconds: float
    bandwidth: float
    watch: Stopwatch
    #: Of models alone.
    batch: int = 1
    is_timed: bool = True
    dtype: torch.dtype = torch.float32
    turns: Turns = field(default_factory=lambda: Turns(None))


@dataclass
class Outcome:
    """What is known of a case so far."""

    compile_s: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    max_error: dict[str, float] = field(default_factory=dict)
    correct: dict[str, bool] = field(default_factory=dict)
    callables: dict[str, Function] = field(default_factory=dict)


@dataclass
class Prepared:
    """A case whose contestants are compiled and checked. `moved` is the bytes of its inputs and outputs."""

    case: Case
    outcome: Outcome
    moved: int


def run_case(case: Case, contestants: Sequence[str], setup: Setup, starting: Callable[[str], None]) -> dict[str, Any]:
    """The result of one case as plain JSON; times are milliseconds. `starting` is told what is about to be run.

    A contestant that fails leaves its error as a sentence, and the others go on."""
    torch._dynamo.reset()
    with ExitStack() as caches:
        return time_case(prepare_case(case, contestants, setup, starting, caches), setup, starting)


def prepare_case(
    case: Case,
    contestants: Sequence[str],
    setup: Setup,
    starting: Callable[[str], None],
    caches: ExitStack | None = None,
) -> Prepared:
    """Compile a case with every contestant and check each of them; no inputs or outputs are kept.

    With `caches`, which hold until the case was timed, each contestant begins with empty ones and compiles all."""
    torch.manual_seed(setup.seed)
    inputs = case.inputs(setup.size, setup.device, setup.seed)
    outcome = Outcome()
    starting("eager")
    with torch.no_grad():
        plain = case.call(case.function)
        eager = plain(*inputs)
        judge = _judge(case, inputs, eager)
        others = case.inputs(setup.size, setup.device, setup.seed + 1)
        _check("eager", eager, judge, outcome)
        outcome.callables["eager"] = plain
        if caches is not None:
            capture_once(plain, others)
        for name in in_order(contestants, case.name):
            if name != "eager" and not (name in REPLAYED and setup.device.type != "cuda"):
                starting(name)
                if caches is not None and name not in REPLAYED:
                    caches.enter_context(fresh_caches())
                _compile_and_check(name, case, (others, inputs), judge, setup, outcome)
    return Prepared(case, outcome, sum(_bytes(tensor) for tensor in [*inputs, *_tensors(eager)]))


def time_case(prepared: Prepared, setup: Setup, starting: Callable[[str], None]) -> dict[str, Any]:
    """The result of a case that is prepared: its contestants' times, interleaved, and what is known of them."""
    starting("timing")
    inputs = prepared.case.inputs(setup.size, setup.device, setup.seed)
    with torch.no_grad():
        samples = take_times(prepared.outcome.callables, inputs, setup)
    return _result(prepared, samples, setup)


def in_order(contestants: Sequence[str], case: str) -> list[str]:
    """The contestants as they compile a case: who is first pays for what libraries load for it (cuDNN's plan of an
    attention), so that in half of the cases TorchInductor is. The order of its own modes stays."""
    is_peer_first = zlib.crc32(case.encode()) % 2 == 0
    return sorted(contestants, key=lambda name: (name in MODES) != is_peer_first)


def capture_once(function: Function, inputs: Sequence[torch.Tensor]) -> None:
    """Have Dynamo and AOTAutograd load and keep what they want for these operators, which is no contestant's."""
    with suppress(Exception):  # which the contestants will raise too, and tell
        torch.compile(function, backend="aot_eager")(*inputs)
    torch._dynamo.reset()


def compile_ours(function: Function, options: dict[str, Any] | None = None) -> Function:
    """`torch.compile(function, backend="fusionscope")`, found without the package being installed."""
    from compiler.backend import fusionscope

    return torch.compile(function, backend=fusionscope, options=options)


def compile_with(name: str, function: Function) -> Function:
    """The function as contestant `name` runs it; nothing is compiled before its first call."""
    if name == "ours":
        return compile_ours(function)
    if name in VARIANTS:
        return compile_ours(function, VARIANTS[name])
    return torch.compile(function, mode=MODES[name])


@contextmanager
def fresh_caches() -> Iterator[None]:
    """Empty cache directories of every compiler, so that a first call compiles everything; a Triton kernel that this
    process compiled for something else is forgotten too."""
    from torch._inductor.utils import fresh_cache

    from compiler.runtime.host.launcher import launcher_library
    from compiler.runtime.triton.device_functions import function_texts
    from compiler.runtime.triton.source import forget_kernels

    # Parts of ours that are made once for a machine, with no kernel of any case in them.
    launcher_library()
    if torch.cuda.is_available():
        function_texts()
    forget_kernels()
    with tempfile.TemporaryDirectory(prefix="fusionscope-bench-", ignore_cleanup_errors=True) as ours, fresh_cache():
        kept = os.environ.get("FUSIONSCOPE_CACHE_DIR")
        os.environ["FUSIONSCOPE_CACHE_DIR"] = ours
        try:
            yield
        finally:
            if kept is None:
                del os.environ["FUSIONSCOPE_CACHE_DIR"]
            else:
                os.environ["FUSIONSCOPE_CACHE_DIR"] = kept


def start_compilers(device: torch.device, contestants: Sequence[str], starting: Callable[[str], None]) -> None:
    """Compile a trivial function with each, so that no case's compile time holds a compiler's own start."""
    x = torch.ones(64, device=device)
    for name in contestants:
        starting(name)
        try:
            with torch.no_grad(), fresh_caches():
                compile_with(name, lambda x: x + 1)(x)
        except Exception as error:  # each case will fail likewise and tell
            print(f"{name} cannot compile x + 1: {sentence_of(error)}", file=sys.stderr)
        torch._dynamo.reset()


def seconds_of(call: Callable[[], object], device: torch.device) -> float:
    """Wall seconds of one call, until the device has done its work; of a first call, compiling included."""
    synchronise(device)
    started = time.perf_counter()
    call()
    synchronise(device)
    return time.perf_counter() - started


def sentence_of(error: BaseException) -> str:
    """An exception as one line: its type and the first line of its message that says something."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {said[0][:300] if said else 'no message'}"


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


Judge = Callable[[Outputs], tuple[float, bool]]


def _judge(case: Case, inputs: Sequence[torch.Tensor], eager: Outputs) -> Judge:
    """How the outputs of this case are judged: the error against float64, and whether rounding explains it."""
    if case.is_random:
        return lambda outputs: dropout_error(outputs, inputs[0], inputs[1])
    function = case.call(case.function)
    reference = function(*to_double(tuple(inputs)))

    def draws() -> Iterator[Outputs]:
        for seed in range(DRAWS):
            with RoundingNoise(epsilon_of([eager, inputs]), seed):
                yield function(*to_double(tuple(inputs)))

    return lambda outputs: (
        relative_error(outputs, reference),
        is_correct(outputs, reference, eager, perturbed=draws()),
    )


def _check(name: str, outputs: Outputs, judge: Judge, outcome: Outcome) -> None:
    outcome.max_error[name], outcome.correct[name] = judge(outputs)


def _compile_and_check(
    name: str,
    case: Case,
    inputs: tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]],
    judge: Judge,
    setup: Setup,
    outcome: Outcome,
) -> None:
    """Compile on the first inputs and check on the second, so that values that were compiled in would be seen."""
    try:
        function = case.call(compile_with(name, case.function))
        outcome.compile_s[name] = seconds_of(lambda: function(*inputs[0]), setup.device)
        _check(name, function(*inputs[1]), judge, outcome)
        outcome.callables[name] = function
    except Exception as error:  # a compiler's failure is a result
        note_failure(name, error, setup.device, outcome)


def note_failure(name: str, error: Exception, device: torch.device, outcome: Outcome) -> None:
    """Keep what a contestant's failure says. Raises `DeviceLost` where the GPU is of no more use to this process."""
    outcome.errors[name] = sentence_of(error)
    try:
        synchronise(device)
    except Exception as lasting:  # after a kernel's fault, no call of this process to the GPU succeeds
        raise DeviceLost(name, outcome.errors[name]) from lasting


def take_times(callables: Mapping[str, Function], inputs: Sequence[torch.Tensor], setup: Setup) -> dict[str, Samples]:
    """Samples of every contestant on the same inputs, interleaved."""

    def call_of(function: Function) -> Callable[[], object]:
        return lambda: function(*inputs)

    calls = {name: call_of(function) for name, function in callables.items()}
    timing = Timing(min_runs=setup.repeat, max_seconds=setup.max_seconds)
    with setup.turns.alone():
        return take_samples(calls, setup.watch, setup.device, timing)


def _result(prepared: Prepared, samples: Mapping[str, Samples], setup: Setup) -> dict[str, Any]:
    case, outcome = prepared.case, prepared.outcome
    race = race_of(samples)
    floor = prepared.moved / setup.bandwidth * 1e3
    return {
        **race,
        "floor": floor,
        "floor_bytes": prepared.moved,
        "limit": case.limit,
        "ours_to_floor": _ratio(race["ours"], floor),
        "inductor_to_floor": _ratio(race["inductor_default"], floor),
        "ours_compile_s": outcome.compile_s.get("ours"),
        "inductor_compile_s": outcome.compile_s.get("inductor_default"),
        "inductor_reduce_overhead_compile_s": outcome.compile_s.get("inductor_reduce_overhead"),
        "max_error": outcome.max_error,
        "correct": outcome.correct,
        "errors": outcome.errors,
    }


def race_of(samples: Mapping[str, Samples]) -> dict[str, Any]:
    """The times of the contestants, in milliseconds, and how they compare."""
    names = tuple(name for name in KNOWN if name in CONTESTANTS or name in samples)
    times = {name: samples[name].median_ms if name in samples else None for name in names}
    ours, peer = samples.get("ours"), samples.get("inductor_default")
    return {
        **times,
        "ours_to_inductor": _ratio(times["ours"], times["inductor_default"]),
        "ours_to_best": _ratio(times["ours"], min((time for name in MODES if (time := times.get(name))), default=None)),
        "eager_to_ours": _ratio(times["eager"], times["ours"]),
        "differs_from_inductor": beside_each_other(ours, peer).is_clear if ours and peer else None,
        "quartiles_ms": {name: list(kept.quartiles_ms) for name, kept in samples.items()},
        "host_ms": {name: kept.host_ms for name, kept in samples.items()},
        "samples": {name: len(kept.samples_ms) for name, kept in samples.items()},
    }


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def _tensors(outputs: Outputs) -> list[torch.Tensor]:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.itemsize
