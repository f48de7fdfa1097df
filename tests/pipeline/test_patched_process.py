"""A snippet patches Python, torch and its process: times, errors and verdicts are what they are without that."""

from __future__ import annotations

import gc
import importlib
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch

from compiler import pipeline
from compiler.options import Options
from compiler.report import Report
from tests.pipeline.test_wrong_results import broken

#: Far above what one of these calls takes on a busy machine, far below what a forged factor of a million makes of it.
LONGEST_MS = 5_000.0
SHORTEST_MS = 1e-5

SNIPPET = """import torch
def f(x):
    return torch.sin(x) * 3 + torch.exp(x)
def g(x):
    return f(x) - 1
compiled = torch.compile(g)
compiled(torch.linspace(-2, 2, 8192).reshape(64, 128))
"""

#: Files that check, time and sum up, by a part of their path.
CHECKERS = ("/compiler/runtime/", "/compiler/stages/", "/compiler/summary.py", "/compiler/garbage.py",
            "/compiler/capture/reference.py", "/compiler/capture/rounding_noise.py", "/statistics.py")  # fmt: skip

#: What a checker or a timer could call, or calls.
PATCHED = (
    "time.perf_counter time.monotonic time.time time.process_time statistics.median math.sqrt math.hypot math.isfinite "
    "gc.disable gc.enable gc.collect gc.freeze gc.isenabled signal.signal signal.setitimer contextlib.suppress "
    "builtins.print builtins.range builtins.len builtins.max builtins.min builtins.sum builtins.sorted builtins.round "
    "builtins.abs builtins.all builtins.any builtins.zip builtins.float builtins.map "
    "torch.Tensor.__sub__ torch.Tensor.__rsub__ torch.Tensor.__and__ torch.Tensor.__eq__ torch.Tensor.sub "
    "torch.Tensor.abs torch.Tensor.max torch.Tensor.to torch.Tensor.detach torch.Tensor.masked_fill "
    "torch.Tensor.is_floating_point torch.Tensor.numel torch.Tensor.__float__ torch.Tensor.__getitem__ "
    "torch.isfinite torch.isnan torch.isinf torch.allclose torch.equal torch.count_nonzero torch.where torch.tensor "
    "torch.empty torch.empty_like torch.zeros_like torch.as_strided torch.manual_seed torch.no_grad torch.finfo "
    "torch.linalg.vector_norm torch.is_grad_enabled torch.get_num_threads torch.fx.Interpreter.run "
    "torch.fx.Interpreter.call_function torch.fx.Interpreter.run_node torch._ops.OpOverload.__call__ "
    "torch.utils._pytree.tree_map torch.utils._pytree.tree_leaves"
).split()

#: Notes each call from one of those files, and is else what it stands for.
LISTENER = f"""
import importlib, sys
def listening(real, name):
    def patched(*given, **named):
        file = sys._getframe(1).f_code.co_filename
        for part in {CHECKERS!r}:
            if part in file:
                sys.heard.append((name, file))
        return real(*given, **named)
    return patched
names, patches = {PATCHED!r}, []
for name in names:
    owner, _, attribute = name.rpartition(".")
    is_class = owner.endswith(("Tensor", "Interpreter", "OpOverload"))
    module, _, part = owner.rpartition(".") if is_class else (owner, "", "")
    owner = importlib.import_module(module)
    patches.append((getattr(owner, part) if part else owner, attribute, name))
patches = [(owner, attribute, listening(getattr(owner, attribute), name)) for owner, attribute, name in patches]
for owner, attribute, patched in patches:
    setattr(owner, attribute, patched)
"""


def owner_of(name: str) -> tuple[Any, str]:
    path, attribute = name.rsplit(".", 1)
    try:
        return importlib.import_module(path), attribute
    except ModuleNotFoundError:
        module, part = path.rsplit(".", 1)
        return getattr(importlib.import_module(module), part), attribute


@contextmanager
def put_back(names: list[str]) -> Iterator[None]:
    """What a snippet patches stays patched in this process: afterwards it is as it was."""
    owners = [owner_of(name) for name in names]
    before = [(owner, name, vars(owner).get(name)) for owner, name in owners]
    try:
        yield
    finally:
        for owner, name, value in before:
            if value is not None:
                setattr(owner, name, value)
            elif name in vars(owner):
                delattr(owner, name)


def explored(source: str, **options: Any) -> Report:
    timing = {"min_runs": 3, "max_seconds": 0.2}
    return pipeline.explore(source, Options.model_validate({"device": "cpu", "timing": timing, **options}))


@cache
def unpatched() -> Report:
    return explored(SNIPPET)


def assert_same_figures(report: Report) -> None:
    expected = unpatched()
    assert report.status == expected.status == "ok", report.error
    assert [stage.status for stage in report.stages] == [stage.status for stage in expected.stages]
    for error in ("compiled_error", "eager_error"):
        assert getattr(report.summary, error) == getattr(expected.summary, error) > 0
    assert report.timing is not None
    times = [one.median_ms for one in report.timing.contestants]
    times += [kernel.measured_us / 1e3 for kernel in report.graphs[0].kernels if kernel.measured_us is not None]
    assert len(times) > 2 and all(SHORTEST_MS < time < LONGEST_MS for time in times)
    assert all(0 <= stage.ms < 100 * LONGEST_MS for stage in report.stages)


