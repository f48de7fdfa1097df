"""Bytes moved, tensor by tensor: figures one can check by hand, that agree with each other wherever they are shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.torch_version import TorchVersion

from compiler import report
from compiler.compile import Generated
from compiler.options import Options, Timing
from compiler.pipeline import explore
from compiler.schedule.describe.traffic import describe_traffic
from tests.compile_program import bytes_moved, compile_program

SNIPPETS = Path(__file__).resolve().parents[1] / "snippets"
MATRIX = 4 * 1024 * 1024
keeps_factors = pytest.mark.skipif(
    TorchVersion(torch.__version__) < "2.13", reason="torch 2.11's Dynamo writes a factor as a call of the program"
)


def traffic_of(compilation: Generated) -> report.Traffic:
    return describe_traffic(compilation.schedule, None)


@cache
def explored(name: str) -> report.Report:
    (path,) = SNIPPETS.glob(f"{name}_*.py")
    return explore(path.read_text(), Options(timing=Timing(enabled=False)))


def by_tensor(tensors: list[report.TensorTraffic]) -> dict[str, tuple[int, int]]:
    return {one.tensor: (one.read_bytes, one.written_bytes) for one in tensors}


def softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def two_halves(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.sigmoid(a) * b


def sum_and_product(x: Tensor) -> Tensor:
    y = x.sum(1)
    return y * y.flip(0)


def with_middle(x: Tensor) -> tuple[Tensor, Tensor]:
    middle = torch.sin(x)
    return middle, torch.cos(middle)


def looked_up(table: Tensor, rows: Tensor) -> Tensor:
    return F.embedding(rows, table) * 2


def scattered(x: Tensor, at: Tensor, values: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, at, torch.tanh(values))


def linear(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(x @ w + b)


def rnd(*shape: int) -> Tensor:
    return torch.randn(*shape)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Tensor, ...]]] = [
    (softmax, (rnd(64, 96),)),
    (layer_norm, (rnd(64, 96), rnd(96), rnd(96))),
    (two_halves, (rnd(64, 96),)),
    (sum_and_product, (rnd(64, 96),)),
    (with_middle, (rnd(64, 96),)),
    (looked_up, (rnd(1000, 32), torch.randint(0, 1000, (16,)))),
    (scattered, (rnd(64, 32), torch.randint(0, 64, (100,)), rnd(100, 32))),
    (linear, (rnd(32, 64), rnd(64, 16), rnd(16))),
]


@pytest.mark.parametrize(("function", "inputs"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
def test_what_fusion_saves_is_the_sum_of_what_its_edges_save(
    function: Callable[..., Any], inputs: tuple[Tensor, ...]
) -> None:
    compilation = compile_program(function, *inputs)
    traffic = traffic_of(compilation)
    assert traffic.unfused is not None and traffic.fused is not None and traffic.floor_bytes is not None
    assert traffic.fused.bytes == bytes_moved(compilation)
    saved = traffic.saved_written_bytes + traffic.saved_read_bytes
    assert traffic.unfused.bytes - saved + traffic.more_read_bytes == traffic.fused.bytes
    assert traffic.more_read_bytes == 0
    assert traffic.floor_bytes <= traffic.fused.bytes <= traffic.unfused.bytes
    for execution in (traffic.unfused, traffic.fused):
        assert execution.bytes == sum(launch.bytes for launch in execution.launches)
        for launch in execution.launches:
            assert launch.bytes == sum(one.read_bytes + one.written_bytes for one in launch.tensors)


def test_a_pointwise_chain_by_hand() -> None:
    found = explored("01")
    (graph,) = found.graphs
    traffic = graph.traffic
    assert traffic is not None and traffic.eager is not None and traffic.unfused is not None
    assert traffic.fused is not None
    # sin, cos and relu move two matrices each, two products and a sum three.
    assert traffic.eager.bytes == traffic.unfused.bytes == 15 * MATRIX
    assert [launch.bytes // MATRIX for launch in traffic.eager.launches] == [2, 2, 3, 3, 3, 2]
    assert traffic.fused.bytes == traffic.floor_bytes == 3 * MATRIX
    assert (traffic.saved_written_bytes, traffic.saved_read_bytes) == (5 * MATRIX, 7 * MATRIX)
    assert by_tensor(traffic.floor) == {"u": (MATRIX, 0), "v": (MATRIX, 0), "relu": (0, MATRIX)}
    lines = found.source.splitlines()
    assert "torch.sin" in lines[traffic.eager.launches[0].lines[-1] - 1]


def test_what_eager_mode_launches_is_counted_of_a_function_without_tensors() -> None:
    source = "import torch\n@torch.compile\ndef f():\n    return torch.ones(8).sin() + 1\nf()\n"
    summary = explore(source, Options(device="cpu", timing=Timing(enabled=False))).summary
    # Ones are written, a sine and a sum each read 32 bytes and write as many.
    assert (summary.eager_kernels, summary.eager_bytes) == (3, 5 * 32)


@keeps_factors
def test_what_eager_mode_launches_is_counted_of_the_step_of_an_optimiser() -> None:
    """It changes parameters, which want gradients and which the graph holds itself."""
    source = """
