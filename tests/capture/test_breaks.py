"""Every graph break is told once, by its cause, with what to do about it and the graphs around it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.torch_version import TorchVersion

from compiler.capture.diagnosis.break_kinds import BREAK_KINDS, kind_of_break
from compiler.capture.diagnosis.breaks import report_break
from tests.capture.broken_programs import BROKEN, program
from tests.capture.programs import captured, captured_source

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "graph_breaks.md"


def line_of_body(source: str) -> int:
    return source.splitlines().index("    y = x.sin()") + 2


@pytest.mark.parametrize("kind", BROKEN)
def test_a_break_is_of_its_kind(kind: str) -> None:
    breaks = captured_source(BROKEN[kind]).breaks
    assert kind in {found.category for found in breaks}
    for found in breaks:
        assert found.title and found.reason and found.line is not None
        assert found.remedy.endswith(".") and ". " not in found.remedy
    body = line_of_body(BROKEN[kind])
    # A function that was called could not be traced: then it is its own line that stopped tracing.
    assert any(found.line == body for found in breaks) or kind == "higher_order"


#: Whose reason is not the user's break, not the backend, and not a hint: the program, with what the reason must say.
BLAMED = {
    "an optimizer": (
        program(
            "optimizer.step()",
            "weight = torch.ones(8, requires_grad=True)\nweight.grad = weight.detach()\n"
            "optimizer = torch.optim.RMSprop([weight], lr=torch.tensor(0.1))\n"
            "schedule = torch.optim.lr_scheduler.LinearLR(optimizer)\n",
        ),
        "a function of PyTorch that does, such as the step() of an optimizer",
    ),
    "a place in memory": (
        program("y = table[place] + y", "table, place = torch.ones(9, 8), torch.tensor(3)\n"),
        "item",
    ),
    "a hook": (BROKEN["hook"], "backward"),
}


@pytest.mark.parametrize("name", BLAMED)
def test_a_reason_blames_what_stopped_tracing(name: str) -> None:
    source, words = BLAMED[name]
    breaks = captured_source(source).breaks
    assert any(words in found.reason for found in breaks), breaks
    for found in breaks:
        assert found.line == line_of_body(source) or name == "an optimizer"
        told = f"{found.kind} {found.reason} {found.hint}"
        assert not found.reason.startswith("Hint:")
        assert "site-packages" not in told and "fusionscope" not in told and " at 0x" not in told
        assert "tlparse" not in told and "User-inserted" not in told


@pytest.mark.parametrize("said", ["This is not supported.", "Currently not supported", "Dynamo does not support this."])
def test_an_explanation_that_says_nothing_gives_way_to_the_name(said: str) -> None:
    found = report_break(
        f"Graph Break Reason: Storing Tensor hook handle in globals\n  Explanation: {said}\n  Hint: None."
    )
    assert found.reason == "Storing Tensor hook handle in globals" and found.category == "hook"


def test_every_kind_has_a_program_and_a_paragraph() -> None:
    assert set(BROKEN) == {kind.id for kind in BREAK_KINDS} - {"other"}
    text = DOCUMENT.read_text()
    for kind in BREAK_KINDS:
        assert f"## {kind.id}: {kind.title}\n\n{kind.sentence}\n\n{kind.remedy}\n" in text, f"not documented: {kind.id}"


def test_what_is_unknown_is_of_the_last_kind() -> None:
    assert kind_of_break("Zork", "Nobody knows.").id == "other"


#: Name and explanation in torch 2.11 and in 2.13: each release has words of its own for these.
OF_TWO_RELEASES = {
    "side_effect": [
        ("Failed to trace builtin operator", "Dynamo does not know how to trace builtin operator `setattr` with ..."),
        ("setattr() on unsupported type", "setattr() is not supported on type mappingproxy"),
    ],
    "python_feature": [
        ("Attempted to call function marked as skipped", "... trace the builtin `builtins.__build_class__.` ..."),
        ("Invalid call to __build_class__", "Cannot trace class definition: ..."),
    ],
}


@pytest.mark.parametrize("kind", OF_TWO_RELEASES)
def test_a_kind_is_found_in_the_words_of_every_release(kind: str) -> None:
    assert {kind_of_break(*words).id for words in OF_TWO_RELEASES[kind]} == {kind}


def test_a_hint_does_not_decide_the_kind() -> None:
    """Dynamo's hints for any builtin speak of logging functions."""
    (found,) = captured_source(program("y = y + time.perf_counter()", "import time\n")).breaks
    assert found.category == "c_function"


_STATES = ["torch.manual_seed(0)", "torch.get_rng_state()", "y = y + torch.initial_seed()"]
if TorchVersion(torch.__version__) >= "2.12":  # torch 2.11 says of a generator what it says of any function of C++
    _STATES.append("torch.Generator()")


