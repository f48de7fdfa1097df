"""Collect what torch reports of each compilation while a snippet runs.

Graphs, guards, bytecode and trace records come at different moments of one compilation; its id ties them together. The
order in which graphs run says which graph follows a break: Dynamo does not tell.
"""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.capture.diagnosis.breaks import distinct_breaks, report_break
from compiler.capture.diagnosis.guards import CompilationGuards, read_guards
from compiler.capture.diagnosis.recompiles import report_recompile
from compiler.capture.recording.artefacts import artefacts_of, bytecode
from compiler.capture.recording.symbols import symbols_of
from compiler.capture.recording.torch_trace import TraceRecord, current_compile_id
from compiler.fx.lines import plain_function_name
from compiler.report import Artefact, Compilation, GraphBreak, Guard, Recompile, Symbol
from compiler.wording import SNIPPET_FILE

#: Characters of bytecode and of torch's own texts that a report holds altogether.
MOST_TEXT = 500_000


@dataclass
class Trail:
    """The order in which graphs ran within each call of what the user compiled, and where breaks lay between them."""

    following: defaultdict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    before: dict[TraceRecord, str] = field(default_factory=dict)
    after: dict[TraceRecord, str] = field(default_factory=dict)
    _last: str | None = None
    _waiting: list[TraceRecord] = field(default_factory=list)

    def restart(self) -> None:
        """A call begins or ends: what runs next does not follow what ran before."""
        self._last = None
        self._waiting.clear()

    def ran(self, graph: str) -> None:
        if self._last is not None:
            self.following[self._last][graph] = None
        self.after.update(dict.fromkeys(self._waiting, graph))
        self._waiting.clear()
        self._last = graph

    def broke(self, record: TraceRecord) -> None:
        if self._last is not None:
            self.before[record] = self._last
        self._waiting.append(record)


@dataclass
class _Entry:
    """One compilation: `graphs` are those it made, without backward graphs."""

    records: list[TraceRecord] = field(default_factory=list)
    guards: CompilationGuards = field(default_factory=CompilationGuards)
    bytecode: tuple[str, str] = ("", "")
    graphs: list[str] = field(default_factory=list)

    def payloads(self, name: str) -> list[str]:
        return [record.payload for record in self.records if record.name == name]


