"""What is promised of every operator of the tables: lowered and run in three ways, it equals eager.

A module that takes these tests in has a fixture `samples`, the calls of one operator, which are traced once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from compiler.ir import interpret
from tests.codegen.cpp.harness import execute, launch_all, render_nodes
from tests.lowering.checks import Sample, fallbacks
from tests.lowering.in_triton import run_in_triton
from tests.lowering.operators import Operator


@dataclass(frozen=True)
class Calls:
    """Those calls of an operator that eager takes."""

    operator: Operator
    samples: Sequence[Sample]


def samples_of(operators: Sequence[Operator]) -> Callable[..., Calls]:
    """The fixture of a module: one operator after the other, each with all of its tests."""

    @pytest.fixture(scope="module", params=operators, ids=lambda operator: operator.name)
    def samples(request: pytest.FixtureRequest) -> Calls:
        operator: Operator = request.param
        made = (Sample.of(operator.name, operator.function, inputs) for inputs in operator.calls())
        return Calls(operator, [sample for sample in made if sample is not None])

    return samples


def test_lowered_operator_equals_eager(samples: Calls) -> None:
    assert samples.samples, "eager takes none of the samples"
    for sample in samples.samples:
        sample.judge(interpret.run(sample.graph, sample.inputs))
        if not samples.operator.falls_back:
            assert not fallbacks(sample.graph)


def test_operator_in_triton_equals_eager(samples: Calls) -> None:
    for sample in samples.samples:
        sample.judge(run_in_triton(sample.graph, sample.inputs))


def test_operator_in_cpp_equals_eager(samples: Calls) -> None:
    compiled = [render_nodes(sample.graph) for sample in samples.samples]
    launchers = launch_all(compiled)
    for sample, kernels in zip(samples.samples, compiled, strict=True):
        sample.judge(execute(kernels, launchers, sample.inputs))
