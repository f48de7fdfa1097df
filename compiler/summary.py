"""The answer bar: the figures of all graphs together, and the verdict in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.capture.captured import Capture
from compiler.lowering.tree_calls import RUN_BY_OPERATORS
from compiler.matched_kernels import total
from compiler.report import Graph, Report, Summary, WrongResult
from compiler.runtime.checking.wrong_results import Checked, finite, worst_of
from compiler.wording import beside_eager, counted, listed


def summarise(report: Report, checked: Sequence[Checked], captured: Capture) -> Summary:
    """Sums over graphs; a sum is left out where one of its terms is not known. `checked` is what came of checking each
    graph and each trained call."""
    graphs = report.graphs
    has_kernels = any(graph.kernels for graph in graphs)
    eager, compiled, peer = (
        report.timing.of(name) if report.timing else None for name in ("eager", "compiled", "peer")
    )
    worst = worst_of(checked)
    summary = Summary(
        eager_kernels=total(graph.eager_kernels for graph in graphs),
        kernels=sum(len(graph.kernels) for graph in graphs) if has_kernels else None,
        peer_kernels=_peer_kernels(report, captured),
        eager_bytes=total(graph.eager_bytes for graph in graphs),
        unfused_bytes=total(_unfused_bytes(graph) for graph in graphs),
        bytes=sum(kernel.bytes for graph in graphs for kernel in graph.kernels) if has_kernels else None,
        floor_bytes=total(graph.floor_bytes for graph in graphs),
        graph_breaks=captured.graph_breaks,
        recompiles=captured.recompiles,
        eager_ms=eager.median_ms if eager else None,
        compiled_ms=compiled.median_ms if compiled else None,
        peer_ms=peer.median_ms if peer else None,
        speedup=eager.median_ms / compiled.median_ms if eager and compiled else None,
        eager_error=finite(worst.eager_error),
        compiled_error=finite(worst.compiled_error),
        allowed_error=worst.allowed_error if finite(worst.compiled_error) is not None else None,
    )
    summary.verdict = _verdict(report, summary, captured)
    return summary


def _peer_kernels(report: Report, captured: Capture) -> int | None:
    """The peer compiles the first call of each function; after a recompilation our count speaks of more calls than
    that, and the two are not set side by side. Neither is the count of a peer that failed before its last graph."""
    if report.peer is None or not report.peer.kernels or captured.recompiles:
        return None
    lacking = {graph.name for graph in report.graphs if graph.kernels} - {one.graph for one in report.peer.kernels}
    if lacking and any(one.name == "peer" and one.failure for one in report.peer.contestants):
        return None
    return len(report.peer.kernels)


def _unfused_bytes(graph: Graph) -> int | None:
    unfused = graph.traffic.unfused if graph.traffic else None
    return unfused.bytes if unfused else None


def _verdict(report: Report, summary: Summary, captured: Capture) -> str:
    """What is wrong comes first. Then one sentence of what the snippet became."""
    if report.error is not None and not report.graphs:
        return f"{report.error.type}: {report.error.message.splitlines()[0]}"
    ours = [one for one in report.wrong_results if one.contestant == "compiled"]
    peers = [one for one in report.wrong_results if one.contestant == "peer"]
    said = [
        _said_of_wrong(ours, "Wrong result"),
        _said_of_fusion(report, summary, captured),
        _said_of_wrong(peers, "Wrong result of TorchInductor"),
    ]
    return " ".join(sentence for sentence in said if sentence)


def _said_of_wrong(wrong: Sequence[WrongResult], title: str) -> str:
    """Which output is wrong, by how much, and how many more are."""
    if not wrong:
        return ""
    more = len(wrong) - 1
    others = f" {counted(more, 'more output')} {'is' if more == 1 else 'are'} wrong." if more > 0 else ""
    return f"{title}, so no time is given: {wrong[0].message}{others}"


def _which_were_timed(report: Report, captured: Capture) -> str:
    """Kernels are counted in all graphs, and the first call of each function is timed, made again after the snippet: of
    a graph that only other calls run, or a backward outside of that call, there is no such time."""
    timed = [graph.name for graph in report.graphs if graph.name in captured.timed_graphs]
    if not timed or len(timed) == len(report.graphs):
        return ""
    named = " and ".join(timed) if len(timed) <= 2 else f"{len(timed)} of {len(report.graphs)} graphs"
    return f"timed in {named} alone: "


def _which_are_more(report: Report) -> str:
    """Calls that run operators and count as one kernel: how many those are is known only in a run."""
    names = [kernel.name for graph in report.graphs for kernel in graph.kernels if kernel.name in RUN_BY_OPERATORS]
    if not names:
        return ""
    if len(names) == 1:
        return f" (a call of {names[0]} counts as one, but runs operator by operator)"
    return f" (calls of {listed(list(dict.fromkeys(names)))} count as one each, but run operator by operator)"


def _said_of_fusion(report: Report, summary: Summary, captured: Capture) -> str:
    eager, compiled = (report.timing.of(name) if report.timing else None for name in ("eager", "compiled"))
    parts: list[str] = []
    if summary.kernels is not None:
        before = "The snippet" if summary.eager_kernels is None else counted(summary.eager_kernels, "eager kernel")
        parts.append(f"{before} became {counted(summary.kernels, 'kernel')}{_which_are_more(report)}")
    if eager and compiled:
        parts.append(
            _which_were_timed(report, captured)
            + beside_eager(eager.median_ms, compiled.median_ms, compiled.ratio_factor, compiled.differs_from_eager)
        )
    if report.error is not None:
        parts.append(f"then the snippet failed: {report.error.message.splitlines()[0].rstrip('.')}")
    if not parts and report.graphs:
        parts.append(f"{counted(len(report.graphs), 'graph')} captured, and no kernels made")
    return ", ".join(parts) + "." if parts else "Nothing was captured: the snippet ran without a graph."
