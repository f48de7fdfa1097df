"""What is promised of every operator of the tables: lowered and run in three ways, it equals eager.

A module that takes these tests in has a fixture `calls`, those of one operator, which are traced once for all.
The C++ kernels of several operators are compiled at once, and only as well as their text needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import pytest

from compiler.ir import interpret
from compiler.runtime.cpp.compiler import CompilationFailed
from compiler.runtime.cpp.library import Kernel
from tests.codegen.cpp.harness import Lowered, compiled_in_half_the_time, execute, launch_all, render_nodes
from tests.lowering.checks import Samples, fallbacks
from tests.lowering.in_triton import run_in_triton
from tests.lowering.operators import Operator

#: Operators of one compilation: the start of the C++ compiler and its headers cost as much as the kernels of one.
TOGETHER = 12


@dataclass(frozen=True)
class Calls:
    """Those calls of an operator that eager takes."""

    operator: Operator
    samples: Samples
    batch: Batch

    @cached_property
    def in_cpp(self) -> Lowered:
        return render_nodes(self.samples.graph)


class Batch:
    """Operators whose C++ kernels are compiled at once."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.operators = operators
        self._calls: dict[str, Calls] = {}

    def calls(self, operator: Operator) -> Calls:
        if operator.name not in self._calls:
            samples = Samples.of(operator.name, operator.function, operator.calls())
            self._calls[operator.name] = Calls(operator, samples, self)
        return self._calls[operator.name]

    def forget(self, operator: Operator) -> None:
        self._calls.pop(operator.name, None)

    def launchers(self, calls: Calls) -> dict[str, Kernel]:
        """Those of one operator, among others. What the compiler refuses of the others is no failure of this one."""
        with compiled_in_half_the_time():
            try:
                return self._launchers
            except CompilationFailed:
                return launch_all([calls.in_cpp])

    @cached_property
    def _launchers(self) -> dict[str, Kernel]:
        compiled: list[Lowered] = []
        for operator in self.operators:
            with suppress(Exception):  # which its own tests will raise
                compiled.append(self.calls(operator).in_cpp)
        return launch_all(compiled)


def calls_of(operators: Sequence[Operator]) -> Callable[..., Iterator[Calls]]:
    """The fixture of a module: one operator after the other, each with all of its tests."""
    batches = [Batch(operators[first : first + TOGETHER]) for first in range(0, len(operators), TOGETHER)]
    rows = [(batch, operator) for batch in batches for operator in batch.operators]

    @pytest.fixture(scope="module", params=rows, ids=lambda row: row[1].name)
    def calls(request: pytest.FixtureRequest) -> Iterator[Calls]:
        batch, operator = request.param
        yield batch.calls(operator)
        batch.forget(operator)

    return calls


def test_lowered_operator_equals_eager(calls: Calls) -> None:
    samples = calls.samples
    assert samples.calls, "eager takes none of the samples"
    samples.judge(interpret.run(samples.graph, samples.inputs))
    if not calls.operator.falls_back:
        assert not fallbacks(samples.graph)


def test_operator_in_triton_equals_eager(calls: Calls) -> None:
    samples = calls.samples
    samples.judge(run_in_triton(samples.graph, samples.inputs))


def test_operator_in_cpp_equals_eager(calls: Calls) -> None:
    samples = calls.samples
    samples.judge(execute(calls.in_cpp, calls.batch.launchers(calls), samples.inputs))
