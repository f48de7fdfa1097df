"""Every snippet is captured as its author would expect: graphs, lines, notes, breaks, recompilations, errors."""

from __future__ import annotations

import socket
import urllib.error

import pytest
import torch

from compiler.capture import describe_fx, is_random, reference_run
from tests.capture.programs import captured, captured_source, lines, source_of, targets

RUNNING = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "17", "18"]


@pytest.mark.parametrize("prefix", RUNNING)
def test_every_node_is_known_by_line(prefix: str) -> None:
    capture = captured(prefix)
    assert capture.error is None
    assert capture.graphs and capture.entries
    for graph in capture.graphs:
        assert graph.function is not None
        for node in graph.aten.graph.nodes:
            if node.op == "call_function":
                assert node.meta["lines"], node


@pytest.mark.parametrize("prefix", RUNNING)
def test_every_graph_replays_on_its_own_inputs(prefix: str) -> None:
    for graph in captured(prefix).graphs:
        assert graph.inputs is not None and graph.runner.calls > 0
        if is_random(graph):
            continue
        plain, exact = reference_run(graph, graph.inputs, None), reference_run(graph, graph.inputs)
        for ours, reference in zip(plain, exact, strict=True):
            if isinstance(ours, torch.Tensor) and ours.is_floating_point():
                assert reference.dtype == torch.float64
                scale = reference.abs().max().item() + 1e-3
                tolerance = 3e-2 if ours.dtype == torch.bfloat16 else 1e-4
                assert (ours.double() - reference).abs().max().item() <= tolerance * scale


@pytest.mark.parametrize("prefix", ["01", "03", "06", "08", "12", "13"])
def test_replaying_an_entry_compiles_nothing_new(prefix: str) -> None:
    capture = captured_source(source_of(prefix))
    graphs, calls = len(capture.graphs), sum(graph.runner.calls for graph in capture.graphs)
    for entry in capture.entries:
        args, kwargs = entry.copy_arguments()
        entry.compiled(*args, **kwargs)
        entry.eager(*args, **kwargs)
    assert len(capture.graphs) == graphs
    assert sum(graph.runner.calls for graph in capture.graphs) > calls


def test_uncalled_function_gets_a_default_and_says_so() -> None:
    capture = captured("01")
    (graph,) = capture.graphs
    assert graph.function == "wavy_gate"
    assert [tuple(value.shape) for value in graph.inputs or []] == [(1024, 1024)] * 2
    assert lines(graph) == [6, 7, 8, 9, 10, 11]
    assert capture.notes[0].message.startswith("u and v were not given: float32 tensors of 1024 x 1024")
    assert capture.notes[0].line == 4


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import torch\n@torch.no_grad()\n@torch.compile\ndef f(x):\n    return x.sin()\n", 4),
        ("f = lambda x: x.sin()\n", 1),
        ("from torch import nn\nclass M(nn.Module):\n    def forward(self, x):\n        return x.sin()\n", 3),
    ],
    ids=["a decorated function", "a lambda", "a module"],
)
def test_inputs_that_were_not_given_are_noted_where_they_are_named(source: str, line: int) -> None:
    (note,) = captured_source(source).notes
    assert "not given" in note.message and note.line == line


def test_inputs_are_found_by_name_and_cuda_becomes_the_cpu() -> None:
    capture = captured("02")
    (graph,) = capture.graphs
    assert [tuple(value.shape) for value in capture.entries[0].args] == [
        (512, 2048), (2048, 4096), (2048, 4096), (4096, 2048)
    ]  # fmt: skip
    assert targets(graph).count("aten.mm.default") == 2
    assert graph.dynamo is not None
    assert [node.name for node in describe_fx(graph.dynamo) if node.dead] == ["gate"]
    assert capture.notes[0].line == 13 and "13, 14, 15, 16, 17" in capture.notes[0].message


def test_cuda_method_becomes_the_cpu_without_a_copy() -> None:
    capture = captured("03")
    assert targets(capture.graphs[0]) == ["aten.cos.default", "aten.sin.default", "aten.add.Tensor"]
    assert capture.notes[0].line == 5 and "lines 5, 6, 11" in capture.notes[0].message


