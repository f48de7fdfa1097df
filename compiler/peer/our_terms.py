"""TorchInductor's modules in our terms: which graph of ours each is, and its launches as kernels of that graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from compiler.capture.captured import CapturedGraph
from compiler.peer.counterparts import counterparts, nearest, on_lines, put_together, taken_over
from compiler.peer.generated import (
    Wrapper,
    buffers_of_pointers,
    generated_sources,
    library_calls,
    nodes_of_lines,
    wrapper_of,
)
from compiler.peer.inductor import Module
from compiler.peer.launches import Launch
from compiler.report import Graph, KernelLine, PeerBuffer, PeerGraph, PeerKernel, PeerLaunch, PeerRefusal
from compiler.report.peers import KernelForm

#: What TorchInductor's names begin with. A C++ kernel's name does not tell: its loops do.
_FORMS: dict[str, KernelForm] = {
    "triton_poi_": "pointwise",
    "triton_red_": "reduction",
    "triton_per_": "persistent reduction",
    "triton_split_scan_": "scan",
    "triton_tem_": "template",
    "triton_for_": "foreach",
    "cpp_CppMicro": "template",
}
#: Refusals that are told of one graph: those of the kernels that lie nearest.
MOST_REFUSALS = 200


class Translation:
    """All that TorchInductor made, so far. Modules are taken in the order in which they were generated, those of a
    forward graph before its backward's."""

    def __init__(self, graphs: Sequence[Graph], captured: Sequence[CapturedGraph]) -> None:
        self._ours = {graph.name: graph for graph in graphs}
        self._captured = list(captured)
        self._taken: set[str] = set()
        self._names: dict[str, dict[str, str]] = {}
        self._seen: dict[str, int] = {}
        self.kernels: list[PeerKernel] = []
        self.graphs: list[PeerGraph] = []
        self.refusals: list[PeerRefusal] = []

    def add(self, module: Module) -> None:
        _leave_calls_to_libraries(module)
        graph = self._home(module)
        names: dict[str, str] = {}
        if graph is not None:
            given = self._names.get(graph.partner or "") if graph.phase == "backward" else None
            names = self._names[graph.name] = counterparts(module.nodes, graph.aten, given)
        first = len(self.kernels)
        wrapper = wrapper_of(module.text)
        self.kernels += _kernels(module, graph, names, wrapper, self._seen)
        self.graphs.append(_graph(module, graph, names, wrapper, first))
        self.refusals += _refusals(module, graph, names, first)

    def _home(self, module: Module) -> Graph | None:
        """The graph of ours that was captured as the same code, or else the one that calls most alike; equal ones take
        turns, as both compilers meet them in one order."""
        codes = [(one, one.dynamo.code) for one in self._captured if one.dynamo is not None]
        alike = [one for one, code in codes if code == module.captured_code]
        if not alike:
            alike = [one for one, code in codes if _likeness(code, module.captured_code) > _ALIKE]
        names = [one.partner if module.is_backward else one.name for one in alike]
        found = [name for name in names if name in self._ours]
        name = next((name for name in found if name not in self._taken), found[-1] if found else None)
        if name is None:
            return None
        self._taken.add(name)
        return self._ours[name]


#: The part of two graphs' calls that has to be the same for them to be one: a constant may be captured otherwise.
_ALIKE = 0.8


def _likeness(one: str, other: str) -> float:
    """Of the functions that the two call, as often as each does, the part that both call."""
    ones, others = (Counter(re.findall(r"([\w.]+)\(", code)) for code in (one, other))
    return (ones & others).total() / max(ones.total(), others.total(), 1)


def _leave_calls_to_libraries(module: Module) -> None:
    """Of a copy that lays something out for a library call, TorchInductor has the call among the origins."""
    called = {name for launch in module.launches if launch.is_library_call for name in launch.origins}
    for launch in module.launches:
        if not launch.is_library_call:
            launch.origins = [name for name in launch.origins if name not in called]
            for made in (launch.operations, launch.made_of):
                made |= {key: [name for name in names if name not in called] for key, names in made.items()}


def _kernels(
    module: Module, graph: Graph | None, names: Mapping[str, str], wrapper: Wrapper, seen: dict[str, int]
) -> list[PeerKernel]:
    """One kernel for each launch. A kernel that is launched again, or that has the name of one in another module, gets
    a number: `triton_poi_fused_add_0`, `triton_poi_fused_add_0_2`."""
    sources, calls = generated_sources(module.text), library_calls(module.text)
    # What a rewrite of TorchInductor made has no lines of its own.
    ours = {node.name: node.lines for node in graph.aten} if graph is not None else {}
    lines = {node.name: node.lines or ours.get(names.get(node.name, ""), []) for node in module.nodes}
    kernels: list[PeerKernel] = []
    for launch in module.launches or [Launch(name) for name in sources]:
        seen[launch.name] = times = seen.get(launch.name, 0) + 1
        kernel = _kernel(launch, sources.get(launch.name), calls, lines)
        kernel.name = launch.name if times == 1 else f"{launch.name}_{times}"
        kernel.graph = graph.name if graph is not None else None
        if kernel.kind != "extern":
            kernel.lines = _lines(launch, kernel.source, wrapper, names, lines)
        kernel.origins = _named(launch.origins, names)
        if graph is not None and not kernel.origins and len(launch.origins) == 1:
            kernel.origins = put_together(module.nodes, graph.aten, names, launch.origins[0])
        kernel.is_exact = bool(kernel.origins)
        if graph is not None and not kernel.is_exact:
            kernel.origins = (
                _named(launch.origins, taken_over(module.nodes, graph.aten, names))
                or nearest(module.nodes, names, launch.origins)
                or on_lines(graph, kernel.user_lines)
            )
        kernel.user_lines = kernel.user_lines or _user_lines(kernel.origins, ours)
        kernels.append(kernel)
    return kernels


