"""Each line of the PTX leads to the Triton line that it was made from, and so to nodes and to the reader's lines."""

from __future__ import annotations

import re

import pytest

from compiler.options import Options
from compiler.pipeline import explore
from compiler.report import Graph, KernelArtifact, KernelLine

SOURCE = """import torch

@torch.compile
def scores(x):
    y = torch.sin(x) * 2
    return y.softmax(-1)

scores(torch.randn(256, 512))
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    report = explore(SOURCE, Options(device="cpu", produce=("capture", "lower", "schedule", "codegen")))
    assert report.error is None
    return report.graphs[0]


def renderings(graph: Graph) -> tuple[KernelArtifact, KernelArtifact]:
    (kernel,) = graph.kernels
    triton, ptx = kernel.also
    assert (triton.language, ptx.language) == ("triton", "ptx")
    return triton, ptx


def lines_with(artifact: KernelArtifact, pattern: str) -> list[KernelLine]:
    text = artifact.source.splitlines()
    return [line for line in artifact.lines if re.search(pattern, text[line.line - 1])]


def test_what_loads_and_stores_leads_to_the_readers_line(graph: Graph) -> None:
    _, ptx = renderings(graph)
    assert {tuple(line.user_lines) for line in lines_with(ptx, r"\bld\.global")} == {(5,)}
    assert {tuple(line.user_lines) for line in lines_with(ptx, r"\bst\.global")} == {(6,)}


def test_an_instruction_leads_to_its_own_node(graph: Graph) -> None:
    """The base-2 exponential is how PTX computes exp, and no other node of this kernel has one."""
    _, ptx = renderings(graph)
    exponentials = lines_with(ptx, r"\bex2\.approx")
    assert exponentials and {node for line in exponentials for node in line.nodes} == {"exp"}


def test_reductions_that_were_inlined_belong_to_the_line_that_calls_them(graph: Graph) -> None:
    """tl.sum is a function of Triton's own library: its shuffles are lines of no file of ours."""
    _, ptx = renderings(graph)
    assert {node for line in lines_with(ptx, r"\bshfl\.sync") for node in line.nodes} == {"amax", "sum_1"}


def test_lines_are_those_of_triton(graph: Graph) -> None:
    triton, ptx = renderings(graph)
    known = {(tuple(line.nodes), tuple(line.user_lines)) for line in triton.lines}
    assert {(tuple(line.nodes), tuple(line.user_lines)) for line in ptx.lines} <= known
    numbers = [line.line for line in ptx.lines]
    assert numbers == sorted(set(numbers)) and numbers[-1] <= len(ptx.source.splitlines())
