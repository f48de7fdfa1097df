"""Steps of training as the suite `train` judges them: the loss, the gradients, and each parameter's move."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench import table
from bench.models.judge import InDouble, judge
from bench.models.model import Example, Model, ModelSize
from bench.models.run import Callee, Run
from bench.ratios import draw


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"loss": self.map(x).square().mean()}


def _build(_size: ModelSize) -> Example:
    return Example(Line(), lambda batch, generator: {"x": torch.randn(batch, 5, generator=generator)})


MODEL = Model("line", _build, is_trained=True, is_optimised=True, reference_parts=2)


def a_run() -> Run:
    example = MODEL.example("small", torch.device("cpu"), 0)
    return Run(MODEL, example.module, example.inputs(4, torch.Generator().manual_seed(1)))


def test_a_step_is_judged_by_its_loss_its_gradients_and_its_moves() -> None:
    run = a_run()
    eager = (own := run.copied()).results(own.callee())
    exact = run.in_double()
    with InDouble():
        reference = exact.results(exact.callee())
    assert exact.parts == 2
    assert reference.keys() == eager.keys() == {
        "output.loss", "gradient.map.weight", "gradient.map.bias", "update.map.weight", "update.map.bias",
    }  # fmt: skip
    assert judge(eager, eager, reference).is_right
    restore = (own := run.copied()).remembered()
    own.step(own.callee())
    restore()
    assert judge(own.results(own.callee()), eager, reference).is_right, "a restored step is a first one"


def test_an_optimiser_that_moves_too_far_is_found() -> None:
    run = a_run()
    eager = (own := run.copied()).results(own.callee())
    exact = run.in_double()
    reference = exact.results(exact.callee())
    hasty = run.copied()
    callee = hasty.callee()

    def update() -> None:
        assert callee.update is not None and hasty.optimiser is not None
        hasty.optimiser.param_groups[0]["lr"] *= 1.01
        callee.update()

    judged = judge(hasty.results(Callee(callee.forward, update)), eager, reference)
    assert not judged.is_right and judged.worst.startswith("update.")


def test_losses_come_first_and_are_drawn_against_the_best_mode() -> None:
    results: dict[str, dict[str, Any]] = {
        "won": {"ours": 1.0, "inductor_default": 2.0, "ours_to_inductor": 0.5, "ours_to_best": 0.8},
        "lost": {"ours": 1.1, "inductor_default": 1.2, "ours_to_inductor": 0.92, "ours_to_best": 1.1},
        "lost_more": {"ours": 3.0, "inductor_default": 2.0, "ours_to_inductor": 1.5, "ours_to_best": 1.5},
        "failed": {"errors": {"case": "no"}},
    }
    assert list(table.losses_first(results)) == ["lost_more", "lost", "won", "failed"]
    drawn = draw(table.losses_first(results), "a < b")
    assert "a &lt; b" in drawn and drawn.count("<circle") == 3


PREPARE_AND_MEASURE = """
import sys, time
from bench.turns import Turns
turns = Turns(sys.argv[1])
time.sleep(0.2)
with turns.alone():
    with open(sys.argv[2], "a") as told:
        told.write("in\\n"); told.flush()
        time.sleep(0.1)
        told.write("out\\n")
"""


def test_processes_measure_one_at_a_time(tmp_path: Path) -> None:
    turns, told = tmp_path / "turns", tmp_path / "told"
    turns.touch()
    command = [sys.executable, "-c", PREPARE_AND_MEASURE, str(turns), str(told)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(timeout=600) for process in processes] == [0, 0, 0]
    assert told.read_text().split() == ["in", "out"] * 3
