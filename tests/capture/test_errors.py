"""What goes wrong in a compiled call is the author's own error, at its line, or says what to do."""

from __future__ import annotations

import pytest
import torch
from torch.torch_version import TorchVersion

from compiler.backend import fusionscope
from compiler.capture.diagnosis.errors import hint_for, in_short
from compiler.failures import error_of
from compiler.runtime.cpp.instruction_sets import instruction_set
from tests.capture.programs import captured_source

PROGRAM = """import torch

@torch.compile
def f(x, i):
    {first}
    {second}
    return y * 2

f(torch.randn(4, 1, requires_grad={is_trained}), torch.tensor([7])){after}
"""

#: First and second line of the function, the kind of error, its line, and words of its message or of its hint.
CASES = {
    "a place out of bounds": ("y = x.sin()", "y = y[i] + 1", "IndexError", 6, "index 7 is out of bounds"),
    "a write to an expanded tensor": ("y = x.expand(4, 6)", "y.add_(1)", "RuntimeError", 6, "more than one element"),
}


@pytest.mark.parametrize("name", CASES)
def test_error_has_its_line_and_words(name: str) -> None:
    first, second, kind, line, words = CASES[name]
    error = captured_source(PROGRAM.format(first=first, second=second, is_trained=False, after="")).error
    assert error is not None and (error.type, error.line) == (kind, line)
    assert words in f"{error.message} {error.hint}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (">>> import torch", "Take out all prompts"),
        ("In [1]: import torch", "Take out all prompts"),
        ("```python", "fences of Markdown"),
        ("Here is the code:\n```python\nx = 1\n```", "fences of Markdown"),
        ("x =\u00a01", "A web page or a word processor"),
        ("print(\u201chi\u201d)", "A web page or a word processor"),
        ("%%bash\necho a b", "command of a notebook"),
        ("!pip install torch\nx = = 1", "command of a notebook"),
    ],
)
def test_what_was_pasted_with_the_program_is_named(line: str, words: str) -> None:
    error = captured_source(f"import math\n{line}\n").error
    assert error is not None and (error.type, error.line) == ("SyntaxError", 2)
    assert words in (error.hint or "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import argparse; a = argparse.ArgumentParser(); a.add_argument('n'); a.parse_args([])", "gets no arguments"),
        ("import sys, io; sys.stdin = io.StringIO(); n = int(input())", "gets no arguments and no input"),
        ("raise OSError(27, 'File too large')", "`file_mib`"),
        ('raise RuntimeError("can\'t start new thread")', "`processes`"),
    ],
)
def test_a_bound_of_the_service_is_named(line: str, words: str) -> None:
    error = captured_source(f"import torch\n{line}\n").error
    assert error is not None and error.line == 2 and words in (error.hint or "")


def test_a_fence_of_a_docstring_is_not_blamed() -> None:
    source = 'def f(x):\n    """As in\n    ```python\n    f(1)\n    ```\n    """\n    return x +\n'
    error = captured_source(source).error
    assert error is not None and (error.line, error.hint) == (7, None)


def test_an_exception_that_cannot_speak_is_the_snippets_own() -> None:
    source = "class Mute(Exception):\n    def __str__(self):\n        return 1 / 0\nraise Mute\n"
    error = captured_source(source).error
    assert error is not None and (error.type, error.message, error.line) == ("Mute", "Mute", 4)


def test_a_script_that_ends_itself_is_told_in_words() -> None:
    error = captured_source("import sys\nsys.exit(3)\n").error
    assert error is not None and (error.message, error.hint) == ("The script ended itself by sys.exit(3).", None)


def test_a_break_where_none_may_be_has_its_remedy() -> None:
    source = "import torch\n@torch.compile(fullgraph=True)\ndef f(x):\n    print(x)\n    return x\n"
    error = captured_source(f"{source}f(torch.ones(4))\n").error
    assert error is not None and "Print after the compiled function" in (error.hint or "")


def test_an_error_without_words_within_dynamo_has_its_name_and_advice() -> None:
    source = """import torch
class Parts(tuple):
    def __len__(self):
        raise NotImplementedError
parts = Parts((1, 2))
@torch.compile
def f(x):
    return x * sum(parts)
f(torch.ones(4))
"""
    error = captured_source(source).error
    assert error is not None and error.message == "NotImplementedError"
    assert "torch.compiler.disable" in (error.hint or "")


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    error = captured_source("import torch\ndef f(x): return x.sin()\n", entry="g").error
    assert error is not None and error.message == "The snippet defines no 'g'; it defines f." and error.hint is None


def test_a_wrong_variable_of_the_environment_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSIONSCOPE_INSTRUCTION_SET", "none of them")
    with pytest.raises(ValueError, match="FUSIONSCOPE") as raised:
        instruction_set()
    error = error_of("run", raised.value)
    assert (error.type, error.traceback) == ("WrongSetting", None)
    assert "Correct this variable" in (error.hint or "")


def test_a_gradient_of_a_gradient_says_what_to_do() -> None:
    first, after = "y, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)", ".sum().backward()"
    error = captured_source(PROGRAM.format(first=first, second="y = y.sin()", is_trained=True, after=after)).error
    assert error is not None and error.line == 9 and "torch.func.grad" in (error.hint or "")


