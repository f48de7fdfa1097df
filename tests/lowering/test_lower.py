"""What lowering promises beside values: how many nodes, which loops, which names, and what becomes of the rest."""

from __future__ import annotations

import operator
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.compile import Planned, Target, generate, plan
from compiler.compile import lower as lower_graph
from compiler.devices import device_for
from compiler.ir import interpret
from compiler.ir.nodes import ExternNode, LoopGraph, LoopNode
from compiler.lowering.lower import lower
from compiler.lowering.registry import LOWERINGS
from compiler.lowering.unsupported import LoweringError, UnsupportedGraph
from compiler.options import Options
from tests.lowering.checks import aten_graph, fallbacks, lowered


def names(graph: LoopGraph) -> list[str]:
    return [node.name for node in graph.nodes]


def loops(graph: LoopGraph) -> list[LoopNode]:
    return [node for node in graph.nodes if isinstance(node, LoopNode)]


def test_softmax_is_two_reductions_and_three_pointwise_nodes() -> None:
    graph = lowered(lambda x: x.softmax(-1), torch.randn(64, 512))
    assert [node.is_reduction for node in loops(graph)] == [True, False, False, True, False]
    assert len(graph.nodes) == 5


def test_layer_norm_is_a_variance_in_two_passes_and_four_pointwise_nodes() -> None:
    graph = lowered(lambda x: F.layer_norm(x, (512,)), torch.randn(64, 512))
    assert [node.is_reduction for node in loops(graph)] == [True, True, False, False, False, False]
    assert names(graph)[:2] == ["var_mean_mean", "var_mean"]


def test_contiguous_loops_merge_into_one_variable() -> None:
    graph = lowered(torch.sin, torch.randn(4, 6, 8))
    (node,) = loops(graph)
    assert [(dim.name, dim.size) for dim in node.x_dims] == [("x0", 192)]
    assert str(node.body) == f"v0 = load {graph.inputs[0]}[x0]\nv1 = sin v0\nstore sin[x0] = v1"


def test_loops_follow_the_memory_of_the_result() -> None:
    (node,) = loops(lowered(torch.sin, torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)))
    assert [dim.size for dim in node.x_dims] == [120]
    (node,) = loops(lowered(lambda x: x.sum(), torch.randn(5, 7).t()))
    assert [dim.size for dim in node.r_dims] == [35]


def test_views_and_constants_are_no_nodes() -> None:
    def function(x: Tensor) -> Tensor:
        mask = torch.ones(8, 8, dtype=torch.bool).tril()
        return x.view(4, 8, 8).transpose(1, 2).masked_fill(~mask, 0.0)

    graph = lowered(function, torch.randn(4, 64))
    assert len(graph.nodes) == 1


def test_every_reader_keeps_its_own_node() -> None:
    """Whether to compute `exp` twice is the scheduler's choice, so it is one node however many read it."""
    graph = lowered(lambda x: (x.exp() + 1, x.exp().sum(0)), torch.randn(4, 8))
    assert len(graph.nodes) == 3
    graph = lowered(lambda x: (lambda y: (y + 1, y * 2, y.sum()))(x.exp()), torch.randn(4, 8))
    assert len(graph.nodes) == 4


def test_reduction_over_one_element_is_pointwise() -> None:
    (node,) = loops(lowered(lambda x: x.sum(1), torch.randn(5, 1)))
    assert not node.is_reduction and not node.r_dims


def test_output_that_is_an_input_is_a_view_of_it() -> None:
    graph = lowered(lambda x: (x, x.t(), x + 1), torch.randn(3, 4))
    assert graph.outputs[0].buffer == graph.outputs[1].buffer == graph.inputs[0]
    layout = graph.outputs[1].layout
    assert layout is not None and layout.stride == (1, 4)
    assert len(graph.nodes) == 1


def test_two_outputs_of_one_value_are_one_tensor() -> None:
    graph = lowered(lambda x: (lambda y: (y, y))(x.flip(0)), torch.randn(3, 4))
    first, second = graph.outputs
    assert len(graph.nodes) == 1 and second == replace(first, repeats=0)


def test_library_calls_take_strided_views() -> None:
    graph = lowered(lambda a, b: a @ b.t(), torch.randn(3, 4), torch.randn(5, 4))
    (node,) = graph.nodes
    assert isinstance(node, ExternNode) and not node.is_fallback and node.reason
    assert node.tensor_arguments[1].layout.stride == (1, 4)


def test_unknown_operator_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(LOWERINGS, torch.ops.aten.flip.default)
    graph = lowered(lambda x: x.flip(0).relu(), torch.randn(3, 4))
    assert fallbacks(graph) == ["aten.flip.default: There is no lowering of ours for aten.flip."]


