"""Sizes that only a run tells: what stands around the operators that tell them is compiled, for every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.torch_version import TorchVersion

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.runtime.executable import build_executable
from compiler.schedule.group import Group
from tests.pipeline.late_sizes import CASES, LINE, SETTINGS, TABLE, check_gradients, check_results, positives


@pytest.mark.parametrize("name", CASES)
def test_gives_what_eager_gives(name: str) -> None:
    check_results(name, "cpu")


def test_gradients_are_eagers() -> None:
    check_gradients("cpu")


#: Of the rows that are chosen, each by what it is called with; over no rows most have no result.
OVER_ROWS: dict[str, Callable[[Tensor], Any]] = {
    "amax": lambda y: y.amax(0),
    "amin": lambda y: y.amin((0, 1)),
    "max": lambda y: y.max(),
    "max and where": lambda y: tuple(y.max(0)),
    "argmax": lambda y: y.argmax(),
    "argmin": lambda y: y.argmin(0),
    "aminmax": lambda y: tuple(torch.aminmax(y, dim=0)),
    "topk": lambda y: tuple(y.topk(1, 0)),
    "norm": lambda y: torch.linalg.vector_norm(y, float("inf"), 0),
    "amax of no columns": lambda y: y.amax(1),
    "log_softmax": lambda y: y.log_softmax(0),
    "sum": lambda y: y.sum(0),
}

#: What raises over no rows with every backend: the decomposition of torch 2.11 asserts that there is one.
GIVEN_UP = {"log_softmax"} if TorchVersion(torch.__version__) < "2.12" else set()


def _told(function: Callable[..., Any], x: Tensor) -> Any:
    """The result; None where it fails."""
    try:
        return function(x)
    except (RuntimeError, IndexError):
        return None


@pytest.mark.parametrize("name", OVER_ROWS)
def test_an_empty_choice_gives_what_eager_gives_or_fails_too(name: str) -> None:
    torch._dynamo.reset()

    def chosen(x: Tensor) -> Any:
        return OVER_ROWS[name](x[x[:, 0] > 0] * 2)

    with torch._dynamo.config.patch(SETTINGS):
        compiled = torch.compile(chosen, backend=fusionscope, fullgraph=True)
        for x in (TABLE, TABLE - 9, TABLE, TABLE - 9):
            expected = None if name in GIVEN_UP and x is not TABLE else _told(chosen, x)
            torch.testing.assert_close(_told(compiled, x), expected)


def test_a_size_that_a_check_forbids_fails_as_in_eager() -> None:
    torch._dynamo.reset()
    function, _ = CASES["item"]
    with torch._dynamo.config.patch(SETTINGS):
        compiled = torch.compile(function, backend=fusionscope, fullgraph=True, dynamic=False)
        x = torch.arange(12.0).view(4, 3)
        torch.testing.assert_close(compiled(x, torch.tensor(2)), function(x, torch.tensor(2)))
        with pytest.raises(RuntimeError):
            compiled(x, torch.tensor(5))


def test_what_follows_is_fused_and_waits_for_the_call_that_tells() -> None:
    torch._dynamo.reset()
    seen: list[Built] = []
    with torch._dynamo.config.patch(SETTINGS), observed_compilations(seen.append):
        torch.compile(positives, backend=fusionscope, fullgraph=True)(LINE)
    schedule = seen[0].schedule
    names = [unit.name if isinstance(unit, Group) else str(unit.target) for unit in schedule.units]
    call = names.index("aten.index.Tensor")
    assert [isinstance(unit, Group) for unit in schedule.units[:call]] == [True], "sine and mask are one kernel"
    after = [unit for unit in schedule.units[call:] if isinstance(unit, Group)]
    assert len(after) <= 2 and all("index" in unit.follows for unit in after)
    assert len(names) == len(after) + 2, "what torch asserts of the size is no launch"


REPORTED = """import torch
import torch._dynamo

torch._dynamo.config.capture_dynamic_output_shape_ops = True

@torch.compile
def f(x):
    y = x.sin()
    kept = y[y > 0]
    return kept * 2 + 1

f(torch.linspace(-3, 3, 100))
"""


def test_report_counts_with_the_sizes_of_the_first_call() -> None:
    with torch._dynamo.config.patch(SETTINGS):  # which the snippet changes
        report = explore(REPORTED, Options(timing=Timing(enabled=False)))
    assert report.status == "ok" and not report.breaks
    assert report.summary.compiled_error is not None and report.summary.compiled_error < 1e-6
    (graph,) = report.graphs
    call = next(kernel for kernel in graph.kernels if kernel.kind == "extern" and "index" in kernel.name)
    assert call.user_lines == [9] and "known only when it has run" in (call.source or "")
    assert graph.kernels[-1].bytes == 2 * 4 * int((torch.linspace(-3, 3, 100).sin() > 0).sum())


def test_tensors_without_elements_have_memory_to_read() -> None:
    """A kernel that gathers where a mask says so reads the first element elsewhere, and drops it."""
    torch._dynamo.reset()
    seen: list[Built] = []
    with torch._dynamo.config.patch(SETTINGS), observed_compilations(seen.append):
        result = torch.compile(lambda x: x[x > 0] * 3, backend=fusionscope, fullgraph=True)(LINE.requires_grad_())
        result.backward(torch.ones_like(result))
    forward, backward = seen
    given: list[int] = []

    def launcher(launch: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            given.extend(x.data_ptr() for x in arguments if isinstance(x, torch.Tensor))
            launch(*arguments)

        return call

    for compilation, inputs in ((forward, [LINE.detach() - 9]), (backward, [0, LINE.detach() > 9, torch.empty(0)])):
        executable = compilation.executable
        watched = {name: launcher(launch) for name, launch in executable.kernels.items()}
        result = build_executable(compilation.schedule, executable.wrapper, watched, compilation.runs_on).call(inputs)
        assert compilation is forward or torch.equal(result[0], torch.zeros(40))
    assert given and all(given)


def test_no_node_and_no_saved_tensor_has_a_number_of_bytes_below_zero() -> None:
    source = (
        "import torch\n"
        "torch._dynamo.config.capture_dynamic_output_shape_ops = True\n"
        "@torch.compile\n"
        "def f(x, m):\n"
        "    y = x[m].exp()\n"
        "    return (y * y.sigmoid()).sum()\n"
        "f(torch.randn(8, requires_grad=True), torch.tensor([True, False] * 4)).backward()\n"
    )
    with torch._dynamo.config.patch("capture_dynamic_output_shape_ops", False):  # which the snippet changes
        report = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    forward, backward = report.graphs
    unknown = [node for node in (*forward.fx, *forward.aten) if node.shape and isinstance(node.shape[0], str)]
    assert unknown and all(node.bytes is None for node in unknown)
    # Four elements were chosen in the first call.
    assert {saved.node: saved.bytes for saved in backward.saved} == {"m": 8, "exp": 4 * 4}