@pytest.mark.parametrize("body", _STATES)
def test_the_state_of_random_numbers_is_kept_around_the_compiled_function(body: str) -> None:
    found = captured_source(program(body)).breaks[0]
    assert found.category == "random_state" and "around the compiled function" in found.remedy
    around = program("y = y + torch.rand(8)").replace("\nf(", "\nwith torch.random.fork_rng():\n    f(")
    assert captured_source(around).breaks == []


@pytest.mark.parametrize("body", ["y = sorted([y[0], y[1]])[0]", "y = sorted([y, y[1:]], key=torch.sum)[0]"])
def test_a_sort_by_tensors_depends_on_their_numbers(body: str) -> None:
    (found,) = captured_source(program(body)).breaks
    assert found.category == "data_dependent_branch" and "torch.sort" in found.remedy


def test_a_recurrent_layer_is_not_taken_for_a_tensor() -> None:
    source = program("y = layer(y[None, None])[0]", "layer = torch.nn.GRU(8, 4)\n")
    (found,) = captured_source(source).breaks
    assert "tensor" not in f"{found.title} {found.remedy}" and "Dynamo's hint" in found.remedy
    assert found.hint is not None and "allow_rnn" in found.hint and "allow_rnn" in found.remedy


def test_a_break_is_told_without_addresses() -> None:
    """They differ from run to run, and `fusionscope check` would call the break new."""
    (found,) = captured_source(BROKEN["disabled"]).breaks
    assert "<function" in found.reason and "0x" not in found.reason


def test_a_break_links_the_graphs_around_it() -> None:
    capture = captured_source(BROKEN["explicit"])
    (found,) = capture.breaks
    assert (found.before, found.after) == (["graph_0"], ["graph_1"])
    assert capture.graphs[0].breaks == [found] and capture.graphs[1].breaks == []


def test_a_break_without_a_graph_of_its_own_lies_between_those_that_ran() -> None:
    """`.item()` ends a graph; printing what it gave ends a function that has no operator yet."""
    item, printed = captured("10").breaks
    assert (item.category, printed.category) == ("scalar_read", "print")
    assert printed.before == ["graph_0"] and printed.after == ["graph_1"]


def test_the_same_break_is_told_once_with_how_often_it_was_met() -> None:
    source = program("torch._dynamo.graph_break()") + "f(torch.ones(9))\nf(torch.ones(10))\n"
    capture = captured_source(source)
    (found,) = capture.breaks
    # The third size is served by what the second made of the first: graphs for every size.
    assert found.count == 2 and capture.graph_breaks == 1
    assert found.before == ["graph_0", "graph_2"] and found.after == ["graph_1", "graph_3"]


def test_a_break_before_any_operator_is_told_too() -> None:
    body = "    torch._dynamo.graph_break()\n    return x + 1\n"
    source = f"import torch\n\n@torch.compile\ndef f(x):\n{body}\nf(torch.ones(3))\n"
    capture = captured_source(source)
    (found,) = capture.breaks
    assert found.before == [] and found.after == ["graph_0"] and found.line == 5


def test_an_operator_that_reads_a_number_while_it_is_traced_breaks_the_graph() -> None:
    """Dynamo does not look into it; AOTAutograd, which does, has no number, and Dynamo takes the break from there."""
    report = captured_source("""import torch

@torch.library.custom_op("snippet::by_largest", mutates_args=())
def by_largest(x: torch.Tensor) -> torch.Tensor:
    return x * float(x.max())

@by_largest.register_fake
def _(x):
    return torch.empty_like(x)

def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)

def backward(ctx, gradient):
    return gradient * ctx.saved_tensors[0].max().item()

by_largest.register_autograd(backward, setup_context=setup)

@torch.compile
def f(x):
    return by_largest(torch.tanh(x) * 2).sum()

f(torch.randn(8, 8, requires_grad=True)).backward()
""")
    assert report.error is None
    (found,) = report.breaks
    assert found.category == "scalar_read" and found.line is not None


def test_a_gradient_whose_size_depends_on_data_breaks_the_graph() -> None:
    """The forward pass of a write at a mask has fixed sizes; its gradient gathers as many values as the mask has."""
    report = captured_source("""import torch

@torch.compile
def f(x, values, mask):
    out = torch.zeros_like(x)
    out[mask] = values
    return out * 2

x = torch.randn(8, requires_grad=True)
f(x, x[x > 0], x > 0).sum().backward()
""")
    assert report.error is None
    assert {found.category for found in report.breaks} == {"data_dependent_shape"}
