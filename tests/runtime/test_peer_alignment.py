"""The peer's kernels beside ours: which nodes each stands for, where the two cut differently, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.alignment import align, count
from compiler.capture.captured import Capture
from compiler.peer.aligned import aligned
from compiler.peer.counterparts import counterparts
from compiler.refusals import refusals_of
from compiler.report import (
    AlignedKernels,
    ContestantOutcome,
    Decision,
    FxNode,
    Graph,
    Kernel,
    LoopNode,
    Peer,
    PeerKernel,
    PeerRefusal,
    Report,
)
from compiler.summary import summarise

SNIPPETS = Path(__file__).parents[1] / "snippets"

#: A backward graph, a library call, two reductions, and a value that both graphs name by other numbers.
BLOCK = """
import torch
import torch.nn.functional as F

@torch.compile
def block(x, weight, scale):
    normed = F.layer_norm(x, (64,), scale)
    hidden = F.gelu(normed @ weight)
    return x + torch.softmax(hidden.to(torch.bfloat16), -1).float()

x = torch.randn(32, 64, requires_grad=True)
block(x, torch.randn(64, 64, requires_grad=True), torch.randn(64)).sum().backward()
"""


@pytest.fixture(scope="module")
def explored() -> tuple[list[Graph], Peer]:
    return align(BLOCK)


def test_every_kernel_stands_for_nodes_of_ours_and_every_line_for_some_of_them(
    explored: tuple[list[Graph], Peer],
) -> None:
    told = count(*explored)
    assert told["problems"] == [] and told["wrong_links"] == 0
    assert told["aligned"] == told["kernels"] > 4 and told["links"] > told["kernels"]
    graphs, peer = explored
    assert {one.graph for one in peer.graphs} == {graph.name for graph in graphs}
    assert all(graph.wrapper.startswith("def call(") and graph.buffers for graph in peer.graphs)


def test_a_library_call_is_the_one_node_that_it_computes(explored: tuple[list[Graph], Peer]) -> None:
    forward = [kernel for kernel in explored[1].kernels if kernel.graph == "graph_0"]
    (product,) = [kernel for kernel in forward if kernel.kind == "extern"]
    assert (product.form, product.origins, product.user_lines) == ("library call", ["mm"], [8])
    assert {"gelu", "_softmax"} <= {name for kernel in forward for name in kernel.fuses}


def test_a_line_that_is_followed_from_the_user_comes_back(explored: tuple[list[Graph], Peer]) -> None:
    graphs, peer = explored
    lines = {(graph.name, node.name): node.lines for graph in graphs for node in graph.aten}
    softmax = next(kernel for kernel in peer.kernels if kernel.graph == "graph_0" and "_softmax" in kernel.fuses)
    stores = [link for link in softmax.lines if "store" in softmax.source.splitlines()[link.line - 1]]
    assert stores and any(9 in link.user_lines for link in stores)
    for link in softmax.lines:
        back = {line for node in link.nodes for line in lines[softmax.graph or "", node]}
        assert back & set(link.user_lines)


def test_a_graph_that_ours_rewrote_as_a_whole_is_aligned_by_its_lines() -> None:
    graphs, peer = align((SNIPPETS / "12_attention_by_hand.py").read_text())
    assert count(graphs, peer)["problems"] == []
    (one,) = peer.alignment
    assert (one.relation, len(one.theirs)) == ("split", 3) and not any(kernel.is_exact for kernel in peer.kernels)


#: Attention between two products: the copies around it are of its shapes.
ATTENTION = """
import torch

