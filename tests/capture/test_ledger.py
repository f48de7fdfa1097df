"""What is kept of each compilation: its bytecode, torch's own texts, the sizes that it leaves open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.capture.captured import Capture
from compiler.capture.recording import artefacts, ledger
from compiler.capture.recording.ledger import Ledger
from compiler.capture.recording.recorder import Recorder
from compiler.capture.recording.torch_trace import TraceRecord
from compiler.capture.torch_internals import reset_dynamo
from tests.capture.programs import captured, captured_source

DYNAMIC = """
def shifted(x, n):
    if x.shape[0] > 3:
        x = x + 1
    return x * n
"""


def recorded_calls(*calls: tuple[torch.Tensor, int], dynamic: bool | None) -> Ledger:
    """The ledger after calling a function that is compiled with sizes left open, or not."""
    reset_dynamo()
    names: dict[str, Any] = {}
    exec(compile(DYNAMIC, "snippet.py", "exec"), names)
    recorder = Recorder(Capture(torch.device("cpu")))
    keep = recorder.ledger

    def backend(graph: torch.fx.GraphModule, _inputs: object) -> object:
        keep.graph_made(f"graph_{len(keep.compilations())}", keep.compilations()[-1].id)
        return graph.forward

    with recorder.listening():
        compiled = torch._dynamo.optimize(backend, dynamic=dynamic, guard_filter_fn=recorder.guards_chosen)(
            names["shifted"]
        )
        for call in calls:
            compiled(*call)
    reset_dynamo()
    return keep


def test_what_becomes_symbolic_after_a_recompilation_is_said() -> None:
    found = recorded_calls((torch.ones(4), 6), (torch.ones(5), 6), (torch.ones(2), 6), dynamic=None)
    size, below = found.recompiles()
    assert (size.subject, size.expected, size.actual, size.symbolic) == ("x.size(0)", "4", "5", ["x.size(0)"])
    (symbol,) = found.symbols_of("0/1")
    assert (symbol.source, symbol.value, symbol.range) == ("x.size(0)", "5", "at least 2")
    assert symbol.line == 3
    assert (below.subject, below.expected, below.actual) == ("x.size(0)", "at least 4", "2")
    assert below.line == 3 and below.symbolic == []


def test_guards_on_open_sizes_say_what_they_let_through() -> None:
    found = recorded_calls((torch.ones(4, 7), 6), (torch.ones(5, 7), 6), dynamic=None)
    guards = found.guards_of("0/1")
    tensor = next(guard for guard in guards if guard.subject == "x" and guard.kind == "TENSOR_MATCH")
    assert "float32[any, 7]" in tensor.expression
    assert "a second dimension other than 7" in tensor.fails_when and "first dimension" not in tensor.fails_when
    (size,) = [guard for guard in guards if guard.kind == "SHAPE_ENV"]
    assert (size.subject, size.fails_when, size.lines) == ("4 <= x.size(0)", "`x.size(0)` below 4", [3])


def test_a_size_that_was_fixed_is_no_symbol() -> None:
    record = TraceRecord(
        "create_symbol", "0/0", facts={"symbol": "s1", "val": "4", "vr": "[2, int_oo]", "source": "L['n']"}
    )
    fixed = TraceRecord("symbolic_shape_specialization", "0/0", facts={"symbol": "s1", "value": "4"})
    kept = Ledger()
    kept.record(record)
    assert [symbol.source for symbol in kept.symbols_of("0/0")] == ["n"]
    kept.record(fixed)
    assert kept.symbols_of("0/0") == []


def test_every_compilation_has_its_bytecode_and_texts() -> None:
    compilations = captured("05").compilations
    assert [(one.id, one.function, one.line, one.graphs) for one in compilations] == [
        (f"0/{place}", "scale_by", 4, [f"graph_{place}"]) for place in range(3)
    ]
    for one in compilations:
        assert "LOAD" in one.bytecode_before and "__compiled_fn" in one.bytecode_after
        names = [text.name for text in one.artefacts]
        assert names[:3] == ["graph_code", "aot_graphs", "guards"]
        assert ("recompiles" in names) == (one.id != "0/0")


def test_forward_joint_and_backward_are_among_the_texts() -> None:
    (one,) = captured("08").compilations
    titles = [text.title for text in one.artefacts]
    assert any("before they are split" in title for title in titles)
    assert any("backward graph that" in title for title in titles)


def test_texts_are_bounded_and_say_how_long_they_were() -> None:
    long = artefacts.artefact("guards", "all", "x" * (artefacts.LONGEST_ARTEFACT + 5))
    assert len(long.text) == artefacts.LONGEST_ARTEFACT and long.chars == artefacts.LONGEST_ARTEFACT + 5
    for prefix in ("08", "10", "12"):
        compilations = captured(prefix).compilations
        texts = [text for one in compilations for text in one.artefacts]
        assert all(len(text.text) <= artefacts.LONGEST_ARTEFACT for text in texts)
        assert sum(len(text.text) for text in texts) <= ledger.MOST_TEXT


def test_texts_tell_nothing_of_the_machine() -> None:
    for prefix in ("04", "08", "10"):
        for one in captured(prefix).compilations:
            for text in (one.bytecode_before, one.bytecode_after, *(known.text for known in one.artefacts)):
                assert "site-packages" not in text and 'File "/' not in text
                assert str(Path(__file__).parents[2]) not in text
                assert "0x" not in text.replace("0x…", "")


@pytest.mark.parametrize("folder", ["/opt/python/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages"])
def test_where_packages_are_installed_is_not_told(folder: str) -> None:
    text = f"source=G['torch'], type=<module 'torch' from '{folder}/torch/__init__.py'>  # from {folder}/torch/a.py:3"
    plain = artefacts.artefact("guards", "all", text).text
    assert plain == "source=G['torch'], type=<module 'torch' from 'torch/__init__.py'>  # from torch/a.py:3"


def test_the_budget_cuts_the_last_texts_to_nothing() -> None:
    calls = "".join(f"f(torch.ones({size}))\n" for size in range(2, 8))
    source = "import torch\n\n@torch.compile\ndef f(x):\n    return x.sin() + 1\n\n" + calls
    whole = captured_source(source).compilations
    assert all(text.text for one in whole for text in one.artefacts)
    budget = ledger._Budget(10)
    assert (budget.take("12345678"), budget.take("123"), budget.take("12")) == ("12345678", "", "12")
