"""The benchmark on real, tiny cases: what it writes, and that a case that fails does not stop the others."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from bench import cli, contest, snippets, table, worker
from bench.convolutions import CONVOLUTIONS
from bench.dropout import dropout_error
from bench.gradients import ForwardAndBackward
from bench.models import RACED
from bench.patterns import PATTERNS, SMOKE, Case, Input
from bench.wide import WIDE
from bench.wide.share import run_share
from compiler import compile as compiling
from compiler.options import Options
from compiler.runtime.cpp import compiler as cpp_compiler
from compiler.runtime.disk_cache import cache_directory

CPU = torch.device("cpu")


#: Imported by every Python process that has its folder on the path: one case ends the process that compiles it.
DEADLY = """
import os, signal, sys

if sys.orig_argv[-1] == "bench.worker":
    from bench import contest
    from bench.patterns import PATTERNS

    compile_with = contest.compile_with

    def compile_or_die(name, function):
        if function is PATTERNS["quantize_int8"].function:
            os.kill(os.getpid(), signal.SIGSEGV)
        return compile_with(name, function)

    contest.compile_with = compile_or_die
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """The exit code of a run and what it wrote. Its second case cannot be compiled by ours."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "sitecustomize.py").write_text(DEADLY)
    out = folder / "smoke.json"
    arguments = ["--suite", "smoke", "--device", "cpu", "--cases", "small_pointwise,quantize_int8"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(cli.__file__).parents[1]), str(folder)]))
        code = cli.main([*arguments, "--contestants", "eager,ours", "--repeat", "3", "--out", str(out)])
    return code, out


def test_a_run_writes_times_errors_and_verdicts_of_each_case(run: tuple[int, Path]) -> None:
    _, out = run
    written = json.loads(out.read_text())
    assert written["environment"]["torch"] == torch.__version__
    assert written["environment"]["copy_bandwidth_gb_per_s"] > 0
    assert list(written["cases"]) == ["small_pointwise", "quantize_int8"]
    for result in written["cases"].values():
        assert result["eager"] > 0
        assert result["floor"] > 0
        assert result["max_error"]["eager"] < 1e-3
        assert result["inductor_default"] is None
    assert table.verdict(written["cases"]["small_pointwise"]) == "ok"
    assert written["cases"]["small_pointwise"]["ours"] > 0
    assert "| small_pointwise |" in out.with_suffix(".md").read_text()
    assert not list(out.parent.glob("*.part"))


def test_a_contestant_that_kills_the_process_loses_the_case_and_the_suite_goes_on(run: tuple[int, Path]) -> None:
    code, out = run
    result = json.loads(out.read_text())["cases"]["quantize_int8"]
    assert result["errors"] == {"ours": "the process was ended by SIGSEGV"}
    assert result["ours"] is None
    assert table.verdict(result) != "ok"
    assert code == 1


def test_a_snippet_tells_what_compiling_took_with_empty_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippet is the trivial function that starts the compilers, and yet it is compiled, in a folder of its own."""
    folder, out = tmp_path / "snippets", tmp_path / "snippets.json"
    folder.mkdir()
    source = "import torch\n\n@torch.compile\ndef f(x):\n    return x + 1\n\nf(torch.ones(64))\n"
    (folder / "trivial.py").write_text(source)
    compiled: list[tuple[str, Path]] = []
    compile_source = cpp_compiler._compile

    def remember(source: str, path: Path, is_kernel: bool) -> None:
        compiled.append((source, path.parent))
        compile_source(source, path, is_kernel)

    monkeypatch.setattr(cpp_compiler, "_compile", remember)
    arguments = ["--suite", "snippets", "--folder", str(folder), "--device", "cpu", "--repeat", "3", "--out", str(out)]
    assert cli.main(arguments) == 0
    written = json.loads(out.read_text())
    result = written["cases"]["trivial"]
    assert result["ours_compile_s"] > 0
    assert result["inductor_compile_s"] > 0
    assert table.verdict(result) == "ok"
    (first, its_folder), (second, other_folder) = compiled[:2]
    assert first == second
    assert its_folder != other_folder
    assert cache_directory("cpp") not in (its_folder, other_folder)
    assert "empty caches" in written["method"]
    assert "| ours compile s | Inductor compile s |" in out.with_suffix(".md").read_text()


TRAINING = """
import torch

@torch.compile
def f(x):
    return x.sin().sum()

f(torch.ones(64, requires_grad=True)).backward()
"""


def test_compiling_a_training_snippet_includes_its_backward_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[torch.fx.GraphModule] = []
    compile_graph = compiling.compile_graph

    def remember(graph: torch.fx.GraphModule, *rest: Any) -> Any:
        graphs.append(graph)
        return compile_graph(graph, *rest)

    monkeypatch.setattr(compiling, "compile_graph", remember)
    seconds, failures = snippets.compile_seconds(TRAINING, Options(device="cpu"))
    assert not failures
    assert all(seconds.values())
    assert len(graphs) == 2


