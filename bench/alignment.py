"""Whether TorchInductor's kernels are aligned with ours: over snippets, the pattern suite and models, on the CPU.

    python -m bench.alignment --out docs/performance/archive/alignment_cpu.json
    python -m bench.alignment --programs patterns --cases layernorm,rmsnorm

Both compilers generate their kernels; nothing is built but where a graph breaks. Every kernel of
TorchInductor must be in one set of the alignment and stand for nodes of our graph, and every link of a line must agree
with the nodes that it names: they are among the kernel's, and the user's lines among theirs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._inductor.graph import GraphLowering

from bench.environment import write_json
from bench.fusion.peer import results_of
from bench.patterns import CASES
from compiler.capture.program.output import silenced
from compiler.options import Options
from compiler.peer.aligned import aligned
from compiler.peer.inductor import explore_peer
from compiler.peer.our_terms import Translation
from compiler.pipeline import compile_graphs
from compiler.report import Graph, Peer, PeerKernel
from compiler.stages.exploration import Exploration

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "tests" / "snippets", ROOT / "server" / "examples")
MODELS = (
    "vit", "convnext", "resnet", "mobilenet_v2", "segformer", "bert", "gpt2", "llama_block", "t5", "bert_training",
)  # fmt: skip
METHOD = (
    "Both compilers generate their kernels for the CPU, and nothing is built or run but programs with graph breaks. "
    "A kernel of TorchInductor is aligned if it stands for nodes of our graph and is in exactly one set of the "
    "alignment; `exact` are those whose own nodes have counterparts, the others are placed by the nearest nodes that "
    "have, or by their lines. A link is a line of a kernel with the nodes and lines that it is for, or a line of "
    "a wrapper with the kernel that it launches."
)
_PATTERN = """
from bench.patterns import CASES
case = next(one for one in CASES if one.name == {name!r})
case.call(torch.compile(globals().get(case.function.__name__, case.function)))(
    *case.inputs("small", torch.device("cpu"), 0)
)
"""
_MODEL = """
import torch
from bench.models import MODELS
example = MODELS[{name!r}].example("small", torch.device("cpu"), 0)
model = torch.compile(example.module)
inputs = example.inputs(2, torch.Generator().manual_seed(0))
if MODELS[{name!r}].is_trained:
    from bench.models.model import loss_of
    loss_of(model(**inputs)).backward()
else:
    with torch.no_grad():
        model(**inputs)
"""


def programs(kinds: Sequence[str], folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The name and the source of each."""
    if "snippets" in kinds:
        for file in (file for folder in folders for file in sorted(folder.glob("*.py"))):
            yield f"{file.parent.name}/{file.stem}", file.read_text()
    if "patterns" in kinds:
        functions = (ROOT / "bench" / "functions.py").read_text()
        yield from ((case.name, functions + _PATTERN.format(name=case.name)) for case in CASES)
    if "models" in kinds:
        yield from ((name, _MODEL.format(name=name)) for name in MODELS)


def align(source: str, options: Options | None = None) -> tuple[list[Graph], Peer]:
    """Our graphs and the peer's kernels beside them. Raises what TorchInductor raises."""
    run = Exploration(source, options or Options(device="cpu"), lambda _: None, is_brief=True)
    captured = compile_graphs(run).capture
    graphs = run.report.graphs
    translation = Translation(graphs, captured.graphs)
    with_backward = any(graph.phase == "backward" for graph in graphs)
    # Which graph comes after a break may depend on values: then all is built.
    is_run = captured.graph_breaks > 0
    with nullcontext() if is_run else _generating_only(), silenced(), run.changes.in_force():
        for entry in captured.timed_entries:
            args, kwargs = entry.copy_arguments()
            _, explored = explore_peer(entry.eager, args, kwargs, run.device, with_backward=with_backward)
            for module in explored.modules:
                translation.add(module)
    alignment = aligned(graphs, translation.kernels, translation.refusals, "TorchInductor")
    peer = Peer(
        kernels=translation.kernels, graphs=translation.graphs, refusals=translation.refusals, alignment=alignment
    )
    run.forget()
    run.changes.give_back()
    return graphs, peer


def _generating_only() -> AbstractContextManager[Any]:
    return mock.patch.object(GraphLowering, "compile_to_module", _generate_only)


def _generate_only(graph: Any) -> Any:
    wrapper, _ = graph.codegen()
    note = GraphLowering.save_output_code
    assert note is not None  # whoever asks a peer has it recorded
    note(wrapper.value)
    return SimpleNamespace(__file__="", call=lambda _: results_of(graph.module))


