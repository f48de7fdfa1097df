"""Small models of three families, forward and backward: outputs, gradients and statistics against eager and float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench import cli, contest
from bench.models.judge import judge
from bench.models.model import Example, Model, ModelSize, tokens
from bench.models.trial import run_model
from compiler.runtime.cpp.instruction_sets import SETTING, runnable
from compiler.runtime.timing.stopwatch import stopwatch
from tests.models.architectures import LENGTH, WORDS, Decoder, ResidualNet, RotaryDecoder

CPU = torch.device("cpu")


def of_words(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
    return {"words": tokens(WORDS, (batch, LENGTH), generator)}


def of_images(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
    return {"image": torch.randn(batch, 3, 40, 40, generator=generator)}


def model_of(architecture: Callable[[], nn.Module], inputs: Any, is_trained: bool) -> Model:
    def build(_size: ModelSize) -> Example:
        return Example(architecture(), inputs)

    return Model(architecture.__name__, build, is_trained)


def run(model: Model) -> dict[str, Any]:
    setup = contest.Setup(CPU, "small", 0, 3, 1.0, 1e10, stopwatch(CPU), batch=3, is_timed=False)
    return run_model(model, ("eager", "ours"), setup, lambda _: None)


@pytest.mark.parametrize("level", runnable())
@pytest.mark.parametrize("is_trained", [False, True], ids=["forward", "training"])
@pytest.mark.parametrize(
    ("architecture", "inputs"), [(Decoder, of_words), (RotaryDecoder, of_words), (ResidualNet, of_images)]
)
def test_a_small_model_is_as_near_to_float64_as_eager(
    architecture: Callable[[], nn.Module], inputs: Any, is_trained: bool, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, level)
    result = run(model_of(architecture, inputs, is_trained))
    assert result["errors"] == {}
    assert result["correct"]["ours"], (result["worst"], result["share_of_allowed"])
    assert result["graphs"] == (2 if is_trained else 1)
    assert result["graph_breaks"] == 0
    assert result["kernels"] > 0
    assert result["compile_stages_s"].keys() == {"lower", "plan", "generate", "build", "capture"}


def test_a_wrong_statistic_is_found_although_all_outputs_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(_name: str, module: ResidualNet) -> Callable[..., Any]:
        def call(**inputs: Tensor) -> Any:
            outputs = module(**inputs)
            assert module.norm_1.running_var is not None
            module.norm_1.running_var.data *= 1.001
            return outputs

        return call

    monkeypatch.setattr("bench.models.trial.compile_with", forgetful)
    result = run(model_of(ResidualNet, of_images, is_trained=True))
    assert result["correct"] == {"eager": True, "ours": False}
    assert result["worst"]["ours"] == "buffer.norm_1.running_var"


def test_a_failure_is_told_with_where_it_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_name: str, _module: nn.Module) -> Callable[..., Any]:
        def call(**_inputs: Tensor) -> Any:
            raise NotImplementedError("no such lowering")

        return call

    monkeypatch.setattr("bench.models.trial.compile_with", refuse)
    result = run(model_of(Decoder, of_words, is_trained=False))
    assert result["errors"] == {"ours": "NotImplementedError: no such lowering"}
    assert "test_models.py" in result["tracebacks"]["ours"]


def test_each_result_is_judged_by_eagers_own_error() -> None:
    reference = {"output.a": torch.tensor([1.0, -2.0], dtype=torch.float64), "output.b": torch.ones(3).double()}
    eager = {"output.a": torch.tensor([1.0, -2.0002]), "output.b": torch.ones(3)}
    near = {"output.a": torch.tensor([1.0, -2.0005]), "output.b": torch.ones(3)}
    far = {"output.a": torch.tensor([1.0, -2.0007]), "output.b": torch.ones(3)}
    elsewhere = {"output.a": eager["output.a"], "output.b": torch.ones(3) + 1e-6}
    assert judge(near, eager, reference).is_right
    assert not judge(far, eager, reference).is_right
    assert not judge(elsewhere, eager, reference).is_right
    assert not judge({"output.a": eager["output.a"]}, eager, reference).is_right
    assert not judge({**eager, "output.b": torch.full((3,), torch.nan)}, eager, reference).is_right
    assert not judge({**eager, "output.b": torch.ones(3, 1)}, eager, reference).is_right


def test_without_the_models_library_the_suite_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.models.model.find_spec", lambda _name: None)
    assert cli.main(["--suite", "models", "--device", "cpu"]) == 2
    assert "pip install '.[bench]'" in capsys.readouterr().out
