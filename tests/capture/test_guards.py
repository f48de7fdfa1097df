"""Each guard says which line made it, and which change of a call fails it; the change then does compile anew."""

from __future__ import annotations

import pytest

from compiler.capture.diagnosis.comparisons import compared_value, fails_comparison
from compiler.capture.diagnosis.guards import MOST_GUARDS
from compiler.capture.diagnosis.sources import words_of
from compiler.report import Guard
from tests.capture.programs import captured_source

_PROGRAM = """import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.factor = 2.5

    def forward(self, x, n, flag, parts, bias=None, mode="a"):
        y = self.fc(x) * n * self.factor
        if flag and bias is None and mode == "a":
            y = y + parts[0]
        if self.training:
            y = y * 2
        return y


model = Scale()
f = torch.compile(model)
x, parts = torch.randn(2, 4), [torch.ones(4), torch.zeros(4)]
f(x, 3, True, parts)
{second}
"""

#: A second call, and the subject and the words of the guard of the first that it fails.
CHANGES = [
    ("f(x, 4, True, parts)", "n", "`n` other than 3", "3", "4"),
    ("f(x, 3, False, parts)", "flag", "`flag` other than True", "True", "False"),
    ("f(x, 3, True, parts, mode='b')", "mode", "`mode` other than 'a'", "'a'", "'b'"),
    ("f(x, 3, True, parts, bias=1)", "bias", "`bias` other than None", None, "1"),
    ("f(x, 3, True, parts + [x])", "parts", "`parts` of another length than 2", "2", "3"),
    ("f(x, 3, True, [part.double() for part in parts])", "parts[0]", "dtype than float32", "float32", "float64"),
    ("f(x, 3, True, [part.bfloat16() for part in parts])", "parts[0]", "dtype than float32", "float32", "bfloat16"),
    ("model.factor = 3.0\nf(x, 3, True, parts)", "self.factor", "`self.factor` other than 2.5", "2.5", "3.0"),
    ("model.eval()\nf(x, 3, True, parts)", "self.training", "`self.training` other than True", "True", "False"),
    ("f(torch.randn(5, 4), 3, True, parts)", "x", "a first dimension other than 2", "2", "5"),
    ("f(torch.randn(4, 2).t(), 3, True, parts)", "x", "other strides than (4, 1)", None, None),
    ("f(x.clone().requires_grad_(), 3, True, parts)", "x", "or a gradient required", "False", "True"),
]  # fmt: skip


def guard_about(guards: list[Guard], subject: str, words: str) -> Guard:
    return next(guard for guard in guards if guard.subject == subject and words in guard.fails_when)


@pytest.mark.parametrize(("second", "subject", "words", "expected", "actual"), CHANGES)
def test_the_change_that_a_guard_names_compiles_anew(
    second: str, subject: str, words: str, expected: str | None, actual: str | None
) -> None:
    capture = captured_source(_PROGRAM.format(second=second))
    assert capture.error is None
    guard = guard_about(capture.graphs[0].guards, subject, words)
    assert guard.lines and 11 <= guard.lines[-1] <= 15
    (recompile,) = [found for graph in capture.graphs for found in graph.recompiles]
    assert (recompile.subject or "").startswith(subject)
    assert recompile.line is not None and recompile.guard
    if expected is not None:
        assert recompile.expected == expected
    if actual is not None:
        assert recompile.actual == actual


def test_a_recompilation_tells_of_a_length_and_of_one_code_among_several() -> None:
    capture = captured_source("""
import torch
@torch.compile
def f(tensors):
    return sum(tensors)
for count in (2, 3, 4):
    f([torch.randn(3)] * count)
""")
    reasons = [found.reason for graph in capture.graphs for found in graph.recompiles]
    assert reasons == [
        "`len(tensors)` was 3, and the existing code needs `len(tensors) == 2`",
        "`len(tensors)` was 4, and the newest code needs `len(tensors) == 3`",
    ]


