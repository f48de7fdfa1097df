"""Programs that train without compiling anything: their step is what is explored, with its backward graph."""

from __future__ import annotations

import textwrap

import pytest

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