def count(graphs: Sequence[Graph], peer: Peer) -> dict[str, Any]:
    """What is aligned, and what is wrong with the rest, in words."""
    placed = Counter(place for one in peer.alignment for place in one.theirs)
    problems = [_problem(place, kernel, graphs, placed) for place, kernel in enumerate(peer.kernels)]
    ours = {(graph.name, place) for graph in graphs for place in range(len(graph.kernels))}
    told = {(one.graph, place) for one in peer.alignment for place in one.ours}
    reached = {one.graph for one in peer.graphs}
    missing = sorted(f"{graph} K{place + 1}" for graph, place in ours - told if graph in reached)
    links, wrong = _links(graphs, peer)
    return {
        "kernels": len(peer.kernels),
        "aligned": sum(problem is None for problem in problems),
        "exact": sum(kernel.is_exact for kernel in peer.kernels),
        "ours": len(ours),
        "relations": dict(Counter(one.relation for one in peer.alignment)),
        "differences": sum(one.relation != "same" for one in peer.alignment),
        "explained": sum(bool(one.because or one.refusal) for one in peer.alignment if one.relation != "same"),
        "refusals": len(peer.refusals),
        "links": links,
        "wrong_links": wrong,
        "problems": [problem for problem in problems if problem] + missing,
    }


def _problem(place: int, kernel: PeerKernel, graphs: Sequence[Graph], placed: Mapping[int, int]) -> str | None:
    graph = next((graph for graph in graphs if graph.name == kernel.graph), None)
    if graph is None:
        return f"{kernel.name} belongs to no graph"
    if not kernel.origins or not {node.name for node in graph.aten} >= set(kernel.origins):
        return f"{kernel.name} stands for no nodes of {graph.name}"
    return None if placed[place] == 1 else f"{kernel.name} is in {placed[place]} sets of the alignment"


def _links(graphs: Sequence[Graph], peer: Peer) -> tuple[int, int]:
    """Links of kernels' and of wrappers' lines, and how many of them are wrong."""
    lines_of = {(graph.name, node.name): set(node.lines) for graph in graphs for node in graph.aten}
    count = wrong = 0
    for kernel in peer.kernels:
        for link in kernel.lines:
            count += 1
            known = set().union(*(lines_of.get((kernel.graph or "", name), set()) for name in link.nodes))
            is_right = set(link.nodes) <= set(kernel.origins) and set(link.user_lines) <= set(kernel.user_lines)
            is_there = 0 < link.line <= len(kernel.source.splitlines())
            wrong += not (
                is_right and is_there and (not link.nodes or not link.user_lines or known & set(link.user_lines))
            )
    for graph in peer.graphs:
        text = graph.wrapper.splitlines()
        for launch in graph.launches:
            count += 1
            kernel = peer.kernels[launch.kernel]
            is_there = 0 < launch.line <= len(text) and kernel.graph == graph.graph
            wrong += not (is_there and _is_launch(text[launch.line - 1], kernel))
    return count, wrong


def _is_launch(line: str, kernel: PeerKernel) -> bool:
    called = kernel.name.removesuffix(".default")
    return called.rstrip("0123456789").rstrip("_") in line or called in line


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.alignment", description=__doc__)
    parser.add_argument("--programs", default="snippets,patterns,models")
    parser.add_argument("--cases", default="")
    parser.add_argument("--folder", type=Path, action="append", help="a folder of snippets, besides those of the tests")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    folders = (*FOLDERS, *(chosen.folder or []))
    twice = [name for name, count in Counter(folder.name for folder in folders).items() if count > 1]
    if twice:
        parser.error(f"Two folders are named {twice[0]}, and programs by their folders. Rename one of them.")
    cases: dict[str, Any] = {}
    for name, source in programs(chosen.programs.split(","), folders):
        if chosen.cases and name not in chosen.cases.split(","):
            continue
        torch._dynamo.reset()
        try:
            cases[name] = count(*align(source))
        except Exception as error:  # what the peer cannot do is a finding
            cases[name] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(name, {key: value for key, value in cases[name].items() if value}, flush=True)
        if chosen.out is not None:
            write_json(chosen.out, {"method": METHOD, "sums": sums(cases), "cases": cases})
    told = sums(cases)
    print(told)
    return 0 if told["aligned"] == told["kernels"] and not told["wrong_links"] else 1


def sums(cases: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    keys = ("kernels", "aligned", "exact", "ours", "differences", "explained", "refusals", "links", "wrong_links")
    told = {key: sum(case.get(key, 0) for case in cases.values()) for key in keys}
    return {"programs": len(cases), "failed": sum("error" in case for case in cases.values()), **told}


if __name__ == "__main__":
    sys.exit(main())