def test_case_that_a_lowering_does_not_cover_falls_back_and_says_why() -> None:
    graph = lowered(lambda x: torch.complex(x, x).exp().real + x, torch.randn(3, 4))
    assert any("does not cover this case" in reason for reason in fallbacks(graph))
    assert len(interpret.run(graph, [torch.randn(3, 4)])) == 1


def test_graph_that_writes_to_its_input_is_refused() -> None:
    graph = aten_graph(lambda x: x + 1, [torch.randn(3)])
    node = next(node for node in graph.graph.nodes if node.op == "call_function")
    node.target = torch.ops.aten.add_.Scalar
    with pytest.raises(LoweringError, match="not functional"):
        lower(graph)


def test_lines_and_origins_reach_the_nodes() -> None:
    graph = aten_graph(lambda x: x.var(0), [torch.randn(3, 4)])
    for node in graph.graph.nodes:
        node.meta["lines"] = (7,)
    for loop in loops(lower(graph)):
        assert loop.lines == (7,) and loop.origins == ("var",)


def test_what_lies_on_another_device_is_moved() -> None:
    with FakeTensorMode():
        x, scalar, index = torch.empty(4, 5, device="cuda"), torch.tensor(2.0), torch.zeros(3, dtype=torch.int64)
        pick = torch.ops.aten.index.Tensor
        gm = make_fx(lambda x, scalar, index: (x * scalar, pick(x, [index]) + 1))(x, scalar, index)
    graph = lower(gm)
    assert names(graph) == ["scalar_1_moved", "mul", "index_moved", "index", "add"]
    calls = [node.target for node in graph.nodes if isinstance(node, ExternNode)]
    assert calls == [torch.ops.aten._to_copy.default] * 2


def test_an_expanded_formula_reaches_a_library_call_with_each_element_once() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        mask = F.pad(torch.arange(6).float().view(1, 6) * 2, (0, 2))[:, :6].expand(3, 6)
        return torch.sort(mask, dim=1, descending=True)[0] + x

    graph = lowered(function, torch.ones(6))
    (call,) = [node for node in graph.nodes if isinstance(node, ExternNode)]
    (argument,) = call.tensor_arguments
    assert argument.layout.stride[0] == 0 and graph.buffers[argument.buffer].shape == (1, 6)
    (result,) = interpret.run(graph, [torch.ones(6)])
    torch.testing.assert_close(result, function(torch.ones(6)))


def test_a_result_lies_where_eager_has_it() -> None:
    """A range on the CPU is a formula for a kernel on the GPU, and a tensor of the CPU for the caller."""
    with FakeTensorMode():
        x = torch.empty(4, device="cuda")
        gm = make_fx(lambda x: (x + torch.arange(4).to(x.device), torch.arange(4)))(x)
    graph = lower(gm)
    (copy,) = [node for node in graph.nodes if isinstance(node, ExternNode) and node.keywords["device"].type == "cpu"]
    assert graph.outputs[1].buffer == copy.name


def test_a_result_without_elements_is_made_by_no_node() -> None:
    """A call that allocates it would count as a kernel, and eager mode launches none."""

    def function(x: Tensor) -> list[Tensor]:
        return [x[:0] + 1, x[:, :0] * 2, (x[0, :0] > 0).int(), torch.cat([x[:0], x[:0]]).sum(1)]

    x = torch.randn(4, 6)
    graph = lowered(function, x)
    assert graph.nodes == []
    expected = [(one.shape, one.stride(), one.dtype) for one in function(x)]
    for results in (interpret.run(graph, [x]), torch.compile(function, backend="fusionscope")(x)):
        assert [(one.shape, one.stride(), one.dtype) for one in results] == expected


