"""Attention by hand is replaced where that is legal, computes what eager computes, and a near miss says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.backend import fusionscope
from compiler.capture.captured import copy_values
from compiler.compile import observed_compilations
from compiler.ir.nodes import ExternNode
from compiler.options import Options, Timing
from compiler.passes.rewrite import masks
from compiler.passes.rewrite.reasons import REASONS
from compiler.passes.rewrite.replacement import is_slow
from compiler.passes.rewrite.rewriting import Rewriting, rewrite
from compiler.pipeline import explore
from compiler.report import Rewrite
from compiler.runtime.checking import rewrite_check
from compiler.runtime.checking.judge import is_correct
from compiler.runtime.checking.verify import relative_error, to_double
from tests.passes.rewrite.programs import KEPT, REPLACED, plain

#: What is replaced has tests of its own, and so have calls; two devices need a GPU.
ELSEWHERE = {"attention.replaced", "device.mixed"} | {reason for reason in REASONS if reason.startswith("call.")}
ELSEWHERE |= {"one_hot.sum", "picked.rows", "pooling.bytes"}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def rewritings_of(function: Callable[..., Any], arguments: tuple[Any, ...], **settings: Any) -> list[Rewriting]:
    """What is made of each graph of a call, which is run as it was captured."""
    found: list[Rewriting] = []

    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        found.append(rewrite(graph))
        return graph.forward

    torch.compile(function, backend=backend, **settings)(*copy_values(arguments))
    torch._dynamo.reset()
    return found


def record_of(function: Callable[..., Any], arguments: tuple[Any, ...], **settings: Any) -> Rewrite:
    (rewriting,) = rewritings_of(function, arguments, **settings)
    (record,) = [record for record in rewriting.records if record.what == "attention"]
    return record


def training(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Queries, keys and values that want gradients; masks and biases as they are."""
    first = [tensor.detach().requires_grad_() for tensor in arguments[:3]]
    return (*first, *arguments[3:])


def run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    """The result of a call, then the gradients of queries, keys and values where they want any."""
    values = copy_values(arguments)
    result = function(*values)
    wanted = [value for value in values if value.requires_grad]
    if not wanted:
        return [result]
    seed = (torch.arange(result.numel()) % 5 + 1).to(result.dtype).view(result.shape)
    return [result, *torch.autograd.grad(result, wanted, seed)]


