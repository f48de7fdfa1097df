"""Products of sizes that eight does not divide are padded, and nothing that a caller sees is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.backend import fusionscope
from compiler.compile import Built, observed_compilations
from compiler.devices import H200
from compiler.ir.library_calls import ALIGNED_ELEMENTS
from compiler.ir.nodes import ExternNode
from compiler.lowering.decompositions import decompositions
from compiler.options import Options
from compiler.passes.padding import decide
from compiler.passes.padding.choice import PaddingChoice
from compiler.passes.price import WORTH
from compiler.pipeline import explore
from compiler.runtime.checking.judge import is_correct

WORDS, WIDTH, ROWS = 53, 16, 24
aten = torch.ops.aten


def scores(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy((x @ table.t()).view(2, -1, WORDS).flatten(0, 1), targets)


def shown(x: Tensor, table: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    logits = x @ table.t()
    return F.cross_entropy(logits, targets), logits


def with_bias(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(x, table, table[:, 0]), targets)


def squared(x: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return ((x @ table.t()).tanh() * targets[:, None]).square().sum()


def inputs() -> list[Tensor]:
    torch.manual_seed(0)
    x, table = torch.randn(ROWS, WIDTH).bfloat16(), torch.randn(WORDS, WIDTH).bfloat16()
    return [x.requires_grad_(), table.requires_grad_(), torch.randint(0, WORDS, (ROWS,))]


@pytest.fixture
def padded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products on the CPU are padded too, whatever that costs."""
    monkeypatch.setattr(decide, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(decide, "FEWEST", 0)
    monkeypatch.setattr(decide, "WORTH", math.inf)
    monkeypatch.setattr(decide, "device_for", lambda _: H200)
    monkeypatch.setattr("compiler.compile.device_for", lambda _: H200)


def train(function: Any) -> tuple[Any, list[Tensor], list[Built]]:
    graphs: list[Built] = []
    torch._dynamo.reset()
    given = inputs()
    with observed_compilations(graphs.append):
        result = torch.compile(function, backend=fusionscope)(*given)
        (result[0] if isinstance(result, tuple) else result).backward()
    return result, [tensor.grad for tensor in given[:2] if tensor.grad is not None], graphs


def sizes_of_products(graph: Built) -> set[int]:
    calls = [node for node in graph.loops.nodes if isinstance(node, ExternNode) and node.target is aten.mm.default]
    return {int(size) for call in calls for tensor in call.tensor_arguments for size in tensor.layout.shape}  # type: ignore[arg-type]


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize("function", [scores, shown, with_bias, squared])
def test_padded_products_of_a_training_step_give_what_eager_gives(function: Callable[..., Any]) -> None:
    result, gradients, graphs = train(function)
    assert all(size % ALIGNED_ELEMENTS == 0 for graph in graphs for size in sizes_of_products(graph))
    if function is scores:
        padding = [one for one in graphs[1].groups if any("constant_pad" in member.name for member in one.members)]
        assert all(len(one.members) > 1 for one in padding), "padded by the loop that makes it, and copied nowhere"
        assert any(layout.shape == (ROWS, 56) for layout in graphs[1].loops.buffers.values())
    given = inputs()
    expected = function(*given)
    loss = expected[0] if isinstance(expected, tuple) else expected
    loss.backward()
    exact = [tensor.detach().double().requires_grad_(tensor.requires_grad) for tensor in given[:2]]
    reference = function(*exact, given[2])
    (reference[0] if isinstance(reference, tuple) else reference).backward()
    for own, eager, true in zip(gradients, given, exact, strict=False):
        assert eager.grad is not None and true.grad is not None
        assert own.stride() == eager.grad.stride() and own.shape == eager.grad.shape
        error, allowed = (own - true.grad).norm(), 2 * (eager.grad - true.grad).norm()
        assert error <= allowed + 4e-3 * true.grad.norm()
    if isinstance(expected, tuple):
        assert result[1].stride() == expected[1].stride()
        torch.testing.assert_close(result[1], expected[1])


def added(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, table, bias)


def in_parts(x: Tensor, table: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    logits = F.linear(x.view(2, -1, x.shape[-1]), table, bias)
    return logits, logits[:, -1]


def consumed(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(F.linear(x, table, bias).float(), -1)


def both_sides(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    """A sum over 53 elements of rows: the second product is padded inside."""
    return torch.tanh(F.linear(x, table, bias)) @ table


def whole(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    return x @ table.t()


def of_columns(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    """Every matrix lies transposed: rows count, and the inner size does not."""
    return torch.addmm(x[:1].t(), table.t(), bias[:, None] * table[:, :3], beta=2, alpha=3)


def with_itself(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    """Both operands of the second product are cut from the first one's result."""
    scores = F.linear(x, table, bias)
    return scores.t() @ scores


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize("function", [added, whole, in_parts, consumed, both_sides, of_columns, with_itself])
def test_padded_products_of_a_forward_pass_give_what_eager_gives(function: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    given = [torch.randn(ROWS, WIDTH).bfloat16(), torch.randn(WORDS, WIDTH).bfloat16(), torch.randn(WORDS).bfloat16()]
    graphs: list[Built] = []
    torch._dynamo.reset()
    with observed_compilations(graphs.append), torch.no_grad():
        result = torch.compile(function, backend=fusionscope)(*given)
    assert graphs[0].paddings and all(choice.verdict == "padded" for choice in graphs[0].paddings)
    expected = function(*given)
    exact = function(*(tensor.double() for tensor in given))
    as_list = (list(results) if isinstance(results, tuple) else [results] for results in (result, expected, exact))
    for own, eager, true in zip(*as_list, strict=True):
        assert (own.shape, own.stride()) == (eager.shape, eager.stride())
        assert (own - true).norm() <= 2 * (eager - true).norm() + 4e-3 * true.norm()
    if function is in_parts:
        assert result[0].data_ptr() <= result[1].data_ptr() < result[0].data_ptr() + 2 * result[0].numel()


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize(("function", "words"), [(added, 53), (in_parts, 50), (whole, 53), (whole, 50), (whole, 17)])
def test_what_a_caller_gets_may_be_computed_by_rows_that_lie_apart(
    function: Callable[..., Any], words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "apart_us", lambda *_: -1e6)
    torch.manual_seed(0)
    given = [torch.randn(shape).bfloat16() for shape in ((ROWS, WIDTH), (words, WIDTH), (words,))]
    graphs: list[Built] = []
    torch._dynamo.reset()
    with observed_compilations(graphs.append), torch.no_grad():
        found = torch.compile(function, backend=fusionscope)(*given)
    (choice,) = graphs[0].paddings
    assert choice.verdict == "apart" and choice.sizes == choice.padded
    expected, exact = function(*given), function(*(tensor.double() for tensor in given))
    assert is_correct(found, exact, expected)
    for own, eager in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        assert own.stride() == eager.stride()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, table, bias: F.linear(x, table, bias).exp(),  # which a wider result serves as well
        lambda x, table, bias: F.linear(
            x.t().contiguous().t(), table
        ),  # rows in whole vectors, but of the wrong matrix
        lambda x, table, bias: twice_the_bias(x, table, bias),
        lambda x, table, bias: torch.mm(x, table.t().contiguous()),
    ],
)
def test_no_other_product_is_computed_by_rows_that_lie_apart(function: Callable[..., Any]) -> None:
    assert not any(choice.verdict == "apart" for choice in weighed(function, (16384, 768, 30522)))


def weighed(
    function: Callable[..., Any], sizes: tuple[int, int, int], dtype: torch.dtype = torch.bfloat16, **knobs: Any
) -> tuple[PaddingChoice, ...]:
    """What is decided for an H200 of the products of `function` of x, a weight and a bias of large sizes."""
    rows, inner, columns = sizes
    with FakeTensorMode():
        given = [torch.empty(shape, dtype=dtype) for shape in ((rows, inner), (columns, inner), (columns,))]
        graph = make_fx(function, decompositions())(*given)
    return decide.pad_products(graph, H200, Options(knobs=knobs))[1]


def twice_the_bias(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, x, table.t(), beta=2)


def read_once(x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, table).argmax(-1)


@pytest.mark.parametrize(
    ("function", "sizes", "reason"),
    [
        (added, (16384, 768, 30522), "padding.apart"),
        (whole, (4096, 768, 50257), "padding.apart"),
        (added, (16384, 768, 30528), None),
        (added, (16, 768, 30522), None),
        (added, (16383, 768, 30528), None),
        (read_once, (1024, 768, 50257), "padding.padded"),
        (added, (1 << 22, 768, 3), None),
        (added, (32, 768, 50257), "padding.padded"),
        (added, (1, 1 << 20, 8191), None),
        (added, (16384, 64, 4100), "padding.slower"),
    ],
)
def test_products_are_padded_where_what_is_copied_costs_less(
    function: Callable[..., Any], sizes: tuple[int, int, int], reason: str | None
) -> None:
    found = weighed(function, sizes)
    assert [choice.reason for choice in found] == ([] if reason is None else [reason])
    assert weighed(function, sizes, torch.float32) == ()
    for choice in found:
        assert choice.saved_us is not None
        assert (choice.verdict != "kept") == (choice.saved_us > (1 - WORTH) * choice.numbers["kept_us"])


def test_a_record_says_what_is_copied_and_the_knob_turns_it_off() -> None:
    (returned,), (read,) = weighed(twice_the_bias, (16384, 768, 30522)), weighed(read_once, (16384, 768, 30522))
    assert [copy.what for copy in returned.copies] == ["right", "bias", "result"]
    assert [copy.what for copy in read.copies] == ["right"], "argmax reads the wider result where it lies"
    assert read.copies[0].bytes == 2 * 2 * 768 * 30522
    (apart,) = weighed(added, (16384, 768, 30522))
    assert [copy.what for copy in apart.copies] == ["left", "right"], "which get the bias beside them"
    for function, choice in ((twice_the_bias, returned), (added, apart)):
        (kept,) = weighed(function, (16384, 768, 30522), disable=["padding"])
        assert (kept.reason, kept.saved_us) == ("policy.disabled", choice.saved_us)


def test_the_report_has_the_product_with_its_lines_and_sizes() -> None:
    source = "\n".join((
        "import torch", "@torch.compile", "def program(x, w):", "    return torch.relu(x @ w.t())",
        "x, w = (torch.ones(n, 2048, dtype=torch.bfloat16) for n in (1024, 2049))", "with torch.no_grad():",
        "    program(x, w)",
    ))  # fmt: skip
    options = Options(device="cpu", produce=("capture", "lower", "schedule"))
    (graph,) = explore(source, options).graphs
    (told,) = graph.paddings
    assert (told.verdict, told.product, told.lines) == ("padded", "mm", [4])
    assert (told.sizes, told.padded) == ([1024, 2048, 2049], [1024, 2048, 2056])
    assert [(copy.node, copy.what) for copy in told.copies] == [("w", "right")]
    assert told.product in {node.name for node in graph.aten}
    assert all(loop.lines == [4] for loop in graph.loops), "what was added has the product's line"
    without = explore(source, options.model_copy(update={"rules_off": ("padding",)}))
    assert [(one.verdict, one.reason) for one in without.graphs[0].paddings] == [("kept", "policy.disabled")]
    message = f"1 product is computed as written, where padding was predicted to save {told.predicted_saved_us:.1f} us"
    assert [one.message.split("; ")[1] for one in without.what_if] == [message]


@pytest.mark.usefixtures("padded")
def test_each_graph_of_a_training_step_has_the_records_of_its_products() -> None:
    _, _, graphs = train(scores)
    names = [{node.name for node in graph.loops.nodes} for graph in graphs]
    found = [[choice.nodes[0] for choice in graph.paddings] for graph in graphs]
    assert [len(products) for products in found] == [1, 2]
    assert all(set(products) <= known for products, known in zip(found, names, strict=True))