@pytest.mark.parametrize("stride", [(4, 12, 1), (5, 20, 10), (7, 1, 3), (1, 1, 1)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 12), (1, 5, 1)])
def test_a_result_elsewhere_is_copied_there_and_read_by_no_kernel(
    shape: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    """With gaps between its elements it is copied whole, which keeps its strides."""
    with FakeTensorMode():
        x = torch.empty(5, device="cuda")
        gm = make_fx(lambda x: x.new_empty_strided(shape, stride, device="cpu"))(x)
    graph = lower(gm)
    assert [isinstance(node, LoopNode) for node in graph.nodes] == [True, False]
    (output,) = graph.outputs
    assert output.buffer == graph.nodes[1].name and output.layout is not None
    if stride == (4, 12, 1):
        assert all(size == 1 or a == b for size, a, b in zip(shape, output.layout.stride, stride, strict=True))


def test_a_size_that_pytorch_guesses_is_refused() -> None:
    """Before 2.13, torch's fake `_unique` says one element, which a kernel would take for the truth."""
    fake = FakeTensorMode()
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    unique = graph.call_function(torch.ops.aten._unique.default, (x,))
    first = graph.call_function(operator.getitem, (unique, 0))
    graph.output((first,))
    with fake:
        x.meta["val"], one = torch.empty(5), torch.empty(1)
    unique.meta["val"], first.meta["val"] = (one, one), one
    with pytest.raises(UnsupportedGraph, match="known only when it has run"):
        lower(torch.fx.GraphModule({}, graph))


def on_streams(x: Tensor) -> Tensor:
    y = x.sin()
    torch.ops.streams.fork(0, 1)
    z = y.cos()
    torch.ops.streams.join(1, 0)
    return z * 2


def test_calls_about_streams_are_planned_and_not_run() -> None:
    """Kernels of both sides were fused, and the change of stream came after them."""
    if not hasattr(torch.ops.streams, "fork"):
        pytest.skip("this release of torch keeps streams out of graphs")
    with FakeTensorMode():
        graph = make_fx(on_streams)(torch.empty(64))
    refuses_to_run(planned(graph))


def test_nodes_of_different_streams_share_no_kernel_and_are_not_run() -> None:
    """Without a wait in the graph, all of it ran on the stream of the call, which nothing outside waits for."""
    with FakeTensorMode():
        graph = make_fx(lambda x: ((y := x.sin()).cos() + x.sin(), y * 2, x.cos().sum()))(torch.empty(64))
    for node in graph.graph.nodes:
        if node.name in ("cos", "sin_1"):
            node.meta["custom"] = {"stream": 0}
    compilation = planned(graph)
    for unit in compilation.schedule.units:
        assert len({member.node.stream for member in unit.members}) == 1  # type: ignore[union-attr]
    across = [d for d in compilation.schedule.decisions if d.reason == "kind.other_stream"]
    assert {("sin", "cos"), ("cos", "add")} <= {(d.a, d.b) for d in across}
    refuses_to_run(compilation)


def planned(graph: torch.fx.GraphModule) -> Planned:
    return plan(lower_graph(graph, Target(torch.device("cpu"), device_for("sm_90"), Options())))


def refuses_to_run(compilation: Planned) -> None:
    with pytest.raises(UnsupportedGraph, match="several streams"):
        generate(compilation, wants_triton=False)


# --- random numbers


def test_dropout_draws_seeds_once_and_repeats_by_manual_seed() -> None:
    x = torch.ones(100, 100)
    graph = lowered(lambda x: (F.dropout(x, 0.25), torch.rand_like(x), torch.randn_like(x)), x)
    assert not fallbacks(graph) and names(graph).count("seeds") == 1
    assert graph.buffers["seeds"].shape == (3,)
    torch.manual_seed(1)
    first = interpret.run(graph, [x])
    second = interpret.run(graph, [x])
    torch.manual_seed(1)
    again = interpret.run(graph, [x])
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    dropped, uniform, normal = first
    assert abs((dropped == 0).float().mean() - 0.25) < 0.02
    torch.testing.assert_close(dropped.unique(), torch.tensor([0.0, 1 / 0.75]))
    assert abs(uniform.mean() - 0.5) < 0.01 and 0 <= uniform.min() and uniform.max() < 1
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03


def test_whole_numbers_are_drawn_evenly_from_few_and_from_many() -> None:
    def draw(x: Tensor) -> tuple[Tensor, ...]:
        few, many = torch.randint(3, 8, (20000,)), torch.randint(-(2**31), 2**31, (20000,))
        return few, many, torch.empty(20000, dtype=torch.uint8).random_(), torch.empty(20000).random_()

    graph = lowered(draw, torch.ones(1))
    assert not fallbacks(graph)
    torch.manual_seed(0)
    few, many, small, floats = interpret.run(graph, [torch.ones(1)])
    assert few.unique().tolist() == [3, 4, 5, 6, 7] and int(few.bincount(minlength=8)[3:].min()) > 3700
    assert len(many.unique()) > 19990 and abs(float(many.double().mean()) / 2**31) < 0.02
    # Every digit of the numbers takes part.
    assert all(0.47 < float((many >> place & 1).double().mean()) < 0.53 for place in range(32))
    assert small.unique().tolist() == list(range(128)) or small.unique().tolist() == list(range(256))
    assert floats.max() <= 2**24 and floats.max() > 2**23


def test_draws_of_uncertain_length_are_library_calls_that_repeat_by_manual_seed() -> None:
    weights = torch.tensor([0.1, 0.0, 0.7, 0.2])
    graph = lowered(lambda w: (torch.multinomial(w, 3), torch.randperm(50), torch.poisson(w * 9)), weights)
    assert not fallbacks(graph) and sum(isinstance(node, ExternNode) for node in graph.nodes) == 3
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append(interpret.run(graph, [weights]))
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    assert sorted(runs[0][0].tolist()) == [0, 2, 3] and sorted(runs[0][1].tolist()) == list(range(50))


def test_random_slopes_lie_between_the_bounds_and_are_those_of_the_gradient() -> None:
    x = torch.linspace(-1, 1, 4000)

    def slopes(x: Tensor) -> tuple[Tensor, Tensor]:
        result, noise = torch.ops.aten.rrelu_with_noise_functional(x, torch.empty_like(x), 0.1, 0.3, True)
        return result, torch.ops.aten.rrelu_with_noise_backward(torch.ones_like(x), x, noise, 0.1, 0.3, True, False)

    graph = lowered(slopes, x)
    assert not fallbacks(graph)
    result, slope = interpret.run(graph, [x])
    torch.testing.assert_close(result, x * slope)
    assert (slope[x > 0] == 1).all()
    drawn = slope[x <= 0]
    assert 0.1 <= drawn.min() and drawn.max() <= 0.3
    assert abs(drawn.mean() - 0.2) < 0.01 and abs(drawn.std() - 0.2 / 12**0.5) < 0.005


def test_philox_gives_the_published_words() -> None:
    """Known answers of Random123's Philox 4x32-10 and 4x32-7 for key and counter zero."""
    zero = torch.zeros(1, dtype=torch.int64)
    words = {rounds: [hex(int(word)) for word in interpret.philox(zero, zero, rounds)] for rounds in (10, 7)}
    assert words[10] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert words[7] == ["0x5f6fb709", "0xd893f64", "0x4f121f81", "0x4f730a48"]


# --- whole models, forward and backward, as AOTAutograd hands them over


def test_training_step_matches_eager() -> None:
    from torch._dynamo.backends.common import aot_autograd

    from compiler.lowering.decompositions import decompositions

    graphs: list[LoopGraph] = []

    def compile_graph(gm: torch.fx.GraphModule, example_inputs: list[Tensor]) -> object:
        graph = lower(gm)
        graphs.append(graph)

        def run(inputs: list[Tensor]) -> list[Tensor]:
            return interpret.run(graph, inputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Embedding(11, 8),
        torch.nn.Linear(8, 16),
        torch.nn.GELU(),
        torch.nn.LayerNorm(16),
        torch.nn.Linear(16, 5),
    )
    tokens, target = torch.randint(0, 11, (6,)), torch.randint(0, 5, (6,))

    def loss(tokens: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(model(tokens), target)

    expected = loss(tokens, target)
    torch.autograd.backward(expected)
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    backend = aot_autograd(fw_compiler=compile_graph, decompositions=decompositions())
    ours = torch.compile(loss, backend=backend)(tokens, target)
    torch.autograd.backward(ours)
    torch.testing.assert_close(ours, expected)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    assert len(graphs) == 2
    assert not [reason for graph in graphs for reason in fallbacks(graph)]


def test_an_index_outside_of_the_table_stays_inside_of_its_memory() -> None:
    table = torch.arange(12.0).reshape(4, 3)
    outside = torch.tensor([0, 3, 4, 1 << 40, -4, -5, -(1 << 40)])
    graph = lowered(lambda t, i: torch.nn.functional.embedding(i, t), table, outside)
    (rows,) = interpret.run(graph, [table, outside])
    # Of numbers beyond 32 bits the lower half counts.
    assert torch.equal(rows, table[[0, 3, 3, 0, 0, 0, 0]])


def test_zeros_without_memory_are_no_library_call() -> None:
    """Forward-mode differentiation leaves some in graphs, and a kernel cannot read what has no memory."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    zeros = graph.call_function(torch.ops.aten._efficientzerotensor.default, ([3],), {"device": torch.device("cpu")})
    total = graph.call_function(torch.ops.aten.add.Tensor, (x, zeros))
    graph.output((total,))
    with FakeTensorMode():
        for node in (x, zeros, total):
            node.meta["val"] = torch.empty(3)
    given = lower(torch.fx.GraphModule(torch.nn.Module(), graph))
    assert fallbacks(given) == []
    values = torch.randn(3)
    assert torch.equal(interpret.run(given, [values])[0], values)
