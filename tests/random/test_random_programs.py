"""Random programs give what eager gives: a few hundred by seed, as `fusionscope bench --suite random` runs thousands.

The C++ kernels of many programs are compiled at once. A failing program is printed as a Python file to run, made small.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from bench.programs import check as check_module
from bench.programs import judge as judge_module
from bench.programs.check import Outcome, check, is_refused_by_pytorch
from bench.programs.compiled import capture
from bench.programs.generate import generate
from bench.programs.judge import mistakes
from bench.programs.program import Program, Statement
from bench.programs.shrink import shrink
from bench.programs.worlds import Rejected, run
from tests.compile_program import call_interpreted

#: Programs of one batch; several tests, so that one wrong program does not hide those of the others.
BATCH = 40


def explain(outcome: Outcome) -> str:
    return "\n\n".join(
        "\n".join([f"seed {f.seed}, {f.kind}:", *f.problems, f.script]) for f in outcome.failures
    )  # fmt: skip


@pytest.mark.parametrize("first", range(0, 3 * BATCH, BATCH))
def test_cpp_kernels_give_what_eager_gives(first: int) -> None:
    outcome = check(range(first, first + BATCH))
    assert not outcome.failures, explain(outcome)
    assert outcome.counts["programs"] + outcome.counts["refused by PyTorch"] == BATCH
    assert outcome.counts["refused by PyTorch"] <= 2
    assert outcome.counts["kernels"] > BATCH


@pytest.mark.parametrize("first", range(100000, 100000 + 2 * BATCH, BATCH))
def test_cpp_kernels_of_short_programs(first: int) -> None:
    """Few operators in a program: what one of them does wrong is not hidden in what others do."""
    outcome = check(range(first, first + BATCH), most_statements=6)
    assert not outcome.failures, explain(outcome)


def test_programs_of_open_sizes_give_what_eager_gives_at_two_sizes() -> None:
    outcome = check(range(300000, 300000 + BATCH // 4), most_statements=6, is_open=True)
    assert not outcome.failures, explain(outcome)
    assert outcome.counts["of two sizes"] > BATCH // 8
    assert outcome.counts["graphs"] < outcome.counts["programs"] + outcome.counts["of two sizes"], "sizes stay open"


@pytest.mark.parametrize("seed", range(200000, 200015))
def test_triton_kernels_give_what_eager_gives(seed: int) -> None:
    program = generate(seed, most_statements=10)
    compiled = capture(program, through_dynamo=False, wants_triton=True)
    for part in compiled.parts:
        assert part.runner is not None
        part.runner.implementation = partial(call_interpreted, part.compilation)
    results, inputs = compiled.run()
    found = mistakes(program, run(program), results, inputs, compiled.captured)
    assert not found, "\n".join([*found, program.script()])


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_triton_kernels_on_a_gpu_give_what_eager_gives(first: int) -> None:
    outcome = check(range(first, first + 20), device="cuda", most_statements=15)
    assert not outcome.failures, explain(outcome)


# --- what finds mistakes must find them


def test_what_pytorch_cannot_capture_is_told_from_what_we_cannot_compile() -> None:
    broken = Statement("v0 = a.no_such_method()", "moves", ("v0",), ("a",))
    assert not is_refused_by_pytorch(written(SINE, TWICE))
    assert is_refused_by_pytorch(written(broken))


def test_pytorch_is_asked_on_the_device_that_failed() -> None:
    """Tensors without data stand in for a device that lacks an operator."""
    found = written(Statement("v0 = a.nonzero()", "moves", ("v0",), ("a",)))
    assert not is_refused_by_pytorch(found, "cpu")
    assert is_refused_by_pytorch(found, "meta")


def test_what_pytorch_refuses_is_counted_apart_and_what_only_we_refuse_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Statement("v0 = a.no_such_method()", "moves", ("v0",), ("a",))
    programs = {0: written(broken), 1: written(SINE, TWICE)}

    def no_kernels(*_: object) -> None:
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(check_module, "generate", lambda seed, most_statements: programs[seed])
    monkeypatch.setattr(check_module, "finish", no_kernels)
    outcome = check(range(2))
    assert outcome.counts["refused by PyTorch"] == 1
    (failure,) = outcome.failures
    assert failure.kind == "failed" and "no C++ compiler" in failure.problems[0]


def test_a_seed_always_gives_the_same_program() -> None:
    assert generate(11) == generate(11)
    assert generate(11).function != generate(12).function


def written(*statements: Statement) -> Program:
    return Program(1, (("a", "torch.randn([4, 6]).to(f32)"),), statements, (statements[-1].targets[0],))


SINE = Statement("v0 = torch.sin(a)", "rounds", ("v0",), ("a",))
TWICE = Statement("v1 = v0 * 2", "moves", ("v1",), ("v0",))
UNREAD = Statement("v2 = torch.cos(a)", "rounds", ("v2",), ("a",))
VIEW = Statement("v3 = v1.t()", "moves", ("v3",), ("v1",))


def test_a_wrong_element_is_seen() -> None:
    program = written(SINE, TWICE)
    worlds = run(program)
    right, a = worlds.tensor("v1").clone(), worlds.tensor("a").clone()
    assert mistakes(program, worlds, [right], [a]) == []
    assert mistakes(program, worlds, [right * (1 + 1e-7)], [a]) == []
    wrong = right.clone()
    wrong[2, 3] += 1e-4
    assert "(2, 3)" in mistakes(program, worlds, [wrong], [a])[0]
    assert mistakes(program, worlds, [right], [a + 1e-6]), "an input that nothing wrote to is exact"
    assert mistakes(program, worlds, [right.t().contiguous().t()], [a]), "strides"
    assert mistakes(program, worlds, [right.double()], [a]), "dtype"


@pytest.mark.parametrize("through_dynamo", [False, True])
def test_kernels_are_what_is_judged(through_dynamo: bool) -> None:
    program = written(SINE, TWICE)
    torch._dynamo.reset()
    compiled = capture(program, through_dynamo)
    for part in compiled.parts:
        part.finish({kernel.name: lambda *tensors: tensors[-1].fill_(0.25) for kernel in part.kernels})
    results, inputs = compiled.run()
    assert mistakes(program, run(program), results, inputs, compiled.captured)


def test_memory_that_is_shared_and_must_not_be_is_seen() -> None:
    program = replace(written(SINE, TWICE, VIEW), results=("v1", "v3"))
    worlds = run(program)
    v1, a = worlds.tensor("v1").clone(), worlds.tensor("a").clone()
    assert mistakes(program, worlds, [v1, v1.t()], [a]) == []
    assert mistakes(program, worlds, [v1, v1.t().clone(memory_format=torch.preserve_format)], [a])


def test_memory_may_be_shared_as_pytorch_s_own_graph_shares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reshape of what PyTorch's capture takes for contiguous is a view in the graph, and a copy in eager."""
    program = replace(written(SINE, TWICE, VIEW), results=("v1", "v3"))
    worlds = run(program)
    v1, a = worlds.tensor("v1").clone(), worlds.tensor("a").clone()
    apart = [v1, v1.t().clone(memory_format=torch.preserve_format)]
    assert mistakes(program, worlds, apart, [a])
    monkeypatch.setattr(judge_module, "by_pytorch", lambda program: [*apart, a])
    assert mistakes(program, worlds, apart, [a]) == []


