"""Calls that change the stream on which a GPU's kernels run, or wait for another one.

Dynamo puts `with torch.cuda.stream(s):`, events and waits into the graph as calls of the namespace `streams`, which
take and give no tensors. Kernels of a graph run on one stream, in an order that the scheduler chooses, and share memory
by that order; fused across such a call they would not wait for what they read.
"""

from __future__ import annotations

import torch

#: What to do about a graph of several streams.
ONE_STREAM_INSTEAD = (
    "Leave the streams out of what is compiled: use them around the compiled function, or keep that part in eager mode "
    "by torch.compiler.disable."
)


def first_stream_call(graph: torch.fx.Graph) -> torch.fx.Node | None:
    """The first call that has to do with streams, if there is one."""
    return next((node for node in graph.nodes if getattr(node.target, "namespace", None) == "streams"), None)