def test_a_compiler_that_fails_on_a_snippet_has_no_seconds_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, function: Any) -> Any:
        raise NotImplementedError(f"{name} cannot")

    monkeypatch.setattr(snippets, "compile_with", refuse)
    seconds, failures = snippets.compile_seconds(TRAINING, Options(device="cpu"))
    assert seconds == {"ours_compile_s": None, "inductor_compile_s": None}
    assert failures["compiling with ours"] == "NotImplementedError: ours cannot"


def setup_of(size: str = "tiny") -> contest.Setup:
    from compiler.runtime.timing.stopwatch import stopwatch

    return contest.Setup(CPU, size, 0, 3, 1.0, 1e10, stopwatch(CPU))  # type: ignore[arg-type]


def test_a_contestant_that_raises_leaves_its_error_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_name: str, _function: Any) -> Any:
        raise NotImplementedError("no lowering for aten.sin\nsecond line")

    monkeypatch.setattr(contest, "compile_with", refuse)
    started: list[str] = []
    result = contest.run_case(PATTERNS["small_pointwise"], ("eager", "ours"), setup_of(), started.append)
    assert result["errors"] == {"ours": "NotImplementedError: no lowering for aten.sin"}
    assert result["ours"] is None
    assert result["eager"] > 0
    assert started == ["eager", "ours", "timing"]


def test_programs_of_a_share_are_all_checked_and_timed_with_their_gradients() -> None:
    said: list[dict[str, Any]] = []

    def send(event: str, **content: Any) -> None:
        said.append({"event": event, **content})

    def fail(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such program")

    x = Input((64, 32))
    cases = {
        "fails": Case("fails", fail, (x,), (x,)),
        "norm": Case("norm", lambda x: (x * x).sum(-1).sqrt(), (x,), (x,), has_gradients=True),
    }
    contestants = dict.fromkeys(cases, ("eager", "ours"))
    run_share(contestants, cases, dataclasses.replace(setup_of(), size="full"), send)
    results = {message["case"]: message["result"] for message in said if message["event"] == "case"}
    assert results["fails"]["errors"] == {"case": "ValueError: no such program"}
    assert results["norm"]["correct"] == {"eager": True, "ours": True}
    assert results["norm"]["floor_bytes"] == 4 * (2 * 64 * 32 + 64)
    assert results["norm"]["ours"] > 0
    assert results["norm"]["ours_compile_s"] is None


def test_gradients_of_a_case_are_those_of_autograd() -> None:
    x, place = torch.randn(16, 8, dtype=torch.float64), torch.randint(0, 8, (16,))
    value, gradient = ForwardAndBackward(F.cross_entropy)(x, place)
    leaf = x.clone().requires_grad_()
    expected = F.cross_entropy(leaf, place)
    expected.backward()
    assert torch.equal(value, expected.detach())
    assert leaf.grad is not None
    assert torch.equal(gradient, leaf.grad)
    wide = ForwardAndBackward(torch.sin)
    torch.testing.assert_close(wide(x.float())[1].double(), wide(x)[1], rtol=1e-5, atol=1e-6)


#: A third of the programs, in turn by file: what a whole run takes tens of seconds for.
SOME = list(WIDE)[::3]


@pytest.mark.parametrize("first", range(8))
def test_programs_of_the_wide_suite_give_tensors_of_their_inputs(first: int) -> None:
    """On tensors without memory, which cost nothing: names of operators and shapes that do not fit are found here."""
    for name in SOME[first::8]:
        case = WIDE[name]
        with FakeTensorMode(allow_non_fake_inputs=True):
            results = case.call(case.function)(*case.inputs("full", CPU, 0))
        results = results if isinstance(results, tuple) else [results]
        assert all(isinstance(result, torch.Tensor) for result in results), name


def test_programs_of_a_suite_share_no_code() -> None:
    """Dynamo keeps what it compiled with the code, and runs eagerly beyond eight compilations of one."""
    for suite in (WIDE, CONVOLUTIONS):
        codes = [case.function.__code__ for case in suite.values() if hasattr(case.function, "__code__")]
        assert len(set(map(id, codes))) == len(codes)


def test_either_is_the_first_to_compile_in_about_half_of_the_cases() -> None:
    orders = [contest.in_order(contest.CONTESTANTS, case) for case in PATTERNS]
    ours_first = sum(order.index("ours") < order.index("inductor_default") for order in orders)
    assert 10 <= ours_first <= 20
    assert all(order.index("inductor_default") < order.index("inductor_reduce_overhead") for order in orders)


def test_a_wrong_result_is_found_and_kept_out_of_the_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "compile_with", lambda _name, function: lambda *inputs: function(*inputs) + 0.1)
    result = contest.run_case(PATTERNS["softmax_by_hand"], ("eager", "ours"), setup_of(), lambda _: None)
    assert result["correct"] == {"eager": True, "ours": False}
    assert "ours is wrong" in table.verdict(result)
    assert table.geometric_means({"softmax_by_hand": result})["eager_to_ours"] is None


