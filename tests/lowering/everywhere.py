"""What is promised of every operator of the tables: lowered and run in three ways, it equals eager.

A module that takes these tests in has a fixture `samples`, the calls of one operator, which are traced once for all.
The C++ kernels of several operators are compiled at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import pytest

from compiler.ir import interpret
from compiler.runtime.cpp_compiler import CompilationFailed
from compiler.runtime.cpp_library import Kernel
from compiler.runtime.triton_interpreter import interpreting
from tests.codegen.cpp.harness import Lowered, execute, launch_all, render_nodes
from tests.lowering.checks import Sample, fallbacks
from tests.lowering.in_triton import run_in_triton
from tests.lowering.operators import Operator

#: Operators of one compilation: the start of the C++ compiler and its headers cost as much as the kernels of one.
TOGETHER = 6


@dataclass(frozen=True)
class Calls:
    """Those calls of an operator that eager takes."""

    operator: Operator
    samples: Sequence[Sample]
    batch: Batch

    @cached_property
    def in_cpp(self) -> list[Lowered]:
        return [render_nodes(sample.graph) for sample in self.samples]


class Batch:
    """Operators whose C++ kernels are compiled at once."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.operators = operators
        self._calls: dict[str, Calls] = {}

    def calls(self, operator: Operator) -> Calls:
        if operator.name not in self._calls:
            made = (Sample.of(operator.name, operator.function, inputs) for inputs in operator.calls())
            samples = [sample for sample in made if sample is not None]
            self._calls[operator.name] = Calls(operator, samples, self)
        return self._calls[operator.name]

    def forget(self, operator: Operator) -> None:
        self._calls.pop(operator.name, None)

    def launchers(self, calls: Calls) -> dict[str, Kernel]:
        """Those of one operator, among others. What the compiler refuses of the others is no failure of this one."""
        try:
            return self._launchers
        except CompilationFailed:
            return launch_all(calls.in_cpp)

    @cached_property
    def _launchers(self) -> dict[str, Kernel]:
        compiled: list[Lowered] = []
        for operator in self.operators:
            with suppress(Exception):  # which its own tests will raise
                compiled += self.calls(operator).in_cpp
        return launch_all(compiled)


def samples_of(operators: Sequence[Operator]) -> Callable[..., Iterator[Calls]]:
    """The fixture of a module: one operator after the other, each with all of its tests."""
    batches = [Batch(operators[first : first + TOGETHER]) for first in range(0, len(operators), TOGETHER)]
    rows = [(batch, operator) for batch in batches for operator in batch.operators]

    @pytest.fixture(scope="module", params=rows, ids=lambda row: row[1].name)
    def samples(request: pytest.FixtureRequest) -> Iterator[Calls]:
        batch, operator = request.param
        yield batch.calls(operator)
        batch.forget(operator)

    return samples


def test_lowered_operator_equals_eager(samples: Calls) -> None:
    assert samples.samples, "eager takes none of the samples"
    for sample in samples.samples:
        sample.judge(interpret.run(sample.graph, sample.inputs))
        if not samples.operator.falls_back:
            assert not fallbacks(sample.graph)


def test_operator_in_triton_equals_eager(samples: Calls) -> None:
    with interpreting():
        for sample in samples.samples:
            sample.judge(run_in_triton(sample.graph, sample.inputs))


def test_operator_in_cpp_equals_eager(samples: Calls) -> None:
    launchers = samples.batch.launchers(samples)
    for sample, kernels in zip(samples.samples, samples.in_cpp, strict=True):
        sample.judge(execute(kernels, launchers, sample.inputs))
