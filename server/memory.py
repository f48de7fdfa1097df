"""What a graph moves, and what memory it takes, in sentences: for the terminal and for the Markdown summary alike."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.report import ExecutionTraffic, Graph, Kernel, KernelArtifact, Memory, Reuse, TensorTraffic, Traffic
from compiler.wording import counted

#: Tensors that a sentence names; the report has all of them.
MOST_NAMES = 12


def traffic_sentences(graph: Graph) -> list[str]:
    """Bytes moved in each way to run the graph, the least there could be, and what fusion saves: all counted."""
    traffic = graph.traffic
    if traffic is None:
        return []
    told = []
    if traffic.eager is not None:
        told.append(f"eager moves {_moves(traffic.eager, 'call')}")
    if traffic.unfused is not None:
        told.append(f"without fusion: {_moves(traffic.unfused, 'kernel', ', one for each loop or library call')}")
    if traffic.fused is not None:
        told.append(f"with fusion: {_moves(traffic.fused, 'kernel')}")
    if traffic.floor_bytes is not None:
        which = f" ({_tensors(traffic.floor)})" if traffic.floor else ""
        told.append(f"at least: {counted(traffic.floor_bytes, 'byte')}{which}")
    return told + _saved(traffic)


def _saved(traffic: Traffic) -> list[str]:
    if not traffic.saved_written_bytes and not traffic.saved_read_bytes:
        return []
    written = counted(traffic.saved_written_bytes, "byte")
    saved = f"fusion saves {written} of writes and {traffic.saved_read_bytes:,} of reads"
    more = counted(traffic.more_read_bytes, "byte")
    return [f"{saved}; it adds {more} of reads to compute values again" if traffic.more_read_bytes else saved]


def _moves(execution: ExecutionTraffic, noun: str, which: str = "") -> str:
    in_library = counted(execution.library_bytes, "byte")
    library = f"; of these, library calls move at least {in_library}" if execution.library_bytes else ""
    return f"{counted(execution.bytes, 'byte')} in {counted(len(execution.launches), noun)}{which}{library}"


def _tensors(tensors: Iterable[TensorTraffic]) -> str:
    parts = []
    for one in tensors:
        does = [f"read {one.read_bytes:,}"] if one.read_bytes else []
        does += [f"written {one.written_bytes:,}"] if one.written_bytes else []
        parts.append(f"{one.tensor} {' and '.join(does)}")
    return _listed(parts)


def moved_sentence(graph: Graph, place: int) -> str:
    """What kernel number `place` moves, tensor by tensor; empty where that is not known."""
    fused = graph.traffic.fused if graph.traffic else None
    return f"moves {_tensors(fused.launches[place].tensors)}" if fused and place < len(fused.launches) else ""


def level_sentences(kernel: Kernel) -> list[str]:
    """Where the values of a generated kernel live; shared memory and registers as far as an assembler has told."""
    levels = kernel.levels
    if levels is None:
        return []
    again = [
        f"{one.tensor} {_times(one.loaded_bytes / one.memory_bytes)}"
        for one in levels.loads
        if one.loaded_bytes > one.memory_bytes > 0
    ]
    told = []
    if again:
        missed = (
            f"; predicted to come from memory again: {counted(levels.missed_bytes, 'byte')}"
            if levels.missed_bytes
            else ""
        )
        told.append(f"loaded more than once, then from caches: {_listed(again)}{missed}")
    if levels.kept:
        told.append(f"kept in registers: {_listed(levels.kept)}")
    if levels.combined:
        told.append(f"combined by the threads of a program: {_listed(levels.combined)}")
    return [f"by its plan for {levels.target}, {sentence}" for sentence in told] + _resources(kernel)


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 100 else f"{ratio:.3g} times"


def _resources(kernel: Kernel) -> list[str]:
    """What the assembler said of the kernel, or of the one for the target beside it."""
    assembled: list[tuple[str, Kernel | KernelArtifact]] = [("", kernel)]
    assembled += [(f" for {other.target}", other) for other in kernel.also if other.language == "triton"]
    for where, one in assembled:
        if one.shared_bytes is None:
            continue
        parts = [f"{counted(one.shared_bytes, 'byte')} of shared memory a program"]
        parts += [f"{counted(one.registers, 'register')} a thread"] if one.registers is not None else []
        parts += [f"{counted(one.spills, 'byte')} of spills"] if one.spills is not None else []
        return [f"assembled{where}: {', '.join(parts)}"]
    return ["registers and shared memory are not known: it was not assembled"]


def memory_sentences(graph: Graph) -> list[str]:
    """Peak memory with and without fusion, what never reaches memory, and which buffers use memory of another."""
    memory = graph.memory
    if memory is None:
        return []
    kept = [buffer for buffer in graph.buffers if buffer.fate == "register"]
    told = [_peak(memory)]
    if kept:
        names = _listed(buffer.name for buffer in kept)
        told.append(f"never in memory: {counted(sum(buffer.bytes for buffer in kept), 'byte')} ({names})")
    if memory.reuses:
        told.append(f"memory used again: {_reuses(memory.reuses)}")
    if memory.unfused_reuses:
        told.append(f"without fusion, memory would be used again: {_reuses(memory.unfused_reuses)}")
    return told


def _peak(memory: Memory) -> str:
    said = f"alive at a time: at most {counted(memory.peak_bytes, 'byte')}, inputs not counted"
    return f"{said}; without fusion {memory.unfused_peak_bytes:,}"


def _reuses(reuses: Iterable[Reuse]) -> str:
    return _listed(f"{one.buffer} over {one.takes_over}{' in place' if one.in_place else ''}" for one in reuses)


def _listed(parts: Iterable[str]) -> str:
    known = list(parts)
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return ", ".join(known[:MOST_NAMES]) + more