def test_data_dependent_branch_breaks_the_graph_and_custom_backend_prints() -> None:
    capture = captured("04")
    assert capture.graph_breaks == 1 and capture.recompiles == 0
    assert [graph.function for graph in capture.graphs] == ["flip_sign_if_negative"] * 3
    first, *rest = capture.graphs
    assert [(item.line, item.kind) for item in first.breaks] == [(16, "Data-dependent branching")]
    # Either branch is a graph of its own, which runs after the one that the branch ended.
    assert (first.breaks[0].before, first.breaks[0].after) == (["graph_0"], ["graph_1", "graph_2"])
    assert first.breaks[0].hint and "torch.cond" in first.breaks[0].hint
    assert not any(graph.breaks for graph in rest)
    assert first.runner.calls == 100 == sum(graph.runner.calls for graph in rest)
    assert capture.output.startswith("captured:")
    assert any("show_graph" in note.message for note in capture.notes)


def test_an_int_argument_compiles_anew_with_the_guard_that_failed() -> None:
    capture = captured("05")
    assert len(capture.graphs) == 3 and capture.recompiles == 2
    assert not capture.graphs[0].recompiles
    first, second = (graph.recompiles[0] for graph in capture.graphs[1:])
    assert first.function == "scale_by" and first.line == 7
    assert first.reason == "`k` was 3, and the existing code needs `k == 2`"
    assert (first.expected, first.actual) == ("2", "3")
    # The second graph serves 3 and 6, and every other that takes the same branch.
    assert second.reason == "`k` was -3, and the newest code needs `0 <= k`"
    assert [symbol.source for symbol in capture.graphs[1].symbols] == ["k"]
    guard = next(guard for guard in capture.graphs[0].guards if guard.name == "L['k']")
    assert guard.expression == "L['k'] == 2" and guard.lines == [7]
    assert guard.subject == "k" and guard.fails_when == "`k` other than 2"


def test_module_keeps_paths_and_both_lines() -> None:
    (graph,) = captured("06").graphs
    assert graph.phase == "forward" and graph.function == "MLP"
    tanh = next(node for node in describe_fx(graph.aten) if node.name == "tanh")
    assert tanh.module == "gelu" and tanh.lines == [20, 9]
    assert tanh.text == "tanh(mul_2)" and tanh.shape == [4, 128, 3072] and tanh.bytes == 4 * 4 * 128 * 3072


def test_model_with_get_inputs_runs_without_gradients() -> None:
    (graph,) = captured("07").graphs
    assert graph.phase == "inference" and graph.function == "Model"
    assert "aten.addmm.default" in targets(graph)


def test_training_step_has_both_graphs() -> None:
    capture = captured("08")
    forward, backward = capture.graphs
    assert (forward.name, backward.name) == ("graph_0", "graph_0_backward")
    assert (forward.phase, backward.phase) == ("forward", "backward")
    assert forward.runner.calls == backward.runner.calls == 3
    assert is_random(forward) and not is_random(backward)
    assert capture.entries[0].graphs == ["graph_0", "graph_0_backward"]
    assert lines(backward) == [11]


def test_the_second_batch_size_compiles_for_all_others() -> None:
    capture = captured("09")
    assert len(capture.graphs) == 2 and capture.recompiles == 1
    (change,) = capture.graphs[1].recompiles
    assert change.line == 6
    assert (change.subject, change.expected, change.actual) == ("x.size(0)", "8", "16")
    (symbol,) = capture.graphs[1].symbols
    assert (symbol.source, symbol.value, symbol.range) == ("x.size(0)", "16", "at least 2")
    assert change.reason == "dimension 0 of `x` was 16, and the existing code is for 8 only"
    assert "float32[8, 512]" in capture.graphs[0].guards[0].expression


def test_item_and_print_break_the_graph_at_their_line() -> None:
    capture = captured("10")
    assert len(capture.graphs) == 2 and capture.graph_breaks == 2
    assert {item.line for item in capture.graphs[0].breaks} == {7}
    assert any("item()" in item.reason for item in capture.graphs[0].breaks)
    assert capture.output.startswith("mean so far 0.")