import torch
layer = torch.nn.Linear(8, 4)
optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.randn(2, 8)).sum().backward()
@torch.compile
def step():
    optimiser.step()
step()
"""
    found = explore(source, Options(device="cpu", timing=Timing(enabled=False)))
    # Each call reads a parameter and its gradient, and writes the parameter.
    assert (found.summary.eager_kernels, found.summary.eager_bytes) == (2, 3 * 4 * (32 + 4))


@keeps_factors
def test_a_call_that_dynamo_writes_as_three_is_one_launch_of_eager_mode() -> None:
    """`addcmul_` and `addcdiv_` with a value were counted as a product or quotient, a sum and a copy."""
    source = """
import torch
@torch.compile
def step(p, m, v):
    v.addcmul_(m, m, value=0.5)
    p.addcdiv_(m, v, value=-0.1)
    return p
step(*(torch.rand(8, 4) for _ in range(3)))
"""
    (graph,) = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule"))).graphs
    assert graph.traffic is not None and graph.traffic.eager is not None
    moved = [(launch.name, launch.bytes, launch.lines) for launch in graph.traffic.eager.launches]
    assert moved == [("aten.addcmul_", 3 * 4 * 32, [5]), ("aten.addcdiv_", 4 * 4 * 32, [6])]


def test_eager_mode_copies_no_gradient_that_goes_on_to_another_graph() -> None:
    """Only a leaf keeps its gradient. That of `y`, which the first graph made, was copied in the second one."""
    source = """
import torch
@torch.compile
def program(x, w):
    y = w.exp()
    return y + x.sum().item()