@pytest.mark.skipif(TorchVersion(torch.__version__) < "2.12", reason="torch 2.11 breaks the graph at a gradient")
def test_two_gradients_of_one_result_say_so_too() -> None:
    """As a network that solves a differential equation has them: `create_graph` makes each ask for gradients."""
    error = captured_source(
        "import torch\n@torch.compile\ndef f(x, t):\n    y = (x * t).tanh()\n"
        "    first, = torch.autograd.grad(y.sum(), t, create_graph=True)\n"
        "    second, = torch.autograd.grad(y.sum(), x, create_graph=True)\n    return first + second\n"
        "f(torch.ones(8, requires_grad=True), torch.ones(8, requires_grad=True))\n"
    ).error
    assert error is not None and error.line == 6 and "torch.func.grad" in (error.hint or "")


def test_an_error_that_the_snippet_handled_is_not_the_one_that_ended_it() -> None:
    after = "\n".join(("", "except IndexError:", "    pass", "raise ValueError('the end')"))
    source = PROGRAM.format(first="y = x.sin()", second="y = y[i] + 1", is_trained=False, after=after)
    error = captured_source(source.replace("\nf(", "\ntry:\n    f(")).error
    assert error is not None and (error.type, error.message) == ("ValueError", "the end")


def test_inference_mode_inside_says_what_to_do() -> None:
    """Not captured here: PyTorch leaves the process in inference mode when that fails."""
    assert "around the call" in (hint_for(RuntimeError("Cannot set version_counter for inference tensor")) or "")
    of_torch = "INTERNAL ASSERT FAILED: Expected this method to only be reached when all are inference tensors."
    assert hint_for(RuntimeError(of_torch)) is None


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("y = x.expand(4, 6)", "y.zero_()", "as expand makes them"),
        ("y = x * 2", "y.unfold(0, 2, 3).add_(1)", "through windows of unfold"),
        ("y = x * 2", "y[1:].copy_(y[:-1])", "another argument of the call overlaps"),
        ("y = x.view(2, 2) * 2", "y.T.add_(1); y = y.as_strided((2,), (1,))", "as_strided looks at"),
    ],
)
def test_writes_that_are_left_to_eager_are_noted_with_the_cause(first: str, second: str, words: str) -> None:
    capture = captured_source(PROGRAM.format(first=first, second=second, is_trained=False, after=""))
    assert not capture.graphs
    (note,) = capture.notes
    assert note.line == 6 and "left to eager mode" in note.message and words in note.message


def test_the_backend_leaves_them_to_eager_too() -> None:
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.compile(lambda x: x.expand(4, 6).add_(1) * 2, backend=fusionscope)(torch.randn(4, 1))
    x = torch.randn(4, 6)
    torch.testing.assert_close(torch.compile(lambda x: x.t_().add_(1), backend=fusionscope)(x.clone()), x.t() + 1)


LOOP = """import torch
from torch._higher_order_ops import while_loop

@torch.compile
def f(x):
    y = x.sin()
    return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 1.5), (torch.tensor(0), y))[1].sum()

f(torch.randn(4, requires_grad=True)).backward()
"""


def test_a_loop_that_torch_cannot_differentiate_is_named() -> None:
    error = captured_source(LOOP).error
    assert error is not None and error.line == 7 and "torch.compiler.disable" in (error.hint or "")


def test_a_note_has_what_torch_says_first_and_none_of_its_advice() -> None:
    said = "\nA tensor of another class came back. It is a Tensor.\n\nWhile executing %mm : [num_users=1]\nUse tlparse"
    assert in_short(RuntimeError(said)) == "RuntimeError: A tensor of another class came back"


def test_a_failed_check_on_a_gpu_is_no_defect_of_ours() -> None:
    said = "CUDA error: device-side assert triggered"
    error = error_of("measure", RuntimeError(said))
    assert error.type == "RuntimeError" and error.stage == "measure" and "out of its range" in (error.hint or "")
    raised = captured_source(f"raise RuntimeError({said!r})\n").error
    assert raised is not None and raised.hint == error.hint
    assert error_of("measure", RuntimeError("CUDA error: an illegal memory access")).type == "InternalError"


def test_what_only_fails_compiled_is_said_to_for_errors_of_autograd() -> None:
    """Results of one compiled graph cannot be differentiated one after the other."""
    error = captured_source(
        "import torch\nG, D = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)\n@torch.compile\ndef step(x):\n"
        "    made = G(x)\n    D(made.detach()).mean().backward()\n    D(made).mean().backward()\n"
        "step(torch.ones(2, 3))\n"
    ).error
    assert error is not None and error.line == 7
    assert (error.hint or "").startswith("The same call without compilation succeeds")


def test_what_the_snippet_raises_itself_has_no_such_hint() -> None:
    error = captured_source(
        "import torch\ncalls = []\n@torch.compile\ndef f(x):\n    x = x.sin()\n    torch._dynamo.graph_break()\n"
        "    calls.append(1)\n    if len(calls) == 1:\n        raise ValueError('first')\n    return x\n"
        "f(torch.ones(3))\n"
    ).error
    assert error is not None and error.message == "first" and error.hint is None