def test_lone_function_is_explored() -> None:
    capture = captured("11")
    assert capture.graphs[0].function == "softmax"
    assert capture.notes[0].message.startswith("x was not given: a float32 tensor of 1024 x 1024")


def test_mutation_is_functional_and_its_position_recompiles_once() -> None:
    capture = captured("13")
    assert capture.recompiles == 1
    assert not any(target.endswith("_.default") for graph in capture.graphs for target in targets(graph))
    assert capture.graphs[1].recompiles[0].line == 6
    dynamo = capture.graphs[0].dynamo
    assert dynamo is not None and not any(node.dead for node in describe_fx(dynamo))


def test_no_network_is_said_with_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise urllib.error.URLError(socket.gaierror(-2, "Name or service not known"))

    monkeypatch.setattr("torch.hub.urlopen", refuse)
    error = captured_source(source_of("14")).error
    assert error is not None and error.line == 3
    assert error.hint and "no network" in error.hint


def test_syntax_error_has_its_line() -> None:
    error = captured_source(source_of("15")).error
    assert error is not None and (error.type, error.line) == ("SyntaxError", 4)


def test_error_inside_a_compiled_function_is_the_authors_own() -> None:
    error = captured_source(source_of("16")).error
    assert error is not None and (error.type, error.line) == ("RuntimeError", 6)
    assert "cannot be multiplied (4x8 and 9x16)" in error.message


def test_compiled_call_without_a_name() -> None:
    (graph,) = captured("17").graphs
    assert graph.function == "f" and len(reference_run(graph, graph.inputs or [])) == 3


def test_reverse_read() -> None:
    assert lines(captured("18").graphs[0]) == [6, 7]


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_hook_finds_the_globals_of_its_own_program(name: str) -> None:
    """torch calls it, so that Dynamo looks them up in `__main__`, which was another module for the other program."""
    capture = captured_source(
        f"import torch\n{name} = {{}}\ndef hook(module, given, made):\n    {name}['made'] = made.detach()\n"
        "model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())\nmodel[0].register_forward_hook(hook)\n"
        "model(torch.randn(4, 8))\n"
    )
    assert capture.error is None and len(capture.graphs) == 1


def test_commands_of_a_notebook_are_left_out() -> None:
    source = (
        "%%time\n!pip install torch\nimport torch\n%matplotlib inline\ndef f(x):\n    return x.sin()\n"
        'if True:\n    %timeit -n 10 -q f(torch.ones(3, 5))\nx = """\n100%\n"""\n'
    )
    capture = captured_source(source)
    assert capture.error is None and capture.entries[0].args[0].shape == (3, 5)
    assert [(note.message, note.line) for note in capture.notes] == [
        ("Commands of a notebook were left out: lines 1, 2, 4.", 1),
        ("What `%timeit` or `%time` times was run once: line 8.", 8),
    ]


@pytest.mark.parametrize(
    "session",
    [
        """>>> import torch
>>> @torch.compile
... def f(x):
...     return x.sin() + 1
...
>>> f(torch.ones(3))
tensor([1.8415, 1.8415, 1.8415])
""",
        """
In [1]: import torch

In [2]: @torch.compile
   ...: def f(x):
   ...:     return x.sin() + 1
   ...:
In [3]: f(torch.ones(3))
Out[3]: tensor([1.8415, 1.8415, 1.8415])
""",
    ],
    ids=["python", "ipython"],
)
def test_a_session_is_explored_without_its_prompts(session: str) -> None:
    capture = captured_source(session)
    [graph] = capture.graphs
    line = next(n for n, text in enumerate(session.split("\n"), start=1) if "sin" in text)
    assert line in lines(graph)
    assert any("The prompts of a session were left out" in note.message for note in capture.notes)
    assert capture.error is None


def test_a_prompt_within_a_program_is_an_error() -> None:
    error = captured_source("import torch\n>>> x = torch.ones(3)\n").error
    assert error is not None and error.line == 2
