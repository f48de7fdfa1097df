"""Calls that change the stream on which a GPU's kernels run, or wait for another one.

Dynamo puts `with torch.cuda.stream(s):`, events and waits into the graph as calls of the namespace `streams`, which
take and give no tensors. Kernels of a graph run on one stream, in an order that the scheduler chooses, and share memory
by that order; fused across such a call they would not wait for what they read.
"""

from __future__ import annotations

import torch

from compiler.lowering.unsupported import unsupported_at

_ONE_STREAM_INSTEAD = (
    "Leave the streams out of what is compiled: use them around the compiled function, or keep that part in eager mode "
    "by torch.compiler.disable."
)


def refuse_streams(graph: torch.fx.Graph) -> None:
    """Raises UnsupportedGraph, with the line of the first call that has to do with streams, if there is one."""
    for node in graph.nodes:
        if getattr(node.target, "namespace", None) == "streams":
            raise unsupported_at(node, "the graph runs on several streams, and ours on one", _ONE_STREAM_INSTEAD)