@pytest.mark.parametrize("wants_gradient", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", REPLACED)
def test_what_is_replaced_is_as_right_as_eager(name: str, wants_gradient: bool) -> None:
    function, make = REPLACED[name]
    arguments = training(make()) if wants_gradient else make()
    record = record_of(function, arguments)
    assert (record.verdict, record.detail) == ("replaced", record.detail)
    eager = run(function, arguments)
    reference = run(function, training(to_double(arguments)) if wants_gradient else to_double(arguments))
    compiled = run(torch.compile(function, backend=fusionscope), arguments)
    assert is_correct(compiled, reference, eager), [
        relative_error(a, b) for a, b in zip(compiled, reference, strict=True)
    ]
    assert [tensor.stride() for tensor in compiled[:1]] == [tensor.stride() for tensor in eager[:1]]


@pytest.mark.parametrize("reason", KEPT)
def test_a_near_miss_is_kept_and_says_why(reason: str) -> None:
    function, make = KEPT[reason]
    if reason == "mask.wider_dtype":
        arguments = (*(tensor.bfloat16() for tensor in make()[:3]), make()[3])
        function = lambda q, k, v, bias: (q @ k.mT + bias).softmax(-1).to(q.dtype) @ v  # noqa: E731
    else:
        arguments = make()
    record = record_of(function, arguments)
    assert (record.verdict, record.reason) == ("kept", reason), record
    assert record.message == REASONS[reason][0]


def test_every_reason_is_reached() -> None:
    assert set(KEPT) | ELSEWHERE == set(REASONS)


@pytest.mark.parametrize(
    "function",
    [lambda x: x.softmax(-1) @ x, lambda x: (x @ x).softmax(-1), lambda x: (x @ x).softmax(-1) * 2],
    ids=["no product above", "no product below", "something else below"],
)
def test_a_softmax_that_is_no_attention_is_no_near_miss(function: Callable[..., Any]) -> None:
    assert [found.records for found in rewritings_of(function, (torch.randn(2, 4, 4),))] == [[]]


def _kept(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.tril(torch.ones(q.shape[-2], q.shape[-2]))
    return (q @ k.mT / 8**0.5).masked_fill(mask == 0, float("-inf")).softmax(-1) @ v


def _left_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.triu(torch.ones(q.shape[-2], q.shape[-2]), diagonal=1).bool()
    return (q @ k.mT / 8**0.5).masked_fill(mask, float("-inf")).softmax(-1) @ v


def _without_diagonal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril(-1)
    return (q @ k.mT / 8**0.5).masked_fill(~mask, float("-inf")).softmax(-1) @ v


@pytest.mark.parametrize("function", [_kept, _left_out, _without_diagonal])
def test_a_triangle_of_open_sizes_is_handed_on(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, backend=fusionscope, dynamic=True)
    seen: list[Any] = []
    with observed_compilations(seen.append):
        for length in (5, 7, 12):
            tensors = [torch.randn(2, 3, length, 8) for _ in range(3)]
            torch.testing.assert_close(compiled(*tensors), function(*tensors), equal_nan=True)
    assert len(seen) == 1


def test_a_causal_mask_is_not_made_in_memory() -> None:
    seen: list[Any] = []
    function, make = REPLACED["causal_tril"]
    with observed_compilations(seen.append):
        torch.compile(function, backend=fusionscope)(*make())
    (compilation,) = seen
    assert [type(unit) for unit in compilation.schedule.units] == [ExternNode]


def test_the_graph_that_dynamo_made_stays_as_it_is() -> None:
    texts: list[str] = []

    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        texts.append(str(graph.graph))
        assert rewrite(graph).graph is not graph
        texts.append(str(graph.graph))
        return graph.forward

    torch.compile(plain, backend=backend)(*REPLACED["plain"][1]())
    assert texts[0] == texts[1]


SNIPPET = """import torch

@torch.compile
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) * 0.5
    return torch.softmax(scores, dim=-1) @ v

attention(*(torch.randn(2, 2, 16, 8) for _ in range(3)))
"""


def explored() -> Any:
    return explore(SNIPPET, Options(device="cpu", timing=Timing(enabled=False)))


def test_a_wrong_rewrite_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert explored().notes == []
    monkeypatch.setattr("compiler.passes.rewrite.replacement.plan_masks", lambda _: masks.MaskPlan(is_causal=True))
    report = explored()
    assert report.graphs[0].rewrites[0].verdict == "replaced"
    assert report.summary.compiled_error is not None and report.summary.compiled_error > 1e-2
    assert [(note.line, "differs from the original" in note.message) for note in report.notes] == [(6, True)]


def test_gradients_of_a_rewrite_are_compared_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the keys' bias are zero but for rounding, of which no two computations agree in a digit."""
    asked: list[bool] = []
    in_double = rewrite_check.run_in_double

    def noted(graph: Any, inputs: Any, with_gradients: bool) -> Any:
        asked.append(with_gradients)
        return in_double(graph, inputs, with_gradients)

    monkeypatch.setattr(rewrite_check, "run_in_double", noted)
    source = """import torch
to_queries, to_keys, to_values = (torch.nn.Linear(8, 8) for _ in range(3))
@torch.compile
def attention(x):
    scores = to_queries(x) @ to_keys(x).transpose(-2, -1) / 8**0.5
    return torch.softmax(scores, dim=-1) @ to_values(x)
with torch.set_grad_enabled({trained}):
    result = attention(torch.randn(2, 2, 16, 8))
if {trained}:
    result.sum().backward()
"""
    for trained in (False, True):
        report = explore(source.format(trained=trained), Options(device="cpu", timing=Timing(enabled=False)))
        assert report.graphs[0].rewrites[0].verdict == "replaced"
        assert report.status == "ok" and not report.notes
    assert asked == [False, False, True, True]


def test_heads_that_only_a_slow_kernel_takes_stay_as_they_are_written() -> None:
    efficient, flash = "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention"
    assert is_slow(frozenset([efficient]), 512) and not is_slow(frozenset([efficient]), 256)
    assert not is_slow(frozenset([flash]), 512)
    assert not is_slow(frozenset(["_scaled_dot_product_flash_attention_for_cpu"]), 512)