class Ledger:
    """One entry a compilation, by its id in torch's logs ("2/0": the third function, compiled for the first time)."""

    def __init__(self) -> None:
        self.trail = Trail()
        self._entries: defaultdict[str, _Entry] = defaultdict(_Entry)

    def record(self, record: TraceRecord) -> None:
        # Of an exception in a backend torch writes a stack first, and then the break.
        if _as_numbers(record.compile_id) and not record.payload.startswith("WON'T CONVERT"):
            self._entries[record.compile_id].records.append(record)
            if record.name == "dynamo_graph_break_reason":
                self.trail.broke(record)

    def code_rewritten(self, compile_id: str, before: types.CodeType, after: types.CodeType) -> None:
        self._entries[compile_id].bytecode = (bytecode(before), bytecode(after))

    def guards_chosen(self, entries: Sequence[Any]) -> None:
        """The guards of the compilation under way, as Dynamo hands them to `guard_filter_fn`."""
        self._entries[current_compile_id()].guards = read_guards(entries)

    def graph_made(self, graph: str, compile_id: str) -> None:
        self._entries[compile_id].graphs.append(graph)

    def guards_of(self, compile_id: str) -> list[Guard]:
        entry = self._entries[compile_id]
        return entry.guards.finished("\n".join(entry.payloads("dynamo_cpp_guards_str")[-1:]))

    def symbols_of(self, compile_id: str) -> list[Symbol]:
        return symbols_of(self._entries[compile_id].records)

    def compilations_of_frame(self, compile_id: str) -> list[str]:
        """Ids of every compilation of the same function that made a graph, oldest first."""
        return [known for known in self._ids() if _frame(known) == _frame(compile_id) and self._entries[known].graphs]

    def breaks(self) -> list[GraphBreak]:
        """Every distinct break, with the graphs that it ended and those that ran next."""
        return distinct_breaks(
            self._located(report_break(record.payload), entry, record)
            for entry in map(self._entries.__getitem__, self._ids())
            for record in entry.records
            if record.name == "dynamo_graph_break_reason"
        )

    def _located(self, found: GraphBreak, entry: _Entry, record: TraceRecord) -> GraphBreak:
        """A compilation without a graph lies between the graphs that ran before and after it."""
        if entry.graphs:
            found.before = list(entry.graphs)
            found.after = list(dict.fromkeys(name for graph in entry.graphs for name in self.trail.following[graph]))
        else:
            found.before = [self.trail.before[record]] if record in self.trail.before else []
            found.after = [self.trail.after[record]] if record in self.trail.after else []
        return found

    def recompiles(self) -> list[Recompile]:
        """Every compilation that a failed guard led to, in order."""
        found = []
        for compile_id in self._ids():
            entry = self._entries[compile_id]
            for payload in entry.payloads("recompile_reasons"):
                earlier = [known for known in self._ids() if known != compile_id and _is_before(known, compile_id)]
                guards = [guard for known in earlier for guard in self.guards_of(known)]
                recompile = report_recompile(payload, self._function(entry) or "", guards, entry.guards.values)
                recompile.graph = entry.graphs[0] if entry.graphs else None
                known_open = {symbol.source for known in earlier for symbol in self.symbols_of(known)}
                opened = [symbol.source for symbol in self.symbols_of(compile_id)]
                recompile.symbolic = [source for source in opened if source not in known_open]
                found.append(recompile)
        return found

    def compilations(self) -> list[Compilation]:
        """Every compilation with its texts, which are cut to nothing once `MOST_TEXT` is reached."""
        budget = _Budget(MOST_TEXT)
        return [self._compilation(compile_id, self._entries[compile_id], budget) for compile_id in self._ids()]

    def _compilation(self, compile_id: str, entry: _Entry, budget: _Budget) -> Compilation:
        frame = self._frame_of(entry)
        return Compilation(
            id=compile_id,
            function=self._function(entry),
            line=frame[1] if frame and frame[0] == SNIPPET_FILE else None,
            graphs=entry.graphs,
            bytecode_before=budget.take(entry.bytecode[0]),
            bytecode_after=budget.take(entry.bytecode[1]),
            artefacts=budget.taken(artefacts_of(entry.records)),
        )

    def _frame_of(self, entry: _Entry) -> tuple[str, int, str] | None:
        """(file, line, function) of what was compiled: where its trace starts."""
        starts = [record.stack[-1] for record in entry.records if record.name == "dynamo_start" and record.stack]
        return starts[-1] if starts else None

    def _function(self, entry: _Entry) -> str | None:
        frame = self._frame_of(entry)
        return plain_function_name(frame[2]) if frame else None

    def _ids(self) -> list[str]:
        return sorted((known for known in self._entries if _as_numbers(known)), key=_as_numbers)


@dataclass
class _Budget:
    """How much text a report may still hold."""

    left: int

    def take(self, text: str) -> str:
        kept = text if len(text) <= self.left else ""
        self.left -= len(kept)
        return kept

    def taken(self, artefacts: Iterable[Artefact]) -> list[Artefact]:
        return [known.model_copy(update={"text": self.take(known.text)}) for known in artefacts]


def _is_before(compile_id: str, other: str) -> bool:
    """Whether both are of one function, the first one earlier."""
    return _frame(compile_id) == _frame(other) and _as_numbers(compile_id) < _as_numbers(other)


def _frame(compile_id: str) -> str:
    return compile_id.split("/")[0]


def _as_numbers(compile_id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in compile_id.split("/") if part.isdigit())