def test_what_cancels_to_nothing_is_no_program() -> None:
    """How far another evaluation of x - mean(x) of one x may be off, no size of the result tells."""
    with pytest.raises(Rejected):
        run(written(SINE, Statement("v1 = v0[:1].var(0, correction=0)", "rounds", ("v1",), ("v0",))))


def test_a_mean_on_the_way_may_be_rounded_as_a_sum_of_as_many_terms() -> None:
    """289 numbers that are nearly equal: their variance by a mean that is off by eight roundings is right, by a
    thousandth is not."""
    nearly = Statement("v0 = torch.sin(a * 1e-6 + 1)", "rounds", ("v0",), ("a",))
    spread = Statement("v1 = v0.var(0, correction=0)", "rounds", ("v1",), ("v0",))
    program = replace(written(nearly, spread), inputs=(("a", "torch.randn([289]).to(f32)"),))
    worlds = run(program)
    values = worlds.tensor("v0").double()
    a = worlds.tensor("a").clone()
    for off, is_right in ((8 * torch.finfo(torch.float32).eps, True), (1e-3, False)):
        variance = ((values - values.mean() * (1 + off)) ** 2).mean().float()
        assert (mistakes(program, worlds, [variance], [a]) == []) is is_right


def test_a_decision_by_rounded_numbers_is_no_program() -> None:
    with pytest.raises(Rejected):
        run(written(SINE, Statement("v1 = torch.floor(v0)", "decides", ("v1",), ("v0",))))


def test_shrinking_keeps_what_is_needed_to_fail() -> None:
    program = written(SINE, UNREAD, TWICE, VIEW)
    smaller = shrink(program, lambda candidate: "torch.sin" in candidate.function)
    assert smaller.statements[0] == SINE and UNREAD not in smaller.statements