program(torch.rand(8, 4), torch.rand(8, 4, requires_grad=True)).sum().backward()
"""
    found = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule")))
    moved = {
        graph.name: [launch.name for launch in graph.traffic.eager.launches]
        for graph in found.graphs
        if graph.traffic is not None and graph.traffic.eager is not None and graph.phase == "backward"
    }
    assert moved == {"graph_1_backward": [], "graph_0_backward": ["aten.mul.Tensor"]}


@pytest.mark.parametrize("name", ["01", "08", "09", "11", "19"])
def test_every_place_of_a_report_shows_the_same_bytes(name: str) -> None:
    found = explored(name)
    for graph in found.graphs:
        assert graph.traffic is not None and graph.traffic.fused is not None
        fused = graph.traffic.fused
        assert [launch.bytes for launch in fused.launches] == [kernel.bytes for kernel in graph.kernels]
        assert [launch.name for launch in fused.launches] == [kernel.name for kernel in graph.kernels]
        assert graph.floor_bytes == graph.traffic.floor_bytes
        eager = graph.traffic.eager
        assert eager is not None
        assert (graph.eager_kernels, graph.eager_bytes) == (len(eager.launches), eager.bytes)
    moved = [graph.traffic.fused.bytes for graph in found.graphs if graph.traffic and graph.traffic.fused]
    assert found.summary.bytes == sum(moved)
    unfused = [graph.traffic.unfused.bytes for graph in found.graphs if graph.traffic and graph.traffic.unfused]
    assert found.summary.unfused_bytes == sum(unfused)


def attention_of_one_product(x: Tensor, w: Tensor) -> Tensor:
    q, k, v = (x @ w).view(2, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v)


def test_a_library_call_reads_each_of_the_views_that_it_is_given() -> None:
    traffic = traffic_of(compile_program(attention_of_one_product, rnd(2 * 64, 32), rnd(32, 3 * 64)))
    assert traffic.fused is not None
    product, attention = traffic.fused.launches
    (result,) = (one for one in product.tensors if one.written_bytes)
    assert by_tensor(attention.tensors)[result.tensor] == (result.written_bytes, 0)


def fates(traffic: report.Traffic) -> dict[tuple[str, str], str]:
    return {(edge.tensor, edge.consumer): edge.fate for edge in traffic.edges}


def test_an_edge_says_whether_its_tensor_reached_memory() -> None:
    # The sum is read backwards, so that the product is a kernel of its own.
    assert fates(traffic_of(compile_program(sum_and_product, rnd(64, 96)))) == {
        ("x", "sum_1"): "memory",
        ("sum_1", "mul"): "memory",
    }
    assert fates(traffic_of(compile_program(with_middle, rnd(64, 96))))["sin", "cos"] == "read_saved"
    found = fates(traffic_of(compile_program(softmax, rnd(64, 96))))
    assert (found["x", "amax"], found["x", "sub"]) == ("memory", "shared_read")
    assert {found["amax", "sub"], found["exp", "sum_1"], found["exp", "div"]} == {"register"}


def times_itself_in_reverse(x: Tensor) -> Tensor:
    y = torch.softmax(x, -1)
    return y * torch.flip(y, (0,))


def test_a_value_that_is_computed_again_is_not_written() -> None:
    compilation = compile_program(times_itself_in_reverse, rnd(64, 32))
    traffic = traffic_of(compilation)
    edge = next(one for one in traffic.edges if one.fate == "recomputed")
    assert traffic.unfused is not None and traffic.fused is not None
    assert compilation.memory.buffers[edge.tensor].fate == "register"
    assert edge.written_bytes == edge.read_bytes == edge.saved_read_bytes
    # Its reader takes what it is computed from instead.
    saved = traffic.saved_written_bytes + traffic.saved_read_bytes
    assert traffic.unfused.bytes - saved + traffic.more_read_bytes == traffic.fused.bytes
    assert traffic.more_read_bytes > 0


def test_the_floor_counts_what_is_used_of_an_input() -> None:
    table, rows = rnd(50_000, 64), torch.randint(0, 50_000, (32,))
    looked = traffic_of(compile_program(looked_up, table, rows))
    assert by_tensor(looked.floor)["table"] == (32 * 64 * 4, 0)
    halves = traffic_of(compile_program(two_halves, rnd(64, 96)))
    assert by_tensor(halves.floor)["x"] == (64 * 96 * 4, 0)
    first = traffic_of(compile_program(lambda x: torch.sin(x[:8]) + torch.cos(x[:8]).flip(1), rnd(64, 96)))
    assert by_tensor(first.floor)["x"] == (8 * 96 * 4, 0)


def test_the_floor_has_no_tensor_that_moves_nothing() -> None:
    traffic = traffic_of(compile_program(lambda x: (x.sin(), x.sum(0)), rnd(0, 8)))
    (written,) = traffic.floor
    assert (written.read_bytes, written.written_bytes) == (0, 8 * 4) and traffic.floor_bytes == 8 * 4


def test_rows_that_several_read_count_once() -> None:
    """Rows 2 to 9 and rows 4 to 11 are ten rows, for eager, for one kernel and for any compiler."""
    source = """import torch
@torch.compile
def f(x, w):
    return x[2:10] * x[4:12], w[8:24] @ w[4:20], x[20:40].unfold(0, 4, 2).sum(-1)
