"""Packages that are not installed: a snippet ends where it needs one, and not where it names one."""

from __future__ import annotations

import pytest

from tests.capture.programs import captured_source

COMPUTES = "import torch\ndef f(x):\n    return x.sin() + 1\ny = f(torch.ones(3))\n"


def test_what_only_shows_does_nothing() -> None:
    capture = captured_source(
        f"import math, matplotlib.pyplot as plt\nfrom wandb import log\n{COMPUTES}"
        "plt.style.use('dark')\nfigure, (left, right) = plt.subplots(1, 2)\nleft.plot(y)\nfigure.title = 'y'\n"
        "for axis in figure.axes:\n    axis[0].grid()\nwith plt.ion():\n    log({'y': y})\n"
        "print(math.floor(1.5), bool(plt.isinteractive()))\n"
    )
    assert capture.error is None and capture.output == "1 False\n" and len(capture.graphs) == 1
    assert [(note.message, note.line) for note in capture.notes] == [
        ("matplotlib is not installed here. What is asked of it does nothing.", 1),
        ("wandb is not installed here. What is asked of it does nothing.", 2),
    ]


@pytest.mark.parametrize("call", ["plt.plot(y)", "plt.figure().gca().plot(y)", "plot(y)"])
@pytest.mark.parametrize("decorator", ["", "@torch.compile\n"])
def test_what_comes_before_a_plot_is_captured(call: str, decorator: str) -> None:
    """One operator too: for less than two, Dynamo breaks a graph at calls alone."""
    capture = captured_source(
        "import torch\nimport matplotlib.pyplot as plt\nfrom matplotlib.pyplot import plot\n"
        f"{decorator}def f(x):\n    y = x.softmax(-1)\n    {call}\n    return y\nf(torch.ones(3, 4))\n"
    )
    assert capture.error is None and len(capture.graphs) == 1


@pytest.mark.parametrize(
    "use", ["absent_one.relu(y)", "part(y)", "class A(absent_one.Base): pass", "class A(part): pass", "list(part)"]
)
def test_what_computes_ends_the_snippet_where_it_is_used(use: str) -> None:
    capture = captured_source(f"import absent_one\nfrom absent_two.inner import part\n{COMPUTES}\n{use}\n")
    assert capture.error is not None and (capture.error.type, capture.error.line) == ("ModuleNotFoundError", 8)
    assert capture.error.message in ("No module named 'absent_one'", "No module named 'absent_two'")


def test_what_is_named_alone_is_not_missed() -> None:
    capture = captured_source(f"import absent_one as one\n{COMPUTES}")
    assert capture.error is None and len(capture.graphs) == 1
    assert capture.notes[0].message == "absent_one is not installed here. The snippet ends where it uses it."


def test_what_a_snippet_can_do_without_fails_at_once() -> None:
    capture = captured_source(
        f"try:\n    import absent_one\nexcept ImportError:\n    absent_one = None\n{COMPUTES}print(absent_one)\n"
    )
    assert capture.error is None and capture.output == "None\n" and not capture.notes


@pytest.mark.parametrize("suppress", ["contextlib.suppress(ImportError)", "suppress(ImportError, AttributeError)"])
def test_what_a_snippet_suppresses_fails_at_once(suppress: str) -> None:
    capture = captured_source(
        "import contextlib\nfrom contextlib import suppress\n"
        f"with {suppress}:\n    import absent_one\n    print('it is there')\n{COMPUTES}"
    )
    assert capture.error is None and capture.output == "" and not capture.notes


@pytest.mark.parametrize("line", ["from absent_one import *", "from . import absent_one"])
def test_what_gives_no_names_fails_at_once(line: str) -> None:
    error = captured_source(f"{line}\n{COMPUTES}").error
    assert error is not None and error.line == 1
