"""Reading one launch of TorchInductor while it is generated: what it computes, reads and writes, in its own names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compiler.peer.generated import unique
from compiler.report import PeerBuffer


@dataclass
class Launch:
    """One kernel launch or library call. `buffers` are TorchInductor's loop nodes, by the buffer that each writes;
    `origins` are the nodes of its ATen graph that the launch computes, in that graph's order, and `fuses` their
    operators before decomposition. `operations` are its scheduler's names, `made_of` a buffer's own, with the nodes of
    each. `bytes` counts each buffer read and each buffer written once."""

    name: str
    is_library_call: bool = False
    reduces: bool = False
    buffers: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    fuses: list[str] = field(default_factory=list)
    operations: dict[str, list[str]] = field(default_factory=dict)
    made_of: dict[str, list[str]] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    sizes: list[PeerBuffer] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(buffer.bytes for buffer in self.sizes)


def describe_launch(node_schedule: Any, name: str, is_library_call: bool) -> Launch:
    """`node_schedule` is a list of scheduler nodes for a generated kernel, and one IR node for a library call."""
    launch = Launch(name, is_library_call)
    try:
        nodes = [node_schedule] if is_library_call else [node for node in node_schedule if hasattr(node, "read_writes")]
        if is_library_call:
            _library_traffic(node_schedule, launch)
        else:
            _loop_traffic(nodes, launch)
        found: dict[Any, None] = {}
        for node in nodes:
            own = _origins(node, is_library_call)
            found |= dict.fromkeys(own)
            names = [origin.name for origin in own]
            launch.operations[_operation(node)] = names
            launch.made_of |= dict.fromkeys(_written_by(node, is_library_call), names)
        computed = sorted(found, key=_position)
        launch.origins = [origin.name for origin in computed]
        launch.fuses = unique(_operator(origin) for origin in computed if _operator(origin))
        launch.sizes = [_described(buffer) for buffer in unique([*launch.reads, *launch.writes])]
    except Exception:  # private structures of another version of torch: the name alone is still right
        pass
    return launch


def _origins(node: Any, is_library_call: bool) -> list[Any]:
    """FX nodes that a scheduler node or an IR node computes, in the order of their graph.

    What a library call takes is laid out by kernels before it, but TorchInductor has it among the call's origins: the
    call itself is the last of them, where it is not known otherwise.
    """
    inner = getattr(node, "node", None) or node
    origins = sorted((origin for origin in inner.origins if origin.op != "placeholder"), key=_position)
    if not is_library_call:
        return origins
    own = getattr(inner, "origin_node", None)
    return [own] if own is not None and own.op != "placeholder" else origins[-1:]


def _position(origin: Any) -> int:
    return next((position for position, node in enumerate(origin.graph.nodes) if node is origin), 0)


def _operator(origin: Any) -> str:
    """`native_layer_norm` for any node that it was decomposed into."""
    before = str(origin.meta.get("original_aten") or origin.target)
    return before.split(".")[1] if before.startswith(("aten.", "prims.")) else before.rsplit(".", 1)[-1]


def _operation(node: Any) -> str:
    named = getattr(node, "get_operation_name", None)
    return str(named() if named is not None else node.get_name())


def _written_by(node: Any, is_library_call: bool) -> list[str]:
    return [str(node.get_name())] if is_library_call else [str(one.name) for one in node.read_writes.writes]


def _library_traffic(node: Any, launch: Launch) -> None:
    launch.buffers = [str(node.get_name())]
    launch.reads = unique(str(buffer.get_name()) for buffer in node.inputs if hasattr(buffer, "get_name"))
    launch.writes = list(launch.buffers)


def _loop_traffic(nodes: list[Any], launch: Launch) -> None:
    own = {str(node.get_name()) for node in nodes}
    written = [str(dependency.name) for node in nodes for dependency in node.read_writes.writes]
    read = [str(dependency.name) for node in nodes for dependency in node.read_writes.reads]
    inside = {
        str(output.get_name())
        for node in nodes
        for output in node.get_outputs()
        if output.users and all(str(user.get_name()) in own for user in output.users)
    }
    launch.reduces = any(node.is_reduction() for node in nodes)
    launch.buffers = unique(written)
    launch.writes = [name for name in launch.buffers if name not in inside]
    launch.reads = [name for name in unique(read) if name not in written]


def _described(buffer: str) -> PeerBuffer:
    """A buffer of the graph that TorchInductor is compiling; without bytes where its size is symbolic."""
    from torch._inductor.virtualized import V

    try:
        dtype = V.graph.get_dtype(buffer)
        size = int(V.graph.get_numel(buffer)) * int(dtype.itemsize)
        return PeerBuffer(name=buffer, bytes=size, dtype=str(dtype).removeprefix("torch."))
    except (TypeError, KeyError, AttributeError, NotImplementedError):
        return PeerBuffer(name=buffer, bytes=0)
