"""Texts that torch itself writes of a compilation, as its logs would print them, each cut at a stated length.

They are the same texts as `TORCH_LOGS=graph_code,aot_graphs,guards,...` prints, for a reader who knows those.
"""

from __future__ import annotations

import dis
import io
import re
import types
from collections.abc import Iterable, Iterator

from compiler.capture.recording.torch_trace import TraceRecord, payload_texts
from compiler.report import Artefact

#: Characters of one text that are kept.
LONGEST_ARTEFACT = 24_000

#: Name in torch's trace, name of the log (TORCH_LOGS), what it is.
_TEXTS = (
    ("dynamo_output_graph", "graph_code", "the graph that Dynamo captured, as code"),
    ("aot_joint_graph", "aot_joint_graph", "forward and backward in one graph, before they are split"),
    ("aot_forward_graph", "aot_graphs", "the forward graph that AOTAutograd made"),
    ("aot_backward_graph", "aot_graphs", "the backward graph that AOTAutograd made"),
    ("aot_inference_graph", "aot_graphs", "the graph that AOTAutograd made"),
    ("dynamo_cpp_guards_str", "guards", "every guard, as the tree in which they are checked"),
    ("recompile_reasons", "recompiles", "the guards that failed in all existing code"),
    ("dynamo_graph_break_reason", "graph_breaks", "where and why tracing stopped"),
)
_DYNAMIC = ("create_symbol", "guard_added", "guard_added_fast", "symbolic_shape_specialization")
#: Where torch is installed says nothing to the reader, and addresses differ from run to run.
_INSTALLED_AT = re.compile(r"""(?<=[\s"'(])/\S*?(site|dist)-packages/""")
#: A frame of a traceback outside of the snippet: ours or torch's, named by where it is installed.
_OTHER_FRAME = re.compile(r'^( *)File "/[^"\n]*", line .*\n(?:\1 +.*(?:\n|$))*', re.MULTILINE)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


def artefacts_of(records: Iterable[TraceRecord]) -> list[Artefact]:
    """The texts of one compilation, in the order in which it goes through them."""
    records = list(records)
    found = [
        artefact(log, title, text)
        for name, log, title in _TEXTS
        for text in _texts(name, [record.payload for record in records if record.name == name])
    ]
    dynamic = "\n".join(_dynamic_lines(records))
    return [*found, artefact("dynamic", "symbols, and the guards put on them", dynamic)] if dynamic else found


def _texts(name: str, payloads: list[str]) -> list[str]:
    """Dynamo traces a function again after a break, and the last attempt is what became of it; each break counts."""
    if name == "dynamo_graph_break_reason":
        return list(dict.fromkeys(payload.split("\nTraceback (most recent call last)")[0] for payload in payloads))
    if name == "recompile_reasons":
        return ["\n".join(payload_texts(payload)) for payload in payloads]
    return payloads[-1:]


def artefact(name: str, title: str, text: str) -> Artefact:
    plain = _ADDRESS.sub("0x…", _INSTALLED_AT.sub("", _OTHER_FRAME.sub("", text))).strip("\n")
    return Artefact(name=name, title=title, text=plain[:LONGEST_ARTEFACT], chars=len(plain))


def bytecode(code: types.CodeType) -> str:
    """The instructions of a function, as `dis` prints them, without those of functions inside it."""
    written = io.StringIO()
    dis.dis(code, file=written, depth=0)
    text = _ADDRESS.sub("0x…", written.getvalue()).strip("\n")
    return text if len(text) <= LONGEST_ARTEFACT else text[:LONGEST_ARTEFACT] + "\n[cut here]"


def _dynamic_lines(records: Iterable[TraceRecord]) -> Iterator[str]:
    for record in records:
        facts = record.facts
        if record.name == "create_symbol":
            symbol, value, source = facts.get("symbol"), facts.get("val"), facts.get("source")
            yield f"create_symbol {symbol} = {value} for {source} {facts.get('vr')}"
        elif record.name == "symbolic_shape_specialization":
            yield f"specialised {facts.get('symbol')} to {facts.get('value')}: {facts.get('reason')}"
        elif record.name in _DYNAMIC:
            yield f"guard {facts.get('expr')}"