def test_a_case_that_raises_is_a_result_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such case")

    case = dataclasses.replace(PATTERNS["small_pointwise"], name="failing", function=fail)
    monkeypatch.setitem(PATTERNS, "failing", case)
    told: list[tuple[str, dict[str, Any]]] = []
    orders = {
        "device": "cpu", "size": "tiny", "seed": 0, "repeat": 3, "max_seconds": 1.0, "bandwidth": 1e10,
        "compilers": [],
        "cases": {"failing": ["eager"], "small_pointwise": ["eager"]},
    }  # fmt: skip
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=False):  # which the worker sets for its process
        assert worker.run(orders, lambda event, **content: told.append((event, content))) == 0
    results = {content["case"]: content["result"] for event, content in told if event == "case"}
    assert results["failing"]["errors"] == {"case": "ValueError: no such case"}
    assert results["small_pointwise"]["eager"] > 0


def test_dropout_is_right_by_its_values_and_the_share_it_keeps() -> None:
    torch.manual_seed(0)
    x, bias = torch.randn(256, 256), torch.randn(256)
    activated = F.gelu(x + bias)
    assert dropout_error(F.dropout(activated, 0.1), x, bias)[1]
    assert not dropout_error(F.dropout(activated, 0.2), x, bias)[1]
    assert not dropout_error(F.dropout(activated, 0.1) * 0.9, x, bias)[1]
    assert not dropout_error(activated / 0.9, x, bias)[1]


@pytest.mark.parametrize("case", SMOKE.values(), ids=lambda case: case.name)
def test_inputs_depend_on_the_seed_alone(case: Case) -> None:
    first, again, other = (case.inputs("tiny", CPU, seed) for seed in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_mean_is_geometric_and_knows_its_cases() -> None:
    results = {
        name: {"limit": limit, "correct": {"ours": True}, "eager_to_ours": ratio, "ours_to_floor": ratio}
        for name, limit, ratio in [("a", "memory", 2.0), ("b", "memory", 8.0), ("c", "arithmetic", 4.0)]
    }
    means = table.geometric_means(results)
    assert means["eager_to_ours"] == {"mean": pytest.approx(4.0), "cases": 3}
    assert means["ours_to_floor_memory_bound"] == {"mean": pytest.approx(4.0), "cases": 2}
    assert means["ours_to_inductor"] is None


def test_a_name_may_stand_for_several_cases_of_its_suite() -> None:
    assert cli.chosen_cases("models", "raced,gpt2") == (*RACED, "gpt2")
    assert cli.chosen_cases("patterns", "raced") == ("raced",)
    assert cli.chosen_cases("models", "") == ()


def test_an_unknown_case_is_a_mistake_in_the_request() -> None:
    assert cli.main(["--device", "cpu", "--cases", "no_such_case"]) == 2
    assert cli.main(["--device", "cpu", "--suite", "snippets", "--cases", "no_such_case"]) == 2
    assert cli.main(["--device", "cpu", "--suite", "snippets", "--folder", "no_such_folder"]) == 2


def test_a_busy_machine_is_said_to_make_cpu_times_unreliable() -> None:
    busy = {"kind": "cpu", "cores": 2, "load_average": 7.5}
    assert "busy" in table.warnings(busy)[0]
    assert table.warnings({**busy, "load_average": 0.1}) == []
    assert table.warnings({**busy, "kind": "cuda", "clocks": {"throttle": ["power cap"]}})[0].count("power cap") == 1


def test_a_graph_is_scheduled_in_a_process_of_its_own_and_told_by_its_nodes(tmp_path: Path) -> None:
    out = tmp_path / "scheduling.json"
    assert cli.main(["--suite", "scheduling", "--cases", "optimiser", "--nodes", "30", "--out", str(out)]) == 0
    (result,) = json.loads(out.read_text())["cases"].values()
    assert result["nodes"] >= 30
    assert result["kernels"] < result["nodes"]
    assert result["total_s"] > 0
    assert "| optimiser_30 |" in out.with_suffix(".md").read_text()
    assert cli.main(["--suite", "scheduling", "--cases", "no_such_kind"]) == 2


def test_a_device_that_there_is_not_is_told_without_a_stack(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--suite", "smoke", "--device", "tpu"]) == 2
    assert "There is no device 'tpu'; there are cpu, cuda and cuda:N." in capsys.readouterr().out