def test_nothing_that_checks_or_times_calls_what_a_snippet_has_patched(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(sys, "heard", heard, raising=False)
    with put_back(PATCHED):
        report = explored(SNIPPET + LISTENER)
    assert_same_figures(report)
    assert not heard


CLOCKS = ["time.perf_counter", "time.monotonic", "time.time", "statistics.median", "builtins.range"]
FORGED_CLOCKS = """
import builtins, statistics, time
def forged(clock):
    return lambda: {factor} * clock()
for name in ("perf_counter", "monotonic", "time"):
    setattr(time, name, forged(getattr(time, name)))
"""
FORGED_AT_EACH_CALL = """
import builtins, statistics, sys, time
def forge():
    if sys.explored:
        time.perf_counter = time.monotonic = time.time = lambda: 1e12
        statistics.median, builtins.range = (lambda values: 1e12), (lambda *given: ())
"""


@pytest.mark.parametrize("factor", [1e6, 1e-9])
def test_a_forged_clock_is_not_believed(factor: float) -> None:
    with put_back(CLOCKS):
        report = explored(FORGED_CLOCKS.format(factor=factor) + SNIPPET)
    assert_same_figures(report)


def test_patches_that_are_made_while_calls_are_timed_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that is called patches time and builtins anew whenever eager runs it."""
    monkeypatch.setattr(sys, "explored", True, raising=False)
    source = FORGED_AT_EACH_CALL + SNIPPET.replace(
        "compiled = torch.compile(g)",
        "class Forging(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        torch.compiler.is_compiling() or forge()\n"
        "        return g(x)\n"
        "compiled = torch.compile(Forging())",
    )
    with put_back(CLOCKS):
        report = explored(source)
    assert_same_figures(report)


ARITHMETIC = [
    *(f"torch.Tensor.{name}" for name in ("__sub__", "sub", "abs", "to", "max", "masked_fill")),
    *(f"torch.{name}" for name in ("isfinite", "isnan", "count_nonzero")),
    "torch.linalg.vector_norm",
]
FORGED_ARITHMETIC = """
for name in ("__sub__", "sub", "abs", "to", "max", "masked_fill"):
    setattr(torch.Tensor, name, lambda tensor, *given, **named: torch.zeros(()))
torch.isfinite = torch.isnan = torch.count_nonzero = torch.linalg.vector_norm = lambda *given, **named: torch.zeros(())
"""
FORGED_BY_MODES = """
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, given=(), named=None):
        result = function(*given, **(named or {}))
        return torch.zeros_like(result) if getattr(function, "__name__", "") in ("sub", "vector_norm") else result
class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, given=(), named=None):
        result = function(*given, **(named or {}))
        name = function._schema.name
        return torch.zeros_like(result) if name in ("aten::sub", "aten::linalg_vector_norm") else result
Functions().__enter__()
Dispatches().__enter__()
"""


@pytest.mark.parametrize("forged", [FORGED_ARITHMETIC, FORGED_BY_MODES])
def test_forged_arithmetic_makes_no_wrong_result_right(forged: str) -> None:
    with broken("one element"):
        wrong = explored(SNIPPET)
        with put_back(ARITHMETIC):
            report = explored(SNIPPET + forged)
    assert wrong.status == report.status == "wrong_result"
    assert report.summary.compiled_error == wrong.summary.compiled_error
    assert report.wrong_results == wrong.wrong_results


@pytest.mark.parametrize("forged", [FORGED_ARITHMETIC, FORGED_BY_MODES])
def test_forged_arithmetic_makes_no_right_result_wrong(forged: str) -> None:
    with put_back(ARITHMETIC):
        report = explored(SNIPPET + forged)
    assert_same_figures(report)


TRAINED = """import torch
def f(x, w):
    return torch.tanh(x @ w).sum()
x, w = torch.linspace(-1, 1, 512).reshape(16, 32), torch.linspace(-1, 1, 256).reshape(32, 8).requires_grad_()
torch.compile(f)(x, w).backward()
"""


@pytest.mark.parametrize("forged", [FORGED_ARITHMETIC, FORGED_BY_MODES])
def test_gradients_are_checked_with_arithmetic_that_is_not_the_snippets(forged: str) -> None:
    expected = explored(TRAINED, training=True)
    with put_back([*ARITHMETIC, "torch.autograd.grad"]):
        report = explored(f"{TRAINED}{forged}torch.autograd.grad = lambda *given, **named: ()\n", training=True)
    assert report.status == expected.status == "ok"
    assert report.gradients == expected.gradients != []


HOOKS = """
import gc, signal, sys, warnings
def slow(*given):
    sys.heard.append("a hook")
    return slow
signal.signal(signal.SIGALRM, slow)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
signal.signal(signal.SIGVTALRM, slow)
signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
gc.callbacks.append(slow)
warnings.simplefilter("error")
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
sys.setrecursionlimit(sys.getrecursionlimit() // 4)
sys.heard.clear()
sys.settrace(slow)
sys.setprofile(slow)
"""


def test_hooks_and_defaults_that_a_snippet_leaves_behind_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(sys, "heard", heard, raising=False)
    state = (
        sys.gettrace, sys.getprofile, sys.getrecursionlimit, torch.get_default_dtype, torch.get_default_device,
        lambda: signal.getsignal(signal.SIGALRM), lambda: signal.getitimer(signal.ITIMER_REAL)[1],
        lambda: list(gc.callbacks), lambda: list(warnings.filters),
    )  # fmt: skip
    before = [one() for one in state]
    counts: list[int] = []
    timing = {"min_runs": 3, "max_seconds": 0.2}
    report = pipeline.explore(
        SNIPPET + HOOKS,
        Options.model_validate({"device": "cpu", "timing": timing}),
        lambda _: counts.append(len(heard)),
    )
    assert_same_figures(report)
    assert counts[0] == counts[-1], "a hook of the snippet ran after its capture"
    assert [one() for one in state] == before
