"""The table of operators, each loop node a C++ kernel of its own, compared with eager."""

from __future__ import annotations

import pytest

from tests.codegen.cpp.harness import execute, launch_all, render_nodes
from tests.lowering.checks import Sample
from tests.lowering.tables import OPERATORS

_PER_LIBRARY = 15


@pytest.mark.parametrize("first", range(0, len(OPERATORS), _PER_LIBRARY))
def test_table_of_operators(first: int) -> None:
    samples = [
        sample
        for operator in OPERATORS[first : first + _PER_LIBRARY]
        for inputs in operator.calls()
        if (sample := Sample.of(operator.name, operator.function, inputs)) is not None
    ]
    compiled = [render_nodes(sample.graph) for sample in samples]
    launchers = launch_all(compiled)
    problems = []
    for sample, kernels in zip(samples, compiled, strict=True):
        try:
            sample.judge(execute(kernels, launchers, sample.inputs))
        except AssertionError as problem:  # one does not hide the others
            problems.append(str(problem).splitlines()[0])
    assert not problems, "\n".join(problems)
