"""Programs that train without compiling anything: their step is what is explored, with its backward graph."""

from __future__ import annotations

import textwrap

import pytest
import torch

from tests.capture.programs import captured_source

SET_UP = """import torch
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.ones(4, 6), torch.zeros(4, dtype=torch.int64)
"""
STEP = "optimizer.zero_grad()\nloss = criterion(model(x), y)\nloss.backward()\noptimizer.step()\n"


def within(header: str, body: str = STEP) -> str:
    return f"{header}\n" + textwrap.indent(body, "    ")


LOOP = within("for _ in range(2):")
LOOK = "with torch.no_grad():\n    accuracy = (model(x).argmax(1) == y).float().mean()\n"
PROGRAMS = {
    "a step that takes nothing": (
        within("def step():") + "    return loss.item()\nfor _ in range(2):\n    step()\n", "step"
    ),
    "a step, and a look": (within("def step():") + f"for _ in range(2):\n    step()\n{LOOK}", "step"),
    "a step with data, and a look": (within("def step(x):") + f"for _ in range(2):\n    step(x)\n{LOOK}", "step"),
    "a method": (within("class Trainer:", within("def step(self):")) + f"Trainer().step()\n{LOOK}", "step"),
    "a function of model and data": (
        within("def train(model, data):", within("for x, y in data:")) + f"train(model, [(x, y)])\n{LOOK}",
        "train",
    ),
    "a loop": (LOOP, "script"),
    "a loop, then one that looks": (LOOP + within("for _ in range(2):", LOOK), "script"),
    "a loop in which another looks": (LOOP + textwrap.indent(within("for _ in range(2):", LOOK), "    "), "script"),
    "one step": ("\n".join(STEP.splitlines()[1:]) + "\n", "script"),
    "a function with a loop": (within("def train():", LOOP + "return loss.item()\n") + "last = train()\n", "train"),
    "main": (
        within("def main():", "if model is None:\n    return\n" + LOOP)
        + within("if __name__ == '__main__':", "main()\n"),
        "main",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_step_is_explored(name: str) -> None:
    program, function = PROGRAMS[name]
    capture = captured_source(SET_UP + program)
    assert capture.error is None and [entry.name for entry in capture.entries] == [function]
    assert [graph.phase for graph in capture.graphs if graph.runner.calls][:2] == ["forward", "backward"]
    losses = [
        node for node in capture.graphs[0].aten.graph.nodes if "log_softmax" in node.name or "gather" in node.name
    ]
    assert losses or function == "train", "the loss belongs to it; Dynamo leaves a loop with graph breaks out"


def test_names_of_main_stay_its_own_where_others_have_them() -> None:
    capture = captured_source(
        SET_UP + "rate = 1.0\ndef scaled(x):\n    return x * rate\n"
        "def main():\n    rate = 2.0\n    for _ in range(2):\n        loss = (scaled(model(x)) * rate).sum()\n"
        "        loss.backward()\nmain()\nprint(rate)\n"
    )
    assert capture.error is None and capture.output.startswith("1.0")


def test_what_is_differentiated_afterwards_has_its_gradients() -> None:
    capture = captured_source(
        "import torch\nw = torch.ones(3, requires_grad=True)\ndef f(x):\n    return (w * x).sin()\n"
        "f(torch.ones(3)).sum().backward()\n"
    )
    assert [(graph.phase, graph.function) for graph in capture.graphs] == [("forward", "f"), ("backward", "f")]
    assert [note.message for note in capture.notes] == [
        "The backward graph of f was called with gradients of one, since the snippet asks for gradients after it."
    ]


def test_of_a_pass_that_gathers_gradients_the_inner_loop_is_explored() -> None:
    """Dynamo compiles no loop with a graph break in it, such as one around `backward`: the inner loop has none."""
    capture = captured_source(
        SET_UP + "for step in range(3):\n    for _ in range(2):\n        loss = criterion(model(x), y) / 2\n"
        "        loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    assert capture.error is None and capture.notes[0].line == 8
    assert [graph.phase for graph in capture.graphs] == ["forward", "backward"]


def test_a_name_that_some_passes_bind_is_not_returned() -> None:
    capture = captured_source(
        SET_UP + "for step in range(3):\n    if step == 0:\n        first = x * 2\n"
        "    loss = criterion(model(x), y)\n    loss.backward()\n    optimizer.step()\n"
    )
    assert capture.error is None and [graph.phase for graph in capture.graphs][:2] == ["forward", "backward"]


def test_what_an_earlier_pass_made_is_given_to_the_function() -> None:
    capture = captured_source(
        SET_UP + "rate = None\nfor step in range(3):\n    if step == 0:\n        weight = x.mean()\n"
        "    loss = criterion(model(x), y) * weight\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    assert capture.error is None and "`script(x, y, weight)`" in capture.notes[0].message


def test_models_with_a_backward_pass_each_are_compiled_each_by_itself() -> None:
    capture = captured_source(
        "import torch\nG, D = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)\n"
        "of_g, of_d = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)\n"
        "z = torch.ones(2, 3)\n"
        "for _ in range(2):\n    fake = G(z)\n    of_d.zero_grad()\n    D(fake.detach()).mean().backward()\n"
        "    of_d.step()\n    of_g.zero_grad()\n    D(fake).mean().neg().backward()\n    of_g.step()\n"
    )
    assert capture.error is None and len(capture.entries) == 2
    assert capture.notes[1].message == "It runs backward several times. So G and D were compiled each by itself."
    assert {graph.phase for graph in capture.graphs} == {"forward", "backward"}


def test_gradients_of_gradients_are_left_to_their_function() -> None:
    """PyTorch refuses them of a compiled graph."""
    capture = captured_source(
        SET_UP + "def penalty(x):\n    x = x.clone().requires_grad_()\n"
        "    (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)\n    return g.square().mean()\n"
        "for _ in range(2):\n    loss = criterion(model(x), y) + penalty(x)\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    assert capture.error is None and [entry.name for entry in capture.entries] == ["penalty"]


def test_what_cannot_be_set_up_twice_is_explored_otherwise() -> None:
    capture = captured_source(
        SET_UP + f"import os\nos.mkdir(folder := '/tmp/fusionscope-' + str(id(model)))\n{LOOP}os.rmdir(folder)\n"
    )
    assert capture.error is None and capture.graphs


def test_an_optimizer_steps_the_tensor_that_it_holds_in_every_call() -> None:
    capture = captured_source(
        "import torch\nw = torch.ones(3, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(2):\n    loss = w.square().sum()\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )
    (entry,) = capture.entries
    w = capture.names["w"]
    assert isinstance(w, torch.Tensor) and w.requires_grad
    before = w.detach().clone()
    args, kwargs = entry.copy_arguments()
    entry.eager(*args, **kwargs)
    torch.testing.assert_close(w.detach(), before * 0.8)
