"""Streams of a GPU inside a graph: which node runs on which one, and calls that make one wait for another.

Dynamo notes `with torch.cuda.stream(s):` at every call inside of it, and puts events and waits into the graph as calls
of the namespace `streams`, which take and give no tensors. The scheduler keeps nodes of different streams in different
kernels, as the report shows. But our kernels all run on the stream that is current where the graph is called, in an
order that the scheduler chooses, and share memory by that order: what the program does on its own streams before and
after would not wait for them. So such a graph is planned and not run.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from compiler.lowering.unsupported import UnsupportedGraph, unsupported_at

_ONE_STREAM_INSTEAD = (
    "Leave the streams out of what is compiled: use them around the compiled function, or keep that part in eager mode "
    "by torch.compiler.disable."
)


def stream_of(node: Node) -> int | None:
    """The program's number of the stream that the call is put on; None for the one that is current anyway."""
    noted = node.meta.get("custom")
    stream = noted.get("stream") if isinstance(noted, dict) else None
    return stream if isinstance(stream, int) else None


def refusal_of_streams(graph: torch.fx.Graph) -> UnsupportedGraph | None:
    """The refusal of a graph that has to do with streams, with the line of the first call that does."""
    for node in graph.nodes:
        if stream_of(node) is not None or getattr(node.target, "namespace", None) == "streams":
            return unsupported_at(node, "the graph runs on several streams, and ours on one", _ONE_STREAM_INSTEAD)
    return None
