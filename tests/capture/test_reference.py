"""The reference runs a graph whose values lie in memory as they did when it was traced."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor

from compiler.capture.captured import CapturedGraph
from compiler.capture.reference import reference_run, with_strides_of
from compiler.fx.fake_values import is_undefined
from tests.compile_program import capture_graph


@torch.library.custom_op("fusionscope_tests::laid_out_otherwise", mutates_args=())
def laid_out_otherwise(x: Tensor) -> Tensor:
    """Gives channels last, and says that it keeps the order, as some convolutions of libraries do."""
    return (x * 2).contiguous(memory_format=torch.channels_last)


@laid_out_otherwise.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_a_view_of_what_a_library_laid_out_otherwise_is_one(dtype: torch.dtype | None) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.ops.fusionscope_tests.laid_out_otherwise(x).view(2, -1) + 1

    x = torch.randn(2, 3, 4, 5)
    graph = cast(CapturedGraph, SimpleNamespace(aten=capture_graph(function, x)))
    (result,) = reference_run(graph, [x], dtype)
    torch.testing.assert_close(result, (x.to(dtype or x.dtype) * 2).view(2, -1) + 1)


@pytest.mark.parametrize(
    "traced",
    [
        torch.empty(2, 3, 4, 5),
        torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.empty(2, 3, 4, 8)[..., :5],
        torch.empty(2, 1, 4, 5).expand(2, 3, 4, 5),
    ],
    ids=["in order", "channels last", "with gaps", "expanded"],
)
def test_values_keep_their_elements_under_other_strides(traced: Tensor) -> None:
    value = torch.randn(2, 1, 4, 5).expand(2, 3, 4, 5)
    (laid_out,) = with_strides_of([traced], [value])
    assert laid_out.stride() == traced.stride() and torch.equal(laid_out, value)


def test_open_sizes_of_a_call_tell_its_strides() -> None:
    def padded(x: Tensor) -> Tensor:
        return (
            torch.nn.functional.pad(x, (0, 8 - x.shape[-1] % 8))[..., : x.shape[-1]].unsqueeze(1).expand(-1, 3, -1, -1)
        )

    graph = capture_graph(padded, torch.randn(2, 7, 13), dynamic=True)
    traced = next(node.meta["val"] for node in graph.graph.nodes if node.name.startswith("expand"))
    for rows, columns in ((7, 13), (5, 9), (4, 21)):
        value = torch.randn(2, rows, columns).unsqueeze(1).expand(-1, 3, -1, -1)
        laid_out = with_strides_of(traced, value)
        assert laid_out.stride() == padded(torch.empty(2, rows, columns)).stride() and torch.equal(laid_out, value)


def test_what_attention_keeps_of_its_dropout_is_not_compared() -> None:
    graph = torch.fx.Graph()
    query = graph.placeholder("query")
    for name, kept in (
        ("_scaled_dot_product_efficient_attention", ["output", "log_sumexp"]),
        ("_scaled_dot_product_flash_attention", ["output", "logsumexp", "cum_seq_q", "cum_seq_k", "max_q", "max_k"]),
        ("_scaled_dot_product_flash_attention_for_cpu", ["output", "logsumexp"]),
    ):
        target = getattr(torch.ops.aten, name).default
        call = graph.call_function(target, (query, query, query))
        results = {
            one.name: graph.call_function(operator.getitem, (call, place))
            for place, one in enumerate(target._schema.returns)
        }
        assert [result for result, node in results.items() if not is_undefined(node)] == kept


def test_an_operator_of_narrow_dtypes_alone_runs_in_its_own() -> None:
    def product(a: Tensor, b: Tensor, scale: Tensor) -> Tensor:
        narrow = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
        return torch._scaled_mm(*narrow, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)

    inputs = [torch.randn(16, 32), torch.randn(16, 32), torch.tensor(2.0)]
    graph = cast(CapturedGraph, SimpleNamespace(aten=capture_graph(product, *inputs)))
    (result,) = reference_run(graph, inputs)
    assert result.dtype == torch.float64
    torch.testing.assert_close(result.bfloat16(), product(*inputs))


def test_a_graph_within_the_graph_gives_a_list_of_pythons_own() -> None:
    within, graph = torch.fx.Graph(), torch.fx.Graph()
    given = within.placeholder("given")
    within.output([within.call_function(torch.sin, (given,)), given])
    held = torch.nn.Module()
    held.part = torch.fx.GraphModule({}, within)
    x = graph.placeholder("x")
    mapped = graph.call_function(
        lambda part, x: torch.vmap(part, out_dims=[0, 0])(x),  # type: ignore[arg-type] # what the gradient of flex_attention does
        (graph.get_attr("part"), x),
    )
    graph.output((graph.call_function(operator.getitem, (mapped, 0)),))
    whole = cast(CapturedGraph, SimpleNamespace(aten=torch.fx.GraphModule(held, graph)))
    value = torch.randn(3, 4)
    torch.testing.assert_close(reference_run(whole, [value])[0], value.double().sin())