f(torch.randn(64, 128), torch.randn(64, 16))
"""
    made = explore(source, Options(produce=("capture", "lower", "schedule"), rules_off=("batch",)))
    traffic = made.graphs[0].traffic
    assert traffic is not None and traffic.eager is not None and traffic.fused is not None
    read_of_x, read_of_w = (10 + 20) * 128 * 4, 20 * 16 * 4
    for execution in (traffic.eager, traffic.unfused, traffic.fused):
        assert execution is not None
        read = [one for launch in execution.launches for one in launch.tensors if one.read_bytes]
        assert sum(one.read_bytes for one in read if one.tensor.endswith(("x", "x_"))) == read_of_x
        assert sum(one.read_bytes for one in read if one.tensor.endswith(("w", "w_"))) == read_of_w
    assert by_tensor(traffic.floor)["x"] == (read_of_x, 0) and by_tensor(traffic.floor)["w"] == (read_of_w, 0)
    assert (traffic.floor_bytes or 0) <= traffic.eager.bytes


EAGER = """
import torch
import torch.nn.functional as F

@torch.compile
def f(table, rows, x):
    found = F.embedding(rows, table)
    nothing = torch.zeros_like(x)
    nothing.copy_(x)
    return found.sum() + nothing.sum()

f(torch.randn(1000, 64), torch.randint(0, 1000, (8,)), torch.randn(128))
"""


def test_eager_reads_what_it_needs() -> None:
    (graph,) = explore(EAGER, Options(timing=Timing(enabled=False))).graphs
    assert graph.traffic is not None and graph.traffic.eager is not None
    calls = {launch.name: by_tensor(launch.tensors) for launch in graph.traffic.eager.launches}
    assert calls["aten.embedding"] == {
        "l_table_": (8 * 64 * 4, 0),
        "l_rows_": (8 * 8, 0),
        "found": (0, 8 * 64 * 4),
    }
    assert calls["aten.zeros_like"] == {"nothing": (0, 512)}
    assert calls["aten.copy_"] == {"nothing": (0, 512), "l_x_": (512, 0)}


def test_eager_and_kernels_read_views_of_one_tensor_alike() -> None:
    """Windows, neighbours and halves of a tensor, and the tensor beside its transpose: no element is read twice."""
    source = """import torch
@torch.compile
def f(x, y):
    return x @ x.t(), x[1:] - x[:-1], x.unfold(0, 4, 2).sum(-1), x[:, :4] * x[:, 4:], y[::2].expand(3, 10) + 1
f(torch.randn(16, 8), torch.randn(20))
"""
    made = explore(source, Options(produce=("capture", "lower", "schedule")))
    traffic = made.graphs[0].traffic
    assert traffic is not None and traffic.eager is not None and traffic.unfused is not None
    read = [sum(one.read_bytes for one in launch.tensors) for launch in traffic.eager.launches]
    assert read == [4 * 16 * 8] * 4 + [4 * 10]
    assert [launch.bytes for launch in traffic.eager.launches] == [launch.bytes for launch in traffic.unfused.launches]


@pytest.mark.parametrize(("expression", "rows"), [("x[:, 2:10] * x[:, 4:12]", 64), ("x[:8, 2:10] @ x[:8, 4:12]", 8)])
def test_columns_that_overlap_are_read_once(expression: str, rows: int) -> None:
    """Columns 2 to 9 and 4 to 11 are ten columns, in eager mode, in a kernel, in a library call and in the floor."""
    source = f"import torch\n@torch.compile\ndef f(x):\n    return {expression}\nf(torch.randn(64, 1024))\n"
    traffic = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule"))).graphs[0].traffic
    assert traffic is not None
    for way in (traffic.eager, traffic.unfused, traffic.fused):
        assert way is not None and len(way.launches) == 1
        assert sum(one.read_bytes for one in way.launches[0].tensors) == 4 * rows * 10
    assert by_tensor(traffic.floor)["x"] == (4 * rows * 10, 0)


@pytest.mark.parametrize("index", ["i", "i.long() + 1", "torch.arange(12) * 2", "i[j]", "i, :, None"])
def test_rows_that_are_picked_once_for_all_of_a_batch_are_read_once(index: str) -> None:
    """Twelve rows of a table are added to each of four matrices. Each matrix was said to read them anew."""
    source = f"""import torch