@torch.compile
def attend(x, weight, out):
    q, k, v = (x @ weight).reshape(2, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
    weights = (q @ k.transpose(-2, -1) / 4).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(2, 64, 64) @ out

attend(torch.randn(2, 64, 64), torch.randn(64, 192), torch.randn(64, 64))
"""


def test_kernels_that_a_rewrite_of_ours_took_stand_for_what_it_made() -> None:
    graphs, peer = align(ATTENTION)
    (graph,) = graphs
    (place,) = [place for place, kernel in enumerate(graph.kernels) if "attention" in kernel.name]
    (one,) = [one for one in peer.alignment if place in one.ours]
    assert one.ours == [place] and one.relation == "split"
    products = {position for position, kernel in enumerate(peer.kernels) if "bmm" in kernel.name}
    assert len(products) == 2 and products <= set(one.theirs)


#: TorchInductor makes one `addmm` of each product and the sum on it.
BIASED = """
import torch

@torch.compile
def layers(x, w, b, v, c):
    hidden = torch.relu(x @ w + b)
    product = hidden @ v
    return hidden.sin(), product + c

layers(torch.randn(32, 64), torch.randn(64, 64), torch.randn(64), torch.randn(64, 32), torch.randn(32))
"""


def test_a_call_that_a_rewrite_of_theirs_made_of_several_of_ours_stands_for_all_of_them() -> None:
    graphs, peer = align(BIASED)
    assert count(graphs, peer)["problems"] == []
    products = [kernel for kernel in peer.kernels if kernel.kind == "extern"]
    assert [kernel.origins for kernel in products] == [["mm", "add"], ["mm_1", "add_1"]]
    assert all(kernel.is_exact for kernel in products)


def node(name: str, target: str, *args: str, line: int = 1) -> FxNode:
    op = "call_function" if target else "placeholder"
    return FxNode(name=name, op=op, target=target or name, args=list(args), shape=[4], dtype="float32", lines=[line])


def test_nodes_are_matched_by_what_they_compute_not_by_name() -> None:
    ours = [node("x", ""), node("mul", "aten.mul.Tensor", "x"), node("mul_1", "aten.mul.Tensor", "mul", line=2)]
    theirs = [
        node("x", ""),
        node("mul", "aten.mul.Tensor", "x", "x", line=3),
        node("mul_1", "aten.mul.Tensor", "x"),
        node("mul_2", "aten.mul.Tensor", "mul_1", line=2),
    ]
    assert counterparts(theirs, ours) == {"mul_1": "mul", "mul_2": "mul_1"}


def graph_of_two() -> Graph:
    decision = Decision(
        a="sin", b="cos", round=1, kind="vertical", verdict="refused", reason="index.order", message="index order"
    )
    graph = Graph(
        name="graph_0",
        aten=[node("x", ""), node("sin", "aten.sin.default", "x"), node("cos", "aten.cos.default", "sin")],
        loops=[LoopNode(name=name, kind="pointwise", origins=[name]) for name in ("sin", "cos")],
        decisions=[decision],
        kernels=[
            Kernel(name=f"{name}_0", kind="cpp", nodes=[name], origins=[name], source="") for name in ("sin", "cos")
        ],
    )
    graph.refusals = refusals_of(graph)
    return graph


def theirs(*origins: list[str]) -> list[PeerKernel]:
    return [
        PeerKernel(name=f"cpp_fused_{place}", kind="cpp", nodes=[], origins=names, source="", graph="graph_0")
        for place, names in enumerate(origins)
    ]


def only(kernels: list[PeerKernel], refusals: list[PeerRefusal] | None = None) -> list[AlignedKernels]:
    return aligned([graph_of_two()], kernels, refusals or [], "TorchInductor")


def test_a_merge_is_told_with_the_refusal_of_ours_that_explains_it() -> None:
    (one,) = only(theirs(["sin", "cos"]))
    assert (one.relation, one.ours, one.theirs, one.decision, one.pair) == ("merged", [0, 1], [0], 0, ("sin", "cos"))
    assert one.sentence == "TorchInductor computes K1 and K2 in one kernel."
    assert one.because == "Ours keeps sin and cos apart: index order."


def test_what_is_computed_again_ties_no_kernels_together() -> None:
    found = only(theirs(["sin"], ["sin", "cos"], ["sin"]))
    assert [(one.relation, one.ours, one.theirs) for one in found] == [
        ("only theirs", [], [2]),
        ("same", [0], [0]),
        ("same", [1], [1]),
    ]


def test_the_peers_own_words_stand_where_it_splits() -> None:
    graph = graph_of_two()
    graph.kernels = [Kernel(name="both", kind="cpp", nodes=["sin", "cos"], origins=["sin", "cos"], source="")]
    words = PeerRefusal(graph="graph_0", kernels=(0, 1), a="sin", b="cos", message="numel/rnumel mismatch")
    (one,) = aligned([graph], theirs(["sin"], ["cos"]), [words], "TorchInductor")
    assert (one.relation, one.refusal) == ("split", "sin and cos: numel/rnumel mismatch")


@pytest.mark.parametrize(
    ("failure", "is_late", "kernels"), [(None, False, 2), ("failed", False, 2), ("failed", True, None), (None, True, 2)]
)
def test_kernels_of_a_peer_that_failed_before_its_last_graph_are_not_counted(
    failure: str | None, is_late: bool, kernels: int | None
) -> None:
    graphs = [graph_of_two()]
    if is_late:
        graphs.append(graph_of_two().model_copy(update={"name": "graph_1"}))
    outcome = ContestantOutcome(name="peer", failure=failure)
    peer = Peer(name="TorchInductor", kernels=theirs(["sin"], ["cos"]), contestants=[outcome])
    report = Report(source="", graphs=graphs, peer=peer)
    assert summarise(report, [], Capture(torch.device("cpu"))).peer_kernels == kernels