def test_a_recompilation_tells_which_settings_of_torch_changed() -> None:
    capture = captured_source("""
import torch
@torch.compile
def f(x):
    return x.sin()
f(torch.randn(3))
with torch.no_grad():
    f(torch.randn(3))
    with torch.autocast("cpu"):
        f(torch.randn(3))
""")
    reasons = [found.reason for graph in capture.graphs for found in graph.recompiles]
    assert reasons[0] == "the setting `grad_mode` of torch was another than the existing code is for"
    assert reasons[1].startswith("the setting") and "`autocast(cpu)_enabled`" in reasons[1]


def test_a_recompilation_says_that_a_guard_could_not_be_asked() -> None:
    """The first call gets a view. Its guard on what it is a view of is an error for the second call."""
    capture = captured_source("""
import torch
@torch.compile(dynamic=True)
def f(x):
    return x + 1
x = torch.randn(16, 24)
f(x[:5])
f(x)
""")
    reasons = [found.reason for graph in capture.graphs for found in graph.recompiles]
    asked = "a guard of the existing code cannot be asked of this call"
    assert reasons == [f"{asked}: `'NoneType' object has no attribute 'size'`"]


def test_a_long_number_that_a_guard_compares_with_is_no_address() -> None:
    """`-19.046875715255737` was told as `-19.`, and 2 ** 40 as nothing."""
    guards = (
        captured_source("""
import torch
@torch.compile
def f(x, factor, count):
    return x * factor + count
f(torch.randn(3), -19.046875715255737, 2 ** 40)
""")
        .graphs[0]
        .guards
    )
    assert guard_about(guards, "factor", "`factor` other than -19.046875715255737")
    assert guard_about(guards, "count", "`count` other than 1099511627776")


def test_guards_of_transforms_are_told_in_words_and_none_of_libraries() -> None:
    """Dynamo guards tables of torch and the globals of a named tuple, whose name holds an address."""
    source = (
        "import torch\nw = torch.randn(5)\ndef g(y):\n    return (y.sin() * w).sum()\n"
        "@torch.compile\ndef f(x):\n    return torch.func.hessian(g)(x)\nf(torch.randn(5))\n"
    )
    guards = [guard for graph in captured_source(source).graphs for guard in graph.guards]
    assert guard_about(guards, "w", "another dtype")
    told = "\n".join(f"{guard.subject} {guard.expression} {guard.fails_when}" for guard in guards)
    assert "___" not in told and "__import__" not in told and "compare_functorch_state" not in told
    assert "a call within other transforms of `torch.func`" in told


def test_guards_are_about_the_snippet_and_not_many() -> None:
    guards = captured_source(_PROGRAM.format(second="")).graphs[0].guards
    assert len(guards) <= MOST_GUARDS
    assert not any("__builtins" in guard.subject or "__import" in guard.subject for guard in guards)
    assert {"x", "self.fc.weight", "self.fc.bias"} <= {guard.subject for guard in guards}
    assert all(guard.fails_when for guard in guards)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("L['x'].size()[0]", "x.size(0)"),
        ("L['self']._modules['layers']._modules['0']._parameters['weight']", "self.layers[0].weight"),
        ("G['model'].training", "model.training"),
        ("L['xs'][0].stride()[1] * L['n']", "xs[0].stride(1) * n"),
        ("L['___stack1']", "a value kept over a graph break"),
    ],
)
def test_sources_are_written_as_in_the_snippet(code: str, words: str) -> None:
    assert words_of(code) == words


@pytest.mark.parametrize(
    ("code", "fails", "compared"),
    [
        ("n == 6", "`n` other than 6", ("n", "6")),
        ("4 <= x.size(0)", "`x.size(0)` below 4", ("x.size(0)", "at least 4")),
        ("k <= -1", "`k` above -1", ("k", "at most -1")),
        ("a.size(0) == b.size(0)", "`a.size(0)` other than `b.size(0)`", None),
        ("2 <= n <= 5", "`n` outside of `2 <= n <= 5`", None),
        ("len(xs) == 2", "`len(xs)` other than 2", ("xs", "2")),
        ("check(x)", None, None),
        ("not python (", None, None),
    ],
)
def test_comparisons_in_words(code: str, fails: str | None, compared: tuple[str, str] | None) -> None:
    assert fails_comparison(code) == fails
    assert compared_value(code) == compared
