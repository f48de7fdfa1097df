"""How the launches of a graph reach the device, in sentences: for the terminal and for the Markdown summary alike."""

from __future__ import annotations

from compiler.report import Graph
from compiler.wording import line_list
from server.figures import microseconds


def launch_sentences(graph: Graph) -> list[str]:
    """Whether the kernels' times add up, and, on a GPU, the verdict with its reason and what a call was measured to
    take; a CPU has one way."""
    told = [f"times not to be relied on: {graph.disturbed}"] if graph.disturbed else []
    return [*told, *_replay_sentences(graph)]


def _replay_sentences(graph: Graph) -> list[str]:
    replay = graph.replay
    if replay is None or replay.reason == "replay.cpu":
        return []
    verdict = "replayed as one CUDA graph" if replay.verdict == "replayed" else "launched one by one"
    place = f" ({line_list(replay.lines)})" if replay.lines else ""
    told = [f"{verdict}{place}: {replay.message} ({replay.reason})"]
    ways = (("launch by launch", replay.launched), ("as a replay", replay.replayed))
    known = [f"{way} {microseconds(times.measured_host_us)}" for way, times in ways if times is not None]
    return [*told, f"the host's share of a call, measured: {', '.join(known)}"] if known else told
