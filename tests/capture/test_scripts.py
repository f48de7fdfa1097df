"""Scripts that define nothing to explore: what they compute at top level is explored as a function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from compiler.capture.captured import Capture
from tests.capture.programs import captured_source, targets


def explored(source: str) -> Capture:
    capture = captured_source("import torch\n" + source)
    assert capture.error is None, capture.error
    assert [entry.name for entry in capture.entries] == ["script"]
    return capture


def operators(capture: Capture) -> list[str]:
    return [target.split(".")[1] for graph in capture.graphs for target in targets(graph)]


def results(capture: Capture) -> Any:
    entry = capture.entries[0]
    return entry.eager(*entry.args)


def test_what_is_computed_from_tensors_becomes_a_function_of_them() -> None:
    capture = explored("n = 4\nx = torch.ones(n)\nw = torch.full((n,), 2.0)\ny = x * w\nz = y.sin()\n")
    assert [value[0].item() for value in capture.entries[0].args] == [1.0, 2.0]
    assert operators(capture) == ["mul", "sin"]
    assert torch.equal(results(capture), torch.full((4,), 2.0).sin())


def test_the_note_says_which_lines() -> None:
    (note,) = explored("x = torch.ones(4)\ny = x.sin()\nz = y + x\n").notes
    assert note.line == 3 and "lines 3 to 4 became a function, `script(x)`" in note.message


def test_a_name_may_be_bound_again() -> None:
    capture = explored("x = torch.ones(4)\nx = x * 2\nx = x.sin()\n")
    assert operators(capture) == ["mul", "sin"]
    assert torch.equal(results(capture), torch.full((4,), 2.0).sin())


def test_the_value_of_the_last_line_is_the_result() -> None:
    assert torch.equal(results(explored("x = torch.ones(4)\nx.cos()\n")), torch.ones(4).cos())


def test_what_is_printed_is_computed() -> None:
    capture = captured_source("import torch\nx = torch.ones(4)\ny = x.sin()\nprint(y.sum())\n")
    assert capture.error is None and operators(capture) == ["sin", "sum"]


def test_a_script_of_numpy_is_explored_too() -> None:
    source = "import numpy as np\nx = np.linspace(0, 1, 8)\ny = np.exp(-x * x)\nz = (y - y.mean()) / y.std()\n"
    capture = captured_source(source)
    assert capture.error is None and [entry.name for entry in capture.entries] == ["script"]
    assert {"exp", "mean"} <= set(operators(capture))
    assert np.array_equal(results(capture), np.asarray(capture.names["z"]))


@pytest.mark.parametrize(
    "block",
    [
        "try:\n    import absent_one\nexcept ImportError:\n    absent_one = None\nelse:\n    pass",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import absent_one",
        "if torch.cuda.device_count() > 99:\n    n = 8\nelse:\n    n = 4",
    ],
    ids=["try", "with", "if"],
)
def test_blocks_that_only_set_something_up_stay_outside(block: str) -> None:
    capture = explored(f"{block}\nx = torch.ones(4)\ny = x.sin()\nz = y + 1\n")
    assert operators(capture) == ["sin", "add"] and not capture.breaks
    (note,) = capture.notes
    first = 4 + block.count("\n")
    assert f"lines {first} to {first + 1} became a function" in note.message


def test_a_block_that_computes_belongs_to_the_function() -> None:
    capture = explored("x = torch.ones(4)\nwith torch.no_grad():\n    y = x.sin()\nif x.shape[0] > 2:\n    y = y * 2\n")
    assert operators(capture) == ["sin", "mul"]


@pytest.mark.parametrize(
    "source",
    [
        "x = torch.ones(4)\ny = x.sin()\nprint('once' if y.sum() > 0 else 'never')\n",
        "def f(x):\n    print('once')\n    return x.sin()\nf(torch.ones(4))\n",
        "def main():\n    print('once')\n    return torch.ones(4).sin()\nmain()\n",
    ],
    ids=["script", "function", "main"],
)
def test_what_was_printed_is_not_printed_again(source: str) -> None:
    """What the snippet has run itself is run again to be captured."""
    capture = captured_source("import torch\n" + source)
    assert capture.error is None and capture.entries
    assert capture.output == "once\n"


def test_what_stands_under_main_belongs_to_it() -> None:
    capture = explored('if __name__ == "__main__":\n    x = torch.ones(4)\n    y = x.sin()\n')
    assert len(capture.entries[0].args) == 1 and operators(capture) == ["sin"]


def test_a_loop_that_trains_is_explored_by_one_pass() -> None:
    capture = explored(
        "x = torch.ones(8, 3)\nw = torch.ones(3, requires_grad=True)\noptimizer = torch.optim.SGD([w], 0.1)\n"
        "print('begins')\n"
        "for step in range(3):\n    loss = (x @ w).square().mean()\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n    if loss < 0:\n        break\n    print(step)\n"
    )
    assert [graph.phase for graph in capture.graphs][:2] == ["forward", "backward"]
    assert "one pass of its last loop" in capture.notes[0].message
    assert capture.output.count("begins") == 1


def test_of_loops_within_each_other_the_inner_one_is_taken_if_it_trains() -> None:
    source = (
        "w = torch.ones(3, requires_grad=True)\ndata = [(torch.ones(3), torch.ones(())) for _ in range(2)]\n"
        "for epoch in range(2):\n    if epoch > 5:\n        break\n    for x, y in data:\n"
        "        if y.dim():\n            continue\n        loss = ((w * x).sum() - y).square()\n{backward}"
        "    print(epoch)\n"
    )
    inner = explored(source.format(backward="        loss.backward()\n"))
    assert inner.notes[0].line == 8
    outer = captured_source("import torch\n" + source.format(backward="    loss.backward()\n"))
    assert outer.notes[0].line == 5


def test_a_loop_that_only_prints_is_no_computation() -> None:
    capture = captured_source("import torch\nx = torch.ones(4)\ny = x.sin()\nfor i in range(2):\n    print(y[i])\n")
    assert capture.error is None and "sin" in operators(capture)


def test_what_its_lines_make_is_on_the_default_device() -> None:
    capture = explored('torch.set_default_device("meta")\nx = torch.ones(4)\ny = x + torch.zeros(4)\n')
    assert results(capture).device.type == "meta"


@pytest.mark.parametrize(
    "made", ["arange(4)", "rand(4)", "eye(4)", "linspace(0, 1, 4)", "randint(3, (4,))", "full((4,), 2)"]
)
def test_what_compiled_functions_make_is_on_the_default_device(made: str) -> None:
    source = f'torch.set_default_device("meta")\ndef f(x):\n    return x @ x + torch.{made}\nf(torch.ones(4, 4))\n'
    capture = captured_source("import torch\n" + source)
    assert capture.error is None and results(capture).device.type == "meta"


def test_names_that_are_deleted_and_an_exit_do_not_matter() -> None:
    capture = explored("import sys\nx = torch.ones(4)\ny = x.sin()\ndel x\nz = y.cos()\nsys.exit(0)\n")
    assert operators(capture)[-1] == "cos"


def test_a_generator_is_no_function_to_explore() -> None:
    capture = explored("def parts(x):\n    yield x\n    yield x + 1\nfor x in parts(torch.ones(4)):\n    y = x.sin()\n")
    assert operators(capture) == ["sin"]


@pytest.mark.parametrize(
    "source",
    [
        "torch.ones(4).sin()\n",
        "y = torch.sin(torch.ones(4))\n",
        "import sys\nprint(torch.ones(4).sin())\nsys.exit()\n",
        "x = torch.arange(3)\ny = (torch.ones(4) * 2).sin().sum()\n",
        "for i in range(3):\n    print(torch.full((4,), i).sin().sum())\n",
        "assert (torch.ones(4).sin() > 0).all()\n",
    ],
)
def test_one_statement_is_a_function_without_parameters(source: str) -> None:
    capture = explored(source)
    assert not capture.entries[0].args and "sin" in operators(capture)
    assert "`script()`" in capture.notes[0].message


@pytest.mark.parametrize(
    "source",
    [
        "def main():\n    x = torch.ones(4)\n    y = torch.sin(x)\n    return y\nmain()\n",
        "def demo(n=4):\n    return torch.ones(n).sin()\ndemo()\n",
        "def demo():\n    return torch.ones(4).sin()\n",
        "demo = lambda: torch.ones(4).sin()\n",
    ],
)
def test_a_function_that_makes_its_tensors_itself_is_explored(source: str) -> None:
    capture = captured_source("import torch\n" + source)
    assert capture.error is None and not capture.breaks and operators(capture)[-1] == "sin"


@pytest.mark.parametrize(
    "source", ["print(1 + 1)\n", "import torch\nx = torch.ones(4)\n", "", "def help():\n    return 1\nhelp()\n"]
)
def test_a_script_without_computation_has_nothing_to_explore(source: str) -> None:
    error = captured_source(source).error
    assert error is not None and error.type == "NothingToExplore"
    assert "Put the computation into a function" in (error.hint or "")