def _kernel(
    launch: Launch, source: str | None, calls: dict[str, list[str]], lines: Mapping[str, list[int]]
) -> PeerKernel:
    if source is None:
        stated = calls.get(launch.name, [])
        source = stated.pop(0) if len(stated) > 1 else next(iter(stated), launch.name)
        kind = "extern"
    else:
        kind = "cpp" if "#include" in source else "triton"
    return PeerKernel(
        name=launch.name,
        kind=kind,  # type: ignore[arg-type]  # one of the three literals above
        form=_form(launch, kind),
        fuses=launch.fuses,
        nodes=launch.buffers,
        source=source,
        language="cpp" if kind == "cpp" else "python",
        user_lines=_user_lines(launch.origins, lines),
        reads=launch.reads,
        writes=launch.writes,
        bytes=launch.bytes,
    )


def _form(launch: Launch, kind: str) -> KernelForm:
    if kind == "extern":
        return "library call"
    told = next((form for start, form in _FORMS.items() if launch.name.startswith(start)), None)
    return told or ("reduction" if launch.reduces else "pointwise" if launch.operations else "loops")


def _lines(
    launch: Launch, source: str, wrapper: Wrapper, names: Mapping[str, str], lines: Mapping[str, list[int]]
) -> list[KernelLine]:
    launched = wrapper.launches.get(launch.name, [])
    pointers = buffers_of_pointers(source, launched[0][1] if launched else (), wrapper.reuses)
    return [
        KernelLine(line=line, nodes=_named(nodes, names), user_lines=_user_lines(nodes, lines))
        for line, nodes in nodes_of_lines(source, pointers, launch.made_of).items()
    ]


def _graph(module: Module, graph: Graph | None, names: Mapping[str, str], wrapper: Wrapper, first: int) -> PeerGraph:
    """`first` is the position of its first kernel among all."""
    buffers: dict[str, PeerBuffer] = {}
    for launch in module.launches:
        buffers |= {buffer.name: buffer for buffer in launch.sizes}
    for name, buffer in buffers.items():
        buffer.takes_over = wrapper.reuses.get(name)
    launches: list[PeerLaunch] = []
    met: dict[str, int] = {}
    for position, launch in enumerate(module.launches):
        name = launch.name.removesuffix(".default")
        # TorchInductor numbers the calls of one library function; its wrapper does not.
        called = name if name in wrapper.launches else re.sub(r"_\d+$", "", name)
        stated = wrapper.launches.get(called, [])
        met[called] = which = met.get(called, -1) + 1
        if which < len(stated):
            launches.append(PeerLaunch(line=stated[which][0], kernel=first + position))
    return PeerGraph(
        graph=graph.name if graph is not None else None,
        wrapper=wrapper.text,
        launches=launches,
        buffers=list(buffers.values()),
        pairs=len(names),
    )


def _refusals(module: Module, graph: Graph | None, names: Mapping[str, str], first: int) -> list[PeerRefusal]:
    """The last words about each two kernels that stayed two."""
    home = {name: position for position, launch in enumerate(module.launches) for name in launch.operations}
    nodes = {name: _named(origins, names) for one in module.launches for name, origins in one.operations.items()}
    told: dict[tuple[int, int], PeerRefusal] = {}
    for (one, two), words in module.refusals.items():
        ones, twos = (re.findall(r"[a-z]+\d+", name) for name in (one, two))
        sides = [(home[a], home[b], a, b) for a in ones[-1:] for b in twos[:1] if a in home and b in home]
        for i, j, a, b in sides:
            if i != j and nodes[a] and nodes[b]:
                told[i, j] = PeerRefusal(
                    graph=graph.name if graph is not None else None,
                    kernels=(first + i, first + j),
                    a=nodes[a][-1],
                    b=nodes[b][0],
                    message=words,
                )
    nearest = sorted(told.values(), key=lambda one: abs(one.kernels[1] - one.kernels[0]))
    return nearest[:MOST_REFUSALS]


def _named(theirs: Sequence[str], names: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(names[name] for name in theirs if name in names))


def _user_lines(nodes: Sequence[str], lines: Mapping[str, list[int]]) -> list[int]:
    return sorted({line for name in nodes for line in lines.get(name, [])[-1:]})