@torch.compile
def f(x, w, i, j):
    return x + w[{index}].view(12, 32)
f(torch.randn(4, 12, 32), torch.randn(64, 32), torch.randint(0, 60, (12,)).int(), torch.randint(0, 12, (12,)))
"""
    traffic = explore(source, Options(device="cpu", produce=("capture", "lower", "schedule"))).graphs[0].traffic
    assert traffic is not None and traffic.fused is not None and len(traffic.fused.launches) == 1
    assert by_tensor(traffic.fused.launches[0].tensors)["w"] == (4 * 12 * 32, 0)
    assert by_tensor(traffic.floor)["w"] == (4 * 12 * 32, 0)


def test_calls_of_a_backward_pass_lead_to_the_lines_that_they_are_for() -> None:
    (graph,) = (graph for graph in explored("08").graphs if graph.phase == "backward")
    assert graph.traffic is not None and graph.traffic.eager is not None
    launches = graph.traffic.eager.launches
    assert launches and all(launch.lines for launch in launches if launch.node)
    assert sum(launch.node is not None for launch in launches) >= len(launches) - 2
    assert "gradient" in by_tensor(launches[0].tensors)


def test_memory_is_told_kernel_by_kernel() -> None:
    (graph,) = explored("01").graphs
    memory = graph.memory
    assert memory is not None
    assert len(memory.live_bytes) == len(graph.kernels) + 1 and max(memory.live_bytes) == memory.peak_bytes
    assert len(memory.unfused_live_bytes) == len(graph.loops) + 1
    assert max(memory.unfused_live_bytes) == memory.unfused_peak_bytes
    # The product is written over the cosine, the sum over the product, and so on.
    taken = {one.name: one.takes_over for one in memory.unfused_buffers if one.takes_over}
    assert taken == {"mul": "cos", "add": "mul", "mul_1": "add"}
    assert {one.buffer: one.takes_over for one in memory.unfused_reuses} == taken


def test_library_calls_move_at_least_what_they_are_given_and_give() -> None:
    source = """
import torch
@torch.compile
def f(x, w, filter):
    y = torch.nn.functional.conv2d(x, filter)
    return (y.flatten(1) @ w).sin().sort().values
f(torch.randn(2, 3, 8, 8), torch.randn(144, 5), torch.randn(4, 3, 3, 3))
"""
    (graph,) = explore(
        source, Options(device="cpu", produce=("capture", "lower", "schedule"), timing=Timing(enabled=False))
    ).graphs
    assert graph.traffic is not None
    tensors = {"x": 4 * 2 * 3 * 64, "w": 4 * 144 * 5, "filter": 4 * 4 * 27}
    convolved, product = 4 * 2 * 4 * 36, 4 * 2 * 5
    of_calls = {
        "aten.convolution": tensors["x"] + tensors["filter"] + convolved,
        "aten.mm": convolved + tensors["w"] + product,
        "aten.sort": product + product + 2 * product,
    }
    for execution in (graph.traffic.eager, graph.traffic.unfused, graph.traffic.fused):
        assert execution is not None
        if execution is graph.traffic.fused:  # the product is a kernel of our own, which goes on with the sine
            assert [launch.unseen for launch in execution.launches if "aten.mm" in launch.name] == []
            assert execution.library_bytes == of_calls["aten.convolution"] + of_calls["aten.sort"]
            continue
        calls = {launch.name: launch for launch in execution.launches if launch.unseen}
        assert {name: launch.bytes for name, launch in calls.items()} == of_calls
        assert execution.library_bytes == sum(of_calls.values()) < execution.bytes
        assert "for every tile" in calls["aten.mm"].unseen and "workspace" in calls["aten.convolution"].unseen
