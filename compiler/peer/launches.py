"""Reading one launch of TorchInductor's wrapper, and the text of a generated module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from compiler.capture.lines import lines_of_text


@dataclass
class Launch:
    """One kernel launch or library call. `buffers` are TorchInductor's loop nodes, by the buffer that each writes;
    `origins` are nodes of its ATen graph; `bytes` counts each buffer read and each buffer written once."""

    name: str
    buffers: list[str] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    user_lines: list[int] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    bytes: int = 0


def describe_launch(node_schedule: Any, name: str, is_library_call: bool) -> Launch:
    """`node_schedule` is a list of scheduler nodes for a generated kernel, and one IR node for a library call."""
    launch = Launch(name)
    try:
        nodes = [node_schedule] if is_library_call else [node for node in node_schedule if hasattr(node, "read_writes")]
        origins = _unique(origin for node in nodes for origin in _origins(node))
        launch.origins = [origin.name for origin in origins if origin.op != "placeholder"]
        lines = {line for origin in origins for line in lines_of_text(origin.meta.get("stack_trace"))[-1:]}
        launch.user_lines = sorted(lines)
        if is_library_call:
            _library_traffic(node_schedule, launch)
        else:
            _loop_traffic(nodes, launch)
        launch.bytes = sum(_bytes_of(buffer) for buffer in {*launch.reads, *launch.writes})
    except Exception:  # private structures of another version of torch: the name alone is still right
        pass
    return launch


def generated_sources(text: str) -> dict[str, str]:
    """Kernel name → source, from the definitions `name = async_compile.triton('name', '''...''')` of a module."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    sources: dict[str, str] = {}
    for statement in tree.body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
            continue
        function, target = statement.value.func, statement.targets[0]
        is_compile = isinstance(function, ast.Attribute) and ast.unparse(function.value) == "async_compile"
        strings = [a.value for a in statement.value.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if is_compile and isinstance(target, ast.Name) and strings:
            sources[target.id] = max(strings, key=len).strip("\n")
    return sources


def library_calls(text: str) -> dict[str, list[str]]:
    """Called name → its statements in the wrapper, such as `extern_kernels.mm(arg0_1, arg1_1, out=buf3)`."""
    calls: dict[str, list[str]] = {}
    for line in text.splitlines():
        found = re.match(r"\s*(?:\w+ = )?((?:extern_kernels|torch\.ops|aten|inductor_ops)[\w.]*)\(", line)
        if found:
            name, statement = found.group(1), line.strip()
            calls.setdefault(name, []).append(statement)
            # The hook names an operator's overload that the wrapper may leave out.
            calls.setdefault(f"{name}.default", []).append(statement)
    return calls


def _origins(node: Any) -> Iterable[Any]:
    """FX nodes that a scheduler node or an IR node came from, in the order of their graph."""
    inner = getattr(node, "node", None) or node
    return sorted(inner.origins, key=_place)


def _place(origin: Any) -> int:
    return next((place for place, node in enumerate(origin.graph.nodes) if node is origin), 0)


def _library_traffic(node: Any, launch: Launch) -> None:
    launch.buffers = [str(node.get_name())]
    launch.reads = _unique(str(buffer.get_name()) for buffer in node.inputs if hasattr(buffer, "get_name"))
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
    launch.buffers = _unique(written)
    launch.writes = [name for name in launch.buffers if name not in inside]
    launch.reads = [name for name in _unique(read) if name not in written]


def _bytes_of(buffer: str) -> int:
    """Bytes of a buffer of the graph that TorchInductor is compiling; 0 where its size is symbolic."""
    from torch._inductor.virtualized import V

    try:
        return int(V.graph.get_numel(buffer)) * int(V.graph.get_dtype(buffer).itemsize)
    except (TypeError, KeyError, AttributeError, NotImplementedError):
        return 0


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))
